"""Outcomes of Karmada's scheduler with feature gates on: each case is what its queue was given, and what it decided.

karmada-gates.jsonl.xz holds one JSON object a line: `gates` are the gates that were on, `inFlight` what the scheduler had in its memory,
and `expect` the bindings and the usage of quotas. The search runs all of them.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import gitsched
from gitsched.model.quantity import parse_quantity
from gitsched.model.time import parse_time
from tests.search_depth import DEEP
from tests.tables import each_row

Case = Mapping[str, Any]
Body = Mapping[str, Any]

OTHERWISE = {
    **dict.fromkeys(
        ("gb-0471", "ga-0387"), "Karmada revives entries in its memory when it lists the same clusters in another order"
    ),
    "ga-0534": "Karmada looks at a placed binding once more in the same run, and moves it",
    "ga-0133": "what Karmada's scheduler had in its memory does not follow from the bindings",
}
"""Cases that are decided otherwise, with the reason."""
SAMPLE = 8


def recorded() -> Iterator[Case]:
    with lzma.open(Path(__file__).with_name("karmada-gates.jsonl.xz"), "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def choose_cases() -> list[Case]:
    cases = list(recorded())
    assert len(cases) == 936
    return cases if DEEP else cases[::SAMPLE]


def settings_of(case: Case) -> dict[str, Any]:
    options = case["options"]
    karmada = {
        "missingFacts": "strict",
        "taintEviction": options.get("noExecuteTaintEviction", False),
        "featureGates": dict.fromkeys(case["gates"], True),
        **{name: options[name] for name in ("evictionPurgeMode", "enableEmptyWorkloadPropagation") if name in options},
        **({"inFlight": case["inFlight"]} if "inFlight" in case else {}),
    }
    return {"karmada": karmada}


def read_amounts(amounts: Mapping[str, Any] | None) -> dict[str, int]:
    """Amounts in nanos; none and nought are the same. Go writes thousands of bytes as K in these records."""
    parsed = {
        name: parse_quantity(str(text).removesuffix("K") + "k" if str(text).endswith("K") else text)
        for name, text in (amounts or {}).items()
    }
    return {name: quantity.nano for name, quantity in parsed.items() if quantity is not None and quantity.nano}


def read_clusters(clusters: list[Body] | None) -> list[tuple[str, int, list[tuple[str, int]]]]:
    return sorted(
        (
            one["name"],
            one.get("replicas") or 0,
            sorted((part["name"], part.get("replicas", 0)) for part in one.get("components") or ()),
        )
        for one in clusters or ()
    )


def read_components(components: list[Body] | None) -> list[tuple[str, int, dict[str, int]]]:
    return sorted(
        (
            (one["name"], one["replicas"], read_amounts((one.get("replicaRequirements") or {}).get("resourceRequest")))
            for one in components or ()
        ),
        key=lambda part: part[0],
    )


def expected(want: Body) -> dict[str, Any]:
    facts: dict[str, Any] = {"clusters": read_clusters(want.get("clusters"))}
    if "components" in want:
        facts["components"] = read_components(want["components"])
    if "schedulePriority" in want:
        facts["priority"] = want["schedulePriority"]
    if want.get("observedAffinity"):
        facts["group"] = want["observedAffinity"]
    if want.get("scheduled"):
        facts["condition"] = want["scheduled"]["status"], want["scheduled"]["reason"]
    if "specReplicas" in want:
        facts["replicas"] = want["specReplicas"]
    return {**facts, "groups": want.get("workloadAffinityGroups") or {}}


def observed(binding: Body) -> dict[str, Any]:
    spec, status = binding.get("spec") or {}, binding.get("status") or {}
    scheduled = next((one for one in status.get("conditions") or () if one["type"] == "Scheduled"), {})
    return {
        "clusters": read_clusters(spec.get("clusters")),
        "components": read_components(spec.get("components")),
        "priority": (spec.get("schedulePriority") or {}).get("priority", 0),
        "group": status.get("schedulerObservingAffinityName"),
        "condition": (scheduled.get("status"), scheduled.get("reason")),
        "replicas": spec.get("replicas", 0),
        "groups": spec.get("workloadAffinityGroups") or {},
    }


@pytest.mark.search
@each_row("case", choose_cases())
def test_the_outcome_with_gates_equals_that_of_karmadas_scheduler(case: Case) -> None:
    result = gitsched.schedule(case["resources"], previous=case["previous"], now=parse_time(case["now"]), config=settings_of(case))
    documents = {
        (body["kind"], body["metadata"].get("namespace") or "", body["metadata"]["name"]): body for body in result.documents
    }
    differing = []
    for want in case["expect"]["bindings"]:
        facts, got = expected(want), observed(documents[want["kind"], want.get("namespace") or "", want["name"]])
        differing += [(want["name"], name, got[name], value) for name, value in facts.items() if got[name] != value]
    for want in case["expect"]["quotas"] or ():
        status = documents["FederatedResourceQuota", want["namespace"], want["name"]].get("status") or {}
        got, used = read_amounts(status.get("overallUsed")), read_amounts(want["overallUsed"])
        differing += [(want["name"], "used", got, used)] if got != used else []
    if case["id"] in OTHERWISE:
        assert differing, "it is decided alike: take it out of the list"
    else:
        assert not differing, case["id"]
    assert not [finding for finding in result.findings if finding.code == "internal-error"]
