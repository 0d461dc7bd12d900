"""What a policy API contributes when a running fleet is adopted: the kinds of its hub, and records made from what runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.hub_comparison import HubComparison
    from gitsched.model.adoption import AdoptedRecord, ClusterReplicas, RunningObjects
    from gitsched.model.document import Body, Document, Key


class HubDelivery(NamedTuple):
    """The manifests that a hub applies in one cluster."""

    cluster: str
    manifests: tuple[Body, ...]


class HubObjects(NamedTuple):
    """The kinds in which a hub of the API records its decisions (`records`) and delivers manifests (`deliveries`), as (group, kind).

    `reduce_record` returns what is kept of a record, `read_placement` the object that a record places and its clusters (None for another
    record), and `read_delivery` what a delivery applies (None where it is not for a cluster). `load_comparison` returns how
    `gitsched shadow` compares decisions with those of the hub; it is None for a hub whose records are its documents.
    """

    records: frozenset[tuple[str, str]]
    deliveries: frozenset[tuple[str, str]]
    reduce_record: Callable[[Body], Body]
    read_placement: Callable[[Body], tuple[Key, ClusterReplicas] | None]
    read_delivery: Callable[[Body], HubDelivery | None]
    load_comparison: Callable[[], HubComparison] | None = None


@runtime_checkable
class Adopting(Protocol):
    """Capability of an engine that can start from what runs in a fleet."""

    def adopt(self, workloads: Iterable[Document], running: RunningObjects, /) -> Iterable[AdoptedRecord]:
        """Return the records of workloads that policies of this API select, and of its own decisions, as the hub has them or as they
        follow from where the workloads run. A workload that runs nowhere has none."""
        ...
