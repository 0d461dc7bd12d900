"""The sections of the pull request comment about moves and changed recorded decisions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from gitsched.model.changes import Cause, ChangedField, RecordChange
from gitsched.model.finding import count_shown, format_count, format_names
from gitsched.model.markdown import format_code, format_text
from gitsched.report.causes import Caused, list_cause_texts, list_reasons
from gitsched.report.lines import format_cluster_changes, format_key, format_replica_change, list_limited
from gitsched.report.move_groups import (
    NAMES_SHOWN,
    MoveGroup,
    describe_flows,
    describe_group,
    describe_group_kind,
    describe_group_replicas,
    describe_member,
    list_group_clusters,
)
from gitsched.report.name_ranges import format_ranges
from gitsched.report.summary import describe_record_changes, format_record_change

MEMBERS_SHOWN = 50
"""The number of workloads of a group whose changes are listed in the details."""
MAX_LINE = 4_000
"""The number of characters of a reason; where even one line for each is too long, MIN_LINE."""
MIN_LINE = 300


def write_moves(groups: Sequence[MoveGroup], most: int, omitted: list[str], line: int = MAX_LINE) -> str:
    """Return groups and single moves, at most so many of them. A reason has at most `line` characters.

    This is a list: the columns of a table on a forge are so narrow that the names of clusters, which end in digits like replicas, break.
    """
    if not groups:
        return ""
    shown = count_shown(len(groups), most) if most else 0
    lines = [_write_entry(group, line) for group in groups[:shown]]
    more = sum(len(group.moves) for group in groups[shown:])
    total = sum(len(group.moves) for group in groups)
    if more:
        omitted.append(f"{more:,} of {format_count(total, 'move')}")
        lines.append(f"- … and {more:,} more")
    if not shown:
        return f"{format_count(total, 'move')}, too many to list here."
    return "\n".join(["**Moves:**", "", *lines])


def _write_entry(group: MoveGroup, line: int) -> str:
    """Return one move or a group: sign, names, clusters with what changes there and replicas on a line, the first reason on the next."""
    reason, sign = write_first_reason(group, line), format_code(group.sign)
    if group.is_single:
        move = group.moves[0]
        name = format_code(format_key(move.key))
        clusters = ", ".join(map(format_code, format_cluster_changes(move, minus="−", arrow="→")))
        replicas = format_replica_change(move)
        changes = f"{replicas} replicas" if "->" in replicas else ""
    else:
        left, joined = list_group_clusters(group)
        stays = group.kind in ("resized", "again")
        parts = (("− ", frozenset[str]() if stays else left), ("" if stays else "+ ", joined))
        name = f"**{describe_group_kind(group)}**: {_write_names(group)}"
        clusters = ", ".join(format_code(f"{each}{format_ranges(found)}") for each, found in parts if found)
        changes = describe_group_replicas(group)
    text = "; ".join(filter(None, (f"{name}: {clusters}", _mark_fewer(changes, fewer=group.shrinking))))
    return "\\\n  ".join(filter(None, (f"- {sign} {text}", reason)))


def _write_names(group: MoveGroup) -> str:
    return format_names([format_code(format_key(move.key)) for move in group.moves], NAMES_SHOWN)


def _mark_fewer(replicas: str, *, fewer: bool) -> str:
    """Return replicas before and after; fewer ones are marked by a word and by bold type."""
    text = replicas.replace("->", "→")
    return f"**{text} (fewer)**" if fewer else text


def write_first_reason(change: Caused, line: int = MAX_LINE) -> str:
    """Return the main cause with its line, else the reason. A longer one than `line` characters is cut."""
    causes = list_cause_texts(change.causes[:1] if line < MAX_LINE else change.causes, partial(_write_cause, line=line))
    return causes[0] if causes else format_text(change.reason, line)


def _write_cause(cause: Cause, line: int = MAX_LINE) -> str:
    change = cause.change
    if change is not None and cause.text.endswith(change.text) and len(cause.text) <= line:
        path, before, after = (format_code(text, line) for text in (change.path, change.before, change.after))
        shown = ChangedField(path, before, after).text.replace(" -> ", " → ")
        text = f"{format_text(cause.text.removesuffix(change.text))} {shown}"
    else:
        text = format_text(cause.text, line)
    if cause.location is None:
        return text
    return f"{text} ({'was ' if cause.removed else ''}{format_code(cause.location.text)})"


def write_reasons(groups: Sequence[MoveGroup], most: int, omitted: list[str], *, fits: bool) -> str:
    """Return the reasons after the first one, which the list of moves contains, and the parts of groups."""
    entries = []
    for group in groups[:most]:
        causes = list_cause_texts(group.causes, _write_cause)
        reasons = [*causes[1:], *(format_text(text, MAX_LINE) for text in list_reasons(group)[len(causes) or 1 :])]
        parts = [] if group.is_single else [format_text(text, MAX_LINE) for text in describe_flows(group)]
        if not group.is_single:
            members = [describe_member(move, "−", "→") for move in group.moves]
            parts += [format_text(text, MAX_LINE) for text in list_limited(members, MEMBERS_SHOWN)]
        if reasons or parts:
            title = format_code(format_key(group.moves[0].key))
            if not group.is_single:
                title = format_text(describe_group(group), MAX_LINE)
            entries.append("\n".join([f"- {title}", *(f"  - {text}" for text in (*parts, *reasons))]))
    if entries and not fits:
        omitted.append("additional reasons")
        return ""
    return write_details(f"Details of {format_count(len(entries), 'change')}", "\n".join(entries))


def write_record_changes(changes: Sequence[RecordChange], most: int, omitted: list[str], line: int = MAX_LINE) -> str:
    """Return the table of changed recorded decisions, each with its first cause."""
    if not changes:
        return ""
    lines = ["| recorded decision | before | after | reason |", "|---|---|---|---|"]
    shown = count_shown(len(changes), most) if most else 0
    for change in changes[:shown]:
        subject, before, after = map(format_code, format_record_change(change))
        reason = write_first_reason(change, line)
        lines.append(f"| {subject} | {before} | {after} | {reason} |")
    more = len(changes) - shown
    if more > 0:
        omitted.append(f"{more:,} of {format_count(len(changes), 'recorded decision')}")
        lines.append(f"| … and {more:,} more | | | |")
    title = describe_record_changes(changes)
    return "\n".join([f"**{title[0].upper()}{title[1:]}:**", "", *lines])


def write_details(title: str, text: str) -> str:
    """Return text that is folded under its title; "" without text."""
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>" if text else ""
