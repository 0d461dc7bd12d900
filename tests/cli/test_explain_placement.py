"""`gitsched explain` of a Placement and of workloads that follow it, and the format of OCM's debug endpoint."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.builders.ocm import (
    add_on,
    addon_scores,
    binding,
    cluster_set,
    label_predicate,
    managed_cluster,
    placed_config_map,
    placement,
    taint,
    to_yaml,
)
from tests.cli.conftest import Run

DISABLED = "cluster.open-cluster-management.io/experimental-scheduling-disable"
FLEET = [cluster_set("other"), cluster_set("prod"), binding("prod", "shop")]
PLACEMENT = to_yaml(placement("fast", "shop", 2, [add_on("cpu", 2)], predicates=[label_predicate(disk="ssd")]))
CACHE = to_yaml(placed_config_map("cache", "shop", "fast"))
CLUSTERS = [
    ("ash", "prod", "ssd", "", 10),
    ("bru", "prod", "ssd", "", 30),
    ("cph", "prod", "ssd", "", 20),
    ("dub", "prod", "hdd", "", 90),
    ("edi", "prod", "ssd", "power", 90),
    ("fra", "other", "ssd", "", 90),
]


@pytest.fixture
def placed(fleet: Path, commit: Callable[..., None]) -> None:
    documents = list(FLEET)
    for name, set_name, disk, taint_key, value in CLUSTERS:
        taints = [taint(taint_key)] if taint_key else []
        documents.append(managed_cluster(name, {"disk": disk}, taints, cluster_set=set_name))
        documents.append(addon_scores(name, {"cpu": value}))
    commit(fleet, fleet=to_yaml(*documents), placement=PLACEMENT, cache=CACHE)


@pytest.mark.usefixtures("placed")
@pytest.mark.parametrize("subject", ["Placement/shop/fast", "cm/shop/cache"])
def test_every_cluster_has_a_reason(gitsched: Run, subject: str) -> None:
    found = gitsched("explain", subject, COLUMNS="300")
    assert found.returncode == 0, found.stderr
    table = found.stdout.split("\nClusters\n")[1].split("\n\n")[0]
    lines = {line.split()[0]: line for line in table.splitlines()}
    assert "its total score is below 40, the score of cph" in lines["ash"]
    assert lines["bru"].split()[1] == "yes"
    assert "score 60 = 2 × AddOn/default/cpu 30" in lines["bru"]
    assert "does not meet the predicate" in lines["dub"]
    assert "its taint power:NoSelect is not tolerated" in lines["edi"]
    assert "it is not in a cluster set" in lines["fra"]
    assert "The total score is 2 × AddOn/default/cpu." in found.stdout
    assert "TaintToleration: 3 of 4 remain." in found.stdout


@pytest.mark.usefixtures("placed")
def test_format_ocm_has_the_structure_of_the_debug_endpoint(gitsched: Run) -> None:
    found = gitsched("explain", "placement/shop/fast", "-o", "json", "--format", "ocm")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout) == {
        "filteredPipelineResults": [
            {"name": "Predicate", "filteredClusters": ["ash", "bru", "cph", "edi"]},
            {"name": "Predicate,TaintToleration", "filteredClusters": ["ash", "bru", "cph"]},
        ],
        "prioritizeResults": [{"name": "AddOn/default/cpu", "weight": 2, "scores": {"ash": 10, "bru": 30, "cph": 20}}],
        "aggregatedScores": [
            {"clusterName": "bru", "score": 60},
            {"clusterName": "cph", "score": 40},
            {"clusterName": "ash", "score": 20},
        ],
    }


def test_format_ocm_requires_a_placement_and_json_or_yaml(gitsched: Run) -> None:
    assert gitsched("explain", "deploy/shop/web", "--format", "ocm").returncode == 2
    found = gitsched("explain", "deploy/shop/web", "-o", "json", "--format", "ocm")
    assert (found.returncode, "has no explanation with --format ocm" in found.stderr) == (2, True)


@pytest.mark.usefixtures("placed")
def test_explain_reports_a_placement_without_a_decision(gitsched: Run) -> None:
    found = gitsched("explain", "ManagedClusterSet/prod")
    assert (found.returncode, "no API decides where it runs" in found.stderr) == (1, True)


ADVICE = {
    "ash": "its score default/cpu were 20 instead of 10",
    "dub": "its label disk were ssd",
    "edi": "its Placement tolerated power:NoSelect",
    "fra": "a ManagedClusterSetBinding bound the namespace shop to other",
}


@pytest.mark.usefixtures("placed")
def test_explain_proposes_a_change_for_each_rejected_cluster(gitsched: Run) -> None:
    found = gitsched("explain", "cm/shop/cache", COLUMNS="300")
    advice = found.stdout.split("\nWould be selected if\n")[1]
    lines = {line.split(":")[0].strip(): line for line in advice.splitlines() if line.startswith("  ")}
    for cluster, change in ADVICE.items():
        if cluster in lines:
            assert change in lines[cluster]
            assert "not known" not in lines[cluster]
    requested = gitsched("explain", "cm/shop/cache", "--why-not", "edi", "--why-not", "fra", COLUMNS="300")
    assert all(ADVICE[name] in requested.stdout for name in ("edi", "fra"))


@pytest.mark.usefixtures("placed")
def test_a_drained_cluster_is_left(gitsched: Run) -> None:
    assert gitsched("reconcile").returncode == 0
    found = gitsched("simulate", "--drain", "bru", COLUMNS="300")
    assert "ConfigMap shop/cache" in found.stdout
    assert [line.split()[2:4] for line in found.stdout.splitlines() if line.startswith("ConfigMap")] == [["bru", "ash"]]


LIMITED = [{"key": "power", "operator": "Exists", "tolerationSeconds": 300}]


@pytest.mark.parametrize("subject", ["Placement/shop/fast", "cm/shop/cache"])
def test_explain_lists_when_tolerations_end_and_scores_expire(
    gitsched: Run, fleet: Path, commit: Callable[..., None], subject: str
) -> None:
    scores = [addon_scores(name, {"cpu": 1}, valid_until="2030-01-01T12:00:00Z") for name in ("ash", "bru")]
    clusters = [
        managed_cluster("ash", taints=[{**taint("power"), "timeAdded": "2030-01-01T00:00:00Z"}], cluster_set="prod"),
        managed_cluster("bru", taints=[taint("power", "NoSelectIfNew")], cluster_set="prod"),
        managed_cluster("cph", cluster_set="prod"),
    ]
    fast = placement("fast", "shop", 2, [add_on("cpu")], tolerations=LIMITED)
    commit(fleet, fleet=to_yaml(*FLEET, *clusters, *scores, addon_scores("cph", {"cpu": -1}), fast), cache=CACHE)

    def explain(now: str) -> list[dict[str, str]]:
        found = gitsched("explain", subject, "--now", now, "-o", "json")
        assert found.returncode == 0, found.stderr
        return [row for table in json.loads(found.stdout)["tables"] for row in table["rows"]]

    expired = {"Time": "2030-01-01T12:00:00Z", "Clusters": "ash", "Change": "the score default/cpu expires"}
    ended = {"Time": "2030-01-01T00:05:00Z", "Clusters": "ash", "Change": "the taint power:NoSelect is no longer tolerated"}
    assert explain("2030-01-01T00:00:00Z") == [ended, expired]
    assert explain("2030-01-01T00:05:00Z") == [], "no cluster remains with a taint or a score that expires"


@pytest.mark.parametrize("subject", ["Placement/shop/fast", "cm/shop/cache"])
@pytest.mark.parametrize(
    ("change", "trigger", "code"),
    [
        ({"annotations": {DISABLED: "true"}}, f"Not scheduled: it has the annotation {DISABLED}.", "ocm-scheduling-disabled"),
        (
            {"prioritizerPolicy": {"mode": "Best"}},
            "Not scheduled again: incorrect prioritizer policy mode: Best.",
            "ocm-misconfigured",
        ),
    ],
)
@pytest.mark.usefixtures("placed")
def test_explain_says_why_a_placement_is_not_scheduled(
    gitsched: Run, fleet: Path, commit: Callable[..., None], subject: str, change: dict[str, Any], trigger: str, code: str
) -> None:
    assert gitsched("reconcile").returncode == 0
    commit(fleet, placement=to_yaml(placement("fast", "shop", 1, **change)))
    found = gitsched("explain", subject, "-o", "json")
    assert found.returncode == 0, found.stderr
    explanation = json.loads(found.stdout)
    assert explanation["trigger"] == trigger
    assert [share["cluster"] for share in explanation["result"]] == ["bru", "cph"], "the previous decision stays"
    assert [finding["code"] for finding in explanation["findings"]] == [code]


@pytest.mark.usefixtures("placed")
def test_explain_of_a_broken_placement_shows_the_error_beside_the_valid_version(
    gitsched: Run, fleet: Path, commit: Callable[..., None]
) -> None:
    assert gitsched("reconcile").returncode == 0
    commit(fleet, placement=PLACEMENT.replace("numberOfClusters: 2", "numberOfClusters: many"))
    found = gitsched("explain", "Placement/shop/fast", "-o", "json")
    assert found.returncode == 0, found.stderr
    explanation = json.loads(found.stdout)
    assert [share["cluster"] for share in explanation["result"]] == ["bru", "cph"]
    assert [(finding["code"], finding["location"]["path"]) for finding in explanation["findings"]] == [
        ("wrong-type", "placement.yaml"),
        ("last-valid-used", "placement.yaml"),
    ]
