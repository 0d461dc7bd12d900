"""Workloads that continue others under a new name or in a new namespace, as an annotation says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gitsched.decide.decisions import DecisionSet
from gitsched.decide.removals import RemovedPlacement
from gitsched.model.document import Document, Key, read_annotations
from gitsched.model.finding import Finding, locate_document

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
    for key, outcome in decisions.outcomes.items():
        template = decisions.templates[key]
        name = "" if outcome.previous_targets else read_annotations(template.body).get(RENAMED_FROM, "")
        if not name:
            continue
        old = _find_removed(key, name, removed)
        if old is None:
            findings.append(_make_unknown_finding(template, name))
        else:
            successors.setdefault(old, key)
    return RenamedWorkloads(successors, tuple(findings))


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
