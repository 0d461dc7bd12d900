"""docs/krake.md: the tables from commands of rok to documents, and the examples."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

import gitsched
from gitsched.apis.schemas import shipped_schemas
from tests.builders.krake import (
    KUBECONFIG,
    MANIFEST,
    TOSCA,
    Body,
    ScheduleRuns,
    application,
    cluster,
    codes,
    measure,
    metric,
    weigh,
)
from tests.tables import each_row

PAGE = (Path(__file__).parents[3] / "docs" / "krake.md").read_text(encoding="utf-8")
GROUPS = {"Cloud": "infrastructure", "Project": "openstack", "MagnumCluster": "openstack"}
PLACEHOLDERS = {"manifest": MANIFEST, "kubeconfig": KUBECONFIG, "tosca": TOSCA}
DOCUMENTED = [
    "rok infra cloud register --global-metric electricity_cost_1 10",
    "rok kube cluster create --global-metric heat_demand_zone_1 0.45",
    "rok os cluster create --metric heat_demand_zone_1 54",
    "rok os project create --user-id --template --metric heat_demand_zone_1 3",
    "rok kube app create -L 'location is DE'",
    "rok kube cluster create -L 'location is DE'",
    "rok kube app create -M 'load = 5'",
    "rok kube cluster create -M 'load = 5'",
    "rok kube cluster create --custom-resource",
    "rok kube app create --cluster-resource-constraint",
]
"""The commands of Krake's design document without their placeholders."""


def list_rows() -> Iterator[tuple[str, str, str]]:
    for line in PAGE.splitlines():
        match = re.fullmatch(r"\| `(rok [^|]*)` \| (\w+) \| `(\{.*\})` \|", line)
        if match:
            yield match[1], match[2], match[3]


def build_document(kind: str, fields: str) -> Body:
    """Return the document of a row, with contents for the placeholders `...`."""
    text = fields.replace("[...]", "null").replace("{...}", "null")
    body: Body = {"api": GROUPS.get(kind, "kubernetes"), "kind": kind, "metadata": {"name": "name", "namespace": "tenant-a"}}
    body |= yaml.safe_load(text)
    body["spec"] |= {name: PLACEHOLDERS[name] for name, value in body["spec"].items() if value is None}
    return body


@each_row(("command", "kind", "fields"), list(list_rows()))
def test_the_document_of_a_command_is_valid(command: str, kind: str, fields: str) -> None:
    body = build_document(kind, fields)
    assert gitsched.validate([body]) == [], command
    words = re.findall(
        r"(?:-L|-M) '([^']+)'|metric (\w+) ([\d.]+)|--(?:custom-resource|cluster-resource-constraint) (\S+)", command
    )
    values = [word for group in words for word in group if word]
    assert values
    assert [value for value in values if value not in json.dumps(body)] == [], "each value of the command is in the document"


@each_row("command", DOCUMENTED)
def test_each_command_of_the_design_document_has_a_row(command: str) -> None:
    pattern = ".*".join(map(re.escape, re.split(r" (?=--?[A-Za-z])", command)))
    assert [row for row, _, _ in list_rows() if re.match(pattern, row)]


def find_field(schema: Any, path: list[str], definitions: Body) -> bool:
    if not path:
        return True
    parts = [schema, definitions[schema["$ref"].rpartition("/")[2]]] if "$ref" in schema else [schema]
    members = {name: member for part in parts for name, member in part.get("properties", {}).items()}
    if path[0] in members:
        return find_field(members[path[0]], path[1:], definitions)
    return any(part.get("additionalProperties") for part in parts)


def list_option_fields() -> list[str]:
    table = PAGE.partition("| option | field |")[2].partition("\n\n")[0]
    return sorted(set(re.findall(r"`((?:spec|metadata|status)\.[\w.]+)`", table)))


@each_row("field", list_option_fields())
def test_the_field_of_an_option_is_in_a_schema(field: str) -> None:
    kinds = [*(("kubernetes", kind) for kind in ("Application", "Cluster")), *((group, kind) for kind, group in GROUPS.items())]
    schemas = [shipped_schemas()[group, "krake", kind] for group, kind in kinds]
    assert any(find_field(schema, field.split("."), dict(schema.get("$defs", {}))) for schema in schemas)


def test_the_example_of_an_observed_node_makes_its_cluster_unavailable() -> None:
    (text,) = (block for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if block.startswith("status:\n"))
    schedule = ScheduleRuns({**cluster("one"), **yaml.safe_load(text)}, application()).run()
    (result,) = schedule.explain("Application", "echo", "tenant-a")
    assert (result.eligible, "NOTREADY" in result.reason) == (False, True)
    assert "krake-cluster-unavailable" in codes(schedule)


def test_the_example_has_the_scores_of_its_explanation() -> None:
    (text,) = (block for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "kind: Application" in block)
    documents = list(yaml.safe_load_all(text))
    assert gitsched.validate(documents) == []
    second = cluster("dresden-2", labels={"location": "DE"}, metrics=weigh(heat_demand_zone_1=0.45, load=1))
    values = [*measure(heat_demand_zone_1=4, load=10)[:1], metric("heat_demand_zone_1", 0, 5), metric("load", 0, 50)]
    runs = ScheduleRuns(*documents, second, *values, metricConstraints="raw")
    runs.run()
    schedule = runs.run(60)
    assert (runs.target(), codes(schedule)) == ("dresden-1", set())
    totals = [result.total for result in schedule.explain("Application", "echo", "tenant-a")]
    assert [f"{total:.6g}" for total in totals if total] == re.findall(r"dresden-\d  yes   score ([\d.]+)", PAGE)
