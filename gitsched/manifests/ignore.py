"""Which files of a tree are read at all: by name, and by the rules of `.sourceignore` files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gitsched.manifests.kustomize import FILE_NAMES

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILE = ".sourceignore"
_SUFFIXES = (".yaml", ".yml", ".json")


def is_candidate(path: str) -> bool:
    """Whether a path may hold documents: YAML or JSON by its name, and not inside a directory that begins with a dot."""
    directory, _, name = path.rpartition("/")
    if not name.endswith(_SUFFIXES) and name not in FILE_NAMES:
        return False
    return not name.startswith(".") and not directory.startswith(".") and "/." not in directory


class Ignore:
    """The rules of the `.sourceignore` files of one tree; those of a deeper directory come later, so they win."""

    __slots__ = ("_specs",)

    def __init__(self, specs: tuple[tuple[str, GitIgnoreSpec], ...]) -> None:
        self._specs = specs

    @classmethod
    def parse(cls, files: Mapping[str, str]) -> Ignore:
        """Rules from the texts of `.sourceignore` files by directory ("" for the root). Lines that are no pattern are skipped."""
        if not files:
            return cls(())
        from pathspec import GitIgnoreSpec  # most repositories have no such file

        specs = []
        for directory, text in sorted(files.items(), key=lambda entry: (entry[0].count("/") + bool(entry[0]), entry[0])):
            prefix = f"{directory.strip('/')}/" if directory.strip("/") else ""
            specs.append((prefix, GitIgnoreSpec.from_lines(_patterns(text))))
        return cls(tuple(specs))

    def match(self, path: str) -> bool:
        """Whether the rules exclude a file: the last rule that speaks of it decides."""
        excluded = False
        for prefix, spec in self._specs:
            if path.startswith(prefix):
                verdict = spec.check_file(path[len(prefix) :]).include
                excluded = excluded if verdict is None else verdict
        return excluded


def _patterns(text: str) -> list[str]:
    from pathspec import GitIgnoreSpec

    lines = []
    for line in text.splitlines():
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:
            continue  # git, too, passes over a line that is no pattern
        lines.append(line)
    return lines
