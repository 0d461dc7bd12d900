"""Workloads with variants in an incremental plan: those that are decided again have to stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.decide.workload_decision import decide_workload, is_unchanged
from gitsched.model.scheduling import strip_outcome

if TYPE_CHECKING:
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.apis.snapshot import Snapshot
    from gitsched.decide.incremental.plan_state import PlanRows
    from gitsched.model.document import Document


def stays_as_it_is(
    document: Document, engines: tuple[PolicyEngine, ...], snapshot: Snapshot, rows: PlanRows, *, same_documents: bool
) -> bool:
    """Return whether a workload with the same variants as in the last plan has its outcome, its record and its files again.
    `same_documents` says that no document of a policy API changed: only then are edits of manifests known to be the same."""
    outcome, row = decide_workload(document, engines, snapshot), rows.read_workload(document.key)
    if outcome is None or row is None:
        return outcome is None and row is None
    has_edits = any(target.edits or target.body is not None or target.bodies for target in outcome.targets)
    return (
        (same_documents or not has_edits)
        and is_unchanged(outcome, snapshot.previous)
        and strip_outcome(outcome)._replace(time=row.outcome.time) == row.outcome
    )
