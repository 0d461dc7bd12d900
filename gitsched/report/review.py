"""The Review: the result of one plan or reconcile, from which all reports are written, and the digest of its changes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING

from gitsched.model.changes import (
    NOTHING_WITHHELD,
    ImageChange,
    ManifestChange,
    Move,
    RecordChange,
    RetainedCopy,
    RetainedWorkload,
    SettingChange,
    UnplacedObject,
    WithheldChanges,
)
from gitsched.model.time import EPOCH
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.document import Key
    from gitsched.model.finding import Finding
    from gitsched.model.holds import HeldPlacement
    from gitsched.model.reserve import ReserveCheck
    from gitsched.model.rollouts import RolloutStatus
    from gitsched.model.scheduling import Outcome, RecordedDecision, RecordTarget
    from gitsched.model.simulation import Resilience, ResilienceChange

WORKLOAD_STATES = ("placed", "pending", "stale")


class ComparisonBase(NamedTuple):
    """What a plan is compared with: the output branch, or the plan of another commit on top of the same output branch.

    `commit` is "" for the output branch; `name` is the revision as given on the command line. `states` counts workloads by state;
    `findings` are the findings of the base; `unclaimed` counts the objects that no policy selects, and `held` are the held
    workloads. All are None if unknown, as before the first placement. `merged` is true if the source did not contain the base commit, so
    that the merge of the two was planned.
    """

    commit: str = ""
    name: str = ""
    merged: bool = False
    states: Mapping[str, int] | None = None
    findings: Sequence[Finding] | None = None
    unclaimed: int | None = None
    held: Mapping[Key, HeldPlacement] | None = None


class DeliveryChanges(NamedTuple):
    """Manifests that change in the directories of clusters.

    `rendered` are the manifests with a difference to show and `omitted` counts the others. `files` counts changed paths, so a manifest
    that changes in three clusters counts three times. `images` are the images that change in manifests which clusters had before.
    """

    rendered: Sequence[ManifestChange] = ()
    omitted: int = 0
    files: int = 0
    images: Sequence[ImageChange] = ()


class OutputComparison(NamedTuple):
    """How the output of a plan differs from its base, which only a plan computes.

    `digest` identifies the changes (see `compute_digest`), "" if not computed. `added_clusters` and `removed_clusters` are differences of
    the fleet, `empty_clusters` those of the added ones that get nothing, `changed_paths` the source files that differ. `notes` explain how
    the comparison was made. `unplaced` are the objects that no cluster gets, without those that move and those of which the base says the
    same; against the output branch, only those that no policy selects: new ones, and before a first run those with pods. `reserve` is what
    workloads lack after losses, None without a reserve. `stopped` are objects that lose their last replica while
    the workload of several objects that they are a part of goes on. `edits` are commits of people on the output branch that changed
    records, from which the run decides: what these move is not among the moves. `requested` says of a plan against the output branch which
    commits of the source ask for what is withheld, "" if none does. `older` says of such a plan that a run has planned a later commit, or
    is "".
    """

    digest: str = ""
    delivery: DeliveryChanges = DeliveryChanges()
    added_clusters: Sequence[str] = ()
    removed_clusters: Sequence[str] = ()
    changed_paths: frozenset[str] = frozenset()
    notes: Sequence[str] = ()
    unplaced: Sequence[UnplacedObject] = ()
    reserve: ReserveCheck | None = None
    stopped: Sequence[Move] = ()
    edits: Sequence[str] = ()
    empty_clusters: Sequence[str] = ()
    requested: str = ""
    older: str = ""


class FindingChanges(NamedTuple):
    """The findings of a review that the base does not have, those that it has with another text, and those of the base that are gone."""

    new: list[Finding]
    changed: list[Finding]
    fixed: list[Finding]


class Review(NamedTuple):
    """One run, planned or committed.

    `source` is the source commit, "" for the worktree, and `source_name` the revision as given on the command line. `branch` and
    `output_repository` name the output branch; `before` is its head before the run, None if it did not exist; `after` is the new
    commit, None if nothing was committed. `changed` is true if any file of the output changes, with or without a move. `refused` is
    the reason why nothing was written, or "". `states` are the numbers of placed, pending and stale workloads.

    `base` is what the plan is compared with, and `comparison` how its output differs. `retained` are workloads that the change affects
    but that keep their placement because of scheduling history. `recorded` are the decisions that only records show, `record_changes`
    those that are added, changed or removed.
    `resilience` is the result of --resilience, a comparison if there is a base commit. `review_messages` are the result of the
    comparison with a reviewed plan. `withheld` are the changes over the limits of the guard: a plan shows them among the moves, a run
    leaves them out. `race` is "" unless another run made the new commit; then "same" if it has the content that this run planned, else
    "different". `held` are the workloads with data that keep their clusters until they are released. `retained_copies` stay for an overlap,
    that of `ended_copies` is over. `setting_changes` are the members of gitsched.yaml that differ from its trusted version.
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
    states: Mapping[str, int] = dict.fromkeys(WORKLOAD_STATES, 0)
    cluster_count: int | None = None
    source_name: str = ""
    base: ComparisonBase = ComparisonBase()
    comparison: OutputComparison = OutputComparison()
    review_messages: Sequence[str] = ()
    retained: Sequence[RetainedWorkload] = ()
    recorded: Sequence[RecordedDecision] = ()
    record_changes: Sequence[RecordChange] = ()
    resilience: Resilience | ResilienceChange | None = None
    withheld: WithheldChanges = NOTHING_WITHHELD
    race: str = ""
    held: Mapping[Key, HeldPlacement] = MappingProxyType({})
    retained_copies: Sequence[RetainedCopy] = ()
    ended_copies: Sequence[RetainedCopy] = ()
    setting_changes: Sequence[SettingChange] = ()
    rollouts: Sequence[RolloutStatus] = ()

    @property
    def new_findings(self) -> list[Finding]:
        """The findings that the base does not have, in order; all findings if those of the base are unknown.

        A finding that only moved to another line is not new, nor is a warning of which only the text changed. One about a change is: the
        output branch has those of an earlier run.
        """
        return self._compare_findings().new

    @property
    def changed_findings(self) -> list[Finding]:
        """The warnings that the base has with another text, in order."""
        return self._compare_findings().changed

    def _compare_findings(self) -> FindingChanges:
        """Compare the findings with those of the base."""
        known = self.base.findings
        if not known:
            return FindingChanges(list(self.findings), [], [])
        existing = Counter(map(_finding_identity, known))
        new = []
        for finding in self.findings:
            identity = _finding_identity(finding)
            existing[identity] -= 1
            if existing[identity] < 0 or (finding.is_change and not self.base.commit):
                new.append(finding)
        kept = Counter(map(_finding_identity, list_existing_findings(self, new)))
        gone = []
        for finding in known:
            identity = _finding_identity(finding)
            kept[identity] -= 1
            if finding.severity != "info" and kept[identity] < 0:
                gone.append(finding)
        found = _pair_changed(new, gone)
        # Of a file with an error, the last valid version is used, so that it is not known whether a warning about it is fixed.
        broken = {finding.location.path for finding in new if finding.severity == "error" and finding.location}
        return found._replace(
            fixed=[one for one in found.fixed if not (one.severity == "warning" and one.location and one.location.path in broken)]
        )

    @property
    def unmerged(self) -> datetime | None:
        """The time of a plan that no run carries out as it is: one of a comparison of commits, or of a worktree; None for others."""
        return self.time if self.base.commit or not self.source else None

    @property
    def planned_withheld(self) -> WithheldChanges:
        """What a run would withhold of this plan; nothing of a run, whose copies are those that stay."""
        return self.withheld if self.after is None else NOTHING_WITHHELD

    @property
    def allowed_moves(self) -> Sequence[Move]:
        """The moves without those that are withheld."""
        withheld = {move.key for move in self.withheld.moves}
        return [move for move in self.moves if move.key not in withheld] if withheld else self.moves

    @property
    def states_left(self) -> Mapping[str, int]:
        """The numbers of workloads by state that a run leaves. A workload whose change is withheld is placed as before, also one that the
        source has no longer, or that no policy selects any more."""
        kept_back = (*self.withheld.moves, *self.withheld.of_base)
        states, withheld = dict(self.states), {move.key: move for move in kept_back}
        for outcome in self.outcomes if withheld else ():
            move = withheld.pop(outcome.key, None)
            kept = "placed" if move is not None and move.before else "pending"
            if move is not None and outcome.counted_state != kept and states.get(outcome.counted_state):
                states[outcome.counted_state] -= 1
                states[kept] = states.get(kept, 0) + 1
        states["placed"] += sum(bool(move.before) for move in withheld.values())
        return states

    @property
    def newly_held(self) -> list[Key]:
        """The held workloads of which the base does not say the same; none if it is not known what is held there."""
        known = self.base.held
        return [] if known is None else [key for key, held in self.held.items() if known.get(key) != held]

    @property
    def more_unclaimed(self) -> int:
        """How many more objects than in the base no policy selects; 0 if it is not known."""
        return 0 if self.base.unclaimed is None else max(self.unclaimed - self.base.unclaimed, 0)

    @property
    def has_news(self) -> bool:
        """Whether the output, settings or findings change, what the change does is refused or withheld, or more or other objects have no
        policy."""
        changes = (self.changed, self.moves, self.record_changes, self.setting_changes, self.refused, self.withheld.moves)
        losses = getattr(self.resilience, "impact_changes", ())
        found = (self.new_findings, self.fixed_count, losses, self.more_unclaimed, self.comparison.unplaced)
        return any(changes) or any(found)

    @property
    def fixed_findings(self) -> list[Finding]:
        """The errors and warnings of the base that the change fixes."""
        return self._compare_findings().fixed

    @property
    def fixed_count(self) -> int:
        """The number of errors and warnings of the base that the change fixes."""
        return len(self.fixed_findings)


