"""The copies of workloads that the previous output delivers, with their paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.replicas import count_copy_replicas
from gitsched.decide.registry import policy_apis
from gitsched.decide.variants.bundle_delivery import find_application_path
from gitsched.decide.variants.variant_outcomes import read_kept_paths
from gitsched.kinds.run_once_kinds import RUN_ONCE_KINDS
from gitsched.model.changes import RetainedCopy
from gitsched.model.document import Key
from gitsched.model.variants import BUNDLE_KIND
from gitsched.named_tuples import NamedTuple
from gitsched.render.output_files import cluster_path, relative_path

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.apis.policy_api import RemovedWorkload
    from gitsched.model.document import Body
    from gitsched.model.scheduling import Outcome


class DeliveredCopies(NamedTuple):
    """Finds copies in the previous output, of which `records` are by identity; `find_blob` returns the blob of a path, `has_directory`
    says whether a cluster has a directory, and `read_manifest` returns the object of a manifest."""

    records: Mapping[Key, Body]
    find_blob: Callable[[str], str | None]
    has_directory: Callable[[str], bool]
    read_manifest: Callable[[str], Body | None] = lambda _: None

    def find(self, outcome: Outcome, cluster: str, replicas: int | None) -> RetainedCopy | None:
        """Return the copy of a workload in a cluster; None if nothing of it is delivered there."""
        paths = self._list_delivered(self._list_paths(outcome, cluster))
        return RetainedCopy(outcome.key, cluster, replicas, paths) if paths else None

    def count_replicas(self, copy: RetainedCopy, config: Config) -> RetainedCopy:
        """Return the copy with the replicas of its manifests, which are those of its decision unless these were not delivered."""
        bodies = [body for path in copy.paths if (body := self.read_manifest(path)) is not None]
        count = count_copy_replicas(bodies, config)
        return copy if count is None else copy._replace(replicas=count)

    def has_any(self, outcome: Outcome, cluster: str) -> bool:
        """Return whether anything of a workload is delivered in a cluster, also what would run twice."""
        paths = (cluster_path(cluster, relative_path(outcome.key)), *self._list_paths(outcome, cluster))
        return any(self.find_blob(path) is not None for path in paths)

    def read_previous(self, outcome: Outcome) -> RemovedWorkload | None:
        """Return what the previous records say about a workload; None if they say nothing."""
        read = policy_apis[outcome.api].read_removed_workload
        records = (self.records.get(key) for key, _ in outcome.records)
        return next((found for record in records if read and record is not None and (found := read(record)) is not None), None)

    def list_removed(
        self, workload: RemovedWorkload, known: Mapping[str, RetainedCopy], follows: Key, *, runs_once: bool = False
    ) -> Iterator[RetainedCopy]:
        """Yield the copies of a workload that is no longer in the source: those `known` from an earlier run, by cluster, and others.

        With `runs_once`, also objects that would run twice beside a replacement.
        """
        key = workload.key
        if (key.group, key.kind) in RUN_ONCE_KINDS and not runs_once:
            return
        kept = read_kept_paths(self.records.get(key))
        objects = (key,) if workload.objects is None else workload.objects
        yield from (copy._replace(follows=follows) for copy in known.values())
        for cluster, count in workload.replicas.items():
            if cluster not in known and self.has_directory(cluster):
                parts = (cluster_path(cluster, path) for path in kept.get(cluster, ()) if runs_once or not _is_run_once(path))
                own = (one for one in objects if runs_once or (one.group, one.kind) not in RUN_ONCE_KINDS)
                applications = (find_application_path(one, cluster) for one in objects if one[:2] == BUNDLE_KIND)
                paths = (*parts, *(cluster_path(cluster, relative_path(one)) for one in own), *applications)
                if delivered := self._list_delivered(paths):
                    yield RetainedCopy(key, cluster, count, delivered, follows=follows)

    def _list_paths(self, outcome: Outcome, cluster: str) -> Iterator[str]:
        """Yield the paths that the previous output may have of a workload in a cluster."""
        yield from (cluster_path(cluster, path) for path in outcome.kept_paths.get(cluster, ()) if not _is_run_once(path))
        if outcome.bundles:
            yield from (find_application_path(key, cluster) for key in outcome.bundles)
        if outcome.manifests is not None:
            yield from _list_object_paths((*self._list_recorded_objects(outcome), *outcome.previous_objects), cluster)
        elif not outcome.bundles:
            yield cluster_path(cluster, relative_path(outcome.key))

    def _list_recorded_objects(self, outcome: Outcome) -> Iterator[Key]:
        """Yield the objects that a workload consisted of in the previous output."""
        workload = self.read_previous(outcome)
        yield from (workload.objects or ()) if workload is not None else ()

    def _list_delivered(self, paths: Iterable[str]) -> tuple[str, ...]:
        return tuple(path for path in dict.fromkeys(paths) if self.find_blob(path) is not None)


def _is_run_once(path: str) -> bool:
    """Return whether a path of a manifest is that of an object that would run twice."""
    name = path.rpartition("/")[2]
    return any(name.startswith(relative_path(Key(group, kind, "", "-")).rpartition("/")[2][:-6]) for group, kind in RUN_ONCE_KINDS)


def _list_object_paths(keys: Iterable[Key], cluster: str) -> Iterator[str]:
    """Yield the paths of objects on the output branch, without those that would run twice."""
    return (cluster_path(cluster, relative_path(key)) for key in keys if (key.group, key.kind) not in RUN_ONCE_KINDS)
