"""What a change takes away, as one sentence for each cause: workloads that stop, that become unplaced, or that are removed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from gitsched.model.finding import count_shown, format_count, format_names
from gitsched.model.scheduling import Unknown, add_replicas, weigh_replicas
from gitsched.report.causes import list_reasons
from gitsched.report.lines import format_key, sum_replicas
from gitsched.report.move_groups import NAMES_SHOWN, group_moves

if TYPE_CHECKING:
    from gitsched.model.changes import Cause, Move
    from gitsched.model.document import Key
    from gitsched.report.review import Review

CONSEQUENCES_SHOWN = 5
"""The number of consequences that are listed; the others are counted."""
KINDS = ("stopped", "scaledToZero", "unplaced", "removed")
"""What happens to workloads, the gravest first: they leave all of their clusters, or have 0 replicas there; copies stay until another
cluster has one; they have no replicas that could stop, or the source no longer asks for them."""


class Consequence(NamedTuple):
    """What workloads lose: its kind, one sentence without a full stop, and why: the common causes, or else the reason.

    `intended`: the source has these workloads no longer, or nothing depends on them.
    """

    kind: str
    moves: tuple[Move, ...]
    text: str
    causes: tuple[Cause, ...]
    reason: str
    intended: bool = False

    @property
    def line(self) -> str:
        """The sentence with the first cause and its line."""
        return ": ".join([self.text, *list_reasons(self)[:1]])


def list_consequences(review: Review) -> list[Consequence]:
    """Return the consequences of a change, the gravest first; those with the same cause are one."""
    copied = {copy.workload for copy in review.retained_copies}
    found: dict[tuple[bool, str], list[Move]] = {}
    for move in review.moves:
        kind = classify_loss(move, has_copies=move.key in copied)
        if kind:
            found.setdefault((move.intended, kind), []).append(move)
    return [
        Consequence(kind, group.moves, _describe(kind, group.moves), group.causes, group.reason, intended)
        for (intended, kind), moves in sorted(found.items(), key=lambda entry: (entry[0][0], KINDS.index(entry[0][1])))
        for group in group_moves(moves)
    ]


def loses_placements(moves: Iterable[Move]) -> bool:
    """Return whether a workload that the source still asks for becomes unplaced, or has no replica any more."""
    return any(not move.intended and classify_loss(move) for move in moves)


def classify_loss(move: Move, *, has_copies: bool = False) -> str:
    """Return what a workload loses, one of KINDS; "" if it runs on, or if nothing of it ran. `has_copies`: some stay for now."""
    if move.preserved:
        return ""
    earlier, later = sum_replicas(move)
    if move.after or not move.before:
        return "scaledToZero" if earlier and move.after and not weigh_replicas(later) else ""
    if move.intended or not (earlier or has_copies):
        return "removed"
    return "unplaced" if has_copies else "stopped"


def _describe(kind: str, moves: Sequence[Move]) -> str:
    one = len(moves) == 1
    verb = {"stopped": "stop", "scaledToZero": "stop", "unplaced": "become", "removed": "are"}[kind]
    verb = {"become": "becomes", "are": "is"}.get(verb, f"{verb}s") if one else verb
    rest = {"unplaced": " unplaced", "removed": " removed"}.get(kind, "")
    subject = f"{format_names([format_key(move.key) for move in moves], NAMES_SHOWN)} {verb}{rest}"
    it, clusters = "it" if one else "they", {name for move in moves for name in move.before}
    earlier = add_replicas(sum_replicas(move)[0] for move in moves)
    if kind == "scaledToZero":
        return f"{subject}: {it} {'has' if one else 'have'} 0 replicas instead of {earlier:,}"
    known = earlier is not None and not isinstance(earlier, Unknown)
    size = ", ".join(filter(None, (format_count(len(clusters), "cluster"), format_count(earlier or 0, "replica") if known else "")))
    if kind == "unplaced":
        return f"{subject} ({size}): {'its' if one else 'their'} copies stay until another cluster has one"
    return f"{subject}: {it} {'leaves all of its' if one else 'leave all of their'} clusters ({size})"


def list_consequence_lines(consequences: Sequence[Consequence]) -> list[str]:
    """Return a line for each of the first consequences, with its cause, and the number of the others."""
    shown = consequences[: count_shown(len(consequences), CONSEQUENCES_SHOWN)]
    return [*(one.line for one in shown), *filter(None, [count_others(consequences)])]


def count_others(consequences: Sequence[Consequence]) -> str:
    """Return how many workloads have consequences that are not listed; "" if there are none."""
    others = consequences[count_shown(len(consequences), CONSEQUENCES_SHOWN) :]
    more = sum(len(one.moves) for one in others)
    return f"and {format_count(more, 'more workload')} like these" if more else ""


def serialize_consequence(consequence: Consequence) -> dict[str, object]:
    """Return a consequence as an item of `consequences` of a Plan."""
    workloads: list[Key] = [move.key for move in consequence.moves]
    return {
        "kind": consequence.kind,
        "workloads": [key._asdict() for key in workloads],
        "text": consequence.text,
        "intended": consequence.intended,
    }
