"""A drain, a cordon or the end of one, as edits of the documents of clusters, and what it leads to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.document import Key
    from gitsched.model.fleet_status import Freeze
    from gitsched.model.history import SourceChange
    from gitsched.model.simulation import Simulation
    from gitsched.model.taints import ClusterTaint

Action = Literal["drain", "cordon", "uncordon"]


class ClusterEdit(NamedTuple):
    """The edit of the document of one cluster, at a line of a file. `taints` are those that are added or removed, () if the document has
    the wanted ones; `problem` says why it cannot be edited, or is ""."""

    cluster: str
    path: str
    line: int
    taints: tuple[str, ...]
    problem: str = ""


class EditedFile(NamedTuple):
    """A file of the worktree before and after its edits."""

    path: str
    before: bytes
    after: bytes


class Maintenance(NamedTuple):
    """`edits` are by cluster. `workloads` are the numbers of those that the clusters have, `total` is that of all, each counted once. A
    drain moves all but the number of `staying`, when what is held is released, and those that become unplaced. `simulation` says what a
    drain leads to, None for other actions and where nothing is edited. `left` are taints that an uncordon does not remove, by cluster.
    `freezes` are those in force, and `frozen` the workloads of which they withhold that they leave, with the clusters on which these
    stay. `drained_by` is the first commit of the source that drained a cluster whose drain ends, None where it is not known."""

    action: Action
    clusters: tuple[str, ...]
    edits: tuple[ClusterEdit, ...]
    files: tuple[EditedFile, ...]
    workloads: Mapping[str, int]
    simulation: Simulation | None = None
    left: Mapping[str, tuple[ClusterTaint, ...]] = {}
    staying: int = 0
    freezes: tuple[Freeze, ...] = ()
    frozen: Mapping[Key, tuple[str, ...]] = {}
    total: int = 0
    drained_by: SourceChange | None = None

    @property
    def problems(self) -> tuple[ClusterEdit, ...]:
        """The documents that cannot be edited."""
        return tuple(edit for edit in self.edits if edit.problem)
