"""What a plan changes compared with the previous output: moved workloads, recorded decisions, manifests, and their causes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal

from gitsched.model.finding import FieldOrigin, Finding, Location, choose_form, format_count, format_names, format_part
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.document import Key
    from gitsched.model.scheduling import RecordTarget


class ChangedField(NamedTuple):
    """A field that a change adds, changes or removes: its values as YAML on one line, "" where there is none. A long value is shortened to
    its outer structure. `values` are the complete ones as JSON, None where there is none; both are None if a value is secret.
    """

    path: str
    before: str
    after: str
    values: tuple[str | None, str | None] = (None, None)

    @property
    def text(self) -> str:
        """The change on one line, like `spec.replicas 2 -> 4`."""
        if self.before and self.after:
            return f"{self.path} {self.before} -> {self.after}"
        if not (self.before or self.after):
            return f"{self.path} changed"
        return f"{self.path} added: {self.after}" if self.after else f"{self.path} removed: {self.before}"


class Cause(NamedTuple):
    """One change that comes with a move: `text` is one line, `location` is where it is written, None without a document.

    `field` gives the exact location, and `change` the values, where one field is the cause. `removed`: the location is in the previous
    commit. `proved`: the move does not happen without the change; otherwise both only happen together. Changes with the same number
    `together` must all be taken back to undo the move; 0 is a change that alone undoes it.
    """

    text: str
    location: Location | None = None
    field: FieldOrigin | None = None
    removed: bool = False
    proved: bool = True
    together: int = 0
    change: ChangedField | None = None

    def __str__(self) -> str:
        location = self.location.text if self.location else ""
        return f"{self.text} ({'was ' if self.removed else ''}{location})" if location else self.text


class Move(NamedTuple):
    """A workload that moves: `before` and `after` map clusters to the replicas of the delivered manifests, None without replicas; empty
    means unplaced.

    `reason` is one line; `causes` are its causes, the main one first, and empty if they were not computed. `included` are replicas that
    clusters already have, by cluster: those of workloads that are a part of this one now. `intended`: the workload has no cluster because
    the source no longer has it, or because it is no longer attached to a workload. `preserved`: it is kept in the clusters all the same.
    `copies` are the replicas in the clusters that an unplaced workload gets and where copies of it still run: if these are all, it is
    placed again, and nothing changes there.
    """

    key: Key
    before: Mapping[str, int | None]
    after: Mapping[str, int | None]
    reason: str
    causes: tuple[Cause, ...] = ()
    included: Mapping[str, int] = {}
    intended: bool = False
    preserved: bool = False
    copies: Mapping[str, int | None] = {}

    @property
    def becomes_unplaced(self) -> bool:
        """Whether the workload has no cluster any more."""
        return bool(self.before) and not self.after

    @property
    def main_reason(self) -> str:
        """The main cause with its location if one is proved, else the reason."""
        return str(self.causes[0]) if self.causes and self.causes[0].proved else self.reason


RENAMED_FROM = "gitsched.io/renamed-from"
"""The annotation of a workload with the one that it continues, as [kind/]namespace/name."""
ALLOW_TRAILER = "Gitsched-Allow"
"""The trailer of a source commit that allows the withheld changes with its digest."""
GuardScope = Literal["fleet", "namespace", "cluster", "workload", "policy"]
GuardEffect = Literal["removed", "moved", "replicasLost", "replicasAdded", "clustersUnready", "unselected"]


class ExceededLimit(NamedTuple):
    """A limit of the guard that changes exceed: `amount` of `size` workloads, replicas or clusters of a scope, more than `percent`.

    `name` is the namespace, cluster or workload, "" for the fleet. `owners` are the tenants and namespaces whose changes are withheld; ()
    for all. The `cause` says why a policy no longer selects what it did. `staying` are the workloads or replicas that are not in the `size`
    because they keep their placement whatever their policies say.
    """

    scope: GuardScope
    name: str
    effect: GuardEffect
    amount: int
    size: int
    percent: float
    owners: tuple[str, ...] = ()
    cause: Cause | None = None
    staying: int = 0

    def __str__(self) -> str:
        if self.effect == "unselected":
            return f"{self.cause}: {format_count(self.amount, 'workload')} would become unplaced"
        if self.effect == "clustersUnready":
            clusters = format_part(self.amount, self.size, "cluster", "is", "are")
            return f"{clusters} not ready by reported facts alone, as if these were no longer collected (limit: {self.percent:g} %)"
        where = {"fleet": "the fleet", "workload": self.name}.get(self.scope, f"{self.scope} {self.name or '(none)'}")
        if self.effect in ("removed", "moved"):
            what = (
                "would leave"
                if self.scope == "cluster"
                else f"would {'be removed from' if self.effect == 'removed' else 'move in'}"
            )
            change = f"{format_part(self.amount, self.size, 'workload')} {what} {where}"
        else:
            verb, more = ("lose", "") if self.effect == "replicasLost" else ("get", "more ")
            change = f"{where} would {verb} {format_count(self.amount, f'{more}replica')}, it has {self.size:,}"
        if self.staying:
            unit = "workload" if self.effect in ("removed", "moved") else "replica"
            change += (
                f", not counting {format_count(self.staying, unit)} that {choose_form(self.staying, 'stays', 'stay')} as before"
            )
        passing = f"; only those of {format_names(self.owners)} are withheld" if self.owners else ""
        return f"{change} (limit: {self.percent:g} %){passing}"


class MoveRate(NamedTuple):
    """What the output branch records about moves that observations alone cause: when the current period started, None without one; how
    many decisions moved workloads in it, by scope such as "fleet" and "namespace web"; and the moves that wait, by workload as text, each
    with the digest of its clusters."""

    start: datetime | None = None
    passed: Mapping[str, int] = {}
    waiting: Mapping[str, str] = {}


NO_RATE = MoveRate()


class WithheldChanges(NamedTuple):
    """Changes that a run leaves out: the moves, the limits that they exceed, and the digest that allows exactly these moves.

    `freeze` says why all placements are frozen, or is "", and `lift` how to end that. `unavailable` are the clusters that workloads have to
    leave, with the reason. `waiting` are moves that observations alone cause and that a later period makes, which starts at `next_period`.
    `rate` is what the output branch records about such moves. In a comparison, `of_base` are the moves that are left out of the base as
    well; they are not in `moves`, and the digest allows them, too. `doubted` are the clusters that only facts make unready, if these are so
    many that the moves away from there are left out. `companions` are the workloads of these moves that only follow others: they go where
    the others stay.
    """

    moves: tuple[Move, ...] = ()
    limits: tuple[ExceededLimit, ...] = ()
    digest: str = ""
    freeze: str = ""
    waiting: tuple[Move, ...] = ()
    next_period: datetime | None = None
    rate: MoveRate = NO_RATE
    of_base: tuple[Move, ...] = ()
    lift: str = ""
    unavailable: Mapping[str, str] = {}
    doubted: frozenset[str] = frozenset()
    companions: frozenset[Key] = frozenset()

    @property
    def withheld_by(self) -> str:
        """What withholds the moves: the freeze or the guard."""
        return "the freeze" if self.freeze else "the guard"

    @property
    def kept(self) -> tuple[Move, ...]:
        """All moves that are left out of workloads that do not only follow others: they keep their placement."""
        return tuple(move for move in (*self.moves, *self.waiting) if move.key not in self.companions)

    def compare(self, base: WithheldChanges) -> WithheldChanges:
        """Return the same with the moves apart that are left out of a base as well, and without limits that these exceed alone."""
        known = {move.key: (move.before, move.after) for move in base.moves}
        own, of_base = (
            tuple(move for move in self.moves if (known.get(move.key) == (move.before, move.after)) is wanted)
            for wanted in (False, True)
        )
        return self._replace(moves=own, of_base=of_base, limits=tuple(limit for limit in self.limits if limit not in base.limits))

    def allow(self) -> WithheldChanges:
        """Return what is still left out where exactly these moves are allowed."""
        return WithheldChanges(waiting=self.waiting, next_period=self.next_period, rate=self.rate)

    @property
    def is_doubted(self) -> bool:
        """Whether facts alone cause the moves, as where these are no longer collected."""
        return any(limit.effect == "clustersUnready" for limit in self.limits)

    @property
    def requested_clusters(self) -> Mapping[Key, Collection[str]]:
        """The clusters that workloads would have with the moves that are left out."""
        return {move.key: move.after.keys() for move in self.kept}

    @property
    def requested(self) -> tuple[Move, ...]:
        """The moves that do not only follow from doubted facts."""
        return tuple(move for move in self.moves if self.doubted.isdisjoint(move.before.keys() - move.after.keys()))

    @property
    def allowance(self) -> str:
        """How to allow exactly these moves, as an imperative. Where facts alone cause them, whether these are collected comes first."""
        first = "first check that gitsched collect runs, because new facts end this by themselves; then " if self.is_doubted else ""
        return f"{first}add the trailer {ALLOW_TRAILER}: {self.digest} to a commit, or pass --allow {self.digest}"


NOTHING_WITHHELD = WithheldChanges()


class RecordChange(NamedTuple):
    """A recorded decision that is added, changed or removed: `subject` gets other targets of the kind `target_kind`, a noun.

    `before` and `after` are empty without a decision. `causes` are as those of a Move. `reason` is one line for a change without a cause.
    `intended`: the source does not have the subject any more.
    """

    subject: Key
    target_kind: str
    before: tuple[RecordTarget, ...]
    after: tuple[RecordTarget, ...]
    api: str = ""
    causes: tuple[Cause, ...] = ()
    reason: str = ""
    intended: bool = False


class UnplacedObject(NamedTuple):
    """An object that no cluster gets, and that the base does not have or did not leave unplaced. `selected`: a policy selects it, and no
    cluster fits. The text of the cause says why, and its location where."""

    key: Key
    selected: bool
    cause: Cause


LEFT_IN_PLACE: Final = "would leave it where it is"
"""The end of a remedy without effect."""


class RetainedWorkload(NamedTuple):
    """A workload that a change affects and that keeps its clusters because of the previous decision.

    `current` are its clusters, `if_rescheduled` the clusters that a first decision would give now, with the replicas that a rebalance
    gives them if it chooses the same clusters. `remedy` says how to move it there. `causes` are changes of the documents that are closest
    to it: its own, its policy and clusters.
    """

    key: Key
    current: Mapping[str, int | None]
    if_rescheduled: Mapping[str, int | None]
    remedy: str
    causes: tuple[Cause, ...] = ()

    @property
    def can_move(self) -> bool:
        """Whether a request to reschedule it has an effect."""
        return not self.remedy.endswith(LEFT_IN_PLACE)


AwaitedReplacement = Literal["", "rescheduling", "fit"]
"""What has another cluster replace a copy: a request to reschedule the workload, without which no run does, or a cluster that fits."""


class RetainedCopy(NamedTuple):
    """A copy of a workload in a cluster that it leaves, or where it gets fewer replicas: the manifests at `paths` on the output branch stay
    as they are, with their `replicas`.

    `start` is the time from which its replacement is delivered; None while there is none. `counted_from` is the time from which the overlap
    counts, None while the replacement is reported unhealthy, and `until` its end; None without a replacement, and while a move is withheld
    that would place the workload there again. A copy that `follows` another workload stays as long as that one requires it: the workload
    has another name now, or the other one brought it along. A `preserved` one has no replacement: the object is kept in its cluster, and
    `until` is when its manifest leaves the output branch. `awaits` says what a copy without a replacement waits for, where findings say
    that; it is not recorded. One from whose cluster the workload is evicted stays until that ends, too: `release` says what ends it where
    no time does.
    """

    workload: Key
    cluster: str
    replicas: int | None
    paths: tuple[str, ...]
    start: datetime | None = None
    counted_from: datetime | None = None
    until: datetime | None = None
    follows: Key | None = None
    preserved: bool = False
    release: str = ""
    awaits: AwaitedReplacement = ""


class CopyRetention(NamedTuple):
    """The copies that the output has only for an overlap, those whose overlap ends in this run, and findings. It `is_settled` if the next
    run retains the same as long as nothing moves and no end passes."""

    copies: tuple[RetainedCopy, ...] = ()
    ended: tuple[RetainedCopy, ...] = ()
    findings: tuple[Finding, ...] = ()
    is_settled: bool = False


NOTHING_RETAINED = CopyRetention()


class ManifestChange(NamedTuple):
    """One manifest that is added, changed or removed; clusters with the same text are combined.

    `path` is below a cluster's directory. `before` and `after` are blob ids; None: no such file. `diff` is the unified diff
    without its head; for a manifest that is new in a cluster, against the manifest of another cluster (`copied`: its name), else
    against nothing. "" when the texts are equal, and when `note` says why it is not shown.
    """

    path: str
    clusters: tuple[str, ...]
    before: str | None
    after: str | None
    diff: str = ""
    copied: str = ""
    note: str = ""

    @property
    def verb(self) -> str:
        """ "added", "removed" or "changed"."""
        return "added" if self.before is None else "removed" if self.after is None else "changed"


class ImageChange(NamedTuple):
    """An image of containers that another one replaces, "" for none: the relative paths of the manifests, and the clusters that get it.
    `location` is where the source changes it, None if that is not known."""

    before: str
    after: str
    paths: tuple[str, ...]
    clusters: tuple[str, ...]
    location: Location | None = None


class SettingChange(NamedTuple):
    """A member of gitsched.yaml that differs from the trusted version of the file.

    `change` is the member, such as output.branch, with its values. `effect` says what the change does and when. A `sensitive` one concerns
    where decisions go, what is contacted, which secrets are read, or what is withheld.
    """

    change: ChangedField
    effect: str
    sensitive: bool

    @property
    def text(self) -> str:
        """The change on one line, without its effect."""
        path, before, after, _ = self.change
        if not (before or after):
            return path  # stands for several members
        return f"{path}: {before or '(not set)'} -> {after or '(not set)'}"
