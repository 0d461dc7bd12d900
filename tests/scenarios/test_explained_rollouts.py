"""`explain` of a workload in a rollout: each number of replicas, by wave, is that of the manifests on the output branch."""

from __future__ import annotations

import re

import yaml

from gitsched.model.explanation import Explanation
from gitsched.model.scheduling import total_replicas
from gitsched.reconcile.review.explanation import explain_resource
from gitsched.report.explanation import write_explanation
from tests.scenarios.conftest import UNGUARDED, Fleet, policy
from tests.scenarios.test_waves import cluster, report

STAGES = {"c1": "canary", "c2": "early", "c3": "early", "c4": "live", "c5": "live", "c6": "live"}
ROLLOUT = """\
apiVersion: gitsched.io/v1alpha1
kind: Rollout
metadata: {name: waves}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  groupStrategy:
    decisionGroups:
    - {groupName: canary, groupClusterSelector: {labelSelector: {matchLabels: {stage: canary}}}}
    - {groupName: early, groupClusterSelector: {labelSelector: {matchLabels: {stage: early}}}}
  rolloutStrategy: {type: ProgressivePerGroup, progressivePerGroup: {progressDeadline: 9h}}
"""
EDITS = [
    ("c1,c2,c3,c4,c5,c6", 12, 2, ()),
    ("c1,c2,c3,c4,c5,c6", 24, 3, ()),
    ("c1,c2,c3,c4,c5,c6", 24, 3, ("c1",)),
    ("c1,c2,c3,c4,c5,c6", 6, 3, ("c2",)),
    ("c1,c2,c4", 6, 3, ()),
    ("c1,c2,c4", 6, 3, ("c1", "c2", "c4")),
    ("c1,c3,c4,c5,c6", 30, 4, ()),
    ("c1,c3,c4,c5,c6", 30, 4, ("c1", "c3")),
    ("c1,c5", 3, 5, ("c4", "c5")),
    ("c1,c5", 4, 6, ("c1", "c5")),
    ("c1,c2,c3,c4,c5,c6", 5, 7, ()),
]
"""The clusters of the policy, the replicas, the version of the image, and the clusters that report to be healthy."""


def web(replicas: int, version: int) -> str:
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: default}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: web, image: "web:{version}"}}]}}
"""


def check(fleet: Fleet, hour: float, version: int) -> set[str]:
    """Compare an explanation with the manifests of the output branch; return which kinds of clusters it had."""
    path = "default/deployment-web"
    manifests = {name: fleet.load(f"clusters/{name}/{path}.yaml") for name in fleet.delivered(path)}
    running = {name: body["spec"]["replicas"] for name, body in manifests.items()}
    new = {name for name, body in manifests.items() if yaml.safe_dump(body).count(f"web:{version}")}
    found = explain_resource(fleet.settings(hour), "", None, "web")
    assert isinstance(found, Explanation)
    text = write_explanation(found, 1000)
    shares = {share.cluster: share for share in found.result}
    placed = {name: share for name, share in shares.items() if name in running}
    assert {name: share.copied or share.replicas for name, share in placed.items()} == {name: running[name] for name in placed}
    assert all(share.replicas == 0 and share.assigned for name, share in shares.items() if name not in running)
    delivered = total_replicas(share.replicas for share in found.result)
    wanted = sum(share.replicas or 0 if share.assigned is None else share.assigned for share in found.result)
    first = found.state.partition(". ")[0].removesuffix(".")
    clusters = re.match(r"Placed on (?:([0-9]+) of )?([0-9]+) clusters? with (?:([0-9]+) of )?([0-9]+) replicas?", first)
    assert clusters is not None, first
    assert [int(clusters[1] or clusters[2]), int(clusters[2])] == [len(placed), len(shares)]
    assert [int(clusters[3] or clusters[4]), int(clusters[4])] == [delivered, wanted]
    total = sum(running.values())
    assert (f"and {total} replicas in all" in first) == (total > delivered), first
    kinds = set()
    for rollout in found.delivery.rollouts:
        here = {name: count for name, count in running.items() if name in shares or name in rollout.kept}
        assert {**rollout.updated, **rollout.kept} == here, "each cluster that has it is in one of these groups, or has a copy"
        assert rollout.updated.keys() == new
        assert rollout.lacking == {name: share.assigned for name, share in shares.items() if name not in running}
        for what, counts in (("the change", rollout.updated), ("the content from before", rollout.kept)):
            listed = ", ".join(f"{name} {counts[name]}" for name in sorted(counts))
            assert not counts or re.search(rf"{what}( is)? in {listed}", text)
            assert len(counts) < 2 or f"{listed} ({sum(counts.values())} replicas)" in text
        kinds |= {kind for kind in ("updated", "kept", "lacking") if getattr(rollout, kind)}
    return kinds | {"copied" for share in found.result if share.copied is not None}


def test_the_replicas_of_each_wave_are_those_of_the_manifests(fleet: Fleet) -> None:
    clusters = {f"{name}.yaml": cluster(name, stage) for name, stage in STAGES.items()}
    everywhere = policy("c1,c2,c3,c4,c5,c6", scheduling="Divided")
    fleet.commit({"gitsched.yaml": UNGUARDED, "policy.yaml": everywhere, "web.yaml": web(12, 1), **clusters})
    fleet.reconcile()
    fleet.commit({"rollout.yaml": ROLLOUT}, hour=1)
    fleet.reconcile(1)
    kinds, hour = check(fleet, 1, 1), 1.0
    for names, replicas, version, healthy in EDITS:
        hour += 0.1
        reports = {f"report-{name}.yaml": report(name, fleet.head, hour=hour) for name in healthy}
        edit = {"policy.yaml": policy(names, scheduling="Divided"), "web.yaml": web(replicas, version)}
        fleet.commit({**edit, **reports}, hour=hour)
        fleet.reconcile(hour)
        kinds |= check(fleet, hour, version)
    assert kinds == {"updated", "kept", "copied"}


def test_a_workload_that_has_not_reached_its_clusters_is_not_placed_there(fleet: Fleet) -> None:
    clusters = {f"{name}.yaml": cluster(name, stage) for name, stage in STAGES.items()}
    everywhere = policy("c1,c2,c3,c4,c5,c6", scheduling="Divided")
    fleet.commit({"gitsched.yaml": UNGUARDED, "policy.yaml": everywhere, "web.yaml": web(24, 1), "r.yaml": ROLLOUT, **clusters})
    fleet.reconcile()
    assert check(fleet, 0, 1) == {"updated", "lacking"}
    found = explain_resource(fleet.settings(0), "", None, "web")
    assert isinstance(found, Explanation)
    waiting = "the change is in c1 4; nothing of it yet in c2, c3, c4, c5, c6 (20 replicas wait)"
    assert found.state.startswith("Placed on 1 of 6 clusters with 4 of 24 replicas. The Rollout waves waits for reports of c1: ")
    assert found.state.endswith(f"{waiting}.")
    assert f"this workload: {waiting}\n" in write_explanation(found, 1000)
