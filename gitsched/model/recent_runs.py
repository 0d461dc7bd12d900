"""What the latest runs took from workloads, and which commits of the source caused it."""

from __future__ import annotations

from collections.abc import Container
from datetime import datetime
from typing import Literal

from gitsched.model.changes import Move
from gitsched.model.document import Key
from gitsched.model.history import CauseFiles, Departure, SourceChange
from gitsched.named_tuples import NamedTuple

Loss = Literal["unplaced", "copied", "fewer", "removed", "moved"]
"""What a run did to a workload: it has no cluster any more; it has data and runs in a further cluster, where its volumes were empty; it has
fewer replicas; it is not in the source any more; it is in other clusters."""
LOSSES: tuple[Loss, ...] = ("unplaced", "copied", "fewer", "removed", "moved")
"""All of them, the gravest first."""


class RecentLoss(NamedTuple):
    """What a run did to a workload, as far as it is still so. `left_data`: it has data, which it has left in other clusters."""

    kind: Loss
    move: Move
    left_data: bool = False


class RecentRun(NamedTuple):
    """What a run took from workloads for one cause: the output commit, the one `before` it, its time and cause, and the losses that are
    still so, out of those of `concerned` workloads; the number of `more_moves` is not read. `departures` are the clusters that workloads
    had to leave, if no commit of the source is the cause, or if it only says that clusters failed.

    `sources` are the commits of the source that it followed, the newest first, a few of them; the number of `more_sources` is left
    out. `reverted_by` is the later commit that reverts it, None without one. `edits` are the commits of people on the output branch since
    the run before. `is_undone`: nothing of the one commit of the source is left to revert. `awaits_run`: no run has followed yet
    what undoes it. `reverts` is the earlier commit that the one commit of the source reverts, None if it reverts none, and `files` are
    those that the one commit changed. `replaced` are the commits whose changes were withheld until it decided otherwise: its
    revert alone would ask for these again.
    """

    commit: str
    before: str
    time: datetime
    cause: str
    losses: tuple[RecentLoss, ...]
    more_moves: int = 0
    sources: tuple[SourceChange, ...] = ()
    more_sources: int = 0
    reverted_by: SourceChange | None = None
    edits: tuple[SourceChange, ...] = ()
    is_undone: bool = False
    awaits_run: bool = False
    reverts: SourceChange | None = None
    files: CauseFiles = CauseFiles()
    departures: tuple[Departure, ...] = ()
    concerned: int = 0
    replaced: tuple[SourceChange, ...] = ()

    def mark_unselected(self, keys: Container[Key]) -> RecentRun:
        """Return it with these removed workloads as unplaced ones: they are in the source, and no policy selects them."""
        losses = (
            loss._replace(kind="unplaced") if loss.kind == "removed" and loss.move.key in keys else loss for loss in self.losses
        )
        return self._replace(losses=tuple(losses))

    @property
    def has_one_source(self) -> bool:
        """Whether exactly one commit of the source caused it."""
        return len(self.sources) == 1 and not self.more_sources
