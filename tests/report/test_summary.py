"""Counts of moves and their descriptions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gitsched.model.changes import Move
from gitsched.model.document import Key
from gitsched.model.scheduling import UNKNOWN, AtLeast
from gitsched.report.lines import classify_move, format_replica_change
from gitsched.report.review import ComparisonBase, Review
from gitsched.report.summary import count_moves, format_cluster_deltas, format_headline, list_summary_rows, summarize_moves
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
        "1 workload moves, 1 only leaves clusters (1 with fewer replicas), 1 scales to 0 replicas"
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
