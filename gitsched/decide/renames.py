"""Workloads that continue others under a new name or in a new namespace, as an annotation says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gitsched.decide.decisions import DecisionSet
from gitsched.decide.removals import RemovedPlacement
from gitsched.model.document import Document, Key, read_annotations
from gitsched.model.finding import Finding, locate_document
from gitsched.model.scheduling import Outcome

RENAMED_FROM = "gitsched.io/renamed-from"
"""On a workload: the one that it continues, as [kind/]namespace/name."""

_MAX_NAME_LENGTH = 100
"""Characters of the annotation that a finding shows."""


class RenamedWorkloads(NamedTuple):
    """The new key of each removed workload that another one continues, and findings about annotations that name none."""

    successors: Mapping[Key, Key]
    findings: tuple[Finding, ...]


def find_renamed(decisions: DecisionSet, removed: Mapping[Key, RemovedPlacement]) -> RenamedWorkloads:
    """Return the removed workloads that new ones continue. Only a workload that was not placed before can continue another one."""
    successors: dict[Key, Key] = {}
    findings: list[Finding] = []
    for key, name in _list_renamed(decisions):
        if decisions.outcomes[key].previous_targets:
            continue
        old = _find_removed(key, name, removed)
        if old is None:
            findings.append(_make_unknown_finding(decisions.templates[key], name))
        else:
            successors.setdefault(old, key)
    return RenamedWorkloads(successors, tuple(findings))


def find_successors(decisions: DecisionSet, removed: Mapping[Key, RemovedPlacement]) -> dict[Key, Outcome]:
    """Return the outcome of the workload that continues each removed one.

    A workload that was placed before continues another one as well: an earlier run may have placed it and kept the other one.
    """
    successors: dict[Key, Outcome] = {}
    for key, name in _list_renamed(decisions):
        old = _find_removed(key, name, removed)
        if old is not None:
            successors.setdefault(old, decisions.outcomes[key])
    return successors


def _list_renamed(decisions: DecisionSet) -> Iterator[tuple[Key, str]]:
    """Yield the workloads with the annotation, and its value."""
    for key in decisions.outcomes:
        name = read_annotations(decisions.templates[key].body).get(RENAMED_FROM, "")
        if name:
            yield key, name


def _find_removed(key: Key, name: str, removed: Mapping[Key, RemovedPlacement]) -> Key | None:
    """Return the removed workload that an annotation names: one of the same kind, if it does not say."""
    parts = name.split("/")
    if not 2 <= len(parts) <= 3:
        return None
    kind = parts[0] if len(parts) == 3 else key.kind
    wanted = kind.lower(), *parts[-2:]
    found = [old for old in removed if (old.kind.lower(), old.namespace, old.name) == wanted]
    return min(found, key=lambda old: (old.group != key.group, old), default=None)


def _make_unknown_finding(template: Document, name: str) -> Finding:
    name = name[:_MAX_NAME_LENGTH]
    message = (
        f"{template.key} has the annotation {RENAMED_FROM}: {name}, and this commit removes no such workload that was placed: no copy is "
        "kept; write [kind/]namespace/name of the workload that it replaces, or remove the annotation"
    )
    return Finding("warning", "renamed-from-unknown", message, locate_document(template), template.key.resource)
