"""Metrics of clusters, clouds and projects: resolve a reference to a normalised value, or to the reason for its absence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

from gitsched.apis.krake.names import (
    INVALID_METRIC,
    METRIC_KINDS,
    METRICS_PROVIDER_KINDS,
    UNKNOWN_METRIC,
    UNKNOWN_METRICS_PROVIDER,
    UNREACHABLE_METRICS_PROVIDER,
)
from gitsched.apis.snapshot import Snapshot
from gitsched.model.document import Body, Document, Key, get_field
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.scores import WeightedSum


class MetricRef(NamedTuple):
    """A cluster's, cloud's or project's reference to a metric, with its weight."""

    name: str
    weight: float
    namespaced: bool = False


class MetricReason(NamedTuple):
    """The reason why a metric has no value.

    `provider_failed` means that the query of the provider failed or that a document is invalid, so the resource itself is not at fault.
    `message` is Krake's own text; `description` replaces it in findings where the text only fits a Krake installation.
    """

    code: str
    message: str
    provider_failed: bool = False
    description: str = ""

    @property
    def body(self) -> Body:
        """The reason in Krake's JSON form."""
        return {"code": self.code, "message": self.message}


class MetricValue(NamedTuple):
    """The value of a metric: `raw` from the provider, `normalized` to 0 (`minimum`) through 1 (`maximum`).

    `live` values are observed, others come from a static provider. `allowed_values` is empty if every value in the range is allowed.
    """

    raw: float
    normalized: float
    live: bool
    minimum: float = 0.0
    maximum: float = 1.0
    allowed_values: tuple[int, ...] = ()


class PossibleValues(NamedTuple):
    """The values that a metric can have, in ascending order: all from the first to the last if `is_range`."""

    values: tuple[float, ...]
    is_range: bool

    def __str__(self) -> str:
        if self.is_range:
            return f"from {self.values[0]:.6g} to {self.values[-1]:.6g}"
        return ", ".join(f"{value:.6g}" for value in self.values)


class MetricResults(NamedTuple):
    """All metrics of one resource. If any metric has no value, `values` is empty and `reasons` lists the failed metrics.

    `weighted_sum` adds the values in their order; it is None without values.
    """

    values: tuple[tuple[MetricRef, MetricValue], ...] = ()
    reasons: tuple[tuple[str, MetricReason], ...] = ()
    weighted_sum: WeightedSum | None = None

    @property
    def declared(self) -> bool:
        """Whether the resource refers to any metric, readable or not."""
        return bool(self.values or self.reasons)

    @property
    def provider_failed(self) -> bool:
        """Whether every failure is a failure of a provider."""
        return bool(self.reasons) and all(reason.provider_failed for _, reason in self.reasons)

    @property
    def live(self) -> bool:
        """Whether any value is observed, or would be if its provider answered."""
        return self.provider_failed or any(value.live for _, value in self.values)

    def constraint_values(self, mode: str) -> dict[str, float]:
        """Return the values that metric constraints compare, by metric name: raw, normalised or weighted. The last duplicate counts."""
        return {
            ref.name: value.raw if mode == "raw" else value.normalized * (ref.weight if mode == "weighted" else 1.0)
            for ref, value in self.values
        }

    def describe_constraint_value(self, name: str, mode: str) -> str:
        """Describe the value of a metric that constraints compare, and its calculation from the raw value; "" without the metric."""
        ref, value = next(((ref, value) for ref, value in reversed(self.values) if ref.name == name), (None, None))
        if ref is None or value is None:
            return ""
        raw = f"{value.raw:.6g}"
        if mode == "raw":
            return raw
        if mode == "normalised":
            return f"{value.normalized:.6g}, normalised from {raw}"
        return (
            f"{value.normalized * ref.weight:.6g}, normalised from {raw} to {value.normalized:.6g}, times its weight {ref.weight:g}"
        )

    def find_possible_values(self, name: str, mode: str) -> PossibleValues | None:
        """Return the values that constraints could compare for a metric; None without the metric."""
        ref, value = next(((ref, value) for ref, value in reversed(self.values) if ref.name == name), (None, None))
        if ref is None or value is None:
            return None
        raw = tuple(float(entry) for entry in value.allowed_values if value.minimum <= entry <= value.maximum)
        values = raw or (value.minimum, value.maximum)
        if mode != "raw":
            weight = ref.weight if mode == "weighted" else 1.0
            values = tuple((entry - value.minimum) / (value.maximum - value.minimum) * weight for entry in values)
        return PossibleValues(tuple(sorted(values)), is_range=not raw)


NO_METRICS = MetricResults()

MetricResult = tuple[MetricRef, MetricValue | MetricReason]
"""A reference to a metric, and its value or the reason why it has none."""


def combine_results(results: tuple[MetricResult, ...]) -> MetricResults:
    """Combine the metrics of one resource."""
    if not results:
        return NO_METRICS
    total, weight = 0.0, 0.0
    for ref, found in results:
        if isinstance(found, MetricReason):
            return MetricResults((), tuple((ref.name, found) for ref, found in results if isinstance(found, MetricReason)))
        total += found.normalized * ref.weight
        weight += ref.weight
    return MetricResults(cast("tuple[tuple[MetricRef, MetricValue], ...]", results), (), WeightedSum(total, weight))


