"""Karmada's own outcomes: each case is an input that its real scheduler was given, and what it decided.

karmada.jsonl.xz holds one JSON object a line: `resources` and `previous` are what `gitsched.schedule` takes, `now` the moment, `options`
the flags upstream ran with, `expect` the outcome. Upstream's order of clusters and of refusal reasons is random, so neither is compared.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gitsched
from gitsched.model.time import parse_time
from tests.tables import each_row

FLAGS = ("evictionPurgeMode", "enableEmptyWorkloadPropagation")
"""Upstream flags that go by the same name in `config.karmada`."""

Case = Mapping[str, Any]
Body = Mapping[str, Any]
Identity = tuple[str, str, str]


def recorded() -> Iterator[Case]:
    with lzma.open(Path(__file__).with_name("karmada.jsonl.xz"), "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


CASES = list(recorded())
REBALANCING = [case for case in CASES if "rebalancer" in case["tags"]]


def identify(kind: str, metadata: Body) -> Identity:
    return kind, metadata.get("namespace") or "", metadata["name"]


def settings_of(case: Case) -> dict[str, Any]:
    """As upstream reads facts and taints, which is stricter on the former and off for the latter."""
    options = case.get("options") or {}
    flags = {name: options[name] for name in FLAGS if name in options}
    return {"karmada": {"missingFacts": "strict", "taintEviction": options.get("noExecuteTaintEviction", False), **flags}}


def targets_of(clusters: list[Body] | None) -> list[tuple[str, int]]:
    """Clusters by name with their replicas; none and nought are the same."""
    return sorted((cluster["name"], cluster.get("replicas") or 0) for cluster in clusters or ())


def expected(want: Body) -> dict[str, Any]:
    """What a case says of one binding, under the names of `observed`; what it is silent about is absent."""
    facts: dict[str, Any] = {"clusters": targets_of(want["clusters"]), "evicting": sorted(want.get("evicting") or ())}
    if want.get("observedAffinity"):
        facts["group"] = want["observedAffinity"]
    if want.get("scheduled"):
        facts["condition"] = (want["scheduled"]["status"], want["scheduled"]["reason"])
    if "specReplicas" in want:
        facts["replicas"] = want["specReplicas"]
    if want.get("rescheduleTriggeredAt"):
        facts["triggered"] = want["rescheduleTriggeredAt"]
    return facts


def observed(binding: Body) -> dict[str, Any]:
    """The same of a binding that was scheduled here."""
    spec, status = binding.get("spec") or {}, binding.get("status") or {}
    scheduled = next((c for c in status.get("conditions") or () if c["type"] == "Scheduled"), {})
    return {
        "clusters": targets_of(spec.get("clusters")),
        "evicting": sorted(task["fromCluster"] for task in spec.get("gracefulEvictionTasks") or ()),
        "group": status.get("schedulerObservingAffinityName"),
        "condition": (scheduled.get("status"), scheduled.get("reason")),
        "replicas": spec.get("replicas", 0),
        "triggered": spec.get("rescheduleTriggeredAt"),
    }


def rebalancing(status: Body) -> tuple[list[dict[str, str]], bool]:
    """What a WorkloadRebalancer saw of each workload, in its order, and whether it is done."""
    members = ("apiVersion", "kind", "namespace", "name")
    seen = []
    for item in status.get("observedWorkloads") or ():
        flat = {**item, **item.get("workload", {})}
        seen.append({name: flat[name] for name in (*members, "result", "reason") if flat.get(name)})
    return seen, bool(status.get("finishTime") or status.get("finished"))


@each_row("case", CASES)
def test_the_outcome_equals_that_of_karmadas_scheduler(case: Case) -> None:
    result = gitsched.schedule(case["resources"], previous=case["previous"], now=parse_time(case["now"]), config=settings_of(case))
    documents = {identify(body["kind"], body["metadata"]): body for body in result.documents}

    for want in case["expect"]["bindings"]:
        identity = identify(want["kind"], want)
        assert identity in documents, "the workload has no binding"
        facts, got = expected(want), observed(documents[identity])
        assert {name: got[name] for name in facts} == facts, identity
    for want in case["expect"].get("rebalancers", ()):
        got = documents.get(("WorkloadRebalancer", "", want["name"]), {})
        assert rebalancing(got.get("status") or {}) == rebalancing(want), want["name"]
    bound = {name for kind, _, name in documents if kind in ("ResourceBinding", "ClusterResourceBinding")}
    assert bound.isdisjoint(case["expect"].get("unmatched", ())), "bound, though no policy selects it"


@each_row("case", REBALANCING)
def test_a_rebalance_runs_once(case: Case) -> None:
    now, settings = parse_time(case["now"]), settings_of(case)
    first = gitsched.schedule(case["resources"], previous=case["previous"], now=now, config=settings)
    second = gitsched.schedule(case["resources"], previous=first.documents, now=now, config=settings)
    assert second.documents == first.documents


def test_every_case_is_run() -> None:
    assert len(CASES) == len({case["id"] for case in CASES}) == 400
    assert len(REBALANCING) == 33
