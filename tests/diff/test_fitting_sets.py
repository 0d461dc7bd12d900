"""Which changes fit together: the search, compared with trying all sets, for random answers and for changes of small fleets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gitsched import schedule
from gitsched.diff.fitting_sets import MAX_EXHAUSTIVE, MAX_EXPLAINED, find_fitting_sets
from gitsched.model.fits import ChangeSet, FittingSets
from tests.scenarios.conftest import deployment
from tests.search_depth import DEEP
from tests.simulate.conftest import cluster, divide

NOW = datetime(2026, 3, 2, tzinfo=UTC)
Answer = Callable[[ChangeSet], bool]


def list_sets(count: int) -> Iterator[ChangeSet]:
    for size in range(1, count + 1):
        yield from map(frozenset, combinations(range(count), size))


def try_all(count: int, fits: Answer) -> tuple[list[int], set[ChangeSet], set[tuple[int, ChangeSet]]]:
    """Return the sequence, the smallest sets that do not fit, and what changes require, from the answers for all sets."""
    known = {changes: fits(changes) for changes in list_sets(count)}
    sequence: list[int] = []
    while added := [one for one in range(count) if one not in sequence and _append(sequence, one, known)]:
        assert added
    conflicts = {
        changes
        for changes, answer in known.items()
        if len(changes) > 1 and not answer and all(known[part] for part in known if part < changes)
    }
    requirements = {
        (change, changes)
        for change in range(count)
        for changes in known
        if not known[frozenset((change,))] and change not in changes and known[changes] and known[changes | {change}]
    }
    least = {
        (change, changes)
        for change, changes in requirements
        if not any(one == change and less < changes for one, less in requirements)
    }
    return sequence, conflicts, least


def _append(sequence: list[int], change: int, known: dict[ChangeSet, bool]) -> bool:
    if known[frozenset((*sequence, change))]:
        sequence.append(change)
        return True
    return False


def compare(found: FittingSets, expected: tuple[list[int], set[ChangeSet], set[tuple[int, ChangeSet]]]) -> None:
    assert found.is_complete
    assert (list(found.sequence), set(found.conflicts), set(found.requirements)) == expected


@st.composite
def answers(draw: st.DrawFn) -> tuple[int, Answer]:
    """Draw answers for all sets: those of some sets that exclude each other, those of others that need each other, and a few at random."""
    count = draw(st.integers(1, MAX_EXHAUSTIVE))
    sets = st.frozensets(st.integers(0, count - 1), min_size=1, max_size=3)
    excluded, surprising = draw(st.lists(sets, max_size=4)), frozenset(draw(st.lists(sets, max_size=3)))
    needed = draw(st.dictionaries(st.integers(0, count - 1), st.integers(0, count - 1), max_size=2))

    def fits(changes: ChangeSet) -> bool:
        wanted = not any(one <= changes for one in excluded) and all(needed.get(one, one) in changes for one in changes)
        return wanted != (changes in surprising)

    return count, fits


@settings(max_examples=5000 if DEEP else 30)
@given(answers())
def test_the_search_finds_what_trying_all_sets_finds(case: tuple[int, Answer]) -> None:
    count, fits = case
    compare(find_fitting_sets(count, fits), try_all(count, fits))


EDITS = st.tuples(st.sampled_from("abc"), st.integers(0, 6))
"""A workload and its new number of replicas, or a cluster and its pods."""


@settings(max_examples=5000 if DEEP else 2)
@given(
    st.lists(st.integers(1, 6), min_size=3, max_size=3),
    st.lists(st.tuples(st.booleans(), EDITS), min_size=2, max_size=4 if DEEP else 3),
)
def test_changes_of_small_fleets_are_compared_with_trying_all_sets(
    pods: Sequence[int], edits: Sequence[tuple[bool, tuple[str, int]]]
) -> None:
    def fits(changes: ChangeSet) -> bool:
        texts = {f"c{name}": cluster(f"c{name}", pods=number) for name, number in zip("abc", pods, strict=True)}
        texts |= {name: deployment(name, 1) for name in "abc"}
        for change in sorted(changes):
            is_cluster, (name, number) = edits[change]
            texts[f"c{name}" if is_cluster else name] = cluster(f"c{name}", pods=number) if is_cluster else deployment(name, number)
        documents: list[Any] = [
            yaml.safe_load(text) for text in (*texts.values(), *(divide(name, "labelSelector: {}") for name in "abc"))
        ]
        return not any(one.code == "unschedulable" for one in schedule(documents, now=NOW).findings)

    compare(find_fitting_sets(len(edits), fits), try_all(len(edits), fits))


def test_of_many_changes_each_one_that_is_left_out_is_explained() -> None:
    excluded = [frozenset((1, 3)), frozenset((0, 4, 11)), frozenset((2, 5)), frozenset((6, 5))]
    found = find_fitting_sets(20, lambda changes: not any(one <= changes for one in excluded) and changes & {7, 12} != {7})
    assert [change for change in range(20) if change not in found.sequence] == [3, 5, 11]
    assert set(found.conflicts) == {*excluded}
    assert found.requirements == ((7, frozenset((12,))),)
    assert not found.is_complete


def test_of_many_changes_one_may_need_a_later_one() -> None:
    """The first change keeps the second one out until the sixth is there, and two others exclude each other."""
    found = find_fitting_sets(10, lambda changes: not ({0, 1} <= changes and 5 not in changes) and not {7, 8} <= changes)
    assert found.sequence == (0, 2, 3, 4, 5, 6, 7, 9, 1)
    assert found.conflicts == (frozenset((7, 8)),)


def test_of_many_changes_sets_of_many_members_are_not_searched() -> None:
    found = find_fitting_sets(20, lambda changes: len(changes) <= 9)
    assert (len(found.sequence), found.conflicts) == (9, ())


def test_what_may_be_checked_next_is_prepared() -> None:
    """What is prepared and not checked comes after a set that fits."""
    prepared: list[Sequence[ChangeSet]] = []
    tried: list[ChangeSet] = []

    def fits(changes: ChangeSet) -> bool:
        tried.append(changes)
        return len(changes) <= 9

    assert len(find_fitting_sets(20, fits, prepared.append).sequence) == 9
    for sets in prepared:
        position = tried.index(sets[0])
        following = [one for one in tried[position:] if one in sets]
        assert following == [one for one in sets if one in following]
    assert len(prepared) == len({sets[0] for sets in prepared}) >= 10


def test_of_many_changes_only_some_sets_are_searched() -> None:
    found = find_fitting_sets(10, lambda changes: 9 not in changes or len(changes) == 1)
    assert len(found.conflicts) == MAX_EXPLAINED


def test_of_many_changes_the_number_of_tries_is_bounded() -> None:
    tried: list[ChangeSet] = []

    def fits(changes: ChangeSet) -> bool:
        tried.append(changes)
        return not {10, 40} <= changes

    found = find_fitting_sets(50, fits)
    assert found.conflicts == (frozenset((10, 40)),)
    assert len(tried) < 80


def test_many_changes_that_fit_are_tried_once_together() -> None:
    tried: list[ChangeSet] = []

    def fits(changes: ChangeSet) -> bool:
        tried.append(changes)
        return True

    assert find_fitting_sets(50, fits).sequence == tuple(range(50))
    assert len(tried) == 51


def test_sets_that_are_not_tried_any_more_are_no_answer() -> None:
    found = find_fitting_sets(3, lambda changes: True if len(changes) < 2 else None)
    assert (found.sequence, found.conflicts, found.is_complete) == ((0,), (), False)
