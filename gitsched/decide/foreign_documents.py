"""Find documents of other tools that say where workloads run, which gitsched does not read: one note for each tool."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from gitsched.kinds.foreign_apis import ForeignAPI, find_foreign_api
from gitsched.model.document import Document, Key
from gitsched.model.finding import Finding, locate_document

FOREIGN_CODE = "foreign-api"


def list_foreign_kinds(kinds: Iterable[tuple[str, str]]) -> dict[tuple[str, str], ForeignAPI]:
    """Return those of some kinds, given as group and kind, that belong to another tool."""
    return {kind: api for kind in kinds if (api := find_foreign_api(*kind)) is not None}


def list_foreign_documents(
    unclaimed: Iterable[Key], templates: Mapping[Key, Document], kinds: Mapping[tuple[str, str], ForeignAPI]
) -> Iterator[Finding]:
    """Yield a note for each tool of which there is a document that no policy selects, at the first one by file and line. A document that a
    policy places is for the clusters, which may run the tool."""
    first: dict[str, tuple[ForeignAPI, Document]] = {}
    for key in unclaimed:
        api = kinds.get(key[:2])
        if api is not None:
            document = templates[key]
            known = first.get(api.name)
            if known is None or _sort_key(document) < _sort_key(known[1]):
                first[api.name] = api, document
    for api, document in first.values():
        key = document.key
        message = (
            f"{key} is of {api.name}, which {api.purpose}: gitsched does not read its documents, so that they place nothing here; "
            f"{api.instead} ({api.documentation})"
        )
        yield Finding("info", FOREIGN_CODE, message, locate_document(document), key.resource)


def changes_notes(
    unclaimed: Mapping[Key, tuple[bool, bool]],
    templates: Mapping[Key, tuple[Document | None, Document | None]],
    kinds: Collection[tuple[str, str]],
) -> bool:
    """Return whether changes may concern the notes: `unclaimed` says which objects no policy selects before and now, `templates` are what
    changed. A change in the file of a note is not asked about here."""
    for key, (before, after) in unclaimed.items():
        if key[:2] in kinds and (before or after):
            old, new = templates.get(key, (None, None))
            if before != after or (old is not None and new is not None and _sort_key(old) != _sort_key(new)):
                return True
    return False


def _sort_key(document: Document) -> tuple[str, int, int, Key]:
    origin = document.origin
    return (origin.path, origin.line, origin.column, document.key) if origin is not None else ("", 0, 0, document.key)
