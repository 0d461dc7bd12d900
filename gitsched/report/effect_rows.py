"""The effects of an event on workloads as rows: one for each workload, or one for many with the same reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gitsched.model.changes import Move
from gitsched.model.finding import count_shown, format_count, format_names
from gitsched.report.lines import format_key
from gitsched.report.move_groups import MoveGroup, group_moves, list_group_clusters, name_workloads
from gitsched.report.name_ranges import format_ranges

if TYPE_CHECKING:
    from gitsched.model.simulation import WorkloadEffect

EffectRow = tuple[str, str, str, str, str]
"""The workload, the clusters that lose and gain replicas, the number of missing replicas, and the reason."""


def list_effect_rows(effects: Sequence[WorkloadEffect], most: int, clusters: int) -> list[EffectRow]:
    """Return about `most` rows with about so many `clusters` by name; many workloads with the same reason are one row."""
    by_key = {effect.key: effect for effect in effects}
    groups = _group_effects(effects)
    return [
        format_effect_row(by_key[group.moves[0].key], clusters)
        if group.is_single
        else _format_group_row(group, [by_key[move.key] for move in group.moves])
        for group in groups[: count_shown(len(groups), most)]
    ]


def count_hidden_effects(effects: Sequence[WorkloadEffect], most: int) -> int:
    """Return the number of workloads that `list_effect_rows` leaves out."""
    groups = _group_effects(effects)
    return sum(len(group.moves) for group in groups[count_shown(len(groups), most) :])


def find_degraded_rows(effects: Sequence[WorkloadEffect]) -> frozenset[int]:
    """Return the indices of rows with a workload that lacks replicas or has no cluster."""
    degraded = {effect.key for effect in effects if effect.lost_replicas or effect.becomes_unplaced}
    groups = enumerate(_group_effects(effects))
    return frozenset(index for index, group in groups if any(move.key in degraded for move in group.moves))


def _group_effects(effects: Sequence[WorkloadEffect]) -> list[MoveGroup]:
    """Return groups and single workloads in the order of the effects."""
    position = {effect.key: number for number, effect in enumerate(effects)}
    moves = [Move(each.key, each.before, each.after, each.reason, copy_replicas=each.replicas or 0) for each in effects]
    return sorted(group_moves(moves), key=lambda group: min(position[move.key] for move in group.moves))


def _format_group_row(group: MoveGroup, effects: Sequence[WorkloadEffect]) -> EffectRow:
    removed, added = list_group_clusters(group)
    missing = sum(effect.lost_replicas for effect in effects)
    return (
        f"{format_count(len(effects), 'workload')}: {name_workloads(group)}",
        "" if group.kind == "resized" else format_ranges(removed),
        format_ranges(added),
        f"{missing:,}" if missing else "",
        group.reason,
    )


def format_effect_row(effect: WorkloadEffect, shown: int) -> tuple[str, str, str, str, str]:
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
