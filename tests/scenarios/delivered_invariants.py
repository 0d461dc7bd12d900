"""Check what an output branch delivers from one commit to the next, with nothing but Git and YAML: no module of gitsched is imported.

For Deployments, StatefulSets and Jobs that a PropagationPolicy of Karmada selects:

- the replicas in all clusters are never fewer than the lesser of those before and those that the source asks for;
- from one commit to the next a workload only gets replicas or only loses them, unless it is a Job, which is never in two clusters, or the
  number in its full copies changes in the waves of a Rollout. Copies whose recorded overlap was over before, and without which the clusters
  of the binding had all replicas that the source asked for, do not count;
- a cluster gets a version that no cluster outside of the mandatory groups of a Rollout had only if the clusters of these groups reported
  that it is healthy, and no other cluster gets a version while more clusters than `maxFailures` report that it is not;
- no Job asks for more completions than the source, apart from copies that are being evicted, and these do not change, unless dispatching is
  suspended or an override for all workloads may fail.

`python -m tests.scenarios.delivered_invariants REPOSITORY [OUTPUT_BRANCH]` prints what is wrong.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pygit2
import yaml

Body = Mapping[str, Any]
SOURCE_TRAILER = "Gitsched-Source: "
FILE_NAMES = {"Deployment": "deployment", "StatefulSet": "statefulset", "Job": "job.batch"}
COUNTS = {"Deployment": "replicas", "StatefulSet": "replicas", "Job": "parallelism"}


class Copy(NamedTuple):
    """The manifest of a workload in the directory of a cluster."""

    blob: str
    replicas: int
    version: str
    completions: int | None


class Workload(NamedTuple):
    """A workload of the source: where its policy may place it, None for all clusters, whether its replicas are divided, and whether some
    manifests are kept, because dispatching is suspended or an override for all workloads may fail."""

    kind: str
    name: str
    replicas: int
    completions: int | None
    clusters: frozenset[str] | None
    is_divided: bool
    is_kept: bool

    @property
    def path(self) -> str:
        return _get_path({"kind": self.kind, "name": self.name})

    @property
    def binding(self) -> str:
        return f"status/work.karmada.io/resourcebinding/default/{self.name}-{self.kind.lower()}.yaml"


class Waves(NamedTuple):
    """A Rollout: the workload that it selects by name, the labels of its mandatory clusters, how many failures it goes on with, and
    the clusters whose failure is accepted."""

    kind: str
    name: str
    canaries: frozenset[tuple[str, str]]
    max_failures: int
    accepted: frozenset[str]


class Source(NamedTuple):
    """What a commit of the source asks for. `reports` are those of clusters: output commit and health."""

    workloads: Mapping[str, Workload]
    clusters: Mapping[str, Mapping[str, str]]
    away: frozenset[str]
    rollouts: tuple[Waves, ...]
    reports: Mapping[str, tuple[str, str]]


class Output(NamedTuple):
    """What a commit of the output delivers: copies by path and cluster, the replicas in the clusters that each binding has, and the ends of
    overlaps by path and cluster."""

    commit: str
    source: Source
    copies: Mapping[str, Mapping[str, Copy]]
    bound: Mapping[str, Mapping[str, int]]
    ends: Mapping[tuple[str, str], datetime]
    time: datetime

    def list_needed(self, path: str, time: datetime) -> Mapping[str, Copy]:
        """Return the copies of a workload: those whose overlap is over at a time with what the binding asks for, if it has everything."""
        copies, bound, workload = self.copies.get(path, {}), self.bound.get(path, {}), self.source.workloads.get(path)
        if workload is None:
            return copies
        over = [name for name in copies if (path, name) in self.ends and self.ends[path, name] <= time]
        counts = {name: min(copies[name].replicas, bound.get(name, 0)) for name in over}
        needed = {
            name: one._replace(replicas=counts.get(name, one.replicas)) for name, one in copies.items() if counts.get(name, 1)
        }
        wanted = workload.replicas if workload.is_divided else sum(bound.values())
        return needed if sum(one.replicas for one in needed.values()) >= wanted else copies


class Reader:
    """Reads commits of a repository."""

    def __init__(self, path: Path) -> None:
        self._repository = pygit2.Repository(str(path))
        self._load = lru_cache(maxsize=10_000)(self._load_blob)
        self._sources: dict[str, Source] = {}

    def list_commits(self, branch: str) -> list[str]:
        """Return the commits of a branch, the oldest first."""
        head = self._repository.references[f"refs/heads/{branch}"].peel(pygit2.Commit).id
        return [str(one.id) for one in self._repository.walk(head, pygit2.enums.SortMode.TOPOLOGICAL)][::-1]

    def read_output(self, commit: str) -> Output:
        found: Any = self._repository[commit]
        source = next(line for line in found.message.splitlines() if line.startswith(SOURCE_TRAILER)).removeprefix(SOURCE_TRAILER)
        files = dict(self._list_files(found.peel(pygit2.Tree)))
        copies: dict[str, dict[str, Copy]] = {}
        for path, blob in files.items():
            parts = path.split("/", 2)
            if parts[0] == "clusters" and parts[2].startswith(tuple(f"default/{name}-" for name in FILE_NAMES.values())):
                copies.setdefault(parts[2], {})[parts[1]] = self._read_copy(blob)
        if source not in self._sources:
            self._sources[source] = self._read_source(source)
        bound = {
            one.path: {
                each["name"]: each.get("replicas", one.replicas)
                for each in self._load(files[one.binding])[0]["spec"].get("clusters") or ()
            }
            for one in self._sources[source].workloads.values()
            if one.binding in files
        }
        record = json.loads(self._repository[files["gitsched.json"]].data)
        ends = {
            (_get_path(each["workload"]), each["cluster"]): datetime.fromisoformat(each["until"])
            for each in record.get("retainedCopies", ())
            if "until" in each and each["workload"]["kind"] in FILE_NAMES
        }
        return Output(commit, self._sources[source], copies, bound, ends, datetime.fromisoformat(record["time"]))

    def _read_copy(self, blob: str) -> Copy:
        (body,) = self._load(blob)
        spec = body["spec"]
        image = spec["template"]["spec"]["containers"][0]["image"]
        return Copy(blob, spec.get(COUNTS[body["kind"]], 1), image.rpartition(":")[2], spec.get("completions"))

    def _read_source(self, commit: str) -> Source:
        found: Any = self._repository[commit]
        bodies = [
            body for path, blob in self._list_files(found.peel(pygit2.Tree)) if path.endswith(".yaml") for body in self._load(blob)
        ]
        kinds: dict[str, list[Body]] = {}
        for body in bodies:
            kinds.setdefault(body["kind"], []).append(body)
        policies, overrides = kinds.get("PropagationPolicy", []), kinds.get("OverridePolicy", [])
        workloads = (_read_workload(body, policies, overrides) for kind in FILE_NAMES for body in kinds.get(kind, ()))
        clusters = kinds.get("Cluster", [])
        return Source(
            {one.path: one for one in workloads if one is not None},
            {body["metadata"]["name"]: body["metadata"].get("labels") or {} for body in clusters},
            frozenset(body["metadata"]["name"] for body in clusters if _is_away(body)),
            tuple(_read_rollout(body) for body in kinds.get("Rollout", ())),
            {
                body["metadata"]["name"]: (body["spec"]["appliedCommit"], body["spec"]["health"])
                for body in kinds.get("ClusterReport", ())
            },
        )

    def _list_files(self, tree: pygit2.Tree, directory: str = "") -> Iterator[tuple[str, str]]:
        for entry in tree:
            if isinstance(entry, pygit2.Tree):
                yield from self._list_files(entry, f"{directory}{entry.name}/")
            else:
                yield f"{directory}{entry.name}", str(entry.id)

    def _load_blob(self, blob: str) -> list[Body]:
        found: Any = self._repository[blob]
        return [body for body in yaml.load_all(found.data, yaml.CSafeLoader) if body]


def _get_path(named: Body) -> str:
    """Return the path of a workload in the directory of a cluster."""
    return f"default/{FILE_NAMES[named['kind']]}-{named['name']}.yaml"


def _read_workload(body: Body, policies: Iterable[Body], overrides: Iterable[Body]) -> Workload | None:
    """Return what a policy says about a workload; None if none selects it."""
    kind, name, spec = body["kind"], body["metadata"]["name"], body["spec"]
    for one in policies:
        selectors = one["spec"]["resourceSelectors"]
        if any(each["kind"] == kind and each.get("name", name) == name for each in selectors):
            placement = one["spec"]["placement"]
            terms = placement.get("clusterAffinities") or [placement.get("clusterAffinity") or {}]
            named = [each.get("clusterNames") for each in terms]
            clusters = None if None in named else frozenset(each for names in named for each in names)
            is_divided = placement.get("replicaScheduling", {}).get("replicaSchedulingType", "Duplicated") == "Divided"
            is_kept = "suspension" in one["spec"] or any("resourceSelectors" not in each["spec"] for each in overrides)
            return Workload(kind, name, spec.get(COUNTS[kind], 1), spec.get("completions"), clusters, is_divided, is_kept)
    return None


def _is_away(body: Body) -> bool:
    """Return whether a cluster takes no workloads."""
    conditions = (body.get("status") or {}).get("conditions") or ()
    return bool(body["spec"].get("taints")) or any(one["type"] == "Ready" and one["status"] != "True" for one in conditions)


def _read_rollout(body: Body) -> Waves:
    spec = body["spec"]
    strategy = spec["rolloutStrategy"]
    options = strategy.get("progressive") or strategy.get("progressivePerGroup") or {}
    wanted = {one["groupName"] for one in options.get("mandatoryDecisionGroups") or ()}
    groups = spec["groupStrategy"]["decisionGroups"]
    if not wanted and strategy["type"] == "ProgressivePerGroup":
        wanted = {groups[0]["groupName"]}
    labels = (one["groupClusterSelector"]["labelSelector"]["matchLabels"] for one in groups if one["groupName"] in wanted)
    (selector,) = spec["resourceSelectors"]
    accepted = (body["metadata"].get("annotations") or {}).get("gitsched.io/accept-failures", "")
    return Waves(
        selector["kind"],
        selector["name"],
        frozenset(pair for each in labels for pair in each.items()),
        options.get("maxFailures", 0),
        frozenset(each.partition("@")[0].strip() for each in accepted.split(",")),
    )


class Invariants:
    """Follows an output branch, commit by commit."""

    def __init__(self, first: Output) -> None:
        self._ages = {first.commit: 0}
        self._history = {first.commit: first}
        self._since: dict[tuple[str, str], int] = {}
        self._released: dict[str, set[str]] = {}
        self._had: dict[tuple[str, str], set[str]] = {}
        self._healthy: dict[tuple[str, str], set[str]] = {}
        self._note(first, first)

    def follow(self, before: Output, after: Output) -> Iterator[str]:
        """Yield what is wrong with a commit after another one."""
        self._ages[after.commit] = len(self._ages)
        self._history[after.commit] = after
        for path, workload in after.source.workloads.items():
            old, new = before.copies.get(path, {}), after.copies.get(path, {})
            needed, bound = before.list_needed(path, after.time), after.bound.get(path, {})
            is_rolled_out = any((one.kind, one.name) == (workload.kind, workload.name) for one in after.source.rollouts)
            yield from _check_replicas(workload, needed, new, bound, is_rolled_out)
            if workload.completions is not None and workload.is_divided:
                yield from _check_completions(workload, old, new, bound)
        yield from self._check_waves(before, after)
        self._note(before, after)

    def _note(self, before: Output, after: Output) -> None:
        """Note which clusters got a version, and which reported that it is healthy."""
        waves = {(one.kind, one.name): one for one in after.source.rollouts}
        for path, copies in after.copies.items():
            workload = after.source.workloads.get(path)
            rollout = waves.get((workload.kind, workload.name)) if workload is not None else None
            for name, copy in copies.items():
                self._had.setdefault((path, copy.version), set()).add(name)
                is_first = rollout is not None and not rollout.canaries.isdisjoint(after.source.clusters.get(name, {}).items())
                changed = name not in before.copies.get(path, {}) or before.copies[path][name].version != copy.version
                if changed:
                    self._since[path, name] = self._ages[after.commit]
                if not is_first and (changed or before is after):
                    self._released.setdefault(path, set()).add(copy.version)
            bound = after.bound.get(path, {}).keys() & after.source.clusters.keys()
            versions = {copies[name].version if name in copies else "" for name in bound}
            if len(versions) == 1 and bound <= self._healthy.get((path, *versions), set()):  # all clusters may be canaries
                self._released.setdefault(path, set()).update(versions)

    def _read_health(self, source: Source, path: str) -> dict[tuple[str, str], str]:
        """Return what clusters report of the versions of a workload, by version and cluster."""
        found = {}
        for name, (commit, health) in source.reports.items():
            known = self._history.get(commit)
            copy = known.copies.get(path, {}).get(name) if known is not None else None
            if copy is not None and self._ages[commit] >= self._since.get((path, name), 0):
                found[copy.version, name] = health
        return found

    def _check_waves(self, before: Output, after: Output) -> Iterator[str]:
        source = after.source
        for rollout in source.rollouts:
            path = next(
                (path for path, one in source.workloads.items() if (one.kind, one.name) == (rollout.kind, rollout.name)), ""
            )
            if not path:
                continue
            workload, old, new = source.workloads[path], before.copies.get(path, {}), after.copies.get(path, {})
            health = self._read_health(source, path)
            for (version, name), state in health.items():
                if state == "Healthy":
                    self._healthy.setdefault((path, version), set()).add(name)
            eligible = [name for name in source.clusters if workload.clusters is None or name in workload.clusters]
            canaries = [name for name in eligible if not rollout.canaries.isdisjoint(source.clusters[name].items())]
            if not canaries:  # nothing waits for one that is removed
                self._released.setdefault(path, set()).update(copy.version for copy in (*old.values(), *new.values()))
            for name, copy in new.items():
                version = copy.version
                if name in canaries or (name in old and old[name].version == version):
                    continue
                if version not in self._released.get(path, ()):
                    tried = [one for one in canaries if one in self._had.get((path, version), ())]
                    wanted = tried or [one for one in canaries if one in after.bound.get(path, ()) or one in source.away]
                    for one in wanted:
                        if one not in self._healthy.get((path, version), set()) | rollout.accepted:
                            yield f"{path}: {name} gets {version}, and {one} has not reported that it is healthy"
                if name in old and len({one.version for one in old.values()}) > 1:
                    ill = [
                        one
                        for one in eligible
                        if health.get((version, one)) == "Degraded" and one in old and old[one].version == version
                    ]
                    ill = [one for one in ill if one not in rollout.accepted]
                    first = sorted(set(ill) & set(canaries))
                    if first or len(ill) > rollout.max_failures:
                        yield f"{path}: {name} gets {version}, which is not healthy in {ill}"


def _check_replicas(
    workload: Workload, old: Mapping[str, Copy], new: Mapping[str, Copy], bound: Mapping[str, int], is_rolled_out: bool
) -> Iterator[str]:
    before, after = (sum(one.replicas for one in copies.values()) for copies in (old, new))
    if workload.is_divided or not bound:
        wanted = workload.replicas
    else:  # the number in full copies waits for a wave, too
        wanted = sum(
            min(workload.replicas, old[name].replicas) if is_rolled_out and name in old else workload.replicas for name in bound
        )
    if after < min(before, wanted):
        yield f"{workload.path}: {after} replicas of {wanted}, and {before} before: {_show(old)} -> {_show(new)}"
    common = sum(min(one.replicas, new[name].replicas) for name, one in old.items() if name in new)
    is_scaled_in_waves = is_rolled_out and not workload.is_divided
    if workload.kind != "Job" and wanted and not is_scaled_in_waves and common < min(before, after):
        yield f"{workload.path}: only {common} replicas stay: {_show(old)} -> {_show(new)}"


def _check_completions(
    workload: Workload, old: Mapping[str, Copy], new: Mapping[str, Copy], bound: Mapping[str, int]
) -> Iterator[str]:
    wanted = workload.completions or 0
    before, total = (sum(one.completions or 0 for name, one in copies.items() if name in bound) for copies in (old, new))
    if total > max(wanted, before) and not workload.is_kept:
        yield f"{workload.path}: {total} completions of {wanted}: {_show(new)}"
    for name, one in new.items():
        if name not in bound and name in old and one.completions != old[name].completions:
            yield f"{workload.path}: {name} keeps a copy, and its completions change: {_show(old)} -> {_show(new)}"


def _show(copies: Mapping[str, Copy]) -> str:
    return " ".join(f"{name}={one.version}x{one.replicas}" for name, one in sorted(copies.items())) or "nothing"


def check_branch(path: Path, branch: str = "placements") -> list[str]:
    """Return what is wrong with the commits of an output branch, each with the start of its id."""
    reader = Reader(path)
    outputs = [reader.read_output(commit) for commit in reader.list_commits(branch)]
    if not outputs:
        return []
    invariants = Invariants(outputs[0])
    return [f"{after.commit[:10]} {text}" for before, after in pairwise(outputs) for text in invariants.follow(before, after)]


if __name__ == "__main__":
    for line in check_branch(Path(sys.argv[1]), *sys.argv[2:3]):
        print(line)
