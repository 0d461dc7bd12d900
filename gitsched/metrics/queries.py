"""Metric queries: which metric of which provider the documents need, and the errors of a query, whose messages never hold an
address, a token or an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gitsched.model.document import Body, get_field
from gitsched.model.observation import ObservationKey


class ProviderUnreachable(Exception):
    """The provider could not be asked, or gave no answer that is one."""


class InvalidMetricValue(Exception):
    """The provider answered, but with no number for this metric."""


_PROVIDER_KINDS = {"GlobalMetric": "GlobalMetricsProvider", "Metric": "MetricsProvider"}


class MetricQuery(NamedTuple):
    """One metric at one provider. `type` names the kind of provider, `spec` is what its document says under that name."""

    key: ObservationKey
    type: str
    spec: Mapping[str, Any]

    @property
    def provider(self) -> str:
        return self.key[2]

    @property
    def metric(self) -> str:
        return self.key[3]


def list_metric_queries(documents: Iterable[Body]) -> list[MetricQuery]:
    """Each metric with a provider, once, in the order of their keys. Documents that are not sound are passed over: they are findings."""
    providers: dict[tuple[str, str, str], Body] = {}
    metrics: list[tuple[str, str, Body]] = []
    for body in documents:
        kind, spec, name = body.get("kind"), body.get("spec"), get_field(body, "metadata", "name")
        if body.get("api") != "core" or not isinstance(spec, dict) or not isinstance(name, str):
            continue
        namespace = str(get_field(body, "metadata", "namespace") or "")
        if kind in _PROVIDER_KINDS:
            provider = spec.get("provider")
            metrics.append(
                (_PROVIDER_KINDS[kind], _default_namespace(kind, namespace), provider if isinstance(provider, dict) else {})
            )
        elif kind in _PROVIDER_KINDS.values():
            providers[str(kind), _default_namespace(str(kind), namespace), name] = spec
    questions = {}
    for kind, namespace, wanted in metrics:
        name, metric = wanted.get("name"), wanted.get("metric")
        spec = providers.get((kind, namespace, str(name)))
        said = spec.get(str(spec.get("type"))) if spec else None
        if spec is not None and isinstance(said, dict) and isinstance(metric, str):
            key = (kind, namespace, str(name), metric)
            questions[key] = MetricQuery(key, str(spec["type"]), said)
    return [questions[key] for key in sorted(questions)]


def _default_namespace(kind: str, namespace: str) -> str:
    """A namespaced kind without a namespace is in `default`, as everywhere."""
    return "" if kind.startswith("Global") else namespace or "default"
