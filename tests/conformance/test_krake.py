"""Krake's own outcomes: what its real scheduler and its real parsers made of an input.

krake.jsonl.xz holds decisions, krake-constraints.jsonl.xz the verdicts of its parsers, one JSON object a line. Among equal candidates
Krake draws lots, so any of a case's `ties` is right. Where its design document and its code differ, the document counts: the cases say
where (`seed_differs`, `ties_seed_formula`), and the two spellings `less than` and `less than or equal`, which its code lacks.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import gitsched
from gitsched.apis.krake import parse_label_constraint, parse_metric_constraint
from gitsched.model.time import parse_time
from tests.tables import each_row

Case = Mapping[str, Any]
FORMULAS = {"document": ("score_seed", "ties_seed_formula"), "krake": ("score", "ties")}
MOMENTS = ("state", "scheduled", "kube_controller_triggered", "scheduled_retry")


def recorded(name: str) -> list[Case]:
    with lzma.open(Path(__file__).with_name(name), "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


DECISIONS = [case for case in recorded("krake.jsonl.xz") if not case.get("http")]
CONSTRAINTS = [case for case in recorded("krake-constraints.jsonl.xz") if "ambiguous" not in case["tags"]]


def plain(key: str | None) -> str | None:
    """The name behind `GlobalCloud/x` or `namespace/x`."""
    return key.rsplit("/", 1)[-1] if key else key


def find(documents: list[Any], want: Mapping[str, Any]) -> Any:
    for document in documents:
        metadata = document["metadata"]
        found = (document["kind"], metadata["name"], metadata.get("namespace"))
        if found == (want["kind"], want["name"], want["namespace"]):
            return document
    return {}


def bound(kind: str, status: Mapping[str, Any]) -> str | None:
    return (status.get("project" if kind == "MagnumCluster" else "scheduled_to") or {}).get("name")


def list_differences(case: Case, formula: str, observations: Mapping[Any, Any] | None = None) -> Iterator[str]:
    """Where a decision differs from the recorded one."""
    config = {"rescheduleAfter": case["config"]["reschedule_after"], "stickiness": case["config"]["stickiness"]}
    schedule = gitsched.schedule(
        case["resources"],
        previous=case.get("previous") or [],
        now=parse_time(case["now"]),
        config={"krake": {**config, "stickinessFormula": formula}, "observations": {"onFailure": "exclude"}},
        observations=observations,
    )
    refused = {(f.resource[0], f.resource[2]) for f in schedule.findings if f.severity == "error" and f.resource}
    for want in case["expect"].get("rejected", []):
        spelt = any(" less than " in text for text in constraints_of(find(case["resources"], want)))
        if ((want["kind"], want["name"]) in refused) is spelt:
            yield f"{want['name']}: refused is {not spelt}"
    for want in case["expect"]["decisions"]:
        if not want.get("undefined") and want["action"] != "create_cluster":
            yield from (f"{want['kind']} {want['name']}: {text}" for text in check_decision(case, schedule, want, formula))


def constraints_of(document: Mapping[str, Any]) -> list[str]:
    wanted = ((document.get("spec") or {}).get("constraints") or {}).get("cluster") or {}
    return wanted.get("metrics") or []


def check_decision(case: Case, schedule: Any, want: Mapping[str, Any], formula: str) -> Iterator[str]:
    before = find(case.get("previous") or [], want) or find(case["resources"], want)
    status = (find(schedule.documents, want) or before).get("status") or {}
    got = bound(want["kind"], status)
    score, tied = FORMULAS[formula]
    ties = [plain(name) for name in want.get(tied) or want["ties"]]
    if want.get("seed_differs"):
        if got != bound(want["kind"], before.get("status") or {}):
            yield f"moved to {got}"
        return
    drawn = want["action"] == "bind" or (want["action"] in ("touch", "none") and len(ties) > 1)
    wanted = ties if drawn and ties else [plain(want["scheduled_to"])]
    if got not in wanted:
        yield f"is at {got}, not at {wanted}"
    if want["action"] not in ("bind", "fail", "touch"):
        return
    if formula == "krake" or not want.get("ties_seed_formula"):
        for name in MOMENTS:
            drawn = len(ties) > 1 and name in ("scheduled", "kube_controller_triggered")
            if name in want["after"] and not drawn and status.get(name) != want["after"][name]:
                yield f"{name} is {status.get(name)}, not {want['after'][name]}"
        if (status.get("reason") or {}).get("code") != (want.get("reason") or {}).get("code"):
            yield f"reason is {status.get('reason')}"
    if want["take_up"] == "now":
        yield from check_candidates(schedule, want, score)


def check_candidates(schedule: Any, want: Mapping[str, Any], score: str) -> Iterator[str]:
    seen = {verdict.name: verdict for verdict in schedule.explain(want["kind"], want["name"], want["namespace"])}
    for name, facts in want["candidates"].items():
        verdict = seen.get(name) or seen[plain(name) or ""]
        if verdict.eligible is not facts["eligible"]:
            yield f"{name} is {'' if verdict.eligible else 'not '}eligible: {verdict.reason}"
        elif None not in (facts.get(score), verdict.total) and verdict.total != pytest.approx(facts[score], abs=1e-9):
            yield f"{name} has {verdict.total}, not {facts[score]}"


@pytest.mark.parametrize("formula", FORMULAS)
@each_row("case", DECISIONS)
def test_a_decision_equals_that_of_krake(case: Case, formula: str) -> None:
    assert list(list_differences(case, formula)) == []


@each_row("case", CONSTRAINTS)
def test_a_constraint_is_parsed_as_by_krake(case: Case) -> None:
    parse: Any = parse_label_constraint if case["lang"] == "label" else parse_metric_constraint
    if not case["valid"] and "seed_differs" not in case:
        with pytest.raises(ValueError, match="at character"):
            parse(case["text"])
        return
    constraint = parse(case["text"])
    assert constraint.operator == case.get("op", case.get("seed_op"))
    if case["valid"]:
        assert (constraint.key, list(constraint.values)) == (case["key"], case["values"])
    matches = [match for match in case.get("match", ()) if isinstance(match["match"], bool)]
    assert [constraint.match(match["sample"]) for match in matches] == [match["match"] for match in matches]
