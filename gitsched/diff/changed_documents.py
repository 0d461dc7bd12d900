"""Changed documents by what they are to a workload, and in units that are taken back as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gitsched.apis.topology import list_cluster_kinds
from gitsched.decide.registry import reserved_groups
from gitsched.diff.cause_search import Changes
from gitsched.diff.document_changes import TIME, Change, DocumentChange, DocumentChanges
from gitsched.model.document import Key

MAX_UNITS = 50
"""The number of units of one level; those of documents of policy APIs beyond it are combined."""
MAX_POLICIES = 5
"""The number of documents of one namespace that may be the policy of a workload whose policy is unknown."""


class ChangedDocuments:
    """`clusters` are the changed documents of clusters by the name of the cluster."""

    def __init__(self, changes: DocumentChanges) -> None:
        self._changes = changes
        self._names: dict[str, Key] = {}
        self._by_namespace: dict[str, list[Key]] = {}
        self.clusters: dict[str, list[Key]] = {}
        kinds = list_cluster_kinds()
        for key in changes.by_key:
            if key[:2] in kinds:
                self.clusters.setdefault(f"{key.namespace}.{key.name}" if key.namespace else key.name, []).append(key)
            elif key.group in reserved_groups:
                self._names |= {key.title: key, str(key): key}
                self._by_namespace.setdefault(key.namespace, []).append(key)

    def list_near(self, own: Key, policies: Sequence[str], clusters: Iterable[str]) -> list[Key]:
        """Return the changed ones among a document, policies by their names, and clusters, in this order.

        Without a name of a policy, the documents of policy APIs in the same namespace and in none are in the place of policies.
        """
        found = [own] if own in self._changes.by_key else []
        found += [self._names[name] for name in policies if name in self._names]
        if not any(policies):
            found += [key for name in (own.namespace, "") for key in self._by_namespace.get(name, ())[:MAX_POLICIES]]
        found += [key for name in clusters for key in self.clusters.get(name, ())]
        return list(dict.fromkeys(found))

    def list_levels(self) -> list[list[Changes]]:
        """Return units of changes, from small to large ones: documents, the same change of documents, the same fields of documents."""
        by_key = self._changes.by_key
        levels = [self._list_units(how) for how in (_identify, _describe, _list_fields)]
        return (
            [[frozenset(document.changes) for document in by_key.values()] + self._list_others(), *levels]
            if len(by_key) <= MAX_UNITS
            else levels
        )

    def _list_units(self, identify: Callable[[DocumentChange], object]) -> list[Changes]:
        """Return a unit for the documents of policy APIs with one identity each, and one at the end for all other documents."""
        units: dict[object, set[Change]] = {}
        others: set[Change] = set()
        for key, document in self._changes.by_key.items():
            target = units.setdefault(identify(document), set()) if key.group in reserved_groups else others
            target.update(document.changes)
        ordered = sorted(units.values(), key=lambda unit: (-len(unit), min(unit)))
        rest = [change for unit in ordered[MAX_UNITS:] for change in unit]
        return [frozenset(unit) for unit in (*ordered[:MAX_UNITS], rest, *self._list_others(), others) if unit]

    def _list_others(self) -> list[Changes]:
        """Return a unit for each change besides documents."""
        found = [frozenset({Change(key)}) for key in self._changes.others]
        return [*found, frozenset({Change(TIME)})] if self._changes.time_differs else found


def _identify(document: DocumentChange) -> object:
    return document.key


def _describe(document: DocumentChange) -> object:
    """Return what documents with the same change have in common."""
    return (document.key[:2], document.text, *(difference.text for difference in document.differences))


def _list_fields(document: DocumentChange) -> object:
    """Return what documents with changes of the same fields have in common."""
    return (document.key[:2], document.text, *(difference.pointer for difference in document.differences))
