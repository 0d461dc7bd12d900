"""The history of an output branch as plain data: its commits, the workloads that moved with each, and why."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from fnmatch import fnmatchcase

from gitsched.model.changes import Move, RecordChange
from gitsched.model.document import Key
from gitsched.named_tuples import NamedTuple

WITHHOLDS = "withholds changes: "
"""Stands in the note of a commit with which changes became withheld, after what withholds them."""


class Departure(NamedTuple):
    """Why a workload had to leave a cluster with a commit: a taint that evicts it. `added_by` is the condition or policy that added the
    taint, which is failover; "" for a taint that people have set to drain the cluster. Without a taint, `added_by` is the reason of the
    failover, "" if it is not known. `since` is when the taint began, None if it began with the commit. `timed`: the workload tolerated the
    taint for a time.
    """

    cluster: str
    taint: str = ""
    added_by: str = ""
    since: datetime | None = None
    timed: bool = False

    @property
    def is_drain(self) -> bool:
        """Whether people drain the cluster."""
        return bool(self.taint) and not self.added_by


class PlacementMove(NamedTuple):
    """A workload that moved with a commit. `move` has its clusters before and after, and the reason of its placement after.

    `reason_before` is the reason before, "" if it is the same. `removed`: the workload has no record any more, because no policy selects it
    or its document is gone. `damage` says what of its records cannot be read, "" if everything can. `departures` are the clusters that
    it had to leave. `removal` says why it has no record any more, "" if that is not known.

    The kind of the key is in lower case where no manifest of the commit has it.
    """

    move: Move
    reason_before: str = ""
    removed: bool = False
    damage: str = ""
    departures: tuple[Departure, ...] = ()
    removal: str = ""


class TaintChange(NamedTuple):
    """A taint of a cluster that begins or ends with a commit. `evicts`: workloads that do not tolerate it leave the cluster.

    `location` is FILE:LINE, before the commit for a removed taint. Where a condition adds the taint, `added_by` says which, and the
    location is that of the condition, "" if it is not known; `from_facts`: it is on a facts branch. Without a `taint`, the cluster failed
    as `added_by` says, for which its API has no taint.
    """

    cluster: str
    taint: str
    evicts: bool
    added: bool
    location: str
    added_by: str = ""
    from_facts: bool = False


class SourceChange(NamedTuple):
    """A commit of the source: its id, subject, name of its author, and time; None and "" where they are not known. `is_merge`: it has
    several parents, and `merged` are the authors of the commits that it brought, if they are others.
    """

    commit: str
    subject: str = ""
    author: str = ""
    time: datetime | None = None
    is_merge: bool = False
    merged: tuple[str, ...] = ()


class EndedDrain(NamedTuple):
    """A taint of people that let workloads leave a cluster until a change removed it: its FILE:LINE before that, and the commit of the
    source that added it, None if it is not known."""

    cluster: str
    taint: str
    location: str
    added_by: SourceChange | None = None


class CauseFiles(NamedTuple):
    """The changed files of a commit of the source: those to be `restored` from the commit before it, () if they cannot be taken back alone
    or are all, and the number of the `others`. `is_known`: it is known which files decide."""

    restored: tuple[str, ...] = ()
    others: int = 0
    is_known: bool = False


class RolloutHistory(NamedTuple):
    """The commits of the source whose changes a rollout brings to clusters, the newest first, and the time of the run with which it
    stopped; () and None where they are not known. `note` says which record is damaged that would name the commits."""

    sources: tuple[SourceChange, ...] = ()
    stopped: datetime | None = None
    note: str = ""


class HistoryEntry(NamedTuple):
    """One commit of the output branch.

    `cause` is that of the run (source, facts, deadline, observation or upgrade; or records, edit, release, rerun), "" for a commit that no
    run made; `also` is another cause, "" without one.
    `requested` are the commits of the source that asked for changes which were withheld before, and which the commit carries out.
    `edits` are the commits of people on the output branch since the run before. `summary` is what its message says that it changes.
    `source` is the source commit that it follows, `sources` are those since the commit before, the newest first. `records` are the recorded
    decisions that changed, `files` the changed files of the source, `taints` the taints of clusters that began or ended, and `notes` other
    events, such as a freeze or a source that went back. `edited` are the workloads whose records a commit of people changed, the kinds in
    lower case. `has_copies`: copies of chosen workloads begin or end to stay for an overlap, and nothing else is chosen. The numbers of
    `more_sources`, `more_files` and `more_moves` are left out because of limits.
    """

    commit: str
    time: datetime
    author: str
    subject: str
    cause: str = ""
    summary: str = ""
    trailers: tuple[tuple[str, str], ...] = ()
    source: SourceChange | None = None
    sources: tuple[SourceChange, ...] = ()
    more_sources: int = 0
    files: tuple[str, ...] = ()
    more_files: int = 0
    moves: tuple[PlacementMove, ...] = ()
    more_moves: int = 0
    records: tuple[RecordChange, ...] = ()
    notes: tuple[str, ...] = ()
    taints: tuple[TaintChange, ...] = ()
    edits: tuple[SourceChange, ...] = ()
    edited: tuple[Key, ...] = ()
    also: str = ""
    requested: tuple[SourceChange, ...] = ()
    has_copies: bool = False

    @property
    def failed_by_facts(self) -> frozenset[str]:
        """The clusters from which facts evict workloads since the commit."""
        return frozenset(change.cluster for change in self.taints if change.added and change.evicts and change.from_facts)

    @property
    def departures(self) -> dict[str, Departure]:
        """The clusters that workloads had to leave, with the first reason."""
        return {one.cluster: one for found in reversed(self.moves) for one in reversed(found.departures)}


class HistoryFilter(NamedTuple):
    """Which entries and moves a history has. Patterns are shell patterns; "" matches everything.

    `workload` is matched with NAME, NAMESPACE/NAME, KIND/NAME and KIND/NAMESPACE/NAME, the kind in any case, with or without its group.
    `since` and `until` limit the time of commits. `start` is the newest output commit, the head by default.
    """

    workload: str = ""
    namespace: str = ""
    cluster: str = ""
    since: datetime | None = None
    until: datetime | None = None
    start: str = ""

    @property
    def selects_moves(self) -> bool:
        """Whether only commits count with which certain workloads moved."""
        return bool(self.workload or self.namespace or self.cluster)

    def selects_key(self, key: Key) -> bool:
        """Return whether a workload counts."""
        if self.namespace and not fnmatchcase(key.namespace, self.namespace):
            return False
        if not self.workload:
            return True
        name, own = f"{key.namespace}/{key.name}" if key.namespace else key.name, self.workload.lower()
        if fnmatchcase(name if "/" in self.workload else key.name, self.workload):
            return True
        kinds = (key.kind.lower(), f"{key.kind}.{key.group}".lower())
        return "/" in own and any(fnmatchcase(f"{kind}/{each}", own) for kind in kinds for each in (name, key.name))

    def selects_clusters(self, before: Mapping[str, int | None], after: Mapping[str, int | None]) -> bool:
        """Return whether a move changes something in the cluster."""
        if not self.cluster:
            return True
        names = (name for name in before.keys() | after.keys() if before.get(name, -1) != after.get(name, -1))
        return any(fnmatchcase(name, self.cluster) for name in names)
