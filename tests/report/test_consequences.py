"""What workloads lose: one sentence for each cause, and what a check fails on."""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.model.changes import Cause, Move, RetainedCopy
from gitsched.model.document import Key
from gitsched.model.finding import Location
from gitsched.model.scheduling import UNKNOWN, AtLeast
from gitsched.report.consequences import classify_loss, list_consequence_lines, list_consequences, loses_placements
from gitsched.report.review import Review
from tests.tables import each_row

Clusters = Mapping[str, int | None]
TYPO = Cause("Deployment/shop/web: metadata.labels.tier front -> fornt", Location("web.yaml", 6, 1))


def key(name: str = "web") -> Key:
    return Key("apps", "Deployment", "shop", name)


def describe(*moves: Move, copies: tuple[RetainedCopy, ...] = ()) -> list[str]:
    return list_consequence_lines(list_consequences(Review("c" * 40, "placements", moves=moves, retained_copies=copies)))


@each_row(
    ("before", "after", "intended", "kind", "fails"),
    [
        ({"a": 4, "b": 4}, {}, False, "stopped", True),
        ({"a": 4, "b": 4}, {}, True, "removed", False),
        ({"a": None}, {}, False, "removed", True),
        ({"a": 0}, {}, False, "removed", True),
        ({"a": UNKNOWN}, {}, False, "removed", True),
        ({"a": AtLeast(2)}, {}, False, "stopped", True),
        ({"a": 4}, {"a": 0}, False, "scaledToZero", True),
        ({"a": 4}, {"b": 0}, False, "scaledToZero", True),
        ({"a": 4}, {"a": AtLeast(0)}, False, "", False),
        ({"a": 4}, {"a": UNKNOWN}, False, "", False),
        ({"a": 4}, {"a": None}, False, "", False),
        ({"a": 4, "b": 4}, {"b": 1}, False, "", False),
        ({"a": 0}, {"b": 0}, False, "", False),
        ({}, {"a": 0}, False, "", False),
    ],
)
def test_a_workload_stops_if_no_replica_is_left(before: Clusters, after: Clusters, intended: bool, kind: str, fails: bool) -> None:
    move = Move(key(), before, after, "", intended=intended)
    assert classify_loss(move) == kind
    assert loses_placements([move]) == fails


def test_each_cause_has_one_sentence_and_the_gravest_comes_first() -> None:
    gone = Move(key("old"), {"a": 1}, {}, "removed from the source", intended=True)
    scaled = Move(key("cart"), {"a": 3}, {"a": 0}, "", (Cause("spec.replicas 3 -> 0", Location("cart.yaml", 8, 1)),))
    assert describe(gone, scaled, Move(key(), {"a": 2, "b": 2}, {}, "", (TYPO,))) == [
        "Deployment shop/web stops: it leaves all of its clusters (2 clusters, 4 replicas): Deployment/shop/web: metadata.labels.tier "
        "front -> fornt (web.yaml:6)",
        "Deployment shop/cart stops: it has 0 replicas instead of 3: spec.replicas 3 -> 0 (cart.yaml:8)",
        "Deployment shop/old is removed: it leaves all of its clusters (1 cluster, 1 replica): removed from the source",
    ]


def test_workloads_that_stop_for_the_same_cause_are_one_sentence() -> None:
    found = describe(*(Move(key(f"w{number}"), {"a": 1, "b": 1}, {}, "", (TYPO,)) for number in range(9)))
    assert found == [
        "Deployment shop/w0, Deployment shop/w1, Deployment shop/w2 and 6 more stop: they leave all of their clusters (2 clusters, "
        "18 replicas): Deployment/shop/web: metadata.labels.tier front -> fornt (web.yaml:6)"
    ]


def test_many_causes_are_counted() -> None:
    found = describe(*(Move(key(f"w{number}"), {"a": 1}, {}, f"no cluster fits {number}") for number in range(9)))
    assert len(found) == 6
    assert found[-1] == "and 4 more workloads like these"


def test_a_workload_whose_copies_stay_does_not_stop() -> None:
    copy = RetainedCopy(key(), "a", 2, ())
    assert describe(Move(key(), {"a": 2}, {}, "no cluster fits"), copies=(copy,)) == [
        "Deployment shop/web becomes unplaced (1 cluster, 2 replicas): its copies stay until another cluster has one: no cluster fits"
    ]
