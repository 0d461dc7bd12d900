"""Statements of Krake's scheduling document as a user of a repository sees them: what is scheduled where, with which score, and when."""

from __future__ import annotations

from hashlib import sha256

import pytest
import yaml

import gitsched
from tests.builders.krake import (
    NAMESPACE,
    TOSCA,
    Body,
    ScheduleRuns,
    application,
    cloud,
    cluster,
    cluster_yaml,
    codes,
    find,
    later,
    magnum_cluster,
    measure,
    metric,
    project,
    weigh,
)
from tests.scenarios.conftest import Fleet

ECHO = "status/kubernetes/application/tenant-a/echo.yaml"
NO_LABELS: list[str] = []


def schedule(*documents: Body) -> gitsched.Schedule:
    """Schedule documents with the defaults of the commands."""
    return gitsched.schedule(list(documents), now=later(0), upstream_defaults=False)


def target(decided: gitsched.Schedule, kind: str, name: str) -> str | None:
    status = find(decided.documents, kind, name)["status"]
    ref = status.get("project" if kind == "MagnumCluster" else "scheduled_to")
    return ref["name"] if ref else None


def made(name: str = "made", **constraints: list[str]) -> Body:
    """Return a Cluster without a kubeconfig."""
    return cluster(name, None, tosca=TOSCA, constraints=constraints)


def test_applications_clusters_and_magnum_clusters_are_scheduled(fleet: Fleet) -> None:
    documents = [application(), cluster("one"), made(), cloud("sky"), magnum_cluster("m"), project("p")]
    fleet.commit({"all.yaml": yaml.safe_dump_all(documents)})
    fleet.reconcile()
    assert fleet.load(ECHO)["status"]["scheduled_to"]["name"] == "one"
    assert fleet.load("status/kubernetes/cluster/tenant-a/made.yaml")["status"]["scheduled_to"]["name"] == "sky"
    assert fleet.load("status/openstack/magnumcluster/tenant-a/m.yaml")["status"]["project"]["name"] == "p"


DELETED = {"deleted": "2026-01-01T00:00:00Z"}
OMITTED = {
    "metadata.deleted": {**application(), "metadata": {"name": "echo", "namespace": NAMESPACE, **DELETED}},
    "DELETING": application(status={"state": "DELETING"}),
    "DELETED": application(status={"state": "DELETED"}),
    "FAILED": application(status={"state": "FAILED"}),
}


@pytest.mark.parametrize("document", OMITTED.values(), ids=OMITTED)
def test_deleted_and_failed_applications_are_not_scheduled(document: Body) -> None:
    assert target(schedule(document, cluster("one")), "Application", "echo") is None


def test_the_finding_about_a_failed_document_says_how_to_schedule_it_again() -> None:
    (finding,) = schedule(application(status={"state": "FAILED"}), cluster("one")).findings
    assert finding.message.endswith("has failed: status.state of its document is FAILED; to schedule it again, remove the state")


def test_an_application_needs_a_cluster_that_satisfies_all_constraints() -> None:
    wanted = {"labels": ["location is DE", "tier is gold"], "custom_resources": ["crontabs.example.com"], "metrics": ["load = 5"]}
    gold, both, resources = {"location": "DE", "tier": "gold"}, weigh(load=1), ["crontabs.example.com"]
    decided = schedule(
        application(constraints=wanted),
        cluster("all", labels=gold, custom_resources=resources, metrics=both),
        cluster("offline", "OFFLINE", labels=gold, custom_resources=resources, metrics=both),
        cluster("other-label", labels={"location": "DE", "tier": "tin"}, custom_resources=resources, metrics=both),
        cluster("other-metric", labels=gold, custom_resources=resources, metrics=weigh(idle=1)),
        cluster("other-resource", labels=gold, custom_resources=["jobs.example.com"], metrics=both),
        *measure(load=5, idle=5)[:1],
        metric("load", 0, 10),
        metric("idle", 0, 10),
    )
    assert target(decided, "Application", "echo") == "all"
    assert {result.name: result.reason for result in decided.explain("Application", "echo", NAMESPACE) if not result.eligible} == {
        "offline": "its state is OFFLINE, not ONLINE",
        "other-label": "label constraint tier == gold: it is tin",
        "other-metric": "metric constraint load == 5: metric load is missing",
        "other-resource": "custom resource crontabs.example.com is missing",
    }


