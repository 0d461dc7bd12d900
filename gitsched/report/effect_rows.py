"""The effects of an event on workloads as rows: one for each workload, or one for many with the same reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from gitsched.model.changes import Move
from gitsched.model.finding import count_shown, format_count, format_names
from gitsched.report.lines import format_key
from gitsched.report.move_groups import MoveGroup, group_moves, name_workloads

if TYPE_CHECKING:
    from gitsched.model.simulation import WorkloadEffect

EffectRow = tuple[str, str, str, str, str]
"""The workload, the clusters that lose and gain replicas, the number of missing replicas, and the reason."""


MAX_SINGLE_EFFECTS = 10
"""The number of workloads up to which each has a row of its own."""


class EffectRows:
    """The effects of an event as rows; more than `single` workloads with the same reason are one row."""

    def __init__(self, effects: Sequence[WorkloadEffect], single: int = MAX_SINGLE_EFFECTS) -> None:
        self._effects = {effect.key: effect for effect in effects}
        self._single = single

    @cached_property
    def _groups(self) -> list[MoveGroup]:
        """Groups and single workloads in the order of the effects."""
        effects = self._effects.values()
        position = {key: number for number, key in enumerate(self._effects)}
        moves = [Move(each.key, each.before, each.after, each.reason) for each in effects]
        return sorted(
            group_moves(moves, each=len(moves) <= self._single),
            key=lambda group: min(position[move.key] for move in group.moves),
        )

    def list_rows(self, most: int, clusters: int) -> list[EffectRow]:
        """Return about `most` rows with about so many `clusters` by name."""
        return [
            format_effect_row(self._effects[group.moves[0].key], clusters)
            if group.is_single
            else _format_group_row(group, [self._effects[move.key] for move in group.moves], clusters)
            for group in self._groups[: count_shown(len(self._groups), most)]
        ]

    def count_hidden(self, most: int) -> int:
        """Return the number of workloads that `list_rows` leaves out."""
        return sum(len(group.moves) for group in self._groups[count_shown(len(self._groups), most) :])

    def find_degraded(self) -> frozenset[int]:
        """Return the indices of rows with a workload that lacks replicas or has no cluster."""
        degraded = {key for key, effect in self._effects.items() if effect.is_degraded}
        return frozenset(index for index, group in enumerate(self._groups) if any(move.key in degraded for move in group.moves))


def _format_group_row(group: MoveGroup, effects: Sequence[WorkloadEffect], shown: int) -> EffectRow:
    removed, added = Counter[str](), Counter[str]()
    for effect in effects:
        for name, change in effect.replica_changes.items():
            has_replicas = None not in (effect.before.get(name, 0), effect.after.get(name, 0))
            (added if change > 0 else removed)[name] += abs(change) if has_replicas else 0
    missing = sum(effect.lost_replicas for effect in effects)
    return (
        f"{format_count(len(effects), 'workload')}: {name_workloads(group)}",
        _format_totals(removed, shown, ""),
        _format_totals(added, shown, "+"),
        f"{missing:,}" if missing else "",
        group.reason,
    )


def _format_totals(replicas: Mapping[str, int], shown: int, sign: str) -> str:
    """Return clusters with the replicas that all workloads of a group lose or gain there, the largest number first."""
    names = sorted(replicas, key=lambda name: (-replicas[name], name))
    return format_names([f"{name} {sign}{replicas[name]:,}" if replicas[name] else name for name in names], shown)


def format_effect_row(effect: WorkloadEffect, shown: int) -> EffectRow:
    """Return the cells of one workload: its name, the clusters that lose and gain replicas, the number of missing replicas, the reason."""
    waiting = f"{effect.waiting} without capacity" if effect.waiting else ""
    removed = {name: count for name, count in effect.before.items() if name not in effect.after}
    reduced = {name: -change for name, change in effect.replica_changes.items() if change < 0 and name not in removed}
    added = {
        name: None if effect.after[name] is None else change
        for name, change in effect.replica_changes.items()
        if name in effect.after and change >= 0
    }
    return (
        format_key(effect.key),
        format_cluster_changes(removed | reduced, shown, ""),
        format_cluster_changes(added, shown, "+"),
        str(effect.lost_replicas) if effect.lost_replicas else "",
        "; ".join(filter(None, [waiting, effect.reason])),
    )


def format_cluster_changes(replicas: Mapping[str, int | None], shown: int, sign: str) -> str:
    """Return clusters with their numbers of replicas: "dub-prod-1 +2"."""
    texts = [name if replicas[name] is None else f"{name} {sign}{replicas[name]}" for name in sorted(replicas)]
    return format_names(texts, shown)
