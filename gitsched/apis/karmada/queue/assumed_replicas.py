"""What counts as placed on clusters although the facts about them may not have it yet.

An entry ends five minutes after the binding was placed, and where the workload became healthy.

Source: karmada/pkg/scheduler/cache/cache.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from gitsched.apis.karmada.components import read_bound_components
from gitsched.apis.karmada.interpreter import read_pods
from gitsched.model.document import Body, Key, as_object, get_field, list_objects
from gitsched.model.scheduling import EqualPods
from gitsched.model.time import add_duration, parse_time
from gitsched.named_tuples import NamedTuple

ASSUMED_FOR: Final = timedelta(minutes=5)


class AssumedReplicas(NamedTuple):
    """What a binding (namespace/name) has on a cluster, until a time."""

    binding: str
    cluster: str
    pods: tuple[EqualPods, ...]
    expires: datetime


def read_in_flight(entries: Iterable[Mapping[str, object]]) -> Iterator[AssumedReplicas]:
    """Yield what a scheduler has in its memory, as the setting `inFlight` lists it; entries without a time are left out."""
    for entry in entries:
        expires = parse_time(entry.get("expiresAt"))
        if expires is not None:
            pods = _list_pods(entry.get("components"))
            yield AssumedReplicas(str(entry.get("binding")), str(entry.get("cluster")), pods, expires)


def derive_assumed(binding: Key, record: Body) -> Iterator[AssumedReplicas]:
    """Yield what a binding of the last run has where its cluster does not report it as healthy."""
    spec, status = as_object(record.get("spec")), as_object(record.get("status"))
    scheduled = parse_time(status.get("lastScheduledTime"))
    if scheduled is None or not binding.namespace:
        return
    healthy = {
        str(one.get("clusterName")) for one in list_objects(status.get("aggregatedStatus")) if one.get("health") == "Healthy"
    }
    for cluster in list_objects(spec.get("clusters")):
        name = str(cluster.get("name"))
        if name not in healthy:
            pods = list_bound_pods(spec, cluster)
            yield AssumedReplicas(f"{binding.namespace}/{binding.name}", name, pods, add_duration(scheduled, ASSUMED_FOR))


def list_bound_pods(spec: Body, cluster: Body) -> tuple[EqualPods, ...]:
    """Return the pods that a binding has on one of its clusters: its replicas there, or all of its components. None of an object that is no
    workload."""
    if spec.get("components"):
        return _list_pods(spec["components"])
    replicas, request = cluster.get("replicas"), get_field(spec, "replicaRequirements", "resourceRequest")
    return (read_pods(replicas, request),) if isinstance(replicas, int) and replicas else ()


def _list_pods(components: object) -> tuple[EqualPods, ...]:
    return tuple(one.pods for one in read_bound_components(components))