def list_existing_findings(review: Review, new: Iterable[Finding]) -> list[Finding]:
    """Return the findings of a review besides the `new` ones."""
    known = {id(finding) for finding in new}
    return [finding for finding in review.findings if id(finding) not in known]


def _finding_identity(finding: Finding) -> tuple[object, ...]:
    """Return what identifies a finding across commits. Notes are identified by code, because their text contains counts and names;
    those about a change also by their text."""
    if finding.is_change:
        return finding.code, finding.message
    if finding.severity == "info":
        return (finding.code,)
    return finding.severity, finding.code, finding.message, finding.location and finding.location.path, finding.resource


def _pair_changed(new: list[Finding], gone: list[Finding]) -> FindingChanges:
    """Return findings that only one side has, without the warnings that both have with another text about the same object and place."""
    if not (new and gone):
        return FindingChanges(new, [], gone)
    left: dict[tuple[object, ...], list[Finding]] = {}
    for finding in gone:
        if finding.severity == "warning" and not finding.is_change:
            left.setdefault(_identify_place(finding), []).append(finding)
    paired = set[int]()
    changed = []
    for finding in new:
        former = left.get(_identify_place(finding)) if not finding.is_change else None
        if former:
            changed.append(finding)
            paired.update((id(finding), id(former.pop(0))))
    fresh, fixed = ([finding for finding in found if id(finding) not in paired] for found in (new, gone))
    return FindingChanges(fresh, changed, fixed)


