"""`gitsched explain --why-not`: whoever does what it says has the workload on the cluster, also where others wait for the same capacity."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pytest
import yaml

from gitsched.model.explanation import Counterfactual, Explanation
from gitsched.reconcile.review.explanation import explain_resource
from tests.simulate.conftest import Fleet, cluster, deployment, divide

HOW = (
    "{replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}",
    "{replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}",
    "{replicaSchedulingType: Duplicated}",
)
WHERE = ("labelSelector: {}", "clusterNames: [a, b]")
CLUSTERS, WORKLOADS = ("a", "b", "c"), ("cart", "pay", "web")
REBALANCER = """\
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata: {{name: now}}
spec: {{workloads: [{{apiVersion: apps/v1, kind: Deployment, namespace: default, name: {}}}]}}
"""


def write(name: str, replicas: int, cpu: int) -> str:
    pod = f"{{containers: [{{name: c, image: c, resources: {{requests: {{cpu: '{cpu}'}}}}}}]}}"
    return f"{deployment(name, replicas)}  template: {{metadata: {{labels: {{app: {name}}}}}, spec: {pod}}}\n"


def make_fleet(fleet: Fleet, random: Random) -> dict[str, str]:
    """Commit a fleet that is nearly full, and reconcile; return its files."""
    files = {f"{name}.yaml": cluster(name, pods=random.randrange(3, 20), cpu=random.randrange(2, 12)) for name in CLUSTERS}
    for name in WORKLOADS:
        files[f"{name}.yaml"] = write(name, random.randrange(1, 9), random.choice((1, 1, 2)))
        files[f"p-{name}.yaml"] = divide(name, random.choice(WHERE), random.choice(HOW))
    fleet.commit(files)
    fleet.reconcile()
    return files


def carry_out(found: Counterfactual, workload: str, files: dict[str, str]) -> dict[str, str] | None:
    """Return the files that change if people do what is said; None if that is not one of the changes that they know here."""
    changed: dict[str, str] = {}
    for change in found.changes:
        capacity = re.fullmatch(r"it had capacity for [0-9]+ replicas? \(allocatable: (.+)\)", change.text)
        if capacity is not None:
            body: Any = yaml.safe_load(files[f"{found.cluster}.yaml"])
            amounts = dict(reversed(each.split()) for each in capacity[1].split(", "))
            body["status"]["resourceSummary"]["allocatable"].update(amounts)
            changed[f"{found.cluster}.yaml"] = yaml.safe_dump(body)
        elif change.text == "a WorkloadRebalancer rescheduled it":
            changed["again.yaml"] = REBALANCER.format(workload)
        elif change.text == "clusterNames named it":
            path = f"p-{workload}.yaml"
            changed[path] = files[path].replace("[a, b]", f"[a, b, {found.cluster}]")
        else:
            return None
    return changed


@pytest.mark.parametrize("seed", [2, 7, 22, 32, 39, 40])
def test_what_is_proposed_brings_the_workload_to_the_cluster(seed: int, fleet: Fleet) -> None:
    files = make_fleet(fleet, Random(seed))
    head, carried_out = str(fleet.head), 0
    for workload in WORKLOADS:
        for name in CLUSTERS:
            explained = explain_resource(fleet.settings(1), "Deployment", "default", workload, (name,))
            assert isinstance(explained, Explanation)
            for found in explained.counterfactuals:
                changed = carry_out(found, workload, files) if found.sufficient else None
                if changed is None:
                    continue
                fleet.commit(changed, hour=1)
                fleet.reconcile(1)
                placed = {one["name"]: one.get("replicas") for one in fleet.binding(f"{workload}-deployment")["spec"]["clusters"]}
                assert placed.get(name) == found.replicas, [change.text for change in found.changes]
                carried_out += 1
                fleet.git("update-ref", "refs/heads/placements", head)
                back: dict[str, str | None] = {path: files.get(path) for path in changed}
                fleet.commit(back, hour=1)
    assert carried_out, "it proposes something"


def test_capacity_suffices_for_those_that_wait_before_the_workload(fleet: Fleet) -> None:
    files = {"a.yaml": cluster("a", pods=50, cpu=4)}
    for name, replicas, cpu in (("cart", 4, 1), ("pay", 1, 1), ("web", 3, 2)):
        files |= {f"{name}.yaml": write(name, replicas, cpu), f"p-{name}.yaml": divide(name, "clusterNames: [a]", HOW[0])}
    fleet.commit(files)
    fleet.reconcile()
    explained = explain_resource(fleet.settings(1), "Deployment", "default", "web", ("a",))
    assert isinstance(explained, Explanation)
    (found,) = explained.counterfactuals
    assert [change.text for change in found.changes] == ["it had capacity for 3 replicas (allocatable: 11 cpu, 50 pods)"]
    fleet.commit(carry_out(found, "web", files), hour=1)
    fleet.reconcile(1)
    assert [fleet.where(f"default/deployment-{name}") for name in WORKLOADS] == [["a"]] * 3


def test_nothing_is_scheduled_again_where_another_change_does_that(fleet: Fleet) -> None:
    static = (
        "{replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, "
        "weightPreference: {staticWeightList: [{targetCluster: {clusterNames: [a]}, weight: 1}]}}"
    )
    files = {"a.yaml": cluster("a"), "b.yaml": cluster("b"), "cart.yaml": deployment("cart", 4)}
    fleet.commit({**files, "p-cart.yaml": divide("cart", "labelSelector: {}", static)})
    fleet.reconcile()
    explained = explain_resource(fleet.settings(1), "Deployment", "default", "cart", ("b",))
    assert isinstance(explained, Explanation)
    (found,) = explained.counterfactuals
    assert [change.text for change in found.changes] == ["its static weight there were 1"]
