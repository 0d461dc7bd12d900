"""Findings about applications, clusters and metrics: inputs that crash or mislead Krake's scheduler affect only themselves."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders.krake import (
    NAMESPACE,
    TOSCA,
    Body,
    ScheduleRuns,
    application,
    cloud,
    cluster,
    codes,
    find,
    measure,
    metric,
    weigh,
)
from tests.tables import each_row

MISSING_CLOUD = {"api": "infrastructure", "kind": "Cloud", "namespace": NAMESPACE, "name": "gone"}
CLUSTER_ONE = {"api": "kubernetes", "kind": "Cluster", "namespace": NAMESPACE, "name": "one"}


@each_row(
    ("documents", "expected_codes"),
    [
        pytest.param(
            [cluster("one", metrics=weigh(same=1)), metric("same", 1, 1), *measure(same=1)[:1]],
            {"krake-metric-range", "krake-failing-metric", "unschedulable"},
            id="min is max",
        ),
        pytest.param(
            [cluster("one", metrics=weigh(a=1, b=-1)), *measure(a=0.5, b=0.5)], {"krake-weights"}, id="weights add up to 0"
        ),
        pytest.param(
            [cluster("one", metrics=weigh(unknown=1))], {"krake-failing-metric", "unschedulable"}, id="a metric is missing"
        ),
        pytest.param(
            [cluster("one", tosca=TOSCA, scheduled_to=MISSING_CLOUD, inherit_labels=True)],
            {"krake-cloud-missing"},
            id="a cloud is missing",
        ),
        pytest.param(
            [application(constraints={"metrics": ["a > five"]}), cluster("one", metrics=weigh(a=1)), *measure(a=0.5)],
            {"krake-constraint-number", "unschedulable"},
            id="a constraint compares with text",
        ),
        *(
            pytest.param(
                [application(constraints={"metrics": [f"a != {bound}"]}), cluster("one", metrics=weigh(a=1)), *measure(a=0.5)],
                {"krake-constraint-number"},
                id=f"a constraint compares with {bound}",
            )
            for bound in ("nan", "1e400")
        ),
        pytest.param(
            [application(constraints={"metrics": ["a > 0"]}), cluster("one")],
            {"unschedulable", "krake-constraint-impossible"},
            id="a constraint without metrics",
        ),
        pytest.param([application(status={"scheduled_to": CLUSTER_ONE}), cluster("one")], {"krake-timestamps"}, id="no timestamps"),
        pytest.param(
            [cluster("one", tosca=TOSCA, constraints={"labels": ["a is b"]}), cloud("c", labels={"a": "b"})],
            set(),
            id="label constraints on a cloud without metrics",
        ),
        pytest.param([application(auto_cluster_create=True)], {"unschedulable"}, id="no candidates"),
    ],
)
def test_inputs_that_crash_krake_are_findings(documents: list[Body], expected_codes: set[str]) -> None:
    others = [] if any(body["kind"] == "Application" for body in documents) else [application()]
    assert codes(ScheduleRuns(*others, *documents).run()) == expected_codes


def test_a_cluster_whose_weights_add_up_to_0_is_handled_as_one_without_metrics() -> None:
    runs = ScheduleRuns(application(), cluster("one", metrics=weigh(a=1, b=-1)), *measure(a=0.5, b=0.5))
    runs.run()
    assert runs.target() == "one"


def test_an_invalid_metric_affects_only_its_own_cluster() -> None:
    failing = cluster("failing", metrics=weigh(same=1))
    runs = ScheduleRuns(application(), failing, cluster("healthy"), metric("same", 1, 1), *measure(same=1)[:1])
    runs.run()
    assert runs.target() == "healthy"
    assert runs.status("Cluster", "failing")["state"] == "FAILING_METRICS"
    assert runs.status("Cluster", "failing")["metrics_reasons"]["same"]["code"] == "INVALID_METRIC"


def test_the_reason_of_a_failed_metric_is_removed_when_it_recovers() -> None:
    runs = ScheduleRuns(application(), cluster("one", metrics=weigh(a=1)), *measure(a=7))
    runs.run()
    assert runs.target() is None
    runs.run(3600, *measure(a=0.7))
    assert runs.target() == "one"
    records = [body for body in runs.records if body["kind"] == "Cluster"]
    assert all("metrics_reasons" not in body["status"] for body in records)


def test_an_offline_cluster_stays_offline_when_its_metrics_recover() -> None:
    runs = ScheduleRuns(application(), cluster("one", "OFFLINE", metrics=weigh(a=1)), *measure(a=7))
    runs.run()
    runs.run(3600, *measure(a=0.7))
    assert runs.target() is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "0.5", None])
def test_an_invalid_static_value_is_a_finding(value: Any) -> None:
    schedule = ScheduleRuns(application(), cluster("one", metrics=weigh(a=1)), cluster("two"), *measure(a=value)).run()
    assert schedule.findings
    assert find(list(schedule.documents), "Application", "echo")["status"]["scheduled_to"]["name"] == "two"


def test_a_missing_document_is_reported_with_kind_and_namespace() -> None:
    namespaced = cluster("one", metrics=[{"name": "m", "weight": 1, "namespaced": True}])
    (message,) = (f.message for f in ScheduleRuns(namespaced).run().findings if f.code == "krake-failing-metric")
    assert f"there is no Metric 'm' in namespace {NAMESPACE}" in message
    (message,) = (f.message for f in ScheduleRuns(cluster("one", metrics=weigh(a=1)), metric("a")).run().findings)
    assert "there is no GlobalMetricsProvider 'p'" in message


@pytest.mark.parametrize(
    ("namespace", "hint"), [("other", "; there are Clusters in other"), ("tenant", "; did you mean the namespace tenant?")]
)
def test_an_application_without_clusters_in_its_namespace_is_reported(namespace: str, hint: str) -> None:
    other_namespace = {**cluster("one"), "metadata": {"name": "one", "namespace": namespace}}
    runs = ScheduleRuns(application(), other_namespace)
    (message,) = (finding.message for finding in runs.run().findings)
    assert message.endswith(
        f"could not be scheduled: no Cluster found in namespace {NAMESPACE}, and an application runs on clusters of its own namespace"
        f" (krake.applicationClusters){hint}"
    )
    assert runs.status()["reason"]["message"] == "No matching Kubernetes cluster found"


def test_a_namespaced_metric_needs_a_namespaced_provider() -> None:
    namespaced = {**metric("a"), "kind": "Metric", "metadata": {"name": "a", "namespace": NAMESPACE}}
    refs = [{"name": "a", "weight": 1, "namespaced": True}]
    schedule = ScheduleRuns(cluster("one", metrics=refs), namespaced, *measure(a=0.5)).run()
    assert codes(schedule) == {"krake-failing-metric"}
    source = {**measure(a=0.5)[0], "kind": "MetricsProvider", "metadata": {"name": "p", "namespace": NAMESPACE}}
    assert codes(ScheduleRuns(cluster("one", metrics=refs), namespaced, source).run()) == set()


@pytest.mark.parametrize("huge", [10**400, -(10**400)])
def test_an_integer_beyond_the_range_of_float_is_a_finding(huge: int) -> None:
    refs = [{"name": "a", "weight": huge}]
    runs = ScheduleRuns(
        application(backoff=huge), cluster("one", metrics=refs), *measure(a=huge), metric("b", 0, huge), stickiness=0
    )
    assert "krake-failing-metric" in codes(runs.run())


def test_a_damaged_record_is_ignored() -> None:
    runs = ScheduleRuns(application(), cluster("one"))
    runs.run()
    runs.records = [{**body, "status": "x"} for body in runs.records]
    runs.run(3600)
    assert runs.target() == "one"


@pytest.mark.parametrize(("state", "hint"), [("Online", "did you mean ONLINE?"), ("up", "not a state of a cluster")])
def test_an_unknown_cluster_state_is_reported(state: str, hint: str) -> None:
    schedule = ScheduleRuns(cluster("one", state)).run()
    (message,) = (finding.message for finding in schedule.findings if finding.code == "krake-cluster-state")
    assert hint in message
