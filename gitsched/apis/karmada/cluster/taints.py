"""Taints that the Ready condition and ClusterTaintPolicies add to Clusters or remove from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from gitsched.apis.added_taints import AddedTaint, read_added_taints
from gitsched.apis.karmada.policy.propagation_policy import parse_affinity
from gitsched.apis.karmada.settings import KarmadaConfig
from gitsched.model.document import Body, Document, Key, get_field
from gitsched.model.finding import FAILOVER_OFF, Finding, Location, Severity, format_names, locate_document
from gitsched.model.scheduling import Affinity
from gitsched.model.taints import NO_EXECUTE, NO_SCHEDULE, Taint, Toleration, parse_taint
from gitsched.model.time import format_time, parse_time
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.fleet import Candidate, Fleet

READY_CONDITION = "Ready"
NOT_READY_TAINT = Taint("cluster.karmada.io/not-ready", "", NO_SCHEDULE)
UNREACHABLE_TAINT = Taint("cluster.karmada.io/unreachable", "", NO_SCHEDULE)
NOT_READY_TAINTS = (NOT_READY_TAINT, NOT_READY_TAINT._replace(effect=NO_EXECUTE))
UNREACHABLE_TAINTS = (UNREACHABLE_TAINT, UNREACHABLE_TAINT._replace(effect=NO_EXECUTE))


class MatchCondition(NamedTuple):
    """One entry of addOnConditions or removeOnConditions; an operator that is neither In nor NotIn never matches."""

    condition_type: str
    operator: str
    status_values: frozenset[str]

    def matches(self, conditions: Mapping[str, str]) -> bool:
        """Return whether the conditions of a cluster match. A condition that the cluster does not have never matches, not even NotIn."""
        status = conditions.get(self.condition_type)
        if status is None:
            return False
        return (
            status in self.status_values if self.operator == "In" else self.operator == "NotIn" and status not in self.status_values
        )


class ReadinessTaints(NamedTuple):
    """The taints that the Ready condition adds to its cluster, those that it removes, and the reason."""

    add: tuple[Taint, ...]
    remove: tuple[Taint, ...]
    reason: str


_READY = ReadinessTaints((), (NOT_READY_TAINT, UNREACHABLE_TAINT), "its condition Ready is True")


def read_conditions(cluster: Body) -> dict[str, str]:
    """Return the status ("True", "False" or "Unknown") of each condition of a Cluster, by type. A boolean, as YAML without quotes has it,
    is read as its text."""
    entries = get_field(cluster, "status", "conditions")
    conditions: dict[str, str] = {}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            name, status = entry.get("type"), entry.get("status")
            if isinstance(name, str) and isinstance(status, (str, bool)):
                conditions.setdefault(name, str(status))
    return conditions


def derive_readiness_taints(conditions: Mapping[str, str], assume: bool, evict: bool = False) -> ReadinessTaints:
    """Return the taints that follow from the Ready condition: NoSchedule and, with `evict`, NoExecute.

    For Karmada a cluster without the condition is not ready; with `assume` nothing is added, because its document is written manually.
    Nothing evicts from such a cluster. Karmada added the NoExecute taints itself until v1.13.
    """
    count = 2 if evict else 1
    match conditions.get(READY_CONDITION):
        case "False":
            return ReadinessTaints(NOT_READY_TAINTS[:count], (UNREACHABLE_TAINT,), "its condition Ready is False")
        case "Unknown":
            return ReadinessTaints(UNREACHABLE_TAINTS[:count], (NOT_READY_TAINT,), "its condition Ready is Unknown")
        case "True":
            return _READY
        case None if not assume:
            return ReadinessTaints((NOT_READY_TAINT,), (), "it has no condition Ready")
    return ReadinessTaints((), (), "")


def find_unready_reason(conditions: Mapping[str, str]) -> str:
    """Return why a Cluster with these conditions is not ready; "" when it is ready or the condition is missing."""
    return (
        derive_readiness_taints(conditions, assume=True).reason if conditions.get(READY_CONDITION) in ("False", "Unknown") else ""
    )


def parse_match_conditions(entries: Any) -> tuple[MatchCondition, ...]:
    """Parse addOnConditions or removeOnConditions."""
    found = (entry for entry in entries if isinstance(entry, dict)) if isinstance(entries, list) else ()
    return tuple(
        MatchCondition(str(e.get("conditionType")), str(e.get("operator")), frozenset(map(str, e.get("statusValues") or ())))
        for e in found
    )


def all_match(matches: tuple[MatchCondition, ...], conditions: Mapping[str, str]) -> bool:
    """Return whether there are any match conditions and all of them match."""
    return bool(matches) and all(match.matches(conditions) for match in matches)


class ClusterTaintPolicy(NamedTuple):
    """A ClusterTaintPolicy; `target` None means every cluster. Policies apply in the order of `created`, then of their names."""

    created: datetime
    name: str
    target: Affinity | None
    add_on: tuple[MatchCondition, ...]
    remove_on: tuple[MatchCondition, ...]
    taints: tuple[Taint, ...]


class ClusterTaintPolicies(NamedTuple):
    """All ClusterTaintPolicies in the order in which they apply.

    `names` includes quarantined ones. `records` store when policies without a creationTimestamp were first seen.
    """

    policies: tuple[ClusterTaintPolicy, ...] = ()
    names: frozenset[str] = frozenset()
    records: tuple[tuple[Key, Body], ...] = ()


NO_TAINT_POLICIES = ClusterTaintPolicies()


def read_taint_policies(
    documents: Iterable[Document], quarantined: Iterable[Key], previous: Mapping[Key, Body], time: datetime
) -> ClusterTaintPolicies:
    """Read every ClusterTaintPolicy. A quarantined one has no effect and keeps its record."""
    quarantined = sorted(quarantined)
    policies: list[ClusterTaintPolicy] = []
    records: list[tuple[Key, Body]] = []
    for document in documents:
        written = parse_time(get_field(document.body, "metadata", "creationTimestamp"))
        created = written or parse_time(get_field(previous.get(document.key) or {}, "metadata", "creationTimestamp")) or time
        if written is None:
            records.append((document.key, _write_taint_policy_record(document, created)))
        policies.append(_parse_taint_policy(document, created))
    kept = [(key, previous[key]) for key in quarantined if key in previous]
    names = {policy.name for policy in policies} | {key.name for key in quarantined}
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


_POLICY_PREFIX = "ClusterTaintPolicy/"
_TaintIdentity = tuple[str, str]


class TaintChanges(NamedTuple):
    """Taints `added` to those of the document, and taints of the document `removed` by a policy, each with the policy's name."""

    added: tuple[AddedTaint, ...] = ()
    removed: tuple[tuple[Taint, str], ...] = ()


