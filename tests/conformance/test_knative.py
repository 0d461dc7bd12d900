"""What Knative's own scheduler decided on the same sources, pods and policies.

knative.jsonl.xz holds one JSON object a line: `resources`, `config`, and under `expect` what upstream made of them with
`scaleUp: replace`. Where upstream draws lots, `outcomes` has what may come out. Cases that record a defect which gitsched does not copy
are held to what must be true of any answer: no more than is wanted, and no pod above its capacity that was not so before.

knative-wide.jsonl.xz holds runs over what is rare: marks in all spellings, pods without a node, zones of unequal size, few replicas left,
settings of the autoscaler. In these upstream takes the first of equals, too, and all of the answer has to be the same; `after` is the room
that upstream's state collector finds then.
"""

from __future__ import annotations

import json
import lzma
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gitsched
from gitsched.model.time import parse_time
from tests.tables import each_row

DEFECTS = frozenset(
    [
        "phantom-reservation",
        "wraparound",
        "seed-conflict",
        "node-missing",
        "reserved",
        "overcommit",
        "no-policy",
        "invalid",
        "maxfillup-unschedulable",
    ]
)
PARTS = ("reserved", "applyEvictions", "commit")
"""What upstream was also asked in some cases, and one call of gitsched is not."""

Case = Mapping[str, Any]
Placements = dict[tuple[str, str], dict[str, int]]


def recorded(name: str) -> list[Case]:
    with lzma.open(Path(__file__).with_name(name), "rt", encoding="utf-8") as lines:
        return list(map(json.loads, lines))


CASES = recorded("knative.jsonl.xz")
WIDE = recorded("knative-wide.jsonl.xz")
REFUSED = [case for case in CASES if case["expect"].get("configError")]
DECIDED = [case for case in CASES if not case["expect"].get("configError")]


def run(case: Case) -> gitsched.Schedule:
    config = case["config"]
    knative = {"capacity": config["capacity"], "policy": config.get("policy", ""), "scaleUp": "replace"}
    knative["autoscaler"] = config.get("autoscaler", {})
    return gitsched.schedule(case["resources"], now=parse_time(case["now"]), config={"knative": knative})


def placements(vpods: list[Any]) -> Placements:
    return {(v["namespace"], v["name"]): {p["podName"]: p["vreplicas"] for p in v["placements"] or ()} for v in vpods}


def is_exact(case: Case) -> bool:
    """Whether upstream's very answer is wanted."""
    if DEFECTS & set(case["tags"]) or case["config"].get("rounds", 1) > 1 or any(case["config"].get(part) for part in PARTS):
        return False
    wanted = {(d["metadata"]["namespace"], d["metadata"]["name"]): d["spec"]["consumers"] for d in sources(case)}
    placed = placements(case["expect"]["vpods"])
    return all(
        v["error"] or sum(placed[key].values()) == wanted[key]
        for v in case["expect"]["vpods"]
        for key in [(v["namespace"], v["name"])]
    )


def sources(case: Case) -> list[Any]:
    return [document for document in case["resources"] if "consumers" in (document.get("spec") or {})]


def decided(result: gitsched.Schedule, case: Case) -> Placements:
    kinds = {document["kind"] for document in sources(case)}
    shown = [{**d["metadata"], "placements": d["status"]["placements"]} for d in result.documents if d["kind"] in kinds]
    return placements(shown)


@each_row("case", DECIDED)
def test_vreplicas_are_placed_as_by_knative(case: Case) -> None:
    result = run(case)
    got, expect = decided(result, case), case["expect"]
    if any(finding.severity == "error" for finding in result.findings):
        assert "invalid" in case["tags"]
    elif not is_exact(case):
        assert_sane(got, case)
    else:
        outcomes = case["outcomes"] if case.get("ties") and case["outcomesComplete"] else [expect]
        assert got in [placements(outcome["vpods"]) for outcome in outcomes]
        if not any(vpod["error"] for vpod in expect["vpods"]) and not expect["autoscaler"].get("error"):
            adapter = next(document for document in result.documents if document["kind"] == "StatefulSet")
            assert adapter["spec"]["replicas"] == expect["autoscaler"]["replicas"]
        marked = {document["metadata"]["name"] for document in result.documents if document["kind"] == "Pod"}
        assert marked == {eviction["pod"] for eviction in expect["evictions"]}


@each_row("case", WIDE)
def test_a_complete_run_equals_upstream(case: Case) -> None:
    result, expect = run(case), case["expect"]
    assert decided(result, case) == placements(expect["vpods"])
    documents: dict[str, list[Any]] = {}
    for document in result.documents:
        documents.setdefault(document["kind"], []).append(document)
    (adapter,) = documents["StatefulSet"]
    assert adapter["spec"]["replicas"] == expect["autoscaler"]["replicas"]
    assert {pod["metadata"]["name"] for pod in documents.get("Pod", ())} == {eviction["pod"] for eviction in expect["evictions"]}
    lacking = {finding.resource[1:] for finding in result.findings if finding.code == "knative-pending" and finding.resource}
    assert lacking == {(vpod["namespace"], vpod["name"]) for vpod in expect["vpods"] if vpod["pending"]}
    assert_same_capacity(result, adapter["metadata"], case)


def assert_same_capacity(result: gitsched.Schedule, adapter: Mapping[str, str], case: Case) -> None:
    after, full = case["expect"]["after"], case["config"]["capacity"]
    free = {f"{adapter['name']}-{ordinal}": room for ordinal, room in enumerate(after["freeCap"])}
    pods = {f"{adapter['name']}-{ordinal}" for ordinal in after["schedulablePods"]}
    room = result.explain("StatefulSet", adapter["name"], adapter["namespace"])
    assert {verdict.name: verdict.scores["free"] for verdict in room} == {
        verdict.name: free.get(verdict.name, full) for verdict in room
    }
    assert {verdict.name for verdict in room if verdict.eligible} == pods


def assert_sane(got: Placements, case: Case) -> None:
    before: Counter[str] = Counter()
    for source in sources(case):
        metadata, held = source["metadata"], (source.get("status") or {}).get("placements") or ()
        before.update({placement["podName"]: placement["vreplicas"] for placement in held})
        assert sum(got[metadata["namespace"], metadata["name"]].values()) <= source["spec"]["consumers"]
    load: Counter[str] = Counter()
    for placed in got.values():
        load.update(placed)
    policies = [document["data"] for document in case["resources"] if document["kind"] == "ConfigMap"]
    if any("PodFitsResources" in policy.get("predicates", "") for policy in policies):
        assert all(number <= max(case["config"]["capacity"], before[pod]) for pod, number in load.items())


@each_row("case", REFUSED)
def test_policies_that_knative_rejects_are_rejected(case: Case) -> None:
    result = run(case)
    assert [finding.code for finding in result.findings if finding.severity == "error"] == ["knative-policy"]


def test_every_case_is_run() -> None:
    assert len(DECIDED) + len(REFUSED) == len({case["id"] for case in CASES}) == 319
    assert sum(map(is_exact, DECIDED)) == 133
    assert len({case["id"] for case in WIDE}) == 300
