"""Find the documents of a commit that say how delivery tools build it: also in files that settings hide from policies."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gitsched.decide.catalog import DEFINITION_GROUPS, RawDocument, make_raw_documents
from gitsched.manifests.parsed_file import DEFAULT_LIMITS
from gitsched.reconcile.builds.kustomizations import FileReader
from gitsched.reconcile.cache.caches import SourceFile
from gitsched.reconcile.source.commit_tree import CommitTree
from gitsched.reconcile.source.source_reader import is_searched

_MAX_SIZE = DEFAULT_LIMITS.size
"""Bytes of a file outside of the source's paths that is searched."""


def choose_nearest(documents: Sequence[RawDocument], path: str) -> RawDocument | None:
    """Return the document whose file shares the most directories with a path; None if several with different content share as many.

    Directories of several clusters often define objects of the same name, each for its own documents.
    """
    if not documents:
        return None
    depths = [len(posixpath.commonprefix([_split(document), path.split("/")[:-1]])) for document in documents]
    nearest = [document for document, depth in zip(documents, depths, strict=True) if depth == max(depths)]
    return nearest[0] if all(document.body == nearest[0].body for document in nearest) else None


def _split(document: RawDocument) -> list[str]:
    return document.origin.path.split("/")[:-1] if document.origin is not None else []


class DocumentIndex:
    """The documents of a commit by group, and by kind and name. `files` are those that are read anyway, `documents` what counts of them:
    for a broken document its last valid version, or itself if there is none."""

    def __init__(
        self,
        commit: CommitTree,
        files: Mapping[str, SourceFile],
        reader: FileReader,
        documents: Sequence[RawDocument] = (),
    ) -> None:
        self._commit, self._files, self._reader, self._documents = commit, files, reader, documents
        self._named: dict[tuple[str, str], list[RawDocument]] = {}
        self._hidden = [path for path in commit.entries if path not in files and is_searched(path) and self._is_small_file(path)]

    def _is_small_file(self, path: str) -> bool:
        blob, mode = self._commit.entries[path]
        return mode & 0o170000 == 0o100000 and self._commit.repository.blob_size(blob) <= _MAX_SIZE

    def list_read_documents(self) -> Iterator[RawDocument]:
        """Yield the documents of the files that are read anyway."""
        for file in self._files.values():
            yield from file.documents

    def list_declaring(self) -> Iterator[RawDocument]:
        """Yield the documents from which the scopes of kinds are read: those that are read anyway; without any, all definitions."""
        yield from self.list_read_documents() if self._files else self.list_groups(DEFINITION_GROUPS)

    def list_restored(self) -> Iterator[RawDocument]:
        """Yield what counts of the broken documents of the files that are read anyway, and what such files have lost."""
        read = {id(document) for document in self.list_read_documents()}
        for document in self._documents:
            if id(document) in read or document.origin is None:
                continue
            file = self._files.get(document.origin.path)
            if file is not None and document.identity not in (one.identity for one in file.documents):
                yield document

    def list_groups(self, groups: Iterable[str]) -> list[RawDocument]:
        """Return all documents of the given API groups."""
        wanted = frozenset(groups)
        marks = [group.encode() for group in wanted]
        return [
            document
            for documents in (self.list_read_documents(), self.list_restored(), self._search(marks))
            for document in documents
            if document.group in wanted
        ]

    def list_named(self, kind: str, name: str) -> list[RawDocument]:
        """Return all documents of a core kind with a name. Many documents name the same ConfigMap, so the commit is searched once."""
        if (kind, name) not in self._named:
            self._named[kind, name] = [
                document
                for documents in (self.list_read_documents(), self.list_restored(), self._search([name.encode()]))
                for document in documents
                if (document.group, document.kind, document.name) == ("", kind, name)
            ]
        return self._named[kind, name]

    def _search(self, marks: list[bytes]) -> Iterator[RawDocument]:
        """Yield the documents of the files that are not read otherwise and contain one of the texts."""
        for path in self._hidden:
            blob = self._commit.entries[path][0]
            data = self._commit.read_blob(blob)
            if any(mark in data for mark in marks):
                yield from make_raw_documents(self._reader.read(blob, path), path, blob)
