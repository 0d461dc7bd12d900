"""Valid policies with names that stand for nothing: a slip in a cluster's name must not go unnoticed."""

from __future__ import annotations

import pytest

import gitsched
from gitsched.model.document import Body


def cluster(name: str) -> Body:
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": {"syncMode": "Pull"},
    }


def policy(placement: Body) -> Body:
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}], "placement": placement},
    }


def told(*documents: Body) -> list[str]:
    findings = gitsched.schedule(documents).findings
    return [f"{f.severity}: {f.message}" for f in findings if f.code == "karmada-cluster-unknown"]


@pytest.mark.parametrize(
    ("placement", "said"),
    [
        ({"clusterAffinity": {"clusterNames": ["fra-1"]}}, []),
        ({"clusterAffinity": {"exclude": ["fra-2"]}}, []),
        ({"clusterAffinity": {"clusterNames": ["fra-1", "fra-2"]}}, ["fra-2; did you mean fra-1?"]),
        ({"clusterAffinities": [{"affinityName": "a", "clusterNames": ["x", "y", "z", "w"]}]}, ["w, x, y and 1 more"]),
        ({}, []),
    ],
)
def test_clusters_that_nobody_describes(placement: Body, said: list[str]) -> None:
    start = "warning: PropagationPolicy/shop/web names clusters that nobody describes: "
    assert told(policy(placement), cluster("fra-1")) == [start + end for end in said]


def test_nothing_is_said_while_there_is_no_cluster_at_all() -> None:
    assert told(policy({"clusterAffinity": {"clusterNames": ["fra-1"]}})) == []
