"""Decisions whose only result is a record: plans, reviews, reconciles and the output branch show them as they show placements."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders import knative, krake, ocm
from tests.cli.conftest import Run

Commit = Callable[..., None]
Git = Callable[..., str]


def to_yaml(*documents: dict[str, Any]) -> str:
    return yaml.safe_dump_all(documents, sort_keys=False)


def place(count: int, name: str = "any") -> str:
    return ocm.to_yaml(ocm.placement(name, "apps", count))


def use(placement: str, replicas: int) -> str:
    """Return a Deployment with an annotation that names a Placement."""
    metadata = {"name": "web", "namespace": "apps", "annotations": {ocm.PLACEMENT_ANNOTATION: placement}}
    return to_yaml({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"replicas": replicas}})


def split(*groups: str) -> str:
    """Return a Placement of two clusters with a decision group for each of these clusters."""
    entries = [{"groupName": name, "groupClusterSelector": {"labelSelector": {"matchLabels": {"name": name}}}} for name in groups]
    body = ocm.placement("any", "apps", 2)
    return to_yaml({**body, "spec": {**body["spec"], "decisionStrategy": {"groupStrategy": {"decisionGroups": entries}}}})


MEMBERS = (ocm.managed_cluster(name, {"name": name}, cluster_set="prod") for name in ("ash", "bru"))
FLEET = ocm.to_yaml(ocm.cluster_set("prod"), ocm.binding("prod", "apps"), *MEMBERS)
NEW_CLUSTER = krake.cluster("new", None, tosca=krake.TOSCA, constraints={"labels": ["location is DE"]})
CLOUDS = to_yaml(krake.cloud("aws", labels={"location": "DE"}), krake.cloud("gcp"), krake.cluster("old"))
PODS = "---\n".join([*(knative.node(f"n{at}", f"z{at}") for at in range(3)), *(knative.pod(at, f"n{at}") for at in range(3))])
EVENTS = {"gitsched": knative.settings(6), "adapter": knative.adapter(3), "pods": PODS, "source": knative.source("orders", 5)}
Record = tuple[str, str, str, str]
STORIES: dict[str, tuple[dict[str, str], dict[str, str | None], Record, str]] = {
    "a new Krake Cluster gets a cloud": (
        {"clouds": CLOUDS},
        {"new": to_yaml(NEW_CLUSTER)},
        ("Cluster tenant-a/new", "cloud", "none", "aws"),
        "Cluster/tenant-a/new added (new.yaml:1)",
    ),
    "a Krake Cluster is removed": (
        {"clouds": CLOUDS, "new": to_yaml(NEW_CLUSTER)},
        {"new": None},
        ("Cluster tenant-a/new", "cloud", "aws", "none"),
        "Cluster/tenant-a/new removed (was new.yaml:1)",
    ),
    "a MagnumCluster gets a project of another namespace": (
        {"clouds": CLOUDS, "project": to_yaml(krake.project("p", namespace="other"))},
        {"magnum": to_yaml(krake.magnum_cluster("m"))},
        ("MagnumCluster tenant-a/m", "project", "none", "other/p"),
        "MagnumCluster/tenant-a/m added (magnum.yaml:1)",
    ),
    "an event source gets three more vreplicas": (
        EVENTS,
        {"source": knative.source("orders", 8)},
        (
            "KafkaSource shop/orders",
            "pod",
            "kafkasource-mt-adapter-0 2, kafkasource-mt-adapter-1 2, kafkasource-mt-adapter-2 1",
            "kafkasource-mt-adapter-0 3, kafkasource-mt-adapter-1 3, kafkasource-mt-adapter-2 2",
        ),
        "KafkaSource/shop/orders: spec.consumers 5 -> 8 (source.yaml:5)",
    ),
    "an event source loses all vreplicas": (
        EVENTS,
        {"source": knative.source("orders", 0)},
        (
            "KafkaSource shop/orders",
            "pod",
            "kafkasource-mt-adapter-0 2, kafkasource-mt-adapter-1 2, kafkasource-mt-adapter-2 1",
            "none",
        ),
        "KafkaSource/shop/orders: spec.consumers 5 -> 0 (source.yaml:5)",
    ),
    "a StatefulSet without a cluster is scaled": (
        EVENTS,
        {"adapter": knative.adapter(4)},
        ("StatefulSet knative-eventing/kafkasource-mt-adapter", "scale", "replicas 3", "replicas 4"),
        "StatefulSet/knative-eventing/kafkasource-mt-adapter: spec.replicas 3 -> 4 (adapter.yaml:7)",
    ),
    "a Placement selects another cluster": (
        {"ocm": FLEET, "placement": place(1)},
        {"placement": place(2)},
        ("Placement apps/any", "cluster", "ash", "ash, bru"),
        "Placement/apps/any: spec.numberOfClusters 1 -> 2 (placement.yaml:7)",
    ),
    "a Placement groups its clusters in another way": (
        {"ocm": FLEET, "placement": split("ash")},
        {"placement": split("bru")},
        ("Placement apps/any", "cluster", "ash (ash), bru (group 1)", "bru (bru), ash (group 1)"),
        "groupClusterSelector.labelSelector.matchLabels.name",
    ),
    "a selected cluster is removed": (
        {"ocm": FLEET, "placement": place(1)},
        {"ocm": FLEET.replace("name: ash", "name: zrh")},
        ("Placement apps/any", "cluster", "ash", "bru"),
        "ManagedCluster/ash removed (was ocm.yaml:14)",
    ),
}


@pytest.mark.parametrize("story", STORIES)
def test_a_recorded_decision_is_reviewed_like_a_placement(story: str, gitsched: Run, fleet: Path, commit: Commit, git: Git) -> None:
    start, change, (subject, target, before, after), cause = STORIES[story]
    commit(fleet, **start)
    assert gitsched("reconcile").returncode == 0
    unchanged = json.loads(gitsched("plan", "-o", "json").stdout)
    assert unchanged["recordChanges"] == []
    commit(fleet, **change)
    plans = [json.loads(gitsched("plan", *base, "-o", "json").stdout) for base in ((), ("HEAD~1",))]
    for plan in plans:
        assert plan["digest"] not in ("", unchanged["digest"])
        (found,) = (entry for entry in plan["recordChanges"] if entry["subject"]["kind"] == subject.partition(" ")[0])
        assert (found["target"], format_targets(found["before"]), format_targets(found["after"])) == (target, before, after)
        assert any(cause in f"{each['text']} ({locate(each)})" for each in found["causes"]), found["causes"]
        assert plan["summary"]["records"] == len(plan["recordChanges"])
    assert plans[0]["digest"] == plans[1]["digest"]
    for report in ("markdown", "html"):
        shown = gitsched("plan", "-o", report).stdout
        assert f"{subject}, {target}" in shown, shown
    assert f"{subject}, {target}" in gitsched("plan", COLUMNS="300").stdout
    refused = gitsched("reconcile", "--require-reviewed", "--reviewed", unchanged["digest"], COLUMNS="300")
    assert (refused.returncode, "Refused: the plan differs" in refused.stdout) == (1, True), refused.stdout
    done = gitsched("reconcile", "--require-reviewed", "--reviewed", plans[0]["digest"], COLUMNS="300")
    assert (done.returncode, "As reviewed" in done.stdout) == (0, True), done.stdout
    assert f"{subject}, {target}" in done.stdout
    message = git("log", "-1", "--format=%B", "placements", at=fleet)
    assert f"recorded decision{'s' if plans[0]['summary']['records'] > 1 else ''} changed" in message
    assert f", {target}: {before.partition(' ')[0]}" in message
    readme = git("show", "placements:README.md", at=fleet)
    assert (f"| `{subject}` | `{target}` |" in readme) == (after != "none" or "vreplicas" in story), readme


def format_targets(targets: list[dict[str, Any]]) -> str:
    texts = [
        target["name"]
        + ("" if target["amount"] is None else f" {target['amount']}")
        + (f" ({target['group']})" if target["group"] else "")
        for target in targets
    ]
    return ", ".join(texts) or "none"


def locate(cause: dict[str, Any]) -> str:
    location = cause["location"]
    return f"{'was ' if cause['gone'] else ''}{location['path']}:{location['line']}" if location else ""


def test_the_reviewed_plan_names_the_recorded_decisions_that_differ(
    gitsched: Run, fleet: Path, commit: Commit, tmp_path: Path
) -> None:
    commit(fleet, ocm=FLEET, placement=place(1))
    gitsched("reconcile")
    commit(fleet, placement=place(0))
    (tmp_path / "plan.json").write_text(gitsched("plan", "-o", "json").stdout)
    commit(fleet, placement=place(2))
    done = gitsched("reconcile", "--require-reviewed", "--reviewed", str(tmp_path / "plan.json"), COLUMNS="300")
    assert "Placement apps/any, cluster: reviewed: ash -> none; now: ash -> ash, bru" in done.stdout, done.stdout


def test_choices_keep_their_form_in_json(gitsched: Run, fleet: Path, commit: Commit) -> None:
    commit(fleet, ocm=FLEET, placement=place(1))
    gitsched("reconcile")
    commit(fleet, placement=place(2))
    (choice,) = json.loads(gitsched("plan", "-o", "json").stdout)["choices"]
    assert (choice["by"]["name"], choice["before"], choice["after"]) == ("any", ["ash"], ["ash", "bru"])


def test_a_long_list_of_recorded_decisions_is_truncated(gitsched: Run, fleet: Path, commit: Commit) -> None:
    commit(fleet, ocm=FLEET, placements="---\n".join(place(1, f"p{at:03}") for at in range(105)))
    output = gitsched("plan", COLUMNS="200").stdout
    assert output.count("Placement apps/p") == 100
    assert "\nand 5 more; use -o json for all\n" in output


def test_the_request_for_a_cluster_is_a_recorded_decision(gitsched: Run, fleet: Path, commit: Commit) -> None:
    wanted = krake.application("echo", constraints={"labels": ["location is DE"]}, auto_cluster_create=True)
    clouds = to_yaml(krake.cloud("aws", labels={"location": "DE"}))
    commit(fleet, clouds=clouds, application=to_yaml(wanted))
    changes = json.loads(gitsched("plan", "-o", "json").stdout)["recordChanges"]
    found = {(change["subject"]["kind"], change["target"]): change["after"][0]["name"] for change in changes}
    assert found["Cluster", "cloud"] == "aws"
    assert found["Application", "new cluster"].startswith("cluster-")


@pytest.mark.parametrize("kind", ["annotation", "replica set", "application"])
def test_each_full_copy_counts_the_replicas_of_the_workload(
    kind: str, gitsched: Run, fleet: Path, commit: Commit, git: Git
) -> None:
    deployment = yaml.safe_load(use("any", 7))
    work = {
        "apiVersion": "work.open-cluster-management.io/v1alpha1",
        "kind": "ManifestWorkReplicaSet",
        "metadata": {"name": "web", "namespace": "apps"},
        "spec": {
            "placementRefs": [{"name": "any"}],
            "manifestWorkTemplate": {"workload": {"manifests": [{**deployment, "metadata": {"name": "web", "namespace": "apps"}}]}},
        },
    }
    application = krake.application("web", manifest=[{**deployment, "metadata": {"name": "web", "namespace": "apps"}}])
    files = {
        "annotation": {"ocm": FLEET, "placement": place(1), "web": use("any", 7)},
        "replica set": {"ocm": FLEET, "placement": place(1), "web": to_yaml(work)},
        "application": {"clusters": to_yaml(krake.cluster("ash"), krake.cluster("bru")), "web": to_yaml(application)},
    }[kind]
    commit(fleet, **files)
    plan = json.loads(gitsched("plan", "-o", "json").stdout)
    (cluster,) = (entry["cluster"] for entry in plan["moves"][0]["after"])
    assert (plan["summary"]["replicasAdded"], plan["placements"][0]["replicas"]) == (7, 7)
    gitsched("reconcile")
    assert json.loads(git("show", f"placements:clusters/{cluster}/cluster.json", at=fleet))["replicas"] == 7
    readme = git("show", "placements:README.md", at=fleet)
    assert (f"| `{cluster}` |  |  | 1 | 7 |" in readme, f"`{cluster} 7`" in readme) == (True, True), readme
    simulated = gitsched("simulate", "--lose", cluster, COLUMNS="200").stdout
    assert "7 replicas start" in simulated, simulated
