"""Shared by the tests of Karmada's engine: short YAML as input, one run of the planner or several in sequence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

import pytest
import yaml

from gitsched.apis.gitsched.config import parse_config
from gitsched.apis.karmada.engine import KarmadaEngine
from gitsched.decide.catalog import RawDocument, make_raw_document
from gitsched.decide.decisions import DecisionSet, decide
from gitsched.decide.validation import validate_document
from gitsched.model.document import Body, Document, Key, Origin, parse_api_group
from gitsched.model.explanation import Explanation
from gitsched.model.scheduling import Outcome
from gitsched.model.time import format_time, parse_time

START = "2026-01-01T00:00:00Z"
API_VERSIONS = {
    "Cluster": "cluster.karmada.io/v1alpha1",
    "PropagationPolicy": "policy.karmada.io/v1alpha1",
    "ClusterPropagationPolicy": "policy.karmada.io/v1alpha1",
    "OverridePolicy": "policy.karmada.io/v1alpha1",
    "ClusterOverridePolicy": "policy.karmada.io/v1alpha1",
    "ClusterTaintPolicy": "policy.karmada.io/v1alpha1",
    "ResourceBinding": "work.karmada.io/v1alpha2",
    "ClusterResourceBinding": "work.karmada.io/v1alpha2",
    "WorkloadRebalancer": "apps.karmada.io/v1alpha1",
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
    "Pod": "v1",
    "ConfigMap": "v1",
    "Secret": "v1",
    "ServiceAccount": "v1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "ClusterRole": "rbac.authorization.k8s.io/v1",
}


class _Loader(yaml.CSafeLoader):
    """Timestamps stay text, as Kubernetes reads them."""


_Loader.add_constructor("tag:yaml.org,2002:timestamp", lambda loader, node: str(node.value))


class Run(NamedTuple):
    """One run. Workloads are named by "name" or "namespace/name"."""

    decisions: DecisionSet
    previous: Mapping[Key, Body]

    @property
    def engine(self) -> KarmadaEngine:
        engine = self.decisions.engines[0]
        assert isinstance(engine, KarmadaEngine)
        return engine

    def template(self, name: str) -> Document:
        namespace, _, name = name.rpartition("/")
        (found,) = (t for t in self.decisions.templates.values() if t.key.name == name and namespace in ("", t.key.namespace))
        return found

    def outcome(self, name: str) -> Outcome | None:
        return self.decisions.outcomes.get(self.template(name).key)

    def binding(self, name: str) -> Body:
        outcome = self.outcome(name)
        assert outcome is not None
        return outcome.records[0][1]

    def clusters(self, name: str) -> dict[str, int | None]:
        """Return the clusters of the binding with their replicas, in the order of the binding."""
        return {c["name"]: c.get("replicas") for c in self.binding(name)["spec"].get("clusters", [])}

    def manifest(self, name: str, cluster: str) -> Body | None:
        """Return the manifest of a cluster if it differs from the template."""
        outcome = self.outcome(name)
        assert outcome is not None
        (target,) = (target for target in outcome.targets if target.cluster == cluster)
        return target.body

    def condition(self, name: str) -> Body:
        (condition,) = self.binding(name)["status"]["conditions"]
        assert isinstance(condition, dict)
        return condition

    def rebalancer(self, name: str = "back") -> Body:
        """The record of a WorkloadRebalancer."""
        (body,) = (body for key, body in self.engine.records() if (key.kind, key.name) == ("WorkloadRebalancer", name))
        return body

    def policy(self, name: str) -> str:
        outcome = self.outcome(name)
        return outcome.policy if outcome else ""

    def codes(self, name: str) -> list[str]:
        outcome = self.outcome(name)
        return [finding.code for finding in outcome.findings] if outcome else []

    def added(self, cluster: str) -> dict[str, tuple[str, str]]:
        """Return the added taints of a cluster by their text: since when, and what added them."""
        entries = self.engine.state.added_taints.get(cluster, ())
        return {str(taint._replace(since=None)): (format_time(taint.since), by) for taint, by in entries}

    def explain(self, name: str) -> Explanation:
        explanation = self.engine.explain(self.template(name))
        assert explanation is not None
        return explanation


def make_documents(files: str | Mapping[str, str], ignored: frozenset[str] = frozenset()) -> list[RawDocument]:
    """Read YAML streams; a missing apiVersion and the syncMode of a Cluster are added."""
    streams = {"all.yaml": files} if isinstance(files, str) else files
    return [document for path, text in streams.items() for document in _read(path, text, ignored)]


@cache
def _read(path: str, text: str, ignored: frozenset[str]) -> tuple[RawDocument, ...]:
    documents = []
    for index, node in enumerate(yaml.compose_all(text, _Loader)):
        body = _Loader("").construct_document(node)
        body = {"apiVersion": API_VERSIONS.get(body["kind"]), **body}
        if body["kind"] == "Cluster":
            body["spec"] = {"syncMode": "Push", **body.get("spec", {})}
        validated = validate_document(body, ignored)
        broken = any(issue.severity == "error" for issue in validated.issues)
        mark = node.start_mark
        documents.append(make_raw_document(validated.body, Origin(path, "", index, -1, mark.line + 1, mark.column + 1), broken))
    return tuple(documents)


@pytest.fixture(scope="session")
def run() -> Callable[..., Run]:
    """`run(files, after=..., at=..., now=..., karmada={...})`: schedule; `after` is the run before this one, or bindings as YAML."""

    def schedule(
        files: str | Mapping[str, str],
        after: Run | str | None = None,
        at: str = START,
        now: str | None = None,
        karmada: Mapping[str, Any] | None = None,
    ) -> Run:
        if isinstance(after, str):
            previous = {_key(document.body): document.body for document in make_documents(after)}
        else:
            previous = _written(after) if after else {}
        config = parse_config({"karmada": karmada or {}})
        decided = decide(make_documents(files, config.ignored_codes), previous, config, _time(at), _time(now or at))
        return Run(decided, previous)

    return schedule


def _written(run: Run) -> dict[Key, Body]:
    """Return the records on the output branch after a run."""
    written = {key: body for outcome in run.decisions.outcomes.values() for key, body in outcome.records}
    return {**written, **{key: body for engine in run.decisions.engines for key, body in engine.records()}}


def _key(body: Body) -> Key:
    metadata = body["metadata"]
    return Key(parse_api_group(body["apiVersion"]), body["kind"], metadata.get("namespace", ""), metadata["name"])


def _time(text: str) -> datetime:
    time = parse_time(text)
    assert time is not None
    return time
