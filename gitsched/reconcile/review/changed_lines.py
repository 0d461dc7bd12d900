"""Lines of source files that a change adds or edits: where an image or a built object gets what it has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from gitsched.diff.document_changes import BuildInput
from gitsched.manifests.parsed_file import DEFAULT_LIMITS
from gitsched.model.changes import ImageChange
from gitsched.model.finding import Location

if TYPE_CHECKING:
    from gitsched.git import Repository

MAX_FILES = 1_000
"""The number of changed files that are read."""
_PART, _WORD = re.compile(r"[^/:@]+"), re.compile(r"[\w./:@-]+")


class ChangedLines:
    """Finds lines of the later one of two trees that the earlier one does not have in the same file; `paths` are the files that differ."""

    def __init__(self, repository: Repository, earlier: str | None, later: str | None, paths: frozenset[str]) -> None:
        self.paths, self._repository, self._trees = paths, repository, (earlier, later)
        self._paths = sorted(paths)[:MAX_FILES] if later else []
        self._found: dict[str, tuple[Sequence[str], Sequence[int]]] = {}

    def find_built(self, built: BuildInput) -> Location | None:
        """Return the new line of the files of a build that has most of the words; None if the files only lose lines."""
        ranked = [
            (-sum(word in _WORD.findall(line) for word in built.words), path, number)
            for path in self._paths
            if path in built.files
            for number, line, _ in self._list_lines(path, "")
        ]
        return Location(min(ranked)[1], min(ranked)[2] + 1, 1) if ranked else None

    def find_image(self, change: ImageChange) -> Location | None:
        """Return the new line that names an image, or the parts of its name that are new, closest to the rest of its name."""
        old, new = _PART.findall(change.before), _PART.findall(change.after)
        parts = [part for part in new if part not in old] or new[-1:]
        name = change.after.partition("@")[0].rpartition("/")[2].partition(":")[0]
        ranked = [
            (change.after not in line, not is_near, path, number)
            for path in self._paths
            for number, line, is_near in self._list_lines(path, name)
            if all(part in line for part in parts)
        ]
        return Location(min(ranked)[2], min(ranked)[3] + 1, 1) if ranked and parts else None

    def _list_lines(self, path: str, name: str) -> Iterator[tuple[int, str, bool]]:
        """Yield the new lines of a file with their positions, and whether the name of an image is in one of the lines around it."""
        lines, new = self._read(path)
        for number in new:
            yield number, lines[number], any(name in line for line in lines[max(number - 2, 0) : number + 3])

    def _read(self, path: str) -> tuple[Sequence[str], Sequence[int]]:
        """Return the lines of a file in the later tree, and the positions of those that the earlier one does not have."""
        if path not in self._found:
            before, after = (self._read_lines(tree, path) for tree in self._trees)
            known = set(before)
            self._found[path] = after, [number for number, line in enumerate(after) if line.strip() and line not in known]
        return self._found[path]

    def _read_lines(self, tree: str | None, path: str) -> list[str]:
        entry = self._repository.find_entry(tree, path) if tree else None
        if entry is None or not self._repository.has(entry[0]) or self._repository.blob_size(entry[0]) > DEFAULT_LIMITS.size:
            return []
        return self._repository.blob(entry[0]).decode("utf-8", "replace").split("\n")


def locate_images(images: Iterable[ImageChange], lines: ChangedLines) -> tuple[ImageChange, ...]:
    """Return the images with the line of the source that changes each of them, if it is found."""
    return tuple(change._replace(location=lines.find_image(change)) if change.after else change for change in images)
