"""A Service that is apart from its Deployment: each cure that its finding names brings them together."""

from __future__ import annotations

import shutil

import pytest
from click.testing import CliRunner

from gitsched.cli import cli
from gitsched.decide.relations.companion_findings import SEPARATED_CODE
from gitsched.reconcile.review.comparison import compare_plans

from .conftest import UNGUARDED, Fleet, at_hour, cluster, deployment

TEMPLATE = "  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: web}]}\n"
SERVICE = (
    "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n"
)
POLICY = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: %s, namespace: default}
spec:
  resourceSelectors: [%s]
  placement: {%s}
"""
DEPLOYMENTS, SERVICES = "{apiVersion: apps/v1, kind: Deployment}", "{apiVersion: v1, kind: Service}"
GROUPS = "clusterAffinities: [{affinityName: a, clusterNames: [one]}, {affinityName: b, clusterNames: [two]}]"
WEIGHED = "replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}"
TOGETHER = {"policy.yaml": POLICY % ("both", f"{DEPLOYMENTS}, {SERVICES}", GROUPS)}
ALONE = {
    "policy.yaml": POLICY % ("apps", DEPLOYMENTS, GROUPS),
    "services.yaml": POLICY % ("services", SERVICES, "clusterAffinity: {clusterNames: [one]}"),
}
FOLLOW = {"gitsched.yaml": f"{UNGUARDED}  followTargets: true\n"}
ANNOTATED = {"service.yaml": SERVICE.replace("name: web,", "name: web, annotations: {gitsched.io/follow-targets: 'false'},")}
APART = (
    "Service/default/web does not go to two, where its target Deployment.apps/default/web is, and goes to one, where its target "
)
REBALANCE = "gitsched rebalance -n default Deployment/web Service/web"
LEAVE = "leave it out of policies and set spec.followTargets: true in gitsched.yaml, or, if this is intended, annotate it"


def list_found(fleet: Fleet, hour: float) -> list[str]:
    return [finding.message for finding in fleet.reconcile(hour).plan.findings if finding.code == SEPARATED_CODE]


@pytest.fixture
def apart(fleet: Fleet) -> Fleet:
    """Deployment `web` has moved to cluster `two` and stays there, although `one` is without its taint again; hour 1 has no Service yet."""
    web = {"web.yaml": deployment("web") + TEMPLATE, "gitsched.yaml": UNGUARDED}
    fleet.commit({"one.yaml": cluster("one", "bad:NoExecute"), "two.yaml": cluster("two"), **web, **TOGETHER})
    fleet.reconcile()
    assert fleet.where("default/deployment-web") == ["two"]
    fleet.commit({"one.yaml": cluster("one")}, hour=1)
    return fleet


def places(fleet: Fleet) -> list[list[str]]:
    return [fleet.where("default/deployment-web"), fleet.where("default/service-web")]


@pytest.mark.parametrize(
    ("cure", "expected"),
    [
        pytest.param(REBALANCE, [["one"], ["one"]], id="rebalance"),
        pytest.param({**FOLLOW, "policy.yaml": POLICY % ("both", DEPLOYMENTS, GROUPS)}, [["two"], ["two"]], id="follow"),
        pytest.param(ANNOTATED, [["two"], ["one"]], id="accept"),
    ],
)
def test_history_separates_objects_of_one_policy(apart: Fleet, cure: str | dict[str, str], expected: list[list[str]]) -> None:
    apart.commit({"service.yaml": SERVICE}, hour=1)
    (message,) = list_found(apart, 1)
    assert message.startswith(APART)
    assert f"if scheduling history separates them, run {REBALANCE}; else {LEAVE}" in message
    assert "change the clusters" not in message
    if isinstance(cure, str):
        options = ["--repo", str(apart.path), "--cache-dir", str(apart.cache), "--now", at_hour(2).isoformat(), "--write"]
        CliRunner().invoke(cli, [*cure.split()[1:], *options], catch_exceptions=False)
        cure = {}
    apart.commit(cure, hour=2)
    assert list_found(apart, 2) == []
    assert places(apart) == expected


@pytest.mark.parametrize(
    ("cure", "expected"),
    [
        pytest.param({"services.yaml": ALONE["services.yaml"].replace("[one]", "[two]")}, [["two"], ["two"]], id="clusters"),
        pytest.param({**FOLLOW, "services.yaml": None}, [["two"], ["two"]], id="follow"),
        pytest.param(ANNOTATED, [["two"], ["one"]], id="accept"),
    ],
)
def test_a_policy_of_its_own_is_changed(apart: Fleet, cure: dict[str, str | None], expected: list[list[str]]) -> None:
    apart.commit({"service.yaml": SERVICE, **ALONE}, hour=1)
    (message,) = list_found(apart, 1)
    assert message.startswith(APART)
    assert f"change the clusters in its policy, {LEAVE}" in message
    apart.commit(cure, hour=2)
    assert list_found(apart, 2) == []
    assert places(apart) == expected


def test_a_division_separates_objects_of_one_policy(fleet: Fleet) -> None:
    """Nothing is scheduled otherwise then, so that only the other cures help."""
    web = {"web.yaml": deployment("web", replicas=1) + TEMPLATE, "service.yaml": SERVICE, "gitsched.yaml": UNGUARDED}
    clusters = {"one.yaml": cluster("one"), "two.yaml": cluster("two")}
    fleet.commit({**clusters, **web, "policy.yaml": POLICY % ("both", f"{DEPLOYMENTS}, {SERVICES}", WEIGHED)})
    (message,) = list_found(fleet, 0)
    assert message.startswith("Service/default/web goes to ")
    assert f"; else {LEAVE}" in message
    fleet.commit({**FOLLOW, "policy.yaml": POLICY % ("both", DEPLOYMENTS, WEIGHED)}, hour=1)
    assert list_found(fleet, 1) == []
    assert places(fleet)[0] == places(fleet)[1]


@pytest.mark.parametrize("has_state", [True, False])
def test_a_plan_says_what_only_withheld_changes_separate(fleet: Fleet, has_state: bool) -> None:
    """A run that withholds them has no such finding."""
    apps = {f"app{number}.yaml": deployment(f"app{number}") for number in range(12)}
    clusters = {"one.yaml": cluster("one"), "two.yaml": cluster("two")}
    policy = POLICY % ("apps", DEPLOYMENTS, "clusterAffinity: {clusterNames: [one]}")
    web = {"web.yaml": deployment("web") + TEMPLATE, "service.yaml": SERVICE, "services.yaml": ALONE["services.yaml"]}
    fleet.commit({**clusters, **apps, **web, "policy.yaml": policy})
    fleet.reconcile()
    fleet.commit({"policy.yaml": policy.replace("[one]", "[two]")}, hour=1)
    if not has_state:
        shutil.rmtree(fleet.cache)
    planned = [one.message for one in compare_plans(fleet.settings(1)).review.findings if one.code == SEPARATED_CODE]
    assert [message.partition(", and")[0] for message in planned] == [f"with the withheld changes, {APART.partition(', and')[0]}"]
    assert list_found(fleet, 1) == []
