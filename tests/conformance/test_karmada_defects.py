"""What looks like a defect of Karmada: `gitsched.schedule` does as Karmada with its feature gate, and commands do what is safe.

docs/karmada.md lists these decisions. The recorded outcomes are those of test_karmada_gates.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

import gitsched
from gitsched.apis.gitsched.config import parse_config
from gitsched.decide.catalog import make_raw_document
from gitsched.decide.decisions import decide
from gitsched.model.document import Body, Key
from gitsched.model.time import parse_time

NOW = datetime(2026, 1, 1, tzinfo=UTC)
Run = Any
ONE_CLUSTER = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]
AGGREGATED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
DUPLICATED = {"replicaSchedulingType": "Duplicated"}


def make_cluster(name: str, **allocatable: str) -> Body:
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": {"syncMode": "Pull"},
        "status": {"resourceSummary": {"allocatable": {"pods": "100", "cpu": "100", **allocatable}}},
    }


def make_policy(kind: tuple[str, str], scheduling: Body, spreads: Iterable[Body] = ()) -> Body:
    placement = {"replicaScheduling": scheduling, **({"spreadConstraints": list(spreads)} if spreads else {})}
    selector = {"apiVersion": kind[0], "kind": kind[1], "namespace": "shop"}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "all", "namespace": "shop"},
        "spec": {"resourceSelectors": [selector], "placement": placement},
    }


def make_deployment(name: str, replicas: int, **requests: str) -> Body:
    container = {"name": "main", "image": "a", "resources": {"requests": requests}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "shop"}, "spec": spec}


def run_schedule(documents: list[Body], previous: Iterable[Body], gate: str, **settings: Any) -> list[Body]:
    """Return the records as `gitsched.schedule` makes them, which does as Karmada."""
    config = {"karmada": {"featureGates": {gate: True}, **settings}}
    return gitsched.schedule(documents, previous=list(previous), now=NOW, config=config).documents


def run_command(documents: list[Body], previous: Iterable[Body], gate: str, **settings: Any) -> list[Body]:
    """Return the records as a command makes them."""
    config = parse_config({"karmada": {"featureGates": {gate: True}, **settings}})
    records = {_make_key(body): body for body in previous}
    decisions = decide([make_raw_document(body) for body in documents], records, config, NOW, NOW)
    found = [body for outcome in decisions.outcomes.values() for _, body in outcome.records]
    return [*found, *(body for _, body in decisions.engine_records)]


def _make_key(body: Body) -> Key:
    metadata = body["metadata"]
    return Key(body["apiVersion"].partition("/")[0], body["kind"], metadata.get("namespace") or "", metadata["name"])


def read_clusters(records: Iterable[Body], name: str) -> Mapping[str, int]:
    [binding] = [one for one in records if one["kind"] == "ResourceBinding" and one["metadata"]["name"].startswith(f"{name}-")]
    return {one["name"]: one.get("replicas", 0) for one in binding["spec"].get("clusters", ())}


FLINK = {
    "apiVersion": "flink.apache.org/v1beta1",
    "kind": "FlinkDeployment",
    "metadata": {"name": "etl", "namespace": "shop"},
    "spec": {
        "jobManager": {"replicas": 1, "resource": {"cpu": 1, "memory": "1Gi"}},
        "taskManager": {"replicas": 1, "resource": {"cpu": 1, "memory": "1Gi"}},
    },
}


@pytest.mark.parametrize(("run", "expected"), [(run_schedule, {}), (run_command, {"a": 0})], ids=["schedule", "command"])
def test_memory_in_two_formats_is_compared_by_its_amount(run: Run, expected: Mapping[str, int]) -> None:
    """Karmada takes a plain number of bytes for a thousand times as much beside Gi."""
    documents = [
        make_cluster("a", memory="20Gi"),
        make_policy(("flink.apache.org/v1beta1", "FlinkDeployment"), AGGREGATED, ONE_CLUSTER),
        FLINK,
    ]
    assert read_clusters(run(documents, (), "MultiplePodTemplatesScheduling"), "etl") == expected


QUOTA = {
    "apiVersion": "policy.karmada.io/v1alpha1",
    "kind": "FederatedResourceQuota",
    "metadata": {"name": "team", "namespace": "shop"},
    "spec": {"overall": {"cpu": "4"}},
}


@pytest.mark.parametrize(
    ("run", "replicas", "expected"),
    [(run_schedule, 6, 8), (run_command, 6, 6), (run_schedule, 9, 8), (run_command, 9, 8)],
    ids=["schedule: fewer", "command: fewer", "schedule: more", "command: more"],
)
def test_a_quota_that_is_exceeded_allows_to_request_less(run: Run, replicas: int, expected: int) -> None:
    """Karmada refuses each change after which the quota is still exceeded."""
    clusters = [make_cluster("a"), make_policy(("apps/v1", "Deployment"), AGGREGATED)]
    before = gitsched.schedule([*clusters, make_deployment("web", 8, cpu="1")], now=NOW).documents
    documents = [*clusters, QUOTA, make_deployment("web", replicas, cpu="1")]
    used = {**QUOTA, "status": {"overall": {"cpu": "4"}, "overallUsed": {"cpu": "8"}}}
    records = run(documents, [*before, used], "FederatedQuotaEnforcement")
    assert read_clusters(records, "web") == {"a": expected}


def make_scaled(observed: str) -> tuple[list[Body], list[Body]]:
    """A workload of 6 replicas runs, its cluster reports it as healthy, and it has had 2 more a minute ago."""
    cluster = make_cluster("a", cpu="20")
    cluster["metadata"]["annotations"] = {"gitsched.io/observed-at": observed}
    cluster["status"]["resourceSummary"]["allocated"] = {"cpu": "8", "pods": "8"}
    policy = make_policy(("apps/v1", "Deployment"), AGGREGATED)
    before = gitsched.schedule([cluster, policy, make_deployment("web", 8, cpu="1")], now=NOW).documents
    return [cluster, policy, make_deployment("web", 8, cpu="1"), make_deployment("more", 8, cpu="1")], before


def test_a_healthy_workload_that_was_scaled_counts_once() -> None:
    """Karmada counts all of its replicas for five minutes, also those that the summary of the cluster has."""
    documents, before = make_scaled("2026-01-01T00:01:00Z")
    records = run_schedule(documents, before, "SchedulingOvercommitProtection")
    assert read_clusters(records, "more") == {}, "12 are free, and 8 are counted twice"
    config = parse_config({})
    previous = {_make_key(body): body for body in before}
    later = parse_time("2026-01-01T00:02:00Z")
    assert later is not None
    decisions = decide([make_raw_document(body) for body in documents], previous, config, later, later)
    found = [body for outcome in decisions.outcomes.values() for _, body in outcome.records]
    assert read_clusters(found, "more") == {"a": 8}


def test_the_order_of_clusters_in_a_binding_is_no_change() -> None:
    """Karmada writes a Duplicated binding again when the order of its clusters changes, and counts its replicas for five more minutes."""
    policy = make_policy(("apps/v1", "Deployment"), DUPLICATED)
    first = [make_cluster("a", cpu="20"), make_cluster("b", cpu="10"), policy, make_deployment("web", 2, cpu="1")]
    before = gitsched.schedule(first, now=NOW).documents
    second = [make_cluster("a", cpu="10"), make_cluster("b", cpu="20"), *first[2:]]
    for run in (run_schedule, run_command):
        after = run(second, before, "SchedulingOvercommitProtection")
        [one], [other] = ([body for body in records if body["kind"] == "ResourceBinding"] for records in (before, after))
        assert one["spec"]["clusters"] == other["spec"]["clusters"]
        assert one["status"]["lastScheduledTime"] == other["status"]["lastScheduledTime"]
