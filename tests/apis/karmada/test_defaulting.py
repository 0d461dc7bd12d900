"""Documents are defaulted as Karmada stores them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from gitsched.apis.karmada.defaulting import apply_defaults
from gitsched.decide.validation import validate_document
from tests.tables import each_row

CASES = (Path(__file__).parents[2] / "conformance" / "karmada-invalid.jsonl").read_text("utf-8").splitlines()
STORED = [case for case in map(json.loads, CASES) if "stored" in case["expect"] and "oldObject" not in case]
UNKNOWN = "propagatePriority"  # a member that Karmada prunes, which is not what defaults are about


def make(text: str) -> dict[str, Any]:
    body: dict[str, Any] = yaml.safe_load(text.replace("CPP", "ClusterPropagationPolicy"))
    group = "cluster" if body["kind"] == "Cluster" else "work" if body["kind"].endswith("Binding") else "policy"
    return {"apiVersion": f"{group}.karmada.io/{'v1alpha2' if group == 'work' else 'v1alpha1'}", "metadata": {"name": "x"}, **body}


@each_row("case", STORED)
def test_a_document_is_defaulted_as_karmada_stored_it(case: dict[str, Any]) -> None:
    spec = apply_defaults(case["object"])["spec"]
    spec.get("placement", {}).get("clusterAffinity", {}).pop(UNKNOWN, None)
    stored = case["expect"]["stored"]["spec"]
    if "preemption" in stored:
        stored.setdefault("schedulerName", "default-scheduler")  # recorded before the server fills in defaults once more
    assert spec == stored


def test_defaults_are_valid() -> None:
    """A valid document to which defaults only add is not validated with them."""
    valid = [case["object"] for case in STORED if not validate_document(case["object"]).issues]
    assert len(valid) > len(STORED) / 2
    assert [validate_document(apply_defaults(body)).issues for body in valid] == [()] * len(valid)


def test_the_recorded_documents_are_complete() -> None:
    assert {case["object"]["kind"] for case in STORED} >= {"PropagationPolicy", "ClusterPropagationPolicy", "Cluster"}


@each_row(
    ("text", "expected"),
    [
        pytest.param(
            "{kind: PropagationPolicy, metadata: {name: x, namespace: shop}, "
            "spec: {resourceSelectors: [{kind: A}, {kind: B, namespace: c}]}}",
            "{resourceSelectors: [{apiVersion: '', kind: A, namespace: shop}, {apiVersion: '', kind: B, namespace: c}]}",
            id="a-selector-is-for-the-namespace-of-its-policy",
        ),
        pytest.param(
            "{kind: CPP, spec: {resourceSelectors: [{apiVersion: v1, kind: A, namespace: ''}]}}",
            "{resourceSelectors: [{apiVersion: v1, kind: A}]}",
            id="a-cluster-wide-selector-is-for-every-namespace",
        ),
        pytest.param(
            "{kind: CPP, spec: {resourceSelectors: [{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport}]}}",
            "{propagateDeps: true}",
            id="an-imported-service-takes-its-slices-along",
        ),
        pytest.param(
            "{kind: CPP, spec: {placement: {spreadConstraints: [{}, {spreadByLabel: a, minGroups: 2}]}}}",
            "{placement: {spreadConstraints: [{spreadByField: cluster, minGroups: 1}, {spreadByLabel: a, minGroups: 2}]}}",
            id="a-spread-constraint-is-by-cluster-and-at-least-one",
        ),
        pytest.param(
            "{kind: CPP, spec: {placement: {replicaScheduling: {}}}}",
            "{placement: {replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}}",
            id="replicas-are-divided-by-weight",
        ),
        pytest.param(
            "{kind: CPP, spec: {placement: {replicaScheduling: {replicaSchedulingType: Duplicated}}}}",
            "{placement: {replicaScheduling: {replicaSchedulingType: Duplicated}}}",
            id="duplicated-replicas-have-no-preference",
        ),
        pytest.param(
            "{kind: CPP, spec: {placement: {replicaScheduling: null, clusterAffinity: null, clusterTolerations: []}}}",
            "{placement: {}}",
            id="null-and-empty-are-absent",
        ),
        pytest.param(
            "{kind: CPP, spec: {failover: {application: {decisionConditions: {}}, cluster: {}}}}",
            "{failover: {application: "
            "{decisionConditions: {tolerationSeconds: 300}, purgeMode: Gracefully, gracePeriodSeconds: 600}, "
            "cluster: {purgeMode: Gracefully}}}",
            id="failover-is-graceful",
        ),
        pytest.param(
            "{kind: CPP, spec: {failover: {application: {purgeMode: Never}}}}",
            "{failover: {application: {purgeMode: Never}}}",
            id="a-grace-period-is-for-gracefully-only",
        ),
        pytest.param(
            "{kind: CPP, spec: {placement: {clusterAffinity: {labelSelector: {matchLabels: {a: ''}}}}}}",
            "{placement: {clusterAffinity: {labelSelector: {matchLabels: {a: ''}}}}}",
            id="an-empty-label-is-a-label",
        ),
        pytest.param(
            "{kind: OverridePolicy, spec: {overrideRules: [{overriders: {plaintext: [{path: /a, operator: add, value: []}]}}]}}",
            "{overrideRules: [{overriders: {plaintext: [{path: /a, operator: add, value: []}]}}]}",
            id="an-empty-value-is-a-value",
        ),
        pytest.param(
            "{kind: ResourceBinding, spec: {resource: {kind: A}, placement: {replicaScheduling: {}}}}",
            "{conflictResolution: Abort, resource: {apiVersion: '', kind: A, name: ''}, "
            "placement: {replicaScheduling: {replicaSchedulingType: Divided}}}",
            id="a-binding-has-only-the-defaults-of-its-definition",
        ),
        pytest.param("{kind: Cluster, spec: {zone: a}}", "{zones: [a], zone: null}", id="a-zone-is-one-of-several"),
        pytest.param(
            "{kind: Cluster, spec: {zone: a, zones: [b]}}", "{zones: [b], zone: a}", id="two-kinds-of-zones-stay-a-mistake"
        ),
        pytest.param(
            "{kind: Cluster, spec: {resourceModels: "
            "[{grade: 2, ranges: [{name: cpu, min: 1, max: 9}]}, {grade: 1, ranges: [{name: cpu, min: 1}]}]}}",
            "{resourceModels: [{grade: 1, ranges: [{name: cpu, min: '0', max: '0'}]}, "
            "{grade: 2, ranges: [{name: cpu, min: 1, max: '9223372036854775807'}]}]}",
            id="models-are-sorted-and-cover-everything",
        ),
    ],
)
def test_defaults(text: str, expected: str) -> None:
    spec = apply_defaults(make(text))["spec"]
    for name, value in yaml.safe_load(expected).items():
        assert spec.get(name) == value, name


def test_a_cluster_without_models_has_nine_grades() -> None:
    models = apply_defaults(make("{kind: Cluster, spec: {syncMode: Push}}"))["spec"]["resourceModels"]
    assert [model["grade"] for model in models] == list(range(9))
    assert models[1]["ranges"] == [{"name": "cpu", "min": "1", "max": "2"}, {"name": "memory", "min": "4Gi", "max": "16Gi"}]


@each_row("case", STORED)
def test_a_document_with_all_defaults_is_not_copied(case: dict[str, Any]) -> None:
    body = apply_defaults(case["object"])
    again = apply_defaults(body)
    assert again == body
    if body["kind"] != "Cluster":
        assert again is body


def test_other_documents_are_not_changed() -> None:
    for body in (
        {},
        {"kind": "Deployment", "spec": {"paused": None}},
        {"apiVersion": "v1", "kind": "PropagationPolicy", "spec": {}},
    ):
        assert apply_defaults(body) is body


@pytest.mark.parametrize(
    "spec", ["null", "[]", "1", "{placement: 1, resourceSelectors: {}, failover: []}", "{resourceModels: [1], zone: 1}"]
)
def test_invalid_values_are_kept_for_the_schema_to_report(spec: str) -> None:
    for kind in ("PropagationPolicy", "ClusterPropagationPolicy", "OverridePolicy", "Cluster", "ResourceBinding"):
        apply_defaults(make(f"{{kind: {kind}, spec: {spec}}}"))
