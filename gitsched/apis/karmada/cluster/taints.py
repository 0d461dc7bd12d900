"""Taints that the Ready condition and ClusterTaintPolicies add to Clusters or remove from them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from gitsched.apis.karmada.policy.propagation_policy import parse_affinity
from gitsched.model.document import Body, Document, Key, as_string_map, get_field
from gitsched.model.finding import Finding, Location, Severity
from gitsched.model.scheduling import Affinity
from gitsched.model.taints import NO_SCHEDULE, Taint, parse_taint
from gitsched.model.time import format_time, parse_time
from gitsched.schedule.fleet import Candidate, Fleet

READY_CONDITION = "Ready"
NOT_READY_TAINT = Taint("cluster.karmada.io/not-ready", "", NO_SCHEDULE)
UNREACHABLE_TAINT = Taint("cluster.karmada.io/unreachable", "", NO_SCHEDULE)


class MatchCondition(NamedTuple):
    """What a ClusterTaintPolicy asks of one condition; an operator that is neither In nor NotIn never matches."""

    condition_type: str
    operator: str
    status_values: frozenset[str]

    def matches(self, conditions: Mapping[str, str]) -> bool:
        """A condition that the cluster does not have matches nothing, not even NotIn."""
        status = conditions.get(self.condition_type)
        if status is None:
            return False
        return (
            status in self.status_values if self.operator == "In" else self.operator == "NotIn" and status not in self.status_values
        )


class ReadinessTaints(NamedTuple):
    """What the Ready condition does to the taints of its cluster: the one it adds, those it takes away, and why."""

    add: Taint | None
    remove: tuple[Taint, ...]
    reason: str


def read_conditions(cluster: Body) -> dict[str, str]:
    """The status ("True", "False" or "Unknown") of each condition, by its type."""
    entries = get_field(cluster, "status", "conditions")
    conditions: dict[str, str] = {}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("type"), str) and isinstance(entry.get("status"), str):
            conditions.setdefault(entry["type"], entry["status"])
    return conditions


def derive_readiness_taints(conditions: Mapping[str, str], assume: bool) -> ReadinessTaints:
    """A cluster that says nothing is not ready for Karmada; with `assume` it is taken to be a document that people wrote."""
    match conditions.get(READY_CONDITION):
        case "False":
            return ReadinessTaints(NOT_READY_TAINT, (UNREACHABLE_TAINT,), "its condition Ready is False")
        case "Unknown":
            return ReadinessTaints(UNREACHABLE_TAINT, (NOT_READY_TAINT,), "its condition Ready is Unknown")
        case "True":
            return ReadinessTaints(None, (NOT_READY_TAINT, UNREACHABLE_TAINT), "its condition Ready is True")
        case None if not assume:
            return ReadinessTaints(NOT_READY_TAINT, (), "it has no condition Ready")
    return ReadinessTaints(None, (), "")


def parse_match_conditions(entries: Any) -> tuple[MatchCondition, ...]:
    """addOnConditions or removeOnConditions."""
    found = (entry for entry in entries if isinstance(entry, dict)) if isinstance(entries, list) else ()
    return tuple(
        MatchCondition(str(e.get("conditionType")), str(e.get("operator")), frozenset(map(str, e.get("statusValues") or ())))
        for e in found
    )


def all_match(matches: Iterable[MatchCondition], conditions: Mapping[str, str]) -> bool:
    """Whether every match holds; none at all never does."""
    asked = tuple(matches)
    return bool(asked) and all(match.matches(conditions) for match in asked)


class ClusterTaintPolicy(NamedTuple):
    """`target` None means every cluster. `created` orders policies, then their names do."""

    created: datetime
    name: str
    target: Affinity | None
    add_on: tuple[MatchCondition, ...]
    remove_on: tuple[MatchCondition, ...]
    taints: tuple[Taint, ...]


class ClusterTaintPolicies(NamedTuple):
    """`policies` in the order in which they act. `names` has those that are broken, too. `records` say when those were first seen whose
    documents do not."""

    policies: tuple[ClusterTaintPolicy, ...] = ()
    names: frozenset[str] = frozenset()
    records: tuple[tuple[Key, Body], ...] = ()


NO_TAINT_POLICIES = ClusterTaintPolicies()


def read_taint_policies(
    documents: Iterable[Document], broken: Iterable[Key], previous: Mapping[Key, Body], moment: datetime
) -> ClusterTaintPolicies:
    """Read every ClusterTaintPolicy. A broken one does nothing, and is still remembered."""
    broken = sorted(broken)
    policies: list[ClusterTaintPolicy] = []
    records: list[tuple[Key, Body]] = []
    for document in documents:
        written = parse_time(get_field(document.body, "metadata", "creationTimestamp"))
        created = written or parse_time(get_field(previous.get(document.key) or {}, "metadata", "creationTimestamp")) or moment
        if written is None:
            records.append((document.key, _write_taint_policy_record(document, created)))
        policies.append(_parse_taint_policy(document, created))
    kept = [(key, previous[key]) for key in broken if key in previous]
    names = {policy.name for policy in policies} | {key.name for key in broken}
    return ClusterTaintPolicies(tuple(sorted(policies, key=lambda policy: policy[:2])), frozenset(names), (*records, *kept))


def _parse_taint_policy(document: Document, created: datetime) -> ClusterTaintPolicy:
    spec = document.body["spec"]
    target = spec.get("targetClusters")
    return ClusterTaintPolicy(
        created,
        document.key.name,
        parse_affinity(target) if target is not None else None,
        parse_match_conditions(spec.get("addOnConditions")),
        parse_match_conditions(spec.get("removeOnConditions")),
        tuple(map(parse_taint, spec["taints"])),
    )


def _write_taint_policy_record(document: Document, created: datetime) -> Body:
    metadata = {"name": document.key.name, "creationTimestamp": format_time(created)}
    return {"apiVersion": document.api_version, "kind": document.key.kind, "metadata": metadata}


TAINTS_ADDED = "gitsched.io/taints-added"
"""On the record of a Cluster: the taints that its document does not have, as JSON, each with who added it."""

_POLICY_PREFIX = "ClusterTaintPolicy/"
_TaintIdentity = tuple[str, str]


class AddedTaint(NamedTuple):
    """A taint that is not in the document; its `since` is when it was added. `by` is a reason for people."""

    taint: Taint
    added_by: str

    @property
    def policy(self) -> str:
        """The name of the ClusterTaintPolicy that added it; "" for the Ready condition."""
        return self.added_by.removeprefix(_POLICY_PREFIX) if self.added_by.startswith(_POLICY_PREFIX) else ""


class TaintChanges(NamedTuple):
    """`added` are taints beside the document's own; `lifted` are own ones that a policy takes away, each with that policy's name."""

    added: tuple[AddedTaint, ...] = ()
    removed: tuple[tuple[Taint, str], ...] = ()


def derive_taints(
    own: Iterable[Taint],
    conditions: Mapping[str, str],
    remembered: Iterable[AddedTaint],
    policies: Iterable[ClusterTaintPolicy],
    assume: bool,
    moment: datetime,
) -> TaintChanges:
    """What the conditions of a cluster make of its taints. `policies` are those that target it, in their order.

    Taints are the same when key and effect are. What people wrote into the document counts before what was added; the Ready condition
    takes away nothing of it, a policy that names it does, for as long as its removeOnConditions hold. A taint that stays keeps its time;
    the added ones are in the order of their keys, so that a second look gives the same.
    """
    own, remembered, policies = tuple(own), tuple(remembered), tuple(policies)
    readiness = derive_readiness_taints(conditions, assume)
    if not (remembered or policies or readiness.add):
        return TaintChanges()
    state: dict[_TaintIdentity, AddedTaint] = {_read_taint_identity(taint): AddedTaint(taint, "") for taint in own}
    for entry in remembered:
        if entry.policy:
            state.setdefault(_read_taint_identity(entry.taint), entry)
    for taint in readiness.remove:
        if (held := state.get(_read_taint_identity(taint))) is not None and held.added_by:
            del state[_read_taint_identity(taint)]
    if readiness.add is not None:
        state.setdefault(_read_taint_identity(readiness.add), AddedTaint(readiness.add, readiness.reason))
    lifted: dict[_TaintIdentity, str] = {}
    for policy in policies:
        if all_match(policy.add_on, conditions):
            for taint in policy.taints:
                state.setdefault(_read_taint_identity(taint), AddedTaint(taint, f"{_POLICY_PREFIX}{policy.name}"))
        if all_match(policy.remove_on, conditions):
            for taint in policy.taints:
                if (gone := state.pop(_read_taint_identity(taint), None)) is not None and not gone.added_by:
                    lifted[_read_taint_identity(taint)] = policy.name
    since = {entry.taint._replace(since=None): entry.taint.since for entry in remembered}
    added = sorted((entry for entry in state.values() if entry.added_by), key=lambda entry: _read_taint_identity(entry.taint))
    return TaintChanges(
        tuple(
            AddedTaint(e.taint._replace(since=since.get(e.taint._replace(since=None)) or e.taint.since or moment), e.added_by)
            for e in added
        ),
        tuple((taint, lifted[_read_taint_identity(taint)]) for taint in own if _read_taint_identity(taint) in lifted),
    )


def apply_taints(own: Iterable[Taint], tainted: TaintChanges) -> tuple[Taint, ...]:
    """The taints that count: the document's own but for the lifted ones, then the added ones."""
    gone = {taint for taint, _ in tainted.removed}
    return (*(taint for taint in own if taint not in gone), *(entry.taint for entry in tainted.added))


