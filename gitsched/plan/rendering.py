"""From outcomes to the files of the output branch: the records of each workload, and each cluster's whole directory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from gitsched.model.cluster import ClusterFacts
from gitsched.model.document import Body, Document, Key
from gitsched.model.files import Keep, PlannedFile
from gitsched.model.finding import Finding, locate
from gitsched.model.outcome import Outcome
from gitsched.plan.deciding import Decided
from gitsched.render.directory import STUB_TWIN, complete_directory
from gitsched.render.layout import cluster_path, relative_path, segment, status_path
from gitsched.render.manifest import plan_manifest, write_manifest
from gitsched.render.status import multicluster_decision, status_document
from gitsched.render.yaml import Fragment, fragment

Files = Mapping[str, PlannedFile]
SCHEDULER = "gitsched"


class Share(NamedTuple):
    """What one workload contributes: its records, and by cluster what it renders there, by path relative to the cluster's directory.

    `paths` are all those paths; one, unless the API renders other objects than the workload itself.
    """

    outcome: Outcome
    records: Files
    paths: tuple[str, ...]
    manifests: Mapping[str, Files]


class Directory(NamedTuple):
    """A cluster's directory and what it was made from."""

    facts: ClusterFacts
    placed: Files
    files: Files


class Picture(NamedTuple):
    """Everything rendered in one run. `placed` are, by cluster, the manifests of its workloads, `directories` whole directories."""

    shares: Mapping[Key, Share]
    placed: Mapping[str, Files]
    directories: Mapping[str, Directory]
    files: Files
    facts: Mapping[str, ClusterFacts]
    findings: tuple[Finding, ...]


class Canvas:
    """What the last run rendered, and placements that are written already."""

    __slots__ = ("_fragments", "picture")

    def __init__(self) -> None:
        self.picture: Picture | None = None
        self._fragments: dict[int, tuple[Body, Fragment]] = {}

    def condense(self, body: Body) -> Body:
        """A binding whose placement is written already: thousands share the placement of one policy, which is the same object."""
        spec = body.get("spec") or {}
        placement = spec.get("placement")
        if not placement:
            return body
        known = self._fragments.get(id(placement))
        if known is None or known[0] is not placement:
            if len(self._fragments) > 10_000:
                self._fragments.clear()
            known = self._fragments[id(placement)] = placement, fragment(placement)
        return {**body, "spec": {**spec, "placement": known[1]}}


Lookup = Callable[[str], str | None]


def render(decided: Decided, retiring: Mapping[str, datetime], lookup: Lookup, canvas: Canvas | None = None) -> Picture:
    """Plan every file under clusters/, status/ and placements/.

    `retiring` are clusters without a document that keep a directory with the stub alone. `lookup` gives the blob that a path of the
    previous output has: a frozen workload keeps its files.
    """
    canvas = canvas or Canvas()
    shares = {key: _share(outcome, decided, lookup, canvas) for key, outcome in decided.outcomes.items()}
    files = {path: file for share in shares.values() for path, file in share.records.items()}
    for key, body in (record for session in decided.sessions for record in session.documents()):
        files[status_path(key)] = status_document(body)
    placed, counts = _gather(shares)
    facts: dict[str, ClusterFacts] = {}
    for name, cluster in (entry for session in decided.sessions for entry in session.clusters().items()):
        facts.setdefault(name, cluster)  # the first API that knows a cluster says what it is like
    facts |= {name: ClusterFacts(name, {}) for name in retiring if name not in facts}
    own, known = list_own_namespaces(decided.templates), canvas.picture.directories if canvas.picture else {}
    directories = {}
    for name in facts:
        workloads, replicas = counts.get(name, (0, 0))
        facts[name] = facts[name]._replace(workloads=workloads, replicas=replicas)
        directories[name] = _direct(facts[name], with_namespaces(placed.get(name, {}), own), known.get(name))
        files.update(directories[name].files)
    collisions = tuple(_collisions(shares.values(), decided.templates))
    canvas.picture = Picture(shares, placed, directories, files, facts, collisions)
    return canvas.picture


def _direct(facts: ClusterFacts, placed: Files, last: Directory | None) -> Directory:
    """A cluster's directory; the last one where nothing about it changed."""
    if last is not None and last.facts == facts and last.placed == placed:
        return last
    files = complete_directory(facts, placed)
    return Directory(facts, placed, {cluster_path(facts.name, path): file for path, file in files.items()})


