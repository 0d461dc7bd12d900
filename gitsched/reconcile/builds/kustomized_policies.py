"""Report documents of policy APIs that kustomizations change, although they are read as their files have them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from gitsched.decide.catalog import RawDocument
from gitsched.manifests.kustomize_graph import AppliedChange, describe_changes
from gitsched.model.finding import Finding, format_names, locate_origin

_HARMLESS: Final = frozenset(("labels", "annotations"))
"""Changes that add metadata for users and tools."""


class KustomizedPolicies:
    """The documents of policy APIs among the resources of kustomizations that change them, by a description of the changes."""

    def __init__(self) -> None:
        self._found: dict[str, list[RawDocument]] = {}

    def add(self, document: RawDocument, changes: Iterable[AppliedChange]) -> None:
        """Record a document with the changes that kustomizations make to it."""
        relevant = [applied for applied in changes if applied.change.text not in _HARMLESS]
        if relevant:
            self._found.setdefault(describe_changes(relevant), []).append(document)

    def list_findings(self) -> Iterator[Finding]:
        """Yield a warning for each set of changes, at the first document."""
        for changes, documents in self._found.items():
            names = [f"{document.kind} {document.namespace}/{document.name}".replace(" /", " ") for document in documents]
            one = len(documents) == 1
            message = (
                f"{format_names(names)} {'is read as its file has it' if one else 'are read as their files have them'}, although "
                f"kustomize changes {'it' if one else 'them'}: {changes}; gitsched reads its own documents unchanged, so write the result "
                "into the source"
            )
            first = documents[0]
            location = locate_origin(first.origin) if first.origin is not None else None
            yield Finding("warning", "policy-kustomized", message, location, (first.kind, first.namespace, first.name))
