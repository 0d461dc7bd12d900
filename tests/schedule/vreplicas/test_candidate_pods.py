"""Find the best pod for a vreplica."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gitsched.schedule.vreplicas.candidate_pods import CandidatePods
from gitsched.schedule.vreplicas.plugins import Profile
from gitsched.schedule.vreplicas.state import AdapterStatefulSet, VreplicasByOrdinal
from tests.search_depth import count_examples

from .vreplica_builders import adapters, choose_slowly, profiles, shares


@settings(max_examples=count_examples(60))
@given(adapters(), st.booleans().flatmap(profiles), shares(), st.dictionaries(st.integers(0, 7), st.integers(0, 5)))
def test_adding_agrees_with_a_comparison_of_all_pods(
    adapter: AdapterStatefulSet, profile: Profile, held: VreplicasByOrdinal, taken: VreplicasByOrdinal
) -> None:
    counts = {ordinal: number for ordinal, number in held.items() if ordinal in adapter.pods}
    free = {ordinal: adapter.capacity - counts.get(ordinal, 0) - taken.get(ordinal, 0) for ordinal in adapter.pods}
    among = list(adapter.pods)
    board = CandidatePods(adapter, profile, dict(free), counts, among)
    for _ in range(12):
        expected = choose_slowly(adapter, profile, free, counts, among)
        refused = {ordinal for ordinal in among if board.explain_rejection(ordinal)}
        assert (expected is None) == (refused == set(among))
        assert board.find_best() == expected
        if expected is None:
            break
        assert sum(board.list_scores(expected).values()) == max(
            sum(board.list_scores(o).values()) for o in among if o not in refused
        )
        board.add_vreplicas(expected)
        counts[expected] = counts.get(expected, 0) + 1
        free[expected] -= 1


@settings(max_examples=count_examples(60))
@given(adapters(), st.booleans().flatmap(profiles), shares(), st.randoms())
def test_removing_agrees_with_a_comparison_of_all_pods(
    adapter: AdapterStatefulSet, profile: Profile, held: VreplicasByOrdinal, random: object
) -> None:
    counts = {ordinal: number for ordinal, number in held.items() if ordinal in adapter.pods}
    profile = Profile((), profile.priorities)
    free = {ordinal: adapter.capacity - counts.get(ordinal, 0) for ordinal in adapter.pods}
    among = list(counts)
    board = CandidatePods(adapter, profile, dict(free), counts, among)
    while among:
        expected = choose_slowly(adapter, profile, free, counts, among)
        assert expected is not None
        assert board.find_best() == expected
        board.add_vreplicas(expected, -1)
        counts[expected] -= 1
        free[expected] += 1
        if not counts[expected]:
            board.remove_candidate(expected)
            among.remove(expected)
    assert board.find_best() is None
