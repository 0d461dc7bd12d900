"""What metrics say: from a reference to a normalised value, or the reason why there is none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from gitsched.apis.krake import names
from gitsched.apis.world import World
from gitsched.model.document import Body, Document, Key, member
from gitsched.schedule.weighted import Standing


class MetricRef(NamedTuple):
    """A metric as a cluster, cloud or project refers to it."""

    name: str
    weight: float
    namespaced: bool = False


class Reason(NamedTuple):
    """Why a metric has no value. `failed` says that its provider was asked and did not answer as it should, or that its
    document is broken, which says nothing about the resource. `message` is Krake's, `told` the same for people who have no Krake."""

    code: str
    message: str
    failed: bool = False
    told: str = ""

    @property
    def body(self) -> Body:
        """As Krake writes it."""
        return {"code": self.code, "message": self.message}


class Value(NamedTuple):
    """`raw` is what the provider said, `share` where that lies between the metric's `least` (0) and `most` (1). `live`: it was observed.

    `allowed` are the only values that it may have, none for all between those two.
    """

    raw: float
    share: float
    live: bool
    least: float = 0.0
    most: float = 1.0
    allowed: tuple[int, ...] = ()


class Readings(NamedTuple):
    """What all the metrics of one resource say. All or nothing: where one has a reason, there are no values.

    `standing` is what the values add up to, in their order; None without any.
    """

    values: tuple[tuple[MetricRef, Value], ...] = ()
    reasons: tuple[tuple[str, Reason], ...] = ()
    standing: Standing | None = None

    @property
    def declared(self) -> bool:
        """Whether the resource names any metric, one that can be read or not."""
        return bool(self.values or self.reasons)

    @property
    def failed(self) -> bool:
        """Whether only providers that do not answer are to blame."""
        return bool(self.reasons) and all(reason.failed for _, reason in self.reasons)

    @property
    def live(self) -> bool:
        """Whether anything of it was observed, or should have been."""
        return self.failed or any(value.live for _, value in self.values)

    def measures(self, mode: str) -> dict[str, float]:
        """What metric constraints are compared with, by metric: weighted, normalised or raw; of two of a name the last one."""
        return {
            ref.name: value.raw if mode == "raw" else value.share * (ref.weight if mode == "weighted" else 1.0)
            for ref, value in self.values
        }


NOTHING = Readings()

Reading = tuple[MetricRef, Value | Reason]
"""A metric as a resource refers to it, and what it says there."""


def combine(readings: tuple[Reading, ...]) -> Readings:
    """All the metrics of a resource."""
    if not readings:
        return NOTHING
    total, weight = 0.0, 0.0
    for ref, found in readings:
        if isinstance(found, Reason):
            return Readings((), tuple((ref.name, found) for ref, found in readings if isinstance(found, Reason)))
        total += found.share * ref.weight
        weight += ref.weight
    return Readings(cast("tuple[tuple[MetricRef, Value], ...]", readings), (), Standing(total, weight))


class MetricBook:
    """Metrics and their providers of one world. Every metric is looked up once."""

    def __init__(self, world: World) -> None:
        self._observations = world.observations
        self._broken = world.broken
        self._metrics = [_index(world, kind) for kind in names.METRICS]
        self._providers = [_index(world, kind) for kind in names.PROVIDERS]
        self._known: dict[tuple[str, bool, str], Value | Reason] = {}
        self._readings: dict[tuple[str, float, Any, str], Reading] = {}

    def read(self, entries: Any, namespace: str, owner: str) -> tuple[Reading, ...]:
        """The metrics that a spec lists, of the resource `owner`, which lies in `namespace` ("" for a global one)."""
        known = self._readings
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

    def _look_up(self, ref: MetricRef, namespace: str, owner: str) -> Value | Reason:
        if ref.namespaced and not namespace:
            message = f"Attempt to reference a namespaced metric {ref.name} on a non-namespaced resource {owner}"
            return Reason(names.INVALID_METRIC, message)
        space = namespace if ref.namespaced else ""
        key = ref.name, ref.namespaced, space
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._read(ref, space)
        return found

    def _read(self, ref: MetricRef, space: str) -> Value | Reason:
        metric = self._metrics[ref.namespaced].get((space, ref.name))
        if metric is None:
            message = f"The metric '{ref.name}' was not found in the Krake database."
            return self._miss(names.UNKNOWN_METRIC, message, names.METRICS[ref.namespaced], space, ref.name)
        named = member(metric.body, "spec", "provider") or {}
        provider = self._providers[ref.namespaced].get((space, str(named.get("name"))))
        if provider is None:
            message = f"The metrics provider '{named.get('name')}' was not found in the Krake database."
            return self._miss(
                names.UNKNOWN_METRICS_PROVIDER, message, names.PROVIDERS[ref.namespaced], space, str(named.get("name"))
            )
        raw = self._ask(provider, str(named.get("metric")))
        live = member(provider.body, "spec", "type") != "static"
        return raw if isinstance(raw, Reason) else _normalise(ref.name, raw, metric.body["spec"], live)

    def _miss(self, code: str, message: str, kind: tuple[str, str], space: str, name: str) -> Reason:
        """A document that is not there, or that nobody can use: a slip in that says as little about a cluster as a silent provider."""
        broken = Key(*kind, space, name) in self._broken
        where = f" in namespace {space}" if space else ""
        told = f"there is no {kind[1]} '{name}'{where}"
        return Reason(code, message, broken, f"the document of {kind[1]} '{name}'{where} is broken" if broken else told)

    def _ask(self, provider: Document, metric: str) -> float | Reason:
        spec = provider.body["spec"]
        if spec["type"] == "static":
            value = spec["static"]["metrics"].get(metric)
            return Reason(names.INVALID_METRIC, f"Metric '{metric}' not defined") if value is None else read_float(value)
        key = provider.key
        seen = self._observations.get((key.kind, key.namespace, key.name, metric))
        if isinstance(seen, (int, float)) and not isinstance(seen, bool):
            return float(seen)
        if seen is None:  # whoever plans without observations gets what Krake does about a provider that cannot be reached
            message = f"The metric '{metric}' of the provider '{key.name}' was not observed"
            return Reason(names.UNREACHABLE_METRICS_PROVIDER, message)
        code = getattr(seen, "code", "") or names.UNREACHABLE_METRICS_PROVIDER
        return Reason(code, str(getattr(seen, "error", seen)), failed=True)


def read_float(number: float) -> float:
    """A number of a document that was parsed elsewhere: an integer that no float can hold is infinite."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _index(world: World, kind: tuple[str, str]) -> Mapping[tuple[str, str], Document]:
    return {(document.key.namespace, document.key.name): document for document in world.documents.get(kind, ())}


def _normalise(name: str, raw: float, spec: Body, live: bool) -> Value | Reason:
    least, most, allowed = read_float(spec["min"]), read_float(spec["max"]), spec.get("allowed_values") or ()
    if not least <= raw <= most:
        return Reason(names.INVALID_METRIC, f"Invalid metric value for '{name}': {raw} out of range")
    if allowed and raw not in [int(value) for value in allowed]:
        return Reason(names.INVALID_METRIC, f"Invalid metric value for '{name}': {raw} not in {list(allowed)}")
    if least == most:
        return Reason(names.INVALID_METRIC, f"The metric '{name}' has the same min and max, {least}: nothing can be compared")
    share = (raw - least) / (most - least)
    if not math.isfinite(share):
        return Reason(names.INVALID_METRIC, f"The metric '{name}' has a range too wide to compare anything in")
    return Value(raw, share, live, least, most, tuple(map(int, allowed)))
