"""Classes of characters, and tests for one character."""

from __future__ import annotations

from collections.abc import Callable

WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
SPACE, DIGIT = frozenset(" \t\n\f\r"), frozenset("0123456789")
PERL = {"d": DIGIT, "s": SPACE, "w": WORD}
POSIX = {
    "alnum": frozenset(WORD - {"_"}),
    "alpha": frozenset(WORD - {"_"} - DIGIT),
    "ascii": frozenset(map(chr, range(128))),
    "blank": frozenset(" \t"),
    "cntrl": frozenset([*map(chr, range(32)), "\x7f"]),
    "digit": DIGIT,
    "graph": frozenset(map(chr, range(33, 127))),
    "lower": frozenset("abcdefghijklmnopqrstuvwxyz"),
    "print": frozenset(map(chr, range(32, 127))),
    "punct": frozenset(c for c in map(chr, range(33, 127)) if not c.isalnum()),
    "space": frozenset(" \t\n\v\f\r"),
    "upper": frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    "word": WORD,
    "xdigit": frozenset("0123456789abcdefABCDEF"),
}
Holds = Callable[[str], bool]


def is_character(character: str, fold: bool) -> Holds:
    if fold:
        low = character.lower()
        return lambda c: c.lower() == low
    return lambda c: c == character


def between(low: str, high: str, fold: bool) -> Holds:
    if fold:
        return lambda c: low <= c <= high or low <= c.lower() <= high or low <= c.upper() <= high
    return lambda c: low <= c <= high


def among(characters: frozenset[str], negative: bool) -> Holds:
    return lambda c: (c in characters) != negative
