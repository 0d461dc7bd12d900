"""Suggest what an unknown name or value in a selector probably means, among those that exist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gitsched.model.finding import format_names
from gitsched.model.similar_names import find_similar

_SIMILARITY = 0.65
_MAX_LENGTH = 100
_MAX_COMPARED = 1_000
"""Existing names with which a name is compared; among more, only one that differs in the case of letters is found."""
_MAX_LISTED = 5
_DIGITS = str.maketrans("", "", "0123456789")


def find_near(name: str, known: Iterable[str], others: Iterable[str] = (), similarity: float = _SIMILARITY) -> str:
    """Return the existing name that is probably meant; "" if there is none.

    Names that differ only in a number, and `others`, which a selector names as well, are not meant.
    """
    lower, used = name[:_MAX_LENGTH].lower(), set(others)
    plain = lower.translate(_DIGITS)
    candidates = {one.lower(): one for one in sorted(known) if one not in used}
    candidates = {text: one for text, one in candidates.items() if text == lower or text.translate(_DIGITS) != plain}
    if len(candidates) > _MAX_COMPARED:
        return candidates.get(lower, "")
    return candidates.get(find_similar(lower, candidates, similarity), "")


def describe_unknown_key(owner: str, noun: str, key: str, known: Iterable[str], near: str = "") -> str:
    """Return the message that no `owner`, such as a cluster, has a label or another property."""
    hint = f"; did you mean {near}?" if near else f"; there are {listed}" if (listed := list_values(known)) else ""
    return f"no {owner} has the {noun} {key}{hint}"


def describe_unknown_value(owner: str, key: str, values: Sequence[str], known: Iterable[str], near: str = "") -> str:
    """Return the message that no `owner` has one of these values of a label or another property."""
    return f"no {owner} has {key}={' or '.join(values[:_MAX_LISTED])}; the fleet has {list_values(known, near)}"


def list_values(known: Iterable[str], first: str = "") -> str:
    """List the first existing names or values in a message; the one that is probably meant is the `first`."""
    names = sorted(known, key=lambda name: (name != first, name))
    return format_names(names, _MAX_LISTED)
