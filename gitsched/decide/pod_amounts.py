"""How many pods one manifest runs, and what they request: by the table of kinds, and by the pod specs in manifests of other kinds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gitsched.apis.gitsched.config import Config
from gitsched.apis.replicas import count_copy_replicas
from gitsched.kinds.replicas import MAX_REPLICAS, ReplicaCount, read_replicas
from gitsched.kinds.table import find_kind
from gitsched.model.document import Body, Document, Key, as_object, get_field, list_objects, parse_api_group
from gitsched.model.pod_requests import sum_pod_requests
from gitsched.model.quantity import NANO, parse_quantity
from gitsched.named_tuples import NamedTuple

_COUNTS: Final = (
    "count",
    "instances",
    "maxReplicaCount",
    "maxReplicas",
    "minReplicas",
    "numOfHosts",
    "numWorkers",
    "parallelism",
    "replicas",
    "size",
)
"""Members that say how many pods run of what is beside or below them; the largest one of an object counts."""
_SHARDS: Final = "shards"
"""The member that multiplies the replicas beside it."""
_KEDA: Final = "keda.sh"
_KEDA_DEFAULT: Final = 100
"""Replicas that KEDA starts at most where maxReplicaCount is missing."""
_PAUSED: Final = "autoscaling.keda.sh/paused-replicas"
_KNATIVE: Final = "serving.knative.dev"
_KNATIVE_SCALES: Final = ("max-scale", "maxScale", "min-scale", "minScale", "initial-scale")
_UNKNOWN_AMOUNT: Final = 1 << 90
"""What a request counts that is not a quantity, in units of a nano."""


class PodAmounts(NamedTuple):
    """The replicas of a manifest, and what one of them requests on average, in units of a nano by resource."""

    replicas: int
    requests: Mapping[str, int]


class ScaleTarget(NamedTuple):
    """What an autoscaler scales, by group, kind and name, and the largest number of replicas."""

    group: str
    kind: str
    name: str
    replicas: int


def find_scale_target(body: Body) -> ScaleTarget | None:
    """Return what an object scales: it has a scaleTargetRef, or a workloadRef with replicas as a Rollout of Argo. None for others."""
    spec = as_object(body.get("spec"))
    reference = as_object(spec.get("scaleTargetRef")) or (as_object(spec.get("workloadRef")) if "replicas" in spec else {})
    if not reference:
        return None
    numbers = list(_list_scales(spec))
    if parse_api_group(str(body.get("apiVersion"))) == _KEDA:
        paused = parse_whole_number(as_object(get_field(body, "metadata", "annotations")).get(_PAUSED))
        numbers += [paused or 0, 0 if spec.get("maxReplicaCount") is not None else _KEDA_DEFAULT]
    group = parse_api_group(str(reference.get("apiVersion") or "apps/v1"))
    return ScaleTarget(group, str(reference.get("kind") or "Deployment"), str(reference.get("name") or ""), max(numbers, default=0))


def _list_scales(spec: Body) -> Iterator[int]:
    """Yield the numbers of replicas that an autoscaler names."""
    rest: list[tuple[object, bool]] = [(spec, False)]
    while rest:
        value, named = rest.pop()
        if isinstance(value, dict):
            rest += [(member, named or "replica" in str(name).lower()) for name, member in value.items()]
        elif isinstance(value, list):
            rest += [(member, named) for member in value]
        elif named and (number := parse_whole_number(value)) is not None:
            yield number


def measure_pods(key: Key, body: Body, config: Config) -> PodAmounts | None:
    """Return the pods of a manifest in its full size; None if it runs none.

    Pod specs are searched in all of it, since its kind may be unknown: the numbers of replicas around one are multiplied.
    """
    if key[:2] == ("", "Pod"):
        return PodAmounts(1, _sum_requests(as_object(body.get("spec"))))
    declared = config.pod_paths.get((parse_api_group(str(body.get("apiVersion"))), key.kind))
    own = get_field(body, *declared) if declared else None
    units = list(_list_units(body)) + ([(1, _sum_requests(own))] if isinstance(own, dict) else [])
    row = find_kind(key.group, key.kind)
    counted = read_replicas(body, row.replicas) if row is not None and row.replicas is not None else None
    number = count_copy_replicas([body], config)
    if not units and counted is None and number is None:
        return None
    if counted is not None:
        units += [(0, _sum_requests(pod)) for pod in counted.pods if isinstance(pod, dict)]
        units += [(0, _read_quantities(resources, 0)) for resources in counted.resources]
    replicas = max(sum(count for count, _ in units), number or 0, counted.replicas if counted is not None else 0)
    if key.group == _KNATIVE:
        replicas = _read_knative_scale(body)
    return PodAmounts(min(replicas, MAX_REPLICAS), _average(units, counted))


def runs_pods(document: Document, config: Config) -> bool:
    """Return whether an object runs pods, by what it says itself: not what Flux or Argo CD build, or a ConfigMap contains."""
    if not document.key.group and document.key.kind != "Pod":
        return False
    pods = measure_pods(document.key, document.body, config)
    return pods is not None and pods.replicas > 0


def _average(units: list[tuple[int, dict[str, int]]], counted: ReplicaCount | None) -> dict[str, int]:
    """Return what one replica requests: on average of those with a number, else the largest amounts."""
    names = {name for _, requests in units for name in requests}
    total = sum(count for count, _ in units)
    weighs = total > 0 and (counted is None or total >= counted.replicas)
    if weighs:
        return {name: -(-sum(count * requests.get(name, 0) for count, requests in units) // total) for name in names}
    return {name: max(requests.get(name, 0) for _, requests in units) for name in names}


def _list_units(body: Body) -> Iterator[tuple[int, dict[str, int]]]:
    """Yield the number of pods of each pod spec in a manifest, and what one requests."""
    rest: list[tuple[object, int]] = [
        (value, _KEDA_DEFAULT if _is_unlimited_job(body) else 1)
        for name, value in body.items()
        if name not in ("metadata", "status")
    ]
    while rest:
        value, factor = rest.pop()
        if isinstance(value, list):
            rest += [(entry, factor) for entry in value]
        elif isinstance(value, dict):
            counts = [number for name in _COUNTS if (number := parse_whole_number(value.get(name))) is not None]
            factor *= max(counts, default=1) * (parse_whole_number(value.get(_SHARDS)) or 1)
            found = _read_unit(value, bool(counts))
            if found is not None:
                yield min(factor, MAX_REPLICAS), found
            else:
                rest += [(member, min(factor, MAX_REPLICAS)) for member in value.values() if isinstance(member, (dict, list))]


def _is_unlimited_job(body: Body) -> bool:
    is_scaled = body.get("kind") == "ScaledJob" and parse_api_group(str(body.get("apiVersion"))) == _KEDA
    return is_scaled and get_field(body, "spec", "maxReplicaCount") is None


def _read_unit(value: Body, counted: bool) -> dict[str, int] | None:
    """Return what a pod requests that an object describes: a pod spec, a template of Argo with one container, or resources beside a number
    of replicas. None for other objects."""
    if list_objects(value.get("containers")):
        return _sum_requests(value)
    single = as_object(value.get("container"))
    if "image" in single:
        return _sum_requests({**value, "containers": [single, *list_objects(value.get("sidecars"))]})
    resources = as_object(value.get("resources"))
    if counted and ("requests" in resources or "limits" in resources):
        return _read_container(value)
    cores = parse_whole_number(value.get("cores")) if counted else None
    return None if cores is None else {"cpu": cores * NANO}  # executors of Spark


def _read_knative_scale(body: Body) -> int:
    """Return the largest number of pods of a Service of Knative; without a maximum there is no limit."""
    found = as_object(get_field(body, "spec", "template", "metadata", "annotations"))
    scales = {name: parse_whole_number(found.get(f"autoscaling.knative.dev/{name}")) or 0 for name in _KNATIVE_SCALES}
    return max(scales.values()) if scales["max-scale"] or scales["maxScale"] else MAX_REPLICAS


def parse_whole_number(value: Any) -> int | None:
    """Return a whole number from 0, also one that is written as text or as 1000.0; None for anything else."""
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) < 20 else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if value >= 0 and value == value // 1 else None


def _sum_requests(pod: Body) -> dict[str, int]:
    """Return what a pod requests; limits stand for missing requests."""
    return sum_pod_requests(pod, _read_container, _read_quantities(pod.get("overhead"), _UNKNOWN_AMOUNT))


def _read_container(container: Body) -> dict[str, int]:
    resources = as_object(container.get("resources"))
    limits, requests = (_read_quantities(resources.get(member), _UNKNOWN_AMOUNT) for member in ("limits", "requests"))
    return {**limits, **requests}


def _read_quantities(value: object, unknown: int) -> dict[str, int]:
    """Return amounts in units of a nano; `unknown` stands for what is no quantity."""
    parsed = {name: parse_quantity(text) for name, text in as_object(value).items() if text is not None}
    return {name: max(quantity.nano, 0) if quantity is not None else unknown for name, quantity in parsed.items()}
