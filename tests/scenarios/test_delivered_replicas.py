"""Replicas are those of the delivered manifests, in every format: a program that knows only the output branch adds them up and compares."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
import yaml

from gitsched.model.changes import Move
from gitsched.model.scheduling import AtLeast, Unknown
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.report.markdown import write_markdown
from gitsched.report.serialization import serialize_review
from gitsched.report.text import write_plan
from tests.builders.krake import cluster_yaml
from tests.scenarios.conftest import UNGUARDED, Fleet, cluster, deployment, policy
from tests.search_depth import count_examples

CLUSTERS = ("ash", "bru", "cph")
OPEN = f"{UNGUARDED}    workload: {{replicasLost: 100}}\n"
NO_OVERLAP = OPEN.replace("spec:\n", "spec:\n  output: {overlap: 0s}\n")
OVERRIDE = """\
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: replicas, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  overrideRules:
  - targetCluster: {clusterNames: [%s]}
    overriders: {plaintext: [{path: /spec/replicas, operator: %s, value: %d}]}
"""
SCALER = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: scaler, namespace: default}
spec:
  %smaxReplicas: 9
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: api}
"""
BUNDLE = "apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {name: pair, namespace: default}\nspec: {path: bundles/pair}\n"
WORK = """\
apiVersion: work.open-cluster-management.io/v1alpha1
kind: ManifestWorkReplicaSet
metadata: {name: work, namespace: default}
spec:
  placementRefs: [{name: all}]
  manifestWorkTemplate: {workload: {manifests: [%s]}}
"""
OCM = """\
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: all, namespace: default}
spec: {clusterSets: [global], numberOfClusters: %d}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {name: global}
spec: {clusterSelector: {selectorType: LabelSelector, labelSelector: {}}}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: global, namespace: default}
spec: {clusterSet: global}
"""
MANAGED = """\
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: %s}
spec: {hubAcceptsClient: true}
status: {conditions: [{type: ManagedClusterConditionAvailable, status: "True"}]}
"""
APPLICATION = """\
api: kubernetes
kind: Application
metadata: {name: echo, namespace: tenant-a}
spec:
  manifest: [%s]
"""
NUMBERS = (None, 0, 1, 5, 20)


