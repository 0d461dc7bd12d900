"""Scenarios of a simulation (lose, drain, add, copy, scale), and the catalog after a scenario was applied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from fractions import Fraction

from gitsched.apis.gitsched.config import Config
from gitsched.apis.replicas import find_replica_paths, list_declared_paths
from gitsched.apis.topology import Topology
from gitsched.decide.catalog import Catalog, is_template
from gitsched.decide.named_templates import change_templates
from gitsched.decide.registry import policy_apis, reserved_groups
from gitsched.decide.validation import validate_document
from gitsched.model.document import Body, Document, Key, get_field, is_namespaced, parse_api_group, read_labels
from gitsched.model.errors import Permanent
from gitsched.model.finding import format_count, format_names, join_all
from gitsched.model.labels import Selector
from gitsched.model.similar_names import describe_similar, suggest_names
from gitsched.model.simulation import FAILURE_DOMAIN_KINDS, FailureDomain
from gitsched.named_tuples import NamedTuple
from gitsched.simulate.failure_domains import AffectedClusters, ClusterIndex, DomainIndex, index_clusters_and_nodes, list_topologies

_NAMED_SCOPES = 4
"""The number of scopes of a kind that are all named."""


class Scaling(NamedTuple):
    """Workloads whose replicas grow or shrink by a factor, rounded up.

    `kind`, `namespace` and `name` are shell patterns; `labels` must match, too, if given. `pattern` and `factor_text` are the texts of the
    option.
    """

    pattern: str
    factor_text: str
    factor: Fraction
    kind: str = "*"
    namespace: str = "*"
    name: str = "*"
    labels: Selector | None = None

    def selects(self, document: Document) -> bool:
        key = document.key
        pairs = ((key.kind, self.kind), (key.namespace, self.namespace), (key.name, self.name))
        if not all(fnmatchcase(value, pattern) for value, pattern in pairs):
            return False
        return self.labels is None or self.labels.matches(read_labels(document.body))


class Scenario(NamedTuple):
    """Events that happen at the same time. `add` are documents of clusters, `copies` pairs of a cluster and the name of its copy.

    With `unreachable`, lost clusters only become unreachable, so that workloads move only if settings or policies react to that. With
    `fresh`, previous decisions are ignored: all workloads are scheduled as if for the first time.
    """

    lose: tuple[FailureDomain, ...] = ()
    drain: tuple[FailureDomain, ...] = ()
    add: tuple[Body, ...] = ()
    copies: tuple[tuple[str, str], ...] = ()
    scale: tuple[Scaling, ...] = ()
    fresh: bool = False
    unreachable: bool = False


def describe_scenario(scenario: Scenario) -> str:
    """Return the events of a scenario as a sentence without a full stop."""
    events = [
        *_describe_scopes(scenario.lose, ("does not answer", "do not answer") if scenario.unreachable else ("is lost", "are lost")),
        *_describe_scopes(scenario.drain, ("is drained", "are drained")),
        *(f"cluster {get_field(body, 'metadata', 'name')} is added" for body in scenario.add),
        *(f"cluster {new} is added, like {name}" for name, new in scenario.copies),
        *(f"the replicas of {scaling.pattern} are multiplied by {scaling.factor_text}" for scaling in scenario.scale),
        *(["all workloads are scheduled as if for the first time"] if scenario.fresh else ()),
    ]
    return "; ".join(events) or "nothing happens"


def _describe_scopes(scopes: tuple[FailureDomain, ...], verbs: tuple[str, str]) -> list[str]:
    """Return what happens to all scopes: each of a few by its name, many of a kind by their number and the first names."""
    by_kind: dict[str, list[str]] = {}
    for scope in scopes:
        by_kind.setdefault(scope.kind, []).append(scope.name)
    names: list[str] = []
    for kind, group in by_kind.items():
        if len(group) > _NAMED_SCOPES:
            names.append(f"{format_count(len(group), kind)} ({format_names(group)})")
        else:
            names += [f"{kind} {name}" for name in group]
    return [f"{join_all(names)} {verbs[len(scopes) > 1]}"] if names else []


class ChangedCatalog(NamedTuple):
    """A catalog after a scenario, and the clusters that the scenario affects. `evicts`: documents of lost ones stay, as if the
    server evicted what they have before it deletes them."""

    catalog: Catalog
    lost: tuple[str, ...]
    drained: tuple[str, ...]
    added: tuple[str, ...]
    partly_lost: tuple[str, ...]
    scaled: int
    evicts: bool = False


def apply_scenario(
    catalog: Catalog, scenario: Scenario, config: Config, time: datetime, nodes: bool = False, index: DomainIndex | None = None
) -> ChangedCatalog:
    """Apply a scenario to a catalog. Raise Permanent if it refers to a missing cluster or adds an existing one. `index` has the clusters of
    the catalog, if the caller has one."""
    index = index or DomainIndex(index_clusters_and_nodes(catalog, nodes))
    clusters = index.clusters
    lost, partial = _resolve_scopes(index, scenario.lose)
    drained = [name for name in _resolve_scopes(index, scenario.drain).names if name not in lost]
    changes: dict[Key, Document | None] = {}
    evicts = False
    for name in lost:
        for kind, document, _ in clusters[name]:
            body = (kind.mark_unreachable if scenario.unreachable else kind.mark_lost)(document.body, time)
            changes[document.key] = None if body is None else document._replace(body=body)
            evicts |= body is not None and kind.taints is not None and not scenario.unreachable
    for name in drained:
        for kind, document, _ in clusters[name]:
            if kind.taints is None:
                raise Permanent(f"{document.key} cannot be drained: its API does not support this; use --lose instead")
            changes[document.key] = document._replace(body=kind.taints.mark_drained(document.body, time))
    new = [*_copy_clusters(clusters, scenario.copies), *_add_clusters(clusters, scenario.add)]
    templates, scaled = _scale_workloads(catalog.templates, scenario.scale, config)
    return ChangedCatalog(
        edit_catalog(catalog._replace(templates=templates), changes, [document for _, document in new]),
        lost,
        tuple(drained),
        tuple(name for name, _ in new),
        partial,
        scaled,
        evicts,
    )


def _resolve_scopes(index: DomainIndex, scopes: Iterable[FailureDomain]) -> AffectedClusters:
    """Return the clusters that are within failure domains. Raise Permanent if there is no such domain."""
    wanted = list(scopes)
    for by in FAILURE_DOMAIN_KINDS:
        for scope in sorted(scope for scope in wanted if scope.kind == by and scope not in index):
            raise Permanent(f"there is no {by} {scope.name!r}{_suggest_scopes(index, scope)}")
    return index.find_lost(wanted)


def _suggest_scopes(index: DomainIndex, scope: FailureDomain) -> str:
    """Return what an unknown failure domain probably means: one of another kind with its name, one written as KIND=NAME, or a similar
    name."""
    kind, equals, value = scope.name.partition("=")
    others = [FailureDomain(one, value if equals else scope.name) for one in FAILURE_DOMAIN_KINDS if not equals or one == kind]
    found = [f"{one.kind}/{one.name}" for one in others if one in index]
    return f"; did you mean {' or '.join(found)}?" if found else suggest_names(scope.name, index.list_names(scope.kind))


def _copy_clusters(clusters: ClusterIndex, copies: Iterable[tuple[str, str]]) -> Iterable[tuple[str, Document]]:
    for name, new in copies:
        if name not in clusters:
            raise Permanent(f"there is no cluster {name!r} to copy{suggest_names(name, clusters)}")
        for kind, document, _ in clusters[name]:
            yield _check_new_cluster(
                kind, Document(document.key._replace(name=new), document.api_version, kind.copy(document.body, new)), clusters
            )


def _add_clusters(clusters: ClusterIndex, bodies: Iterable[Body]) -> Iterable[tuple[str, Document]]:
    for body in bodies:
        api_version = str(body.get("apiVersion") or body.get("api") or "")
        kind = list_topologies().get((parse_api_group(api_version), str(body.get("kind"))))
        if kind is None:
            raise Permanent(f"a {body.get('kind')} of {api_version or 'no API'} is not a cluster, so it cannot be added")
        verdict = validate_document(body)
        wrong = [issue.message for issue in verdict.issues if issue.severity == "error"]
        if wrong:
            raise Permanent(f"the added {body.get('kind')} {get_field(body, 'metadata', 'name')} is not valid: {'; '.join(wrong)}")
        name, namespace = str(get_field(body, "metadata", "name") or ""), get_field(body, "metadata", "namespace")
        space = str(namespace or "default") if is_namespaced(kind.group, kind.kind) else ""
        yield _check_new_cluster(kind, Document(Key(kind.group, kind.kind, space, name), api_version, verdict.body), clusters)


def _check_new_cluster(kind: Topology, document: Document, clusters: Mapping[str, object]) -> tuple[str, Document]:
    name = kind.read_location(document).name
    if name in clusters:
        raise Permanent(f"there is a {kind.level} {document.key.name!r} already")
    return name, document


def edit_catalog(catalog: Catalog, changes: Mapping[Key, Document | None], new: Sequence[Document] = ()) -> Catalog:
    """Return a catalog with changed, removed (None) and new documents; changed documents are no longer broken."""
    changed = [*(_clear_blob_id(document) for document in changes.values() if document is not None), *new]
    templates = {document.key: document for document in changed if is_template(*document.key[:2], reserved_groups)}
    documents = {document.key: document for document in reversed(changed) if document.key not in templates}
    concerned = dict.fromkeys(key[:2] for key in (*changes, *documents))
    kept = (one for kind in concerned for one in catalog.api_documents.get(kind, ()) if one.key not in changes)
    documents |= {one.key: one for one in kept}
    ordered: dict[tuple[str, str], list[Document]] = {kind: [] for kind in concerned}
    for key in sorted(documents):
        ordered[key[:2]].append(documents[key])
    found = {**catalog.api_documents, **{kind: tuple(listed) for kind, listed in ordered.items()}}
    return catalog._replace(
        api_documents={kind: listed for kind, listed in found.items() if listed},
        templates=change_templates(catalog.templates, templates) if templates else catalog.templates,
        broken={key: document for key, document in catalog.broken.items() if key not in changes},
    )


def _clear_blob_id(document: Document) -> Document:
    """Clear the blob id of a changed document, because the blob has the old content."""
    return document._replace(origin=document.origin._replace(blob="")) if document.origin is not None else document


def _scale_workloads(
    templates: Mapping[Key, Document], scalings: Iterable[Scaling], config: Config
) -> tuple[Mapping[Key, Document], int]:
    declared = {kind: paths for api in policy_apis.values() if api.topology for kind, paths in api.topology.replica_paths.items()}
    declared |= list_declared_paths(config)
    changed: dict[Key, Document] = {}
    for scaling in scalings:
        selected = False
        for key, template in templates.items():
            paths = find_replica_paths((key.group, key.kind), declared)
            if paths and scaling.selects(template):
                selected = True
                before = changed.get(key, template)
                changed[key] = before._replace(body=_multiply_replicas(before.body, paths, scaling.factor))
        if not selected:
            is_qualified = scaling.namespace != "*"
            name = f"{scaling.namespace}/{scaling.name}" if is_qualified else scaling.name
            hint = describe_similar(name, {f"{key.namespace}/{key.name}" if is_qualified else key.name for key in templates})
            raise Permanent(f"no workload with replicas is selected by {scaling.pattern!r}{hint}")
    return change_templates(templates, {key: _clear_blob_id(document) for key, document in changed.items()}), len(changed)


def _multiply_replicas(body: Body, paths: tuple[tuple[str, ...], ...], factor: Fraction) -> Body:
    for path in paths:
        count = get_field(body, *path)
        if count is None and path != paths[0]:
            continue
        if count is None or (isinstance(count, int) and not isinstance(count, bool)):
            body = _set_field(body, path, -((-1 if count is None else -count) * factor.numerator // factor.denominator))
    return body


def _set_field(body: Body, path: tuple[str, ...], value: int) -> Body:
    name, *rest = path
    inner = body.get(name)
    return {**body, name: _set_field(inner if isinstance(inner, dict) else {}, tuple(rest), value) if rest else value}
