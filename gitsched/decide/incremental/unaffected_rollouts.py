"""Whether an incremental plan leaves Rollouts as they are: none of them is in progress, and no change starts one.

The state of a plan is kept only while no cluster waits for a wave and no report is awaited. Then a rollout can begin only with a workload
that was decided again and gets other files.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.rollout import RolloutSpec, parse_rollout
from gitsched.decide.guard.held_files import FileComparison
from gitsched.decide.incremental.plan_state import NO_OUTPUT
from gitsched.decide.registry import policy_apis
from gitsched.decide.rollouts.waves import UNGATED
from gitsched.model.cluster_report import CLUSTER_REPORT
from gitsched.model.document import Body, Document, Key
from gitsched.model.rollouts import ROLLOUT_KIND

if TYPE_CHECKING:
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.decide.rendered_tree import BlobLookup
    from gitsched.decide.workload_files import WorkloadFiles
    from gitsched.model.rollouts import RolloutInput
    from gitsched.model.scheduling import Outcome


def leaves_rollouts(changes: IncrementalChanges, given: RolloutInput, find_blob: BlobLookup) -> bool:
    """Return whether rollouts select the same workloads as in the last plan, and these have the files of the previous output."""
    totals, diff = changes.totals, changes.diff
    if given.records or totals.owners or any(key[:2] == ROLLOUT_KIND for key in totals.unused):
        return False
    facts = totals.config.source.facts
    if not (facts.branch or facts.cluster_branches) and any(key[:2] == CLUSTER_REPORT for key in diff.api_documents):
        return False  # whether clusters report at all is in a finding
    specs = [parse_rollout(document) for document in changes.snapshot.documents.get(ROLLOUT_KIND, ())]
    specs = [spec for spec in specs if spec.strategy.type != UNGATED]
    documents = (document for pair in diff.api_documents.values() for document in pair if document is not None)
    if any(spec.selects(document) for document in documents for spec in specs):
        return False
    selection = _Selection(changes, specs)
    comparison = FileComparison(NO_OUTPUT._replace(records=changes.snapshot.previous, find_blob=find_blob), given)
    for key in (*changes.outcomes, *changes.removed):
        before, after = selection.find_before(key), selection.find_after(key)
        if before is None or before != after:
            return False
        if after and not _keeps_files(changes.workloads[key], comparison):
            return False
    return True


def _keeps_files(files: WorkloadFiles, comparison: FileComparison) -> bool:
    return all(comparison.find_change(files, target.cluster, ()) is None for target in files.outcome.targets)


class _Selection:
    """Which rollouts select a workload, by name: directly, by its policy, or because a workload that they select brings it along."""

    def __init__(self, changes: IncrementalChanges, specs: list[RolloutSpec]) -> None:
        self._changes, self._specs = changes, specs
        wanted = {selector.kind for spec in specs for selector in spec.selectors or ()}
        documents = changes.snapshot.documents
        policies = [document for kind in documents if kind[1] in wanted for document in documents[kind]]
        self._policies = [
            frozenset(name for one in policies if spec.selects(one) for name in (one.key.title, str(one.key))) for spec in specs
        ]
        self._owners: dict[tuple[str, str], Key] = {}
        for outcome in changes.outcomes.values():
            self._owners |= {(record.namespace, record.name): outcome.key for record, _ in outcome.records}

    def find_before(self, key: Key) -> frozenset[str] | None:
        """Return the rollouts that selected a workload in the last plan; None if they are not known."""
        row, previous = self._changes.rows.read_workload(key), self._changes.snapshot.previous
        if row is None:
            return frozenset()
        bodies = (body for record in row.record_keys if (body := previous.get(record)) is not None)
        changed = self._changes.diff.templates.get(key)
        return self._find(row.outcome, changed[0] if changed is not None else self._find_template(key), bodies, is_before=True)

    def find_after(self, key: Key) -> frozenset[str] | None:
        """Return the rollouts that select a workload now; None if they are not known."""
        outcome = self._changes.outcomes.get(key)
        if outcome is None:
            return frozenset()
        return self._find(outcome, self._changes.documents[key], (body for _, body in outcome.records), is_before=False)

    def _find_template(self, key: Key) -> Document | None:
        return self._changes.snapshot.templates.get(key)

    def _find(
        self, outcome: Outcome, template: Document | None, bodies: Iterable[Body], *, is_before: bool
    ) -> frozenset[str] | None:
        found = self._select(outcome, template)
        read = policy_apis[outcome.api].read_removed_workload
        if found or read is None:
            return found
        required = {owner for body in bodies if (workload := read(body)) is not None for owner in workload.required_by}
        if not required:
            return found
        self._add_referrers(outcome.key)
        for owner in required:
            key = self._owners.get(owner)
            selected = None if key is None else self._find_owner(key, is_before=is_before)
            if selected is None:
                return None
            found |= selected
        return found

    def _find_owner(self, key: Key, *, is_before: bool) -> frozenset[str] | None:
        """Return the rollouts that select a workload which brings others along; None if it has no template or placement."""
        changes = self._changes
        row, changed = changes.rows.read_workload(key), changes.diff.templates.get(key)
        if is_before:
            outcome, template = row.outcome if row is not None else None, changed[0] if changed else self._find_template(key)
        else:
            outcome, template = changes.find_outcome(key), changes.documents.get(key) or self._find_template(key)
        return None if outcome is None or template is None else self._select(outcome, template)

    def _select(self, outcome: Outcome, template: Document | None) -> frozenset[str]:
        used = outcome.policy.split(", ")
        return frozenset(
            spec.name
            for spec, names in zip(self._specs, self._policies, strict=True)
            if spec.selectors is None or (template is not None and spec.selects(template)) or not names.isdisjoint(used)
        )

    def _add_referrers(self, key: Key) -> None:
        """Add the records of the workloads that refer to an object."""
        rows = self._changes.rows
        for referrer in rows.list_referrers(key):
            row = rows.read_workload(referrer)
            for record in row.record_keys if row is not None else ():
                self._owners.setdefault((record.namespace, record.name), referrer)
