"""What ends the worker of Krake's scheduler, or leads it astray, is a finding here, and everything else goes on."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

import gitsched
from tests.apis.krake.conftest import (
    MANIFEST,
    SPACE,
    TOSCA,
    Body,
    Story,
    application,
    cloud,
    cluster,
    codes,
    find,
    measure,
    metric,
    weigh,
)

GONE = {"api": "infrastructure", "kind": "Cloud", "namespace": SPACE, "name": "gone"}
HERE = {"api": "kubernetes", "kind": "Cluster", "namespace": SPACE, "name": "one"}


@pytest.mark.parametrize(
    ("documents", "wanted"),
    [
        pytest.param(
            [cluster("one", metrics=weigh(same=1)), metric("same", 1, 1), *measure(same=1)[:1]],
            {"krake-metric-range", "krake-failing-metric", "unschedulable"},
            id="min is max",
        ),
        pytest.param(
            [cluster("one", metrics=weigh(a=1, b=-1)), *measure(a=0.5, b=0.5)], {"krake-weights"}, id="weights add up to nothing"
        ),
        pytest.param(
            [cluster("one", metrics=weigh(unknown=1))], {"krake-failing-metric", "unschedulable"}, id="a metric is not there"
        ),
        pytest.param(
            [cluster("one", tosca=TOSCA, scheduled_to=GONE, inherit_labels=True)], {"krake-cloud-missing"}, id="a cloud is gone"
        ),
        pytest.param(
            [application(constraints={"metrics": ["a > five"]}), cluster("one", metrics=weigh(a=1)), *measure(a=0.5)],
            {"krake-constraint-number", "unschedulable"},
            id="a constraint compares with a word",
        ),
        pytest.param(
            [application(constraints={"metrics": ["a > 0"]}), cluster("one")], {"unschedulable"}, id="a constraint without metrics"
        ),
        pytest.param([application(status={"scheduled_to": HERE}), cluster("one")], {"krake-timestamps"}, id="no timestamps"),
        pytest.param(
            [cluster("one", tosca=TOSCA, constraints={"labels": ["a is b"]}), cloud("c", labels={"a": "b"})],
            set(),
            id="label constraints on a cloud, and none on its metrics",
        ),
        pytest.param([application(auto_cluster_create=True)], {"unschedulable"}, id="nothing to choose from"),
    ],
)
def test_a_crash_of_upstream_is_a_finding(documents: list[Body], wanted: set[str]) -> None:
    others = [] if any(body["kind"] == "Application" for body in documents) else [application()]
    assert codes(Story(*others, *documents).run()) == wanted


def test_without_a_mean_of_its_metrics_a_cluster_is_one_without_metrics() -> None:
    story = Story(application(), cluster("one", metrics=weigh(a=1, b=-1)), *measure(a=0.5, b=0.5))
    story.run()
    assert story.place() == "one"


def test_one_cluster_with_a_bad_metric_stops_only_itself() -> None:
    sick = cluster("sick", metrics=weigh(same=1))
    story = Story(application(), sick, cluster("sound"), metric("same", 1, 1), *measure(same=1)[:1])
    story.run()
    assert story.place() == "sound"
    assert story.status("Cluster", "sick")["state"] == "FAILING_METRICS"
    assert story.status("Cluster", "sick")["metrics_reasons"]["same"]["code"] == "INVALID_METRIC"


def test_a_metric_that_recovers_leaves_no_reason_behind() -> None:
    story = Story(application(), cluster("one", metrics=weigh(a=1)), *measure(a=7))
    story.run()
    assert story.place() is None
    story.run(3600, *measure(a=0.7))
    assert story.place() == "one"
    records = [body for body in story.left if body["kind"] == "Cluster"]
    assert all("metrics_reasons" not in body["status"] for body in records)


def test_a_cluster_that_was_offline_is_not_online_because_its_metrics_recovered() -> None:
    story = Story(application(), cluster("one", "OFFLINE", metrics=weigh(a=1)), *measure(a=7))
    story.run()
    story.run(3600, *measure(a=0.7))
    assert story.place() is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "0.5", None])
def test_what_a_static_provider_holds_is_a_number_or_a_finding(value: Any) -> None:
    schedule = Story(application(), cluster("one", metrics=weigh(a=1)), cluster("two"), *measure(a=value)).run()
    assert schedule.findings
    assert find(list(schedule.documents), "Application", "echo")["status"]["scheduled_to"]["name"] == "two"


def test_what_is_missing_is_told_by_kind_and_namespace() -> None:
    inside = cluster("one", metrics=[{"name": "m", "weight": 1, "namespaced": True}])
    (told,) = (f.message for f in Story(inside).run().findings if f.code == "krake-failing-metric")
    assert f"there is no Metric 'm' in namespace {SPACE}" in told
    (told,) = (f.message for f in Story(cluster("one", metrics=weigh(a=1)), metric("a")).run().findings)
    assert "there is no GlobalMetricsProvider 'p'" in told


def test_an_application_in_the_wrong_namespace_is_told_so() -> None:
    elsewhere = {**cluster("one"), "metadata": {"name": "one", "namespace": "other"}}
    story = Story(application(), elsewhere)
    (told,) = (finding.message for finding in story.run().findings)
    assert told.endswith(
        f"could not be scheduled: no Cluster found in namespace {SPACE}, and an application runs on clusters of its own namespace"
    )
    assert story.status()["reason"]["message"] == "No matching Kubernetes cluster found"


def test_a_metric_of_a_namespace_has_no_global_provider() -> None:
    local = {**metric("a"), "kind": "Metric", "metadata": {"name": "a", "namespace": SPACE}}
    refs = [{"name": "a", "weight": 1, "namespaced": True}]
    schedule = Story(cluster("one", metrics=refs), local, *measure(a=0.5)).run()
    assert codes(schedule) == {"krake-failing-metric"}
    source = {**measure(a=0.5)[0], "kind": "MetricsProvider", "metadata": {"name": "p", "namespace": SPACE}}
    assert codes(Story(cluster("one", metrics=refs), local, source).run()) == set()


def test_validate_places_a_mistake_in_the_text_of_a_constraint() -> None:
    (finding,) = gitsched.validate([application(constraints={"labels": ["location is DE", "location of DE"]})])
    assert finding.code == "krake-label-constraint"
    assert "expected an operator such as is, is not, in, not in at character 10" in finding.message


def test_a_misspelt_kind_is_not_passed_over_in_silence() -> None:
    (finding,) = gitsched.validate([{**application(), "kind": "Aplication"}])
    assert (finding.severity, finding.code) == ("warning", "unknown-kind")
    assert "did you mean Application?" in finding.message
    assert gitsched.validate([{"api": "core", "kind": "RoleBinding", "metadata": {"name": "r"}}]) == []


@pytest.mark.parametrize("api", ["kubernets", "Kubernetes", "infra"])
def test_a_misspelt_api_is_not_passed_over_in_silence(api: str) -> None:
    (finding,) = gitsched.validate([{**application(), "api": api}])
    assert (finding.severity, finding.code) == ("warning", "unknown-kind")
    assert "did you mean kubernetes?" in finding.message


def test_a_global_cloud_says_where_it_is() -> None:
    body = cloud("sky", everywhere=True)
    (finding,) = gitsched.validate([{**body, "spec": {"type": "openstack"}}])
    assert (finding.severity, finding.code) == ("error", "missing-field")


@pytest.mark.parametrize("url", ["prometheus:9090", "ftp://p", "http://", "http://p:canary@"])
def test_a_provider_that_nobody_can_ask_is_told_without_its_address(url: str) -> None:
    provider = {"type": "prometheus", "prometheus": {"url": url}}
    (finding,) = gitsched.validate([{**measure()[0], "spec": provider}])
    assert (finding.severity, finding.code) == ("warning", "krake-provider-url")
    assert url not in finding.message


@pytest.mark.parametrize(
    ("kind", "said", "told"),
    [
        ("prometheus", {"url": "http://h", "tokenFrom": {"env": "T"}}, []),
        ("prometheus", {"url": "http://user:canary@h"}, [("info", "krake-secret-in-git", "spec.prometheus.url")]),
        ("prometheus", {"url": "http://user@h"}, []),
        (
            "influx",
            {"url": "http://h", "org": "o", "bucket": "b", "token": "canary"},
            [("info", "krake-secret-in-git", "spec.influx.token")],
        ),
        (
            "prometheus",
            {"url": "http://h", "tokenFrom": {"env": "T", "file": "/t"}},
            [("warning", "krake-token-twice", "spec.prometheus.tokenFrom")],
        ),
    ],
)
def test_secrets_belong_to_the_operator(kind: str, said: Body, told: list[tuple[str, str, str]]) -> None:
    findings = gitsched.validate([{**measure()[0], "spec": {"type": kind, kind: said}}])
    assert [(finding.severity, finding.code, finding.message.partition(":")[0]) for finding in findings] == told
    assert "canary" not in "".join(finding.message for finding in findings)


@pytest.mark.parametrize("key", [None, 1, True])
def test_a_key_that_is_no_text_is_a_finding(key: Any) -> None:
    """Parsers of YAML give such."""
    broken = {**application(), "metadata": {"name": "echo", "namespace": SPACE, key: "x"}}
    assert "wrong-type" in codes(Story(broken).run())
    assert (
        codes(Story({**application(), "spec": {"manifest": [{**MANIFEST[0], "data": {key: "x", "y": "z"}}]}}, cluster("one")).run())
        == set()
    )


@pytest.mark.parametrize("value", [date(2026, 1, 1), b"x"], ids=str)
def test_a_value_that_json_does_not_know_is_a_finding(value: object) -> None:
    """Other parsers of YAML make dates of what is not quoted."""
    (finding,) = gitsched.validate(
        [{**application(), "metadata": {"name": "echo", "namespace": SPACE, "labels": {"since": value}}}]
    )
    assert (finding.severity, finding.code) == ("error", "wrong-type")
    assert "metadata.labels.since: a " in finding.message


def test_half_a_character_is_a_finding() -> None:
    (finding,) = gitsched.validate([{**measure()[0], "spec": {"type": "\ud800"}}])
    assert finding.code == "wrong-type"


@pytest.mark.parametrize("huge", [10**400, -(10**400)])
def test_an_integer_that_no_float_can_hold_is_no_crash(huge: int) -> None:
    refs = [{"name": "a", "weight": huge}]
    story = Story(application(backoff=huge), cluster("one", metrics=refs), *measure(a=huge), metric("b", 0, huge), stickiness=0)
    assert "krake-failing-metric" in codes(story.run())


def test_a_record_that_somebody_wrote_over_is_no_memory() -> None:
    story = Story(application(), cluster("one"))
    story.run()
    story.left = [{**body, "status": "x"} for body in story.left]
    story.run(3600)
    assert story.place() == "one"


@pytest.mark.parametrize(("state", "hint"), [("Online", "did you mean ONLINE?"), ("up", "not a state of a cluster")])
def test_a_state_that_is_none_is_told(state: str, hint: str) -> None:
    schedule = Story(cluster("one", state)).run()
    (message,) = (finding.message for finding in schedule.findings if finding.code == "krake-cluster-state")
    assert hint in message
