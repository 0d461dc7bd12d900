"""Krake's documents as Python values, and one run of the pure API over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import gitsched

Body = dict[str, Any]
START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
SPACE = "tenant-a"
KUBECONFIG = {"contexts": [{"name": "c"}], "clusters": [{"name": "c"}], "users": [{"name": "u"}]}
MANIFEST = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}]
TOSCA = {"topology_template": {"outputs": {"kubeconfig": {"value": "x"}}}}
AUTH = {"type": "password", "password": {"user": {"username": "u", "password": "p"}, "project": {"name": "p"}}}
PROJECT_AUTH = {"type": "password", "password": {"user": {"id": "u", "password": "p"}, "project": {"id": "p"}}}


def later(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def weigh(**weights: float) -> list[Body]:
    """References to metrics, with their weights."""
    return [{"name": name, "weight": weight} for name, weight in weights.items()]


def application(name: str = "echo", *, status: Body | None = None, constraints: Body | None = None, **spec: Any) -> Body:
    """`constraints` are those on the cluster."""
    migration = {"migration": spec.pop("migration")} if "migration" in spec else {}
    wanted = {"cluster": constraints or {}, **migration}
    body = {"api": "kubernetes", "kind": "Application", "metadata": {"name": name, "namespace": SPACE}}
    return {**body, "spec": {"manifest": MANIFEST, "constraints": wanted, **spec}} | ({"status": status} if status else {})


def cluster(name: str, state: str | None = "ONLINE", *, labels: Mapping[str, str] | None = None, **spec: Any) -> Body:
    """`scheduled_to`, `inherit_labels` and `constraints` (those on the cloud) lie where they belong."""
    metadata: Body = {"name": name, "namespace": SPACE, "labels": dict(labels or {})}
    metadata["inherit_labels"] = spec.pop("inherit_labels", False)
    status = {"state": state, "scheduled_to": spec.pop("scheduled_to", None)}
    wanted = {"cloud": spec.pop("constraints", {})}
    body = {"api": "kubernetes", "kind": "Cluster", "metadata": metadata, "spec": {"constraints": wanted, **spec}}
    body["spec"].setdefault("kubeconfig", {} if "tosca" in spec else KUBECONFIG)
    return body | {"status": {name: value for name, value in status.items() if value is not None}}


def cloud(name: str, *metrics: Body, labels: Mapping[str, str] | None = None, everywhere: bool = False) -> Body:
    metadata: Body = {"name": name, "labels": dict(labels or {})} | ({} if everywhere else {"namespace": SPACE})
    spec = {"type": "openstack", "openstack": {"url": "u", "auth": AUTH, "metrics": list(metrics)}}
    return {"api": "infrastructure", "kind": "GlobalCloud" if everywhere else "Cloud", "metadata": metadata, "spec": spec}


def project(name: str, *metrics: Body, namespace: str = SPACE, labels: Mapping[str, str] | None = None) -> Body:
    metadata = {"name": name, "namespace": namespace, "labels": dict(labels or {})}
    spec = {"url": "u", "auth": PROJECT_AUTH, "template": f"template-{name}", "metrics": list(metrics)}
    return {"api": "openstack", "kind": "Project", "metadata": metadata, "spec": spec}


def magnum_cluster(name: str = "m", *, labels: list[str] | None = None, own: Mapping[str, str] | None = None) -> Body:
    """`labels` are constraints on the project, `own` its labels."""
    metadata = {"name": name, "namespace": SPACE, "labels": dict(own or {})}
    spec = {"master_count": 1, "node_count": 1, "constraints": {"project": {"labels": labels}}}
    return {"api": "openstack", "kind": "MagnumCluster", "metadata": metadata, "spec": spec}


def measure(**values: float) -> list[Body]:
    """Global metrics between 0 and 1 with values that a static provider has."""
    source = {
        "api": "core",
        "kind": "GlobalMetricsProvider",
        "metadata": {"name": "p"},
        "spec": {"type": "static", "static": {"metrics": values}},
    }
    return [source, *map(metric, values)]


def metric(name: str, least: float = 0, most: float = 1, *allowed: int) -> Body:
    provider = {"name": "p", "metric": name}
    spec = {"min": least, "max": most, "allowed_values": list(allowed), "provider": provider}
    return {"api": "core", "kind": "GlobalMetric", "metadata": {"name": name}, "spec": spec}


class Story:
    """Runs one after another, each from what the last one left."""

    def __init__(self, *documents: Body, **config: Any) -> None:
        self.documents, self.config = list(documents), {"krake": config}
        self.left: list[Body] = []

    def run(self, seconds: float = 0, *documents: Body, at: float | None = None) -> gitsched.Schedule:
        """A run so many seconds after START; documents given replace those of the same name. `at` is the moment of the source."""
        for document in documents:
            kept = [known for known in self.documents if identify(known) != identify(document)]
            self.documents = [*kept, document]
        source = later(seconds if at is None else at)
        schedule = gitsched.schedule(self.documents, previous=self.left, now=later(seconds), at=source, config=self.config)
        self.left = list(schedule.documents)
        return schedule

    def drop(self, kind: str, name: str) -> None:
        self.documents = [body for body in self.documents if (body["kind"], body["metadata"]["name"]) != (kind, name)]

    def status(self, kind: str = "Application", name: str = "echo") -> Body:
        found = find(self.left, kind, name)
        status: Body = found["status"]
        return status

    def place(self, name: str = "echo") -> str | None:
        target = self.status("Application", name).get("scheduled_to")
        return target["name"] if target else None


def identify(body: Body) -> tuple[str, str, str]:
    return body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]


def find(documents: Iterable[Any], kind: str, name: str) -> Body:
    return next(dict(body) for body in documents if (body["kind"], body["metadata"]["name"]) == (kind, name))


def codes(schedule: gitsched.Schedule) -> set[str]:
    return {finding.code for finding in schedule.findings}