NO_TAINT_CHANGES = TaintChanges()


def _apply_policies(
    effective: dict[_TaintIdentity, AddedTaint], policies: Iterable[ClusterTaintPolicy], conditions: Mapping[str, str]
) -> dict[_TaintIdentity, str]:
    """Add and remove what policies do under these conditions, and return the policy of each taint of the document that one removes."""
    removed: dict[_TaintIdentity, str] = {}
    for policy in policies:
        if all_match(policy.add_on, conditions):
            for taint in policy.taints:
                effective.setdefault(_taint_identity(taint), AddedTaint(taint, f"{_POLICY_PREFIX}{policy.name}"))
        if all_match(policy.remove_on, conditions):
            for taint in policy.taints:
                if (popped := effective.pop(_taint_identity(taint), None)) is not None and not popped.added_by:
                    removed[_taint_identity(taint)] = policy.name
    return removed


def derive_taints(
    own: Iterable[Taint],
    conditions: Mapping[str, str],
    previously_added: Iterable[AddedTaint],
    policies: Iterable[ClusterTaintPolicy],
    assume: bool,
    time: datetime,
    evict: bool = False,
) -> TaintChanges:
    """Return how the conditions of a cluster change its taints. `policies` are those that target it, in their order. `assume` and `evict`
    are those of `derive_readiness_taints`.

    Taints are equal when key and effect are. A taint of the document takes precedence over an added one. The Ready condition does not
    remove taints of the document; a policy does while its removeOnConditions match. An added taint keeps its time. Added taints are
    sorted by key, so repeated runs give the same result.
    """
    own, previously_added, policies = tuple(own), tuple(previously_added), tuple(policies)
    readiness = derive_readiness_taints(conditions, assume, evict)
    if not (previously_added or policies or readiness.add):
        return NO_TAINT_CHANGES
    effective: dict[_TaintIdentity, AddedTaint] = {_taint_identity(taint): AddedTaint(taint, "") for taint in own}
    for entry in previously_added:
        if _find_policy(entry):
            effective.setdefault(_taint_identity(entry.taint), entry)
    for taint in readiness.remove:
        known = effective.get(_taint_identity(taint))
        if known is not None and known.added_by:
            del effective[_taint_identity(taint)]
    for taint in readiness.add:
        effective.setdefault(_taint_identity(taint), AddedTaint(taint, readiness.reason))
    removed = _apply_policies(effective, policies, conditions)
    since = {entry.taint._replace(since=None): entry.taint.since for entry in previously_added}
    added = sorted((entry for entry in effective.values() if entry.added_by), key=lambda entry: _taint_identity(entry.taint))
    return TaintChanges(
        tuple(
            AddedTaint(e.taint._replace(since=since.get(e.taint._replace(since=None)) or e.taint.since or time), e.added_by)
            for e in added
        ),
        tuple((taint, removed[_taint_identity(taint)]) for taint in own if _taint_identity(taint) in removed),
    )


