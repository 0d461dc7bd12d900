r"""Regular expressions, matched by RE2 and read as Go's regexp package reads them.

A pattern is checked and translated before RE2 compiles it, because the two differ. Go refuses `\C`, group names that are not ASCII,
repetition counts of nine digits and more, and expressions nested more than 1000 deep; RE2 accepts them. Go 1.25 and newer ignore case,
spaces, underscores and hyphens in the names of Unicode classes and know more names; RE2 does not.

Differences that remain: RE2 has the characters of Unicode 15.1, Go 1.26 those of 15.0; unassigned characters are not in `\p{C}`; and a
pattern that needs more than 8 MiB, or has more than 100,000 characters, is refused. Underscores in names of scripts (`\p{Old_Italic}`)
are accepted, which Go 1.25 and 1.26 alone refuse.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final, NamedTuple

from gitsched.apis.ocm.cel.character_classes import write_class
from gitsched.apis.ocm.cel.overloads import CostTracker

_MEMORY: Final = 8 << 20
"""Bytes that RE2 may use for a compiled pattern and its caches."""
_PATTERNS: Final = 32
"""Compiled patterns that are kept: with `_MEMORY`, at most 256 MiB."""
_LONGEST: Final = 100_000
"""Characters of a pattern. RE2 writes to stderr about patterns with more than a million parts, whatever its options say."""
_DEEPEST: Final = 1000
_MOST_REPEATS: Final = 1000
_TOO_LARGE: Final = 600_000
"""Instructions that the cost of a refused pattern is computed with: about the most that fit in `_MEMORY`."""
_CLASS_INSTRUCTIONS: Final = 1000
"""What a Unicode class is worth in instructions while a pattern is compiled."""
_COUNTED = re.compile(r"\{(0|[1-9][0-9]*)(?:,(0|[1-9][0-9]*)?)?\}", re.ASCII)
_GROUP_NAME = re.compile(r"\(\?P?<([^>]*)>")
_FLAGS = re.compile(r"\(\?[imsU-]*([:)])")
_NAME = re.compile(r"[A-Za-z0-9_]+", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")


class InvalidPattern(Exception):
    """What is wrong with a pattern. Never leaves this package."""


class Pattern(NamedTuple):
    """A compiled pattern; `size` is its length in RE2's instructions, `effort` what compiling it is worth in instructions."""

    compiled: Any
    size: int
    effort: int


