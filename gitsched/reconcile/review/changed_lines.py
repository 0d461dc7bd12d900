"""Lines of source files that a change adds or edits: where an image or a built object gets what it has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from gitsched.diff.document_changes import BuildInput
from gitsched.manifests.parsed_file import DEFAULT_LIMITS
from gitsched.model.changes import ImageChange
from gitsched.model.finding import Location

if TYPE_CHECKING:
    from gitsched.git import Repository

MAX_FILES = 1_000
"""The number of changed files that are read."""
MAX_LINES = 500
"""The number of lines that are compared with one image."""
_PART, _WORD, _INDEXED = re.compile(r"[^/:@]+"), re.compile(r"[\w./:@-]+"), re.compile(r"[\w.-]+")


class ChangedLines:
    """Finds lines of the later one of two trees that the earlier one does not have in the same file; `paths` are the files that differ."""

    def __init__(self, repository: Repository, earlier: str | None, later: str | None, paths: frozenset[str]) -> None:
        self.paths, self._repository, self._trees = paths, repository, (earlier, later)
        self._paths = sorted(paths)[:MAX_FILES] if later else []
        self._found: dict[str, tuple[Sequence[str], Sequence[int]]] = {}

    def find_built(self, built: BuildInput) -> Location | None:
        """Return the new line of the files of a build that has most of the words, else where the first of them loses a line."""
        paths = [path for path in self._paths if path in built.files]
        ranked = [
            (-sum(word in _WORD.findall(line) for word in built.words), path, number)
            for path in paths
            for number, line in self._list_lines(path)
        ]
        if ranked:
            return Location(min(ranked)[1], min(ranked)[2] + 1, 1)
        return Location(paths[0], self._find_removed(paths[0]) + 1, 1) if paths else None

    def _find_removed(self, path: str) -> int:
        """Return the position of the first line that differs in a file, which is its last one at most."""
        before, after = (self._read_lines(tree, path) for tree in self._trees)
        same = next((number for number, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), len(after))
        return max(min(same, len(after) - 1), 0)

    def find_image(self, change: ImageChange) -> Location | None:
        """Return the new line that names an image, or the parts of its name that are new, closest to the rest of its name."""
        old, new = _PART.findall(change.before), _PART.findall(change.after)
        parts = [part for part in new if part not in old] or new[-1:]
        whole = [place for place in self._find_rarest(new) if change.after in place[1]]
        found = whole or [place for place in self._find_rarest(parts) if all(part in place[1] for part in parts)]
        name = change.after.partition("@")[0].rpartition("/")[2].partition(":")[0]
        ranked = [(not any(name in line for line in self._list_around(path, number)), path, number) for (path, number), _ in found]
        return Location(min(ranked)[1], min(ranked)[2] + 1, 1) if ranked else None

    def _find_rarest(self, words: Sequence[str]) -> list[tuple[tuple[str, int], str]]:
        """Return places and texts of the new lines with the one of the words that the fewest lines have, at most MAX_LINES."""
        found = min((self._index.get(word, []) for word in words), key=len, default=[])
        return [((path, number), self._read(path)[0][number]) for path, number in found[:MAX_LINES]]

    def _list_around(self, path: str, number: int) -> Sequence[str]:
        return self._read(path)[0][max(number - 2, 0) : number + 3]

    @cached_property
    def _index(self) -> dict[str, list[tuple[str, int]]]:
        """The new lines of all files by their words."""
        index: dict[str, list[tuple[str, int]]] = {}
        for path in self._paths:
            for number, line in self._list_lines(path):
                for word in set(_INDEXED.findall(line)):
                    index.setdefault(word, []).append((path, number))
        return index

    def _list_lines(self, path: str) -> Iterator[tuple[int, str]]:
        """Yield the new lines of a file with their positions."""
        lines, new = self._read(path)
        return ((number, lines[number]) for number in new)

    def _read(self, path: str) -> tuple[Sequence[str], Sequence[int]]:
        """Return the lines of a file in the later tree, and the positions of those that the earlier one does not have."""
        if path not in self._found:
            before, after = (self._read_lines(tree, path) for tree in self._trees)
            known = set(before)
            self._found[path] = after, [number for number, line in enumerate(after) if line.strip() and line not in known]
        return self._found[path]

    def _read_lines(self, tree: str | None, path: str) -> list[str]:
        entry = self._repository.find_entry(tree, path) if tree else None
        is_there = entry is not None and self._repository.has(entry[0])
        data = self._repository.read_small_blob(entry[0], DEFAULT_LIMITS.size) if entry is not None and is_there else None
        return data.decode("utf-8", "replace").split("\n") if data is not None else []


def locate_images(images: Iterable[ImageChange], lines: ChangedLines) -> tuple[ImageChange, ...]:
    """Return the images with the line of the source that changes each of them, if it is found."""
    return tuple(change._replace(location=lines.find_image(change)) if change.after else change for change in images)