def apply_taints(own: Iterable[Taint], changes: TaintChanges) -> tuple[Taint, ...]:
    """Return the effective taints: those of the document without the removed ones, then the added ones."""
    removed = {taint for taint, _ in changes.removed}
    return (*(taint for taint in own if taint not in removed), *(entry.taint for entry in changes.added))


def _find_policy(entry: AddedTaint) -> str:
    """Return the name of the ClusterTaintPolicy that added the taint; "" for the Ready condition."""
    return entry.added_by.removeprefix(_POLICY_PREFIX) if entry.added_by.startswith(_POLICY_PREFIX) else ""


def _taint_identity(taint: Taint) -> _TaintIdentity:
    return taint.key, taint.effect


def derive_cluster_taints(
    clusters: Sequence[tuple[Key, Candidate, Mapping[str, str]]],
    previous: Mapping[Key, Body],
    assume: bool,
    time: datetime,
    policies: ClusterTaintPolicies,
    evict: bool = False,
) -> dict[str, TaintChanges]:
    """Return the taint changes of each cluster that has any. The clusters are given with their conditions."""
    targets: list[int] = []
    if any(policy.target is not None for policy in policies.policies):
        plain = Fleet(candidate for _, candidate, _ in clusters)
        targets = [plain.all if policy.target is None else plain.matching(policy.target) for policy in policies.policies]
        index = plain.index
    changes: dict[str, TaintChanges] = {}
    for key, candidate, conditions in clusters:
        applicable: Sequence[ClusterTaintPolicy] = policies.policies
        if targets:
            bit = 1 << index[candidate.name]
            applicable = [policy for i, policy in enumerate(policies.policies) if targets[i] & bit]
        record = previous.get(key)
        previously_added = read_added_taints(record) if record is not None else ()
        change = derive_taints(candidate.taints, conditions, previously_added, applicable, assume, time, evict)
        if change != NO_TAINT_CHANGES:
            changes[candidate.name] = change
    return changes


def report_taint_changes(
    changes: Iterable[tuple[Key, Location | None, TaintChanges]], policies: ClusterTaintPolicies
) -> list[Finding]:
    """Report taint changes that the documents do not show: one finding for all clusters with the same change, at the first of them."""
    noted: dict[_TaintNote, list[tuple[Key, Location | None]]] = {}
    for key, location, change in changes:
        notes = [_describe_added_taint(entry, policies) for entry in change.added]
        for taint, policy in change.removed:
            text = f"taint {taint} of the document is ignored: ClusterTaintPolicy {policy} removes it"
            notes.append(_TaintNote("info", "cluster-taint-lifted", text))
        for note in notes:
            noted.setdefault(note, []).append((key, location))
    return [_write_finding(note, clusters) for note, clusters in noted.items()]


