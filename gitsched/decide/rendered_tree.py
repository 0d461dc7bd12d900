"""Render the files of the output branch: records of each workload, the directory of each cluster, and last valid copies of broken
source files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from gitsched.decide.decisions import DecisionSet
from gitsched.decide.registry import find_policy_api
from gitsched.model.document import Body, Document, Key, SourceSpans, get_field, parse_api_group
from gitsched.model.finding import Finding, locate_document
from gitsched.model.planned_files import ClusterInfo, EditedBlob, ExistingBlob, NewBlob, PlannedFile, TextEdit
from gitsched.model.scheduling import Outcome
from gitsched.render.cluster_directory import STUB_MANIFEST_PATH, complete_directory, plan_manifest, write_manifest
from gitsched.render.layout import cluster_path, escape_segment, relative_path, status_path
from gitsched.render.records import write_placement_decision, write_record
from gitsched.render.yaml import Fragment, dump, dump_fragment

Files = Mapping[str, PlannedFile]
SCHEDULER = "gitsched"


class WorkloadFiles(NamedTuple):
    """What one workload contributes: its records, and by cluster what it renders there, by path relative to the cluster's directory.

    `paths` are all those paths; one, unless the API renders other objects than the workload itself.
    """

    outcome: Outcome
    records: Files
    paths: tuple[str, ...]
    manifests: Mapping[str, Files]


class ClusterDirectory(NamedTuple):
    """A cluster's directory and what it was made from."""

    facts: ClusterInfo
    manifests: Files
    files: Files


class RenderedTree(NamedTuple):
    """Everything rendered in one run. `placed` are, by cluster, the manifests of its workloads, `directories` whole directories."""

    workloads: Mapping[Key, WorkloadFiles]
    manifests: Mapping[str, Files]
    directories: Mapping[str, ClusterDirectory]
    files: Files
    cluster_facts: Mapping[str, ClusterInfo]
    findings: tuple[Finding, ...]
    namespace_manifests: Mapping[str, tuple[str, PlannedFile]]


class RenderCache:
    """What the last run rendered, and placements that are written already."""

    __slots__ = ("_placements", "last_tree")

    def __init__(self) -> None:
        self.last_tree: RenderedTree | None = None
        self._placements: dict[int, tuple[Body, Fragment]] = {}

    def reuse_placement(self, body: Body) -> Body:
        """A binding whose placement is written already: thousands share the placement of one policy, which is the same object."""
        spec = body.get("spec") or {}
        placement = spec.get("placement")
        if not placement:
            return body
        known = self._placements.get(id(placement))
        if known is None or known[0] is not placement:
            if len(self._placements) > 10_000:
                self._placements.clear()
            known = self._placements[id(placement)] = placement, dump_fragment(placement)
        return {**body, "spec": {**spec, "placement": known[1]}}


BlobLookup = Callable[[str], str | None]


def render(
    decided: DecisionSet, retiring: Mapping[str, datetime], lookup: BlobLookup, canvas: RenderCache | None = None
) -> RenderedTree:
    """Plan every file under clusters/, status/ and placements/.

    `retiring` are clusters without a document that keep a directory with the stub alone. `lookup` gives the blob that a path of the
    previous output has: a frozen workload keeps its files.
    """
    canvas = canvas or RenderCache()
    shares = {key: _render_or_reuse(outcome, decided, lookup, canvas) for key, outcome in decided.outcomes.items()}
    files = {path: file for share in shares.values() for path, file in share.records.items()}
    for key, body in (record for session in decided.engines for record in session.records()):
        files[status_path(key)] = write_record(body)
    placed, counts = _group_by_cluster(shares)
    facts: dict[str, ClusterInfo] = {}
    for name, cluster in (entry for session in decided.engines for entry in session.clusters().items()):
        facts.setdefault(name, cluster)  # the first API that knows a cluster says what it is like
    facts |= {name: ClusterInfo(name, {}) for name in retiring if name not in facts}
    own, known = list_namespace_manifests(decided.templates), canvas.last_tree.directories if canvas.last_tree else {}
    directories = {}
    for name in facts:
        workloads, replicas = counts.get(name, (0, 0))
        facts[name] = facts[name]._replace(workloads=workloads, replicas=replicas)
        directories[name] = _render_directory(facts[name], add_namespace_manifests(placed.get(name, {}), own), known.get(name))
        files.update(directories[name].files)
    collisions = tuple(_find_path_collisions(shares.values(), decided.templates))
    canvas.last_tree = RenderedTree(shares, placed, directories, files, facts, collisions, own)
    return canvas.last_tree


