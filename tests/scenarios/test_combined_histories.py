"""Whatever features a repository combines, plans that start from the state of the last run are complete plans, and so is what they show."""

from __future__ import annotations

import logging
from collections import Counter

import pytest

from tests.scenarios.combined_histories import draw_history
from tests.scenarios.combined_search import Counts, find_difference
from tests.search_depth import DEEP, count_examples


@pytest.mark.search
@pytest.mark.parametrize("seed", range(count_examples(1)))
def test_a_random_history_of_everything(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    counts = Counts(Counter(), Counter(), Counter())
    found = find_difference(draw_history(seed, 10 if DEEP else 4), seed, 2, counts)
    assert found is None, found
    assert DEEP or counts.runs["incremental"]