class _TaintNote(NamedTuple):
    severity: Severity
    code: str
    text: str


def _describe_added_taint(entry: AddedTaint, policies: ClusterTaintPolicies) -> _TaintNote:
    taint, policy = entry.taint._replace(since=None), _find_policy(entry)
    if policy and policy not in policies.names:
        text = f"taint {taint} stays: ClusterTaintPolicy {policy}, which added it, was deleted; a policy with removeOnConditions removes it"
        return _TaintNote("warning", "cluster-taint-orphaned", text)
    if policy:
        return _TaintNote("info", "cluster-taint-added", f"ClusterTaintPolicy {policy} adds taint {taint}")
    return _TaintNote("info", "cluster-taint-added", f"taint {taint} is added: {entry.added_by}")


def _write_finding(note: _TaintNote, clusters: list[tuple[Key, Location | None]]) -> Finding:
    (first, location), count = clusters[0], len(clusters)
    named = format_names([key.name for key, _ in clusters])
    message = f"Cluster{'s' if count > 1 else ''} {named}: {note.text}"
    return Finding(note.severity, note.code, message, location, first.resource)


_ENABLE_FAILOVER = "set spec.karmada.failover: cluster"
_ALTERNATIVE = (
    ", or set spec.karmada.allowNoExecuteTaintPolicy: true and commit a ClusterTaintPolicy that adds a NoExecute taint. This evicts "
    "workloads that do not tolerate the taint; one that fits no other cluster becomes unplaced"
)
_ENABLE_EVICTION = "remove spec.karmada.taintEviction: false"


class UnreadyCluster(NamedTuple):
    """A Cluster that is not ready and whose workloads stay: the finding about it, and the taints with which failover evicts them."""

    finding: Finding
    taints: tuple[Taint, ...]

    def evicts(self, tolerations: Iterable[Toleration]) -> bool:
        """Return whether failover would evict a workload with these tolerations, at once or later."""
        unlimited = [toleration for toleration in tolerations if toleration.seconds is None]
        return any(not any(toleration.tolerates(taint) for toleration in unlimited) for taint in self.taints)


def find_unready_clusters(documents: Iterable[Document], fleet: Fleet, settings: KarmadaConfig) -> dict[str, UnreadyCluster]:
    """Return each Cluster that is not ready and whose workloads stay, by name.

    The Ready condition alone adds a NoSchedule taint, which moves nothing; only NoExecute evicts.
    """
    found: dict[str, UnreadyCluster] = {}
    for document in documents:
        conditions = read_conditions(document.body)
        reason = find_unready_reason(conditions)
        candidate = fleet.candidates[fleet.index[document.key.name]]
        evicts = any(taint.effect == NO_EXECUTE for taint in candidate.taints)
        if not reason or candidate.deleting or (evicts and settings.taint_eviction):
            continue
        why = "karmada.taintEviction is false, so NoExecute taints evict nothing" if evicts else "no NoExecute taint evicts them"
        fix = _ENABLE_FAILOVER if settings.taint_eviction else f"{_ENABLE_EVICTION}, and {_ENABLE_FAILOVER}"
        message = f"Cluster {document.key.name} is not ready but its workloads stay there: {reason}, and {why}; "
        message += _ENABLE_EVICTION if evicts else f"{fix}{_ALTERNATIVE}"
        finding = Finding("warning", FAILOVER_OFF, message, locate_document(document), document.key.resource)
        readiness = derive_readiness_taints(conditions, assume=True, evict=True)
        taints = candidate.taints if evicts else readiness.add
        found[document.key.name] = UnreadyCluster(finding, tuple(taint for taint in taints if taint.effect == NO_EXECUTE))
    return found
