"""Render the files of the output branch: records of each workload, and the directory of each cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gitsched.apis.gitsched.output_config import OutputConfig
from gitsched.decide.namespace_manifests import (
    NO_NAMESPACES,
    add_namespace_manifests,
    choose_namespaces,
    keep_namespace,
    withhold_namespaces,
)
from gitsched.decide.skipped_workloads import add_skipped_objects, add_skipped_records, list_object_paths
from gitsched.decide.workload_files import Files, WorkloadFiles
from gitsched.model.delivery import DeliveryConfig
from gitsched.model.document import Body, Document, Key, is_namespaced
from gitsched.model.errors import DocumentFault
from gitsched.model.finding import Finding, locate_document
from gitsched.model.planned_files import ClusterInfo, ExistingBlob, NewBlob, PlannedFile
from gitsched.model.scheduling import MarkedCount
from gitsched.model.system_errors import is_bug
from gitsched.model.variants import BUNDLE_KIND, TemplateVariants
from gitsched.named_tuples import NamedTuple
from gitsched.render.cluster_directory import (
    complete_directory,
)
from gitsched.render.hub_directory import HUB_KUSTOMIZATION, complete_hub_directory
from gitsched.render.output_files import (
    HUB,
    STUB_MANIFEST_PATH,
    cluster_path,
    escape_segment,
    mark_local_config,
    placement_path,
    plan_changed_manifest,
    plan_manifest,
    relative_path,
    status_path,
    write_placement_decision,
    write_record,
)
from gitsched.render.yaml import Fragment, dump_fragment

if TYPE_CHECKING:
    from gitsched.decide.decisions import DecisionSet
    from gitsched.decide.skipped_workloads import SkippedWorkload
    from gitsched.decide.variants.rendered_variants import SharedObjects
    from gitsched.model.changes import RetainedCopy
    from gitsched.model.scheduling import Outcome

SCHEDULER = "gitsched"
_COLLECTIONS = (dict, list)
_MAX_PARTS = 10_000


class ClusterDirectory(NamedTuple):
    """The directory of a cluster, and the facts and manifests that it was rendered from."""

    facts: ClusterInfo
    manifests: Files
    files: Files


class RenderedTree(NamedTuple):
    """All files of a complete plan. `manifests` are those of workloads by cluster, `directories` complete directories by cluster.

    `namespace_manifests` are the Namespaces of the source: see `list_namespace_manifests`. `has_shared_objects`: several workloads deliver
    the same object.
    """

    workloads: Mapping[Key, WorkloadFiles]
    manifests: Mapping[str, Files]
    directories: Mapping[str, ClusterDirectory]
    files: Files
    cluster_facts: Mapping[str, ClusterInfo]
    findings: tuple[Finding, ...]
    namespace_manifests: Mapping[str, tuple[str, PlannedFile]]
    has_shared_objects: bool = False


class RenderCache:
    """The files of the last complete plan, and serialized parts of records. Records of a plan that is never `written` have no content."""

    __slots__ = ("_parts", "last_tree", "written")

    def __init__(self, *, written: bool = True) -> None:
        self.last_tree: RenderedTree | None = None
        self.written = written
        self._parts: dict[int, tuple[object, Fragment | None]] = {}

    def reuse_parts(self, body: Body) -> Body:
        """Return a record with those members of its metadata and spec serialized that are the same object in earlier records: thousands of
        bindings share the annotations and the placement of a policy, and clusters. So do they with the status."""
        parts = dict(body)
        metadata, spec, status = body.get("metadata"), body.get("spec"), body.get("status")
        if metadata and (annotations := metadata.get("annotations")):
            parts["metadata"] = {**metadata, "annotations": self._reuse(annotations, mark_local_config)}
        if spec:
            parts["spec"] = {name: self._reuse(part) if type(part) in _COLLECTIONS else part for name, part in spec.items()}
        if status:
            parts["status"] = self._reuse(status)
        return parts

    def _reuse(self, part: Any, complete: Callable[[Any], Body] | None = None) -> Any:
        """Return a part as it is the first time, and afterwards its text, `complete` if that adds something."""
        known, text = self._parts.get(id(part), (None, None))
        if known is not part:
            if len(self._parts) > _MAX_PARTS:
                self._parts.clear()
            self._parts[id(part)] = part, None
            return part
        if text is None:
            text = dump_fragment(part if complete is None else complete(part))
            self._parts[id(part)] = part, text
        return text


BlobLookup = Callable[[str], str | None]


def render(
    decisions: DecisionSet,
    retiring: Mapping[str, datetime],
    find_blob: BlobLookup,
    cache: RenderCache | None = None,
    protected: frozenset[str] = OutputConfig().protected_namespaces,
    delivered: Mapping[str, frozenset[str]] | None = None,
    delivery: DeliveryConfig = DeliveryConfig(),  # noqa: B008 - an immutable value
    retained: Collection[RetainedCopy] = (),
    gate: Callable[[Mapping[Key, WorkloadFiles]], dict[Key, WorkloadFiles]] | None = None,
    skipped: Collection[SkippedWorkload] = (),
    read_manifest: Callable[[str], Body | None] = lambda _: None,
) -> RenderedTree:
    """Render every file under clusters/, status/ and placements/.

    `retiring` are clusters without a document, whose directory has only the stub. `find_blob` returns the blob of a path in the previous
    output: the manifests of a quarantined workload do not change. `delivery` are the settings for Bundles and PlacementDecisions.
    Namespaces that are `protected` are neither added nor removed: `delivered` are the paths of those in the previous output, by the
    directory of the cluster. `retained` copies keep their files, which `read_manifest` reads. `gate` replaces the files of
    clusters that wait for a wave of a rollout. The files of `skipped` workloads stay.
    """
    cache = cache or RenderCache()
    rendered = {
        key: _render_or_reuse(outcome, decisions, find_blob, cache, delivery) for key, outcome in decisions.outcomes.items()
    }
    names_any = _has_namespaces(decisions, rendered.values())
    withheld = withhold_namespaces(rendered, decisions, protected) if names_any else []
    complete_files = rendered
    if gate is not None:
        rendered = gate(rendered)
    files = {path: file for workload in rendered.values() for path, file in workload.records.items()}
    for key, body in decisions.engine_records:
        files[status_path(key)] = write_record(body)
    manifests, counts, shared = _group_by_cluster(rendered, find_blob)
    if retained:
        from gitsched.decide.overlap.retained_files import RenderedWorkload, add_retained_files  # most plans retain nothing

        keys = {copy.workload for copy in retained} & rendered.keys()
        placed = {key: RenderedWorkload(rendered[key].outcome, rendered[key].manifests, rendered[key].records) for key in keys}
        add_retained_files(retained, placed, find_blob, manifests, files, read_manifest)
    if skipped:
        add_skipped_records(skipped, find_blob, files)
        object_paths = list_object_paths(skipped)
    facts = dict(decisions.cluster_facts)
    facts |= {name: ClusterInfo(name, {}) for name in retiring if name not in facts}
    namespaces = NO_NAMESPACES
    if names_any or decisions.withheld or any(outcome.held is not None for outcome in decisions.outcomes.values()):
        namespaces = choose_namespaces(
            decisions, rendered.values(), manifests, delivered or {}, find_blob, read_manifest, protected
        )
    if any(path.startswith(f"{HUB}/") for path in files) or find_blob(HUB_KUSTOMIZATION) is not None:
        files |= complete_hub_directory(files, delivery.argocd.namespace)
    known = cache.last_tree.directories if cache.last_tree else {}
    directories = {}
    for name in facts:
        paths = (delivered or {}).get(escape_segment(name), frozenset()) - manifests.get(name, {}).keys()
        workloads, replicas, marked = counts.get(name, NOTHING_COUNTED)
        if skipped:
            found = add_skipped_objects(skipped, name, paths, find_blob, manifests.setdefault(name, {}))
            workloads, replicas, paths = workloads + found[0], replicas + found[1], paths - object_paths
        kept = {path: keep_namespace(name, path, decisions, protected, find_blob) for path in sorted(paths)}
        manifests |= {name: {**kept, **manifests.get(name, {})}} if kept else {}
        facts[name] = facts[name]._replace(workloads=workloads, replicas=replicas, marked=marked)
        complete: Files = manifests.get(name, {})
        if namespaces.own:
            complete = add_namespace_manifests(complete, namespaces.select(name))
        directories[name] = _render_directory(facts[name], complete, known.get(name), protected)
        files.update(directories[name].files)
    if retained:
        from gitsched.decide.overlap.retained_files import keep_cluster_json

        keep_cluster_json(retained, retiring, find_blob, files)
    findings = (
        *withheld,
        *namespaces.findings,
        *_find_path_collisions(rendered.values(), decisions.templates),
        *(shared.list_findings(decisions.templates) if shared is not None else ()),
    )
    has_shared = shared is not None and shared.found
    tree = RenderedTree(rendered, manifests, directories, files, facts, findings, namespaces.own, has_shared)
    cache.last_tree = tree if gate is None else tree._replace(workloads=complete_files)
    return tree


def _has_namespaces(decisions: DecisionSet, workloads: Iterable[WorkloadFiles]) -> bool:
    """Return whether the source has a Namespace, or a workload consists of objects that may be one or that need one."""
    keys = (*decisions.templates, *decisions.catalog.duplicate_templates)
    return any(key.kind == "Namespace" for key in keys) or any(
        workload.namespaces or workload.outcome.bundles or workload.outcome.manifests is not None for workload in workloads
    )


def _render_directory(
    facts: ClusterInfo, manifests: Files, last: ClusterDirectory | None, protected: frozenset[str]
) -> ClusterDirectory:
    """Render the directory of a cluster, or reuse the last one where nothing changed."""
    if last is not None and last.facts == facts and last.manifests == manifests:
        return last
    files = complete_directory(facts, manifests, protected)
    directory = cluster_path(facts.name, "")
    return ClusterDirectory(facts, manifests, {f"{directory}{path}": file for path, file in files.items()})


def _render_or_reuse(
    outcome: Outcome, decisions: DecisionSet, find_blob: BlobLookup, cache: RenderCache, delivery: DeliveryConfig
) -> WorkloadFiles:
    known = cache.last_tree.workloads.get(outcome.key) if cache.last_tree is not None else None
    if known is not None and known.outcome is outcome:
        return known
    template, quarantined = decisions.templates[outcome.key], outcome.key in decisions.quarantined
    try:
        return render_workload(outcome, template, quarantined, find_blob, cache, decisions.variants, delivery)
    except Exception as error:
        if not is_bug(error):
            raise
        raise DocumentFault({outcome.key: error}) from error


def render_workload(
    outcome: Outcome,
    template: Document,
    quarantined: bool,
    find_blob: BlobLookup,
    cache: RenderCache,
    variants: TemplateVariants | None = None,
    delivery: DeliveryConfig = DeliveryConfig(),  # noqa: B008 - an immutable value
) -> WorkloadFiles:
    """Render the files of a workload. The manifests of a quarantined one do not change."""
    if outcome.bundles or (variants and outcome.key in variants):
        from gitsched.decide.variants.rendered_variants import render_variants

        objects = {} if outcome.manifests is None else _write_objects(outcome)
        varied = render_variants(outcome, template, quarantined, objects, variants or {}, delivery, find_blob)
        records = {**_render_records(outcome, cache, delivery), **varied.hub}
        return WorkloadFiles(outcome, records, (), varied.manifests, varied.namespaces)
    others = None if outcome.manifests is None else _write_objects(outcome)
    previous = (relative_path(key) for key in outcome.previous_objects)
    paths = (relative_path(outcome.key),) if others is None else tuple(dict.fromkeys((*others, *previous)))
    manifests: dict[str, Files] = {}
    written: dict[Any, Files] = {}  # clusters with the same manifest share one file
    for target in outcome.targets:
        keeps = target.keeps_manifest or quarantined
        blobs = ((path, find_blob(cluster_path(target.copied_from or target.cluster, path))) for path in paths) if keeps else ()
        kept: Files = {path: ExistingBlob(blob) for path, blob in blobs if blob is not None}
        if kept or (keeps and (quarantined or not target.evicting or _is_recorded(outcome, find_blob))):
            manifests[target.cluster] = kept
        elif others is not None:
            manifests[target.cluster] = others
        else:
            content = target.edits if target.body is None else id(target.body)
            if content not in written:
                file = (
                    plan_manifest(template, *target.edits) if target.body is None else plan_changed_manifest(template, target.body)
                )
                written[content] = {paths[0]: file}
            manifests[target.cluster] = written[content]
    return WorkloadFiles(outcome, _render_records(outcome, cache, delivery), paths, manifests)


def _is_recorded(outcome: Outcome, find_blob: BlobLookup) -> bool:
    """Return whether the previous output has a record of a workload. Else this is the first run, which delivers what a hub was evicting."""
    return any(find_blob(status_path(key)) is not None for key, _ in outcome.records)


def _write_objects(outcome: Outcome) -> Files:
    """Return the objects that a workload consists of, without its Bundles."""
    objects = [(key, body) for key, body in outcome.manifests or () if key[:2] != BUNDLE_KIND]
    # The key of an object whose kind is not known may have a namespace that the kind does not have.
    keys = (key if is_namespaced(key.group, key.kind) else key._replace(namespace="") for key, _ in objects)
    return {relative_path(key): plan_manifest(Document(own, "", body)) for own, (key, body) in zip(keys, objects, strict=True)}


def _render_records(outcome: Outcome, cache: RenderCache, delivery: DeliveryConfig) -> Files:
    if not cache.written:
        return dict.fromkeys((*(status_path(key) for key, _ in outcome.records), placement_path(outcome.key)), NewBlob(b""))
    files: dict[str, PlannedFile] = {status_path(key): write_record(cache.reuse_parts(body)) for key, body in outcome.records}
    return {**files, **write_placement(outcome, delivery)}


def write_placement(outcome: Outcome, delivery: DeliveryConfig) -> Mapping[str, NewBlob]:
    """Return the PlacementDecision of a workload by path, with the clusters that have it."""
    decisions = [(name, count, None, outcome.reason) for name, count in outcome.replicas_by_cluster.items()]
    return write_placement_decision(outcome.key, decisions, SCHEDULER, delivery.profile_namespace)


def _group_by_cluster(
    workloads: Mapping[Key, WorkloadFiles], find_blob: BlobLookup
) -> tuple[dict[str, dict[str, PlannedFile]], dict[str, ReplicaCounts], SharedObjects | None]:
    """Return the manifests and the numbers of workloads and replicas of each cluster, and the objects that several workloads deliver."""
    manifests: dict[str, dict[str, PlannedFile]] = {}
    counts: dict[str, ReplicaCounts] = {}
    owners: dict[str, dict[str, Outcome]] = {}
    shared = None
    if any(workload.outcome.bundles for workload in workloads.values()):
        from gitsched.decide.variants.rendered_variants import SharedObjects  # few sources have Bundles

        shared = SharedObjects(find_blob)
    for workload in workloads.values():
        for cluster, files in workload.manifests.items():
            known = manifests.setdefault(cluster, {})
            if shared is not None:
                shared.merge(cluster, known, owners.setdefault(cluster, {}), workload.outcome, files)
            else:
                known.update(files)
        count_replicas(counts, workload.outcome, 1)
    return manifests, counts, shared


class ReplicaCounts(NamedTuple):
    """The numbers of workloads and replicas of a cluster, and of the workloads whose replicas are only a minimum or not known."""

    workloads: int = 0
    replicas: int = 0
    marked: int = 0


NOTHING_COUNTED = ReplicaCounts()


def count_replicas(counts: dict[str, ReplicaCounts], outcome: Outcome, sign: int) -> None:
    """Add the workload and its replicas to the counts of its clusters; subtract them with sign -1."""
    for cluster, replicas in outcome.replicas_by_cluster.items():
        workloads, total, marked = counts.get(cluster, NOTHING_COUNTED)
        marked += sign * isinstance(replicas, MarkedCount)
        counts[cluster] = ReplicaCounts(workloads + sign, total + sign * (replicas or 0), marked)


def _find_path_collisions(workloads: Iterable[WorkloadFiles], templates: Mapping[Key, Document]) -> list[Finding]:
    """Find workloads with the same path as another workload or the stub."""
    taken: dict[str, Key] = {}
    findings = []
    for workload in workloads:
        key = workload.outcome.key
        for path in workload.paths:
            other = taken.setdefault(path, key)
            if other is not key and workload.outcome.manifests is None:
                message = f"{key} and {other} have the same path: their kinds differ only in case"
                findings.append(Finding("error", "path-collision", message, locate_document(templates[key]), key.resource))
            elif other is not key:
                message = f"{key} and {other} render the same object, {path}"
                findings.append(Finding("error", "path-collision", message, locate_document(templates[key]), key.resource))
        if STUB_MANIFEST_PATH in workload.paths:
            message = f"{key} has the name of gitsched's own stub, and replaces it in every cluster"
            findings.append(Finding("warning", "stub-replaced", message, locate_document(templates[key]), key.resource))
    return findings
