"""What the policy engines see of a source with tenants: for each owner the documents that may have an effect on its workloads."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from functools import cached_property
from typing import TypeVar

from gitsched.apis.gitsched.bundle import ClusterMetadata
from gitsched.apis.gitsched.config import GROUP as CONFIG_GROUP
from gitsched.apis.gitsched.tenancy import PLATFORM, Tenancy
from gitsched.apis.gitsched.tenant import Tenant
from gitsched.apis.policy_api import GroupKind
from gitsched.apis.snapshot import Snapshot
from gitsched.apis.topology import CLUSTER, list_cluster_kinds
from gitsched.decide.cluster_metadata import list_cluster_metadata
from gitsched.decide.registry import policy_apis
from gitsched.model.document import Document, Key

V = TypeVar("V")


class TenantClusters:
    """The clusters of a source, and which of them each owner may use."""

    def __init__(self, documents: Mapping[GroupKind, tuple[Document, ...]], tenancy: Tenancy) -> None:
        self._tenancy = tenancy
        kinds = list_cluster_kinds()
        clusters = [document for kind in documents if kind in kinds for document in documents[kind]]
        platform = [document for document in clusters if tenancy.find_owner(document.key) == PLATFORM]
        self.platform: Mapping[str, ClusterMetadata] = {cluster.name: cluster for cluster in list_cluster_metadata(platform)}
        self._names = {document.key: read_cluster_name(document) for document in clusters}
        self._own = {
            (tenancy.find_owner(document.key), self._names[document.key])
            for document in clusters
            if self._names[document.key] not in self.platform
        }
        self._forbidding: dict[tuple[str, str], Tenant | None] = {}

    def find_forbidding(self, owner: str, name: str) -> Tenant | None:
        """Return the Tenant that keeps the objects of an owner from a cluster; None if they may be there."""
        if owner == PLATFORM or (owner, name) in self._own:
            return None
        if (owner, name) not in self._forbidding:
            cluster = self.platform.get(name) or ClusterMetadata(name)
            self._forbidding[owner, name] = self._tenancy.find_forbidding(owner, cluster)
        return self._forbidding[owner, name]

    def may_go_to(self, owner: str, name: str) -> bool:
        """Return whether the platform has a cluster, and the objects of an owner may be there."""
        return name in self.platform and self.find_forbidding(owner, name) is None

    def may_use(self, owner: str, document: Document) -> bool:
        """Return whether an owner may use a cluster, given its document."""
        name, holder = self._names.get(document.key, ""), self._tenancy.find_owner(document.key)
        if holder != PLATFORM:
            return holder == owner and (owner, name) in self._own
        return self.find_forbidding(owner, name) is None


def read_cluster_name(document: Document) -> str:
    """Return the name of a cluster on the output branch."""
    for api in policy_apis.values():
        topology = api.topology
        if topology is not None and topology.level == CLUSTER and (topology.group, topology.kind) == document.key[:2]:
            return topology.read_location(document).name
    return document.key.name


class TenantViews:
    """The snapshots of the owners of a source."""

    def __init__(self, snapshot: Snapshot, tenancy: Tenancy) -> None:
        self._snapshot, self._tenancy, self.cluster_kinds = snapshot, tenancy, list_cluster_kinds()
        self._views: dict[str, Snapshot] = {}

    @cached_property
    def _templates(self) -> Mapping[str, Mapping[Key, Document]]:
        """The templates by owner."""
        found: dict[str, dict[Key, Document]] = {}
        for key, document in self._snapshot.templates.items():
            found.setdefault(self._tenancy.find_owner(key), {})[key] = document
        return found

    @cached_property
    def _cluster_scoped(self) -> Mapping[Key, Document]:
        """The cluster-scoped templates of the platform."""
        return {key: document for key, document in self._templates.get(PLATFORM, {}).items() if not key.namespace}

    @cached_property
    def _input_order(self) -> Mapping[str, list[Key]]:
        """The order of the documents by owner."""
        return self._group(self._snapshot.input_order)

    @cached_property
    def _exceptions(self) -> tuple[Mapping[str, list[Key]], ...]:
        """Quarantined objects, objects and templates that are defined more than once, and those with variants, each by owner."""
        source = self._snapshot
        return tuple(
            self._group(keys)
            for keys in (sorted(source.quarantined), source.duplicates, source.duplicate_templates, source.variants)
        )

    def _group(self, keys: Iterable[Key]) -> dict[str, list[Key]]:
        """Return keys by the owner of their objects."""
        found: dict[str, list[Key]] = {}
        for key in keys:
            found.setdefault(self._tenancy.find_owner(key), []).append(key)
        return found

    @property
    def documents(self) -> Mapping[GroupKind, tuple[Document, ...]]:
        """The documents of policy APIs of all owners."""
        return self._snapshot.documents

    @cached_property
    def clusters(self) -> TenantClusters:
        """The clusters of the source."""
        return TenantClusters(self._snapshot.documents, self._tenancy)

    @cached_property
    def owners(self) -> tuple[str, ...]:
        """The platform and the tenants that define anything."""
        return (PLATFORM, *sorted(set(self._tenancy.owners.values())))

    def make_view(self, owner: str) -> Snapshot:
        """Return what counts for the workloads of an owner, always the same object."""
        if owner not in self._views:
            self._views[owner] = self._make_view(owner)
        return self._views[owner]

    def _make_view(self, owner: str) -> Snapshot:
        """Return what counts for the workloads of an owner: its own documents, and policies, clusters and cluster-scoped objects of the
        platform. A tenant sees only the clusters that its Tenant allows."""
        source, (quarantined, duplicates, duplicate_templates, variants) = self._snapshot, self._exceptions
        seen = dict.fromkeys((PLATFORM, owner))
        own_templates = [key for one in seen for key in duplicate_templates.get(one, ()) if self.is_own(owner, key)]
        return source._replace(
            documents=self._select_documents(owner),
            templates=self._select_templates(owner),
            quarantined=frozenset(key for one in seen for key in quarantined.get(one, ())),
            duplicates={key: source.duplicates[key] for one in seen for key in duplicates.get(one, ())},
            duplicate_templates={key: source.duplicate_templates[key] for key in own_templates},
            input_order=tuple(self._input_order.get(owner, ())),
            variants={key: source.variants[key] for key in variants.get(owner, ())},
            tenancy=None,
            tenant=owner,
            elsewhere=self._others if owner == PLATFORM else frozenset[Key](),
        )

    def is_own(self, owner: str, key: Key) -> bool:
        """Return whether a template counts for the workloads of an owner: its own, and cluster-scoped ones of the platform."""
        holder = self._tenancy.find_owner(key)
        return holder == owner or (owner != PLATFORM and not key.namespace and holder == PLATFORM)

    def is_seen(self, owner: str, document: Document) -> bool:
        """Return whether a document of a policy API counts for the workloads of an owner."""
        holder = self._tenancy.find_owner(document.key)
        if holder not in (PLATFORM, owner):
            return False
        if owner == PLATFORM:
            return True
        if document.key[:2] in self.cluster_kinds:
            return self.clusters.may_use(owner, document)
        return holder == owner or self._may_follow(owner, document.key)

    @cached_property
    def _others(self) -> Container[Key]:
        """The workloads of tenants. The platform's documents may name them: they exist, and what they are is decided elsewhere."""
        return frozenset(key for key in self._snapshot.templates if self._tenancy.find_owner(key) != PLATFORM)

    def _select_documents(self, owner: str) -> Mapping[GroupKind, tuple[Document, ...]]:
        """Return the documents of policy APIs that count for the workloads of an owner."""
        own, selected = self._positions.get(owner, {}), dict[GroupKind, tuple[Document, ...]]()
        spaces = self._list_followed(owner) if owner != PLATFORM else ()
        for kind, listed in self._snapshot.documents.items():
            positions = own.get(kind, [])
            if owner != PLATFORM and kind in self.cluster_kinds:
                platform = self._positions.get(PLATFORM, {}).get(kind, ())
                positions = [one for one in sorted((*positions, *platform)) if self.clusters.may_use(owner, listed[one])]
            elif owner != PLATFORM:
                by_namespace = self._platform_positions[kind]
                more = [position for space in spaces for position in by_namespace.get(space, ())]
                if not positions and not more:
                    if shared := self._shared_documents.get(kind):
                        selected[kind] = shared
                    continue
                positions = sorted((*positions, *more, *by_namespace.get("", ())))
            if positions:
                selected[kind] = tuple([listed[one] for one in positions])
        return selected

    @cached_property
    def _platform_positions(self) -> Mapping[GroupKind, Mapping[str, list[int]]]:
        """The positions of the platform's documents of each kind, by the namespace to whose workloads they are restricted; "" is none."""
        found: dict[GroupKind, dict[str, list[int]]] = {}
        for kind, listed in self._snapshot.documents.items():
            by_namespace = found.setdefault(kind, {})
            for position in self._positions.get(PLATFORM, {}).get(kind, ()):
                key = listed[position].key
                by_namespace.setdefault(key.namespace if key.group != CONFIG_GROUP else "", []).append(position)
        return found

    @cached_property
    def _shared_documents(self) -> Mapping[GroupKind, tuple[Document, ...]]:
        """The platform's documents that count for the workloads of all tenants, without clusters."""
        documents, positions = self._snapshot.documents, self._platform_positions
        return {kind: tuple([documents[kind][one] for one in found[""]]) for kind, found in positions.items() if "" in found}

    def _list_followed(self, owner: str) -> list[str]:
        """Return the namespaces of documents of the platform that count for the workloads of a tenant: its own, and those of clusters
        that it may use."""
        rules, spaces = self._tenancy.list_rules(owner), self._platform_namespaces
        own = [tenant.select_namespaces(spaces) for tenant in rules]
        allowed = own[0].intersection(*own[1:]) if own else spaces
        return sorted(
            {*allowed, *(name for name in self.clusters.platform.keys() & spaces if self.clusters.may_go_to(owner, name))}
        )

    @cached_property
    def _platform_namespaces(self) -> frozenset[str]:
        return frozenset(space for found in self._platform_positions.values() for space in found if space)

    @cached_property
    def _positions(self) -> Mapping[str, Mapping[GroupKind, list[int]]]:
        """The positions of the documents of policy APIs among those of their kind, by owner and kind."""
        found: dict[str, dict[GroupKind, list[int]]] = {}
        for kind, listed in self._snapshot.documents.items():
            for position, document in enumerate(listed):
                found.setdefault(self._tenancy.find_owner(document.key), {}).setdefault(kind, []).append(position)
        return found

    def _select_templates(self, owner: str) -> Mapping[Key, Document]:
        """Return the templates that count for the workloads of an owner."""
        own = self._templates.get(owner, {})
        return own if owner == PLATFORM else {**self._cluster_scoped, **own}

    def make_shared_view(self, kinds: frozenset[GroupKind], excess: frozenset[Key] = frozenset()) -> Snapshot:
        """Return the objects of the platform, and those of all tenants that have one of the kinds, without those of `excess`."""
        find_owner, source = self._tenancy.find_owner, self._snapshot

        def is_seen(key: Key) -> bool:
            return find_owner(key) == PLATFORM or (key[:2] in kinds and key not in excess)

        return source._replace(
            documents={
                kind: kept
                for kind, found in source.documents.items()
                if (kept := tuple(document for document in found if is_seen(document.key)))
            },
            templates={
                key: document if find_owner(key) == PLATFORM else _remove_status(document)
                for key, document in source.templates.items()
                if is_seen(key)
            },
            quarantined=frozenset(filter(is_seen, source.quarantined)),
            duplicates=_select(source.duplicates, is_seen),
            duplicate_templates=_select(source.duplicate_templates, is_seen),
            input_order=tuple(filter(is_seen, source.input_order)),
            tenancy=None,
        )

    def _may_follow(self, owner: str, key: Key) -> bool:
        """Return whether a document of the platform has an effect on the workloads of a tenant: one that is cluster-scoped, about a
        cluster, of gitsched itself, or in a namespace of the tenant."""
        if not key.namespace or key.group == CONFIG_GROUP:
            return True
        rules = self._tenancy.list_rules(owner)
        return all(tenant.allows_namespace(key.namespace) for tenant in rules) or self.clusters.may_go_to(owner, key.namespace)


def _remove_status(document: Document) -> Document:
    """Return a document without what only a controller may say, such as the places that it has already."""
    if "status" not in document.body:
        return document
    return document._replace(body={name: value for name, value in document.body.items() if name != "status"})


def _select(entries: Mapping[Key, V], is_seen: Callable[[Key], bool]) -> dict[Key, V]:
    return {key: value for key, value in entries.items() if is_seen(key)}
