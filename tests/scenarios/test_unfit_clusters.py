"""What `explain` says of a workload that runs where its policy does not allow it, or that runs although it is unplaced."""

from __future__ import annotations

import shutil

import pytest

from gitsched.model.explanation import Explanation
from gitsched.reconcile.review.explanation import explain_resource
from gitsched.report.explanation import write_explanation

from .conftest import Fleet, cluster, deployment

POLICY = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: all, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement:
    clusterAffinity: {labelSelector: {matchLabels: {env: prod}}}
    spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]
"""
MISMATCH = "ClusterAffinity: cluster(s) did not match the placement cluster affinity constraint (policy.yaml:7)"


def labelled(number: int, env: str) -> dict[str, str]:
    name = f"c{number:02}"
    return {f"{name}.yaml": cluster(name).replace(f"name: {name}\n", f"name: {name}\n  labels: {{env: {env}}}\n")}


def explain(fleet: Fleet, name: str = "web") -> Explanation:
    found = explain_resource(fleet.settings(1), "Deployment", "default", name)
    assert isinstance(found, Explanation)
    return found


@pytest.fixture
def many(fleet: Fleet) -> Fleet:
    """Thirty clusters, and 21 workloads in the first one. Nothing allows it any more from hour 1 on."""
    workloads = {f"{name}.yaml": deployment(name) for name in ("web", *(f"app{number}" for number in range(20)))}
    clusters = [labelled(number, "prod") for number in range(30)]
    fleet.commit({"policy.yaml": POLICY, **workloads, **{path: text for each in clusters for path, text in each.items()}})
    fleet.reconcile()
    fleet.commit({path: text for number in range(29) for path, text in labelled(number, "test").items()}, hour=1)
    return fleet


@pytest.mark.parametrize("has_state", [True, False])
def test_a_withheld_move_keeps_it_in_a_cluster_that_does_not_fit(many: Fleet, has_state: bool) -> None:
    assert len(many.reconcile(1).plan.withheld.moves) == 21
    if not has_state:
        shutil.rmtree(many.cache)
    found = explain(many)
    assert found.state == (
        f"Placed on 1 cluster with 2 replicas; the guard withholds that it goes to c29 2. It stays in c00, which does not fit: {MISMATCH}."
    )
    text = write_explanation(found, 200)
    assert f"  c00                        no    {MISMATCH}\n  c01, c02, c03 and 25 more  no    {MISMATCH}\n" in text


def test_a_workload_that_fits_nowhere_still_runs(fleet: Fleet) -> None:
    fleet.commit({"policy.yaml": POLICY, "web.yaml": deployment("web"), **labelled(0, "prod")})
    fleet.reconcile()
    assert explain(fleet).state == "Placed on 1 cluster with 2 replicas."
    fleet.commit(labelled(0, "test"), hour=1)
    fleet.reconcile(1)
    assert explain(fleet).state == "Unplaced, but still runs in c00 with 2 replicas."
