"""Character classes of regular expressions (goes away with regex)."""

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
CharacterTest = Callable[[str], bool]


def equals_character(character: str, fold: bool) -> CharacterTest:
    if fold:
        low = character.lower()
        return lambda c: c.lower() == low
    return lambda c: c == character


def in_range(low: str, high: str, fold: bool) -> CharacterTest:
    if fold:
        return lambda c: low <= c <= high or low <= c.lower() <= high or low <= c.upper() <= high
    return lambda c: low <= c <= high


def in_class(characters: frozenset[str], negative: bool) -> CharacterTest:
    return lambda c: (c in characters) != negative
