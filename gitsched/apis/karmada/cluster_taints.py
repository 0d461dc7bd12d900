"""Every cluster with the taints that conditions and policies give it or take from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from gitsched.apis.karmada.conditions import read_conditions
from gitsched.apis.karmada.taint_policy import TaintPolicies
from gitsched.apis.karmada.tainting import Added, Tainted, derive_taints, recall_taints
from gitsched.model.document import Body, Document, Key
from gitsched.model.finding import Finding, Location, Severity
from gitsched.schedule.fleet import Candidate, Fleet

NAMED = 3
"""Clusters that one note names at most."""


def taint_clusters(
    clusters: Sequence[tuple[Document, Candidate]],
    previous: Mapping[Key, Body],
    assume: bool,
    moment: datetime,
    policies: TaintPolicies,
) -> dict[str, Tainted]:
    """What conditions and policies change about the taints of each cluster; those that stay as they are left out."""
    targets: list[int] = []
    if any(policy.target is not None for policy in policies.policies):
        plain = Fleet(candidate for _, candidate in clusters)
        targets = [plain.all if policy.target is None else plain.matching(policy.target) for policy in policies.policies]
        index = plain.index
    tainted: dict[str, Tainted] = {}
    for document, candidate in clusters:
        bit = 1 << index[candidate.name] if targets else 0
        acting = [policy for i, policy in enumerate(policies.policies) if not targets or targets[i] & bit]
        conditions, remembered = read_conditions(document.body), recall_taints(previous.get(document.key))
        change = derive_taints(candidate.taints, conditions, remembered, acting, assume, moment)
        if change != Tainted():
            tainted[candidate.name] = change
    return tainted


def tell_taints(changes: Iterable[tuple[Key, Location | None, Tainted]], policies: TaintPolicies) -> list[Finding]:
    """What a person who reads the documents cannot see in them: one note for all clusters of which it is true, at the first of them."""
    noted: dict[_Note, list[tuple[Key, Location | None]]] = {}
    for key, place, change in changes:
        notes = [_tell_added(entry, policies) for entry in change.added]
        for taint, policy in change.lifted:
            text = f"taint {taint} of the document does not count: ClusterTaintPolicy {policy} takes it away"
            notes.append(_Note("info", "cluster-taint-lifted", text))
        for note in notes:
            noted.setdefault(note, []).append((key, place))
    return [_write(note, clusters) for note, clusters in noted.items()]


class _Note(NamedTuple):
    severity: Severity
    code: str
    text: str


def _tell_added(entry: Added, policies: TaintPolicies) -> _Note:
    taint, policy = entry.taint._replace(since=None), entry.policy
    if policy and policy not in policies.names:
        gone = f"ClusterTaintPolicy {policy}, which added it, is gone"
        text = f"taint {taint} stays though {gone}: only a policy with removeOnConditions takes it away"
        return _Note("warning", "cluster-taint-orphaned", text)
    why = f"ClusterTaintPolicy {policy} says so" if policy else entry.by
    return _Note("info", "cluster-taint-added", f"taint {taint} is added: {why}")


def _write(note: _Note, clusters: list[tuple[Key, Location | None]]) -> Finding:
    (first, place), count = clusters[0], len(clusters)
    named = ", ".join(key.name for key, _ in clusters[:NAMED])
    more = f" and {count - NAMED} more" if count > NAMED else ""
    message = f"Cluster{'s' if count > 1 else ''} {named}{more}: {note.text}"
    return Finding(note.severity, note.code, message, place, first.resource)
