"""The description of a policy API: the data and functions that the rest of gitsched uses. The functions import their code when they are
called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from gitsched.apis.engine import PolicyEngine, RecordsByKind, Snapshot
from gitsched.apis.gitsched.config import Config
from gitsched.apis.gitsched.config_section import SettingsSection
from gitsched.apis.topology import Topology
from gitsched.model.document import ApiKinds, Body, Document, Key
from gitsched.model.finding import Issue
from gitsched.model.observation import MetricQuery

GroupKind = tuple[str, str]
"""API group and kind, as in ("apps", "Deployment")."""
SchemaKey = tuple[str, str, str]
"""API group, version and kind, as in ("policy.karmada.io", "v1alpha1", "PropagationPolicy")."""
DocumentValidator = Callable[[Body], Iterator[Issue]]
"""List what is wrong with a defaulted document that its schema accepts."""


class MetricSource(NamedTuple):
    """Metrics that documents of the API query from providers.

    `groups` are the API groups of the documents. `list_queries` returns one query per metric, in the order of their keys. The codes are
    those of the findings about providers that are not queried because the output is not trusted, or because they changed.
    """

    groups: frozenset[str]
    list_queries: Callable[[Iterable[Body]], list[MetricQuery]]
    not_queried_code: str
    provider_changed_code: str


class DeliveryReports(NamedTuple):
    """Reports of clusters about the output, which are read from commit statuses.

    `groups` are the API groups of the documents. `list_clusters` returns the clusters whose reports are read. The code is that of the
    finding about reports that could not be read.
    """

    groups: frozenset[str]
    list_clusters: Callable[[Iterable[Body]], set[str]]
    unknown_code: str


class ScoreMeasurement(NamedTuple):
    """A value of each cluster: `source` is prometheus, with its query as `spec`, or static, with the values by cluster."""

    name: str
    source: str
    spec: Body


class ClusterScoring(NamedTuple):
    """Scores that `gitsched scores` computes from measured values and writes as documents.

    `definition` is the kind that defines scores and `cluster` the kind of the clusters. `build_documents` gets the definition, all
    clusters, the values by measurement and cluster, and the time until which the scores are valid; each document is in the namespace of
    its cluster.
    """

    definition: GroupKind
    cluster: GroupKind
    list_measurements: Callable[[Body], list[ScoreMeasurement]]
    build_documents: Callable[[Body, set[str], Mapping[str, Mapping[str, float]], datetime | None], list[Body]]


class ClusterChoices(NamedTuple):
    """Clusters that documents of the API choose without placing a workload: the kind of the records, and the clusters by document."""

    record_kind: GroupKind
    read: Callable[[Iterable[tuple[Key, Body]]], Mapping[Key, frozenset[str]]]


class StarterFiles(NamedTuple):
    """What `gitsched init` writes: `settings` are appended to gitsched.yaml, `files` are by path. `fleet_hint` says how clusters are
    described, and `docs_page` is the page of the documentation."""

    settings: str
    files: Mapping[str, str]
    fleet_hint: str
    docs_page: str


class Export(NamedTuple):
    """What `gitsched export NAME` prints: the decisions of the API as text or as an object, from its records and all templates."""

    summary: str
    description: str
    format_text: Callable[[Iterable[tuple[Key, Body]], Iterable[Document]], str]
    make_object: Callable[[Iterable[tuple[Key, Body]], Iterable[Document]], Body]


class RemovedWorkload(NamedTuple):
    """A workload that only the previous output has, with its replicas by cluster; `dependent`: other workloads brought it along."""

    key: Key
    replicas: Mapping[str, int | None]
    dependent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PolicyAPI:
    """One policy API. Only `name`, `groups` and `create_engine` are required.

    The engine is created when the source has a document that needs it: one of `groups` (or, if `active_kinds` is given, one of those
    kinds), an object of `active_objects`, a previous record of `active_records`, or settings other than the defaults.
    """

    name: str
    groups: frozenset[str]
    """API groups whose documents the API reads; they are never delivered as they are."""
    create_engine: Callable[[Snapshot], PolicyEngine]

    kinds: ApiKinds = field(default_factory=ApiKinds)
    """Scopes of kinds, groups without versions and secret members."""
    active_kinds: frozenset[GroupKind] | None = None
    active_objects: frozenset[tuple[str, str, str]] = frozenset()
    """Group, kind and name of objects outside `groups`."""
    active_records: tuple[GroupKind, ...] = ()

    settings: SettingsSection[Any] | None = None
    """The section of the API in gitsched.yaml."""
    schemas: Mapping[SchemaKey, Body] = field(default_factory=dict)
    """JSON Schemas besides those in the directory schemas/ of gitsched."""
    apply_defaults: Callable[[Body], Body] | None = None
    """Return a document as the API server would store it."""
    find_validator: Callable[[str, str], DocumentValidator | None] | None = None
    """Return the validator of a group and kind."""
    validated_objects: Mapping[GroupKind, frozenset[str]] = field(default_factory=dict)
    """Kinds outside `groups` that are validated as well, with the names that count; no names means all."""
    list_ignored_codes: Callable[[Config], frozenset[str]] | None = None
    """Return the codes of validation findings that the settings turn off."""

    embedded_objects: Mapping[GroupKind, tuple[str, ...]] = field(default_factory=dict)
    """Where kinds of workloads have the list of the objects that they consist of."""
    remove_secrets: Callable[[Body], Body] | None = None
    """Return a document of the API without what must not be copied to the output; the same object when there is nothing of it."""
    read_removed_workload: Callable[[Body], RemovedWorkload | None] | None = None
    """Return the workload of a previous record that has not been written again; None for a record that places nothing."""

    metrics: MetricSource | None = None
    delivery_reports: DeliveryReports | None = None
    scoring: ClusterScoring | None = None

    topology: Topology | None = None
    """The kind that describes clusters or nodes, for simulations."""
    replica_paths: Mapping[GroupKind, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    """Where kinds of workloads have their number of replicas, for simulations that scale them."""
    serializable: bool = False
    """Whether the engine can be stored and continue in another process: it keeps nothing of its snapshot that `update` does not replace."""
    cluster_choices: ClusterChoices | None = None

    load_starter: Callable[[], StarterFiles] | None = None
    export: Export | None = None
    native_explanation: str = ""
    """What `gitsched explain --format NAME` prints for documents of the API (see Explanation.native)."""
    explained_kinds: tuple[str, ...] = ()
    """Kinds that `gitsched explain` accepts in any spelling of kubectl."""
    short_names: Mapping[str, str] = field(default_factory=dict)
    """Short names of kinds for `gitsched explain`, as the API's own command line has them."""


def needs_engine(api: PolicyAPI, snapshot: Snapshot) -> bool:
    """Return whether a snapshot has documents, records or settings for which the engine of an API is needed."""
    kinds, broken, active = snapshot.documents.keys(), snapshot.quarantined, api.active_kinds
    if active is None:
        if any(group in api.groups for group, _ in kinds) or any(key.group in api.groups for key in broken):
            return True
    elif not active.isdisjoint(kinds) or any(key[:2] in active for key in broken):
        return True
    if api.settings is not None and api.settings.name in snapshot.config.api_settings:
        return True
    if api.active_objects and (_has_object(api, snapshot.templates) or _has_object(api, broken)):
        return True
    return any(_has_records(snapshot.previous, *kind) for kind in api.active_records)


def _has_object(api: PolicyAPI, keys: Iterable[Key]) -> bool:
    names = {name for _, _, name in api.active_objects}
    return any(key.name in names and (key.group, key.kind, key.name) in api.active_objects for key in keys)


def _has_records(previous: Mapping[Key, Body], group: str, kind: str) -> bool:
    if isinstance(previous, RecordsByKind):
        return next(previous.of_kind(group, kind), None) is not None
    return any(key[:2] == (group, kind) for key in previous)
