"""Compare the files that a plan has of a workload in a cluster with those of the previous output, and keep the latter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gitsched.decide.incremental.plan_state import PreviousOutput
from gitsched.decide.registry import policy_apis
from gitsched.decide.workload_files import WorkloadFiles
from gitsched.model.document import Key
from gitsched.model.planned_files import ExistingBlob, PlannedFile
from gitsched.model.rollouts import HeldFiles, RolloutInput
from gitsched.model.scheduling import Outcome
from gitsched.render.output_files import cluster_path, relative_path


class FileComparison:
    """The files of a plan and of the previous output."""

    def __init__(self, previous: PreviousOutput, given: RolloutInput) -> None:
        self._previous, self._given = previous, given
        self._ids: dict[PlannedFile, str] = {}
        self._recorded: dict[Key, tuple[Key, ...]] = {}

    def find_change(self, files: WorkloadFiles, cluster: str, known: Iterable[str]) -> HeldFiles | None:
        """Return the files that a cluster has of a workload in the previous output; None if the plan has the same.

        `known` are the paths of the files that an earlier run has held back.
        """
        outcome = files.outcome
        wanted = {cluster_path(cluster, path): file for path, file in files.manifests.get(cluster, {}).items()}
        wanted |= {path: files.records[path] for path in _list_hub_paths(outcome, cluster) if path in files.records}
        paths = dict.fromkeys((*wanted, *known, *self._list_previous_paths(outcome, cluster)))
        delivered = {path: blob for path in paths if (blob := self._previous.find_blob(path)) is not None}
        if delivered.keys() == wanted.keys() and all(self._hash(file) == delivered[path] for path, file in wanted.items()):
            return None
        return HeldFiles(outcome.key, cluster, tuple(sorted(delivered)))

    def keep(self, files: WorkloadFiles, held: HeldFiles) -> WorkloadFiles:
        """Return the files of a workload with those of the previous output in one cluster."""
        directory = cluster_path(held.cluster, "")
        hub = frozenset(_list_hub_paths(files.outcome, held.cluster))
        manifests: dict[str, PlannedFile] = {}
        records = {path: file for path, file in files.records.items() if path not in hub}
        for path in held.paths:
            blob = self._previous.find_blob(path)
            if blob is not None and path.startswith(directory):
                manifests[path.removeprefix(directory)] = ExistingBlob(blob)
            elif blob is not None:
                records[path] = ExistingBlob(blob)
        changed: Mapping[str, Mapping[str, PlannedFile]] = {**files.manifests, held.cluster: manifests}
        return files._replace(manifests=changed, records=records)

    def _hash(self, file: PlannedFile) -> str:
        if isinstance(file, ExistingBlob):
            return file.blob
        if file not in self._ids:
            self._ids[file] = self._given.hash_file(file)
        return self._ids[file]

    def _list_previous_paths(self, outcome: Outcome, cluster: str) -> Iterator[str]:
        """Yield the paths that the previous output may have of a workload in a cluster."""
        yield from (cluster_path(cluster, path) for path in outcome.kept_paths.get(cluster, ()))
        yield from _list_hub_paths(outcome, cluster)
        if outcome.manifests is not None:
            objects = (*self._list_recorded_objects(outcome), *outcome.previous_objects)
            yield from (cluster_path(cluster, relative_path(key)) for key in objects)
        elif not outcome.bundles:
            yield cluster_path(cluster, relative_path(outcome.key))

    def _list_recorded_objects(self, outcome: Outcome) -> tuple[Key, ...]:
        if outcome.key not in self._recorded:
            read = policy_apis[outcome.api].read_removed_workload
            bodies = (self._previous.records.get(key) for key, _ in outcome.records)
            found = [read(body) for body in bodies if read is not None and body is not None]
            self._recorded[outcome.key] = tuple(key for one in found if one is not None for key in one.objects or ())
        return self._recorded[outcome.key]


def _list_hub_paths(outcome: Outcome, cluster: str) -> list[str]:
    """Return the paths of the Applications that deliver the Bundles of a workload to a cluster."""
    if not outcome.bundles:
        return []
    from gitsched.decide.variants.bundle_delivery import find_application_path  # few workloads have Bundles

    return [find_application_path(key, cluster) for key in outcome.bundles]
