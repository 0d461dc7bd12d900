"""One workload through the scheduler: the Request, the Decision of the scheduler, and the Outcome with its target clusters and
records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.document import Body, Key
    from gitsched.model.finding import Finding
    from gitsched.model.holds import HeldPlacement
    from gitsched.model.labels import Requirement, Selector
    from gitsched.model.taints import Toleration

ReplicaDivision = Literal["everywhere", "duplicated", "static", "dynamic", "aggregated"]
"""How replicas are assigned to the chosen candidates; "everywhere" is for workloads without replicas."""


class Affinity(NamedTuple):
    """A set of candidates. All conditions must hold; `exclude` takes precedence over `names`; without names any name matches.

    `labels` is None without a label selector. `invalid` marks a selector that Kubernetes would reject: it matches nothing.
    """

    names: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    labels: Selector | None = None
    fields: tuple[Requirement, ...] = ()
    invalid: bool = False


class AffinityGroup(NamedTuple):
    """One of the ordered groups. `affinity` None means every candidate; `name` is "" for a single, unnamed group.

    `overflow` are further sets, used in order when the group's own candidates are full.
    """

    name: str
    affinity: Affinity | None
    overflow: tuple[Affinity, ...] = ()


class StaticWeight(NamedTuple):
    """A static weight for the candidates of a set."""

    affinity: Affinity
    weight: int


CLUSTER_FIELD, REGION_FIELD = "cluster", "region"
"""The fields of spread constraints over clusters and regions."""


class SpreadConstraint(NamedTuple):
    """Spread over the values of a field (spreadByField: "cluster", "region" and so on) or, with field "", of a label (spreadByLabel). A
    maximum of 0 means no maximum."""

    field: str
    minimum: int
    maximum: int


class Assignment(NamedTuple):
    """A selected candidate; `replicas` is 0 for a workload without replicas."""

    name: str
    replicas: int = 0


def make_assignments(pairs: Iterable[tuple[str, int]]) -> tuple[Assignment, ...]:
    """Return assignments of names and replicas. A NamedTuple's own constructor is slow, and a workload may go to a thousand clusters."""
    return tuple(map(tuple.__new__, repeat(Assignment), pairs))


class CandidateVariant(NamedTuple):
    """What some candidates get of a workload that differs between candidates.

    `resource_request` is that of one replica there, as in `Request`, and `required_apis` are the APIs (apiVersion, kind) that these
    candidates must serve. A `broken` variant stays where it is, and no other candidate gets it; `reason` says what these candidates lack,
    and is "" if the variant cannot be built.
    """

    names: frozenset[str]
    resource_request: tuple[tuple[str, int], ...] | None = None
    required_apis: frozenset[tuple[str, str]] = frozenset()
    broken: bool = False
    reason: str = ""


class PeerClusters(NamedTuple):
    """Names of candidates that follow from where other workloads are: those that all workloads of the affinity group share (None: any), and
    those that a workload of the anti-affinity group has."""

    shared: frozenset[str] | None = None
    taken: frozenset[str] = frozenset()


class EqualPods(NamedTuple):
    """A number of equal pods, each with the same request (None: only a pod). `decimal` are the resources whose amount is not
    written with Ki, Mi and so on."""

    replicas: int
    resource_request: tuple[tuple[str, int], ...] | None
    decimal: frozenset[str] = frozenset()


class PodSets(NamedTuple):
    """The pods of a workload with several pod templates. Only where one candidate gets it is it `estimated` how many sets fit; else pods
    without requests count."""

    pods: tuple[EqualPods, ...]
    estimated: bool


class Estimates(Protocol):
    """How much fits on each candidate, by index."""

    def __getitem__(self, index: int, /) -> int: ...


class CapacityEstimates(Protocol):
    """What is left on candidates at this moment."""

    def estimate_replicas(self, resource_request: tuple[tuple[str, int], ...] | None) -> Estimates: ...
    def estimate_sets(self, pods: tuple[EqualPods, ...]) -> Estimates: ...
    def read_capacity(self, index: int) -> Any: ...


