"""What an incremental plan changes: the documents, the workloads that were decided again, and those that are gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gitsched.model.changes import NOTHING_WITHHELD
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

    from gitsched.apis.capabilities import DocumentPair
    from gitsched.apis.snapshot import Snapshot
    from gitsched.decide.incremental.changed_documents import SourceDiff
    from gitsched.decide.incremental.continued_engines import ContinuedEngines
    from gitsched.decide.incremental.plan_state import PlanRows, Totals, WorkloadRow
    from gitsched.decide.workload_files import WorkloadFiles
    from gitsched.model.changes import WithheldChanges
    from gitsched.model.document import Document, Key
    from gitsched.model.scheduling import Outcome


class IncrementalChanges(NamedTuple):
    """The changes of a plan whose last state has these `totals` and `rows`.

    `documents` are the templates that were decided again, also those that no policy selects. `workloads` are the files of those with a
    placement, `outcomes` their outcomes, and `removed` the rows of workloads without one now that had one. `unstable` are workloads that
    may be decided differently next time. `withheld` are the changes that the guard withholds, also of workloads that were not decided
    again, and `withheld_wakeups` the times at which they may be others without a commit. `limited` are workloads that would be
    placed otherwise if others did not use capacity, and `turns` those in which workloads start pods, as values that sort.
    """

    totals: Totals
    rows: PlanRows
    diff: SourceDiff
    snapshot: Snapshot
    continued: ContinuedEngines
    documents: Mapping[Key, Document]
    workloads: Mapping[Key, WorkloadFiles]
    outcomes: Mapping[Key, Outcome]
    removed: Mapping[Key, WorkloadRow]
    unstable: frozenset[Key]
    withheld: WithheldChanges = NOTHING_WITHHELD
    withheld_wakeups: Mapping[Key, datetime] = {}
    limited: frozenset[Key] = frozenset()
    turns: Mapping[Key, tuple[object, ...]] = {}

    @property
    def own(self) -> frozenset[Key]:
        """The workloads that policy APIs decide themselves now."""
        return frozenset(self.continued.own) if self.continued.engines else self.totals.engines.own

    @property
    def templates(self) -> Mapping[Key, DocumentPair]:
        """The templates that changed, each before and after."""
        return self.diff.templates

    @property
    def restored(self) -> frozenset[Key]:
        """The workloads that are placed although the source does not have them, because the guard withholds their removal."""
        return frozenset(move.key for move in self.withheld.moves if move.key not in self.snapshot.templates)

    def find_outcome(self, key: Key) -> Outcome | None:
        """Return the outcome of a workload, without documents if it was not decided again; None if no policy selects it now."""
        if key in self.outcomes or key in self.removed:
            return self.outcomes.get(key)
        row = self.rows.read_workload(key)
        return row.outcome if row is not None else None

    def is_cluster(self, name: str) -> bool:
        """Return whether a cluster has a document."""
        clusters = self.continued.clusters
        return clusters[name] is not None if name in clusters else self.had_workloads(name)

    def had_workloads(self, cluster: str) -> bool:
        """Return whether a cluster received workloads in the last plan: it had a document and a directory."""
        return cluster not in self.totals.retiring and self.rows.read_cluster(cluster) is not None
