"""The table of kinds: scopes as the upstream CustomResourceDefinitions have them, and the cases in `cases/`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gitsched.apis.karmada.dependencies.references import find_written_secret_key, read_references
from gitsched.apis.karmada.failover.graceful_eviction import read_aggregated_status
from gitsched.apis.karmada.interpreter import WorkloadPaths, read_replica_requirements, revise_copy
from gitsched.kinds.health import interpret_health
from gitsched.kinds.operator_scopes import load_scopes
from gitsched.kinds.table import find_kind, is_namespaced, load_table
from gitsched.kinds.written_objects import KYVERNO_POLICIES, WRITERS, may_write
from gitsched.model.document import Document, Key, is_known_group, parse_api_group
from tests.tables import each_row
from tests.upstream_definitions import NEEDS_DEFINITIONS, read_scopes

HERE = Path(__file__).parent
SCOPES = yaml.safe_load((HERE / "upstream-scopes.yaml").read_text())
CASES = [
    pytest.param(case, id=f"{case['object']['kind']} {case['object']['apiVersion']}")
    for path in sorted(HERE.glob("cases/*.yaml"))
    for case in yaml.safe_load(path.read_text())
]
KARMADA_KINDS = 27
"""The number of third-party interpreters of Karmada v1.19."""


def template(body: dict[str, Any]) -> Document:
    metadata, version = body["metadata"], body["apiVersion"]
    return Document(Key(parse_api_group(version), body["kind"], metadata.get("namespace", ""), metadata["name"]), version, body)


def format_reference(kind: str, namespace: str, name: str) -> str:
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def test_every_kind_has_the_scope_of_its_custom_resource_definition() -> None:
    upstream = {
        tuple(name.split("/")): (facts["scope"], facts["crd"]) for module in SCOPES.values() for name, facts in module.items()
    }
    assert {key: (row.scope, row.source) for key, row in load_table().items()} == upstream


def test_the_scopes_of_operators_repeat_no_row_of_the_table() -> None:
    assert not load_scopes().keys() & load_table().keys()
    assert not [key for key in load_scopes() if is_known_group(key[0])]
    assert is_namespaced("constraints.gatekeeper.sh", "K8sRequiredLabels") is False


@NEEDS_DEFINITIONS
def test_the_scopes_of_operators_are_those_of_their_definitions() -> None:
    known, upstream = load_scopes(), dict(read_scopes())
    checked = {key: (known[key], upstream[key]) for key in known.keys() & upstream.keys()}
    assert checked
    assert not {key: scopes for key, scopes in checked.items() if scopes[0] != scopes[1]}


def test_a_kind_of_a_known_group_that_the_table_does_not_have_is_unknown() -> None:
    assert is_namespaced("helm.toolkit.fluxcd.io", "HelmPlan") is None
    assert is_namespaced("example.io", "Widget") is None
    assert is_namespaced("", "Node") is False


def test_every_kind_with_an_interpreter_of_karmada_is_in_the_table_and_has_a_case() -> None:
    table = load_table()
    interpreted = {key for key, row in table.items() if row.interpreter}
    assert len(interpreted) == KARMADA_KINDS
    assert all(f"/{kind}" in table[group, kind].interpreter for group, kind in interpreted)
    cases = {template(case.values[0]["object"]).key[:2] for case in CASES}
    assert interpreted <= cases


@each_row("case", CASES)
def test_references(case: dict[str, Any]) -> None:
    document = template(case["object"])
    found = [format_reference(r.kind, r.namespace, r.name) for r in read_references(document)]
    assert found == case.get("references", [])
    assert set(case.get("karmada", [])) <= set(found)
    if "toolkit.fluxcd.io" not in document.key.group and "karmada" in case:
        assert sorted(case["karmada"]) == sorted(found)
    secret = find_written_secret_key(document)
    assert (secret.name if secret else None) == case.get("writes")


@each_row("case", CASES)
def test_replicas(case: dict[str, Any]) -> None:
    document = template(case["object"])
    found = read_replica_requirements(document, {})
    assert (found.replicas, found.requirements) == (case.get("replicas"), case.get("requirements"))
    for replicas, edits in case.get("divided", {}).items():
        assert dict(revise_copy(document, found, replicas)) == edits
    if "divided" not in case:
        assert revise_copy(document, found, 2) == ()


@each_row("case", CASES)
def test_health(case: dict[str, Any]) -> None:
    document = template(case["object"])
    row = find_kind(document.key.group, document.key.kind)
    assert row is not None
    for entry in case.get("health", []):
        observed = {
            "metadata": {"generation": entry.get("generation")},
            "spec": {"replicas": entry.get("replicas")},
            "status": entry["status"],
        }
        assert interpret_health(observed, row) is entry["healthy"], entry


@pytest.mark.parametrize("value", ["five", -1, True, 2.5, [], {}])
def test_replicas_that_are_not_a_number_are_not_divided(value: Any) -> None:
    body = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": {"name": "web", "namespace": "apps"}}
    found = read_replica_requirements(template({**body, "spec": {"replicas": value}}), {})
    assert (found.replicas, found.replicas_path, found.invalid_replicas) == (None, "spec.replicas", True)


@pytest.mark.parametrize("spec", [None, [], "text", {"valuesFrom": "x", "dependsOn": {"name": 1}, "chartRef": ["a"]}])
def test_malformed_fields_refer_to_nothing(spec: Any) -> None:
    body = {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "a", "namespace": "b"}}
    assert read_references(template({**body, "spec": spec})) == ()


def test_declared_paths_take_precedence_over_the_table() -> None:
    body = next(case.values[0]["object"] for case in CASES if case.values[0]["object"]["kind"] == "CloneSet")
    document = template({**body, "spec": {**body["spec"], "size": 9}})
    declared = {("apps.kruise.io/v1alpha1", "CloneSet"): WorkloadPaths(("spec", "size"), ())}
    found = read_replica_requirements(document, declared)
    assert (found.replicas, found.replicas_path, found.requirements) == (9, "spec.size", None)


def test_a_declared_pod_template_brings_along_what_the_table_does_not_say() -> None:
    cluster = next(case.values[0]["object"] for case in CASES if case.values[0]["object"]["kind"] == "RayCluster")
    assert read_references(template(cluster)) == ()
    found = read_references(template(cluster), ("spec", "headGroupSpec", "template", "spec"))
    assert [format_reference(r.kind, r.namespace, r.name) for r in found] == ["ServiceAccount ml/head"]


@pytest.mark.parametrize(
    ("kind", "entry", "expected"),
    [
        (
            "apps.kruise.io/v1alpha1 CloneSet",
            "{status: {observedGeneration: 2, updatedReplicas: 3, availableReplicas: 3}}",
            "Healthy",
        ),
        (
            "apps.kruise.io/v1alpha1 CloneSet",
            "{status: {observedGeneration: 2, updatedReplicas: 2, availableReplicas: 2}}",
            "Unhealthy",
        ),
        (
            "apps.kruise.io/v1alpha1 CloneSet",
            "{status: {observedGeneration: 2, generation: 3, updatedReplicas: 3, availableReplicas: 3}}",
            "Unhealthy",
        ),
        ("apps.kruise.io/v1alpha1 CloneSet", "{status: {observedGeneration: 2, updatedReplicas: 3}}", ""),
        ("apps.kruise.io/v1alpha1 CloneSet", "{health: Unknown, status: {observedGeneration: 2}}", "Unknown"),
        ("apps.kruise.io/v1alpha1 CloneSet", "{}", ""),
        ("apps/v1 Deployment", "{status: {availableReplicas: 3}}", ""),
    ],
)
def test_a_reported_status_without_health_is_interpreted_by_the_rule_of_the_kind(kind: str, entry: str, expected: str) -> None:
    version, _, name = kind.partition(" ")
    spec = {"resource": {"apiVersion": version, "kind": name}, "clusters": [{"name": "m1", "replicas": 3}]}
    status = {"aggregatedStatus": [{"clusterName": "m1", **yaml.safe_load(entry)}]}
    found = read_aggregated_status({"spec": spec, "status": status})
    assert found is not None
    assert dict(found.health) == {"m1": expected}


def test_controllers_of_known_groups_write_nothing() -> None:
    """References of an object skip the table of written objects for these groups, other than the core group."""
    kinds = [*load_table(), *WRITERS, *KYVERNO_POLICIES]
    assert not [kind for kind in kinds if is_known_group(kind[0]) and may_write(Key(*kind, "default", "name"))]
