"""The content that a cluster has of a workload while the change waits: what was approved last, with the replicas that are decided now.

Replicas and other numbers that scheduling assigns (`TargetCluster.edits`) are no content: they never wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.replicas import count_copy_replicas
from gitsched.decide.rollouts.content_merge import merge_values
from gitsched.decide.rollouts.delivered_files import DeliveredFiles, FileSet
from gitsched.decide.rollouts.workload_policies import WorkloadPolicies
from gitsched.decide.workload_files import WorkloadFiles
from gitsched.edits.manifest_edits import edit_file, read_manifest
from gitsched.model.document import Body
from gitsched.model.json_values import is_same_json
from gitsched.model.planned_files import ExistingBlob, PatchedBlob, PlannedFile
from gitsched.model.rollouts import RolloutInput
from gitsched.model.scheduling import TargetCluster
from gitsched.named_tuples import NamedTuple
from gitsched.render.output_files import read_path, relative_path, set_counts

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config


class ApprovedContent(NamedTuple):
    """Approved content of a workload, and the cluster that has it."""

    cluster: str
    files: Mapping[str, ExistingBlob]


class DerivedContent(NamedTuple):
    """The content for another cluster. `fields` are those that are as in the cluster that it was derived from, because both the change and
    the difference between the clusters concern them."""

    files: FileSet
    fields: tuple[str, ...] = ()


class ContentReader:
    """Reads and derives contents of workloads."""

    def __init__(self, delivered: DeliveredFiles, given: RolloutInput, policies: WorkloadPolicies) -> None:
        self._delivered, self._given, self._policies = delivered, given, policies

    def assign_counts(
        self, files: WorkloadFiles, target: TargetCluster, content: Mapping[str, ExistingBlob], *, moves: bool
    ) -> FileSet:
        """Return the content of a cluster with the numbers that scheduling assigns now. Of a workload that does not move, these are mostly
        those that the cluster has, which a look at the text shows."""
        counted = _find_counted(files, target)
        file = content.get(counted)
        if file is None or not (moves or _lacks_counts(self._given.read_text(file), _list_counts(target))):
            return content
        return {**content, counted: self._edit(file, None, target)}

    def derive(self, files: WorkloadFiles, target: TargetCluster, approved: ApprovedContent) -> DerivedContent:
        """Return approved content for another cluster: the three-way merge of what is approved with the difference between what the plan
        has for the two clusters."""
        cluster, counted = target.cluster, _find_counted(files, target)
        wanted = self._delivered.list_wanted(files, cluster)
        base = self._find_wanted(files, approved.cluster, target)
        base = wanted if base is None else base
        merged: dict[str, PlannedFile] = {}
        fields: list[str] = []
        for name in dict.fromkeys((*approved.files, *wanted)):
            own, before, after = approved.files.get(name), base.get(name), wanted.get(name)
            if self._delivered.is_same(own, before) and after is not None:
                merged[name] = after
            elif own is None or (after is None and before is not None):
                continue
            elif before is None or after is None or self._delivered.is_same(before, after):
                merged[name] = self._edit(own, None, target) if name == counted else own
            else:
                body, conflicts = self._merge(own, before, after)
                merged[name] = self._edit(own, body, target if name == counted else None)
                fields += (f"{name}: {field}" for field in conflicts)
        return DerivedContent(merged, tuple(fields))

    def identify(self, files: WorkloadFiles, cluster: str) -> str:
        """Return hex digits that identify the content that a cluster would get of a workload; "" if that cannot be told."""
        rendered = self._policies.render(files.outcome, TargetCluster(cluster))
        return "" if rendered is None else self._delivered.identify(self._delivered.list_wanted(rendered, cluster))

    def count_replicas(self, content: FileSet, config: Config) -> int | None:
        """Return the replicas of a content, 0 of none; None if no file has replicas."""
        return count_copy_replicas(self.read_objects(content), config) if content else 0

    def read_objects(self, content: FileSet) -> Iterator[Body]:
        """Yield the objects in the files of a content."""
        return (body for file in content.values() if (body := self._read(file)) is not None)

    def _merge(self, own: ExistingBlob, before: PlannedFile, after: PlannedFile) -> tuple[Body | None, tuple[str, ...]]:
        bodies = [self._read(file) for file in (before, own, after)]
        if None in bodies:
            return None, ()
        value, conflicts = merge_values(*bodies)
        return value, conflicts

    def _edit(self, file: ExistingBlob, body: Body | None, counted: TargetCluster | None) -> PlannedFile:
        """Return a file with another body, None for its own, and with the numbers of a target."""
        before = self._read(file)
        if before is None:
            return file
        after = before if body is None else body
        if counted is not None:
            after = set_counts(after, _list_counts(counted))
        return file if is_same_json(before, after) else edit_file(self._given.read_text(file), before, after)

    def _read(self, file: PlannedFile) -> Body | None:
        """Return the object in a file; None if it holds no single one."""
        return file.after if isinstance(file, PatchedBlob) else read_manifest(self._given.read_text(file))

    def _find_wanted(self, files: WorkloadFiles, cluster: str, like: TargetCluster) -> FileSet | None:
        """Return what the plan has of a workload in a cluster, or would have if it were the target; None if that cannot be told."""
        target = next((one for one in files.outcome.targets if one.cluster == cluster), None)
        if target is not None and not (target.keeps_manifest or target.evicting):
            return self._delivered.list_wanted(files, cluster)
        rendered = self._policies.render(files.outcome, like._replace(cluster=cluster))
        return None if rendered is None else self._delivered.list_wanted(rendered, cluster)


def _find_counted(files: WorkloadFiles, target: TargetCluster) -> str:
    """Return the name of the file with the numbers that scheduling assigns; "" if there are none."""
    if not target.edits or (files.outcome.manifests is not None and target.workload is None):
        return ""
    return relative_path(target.workload or files.outcome.key)


def _list_counts(target: TargetCluster) -> list[tuple[str, int]]:
    """Return the numbers that scheduling assigns, by path; what overrides make of them, if they change them."""
    body = target.body if target.workload is None else dict(target.bodies).get(target.workload)
    values = ((path, count if body is None else read_path(body, path)) for path, count in target.edits)
    return [(path, value) for path, value in values if isinstance(value, int)]


def _lacks_counts(text: str, counts: Iterable[tuple[str, int]]) -> bool:
    """Return whether a text has no member with one of the numbers."""
    return any(re.search(rf"\b{path.rpartition('.')[2]}[\"']?: *{count}\b", text) is None for path, count in counts)
