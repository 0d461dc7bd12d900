"""Divide whole replicas by weight with the Sainte-Laguë (Webster) method, as Karmada's dispenser does."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from gitsched.model.fnv import fnv1a_32
from gitsched.named_tuples import NamedTuple


class DispenserRound(NamedTuple):
    """One round: `party` had `before` seats and the largest `quotient`, and got seat number `seat` (from 1)."""

    seat: int
    party: int
    before: int
    quotient: float


def dispense(total: int, votes: Sequence[int], descending: bool = False) -> list[int]:
    """Divide `total` seats by votes, as Karmada's dispenser does; return the seats of each party, in the parties' name order.

    One seat at a time goes to the largest votes / (2 * seats + 1) as float64; ties go to fewer seats, then to the first name, or
    to the last name if `descending`. Seats that every party is certain to get are given at once, so the cost depends on the
    number of parties and not on `total`: a final allocation rounds votes / divisor, whose divisor cannot exceed what gives each
    party at least votes * (total - parties / 2) / sum(votes) - 1/2 seats. Parties without votes get nothing.
    """
    seats = [0] * len(votes)
    total_votes = sum(votes)
    if total <= 0 or total_votes <= 0:
        return seats
    parties = [i for i, vote in enumerate(votes) if vote > 0]
    surplus = 2 * total - len(parties)
    if surplus > 0:
        for i in parties:
            seats[i] = max(0, votes[i] * surplus // (2 * total_votes) - 1)
    sign = -1 if descending else 1
    queue = [(-votes[i] / (2 * seats[i] + 1), seats[i], sign * i) for i in parties]
    heapq.heapify(queue)
    for _ in range(total - sum(seats)):
        _, _, signed_index = queue[0]
        i = signed_index * sign
        seats[i] += 1
        heapq.heapreplace(queue, (-votes[i] / (2 * seats[i] + 1), seats[i], signed_index))
    return seats


def list_last_rounds(total: int, votes: Sequence[int], last: int, descending: bool = False) -> list[DispenserRound]:
    """Return the last rounds of `dispense`. Its first seats do not depend on the total, so the difference between two totals is a
    round."""
    rounds = []
    before = dispense(max(total - last, 0), votes, descending)
    for number in range(max(total - last, 0) + 1, total + 1):
        after = dispense(number, votes, descending)
        party = next((i for i, (had, has) in enumerate(zip(before, after, strict=True)) if has > had), None)
        if party is None:
            break
        rounds.append(DispenserRound(number, party, before[party], votes[party] / (2 * before[party] + 1)))
        before = after
    return rounds


def prefers_descending(identity: str) -> bool:
    """Return whether ties go to the last name: for an odd FNV-1a-32 hash of a non-empty identity."""
    return bool(identity) and fnv1a_32(identity) % 2 == 1
