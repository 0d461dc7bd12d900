"""What the tests of Karmada's session share: short YAML in, one run of the planner out, one run after another."""

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
from gitsched.decide.validation import list_ignored_codes, validate_document
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


class _Loader(yaml.SafeLoader):
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
        """Where the binding says it runs, in its order, with replicas."""
        return {c["name"]: c.get("replicas") for c in self.binding(name)["spec"].get("clusters", [])}

    def manifest(self, name: str, cluster: str) -> Body | None:
        """The manifest of one cluster where it is another one than the template; None where it is not."""
        outcome = self.outcome(name)
        assert outcome is not None
        (place,) = (place for place in outcome.targets if place.cluster == cluster)
        return place.body

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
        """The taints that a cluster has beside those of its document, by their text: since when, and by whom."""
        entries = self.engine.state.added_taints.get(cluster, ())
        return {str(taint._replace(since=None)): (format_time(taint.since), by) for taint, by in entries}

    def explain(self, name: str) -> Explanation:
        explanation = self.engine.explain(self.template(name))
        assert explanation is not None
        return explanation


def make_documents(files: str | Mapping[str, str], waived: frozenset[str] = frozenset()) -> list[RawDocument]:
    """YAML streams of documents whose apiVersion goes without saying; a Cluster need not say how it is synced."""
    streams = {"all.yaml": files} if isinstance(files, str) else files
    return [loose for path, text in streams.items() for loose in _read(path, text, waived)]


@cache
def _read(path: str, text: str, waived: frozenset[str]) -> tuple[RawDocument, ...]:
    loose = []
    for index, node in enumerate(yaml.compose_all(text, _Loader)):
        body = _Loader("").construct_document(node)
        body = {"apiVersion": API_VERSIONS.get(body["kind"]), **body}
        if body["kind"] == "Cluster":
            body["spec"] = {"syncMode": "Push", **body.get("spec", {})}
        verdict = validate_document(body, waived)
        broken = any(issue.severity == "error" for issue in verdict.issues)
        mark = node.start_mark
        loose.append(make_raw_document(verdict.body, Origin(path, "", index, -1, mark.line + 1, mark.column + 1), broken))
    return tuple(loose)


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
        decided = decide(make_documents(files, list_ignored_codes(config)), previous, config, _moment(at), _moment(now or at))
        return Run(decided, previous)

    return schedule


def _written(run: Run) -> dict[Key, Body]:
    """What the output branch holds after a run."""
    written = {key: body for outcome in run.decisions.outcomes.values() for key, body in outcome.records}
    return {**written, **{key: body for session in run.decisions.engines for key, body in session.records()}}


def _key(body: Body) -> Key:
    metadata = body["metadata"]
    return Key(parse_api_group(body["apiVersion"]), body["kind"], metadata.get("namespace", ""), metadata["name"])


def _moment(text: str) -> datetime:
    moment = parse_time(text)
    assert moment is not None
    return moment
