"""Which files of a tree `.sourceignore` files exclude: gitignore-style patterns, matched in linear time.

The matcher is gitsched's own, because pathspec 1.1.1 has no bound that holds for untrusted rules from a repository:

* Its backend on Python's `re` backtracks: `*a*a*a*a*a*a*b` against a name of 25, 50 and 100 times `a` takes
  0.006, 0.6 and 47 seconds. To measure:
  `GitIgnoreSpec.from_lines(["*a*a*a*a*a*a*b"], backend="simple").match_file("a" * 100)`
* Its backend on RE2 takes linear time, but puts all rules into one automaton of at most 8 MiB and raises an error when they do not fit, as
  2,000 rules of 20 KiB do not: `GitIgnoreSpec.from_lines([f"*draft-{i}*" for i in range(2000)], backend="re2")`
* It differs from git: `*` and `!keep.yaml` do not exclude `apps/keep.yaml`, and lines that git skips are errors, such as `!`, `[b-a]`
  and a trailing backslash, in 116 of 600 random files. tests/manifests/test_sourceignore.py compares both with git.

Here each rule takes time in proportion to its length times that of the path, and the number of rules and their lengths are limited. All the
rules that a repository may have, 2,000 in 64 KiB, take 2 ms for a path, and 7 ms if each has several wildcards.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from gitsched.named_tuples import NamedTuple

_SLASH: Final = "/"
_STAR: Final = "*"
_CLASSES: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r" \t-\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


class IgnoreRule(NamedTuple):
    """`pattern` matches the complete path below the file's directory; with `directories_only` it applies to directories only.

    `text` is the rule as written and `line` its line, from 1, or 0 for a rule of the settings. `directory` is that of the file: "" for the
    root, else with a slash at the end.
    """

    pattern: re.Pattern[str]
    excludes: bool
    directories_only: bool
    text: str
    line: int = 0
    directory: str = ""


def parse_rule(line: str) -> IgnoreRule | None:
    """Parse a line of gitignore syntax; None for a comment, a blank line, and patterns that git ignores as well."""
    written = text = line.removesuffix("\r")
    while text.endswith(" ") and not text.endswith("\\ "):
        text = text[:-1]
    if not text or text.startswith("#"):
        return None
    excludes = not text.startswith("!")
    text = text if excludes else text[1:]
    directories = text.endswith("/")
    text = text.removesuffix("/")
    tokens = _tokenize(text)
    if not tokens:
        return None
    anywhere = "/" not in text
    if text.startswith("/"):
        tokens = tokens[1:]
    pattern = _build_pattern(tokens, anywhere)
    return None if pattern is None else IgnoreRule(re.compile(pattern, re.DOTALL), excludes, directories, written)


def _tokenize(text: str) -> list[str] | None:
    """Split a pattern into slashes, stars (two or more are one token) and expressions for one character; None for an unclosed
    bracket."""
    tokens: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char == "*":
            end = position
            while end < len(text) and text[end] == "*":
                end += 1
            tokens.append(_STAR if end - position == 1 else _STAR * 2)
            position = end
        elif char == "[":
            parsed = _parse_bracket(text, position + 1)
            if parsed is None:
                return None
            tokens.append(parsed[0])
            position = parsed[1]
        else:
            if char == "\\":
                position += 1
                if position == len(text):
                    return None
            tokens.append("[^/]" if char == "?" else _SLASH if text[position] == "/" else re.escape(text[position]))
            position += 1
    return tokens


def _parse_bracket(text: str, position: int) -> tuple[str, int] | None:
    """Parse a bracket expression after its opening bracket; return its regular expression and the next position, or None if
    invalid."""
    negated = text[position : position + 1] in ("!", "^")
    start = position = position + negated
    parts: list[str] = []
    while position < len(text) and (text[position] != "]" or position == start):
        if text.startswith("[:", position):
            end = text.find(":]", position + 2)
            if end >= 0:
                if text[position + 2 : end] not in _CLASSES:
                    return None
                parts.append(_CLASSES[text[position + 2 : end]])
                position = end + 2
                continue
        first, position = _parse_bracket_character(text, position)
        last = first
        if text.startswith("-", position) and text[position + 1 : position + 2] not in ("", "]"):
            last, position = _parse_bracket_character(text, position + 1)
        if not first or not last:
            return None
        # Git matches only the first character of a reversed range.
        parts.append(f"{_escape(first)}-{_escape(last)}" if first <= last else _escape(first))
    if position >= len(text):
        return None
    parsed = "".join(parts)
    if negated:
        return (f"[^/{parsed}]", position + 1)
    return (f"(?!/)[{parsed}]" if parsed else "(?!)", position + 1)


def _parse_bracket_character(text: str, position: int) -> tuple[str, int]:
    position += text.startswith("\\", position)
    return text[position : position + 1], position + 1


def _escape(char: str) -> str:
    return f"\\{char}" if char in "\\]^-[&~|" else char


def _build_pattern(tokens: list[str], anywhere: bool) -> str | None:
    """Build the expression for a path: groups of segments that any number of directories can separate."""
    groups: list[list[str]] = [[], []] if anywhere else [[]]
    segment: list[str] = []
    segments = [segment]
    for token in tokens:
        if token == _SLASH:
            segments.append(segment := [])
        else:
            segment.append(token)
    for position, entry in enumerate(segments):
        is_double_star = entry == [_STAR * 2] and len(segments) > 1
        if not entry:
            return None  # two consecutive slashes match no path
        if not is_double_star:
            groups[-1].append(_build_segment(entry))
        elif groups[-1] or position == 0:
            groups.append([])
    first, *others = ("/".join(group) for group in groups)
    if not others:
        return first
    start = f"{first}/" if first else ""
    *middle, last = others
    passed_groups = "".join(f"(?>(?:[^/]+/)*?{group}/)" for group in middle if group)
    return start + passed_groups + (f"(?:[^/]+/)*{last}" if last else ".+")


def _build_segment(tokens: list[str]) -> str:
    """Build the expression for one name."""
    if len(tokens) == 1 and tokens[0][0] == _STAR:
        return "[^/]+"
    pieces: list[list[str]] = [[]]
    for token in tokens:
        if token[0] == _STAR:
            pieces.append([])
        else:
            pieces[-1].append(token)
    first, *others = ("".join(piece) for piece in pieces)
    if not others:
        return first
    *middle, last = others
    return first + "".join(f"(?>[^/]*?{piece})" for piece in middle if piece) + f"[^/]*{last}"


IGNORE_FILE = ".sourceignore"
MAX_RULES, MAX_RULE_LENGTH = 2_000, 1_024
"""Maximum number of rules of a tree, and of characters of a rule. Every file is matched against every rule."""


class ExcessRule(NamedTuple):
    """The first line (from 1) of a file that exceeds a limit: it is too long, or there are too many rules."""

    directory: str
    line: int
    too_long: bool


class SourceIgnore:
    """The rules of the `.sourceignore` files of one tree; rules of deeper directories come later, so they take precedence.

    As in git, files in an excluded directory are excluded, even if another rule includes them.
    """

    __slots__ = ("_cache", "_rules", "excess")

    def __init__(self, rules: tuple[IgnoreRule, ...], excess: tuple[ExcessRule, ...] = ()) -> None:
        self._rules, self.excess = tuple(reversed(rules)), excess
        self._cache: dict[str, IgnoreRule | None] = {}

    @classmethod
    def parse(cls, files: Mapping[str, str], settings_lines: int = 0) -> SourceIgnore:
        """Parse rules from the texts of `.sourceignore` files by directory ("" for the root). Invalid lines are skipped.

        The last `settings_lines` lines of the root are rules of the settings.
        """
        if not any(files.values()):
            return cls(())

        rules: list[IgnoreRule] = []
        excess = []
        for directory, text in sorted(files.items(), key=lambda entry: (entry[0].count("/") + bool(entry[0]), entry[0])):
            prefix = f"{directory.strip('/')}/" if directory.strip("/") else ""
            lines = text.split("\n")
            own_lines = len(lines) - (0 if prefix else settings_lines)
            for number, line in enumerate(lines, start=1):
                long = len(line) > MAX_RULE_LENGTH and not line.startswith("#")
                rule = None if long else parse_rule(line)
                if long or (rule is not None and len(rules) >= MAX_RULES):
                    excess.append(ExcessRule(directory, number, long))
                    break
                if rule is not None:
                    rules.append(rule._replace(line=number if number <= own_lines else 0, directory=prefix))
        return cls(tuple(rules), tuple(excess))

    def is_ignored(self, path: str) -> bool:
        """Return whether a file is excluded: first by the rules for its directories, then by the last rule that matches the file."""
        return self.find_rule(path) is not None

    def find_rule(self, path: str) -> IgnoreRule | None:
        """Return the rule that excludes a file; None for a file that is not excluded."""
        if not self._rules:
            return None
        slash = path.find("/")
        while slash >= 0:
            directory = path[:slash]
            if directory not in self._cache:
                self._cache[directory] = self._match_rules(directory, is_directory=True)
            if self._cache[directory] is not None:
                return self._cache[directory]
            slash = path.find("/", slash + 1)
        return self._match_rules(path, is_directory=False)

    def _match_rules(self, path: str, *, is_directory: bool) -> IgnoreRule | None:
        for rule in self._rules:
            if (
                path.startswith(rule.directory)
                and (is_directory or not rule.directories_only)
                and rule.pattern.fullmatch(path, len(rule.directory))
            ):
                return rule if rule.excludes else None
        return None