def _render_directory(facts: ClusterInfo, placed: Files, last: ClusterDirectory | None) -> ClusterDirectory:
    """A cluster's directory; the last one where nothing about it changed."""
    if last is not None and last.facts == facts and last.manifests == placed:
        return last
    files = complete_directory(facts, placed)
    return ClusterDirectory(facts, placed, {cluster_path(facts.name, path): file for path, file in files.items()})


def _render_or_reuse(outcome: Outcome, decided: DecisionSet, lookup: BlobLookup, canvas: RenderCache) -> WorkloadFiles:
    known = canvas.last_tree.workloads.get(outcome.key) if canvas.last_tree is not None else None
    if known is not None and known.outcome is outcome:
        return known
    return render_workload(outcome, decided.templates[outcome.key], outcome.key in decided.quarantined, lookup, canvas)


def render_workload(outcome: Outcome, template: Document, frozen: bool, lookup: BlobLookup, canvas: RenderCache) -> WorkloadFiles:
    """What a workload contributes; a `frozen` one keeps the manifests that it has."""
    others = None if outcome.manifests is None else {relative_path(key): write_manifest(body) for key, body in outcome.manifests}
    former = (relative_path(key) for key in outcome.previous_objects)
    paths = (relative_path(outcome.key),) if others is None else tuple(dict.fromkeys((*others, *former)))
    manifests: dict[str, Files] = {}
    written: dict[Any, Files] = {}  # clusters whose manifests are the same share one file
    for place in outcome.targets:
        if place.keeps_manifest or frozen:
            blobs = ((path, lookup(cluster_path(place.cluster, path))) for path in paths)
            manifests[place.cluster] = {path: ExistingBlob(blob) for path, blob in blobs if blob is not None}
        elif others is not None:
            manifests[place.cluster] = others
        else:
            what = place.edits if place.body is None else id(place.body)
            if what not in written:
                file = plan_manifest(template, *place.edits) if place.body is None else write_manifest(place.body)
                written[what] = {paths[0]: file}
            manifests[place.cluster] = written[what]
    return WorkloadFiles(outcome, _render_records(outcome, canvas), paths, manifests)


def _render_records(outcome: Outcome, canvas: RenderCache) -> Files:
    files: dict[str, PlannedFile] = {status_path(key): write_record(canvas.reuse_placement(body)) for key, body in outcome.records}
    decisions = [(cluster, replicas, None, outcome.reason) for cluster, replicas in outcome.replicas_by_cluster.items()]
    files.update(write_placement_decision(outcome.key, decisions, SCHEDULER))
    return files


def _group_by_cluster(shares: Mapping[Key, WorkloadFiles]) -> tuple[dict[str, dict[str, PlannedFile]], dict[str, tuple[int, int]]]:
    placed: dict[str, dict[str, PlannedFile]] = {}
    counts: dict[str, tuple[int, int]] = {}
    for share in shares.values():
        for cluster, files in share.manifests.items():
            placed.setdefault(cluster, {}).update(files)
        count_replicas(counts, share.outcome, 1)
    return placed, counts


def count_replicas(counts: dict[str, tuple[int, int]], outcome: Outcome, sign: int) -> None:
    """Add or take away what a workload places."""
    for cluster, replicas in outcome.replicas_by_cluster.items():
        workloads, total = counts.get(cluster, (0, 0))
        counts[cluster] = workloads + sign, total + sign * (replicas or 0)


