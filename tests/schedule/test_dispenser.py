"""Divide replicas by weight."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gitsched.schedule.dispenser import dispense, prefers_descending
from tests.tables import each_row

votes = st.lists(st.integers(0, 60) | st.integers(0, 10**6), max_size=12)
totals = st.integers(0, 40) | st.integers(0, 2000)


def give_one_by_one(total: int, votes: list[int], descending: bool, exact: bool) -> list[int]:
    """One seat at a time to the largest votes / (2 * seats + 1); ties to fewer seats, then to the first (or last) name."""
    seats = [0] * len(votes)
    parties = [i for i, vote in enumerate(votes) if vote]
    for _ in range(total if parties else 0):
        seats[min(parties, key=lambda i: (-_quotient(votes[i], seats[i], exact), seats[i], -i if descending else i))] += 1
    return seats


def _quotient(votes: int, seats: int, exact: bool) -> Fraction | float:
    return Fraction(votes, 2 * seats + 1) if exact else votes / (2 * seats + 1)


@given(totals, votes, st.booleans())
def test_the_shares_are_those_of_one_seat_at_a_time(total: int, votes: list[int], descending: bool) -> None:
    assert dispense(total, votes, descending) == give_one_by_one(total, votes, descending, exact=False)


@given(st.integers(0, 300), votes, st.booleans())
def test_the_shares_are_those_of_exact_arithmetic(total: int, votes: list[int], descending: bool) -> None:
    # Quotients of such small numbers are either equal or differ by far more than a float can blur.
    assert dispense(total, votes, descending) == give_one_by_one(total, votes, descending, exact=True)


@given(totals, votes, st.booleans())
def test_all_replicas_are_given_and_only_to_parties_with_votes(total: int, votes: list[int], descending: bool) -> None:
    seats = dispense(total, votes, descending)
    assert sum(seats) == (total if any(votes) else 0)
    assert all(seat >= 0 and (vote or not seat) for seat, vote in zip(seats, votes, strict=True))


@given(st.integers(0, 200), st.lists(st.integers(1, 30), min_size=1, max_size=8))
def test_one_direction_mirrors_the_other(total: int, votes: list[int]) -> None:
    assert dispense(total, votes, descending=True) == dispense(total, votes[::-1])[::-1]


@given(st.integers(1, 40), st.lists(st.integers(1, 50), min_size=2, max_size=6), st.randoms(use_true_random=False))
def test_without_a_tie_at_the_last_seat_the_order_of_parties_does_not_matter(total: int, votes: list[int], random: Random) -> None:
    quotients = sorted((Fraction(vote, 2 * seat + 1) for vote in votes for seat in range(total + 1)), reverse=True)
    assume(quotients[total - 1] > quotients[total])
    order = random.sample(range(len(votes)), len(votes))
    shuffled = dispense(total, [votes[i] for i in order])
    seats = dispense(total, votes)
    assert shuffled == [seats[i] for i in order]
    assert seats == dispense(total, votes, descending=True)


@given(st.integers(0, 10**7), st.lists(st.integers(1, 10**9), min_size=1, max_size=12))
def test_no_replica_of_very_many_fits_better_elsewhere(total: int, votes: list[int]) -> None:
    seats = dispense(total, votes)
    next_seat = max(vote / (2 * seat + 1) for vote, seat in zip(votes, seats, strict=True))
    assert all(vote / (2 * seat - 1) >= next_seat for vote, seat in zip(votes, seats, strict=True) if seat)
    assert sum(seats) == total


@given(st.integers(0, 10**7), st.lists(st.integers(1, 10**9), min_size=2, max_size=12, unique=True))
def test_a_party_with_more_votes_never_gets_less(total: int, votes: list[int]) -> None:
    seats = dispense(total, votes)
    ranked = [seat for _, seat in sorted(zip(votes, seats, strict=True))]
    assert ranked == sorted(ranked)


@given(st.integers(0, 400), votes, st.booleans())
def test_one_more_replica_never_reduces_a_share(total: int, votes: list[int], descending: bool) -> None:
    fewer, more = dispense(total, votes, descending), dispense(total + 1, votes, descending)
    assert all(after >= before for before, after in zip(fewer, more, strict=True))


@each_row(
    ("total", "votes", "descending", "seats"),
    [
        (5, [1, 1], False, [3, 2]),
        (5, [1, 1], True, [2, 3]),
        (7, [1, 2, 4], False, [1, 2, 4]),
        (10, [1, 1, 1], False, [4, 3, 3]),
        (10, [1, 1, 1], True, [3, 3, 4]),
        (2, [1, 4], False, [0, 2]),
        (2, [1, 3], False, [1, 1]),
        (2, [3, 1], True, [1, 1]),
        (3, [1, 0, 1], False, [2, 0, 1]),
        (3, [], False, []),
        (3, [0, 0], False, [0, 0]),
        (0, [1, 2], False, [0, 0]),
        (-1, [1, 2], False, [0, 0]),
        (2**31 - 1, [1, 1], False, [2**30, 2**30 - 1]),
        (2**31 - 1, [2**31 - 1, 1], False, [2**31 - 2, 1]),
    ],
)
def test_example_shares(total: int, votes: list[int], descending: bool, seats: list[int]) -> None:
    assert dispense(total, votes, descending) == seats


@pytest.mark.parametrize(
    ("identity", "descending"),
    # FNV-1a, 32 bits: "" is 811c9dc5, "a" is e40c292c, "b" is e70c2de5, "foobar" is bf9cf968, "ü" is two bytes.
    [("", False), ("a", False), ("b", True), ("c", False), ("foobar", False)],
)
def test_a_uid_decides_the_direction_of_ties_by_its_hash(identity: str, descending: bool) -> None:
    assert prefers_descending(identity) is descending
