"""Reuse the documents of kustomize roots whose files are those of the last run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256

from gitsched.build.builder import Builder
from gitsched.build.closure import Closure
from gitsched.build.commit_files import SYMLINK_MODE, find_blob
from gitsched.decide.catalog import RawDocument
from gitsched.model.finding import Finding
from gitsched.reconcile.builds.kustomizations import FileReader
from gitsched.reconcile.cache.build_cache import BuildCache
from gitsched.reconcile.cache.root_documents import RootDocuments
from gitsched.reconcile.source.commit_tree import CommitTree, resolve_closures


class KnownRoots:
    """The documents of roots that earlier runs read, as far as they are the same for a commit."""

    def __init__(self, commit: CommitTree, reader: FileReader, builder: Builder, cache: BuildCache) -> None:
        self._commit = commit
        self._cache = cache.open_roots((commit.repository.common_dir, builder.version, reader.rules))
        self._structure = _compute_structure(commit)

    def find(self, roots: Iterable[str]) -> dict[str, RootDocuments]:
        """Return the roots whose documents are known, because they read the same files."""
        known = {root: self._cache.roots[root] for root in roots if root in self._cache.roots}
        if self._structure == self._cache.structure:
            found = {root: documents for root, documents in known.items() if self._has_files(documents.files)}
        else:  # other files or symbolic links may lead references elsewhere
            closures = {closure.root: closure for closure in resolve_closures(list(known), self._commit)}
            found = {root: documents for root, documents in known.items() if _is_closure_of(closures[root], documents)}
        texts = {oid: text for documents in found.values() for oid, text in documents.texts.items()}
        for oid, text in texts.items():
            self._commit.repository.keep_blob(text, oid)
        return found

    def make(self, closure: Closure, documents: list[RawDocument], findings: list[Finding]) -> RootDocuments:
        """Return the documents of a root that was built."""
        blobs = {document.origin.blob for document in documents if document.origin is not None}
        texts = {blob: self._commit.repository.blob(blob) for blob in sorted(blobs)}
        return RootDocuments(dict(closure.files), closure.resources, tuple(documents), tuple(findings), texts)

    def keep(self, roots: Mapping[str, RootDocuments]) -> None:
        """Keep the documents of all roots of the commit that depend only on files of the commit."""
        self._cache.put(self._structure, roots)

    def _has_files(self, files: Mapping[str, str]) -> bool:
        entries = self._commit.entries
        return all(
            entries.get(path, ("",))[0] == blob or find_blob(self._commit, path)[0] == blob  # a symbolic link
            for path, blob in files.items()
        )


def is_reusable(closure: Closure) -> bool:
    """Return whether what a root builds depends only on the files of its commit and on kustomize."""
    return not (closure.problems or closure.charts or closure.remotes or closure.links)


def _is_closure_of(closure: Closure, documents: RootDocuments) -> bool:
    return is_reusable(closure) and (closure.files, closure.resources) == (documents.files, documents.resources)


def _compute_structure(commit: CommitTree) -> str:
    """Return a digest of the paths of a commit and of its symbolic links, on which it depends where references lead."""
    rows = (f"{mode:o} {path}\0{blob if mode == SYMLINK_MODE else ''}" for path, (blob, mode) in commit.entries.items())
    return sha256("\0".join(rows).encode("utf-8", "surrogatepass")).hexdigest()
