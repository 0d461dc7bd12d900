"""Groups of moves with the same cause. All reports list these: "3,000 workloads move: c000–c002 -> c010", and each cause once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gitsched.model.finding import count_shown, format_count, format_names
from gitsched.model.scheduling import total_replicas
from gitsched.named_tuples import NamedTuple
from gitsched.report.causes import identify_change, merge_causes
from gitsched.report.lines import (
    MIN_GROUP_SIZE,
    MOVE_ORDER,
    MOVE_SIGNS,
    classify_move,
    format_cluster_changes,
    format_key,
    shrinks,
    sort_moves,
    sum_replicas,
)
from gitsched.report.name_ranges import format_ranges
from gitsched.report.summary import describe_move_kind, is_removed

if TYPE_CHECKING:
    from gitsched.model.changes import Cause, Move

FLOWS_SHOWN = 5
"""The number of lines about which clusters the moves of a group leave, and where they go."""
NAMES_SHOWN = 3
"""The number of workloads of a group that are named."""


class Flow(NamedTuple):
    """The clusters that `number` workloads leave, and those that are new to them."""

    number: int
    left: frozenset[str]
    joined: frozenset[str]


class MoveGroup(NamedTuple):
    """Moves of one kind (see `classify_move`) with the same cause, the most important first; or one move alone.

    `causes` are those of all moves, the same change of several documents once. `reason` is "" unless all moves have it. `shrinking`:
    the workloads run on with fewer replicas.
    """

    kind: str
    moves: tuple[Move, ...]
    causes: tuple[Cause, ...]
    reason: str
    shrinking: bool = False

    @property
    def is_single(self) -> bool:
        """Whether this is one move, with nothing in common."""
        return len(self.moves) == 1

    @property
    def sign(self) -> str:
        """ "+" for new placements, "-" for workloads without a cluster any more, "~" for all others."""
        return MOVE_SIGNS[self.kind]

    @property
    def flows(self) -> list[Flow]:
        """Which clusters the workloads leave and join, the largest number first; those that join the same clusters are one entry."""
        joined: dict[frozenset[str], tuple[int, frozenset[str]]] = {}
        for move in self.moves:
            before, after = move.before.keys(), move.after.keys()
            both = before & after if self.kind in ("moved", "left") else frozenset()
            left, new = frozenset(before - both), frozenset(after - both)
            number, earlier = joined.get(new, (0, frozenset()))
            joined[new] = number + 1, earlier | left
        flows = [Flow(number, left, new) for new, (number, left) in joined.items()]
        return sorted(flows, key=lambda flow: (-flow.number, sorted(flow.joined), sorted(flow.left)))


def group_moves(moves: Sequence[Move], *, each: bool = False) -> list[MoveGroup]:
    """Return groups in the order of MOVE_ORDER, the largest first, and moves that have no group alone; with `each` all moves alone."""
    ordered = sort_moves(moves)
    if each or len(moves) < MIN_GROUP_SIZE:
        return [_make_single(move) for move in ordered]
    found: dict[tuple[str, bool, tuple[object, ...]], list[Move]] = {}
    for move in ordered:
        kind = classify_move(move)
        found.setdefault((kind, shrinks(move), _identify_cause(move, kind)), []).append(move)
    groups: list[MoveGroup] = []
    for (kind, shrinking, _), members in found.items():
        if len(members) < MIN_GROUP_SIZE:
            groups += map(_make_single, members)
        else:
            reasons = {move.reason for move in members}
            reason = members[0].reason if len(reasons) == 1 else ""
            groups.append(MoveGroup(kind, tuple(members), _combine_causes(members), reason, shrinking))
    rank = {id(move): position for position, move in enumerate(ordered)}
    return sorted(
        groups,
        key=lambda group: (
            MOVE_ORDER.index(group.kind),
            not group.shrinking,
            group.is_single,
            -len(group.moves),
            rank[id(group.moves[0])],
        ),
    )


def _make_single(move: Move) -> MoveGroup:
    return MoveGroup(classify_move(move), (move,), move.causes, move.reason, shrinks(move))


def _identify_cause(move: Move, kind: str) -> tuple[object, ...]:
    """Return what moves of one group have in common. Of workloads without a cluster, the reason counts as well."""
    reason = move.reason if kind in ("lost", "kept") or not any(cause.proved for cause in move.causes) else ""
    changes = {(*identify_change(cause), bool(cause.together)) for cause in move.causes if cause.proved}
    return bool(move.causes), reason, tuple(sorted(changes))


def _combine_causes(moves: Iterable[Move]) -> tuple[Cause, ...]:
    """Return the causes of all moves in the order of the first one that has them; the same change of several documents is one."""
    found: dict[tuple[bool, str, str], dict[Cause, None]] = {}
    for move in moves:
        for cause in move.causes:
            found.setdefault((cause.proved, *identify_change(cause)), {})[cause] = None
    combined = []
    for causes in found.values():
        together = next(iter(causes)).together
        same = {cause._replace(together=0): None for cause in causes}
        combined.append(merge_causes(sorted(same, key=str))._replace(together=together))
    return tuple(combined)


def describe_group_kind(group: MoveGroup) -> str:
    """Return how many workloads do what: "3,000 workloads move"."""
    kind = "removed" if all(map(is_removed, group.moves)) else group.kind
    return describe_move_kind(kind, len(group.moves))


def describe_group(group: MoveGroup) -> str:
    """Return a group in one line, without its cause: "3,000 workloads move: c000–c002 -> c010, 9,000 -> 6,000 replicas"."""
    merged, replicas = Flow(len(group.moves), *list_group_clusters(group)), describe_group_replicas(group)
    return f"{describe_group_kind(group)}: {format_flow(merged, group.kind)}{f', {replicas}' if replicas else ''}"


def list_group_clusters(group: MoveGroup) -> tuple[frozenset[str], frozenset[str]]:
    """Return the clusters that any workload of a group leaves, and those that any of them joins; of scaled ones all clusters twice."""
    flows = group.flows
    left, joined = (frozenset[str]().union(*clusters) for clusters in ((f.left for f in flows), (f.joined for f in flows)))
    return left, joined


def describe_group_replicas(group: MoveGroup) -> str:
    """Return the sums of replicas before and after, if they differ while the workloads run on: "320 -> 160 replicas".

    Workloads that only leave clusters and have as many replicas as before in the others: "20 replicas as before"."""
    sums = [sum_replicas(move) for move in group.moves]
    earlier, later = (total_replicas(pair[side] for pair in sums) for side in (0, 1))
    running = group.kind in ("moved", "left", "resized")
    if running and earlier != later:
        return f"{earlier:,} -> {format_count(later, 'replica')}"
    return f"{format_count(later, 'replica')} as before" if group.kind == "left" and later else ""


def format_flow(flow: Flow, kind: str) -> str:
    """Return the clusters that workloads leave and join, numbered ones as ranges."""
    left, joined = (format_ranges(names) for names in (flow.left, flow.joined))
    if kind in ("resized", "again"):
        return f"in {joined}"
    if kind == "first":
        return f"to {joined}"
    if kind == "left":
        return f"from {left}"
    return f"{left} -> {joined or 'nowhere'}" if left else f"to {joined} as well"


def describe_flows(group: MoveGroup) -> list[str]:
    """Return a line for each part of a group that joins the same clusters; none if that is the whole group."""
    flows = group.flows
    if len(flows) == 1 or group.kind in ("resized", "left"):
        return []
    shown = count_shown(len(flows), FLOWS_SHOWN)
    lines = [f"{flow.number:,}: {format_flow(flow, group.kind)}" for flow in flows[:shown]]
    others = sum(flow.number for flow in flows[shown:])
    return [*lines, f"{others:,}: between these and other clusters"] if others else lines


def describe_member(move: Move, minus: str = "-", arrow: str = "->") -> str:
    """Return a workload of a group with what changes in its clusters: "Deployment shop/cart: - fra-1 3, + dub-1 3"."""
    return f"{format_key(move.key)}: {', '.join(format_cluster_changes(move, minus=minus, arrow=arrow))}"


def name_workloads(group: MoveGroup) -> str:
    """Return the first workloads of a group, and the number of the others."""
    return format_names([format_key(move.key) for move in group.moves], NAMES_SHOWN)
