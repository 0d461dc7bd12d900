"""Defaults of Open Cluster Management's kinds, and conversion of earlier versions."""

from __future__ import annotations

import pytest

from gitsched.apis.ocm.defaulting import default
from gitsched.decide.validation import validate_document
from tests.builders.ocm import GROUP, Body, add_on, cluster_set, managed_cluster, placement


def test_a_placement_has_the_defaults_of_its_crd() -> None:
    constraint = {"topologyKey": "zone", "topologyKeyType": "Label"}
    body = placement(
        "p",
        "ns",
        tolerations=[{"key": "a"}],
        prioritizerPolicy={"configurations": [{"scoreCoordinate": {"builtIn": "Steady"}}]},
        spreadPolicy={"spreadConstraints": [constraint]},
        decisionStrategy={"groupStrategy": {}},
    )
    assert default(body)["spec"] == {
        "sortBy": "ClusterName",
        "scoreRateLimit": "1m",
        "tolerations": [{"key": "a", "operator": "Equal"}],
        "prioritizerPolicy": {
            "mode": "Additive",
            "configurations": [{"scoreCoordinate": {"type": "BuiltIn", "builtIn": "Steady"}, "weight": 1}],
        },
        "spreadPolicy": {"spreadConstraints": [{**constraint, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}]},
        "decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": "100%"}},
    }


def test_a_cluster_set_selects_by_exclusive_label() -> None:
    assert default(cluster_set("prod"))["spec"] == {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}}


def test_null_fields_are_removed_and_complete_documents_are_returned_unchanged() -> None:
    body = managed_cluster("dub")
    body["spec"]["taints"] = None
    complete = default(body)
    assert complete["spec"] == {"hubAcceptsClient": True, "leaseDurationSeconds": 60}
    assert default(complete) is complete
    other = {"apiVersion": "v1", "kind": "ConfigMap", "data": None}
    assert default(other) is other


@pytest.mark.parametrize(
    ("old", "converted"),
    [
        ({"scoreCoordinate": {"type": "BuildIn", "buildIn": "Steady"}}, {"type": "BuiltIn", "builtIn": "Steady"}),
        ({"name": "Balance"}, {"type": "BuiltIn", "builtIn": "Balance"}),
        ({"name": "Balance", "scoreCoordinate": {"buildIn": "Steady"}}, {"type": "BuiltIn", "builtIn": "Steady"}),
        ({"name": "Balance", "scoreCoordinate": {"type": "BuildIn", "buildIn": ""}}, {"type": "BuiltIn", "builtIn": "Balance"}),
        ({"name": "Balance", **add_on("cpu")}, add_on("cpu")["scoreCoordinate"]),
        ({"scoreCoordinate": {"type": "", "buildIn": "Steady"}}, {"type": "BuiltIn", "builtIn": "Steady"}),
        ({"scoreCoordinate": {"buildIn": "Steady"}}, {"type": "BuiltIn", "builtIn": "Steady"}),
        (add_on("cpu"), add_on("cpu")["scoreCoordinate"]),
    ],
)
def test_a_v1alpha1_placement_becomes_v1beta1(old: Body, converted: Body) -> None:
    body = {**placement("p", "ns", None, [old]), "apiVersion": f"{GROUP}/v1alpha1"}
    result = default(body)
    assert result["apiVersion"] == f"{GROUP}/v1beta1"
    assert result["spec"]["prioritizerPolicy"]["configurations"] == [{"scoreCoordinate": converted, "weight": 1}]


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
@pytest.mark.parametrize(
    ("spec", "selector"),
    [
        ({}, {"selectorType": "ExclusiveClusterSetLabel"}),
        ({"clusterSelector": {"selectorType": "LegacyClusterSetLabel"}}, {"selectorType": "ExclusiveClusterSetLabel"}),
        (
            {"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}},
            {"selectorType": "LabelSelector", "labelSelector": {}},
        ),
    ],
)
def test_cluster_sets_of_earlier_versions_become_v1beta2(version: str, spec: Body, selector: Body) -> None:
    body = {"apiVersion": f"{GROUP}/{version}", "kind": "ManagedClusterSet", "metadata": {"name": "prod"}, "spec": spec}
    converted = default(body)
    assert (converted["apiVersion"], converted["spec"]) == (f"{GROUP}/v1beta2", {"clusterSelector": selector})
    assert validate_document(body).issues == ()


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_bindings_of_earlier_versions_become_v1beta2(version: str) -> None:
    body = {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "ManagedClusterSetBinding",
        "metadata": {"name": "prod", "namespace": "shop"},
        "spec": {"clusterSet": "prod"},
    }
    assert default(body) == {**body, "apiVersion": f"{GROUP}/v1beta2"}
    assert validate_document(body).issues == ()