def read_added_taints(record: Body | None) -> tuple[AddedTaint, ...]:
    """What the record of a Cluster says was added; anything malformed is left out."""
    try:
        entries: Any = json.loads(as_string_map(get_field(record or {}, "metadata", "annotations")).get(TAINTS_ADDED, "[]"))
    except ValueError:
        return ()
    entries = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return tuple(AddedTaint(parse_taint(entry), str(entry.get("addedBy") or "")) for entry in entries)


def write_added_taints(added: Iterable[AddedTaint]) -> str:
    """The annotation's text: taints as a Cluster has them, and `addedBy`."""
    return json.dumps([_write_added_taint(entry) for entry in added], separators=(",", ":"))


def _write_added_taint(entry: AddedTaint) -> Body:
    taint = entry.taint
    members = {"key": taint.key, "value": taint.value, "effect": taint.effect}
    timed = {"timeAdded": format_time(taint.since)} if taint.since else {}
    return {**{name: text for name, text in members.items() if text}, **timed, "addedBy": entry.added_by}


def _read_taint_identity(taint: Taint) -> _TaintIdentity:
    return taint.key, taint.effect


MAX_NAMED = 3
"""Clusters that one note names at most."""


def derive_cluster_taints(
    clusters: Sequence[tuple[Document, Candidate]],
    previous: Mapping[Key, Body],
    assume: bool,
    moment: datetime,
    policies: ClusterTaintPolicies,
) -> dict[str, TaintChanges]:
    """What conditions and policies change about the taints of each cluster; those that stay as they are left out."""
    targets: list[int] = []
    if any(policy.target is not None for policy in policies.policies):
        plain = Fleet(candidate for _, candidate in clusters)
        targets = [plain.all if policy.target is None else plain.matching(policy.target) for policy in policies.policies]
        index = plain.index
    tainted: dict[str, TaintChanges] = {}
    for document, candidate in clusters:
        bit = 1 << index[candidate.name] if targets else 0
        acting = [policy for i, policy in enumerate(policies.policies) if not targets or targets[i] & bit]
        conditions, remembered = read_conditions(document.body), read_added_taints(previous.get(document.key))
        change = derive_taints(candidate.taints, conditions, remembered, acting, assume, moment)
        if change != TaintChanges():
            tainted[candidate.name] = change
    return tainted


