"""Metrics of clusters, clouds and projects: resolve a reference to a normalised value, or to the reason why there is none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from gitsched.apis.engine import Snapshot
from gitsched.apis.krake import names
from gitsched.model.document import Body, Document, Key, get_field
from gitsched.schedule.scores import WeightedSum


class MetricRef(NamedTuple):
    """A metric as a cluster, cloud or project refers to it."""

    name: str
    weight: float
    namespaced: bool = False


class MetricReason(NamedTuple):
    """Why a metric has no value. `failed` says that its provider was asked and did not answer as it should, or that its
    document is broken, which says nothing about the resource. `message` is Krake's, `told` the same for people who have no Krake."""

    code: str
    message: str
    provider_failed: bool = False
    description: str = ""

    @property
    def body(self) -> Body:
        """As Krake writes it."""
        return {"code": self.code, "message": self.message}


class MetricValue(NamedTuple):
    """`raw` is what the provider said, `share` where that lies between the metric's `least` (0) and `most` (1). `live`: it was observed.

    `allowed` are the only values that it may have, none for all between those two.
    """

    raw: float
    normalized: float
    live: bool
    minimum: float = 0.0
    maximum: float = 1.0
    allowed_values: tuple[int, ...] = ()


class MetricResults(NamedTuple):
    """What all the metrics of one resource say. All or nothing: where one has a reason, there are no values.

    `standing` is what the values add up to, in their order; None without any.
    """

    values: tuple[tuple[MetricRef, MetricValue], ...] = ()
    reasons: tuple[tuple[str, MetricReason], ...] = ()
    weighted_sum: WeightedSum | None = None

    @property
    def declared(self) -> bool:
        """Whether the resource names any metric, one that can be read or not."""
        return bool(self.values or self.reasons)

    @property
    def provider_failed(self) -> bool:
        """Whether only providers that do not answer are to blame."""
        return bool(self.reasons) and all(reason.provider_failed for _, reason in self.reasons)

    @property
    def live(self) -> bool:
        """Whether anything of it was observed, or should have been."""
        return self.provider_failed or any(value.live for _, value in self.values)

    def constraint_values(self, mode: str) -> dict[str, float]:
        """What metric constraints are compared with, by metric: weighted, normalised or raw; of two of a name the last one."""
        return {
            ref.name: value.raw if mode == "raw" else value.normalized * (ref.weight if mode == "weighted" else 1.0)
            for ref, value in self.values
        }


NO_METRICS = MetricResults()

MetricResult = tuple[MetricRef, MetricValue | MetricReason]
"""A metric as a resource refers to it, and what it says there."""


def combine_results(readings: tuple[MetricResult, ...]) -> MetricResults:
    """All the metrics of a resource."""
    if not readings:
        return NO_METRICS
    total, weight = 0.0, 0.0
    for ref, found in readings:
        if isinstance(found, MetricReason):
            return MetricResults((), tuple((ref.name, found) for ref, found in readings if isinstance(found, MetricReason)))
        total += found.normalized * ref.weight
        weight += ref.weight
    return MetricResults(cast("tuple[tuple[MetricRef, MetricValue], ...]", readings), (), WeightedSum(total, weight))


