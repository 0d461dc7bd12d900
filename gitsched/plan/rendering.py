"""From outcomes to the files of the output branch, in groups that change together.

A group is all that one workload has under status/ and placements/, or one cluster's whole directory. Groups that come out of memory are
the very same objects as last time, so that the shell writes only what is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from gitsched.model.document import Body, Document, Key
from gitsched.model.files import Keep, PlannedFile
from gitsched.model.finding import Finding
from gitsched.model.outcome import Outcome
from gitsched.plan.catalog import locate
from gitsched.plan.deciding import Decided
from gitsched.render.cluster import ClusterFacts
from gitsched.render.directory import STUB_TWIN, complete_directory
from gitsched.render.layout import cluster_path, relative_path, segment, status_path
from gitsched.render.manifest import plan_manifest
from gitsched.render.status import multicluster_decision, status_document
from gitsched.render.yaml import Fragment, fragment

Files = Mapping[str, PlannedFile]
SCHEDULER = "gitsched"


class Share(NamedTuple):
    """What one workload contributes: its records, and its manifest by cluster. `path` is relative to a cluster's directory."""

    outcome: Outcome
    records: Files
    path: str
    manifests: Mapping[str, PlannedFile]


class Directory(NamedTuple):
    """A cluster's directory and what it was made from."""

    facts: ClusterFacts
    placed: Files
    files: Files


class Canvas:
    """Rendered shares and directories of the last run."""

    __slots__ = ("_fragments", "directories", "shares")

    def __init__(self) -> None:
        self.shares: dict[Key, Share] = {}
        self.directories: dict[str, Directory] = {}
        self._fragments: dict[int, tuple[Body, Fragment]] = {}

    def keep(self, shares: dict[Key, Share], directories: dict[str, Directory]) -> None:
        """Remember this run's for the next; what earlier runs wrote of placements goes when it has become too much."""
        self.shares, self.directories = shares, directories
        if len(self._fragments) > 10_000:
            self._fragments.clear()

    def condense(self, body: Body) -> Body:
        """A binding whose placement is written already: thousands share the placement of one policy, which is the same object."""
        spec = body.get("spec") or {}
        placement = spec.get("placement")
        if not placement:
            return body
        known = self._fragments.get(id(placement))
        if known is None or known[0] is not placement:
            known = self._fragments[id(placement)] = placement, fragment(placement)
        return {**body, "spec": {**spec, "placement": known[1]}}


class Rendered(NamedTuple):
    """`facts` are the clusters with what is placed on them."""

    groups: Mapping[str, Files]
    facts: Mapping[str, ClusterFacts]
    findings: tuple[Finding, ...]


def render(
    decided: Decided, retiring: Mapping[str, datetime], lookup: Callable[[str], str | None], canvas: Canvas | None = None
) -> Rendered:
    """Plan every file under clusters/, status/ and placements/.

    `retiring` are clusters without a document that keep a directory with the stub alone. `lookup` gives the blob that a path of the
    previous output has: a frozen workload keeps its files.
    """
    canvas = canvas or Canvas()
    shares = {key: _share(outcome, decided, lookup, canvas) for key, outcome in decided.outcomes.items()}
    findings = _collisions(shares.values(), decided.templates)
    placed, counts = _gather(shares)
    _add_namespaces(placed, decided.templates)
    facts = {name: cluster for session in decided.sessions for name, cluster in session.clusters().items()}
    facts |= {name: ClusterFacts(name, {}) for name in retiring if name not in facts}
    groups: dict[str, Files] = {str(key): share.records for key, share in shares.items()}
    full: dict[str, ClusterFacts] = {}
    directories: dict[str, Directory] = {}
    for name, cluster in facts.items():
        workloads, replicas = counts.get(name, (0, 0))
        full[name] = cluster._replace(workloads=workloads, replicas=replicas)
        directories[name] = _directory(full[name], placed.get(name, {}), canvas)
        groups[f"clusters/{name}"] = directories[name].files
    for key, body in (record for session in decided.sessions for record in session.documents()):
        groups[f"record {key}"] = {status_path(key): status_document(body)}
    canvas.keep(shares, directories)
    return Rendered(groups, full, tuple(findings))


