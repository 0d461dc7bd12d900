"""Every named cause of random changes is true: without it, decided from scratch, the workload does not move."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from gitsched.decide.decisions import DecisionSet
from gitsched.decide.recorded_decisions import compare_recorded
from gitsched.diff.causes import Causes, find_causes
from gitsched.diff.counterfactual_placements import DecidedCommit
from gitsched.diff.document_changes import DocumentChanges
from gitsched.diff.impact_causes import measure_impact
from gitsched.diff.policy_names import PolicyNames
from gitsched.diff.resilience import compare_resilience
from gitsched.model.changes import Move, RecordChange
from gitsched.model.errors import Permanent
from gitsched.model.simulation import ImpactChange
from gitsched.simulate.baseline import Baseline, make_baseline
from gitsched.simulate.scenario import Scenario
from gitsched.simulate.simulation import simulate
from tests.diff.random_fleets import NOW, Fleet, decide_all, filled, group, list_records, make_pair, pairs, place, revert
from tests.search_depth import count_examples


def compare(earlier: DecisionSet, later: DecisionSet) -> Causes:
    keys = dict.fromkeys((*earlier.outcomes, *later.outcomes))
    pairs = [(key, place(earlier.outcomes.get(key)), place(later.outcomes.get(key))) for key in keys]
    moves = tuple(Move(key, before, after, "") for key, before, after in pairs if before != after)
    assert earlier.input is not None
    assert later.input is not None
    changes = DocumentChanges(earlier.input, later.input)
    names = PolicyNames(earlier.outcomes), PolicyNames(later.outcomes)
    return find_causes(
        moves, compare_recorded(earlier.recorded, later.recorded), changes, names, DecidedCommit.from_decisions(later)
    )


def undoes(change: Move | RecordChange, decided: DecisionSet) -> bool:
    if isinstance(change, Move):
        return place(decided.outcomes.get(change.key)) == change.before
    targets = (
        each.targets for each in decided.recorded if (each.subject, each.target_kind) == (change.subject, change.target_kind)
    )
    return next(targets, ()) == change.before


@settings(max_examples=count_examples(10), suppress_health_check=[HealthCheck.too_slow])
@given(pairs())
def test_a_move_does_not_happen_without_its_causes(fleets: tuple[Fleet, Fleet]) -> None:
    check_moves(*fleets)


@pytest.mark.parametrize(("seed", "changes"), [(77, 25), (260, 10), (291, 50), (312, 50)])
def test_an_object_that_others_bring_along_has_true_causes(seed: int, changes: int) -> None:
    """Changes of the workloads that refer to it count, although each is also taken back for its own move."""
    check_moves(*make_pair(seed, changes))


def check_moves(*fleets: Fleet) -> None:
    base, head = map(filled, fleets)
    previous = list_records(decide_all(base, {}))
    found = compare(decide_all(base, previous), decide_all(head, previous))
    decided: dict[str, DecisionSet] = {}
    for change in (*found.moves, *found.records):
        assert change.causes, change
        assert all(cause.proved for cause in change.causes), change
        for causes in group(change.causes):
            name = repr(causes)
            if name not in decided:
                decided[name] = decide_all(revert(base, head, causes), previous)
            assert undoes(change, decided[name]), (change, causes)


def assume_carried_out(decided: DecisionSet) -> Baseline:
    assert decided.input is not None
    return make_baseline(decided, decided.input.config, NOW, {})


def measure(decided: DecisionSet, change: ImpactChange) -> tuple[int | None, bool]:
    baseline = assume_carried_out(decided)
    try:
        row = simulate(baseline, Scenario(lose=(change.domain,)))
    except Permanent:
        row = None
    return measure_impact(baseline, row, change.key)


@settings(max_examples=count_examples(4), suppress_health_check=[HealthCheck.too_slow])
@given(pairs())
def test_a_loss_has_its_earlier_impact_without_the_causes(fleets: tuple[Fleet, Fleet]) -> None:
    base, head = map(filled, fleets)
    previous = list_records(decide_all(base, {}))
    earlier = decide_all(base, previous)
    found = compare_resilience(*(assume_carried_out(each) for each in (earlier, decide_all(head, previous))), "cluster")
    for change in found.impact_changes:
        for causes in group(cause for cause in change.causes if cause.proved):
            reverted = decide_all(revert(base, head, causes), previous)
            assert measure(reverted, change) == measure(earlier, change), (change, causes)
