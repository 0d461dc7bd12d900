"""Build the kustomize roots and Bundles of a source tree, and separate their parts from its objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gitsched.apis.gitsched.config import Config
from gitsched.decide.catalog import RawDocument
from gitsched.git import TreeEntry
from gitsched.reconcile.bundle_parts import NO_PARTS, has_bundles
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
    documents: Sequence[RawDocument] = (),
) -> KustomizedTree:
    """Return the files of a tree without the parts of kustomizations and Bundles, with the objects of the roots that settings name.

    `builds` is None where nothing is built, as for documents that name metrics only. `documents` are all documents of the files, and the
    last valid ones of broken files.
    """
    patterns = config.source.kustomize.build
    built, bundles = NO_ROOTS, NO_PARTS
    if builds is not None and patterns:
        from gitsched.reconcile.builds import build_roots  # starts processes

        built = build_roots(entries, reader, patterns, builds())
    if builds is not None and has_bundles(documents):
        from gitsched.reconcile.bundles import read_bundles  # starts processes

        bundles = read_bundles(documents, entries, reader, config.kinds, builds())
    regular = [entry for entry in entries if entry.mode & 0o170000 == _REGULAR and not entry.unsafe]
    return separate_parts(regular, files, reader, config, built, bundles)
