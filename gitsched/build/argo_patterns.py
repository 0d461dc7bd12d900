"""The patterns with which an Application selects files. Source: gobwas/glob for manifests, bmatcuk/doublestar for values files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gitsched.build.commit_files import join_path
from gitsched.manifests.glob import GlobToken, matches_glob, parse_glob

MAX_STEPS = 10_000
"""Directories and alternatives that a pattern of values files may stand for."""
_MAX_PARTS = 200
_SEPARATOR = re.compile(r"(?<!\\)[/{},]")
_Edges = list[list[tuple[GlobToken | None, int]]]
"""The edges of each state of an automaton: the character that one takes, if any, and the state to which it leads."""


class PatternError(Exception):
    """A pattern is not valid, or takes too much time; the text says which."""


class ManifestPattern:
    """A pattern of gobwas/glob, in which `*` takes slashes too and braces have alternatives, which may be nested.

    One that is not valid matches nothing.
    """

    def __init__(self, pattern: str) -> None:
        self._edges = _parse_alternatives(pattern)

    def matches(self, path: str) -> bool:
        """Return whether a path matches."""
        states = _skip_empty(self._edges, {0})
        for character in path:
            taken = ((token, to) for state in states for token, to in self._edges[state])
            states = _skip_empty(self._edges, {to for token, to in taken if token is not None and token.accepts(character)})
        return len(self._edges) - 1 in states


def _skip_empty(edges: _Edges, states: set[int]) -> set[int]:
    """Return the states with those that follow without a character."""
    found, pending = set(states), list(states)
    while pending:
        following = {to for token, to in edges[pending.pop()] if token is None} - found
        found |= following
        pending += following
    return found


def _parse_alternatives(pattern: str) -> _Edges:
    """Return the automaton of a pattern, whose last state accepts; one that accepts nothing if the pattern is not valid."""
    edges: _Edges = [[]]
    opened: list[tuple[int, list[int]]] = []
    current = position = 0

    def add_state(start: int, token: GlobToken | None = None) -> int:
        edges.append([])
        edges[start].append((token, len(edges) - 1))
        return len(edges) - 1

    def close() -> int:
        ends = [*opened.pop()[1], current]
        joined = add_state(current)
        for end in ends[:-1]:
            edges[end].append((None, joined))
        return joined

    while position < len(pattern):
        character = pattern[position]
        position += 1
        if character == "*":
            edges[current].append((GlobToken(), current))
        elif character == "{":
            opened.append((current, []))
            current = add_state(current)
        elif character == "," and opened:
            opened[-1][1].append(current)
            current = add_state(opened[-1][0])
        elif character == "}" and opened:
            current = close()
        elif character == "[":
            token, position = _parse_set(pattern, position)
            if token is None:
                return [[], []]
            current = add_state(current, token)
        elif character == "?":
            current = add_state(current, GlobToken())
        else:
            if character == "\\":
                character = pattern[position : position + 1]
                position += 1
            if character:
                current = add_state(current, GlobToken(ranges=((character, character),)))
    while opened:
        current = close()
    add_state(current)
    return edges


def _parse_set(pattern: str, position: int) -> tuple[GlobToken | None, int]:
    """Return the one range or the characters in brackets, and the position behind them; None if they are not valid."""
    negated = pattern[position : position + 1] == "!"
    position += negated
    ranges: list[tuple[str, str]] = []
    if pattern[position + 1 : position + 2] == "-":
        low, high = pattern[position], pattern[position + 2 : position + 3]
        ranges += [(low, high)] if low <= high else []
        position += 3
    else:
        while position < len(pattern) and pattern[position] != "]":
            position += pattern[position] == "\\"
            ranges += [(character, character) for character in pattern[position : position + 1]]
            position += 1
    is_valid = ranges and pattern[position : position + 1] == "]"
    return GlobToken(ranges=tuple(ranges), negated=negated) if is_valid else None, position + 1


class FileTree:
    """The names in each directory of a commit."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._names: dict[str, dict[str, None]] = {".": {}}
        self._steps = 0
        for path in sorted(paths):
            self._add(path)

    def _add(self, path: str) -> None:
        while path:
            parent, _, name = path.rpartition("/")
            names = self._names.setdefault(parent or ".", {})
            if name in names:
                return
            names[name] = None
            path = parent

    def is_directory(self, path: str) -> bool:
        """Return whether a path is a directory."""
        return path in self._names

    def list_matching(self, pattern: str) -> list[str]:
        """Return the files and directories that a pattern of doublestar matches, in its order: `**` is a directory before what is in it,
        and what alternatives match is sorted. Raises PatternError."""
        self._steps = 0
        parts = _SEPARATOR.split(pattern)
        if len(parts) > _MAX_PARTS:
            raise PatternError(f"has more than {_MAX_PARTS} parts")
        if not _is_closed(pattern) or any(_parse_name(part) is None for part in parts):
            raise PatternError("is not valid")
        return self._list(pattern)

    def _list(self, pattern: str) -> list[str]:
        self._take()
        braces = _find_braces(pattern)
        slash = pattern.rfind("/")
        if braces is not None and slash < braces[1]:
            return self._list_alternatives(pattern, *braces)
        directory, name = pattern[: max(slash, 0)] or ".", pattern[slash + 1 :]
        parents = [directory] if directory == "." else [path for path in self._list(directory) if self.is_directory(path)]
        return [found for parent in parents for found in self._list_names(parent, name)]

    def _list_alternatives(self, pattern: str, opening: int, closing: int) -> list[str]:
        start = max(pattern.rfind("/", 0, opening), pattern.rfind("}", 0, opening))
        prefixes, start = ([""], -1) if start < 0 or pattern[start] == "}" else (self._list(pattern[:start]), start)
        found: list[str] = []
        for prefix in prefixes:
            before = f"{prefix}/" if prefix else ""
            patterns = (
                f"{before}{pattern[start + 1 : opening]}{choice}{pattern[closing + 1 :]}"
                for choice in _split_choices(pattern[opening + 1 : closing])
            )
            found += sorted({path for each in patterns for path in self._list(each)})
        return found

    def _list_names(self, directory: str, name: str) -> Iterator[str]:
        if name == "**":
            yield from self._walk(directory)
            return
        if not name:
            yield directory
            return
        tokens = _parse_name(name)
        for found in sorted(self._names[directory]):
            if matches_glob(tokens, found):
                yield join_path(directory, found)

    def _walk(self, directory: str) -> Iterator[str]:
        pending = [directory]
        while pending:
            path = pending.pop()
            yield path
            if self.is_directory(path):
                self._take()
                pending += (join_path(path, name) for name in sorted(self._names[path], reverse=True))

    def _take(self) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise PatternError(f"needs more than {MAX_STEPS:,} steps")


def _parse_name(pattern: str) -> list[GlobToken] | None:
    """Return the elements of a pattern without slashes and braces; None if it is not valid."""
    return parse_glob(pattern.replace("[!", "[^"))


def _find_braces(pattern: str) -> tuple[int, int] | None:
    """Return the positions of the last braces, in which others may be; None if there are none."""
    depth, closing = 0, -1
    for position in reversed(range(len(pattern))):
        character = pattern[position]
        if character not in "{}" or pattern[position - 1 : position] == "\\":
            continue
        if character == "}":
            closing = closing if depth else position
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                return position, closing
    return None


def _split_choices(text: str) -> list[str]:
    """Return the alternatives between braces."""
    choices, depth = [""], 0
    for position, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if character == "," and not depth and text[position - 1 : position] != "\\":
            choices.append("")
        else:
            choices[-1] += character
    return choices


def _is_closed(pattern: str) -> bool:
    """Return whether all braces of a pattern are closed."""
    depth = 0
    for position, character in enumerate(pattern):
        if character in "{}" and pattern[position - 1 : position] != "\\":
            depth = max(0, depth + (1 if character == "{" else -1))
    return not depth
