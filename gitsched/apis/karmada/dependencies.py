"""Who needs whom: the workloads under `propagateDeps`, and what they refer to (spec/karmada.md §2).

The relation is read from the templates alone, before anything is decided: what is needed asks for the bindings of those that need it,
and so owners come first although outcomes go by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from gitsched.apis.karmada import names
from gitsched.apis.karmada.references import NEEDED_KINDS, Reference
from gitsched.model.document import Body, Document, Key, group_of, list_objects, member


class Reader(Protocol):
    """Who reads what a workload needs."""

    def read(self, template: Document, /) -> tuple[Reference, ...]:
        """What a workload needs; nothing for what is no owner."""
        ...


class Dependencies:
    """What each owner refers to, and the way back. Learns one workload at a time, so that a change costs what changed; `learned` counts
    the owners that turned out to refer to something else than before."""

    __slots__ = ("_owners", "_reader", "_wide", "learned", "references")

    def __init__(self, templates: Iterable[Document], reader: Reader) -> None:
        self._reader, self.learned = reader, 0
        self.references: dict[Key, tuple[Reference, ...]] = {}
        self._owners: dict[Reference, set[Key]] = {}
        self._wide: dict[tuple[str, str], set[Reference]] = {}
        for template in templates:
            self._learn(template.key, reader.read(template))

    def owners(self, template: Document) -> list[Key]:
        """The workloads that refer to an object, in the order of their bindings."""
        if not self._owners or (template.api_version, template.key.kind) not in NEEDED_KINDS:
            return []
        key = template.key
        found = set(self._owners.get(Reference(template.api_version, key.kind, key.namespace, key.name), ()))
        for reference in self._wide.get((key.namespace, key.kind), ()):
            if reference.names(template):
                found |= self._owners[reference]
        return sorted(found, key=names.binding_key)

    def relearn(self, changed: Iterable[Key], templates: Mapping[Key, Document]) -> set[Key]:
        """Read changed workloads anew. Gives everything that any of them needed before or needs now."""
        touched: set[Reference] = set()
        for key in changed:
            before = self.references.get(key, ())
            after = self._reader.read(templates[key]) if key in templates else ()
            touched.update(before, after)
            if before != after:
                self.learned += 1
                self._forget(key)
                self._learn(key, after)
        return {key for reference in touched for key in _targets(reference, templates)}

    def _learn(self, owner: Key, references: tuple[Reference, ...]) -> None:
        if references:
            self.references[owner] = references
        for reference in references:
            self._owners.setdefault(reference, set()).add(owner)
            if not reference.name:
                self._wide.setdefault((reference.namespace, reference.kind), set()).add(reference)

    def _forget(self, owner: Key) -> None:
        for reference in self.references.pop(owner, ()):
            owners = self._owners[reference]
            owners.discard(owner)
            if not owners:
                del self._owners[reference]
                self._wide.get((reference.namespace, reference.kind), set()).discard(reference)


def _targets(reference: Reference, templates: Mapping[Key, Document]) -> Iterator[Key]:
    if reference.name:
        template = templates.get(reference.key)
        found = [template] if template is not None else []
    else:
        found = [template for key, template in templates.items() if key.namespace == reference.namespace]
    return (template.key for template in found if reference.names(template))


class Owner(NamedTuple):
    """A workload that brings others along, with its binding as it is now."""

    key: Key
    binding: Key
    body: Body


def quarantined_owners(previous: Body | None, bindings: Mapping[Key, Body], broken: frozenset[Key]) -> Iterator[Owner]:
    """Those that needed an object in the last run and whose document cannot be read now: their binding is kept, and so is their need."""
    for entry in list_objects(member(previous or {}, "spec", "requiredBy")) if broken else ():
        binding = Key(names.WORK_GROUP, names.BINDING, str(entry.get("namespace") or ""), str(entry.get("name")))
        body = bindings.get(binding)
        resource = member(body or {}, "spec", "resource")
        if body is None or not isinstance(resource, dict):
            continue
        group, kind = group_of(str(resource.get("apiVersion"))), str(resource.get("kind"))
        key = Key(group, kind, str(resource.get("namespace") or ""), str(resource.get("name")))
        if key in broken:
            yield Owner(key, binding, body)
