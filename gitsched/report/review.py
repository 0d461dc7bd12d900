"""What there is to say about one run: the value that every report is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from gitsched.model.change import Move
from gitsched.model.finding import Finding
from gitsched.model.outcome import Outcome
from gitsched.model.time import EPOCH

STATES = ("placed", "pending", "stale")


class Review(NamedTuple):
    """One run, planned or committed.

    `source` is the commit that was read, "" for the worktree. `branch` and `place` say which output branch, and where; `before` is its
    head as it was seen, None when there was none; `after` the new commit, None when none was made. `changed` says whether the plan's
    files differ from those at `before`, which they may without a move. `refused` is why the guard refused, or "". `counted` are the
    outcomes by state, where somebody has counted them.
    """

    source: str
    branch: str
    place: str = ""
    before: str | None = None
    after: str | None = None
    changed: bool = False
    refused: str = ""
    outcomes: Collection[Outcome] = ()
    moves: Sequence[Move] = ()
    findings: Sequence[Finding] = ()
    unclaimed: int = 0
    next_wakeup: datetime | None = None
    time: datetime = EPOCH
    counted: Mapping[str, int] | None = None

    @property
    def states(self) -> dict[str, int]:
        """How many workloads are placed, pending and stale."""
        counts = self.counted if self.counted is not None else Counter(outcome.state for outcome in self.outcomes)
        return {state: counts.get(state, 0) for state in STATES}
