"""Workloads that a policy API decides itself, such as Applications, in an incremental plan: which of them differ from the last plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.decide.decisions import list_own_workloads
from gitsched.decide.workload_decision import is_unchanged
from gitsched.model.scheduling import strip_outcome
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.apis.snapshot import Snapshot
    from gitsched.decide.incremental.changed_documents import SourceDiff
    from gitsched.decide.incremental.plan_state import PlanRows, Totals
    from gitsched.model.document import Document, Key
    from gitsched.model.scheduling import Outcome


class OwnWorkload(NamedTuple):
    """The document of such a workload, and its outcome."""

    document: Document
    outcome: Outcome


def read_own_workloads(engines: Iterable[PolicyEngine], snapshot: Snapshot) -> dict[Key, OwnWorkload] | None:
    """Return the workloads that the engines decide themselves; None if several decide the same one."""
    entries = [OwnWorkload(*entry) for entry in list_own_workloads(engines, snapshot)]
    found = {entry.document.key: entry for entry in entries}
    return found if len(found) == len(entries) else None


def find_changed(
    own: Mapping[Key, OwnWorkload], totals: Totals, rows: PlanRows, diff: SourceDiff, snapshot: Snapshot
) -> frozenset[Key]:
    """Return those that came, went, or have another document, outcome or record than in the last plan."""
    changed = {key for key in totals.engines.own if key not in own}
    for key, (_, outcome) in own.items():
        is_known = key in totals.engines.own and key not in diff.api_documents and key not in diff.templates
        if not is_known or _differs(outcome, rows, key) or not is_unchanged(outcome, snapshot.previous):
            changed.add(key)
    return frozenset(changed)


def _differs(outcome: Outcome, rows: PlanRows, key: Key) -> bool:
    """Return whether an outcome differs from that of the last plan, besides the time at which it was decided."""
    row = rows.read_workload(key)
    return row is None or strip_outcome(outcome)._replace(time=row.outcome.time) != row.outcome
