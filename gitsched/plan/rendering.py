"""From outcomes to the files of the output branch, in groups that change together.

A group is all that one workload has under status/ and placements/, or one cluster's whole directory. Groups that come out of memory are
the very same objects as last time, so that the shell writes only what is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from gitsched.model.cluster import ClusterFacts
from gitsched.model.document import Body, Document, Key
from gitsched.model.files import Keep, PlannedFile
from gitsched.model.finding import Finding
from gitsched.model.outcome import Outcome
from gitsched.plan.catalog import locate
from gitsched.plan.deciding import Decided
from gitsched.render.directory import STUB_TWIN, complete_directory
from gitsched.render.layout import cluster_path, relative_path, segment, status_path
from gitsched.render.manifest import plan_manifest, write_manifest
from gitsched.render.status import multicluster_decision, status_document
from gitsched.render.yaml import Fragment, fragment

Files = Mapping[str, PlannedFile]
SCHEDULER = "gitsched"
_MUCH = 20
"""When more than one workload in so many was decided anew, painting everything is cheaper than retouching."""


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
    """Everything rendered in one run. `placed` and `counts` are, by cluster, its manifests and (workloads, replicas)."""

    outcomes: Mapping[Key, Outcome]
    shares: Mapping[Key, Share]
    placed: Mapping[str, Files]
    counts: Mapping[str, tuple[int, int]]
    directories: Mapping[str, Directory]
    groups: Mapping[str, Files]
    facts: Mapping[str, ClusterFacts]
    retiring: Mapping[str, datetime]
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
    last = canvas.picture
    much = len(decided.dirty) > len(decided.outcomes) // _MUCH
    if last is None or much or decided.base is not last.outcomes or retiring != last.retiring or _touches_namespaces(decided.dirty):
        picture = _paint(decided, retiring, lookup, canvas)
    else:
        picture = _retouch(last, decided, lookup, canvas)
    canvas.picture = picture
    return picture


def _paint(decided: Decided, retiring: Mapping[str, datetime], lookup: Lookup, canvas: Canvas) -> Picture:
    shares = {key: _share(outcome, decided, lookup, canvas) for key, outcome in decided.outcomes.items()}
    placed, counts = _gather(shares)
    clusters: dict[str, ClusterFacts] = {}
    for name, facts in (entry for session in decided.sessions for entry in session.clusters().items()):
        clusters.setdefault(name, facts)  # the first API that knows a cluster says what it is like
    clusters |= {name: ClusterFacts(name, {}) for name in retiring if name not in clusters}
    groups: dict[str, Files] = {str(key): share.records for key, share in shares.items()}
    for key, body in (record for session in decided.sessions for record in session.documents()):
        groups[f"record {key}"] = {status_path(key): status_document(body)}
    picture = Picture(
        decided.outcomes,
        shares,
        placed,
        counts,
        {},
        groups,
        clusters,
        retiring,
        tuple(_collisions(shares.values(), decided.templates)),
    )
    return _complete(picture, clusters, decided.templates, canvas.picture)


def _retouch(last: Picture, decided: Decided, lookup: Lookup, canvas: Canvas) -> Picture:
    """The last picture with what was decided anew painted over."""
    shares, groups = dict(last.shares), dict(last.groups)
    placed: dict[str, Files] = dict(last.placed)
    counts = dict(last.counts)
    touched: set[str] = set()
    for key in sorted(decided.dirty & decided.outcomes.keys()):
        old, new = shares[key], _share(decided.outcomes[key], decided, lookup, canvas)
        shares[key], groups[str(key)] = new, new.records
        for cluster in old.manifests.keys() | new.manifests.keys():
            files = {path: file for path, file in placed.get(cluster, {}).items() if path not in old.paths}
            placed[cluster] = {**files, **new.manifests.get(cluster, {})}
            touched.add(cluster)
        _count(counts, old.outcome, -1)
        _count(counts, new.outcome, 1)
        touched |= old.outcome.shares.keys() | new.outcome.shares.keys()
    picture = last._replace(outcomes=decided.outcomes, shares=shares, placed=placed, counts=counts, groups=groups)
    return _complete(picture, touched & last.facts.keys(), decided.templates, last)


def _complete(picture: Picture, names: Iterable[str], templates: Mapping[Key, Document], last: Picture | None) -> Picture:
    """The picture with the directories of these clusters made, or taken from the last one where nothing about them changed."""
    own = _own_namespaces(templates)
    facts, directories, groups = dict(picture.facts), dict(picture.directories), dict(picture.groups)
    known = last.directories if last is not None else {}
    for name in names:
        workloads, replicas = picture.counts.get(name, (0, 0))
        facts[name] = facts[name]._replace(workloads=workloads, replicas=replicas)
        placed = _with_namespaces(picture.placed.get(name, {}), own)
        directory = known.get(name)
        if directory is None or directory.facts != facts[name] or directory.placed != placed:
            files = complete_directory(facts[name], placed)
            directory = Directory(facts[name], placed, {cluster_path(name, path): file for path, file in files.items()})
        directories[name] = directory
        groups[f"clusters/{name}"] = directory.files
    return picture._replace(facts=facts, directories=directories, groups=groups)


def _share(outcome: Outcome, decided: Decided, lookup: Lookup, canvas: Canvas) -> Share:
    known = canvas.picture.shares.get(outcome.key) if canvas.picture is not None else None
    if known is not None and known.outcome is outcome:
        return known
    template = decided.templates[outcome.key]
    others = None if outcome.manifests is None else {relative_path(key): write_manifest(body) for key, body in outcome.manifests}
    former = (relative_path(key) for key in outcome.former)
    paths = (relative_path(outcome.key),) if others is None else tuple(dict.fromkeys((*others, *former)))
    manifests: dict[str, Files] = {}
    written: dict[Any, Files] = {}  # clusters whose manifests are the same share one file
    for place in outcome.placed:
        if place.kept or outcome.key in decided.frozen:
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
        _count(counts, share.outcome, 1)
    return placed, counts


def _count(counts: dict[str, tuple[int, int]], outcome: Outcome, sign: int) -> None:
    """Add or take away what a workload places."""
    for cluster, replicas in outcome.shares.items():
        workloads, total = counts.get(cluster, (0, 0))
        counts[cluster] = workloads + sign, total + sign * (replicas or 0)


def _touches_namespaces(keys: Iterable[Key]) -> bool:
    return any(key.kind == "Namespace" for key in keys)


def _own_namespaces(templates: Mapping[Key, Document]) -> dict[str, tuple[str, PlannedFile]]:
    """The repository's own Namespace manifests by the directory that their objects lie in."""
    return {
        segment(key.name): (relative_path(key), plan_manifest(template))
        for key, template in templates.items()
        if key.kind == "Namespace" and not key.group
    }


def _with_namespaces(placed: Files, own: Mapping[str, tuple[str, PlannedFile]]) -> Files:
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
