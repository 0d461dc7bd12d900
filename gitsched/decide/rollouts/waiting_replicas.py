"""The replicas of clusters that wait for their turn in a rollout: those of the content that they keep, until that turn.

The guard judges a change as a whole when it is decided. A step of a rollout is no new decision, so that this concerns only what reports
and cluster.json count.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.replicas import AUTOSCALER_KINDS, count_copy_replicas, identify_object, read_scale_limits, read_scale_target
from gitsched.decide.plan_result import HadWorkloads, list_moves
from gitsched.decide.rollouts.approved_content import ContentReader
from gitsched.decide.rollouts.delivered_files import DeliveredFiles, FileSet
from gitsched.decide.scaled_workloads import list_foreign_autoscalers, list_object_keys, may_scale_others
from gitsched.decide.workload_files import WorkloadFiles
from gitsched.model.changes import Move, RetainedCopy
from gitsched.model.document import Body, Key, workload_sort_key
from gitsched.model.planned_files import ExistingBlob
from gitsched.model.rollouts import RolloutResult
from gitsched.model.scheduling import AtLeast, Outcome, TargetCluster
from gitsched.named_tuples import NamedTuple
from gitsched.render.output_files import cluster_path, relative_path

if TYPE_CHECKING:
    from gitsched.decide.rollouts.rollout_source import RolloutSource

Contents = Mapping[tuple[Key, str], FileSet]
"""What clusters keep of workloads, by workload and cluster."""
Copies = frozenset[tuple[Key, str]]
"""Workloads and clusters where a copy stays for an overlap: such copies are counted apart."""


class _Kept(NamedTuple):
    """What clusters keep now, or kept until this run. `autoscalers` are those among it, by cluster and the object that they scale, with
    their minima: None where the cluster does not have the autoscaler yet."""

    contents: Contents
    autoscalers: Mapping[str, Mapping[Key, int | None]]
    copies: Copies
    is_previous: bool = False

    def concerns(self, workload: Key, objects: Collection[Key], cluster: str) -> bool:
        """Return whether a cluster has other replicas of a workload than were decided."""
        return (workload, cluster) in self.contents or not self.autoscalers.get(cluster, {}).keys().isdisjoint(objects)

    def list_minima(self, cluster: str, known: Mapping[Key, int]) -> dict[Key, int]:
        """Return the minima of autoscalers in a cluster, given those of autoscalers that do not wait."""
        minima = {**known, **self.autoscalers.get(cluster, {})}
        return {key: low for key, low in minima.items() if low is not None}


class WaitingReplicas:
    """Counts what clusters have. `delivered` and `reader` are those of the steps of the rollouts."""

    def __init__(self, source: RolloutSource, delivered: DeliveredFiles, reader: ContentReader) -> None:
        self._source, self._delivered, self._reader, self._policies = source, delivered, reader, source.policies
        self._before: dict[tuple[Key, str], FileSet] = {}
        for held in (held for record in source.given.records for held in record.held):
            blobs = ((path, source.previous.find_blob(path)) for path in held.paths)
            self._before[held.workload, held.cluster] = {path: ExistingBlob(blob) for path, blob in blobs if blob is not None}
        self._unseen: frozenset[str] = frozenset()  # clusters without what may be an autoscaler and is removed now
        self._scalers: tuple[tuple[Key, Key], ...] = ()  # autoscalers, each after the workload that brings it along
        self._former: dict[str, dict[Key, int]] = {}  # by cluster, what _read_former_minima returns

    def concern_autoscalers(self, contents: Contents) -> bool:
        """Return whether an autoscaler is among what clusters keep, or kept until this run."""
        return any(key[:2] in AUTOSCALER_KINDS for key, _ in (*contents, *self._before))

    def count(self, contents: Contents, files: Mapping[Key, WorkloadFiles]) -> dict[Key, Outcome]:
        """Return the outcomes with the replicas that clusters have, of the workloads of which clusters keep `contents` or kept another one
        until this run. `files` are those of all workloads that may be concerned."""
        if not (contents or self._before):
            return {}
        now, before = (
            _Kept(kept, self._find_autoscalers(kept, files), _list_copies(copies), is_previous=kept is self._before)
            for kept, copies in ((contents, self._source.retention.copies), (self._before, self._source.previous.retained))
        )
        others = self._list_others(contents, files)
        self._unseen = frozenset(
            cluster
            for (key, cluster), content in self._before.items()
            if not content and key not in files and may_scale_others(key)
        )
        listed = {key: frozenset(list_object_keys(one.outcome, self._policies.variants)) for key, one in files.items()}
        self._scalers = tuple((key, one) for key, objects in listed.items() for one in objects if one[:2] in AUTOSCALER_KINDS)
        self._former = {}
        counted = {}
        for key, one in files.items():
            objects = listed[key]
            targets = (
                *((now, target) for target in one.outcome.targets),
                *((before, target) for target in one.outcome.previous_targets),
            )
            if any(kept.concerns(key, objects, target.cluster) for kept, target in targets):
                counted[key] = self._adapt(one, objects, now, before, others)
        return counted

    def list_former(self, files: Mapping[Key, WorkloadFiles]) -> dict[Key, dict[str, TargetCluster]]:
        """Return what clusters kept of workloads without files, which are removed."""
        former: dict[Key, dict[str, TargetCluster]] = {}
        copies = _list_copies(self._source.previous.retained)
        for (key, cluster), content in self._before.items():
            if key not in files and (key, cluster) not in copies:
                former.setdefault(key, {})[cluster] = self._count(TargetCluster(cluster), content, {})
        return former

    def _find_autoscalers(self, contents: Contents, files: Mapping[Key, WorkloadFiles]) -> dict[str, dict[Key, int | None]]:
        found: dict[str, dict[Key, int | None]] = {}
        for (key, cluster), content in contents.items():
            wanted = self._list_bodies(files[key].outcome) if key in files else ()
            for body in self._reader.read_objects(content) if content else wanted:
                identity = identify_object(body)
                if identity[:2] in AUTOSCALER_KINDS:
                    target, (low, _) = read_scale_target(identity, body), read_scale_limits(identity[:2], body)
                    found.setdefault(cluster, {}).update({target: low if content else None} if target is not None else {})
        return found

    def _list_bodies(self, outcome: Outcome) -> Iterable[Body]:
        if outcome.manifests is not None:
            return (body for _, body in outcome.manifests)
        return (self._policies.templates[outcome.key].body,)

    def _list_others(self, contents: Contents, files: Mapping[Key, WorkloadFiles]) -> dict[str, dict[Key, int]]:
        """Return the minima of autoscalers that do not wait, by cluster and by the workload that they scale."""
        minima: dict[str, dict[Key, int]] = {}
        for key, one in files.items():
            template = self._policies.templates[key]
            for cluster, scaled, low in list_foreign_autoscalers(one.outcome, template, self._policies.variants, lambda _: None):
                if (key, cluster) not in contents:
                    minima.setdefault(cluster, {})[scaled] = low
        return minima

    def _adapt(
        self,
        files: WorkloadFiles,
        objects: Collection[Key],
        now: _Kept,
        before: _Kept,
        others: Mapping[str, Mapping[Key, int]],
    ) -> Outcome:
        outcome = files.outcome

        def count(target: TargetCluster, kept: _Kept) -> TargetCluster:
            known = others.get(target.cluster, {})
            if target.minimum is not None:
                known = {**known, outcome.key: target.minimum}
            return self._count_target(files, target, objects, kept, known)

        targets = tuple(count(target, now) for target in outcome.targets)
        previous = tuple(count(target, before) for target in outcome.previous_targets)
        is_nowhere = outcome.state == "placed" and bool(targets) and all(target.waits for target in targets)
        state = "pending" if is_nowhere else outcome.state
        return outcome._replace(targets=targets, previous_targets=previous, state=state)

    def _count_target(
        self, files: WorkloadFiles, target: TargetCluster, objects: Collection[Key], kept: _Kept, known: Mapping[Key, int]
    ) -> TargetCluster:
        key, cluster = files.outcome.key, target.cluster
        if target.evicting or (key, cluster) in kept.copies or not kept.concerns(key, objects, cluster):
            return target
        content = kept.contents.get((key, cluster))
        if content is None:
            find = self._delivered.list_delivered if kept.is_previous else self._delivered.list_wanted
            content = find(files, cluster)
        waits = kept.autoscalers.get(cluster, {}).keys() & objects
        has_own = bool(files.outcome.bundles) or any(one[:2] in AUTOSCALER_KINDS for one in objects)
        is_known = not (waits or has_own) and cluster not in self._unseen
        if kept.is_previous and content and is_known and isinstance(target.replicas, AtLeast):
            # An autoscaler of another workload did not wait: the record counts it, with what was decided of other objects.
            former = self._read_former_minima(cluster, kept.copies) if len(objects) > 1 else {}
            return target if former.keys().isdisjoint(objects) else self._count(target, content, former)
        return self._count(target, content, kept.list_minima(cluster, known if not kept.is_previous else {}))

    def _read_former_minima(self, cluster: str, copies: Copies) -> dict[Key, int]:
        """Return the minima of autoscalers that a cluster has in the previous output, by what they scale."""
        if cluster in self._former:
            return self._former[cluster]
        minima = self._former[cluster] = {}
        for workload, scaler in self._scalers:
            path = cluster_path(cluster, relative_path(scaler))
            blob = self._source.previous.find_blob(path) if (workload, cluster) not in copies else None
            for body in self._reader.read_objects({path: ExistingBlob(blob)}) if blob is not None else ():
                scaled, (low, _) = read_scale_target(scaler, body), read_scale_limits(scaler[:2], body)
                if scaled is not None and low is not None:
                    minima[scaled] = max(low, minima.get(scaled, 0))
        return minima

    def _count(self, target: TargetCluster, content: FileSet, minima: Mapping[Key, int]) -> TargetCluster:
        if not content:
            return target._replace(replicas=None, waits=True)
        count = count_copy_replicas(self._reader.read_objects(content), self._source.config, minima)
        return target._replace(replicas=count, waits=False)


def list_completed(rollouts: RolloutResult, decided: Mapping[Key, Outcome]) -> dict[Key, Outcome]:
    """Return the decided outcomes of the workloads whose replicas rollouts count, with those that clusters have before this step."""
    return {key: decided[key]._replace(previous_targets=one.previous_targets) for key, one in rollouts.counted.items()}


def _list_copies(copies: Iterable[RetainedCopy]) -> Copies:
    return frozenset((copy.workload, copy.cluster) for copy in copies)


def count_step(
    moves: Iterable[Move], result: RolloutResult, outcomes: Container[Key], had_workloads: HadWorkloads
) -> tuple[Move, ...]:
    """Return the moves with the replicas that clusters have before and after a step of rollouts, and those that only the step makes.
    `outcomes` has the workloads that are placed: the moves of others come last."""
    if not (result.counted or result.former):
        return tuple(moves)
    known = {move.key: move for move in moves}
    found = {move.key: move for move in moves if move.key in outcomes and move.key not in result.counted}
    for move in list_moves(result.counted.values(), had_workloads):
        found[move.key] = known.get(move.key, move)._replace(before=move.before, after=move.after)
    removed = [
        move._replace(before=_restore(move.before, result.former.get(move.key, {})))
        for move in known.values()
        if move.key not in outcomes
    ]
    return (*(found[key] for key in sorted(found, key=workload_sort_key)), *(move for move in removed if move.before))


def _restore(before: Mapping[str, int | None], former: Mapping[str, TargetCluster]) -> dict[str, int | None]:
    found = {name: former.get(name, TargetCluster(name, count)) for name, count in before.items()}
    return {name: target.replicas for name, target in found.items() if not target.waits}