def search(pattern: str, text: str, spend: CostTracker, count: int = -1) -> list[str]:
    """The matches of a pattern from left to right, as Go's FindAllString gives them: at most `count`, or all if it is negative.

    The cost is that of Kubernetes, a product of the lengths of text and pattern, or what RE2 may need in the worst case if that is more.
    InvalidPattern if the pattern is not valid.
    """
    usual = -(-(len(text) + 1) // 10) * -(-len(pattern) // 4)
    spend(usual)
    try:
        compiled, size, effort = compile_pattern(pattern)
    except InvalidPattern:
        spend(_TOO_LARGE // 10)
        raise
    data = _encode(text)
    spend(max(0, len(data) * size // 100 + effort // 10 - usual))
    found: list[str] = []
    at, last = 0, -1
    while at <= len(data) and (count < 0 or len(found) < count):
        if at:
            spend(1 + (len(data) - at) * size // 1000)
        match = compiled.search(data, at)
        if match is None:
            break
        start, end = match.span()
        # RE2 finds \B between the bytes of one character, too. Right behind another match, an empty one does not count.
        if not _is_inside(data, start) and (end > start or start != last):
            found.append(data[start:end].decode())
        at = last = end
        if start == end:
            at += 1
            while _is_inside(data, at):
                at += 1
    return found


def _is_inside(data: bytes, at: int) -> bool:
    """Whether a place is between the bytes of one character."""
    return at < len(data) and data[at] & 0xC0 == 0x80


def compile_pattern(text: str) -> Pattern:
    """A pattern, compiled. InvalidPattern if Go's regexp package refuses it, or if it is too large."""
    found = _compile(text)
    if isinstance(found, str):
        raise InvalidPattern(found)
    return found


@lru_cache(maxsize=_PATTERNS)
def _compile(text: str) -> Pattern | str:
    """A pattern, or what is wrong with it."""
    import re2  # type: ignore[import-untyped]  # takes 10 ms to load, and most repositories have no patterns

    if len(text) > _LONGEST:
        return f"longer than {_LONGEST} characters"
    options = re2.Options()
    options.max_mem, options.log_errors, options.never_capture = _MEMORY, False, True
    try:
        translated, classes = _Translator(text).read()
        compiled = re2.compile(_encode(translated), options)
    except InvalidPattern as problem:
        return str(problem)
    except re2.error as problem:
        reason = problem.args[0]
        return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
    finally:
        re2.purge()  # its own cache keeps 128 patterns
    return Pattern(compiled, compiled.programsize, compiled.programsize + _CLASS_INSTRUCTIONS * classes)


def _encode(text: str) -> bytes:
    """UTF-8. Surrogates, which parseJSON() may give, become U+FFFD, as Go reads them."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text).encode()


class _Level:
    """The whole pattern or an open group of it: how high the tree of its parts is, as Go counts the height.

    A sequence directly in a sequence, or alternatives directly in alternatives, do not make the tree higher.
    """

    __slots__ = ("branches", "capturing", "height", "highest", "items", "kind", "last")

    def __init__(self, capturing: bool) -> None:
        self.capturing = capturing
        self.branches = self.highest = 0
        self.items = self.height = self.last = 0
        self.kind = ""
        """What the last item is: a sequence, alternatives, or something else."""

    def add(self, height: int, kind: str = "") -> None:
        self.items += 2 if kind == "sequence" else 1
        self.last, self.kind = height, kind
        self.height = max(self.height, height - (kind == "sequence"))

    def repeat(self) -> None:
        self.items -= self.kind == "sequence"
        self.last, self.kind = self.last + 1, ""
        self.height = max(self.height, self.last)

    def end_branch(self) -> None:
        flat = self.items == 1 and self.kind == "alternatives"
        self.kind = "sequence" if self.items > 1 else ""
        self.branches += 2 if flat else 1
        self.highest = max(self.highest, self.height - flat + (self.items > 1), 1)
        self.items = self.height = self.last = 0

    def close(self) -> tuple[int, str]:
        self.end_branch()
        if self.branches > 1:
            self.kind = "alternatives"
        height = self.highest + (self.branches > 1) + self.capturing
        if height > _DEEPEST:
            raise InvalidPattern("expression nests too deeply")
        return height, "" if self.capturing else self.kind


class _Translator:
    """Reads a pattern once from left to right, copies it, and stops at what Go refuses though RE2 would accept it.

    What both refuse is left to RE2.
    """

    __slots__ = ("_at", "_classes", "_levels", "_out", "_text")

    def __init__(self, text: str) -> None:
        self._text, self._at, self._classes = text, 0, 0
        self._out: list[str] = []
        self._levels = [_Level(False)]

    def read(self) -> tuple[str, int]:
        """The pattern for RE2, and how many Unicode classes it names."""
        while self._at < len(self._text):
            self._read_part()
        self._levels[0].close()
        return "".join(self._out), self._classes

    def _copy(self, end: int) -> None:
        self._out.append(self._text[self._at : end])
        self._at = end

    def _read_part(self) -> None:
        character, level = self._text[self._at], self._levels[-1]
        match character:
            case "\\":
                self._read_escape(bracketed=False)
                level.add(1)
            case "[":
                self._read_brackets()
                level.add(1)
            case "(":
                self._open_group()
            case ")":
                self._copy(self._at + 1)
                if len(self._levels) > 1:
                    self._levels[-2].add(*self._levels.pop().close())
            case "|":
                self._copy(self._at + 1)
                level.end_branch()
            case "*" | "+" | "?" | "{":
                self._read_repetition(level)
            case _:
                self._copy(self._at + 1)
                level.add(1)

    def _read_repetition(self, level: _Level) -> None:
        end = self._at + 1
        if self._text[self._at] == "{":
            counted = _COUNTED.match(self._text, self._at)
            if counted is None:
                self._copy(end)
                level.add(1)
                return
            if any(len(number) > 4 or int(number) > _MOST_REPEATS for number in counted.groups() if number):
                raise InvalidPattern(f"invalid repeat count: {counted[0][:20]}")
            end = counted.end()
        self._copy(end + self._text.startswith("?", end))
        level.repeat()

    def _open_group(self) -> None:
        named = _GROUP_NAME.match(self._text, self._at)
        flags = _FLAGS.match(self._text, self._at)
        if named is not None and not _NAME.fullmatch(named[1]):
            raise InvalidPattern(f"invalid named capture: {named[0][:40]}")
        found = named or flags
        self._copy(self._at + 1 if found is None else found.end())
        if flags is None or flags[1] == ":":
            self._levels.append(_Level(flags is None))

    def _read_brackets(self) -> None:
        """A class between brackets, of which a ] that stands first is a member."""
        text = self._text
        self._copy(self._at + 1 + text.startswith("^", self._at + 1))
        self._copy(self._at + text.startswith("]", self._at))
        while self._at < len(text) and text[self._at] != "]":
            if text[self._at] == "\\":
                self._read_escape(bracketed=True)
                continue
            end = text.find(":]", self._at + 2) if text.startswith("[:", self._at) else -1
            self._copy(self._at + 1 if end < 0 else end + 2)
        self._copy(self._at + 1)

    def _read_escape(self, *, bracketed: bool) -> None:
        text, at = self._text, self._at
        kind = text[at + 1 : at + 2]
        if kind == "C":
            raise InvalidPattern(r"invalid escape sequence: \C")
        end = at + 2
        if kind == "Q" and not bracketed:
            end = text.find(r"\E", at + 2)
            end = len(text) if end < 0 else end + 2
        elif kind in ("x", "p", "P") and text.startswith("{", at + 2):
            end = text.find("}", at + 3) + 1
            if not end:
                raise InvalidPattern(f"missing }} after {text[at : at + 20]}")
        elif kind in ("p", "P"):
            end = at + 3
        if kind not in ("p", "P"):
            self._copy(end)
            return
        self._classes += 1
        braced = text[at + 2 : at + 3] == "{"
        name = text[at + 3 : end - 1] if braced else text[at + 2 : end]
        written = write_class(name.removeprefix("^"), (kind == "p") != name.startswith("^"), bracketed) if name else None
        if written is None:
            raise InvalidPattern(f"invalid character class range: {text[at : min(end, at + 40)]}")
        self._out.append(written)
        self._at = end
