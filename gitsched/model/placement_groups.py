"""The workloads of a template index by what their placements have in common, for questions about few clusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gitsched.model.document import Key
from gitsched.model.template_index import PlacementSummary, TemplateIndex

if TYPE_CHECKING:
    from collections.abc import Sequence


class PlacementGroups:
    """Workloads that are decided, by group and by cluster.

    `alike` has them by their summary without clusters, apiVersion and kind; `placed` by each of their clusters.
    """

    def __init__(self, index: TemplateIndex) -> None:
        alike: dict[tuple[PlacementSummary, str, str], list[Key]] = {}
        placed: dict[str, list[Key]] = {}
        # By identity, which costs less than the summary.
        groups: dict[tuple[int, str, str], tuple[PlacementSummary, list[Key]]] = {}
        for key, entry in index.items():
            placement = entry.placement
            if placement is None:
                continue
            shared = id(placement), entry.api_version, key.kind
            if shared not in groups:
                groups[shared] = placement, alike.setdefault((placement._replace(clusters=()), *shared[1:]), [])
            groups[shared][1].append(key)
            for cluster in placement.clusters:
                placed.setdefault(cluster, []).append(key)
        self.alike: Mapping[tuple[PlacementSummary, str, str], Sequence[Key]] = alike
        self.placed: Mapping[str, Sequence[Key]] = placed
