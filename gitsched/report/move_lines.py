"""Many moves as lines of text: groups with a common cause, and tables of single moves, each with a sign."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from gitsched.model.changes import Move
from gitsched.model.finding import count_shown, format_count
from gitsched.report.causes import describe_unproved, list_reasons
from gitsched.report.lines import (
    MOVE_TITLES,
    TABLE_CLUSTERS,
    count_omitted,
    format_changes,
    list_limited,
    make_move_row,
    wrap,
    wrap_all,
)
from gitsched.report.move_groups import MoveGroup, describe_flows, describe_group, describe_member, group_moves
from gitsched.report.paint import Paint, paint_sign

MOVES_SHOWN = 500
"""The number of single moves that are printed of each kind; JSON contains all."""
MEMBERS_SHOWN, FEWER_MEMBERS = 10, 3
"""The number of workloads of a group that are printed, and of each of many groups."""
GROUPS_SHOWN, MANY_GROUPS = 50, 10
"""The number of groups of moves that are printed, and how many are so many that each has fewer workloads."""


def list_move_blocks(moves: Sequence[Move], width: int, paint: Paint | None, *, each: bool = False) -> list[list[str]]:
    """Return blocks of lines, the gravest moves first: groups, and tables of moves that have no group."""
    blocks: list[list[str]] = []
    omits_members = False
    for single, found in groupby(group_moves(moves, each=each), key=lambda group: group.is_single):
        groups = list(found)
        if single:
            shown = len(groups) if each else count_shown(len(groups), MOVES_SHOWN)
            rows = [make_move_row(group.moves[0], list_reasons(group)) for group in groups[:shown]]
            lines = format_changes(MOVE_TITLES, rows, width, TABLE_CLUSTERS, paint)
            blocks.append([*lines, *count_omitted(len(groups) - shown)])
            continue
        members = FEWER_MEMBERS if len(groups) > MANY_GROUPS else MEMBERS_SHOWN
        omits_members |= any(count_shown(len(group.moves), members) < len(group.moves) for group in groups)
        shown = count_shown(len(groups), GROUPS_SHOWN)
        blocks += [_group_lines(group, members, width, paint) for group in groups[:shown]]
        if shown < len(groups):
            rest = sum(len(group.moves) for group in groups[shown:])
            blocks.append([f"and {format_count(rest, 'workload')} with {len(groups) - shown:,} other causes; use -o json for all"])
    hint = ["--each-workload lists each workload."] if omits_members else []
    return [*blocks, wrap_all(filter(None, [describe_unproved(moves)]), width), hint]


def _group_lines(group: MoveGroup, members: int, width: int, paint: Paint | None) -> list[str]:
    """Return what happens to the workloads of a group, where they go, why, and the names of the first `members` ones."""
    mark = "(fewer)" if group.shrinking else ""
    title, *rest = wrap(" ".join(filter(None, (group.sign, describe_group(group), mark))), width)
    title = title if paint is None else paint_sign(title, mark, paint)
    flows = describe_flows(group) if count_shown(len(group.moves), members) < len(group.moves) else []
    details = [*flows, *list_reasons(group), *list_limited(list(map(describe_member, group.moves)), members)]
    return [title, *(f"  {line}" for line in rest), *wrap_all(details, width, "    ")]
