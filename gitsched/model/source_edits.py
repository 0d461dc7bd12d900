"""What people changed in the source since an earlier run, as far as placements depend on it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.document import Document

EditedDocument = tuple[str, str, str]
"""Group, kind and name of a document. The namespace is left out: a build may set another one than a file has."""


class SourceEdits(NamedTuple):
    """The documents that differ between two commits of the source, apart from what machines observe.

    `settings`: gitsched.yaml or a Tenant differs, on which any placement may depend. `builds`: a file differs that says how documents are
    built, so that any built document may differ.
    """

    documents: frozenset[EditedDocument] = frozenset()
    settings: bool = False
    builds: bool = False

    def add_built(self, documents: Iterable[Document]) -> SourceEdits:
        """Return the edits with all built documents of the later commit, where a file differs that says how they are built."""
        if not self.builds:
            return self
        built = (one.key for one in documents if one.origin is not None and one.origin.root)
        return self._replace(documents=self.documents.union((key.group, key.kind, key.name) for key in built))

    def has(self, document: Document) -> bool:
        """Return whether a document differs."""
        key = document.key
        return (key.group, key.kind, key.name) in self.documents

    def may_change_rules(self, groups: Collection[str], own_kinds: Collection[tuple[str, str]]) -> bool:
        """Return whether documents of API groups differ that many placements may depend on: any but the `own_kinds`, on each of which only
        its own decision depends."""
        return self.settings or any(group in groups and (group, kind) not in own_kinds for group, kind, _ in self.documents)


NO_EDITS = SourceEdits()
