"""List the metrics that Krake's documents query, and from which provider."""

from __future__ import annotations

from collections.abc import Iterable

from gitsched.apis.krake.names import CORE, METRIC_KINDS, METRICS_PROVIDER_KINDS
from gitsched.model.document import Body, get_field
from gitsched.model.observation import MetricQuery

_PROVIDER_KINDS = {metric: provider for (_, metric), (_, provider) in zip(METRIC_KINDS, METRICS_PROVIDER_KINDS, strict=True)}


def list_metric_queries(documents: Iterable[Body]) -> list[MetricQuery]:
    """Return one query for each metric of a known provider, in key order. Invalid documents are skipped: validation reports them."""
    providers: dict[tuple[str, str, str], Body] = {}
    metrics: list[tuple[str, str, Body]] = []
    for body in documents:
        kind, spec, name = body.get("kind"), body.get("spec"), get_field(body, "metadata", "name")
        if body.get("api") != CORE or not isinstance(spec, dict) or not isinstance(name, str):
            continue
        namespace = str(get_field(body, "metadata", "namespace") or "")
        if kind in _PROVIDER_KINDS:
            provider = spec.get("provider")
            metrics.append(
                (_PROVIDER_KINDS[kind], _default_namespace(kind, namespace), provider if isinstance(provider, dict) else {})
            )
        elif kind in _PROVIDER_KINDS.values():
            providers[str(kind), _default_namespace(str(kind), namespace), name] = spec
    queries = {}
    for kind, namespace, provider_ref in metrics:
        name, metric = provider_ref.get("name"), provider_ref.get("metric")
        spec = providers.get((kind, namespace, str(name)))
        settings = spec.get(str(spec.get("type"))) if spec else None
        if spec is not None and isinstance(settings, dict) and isinstance(metric, str):
            key = (kind, namespace, str(name), metric)
            queries[key] = MetricQuery(key, str(spec["type"]), settings)
    return [queries[key] for key in sorted(queries)]


def _default_namespace(kind: str, namespace: str) -> str:
    """Return the namespace of a document: "" for global kinds, `default` if none is set."""
    return "" if kind.startswith("Global") else namespace or "default"
