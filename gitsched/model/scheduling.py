"""One workload through the scheduler: the Request, the Decision of the scheduler, and the Outcome with its target clusters and
records."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple

from gitsched.model.document import Body, Key
from gitsched.model.finding import Finding
from gitsched.model.labels import Requirement, Selector
from gitsched.model.taints import Toleration

ReplicaDivision = Literal["everywhere", "duplicated", "static", "dynamic", "aggregated"]
"""How replicas are assigned to the chosen candidates; "everywhere" is for what has no replicas."""


class Affinity(NamedTuple):
    """A set of candidates. Everything must hold; `exclude` wins over `names`; no names at all means any name.

    `labels` is None when nothing is asked of them. `invalid` marks a selector that Kubernetes would refuse: it matches nothing.
    """

    names: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    labels: Selector | None = None
    fields: tuple[Requirement, ...] = ()
    invalid: bool = False


class AffinityGroup(NamedTuple):
    """One of the ordered groups. `affinity` None means every candidate; `name` is "" for the only, unnamed group.

    `overflow` are further sets that may be used when the group's own is full, in order.
    """

    name: str
    affinity: Affinity | None
    overflow: tuple[Affinity, ...] = ()


class StaticWeight(NamedTuple):
    """A static weight for the candidates of a set."""

    affinity: Affinity
    weight: int


class SpreadConstraint(NamedTuple):
    """Spread over the values of a field ("cluster", "region", ...) or, with field "", of a label. A maximum of 0 was not given."""

    field: str
    minimum: int
    maximum: int


class Assignment(NamedTuple):
    """A chosen candidate; `replicas` is 0 for what has none."""

    name: str
    replicas: int = 0


class Request(NamedTuple):
    """One workload to be placed.

    `identity` breaks ties of the dispenser ("" means by name, ascending). `replicas` counts; `divides` tells whether the policy shares
    them out, be there any or not; `demand` is what one replica asks for, as (resource, amount) with cpu in thousandths and everything else
    in whole units, or None when it asks for nothing but a pod. `groups` are tried in order from `start`. `feature`
    is what a candidate must serve (apiVersion, kind). `fields` must be non-empty on a candidate. `evicted` names candidates that may not
    be used. `held` is the last result, in its order. `fresh` forgets it when dividing.
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


DecisionStatus = Literal["scheduled", "no-fit", "unschedulable", "error"]
"""no-fit: no candidate passes the filters; unschedulable: too little room; error: the constraints cannot be met."""


class Decision(NamedTuple):
    """`group` is the name of the ordered group that succeeded; `message` says why where nothing did."""

    status: DecisionStatus
    assignments: tuple[Assignment, ...]
    group: str
    message: str


class CandidateResult(NamedTuple):
    """How one candidate fared: for `explain`. `total` is None where the candidate was not scored."""

    name: str
    eligible: bool
    reason: str
    scores: dict[str, float]
    total: float | None


class TargetCluster(NamedTuple):
    """One cluster that receives the workload; `replicas` is None for what has none. `body` is the manifest there, where it is another one
    than the workload's own.

    `leaving` marks a copy that only stays until a graceful eviction ends. `edits` are the counts that this cluster's manifest says
    otherwise than the source, by their path of members ("spec.replicas"). `kept` says that the cluster's manifest is the one of the last
    run, whatever the source says; where there was none, nothing is rendered. So it is while deliveries are suspended, for one.
    """

    cluster: str
    replicas: int | None = None
    evicting: bool = False
    edits: tuple[tuple[str, int], ...] = ()
    body: Body | None = None
    keeps_manifest: bool = False


class Outcome(NamedTuple):
    """`state` is "placed", "pending" (selected, but without a place) or "stale" (the previous decision is kept, the input being broken).

    `documents` are the API's resources as its server would show them. `reason` is one line for people. `time` is the moment of the event
    that caused the present decision.
    `cause` says what made it be placed anew, where that is no change of its own or of its policy; it is told, never written. `before` is
    where the last run had placed it. `manifests` are rendered in place of the workload's own document, where not None.
    `former` are objects that earlier manifests had: a place that is kept has them still.
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
    wakeup: datetime | None = None
    findings: tuple[Finding, ...] = ()
    previous_targets: tuple[TargetCluster, ...] = ()
    manifests: tuple[tuple[Key, Body], ...] | None = None
    trigger: str = ""
    previous_objects: tuple[Key, ...] = ()

    @property
    def replicas_by_cluster(self) -> dict[str, int | None]:
        """Where it runs, without copies that are on their way out."""
        return {place.cluster: place.replicas for place in self.targets if not place.evicting}
