"""Suggest which Placement is meant by a workload that names one which does not exist."""

from __future__ import annotations

from collections.abc import Iterable

from gitsched.model.document import Key
from gitsched.model.known_values import find_near, list_values


class PlacementNames:
    """The names of all Placements by namespace."""

    def __init__(self, placements: Iterable[Key]) -> None:
        self._names: dict[str, list[str]] = {}
        for key in sorted(placements):
            self._names.setdefault(key.namespace, []).append(key.name)
        self._suggestions: dict[tuple[Key, bool], str] = {}

    def suggest(self, missing: Key, *, in_annotation: bool) -> str:
        """Return which Placement is probably meant, or which ones there are, as the end of a sentence; "" if there is none. An annotation
        may name one in another namespace, and a ManifestWorkReplicaSet may not."""
        found = self._suggestions.get((missing, in_annotation))
        if found is None:
            found = self._suggestions[missing, in_annotation] = self._find(missing, in_annotation)
        return found

    def _find(self, missing: Key, in_annotation: bool) -> str:
        own = self._names.get(missing.namespace, [])
        if near := find_near(missing.name, own):
            return f"; did you mean {near}?"
        others = [namespace for namespace, names in self._names.items() if missing.name in names]
        if others:
            namespace = find_near(missing.namespace, others) or others[0]
            return (
                f"; did you mean {namespace}/{missing.name}?" if in_annotation else f"; there is one in the namespace {namespace}"
            )
        if own:
            return f"; its namespace has {list_values(own)}"
        return f"; there are Placements in the namespaces {list_values(self._names)}" if self._names else ""


NO_PLACEMENTS = PlacementNames(())