def _identify_place(finding: Finding) -> tuple[object, ...]:
    return finding.severity, finding.code, finding.resource, finding.location


DIGEST_PREFIX = "sha256:"
_DIGEST_FORMAT = 1


def compute_digest(moves: Iterable[Move], delivered: Mapping[str, str | None], records: Iterable[RecordChange] = ()) -> str:
    """Return `sha256:` and 64 hex digits that identify the changes of a plan.

    Covered: each workload that moves, with its clusters and replicas before and after; each changed manifest by path and new content
    (`delivered`: blob id, None if removed; without copies on clusters that a workload is leaving); each recorded decision that changes,
    with its targets before and after. Not covered: commit ids, times, reasons, other content of records, findings and everything that
    does not change. So the merge of a reviewed branch has the digest of its review as long as it makes the same changes.
    """
    lines = [
        [*move.key, sorted(move.before.items()), sorted(move.after.items())] for move in sorted(moves, key=lambda move: move.key)
    ]
    recorded = [
        [*change.subject, change.target_kind, _list_digested(change.before), _list_digested(change.after)]
        for change in sorted(records, key=lambda change: (change.subject, change.target_kind))
    ]
    value: dict[str, object] = {"files": sorted(delivered.items()), "format": _DIGEST_FORMAT, "moves": lines}
    if recorded:
        value["records"] = recorded
    return DIGEST_PREFIX + sha256(json.dumps(value, separators=(",", ":"), sort_keys=True).encode()).hexdigest()


def _list_digested(targets: Iterable[RecordTarget]) -> list[list[object]]:
    return [[target.name, target.amount, target.group] for target in targets]
