"""The causes of moves as text: the reasons of one move, and one cause for the same change of several documents."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from gitsched.model.finding import count_shown, format_count, format_names

if TYPE_CHECKING:
    from gitsched.model.changes import Cause, Move

TITLES_SHOWN = 1
"""The number of documents that are named where many have the same change."""
MAX_TOGETHER = 3
"""The number of changes that are listed where a move needs several together; the others are counted."""
TOGETHER = ", together with "
UNPROVED_SHOWN = 10
"""The number of changes that are listed of which none is known to cause a move."""
_TITLE = re.compile(r"(?P<title>[^ /:]+/[^ ]*?)(?: and (?P<more>[0-9,]+) more)?(?P<separator>: | )")
UNPROVED = "changed with it"
"""What is said about changes of which none is known to cause a move."""


class Caused(Protocol):
    """A change, or several of them, with causes and a reason."""

    @property
    def causes(self) -> tuple[Cause, ...]: ...
    @property
    def reason(self) -> str: ...


def list_reasons(move: Caused) -> list[str]:
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
        return f"{UNPROVED}: {format_names(list(map(write, group)), UNPROVED_SHOWN)}"
    same: dict[tuple[str, str], list[Cause]] = {}
    for cause in group:
        same.setdefault(identify_change(cause), []).append(cause)
    changes = [_join_titles(causes) for causes in same.values()]
    number = count_shown(len(changes), MAX_TOGETHER)
    shown = TOGETHER.join(map(write, changes[:number]))
    more = len(changes) - number
    return f"{shown} and {format_count(more, 'more change')}" if more > 0 else shown


def _join_titles(causes: Sequence[Cause]) -> Cause:
    """Return one cause for the same change of documents that must all be taken back, with the location of the first."""
    first = causes[0]
    title, separator, detail = _split_title(first.text)
    if len(causes) == 1 or not title:
        return first
    others = [_split_title(cause.text)[0] for cause in causes[1:]]
    return first._replace(text=f"{title}{TOGETHER}{format_names(others, MAX_TOGETHER - 1)}{separator}{detail}")


def describe_unproved(moves: Iterable[Move]) -> str:
    """Return how many moves have changes of which none is proved to be the cause; "" if there are none."""
    number = sum(bool(move.causes) and not any(cause.proved for cause in move.causes) for move in moves)
    if not number:
        return ""
    return f"{format_count(number, 'workload')}: no cause is proved, only what changed with {'it' if number == 1 else 'them'}"


def _split_title(text: str) -> tuple[str, str, str]:
    """Return the title of the document that a cause is about, the separator, and what happened to it; no title for other causes. How many
    more documents have the same change is in none of them."""
    found = _TITLE.match(text)
    return (found["title"], found["separator"], text[found.end() :]) if found is not None else ("", "", text)


def _count_documents(cause: Cause) -> int:
    """Return how many documents a cause is about."""
    found = _TITLE.match(cause.text)
    return 1 + int((found["more"] or "0").replace(",", "")) if found is not None else 1


def identify_change(cause: Cause) -> tuple[str, str]:
    """Return what the same change of several documents has in common: their kind, and what happened to them."""
    title, _, detail = _split_title(cause.text)
    return title.partition("/")[0], detail


def merge_causes(causes: Sequence[Cause]) -> Cause:
    """Return one cause for the same change of several documents, with the location of the first."""
    first = causes[0]
    if len(causes) == 1:
        return first
    title, separator, detail = _split_title(first.text)
    if not title:
        return first._replace(location=None)
    titles = list(dict.fromkeys(_split_title(cause.text)[0] for cause in causes))
    number = max(len(titles), *map(_count_documents, causes))
    names = format_names(titles, TITLES_SHOWN) if number == len(titles) else f"{title} and {number - 1:,} more"
    return first._replace(text=f"{names}{separator}{detail}")
