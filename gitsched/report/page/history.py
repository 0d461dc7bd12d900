"""The history of an output branch as one self-contained HTML page: a timeline of its commits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from markupsafe import Markup

from gitsched.model.finding import format_count, format_names
from gitsched.model.history import WITHHOLDS, HistoryEntry, PlacementMove, SourceChange
from gitsched.model.time import EPOCH, format_time
from gitsched.model.web_links import WebLinks
from gitsched.named_tuples import NamedTuple
from gitsched.report.history import (
    describe_cause,
    describe_edited_records,
    describe_more_files,
    describe_reason,
    describe_source,
    describe_taint_change,
)
from gitsched.report.lines import abbreviate_oid, classify_move, escape_unprintable, format_key
from gitsched.report.page import embed_resource, load_template, read_resource, read_script
from gitsched.report.page.content import build_move_row, build_record_change_row
from gitsched.report.page.links import PageLinks
from gitsched.report.page.live import PAGES, LiveView
from gitsched.report.summary import count_moves

MOVES_SHOWN = 200
"""The number of moves that the page lists for one commit; the others are counted."""
ALL_MOVES_SHOWN = 5_000
"""The number of moves that the page lists in all."""
OPEN_ENTRIES = 3
"""The number of commits whose moves are open at first."""
FILES_SHOWN, SOURCES_SHOWN = 8, 8
FOLDED_WORKLOADS_SHOWN = 3
"""Workloads that are named where those of a commit are folded."""
CHANGED_CLUSTERS_SHOWN = 4
"""Clusters that are named of a commit."""
TICKS_SHOWN = 4
"""Times that are written at the time axis, besides the first and the last one."""
_EDGE = 8
"""Percent of the axis at both ends where no time is written, which the window would cut off."""
_STEPS = (
    *(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 180, 360, 720)),
    *(timedelta(days=days) for days in (1, 2, 7, 14, 30, 90, 365, 3650)),
)
_COUNTED = (
    ("moved", "turn", "moved"),
    ("left", "turn", "left clusters"),
    ("resized", "turn", "scaled"),
    ("first", "new", "placed"),
    ("again", "new", "placed again"),
    ("lost", "old", "gone"),
    ("kept", "old", "kept in clusters"),
)


class HistoryPage(NamedTuple):
    """What the page shows: a branch, its head, entries with the newest first, notes, where and why the entries end, the web pages of the
    source, None without any, and which moves were chosen, "" for all."""

    branch: str
    head: str
    entries: Sequence[HistoryEntry]
    notes: Sequence[str] = ()
    next: str = ""
    end: str = ""
    web: WebLinks | None = None
    chosen: str = ""


def write_history_page(history: HistoryPage, live: LiveView | None = None) -> str:
    """Return the page; with `live`, it follows the events of `gitsched watch`. Text from commits is escaped: it is no markup or script."""
    style, script = read_resource("page.css") + read_resource("history.css"), read_script("tools.js", "history.js", live=live)
    left, rows, links = ALL_MOVES_SHOWN, [], PageLinks(history.web)
    for number, entry in enumerate(history.entries):
        row = _build_entry(entry, min(MOVES_SHOWN, left), links, is_open=number < OPEN_ENTRIES)
        left -= len(row["moves"])
        rows.append(row)
    return load_template("history.html.j2").render(
        live=live,
        pages=PAGES,
        branch=escape_unprintable(history.branch),
        head=abbreviate_oid(history.head),
        axis=_build_axis(history.entries),
        days=[(day, list(entries)) for day, entries in groupby(rows, key=lambda row: row["day"])],
        count=format_count(len(rows), "commit"),
        chosen=escape_unprintable(history.chosen),
        first=min((row["day"] for row in rows), default=""),
        last=max((row["day"] for row in rows), default=""),
        changes=format_count(sum(len(entry.moves) + entry.more_moves for entry in history.entries), "change"),
        notes=[escape_unprintable(note) for note in history.notes],
        next=abbreviate_oid(history.next),
        end=escape_unprintable(history.end),
        **embed_resource("style", style),
        **embed_resource("script", script),
    )


class AxisMark(NamedTuple):
    """A commit on the time axis: its position in percent, its id, its kind for the style, and a text about it."""

    position: float
    id: str
    kind: str
    text: str


class AxisTick(NamedTuple):
    """A day, or a time of day, on the time axis."""

    position: float
    text: str


class TimeAxis(NamedTuple):
    """The commits between the time of the oldest and that of the newest one."""

    start: str
    end: str
    marks: list[AxisMark]
    ticks: list[AxisTick]


def _build_axis(entries: Sequence[HistoryEntry]) -> TimeAxis | None:
    """Return the time axis; None where all commits have the same time."""
    if not entries:
        return None
    start, end = min(entry.time for entry in entries), max(entry.time for entry in entries)
    if start == end:
        return None
    marks = [
        AxisMark(
            _locate(entry.time, start, end),
            abbreviate_oid(entry.commit),
            "by-hand" if entry.source is None else "moves" if entry.moves or entry.more_moves else "",
            f"{format_time(entry.time)}: {escape_unprintable(entry.summary)}",
        )
        for entry in reversed(entries)
    ]
    return TimeAxis(format_time(start), format_time(end), marks, _list_ticks(start, end))


def _locate(time: datetime, start: datetime, end: datetime) -> float:
    return round(100 * ((time - start) / (end - start)), 1)


def _list_ticks(start: datetime, end: datetime) -> list[AxisTick]:
    """Return up to TICKS_SHOWN days, or times of day, at the same distance between two times; none if that were many years."""
    span = end - start
    step = next((step for step in _STEPS if span / step <= TICKS_SHOWN), None)
    if step is None:
        return []
    first, part = (start - EPOCH) // step + 1, slice(10) if step >= timedelta(days=1) else slice(11, 16)
    times = (EPOCH + (first + number) * step for number in range(TICKS_SHOWN))
    ticks = (AxisTick(_locate(time, start, end), format_time(time)[part]) for time in times)
    return [tick for tick in ticks if _EDGE <= tick.position <= 100 - _EDGE]


def _build_entry(entry: HistoryEntry, shown: int, links: PageLinks, *, is_open: bool) -> dict[str, Any]:
    counts = [classify_move(found.move) for found in entry.moves]
    badges = [(style, f"{counts.count(kind)} {word}") for kind, style, word in _COUNTED if kind in counts]
    badges += [("old", "withholds changes")] if any(WITHHOLDS in note for note in entry.notes) else []
    source = entry.source
    others = [each for each in entry.sources if source is None or each.commit != source.commit]
    more_sources = max(len(others) - SOURCES_SHOWN, 0) + entry.more_sources
    time = format_time(entry.time)
    edited = [describe_edited_records(entry)] if entry.edited else []
    return {
        "id": abbreviate_oid(entry.commit),
        "commit": entry.commit,
        "day": time[:10],
        "time": time,
        "clock": time[11:16],
        "title": escape_unprintable(entry.summary),
        "cause": escape_unprintable(describe_cause(entry)),
        "author": escape_unprintable(entry.author),
        "by_hand": source is None,
        "source": _describe_source(source, links) if source is not None else "",
        "others": [_describe_source(each, links) for each in others[:SOURCES_SHOWN]],
        "more_sources": format_count(more_sources, "more source commit") if more_sources else "",
        "files": [escape_unprintable(path) for path in entry.files[:FILES_SHOWN]],
        "more_files": describe_more_files(entry, FILES_SHOWN).strip(),
        "badges": badges,
        "clusters": _list_clusters(entry),
        "names": escape_unprintable(format_names([format_key(found.move.key) for found in entry.moves], FOLDED_WORKLOADS_SHOWN)),
        "moves": [_build_move(found) for found in entry.moves[: max(shown, 0)]],
        "more": len(entry.moves) - max(shown, 0) + entry.more_moves if len(entry.moves) > shown else entry.more_moves,
        "records": [build_record_change_row(change) for change in entry.records[:MOVES_SHOWN]],
        "notes": [escape_unprintable(note) for note in (*edited, *map(describe_taint_change, entry.taints), *entry.notes)],
        "trailers": [(escape_unprintable(name), escape_unprintable(value)) for name, value in entry.trailers],
        "open": is_open,
    }


def _list_clusters(entry: HistoryEntry) -> list[tuple[str, str]]:
    """Return the clusters whose workloads a commit changed most, each with its kind for the style, and how many others there are."""
    deltas = count_moves(found.move for found in entry.moves).clusters
    ordered = sorted(deltas.items(), key=lambda item: (-max(item[1]), item[0]))
    chips = []
    for name, delta in ordered[:CHANGED_CLUSTERS_SHOWN]:
        parts = [_format_delta("+", delta.gained, delta.replicas_gained)]
        parts.append(_format_delta("−", delta.lost, delta.replicas_lost))  # a minus sign
        kind = "turn" if all(parts) else "new" if parts[0] else "old"
        chips.append((kind, " ".join(filter(None, (escape_unprintable(name), *parts)))))
    more = len(ordered) - len(chips)
    return [*chips, *([("", f"{more:,} more")] if more else [])]


def _format_delta(sign: str, workloads: int, replicas: int) -> str:
    return f"{sign}{replicas or workloads}" if replicas or workloads else ""


def _describe_source(source: SourceChange, links: PageLinks) -> Markup:
    """Return a source commit with links to it and to pull requests."""
    text = escape_unprintable(describe_source(source))
    oid, space, rest = text.partition(" ")
    return links.link_commit(source.commit, oid) + space + links.link_pulls(rest)


def _build_move(found: PlacementMove) -> dict[str, Any]:
    row = build_move_row(found.move)
    return {
        **row,
        "name": escape_unprintable(row["name"]),
        "reason": escape_unprintable(describe_reason(found)),
        "removed": found.removed,
    }
