"""Index companions and their targets: who selects or names whom, by label and by name instead of by comparing each with each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

from gitsched.kinds.companion_targets import POD, SERVICE, CompanionFeatures, Labels, Selection, is_positive
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.document import Key
    from gitsched.model.labels import Requirement

MAX_TARGETS = 500
"""Targets of one selector. One that may select more objects is for the whole namespace, and has no targets."""

E = TypeVar("E")
Term = tuple[str, str, str | None]
"""The kind of what a selector selects, a label, and its value; None for any value."""


class _Entry(NamedTuple):
    key: Key
    features: CompanionFeatures


class CompanionIndex(Generic[E]):
    """Companions and targets. An entry is what identifies an object for the caller, such as its key."""

    __slots__ = ("_by_key", "_by_label", "_entries", "_naming", "_selecting")

    def __init__(self) -> None:
        self._entries: dict[E, _Entry] = {}
        self._by_key: dict[Key, dict[E, None]] = {}
        self._by_label: dict[Term, dict[str, dict[E, None]]] = {}
        self._naming: dict[Key, dict[E, None]] = {}
        self._selecting: dict[tuple[str, ...], dict[tuple[str | None, ...], dict[E, None]]] = {}

    def add(self, entry: E, key: Key, features: CompanionFeatures) -> None:
        """Add an object, or replace its features."""
        self.remove(entry)
        self._entries[entry] = _Entry(key, features)
        self._by_key.setdefault(key, {})[entry] = None
        for term in _list_terms(features):
            self._by_label.setdefault(term, {}).setdefault(key.namespace, {})[entry] = None
        for name in features.names:
            self._naming.setdefault(name, {})[entry] = None
        for values, keys in _list_anchors(features.selection):
            self._selecting.setdefault(keys, {}).setdefault(values, {})[entry] = None

    def remove(self, entry: E) -> None:
        """Remove an object if it is there."""
        known = self._entries.pop(entry, None)
        if known is None:
            return
        key, features = known
        self._by_key[key].pop(entry, None)
        for term in _list_terms(features):
            self._by_label[term][key.namespace].pop(entry, None)
        for name in features.names:
            self._naming[name].pop(entry, None)
        for values, keys in _list_anchors(features.selection):
            self._selecting[keys][values].pop(entry, None)

    def find_features(self, entry: E) -> CompanionFeatures | None:
        """Return the features of an entry; None if there is none."""
        known = self._entries.get(entry)
        return known.features if known is not None else None

    def list_entries(self) -> list[E]:
        """Return all entries."""
        return list(self._entries)

    def list_companions(self) -> Iterator[E]:
        """Yield every companion, in the order in which they were added."""
        return (entry for entry, (_, features) in self._entries.items() if features.is_companion)

    def list_targets(self, companion: E) -> list[E]:
        """Return the direct targets of a companion."""
        features = self._entries[companion].features
        named = (entry for name in features.names for entry in self._by_key.get(name, ()))
        found = dict.fromkeys(named)
        if features.selection is not None:
            found |= dict.fromkeys(self._select(features.selection))
        found.pop(companion, None)
        return list(found)

    def list_selected(self, selection: Selection) -> list[E]:
        """Return what a selector selects; nothing if that may be more than MAX_TARGETS."""
        return self._select(selection)

    def is_selection_large(self, selection: Selection) -> bool:
        """Return whether a selector may select more than MAX_TARGETS objects, so that it counts as one of the whole namespace."""
        groups = [self._list_candidates(selection, one) for one in selection.selector.requirements if is_positive(one)]
        return not groups or min(map(_count, groups)) > MAX_TARGETS

    def list_workloads(self, companion: E) -> list[E]:
        """Return the objects at the end of a chain of targets: those behind the Services of an Ingress."""
        found: dict[E, None] = {}
        pending, seen = [companion], {companion}
        while pending:
            for target in self.list_targets(pending.pop()):
                if target in seen:
                    continue
                seen.add(target)
                features = self._entries[target].features
                if features.is_companion:
                    pending.append(target)
                elif features.is_workload:
                    found[target] = None
        return list(found)

    def list_related(self, entries: Iterable[E]) -> set[E]:
        """Return all companions of objects, and the companions of these."""
        pending, found = list(entries), set[E]()
        while pending:
            new = [one for one in self._list_direct_companions(pending.pop()) if one not in found]
            found.update(new)
            pending += new
        return found

    def _list_direct_companions(self, target: E) -> Iterator[E]:
        known = self._entries.get(target)
        if known is None:
            return
        yield from self._naming.get(known.key, ())
        for kind, labels in ((POD, dict(known.features.pod_labels)), (SERVICE, dict(known.features.labels))):
            for (selected, *names), by_values in self._selecting.items() if labels else ():
                if selected != kind or not all(name in labels for name in names):
                    continue
                values = tuple(labels[name] for name in names)
                for companion in dict.fromkeys((*by_values.get(values, ()), *by_values.get((None,), ()))):
                    selection = self._entries[companion].features.selection
                    if companion != target and selection is not None and target in self._select(selection):
                        yield companion

    def _select(self, selection: Selection) -> list[E]:
        """Return what a selector selects; nothing if that may be more than MAX_TARGETS."""
        requirements = selection.selector.requirements
        groups = sorted((self._list_candidates(selection, one) for one in requirements if is_positive(one)), key=_count)
        if not groups or _count(groups[0]) > MAX_TARGETS:
            return []
        found = [entry for group in groups[0] for entry in group]
        for others in groups[1:]:
            found = [entry for entry in found if any(entry in group for group in others)]
        if len(groups) < len(requirements):
            labels = (dict(_get_labels(self._entries[entry].features, selection.kind)) for entry in found)
            found = [entry for entry, own in zip(found, labels, strict=True) if selection.selector.matches(own)]
        return found

    def _list_candidates(self, selection: Selection, requirement: Requirement) -> list[dict[E, None]]:
        values = requirement.values if requirement.operator == "In" else (None,)
        by_namespace = [self._by_label.get((selection.kind, requirement.key, value), {}) for value in values]
        if selection.namespaces is None:
            return [entries for groups in by_namespace for entries in groups.values()]
        return [groups[name] for groups in by_namespace for name in selection.namespaces if name in groups]


def _count(groups: list[dict[E, None]]) -> int:
    return sum(map(len, groups))


def _get_labels(features: CompanionFeatures, kind: str) -> Labels:
    return features.pod_labels if kind == POD else features.labels


def _list_terms(features: CompanionFeatures) -> Iterator[Term]:
    """Yield the terms by which an object can be selected."""
    for kind, labels in ((POD, features.pod_labels), (SERVICE, features.labels)):
        for name, value in labels:
            yield kind, name, value
            yield kind, name, None


def _list_anchors(selection: Selection | None) -> Iterator[tuple[tuple[str | None, ...], tuple[str, ...]]]:
    """Yield values and labels by which a selector is found: what it selects has one of the values, or any for None.

    Labels with one value are looked up together, since one of them alone may be common to all objects of a namespace.
    """
    if selection is None:
        return
    requirements = [requirement for requirement in selection.selector.requirements if is_positive(requirement)]
    exact = [requirement for requirement in requirements if len(requirement.values) == 1]
    if exact:
        yield tuple(requirement.values[0] for requirement in exact), (selection.kind, *(requirement.key for requirement in exact))
    else:
        values: tuple[str | None, ...] = requirements[0].values or (None,)
        yield from (((value,), (selection.kind, requirements[0].key)) for value in values)
