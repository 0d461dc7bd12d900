"""Builders of Krake documents, as Python values and as YAML text, and consecutive runs of the Python API over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import gitsched

Body = dict[str, Any]
START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
NAMESPACE = "tenant-a"
KUBECONFIG = {"contexts": [{"name": "c"}], "clusters": [{"name": "c"}], "users": [{"name": "u"}]}
MANIFEST = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}]
TOSCA = {"topology_template": {"outputs": {"kubeconfig": {"value": "x"}}}}
AUTH = {"type": "password", "password": {"user": {"username": "u"}, "project": {"name": "p"}}}
PROJECT_AUTH = {"type": "password", "password": {"user": {"id": "u"}, "project": {"id": "p"}}}


def later(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def format_later(seconds: float) -> str:
    return later(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


def weigh(**weights: float) -> list[Body]:
    """Return references to metrics with their weights."""
    return [{"name": name, "weight": weight} for name, weight in weights.items()]


def application(name: str = "echo", *, status: Body | None = None, constraints: Body | None = None, **spec: Any) -> Body:
    """Return an Application; `constraints` are those on the cluster."""
    migration = {"migration": spec.pop("migration")} if "migration" in spec else {}
    constraints_spec = {"cluster": constraints or {}, **migration}
    body = {"api": "kubernetes", "kind": "Application", "metadata": {"name": name, "namespace": NAMESPACE}}
    return {**body, "spec": {"manifest": MANIFEST, "constraints": constraints_spec, **spec}} | (
        {"status": status} if status else {}
    )


def cluster(name: str, state: str | None = "ONLINE", *, labels: Mapping[str, str] | None = None, **spec: Any) -> Body:
    """Return a Cluster with a kubeconfig, or `tosca`; `constraints` are those on the cloud."""
    metadata: Body = {"name": name, "namespace": NAMESPACE, "labels": dict(labels or {})}
    metadata["inherit_labels"] = spec.pop("inherit_labels", False)
    status = {"state": state, "scheduled_to": spec.pop("scheduled_to", None)}
    constraints_spec = {"cloud": spec.pop("constraints", {})}
    body = {"api": "kubernetes", "kind": "Cluster", "metadata": metadata, "spec": {"constraints": constraints_spec, **spec}}
    body["spec"].setdefault("kubeconfig", {} if "tosca" in spec else KUBECONFIG)
    return body | {"status": {name: value for name, value in status.items() if value is not None}}


def cloud(name: str, *metrics: Body, labels: Mapping[str, str] | None = None, is_global: bool = False) -> Body:
    metadata: Body = {"name": name, "labels": dict(labels or {})} | ({} if is_global else {"namespace": NAMESPACE})
    spec = {"type": "openstack", "openstack": {"url": "u", "auth": AUTH, "metrics": list(metrics)}}
    return {"api": "infrastructure", "kind": "GlobalCloud" if is_global else "Cloud", "metadata": metadata, "spec": spec}


def project(name: str, *metrics: Body, namespace: str = NAMESPACE, labels: Mapping[str, str] | None = None) -> Body:
    metadata = {"name": name, "namespace": namespace, "labels": dict(labels or {})}
    spec = {"url": "u", "auth": PROJECT_AUTH, "template": f"template-{name}", "metrics": list(metrics)}
    return {"api": "openstack", "kind": "Project", "metadata": metadata, "spec": spec}


def magnum_cluster(name: str = "m", *, labels: list[str] | None = None, own: Mapping[str, str] | None = None) -> Body:
    """Return a MagnumCluster; `labels` are its constraints on the project, `own` its own labels."""
    metadata = {"name": name, "namespace": NAMESPACE, "labels": dict(own or {})}
    spec = {"master_count": 1, "node_count": 1, "constraints": {"project": {"labels": labels}}}
    return {"api": "openstack", "kind": "MagnumCluster", "metadata": metadata, "spec": spec}


def measure(**values: float) -> list[Body]:
    """Return a static GlobalMetricsProvider with values, and a GlobalMetric from 0 to 1 for each of them."""
    source = {
        "api": "core",
        "kind": "GlobalMetricsProvider",
        "metadata": {"name": "p"},
        "spec": {"type": "static", "static": {"metrics": values}},
    }
    return [source, *map(metric, values)]


def metric(name: str, minimum: float = 0, maximum: float = 1, *allowed: int) -> Body:
    provider = {"name": "p", "metric": name}
    spec = {"min": minimum, "max": maximum, "allowed_values": list(allowed), "provider": provider}
    return {"api": "core", "kind": "GlobalMetric", "metadata": {"name": name}, "spec": spec}


class ScheduleRuns:
    """Consecutive runs, each with the records of the previous run."""

    def __init__(self, *documents: Body, **config: Any) -> None:
        self.documents, self.config = list(documents), {"krake": config}
        self.records: list[Body] = []

    def run(self, seconds: float = 0, *documents: Body, at: float | None = None) -> gitsched.Schedule:
        """Run `seconds` after START; the given documents replace those of the same name. `at` is the time of the source."""
        for document in documents:
            others = [known for known in self.documents if identify(known) != identify(document)]
            self.documents = [*others, document]
        source = later(seconds if at is None else at)
        schedule = gitsched.schedule(self.documents, previous=self.records, now=later(seconds), at=source, config=self.config)
        self.records = list(schedule.documents)
        return schedule

    def remove(self, kind: str, name: str) -> None:
        self.documents = [body for body in self.documents if (body["kind"], body["metadata"]["name"]) != (kind, name)]

    def status(self, kind: str = "Application", name: str = "echo") -> Body:
        found = find(self.records, kind, name)
        status: Body = found["status"]
        return status

    def target(self, name: str = "echo") -> str | None:
        ref = self.status("Application", name).get("scheduled_to")
        return ref["name"] if ref else None


def identify(body: Body) -> tuple[str, str, str]:
    return body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]


def find(documents: Iterable[Any], kind: str, name: str) -> Body:
    return next(dict(body) for body in documents if (body["kind"], body["metadata"]["name"]) == (kind, name))


def codes(schedule: gitsched.Schedule) -> set[str]:
    return {finding.code for finding in schedule.findings}


CANARY = "canary-77ab31"
"""A secret that must not appear in any output."""


def application_yaml(name: str = "echo", more: str = "") -> str:
    """Return an Application with a Deployment in namespace `shop` and a ConfigMap; `more` is appended to the spec."""
    return f"""\