class MetricReader:
    """Metrics and their providers of one world. Every metric is looked up once."""

    def __init__(self, world: Snapshot) -> None:
        self._observations = world.observations
        self._quarantined = world.quarantined
        self._metrics = [_index_by_name(world, kind) for kind in names.METRIC_KINDS]
        self._providers = [_index_by_name(world, kind) for kind in names.METRICS_PROVIDER_KINDS]
        self._values: dict[tuple[str, bool, str], MetricValue | MetricReason] = {}
        self._results: dict[tuple[str, float, Any, str], MetricResult] = {}

    def read(self, entries: Any, namespace: str, owner: str) -> tuple[MetricResult, ...]:
        """The metrics that a spec lists, of the resource `owner`, which lies in `namespace` ("" for a global one)."""
        known = self._results
        found = []
        for entry in entries or ():
            # A fleet refers to a handful of metrics, with the same weights over and over.
            key = entry["name"], entry["weight"], entry.get("namespaced"), namespace
            reading = known.get(key)
            if reading is None:
                ref = MetricRef(str(entry["name"]), read_float(entry["weight"]), entry.get("namespaced") is True)
                reading = ref, self._look_up(ref, namespace, owner)
                if namespace:  # what a global resource is told has its name in it
                    known[key] = reading
            found.append(reading)
        return tuple(found)

    def _look_up(self, ref: MetricRef, namespace: str, owner: str) -> MetricValue | MetricReason:
        if ref.namespaced and not namespace:
            message = f"Attempt to reference a namespaced metric {ref.name} on a non-namespaced resource {owner}"
            return MetricReason(names.INVALID_METRIC, message)
        space = namespace if ref.namespaced else ""
        key = ref.name, ref.namespaced, space
        found = self._values.get(key)
        if found is None:
            found = self._values[key] = self._resolve(ref, space)
        return found

    def _resolve(self, ref: MetricRef, space: str) -> MetricValue | MetricReason:
        metric = self._metrics[ref.namespaced].get((space, ref.name))
        if metric is None:
            message = f"The metric '{ref.name}' was not found in the Krake database."
            return self._describe_missing(names.UNKNOWN_METRIC, message, names.METRIC_KINDS[ref.namespaced], space, ref.name)
        named = get_field(metric.body, "spec", "provider") or {}
        provider = self._providers[ref.namespaced].get((space, str(named.get("name"))))
        if provider is None:
            message = f"The metrics provider '{named.get('name')}' was not found in the Krake database."
            return self._describe_missing(
                names.UNKNOWN_METRICS_PROVIDER, message, names.METRICS_PROVIDER_KINDS[ref.namespaced], space, str(named.get("name"))
            )
        raw = self._read_provider_value(provider, str(named.get("metric")))
        live = get_field(provider.body, "spec", "type") != "static"
        return raw if isinstance(raw, MetricReason) else _normalize(ref.name, raw, metric.body["spec"], live)

    def _describe_missing(self, code: str, message: str, kind: tuple[str, str], space: str, name: str) -> MetricReason:
        """A document that is not there, or that nobody can use: a slip in that says as little about a cluster as a silent provider."""
        broken = Key(*kind, space, name) in self._quarantined
        where = f" in namespace {space}" if space else ""
        told = f"there is no {kind[1]} '{name}'{where}"
        return MetricReason(code, message, broken, f"the document of {kind[1]} '{name}'{where} is broken" if broken else told)

    def _read_provider_value(self, provider: Document, metric: str) -> float | MetricReason:
        spec = provider.body["spec"]
        if spec["type"] == "static":
            value = spec["static"]["metrics"].get(metric)
            return MetricReason(names.INVALID_METRIC, f"Metric '{metric}' not defined") if value is None else read_float(value)
        key = provider.key
        seen = self._observations.get((key.kind, key.namespace, key.name, metric))
        if isinstance(seen, (int, float)) and not isinstance(seen, bool):
            return float(seen)
        if seen is None:  # whoever plans without observations gets what Krake does about a provider that cannot be reached
            message = f"The metric '{metric}' of the provider '{key.name}' was not observed"
            return MetricReason(names.UNREACHABLE_METRICS_PROVIDER, message)
        code = getattr(seen, "code", "") or names.UNREACHABLE_METRICS_PROVIDER
        return MetricReason(code, str(getattr(seen, "error", seen)), provider_failed=True)


def read_float(number: float) -> float:
    """A number of a document that was parsed elsewhere: an integer that no float can hold is infinite."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _index_by_name(world: Snapshot, kind: tuple[str, str]) -> Mapping[tuple[str, str], Document]:
    return {(document.key.namespace, document.key.name): document for document in world.documents.get(kind, ())}


def _normalize(name: str, raw: float, spec: Body, live: bool) -> MetricValue | MetricReason:
    least, most, allowed = read_float(spec["min"]), read_float(spec["max"]), spec.get("allowed_values") or ()
    if not least <= raw <= most:
        return MetricReason(names.INVALID_METRIC, f"Invalid metric value for '{name}': {raw} out of range")
    if allowed and raw not in [int(value) for value in allowed]:
        return MetricReason(names.INVALID_METRIC, f"Invalid metric value for '{name}': {raw} not in {list(allowed)}")
    if least == most:
        return MetricReason(names.INVALID_METRIC, f"The metric '{name}' has the same min and max, {least}: nothing can be compared")
    share = (raw - least) / (most - least)
    if not math.isfinite(share):
        return MetricReason(names.INVALID_METRIC, f"The metric '{name}' has a range too wide to compare anything in")
    return MetricValue(raw, share, live, least, most, tuple(map(int, allowed)))
