r"""Regular expressions in RE2 syntax, matched in linear time with a cost limit (to be replaced by google-re2).

A pattern becomes a program of few instructions that is run for all its alternatives at once, so that every character of the text is
looked at once for each instruction. Unicode classes by name (\p{...}) other than L, N and their parts are not known.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from gitsched.apis.ocm.cel.character_classes import PERL, POSIX, WORD, CharacterTest, equals_character, in_class, in_range

_LARGEST_REPEAT, _LARGEST_PROGRAM = 1000, 5000
_QUANTIFIERS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_ESCAPES = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}


class InvalidPattern(Exception):
    """What is wrong with a pattern. Never leaves this package."""


class Instruction(NamedTuple):
    """One instruction: char (a test), split (two ways, the first preferred), jump, save (a group's border), assert or match.

    Splits and jumps say how far to go from where they stand, so that programs can be put together as they are.
    """

    kind: str
    x: Any = None
    y: int = 0


class Pattern(NamedTuple):
    program: tuple[Instruction, ...]
    groups: int


class PatternFlags(NamedTuple):
    fold: bool = False
    lines: bool = False
    dot_all: bool = False
    lazy: bool = False


@lru_cache(maxsize=256)
def compile_pattern(text: str) -> Pattern:
    """A pattern as a program. BadPattern where it is none."""
    reader = _PatternParser(text)
    program = [Instruction("save", 0), *reader.parse(), Instruction("save", 1), Instruction("match")]
    return Pattern(tuple(program), reader.groups)


def search(pattern: Pattern, text: str, spend: Callable[[int], None], start: int = 0) -> tuple[int, ...] | None:
    """The borders of the leftmost match and of its groups (-1: not part of it), the preferred one of those that begin there."""
    program, slots = pattern.program, 2 * (pattern.groups + 1)
    best: tuple[int, ...] | None = None
    threads: list[tuple[int, tuple[int, ...]]] = []
    for at in range(start, len(text) + 1):
        if best is None:
            threads.append((0, (-1,) * slots))
        if not threads:
            break
        character = text[at] if at < len(text) else None
        following: list[tuple[int, tuple[int, ...]]] = []
        seen: set[int] = set()
        spend(1 + len(threads))
        for place, borders in _follow_empty_transitions(program, threads, at, text, seen, spend):
            step = program[place]
            if step.kind == "match":
                best = borders
                break  # whatever follows is less preferred
            if character is not None and step.x(character):
                following.append((place + 1, borders))
        threads = following
    return best


def _follow_empty_transitions(
    program: tuple[Instruction, ...],
    threads: list[tuple[int, tuple[int, ...]]],
    at: int,
    text: str,
    seen: set[int],
    spend: Callable[[int], None],
) -> list[tuple[int, tuple[int, ...]]]:
    """The threads after all steps that read nothing, in the order of preference."""
    found = []
    stack = threads[::-1]
    while stack:
        place, borders = stack.pop()
        if place in seen:
            continue
        seen.add(place)
        step = program[place]
        match step.kind:
            case "jump":
                stack.append((place + step.x, borders))
            case "split":
                stack += [(place + step.y, borders), (place + step.x, borders)]
            case "save":
                stack.append((place + 1, (*borders[: step.x], at, *borders[step.x + 1 :])))
            case "assert":
                if _assertion_holds(step.x, at, text):
                    stack.append((place + 1, borders))
            case _:
                found.append((place, borders))
    spend(len(seen) // 4)
    return found


def _assertion_holds(what: str, at: int, text: str) -> bool:
    before, after = text[at - 1] if at else "", text[at] if at < len(text) else ""
    match what:
        case "start":
            return at == 0
        case "end":
            return at == len(text)
        case "line start":
            return before in ("", "\n")
        case "line end":
            return after in ("", "\n")
    border = (before in WORD) != (after in WORD)
    return border == (what == "border")


class _PatternParser:
    """A pattern on its way to a program."""

    __slots__ = ("_at", "_text", "groups")

    def __init__(self, text: str) -> None:
        self._text, self._at, self.groups = text, 0, 0

    def parse(self) -> list[Instruction]:
        steps, _ = self._alternatives(PatternFlags(), 0)
        if self._at < len(self._text):
            raise InvalidPattern("unexpected )")
        return steps

    def _next(self, *words: str) -> str:
        for word in words:
            if self._text.startswith(word, self._at):
                self._at += len(word)
                return word
        return ""

    def _alternatives(self, flags: PatternFlags, depth: int) -> tuple[list[Instruction], PatternFlags]:
        if depth > 50:
            raise InvalidPattern("nested too deeply")
        branches = []
        while True:
            steps, flags = self._sequence(flags, depth)
            branches.append(steps)
            if not self._next("|"):
                break
        program = branches.pop()
        for branch in reversed(branches):
            program = [Instruction("split", 1, len(branch) + 2), *branch, Instruction("jump", len(program) + 1), *program]
        return program, flags

    def _sequence(self, flags: PatternFlags, depth: int) -> tuple[list[Instruction], PatternFlags]:
        steps: list[Instruction] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            atom, flags = self._atom(flags, depth)
            if atom is not None:
                steps += self._repeat(atom, flags)
            if len(steps) > _LARGEST_PROGRAM:
                raise InvalidPattern("too large")
        return steps, flags

    def _repeat(self, atom: list[Instruction], flags: PatternFlags) -> list[Instruction]:
        repeated = False
        while True:
            bounds = self._bounds()
            if bounds is None:
                return atom
            if repeated:
                raise InvalidPattern("a repetition is repeated")
            least, most = bounds
            lazy = bool(self._next("?")) != flags.lazy
            atom, repeated = _repeat_atom(atom, least, most, lazy), True

    def _bounds(self) -> tuple[int, int | None] | None:
        sign = self._next("*", "+", "?")
        if sign:
            return _QUANTIFIERS[sign]
        end = self._text.find("}", self._at)
        if not self._text.startswith("{", self._at) or end < 0:
            return None
        least, comma, most = self._text[self._at + 1 : end].partition(",")
        if not least.isdecimal() or (most and not most.isdecimal()):
            return None  # a brace that stands for itself
        self._at = end + 1
        low, high = int(least), int(most) if most else None if comma else int(least)
        if low > _LARGEST_REPEAT or (high is not None and (high > _LARGEST_REPEAT or high < low)):
            raise InvalidPattern("a repetition out of bounds")
        return low, high

    def _atom(self, flags: PatternFlags, depth: int) -> tuple[list[Instruction] | None, PatternFlags]:
        character = self._text[self._at]
        self._at += 1
        match character:
            case "(":
                return self._group(flags, depth)
            case "[":
                return [Instruction("char", self._class(flags))], flags
            case ".":
                return [Instruction("char", (lambda c: True) if flags.dot_all else (lambda c: c != "\n"))], flags
            case "^":
                return [Instruction("assert", "line start" if flags.lines else "start")], flags
            case "$":
                return [Instruction("assert", "line end" if flags.lines else "end")], flags
            case "\\":
                return self._escape(flags), flags
            case "*" | "+" | "?":
                raise InvalidPattern(f"nothing to repeat before {character}")
        return [Instruction("char", equals_character(character, flags.fold))], flags

    def _group(self, flags: PatternFlags, depth: int) -> tuple[list[Instruction] | None, PatternFlags]:
        inner = flags
        number = 0
        if self._next("?"):
            if self._next("P<", "<"):
                end = self._text.find(">", self._at)
                if end < 0 or not self._text[self._at : end].isidentifier():
                    raise InvalidPattern("a group without a name")
                self._at = end + 1
                self.groups += 1
                number = self.groups
            else:
                inner, closed = self._flags(flags)
                if closed:
                    return None, inner
        else:
            self.groups += 1
            number = self.groups
        steps, _ = self._alternatives(inner, depth + 1)
        if not self._next(")"):
            raise InvalidPattern("missing )")
        return [Instruction("save", 2 * number), *steps, Instruction("save", 2 * number + 1)] if number else steps, flags

    def _flags(self, flags: PatternFlags) -> tuple[PatternFlags, bool]:
        value = True
        names = {"i": "fold", "m": "lines", "s": "dot_all", "U": "lazy"}
        while self._at < len(self._text):
            character = self._text[self._at]
            self._at += 1
            if character in names:
                flags = flags._replace(**{names[character]: value})
            elif character == "-" and value:
                value = False
            elif character in ":)":
                return flags, character == ")"
            else:
                break
        raise InvalidPattern("a group of an unknown kind")

    def _escape(self, flags: PatternFlags) -> list[Instruction]:
        if self._at >= len(self._text):
            raise InvalidPattern("a backslash at the end")
        character = self._text[self._at]
        match character:
            case "b" | "B":
                self._at += 1
                return [Instruction("assert", "border" if character == "b" else "no border")]
            case "A" | "z":
                self._at += 1
                return [Instruction("assert", "start" if character == "A" else "end")]
            case "Q":
                end = self._text.find("\\E", self._at)
                quoted = self._text[self._at + 1 : end if end >= 0 else len(self._text)]
                self._at = len(self._text) if end < 0 else end + 2
                return [Instruction("char", equals_character(c, flags.fold)) for c in quoted]
        known = self._escape_class()
        return [Instruction("char", known if known is not None else equals_character(self._character(), flags.fold))]

    def _escape_class(self) -> CharacterTest | None:
        """The class that an escape stands for, if it is one; the backslash has been read."""
        character = self._text[self._at]
        if character.lower() in PERL:
            self._at += 1
            return in_class(PERL[character.lower()], character.isupper())
        if character not in "pP":
            return None
        self._at += 1
        name = self._text[self._at : self._at + 1]
        if name == "{":
            end = self._text.find("}", self._at)
            name, self._at = self._text[self._at + 1 : end], end + 1
        else:
            self._at += 1
        negative = (character == "P") != name.startswith("^")
        name = name.removeprefix("^")
        tests: dict[str, CharacterTest] = {
            "L": str.isalpha,
            "Lu": str.isupper,
            "Ll": str.islower,
            "N": str.isnumeric,
            "Nd": str.isdecimal,
        }
        if name not in tests:
            raise InvalidPattern(f"the class {name!r} is not known")
        test = tests[name]
        return (lambda c: not test(c)) if negative else test

    def _character(self) -> str:
        """One escaped character; the backslash has been read."""
        character = self._text[self._at]
        self._at += 1
        if character in _ESCAPES:
            return _ESCAPES[character]
        if character == "x":
            if self._next("{"):
                end = self._text.find("}", self._at)
                digits, self._at = self._text[self._at : end], end + 1
            else:
                digits, self._at = self._text[self._at : self._at + 2], self._at + 2
            if not digits or not all(c in POSIX["xdigit"] for c in digits) or int(digits, 16) > 0x10FFFF:
                raise InvalidPattern("an escape that is no character")
            return chr(int(digits, 16))
        if character == "0":
            return "\0"
        if character in WORD:
            raise InvalidPattern(f"\\{character} means nothing")
        return character

    def _class(self, flags: PatternFlags) -> CharacterTest:
        negative = bool(self._next("^"))
        tests: list[CharacterTest] = []
        first = True
        while first or not self._text.startswith("]", self._at):
            if self._at >= len(self._text):
                raise InvalidPattern("missing ]")
            first = False
            known = self._nested_class()
            if known is not None:
                tests.append(known)
                continue
            low = self._class_character()
            if self._text.startswith("-", self._at) and not self._text.startswith("-]", self._at):
                self._at += 1
                high = self._class_character()
                if high < low:
                    raise InvalidPattern("a range from high to low")
                tests.append(in_range(low, high, flags.fold))
            else:
                tests.append(equals_character(low, flags.fold))
        self._at += 1
        return lambda c: any(test(c) for test in tests) != negative

    def _nested_class(self) -> CharacterTest | None:
        if self._text.startswith("[:", self._at):
            end = self._text.find(":]", self._at)
            name = self._text[self._at + 2 : end]
            if end >= 0 and name.removeprefix("^") in POSIX:
                self._at = end + 2
                return in_class(POSIX[name.removeprefix("^")], name.startswith("^"))
        if self._text.startswith("\\", self._at) and self._text[self._at + 1 : self._at + 2] in tuple("dDsSwWpP"):
            self._at += 1
            return self._escape_class()
        return None

    def _class_character(self) -> str:
        if self._at >= len(self._text):
            raise InvalidPattern("missing ]")
        character = self._text[self._at]
        self._at += 1
        if character == "\\":
            if self._at >= len(self._text):
                raise InvalidPattern("missing ]")
            return self._character()
        return character


def _repeat_atom(atom: list[Instruction], least: int, most: int | None, lazy: bool) -> list[Instruction]:
    if len(atom) * max(least, most or 0, 1) > _LARGEST_PROGRAM:
        raise InvalidPattern("too large")
    steps = atom * least
    if most is None:
        return [*steps, _split(1, len(atom) + 2, lazy), *atom, Instruction("jump", -len(atom) - 1)]
    optional: list[Instruction] = []
    for _ in range(most - least):
        optional = [_split(1, len(atom) + len(optional) + 1, lazy), *atom, *optional]
    return [*steps, *optional]


def _split(enter: int, leave: int, lazy: bool) -> Instruction:
    return Instruction("split", leave, enter) if lazy else Instruction("split", enter, leave)
