"""What is to be asked of whom: every metric of the documents, at its provider."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gitsched.model.document import Body, member
from gitsched.model.observation import ObservationKey

_PROVIDERS = {"GlobalMetric": "GlobalMetricsProvider", "Metric": "MetricsProvider"}


class Question(NamedTuple):
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


def list_questions(documents: Iterable[Body]) -> list[Question]:
    """Each metric with a provider, once, in the order of their keys. Documents that are not sound are passed over: they are findings."""
    providers: dict[tuple[str, str, str], Body] = {}
    metrics: list[tuple[str, str, Body]] = []
    for body in documents:
        kind, spec, name = body.get("kind"), body.get("spec"), member(body, "metadata", "name")
        if body.get("api") != "core" or not isinstance(spec, dict) or not isinstance(name, str):
            continue
        namespace = str(member(body, "metadata", "namespace") or "")
        if kind in _PROVIDERS:
            provider = spec.get("provider")
            metrics.append((_PROVIDERS[kind], _space(kind, namespace), provider if isinstance(provider, dict) else {}))
        elif kind in _PROVIDERS.values():
            providers[str(kind), _space(str(kind), namespace), name] = spec
    questions = {}
    for kind, namespace, wanted in metrics:
        name, metric = wanted.get("name"), wanted.get("metric")
        spec = providers.get((kind, namespace, str(name)))
        said = spec.get(str(spec.get("type"))) if spec else None
        if spec is not None and isinstance(said, dict) and isinstance(metric, str):
            key = (kind, namespace, str(name), metric)
            questions[key] = Question(key, str(spec["type"]), said)
    return [questions[key] for key in sorted(questions)]


def _space(kind: str, namespace: str) -> str:
    """A namespaced kind without a namespace is in `default`, as everywhere."""
    return "" if kind.startswith("Global") else namespace or "default"
