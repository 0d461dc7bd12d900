"""Objects for a hub from the recorded cases of the placement controller."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import gitsched
from gitsched.apis.export import ExportInput
from gitsched.apis.ocm.export import make_export
from gitsched.model.document import Key
from gitsched.model.time import parse_time

Body = dict[str, Any]
CASES = Path(__file__).parents[2] / "conformance" / "ocm.jsonl.xz"
OPTIONS = {"for": "hub", "status": "", "placement": "", "secrets": "", "namespace": "argocd", "app-url": "", "app-path": "."}


def read_cases(count: int) -> list[Body]:
    with lzma.open(CASES, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if len(line) < 20_000][:count]


def index(bodies: list[Body], kind: str) -> dict[tuple[str, str], Body]:
    return {(body["metadata"]["namespace"], body["metadata"]["name"]): body for body in bodies if body["kind"] == kind}


def export(schedule: gitsched.Schedule, records: list[tuple[Key, Body]], **options: str) -> list[Body]:
    decided, catalog = schedule.decisions, schedule.decisions.catalog
    found = ExportInput(records, catalog.api_documents, catalog.templates, decided.outcomes, OPTIONS | options)
    items: list[Body] = make_export(found).document["items"]
    return items


def test_a_hub_gets_exactly_the_recorded_decisions() -> None:
    compared = 0
    for case in read_cases(150):
        schedule = gitsched.schedule(case["resources"], previous=case.get("previous") or [], now=parse_time(case["now"]))
        records = [record for engine in schedule.decisions.engines for record in engine.records()]
        objects, statuses = export(schedule, records), export(schedule, records, status="true")
        for kind in ("Placement", "PlacementDecision"):
            expected = {(key.namespace, key.name): body["status"] for key, body in records if key.kind == kind}
            assert {name: body["status"] for name, body in index(statuses, kind).items()} == expected
            assert expected.keys() <= index(objects, kind).keys()
            compared += len(expected)
        assert len({(body["kind"], body["metadata"]["namespace"], body["metadata"]["name"]) for body in objects}) == len(objects)
    assert compared > 150


def test_fields_that_older_hubs_do_not_know_are_left_out() -> None:
    for case in read_cases(20):
        schedule = gitsched.schedule(case["resources"], now=parse_time(case["now"]))
        for body in index(export(schedule, []), "Placement").values():
            assert not {"sortBy", "scoreRateLimit"} & body["spec"].keys()
