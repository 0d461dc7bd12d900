"""Validation of one object as in Karmada: defaulting, schema, rules."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import gitsched
from gitsched.apis.karmada.defaulting import apply_defaults
from gitsched.apis.karmada.validation.admission import VALIDATORS
from gitsched.apis.policy_api import SchemaKey
from gitsched.apis.schemas import shipped_schemas
from gitsched.manifests.schema import SchemaPruner
from gitsched.model.finding import Issue
from tests.tables import each_row

HERE = Path(__file__).parent
VECTORS = HERE.parents[1] / "conformance" / "karmada-invalid.jsonl"
CASES = [json.loads(line) for line in VECTORS.read_text("utf-8").splitlines()]
ALONE = [case for case in CASES if "oldObject" not in case]
VERSIONS = {kind: (group, version) for group, version, kind in shipped_schemas() if group.endswith(".karmada.io")}


@cache
def validator(key: SchemaKey) -> Draft202012Validator:
    return Draft202012Validator(shipped_schemas()[key])


@cache
def compiled(key: SchemaKey) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(shipped_schemas()[key])


def list_issues(body: dict[str, Any]) -> list[Issue]:
    """Return the issues that the schema and the validation report; both schema validators must agree. Unknown fields are dropped."""
    body = apply_defaults(body)
    group, _, version = body["apiVersion"].partition("/")
    key = (group, version, body["kind"])
    body, _unknown = SchemaPruner(shipped_schemas()[key]).prune(body)
    refused = [Issue("error", "schema", error.message, tuple(error.absolute_path)) for error in validator(key).iter_errors(body)]
    assert compiled(key).is_valid(body) is not bool(refused)
    rules = VALIDATORS.get((group, body["kind"]))
    return refused or (list(rules(body)) if rules else [])


def errors(body: dict[str, Any]) -> list[str]:
    return sorted({issue.code for issue in list_issues(body) if issue.severity == "error"})


def make(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    """An object with the spec; selectors and the like are filled in where a row does not speak of them."""
    group, version = VERSIONS[kind]
    body: dict[str, Any] = {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": {"name": "x"}, "spec": dict(spec)}
    if kind in ("PropagationPolicy", "OverridePolicy", "ResourceBinding"):
        body["metadata"]["namespace"] = "shop"
    if kind.endswith("PropagationPolicy"):
        body["spec"].setdefault("resourceSelectors", [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}])
    if kind == "Cluster":
        body["spec"].setdefault("syncMode", "Push")
    return body


@each_row("case", ALONE)
def test_validation_gives_the_verdict_of_karmada(case: dict[str, Any]) -> None:
    assert (errors(case["object"]) == []) is case["expect"]["allowed"], case["expect"]


def test_the_recorded_cases_are_complete() -> None:
    assert len(ALONE) >= 100
    assert {case["object"]["kind"] for case in ALONE} >= {"PropagationPolicy", "Cluster", "OverridePolicy", "WorkloadRebalancer"}


def rows() -> Iterator[Any]:
    """Neighbours of the recorded cases: kind, spec, and the code of the refusal."""
    for kind, table in yaml.safe_load((HERE / "admission-specs.yaml").read_text("utf-8")).items():
        for name, spec in table.items():
            yield pytest.param(kind, spec, spec.pop("refused", None), id=f"{kind}-{name}")
    for name, placement in yaml.safe_load((HERE / "admission-placements.yaml").read_text("utf-8")).items():
        refused = placement.pop("refused", None)
        for kind in ("PropagationPolicy", "ClusterPropagationPolicy"):
            yield pytest.param(kind, {"placement": placement}, refused, id=f"{kind}-{name}")


@each_row(("kind", "spec", "refused"), list(rows()))
def test_values_close_to_the_recorded_cases(kind: str, spec: dict[str, Any], refused: str | None) -> None:
    assert errors(make(kind, spec)) == ([refused] if refused else [])


@pytest.mark.parametrize(
    ("kind", "spec", "path"),
    [
        (
            "PropagationPolicy",
            {"resourceSelectors": [{"apiVersion": "v1", "kind": "Pod", "name": []}]},
            "spec.resourceSelectors[0].name",
        ),
        ("PropagationPolicy", {"priority": ""}, "spec.priority"),
        ("ClusterPropagationPolicy", {"failover": {"cluster": {"purgeMode": []}}}, "spec.failover.cluster.purgeMode"),
        ("OverridePolicy", {"overrideRules": ""}, "spec.overrideRules"),
        ("Cluster", {"zones": ""}, "spec.zones"),
        ("Cluster", {"provider": []}, "spec.provider"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_empty_member_of_the_wrong_type_is_an_error_although_defaulting_would_remove_it(
    kind: str, spec: dict[str, Any], path: str
) -> None:
    found = [finding for finding in gitsched.validate([make(kind, spec)]) if finding.severity == "error"]
    assert [(finding.code, finding.message.split(":")[0]) for finding in found] == [("wrong-type", path)]


@pytest.mark.parametrize(
    ("kind", "spec"),
    [("PropagationPolicy", {"priority": None, "dependentOverrides": []}), ("Cluster", {"zones": [], "provider": ""})],
)
def test_an_empty_member_of_the_right_type_is_valid(kind: str, spec: dict[str, Any]) -> None:
    assert not [finding for finding in gitsched.validate([make(kind, spec)]) if finding.severity == "error"]


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("a", None),
        ("1-a", None),
        ("a.b", "karmada-cluster-name"),
        ("A", "karmada-cluster-name"),
        ("a-", "karmada-cluster-name"),
        ("a" * 48, None),
        ("a" * 49, "karmada-cluster-name"),
        ("a\n", "karmada-cluster-name"),
        ("", "schema"),
    ],
)
def test_the_name_of_a_cluster(name: str, refused: str | None) -> None:
    body = make("Cluster", {})
    body["metadata"] = {"name": name, "labels": None, "creationTimestamp": None}
    assert errors(body) == ([refused] if refused else [])


@pytest.mark.parametrize(
    ("metadata", "refused"),
    [
        ({"labels": {"a": "b", "example.com/a": ""}}, None),
        ({"labels": {"a b": "c"}}, "karmada-cluster-label"),
        ({"labels": {"a": "b c"}}, "karmada-cluster-label"),
        ({"labels": {"a": 1}}, "schema"),
        ({"annotations": {"a": "b c"}}, None),
        ({"annotations": {"a b": "c"}}, "karmada-cluster-annotation"),
        ({"annotations": {"a": "x" * 262_144}}, "karmada-cluster-annotation"),
        ({"namespace": "default"}, "karmada-cluster-namespace"),
        ({"namespace": ""}, None),
    ],
)
def test_the_metadata_of_a_cluster(metadata: dict[str, Any], refused: str | None) -> None:
    body = make("Cluster", {})
    body["metadata"] |= metadata
    assert errors(body) == ([refused] if refused else [])


@each_row(
    ("text", "allowed"),
    [
        ("[]", True),
        ("null", True),
        ('[{"apiVersion": "v1", "kind": "Secret", "name": "a"}]', True),
        ("[null]", True),
        (" [ ] ", True),
        ("", False),
        ("{}", False),
        ("[1]", False),
        ('[{"kind": 1}]', False),
        ("[NaN]", False),
        ("[]]", False),
        ("[" * 100_000, False),
    ],
)
def test_the_dependencies_of_a_binding(text: str, allowed: bool) -> None:
    body = make("ResourceBinding", {})
    body["metadata"]["annotations"] = {"resourcebinding.karmada.io/dependencies": text}
    assert errors(body) == ([] if allowed else ["karmada-binding-dependencies"])


def test_a_policy_without_a_namespace_is_in_default() -> None:
    body = make("PropagationPolicy", {"resourceSelectors": [{"apiVersion": "v1", "kind": "Pod", "namespace": "default"}]})
    del body["metadata"]["namespace"]
    assert errors(body) == []


def test_an_issue_points_at_the_invalid_member() -> None:
    spec = {"placement": {"clusterAffinities": [{"affinityName": "a"}, {"affinityName": "a"}]}}
    (issue,) = list_issues(make("PropagationPolicy", spec))
    assert issue.pointer == ("spec", "placement", "clusterAffinities", 1, "affinityName")
    assert issue.message == "each affinity term in a policy must have a unique name; 'a' is used more than once"


def test_a_selector_that_selects_nothing_is_a_warning() -> None:
    (issue,) = list_issues(make("PropagationPolicy", {"resourceSelectors": [{"apiVersion": "v1"}]}))
    assert (issue.severity, issue.code) == ("warning", "karmada-selector-empty")


def test_all_errors_of_a_document_are_reported() -> None:
    spec = {
        "placement": {
            "spreadConstraints": [{"spreadByField": "region", "minGroups": -1}],
            "clusterTolerations": [{"operator": "Gt"}],
        }
    }
    assert errors(make("PropagationPolicy", spec)) == [
        "karmada-spread-groups",
        "karmada-spread-without-cluster",
        "karmada-toleration-operator",
    ]


junk = st.sampled_from([None, "", "a b", "/x", 0, -1, 2**70, 1.5, True, [], {}, [None], [{}], {"a": None}, "Divided", "NoSchedule"])


@given(st.sampled_from([case["object"] for case in ALONE]), st.data())
def test_validation_raises_no_exception_for_any_object(recorded: dict[str, Any], data: st.DataObject) -> None:
    body = copy.deepcopy({name: value for name, value in recorded.items() if name != "status"})
    for _ in range(data.draw(st.integers(1, 3))):
        place: Any = body
        key = data.draw(st.sampled_from(["metadata", "spec"]))
        while isinstance(place[key], dict | list) and place[key] and data.draw(st.integers(0, 4)):
            place = place[key]
            key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        place[key] = copy.deepcopy(data.draw(junk))
        body["metadata"] = body["metadata"] if isinstance(body["metadata"], dict) else {}
        body["spec"] = body["spec"] if isinstance(body["spec"], dict) else {}
    before = copy.deepcopy(body)
    for issue in list_issues(body):
        assert issue.message
        assert issue.pointer or issue.code == "schema"
    assert body == before, "a document is never changed"
    assert apply_defaults(apply_defaults(body)) == apply_defaults(body)


def test_selectors_without_a_name_are_one_finding() -> None:
    selectors = [{"apiVersion": "v1", "kind": kind, "namespace": "b"} for kind in ("Pod", "Secret")]
    spec = {"preemption": "Always", "resourceSelectors": selectors, "placement": {}}
    body = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "a", "namespace": "b"},
        "spec": spec,
    }
    (issue,) = (
        one for one in VALIDATORS["policy.karmada.io", "PropagationPolicy"](body) if one.code == "karmada-preemption-without-name"
    )
    assert issue.pointer == ("spec", "resourceSelectors", 0)
    assert issue.message.endswith("(2 selectors have no name)")
