"""Index of workloads with propagateDeps and the objects they refer to.

The relation is read from the templates alone, before anything is decided: what is needed asks for the bindings of those that need it,
and so owners come first although outcomes go by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from gitsched.apis.karmada import names
from gitsched.apis.karmada.interpreter import DEPENDENCY_KINDS, DependentObjectReference
from gitsched.model.document import Body, Document, Key, get_field, list_objects, parse_api_group


class ReferenceReader(Protocol):
    """Who reads what a workload needs."""

    def read_references(self, template: Document, /) -> tuple[DependentObjectReference, ...]:
        """What a workload needs; nothing for what is no owner."""
        ...


class DependencyIndex:
    """What each owner refers to, and the way back. Learns one workload at a time, so that a change costs what changed; `learned` counts
    the owners that turned out to refer to something else than before."""

    __slots__ = ("_by_labels", "_dependents", "_reader", "references", "revision")

    def __init__(self, templates: Iterable[Document], reader: ReferenceReader) -> None:
        self._reader, self.revision = reader, 0
        self.references: dict[Key, tuple[DependentObjectReference, ...]] = {}
        self._dependents: dict[DependentObjectReference, set[Key]] = {}
        self._by_labels: dict[tuple[str, str], set[DependentObjectReference]] = {}
        for template in templates:
            self._add(template.key, reader.read_references(template))

    def list_dependents(self, template: Document) -> list[Key]:
        """The workloads that refer to an object, in the order of their bindings."""
        if not self._dependents or (template.api_version, template.key.kind) not in DEPENDENCY_KINDS:
            return []
        key = template.key
        found = set(self._dependents.get(DependentObjectReference(template.api_version, key.kind, key.namespace, key.name), ()))
        for reference in self._by_labels.get((key.namespace, key.kind), ()):
            if reference.matches(template):
                found |= self._dependents[reference]
        return sorted(found, key=names.binding_key)

    def update(self, changed: Iterable[Key], templates: Mapping[Key, Document]) -> set[Key]:
        """Read changed workloads anew. Gives everything that any of them needed before or needs now."""
        touched: set[DependentObjectReference] = set()
        for key in changed:
            before = self.references.get(key, ())
            after = self._reader.read_references(templates[key]) if key in templates else ()
            touched.update(before, after)
            if before != after:
                self.revision += 1
                self._remove(key)
                self._add(key, after)
        return {key for reference in touched for key in _list_targets(reference, templates)}

    def _add(self, owner: Key, references: tuple[DependentObjectReference, ...]) -> None:
        if references:
            self.references[owner] = references
        for reference in references:
            self._dependents.setdefault(reference, set()).add(owner)
            if not reference.name:
                self._by_labels.setdefault((reference.namespace, reference.kind), set()).add(reference)

    def _remove(self, owner: Key) -> None:
        for reference in self.references.pop(owner, ()):
            owners = self._dependents[reference]
            owners.discard(owner)
            if not owners:
                del self._dependents[reference]
                self._by_labels.get((reference.namespace, reference.kind), set()).discard(reference)


def _list_targets(reference: DependentObjectReference, templates: Mapping[Key, Document]) -> Iterator[Key]:
    if reference.name:
        template = templates.get(reference.key)
        found = [template] if template is not None else []
    else:
        found = [template for key, template in templates.items() if key.namespace == reference.namespace]
    return (template.key for template in found if reference.matches(template))


class Dependent(NamedTuple):
    """A workload that brings others along, with its binding as it is now."""

    key: Key
    binding: Key
    body: Body


def list_quarantined_dependents(previous: Body | None, bindings: Mapping[Key, Body], broken: frozenset[Key]) -> Iterator[Dependent]:
    """Those that needed an object in the last run and whose document cannot be read now: their binding is kept, and so is their need."""
    for entry in list_objects(get_field(previous or {}, "spec", "requiredBy")) if broken else ():
        binding = Key(names.WORK_GROUP, names.BINDING, str(entry.get("namespace") or ""), str(entry.get("name")))
        body = bindings.get(binding)
        resource = get_field(body or {}, "spec", "resource")
        if body is None or not isinstance(resource, dict):
            continue
        group, kind = parse_api_group(str(resource.get("apiVersion"))), str(resource.get("kind"))
        key = Key(group, kind, str(resource.get("namespace") or ""), str(resource.get("name")))
        if key in broken:
            yield Dependent(key, binding, body)
