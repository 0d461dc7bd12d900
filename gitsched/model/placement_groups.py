"""The workloads of a template index by what their placements have in common, for questions about few clusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gitsched.model.document import Key
from gitsched.model.template_index import PlacementSummary, TemplateEntry, TemplateIndex

if TYPE_CHECKING:
    from collections.abc import Sequence


PlacementGroup = tuple[PlacementSummary, str, str]
"""What workloads have in common that are placed alike: their summary without clusters, apiVersion and kind."""


class PlacementGroups:
    """Workloads that are decided, by group and by cluster.

    `alike` has them by their summary without clusters, apiVersion and kind; `placed` by each of their clusters. `known` is what policy
    engines have found out about these groups and keep for the next question, by the name of the engine.
    """

    def __init__(self, index: TemplateIndex) -> None:
        alike: dict[PlacementGroup, list[Key]] = {}
        placed: dict[str, list[Key]] = {}
        # By identity, which costs less than the summary.
        groups: dict[tuple[int, str, str], tuple[PlacementSummary, list[Key]]] = {}
        self.known: dict[str, object] = {}
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
        self.alike: Mapping[PlacementGroup, Sequence[Key]] = alike
        self.placed: Mapping[str, Sequence[Key]] = placed


def group_placement(key: Key, entry: TemplateEntry) -> PlacementGroup | None:
    """Return which workloads are placed alike, as a key of `alike`; None for a template that no API decides."""
    return (entry.placement._replace(clusters=()), entry.api_version, key.kind) if entry.placement is not None else None
