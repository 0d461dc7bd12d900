"""What there is to say about one run: the value that every report is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from gitsched.model.change import Choice, Move, Rendered, Stay
from gitsched.model.finding import Finding
from gitsched.model.outcome import Outcome
from gitsched.model.simulation import Resilience, ResilienceChange
from gitsched.model.time import EPOCH

STATES = ("placed", "pending", "stale")


class Base(NamedTuple):
    """What a plan is compared with: the output branch as it is, or the plan of another commit over that same branch.

    `commit` is "" for the output branch itself; `name` is how somebody called it. `states` counts workloads by state and `findings` are
    those that there were; None where nobody knows, as before a first placement. `merged` says that the source did not contain the
    commit, and that what merging the two gives was planned.
    """

    commit: str = ""
    name: str = ""
    merged: bool = False
    states: Mapping[str, int] | None = None
    findings: Sequence[Finding] | None = None


class Delivery(NamedTuple):
    """What clusters get otherwise than before: `rendered` are the manifests, those of which something can be shown, and `more` counts
    the others. `files` counts the paths of all, so copies in several clusters several times."""

    rendered: Sequence[Rendered] = ()
    more: int = 0
    files: int = 0


class Review(NamedTuple):
    """One run, planned or committed.

    `source` is the commit that was read, "" for the worktree, and `name` how somebody called it. `branch` and `place` say which output
    branch, and where; `before` is its head as it was seen, None when there was none; `after` the new commit, None when none was made.
    `changed` says whether the plan's files differ from those that they are compared with, which they may without a move. `refused` is
    why nothing was written, or "". `counted` are the outcomes by state, where somebody has counted them, and `clusters` counts those.

    `base` is what it is compared with. `digest` names what changes, see `report.digest`; "" where nobody asked. `joined` and `gone` are
    clusters of the fleet. `paths` are the files of the source that differ. `notes` are what a reader should know of how it was compared.
    `stays` are workloads that the change concerns and that memory holds where they are.
    `choices` are documents that place nothing themselves and choose other clusters than before.
    `resilience` is what losses would do, where somebody asked: with a base commit in comparison with that.
    `reviewed` is what became of the comparison with an earlier review: nothing where none was asked for.
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
    clusters: int | None = None
    name: str = ""
    base: Base = Base()
    digest: str = ""
    joined: Sequence[str] = ()
    gone: Sequence[str] = ()
    delivery: Delivery = Delivery()
    paths: frozenset[str] = frozenset()
    notes: Sequence[str] = ()
    reviewed: Sequence[str] = ()
    stays: Sequence[Stay] = ()
    choices: Sequence[Choice] = ()
    resilience: Resilience | ResilienceChange | None = None

    @property
    def states(self) -> dict[str, int]:
        """How many workloads are placed, pending and stale."""
        counts = self.counted if self.counted is not None else Counter(outcome.state for outcome in self.outcomes)
        return {state: counts.get(state, 0) for state in STATES}

    @property
    def fresh(self) -> list[Finding]:
        """The findings that the change brings, in their order; all where nobody knows the earlier ones. A line that moved makes none."""
        known = Counter(map(_identify, self.base.findings or ()))
        fresh = []
        for finding in self.findings:
            known[_identify(finding)] -= 1
            if known[_identify(finding)] < 0:
                fresh.append(finding)
        return fresh

    @property
    def mended(self) -> int:
        """How many findings the change ends."""
        return len(self.base.findings or ()) - (len(self.findings) - len(self.fresh))


def _identify(finding: Finding) -> tuple[object, ...]:
    """What makes a finding the same one in two commits. Notes that sum up name and count what they are about, which may differ."""
    if finding.severity == "info":
        return (finding.code,)
    return finding.severity, finding.code, finding.message, finding.location and finding.location.path, finding.resource
