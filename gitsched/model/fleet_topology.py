"""Where the clusters of a fleet are, whether they can run workloads, and how much of their resources is in use."""

from __future__ import annotations

from gitsched.named_tuples import NamedTuple


class ResourceUse(NamedTuple):
    """A resource of a cluster: what it has for pods, and what pods request before the plan; None if that is not known.

    `change` is what this number changes with the plan, `added` what the plan adds to the requests, both negative for less. `reported` is
    what the cluster reports where the number is the least that is requested: more is placed, or nothing says when that was reported.
    Amounts are in thousandths of a core for cpu and in whole units otherwise, such as bytes.
    """

    resource: str
    allocatable: int
    used: int | None
    change: int = 0
    reported: int | None = None
    added: int = 0

    @property
    def share(self) -> float:
        """What is requested before the plan, in percent of what the cluster has."""
        return 100 * (self.used or 0) / self.allocatable

    @property
    def is_full(self) -> bool:
        """Whether nothing is free of the resource before the plan."""
        return self.used is not None and self.used >= self.allocatable


def round_share(percent: float) -> int:
    """Return a share in whole percent, 100 or more only where nothing is free."""
    return min(int(percent + 0.5), 99) if percent < 100 else int(percent + 0.5)


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


class SimulatedSite(NamedTuple):
    """A cluster before and after a simulated event: the numbers of its workloads and replicas, and its site before the event, of which the
    resources say what the event changes. The site of a cluster that the event adds is that after it."""

    site: ClusterSite
    workloads: tuple[int, int] = (0, 0)
    replicas: tuple[int, int] = (0, 0)