def _share(outcome: Outcome, decided: Decided, lookup: Lookup, canvas: Canvas) -> Share:
    known = canvas.picture.shares.get(outcome.key) if canvas.picture is not None else None
    if known is not None and known.outcome is outcome:
        return known
    return make_share(outcome, decided.templates[outcome.key], outcome.key in decided.frozen, lookup, canvas)


def make_share(outcome: Outcome, template: Document, frozen: bool, lookup: Lookup, canvas: Canvas) -> Share:
    """What a workload contributes; a `frozen` one keeps the manifests that it has."""
    others = None if outcome.manifests is None else {relative_path(key): write_manifest(body) for key, body in outcome.manifests}
    former = (relative_path(key) for key in outcome.former)
    paths = (relative_path(outcome.key),) if others is None else tuple(dict.fromkeys((*others, *former)))
    manifests: dict[str, Files] = {}
    written: dict[Any, Files] = {}  # clusters whose manifests are the same share one file
    for place in outcome.placed:
        if place.kept or frozen:
            blobs = ((path, lookup(cluster_path(place.cluster, path))) for path in paths)
            manifests[place.cluster] = {path: Keep(blob) for path, blob in blobs if blob is not None}
        elif others is not None:
            manifests[place.cluster] = others
        else:
            what = place.edits if place.body is None else id(place.body)
            if what not in written:
                file = plan_manifest(template, *place.edits) if place.body is None else write_manifest(place.body)
                written[what] = {paths[0]: file}
            manifests[place.cluster] = written[what]
    return Share(outcome, _records(outcome, canvas), paths, manifests)


def _records(outcome: Outcome, canvas: Canvas) -> Files:
    files: dict[str, PlannedFile] = {status_path(key): status_document(canvas.condense(body)) for key, body in outcome.documents}
    decisions = [(cluster, replicas, None, outcome.reason) for cluster, replicas in outcome.shares.items()]
    files.update(multicluster_decision(outcome.key, decisions, SCHEDULER))
    return files


def _gather(shares: Mapping[Key, Share]) -> tuple[dict[str, dict[str, PlannedFile]], dict[str, tuple[int, int]]]:
    placed: dict[str, dict[str, PlannedFile]] = {}
    counts: dict[str, tuple[int, int]] = {}
    for share in shares.values():
        for cluster, files in share.manifests.items():
            placed.setdefault(cluster, {}).update(files)
        count_places(counts, share.outcome, 1)
    return placed, counts


def count_places(counts: dict[str, tuple[int, int]], outcome: Outcome, sign: int) -> None:
    """Add or take away what a workload places."""
    for cluster, replicas in outcome.shares.items():
        workloads, total = counts.get(cluster, (0, 0))
        counts[cluster] = workloads + sign, total + sign * (replicas or 0)


def list_own_namespaces(templates: Mapping[Key, Document]) -> dict[str, tuple[str, PlannedFile]]:
    """The repository's own Namespace manifests by the directory that their objects lie in."""
    return {
        segment(key.name): (relative_path(key), plan_manifest(template))
        for key, template in templates.items()
        if key.kind == "Namespace" and not key.group
    }


def with_namespaces(placed: Files, own: Mapping[str, tuple[str, PlannedFile]]) -> Files:
    """A Namespace manifest of the repository goes wherever something of that namespace goes, selected by a policy or not."""
    used = {path.partition("/")[0] for path in placed} & own.keys() if own else ()
    added = {own[namespace][0]: own[namespace][1] for namespace in used}
    return {**added, **placed} if added else placed


def _collisions(shares: Iterable[Share], templates: Mapping[Key, Document]) -> list[Finding]:
    """Workloads that would lie where another one, or the stub, lies."""
    taken: dict[str, Key] = {}
    findings = []
    for share in shares:
        key = share.outcome.key
        for path in share.paths:
            other = taken.setdefault(path, key)
            if other is not key and share.outcome.manifests is None:
                message = f"{key} and {other} would be the same file: their kinds differ only in case"
                findings.append(Finding("error", "path-collision", message, locate(templates[key]), key.resource))
            elif other is not key:
                message = f"{key} and {other} render the same object, {path}"
                findings.append(Finding("error", "path-collision", message, locate(templates[key]), key.resource))
        if STUB_TWIN in share.paths:
            message = f"{key} has the name of gitsched's own stub, which takes its place in every cluster"
            findings.append(Finding("warning", "stub-replaced", message, locate(templates[key]), key.resource))
    return findings
