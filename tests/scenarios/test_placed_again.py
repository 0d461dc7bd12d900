"""A mistake leaves workloads without a cluster, and is undone while their copies still run: nothing is newly placed then."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gitsched.model.history import HistoryFilter
from gitsched.reconcile.output.output_history import open_history
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.reconcile.run import make_review
from gitsched.report.history import serialize_history, write_entry
from gitsched.report.markdown import write_markdown
from gitsched.report.page import FleetView, write_page
from gitsched.report.review import Review
from gitsched.report.saved_plan import parse_saved_plan, serialize_saved_plan
from gitsched.report.serialization import serialize_review
from gitsched.report.text import write_plan, write_run

from .conftest import Fleet, cluster, deployment, policy

CLUSTERS = {f"clusters/{name}.yaml": cluster(name) for name in ("ash", "bru")}
NAMES = ("api", "cart", "web")
AGAIN = "3 of 3 workloads are placed again where their copies still run"
SPREAD = policy("ash,bru", scheduling="Divided")


def lose_clusters(fleet: Fleet, back: str = SPREAD) -> None:
    """Three workloads lose their clusters by a mistake in their policy, and keep their copies; the last commit corrects it."""
    fleet.commit({**CLUSTERS, "policy.yaml": SPREAD, **{f"{name}.yaml": deployment(name, 6) for name in NAMES}})
    fleet.reconcile()
    fleet.commit({"policy.yaml": policy("asj", scheduling="Divided")}, hour=1)
    assert [bool(move.copies) for move in fleet.reconcile(1).plan.moves] == [False] * 3, "they ran as placed workloads before"
    fleet.commit({"policy.yaml": back}, hour=2)


def read_counts(review: Review) -> dict[str, Any]:
    summary = serialize_review(review)["summary"]
    return {name: summary[name] for name in ("first", "again", "replicasMoved", "replicasAdded", "replicasRemoved", "clusters")}


@pytest.mark.parametrize("base", [None, "main^"], ids=["the output branch", "the commit before"])
@pytest.mark.parametrize("complete", [False, True], ids=["from the last state", "complete"])
def test_workloads_are_placed_again_where_their_copies_still_run(fleet: Fleet, base: str | None, complete: bool) -> None:
    lose_clusters(fleet)
    comparison = compare_plans(fleet.settings(2, revision="main"), base, complete=complete)
    review = comparison.review
    assert comparison.run.plan.complete is complete
    assert read_counts(review) == {
        "first": 0,
        "again": 3,
        "replicasMoved": 0,
        "replicasAdded": 0,
        "replicasRemoved": 0,
        "clusters": [],
    }
    text, comment, page = write_plan(review, 200), write_markdown(review), write_page(review, FleetView({}, {}))
    assert text.startswith(f"{AGAIN}, 0 become unplaced: ")
    assert "\n+ 3 workloads are placed again where their copies still run: in ash, bru\n" in text
    assert "    Deployment default/web: still in ash 3, bru 3\n" in text
    assert f"### {AGAIN}" in comment
    assert "`Deployment default/web`: `ash, bru`" in comment
    assert "3 workloads are placed again where their copies still run" in page
    for shown in (text, comment, page):
        assert "newly placed" not in shown
        assert "gaining replicas" not in shown
    saved = parse_saved_plan(json.dumps(serialize_saved_plan(review, {}))).review
    assert [move.copies for move in saved.moves] == [{"ash": 3, "bru": 3}] * 3


def test_a_run_and_the_history_say_that_workloads_are_placed_again(fleet: Fleet) -> None:
    lose_clusters(fleet)
    before = fleet.files()
    run = fleet.reconcile(2)
    assert (
        write_run(make_review(run), 200).partition(": ")[2].startswith("3 workloads are placed again where their copies still run")
    )
    manifests = {path for path in before if "/default/" in path and path.startswith("clusters/")}
    assert {path: fleet.files()[path] for path in manifests} == {path: before[path] for path in manifests}
    history = open_history(fleet.settings(2), HistoryFilter())
    entry = next(history.read_entries(1))
    assert entry.summary == "3 workloads placed again"
    assert "  + Deployment default/web: ash 3, bru 3, where its copies still ran\n" in write_entry(entry)
    found = serialize_history(history.branch, history.head, [entry], (), "", "")
    assert {move["kind"] for move in found["entries"][0]["moves"]} == {"again"}


@pytest.mark.parametrize(
    ("back", "kind", "counts"),
    [
        (policy("ash", scheduling="Divided"), "again", {"replicasAdded": 9, "replicasRemoved": 0}),
        (SPREAD.replace("ash,bru", "ash,bru,cph"), "first", {"replicasAdded": 0, "replicasRemoved": 0}),
    ],
    ids=["more replicas in one of them", "another cluster as well"],
)
def test_replicas_are_counted_from_the_copies_that_run(fleet: Fleet, back: str, kind: str, counts: dict[str, int]) -> None:
    fleet.commit({"clusters/cph.yaml": cluster("cph")})
    lose_clusters(fleet, back)
    review = compare_plans(fleet.settings(2)).review
    found = read_counts(review)
    assert found[kind] == 3
    assert {name: found[name] for name in counts} == counts
