"""Taints of clusters that somebody edited in the worktree, as `gitsched drain` does, and did not commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha1
from typing import TYPE_CHECKING

from gitsched.decide.cluster_conditions import index_cluster_kinds
from gitsched.manifests.parser import parse_file
from gitsched.model.document import Body, Document, get_field, list_objects
from gitsched.model.taints import parse_taint

if TYPE_CHECKING:
    from gitsched.decide.catalog import Catalog
    from gitsched.reconcile.run import Fetched, RunContext

MAX_FILES = 300
"""Files of clusters that are read: more would take more than a few hundredths of the time of the status."""
_SHA1_LENGTH = 40


def list_uncommitted_taints(context: RunContext, fetched: Fetched, catalog: Catalog) -> Iterator[str]:
    """Yield for each cluster whose taints in the worktree are not those of the commit which differ, and in which file. Only the files of
    clusters are read, and only where the worktree is the source; what kustomize builds is left out, and so are fleets of many files."""
    repository, settings = context.source.repository, context.settings
    if settings.worktree or settings.revision is not None or repository.is_bare or repository.resolve("HEAD") != fetched.source.oid:
        return
    by_path: dict[str, list[Document]] = {}
    for kind in index_cluster_kinds():
        for document in catalog.api_documents.get(kind, ()):
            if document.origin is not None and not (document.origin.root or document.origin.tool):
                by_path.setdefault(document.origin.path, []).append(document)
    for path, documents in sorted(by_path.items()) if len(by_path) <= MAX_FILES else ():
        data = _read_changed(repository.root, path, documents)
        if data is not None:
            yield from _compare(path, documents, data)


def _read_changed(root: str, path: str, documents: Iterable[Document]) -> bytes | None:
    """Return the content of a file of the worktree; None if it is that of the commit, or cannot be read."""
    try:
        with open(f"{root}/{path}", "rb", buffering=0) as file:  # noqa: PTH123 - takes half the time, for each cluster
            data = file.read()
    except OSError:
        return None
    blobs = {document.origin.blob for document in documents if document.origin is not None}
    digest = sha1(b"blob %d\0%s" % (len(data), data), usedforsecurity=False).hexdigest()
    return None if any(len(blob) != _SHA1_LENGTH for blob in blobs) or blobs == {digest} else data


def _compare(path: str, documents: Iterable[Document], data: bytes) -> Iterator[str]:
    edited: dict[tuple[str, str], Mapping[str, None]] = {}
    for parsed in parse_file(data, path=path, validate=None).documents:
        edited[str(parsed.body.get("kind")), str(get_field(parsed.body, "metadata", "name"))] = _list_taints(parsed.body)
    for document in documents:
        before = _list_taints(document.body)
        after = edited.get((document.key.kind, document.key.name), before)
        for verb, taints in (("added", after.keys() - before), ("removed", before.keys() - after)):
            if taints:
                yield f"{path}: {document.key.name}: {', '.join(sorted(taints))} is {verb} in the worktree: commit it"


def _list_taints(body: Body) -> Mapping[str, None]:
    return dict.fromkeys(str(parse_taint(entry)) for entry in list_objects(get_field(body, "spec", "taints")))
