"""Read the groups of pods of a manifest that is placed as a whole set, by the table of kinds.

Source: karmada/pkg/resourceinterpreter/default/thirdparty/resourcecustomizations, componentResource.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gitsched.kinds.kind import Component, Kind
from gitsched.kinds.replicas import MAX_REPLICAS, parse_count, read_component
from gitsched.model.document import Body, as_object, get_field, list_objects
from gitsched.named_tuples import NamedTuple

_SPARK = "sparkoperator.k8s.io/v1beta2/SparkApplication"
_SPARK_UNITS = {"k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_MIN_OVERHEAD = 384 << 20


class ComponentPods(NamedTuple):
    """A group of pods: their number, and the pod spec of one, or the `resources` that one requests where there is no pod template."""

    name: str
    replicas: int
    pod: Body | None
    resources: Body | None = None


def read_components(body: Body, kind: Kind) -> tuple[ComponentPods, ...] | None:
    """Return the groups of pods of a manifest; None if a number of pods is something else than a number."""
    if kind.interpreter == _SPARK:
        return _read_spark(body)
    common = as_object(get_field(body, *kind.replicas.pod_spec.split("."))) if kind.replicas and kind.replicas.pod_spec else {}
    fields = kind.replicas.pod_fields if kind.replicas is not None else ()
    claim = {name: common[name] for name in fields if name in common}
    found = []
    for component in kind.components:
        for name, entry in _find_entries(body, component):
            replicas = read_component(
                component._replace(default=dict(component.absent).get(name.lower(), component.default)), entry, body
            )
            if replicas is None:
                return None
            pod = get_field(entry, *component.pod_template.split("."), "spec") if component.pod_template else claim
            resources = as_object(get_field(entry, *component.resources.split("."))) if component.resources else None
            found.append(ComponentPods(name, min(replicas, MAX_REPLICAS), pod if isinstance(pod, dict) else None, resources))
    return tuple(found)


def _find_entries(body: Body, component: Component) -> Iterator[tuple[str, Body]]:
    """Yield the objects that describe a component, with the name of each."""
    path = component.path
    if not path:
        yield component.name, body
        return
    found = get_field(body, *path.removesuffix(".*").removesuffix("[]").split("."))
    entries: list[tuple[Any, Any]] = [("", found)]
    if path.endswith("*"):
        entries = sorted(as_object(found).items())
    elif path.endswith("[]"):
        entries = list(enumerate(list_objects(found), component.first))
    for number, entry in entries:
        if isinstance(entry, dict) and (not component.template_required or entry.get(component.pod_template)):
            own = entry.get(component.name_field) if component.name_field else None
            yield (own if isinstance(own, str) and own else component.name.format(number)), entry


def _read_spark(body: Body) -> tuple[ComponentPods, ...] | None:
    """Return the driver and the executors of a SparkApplication; None if a number of executors is something else than a number."""
    spec = as_object(body.get("spec"))
    driver, executor = as_object(spec.get("driver")), as_object(spec.get("executor"))
    values = [executor.get("instances")]
    dynamic = as_object(spec.get("dynamicAllocation"))
    if dynamic.get("enabled") is True:
        values += [dynamic.get("initialExecutors"), dynamic.get("minExecutors")]
    counts = [1 if value is None else parse_count(value) for value in values]
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        return None
    return (
        ComponentPods("driver", 1, _read_spark_pod(spec, driver), _read_spark_request(spec, driver)),
        ComponentPods("executor", max(known), _read_spark_pod(spec, executor), _read_spark_request(spec, executor)),
    )


def _read_spark_pod(spec: Body, role: Body) -> Body:
    pod = {"nodeSelector": role.get("nodeSelector") or spec.get("nodeSelector"), "tolerations": role.get("tolerations")}
    return {name: value for name, value in pod.items() if value}


def _read_spark_request(spec: Body, role: Body) -> Body:
    """Return what one pod of a role requests: its cores and gpus, and its memory with the overhead of the operator."""
    cores = role.get("cores")
    request: Body = {"cpu": cores if isinstance(cores, int) and cores > 0 else 1, "memory": _read_spark_memory(spec, role)}
    gpu = as_object(role.get("gpu"))
    quantity = parse_count(gpu.get("quantity"))
    if quantity and isinstance(gpu.get("name"), str):
        request[gpu["name"]] = quantity
    return request


def _read_spark_memory(spec: Body, role: Body) -> str:
    memory, unit = _parse_spark_amount(role.get("memory")) or (float(1 << 30), "g")
    overhead = _parse_spark_amount(role.get("memoryOverhead"))
    if overhead is None:
        try:
            factor = float(str(spec.get("memoryOverheadFactor") or ("0.1" if spec.get("type") in ("Java", "Scala") else "0.4")))
        except ValueError:
            factor = 0.1
        overhead = max(factor * memory, float(_MIN_OVERHEAD)), "m"
    smaller = min(unit, overhead[1], key=lambda name: _SPARK_UNITS[name])
    return f"{(memory + overhead[0]) / 1024 ** _SPARK_UNITS[smaller]:.6f}{smaller.upper()}i"


def _parse_spark_amount(value: object) -> tuple[float, str] | None:
    """Return the bytes of an amount such as 512m or 2g, and its unit; None for anything else."""
    text = value.strip().lower().removesuffix("b").removesuffix("i") if isinstance(value, str) else ""
    if len(text) < 2 or text[-1] not in _SPARK_UNITS or not text[:-1].replace(".", "", 1).isdecimal() or len(text) > 20:
        return None
    return float(text[:-1]) * 1024 ** _SPARK_UNITS[text[-1]], text[-1]