def report_taint_changes(
    changes: Iterable[tuple[Key, Location | None, TaintChanges]], policies: ClusterTaintPolicies
) -> list[Finding]:
    """What a person who reads the documents cannot see in them: one note for all clusters of which it is true, at the first of them."""
    noted: dict[_TaintNote, list[tuple[Key, Location | None]]] = {}
    for key, place, change in changes:
        notes = [_describe_added_taint(entry, policies) for entry in change.added]
        for taint, policy in change.removed:
            text = f"taint {taint} of the document does not count: ClusterTaintPolicy {policy} takes it away"
            notes.append(_TaintNote("info", "cluster-taint-lifted", text))
        for note in notes:
            noted.setdefault(note, []).append((key, place))
    return [_write_finding(note, clusters) for note, clusters in noted.items()]


class _TaintNote(NamedTuple):
    severity: Severity
    code: str
    text: str


def _describe_added_taint(entry: AddedTaint, policies: ClusterTaintPolicies) -> _TaintNote:
    taint, policy = entry.taint._replace(since=None), entry.policy
    if policy and policy not in policies.names:
        gone = f"ClusterTaintPolicy {policy}, which added it, is gone"
        text = f"taint {taint} stays though {gone}: only a policy with removeOnConditions takes it away"
        return _TaintNote("warning", "cluster-taint-orphaned", text)
    why = f"ClusterTaintPolicy {policy} says so" if policy else entry.added_by
    return _TaintNote("info", "cluster-taint-added", f"taint {taint} is added: {why}")


def _write_finding(note: _TaintNote, clusters: list[tuple[Key, Location | None]]) -> Finding:
    (first, place), count = clusters[0], len(clusters)
    named = ", ".join(key.name for key, _ in clusters[:MAX_NAMED])
    more = f" and {count - MAX_NAMED} more" if count > MAX_NAMED else ""
    message = f"Cluster{'s' if count > 1 else ''} {named}{more}: {note.text}"
    return Finding(note.severity, note.code, message, place, first.resource)
