"""Build the kustomize roots of a source tree, and separate the parts of its kustomizations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gitsched.apis.gitsched.config import Config
from gitsched.git import TreeEntry
from gitsched.reconcile.cache.caches import SourceFile
from gitsched.reconcile.kustomizations import NO_ROOTS, FileReader, KustomizedTree, separate_parts
from gitsched.reconcile.run import BuildContext

_REGULAR = 0o100000
"""The bits of a regular file in the mode of an entry."""


def read_kustomized_tree(
    entries: list[TreeEntry],
    files: Mapping[str, SourceFile],
    reader: FileReader,
    config: Config,
    builds: Callable[[], BuildContext] | None,
) -> KustomizedTree:
    """Return the files of a tree without the parts of kustomizations, with the objects of the roots that settings name.

    `builds` is None where nothing is built, as for documents that name metrics only.
    """
    patterns = config.source.kustomize.build
    built = NO_ROOTS
    if builds is not None and patterns:
        from gitsched.reconcile.builds import build_roots  # starts processes

        built = build_roots(entries, reader, patterns, builds())
    regular = [entry for entry in entries if entry.mode & 0o170000 == _REGULAR and not entry.unsafe]
    return separate_parts(regular, files, reader, config, built)
