"""What explain says that a rival needs: made so, the rival wins, and just short of it, it does not."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gitsched.apis.krake.candidates import RankingSettings, ResourceCandidate, ScoredCandidates
from gitsched.apis.krake.explanation import describe_required_score, find_metric_thresholds
from gitsched.apis.krake.metrics import MetricRef, MetricValue, combine_results
from gitsched.apis.krake.names import ResourceRef

LEAST, MOST = 10.0, 30.0
STICKY = RankingSettings(0.1, True)
SHARES = st.fixed_dictionaries(dict.fromkeys("abc", st.floats(0, 1).map(lambda share: round(share, 2))))
WEIGHTS = st.dictionaries(st.sampled_from("abc"), st.floats(-3, 10).map(lambda weight: round(weight, 1)).filter(bool), min_size=1)


def arena(
    shares: dict[str, float], weights: dict[str, dict[str, float]], rules: RankingSettings = STICKY, allowed: tuple[int, ...] = ()
) -> ScoredCandidates:
    """Clusters by the weights that they give metrics, each metric between LEAST and MOST."""
    values = {
        name: MetricValue(LEAST + share * (MOST - LEAST), share, True, LEAST, MOST, allowed) for name, share in shares.items()
    }
    return ScoredCandidates(
        (
            ResourceCandidate(
                name,
                ResourceRef("kubernetes", "Cluster", "a", name),
                {},
                combine_results(tuple((MetricRef(m, w), values[m]) for m, w in own.items())),
                True,
            )
            for name, own in weights.items()
        ),
        rules,
    )


def lead(found: ScoredCandidates) -> float:
    """By how much the rival (index 1) is ahead of the holder (index 0)."""
    held, rival = found.ranking.score(0, held=True), found.ranking.score(1, held=False)
    assert held is not None
    assert rival is not None
    return rival - held


@given(SHARES, WEIGHTS, WEIGHTS, st.booleans(), st.sampled_from([0.0, 0.1, 2.0]))
def test_beyond_the_value_that_is_told_the_rival_wins(
    shares: dict[str, float], mine: dict[str, float], its: dict[str, float], everywhere: bool, stickiness: float
) -> None:
    rules, weights = RankingSettings(stickiness, everywhere), {"held": mine, "rival": its}
    assume(all(abs(sum(own.values()) + sticky) > 0.05 for own in (mine, its) for sticky in (0.0, stickiness)))
    now = arena(shares, weights, rules)
    assume(lead(now) < -1e-6)
    told = {turn.ref.name: turn for turn in find_metric_thresholds(now, 1, 0)}
    for name in its:
        if name in told:
            limit, side = (told[name].limit - LEAST) / (MOST - LEAST), 1e-4 if told[name].above else -1e-4
            assert lead(arena({**shares, name: limit + side}, weights, rules)) > 0
            assert lead(arena({**shares, name: limit - side}, weights, rules)) < 0
        else:
            assert max(lead(arena({**shares, name: end}, weights, rules)) for end in (0.0, 1.0)) < 1e-9, "no value is enough"


@pytest.mark.parametrize(
    ("shares", "its", "allowed", "words"),
    [
        pytest.param({"a": 0.8, "b": 0.2}, {"b": 1}, (), "for example with b above 28 instead of 14", id="one metric"),
        pytest.param(
            {"a": 0.8, "b": 0.2, "c": 0}, {"b": 1, "c": 9}, (), "for example with c above 27.9192 instead of 10", id="one of two"
        ),
        pytest.param({"a": 0.8, "b": 0.2, "c": 0}, {"b": 1, "c": 1}, (), "which no single metric can provide", id="not alone"),
        pytest.param({"a": 0.8, "b": 0.2}, {"b": 1}, (14, 28), "which no single metric can provide", id="not among the allowed"),
        pytest.param({"a": 0.8}, {}, (), "it has no metrics", id="no metrics"),
    ],
)
def test_what_is_needed_is_told_as_the_provider_would_say_it(
    shares: dict[str, float], its: dict[str, float], allowed: tuple[int, ...], words: str
) -> None:
    found = arena(shares, {"held": {"a": 1}, "rival": its}, allowed=allowed)
    goal = found.ranking.score(0, held=True)
    assert goal is not None
    assert words in describe_required_score(found, 1, 0, goal)


def test_a_metric_that_a_rival_lists_twice_is_told_once() -> None:
    found = arena({"a": 0.8, "b": 0.2}, {"held": {"a": 1}, "rival": {"b": 1}})
    held, rival = found.candidates
    value = rival.metrics.values[0][1]
    twice = rival._replace(metrics=combine_results(((MetricRef("b", 1), value), (MetricRef("b", 3), value))))
    (turn,) = find_metric_thresholds(ScoredCandidates((held, twice), STICKY), 1, 0)
    assert str(turn) == "b above 26.7727 instead of 14"
