"""What workloads lose: one sentence for each cause, and what a check fails on."""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.model.changes import Cause, Move, RecordChange, RetainedCopy, UnplacedObject, WithheldChanges
from gitsched.model.document import Key
from gitsched.model.finding import Location
from gitsched.model.scheduling import UNKNOWN, AtLeast, RecordTarget
from gitsched.report.consequences import classify_loss, list_consequence_lines, list_consequences, loses_placements
from gitsched.report.review import OutputComparison, Review
from tests.tables import each_row

Clusters = Mapping[str, int | None]
TYPO = Cause("Deployment/shop/web: metadata.labels.tier front -> fornt", Location("web.yaml", 6, 1))


def key(name: str = "web") -> Key:
    return Key("apps", "Deployment", "shop", name)


REVIEW = Review("c" * 40, "placements")


def describe(*moves: Move, copies: tuple[RetainedCopy, ...] = ()) -> list[str]:
    return list_consequence_lines(list_consequences(REVIEW._replace(moves=moves, retained_copies=copies)))


@each_row(
    ("before", "after", "intended", "kind", "fails"),
    [
        ({"a": 4, "b": 4}, {}, False, "stopped", True),
        ({"a": 4, "b": 4}, {}, True, "removed", False),
        ({"a": None}, {}, False, "removed", True),
        ({"a": 0}, {}, False, "removed", True),
        ({"a": UNKNOWN}, {}, False, "stopped", True),
        ({"a": AtLeast(2)}, {}, False, "stopped", True),
        ({"a": 4}, {"a": 0}, False, "scaledToZero", True),
        ({"a": 4}, {"b": 0}, False, "scaledToZero", True),
        ({"a": 4}, {"a": AtLeast(0)}, False, "reduced", False),
        ({"a": 4}, {"a": UNKNOWN}, False, "", False),
        ({"a": 4}, {"a": None}, False, "scaledToZero", True),
        ({"a": 4, "b": 4}, {"b": 1}, False, "reduced", False),
        ({"a": 4, "b": 4}, {"b": 4}, False, "reduced", False),
        ({"a": 4, "b": 4}, {"b": 5}, False, "", False),
        ({"a": 4}, {"a": AtLeast(1)}, False, "reduced", False),
        ({"a": None, "b": None}, {"b": None}, False, "reduced", False),
        ({"a": None, "b": None, "c": None}, {"b": None, "c": None}, False, "", False),
        ({"a": UNKNOWN, "b": UNKNOWN}, {"b": UNKNOWN}, False, "reduced", False),
        ({"a": None}, {"b": None}, False, "", False),
        ({"a": 0}, {"b": 0}, False, "", False),
        ({}, {"a": 0}, False, "", False),
    ],
)
def test_a_workload_stops_if_no_replica_is_left(before: Clusters, after: Clusters, intended: bool, kind: str, fails: bool) -> None:
    move = Move(key(), before, after, "", intended=intended)
    assert classify_loss(move) == kind
    assert loses_placements(REVIEW._replace(moves=[move])) == fails


def test_each_cause_has_one_sentence_and_the_gravest_comes_first() -> None:
    gone = Move(key("old"), {"a": 1}, {}, "removed from the source", intended=True)
    scaled = Move(key("cart"), {"a": 3}, {"a": 0}, "", (Cause("spec.replicas 3 -> 0", Location("cart.yaml", 8, 1)),))
    service = Move(Key("", "Service", "shop", "web"), {"a": None}, {}, "no longer selected by a policy")
    assert describe(gone, scaled, service, Move(key(), {"a": 2, "b": 2}, {}, "", (TYPO,))) == [
        "Deployment shop/web becomes unplaced and stops: it leaves all of its clusters (2 clusters, 4 replicas): "
        "Deployment/shop/web: metadata.labels.tier front -> fornt (web.yaml:6)",
        "Deployment shop/cart stops: it has 0 replicas instead of 3: spec.replicas 3 -> 0 (cart.yaml:8)",
        "Service shop/web becomes unplaced: it leaves all of its clusters (1 cluster): no longer selected by a policy",
        "Deployment shop/old is removed: it leaves all of its clusters (1 cluster, 1 replica): removed from the source",
    ]


def test_workloads_that_stop_for_the_same_cause_are_one_sentence() -> None:
    found = describe(*(Move(key(f"w{number}"), {"a": 1, "b": 1}, {}, "", (TYPO,)) for number in range(9)))
    assert found == [
        "Deployment shop/w0, Deployment shop/w1, Deployment shop/w2 and 6 more become unplaced and stop: they leave all of their "
        "clusters (2 clusters, 18 replicas): Deployment/shop/web: metadata.labels.tier front -> fornt (web.yaml:6)"
    ]


def test_many_causes_are_counted() -> None:
    found = describe(*(Move(key(f"w{number}"), {"a": 1}, {}, f"no cluster fits {number}") for number in range(9)))
    assert len(found) == 6
    assert found[-1] == "and 4 more workloads like these"


def test_a_workload_whose_copies_stay_does_not_stop() -> None:
    copy = RetainedCopy(key(), "a", 2, ())
    assert describe(Move(key(), {"a": 2}, {}, "no cluster fits"), copies=(copy,)) == [
        "Deployment shop/web becomes unplaced (1 cluster, 2 replicas): its copies stay until others replace them: no cluster fits"
    ]
    assert describe(Move(key(), {"a": 2, "b": 2}, {"b": 2}, "a is gone"), copies=(copy,)) == [
        "Deployment shop/web runs on with 2 of 4 replicas: its copies stay until others replace them: a is gone"
    ]


