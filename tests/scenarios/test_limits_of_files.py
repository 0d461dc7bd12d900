"""What exceeds a limit on files of the source is a finding with its place, or an error that names the limit."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import yaml

from gitsched.decide.catalog import make_raw_document
from gitsched.decide.custom_resources import check_custom_resources
from gitsched.manifests import envsubst
from gitsched.manifests.envsubst import SubstitutionError, VariableValues, substitute_variables

from .conftest import Fleet, cluster, deployment, policy

WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec: {group: example.com, names: {kind: Widget}, versions: [{name: v1, schema: {openAPIV3Schema: %s}}]}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: a}
spec: {size: 1}
"""
FLEET = {"one.yaml": cluster("one"), "all.yaml": policy("one"), "base/web.yaml": deployment("web")}


@pytest.mark.parametrize(
    ("name", "limit", "within", "beyond", "message"),
    [
        ("MAX_DEPTH", 2, "${a:=${b:=x}}", "${a:=${b:=${c:=x}}}", "has more substitutions inside of each other"),
        ("MAX_OUTPUT", 20, "${A}${A}", "${A}${A}${A}", "the text has more than 20 characters after substitution"),
        ("MAX_OUTPUT", 20, "${A//a/b}", "${A//a/bbb}", "gives more than 20 characters"),
        ("MAX_TRIMMED", 10, "${A#b}", "${LONG#b}", "compares more than 10 characters with a pattern"),
        ("MAX_COMPARED", 25, "${A#b}${A#b}", "${A#b}${A#b}${A#b}", "compares more than 25 characters of one text with patterns"),
        ("MAX_READ", 25, "${#A}${#A}", "${#A}${#A}${#A}", "reads more than 25 characters of variables"),
    ],
)  # fmt: skip
def test_a_substitution_beyond_a_limit_is_an_error_that_names_it(
    monkeypatch: pytest.MonkeyPatch, name: str, limit: int, within: str, beyond: str, message: str
) -> None:
    monkeypatch.setattr(envsubst, name, limit)
    values = VariableValues({"A": "a" * 10, "LONG": "a" * 11})
    substitute_variables(within, values)
    with pytest.raises(SubstitutionError, match=message):
        substitute_variables(beyond, values)


def find(fleet: Fleet, files: Mapping[str, str], code: str) -> list[tuple[str, str, str]]:
    """Return severity, place and message of the findings with a code."""
    fleet.commit({**FLEET, **files})
    found = [finding for finding in fleet.preview().plan.findings if finding.code == code]
    return [(finding.severity, str(finding.location or ""), finding.message) for finding in found]


@pytest.mark.parametrize(
    "text",
    [
        "resources: [web.yaml, b.yaml, c.yaml]\n",
        "resources: [web.yaml]\nimages: [{name: a, newTag: b}, {name: b, newTag: c}, {name: c, newTag: d}]\n",
    ],
)
def test_the_objects_of_a_kustomization_with_too_many_entries_count_as_changed(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr("gitsched.manifests.kustomization.MAX_ENTRIES", 2)
    assert find(fleet, {"base/kustomization.yaml": "resources: [web.yaml, b.yaml]\n"}, "kustomized") == []
    message = "the kustomization has more than 2 references or changes: divide it"
    files = {"base/kustomization.yaml": text}
    assert find(fleet, files, "kustomization-limit") == [("error", "base/kustomization.yaml:1:1", message)]
    ((severity, place, message),) = find(fleet, {"a": "1"}, "kustomized")
    assert (severity, place, "more than 2 references or changes" in message) == ("error", "base/web.yaml:1:1", True)


def test_the_objects_of_kustomizations_that_include_each_other_too_often_count_as_changed(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"{n}/kustomization.yaml": f"resources: [../{n + 1 if n < 3 else 'base'}]\n" for n in range(4)}
    files["base/kustomization.yaml"] = "resources: [web.yaml]\n"
    assert find(fleet, files, "kustomized") == []
    fleet.reconcile()
    delivered = fleet.files()["clusters/one/default/deployment-web.yaml"]
    monkeypatch.setattr("gitsched.manifests.kustomize_graph.MAX_VISITS", 2)
    changed = {"base/web.yaml": deployment("web", replicas=7), "5/kustomization.yaml": "resources: []\n"}
    ((severity, _, message),) = find(fleet, changed, "kustomization-limit")
    assert (severity, "include each other more than" in message) == ("error", True)
    fleet.reconcile()
    assert fleet.files()["clusters/one/default/deployment-web.yaml"] == delivered, "what was placed stays as it is"


@pytest.mark.parametrize(
    ("name", "files", "place", "message"),
    [
        ("MAX_RULES", {".sourceignore": "a/\nb/\nbase/\n"}, ".sourceignore:3:1", "exceeds the limit of 2 rules"),
        ("MAX_RULE_LENGTH", {".sourceignore": "a/\nbbb\nbase/\n"}, ".sourceignore:2:1", "is longer than 2 characters"),
    ],
)
def test_rules_of_ignore_files_beyond_a_limit_have_no_effect_and_are_reported(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, name: str, files: dict[str, str], place: str, message: str
) -> None:
    for module in ("manifests.sourceignore", "reconcile.source.ignore_files"):
        monkeypatch.setattr(f"gitsched.{module}.{name}", 2)
    ((severity, at, text),) = find(fleet, files, "ignore-rules")
    assert (severity, at, message in text) == ("error", place, True)


@pytest.mark.parametrize(
    ("name", "schema", "message"),
    [
        ("MAX_DEPTH", "{properties: {spec: {properties: {size: {}}}}}", "its schema is not used: it is nested more than 1 deep"),
        ("MAX_NODES", "{properties: {spec: {}}}", "its schema is not used: it has more than 1 schemas"),
        ("MAX_ALTERNATIVES", "{properties: {}, anyOf: [{}, {}]}", "its schema is not used: it has more than 1 schemas in anyOf"),
        ("MAX_PATTERN_SIZE", "{properties: {spec: {properties: {size: {pattern: '(a|bc){9}'}}}}}", "the patterns of its schema are"),
    ],
)  # fmt: skip
def test_a_definition_beyond_a_limit_is_reported_for_each_version_with_objects(
    monkeypatch: pytest.MonkeyPatch, name: str, schema: str, message: str
) -> None:
    def list_findings() -> list[tuple[str, str, str]]:
        documents = [make_raw_document(body) for body in yaml.safe_load_all(WIDGETS % schema)]
        found = check_custom_resources(documents, frozenset(), "warning").findings
        return [(finding.severity, finding.code, finding.message) for finding in found]

    assert list_findings() == []
    module = "object_schema" if name == "MAX_PATTERN_SIZE" else "custom_schemas"
    monkeypatch.setattr(f"gitsched.manifests.{module}.{name}", 1)
    ((severity, code, text),) = list_findings()
    assert (severity, code) == ("info", "schema-unchecked")
    assert text.startswith(f"objects of version v1 are not checked completely: {message}")
