"""Update the findings about objects that kustomizations change for an incremental plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.decide.variants.kustomized_parts import make_part_finding
from gitsched.decide.variants.unplaced_parts import find_unbuilt
from gitsched.model.errors import NeedsCompletePlan

if TYPE_CHECKING:
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.model.finding import Finding


def find_changed_parts(changes: IncrementalChanges) -> tuple[Finding, ...]:
    """Return what the source tree has found, and a finding for each checked object that a policy selects, or that nothing builds. Raise
    NeedsCompletePlan if a workload became one."""
    parts, engines = changes.diff.parts, changes.continued.engines
    if any(key in changes.removed for key in parts.changed):
        raise NeedsCompletePlan("a workload becomes a part of a kustomization")
    selected = [one for one in parts.checked if any(engine.selects(one[0]) for engine in engines)]
    keys = {document.key for document, _ in selected}
    unbuilt = find_unbuilt(
        parts.checked, lambda one: one.key in keys or changes.find_outcome(one.key) is not None, changes.snapshot.config
    )
    return (*parts.found, *(make_part_finding(document, part) for document, part in selected), *unbuilt)