class PullRequests:
    """Random changes of a source with workloads of all APIs that run pods, overrides, an autoscaler, a Bundle and a HelmRelease."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.files: dict[str, str | None] = {f"clusters/{name}.yaml": cluster(name) for name in CLUSTERS}
        self.files |= {f"managed/{name}.yaml": MANAGED % name for name in CLUSTERS[:2]}
        self.files |= {
            "gitsched.yaml": dice.choice((OPEN, NO_OVERLAP)),
            "krake/one.yaml": cluster_yaml("one"),
            "bundle.yaml": BUNDLE,
            "release.yaml": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: chart, namespace: default}\n",
            "policies/releases.yaml": policy("ash", name="releases", kind="HelmRelease").replace(
                "apps/v1", "helm.toolkit.fluxcd.io/v2"
            ),
            "bundles/pair/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: pair, namespace: default}\n",
        }
        for part in self._parts:
            self.files |= {path: text for path, text in part(self).items() if text is not None}

    def go_on(self) -> dict[str, str | None]:
        """Return the changed files of a pull request."""
        changed: dict[str, str | None] = {}
        for part in self.dice.sample(self._parts, self.dice.choice((1, 1, 2))):
            changed |= part(self)
        changed = {path: text for path, text in changed.items() if text is not None or self.files.get(path) is not None}
        self.files |= changed
        return changed

    def _deployment(self, name: str) -> str:
        text, number = deployment(name), self.dice.choice(NUMBERS)
        return re.sub(r"\n +replicas: \d+[^\n]*", "" if number is None else f"\n  replicas: {number}", text)

    def _write(self, name: str) -> str:
        return json.dumps(yaml.safe_load(self._deployment(name)))

    def change_deployments(self) -> dict[str, str | None]:
        return {f"apps/{name}.yaml": self._deployment(name) for name in self.dice.sample(("web", "api", "job"), 2)}

    def change_policy(self) -> dict[str, str | None]:
        group = ",".join(self.dice.sample(CLUSTERS, self.dice.choice((1, 2, 3))))
        return {"policies/all.yaml": policy(group, scheduling=self.dice.choice(("Duplicated", "Divided")))}

    def change_override(self) -> dict[str, str | None]:
        operator = self.dice.choice(("add", "replace"))
        text = OVERRIDE % (self.dice.choice(CLUSTERS), operator, self.dice.choice((0, 2, 30)))
        return {"policies/override.yaml": self.dice.choice((text, None))}

    def change_autoscaler(self) -> dict[str, str | None]:
        minimum = self.dice.choice(("", "minReplicas: 2\n  ", "minReplicas: 4\n  "))
        group = ",".join(self.dice.sample(CLUSTERS, 2))
        scalers = policy(group, name="scalers", kind="HorizontalPodAutoscaler").replace("apps/v1", "autoscaling/v2")
        return {"apps/scaler.yaml": self.dice.choice((SCALER % minimum, SCALER % minimum, None)), "policies/scalers.yaml": scalers}

    def change_bundle(self) -> dict[str, str | None]:
        scaler = (SCALER % "minReplicas: 3\n  ").replace("name: api", "name: pair").replace("name: scaler", "name: pair")
        text = policy(",".join(self.dice.sample(CLUSTERS, 2)), name="bundles", kind="Bundle")
        return {
            "bundles/pair/pair.yaml": self._deployment("pair"),
            "bundles/pair/scaler.yaml": self.dice.choice((scaler, None, None)),
            "policies/bundles.yaml": text.replace("apps/v1", "gitsched.io/v1alpha1"),
        }

    def change_work(self) -> dict[str, str | None]:
        return {"work.yaml": WORK % self._write("work"), "ocm.yaml": OCM % self.dice.choice((1, 2))}

    def change_application(self) -> dict[str, str | None]:
        return {"echo.yaml": APPLICATION % self._write("echo")}

    _parts = (
        change_deployments,
        change_policy,
        change_override,
        change_autoscaler,
        change_bundle,
        change_work,
        change_application,
    )


Counts = dict[str, dict[str, Any]]
"""What clusters have of each workload by its name: replicas as `-o json` writes them."""


def list_kept(fleet: Fleet, commit: str) -> set[tuple[str, str]]:
    """Return the names and clusters of copies that stay for an overlap."""
    record = json.loads(fleet.read("gitsched.json", commit))
    return {(entry["workload"]["name"], entry["cluster"]) for entry in record.get("retainedCopies", [])}


def add_up(fleet: Fleet, commit: str) -> Counts:
    """Return the replicas of the delivered manifests, without copies that stay for an overlap."""
    kept = list_kept(fleet, commit)
    bodies: dict[str, list[Any]] = {}
    for path in fleet.files(commit):
        if re.fullmatch(r"clusters/[^/]+/[^/]+/[^/]+\.yaml", path):
            bodies.setdefault(path.split("/")[1], []).append(yaml.safe_load(fleet.read(path, commit)))
    found: Counts = {}
    for name, objects in bodies.items():
        minima = {
            body["spec"]["scaleTargetRef"]["name"]: body["spec"].get("minReplicas", 1)
            for body in objects
            if body["kind"] == "HorizontalPodAutoscaler"
        }
        for body in objects:
            workload = body["metadata"]["name"]
            if (workload, name) in kept:
                continue
            if body["kind"] == "HelmRelease":
                found.setdefault(workload, {})[name] = {"replicas": None, "unknown": True}
            elif body["kind"] == "Deployment" and workload in minima:
                found.setdefault(workload, {})[name] = {"replicas": minima[workload], "atLeast": True}
            elif body["kind"] == "Deployment":
                found.setdefault(workload, {})[name] = {"replicas": body["spec"].get("replicas", 1)}
    return found


def list_json(placements: list[Any]) -> dict[str, Any]:
    return {entry["cluster"]: {name: value for name, value in entry.items() if name != "cluster"} for entry in placements}


def select(counts: Mapping[str, Any], workload: str, kept: set[tuple[str, str]]) -> dict[str, Any]:
    return {name: value for name, value in counts.items() if (workload, name) not in kept}


WORKLOADS = ("web", "api", "job", "pair", "work", "echo", "chart")


def check_output(fleet: Fleet) -> Counts:
    """Compare what the output branch delivers with what its files say."""
    counts = add_up(fleet, "placements")
    kept = list_kept(fleet, "placements")
    readme = fleet.read("README.md")
    for name in (*CLUSTERS, "tenant-a.one"):
        if any(cluster_name == name for _, cluster_name in kept):
            continue  # a smaller copy that waits behind a larger one counts, and is in no file
        total = sum(found[name]["replicas"] or 0 for found in counts.values() if name in found)
        assert fleet.load(f"clusters/{name}/cluster.json")["replicas"] == total, name
        assert re.search(rf"^\| `{name}` \|.*\| {total} \|$", readme, re.MULTILINE), name
    return counts


def check_plan(fleet: Fleet, data: Mapping[str, Any], before: Counts, after: Counts) -> None:
    """Compare the JSON of a plan with what the output branch delivers before and after it."""
    kept = list_kept(fleet, "placements")
    placed = {
        entry["workload"]["name"]: list_json(entry["clusters"])
        for entry in data["placements"]
        if entry["workload"]["kind"] not in ("ConfigMap", "HorizontalPodAutoscaler")
    }
    for name in WORKLOADS:
        got, wanted = (select(found.get(name, {}), name, kept) for found in (placed, after))
        assert got == wanted, name
    moves = {entry["workload"]["name"]: entry for entry in data["moves"]}
    for name in WORKLOADS:
        if name in moves:
            assert list_json(moves[name]["before"]) == before.get(name, {}), name
            assert select(list_json(moves[name]["after"]), name, kept) == select(after.get(name, {}), name, kept), name
        else:
            assert select(before.get(name, {}), name, kept) == select(after.get(name, {}), name, kept), name


@pytest.mark.search
@pytest.mark.parametrize("seed", range(count_examples(3)))
def test_every_format_has_the_replicas_of_the_delivered_manifests(fleet: Fleet, seed: int) -> None:
    requests = PullRequests(Random(seed))
    fleet.commit(requests.files)
    fleet.reconcile()
    before = check_output(fleet)
    for step in range(1, 6):
        hour = step * 3.0
        fleet.commit(requests.go_on(), hour=hour)
        review = compare_plans(fleet.settings(hour, trusted=False), None).review
        run = fleet.reconcile(hour)
        after = check_output(fleet)
        data = serialize_review(review)
        check_plan(fleet, data, before, after)
        check_texts(review.moves, write_plan(review, width=10_000), write_markdown(review))
        assert {move.key: (move.before, move.after) for move in run.plan.moves} == {
            move.key: (move.before, move.after) for move in review.moves
        }
        fleet.reconcile(hour + 1.5)  # ends overlaps
        before = check_output(fleet)


def check_texts(moves: tuple[Move, ...], text: str, markdown: str) -> None:
    """Each number of a single move is in the text and in Markdown, with its mark."""
    if len(moves) > 2:
        return  # groups have sums
    for move in moves:
        for name, count in {**move.before, **move.after}.items():
            if count is not None and move.before.get(name) != move.after.get(name):
                mark = "+" if isinstance(count, AtLeast) else ""
                number = "?" if isinstance(count, Unknown) else f"{int(count)}{mark}"
                assert number in text, (name, number)
                assert number in markdown, (name, number)
