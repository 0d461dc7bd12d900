"""The files of a commit as builds read them, and what is wrong with them."""

from __future__ import annotations

import posixpath
from collections import ChainMap
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Protocol

from gitsched.build.remote_base import REMOTE, RemoteBase, RemoteTree
from gitsched.manifests.kustomize import Kustomization
from gitsched.manifests.kustomize_graph import resolve_path
from gitsched.named_tuples import NamedTuple

MAX_FILES = 10_000
"""Files that one build reads."""

SYMLINK_MODE, SUBMODULE_MODE = 0o120000, 0o160000
HIDDEN = "tenant-read"
"""The code of a problem with a path of the commit that others own."""
_MAX_LINKS = 20
_MAX_PATH = 4096
"""Characters of a path or of a link's target; Linux allows no longer path."""


class ReadableFiles(Protocol):
    """Files that can be listed and read."""

    @property
    def entries(self) -> Mapping[str, tuple[str, int]]:
        """Blob and mode of each file, symlink and submodule with a safe path."""
        ...

    def read_blob(self, blob: str, /) -> bytes:
        """Return the content of a blob."""
        ...


class CommitFiles(ReadableFiles, Protocol):
    """The files of a commit."""

    @property
    def directories(self) -> Container[str]:
        """The paths of all directories; the root is `.`."""
        ...

    @property
    def is_hidden(self) -> Callable[[str], bool]:
        """Says of a path whether the commit has a file or directory there that is none of these because others own it."""
        ...

    def read_kustomization(self, blob: str, path: str, /) -> Kustomization | None:
        """Return a parsed kustomization; None if it exceeds the limits on input."""
        ...

    def open_remote(self, base: RemoteBase, /) -> RemoteTree | str:
        """Return the files of a commit of another repository, or why they cannot be read."""
        ...


class MountedFiles:
    """The files of a commit, and those of other repositories that it refers to."""

    def __init__(self, commit: CommitFiles) -> None:
        self.commit = commit
        self.entries: ChainMap[str, tuple[str, int]] = ChainMap(commit.entries)  # type: ignore[arg-type]  # it is only read
        self.directories = _Union([commit.directories])
        self.read_blob, self.read_kustomization, self.open_remote = commit.read_blob, commit.read_kustomization, commit.open_remote
        self.is_hidden = commit.is_hidden
        self._prefixes: dict[str, None] = {}

    def mount(self, base: RemoteBase) -> str:
        """Add the files of a commit of another repository. Return why they cannot be read, or ""."""
        if base.prefix not in self._prefixes:
            tree = self.commit.open_remote(base)
            if isinstance(tree, str):
                return tree
            self._prefixes[base.prefix] = None
            self.entries.maps.append(tree.entries)  # type: ignore[arg-type]
            self.directories.parts.append(tree.directories)
        return ""

    def find_scope(self, path: str) -> str:
        """Return the prefix of the repository that a path is in; "" for the commit itself, and REMOTE for no repository."""
        if not f"{path}/".startswith(f"{REMOTE}/"):
            return ""
        return next((prefix for prefix in self._prefixes if f"{path}/".startswith(f"{prefix}/")), REMOTE)


class _Union:
    def __init__(self, parts: list[Container[str]]) -> None:
        self.parts = parts

    def __contains__(self, path: object) -> bool:
        return any(path in part for part in self.parts)


class BuildProblem(NamedTuple):
    """Why a root cannot be built: a code of docs/findings.md and a message, at a position of a kustomization."""

    code: str
    message: str
    path: str
    line: int = 1
    column: int = 1


def find_blob(commit: CommitFiles, path: str) -> tuple[str, str]:
    """Return the blob of a file, or of the file that a symbolic link leads to, and its path; "" as the blob if there is none."""
    found = path
    blob, mode = commit.entries.get(path, ("", 0))
    if not blob or mode == SYMLINK_MODE:
        found = follow_links(commit, path).path
        blob, mode = commit.entries.get(found, ("", 0))
    return "" if mode in (SYMLINK_MODE, SUBMODULE_MODE) else blob, found


class LinkedPath(NamedTuple):
    """A path without symbolic links on the way to it, and the `links` that lead there: what each one names, without links either.

    The path begins with `../` or `/` where a link leads out of the commit.
    """

    path: str
    links: Mapping[str, str] = {}


def follow_links(commit: CommitFiles, path: str) -> LinkedPath:
    """Follow all symbolic links of a path, those of its directories too. After _MAX_LINKS, the path of a link remains."""
    links: dict[str, str] = {}
    left = _MAX_LINKS

    def walk(current: str, text: str) -> str:
        nonlocal left
        if len(text) > _MAX_PATH:
            return resolve_path(current, text)
        for name in text.split("/"):
            current = resolve_path(current, name)
            if commit.entries.get(current, ("", 0))[1] != SYMLINK_MODE:
                continue
            if left == 0:
                return current
            left -= 1
            target = commit.read_blob(commit.entries[current][0]).decode("utf-8", "replace")
            parent = posixpath.dirname(current)
            found = target if target.startswith("/") else walk(parent, target)
            if is_outside(found):
                return resolve_path(parent, target) if is_outside(resolve_path(parent, target)) else found
            links[current] = found
            current = found
        return current

    found = path if is_outside(path) else walk(".", path)
    return LinkedPath(found, links)


def is_outside(path: str) -> bool:
    """Return whether a normalised path leads out of the commit."""
    return path.startswith(("../", "/")) or path == ".."


def join_path(directory: str, name: str) -> str:
    """Return the path of a file in a directory."""
    return name if directory in (".", "") else f"{directory}/{name}"


def list_parents(path: str) -> Iterator[str]:
    """Yield the directories above a path, the innermost first; the root is `.`."""
    while path := posixpath.dirname(path):
        yield path
    yield "."


def list_directories(paths: Iterable[str]) -> set[str]:
    """Return all directories of paths, with the root `.`."""
    directories = {"."}
    for path in paths:
        while (path := path.rpartition("/")[0]) and path not in directories:
            directories.add(path)
    return directories