@pytest.mark.parametrize(
    ("setting", "fits", "best"), [("namespace", {"one"}, "tenant-a"), ("all", {"tenant-a/one", "tenant-b/one"}, "tenant-b")]
)
def test_an_application_considers_the_clusters_of_its_namespace_or_all(setting: str, fits: set[str], best: str) -> None:
    """The cluster of the other namespace has the better metric, which moves the application there and back."""
    other = elsewhere(cluster("one", metrics=weigh(b=1)), "tenant-b")
    runs = ScheduleRuns(
        application(), cluster("one", metrics=weigh(a=1)), other, *measure(a=0.1, b=0.9), applicationClusters=setting
    )
    decided = runs.run()
    assert {result.name for result in decided.explain("Application", "echo", NAMESPACE) if result.eligible} == fits
    assert runs.status()["scheduled_to"]["namespace"] == best
    runs.run(3600, *measure(a=0.9, b=0.1))
    assert runs.status()["scheduled_to"]["namespace"] == NAMESPACE


@pytest.mark.parametrize(
    ("stickiness", "competitor", "expected"),
    [(0, 0.501, "two"), (0.1, 0.501, "one"), (0.1, 0.59, "one"), (0.1, 0.61, "two"), (10, 1.0, "one")],
)
def test_stickiness_is_the_threshold_of_a_migration(stickiness: float, competitor: float, expected: str) -> None:
    """The application runs on `one`, whose metric is 0.5; the metric of `two` rises."""
    clusters = cluster("one", metrics=weigh(a=1)), cluster("two", metrics=weigh(b=1))
    runs = ScheduleRuns(application(), *clusters, *measure(a=0.5, b=0.4), stickiness=stickiness)
    runs.run()
    assert runs.target() == "one"
    runs.run(3600, *measure(a=0.5, b=competitor))
    assert runs.target() == expected


BACKENDS = {"Cluster": (made(), cloud), "MagnumCluster": (magnum_cluster("made"), project)}


@pytest.mark.parametrize("kind", BACKENDS)
def test_clouds_and_projects_are_ranked_by_the_weighted_mean_of_their_metrics(kind: str) -> None:
    resource, backend = BACKENDS[kind]
    decided = schedule(
        resource,
        backend("mixed", *weigh(low=3, high=1)),
        backend("high", *weigh(high=0.5)),
        backend("without"),
        *measure(low=0.2, high=0.8),
    )
    totals = {result.name: result.total for result in decided.explain(kind, "made", NAMESPACE)}
    assert totals == {"mixed": pytest.approx((0.2 * 3 + 0.8 * 1) / 4), "high": pytest.approx(0.8), "without": None}
    assert target(decided, kind, "made") == "high"


@pytest.mark.parametrize("kind", BACKENDS)
def test_clouds_and_projects_without_metrics_score_0_and_a_hash_breaks_the_tie(kind: str) -> None:
    resource, backend = BACKENDS[kind]
    names = ["a", "b", "c", "d"]
    for number in range(8):
        name = f"made-{number}"
        named = {**resource, "metadata": {**resource["metadata"], "name": name}}
        decided = schedule(named, *map(backend, names))
        assert {result.total for result in decided.explain(kind, name, NAMESPACE)} == {0}
        identity = f"{kind}/{NAMESPACE}/{name}"
        expected = min(names, key=lambda each: sha256(f"{identity}\n{each}".encode()).digest())
        assert target(decided, kind, name) == expected


LABELLED = {
    "Application": (application(constraints={"labels": ["location is DE"]}), cluster),
    "Cluster": (made("echo", labels=["location is DE"]), cloud),
    "MagnumCluster": (magnum_cluster("echo", labels=["location is DE"]), project),
}


@pytest.mark.parametrize("kind", LABELLED)
def test_label_constraints_restrict_clusters_clouds_and_projects(kind: str) -> None:
    resource, backend = LABELLED[kind]
    decided = schedule(
        resource, backend("german", labels={"location": "DE"}), backend("slovak", labels={"location": "SK"}), backend("unknown")
    )
    eligible = {result.name: result.eligible for result in decided.explain(kind, "echo", NAMESPACE)}
    assert eligible == {"german": True, "slovak": False, "unknown": False}
    assert target(decided, kind, "echo") == "german"


MEASURED = {
    "Application": (application(constraints={"metrics": ["load = 5"]}), lambda name, *refs: cluster(name, metrics=[*refs])),
    "Cluster": (made("echo", metrics=["load = 5"]), cloud),
}


