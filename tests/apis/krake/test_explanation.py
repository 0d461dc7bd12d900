"""Metric thresholds in explanations: a competitor wins just beyond the threshold and loses just before it."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gitsched.apis.krake.candidates import RankingSettings, ResourceCandidate, ScoredCandidates
from gitsched.apis.krake.explanation import describe_required_score, find_metric_thresholds
from gitsched.apis.krake.metrics import MetricRef, MetricValue, combine_results
from gitsched.apis.krake.names import ResourceRef

MINIMUM, MAXIMUM = 10.0, 30.0
STICKY = RankingSettings(0.1, True)
SHARES = st.fixed_dictionaries(dict.fromkeys("abc", st.floats(0, 1).map(lambda share: round(share, 2))))
WEIGHTS = st.dictionaries(st.sampled_from("abc"), st.floats(-3, 10).map(lambda weight: round(weight, 1)).filter(bool), min_size=1)


def make_candidates(
    shares: dict[str, float],
    weights: dict[str, dict[str, float]],
    settings: RankingSettings = STICKY,
    allowed: tuple[int, ...] = (),
) -> ScoredCandidates:
    """Return clusters by their metric weights, with each metric between MINIMUM and MAXIMUM."""
    values = {
        name: MetricValue(MINIMUM + share * (MAXIMUM - MINIMUM), share, True, MINIMUM, MAXIMUM, allowed)
        for name, share in shares.items()
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
        settings,
    )


def lead(candidates: ScoredCandidates) -> float:
    """Return by how much the competitor (index 1) exceeds the current cluster (index 0)."""
    current, competitor = candidates.ranking.score(0, current=True), candidates.ranking.score(1, current=False)
    assert current is not None
    assert competitor is not None
    return competitor - current


@given(SHARES, WEIGHTS, WEIGHTS, st.booleans(), st.sampled_from([0.0, 0.1, 2.0]))
def test_the_competitor_wins_beyond_the_threshold(
    shares: dict[str, float],
    current_weights: dict[str, float],
    competitor_weights: dict[str, float],
    in_every_mean: bool,
    stickiness: float,
) -> None:
    settings, weights = RankingSettings(stickiness, in_every_mean), {"current": current_weights, "other": competitor_weights}
    assume(
        all(abs(sum(own.values()) + sticky) > 0.05 for own in (current_weights, competitor_weights) for sticky in (0.0, stickiness))
    )
    candidates = make_candidates(shares, weights, settings)
    assume(lead(candidates) < -1e-6)
    thresholds = {threshold.ref.name: threshold for threshold in find_metric_thresholds(candidates, 1, 0)}
    for name in competitor_weights:
        if name in thresholds:
            limit, side = (thresholds[name].limit - MINIMUM) / (MAXIMUM - MINIMUM), 1e-4 if thresholds[name].above else -1e-4
            assert lead(make_candidates({**shares, name: limit + side}, weights, settings)) > 0
            assert lead(make_candidates({**shares, name: limit - side}, weights, settings)) < 0
        else:
            assert max(lead(make_candidates({**shares, name: end}, weights, settings)) for end in (0.0, 1.0)) < 1e-9, (
                "no value is sufficient"
            )


@pytest.mark.parametrize(
    ("shares", "competitor_weights", "allowed", "expected"),
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
def test_thresholds_are_given_as_raw_provider_values(
    shares: dict[str, float], competitor_weights: dict[str, float], allowed: tuple[int, ...], expected: str
) -> None:
    candidates = make_candidates(shares, {"current": {"a": 1}, "other": competitor_weights}, allowed=allowed)
    target_score = candidates.ranking.score(0, current=True)
    assert target_score is not None
    assert expected in describe_required_score(candidates, 1, 0, target_score)


def test_a_metric_that_is_listed_twice_has_one_threshold() -> None:
    candidates = make_candidates({"a": 0.8, "b": 0.2}, {"current": {"a": 1}, "other": {"b": 1}})
    current, competitor = candidates.candidates
    value = competitor.metrics.values[0][1]
    twice = competitor._replace(metrics=combine_results(((MetricRef("b", 1), value), (MetricRef("b", 3), value))))
    (threshold,) = find_metric_thresholds(ScoredCandidates((current, twice), STICKY), 1, 0)
    assert str(threshold) == "b above 26.7727 instead of 14"
