"""How many examples tests of properties look at: few in the suite, many in a search (`make search`)."""

from __future__ import annotations

import os

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
_FACTOR = 100


def count_examples(usual: int) -> int:
    """Return the number of examples or random seeds of a test: the usual one, or a hundred times as many in a search."""
    return usual * _FACTOR if DEEP else usual
