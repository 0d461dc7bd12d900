"""Where the clusters of a fleet are, whether they can run workloads, and how much of their resources is in use."""

from __future__ import annotations

from gitsched.named_tuples import NamedTuple


class ResourceUse(NamedTuple):
    """A resource of a cluster: what it has for pods, and what pods request; None if nobody reports that.

    `change` is what the plan adds to the requests, negative for less; the report of the cluster does not have it yet. Amounts are in
    thousandths of a core for cpu and in whole units otherwise, such as bytes.
    """

    resource: str
    allocatable: int
    used: int | None
    change: int = 0


class ClusterSite(NamedTuple):
    """A cluster with its location, "" and () where it is unknown. `unavailable` is the reason why it runs no workloads, or "";
    `is_drained`: it is a taint that people have set."""

    name: str
    region: str = ""
    provider: str = ""
    zones: tuple[str, ...] = ()
    unavailable: str = ""
    resources: tuple[ResourceUse, ...] = ()
    is_drained: bool = False
