"""The example is what the README says it is: a fleet that a platform team recognises, each policy explained."""

from __future__ import annotations

import re
import runpy
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

import gitsched
from tests import fork_server
from tests.tables import each_row

REPO = Path(__file__).parents[2] / "examples" / "repo"
POLICIES = sorted((REPO / "policies").rglob("*.yaml"))


def load(directory: str) -> list[dict[str, Any]]:
    return [document for path in sorted((REPO / directory).rglob("*.yaml")) for document in yaml.safe_load_all(path.read_text())]


def values(documents: list[dict[str, Any]], *path: str) -> list[Any]:
    found = []
    for document in documents:
        value: Any = document
        for name in path:
            value = value.get(name, {})
        found.append(value)
    return found


CLUSTERS = load("clusters")
APPS = load("apps")
POLICY_DOCUMENTS = load("policies")
RULES = [rule for rule in POLICY_DOCUMENTS if "placement" in rule["spec"]]
OVERRIDES = [rule for rule in POLICY_DOCUMENTS if "overrideRules" in rule["spec"]]


def test_ten_clusters_in_three_regions_of_two_providers() -> None:
    assert len(CLUSTERS) == 10
    assert len(set(values(CLUSTERS, "spec", "region"))) == 3
    assert set(values(CLUSTERS, "spec", "provider")) == {"onprem", "nimbus"}


def test_some_clusters_have_a_status_and_some_have_none() -> None:
    with_facts = [c["metadata"]["name"] for c in CLUSTERS if {"apiEnablements", "resourceSummary"} <= c.get("status", {}).keys()]
    assert 3 <= len(with_facts) <= 7


def test_workloads_are_of_many_kinds_and_namespaces() -> None:
    kinds = Counter(values(APPS, "kind"))
    assert kinds.keys() >= {
        "ClusterRole",
        "ConfigMap",
        "CronJob",
        "CustomResourceDefinition",
        "Deployment",
        "Job",
        "Namespace",
        "PostgresCluster",
        "Service",
        "StatefulSet",
    }
    assert kinds.total() - kinds["Namespace"] >= 15
    used = {d["metadata"]["namespace"] for d in APPS if "namespace" in d["metadata"]}
    own = {d["metadata"]["name"] for d in APPS if d["kind"] == "Namespace"}
    assert own < used, "some namespaces have a manifest of their own, others are made by gitsched"


def test_no_object_is_defined_twice() -> None:
    identities = Counter(
        (d["apiVersion"], d["kind"], d["metadata"].get("namespace"), d["metadata"]["name"])
        for d in CLUSTERS + APPS + POLICY_DOCUMENTS
    )
    assert [identity for identity, count in identities.items() if count > 1] == []


@each_row("path", POLICIES)
def test_every_policy_begins_with_a_comment(path: Path) -> None:
    comment = re.match(r"(?:# .+\n)+", path.read_text())
    assert comment is not None
    assert len(comment[0].split()) >= 20


@each_row("path", POLICIES)
def test_every_policy_names_clusters_that_exist(path: Path) -> None:
    names = set(values(CLUSTERS, "metadata", "name"))
    spec = yaml.safe_load(path.read_text())["spec"]
    placement = spec.get("placement", {})
    targets = [rule.get("targetCluster", {}) for rule in spec.get("overrideRules", [])]
    for affinity in [placement.get("clusterAffinity", {}), *placement.get("clusterAffinities", []), *targets]:
        assert {*affinity.get("clusterNames", []), *affinity.get("exclude", [])} <= names


def test_every_workload_is_selected_by_a_policy_or_is_a_dependency() -> None:
    brought = {"ConfigMap/helpdesk-mail", "ServiceAccount/helpdesk"}
    unclaimed = [d for d in APPS if d["kind"] != "Namespace" and not any(selects(rule, d) for rule in RULES)]
    assert {f"{d['kind']}/{d['metadata']['name']}" for d in unclaimed} == brought
    documents = gitsched.schedule(CLUSTERS + APPS + POLICY_DOCUMENTS).documents
    placed = {d["metadata"]["name"]: d["spec"] for d in documents if d["kind"].endswith("ResourceBinding")}
    clusters = placed["helpdesk-deployment"]["clusters"]
    assert placed["helpdesk-mail-configmap"]["requiredBy"][0]["clusters"] == clusters
    assert placed["helpdesk-serviceaccount"]["requiredBy"][0]["clusters"] == clusters


