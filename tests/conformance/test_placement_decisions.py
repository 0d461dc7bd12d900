"""PlacementDecisions are those of SIG Multicluster: the cases of placement-decisions.yaml.

GITSCHED_PLACEMENT_DECISION_CRD is the path of the CustomResourceDefinition of cluster-inventory-api, to check the cases against it as well.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from gitsched.model.document import Key
from gitsched.render.output_files import write_placement_decision
from gitsched.render.placement_records import read_placement_record
from tests.tables import each_row
from tests.upstream_schemas import TEXTS, strict

CASES = yaml.safe_load(Path(__file__).with_name("placement-decisions.yaml").read_text())
DEFINITION = os.environ.get("GITSCHED_PLACEMENT_DECISION_CRD", "")
API_VERSION = "multicluster.x-k8s.io/v1alpha1"
PREFIX = "multicluster.x-k8s.io/decision-"
TEXT = {"type": "string"}
REFERENCE = strict("name", name=TEXT, namespace=TEXT)
DECISIONS = {"type": "array", "maxItems": 100, "items": strict("clusterProfileRef", clusterProfileRef=REFERENCE, reason=TEXT)}
METADATA = strict("name", name=TEXT, namespace=TEXT, labels=TEXTS, annotations=TEXTS)
SCHEMA = strict(
    "apiVersion",
    "kind",
    "metadata",
    "decisions",
    apiVersion={"const": API_VERSION},
    kind={"const": "PlacementDecision"},
    metadata=METADATA,
    schedulerName=TEXT,
    decisions=DECISIONS,
)
"""The fields of the type; an API server drops others."""


def complete(body: dict[str, Any], first: int = 0, namespace: str = "fleet") -> dict[str, Any]:
    """Return the PlacementDecision of a case, with as many decisions as it counts."""
    body = dict(body)
    if (count := body.pop("count", None)) is not None:
        body["decisions"] = [{"clusterProfileRef": {"name": f"c{n}", "namespace": namespace}} for n in range(first, first + count)]
    metadata = {"name": "any", **body.pop("metadata", {})}
    return {"apiVersion": API_VERSION, "kind": "PlacementDecision", "metadata": metadata, **body}


def list_errors(body: dict[str, Any]) -> list[str]:
    """Return what the type does not allow: the errors of the schema with their paths."""
    return [f"{error.json_path}: {error.message}" for error in Draft202012Validator(SCHEMA).iter_errors(body)]


@each_row("case", CASES["produce"])
def test_decisions_are_published_as_the_api_says(case: dict[str, Any]) -> None:
    given = case["input"]
    chosen = given.get("clusters") or [{"name": f"c{n}"} for n in range(given.get("count", 0))]
    decisions = [(entry["name"], None, None, entry.get("reason", "")) for entry in chosen]
    (file,) = write_placement_decision(Key(**given["workload"]), decisions, given["scheduler"], given["namespace"]).values()
    bodies = list(yaml.safe_load_all(file.data))
    assert [error for body in bodies for error in list_errors(body)] == []
    expected = [complete(body, number * 100) for number, body in enumerate(case["output"])]
    own = {"name", "annotations"}
    for body in (*bodies, *expected):
        body["metadata"] = {name: value for name, value in body["metadata"].items() if name not in own}
    assert bodies == expected
    assert list(read_placement_record(bodies).clusters) == [entry["name"] for entry in chosen]


@each_row("case", CASES["consume"])
def test_consumers_find_the_cluster_profiles(case: dict[str, Any]) -> None:
    found: dict[str, list[str]] = {}
    bodies = [complete(body) for body in case["objects"]]
    assert [error for body in bodies for error in list_errors(body)] == []
    for body in sorted(bodies, key=lambda body: int(body["metadata"]["labels"].get(f"{PREFIX}index", "0"))):
        metadata = body["metadata"]
        references = [entry["clusterProfileRef"] for entry in body["decisions"]]
        named = [f"{reference.get('namespace') or metadata['namespace']}/{reference['name']}" for reference in references]
        found.setdefault(metadata["labels"][f"{PREFIX}key"], []).extend(named)
    assert found == case["clusters"]


def test_what_an_api_server_refuses_or_drops_is_none() -> None:
    for case in (*CASES["refuse"], *CASES["prune"]):
        assert list_errors(complete(case["object"])), case


@pytest.mark.skipif(not DEFINITION, reason="no CustomResourceDefinition")
def test_the_cases_agree_with_the_custom_resource_definition() -> None:
    definition = yaml.safe_load(Path(DEFINITION).read_text())
    (version,) = definition["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    assert (definition["spec"]["scope"], version["name"], "subresources" in version) == ("Namespaced", "v1alpha1", False)
    upstream = Draft202012Validator(schema)
    accepted = (body for case in (*CASES["produce"], *CASES["consume"]) for body in case.get("output") or case["objects"])
    assert all(upstream.is_valid(complete(body)) for body in (*accepted, *(case["object"] for case in CASES["prune"])))
    for case in CASES["refuse"]:
        assert not upstream.is_valid(complete(case["object"])), case
    item = schema["properties"]["decisions"]["items"]["properties"]
    assert schema["properties"].keys() == SCHEMA["properties"].keys()
    assert item.keys() == DECISIONS["items"]["properties"].keys()
    assert item["clusterProfileRef"]["properties"].keys() == REFERENCE["properties"].keys()
