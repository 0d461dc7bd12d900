"""The files of a workload in a cluster: those of the previous output, and those that a plan has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Final

from gitsched.decide.incremental.plan_state import PreviousOutput
from gitsched.decide.registry import policy_apis
from gitsched.decide.variants.bundle_delivery import find_application_path
from gitsched.decide.workload_files import WorkloadFiles
from gitsched.model.document import Key
from gitsched.model.planned_files import ExistingBlob, PlannedFile
from gitsched.model.rollouts import ApprovedFiles, RolloutInput
from gitsched.model.scheduling import Outcome
from gitsched.render.output_files import approved_path, cluster_path, relative_path

FileSet = Mapping[str, PlannedFile]
"""The files of a workload in a cluster by name: a path relative to the directory of the cluster, or `hub:N` for the Application of its N-th
Bundle. The names of the same file in two clusters are equal."""

_DIGEST_LENGTH: Final = 16


class DeliveredFiles:
    """Finds and compares files. Their contents are read on demand."""

    def __init__(self, previous: PreviousOutput, given: RolloutInput) -> None:
        self._previous, self._given = previous, given
        self._ids: dict[PlannedFile, str] = {}
        self._recorded: dict[Key, tuple[Key, ...]] = {}

    def list_delivered(self, files: WorkloadFiles, cluster: str, known: Iterable[str] = ()) -> dict[str, ExistingBlob]:
        """Return what the previous output has of a workload in a cluster. `known` are paths on the output branch that an earlier run has
        held back."""
        outcome = files.outcome
        wanted = (self.path(outcome, cluster, name) for name in self.list_wanted(files, cluster))
        paths = dict.fromkeys((*wanted, *known, *self._list_previous_paths(outcome, cluster)))
        blobs = ((path, self._previous.find_blob(path)) for path in paths)
        return {self.name(outcome, cluster, path): ExistingBlob(blob) for path, blob in blobs if blob is not None}

    def list_approved(self, outcome: Outcome, approved: ApprovedFiles) -> dict[str, ExistingBlob]:
        """Return the content that the output branch keeps below approved/."""
        blobs = ((path, self._previous.find_blob(approved_path(path))) for path in approved.paths)
        return {self.name(outcome, approved.cluster, path): ExistingBlob(blob) for path, blob in blobs if blob is not None}

    def list_wanted(self, files: WorkloadFiles, cluster: str) -> FileSet:
        """Return what a plan has of a workload in a cluster."""
        hub = ((f"hub:{index}", path) for index, path in enumerate(_list_hub_paths(files.outcome, cluster)))
        return {**files.manifests.get(cluster, {}), **{name: files.records[path] for name, path in hub if path in files.records}}

    def are_same(self, one: FileSet, other: FileSet) -> bool:
        """Return whether two sets of files have the same names and contents."""
        return one.keys() == other.keys() and all(self.is_same(file, other[name]) for name, file in one.items())

    def is_same(self, one: PlannedFile | None, other: PlannedFile | None) -> bool:
        """Return whether two files have the same content, or neither exists."""
        if one is None or other is None:
            return one is other
        return one == other or self._hash(one) == self._hash(other)

    def identify(self, files: FileSet) -> str:
        """Return hex digits that identify the names and contents of files."""
        lines = (f"{name} {self._hash(file)}\n" for name, file in sorted(files.items()))
        return sha256("".join(lines).encode()).hexdigest()[:_DIGEST_LENGTH]

    def replace(self, files: WorkloadFiles, cluster: str, content: FileSet) -> WorkloadFiles:
        """Return the files of a workload with other ones in a cluster."""
        hub = frozenset(_list_hub_paths(files.outcome, cluster))
        records = {path: file for path, file in files.records.items() if path not in hub}
        own = {name: file for name, file in content.items() if not _is_outside(name)}
        records |= {self.path(files.outcome, cluster, name): file for name, file in content.items() if _is_outside(name)}
        return files._replace(manifests={**files.manifests, cluster: own}, records=records)

    def name(self, outcome: Outcome, cluster: str, path: str) -> str:
        """Return the name of a file of a cluster, given its path on the output branch."""
        directory = cluster_path(cluster, "")
        if path.startswith(directory):
            return path.removeprefix(directory)
        hub = _list_hub_paths(outcome, cluster)
        return f"hub:{hub.index(path)}" if path in hub else f"/{path}"  # that of a Bundle which the workload no longer has

    def path(self, outcome: Outcome, cluster: str, name: str) -> str:
        """Return the path of a file on the output branch, given its name."""
        if name.startswith("/"):
            return name[1:]
        if name.startswith("hub:"):
            return _list_hub_paths(outcome, cluster)[int(name.removeprefix("hub:"))]
        return cluster_path(cluster, name)

    def list_paths(self, outcome: Outcome, cluster: str, names: Iterable[str]) -> tuple[str, ...]:
        """Return the sorted paths of files on the output branch, given their names."""
        return tuple(sorted(self.path(outcome, cluster, name) for name in names))

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


def list_former_clusters(outcome: Outcome) -> list[str]:
    """Return the clusters that a workload was placed in. What a copy has that is being evicted may never have been approved."""
    return [target.cluster for target in outcome.previous_targets if not target.evicting]


def _is_outside(name: str) -> bool:
    """Return whether a file is outside of the directory of its cluster."""
    return name.startswith(("hub:", "/"))


def _list_hub_paths(outcome: Outcome, cluster: str) -> list[str]:
    """Return the paths of the Applications that deliver the Bundles of a workload to a cluster."""
    if not outcome.bundles:
        return []
    return [find_application_path(key, cluster) for key in outcome.bundles]
