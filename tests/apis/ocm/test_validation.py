"""Validation of Open Cluster Management's kinds beyond their schemas."""

from __future__ import annotations

import pytest

import gitsched
from tests.builders.ocm import Body, addon_scores, binding, managed_cluster, placement, taint


def list_findings(body: Body) -> list[tuple[str, str]]:
    return [(finding.code, finding.message) for finding in gitsched.validate([body])]


def test_an_unknown_metadata_field_is_reported() -> None:
    body = managed_cluster("dub")
    body["metadata"]["labls"] = {"env": "prod"}
    assert [finding.message for finding in gitsched.validate([body])] == [
        "metadata.labls: the field 'labls' is unknown and ignored; did you mean 'labels'?"
    ]


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (managed_cluster("dub", taints=[{**taint("a"), "timeAdded": "today"}]), "wrong-format", "not an RFC 3339 time"),
        (addon_scores("dub", {}, valid_until="soon"), "wrong-format", "not an RFC 3339 time"),
        ({**binding("prod", "ns"), "spec": {"clusterSet": "test"}}, "ocm-binding-name", "the name is 'prod', clusterSet is 'test'"),
        (placement("p" * 64, "ns"), "ocm-placement-name", "no more than 63 characters"),
        (placement("p", "ns", tolerations=[{"key": "a", "operator": "equal"}]), "ocm-toleration-inert", "use Exists or Equal"),
        (
            placement("p", "ns", tolerations=[{"key": "a", "operator": "Exists", "tolerationSeconds": 0}]),
            "ocm-toleration-inert",
            "remove tolerationSeconds",
        ),
        (
            placement("p", "ns", spreadPolicy={"spreadConstraints": [{"topologyKey": "z", "topologyKeyType": "Label"}]}),
            "ocm-field-inert",
            'set the annotation gitsched.io/spread-policy: "true"',
        ),
    ],
)
def test_an_invalid_document_has_a_finding(body: Body, code: str, message: str) -> None:
    assert [(found, message in text) for found, text in list_findings(body) if found == code] == [(code, True)]


def cluster_of_hub(accepted: bool | None, status: str = "", effect: str = "") -> Body:
    body = managed_cluster("dub", taints=[taint("a", effect)] if effect else [])
    body["spec"] = {name: value for name, value in {**body["spec"], "hubAcceptsClient": accepted}.items() if value is not None}
    condition = {"type": "ManagedClusterConditionAvailable", "status": status}
    return {**body, "status": {"conditions": [condition]}} if status else body


@pytest.mark.parametrize(
    ("body", "reported"),
    [
        (cluster_of_hub(False), True),
        (cluster_of_hub(False, effect="PreferNoSelect"), True),
        (cluster_of_hub(False, "True"), True),
        (cluster_of_hub(False, "Unknown"), False),
        (cluster_of_hub(False, effect="NoSelect"), False),
        (cluster_of_hub(None), False),
        (cluster_of_hub(True), False),
    ],
)
def test_a_cluster_that_is_not_accepted_is_reported_if_placements_can_choose_it(body: Body, reported: bool) -> None:
    """pkg/placement reads no hubAcceptsClient: pkg/registration/hub/taint adds a taint to a cluster that does not report."""
    assert [code for code, _ in list_findings(body) if code == "ocm-field-inert"] == ["ocm-field-inert"] * reported


def test_a_score_may_not_be_repeated() -> None:
    body = addon_scores("dub", {"cpu": 1})
    body["status"]["scores"] *= 2
    ((code, message),) = list_findings(body)
    assert (code, "duplicate score 'cpu'" in message) == ("ocm-score-duplicate", True)
