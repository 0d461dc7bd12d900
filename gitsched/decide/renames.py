"""Workloads that continue others under a new name or in a new namespace, as an annotation says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from gitsched.apis.gitsched.tenancy import Tenancy
from gitsched.decide.decisions import DecisionSet
from gitsched.decide.removals import RemovedPlacement
from gitsched.model.changes import RetainedCopy
from gitsched.model.document import Document, Key, read_annotations
from gitsched.model.finding import Finding, locate_document
from gitsched.model.scheduling import Outcome

RENAMED_FROM = "gitsched.io/renamed-from"
"""On a workload: the one that it continues, as [kind/]namespace/name."""

_MAX_NAME_LENGTH = 100
"""Characters of the annotation that a finding shows."""
_Identity = tuple[str, str, str]
"""The kind in lower case, namespace and name of a workload."""


class RenamedWorkloads(NamedTuple):
    """The new key of each removed workload that another one continues, and findings about annotations without an effect."""

    successors: Mapping[Key, Key]
    findings: tuple[Finding, ...]


NOTHING_RENAMED = RenamedWorkloads({}, ())


def find_renamed(
    decisions: DecisionSet, removed: Mapping[Key, RemovedPlacement], followers: Mapping[Key, Iterable[RetainedCopy]]
) -> RenamedWorkloads:
    """Return the removed workloads that new ones continue. Only a workload that was not placed before can continue another one.

    `followers` are the copies that an earlier run retained, by the workload that they follow.
    """
    successors: dict[Key, Key] = {}
    findings: list[Finding] = []
    former = _FormerWorkloads(removed)
    for key, name in sorted(_list_renamed(decisions)):
        if decisions.outcomes[key].previous_targets or former.names_any(key, name, followers.get(key, ())):
            continue  # the annotation had its effect in an earlier run
        template, old = decisions.templates[key], former.find(key, name)
        if old is None:
            findings.append(_make_unknown_finding(template, name))
        elif successors.setdefault(old, key) != key:
            findings.append(_make_claimed_finding(template, old, successors[old]))
    if decisions.tenancy is not None:
        findings += _list_foreign_names(decisions, decisions.tenancy)
    return RenamedWorkloads(successors, tuple(findings))


def _list_foreign_names(decisions: DecisionSet, tenancy: Tenancy) -> Iterator[Finding]:
    """Yield an error for each workload of a tenant whose annotation names one outside of the namespaces of the tenant."""
    for key in decisions.outcomes:
        template = decisions.templates[key]
        name = read_annotations(template.body).get(RENAMED_FROM, "")
        if name and not _may_continue(decisions, key, name):
            tenant = tenancy.list_rules(tenancy.find_owner(key))[0]
            message = (
                f"{tenant.title} does not allow {key} to continue {name[:_MAX_NAME_LENGTH]}: the annotation {RENAMED_FROM} has no effect; "
                "name a workload in a namespace of the tenant, or remove it"
            )
            yield Finding("error", "tenant-namespace", message, locate_document(template), key.resource)


def find_successors(decisions: DecisionSet, removed: Mapping[Key, RemovedPlacement]) -> dict[Key, Outcome]:
    """Return the outcome of the workload that continues each removed one.

    A workload that was placed before continues another one as well: an earlier run may have placed it and kept the other one.
    """
    successors: dict[Key, Outcome] = {}
    former = _FormerWorkloads(removed)
    for key, name in sorted(_list_renamed(decisions)):
        old = former.find(key, name)
        if old is not None:
            successors.setdefault(old, decisions.outcomes[key])
    return successors


def _list_renamed(decisions: DecisionSet) -> Iterator[tuple[Key, str]]:
    """Yield the workloads with the annotation, and its value."""
    for key in decisions.outcomes:
        name = read_annotations(decisions.templates[key].body).get(RENAMED_FROM, "")
        if name and _may_continue(decisions, key, name):
            yield key, name


def _may_continue(decisions: DecisionSet, key: Key, name: str) -> bool:
    """Return whether a workload may continue the one that its annotation names: that of a tenant only one in a namespace of the tenant."""
    tenancy = decisions.tenancy
    if tenancy is None:
        return True
    identity, rules = _parse_name(key, name), tenancy.list_rules(tenancy.find_owner(key))
    return identity is not None and all(tenant.allows_namespace(identity[1]) for tenant in rules)


class _FormerWorkloads:
    """Finds removed workloads by the value of the annotation."""

    def __init__(self, removed: Iterable[Key]) -> None:
        self._by_name: dict[_Identity, list[Key]] = {}
        for key in removed:
            self._by_name.setdefault(_identify(key), []).append(key)

    def find(self, key: Key, name: str) -> Key | None:
        """Return the removed workload that the annotation of a workload names, preferably one of the same API group."""
        identity = _parse_name(key, name)
        return min(self._by_name.get(identity, ()) if identity else (), key=lambda old: (old.group != key.group, old), default=None)

    def names_any(self, key: Key, name: str, copies: Iterable[RetainedCopy]) -> bool:
        """Return whether the annotation names the workload of one of the copies."""
        identity = _parse_name(key, name)
        return any(_identify(copy.workload) == identity for copy in copies)


def _identify(key: Key) -> _Identity:
    return key.kind.lower(), key.namespace, key.name


def _parse_name(key: Key, name: str) -> _Identity | None:
    """Return the workload that an annotation names: one of the same kind, if it does not say. None if it names none."""
    parts = name.split("/")
    if not 2 <= len(parts) <= 3:
        return None
    return (parts[0] if len(parts) == 3 else key.kind).lower(), parts[-2], parts[-1]


def _make_unknown_finding(template: Document, name: str) -> Finding:
    name = name[:_MAX_NAME_LENGTH]
    message = (
        f"{template.key} has the annotation {RENAMED_FROM}: {name}, and this commit removes no such workload that was placed: no copy is "
        "kept; write [kind/]namespace/name of the workload that it replaces, or remove the annotation"
    )
    return Finding("warning", "renamed-from-unknown", message, locate_document(template), template.key.resource)


def _make_claimed_finding(template: Document, old: Key, other: Key) -> Finding:
    message = (
        f"{template.key} has the annotation {RENAMED_FROM} of {old}, which {other} continues already: the copy of {old} goes when that of "
        f"{other} had its time; remove the annotation from one of them"
    )
    return Finding("warning", "renamed-from-claimed", message, locate_document(template), template.key.resource)
