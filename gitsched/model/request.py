"""What the scheduler is asked: one request a workload and API, in terms that no API owns."""

from __future__ import annotations

from typing import Literal, NamedTuple

from gitsched.model.labels import Requirement, Selector
from gitsched.model.taints import Toleration

Division = Literal["everywhere", "duplicated", "static", "dynamic", "aggregated"]
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


class Group(NamedTuple):
    """One of the ordered groups. `affinity` None means every candidate; `name` is "" for the only, unnamed group.

    `overflow` are further sets that may be used when the group's own is full, in order.
    """

    name: str
    affinity: Affinity | None
    overflow: tuple[Affinity, ...] = ()


class Weight(NamedTuple):
    """A static weight for the candidates of a set."""

    affinity: Affinity
    weight: int


class Spread(NamedTuple):
    """Spread over the values of a field ("cluster", "region", ...) or, with field "", of a label. A maximum of 0 was not given."""

    field: str
    minimum: int
    maximum: int


class Target(NamedTuple):
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
    division: Division
    groups: tuple[Group, ...]
    start: int = 0
    divides: bool = False
    demand: tuple[tuple[str, int], ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    feature: tuple[str, str] | None = None
    fields: tuple[str, ...] = ()
    evicted: tuple[str, ...] = ()
    held: tuple[Target, ...] = ()
    weights: tuple[Weight, ...] = ()
    spreads: tuple[Spread, ...] = ()
    fresh: bool = False
    keep_empty: bool = False
