"""Labels, fields, claims and names in selectors that no cluster has: the finding says what the fleet has."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gitsched.apis.gitsched.config import Config
from gitsched.decide.catalog import make_raw_document
from gitsched.decide.decisions import decide
from gitsched.decide.unmatched_selectors import list_unmatched
from gitsched.model.time import EPOCH
from gitsched.model.variants import BUNDLE_KIND
from tests.tables import each_row

CLUSTERS = """\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: dublin-1, labels: {ownership: private, tier: a1}}
spec: {syncMode: Push, region: eu-west, provider: onprem}
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: ashburn, labels: {ownership: cloud, tier: a2}}
spec: {syncMode: Push, region: us-east, provider: aws}
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: hub1, labels: {vendor: OpenShift}}
status: {clusterClaims: [{name: id.k8s.io, value: x1}]}
"""
PROPAGATION = ("policy.karmada.io/v1alpha1", "PropagationPolicy")
PLACEMENT = ("cluster.open-cluster-management.io/v1beta1", "Placement")
BUNDLE = ("gitsched.io/v1alpha1", "Bundle")


def find(kind: tuple[str, str], spec: dict[str, Any]) -> list[str]:
    """Return what is said about a document with this spec beside the clusters."""
    body = {"apiVersion": kind[0], "kind": kind[1], "metadata": {"name": "web", "namespace": "shop"}, "spec": spec}
    documents = [make_raw_document(entry) for entry in (*yaml.safe_load_all(CLUSTERS), body)]
    decided = decide(documents, {}, Config(), EPOCH, EPOCH)
    bundles = [template for key, template in decided.catalog.templates.items() if key[:2] == BUNDLE_KIND]
    selecting = {**decided.catalog.api_documents, BUNDLE_KIND: bundles}
    found = list_unmatched(selecting, decided.catalog.broken, decided.findings, decided.engines)
    return [finding.message.removeprefix(f"{kind[1]}/shop/web: ") for finding in found]


def karmada(affinity: dict[str, Any]) -> dict[str, Any]:
    selectors = [{"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"app": "web"}}}]
    return {"resourceSelectors": selectors, "placement": {"clusterAffinity": affinity}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]}


@each_row(
    ("affinity", "message"),
    [
        (
            {"labelSelector": {"matchLabels": {"ownership": "privat"}}},
            "no cluster has ownership=privat; the fleet has private, cloud",
        ),
        ({"labelSelector": {"matchLabels": {"ownership": "edge"}}}, "no cluster has ownership=edge; the fleet has cloud, private"),
        ({"labelSelector": {"matchLabels": {"ownershp": "cloud"}}}, "no cluster has the label ownershp; did you mean ownership?"),
        ({"labelSelector": {"matchLabels": {"vendor": "OpenShift"}}}, "no cluster has the label vendor; there are ownership, tier"),
        ({"labelSelector": expression("ownership", "In", "cloud", "edge")}, ""),
        (
            {"labelSelector": expression("ownership", "In", "cloud", "privat")},
            "no cluster has ownership=privat; the fleet has private, cloud",
        ),
        ({"labelSelector": expression("tier", "In", "a1", "a3")}, ""),
        (
            {"labelSelector": expression("ownership", "NotIn", "privat")},
            "no cluster has ownership=privat; the fleet has private, cloud",
        ),
        ({"labelSelector": expression("ownership", "NotIn", "edge")}, ""),
        ({"labelSelector": expression("gpu", "DoesNotExist")}, ""),
        ({"labelSelector": expression("gpu", "Exists")}, "no cluster has the label gpu; there are ownership, tier"),
        ({"fieldSelector": expression("region", "In", "eu-wst")}, "no cluster has region=eu-wst; the fleet has eu-west, us-east"),
        ({"fieldSelector": expression("provider", "In", "aws")}, ""),
        ({"exclude": ["ashbrun"]}, "no cluster has the name ashbrun; did you mean ashburn?"),
        ({"exclude": ["frankfurt", "dublin-2"]}, ""),
    ],
)
def test_what_a_label_could_have_meant(affinity: dict[str, Any], message: str) -> None:
    assert find(PROPAGATION, karmada(affinity)) == ([message] if message else [])


@pytest.mark.parametrize(
    ("kind", "spec", "message"),
    [
        (
            PLACEMENT,
            {"predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"vendor": "Openshfit"}}}}]},
            "no cluster has vendor=Openshfit; the fleet has OpenShift",
        ),
        (
            PLACEMENT,
            {"predicates": [{"requiredClusterSelector": {"claimSelector": expression("id.k8s", "Exists")}}]},
            "no cluster has the claim id.k8s; did you mean id.k8s.io?",
        ),
        (
            BUNDLE,
            {"path": "app", "variants": [{"clusters": {"matchLabels": {"ownership": "privat"}}}]},
            "no cluster has ownership=privat; the fleet has private, cloud",
        ),
    ],
)
def test_each_api_is_compared_with_its_own_clusters(kind: tuple[str, str], spec: dict[str, Any], message: str) -> None:
    assert find(kind, spec) == [message]
