"""The files of one tree as builds read them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping

from gitsched.git import Repository, TreeEntry
from gitsched.manifests.kustomize import KUSTOMIZATION_NAMES, Kustomization
from gitsched.reconcile.kustomizations import FileReader


class CommitTree:
    """The files of one tree; see `gitsched.build.commit_files.CommitFiles`."""

    def __init__(self, repository: Repository, entries: Iterable[TreeEntry], reader: FileReader) -> None:
        self.repository, self._reader = repository, reader
        self.entries: Mapping[str, tuple[str, int]] = {
            entry.path: (entry.blob, entry.mode) for entry in entries if not entry.unsafe
        }
        self.directories = {"."}
        for path in self.entries:
            while (path := path.rpartition("/")[0]) and path not in self.directories:
                self.directories.add(path)

    def read_blob(self, blob: str) -> bytes:
        """Return the content of a blob."""
        return self.repository.blob(blob)

    def read_kustomization(self, blob: str, path: str) -> Kustomization | None:
        """Return a parsed kustomization."""
        return self._reader.read(blob, path).kustomization

    def list_roots(self, pattern: str) -> list[str]:
        """Return the directories with a kustomization that is no component, and whose path matches a pattern."""
        matches = _compile_pattern(pattern)
        found = {
            posixpath.dirname(path) or ".": (path, blob)
            for path, (blob, _) in self.entries.items()
            if posixpath.basename(path) in KUSTOMIZATION_NAMES and matches.fullmatch(posixpath.dirname(path) or ".")
        }
        return sorted(
            directory
            for directory, (path, blob) in found.items()
            if not ((kustomization := self.read_kustomization(blob, path)) and kustomization.is_component)
        )


def _compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return the expression for a path with `*` for any part of a name and `**` for any directories."""
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    text = ""
    for index, part in enumerate(parts):
        slash = "/" if index < len(parts) - 1 else ""
        if part == "**":
            text += "(?:[^/]+/)*" if slash else ".+"
        else:
            text += "[^/]*".join(map(re.escape, re.split(r"\*+", part))) + slash
    return re.compile(text or re.escape("."))
