"""Counts of moves and their descriptions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gitsched.model.changes import Move, RetainedCopy, WithheldChanges
from gitsched.model.document import Key
from gitsched.model.scheduling import UNKNOWN, AtLeast, Outcome
from gitsched.model.time import EPOCH
from gitsched.report.lines import classify_move, format_replica_change
from gitsched.report.markdown_sections import collect_comment_data
from gitsched.report.review import ComparisonBase, DeliveryChanges, OutputComparison, Review
from gitsched.report.serialization import serialize_review
from gitsched.report.summary import (
    count_moves,
    format_cluster_deltas,
    format_headline,
    list_comparison_notes,
    list_summary_rows,
    summarize_moves,
)
from tests.tables import each_row

placements = st.dictionaries(st.sampled_from("abc"), st.none() | st.integers(0, 9), max_size=3)
moves = st.lists(
    st.builds(
        Move,
        st.builds(Key, st.just("apps"), st.just("Deployment"), st.just("s"), st.text("xyz", max_size=3)),
        placements,
        placements,
        st.just(""),
    ).filter(lambda move: move.before != move.after)
)


@given(moves)
def test_every_move_is_counted_once_and_replica_counts_add_up(entries: list[Move]) -> None:
    counts = count_moves(entries)
    assert counts.moved + counts.left + counts.resized + counts.first + counts.lost == len(entries)
    before, after = (
        sum(count or 0 for move in entries for count in side(move).values())
        for side in (lambda move: move.before, lambda move: move.after)
    )
    assert counts.replicas_added - counts.replicas_removed == after - before
    assert sum(balance.replicas for balance in counts.clusters.values()) == after - before
    assert set(counts.gaining) | set(counts.losing) == counts.clusters.keys()


def test_kinds_of_moves_and_their_descriptions() -> None:
    key = Key("apps", "Deployment", "shop", "web")
    lost, first, resized, moved = (
        Move(key, {"a": 4}, {}, ""),
        Move(key, {}, {"a": None}, ""),
        Move(key, {"a": 4}, {"a": 6}, ""),
        Move(key, {"a": 4}, {"b": 4}, ""),
    )
    assert [classify_move(move) for move in (lost, first, resized, moved)] == ["lost", "first", "resized", "moved"]
    assert [format_replica_change(move) for move in (lost, first, resized, moved)] == ["4 -> 0", "", "4 -> 6", "4"]
    assert summarize_moves([moved, lost], 9) == "1 of 9 workloads moves, 1 becomes unplaced"
    left, stopped = Move(key, {"a": 4, "b": 4}, {"b": 4}, ""), Move(key, {"a": 4}, {"a": 0}, "")
    assert summarize_moves([moved, left, stopped]) == (
        "1 workload moves, 1 leaves some clusters (1 with fewer replicas), 1 scales to 0 replicas"
    )
    assert (
        summarize_moves([left], 9, [left])
        == "1 of 9 workloads leaves some clusters (1 with fewer replicas, withheld), 0 become unplaced"
    )
    by_reference, autoscaled = Move(key, {"a": 4}, {"a": UNKNOWN}, ""), Move(key, {"a": 4}, {"a": AtLeast(0)}, "")
    assert summarize_moves([by_reference]) == "1 workload scales, 0 become unplaced", "nothing says how many replicas it has"
    assert "to 0" not in summarize_moves([autoscaled]), "the autoscaler may run any number"
    assert format_cluster_deltas(count_moves([moved, resized]), gaining=True) == "b (+1 workload, +4 replicas), a (+2 replicas)"


@each_row(
    ("before", "after", "row", "headline"),
    [
        (3, 4, ["3 -> 4"], "No workload moves, 1 more object is selected by no policy"),
        (3, 5, ["3 -> 5"], "No workload moves, 2 more objects are selected by no policy"),
        (4, 3, ["4 -> 3"], "No changes"),
        (3, 3, [], "No changes"),
        (None, 3, [], "No changes"),
    ],
)
def test_a_new_object_that_no_policy_selects_is_news(before: int | None, after: int, row: list[str], headline: str) -> None:
    base = ComparisonBase("d" * 40, "main", False, {}, (), before)
    review = Review("c" * 40, "placements", before="b" * 40, unclaimed=after, base=base)
    rows = [f"{row.before} -> {row.after}" for row in list_summary_rows(review) if row.name == "objects that no policy selects"]
    assert (rows, format_headline(review)) == (row, headline)
    assert review.has_news == (before is not None and after > before)


@each_row(
    ("withheld", "rows"),
    [
        (
            "",
            [
                "replicas changing cluster: 7",
                "clusters gaining replicas: b (+2 workloads, +7 replicas)",
                "changed manifest files: 4",
            ],
        ),
        (
            "web",
            [
                "replicas changing cluster: 3",
                "clusters gaining replicas: b (+1 workload, +3 replicas)",
                "replicas changing cluster (withheld): 4",
                "clusters gaining replicas (withheld): b (+1 workload, +4 replicas)",
                "changed manifest files: 4, withheld ones included",
            ],
        ),
        (
            "api web",
            [
                "replicas changing cluster (withheld): 7",
                "clusters gaining replicas (withheld): b (+2 workloads, +7 replicas)",
                "changed manifest files: 4, withheld ones included",
            ],
        ),
    ],
)
def test_withheld_moves_are_counted_apart_from_those_that_happen(withheld: str, rows: list[str]) -> None:
    listed = [Move(Key("apps", "Deployment", "shop", name), {"a": n}, {"b": n}, "") for name, n in (("api", 3), ("web", 4))]
    left_out = WithheldChanges(tuple(move for move in listed if move.key.name in withheld.split()))
    comparison = OutputComparison(delivery=DeliveryChanges(files=4))
    review = Review("c" * 40, "placements", before="b" * 40, moves=listed, withheld=left_out, comparison=comparison)
    shown = [f"{row.name}: {row.after}" for row in list_summary_rows(review) if "losing" not in row.name]
    assert shown == rows
    assert [f"{row.name}: {row.after}" for row in collect_comment_data(review).rows if "losing" not in row.name] == rows
    summary = serialize_review(review)["summary"]
    assert (summary["moved"], summary["withheld"]["moved"]) == (2 - len(left_out.moves), len(left_out.moves))
    assert sum(cluster["replicas"]["gained"] for cluster in summary["clusters"]) == summary["replicasMoved"]


def test_the_unplaced_workloads_of_the_summary_are_those_that_a_run_leaves() -> None:
    keys = [Key("apps", "Deployment", "shop", name) for name in ("api", "web")]
    lost = [Move(key, {"a": 2}, {}, "no cluster fits") for key in keys]
    outcomes = [Outcome(key, "karmada", "pending", "", "", (), 2, (), "no cluster fits", EPOCH) for key in keys]
    states = {"placed": 0, "pending": 2, "stale": 0}
    review = Review("c" * 40, "placements", before="b" * 40, outcomes=outcomes, moves=lost, states=states)
    for withheld, count in ((0, ["2"]), (1, ["1"]), (2, [])):
        rows = list_summary_rows(review._replace(withheld=WithheldChanges(tuple(lost[:withheld]))))
        assert [row.after for row in rows if row.name == "unplaced workloads"] == count


def test_objects_under_the_same_name_in_another_namespace_may_be_renamed() -> None:
    old, new = (Key("apps", "Deployment", namespace, "web") for namespace in ("shop", "store"))
    gone = Move(old, {"a": 2}, {}, "", intended=True)
    come = Move(new, {}, {"a": 2}, "")
    other = Move(new._replace(name="api"), {}, {"a": 2}, "")
    review = Review("c" * 40, "placements", moves=[come, other, gone])
    (note,) = list_comparison_notes(review)
    assert note == (
        "1 object that is removed from namespace shop has its name in namespace store now: annotate what continues there with "
        "gitsched.io/renamed-from: shop/NAME, so that the old copies stay until the new ones run."
    )
    continued = RetainedCopy(old, "a", 2, (), follows=new)
    assert list_comparison_notes(review._replace(retained_copies=[continued])) == []
    assert list_comparison_notes(review._replace(moves=[come, gone._replace(intended=False)])) == []
    assert list_comparison_notes(review._replace(moves=[other, gone])) == []
