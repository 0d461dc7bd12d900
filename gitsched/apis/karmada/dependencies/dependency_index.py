"""Which objects of a commit the workloads with propagateDeps refer to, directly or through other objects, and which workloads refer to
an object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from gitsched.apis.karmada.binding.resource_binding import binding_key
from gitsched.apis.karmada.dependencies.references import DependentObjectReference, find_written_secret_key
from gitsched.model.document import Document, Key
from gitsched.named_tuples import NamedTuple

MAX_REACHED = 10_000
"""The number of objects that one workload can bring along."""


class ReferenceReader(Protocol):
    """Reads the references of objects, and whether a workload brings along what it refers to."""

    def read_references(self, template: Document, /) -> tuple[DependentObjectReference, ...]: ...

    def propagates(self, template: Document, /) -> bool: ...


class Reach(NamedTuple):
    """What a workload refers to: the references, and the objects that they lead to.

    Both are complete, unless there are more than the limit (`is_cut`): a HelmRelease reaches the Secret of its HelmRepository, and the
    SealedSecret that makes this Secret.
    """

    references: frozenset[DependentObjectReference]
    objects: frozenset[Key]
    is_cut: bool = False


class DependencyIndex:
    """References of workloads, and the workloads that refer to an object.

    The index is updated by workload, so the cost of an update is proportional to the change. `revision` counts the workloads whose
    references have changed. `references` are the direct ones, as Karmada records them.
    """

    __slots__ = ("_by_labels", "_dependents", "_reach", "_users", "_writers", "references", "revision")

    def __init__(self, templates: Mapping[Key, Document], reader: ReferenceReader) -> None:
        self.revision = 0
        self.references: dict[Key, tuple[DependentObjectReference, ...]] = {}
        self._dependents: dict[Key | DependentObjectReference, set[Key]] = {}
        self._by_labels: dict[tuple[str, str], set[DependentObjectReference]] = {}
        self._reach: dict[Key, Reach] = {}
        self._users: dict[Key, set[Key]] = {}
        self._writers: dict[Key, set[Key]] = {}
        for template in templates.values():
            secret = find_written_secret_key(template)
            if secret is not None:
                self._writers.setdefault(secret, set()).add(template.key)
        for template in templates.values():
            self._add(template, templates, reader)

    def list_dependents(self, template: Document) -> list[Key]:
        """Return the workloads that refer to an object, in the order of their bindings.

        Of objects that refer to each other none is a dependent of the other one: there would be no order in which to decide them.
        """
        if not self._dependents:
            return []
        key, found = template.key, self._list_referring(template)
        reach = self._reach.get(key)
        return sorted(found - reach.objects - {key} if reach is not None else found, key=binding_key)

    def list_related(self) -> Iterator[Key]:
        """Yield the workloads that refer to others, the objects that they reach, and those whose controllers write Secrets."""
        yield from self.references
        yield from self._users
        yield from (key for writers in self._writers.values() for key in writers)

    def may_have_dependents(self, key: Key) -> bool:
        """Return whether a workload may refer to an object: more often than one does."""
        written = any(key in writers for writers in self._writers.values())
        return written or key in self._dependents or bool(self._by_labels.get((key.namespace, key.kind)))

    def _list_referring(self, template: Document) -> set[Key]:
        """Return the workloads that refer to an object, or to the Secret that its controller writes."""
        key = template.key
        found = set(self._dependents.get(key, ()))
        secret = find_written_secret_key(template) if self._writers else None
        if secret is not None:
            found |= self._dependents.get(secret, set())
        for reference in self._by_labels.get((key.namespace, key.kind), ()):
            if reference.matches(template):
                found |= self._dependents[reference]
        return found

    def is_cut(self, key: Key) -> bool:
        """Return whether a workload refers to more objects than are followed."""
        reach = self._reach.get(key)
        return reach is not None and reach.is_cut

    def update(self, changed: Iterable[Key], templates: Mapping[Key, Document], reader: ReferenceReader) -> set[Key]:
        """Read the references of changed objects again. Returns every object that a workload with such a reference referred to before or
        refers to now."""
        workloads = set(changed)
        users: set[Key] = set()
        for key in workloads:
            users |= self._users.get(key, set())
            if key not in self._users and key in templates:  # an object that came: what refers to it reaches what it refers to
                users.update(self._list_referring(templates[key]))
            for secret in self._update_writer(key, templates.get(key)):
                users |= self._dependents.get(secret, set())
        touched: set[Key] = set()
        for key in workloads | users:
            before, direct = self._reach.get(key), self.references.get(key)
            self._remove(key)
            if key in templates:
                self._add(templates[key], templates, reader)
            after = self._reach.get(key)
            is_same = (before, direct) == (after, self.references.get(key))
            self.revision += not is_same
            if key in workloads or not is_same:
                touched |= (before.objects if before else frozenset()) | (after.objects if after else frozenset())
        return touched & templates.keys()

    def _update_writer(self, key: Key, template: Document | None) -> set[Key]:
        """Read again which Secret the controller of an object writes. Returns the Secrets before and after if they differ."""
        secret = find_written_secret_key(template) if template is not None else None
        before = {written for written, writers in self._writers.items() if key in writers}
        after = {secret} if secret is not None else set()
        for written in before - after:
            self._writers[written].discard(key)
        for written in after - before:
            self._writers.setdefault(written, set()).add(key)
        return before ^ after

    def _add(self, template: Document, templates: Mapping[Key, Document], reader: ReferenceReader) -> None:
        direct = reader.read_references(template)
        if not direct or not reader.propagates(template):
            return
        workload, reach = template.key, self._find_reach(direct, templates, reader)
        self.references[workload], self._reach[workload] = direct, reach
        for reference in reach.references:
            self._dependents.setdefault(reference.key if reference.name else reference, set()).add(workload)
            if not reference.name:
                self._by_labels.setdefault((reference.namespace, reference.kind), set()).add(reference)
        for key in reach.objects:
            self._users.setdefault(key, set()).add(workload)

    def list_reached(
        self, direct: tuple[DependentObjectReference, ...], templates: Mapping[Key, Document], reader: ReferenceReader
    ) -> frozenset[Key] | None:
        """Return the objects that references lead to; None if some of them are by labels, or if there are too many."""
        reach = self._find_reach(direct, templates, reader)
        return None if reach.is_cut or not all(reference.name for reference in reach.references) else reach.objects

    def _find_reach(
        self, direct: tuple[DependentObjectReference, ...], templates: Mapping[Key, Document], reader: ReferenceReader
    ) -> Reach:
        references, objects = set(direct), set[Key]()
        pending = list(direct)
        while pending and len(objects) < MAX_REACHED:
            for key in self._list_objects(pending.pop(), templates):
                if key not in objects:
                    objects.add(key)
                    new = [found for found in reader.read_references(templates[key]) if found not in references]
                    references.update(new)
                    pending += new
        return Reach(frozenset(references), frozenset(objects), is_cut=bool(pending))

    def _list_objects(self, reference: DependentObjectReference, templates: Mapping[Key, Document]) -> Iterator[Key]:
        """Yield the objects of the commit that a reference is to, and those whose controllers write the Secret that it is to."""
        if reference.name:
            key = reference.key
            if key in templates:
                yield key
            yield from self._writers.get(key, ())
        else:
            yield from (
                key for key, template in templates.items() if key.namespace == reference.namespace and reference.matches(template)
            )

    def _remove(self, workload: Key) -> None:
        self.references.pop(workload, None)
        reach = self._reach.pop(workload, None)
        for reference in reach.references if reach else ():
            target = reference.key if reference.name else reference
            dependents = self._dependents[target]
            dependents.discard(workload)
            if not dependents:
                del self._dependents[target]
                self._by_labels.get((reference.namespace, reference.kind), set()).discard(reference)
        for key in reach.objects if reach else ():
            self._users[key].discard(workload)