def selects(rule: dict[str, Any], document: dict[str, Any]) -> bool:
    """Selection as far as the example uses it: names, or labels by matchLabels."""
    metadata = document["metadata"]
    if rule["metadata"].get("namespace") not in (None, metadata.get("namespace")):
        return False
    for selector in rule["spec"]["resourceSelectors"]:
        labels = selector.get("labelSelector", {}).get("matchLabels", {})
        same_kind = (selector["apiVersion"], selector["kind"]) == (document["apiVersion"], document["kind"])
        if (
            same_kind
            and selector.get("name", metadata["name"]) == metadata["name"]
            and labels.items() <= metadata.get("labels", {}).items()
        ):
            return True
    return False


def test_an_override_gives_the_clusters_of_one_provider_a_mirror() -> None:
    (override,) = OVERRIDES
    (rule,) = override["spec"]["overrideRules"]
    (expression,) = rule["targetCluster"]["fieldSelector"]["matchExpressions"]
    assert set(expression["values"]) < set(values(CLUSTERS, "spec", expression["key"]))
    assert [entry["component"] for entry in rule["overriders"]["imageOverrider"]] == ["Registry"]


def test_a_taint_policy_waits_for_a_condition_that_a_cluster_has() -> None:
    (policy,) = (document for document in POLICY_DOCUMENTS if document["kind"] == "ClusterTaintPolicy")
    asked = {match["conditionType"] for name in ("addOnConditions", "removeOnConditions") for match in policy["spec"][name]}
    reported = {condition["type"] for c in CLUSTERS for condition in c.get("status", {}).get("conditions", [])}
    assert asked <= reported
    assert {taint["effect"] for taint in policy["spec"]["taints"]} == {"NoSchedule"}, "the example evicts nobody by itself"


def test_ordered_groups_express_cost_and_disaster_recovery() -> None:
    groups = {
        rule["metadata"]["name"]: [term["affinityName"] for term in rule["spec"]["placement"].get("clusterAffinities", [])]
        for rule in RULES
    }
    assert groups["private-first"] == ["private", "cloud"]
    assert groups["disaster-recovery"][:2] == ["primary", "backup"]


@pytest.mark.parametrize("path", sorted((REPO / "clusters").glob("fra-*.yaml")), ids=lambda path: path.stem)
def test_the_demo_only_adds_one_taint_to_clusters_of_the_primary(path: Path) -> None:
    tainted = runpy.run_path(str(REPO.parent / "demo.py"))["tainted"]
    before, after = yaml.safe_load(path.read_text()), yaml.safe_load(tainted(path.read_text()))
    added = after["spec"]["taints"].pop(0)
    assert added == {"key": "maintenance.example.com/power", "effect": "NoExecute"}
    assert after["spec"].pop("taints") == before["spec"].pop("taints", [])
    assert after == before


def test_the_demo_prints_sixty_lines_whose_hints_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from examples.demo import Demo, main

    fork_server.write_script(tmp_path / "gitsched")
    main(Demo(tmp_path / "demo", tmp_path / "gitsched"))
    told = capsys.readouterr().out
    assert len(told.splitlines()) <= 58, "make demo adds two lines when it creates its environment"
    assert re.findall(r"^\$ gitsched (\w+)", told, re.MULTILINE) == ["reconcile", "plan", "explain", "simulate", "reconcile"]
    assert "22 workloads placed" in told
    *_, page, glance, question = told.splitlines()
    assert Path(page.partition(": ")[2].strip()).read_text().startswith("<!doctype html>")
    for hint in (glance, question):
        assert subprocess.run(["sh", "-c", hint.partition(": ")[2]], capture_output=True, text=True).returncode == 0, hint


def test_the_example_hides_its_drafts() -> None:
    assert "drafts/" in (REPO / ".sourceignore").read_text().splitlines()
    assert list((REPO / "drafts").glob("*.yaml"))


def test_the_rebalancer_names_all_workloads_that_fail_over() -> None:
    (request,) = (draft for draft in load("drafts") if draft["kind"] == "WorkloadRebalancer")
    (policy,) = (rule for rule in RULES if rule["metadata"]["name"] == "disaster-recovery")
    moving = {(selector["apiVersion"], selector["kind"]) for selector in policy["spec"]["resourceSelectors"]}
    namespace = policy["metadata"]["namespace"]
    assert {(w["apiVersion"], w["kind"], w["namespace"], w["name"]) for w in request["spec"]["workloads"]} == {
        (app["apiVersion"], app["kind"], namespace, app["metadata"]["name"])
        for app in APPS
        if (app["apiVersion"], app["kind"]) in moving and app["metadata"].get("namespace") == namespace
    }