def list_namespace_manifests(templates: Mapping[Key, Document]) -> dict[str, tuple[str, PlannedFile]]:
    """The repository's own Namespace manifests by the directory that their objects lie in."""
    return {
        escape_segment(key.name): (relative_path(key), plan_manifest(template))
        for key, template in templates.items()
        if key.kind == "Namespace" and not key.group
    }


def add_namespace_manifests(placed: Files, own: Mapping[str, tuple[str, PlannedFile]]) -> Files:
    """A Namespace manifest of the repository goes wherever something of that namespace goes, selected by a policy or not."""
    used = {path.partition("/")[0] for path in placed} & own.keys() if own else ()
    added = {own[namespace][0]: own[namespace][1] for namespace in used}
    return {**added, **placed} if added else placed


def _find_path_collisions(shares: Iterable[WorkloadFiles], templates: Mapping[Key, Document]) -> list[Finding]:
    """Workloads that would lie where another one, or the stub, lies."""
    taken: dict[str, Key] = {}
    findings = []
    for share in shares:
        key = share.outcome.key
        for path in share.paths:
            other = taken.setdefault(path, key)
            if other is not key and share.outcome.manifests is None:
                message = f"{key} and {other} would be the same file: their kinds differ only in case"
                findings.append(Finding("error", "path-collision", message, locate_document(templates[key]), key.resource))
            elif other is not key:
                message = f"{key} and {other} render the same object, {path}"
                findings.append(Finding("error", "path-collision", message, locate_document(templates[key]), key.resource))
        if STUB_MANIFEST_PATH in share.paths:
            message = f"{key} has the name of gitsched's own stub, which takes its place in every cluster"
            findings.append(Finding("warning", "stub-replaced", message, locate_document(templates[key]), key.resource))
    return findings


class LastValidFile(NamedTuple):
    """A blob and the documents in it; `text` is None for an item of a List.

    `pruned` says that the text has members that the documents, as they are read, have not: a token under a Cluster, say.
    """

    blob: str
    documents: tuple[tuple[Body, SourceSpans | None], ...]
    pruned: bool = False


def render_last_valid(kept: LastValidFile, outcomes: Mapping[Key, Outcome]) -> PlannedFile | None:
    """The file under kept/, without the Secrets that are placed nowhere; None when nothing else is in it.

    The Secrets are cut from the text. A List that holds one is taken apart, and its other items are written anew; so is everything where
    the text has more than the documents.
    """
    documents = [(_remove_secrets(body), text) for body, text in kept.documents]
    if documents != list(kept.documents):
        kept = LastValidFile(kept.blob, tuple(documents), pruned=True)
    hidden = [(body, text) for body, text in kept.documents if _is_unplaced_secret(body, outcomes)]
    if not hidden and not kept.pruned:
        return ExistingBlob(kept.blob)
    if len(hidden) == len(kept.documents):
        return None
    if not kept.pruned and all(text is not None for _, text in hidden):
        return EditedBlob(kept.blob, tuple(sorted(TextEdit(text.start, text.end, "") for _, text in hidden if text is not None)))
    return NewBlob("---\n".join(dump(body) for body, _ in kept.documents if not _is_unplaced_secret(body, outcomes)).encode())


def _remove_secrets(body: Body) -> Body:
    for text in (body.get("apiVersion"), body.get("api")):
        api = find_policy_api(parse_api_group(str(text)))
        if text and api is not None and api.remove_secrets is not None:
            body = api.remove_secrets(body)
    return body


def _is_unplaced_secret(body: Body, outcomes: Mapping[Key, Outcome]) -> bool:
    metadata = body.get("metadata") or {}
    group, kind = parse_api_group(str(body.get("apiVersion") or body.get("api"))), str(body.get("kind"))
    api = find_policy_api(group)
    path = api.embedded_objects.get((group, kind)) if api is not None else None
    objects = [body, *(get_field(body, *path) or [])] if path else [body]
    if not any((entry.get("apiVersion"), entry.get("kind")) == ("v1", "Secret") for entry in objects if isinstance(entry, dict)):
        return False
    outcome = outcomes.get(Key(group, kind, str(metadata.get("namespace") or "default"), str(metadata.get("name"))))
    return outcome is None or not outcome.targets
