"""The files of one tree as builds read them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from gitsched.build.closure import Closure, resolve_closure
from gitsched.build.commit_files import list_directories
from gitsched.build.remote_base import RemoteBase, RemoteTree
from gitsched.git import Repository, TreeEntry
from gitsched.manifests.kustomize import KUSTOMIZATION_NAMES, Kustomization
from gitsched.manifests.parsed_file import ParsedFile
from gitsched.reconcile.builds.build_context import BuildContext
from gitsched.reconcile.builds.kustomizations import FileReader
from gitsched.reconcile.builds.remote_bases import RemoteBases

MAX_ROUNDS = 10
"""How often other repositories are fetched for one commit: a base may name a base in yet another repository."""


_NAMES = tuple(KUSTOMIZATION_NAMES)


class CommitTree:
    """The files of one tree; see `gitsched.build.commit_files.CommitFiles`."""

    def __init__(
        self,
        repository: Repository,
        entries: Iterable[TreeEntry],
        reader: FileReader,
        remotes: RemoteBases | None = None,
        is_hidden: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self.repository, self.remotes, self._reader, self.is_hidden = repository, remotes, reader, is_hidden
        self.entries: Mapping[str, tuple[str, int]] = {
            entry.path: (entry.blob, entry.mode) for entry in entries if not entry.unsafe
        }
        self.directories = list_directories(self.entries)

    def read_blob(self, blob: str) -> bytes:
        """Return the content of a blob."""
        return self._find_owner(blob).blob(blob)

    def read_file(self, blob: str, path: str) -> ParsedFile:
        """Return a parsed file."""
        return self._reader.read(blob, path, self._find_owner(blob))

    def _find_owner(self, blob: str) -> Repository:
        owner = self.remotes.find_owner(blob) if self.remotes is not None else None
        return owner if owner is not None and not self.repository.has(blob) else self.repository

    def read_kustomization(self, blob: str, path: str) -> Kustomization | None:
        """Return a parsed kustomization."""
        return self.read_file(blob, path).kustomization

    def open_remote(self, base: RemoteBase) -> RemoteTree | str:
        """Return the files of a commit of another repository, or why they cannot be read."""
        return self.remotes.open(base) if self.remotes is not None else "this run reads no other repositories"

    def list_roots(self, pattern: str) -> list[str]:
        """Return the directories with a kustomization that is no component, and whose path matches a pattern."""
        if "*" in pattern:
            matches = compile_path_pattern(pattern)
            found = {directory: root for directory, root in self._roots.items() if matches.fullmatch(directory)}
        else:  # no expression, which takes longer to compile than everything else here
            literal = posixpath.normpath(pattern)
            is_plain = ("/".join(_split_pattern(pattern)) or ".") == literal
            found = {literal: self._roots[literal]} if is_plain and literal in self._roots else {}
        return sorted(
            directory
            for directory, (path, blob) in found.items()
            if not ((kustomization := self.read_kustomization(blob, path)) and kustomization.is_component)
        )

    @cached_property
    def _roots(self) -> dict[str, tuple[str, str]]:
        """The path and blob of each kustomization, by its directory."""
        return {
            posixpath.dirname(path) or ".": (path, blob)
            for path, (blob, _) in self.entries.items()
            if path.endswith(_NAMES) and posixpath.basename(path) in KUSTOMIZATION_NAMES
        }


def open_commit_tree(context: BuildContext, entries: Iterable[TreeEntry], reader: FileReader) -> CommitTree:
    """Return the files of a commit, with the other repositories that the run may read."""
    remotes = RemoteBases(context.caches.directory / "remotes", context.remotes)
    return CommitTree(context.repository, entries, reader, remotes, context.is_hidden)


def resolve_closures(roots: Sequence[str], commit: CommitTree) -> list[Closure]:
    """Resolve roots of a commit, and fetch what they need of other repositories, where the run may do so."""
    closures = [resolve_closure(root, commit) for root in roots]
    for _ in range(MAX_ROUNDS):
        if commit.remotes is None or not commit.remotes.fetch_wanted():
            break
        closures = [
            resolve_closure(closure.root, commit)
            if any(problem.code == "kustomize-remote" for problem in closure.problems)
            else closure
            for closure in closures
        ]
    return closures


def compile_path_pattern(pattern: str) -> re.Pattern[str]:
    """Return the expression for a path with `*` for any part of a name and `**` for any directories."""
    parts = _split_pattern(pattern)
    text = ""
    for index, part in enumerate(parts):
        slash = "/" if index < len(parts) - 1 else ""
        if part == "**":
            text += "(?:[^/]+/)*" if slash else ".+"
        else:
            text += "[^/]*".join(map(re.escape, re.split(r"\*+", part))) + slash
    return re.compile(text or re.escape("."))


def _split_pattern(pattern: str) -> list[str]:
    return [part for part in pattern.split("/") if part not in ("", ".")]
