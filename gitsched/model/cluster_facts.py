"""Facts about a cluster that were observed in it: readiness, version, APIs and resources; and what a collector found besides."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from gitsched.model.time import EPOCH
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.finding import Finding

FACTS_KIND: Final = ("gitsched.io", "ClusterFacts")
"""Group and kind of the document with facts, which is cluster-scoped and has the name of the cluster."""
MAX_SKEW: Final = timedelta(minutes=5)
"""How far the clock of what observed a cluster may be ahead without a finding."""
TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"
NO_NEW_PLACEMENTS: Final = "noNewPlacements"
EVICT: Final = "evict"
StaleRule = Literal["keep", "noNewPlacements", "evict"]
"""How a cluster with stale facts is treated: as before; it gets no new workloads; or workloads leave it."""


class Readiness(NamedTuple):
    """Whether a cluster is ready: `status` is True, False or Unknown, as in a condition. `since` is when it changed."""

    status: str
    reason: str = ""
    message: str = ""
    since: datetime | None = None


class NodeCount(NamedTuple):
    """The number of nodes, and of those that are ready."""

    total: int
    ready: int


class ClusterFacts(NamedTuple):
    """What was observed in a cluster at a time. A member that was not observed is None or empty.

    `apis` are the kinds by group and version, such as apps/v1. Amounts are quantities by resource name: `allocated` are the requests of
    the pods that run or wait. `grades` are the numbers of nodes by grade of the resource models of a Karmada hub.
    """

    cluster: str
    observed: datetime
    readiness: Readiness | None = None
    version: str = ""
    apis: Mapping[str, tuple[str, ...]] = {}
    capacity: Mapping[str, str] = {}
    allocatable: Mapping[str, str] = {}
    allocated: Mapping[str, str] | None = None
    nodes: NodeCount | None = None
    grades: Mapping[int, int] = {}


class CollectedCluster(NamedTuple):
    """A cluster as a collector found it: its facts, and what belongs to its document in the source, which people own.

    `taints` are those that people set, as entries of spec.taints. `claims` are properties by name.
    """

    facts: ClusterFacts
    labels: Mapping[str, str] = {}
    region: str = ""
    provider: str = ""
    zones: tuple[str, ...] = ()
    taints: tuple[Mapping[str, Any], ...] = ()
    claims: Mapping[str, str] = {}


class AppliedFacts(NamedTuple):
    """What a plan keeps of the facts branches besides their documents: a digest of what was read, and the findings about them.

    `stale_since` is the last time at which stale facts changed how a cluster is treated, 1970 if none did; `wakeup` is the next one. Before
    `valid_until` the same branches and clusters give the same documents and findings; None is never reached, and 1970 stands for what a
    later run always reads again. `are_timed` says that there are facts about clusters, so that a plan depends on the time.
    """

    digest: str = ""
    findings: tuple[Finding, ...] = ()
    stale_since: datetime = EPOCH
    wakeup: datetime | None = None
    valid_until: datetime | None = None
    are_timed: bool = False


NO_FACTS = AppliedFacts()
"""What a plan keeps where there are no facts branches."""
