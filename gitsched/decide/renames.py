"""Workloads that continue others under a new name or in a new namespace, as an annotation says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from gitsched.apis.gitsched.tenancy import Tenancy
from gitsched.decide.decisions import DecisionSet
from gitsched.model.changes import RENAMED_FROM, Move, RetainedCopy
from gitsched.model.document import Document, Key, read_annotations
from gitsched.model.finding import Finding, locate_document
from gitsched.model.scheduling import Outcome
from gitsched.named_tuples import NamedTuple

_MAX_NAME_LENGTH = 100
"""Characters of the annotation that a finding shows."""
_Identity = tuple[str, str, str]
"""The kind in lower case, namespace and name of a workload."""


class RenamedWorkloads(NamedTuple):
    """The new key of each removed workload that another one continues, and findings about annotations without an effect."""

    successors: Mapping[Key, Key]
    findings: tuple[Finding, ...]


class RenameRequests(NamedTuple):
    """The placed workloads with the annotation, and what it says. `find_outcome` returns the outcome of a workload, `templates` has its
    document, and `tenancy` says whose it is."""

    names: Mapping[Key, str]
    find_outcome: Callable[[Key], Outcome | None]
    templates: Mapping[Key, Document]
    tenancy: Tenancy | None = None

    def list_effective(self) -> Iterator[tuple[Key, str, Outcome]]:
        """Yield the workloads that may continue the one that their annotation names, by key."""
        for key, name in sorted(self.names.items()):
            outcome = self.find_outcome(key)
            if outcome is not None and self.may_continue(key, name):
                yield key, name, outcome

    def may_continue(self, key: Key, name: str) -> bool:
        """Return whether a workload may continue the one that its annotation names: that of a tenant only one in a namespace of the
        tenant."""
        if self.tenancy is None:
            return True
        identity, rules = _parse_name(key, name), self.tenancy.list_rules(self.tenancy.find_owner(key))
        return identity is not None and all(tenant.allows_namespace(identity[1]) for tenant in rules)


def list_rename_requests(decisions: DecisionSet) -> RenameRequests:
    """Return what the workloads of a complete plan ask for."""
    annotated = ((key, read_annotations(decisions.templates[key].body).get(RENAMED_FROM, "")) for key in decisions.outcomes)
    names = {key: name for key, name in annotated if name}
    return RenameRequests(names, decisions.outcomes.get, decisions.templates, decisions.tenancy)


def find_renamed(
    requests: RenameRequests, removed: Iterable[Key], followers: Mapping[Key, Iterable[RetainedCopy]]
) -> RenamedWorkloads:
    """Return the removed workloads that new ones continue. Only a workload that was not placed before can continue another one.

    `followers` are the copies that an earlier run retained, by the workload that they follow.
    """
    successors: dict[Key, Key] = {}
    findings: list[Finding] = []
    former = _FormerWorkloads(removed)
    for key, name, outcome in requests.list_effective():
        if outcome.previous_targets or former.names_any(key, name, followers.get(key, ())):
            continue  # the annotation had its effect in an earlier run
        template, old = requests.templates[key], former.find(key, name)
        if old is None:
            findings.append(_make_unknown_finding(template, name))
        elif successors.setdefault(old, key) != key:
            findings.append(_make_claimed_finding(template, old, successors[old]))
    if requests.tenancy is not None:
        findings += _list_foreign_names(requests, requests.tenancy)
    return RenamedWorkloads(successors, tuple(findings))


def _list_foreign_names(requests: RenameRequests, tenancy: Tenancy) -> Iterator[Finding]:
    """Yield an error for each workload of a tenant whose annotation names one outside of the namespaces of the tenant."""
    for key, name in requests.names.items():
        if not requests.may_continue(key, name):
            tenant = tenancy.list_rules(tenancy.find_owner(key))[0]
            message = (
                f"{tenant.title} does not allow {key} to continue {name[:_MAX_NAME_LENGTH]}: the annotation {RENAMED_FROM} has no effect; "
                "name a workload in a namespace of the tenant, or remove it"
            )
            yield Finding("error", "tenant-namespace", message, locate_document(requests.templates[key]), key.resource)


def find_successors(requests: RenameRequests, removed: Iterable[Key]) -> dict[Key, Outcome]:
    """Return the outcome of the workload that continues each removed one.

    A workload that was placed before continues another one as well: an earlier run may have placed it and kept the other one.
    """
    successors: dict[Key, Outcome] = {}
    former = _FormerWorkloads(removed)
    for key, name, outcome in requests.list_effective():
        old = former.find(key, name)
        if old is not None:
            successors.setdefault(old, outcome)
    return successors


def continue_moves(moves: Iterable[Move], successors: Mapping[Key, Outcome]) -> tuple[Move, ...]:
    """Return the moves, those of removed workloads with the clusters of the ones that continue them."""
    return tuple(
        move._replace(after=successors[move.key].replicas_by_cluster) if move.key in successors else move for move in moves
    )


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
