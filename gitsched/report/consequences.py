"""What a change takes away or does not place, as one sentence for each cause: workloads that stop, become unplaced, are removed, or run on
with half of their replicas or fewer, and new objects that no cluster gets."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from gitsched.model.finding import count_shown, format_count, format_names
from gitsched.model.scheduling import Unknown, add_replicas, weigh_replicas
from gitsched.named_tuples import NamedTuple
from gitsched.report.causes import list_reasons
from gitsched.report.lines import describe_remaining, format_key, sum_replicas
from gitsched.report.move_groups import NAMES_SHOWN, group_moves

if TYPE_CHECKING:
    from gitsched.model.changes import Cause, Move, RecordChange, UnplacedObject
    from gitsched.model.document import Key
    from gitsched.report.review import Review

CONSEQUENCES_SHOWN = 5
"""The number of consequences that are listed, besides the first of each kind; the others are counted."""
FAILING_KINDS = ("stopped", "scaledToZero", "unplaced", "removed")
"""What fails a plan with a base, unless it is intended: workloads leave all of their clusters, or have 0 replicas there; copies stay until
another cluster has one; they have no replicas that could stop."""
KINDS = (*FAILING_KINDS, "reduced", "notPlaced", "unselected")
"""What happens to workloads, the gravest first: see FAILING_KINDS; they lose half of their replicas or clusters, or more; of new ones, no
cluster gets them, or no policy selects them."""
_DAEMON_SET = ("apps", "DaemonSet")
_WORD = re.compile(r"\w+")
_PLURALS = {
    "stops": "stop",
    "becomes": "become",
    "runs": "run",
    "leaves": "leave",
    "is": "are",
    "has": "have",
    "it": "they",
    "its": "their",
}


class Consequence(NamedTuple):
    """What workloads lose: its kind, one sentence without a full stop, and why: the common causes, or else the reason.

    `intended`: the source has these workloads no longer, or nothing depends on them.
    """

    kind: str
    workloads: tuple[Key, ...]
    text: str
    causes: tuple[Cause, ...]
    reason: str
    intended: bool = False

    @property
    def fails(self) -> bool:
        """Whether a plan with a base fails."""
        return self.kind in FAILING_KINDS and not self.intended

    @property
    def line(self) -> str:
        """The sentence with the first cause and its line."""
        return ": ".join([self.text, *list_reasons(self)[:1]])


def list_consequences(review: Review) -> list[Consequence]:
    """Return the consequences of a change, the gravest first; those with the same cause are one."""
    copied = {copy.workload for copy in review.retained_copies}
    lasting = {copy.workload for copy in review.retained_copies if copy.start is None and not copy.preserved}
    withheld, renamed = _list_withheld(review), _Renamed(review)
    moves: dict[tuple[bool, str], list[Move]] = {}
    for move in (*review.moves, *review.comparison.stopped):
        kind = classify_loss(move, has_copies=move.key in copied)
        if kind and move.key not in renamed.moves:
            moves.setdefault((move.intended, kind), []).append(move)
    found = [
        Consequence(
            kind,
            _list_keys(group.moves),
            _describe(kind, group.moves, withheld, lasting),
            group.causes,
            group.reason,
            intended=intended,
        )
        for (intended, kind), members in moves.items()
        for group in group_moves(members)
    ]
    found += filter(None, map(_describe_record, review.record_changes))
    found += (*renamed.list_consequences(withheld), *_list_unplaced(renamed.others))
    return sorted(found, key=lambda one: (one.intended, KINDS.index(one.kind)))


class _Renamed:
    """The workloads of a review whose namespace was changed to one where no policy selects them. `moves` are their removals by the former
    key, and `others` the other objects that no cluster gets."""

    def __init__(self, review: Review) -> None:
        gone: dict[Key, list[Move]] = {}
        for move in (*review.moves, *review.withheld.moves) if review.comparison.unplaced else ():
            if move.intended and move.before and not move.after:
                gone.setdefault(move.key._replace(namespace=""), []).append(move)
        self._groups: dict[tuple[str, str], list[tuple[Move, UnplacedObject]]] = {}
        self.others: list[UnplacedObject] = []
        for one in review.comparison.unplaced:
            former = gone.get(one.key._replace(namespace=""), [])
            keys = {move.key for move in former}
            if one.selected or len(keys) != 1 or one.key.namespace in ("", former[0].key.namespace):
                self.others.append(one)
            else:
                self._groups.setdefault((former[0].key.namespace, one.key.namespace), []).append((former[0], one))
        self.moves = frozenset(move.key for pairs in self._groups.values() for move, _ in pairs)

    def list_consequences(self, withheld: Mapping[Key, str]) -> Iterator[Consequence]:
        """Yield one entry for each change of a namespace."""
        for (old, new), pairs in self._groups.items():
            moves = [move for move, _ in pairs]
            text = _inflect(f"is selected by no policy since its namespace changed from {old} to {new}: it leaves", len(pairs))
            where = f"{_inflect('all of its clusters', len(pairs))} ({_measure(moves)}){_describe_withholding(moves, withheld)}"
            cause = pairs[0][1].cause
            if f" in namespace {old}" in cause.text:
                cause = cause._replace(text=f"{cause.text}: change the namespace in the policy as well")
            yield Consequence("removed", _list_keys(moves), f"{_name([one.key for _, one in pairs])} {text} {where}", (cause,), "")


def loses_placements(review: Review) -> bool:
    """Return whether a workload that the source still asks for becomes unplaced, or has no replica any more; also one that it has in
    another namespace now, where no cluster gets it."""
    lost = [move for move in (*review.moves, *review.comparison.stopped) if classify_loss(move) in FAILING_KINDS]
    if any(not move.intended for move in lost) or any(loses_targets(change) for change in review.record_changes):
        return True
    gone = {move.key._replace(namespace="") for move in lost if sum_replicas(move)[0]}
    return any(one.key._replace(namespace="") in gone for one in review.comparison.unplaced)


def classify_loss(move: Move, *, has_copies: bool = False) -> str:
    """Return what a workload loses, one of KINDS; "" if it runs on, or if nothing of it ran. `has_copies`: some stay for now."""
    if move.preserved or not move.before:
        return ""
    earlier, later = sum_replicas(move)
    ran = bool(earlier) or isinstance(earlier, Unknown)
    if not move.after:
        return "removed" if move.intended or not (ran or has_copies) else "unplaced" if has_copies else "stopped"
    if earlier and (later is None or not weigh_replicas(later)):
        return "scaledToZero"
    if earlier and not isinstance(later, Unknown):
        return "reduced" if 2 * (later or 0) <= earlier else ""
    if earlier or 2 * len(move.after) > len(move.before):
        return ""
    # What has no pods lacks nowhere if it has moved with its workload.
    return "reduced" if move.after.keys() <= move.before.keys() or move.key[:2] == _DAEMON_SET else ""


def loses_targets(change: RecordChange) -> bool:
    """Return whether a recorded decision that the source still asks for has no target any more, or no amount of any."""
    earlier, later = (sum(target.amount or 0 for target in targets) for targets in (change.before, change.after))
    return bool(change.before) and not change.intended and (not change.after or bool(earlier and not later))


def _list_keys(moves: Iterable[Move]) -> tuple[Key, ...]:
    return tuple(move.key for move in moves)


def _inflect(text: str, number: int) -> str:
    """Return a sentence about one workload as one about so many."""
    return text if number == 1 else _WORD.sub(lambda word: _PLURALS.get(word[0], word[0]), text)


def _measure(moves: Sequence[Move]) -> str:
    """Return the numbers of clusters and replicas that workloads had."""
    clusters = {name for move in moves for name in move.before}
    replicas = add_replicas(sum_replicas(move)[0] for move in moves)
    known = bool(replicas) and not isinstance(replicas, Unknown)
    return ", ".join([format_count(len(clusters), "cluster"), *([format_count(replicas or 0, "replica")] if known else [])])


def _describe(kind: str, moves: Sequence[Move], withheld: Mapping[Key, str], lasting: Container[Key]) -> str:
    """Return what workloads lose. Copies of the `lasting` ones stay until others replace them."""
    earlier, later = (add_replicas(sum_replicas(move)[side] for move in moves) for side in (0, 1))
    known, size = bool(earlier) and not isinstance(earlier, Unknown), _measure(moves)
    if kind == "reduced":
        text = describe_remaining(later or 0, earlier or 0) if known else _describe_left(moves)
        text += ": its copies stay until others replace them" if all(move.key in lasting for move in moves) else ""
    elif kind == "scaledToZero":
        text = describe_remaining(0, earlier or 0)
    elif kind == "unplaced":
        text = f"becomes unplaced ({size}): its copies stay until others replace them"
    else:
        lost = "becomes unplaced and stops" if kind == "stopped" else "becomes unplaced"
        text = f"{'is removed' if moves[0].intended else lost}: it leaves all of its clusters ({size})"
    return f"{_name(_list_keys(moves))} {_inflect(text, len(moves))}{_describe_withholding(moves, withheld)}"


def _describe_withholding(moves: Sequence[Move], withheld: Mapping[Key, str]) -> str:
    """Return what withholds how many of the moves, as the end of a sentence; "" if nothing does."""
    stopped = [withheld[move.key] for move in moves if move.key in withheld]
    what = "this" if len(stopped) == len(moves) else f"{len(stopped):,} of these changes"
    return f"; {stopped[0]} withholds {what}" if stopped else ""


def _describe_left(moves: Sequence[Move]) -> str:
    counts = {(len(move.before.keys() - move.after.keys()), len(move.before)) for move in moves}
    if len(counts) > 1:
        return "leaves half of its clusters or more"
    left, had = counts.pop()
    if left == had:
        return f"goes to fewer clusters than the {had:,} that it leaves"
    return f"leaves {left:,} of its {format_count(had, 'cluster')}"


def _describe_record(change: RecordChange) -> Consequence | None:
    """Return what the subject of a recorded decision loses; None if it keeps a target, or never had one."""
    if not loses_targets(change):
        return None
    amount = sum(target.amount or 0 for target in change.before)
    had = f"{amount:,} in " if amount else ""
    names = format_names([target.name for target in change.before], NAMES_SHOWN)
    text = f"{format_key(change.subject)} has no {change.target_kind} any more: it had {had}{names}"
    return Consequence("stopped" if amount else "unplaced", (change.subject,), text, change.causes, change.reason)


def describe_unplaced_objects(objects: Iterable[UnplacedObject]) -> list[str]:
    """Return a line for each of the first causes for which objects are in no cluster, and the number of the other objects."""
    return list_consequence_lines(list(_list_unplaced(objects)))


def describe_run_unplaced(review: Review) -> list[str]:
    """Return such lines about a run, with what was removed because its namespace was changed."""
    renamed, withheld = _Renamed(review), _list_withheld(review)
    return list_consequence_lines([*renamed.list_consequences(withheld), *_list_unplaced(renamed.others)])


def _list_withheld(review: Review) -> dict[Key, str]:
    """Return what withholds the changes of which workloads."""
    return dict.fromkeys((move.key for move in review.withheld.moves), review.withheld.withheld_by)


def _list_unplaced(objects: Iterable[UnplacedObject]) -> Iterator[Consequence]:
    """Yield what is new and in no cluster, one entry for each cause."""
    groups: dict[tuple[bool, str], list[UnplacedObject]] = {}
    for one in objects:
        groups.setdefault((one.selected, one.cause.text), []).append(one)
    for (selected, _), members in groups.items():
        keys = tuple(one.key for one in members)
        text = "is placed in no cluster" if selected else "is selected by no policy, so that it runs in no cluster"
        kind = "notPlaced" if selected else "unselected"
        yield Consequence(kind, keys, f"{_name(keys)} {_inflect(text, len(keys))}", (members[0].cause,), "")


def _name(keys: Sequence[Key]) -> str:
    return format_names([format_key(key) for key in keys], NAMES_SHOWN)


def select_shown(consequences: Sequence[Consequence]) -> list[Consequence]:
    """Return the consequences to list: the first ones, and the first of each kind among the others."""
    shown = list(consequences[: count_shown(len(consequences), CONSEQUENCES_SHOWN)])
    kinds = {(one.kind, one.intended) for one in shown}
    for one in consequences[len(shown) :]:
        if (one.kind, one.intended) not in kinds:
            kinds.add((one.kind, one.intended))
            shown.append(one)
    return shown


def list_consequence_lines(consequences: Sequence[Consequence]) -> list[str]:
    """Return a line for each of the first consequences, with its cause, and the number of the others."""
    return [*(one.line for one in select_shown(consequences)), *filter(None, [count_others(consequences)])]


def count_others(consequences: Sequence[Consequence]) -> str:
    """Return how many workloads have consequences that are not listed; "" if there are none."""
    more = sum(len(one.workloads) for one in consequences) - sum(len(one.workloads) for one in select_shown(consequences))
    return f"and {format_count(more, 'more workload')} like these" if more else ""


def serialize_consequence(consequence: Consequence) -> dict[str, object]:
    """Return a consequence as an item of `consequences` of a Plan."""
    return {
        "kind": consequence.kind,
        "workloads": [key._asdict() for key in consequence.workloads],
        "text": consequence.text,
        "intended": consequence.intended,
    }
