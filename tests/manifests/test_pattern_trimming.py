"""Parts of a text that `${name#pattern}` and the like remove."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.manifests.envsubst import SubstitutionError, VariableValues, substitute_variables
from gitsched.manifests.glob import list_matching_lengths, matches_glob, parse_glob


@given(st.text("ab*?", max_size=8), st.text("abc", max_size=12))
def test_the_matching_lengths_are_those_that_match_one_by_one(pattern: str, text: str) -> None:
    tokens = parse_glob(pattern) or []
    assert list_matching_lengths(tokens, text) == [n for n in range(len(text) + 1) if matches_glob(tokens, text[:n])]


@pytest.mark.parametrize("function", ["#", "##", "%", "%%"])
def test_hostile_patterns_end_in_bounded_time(function: str) -> None:
    start = time.monotonic()
    with pytest.raises(SubstitutionError, match="characters of one text with patterns"):
        substitute_variables(f"${{A{function}*a*a*a*a*a*ab}}" * 1_000, VariableValues({"A": "a" * 4_000}))
    assert time.monotonic() - start < 20
