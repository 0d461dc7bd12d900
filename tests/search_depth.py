"""How much tests look at: few examples and variants in the suite, more in a search (`make search`) and with `make long`."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable
from typing import Any

import pytest

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
_FACTOR = 100


def count_examples(usual: int) -> int:
    """Return the number of examples or random seeds of a test: the usual one, or a hundred times as many in a search."""
    return usual * _FACTOR if DEEP else usual


def list_variants(variants: Iterable[Any], kept: Container[Any]) -> list[Any]:
    """Return the variants of a test, of which the suite looks at those that are `kept`, and `make long` at the others."""
    return [one if one in kept else pytest.param(one, marks=pytest.mark.long) for one in variants]
