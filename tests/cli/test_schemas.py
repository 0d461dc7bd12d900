"""`gitsched schemas` writes one schema with which an editor checks every document; `gitsched init` names it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from click.testing import CliRunner

from gitsched.cli import cli
from gitsched.decide.editor_schema import make_editor_schema


@pytest.fixture(scope="module")
def validator() -> jsonschema_rs.Draft7Validator:
    return jsonschema_rs.Draft7Validator(make_editor_schema())


POLICY = {
    "apiVersion": "policy.karmada.io/v1alpha1",
    "kind": "PropagationPolicy",
    "metadata": {"name": "web"},
    "spec": {
        "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
        "placement": {"clusterAffinity": {"clusterNames": ["a"]}},
    },
}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "1"}}
PROJECT = {"api": "openstack", "kind": "Project", "metadata": {"name": "a"}}


@pytest.mark.parametrize(
    ("document", "valid"),
    [
        (POLICY, True),
        ({**POLICY, "spec": {**POLICY["spec"], "placment": {}}}, False),  # type: ignore[dict-item]
        (CONFIG_MAP, True),
        ({**CONFIG_MAP, "data": {"a": 1}}, False),
        ({**CONFIG_MAP, "dta": {}}, False),
        ({**PROJECT, "spec": {"unheard": 1}}, False),
        ({"apiVersion": "example.com/v1", "kind": "ConfigMap", "data": 1}, True),
        ({"resources": ["a.yaml"]}, True),
    ],
)
def test_a_document_is_checked_by_its_kind(validator: jsonschema_rs.Draft7Validator, document: dict[str, Any], valid: bool) -> None:
    assert validator.is_valid(document) is valid


def test_init_writes_the_schema_that_its_files_name(tmp_path: Path) -> None:
    assert CliRunner().invoke(cli, ["init", str(tmp_path)]).exit_code == 0
    named = [path for path in tmp_path.rglob("*.yaml") if "$schema=" in path.read_text()]
    assert tmp_path / "gitsched.yaml" in named
    for path in named:
        line = path.read_text().splitlines()[0]
        schema = json.loads((path.parent / line.partition("$schema=")[2]).read_text())
        assert all(jsonschema_rs.is_valid(schema, document) for document in yaml.safe_load_all(path.read_text()))
    assert (tmp_path / ".gitsched" / ".gitignore").read_text().endswith("\n*\n")


def test_the_kinds_are_listed_and_a_file_is_replaced(tmp_path: Path) -> None:
    kinds = json.loads(CliRunner().invoke(cli, ["schemas", "-o", "json"]).output)["items"]
    assert {"apiVersion": "apps/v1", "kind": "Deployment"} in kinds
    assert {"apiVersion": "gitsched.io/v1alpha1", "kind": "Config"} in kinds
    file = tmp_path / "deep" / "schema.json"
    for _ in range(2):
        assert CliRunner().invoke(cli, ["schemas", "--write", str(file)]).output == f"wrote {file}\n"
    assert json.loads(file.read_text())["allOf"]
    assert CliRunner().invoke(cli, ["schemas", "--write", str(file / "below")]).exit_code == 1
