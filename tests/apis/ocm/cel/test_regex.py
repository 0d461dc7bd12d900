"""Regular expressions of CEL: their cost, the limits of patterns, and matches."""

from __future__ import annotations

import contextlib
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitsched.apis.ocm.cel.cluster_expressions import PER_CALL_LIMIT
from gitsched.apis.ocm.cel.regex import InvalidPattern, compile_pattern, search
from tests.search_depth import count_examples


class LimitExceeded(Exception):
    pass


class CostMeter:
    """Adds up the cost as an evaluation does, up to the limit of one expression for one cluster."""

    def __init__(self, limit: int = PER_CALL_LIMIT) -> None:
        self.steps, self.limit = 0, limit

    def charge(self, steps: int) -> None:
        assert steps >= 0
        self.steps += steps
        if self.steps > self.limit:
            raise LimitExceeded


def cost(pattern: str, text: str, count: int = 1) -> int:
    meter = CostMeter()
    search(pattern, text, meter.charge, count)
    return meter.steps


@pytest.mark.parametrize(
    ("pattern", "text", "steps"),
    [  # the cost of matches() in cel-go 0.29.2, without the cost of the call
        ("", "", 0),
        ("a", "", 1),
        ("^1[.](30|31)[.][0-9]+$", "1.30.4", 6),
        ("[a-z]+ion", "some words in a description of a cluster", 15),
        ("é+é", "é" * 11, 2),
    ],
)
def test_an_ordinary_pattern_has_the_cost_of_kubernetes(pattern: str, text: str, steps: int) -> None:
    assert cost(pattern, text) == steps


def test_the_cost_does_not_depend_on_the_pattern_cache() -> None:
    assert len({cost(r"\pL+[0-9]{1,200}x", "abc" * 100) for _ in range(3)}) == 1


@pytest.mark.parametrize(
    ("pattern", "text", "least"),
    [
        ("[ab]*a[ab]{900}c", "ab" * 5_000, 90_000),  # prevents RE2 from caching its automaton
        (r"\pL{100}", "x", 10_000),  # 120,000 instructions
        (r"\pL|" * 10_000, "x", PER_CALL_LIMIT),  # takes a second to compile to few instructions
    ],
)
def test_an_expensive_pattern_costs_more_than_in_kubernetes(pattern: str, text: str, least: int) -> None:
    meter = CostMeter()
    with contextlib.suppress(LimitExceeded):
        search(pattern, text, meter.charge, 1)
    assert meter.steps >= least


def test_each_match_of_find_all_adds_the_cost_of_the_remaining_text() -> None:
    assert cost("a", "a" * 1_000, -1) > 1_000 + cost("a", "a" * 1_000)
    with pytest.raises(LimitExceeded):
        cost("a.*z|a", "a" * 100_000, -1)  # each search reads to the end


@pytest.mark.parametrize(
    "pattern", [r"\pL{1000}", "(?:a{0,1000}b)" * 1_000, "a" * 100_001, "[" * 50_000, "(" * 50_000, "|" * 100_001]
)
def test_a_pattern_above_the_limits_is_rejected_at_a_cost(pattern: str, capfd: pytest.CaptureFixture[str]) -> None:
    meter = CostMeter()
    with pytest.raises(InvalidPattern):
        search(pattern, "a", meter.charge)
    assert meter.steps >= 60_000
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("pattern", ["[", "\\", r"\C", "(?:a|b)*a[ab]{900}c", "(?i)[^é]" * 100])
def test_nothing_is_written_to_stderr(pattern: str, capfd: pytest.CaptureFixture[str]) -> None:
    for text in ("", "ab" * 2_000):
        with contextlib.suppress(InvalidPattern):
            search(pattern, text, lambda steps: None)
    assert capfd.readouterr().err == ""


def test_a_surrogate_becomes_the_replacement_character() -> None:
    assert search("^.$", "\ud800", lambda steps: None) == ["\ufffd"]
    assert search("\ud800", "\udfff", lambda steps: None) == ["\ufffd"]


def test_patterns_are_thread_safe() -> None:
    text = "node-1 node-22 é-333 " * 50

    def find(number: int) -> list[str]:
        return search(rf"\pL+-\d{{{number % 3 + 1}}}\b", text, lambda steps: None)

    alone = [find(number) for number in range(60)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(find, range(60))) == alone


ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "(a|b)", "(?:ab|a)", "^", "$", r"\b", r"\d", r"\w"])
COUNTS = st.sampled_from(["", "*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{1,}"])


@st.composite
def patterns(draw: st.DrawFn) -> str:
    parts = []
    for _ in range(draw(st.integers(1, 5))):
        atom = draw(ATOMS)
        parts.append(atom if atom in ("^", "$", r"\b") else atom + draw(COUNTS))
        if draw(st.integers(0, 8)) == 0:
            parts.append("|")
    return "".join(parts)


@given(patterns(), st.text("ab1é \n", max_size=8))
@settings(max_examples=count_examples(150), deadline=None)
def test_patterns_match_as_in_python(pattern: str, text: str) -> None:
    """Both prefer the leftmost match and the first alternative; only $ differs."""
    theirs = re.compile(pattern.replace("$", r"\Z"), re.ASCII).search(text)
    assert search(pattern, text, lambda steps: None, 1) == ([] if theirs is None else [theirs[0]])


def test_an_invalid_pattern_has_a_reason() -> None:
    with pytest.raises(InvalidPattern, match="missing ]"):
        compile_pattern("[")
    with pytest.raises(InvalidPattern, match=re.escape(r"invalid escape sequence: \C")):
        compile_pattern(r"\C")
