"""The files of a commit as builds read them, and what is wrong with them."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping
from typing import NamedTuple, Protocol

from gitsched.manifests.kustomize import Kustomization
from gitsched.manifests.kustomize_graph import resolve_path

MAX_FILES = 10_000
"""Files that one build reads."""

SYMLINK_MODE, SUBMODULE_MODE = 0o120000, 0o160000
_MAX_LINKS = 20


class CommitFiles(Protocol):
    """The files of a commit."""

    @property
    def entries(self) -> Mapping[str, tuple[str, int]]:
        """Blob and mode of each file, symlink and submodule with a safe path."""
        ...

    @property
    def directories(self) -> Collection[str]:
        """The paths of all directories; the root is `.`."""
        ...

    def read_blob(self, blob: str, /) -> bytes:
        """Return the content of a blob."""
        ...

    def read_kustomization(self, blob: str, path: str, /) -> Kustomization | None:
        """Return a parsed kustomization; None if it exceeds the limits on input."""
        ...


class BuildProblem(NamedTuple):
    """Why a root cannot be built: a code of docs/findings.md and a message, at a position of a kustomization."""

    code: str
    message: str
    path: str
    line: int = 1
    column: int = 1


def find_blob(commit: CommitFiles, path: str) -> tuple[str, str]:
    """Return the blob of a file, or of the file that a symbolic link leads to, and its path; "" as the blob if there is none."""
    blob, mode = "", 0
    for _ in range(_MAX_LINKS):
        blob, mode = commit.entries.get(path, ("", 0))
        if mode != SYMLINK_MODE:
            break
        path = resolve_path(posixpath.dirname(path), commit.read_blob(blob).decode("utf-8", "replace"))
    return "" if mode in (SYMLINK_MODE, SUBMODULE_MODE) else blob, path
