"""The history of an output branch as text and as JSON."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from gitsched.model.finding import format_count, format_names, join_all
from gitsched.model.history import Departure, HistoryEntry, HistoryFilter, PlacementMove, SourceChange, TaintChange
from gitsched.model.scheduling import WITHHELD_REASON
from gitsched.model.time import format_age, format_time
from gitsched.report.lines import (
    MOVE_SIGNS,
    abbreviate_oid,
    classify_move,
    escape_unprintable,
    format_clusters,
    format_key,
    serialize_clusters,
    wrap,
)
from gitsched.report.paint import paint_sign
from gitsched.report.serialization import API_VERSION, serialize_key, serialize_record_change, serialize_source
from gitsched.report.summary import format_record_change

if TYPE_CHECKING:
    from datetime import datetime

    from gitsched.model.changes import Move
    from gitsched.report.paint import Paint

MOVES_SHOWN = 20
"""The number of moves that the text lists for one commit; JSON has all that were read."""
SOURCES_SHOWN = 5
TAINTS_SHOWN = 5
EDITS_SHOWN = 3
CAUSES = {
    "source": "a commit of the source",
    "facts": "facts about clusters",
    "deadline": "a deadline",
    "observation": "an observed value",
    "upgrade": "a new version of gitsched",
    "release": "a release of what was held",
    "rerun": "the same commit of the source again, as after an allowance or a freeze",
    "edit": "what people changed on this branch is taken back",
    "records": "records edited by hand",
    "": "by hand",
}
UNTIMED = frozenset(("release", "rerun"))
"""Causes of commits that have the time of the source, whenever they were made, so that no age follows from it."""


def describe_left_out(chosen: HistoryFilter, *, newer: int, has_older: bool) -> list[str]:
    """Return which commits the times of a filter leave out; `newer` ones are after its end."""
    later = format_count(newer, "newer commit")
    return [
        *(
            [f"{later} {'is' if newer == 1 else 'are'} left out: after {format_time(chosen.until)}"]
            if newer and chosen.until
            else ()
        ),
        *([f"older commits are left out: before {format_time(chosen.since)}"] if has_older and chosen.since else ()),
    ]


def describe_choice(chosen: HistoryFilter) -> str:
    """Return which moves a filter chooses: "workload shop/web, cluster fra"; "" for all."""
    named = (("workload", chosen.workload), ("namespace", chosen.namespace), ("cluster", chosen.cluster))
    return ", ".join(f"{kind} {pattern}" for kind, pattern in named if pattern)


def write_entry(
    entry: HistoryEntry,
    moves_shown: int = MOVES_SHOWN,
    now: datetime | None = None,
    paint: Paint | None = None,
    width: int = sys.maxsize,
) -> str:
    """Return one commit as lines, which are wrapped at `width` and end in an empty one, with its age if it is known what time it is. Text
    of commits and records is escaped."""
    age = f" ({format_age(entry.time, now)} ago)" if now is not None and entry.cause not in UNTIMED else ""
    head = escape_unprintable(f"{format_time(entry.time)}{age}  {abbreviate_oid(entry.commit)}  {entry.summary}")
    lines = [*_list_origin(entry)]
    for found in entry.moves[:moves_shown]:
        move = found.move
        mark = "?" if found.damage else MOVE_SIGNS[classify_move(move)]
        lines.append(f"  {mark} {format_key(move.key)}: {describe_clusters(found)}")
        reason = describe_reason(found)
        lines += [f"      {reason}"] if reason else []
    more = len(entry.moves) - moves_shown
    lines += [f"  and {format_count(more, 'more workload')}; -o json lists them"] if more > 0 else []
    lines += [f"  and {format_count(entry.more_moves, 'more record')}, which are not read"] if entry.more_moves else []
    lines += [f"  ~ {name}: {before} -> {after}" for name, before, after in map(format_record_change, entry.records[:moves_shown])]
    more = len(entry.records) - moves_shown
    lines += [f"  and {format_count(more, 'more recorded decision')}; -o json lists them"] if more > 0 else []
    lines += [f"  {note}" for note in entry.notes]
    lines = [*chain.from_iterable(_wrap(line, width) for line in map(escape_unprintable, lines))]
    if paint is not None:
        head, lines = paint(head, "heading"), [_paint_move(line, paint) for line in lines]
    return "\n".join((head, *lines)) + "\n\n"


def write_overview(entry: HistoryEntry, now: datetime, paint: Paint | None = None, width: int = sys.maxsize) -> str:
    """Return one commit as a line, wrapped at `width`: when, what happened to how many workloads, what is withheld, and which commit of the
    source by whom, or else what caused it."""
    age = f" ({format_age(entry.time, now)} ago)" if entry.cause not in UNTIMED else ""
    head = f"{format_time(entry.time)}{age}  {abbreviate_oid(entry.commit)}"
    others = sum(entry.source is None or each.commit != entry.source.commit for each in entry.sources) + entry.more_sources
    why = f"by hand: {entry.author}"
    if entry.source is not None:
        more = f" and {format_count(others, 'more source commit')}" if others else ""
        why = f"{describe_source(entry.source)}{more}" if entry.cause == "source" else describe_cause(entry)
    first, *rest = _wrap(escape_unprintable(f"{head}  {entry.summary}: {why}"), width)
    return "\n".join((first if paint is None else first.replace(head, paint(head, "heading"), 1), *rest)) + "\n"


def _wrap(line: str, width: int) -> list[str]:
    """Return a line as several that fit into the width; the further ones are indented by four more."""
    if len(line) <= width:
        return [line]
    indent = " " * (len(line) - len(line.lstrip(" ")))
    first, *rest = wrap(line.lstrip(" "), width, indent)
    return [first, *wrap(" ".join(text.strip() for text in rest), width, f"{indent}    ")]


def _paint_move(line: str, paint: Paint) -> str:
    """Paint the sign of a move."""
    return f"  {paint_sign(line[2:], '', paint)}" if line[:2] == "  " and line[2:4] in ("+ ", "- ", "~ ") else line


def _list_origin(entry: HistoryEntry) -> Iterator[str]:
    """Yield why the commit was made: its cause, the source commits with their authors, and the changed files."""
    source = entry.source
    if source is None:
        yield f"  by hand: {entry.author}"
        if entry.edited:
            yield f"  {describe_edited_records(entry)}"
        return
    yield f"  cause: {describe_cause(entry)}"
    others = [each for each in entry.sources if each.commit != source.commit]
    for each in (source, *others[: SOURCES_SHOWN - 1]):
        yield f"  source: {describe_source(each)}"
    more = len(others) - (SOURCES_SHOWN - 1) + entry.more_sources
    if more > 0:
        yield f"  and {format_count(more, 'more source commit')}"
    if entry.requested:
        yield f"  withheld before: requested by {format_names(list(map(describe_source, entry.requested)), SOURCES_SHOWN)}"
    yield from (f"  {describe_taint_change(change)}" for change in entry.taints[:TAINTS_SHOWN])
    if len(entry.taints) > TAINTS_SHOWN:
        yield f"  and {format_count(len(entry.taints) - TAINTS_SHOWN, 'more taint')}; -o json lists them"
    if entry.files:
        yield f"  files: {', '.join(entry.files[:SOURCES_SHOWN])}{describe_more_files(entry, SOURCES_SHOWN)}"


def describe_edited_records(entry: HistoryEntry) -> str:
    """Return the workloads whose records people edited."""
    return f"records edited, from which runs decide: {format_names(list(map(format_key, entry.edited)), MOVES_SHOWN)}"


def describe_cause(entry: HistoryEntry) -> str:
    """Return the cause of a commit in words."""
    cause, left = describe_edited_cause(entry.cause, entry.edits), entry.departures
    cause += f", and {CAUSES[entry.also]}" if entry.also else ""
    drained, failed = (sorted(name for name, one in left.items() if one.is_drain is wanted) for wanted in (True, False))
    what = [f"a drain of {format_names(drained)}"] if drained else []
    what += [f"failover from {format_names(failed)}"] if failed else []
    return f"{cause}: {', '.join(what)}" if what else cause


def describe_edited_cause(cause: str, edits: Sequence[SourceChange]) -> str:
    """Return the cause of a run in words, with the commits of people on the output branch that it follows."""
    text, named = CAUSES.get(cause, cause), format_names([describe_source(edit) for edit in edits], EDITS_SHOWN)
    if not edits:
        return text
    return f"{text}: {named}" if cause in ("edit", "records") else f"{text}; after edits by hand: {named}"


def describe_taint_change(change: TaintChange) -> str:
    """Return what a taint does to a cluster, or that it ends, with what adds it and where."""
    kind = "taint" if not change.evicts else "failover" if change.added_by else "drain"
    where = f" ({change.location})" if change.location else ""
    if not change.taint:
        return f"{kind}: {change.cluster} has failed: {change.added_by}{where}"
    if not change.added:
        ends = {"taint": "changes", "drain": "is not drained any more", "failover": "evicts nothing any more"}[kind]
        return f"{kind}: {change.cluster} {ends}; removed: the taint {change.taint}{where}"
    what = {"taint": "gets", "drain": "is drained by", "failover": "evicts workloads by"}[kind]
    cause = f": {change.added_by}" if change.added_by else ""
    return f"{kind}: {change.cluster} {what} the taint {change.taint}{cause}{where}"


def describe_more_files(entry: HistoryEntry, shown: int) -> str:
    """Return the number of changed files that are not listed: " and 3 more"; "" if there are none."""
    more = len(entry.files) - shown + entry.more_files
    return f" and {more} more" if more > 0 else ""


def describe_source(source: SourceChange) -> str:
    """Return a source commit with its subject and its author, as far as they are known."""
    parts = [
        abbreviate_oid(source.commit),
        source.subject or "(not in this repository)",
        f"({source.author}{f', merging {format_names(source.merged)}' if source.merged else ''})" if source.author else "",
    ]
    return " ".join(filter(None, parts))


def describe_clusters(found: PlacementMove) -> str:
    """Return the clusters of a workload before and after, as far as the records can be read."""
    after = (
        "unknown" if found.damage and not found.move.after else "removed" if found.removed else format_clusters(found.move.after)
    )
    if classify_move(found.move) == "again":
        return f"{after}, where its copies still ran"
    return f"{format_clusters(found.move.before)} -> {after}" if found.move.before else after


def describe_reason(found: PlacementMove) -> str:
    """Return why a workload has its placement, the earlier reason where it was another one, and which clusters it had to leave."""
    if found.damage:
        return found.damage
    if found.removed:
        return found.removal or "no policy selects it any more, or its document is gone"
    earlier = f" (before: {found.reason_before})" if found.reason_before and found.move.before else ""
    if earlier and found.reason_before.startswith(WITHHELD_REASON):
        earlier = ", after its change was withheld"  # that is no policy which it had before
    leaves = "".join(f"; {text}" for text in describe_departures(found.departures))
    return f"{found.move.reason or 'no cluster fits'}{earlier}{leaves}"


def describe_departures(departures: Iterable[Departure]) -> list[str]:
    """Return why a workload had to leave clusters: "it leaves fra-1, which is drained"."""
    names: dict[Departure, list[str]] = {}
    for one in departures:
        names.setdefault(one._replace(cluster="", taint="" if one.added_by else one.taint), []).append(one.cluster)
    return [f"it leaves {describe_cause_of_departure(one, found)}" for one, found in names.items()]


def describe_evictions(departures: Iterable[Departure]) -> str:
    """Return which clusters workloads had to leave, and why: "failover from fra-1 (its condition Ready is False)"; "" for none."""
    names: dict[tuple[bool, str], list[str]] = {}
    for one in departures:
        names.setdefault((one.is_drain, one.added_by or "a taint evicts workloads"), []).append(one.cluster)
    shown = {key: format_names(list(dict.fromkeys(clusters))) for key, clusters in names.items()}
    found = (f"a drain of {text}" if is_drain else f"failover from {text} ({why})" for (is_drain, why), text in shown.items())
    return join_all(list(found))


def describe_cause_of_departure(one: Departure, names: Sequence[str]) -> str:
    """Return clusters, and why workloads had to leave them: "fra-1 by failover: its condition Ready is False"."""
    clusters, since = format_names(list(dict.fromkeys(names))), f" since {format_time(one.since)}" if one.since is not None else ""
    if one.is_drain:
        return f"{clusters}, which {'is' if len(names) == 1 else 'are'} drained{since}"
    return f"{clusters} by failover: {one.added_by or 'a taint evicts it'}{since}"


def describe_departure(move: Move, drained: Collection[str]) -> str:
    """Return which `drained` clusters a workload leaves: "it leaves fra-1, which is drained"; "" for none."""
    left = sorted(name for name in drained if name in move.before and name not in move.after)
    return f"it leaves {format_names(left)}, which {'is' if len(left) == 1 else 'are'} drained" if left else ""


def add_drained_reasons(moves: Iterable[Move], drained: Collection[str]) -> tuple[Move, ...]:
    """Return moves of which the reason is that they leave `drained` clusters, before what a run gives as the reason."""
    found = ((move, describe_departure(move, drained)) for move in moves)
    return tuple(
        move._replace(reason=f"{leaves} ({move.reason})" if move.reason else leaves) if leaves else move for move, leaves in found
    )


def serialize_history(
    branch: str,
    head: str,
    entries: Sequence[HistoryEntry],
    notes: Sequence[str],
    next_commit: str,
    end: str,
    left_out: Sequence[str] = (),
) -> dict[str, Any]:
    """Return a history as JSON: `next` is the commit at which the next page starts, `end` says why the history ends early, and `left_out`
    what the times of the filter leave out."""
    return {
        "apiVersion": API_VERSION,
        "kind": "History",
        "branch": branch,
        "head": head,
        "entries": list(map(_serialize_entry, entries)),
        "notes": list(notes),
        "next": next_commit or None,
        "end": end,
        "leftOut": list(left_out),
    }


def _serialize_entry(entry: HistoryEntry) -> dict[str, Any]:
    return {
        "commit": entry.commit,
        "time": format_time(entry.time),
        "author": entry.author,
        "subject": entry.subject,
        "summary": entry.summary,
        "cause": entry.cause or None,
        "also": entry.also or None,
        "trailers": [{"name": name, "value": value} for name, value in entry.trailers],
        "source": serialize_source(entry.source) if entry.source is not None else None,
        "sources": list(map(serialize_source, entry.sources)),
        "moreSources": entry.more_sources,
        "files": list(entry.files),
        "moreFiles": entry.more_files,
        "moves": list(map(_serialize_move, entry.moves)),
        "moreMoves": entry.more_moves,
        "records": list(map(serialize_record_change, entry.records)),
        "taints": list(map(_serialize_taint, entry.taints)),
        "notes": list(entry.notes),
        "requested": list(map(serialize_source, entry.requested)),
        "edits": list(map(serialize_source, entry.edits)),
        "edited": list(map(serialize_key, entry.edited)),
    }


def _serialize_taint(change: TaintChange) -> dict[str, Any]:
    members = change._asdict()
    added_by, from_facts = members.pop("added_by"), members.pop("from_facts")
    return {**members, "addedBy": added_by, "fromFacts": from_facts}


def _serialize_move(found: PlacementMove) -> dict[str, Any]:
    move = found.move
    return {
        "workload": serialize_key(move.key),
        "before": serialize_clusters(move.before),
        "after": serialize_clusters(move.after),
        "kind": classify_move(move),
        "removed": found.removed,
        "removal": found.removal or None,
        "reason": move.reason,
        "reasonBefore": found.reason_before or move.reason,
        "damage": found.damage,
        "departures": [
            {
                "cluster": one.cluster,
                "taint": one.taint,
                "addedBy": one.added_by,
                "since": format_time(one.since) if one.since else None,
            }
            for one in found.departures
        ],
    }