@pytest.mark.parametrize("kind", MEASURED)
def test_metric_constraints_compare_the_value_of_clusters_and_clouds(kind: str) -> None:
    resource, backend = MEASURED[kind]
    documents = [*measure(load=5, other=4)[:1], metric("load", 0, 10), metric("other", 0, 10)]
    decided = schedule(resource, backend("five", *weigh(load=0.45)), backend("none"), backend("four", *weigh(other=1)), *documents)
    assert target(decided, kind, "echo") == "five"
    documents = [*measure(load=6)[:1], metric("load", 0, 10)]
    decided = schedule(resource, backend("five", *weigh(load=0.45)), *documents)
    assert (target(decided, kind, "echo"), "unschedulable" in codes(decided)) == (None, True)


def provider(name: str, namespace: str = "", **values: float) -> Body:
    kind = "MetricsProvider" if namespace else "GlobalMetricsProvider"
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    spec = {"type": "static", "static": {"metrics": values}}
    return {"api": "core", "kind": kind, "metadata": metadata, "spec": spec}


def named_metric(name: str, remote: str, source: str, namespace: str = "") -> Body:
    kind = "Metric" if namespace else "GlobalMetric"
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    spec = {"min": 0, "max": 1, "allowed_values": [], "provider": {"name": source, "metric": remote}}
    return {"api": "core", "kind": kind, "metadata": metadata, "spec": spec}


def elsewhere(body: Body, namespace: str) -> Body:
    return {**body, "metadata": {**body["metadata"], "namespace": namespace}}


def test_two_metrics_may_have_the_same_name_on_two_providers() -> None:
    decided = schedule(
        application(constraints={"metrics": ["latency_from_A < 0.5"]}),
        cluster("near-a", metrics=weigh(latency_from_A=1)),
        cluster("near-b", metrics=weigh(latency_from_B=1)),
        named_metric("latency_from_A", "latency", "prometheus-a"),
        named_metric("latency_from_B", "latency", "prometheus-b"),
        provider("prometheus-a", latency=0.1),
        provider("prometheus-b", latency=0.9),
    )
    totals = {result.name: result.scores for result in decided.explain("Application", "echo", NAMESPACE)}
    assert totals["near-a"] == {"latency_from_A": 0.1}
    assert target(decided, "Application", "echo") == "near-a"


def test_a_metric_name_is_used_once_per_kind() -> None:
    twice = [named_metric("heat", "heat", "p"), named_metric("heat", "other", "p"), provider("p", heat=0.5)]
    assert "duplicate-identity" in codes(schedule(*twice))
    once = [named_metric("heat", "heat", "p"), named_metric("heat", "heat", "p", NAMESPACE), provider("p", heat=0.5)]
    assert "duplicate-identity" not in codes(schedule(*once))


def test_global_metrics_serve_all_namespaces_and_namespaced_metrics_their_own() -> None:
    refs = [{"name": "own", "weight": 1, "namespaced": True}, {"name": "shared", "weight": 1}]
    decided = schedule(
        *(elsewhere(body, space) for space in ("a", "b") for body in (application(), cluster("one", metrics=refs))),
        named_metric("shared", "shared", "p"),
        provider("p", shared=0.4),
        named_metric("own", "own", "p", "a"),
        provider("p", "a", own=0.2),
    )
    (result,) = decided.explain("Application", "echo", "a")
    assert (result.eligible, result.scores) == (True, {"own": 0.2, "shared": 0.4})
    (result,) = decided.explain("Application", "echo", "b")
    assert (result.eligible, "there is no Metric 'own' in namespace b" in result.reason) == (False, True)


@pytest.mark.parametrize(
    ("value", "allowed", "usable"),
    [(0.0, [], True), (2.5, [], True), (5.0, [], True), (5.1, [], False), (-0.1, [], False), (2, [1, 2], True), (3, [1, 2], False)],
)
def test_a_value_must_be_in_the_interval_and_among_the_allowed_values(value: float, allowed: list[int], usable: bool) -> None:
    runs = ScheduleRuns(
        application(), cluster("one", metrics=weigh(heat=1)), measure(heat=value)[0], metric("heat", 0, 5, *allowed), stickiness=0
    )
    (result,) = runs.run().explain("Application", "echo", NAMESPACE)
    assert (result.eligible, result.total) == (usable, pytest.approx(value / 5) if usable else None)


