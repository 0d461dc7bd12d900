"""What somebody probably meant who typed a name that does not exist: similar names, or those that there are."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from gitsched.model.finding import format_names

_MAX_LISTED = 8
"""Names in one message."""


def find_similar(name: str, known: Iterable[str], similarity: float = 0.6) -> str:
    """Return the most similar one of some names to the first 100 characters of a name; "" if none is similar."""
    from difflib import get_close_matches  # rarely needed

    return next(iter(get_close_matches(name[:100], known, n=1, cutoff=similarity)), "")


def list_similar(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Return the names that are most similar to another one, whatever the case of their letters, the most similar first."""
    from difflib import get_close_matches  # rarely needed

    by_lower = {one.lower(): one for one in sorted(known, reverse=True)}
    return [by_lower[match] for match in get_close_matches(name[:253].lower(), by_lower, n=most)]


def list_extended(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Return the shortest names that have another one between hyphens, as kustomize makes them with a prefix or a suffix."""
    found = (one for one in known if name and name != one and f"-{name}-" in f"-{one}-")
    return sorted(found, key=lambda one: (len(one), one))[:most]


def describe_similar(name: str, known: Iterable[str], most: int = 3) -> str:
    """Return the end of a message that a name does not exist: the similar ones, "" without any."""
    similar = list_similar(name, known, most)
    return f"; did you mean {' or '.join(similar)}?" if similar else ""


def suggest_names(name: str, known: Collection[str]) -> str:
    """Return the end of a message that a name does not exist: the similar ones, else those that there are."""
    others = f"; there are: {format_names(sorted(known), _MAX_LISTED)}" if known else "; there is none"
    return describe_similar(name, known) or others
