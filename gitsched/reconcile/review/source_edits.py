"""Find what people changed in the source since the last run, from the files that differ."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from gitsched.apis.gitsched.config import FILE
from gitsched.decide.catalog import make_raw_document
from gitsched.decide.registry import reserved_groups
from gitsched.model.cluster_facts import FACTS_KIND
from gitsched.model.cluster_report import CLUSTER_REPORT
from gitsched.model.source_edits import EditedDocument, SourceEdits
from gitsched.model.tenants import TENANT_KIND
from gitsched.reconcile.facts.facts_branches import list_score_kinds
from gitsched.reconcile.source.config_file import read_config
from gitsched.reconcile.source.source_reader import SourceReader, is_manifest_path
from gitsched.reconcile.source.unread_entries import REGULAR_FILE_MODES

if TYPE_CHECKING:
    from gitsched.reconcile.run import RunContext

MAX_FILES: Final = 10_000
"""Changed files that are read; where more differ, it is not known what people changed."""


def find_edits(context: RunContext, base: str, head: str) -> SourceEdits | None:
    """Return what differs between two trees of the source; None if there is too much.

    Scores, reports and the status of documents are what machines observe: they are no edits, wherever they are written.
    """
    repository, cache = context.source.repository, context.caches.files
    changed = repository.changed_paths(base, head)
    if len(changed) > MAX_FILES:
        return None
    reader = SourceReader(repository, cache)
    found: set[EditedDocument] = set()
    settings, builds = False, False
    for path in changed:
        if path == FILE:
            before, after = (read_config(repository, tree, cache) for tree in (base, head))
            settings |= before is None or after is None or before != after._replace(guard=before.guard)
            continue
        versions = [_count_documents(reader, entry, path) for entry in (repository.find_entry(tree, path) for tree in (base, head))]
        if None in versions:
            builds = True
            continue
        before_documents, after_documents = (version or Counter() for version in versions)
        different = (before_documents - after_documents) + (after_documents - before_documents)
        found |= {identity for identity, _ in different}
    settings |= any((group, kind) == TENANT_KIND for group, kind, _ in found)
    return SourceEdits(frozenset(found), settings, builds or bool(found))


def _count_documents(reader: SourceReader, entry: tuple[str, int] | None, path: str) -> Counter[tuple[EditedDocument, str]] | None:
    """Return the documents of a file without what is observed; None if the file may say how others are built."""
    if entry is None:
        return Counter()
    if not is_manifest_path(path) or entry[1] not in REGULAR_FILE_MODES:
        return None
    return Counter(_list_documents(reader, entry[0], path))


def _list_documents(reader: SourceReader, blob: str, path: str) -> Iterator[tuple[EditedDocument, str]]:
    observed = {*list_score_kinds(), FACTS_KIND, CLUSTER_REPORT}
    for parsed in reader.read(blob, path).documents:
        raw = make_raw_document(parsed.body)
        if (raw.group, raw.kind) in observed:
            continue
        body = {name: value for name, value in raw.body.items() if name != "status" or raw.group not in reserved_groups}
        yield (raw.group, raw.kind, raw.name), json.dumps(body, default=str)
