"""The Review: the result of one plan or reconcile that every report is written from, and the digest of what it changes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

from gitsched.model.changes import ManifestChange, Move, RetainedWorkload, SelectionChange
from gitsched.model.finding import Finding
from gitsched.model.scheduling import Outcome
from gitsched.model.simulation import Resilience, ResilienceChange
from gitsched.model.time import EPOCH

WORKLOAD_STATES = ("placed", "pending", "stale")


class ComparisonBase(NamedTuple):
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


class DeliveryChanges(NamedTuple):
    """What clusters get otherwise than before: `rendered` are the manifests, those of which something can be shown, and `more` counts
    the others. `files` counts the paths of all, so copies in several clusters several times."""

    rendered: Sequence[ManifestChange] = ()
    omitted: int = 0
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
    output_repository: str = ""
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
    state_counts: Mapping[str, int] | None = None
    cluster_count: int | None = None
    source_name: str = ""
    base: ComparisonBase = ComparisonBase()
    digest: str = ""
    added_clusters: Sequence[str] = ()
    removed_clusters: Sequence[str] = ()
    delivery: DeliveryChanges = DeliveryChanges()
    changed_paths: frozenset[str] = frozenset()
    comparison_notes: Sequence[str] = ()
    review_messages: Sequence[str] = ()
    retained: Sequence[RetainedWorkload] = ()
    choices: Sequence[SelectionChange] = ()
    resilience: Resilience | ResilienceChange | None = None

    @property
    def states(self) -> dict[str, int]:
        """How many workloads are placed, pending and stale."""
        counts = self.state_counts if self.state_counts is not None else Counter(outcome.state for outcome in self.outcomes)
        return {state: counts.get(state, 0) for state in WORKLOAD_STATES}

    @property
    def new_findings(self) -> list[Finding]:
        """The findings that the change brings, in their order; all where nobody knows the earlier ones. A line that moved makes none."""
        known = Counter(map(_finding_identity, self.base.findings or ()))
        fresh = []
        for finding in self.findings:
            known[_finding_identity(finding)] -= 1
            if known[_finding_identity(finding)] < 0:
                fresh.append(finding)
        return fresh

    @property
    def fixed_count(self) -> int:
        """How many findings the change ends."""
        return len(self.base.findings or ()) - (len(self.findings) - len(self.new_findings))


def _finding_identity(finding: Finding) -> tuple[object, ...]:
    """What makes a finding the same one in two commits. Notes that sum up name and count what they are about, which may differ."""
    if finding.severity == "info":
        return (finding.code,)
    return finding.severity, finding.code, finding.message, finding.location and finding.location.path, finding.resource


DIGEST_PREFIX = "sha256:"
_DIGEST_FORMAT = 1


def compute_digest(moves: Iterable[Move], delivered: Mapping[str, str | None], choices: Iterable[SelectionChange] = ()) -> str:
    """`sha256:` and 64 hex digits over what changes.

    Covered: each workload that moves, with its clusters and replicas before and after, and each manifest that is delivered otherwise
    than before, by path and new content (`delivered`: blob id, None where it goes; without copies in clusters that a workload leaves),
    and each Placement that chooses other clusters.
    Not covered: commit ids, times, reasons, records, findings, and all that stays as it is; so the merge of a reviewed branch has the
    digest of the review as long as it does the same.
    """
    lines = [
        [*move.key, sorted(move.before.items()), sorted(move.after.items())] for move in sorted(moves, key=lambda move: move.key)
    ]
    chosen = [[*choice.key, choice.before, choice.after] for choice in sorted(choices)]
    value: dict[str, object] = {"files": sorted(delivered.items()), "format": _DIGEST_FORMAT, "moves": lines}
    if chosen:
        value["choices"] = chosen
    return DIGEST_PREFIX + sha256(json.dumps(value, separators=(",", ":"), sort_keys=True).encode()).hexdigest()
