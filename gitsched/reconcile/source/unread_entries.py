"""Report entries of a tree that are not read although they may have documents, or that other machines cannot check out: symbolic links,
submodules, odd paths and modes, and paths that collide."""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from gitsched.model.finding import Finding, Location, format_names

if TYPE_CHECKING:
    from gitsched.git import Repository, TreeEntry

SYMLINK_MODE: Final = 0o120000
SUBMODULE_MODE: Final = 0o160000
REGULAR_FILE_MODES: Final = (0o100644, 0o100755, 0o100664)
MAX_NAMES: Final = 5
_MAX_TARGET: Final = 4096
"""Bytes of a link's target; Linux allows no longer path."""


def find_unread_entries(repository: Repository, entries: list[TreeEntry], manifests: Iterable[TreeEntry]) -> list[Finding]:
    """Return a finding for each entry that is neither a regular file nor read. `manifests` are the entries whose paths can have documents.

    A symbolic link to a file that can have no documents, or to a directory of the commit, is no finding: nothing of it remains unread.
    """
    odd = [entry for entry in entries if entry.unsafe or entry.mode not in REGULAR_FILE_MODES]
    if not odd:
        return []
    named = {entry.path for entry in manifests}
    places = _list_places(entries)
    findings = []
    for entry in odd:
        where = Location(entry.path, 1, 1)
        if entry.unsafe:
            findings.append(Finding("warning", "odd-path", f"{entry.path!r} is not a safe path: the file is not read", where))
        elif entry.mode == SYMLINK_MODE:
            leads = _leads_to(repository, entry, places)
            if entry.path in named or not leads:
                what = "it is not followed" if leads else "it leads to no file or directory of the commit, and is not followed"
                findings.append(Finding("info", "symlink", f"{entry.path} is a symbolic link: {what}", where))
        elif entry.mode == SUBMODULE_MODE:
            findings.append(Finding("info", "submodule", f"{entry.path} is a submodule: it is not read", where))
        else:
            findings.append(Finding("warning", "odd-mode", f"{entry.path} has mode {entry.mode:o}: it is not read", where))
    return findings


def find_path_collisions(paths: Iterable[str]) -> list[Finding]:
    """Return a warning for each group of paths that are one file where letter case or the Unicode form do not count: macOS, Windows."""
    groups: dict[str, list[str]] = {}
    for path in paths:
        groups.setdefault(fold_path(path), []).append(path)
    findings = []
    for group in groups.values():
        if len(group) > 1:
            first, *others = sorted(group)
            message = (
                f"{first} differs from {format_names(others, MAX_NAMES)} only by letter case or Unicode form: all are read from Git, but a "
                "checkout on macOS or Windows has only one of them; rename the others"
            )
            findings.append(Finding("warning", "file-name-collision", message, Location(first, 1, 1)))
    return findings


def fold_path(path: str) -> str:
    """Return a path as file systems compare it where letter case and the Unicode form do not count."""
    return path.lower() if path.isascii() else unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def list_link_targets(repository: Repository, entries: Iterable[TreeEntry]) -> frozenset[str]:
    """Return the paths that symbolic links lead to, whether there is something or not."""
    links = (entry for entry in entries if entry.mode == SYMLINK_MODE and not entry.unsafe)
    return frozenset(target for entry in links if (target := _read_target(repository, entry)) is not None)


def read_regular_file(repository: Repository, entry: tuple[str, int] | None, limit: int) -> bytes | None:
    """Return the content of a regular file; None for anything else, and for a file with more bytes than the limit."""
    return repository.read_small_blob(entry[0], limit) if entry is not None and entry[1] in REGULAR_FILE_MODES else None


def _list_places(entries: list[TreeEntry]) -> set[str]:
    """Return the paths of all regular files, and of all directories; the root is `.`."""
    places = {"."}
    for entry in entries:
        if not entry.unsafe and entry.mode in REGULAR_FILE_MODES:
            path = entry.path
            while path and path not in places:
                places.add(path)
                path = path.rpartition("/")[0]
    return places


def _leads_to(repository: Repository, entry: TreeEntry, places: set[str]) -> bool:
    """Return whether a link's own target, without links on the way to it, is one of these paths."""
    return _read_target(repository, entry) in places


def _read_target(repository: Repository, entry: TreeEntry) -> str | None:
    """Return the path that a link leads to; None for one that is too long."""
    data = repository.read_small_blob(entry.blob, _MAX_TARGET)
    if data is None:
        return None
    target = data.decode("utf-8", "surrogateescape")
    return posixpath.normpath(posixpath.join(posixpath.dirname(entry.path), target))