class MetricReader:
    """Read metrics of one snapshot. Each metric is resolved once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._observations = snapshot.observations
        self._quarantined = snapshot.quarantined
        self._metrics = [_index_by_name(snapshot, kind) for kind in METRIC_KINDS]
        self._providers = [_index_by_name(snapshot, kind) for kind in METRICS_PROVIDER_KINDS]
        self._values: dict[tuple[str, bool, str], MetricValue | MetricReason] = {}
        self._results: dict[tuple[str, float, Any, str], MetricResult] = {}

    def read(self, entries: Any, namespace: str, owner: str) -> tuple[MetricResult, ...]:
        """Return the metrics that a spec lists; `owner` is the resource's name, `namespace` is "" for a global resource."""
        known = self._results
        found = []
        for entry in entries or ():
            # Many resources refer to the same metrics with the same weights.
            key = entry["name"], entry["weight"], entry.get("namespaced"), namespace
            result = known.get(key)
            if result is None:
                ref = MetricRef(str(entry["name"]), read_float(entry["weight"]), entry.get("namespaced") is True)
                result = ref, self._look_up(ref, namespace, owner)
                if namespace:  # the error message of a global resource contains its name
                    known[key] = result
            found.append(result)
        return tuple(found)

    def _look_up(self, ref: MetricRef, namespace: str, owner: str) -> MetricValue | MetricReason:
        if ref.namespaced and not namespace:
            message = f"Attempt to reference a namespaced metric {ref.name} on a non-namespaced resource {owner}"
            return MetricReason(INVALID_METRIC, message)
        namespace = namespace if ref.namespaced else ""
        key = ref.name, ref.namespaced, namespace
        found = self._values.get(key)
        if found is None:
            found = self._values[key] = self._resolve(ref, namespace)
        return found

    def _resolve(self, ref: MetricRef, namespace: str) -> MetricValue | MetricReason:
        metric = self._metrics[ref.namespaced].get((namespace, ref.name))
        if metric is None:
            message = f"The metric '{ref.name}' was not found in the Krake database."
            return self._describe_missing(UNKNOWN_METRIC, message, METRIC_KINDS[ref.namespaced], namespace, ref.name)
        provider_ref = get_field(metric.body, "spec", "provider") or {}
        provider = self._providers[ref.namespaced].get((namespace, str(provider_ref.get("name"))))
        if provider is None:
            message = f"The metrics provider '{provider_ref.get('name')}' was not found in the Krake database."
            return self._describe_missing(
                UNKNOWN_METRICS_PROVIDER,
                message,
                METRICS_PROVIDER_KINDS[ref.namespaced],
                namespace,
                str(provider_ref.get("name")),
            )
        raw = self._read_provider_value(provider, str(provider_ref.get("metric")))
        live = get_field(provider.body, "spec", "type") != "static"
        return raw if isinstance(raw, MetricReason) else _normalize(ref.name, raw, metric.body["spec"], live)

    def _describe_missing(self, code: str, message: str, kind: tuple[str, str], namespace: str, name: str) -> MetricReason:
        """Return the reason for a missing or invalid document; an invalid one counts as a provider failure."""
        quarantined = Key(*kind, namespace, name) in self._quarantined
        where = f" in namespace {namespace}" if namespace else ""
        description = f"there is no {kind[1]} '{name}'{where}"
        return MetricReason(
            code, message, quarantined, f"the document of {kind[1]} '{name}'{where} is invalid" if quarantined else description
        )

    def _read_provider_value(self, provider: Document, metric: str) -> float | MetricReason:
        spec = provider.body["spec"]
        if spec["type"] == "static":
            value = spec["static"]["metrics"].get(metric)
            return MetricReason(INVALID_METRIC, f"Metric '{metric}' not defined") if value is None else read_float(value)
        key = provider.key
        observed = self._observations.get((key.kind, key.namespace, key.name, metric))
        if isinstance(observed, (int, float)) and not isinstance(observed, bool):
            return float(observed)
        if observed is None:  # without observations, handle the provider as unreachable
            message = f"The metric '{metric}' of the provider '{key.name}' was not observed"
            return MetricReason(UNREACHABLE_METRICS_PROVIDER, message)
        code = getattr(observed, "code", "") or UNREACHABLE_METRICS_PROVIDER
        return MetricReason(code, str(getattr(observed, "error", observed)), provider_failed=True)


def read_float(number: float) -> float:
    """Convert a number of a document to float; an integer beyond float's range becomes infinite."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _index_by_name(snapshot: Snapshot, kind: tuple[str, str]) -> Mapping[tuple[str, str], Document]:
    return {(document.key.namespace, document.key.name): document for document in snapshot.documents.get(kind, ())}


def _normalize(name: str, raw: float, spec: Body, live: bool) -> MetricValue | MetricReason:
    minimum, maximum, allowed = read_float(spec["min"]), read_float(spec["max"]), spec.get("allowed_values") or ()
    if not minimum <= raw <= maximum:
        return MetricReason(INVALID_METRIC, f"Invalid metric value for '{name}': {raw} out of range")
    if allowed and raw not in [int(value) for value in allowed]:
        return MetricReason(INVALID_METRIC, f"Invalid metric value for '{name}': {raw} not in {list(allowed)}")
    if minimum == maximum:
        return MetricReason(INVALID_METRIC, f"The metric '{name}' has the same min and max, {minimum}: nothing can be compared")
    normalized = (raw - minimum) / (maximum - minimum)
    if not math.isfinite(normalized):
        return MetricReason(INVALID_METRIC, f"The metric '{name}' has a range too wide to compare anything in")
    return MetricValue(raw, normalized, live, minimum, maximum, tuple(map(int, allowed)))