api: kubernetes
kind: Application
metadata: {{name: {name}, namespace: tenant-a}}
spec:
  manifest:
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {{name: {name}, namespace: shop}}
    spec: {{replicas: 2}}
  - apiVersion: v1
    kind: ConfigMap
    metadata: {{name: {name}-settings}}
{more}"""


def cluster_yaml(name: str, metric: str = "", state: str = "ONLINE", user: str = "{}") -> str:
    """Return a Cluster with one optional metric of weight 1; `user` are the credentials of its kubeconfig."""
    metrics = f"[{{name: {metric}, weight: 1}}]" if metric else "[]"
    return f"""\
api: kubernetes
kind: Cluster
metadata: {{name: {name}, namespace: tenant-a, labels: {{location: DE}}}}
spec:
  kubeconfig:
    contexts: [{{name: c}}]
    clusters: [{{name: c}}]
    users: [{{name: u, user: {user}}}]
  metrics: {metrics}
status: {{state: {state}}}
"""


def global_metric_yaml(name: str, provider: str = "p") -> str:
    """Return a GlobalMetric from 0 to 1."""
    return f"""\
api: core
kind: GlobalMetric
metadata: {{name: {name}}}
spec: {{min: 0, max: 1, allowed_values: [], provider: {{name: {provider}, metric: {name}}}}}
"""


def global_provider_yaml(kind: str, spec: str) -> str:
    """Return the GlobalMetricsProvider `p` of a type with its settings in flow style."""
    return f"api: core\nkind: GlobalMetricsProvider\nmetadata: {{name: p}}\nspec: {{type: {kind}, {kind}: {spec}}}\n"
