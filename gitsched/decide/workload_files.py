"""The files of one workload in the output tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gitsched.model.planned_files import PlannedFile
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.scheduling import Outcome

Files = Mapping[str, PlannedFile]
"""Files by path."""


class WorkloadFiles(NamedTuple):
    """The files of one workload: its records by path, and its manifests by cluster and path relative to the directory of the cluster.

    `paths` are the paths of the manifests: one, unless the API renders other objects than the workload itself. `records` are all files
    outside of the directories of clusters. `namespaces` are those of objects that a delivery tool builds in a cluster.
    """

    outcome: Outcome
    records: Files
    paths: tuple[str, ...]
    manifests: Mapping[str, Files]
    namespaces: Mapping[str, tuple[str, ...]] = {}