class Request(NamedTuple):
    """One workload to schedule.

    `identity` breaks ties of the dispenser ("" means by name, ascending). `replicas` is their number; `divides` says whether the
    policy divides replicas; `resource_request` is the request of one replica, as (resource, amount) with cpu in thousandths and
    everything else in whole units, or None for only a pod. `groups` are tried in order from `first_group`. `required_api` is the
    API that a candidate must serve (apiVersion, kind). `required_fields` must be non-empty on a candidate. `evicted` are excluded
    candidates. `previous` is the previous result, in its order. `fresh` ignores it when dividing. `variants` are given for a workload
    that differs between candidates: only their candidates are eligible, and their requests and APIs replace those of the workload.
    `preferred` are candidates that come first among the eligible ones, the most preferred one first; None if the workload names none.
    `peers` are candidates that follow from where other workloads are. `room` is what is free on the candidates now, where that differs from
    their capacity. `sets` are given for a workload that every selected candidate gets whole.
    """

    identity: str
    replicas: int
    division: ReplicaDivision
    groups: tuple[AffinityGroup, ...]
    first_group: int = 0
    divides: bool = False
    resource_request: tuple[tuple[str, int], ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    required_api: tuple[str, str] | None = None
    required_fields: tuple[str, ...] = ()
    evicted: tuple[str, ...] = ()
    previous: tuple[Assignment, ...] = ()
    weights: tuple[StaticWeight, ...] = ()
    spread_constraints: tuple[SpreadConstraint, ...] = ()
    fresh: bool = False
    keep_empty: bool = False
    variants: tuple[CandidateVariant, ...] | None = None
    preferred: tuple[str, ...] | None = None
    peers: PeerClusters | None = None
    remaining: CapacityEstimates | None = None
    sets: PodSets | None = None

    def find_resource_request(self, name: str) -> tuple[tuple[str, int], ...] | None:
        """Return the request of one replica on a candidate."""
        for variant in self.variants or ():
            if name in variant.names:
                return variant.resource_request
        return self.resource_request


DecisionStatus = Literal["scheduled", "no-fit", "unschedulable", "error"]
"""no-fit: no candidate passes the filters; unschedulable: insufficient capacity; error: the constraints cannot be met."""


class Decision(NamedTuple):
    """The scheduler's decision: `group` is the name of the group that succeeded; `message` says why nothing did."""

    status: DecisionStatus
    assignments: tuple[Assignment, ...]
    group: str
    message: str


class CandidateResult(NamedTuple):
    """The result for one candidate, for `explain`. `total` is None for a candidate without a score."""

    name: str
    eligible: bool
    reason: str
    scores: dict[str, float]
    total: float | None


class MarkedCount(int):
    """A number of replicas with a mark: no number without it, or with another one, is equal."""

    __slots__ = ()

    def __eq__(self, other: object, /) -> bool:
        return type(other) is type(self) and int(self) == int(other)

    def __ne__(self, other: object, /) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((type(self), int(self)))


class AtLeast(MarkedCount):
    """A number of replicas that is only the least one: an autoscaler of the cluster, or what it builds itself, may add to it. As text it is
    marked: `2+`."""

    __slots__ = ()

    def __format__(self, spec: str, /) -> str:
        return f"{int(self):{spec}}+"

    def __str__(self) -> str:
        return f"{self}"


class Unknown(MarkedCount):
    """0 as the number of replicas of what a cluster builds itself, such as a HelmRelease: no manifest says how many it has. As text it is
    `?`."""

    __slots__ = ()

    def __format__(self, spec: str, /) -> str:
        return "?"

    def __str__(self) -> str:
        return "?"


UNKNOWN: Final = Unknown()


def add_replicas(counts: Iterable[int | None]) -> int | None:
    """Return the sum of numbers of replicas, `AtLeast` that if one of them is no exact number, UNKNOWN if there is no other; None if no
    number is given."""
    known = [count for count in counts if count is not None]
    if not any(isinstance(count, MarkedCount) for count in known):
        return sum(known) if known else None
    return UNKNOWN if all(isinstance(count, Unknown) for count in known) else AtLeast(sum(known))


def total_replicas(counts: Iterable[int | None]) -> int:
    """Return the sum of numbers of replicas with its mark, as `add_replicas`; 0 if no number is given."""
    total = add_replicas(counts)
    return 0 if total is None else total


def count_by_cluster(placements: Iterable[Mapping[str, int | None]]) -> dict[str, tuple[int, int]]:
    """Return the numbers of workloads and of their replicas in each cluster."""
    found: dict[str, list[int | None]] = {}
    for placement in placements:
        for name, replicas in placement.items():
            found.setdefault(name, []).append(replicas)
    return {name: (len(counts), total_replicas(counts)) for name, counts in found.items()}


def encode_replicas(replicas: int | None) -> int | str:
    """Return replicas as a value of JSON with their mark: 2, "2+" for a minimum, "?" where no manifest says how many, and
    "" without any."""
    if replicas is None:
        return ""
    return f"{replicas}" if isinstance(replicas, MarkedCount) else replicas


def decode_replicas(value: object) -> int | None:
    """Return the replicas that `encode_replicas` made a value of; None for any other value."""
    if type(value) is int and value >= 0:
        return value
    if value == "?":
        return UNKNOWN
    digits = value[:-1] if isinstance(value, str) and value.endswith("+") else ""
    return AtLeast(digits) if digits.isascii() and digits.isdigit() and len(digits) < 11 else None


def count_copies(replicas: Mapping[str, int | None], cluster: str) -> int:
    """Return the replicas in a cluster; a copy without a number, such as a whole set, counts as one."""
    count = replicas.get(cluster, 0)
    return 1 if count is None else count


def weigh_replicas(replicas: int | None) -> int:
    """Return how much a copy of a workload counts where it replaces another one: its replicas, and 1 where no manifest has a number, or
    where it may have more than none."""
    return 1 if replicas is None or (not replicas and isinstance(replicas, MarkedCount)) else replicas


class TargetCluster(NamedTuple):
    """One cluster that receives the workload. `body` is the manifest there if it differs from the workload's own.

    `replicas` are those of the delivered manifests; None for a workload without replicas. An API's own outcome has those that it assigns
    instead, None where it assigns none: see `gitsched.decide.delivered_replicas`. `minimum` is the number below which an autoscaler in the
    cluster does not go, None without one. A target that `waits` has nothing of the workload yet. `wanted` are the replicas that its API
    assigns, where the manifest does not change or does not have them because of an autoscaler; None for others.

    `workload` is the object that the `edits` are about, if it is not the workload itself but an object of its Bundle.
    `evicting` marks a copy that remains until a graceful eviction ends: `until` a time or, without a limit, by its `release`. `edits` are
    the counts in this cluster's manifest that differ from the source, by field path ("spec.replicas"). `keeps_manifest` keeps the
    cluster's manifest of the previous run, regardless of the source; without one nothing is rendered, unless it is `evicting`. This
    applies while dispatching is suspended, for example.
    `bodies` are the objects of its Bundle that differ from what the Bundle has, by key. A target with `copied_from` keeps the manifest of
    another cluster, which it has none of yet.
    """

    cluster: str
    replicas: int | None = None
    evicting: bool = False
    edits: tuple[tuple[str, int], ...] = ()
    body: Body | None = None
    keeps_manifest: bool = False
    workload: Key | None = None
    bodies: tuple[tuple[Key, Body], ...] = ()
    copied_from: str = ""
    minimum: int | None = None
    waits: bool = False
    wanted: int | None = None
    until: datetime | None = None
    release: str = ""


_TARGET_DEFAULTS = TargetCluster("")[2:]


def make_full_targets(assignments: Iterable[tuple[str, int]]) -> list[TargetCluster]:
    """Return the targets of assignments without edits, as fast as `make_assignments`."""
    fields = [(name, count or None, *_TARGET_DEFAULTS) for name, count in assignments]
    return list(map(tuple.__new__, repeat(TargetCluster), fields))


class RecordTarget(NamedTuple):
    """One target of a recorded decision: its name, and the amount that it gets, such as vreplicas; None if nothing is counted.

    `group` is the group of targets that it belongs to, or "". `key` identifies the document of the target; None if it has none.
    """

    name: str
    amount: int | None = None
    group: str = ""
    key: Key | None = None


class RecordedDecision(NamedTuple):
    """A decision whose only result is a record under status/, such as the cloud of a cluster: `subject` gets the `targets`.

    `target_kind` is a noun for one target, such as "cloud". A subject has at most one decision about each kind of target; targets are
    by group and name. `api` is the name of the policy API, "" before the record was assigned to it.
    """

    subject: Key
    target_kind: str
    targets: tuple[RecordTarget, ...]
    api: str = ""


WITHHELD_REASON: Final = "its change is withheld"
"""The reason of an outcome that keeps the previous decision because the guard or a freeze withholds a change."""


class Outcome(NamedTuple):
    """The result of a policy engine for one workload. `state` is "placed", "pending" (selected, but unplaced) or "stale" (the
    previous decision is kept because the input is invalid).

    `replicas` is the number of replicas that the API schedules, None if it schedules none; `unassigned` are those of a divided workload
    that no cluster gets, None for one that is not divided. `records` are the API's resources as its server would show them. `reason` is one
    line. `time` is the time of the event that caused the decision. `trigger` says what caused a rescheduling other than a change of the
    workload or its policy; it is shown but not recorded. `previous_targets` are the clusters of the previous run. `manifests` are rendered
    in place of the workload's own document, if not None. `previous_objects` are objects of previous manifests that retained clusters have.
    `bundles` are the Bundles whose variants are rendered, and `kept_paths` the paths that the previous output has of them by cluster,
    relative to its directory. `variant_paths` are the directories that clusters get it from, for a workload with variants.
    `released` are clusters that must lose their copy at once, whether or not another cluster has one. `held` says why
    a stateful workload keeps its clusters although its policy chooses others; None if it does not. `absent` are clusters without a
    document from which it is still being evicted; assignments to such clusters are findings. `has_preference`: it names clusters that it
    prefers, so what is reported about it may depend on any cluster. `waiting` are clusters that it is decided for and that have nothing of
    it until their turn in a rollout of its API. `suspended`: its API does not schedule it at present, so that it keeps its clusters.
    """

    key: Key
    api: str
    state: str
    policy: str
    group: str
    targets: tuple[TargetCluster, ...]
    replicas: int | None
    records: tuple[tuple[Key, Body], ...]
    reason: str
    time: datetime
    unassigned: int | None = None
    wakeup: datetime | None = None
    findings: tuple[Finding, ...] = ()
    previous_targets: tuple[TargetCluster, ...] = ()
    manifests: tuple[tuple[Key, Body], ...] | None = None
    trigger: str = ""
    previous_objects: tuple[Key, ...] = ()
    bundles: tuple[Key, ...] = ()
    kept_paths: Mapping[str, tuple[str, ...]] = {}
    variant_paths: Mapping[str, str] = {}
    released: frozenset[str] = frozenset()
    held: HeldPlacement | None = None
    absent: frozenset[str] = frozenset()
    has_preference: bool = False
    waiting: frozenset[str] = frozenset()
    suspended: bool = False

    @property
    def counted_state(self) -> str:
        """The state that it counts as. What keeps the previous decision because a change is withheld is placed as before, not stale."""
        if self.reason != WITHHELD_REASON:
            return self.state
        return "placed" if self.replicas_by_cluster else "pending"

    @property
    def stays_placed(self) -> bool:
        """Whether it keeps its placement whatever its policy says, unless it moves all the same."""
        return self.held is not None or self.suspended or self.state == "stale"

    @property
    def clusters(self) -> frozenset[str]:
        """All its clusters, also those with copies that are being evicted."""
        return frozenset(target.cluster for target in self.targets)

    @property
    def kept_clusters(self) -> set[str]:
        """Clusters that keep their manifest of the previous run, without copies that are being evicted."""
        return {target.cluster for target in self.targets if target.keeps_manifest and not target.evicting}

    @property
    def replicas_by_cluster(self) -> dict[str, int | None]:
        """Its clusters and the replicas that are delivered there, without copies that are being evicted."""
        return {target.cluster: target.replicas for target in self.targets if not (target.evicting or target.waits)}

    @property
    def previous_replicas(self) -> dict[str, int | None]:
        """Its clusters and the replicas that the previous output delivers there, without copies that are being evicted."""
        return {target.cluster: target.replicas for target in self.previous_targets if not (target.evicting or target.waits)}


def strip_outcome(outcome: Outcome) -> Outcome:
    """Return an outcome without the documents that only rendering needs."""
    targets = tuple(
        target._replace(edits=(), body=None, bodies=(), copied_from="")
        if target.edits or target.body or target.bodies or target.copied_from
        else target
        for target in outcome.targets
    )
    return outcome._replace(records=(), manifests=None, kept_paths={}, previous_targets=(), targets=targets)
