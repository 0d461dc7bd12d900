"""A label that is misspelled in one of several clusters is a finding: it says what is meant, and which policies miss the cluster."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gitsched.apis.gitsched.config import Config
from gitsched.decide.catalog import make_raw_document
from gitsched.decide.decisions import decide
from gitsched.decide.misspelled_labels import is_misspelling
from gitsched.decide.unmatched_selectors import list_unmatched
from gitsched.model.finding import Finding
from gitsched.model.time import EPOCH
from tests.tables import each_row

SOURCE = """\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: paris, labels: {region: eu, environment: production, owner: a}}
spec: {syncMode: Push, region: eu-west}
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: boston, labels: {region: us, environment: staging, owner: b}}
spec: {syncMode: Push, region: us-east}
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: dublin, labels: {LABELS}}
spec: {syncMode: Push, region: REGION}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: europe, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement: {clusterAffinity: AFFINITY}
"""
EUROPE = "{labelSelector: {matchLabels: {region: eu}}}"
PRODUCTION = "{labelSelector: {matchLabels: {environment: production}}}"
NO_PRODUCTION = "{labelSelector: {matchExpressions: [{key: environment, operator: NotIn, values: [production]}]}}"
WEST = "{fieldSelector: {matchExpressions: [{key: region, operator: In, values: [eu-west]}]}}"


def find(labels: str, affinity: str, region: str = "eu-west") -> list[Finding]:
    """Return the findings about labels of a fleet whose third cluster has these."""
    text = SOURCE.replace("LABELS", labels).replace("AFFINITY", affinity).replace("REGION", region)
    decided = decide([make_raw_document(one) for one in yaml.safe_load_all(text)], {}, Config(), EPOCH, EPOCH)
    return list(list_unmatched(decided.catalog.api_documents, decided.catalog.broken, decided.findings, decided.engines))


@each_row(
    ("labels", "affinity", "message"),
    [
        (
            "regoin: eu",
            EUROPE,
            "only this cluster has the label regoin, and no selector names it; did you mean region? As it is, "
            "PropagationPolicy/shop/europe does not select it",
        ),
        (
            "environment: prodution",
            PRODUCTION,
            "only this cluster has environment=prodution, and no selector names it; did you mean production? As it is, "
            "PropagationPolicy/shop/europe does not select it",
        ),
        (
            "environment: prod",
            NO_PRODUCTION,
            "only this cluster has environment=prod, and no selector names it; did you mean production? As it is, "
            "PropagationPolicy/shop/europe selects it",
        ),
        ("environment: development", PRODUCTION, ""),  # another value
        ("regoin: us", EUROPE, ""),  # no policy selects it either way
        ("regoin: eu, region: eu", EUROPE, ""),
        ("team: eu", EUROPE, ""),
        ("owner: bb", EUROPE, ""),  # no selector names an owner
    ],
)
def test_a_misspelled_label_of_one_cluster_is_a_finding(labels: str, affinity: str, message: str) -> None:
    assert [one.message for one in find(labels, affinity)] == ([f"Cluster/dublin: {message}"] if message else [])


def test_a_misspelled_region_of_one_cluster_is_a_finding() -> None:
    [found] = find("region: eu", WEST, region="eu-wset")
    assert "only this cluster has region=eu-wset, and no selector names it; did you mean eu-west?" in found.message
    assert (found.severity, found.code) == ("warning", "cluster-label-misspelled")
    assert found.resource == ("Cluster", "", "dublin")


def test_a_label_that_two_clusters_have_is_no_misspelling(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find("owner: b, environment: prodution", PRODUCTION)
    monkeypatch.setattr(f"{__name__}.SOURCE", SOURCE.replace("staging", "prodution"))
    assert not find("owner: b, environment: prodution", PRODUCTION)


@pytest.mark.parametrize(
    ("written", "meant", "is_one"),
    [
        ("regoin", "region", True),
        ("prodution", "production", True),
        ("Prod", "prod", True),
        ("prd", "prod", True),
        ("topology.kubernetes.io/regionn", "topology.kubernetes.io/region", True),
        ("prod", "production", True),
        ("eu-west", "eu-east", False),
        ("eu", "us", False),
        ("eu-west-1a", "eu-west-1b", False),
        ("pool-a", "pool-b", False),
        ("node1", "node2", False),
        ("node", "node2", False),
        ("cold", "gold", False),
        ("prod-eu", "prod-us", False),
        ("prod", "prod", False),
        ("", "region", False),
    ],
)
def test_names_are_compared_letter_by_letter(written: str, meant: str, is_one: bool) -> None:
    assert is_misspelling(written, meant, may_be_short=True) is is_one


def test_the_labels_that_are_compared_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    labels: dict[str, Any] = {"labels": "regoin: eu", "affinity": EUROPE}
    assert find(**labels)
    monkeypatch.setattr("gitsched.decide.misspelled_labels._MAX_COMPARED", 0)
    assert not find(**labels)
