"""What the engines of a source with tenants see when they continue: the documents of each owner, read on demand."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import cached_property
from typing import cast

from gitsched.apis.capabilities import DocumentPair, SnapshotChanges
from gitsched.apis.gitsched.tenancy import PLATFORM, Tenancy, TenantPaths
from gitsched.apis.policy_api import GroupKind
from gitsched.decide.tenants.tenant_views import TenantClusters, TenantViews
from gitsched.model.document import Document, Key
from gitsched.model.placement_groups import PlacementGroups
from gitsched.model.template_index import TemplateEntry, TemplateIndex
from gitsched.model.tenants import TENANT_KIND


class SourceOwners(Mapping[Key, str]):
    """The owner of each object of a source in which nothing but its path decides whose a document is, read on demand.

    `index` has the templates of the last plan, `documents` those of policy APIs now, and `changes` both before and after their change.
    """

    def __init__(
        self,
        paths: TenantPaths,
        index: TemplateIndex,
        documents: Mapping[GroupKind, tuple[Document, ...]],
        changes: Mapping[Key, DocumentPair],
    ) -> None:
        self._paths, self._index, self._documents, self._changes = paths, index, documents, changes
        self._by_kind: dict[GroupKind, dict[Key, str]] = {}
        self._found: dict[Key, str] = {}

    def __getitem__(self, key: Key) -> str:
        owner = self._found.get(key)
        if owner is None:
            owner = self._found[key] = self._find(key)
        return owner

    def _find(self, key: Key) -> str:
        if key in self._changes:
            before, after = self._changes[key]
            document = after or before
            return find_document_owner(self._paths, document) if document is not None else PLATFORM
        if key in self._index:
            return self._paths.find_owner(self._index[key].path)
        return self._list_owners(key[:2])[key]

    def _list_owners(self, kind: GroupKind) -> dict[Key, str]:
        """Return the owners of the documents of a kind of a policy API."""
        if kind not in self._by_kind:
            found = self._documents.get(kind, ())
            self._by_kind[kind] = {document.key: find_document_owner(self._paths, document) for document in found}
        return self._by_kind[kind]

    def __iter__(self) -> Iterator[Key]:
        yield from self._index
        yield from (document.key for kind in self._documents for document in self._documents[kind])

    def __len__(self) -> int:
        return sum(1 for _ in self)


def find_document_owner(paths: TenantPaths, document: Document) -> str:
    """Return the name of the Tenant whose path has a document; "" for the platform."""
    return paths.find_owner(document.origin.path) if document.origin is not None else PLATFORM


def list_former_documents(
    kinds: Iterable[GroupKind], documents: Mapping[GroupKind, tuple[Document, ...]], changed: Mapping[Key, DocumentPair]
) -> dict[GroupKind, tuple[Document, ...]]:
    """Return the documents of some kinds before the changes."""
    former: dict[GroupKind, tuple[Document, ...]] = {}
    for kind in kinds:
        kept = (document for document in documents.get(kind, ()) if document.key not in changed)
        replaced = (before for key, (before, _) in changed.items() if key[:2] == kind and before is not None)
        former[kind] = (*kept, *replaced)
    return former


class ContinuedViews(TenantViews):
    """The snapshots of the owners of a source. No document is read before an engine asks for it."""

    @cached_property
    def _others(self) -> Container[Key]:
        return _Others(self._snapshot.templates, self._tenancy)

    def _select_documents(self, owner: str) -> Mapping[GroupKind, tuple[Document, ...]]:
        return _SeenDocuments(self._snapshot.documents, lambda document: self.is_seen(owner, document))

    def _select_templates(self, owner: str) -> Mapping[Key, Document]:
        return _OwnTemplates(self._snapshot.templates, lambda key: self.is_own(owner, key))


class OwnedEntries:
    """The entries of a template index by the owners of the templates, divided when one is read."""

    def __init__(self, index: TemplateIndex, paths: TenantPaths) -> None:
        self.index, self.paths = index, paths
        self._groups: dict[str, PlacementGroups] = {}

    @cached_property
    def _entries(self) -> Mapping[str, Mapping[Key, TemplateEntry]]:
        found: dict[str, dict[Key, TemplateEntry]] = {}
        for key, entry in self.index.items():
            found.setdefault(self.paths.find_owner(entry.path), {})[key] = entry
        return found

    @cached_property
    def _cluster_scoped(self) -> Mapping[Key, TemplateEntry]:
        """The entries of the cluster-scoped templates of the platform."""
        return {key: entry for key, entry in self._entries.get(PLATFORM, {}).items() if not key.namespace}

    def select(self, owner: str) -> Mapping[Key, TemplateEntry]:
        """Return the entries of the templates that count for the workloads of an owner."""
        own = self._entries.get(owner, {})
        return own if owner == PLATFORM else {**self._cluster_scoped, **own}

    def group(self, owner: str) -> PlacementGroups:
        """Return the workloads of these entries by what their placements have in common, always the same object."""
        if owner not in self._groups:
            self._groups[owner] = PlacementGroups(self.select(owner))
        return self._groups[owner]


class DividedChanges:
    """Changes of a snapshot, by owner."""

    def __init__(self, views: TenantViews, changes: SnapshotChanges, tenancy: Tenancy, entries: OwnedEntries) -> None:
        """`entries` are those of the template index of the changes."""
        self._views, self._changes, self._tenancy, self._entries = views, changes, tenancy, entries

    @cached_property
    def _clusters_before(self) -> TenantClusters:
        """The clusters before the changes."""
        before = list_former_documents(self._views.cluster_kinds, self._views.documents, self._changes.api_documents)
        return TenantClusters(before, self._changes.former_tenancy or self._tenancy)

    @cached_property
    def _views_before(self) -> TenantViews:
        """What the owners saw before the changes."""
        former = self._changes.former_tenancy
        return self._views if former is None else _FormerViews(self._views, former, self._clusters_before)

    @property
    def concern_others(self) -> bool:
        """Whether an owner may use other clusters now, in whose namespaces there are documents: it sees others of these, too."""
        kinds, before, after = self._views.cluster_kinds, self._clusters_before, self._views.clusters
        known = before.platform.keys() | after.platform.keys()
        if self._changes.former_tenancy is not None:
            changed = set(known)
        elif any(key[:2] in kinds for key in self._changes.api_documents):
            changed = {name for name in known if before.platform.get(name) != after.platform.get(name)}
        else:
            return False
        owners = self._tenancy.paths.list_owners()
        names = {name for name in changed if any(before.may_go_to(one, name) != after.may_go_to(one, name) for one in owners)}
        listed = self._views.documents.items() if names else ()
        present = (document.key for kind, found in listed if kind not in kinds for document in found)
        return any(key.namespace in names for key in (*self._changes.api_documents, *present))

    def select(self, owner: str) -> SnapshotChanges:
        """Return the changes that count for the workloads of an owner."""
        changes, views, entries = self._changes, self._views, self._entries
        changed = {key: pair for key, pair in changes.api_documents.items() if key[:2] != TENANT_KIND}
        if changes.former_tenancy is not None and self._has_other_rules(owner):
            listed = ((one.key, (one, one)) for found in views.documents.values() for one in found if one.key[:2] != TENANT_KIND)
            changed = {**dict(listed), **changed}
        seen = ((key, self._see(owner, before, is_old=True), self._see(owner, after)) for key, (before, after) in changed.items())
        pairs = [(key, (before, after)) for key, before, after in seen if before is not after]
        return changes._replace(
            api_documents=dict(pairs),
            templates={key: pair for key, pair in changes.templates.items() if views.is_own(owner, key)},
            template_index=_OwnEntries(lambda: entries.select(owner)),
            groups=entries.group(owner) if changes.groups is not None else None,
        )

    def _see(self, owner: str, document: Document | None, *, is_old: bool = False) -> Document | None:
        """Return a document of a policy API if an owner sees it."""
        if document is None:
            return None
        views = self._views_before if is_old else self._views
        if is_old and owner != PLATFORM and document.key[:2] in views.cluster_kinds:
            return document if self._clusters_before.may_use(owner, document) else None
        return document if views.is_seen(owner, document) else None

    def _has_other_rules(self, owner: str) -> bool:
        """Return whether the rules of an owner differ."""
        former = self._changes.former_tenancy
        return former is not None and former.list_rules(owner) != self._tenancy.list_rules(owner)


class _FormerViews(TenantViews):
    """Which documents each owner saw before a change, with the clusters of that time."""

    def __init__(self, views: TenantViews, tenancy: Tenancy, clusters: TenantClusters) -> None:
        super().__init__(views._snapshot, tenancy)
        self._former_clusters = clusters

    @property
    def clusters(self) -> TenantClusters:
        return self._former_clusters


class _SeenDocuments(Mapping[GroupKind, tuple[Document, ...]]):
    """Documents of policy APIs by kind without those that an owner does not see; kinds without any are left out."""

    def __init__(self, documents: Mapping[GroupKind, tuple[Document, ...]], is_seen: Callable[[Document], bool]) -> None:
        self._documents, self._is_seen = documents, is_seen
        self._found: dict[GroupKind, tuple[Document, ...]] = {}

    def __getitem__(self, kind: GroupKind) -> tuple[Document, ...]:
        found = self._select(kind)
        if not found:
            raise KeyError(kind)
        return found

    def _select(self, kind: GroupKind) -> tuple[Document, ...]:
        if kind not in self._found:
            self._found[kind] = tuple(filter(self._is_seen, self._documents.get(kind, ())))
        return self._found[kind]

    def __iter__(self) -> Iterator[GroupKind]:
        return (kind for kind in self._documents if self._select(kind))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _OwnTemplates(Mapping[Key, Document]):
    """The templates that count for an owner."""

    def __init__(self, templates: Mapping[Key, Document], is_own: Callable[[Key], bool]) -> None:
        self._templates, self._is_own = templates, is_own

    def __getitem__(self, key: Key) -> Document:
        if key not in self:
            raise KeyError(key)
        return self._templates[key]

    def __contains__(self, key: object) -> bool:
        return key in self._templates and self._is_own(cast("Key", key))

    def __iter__(self) -> Iterator[Key]:
        return filter(self._is_own, self._templates)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _OwnEntries(Mapping[Key, TemplateEntry]):
    """The entries of the index that count for an owner, selected when one is read."""

    def __init__(self, select: Callable[[], Mapping[Key, TemplateEntry]]) -> None:
        self._select = select

    @cached_property
    def _entries(self) -> Mapping[Key, TemplateEntry]:
        return self._select()

    def __getitem__(self, key: Key) -> TemplateEntry:
        return self._entries[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class _Others(Container[Key]):
    """The workloads of tenants."""

    def __init__(self, templates: Mapping[Key, Document], tenancy: Tenancy) -> None:
        self._templates, self._tenancy = templates, tenancy

    def __contains__(self, key: object) -> bool:
        return key in self._templates and self._tenancy.find_owner(cast("Key", key)) != PLATFORM