APPLICATION = """\
api: kubernetes
kind: Application
metadata: {{name: echo, namespace: tenant-a}}
spec:
  manifest:
  - {{apiVersion: v1, kind: ConfigMap, metadata: {{name: echo}}, data: {{version: "{version}"}}}}
  constraints: {{cluster: {{labels: {labels}}}}}
"""


def test_an_update_is_scheduled_before_its_objects_change(fleet: Fleet) -> None:
    """The user updates the application: until the next run nothing changes, and then its new objects are on the new cluster only. The old
    ones stay for the overlap."""
    two = cluster_yaml("two").replace("location: DE", "location: SK")
    fleet.commit(
        {"one.yaml": cluster_yaml("one"), "two.yaml": two, "echo.yaml": APPLICATION.format(version=1, labels="[location is DE]")}
    )
    fleet.reconcile()
    objects = "clusters/tenant-a.{}/default/configmap-echo.yaml"
    fleet.commit({"echo.yaml": APPLICATION.format(version=2, labels="[location is SK]")}, hour=1)
    assert fleet.load(objects.format("one"))["data"] == {"version": "1"}, "the update waits for the scheduler"
    fleet.reconcile(1)
    assert fleet.load(objects.format("one"))["data"] == {"version": "1"}
    assert fleet.load(objects.format("two"))["data"] == {"version": "2"}
    assert fleet.reconcile(1.5).changed
    assert objects.format("one") not in fleet.files()
    record = fleet.load(ECHO)
    assert record["status"]["kube_controller_triggered"] == record["status"]["scheduled"] == "2026-03-02T09:00:00Z"
    assert record["metadata"]["modified"] <= record["status"]["kube_controller_triggered"]
    assert not fleet.reconcile(2).changed, "the scheduler has processed this version"


def test_an_update_on_the_same_cluster_is_deployed_again_and_not_scheduled_again(fleet: Fleet) -> None:
    fleet.commit({"one.yaml": cluster_yaml("one"), "echo.yaml": APPLICATION.format(version=1, labels=NO_LABELS)})
    fleet.reconcile()
    fleet.commit({"echo.yaml": APPLICATION.format(version=2, labels=NO_LABELS)}, hour=1)
    run = fleet.reconcile(1)
    assert run.plan.moves == ()
    assert fleet.load("clusters/tenant-a.one/default/configmap-echo.yaml")["data"] == {"version": "2"}
    status = fleet.load(ECHO)["status"]
    assert (status["scheduled"], status["kube_controller_triggered"]) == ("2026-03-02T08:00:00Z", "2026-03-02T09:00:00Z")
    assert not fleet.reconcile(2).changed, "scheduled again on the same cluster, without an update"


CRON_TAB = {"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": {"name": "nightly"}}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "crontabs.stable.example.com"},
    "spec": {"group": "stable.example.com"},
}


@pytest.mark.parametrize(
    ("manifest", "required", "reported"),
    [
        ([CRON_TAB, CRON_TAB], [], 1),
        ([CRON_TAB], ["jobs.example.com"], 1),
        ([CRON_TAB], ["crontabs.stable.example.com"], 0),
        ([DEFINITION, CRON_TAB], [], 0),
        ([{"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"}}], [], 0),
    ],
    ids=["no constraint", "another constraint", "a constraint", "its own definition", "a kind of Kubernetes"],
)
def test_an_application_with_a_custom_resource_needs_a_constraint(manifest: list[Body], required: list[str], reported: int) -> None:
    body = {**application(constraints={"custom_resources": required})}
    body["spec"] = {**body["spec"], "manifest": manifest}
    found = [finding for finding in gitsched.validate([body]) if finding.code == "krake-custom-resource"]
    assert len(found) == reported
    assert all("<plural>.stable.example.com" in finding.message for finding in found)


def test_an_object_of_a_custom_resource_is_rendered_where_its_definition_is_available(fleet: Fleet) -> None:
    name = "crontabs.stable.example.com"
    body = application(constraints={"custom_resources": [name]})
    body["spec"] = {**body["spec"], "manifest": [CRON_TAB]}
    clusters = [cluster("plain"), cluster("other", custom_resources=["jobs.example.com"]), cluster("with", custom_resources=[name])]
    fleet.commit({"all.yaml": yaml.safe_dump_all([body, *clusters])})
    assert fleet.reconcile().plan.findings == ()
    assert [path for path in fleet.files() if "crontab" in path] == [
        "clusters/tenant-a.with/default/crontab.stable.example.com-nightly.yaml"
    ]