def test_workloads_that_lose_half_are_named_after_those_that_stop() -> None:
    half = [Move(key(f"w{number}"), {"a": 4, "b": 4}, {"b": 4}, "", (TYPO,)) for number in range(3)]
    agent = Move(Key("apps", "DaemonSet", "shop", "agent"), {"a": None, "b": None, "c": None}, {"b": None}, "no cluster fits")
    assert describe(agent, *half, Move(key(), {"a": 2}, {}, "", (TYPO,)))[1:] == [
        "Deployment shop/w0, Deployment shop/w1, Deployment shop/w2 run on with 12 of 24 replicas: Deployment/shop/web: "
        "metadata.labels.tier front -> fornt (web.yaml:6)",
        "DaemonSet shop/agent leaves 2 of its 3 clusters: no cluster fits",
    ]


def test_a_sentence_says_that_the_guard_withholds_it() -> None:
    moves = [Move(key(f"w{number}"), {"a": 1}, {}, "", (TYPO,)) for number in range(3)]
    review = REVIEW._replace(moves=moves, withheld=WithheldChanges(tuple(moves)))
    assert "(1 cluster, 3 replicas); the guard withholds this: Deployment" in list_consequences(review)[0].line
    some = review._replace(withheld=WithheldChanges(tuple(moves[:2])))
    assert "; the guard withholds 2 of these changes: " in list_consequences(some)[0].line
    frozen = review._replace(withheld=review.withheld._replace(freeze="audit week"))
    assert "; the freeze withholds this: " in list_consequences(frozen)[0].line


def test_new_objects_in_no_cluster_are_named_with_the_reason_also_after_many_others() -> None:
    near = UnplacedObject(
        key("new"), False, Cause("PropagationPolicy/shop/all selects Deployment with a=b", Location("n.yaml", 6, 1))
    )
    waits = UnplacedObject(key("big"), True, Cause("0/3 clusters are available", Location("big.yaml", 1, 1)))
    moves = [Move(key(f"w{number}"), {"a": 1}, {}, f"no cluster fits {number}") for number in range(9)]
    review = REVIEW._replace(moves=moves, comparison=OutputComparison(unplaced=[near, waits]))
    assert list_consequence_lines(list_consequences(review))[5:] == [
        "Deployment shop/big is placed in no cluster: 0/3 clusters are available (big.yaml:1)",
        "Deployment shop/new is selected by no policy, so that it runs in no cluster: PropagationPolicy/shop/all selects Deployment with "
        "a=b (n.yaml:6)",
        "and 4 more workloads like these",
    ]


def test_what_goes_to_a_namespace_where_no_cluster_gets_it_fails() -> None:
    moved = UnplacedObject(key()._replace(namespace="store"), False, Cause("added to the source"))
    removal = Move(key(), {"a": 2}, {}, "removed from the source", intended=True)
    assert loses_placements(REVIEW._replace(moves=[removal], comparison=OutputComparison(unplaced=[moved])))
    assert not loses_placements(REVIEW._replace(moves=[removal]))
    assert not loses_placements(REVIEW._replace(comparison=OutputComparison(unplaced=[moved])))


@each_row(
    ("before", "after", "intended", "line"),
    [
        ([("p-0", 3), ("p-1", 3)], [], False, "KafkaSource shop/orders has no pod any more: it had 6 in p-0, p-1"),
        ([("p-0", 3)], [("p-0", 0)], False, "KafkaSource shop/orders has no pod any more: it had 3 in p-0"),
        ([("blue", None)], [], False, "KafkaSource shop/orders has no pod any more: it had blue"),
        ([("p-0", 3)], [], True, ""),
        ([("p-0", 3)], [("p-1", 1)], False, ""),
        ([], [], False, ""),
    ],
)
def test_a_recorded_decision_without_targets_is_a_loss(
    before: list[tuple[str, int | None]], after: list[tuple[str, int | None]], intended: bool, line: str
) -> None:
    subject = Key("sources.knative.dev", "KafkaSource", "shop", "orders")
    targets = [tuple(RecordTarget(name, amount) for name, amount in side) for side in (before, after)]
    review = REVIEW._replace(record_changes=[RecordChange(subject, "pod", *targets, intended=intended)])
    assert list_consequence_lines(list_consequences(review)) == ([line] if line else [])
    assert loses_placements(review) == bool(line)


@each_row(
    ("kind", "before", "after", "texts"),
    [
        ("ConfigMap", "ab", "c", []),
        ("ConfigMap", "ab", "b", ["ConfigMap shop/web leaves 1 of its 2 clusters"]),
        ("DaemonSet", "ab", "c", ["DaemonSet shop/web goes to fewer clusters than the 2 that it leaves"]),
    ],
)
def test_a_companion_that_moves_lacks_nowhere(kind: str, before: str, after: str, texts: list[str]) -> None:
    """Its workload has moved with it; a DaemonSet has fewer pods."""
    moved = Key("" if kind == "ConfigMap" else "apps", kind, "shop", "web")
    assert describe(Move(moved, dict.fromkeys(before), dict.fromkeys(after), "")) == texts
