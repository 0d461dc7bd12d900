"""The causes of moves as text: the reasons of one move, and the causes that several moves share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gitsched.model.changes import Cause, Move, RecordChange
from gitsched.model.finding import format_names
from gitsched.report.summary import format_count

CAUSES_SHOWN = 10
"""The number of common causes that are listed, and the number of moves above which they are listed."""
MAX_TOGETHER = 3
"""The number of changes that are listed where a move needs several together; the others are counted."""
TOGETHER = ", together with "
UNPROVED = "changed with it"
"""What is said about changes of which none is known to cause a move."""


def list_reasons(move: Move | RecordChange) -> list[str]:
    """Return all causes of a change, the nearest first, and its reason unless a cause contains it."""
    causes = list_cause_texts(move.causes)
    repeated = any(move.reason in text for text in causes)
    return [*causes, *([] if repeated or not move.reason else [move.reason])]


def list_cause_texts(causes: Iterable[Cause], write: Callable[[Cause], str] = str) -> list[str]:
    """Return a line for each cause that alone explains a change, for each set that does together, and for what only changed with it."""
    groups: dict[tuple[bool, int, Cause | None], list[Cause]] = {}
    for cause in causes:
        alone = cause if cause.proved and not cause.together else None
        groups.setdefault((cause.proved, cause.together, alone), []).append(cause)
    return [_join_causes(group, write) for group in groups.values()]


def _join_causes(group: Sequence[Cause], write: Callable[[Cause], str]) -> str:
    if not group[0].proved:
        return f"{UNPROVED}: {', '.join(map(write, group))}"
    same: dict[tuple[str, str], list[Cause]] = {}
    for cause in group:
        same.setdefault(_identify_change(cause), []).append(cause)
    changes = [_join_titles(causes) for causes in same.values()]
    more = len(changes) - MAX_TOGETHER
    shown = TOGETHER.join(map(write, changes[:MAX_TOGETHER]))
    return f"{shown} and {format_count(more, 'more change')}" if more > 0 else shown


def _join_titles(causes: Sequence[Cause]) -> Cause:
    """Return one cause for the same change of documents that must all be taken back, with the location of the first."""
    first = causes[0]
    title, separator, detail = _split_title(first.text)
    if len(causes) == 1 or not title:
        return first
    others = [_split_title(cause.text)[0] for cause in causes[1:]]
    return first._replace(text=f"{title}{TOGETHER}{format_names(others, MAX_TOGETHER - 1)}{separator}{detail}")


def group_causes(moves: Iterable[Move]) -> list[tuple[Cause, int]]:
    """Count the moves of each proved cause, the most frequent cause first. The same change of several documents is one cause."""
    counts: dict[tuple[str, str], int] = {}
    causes: dict[tuple[str, str], dict[Cause, None]] = {}
    for move in moves:
        proved = [cause._replace(together=0) for cause in move.causes if cause.proved]
        for group in dict.fromkeys(map(_identify_change, proved)):
            counts[group] = counts.get(group, 0) + 1
        for cause in proved:
            causes.setdefault(_identify_change(cause), {})[cause] = None
    merged = [(_merge_causes(sorted(causes[group], key=str)), number) for group, number in counts.items()]
    return sorted(merged, key=lambda entry: (-entry[1], str(entry[0])))


def list_common_causes(moves: Sequence[Move]) -> list[tuple[Cause, int]]:
    """Return causes that several moves share, with the number of moves; empty if there are few moves."""
    if len(moves) <= CAUSES_SHOWN:
        return []
    return [(cause, number) for cause, number in group_causes(moves) if number > 1][:CAUSES_SHOWN]


def describe_unproved(moves: Iterable[Move]) -> str:
    """Return how many moves have changes of which none is proved to be the cause; "" if there are none."""
    number = sum(bool(move.causes) and not any(cause.proved for cause in move.causes) for move in moves)
    if not number:
        return ""
    return f"{format_count(number, 'workload')}: no cause is proved, only what changed with {'it' if number == 1 else 'them'}"


def _split_title(text: str) -> tuple[str, str, str]:
    """Return the title of the document that a cause is about, the separator, and what happened to it; no title for other causes."""
    first = text.partition(" ")[0].removesuffix(":")
    if "/" not in first:
        return "", "", text
    separator = ": " if text.startswith(f"{first}: ") else " "
    return first, separator, text.removeprefix(f"{first}{separator}")


def _identify_change(cause: Cause) -> tuple[str, str]:
    title, _, detail = _split_title(cause.text)
    return title.partition("/")[0], detail


def _merge_causes(causes: Sequence[Cause]) -> Cause:
    """Return one cause for the same change of several documents, with the location of the first."""
    first = causes[0]
    if len(causes) == 1:
        return first
    title, separator, detail = _split_title(first.text)
    if not title:
        return first._replace(location=None)
    return first._replace(text=f"{title} and {len(causes) - 1} more{separator}{detail}")