def _share(outcome: Outcome, decided: Decided, lookup: Callable[[str], str | None], canvas: Canvas) -> Share:
    known = canvas.shares.get(outcome.key)
    if known is not None and known.outcome is outcome:
        return known
    template = decided.templates[outcome.key]
    path = relative_path(outcome.key)
    manifests: dict[str, PlannedFile] = {}
    for place in outcome.placed:
        if outcome.key in decided.frozen:
            blob = lookup(cluster_path(place.cluster, path))
            if blob is not None:
                manifests[place.cluster] = Keep(blob)
        else:
            manifests[place.cluster] = _manifest(template, outcome, place.replicas)
    return Share(outcome, _records(outcome, canvas), path, manifests)


def _manifest(template: Document, outcome: Outcome, replicas: int | None) -> PlannedFile:
    share = (outcome.replicas_path, replicas) if outcome.replicas_path and replicas is not None else None
    return plan_manifest(template, share)


def _records(outcome: Outcome, canvas: Canvas) -> Files:
    files: dict[str, PlannedFile] = {status_path(key): status_document(canvas.condense(body)) for key, body in outcome.documents}
    decisions = [(cluster, replicas, None, outcome.reason) for cluster, replicas in outcome.shares.items()]
    files.update(multicluster_decision(outcome.key, decisions, SCHEDULER))
    return files


def _gather(shares: Mapping[Key, Share]) -> tuple[dict[str, dict[str, PlannedFile]], dict[str, tuple[int, int]]]:
    """The manifests of each cluster, and how many workloads and replicas are placed there."""
    placed: dict[str, dict[str, PlannedFile]] = {}
    counts: dict[str, tuple[int, int]] = {}
    for share in shares.values():
        for cluster, file in share.manifests.items():
            placed.setdefault(cluster, {})[share.path] = file
        for cluster, replicas in share.outcome.shares.items():
            workloads, total = counts.get(cluster, (0, 0))
            counts[cluster] = workloads + 1, total + (replicas or 0)
    return placed, counts


def _add_namespaces(placed: Mapping[str, dict[str, PlannedFile]], templates: Mapping[Key, Document]) -> None:
    """The repository's own Namespace manifest goes wherever something of that namespace goes, selected by a policy or not."""
    own = {}
    for key, template in templates.items():
        if (key.group, key.kind) == ("", "Namespace"):
            own[segment(key.name)] = (relative_path(key), template)
    if not own:
        return
    for files in placed.values():
        for namespace in {path.partition("/")[0] for path in files} & own.keys():
            path, template = own[namespace]
            if path not in files:
                files[path] = plan_manifest(template)


def _directory(facts: ClusterFacts, placed: Files, canvas: Canvas) -> Directory:
    known = canvas.directories.get(facts.name)
    if known is not None and known.facts == facts and known.placed == placed:
        return known
    files = complete_directory(facts, placed)
    return Directory(facts, placed, {cluster_path(facts.name, path): file for path, file in files.items()})


def _collisions(shares: Iterable[Share], templates: Mapping[Key, Document]) -> list[Finding]:
    """Workloads that would lie where another one, or the stub, lies."""
    taken: dict[str, Key] = {}
    findings = []
    for share in shares:
        key = share.outcome.key
        other = taken.setdefault(share.path, key)
        if other is not key:
            message = f"{key} and {other} would be the same file: their kinds differ only in case"
            findings.append(Finding("error", "path-collision", message, locate(templates[key]), key.resource))
        if share.path == STUB_TWIN:
            message = f"{key} has the name of gitsched's own stub, which takes its place in every cluster"
            findings.append(Finding("warning", "stub-replaced", message, locate(templates[key]), key.resource))
    return findings
