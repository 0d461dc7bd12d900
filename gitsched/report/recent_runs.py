"""What the latest runs took from workloads, as text and as JSON: which commit of the source caused it, and how to undo it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from gitsched.model.changes import Move
from gitsched.model.finding import choose_form, count_shown, format_count, format_names
from gitsched.model.history import CauseFiles, SourceChange
from gitsched.model.recent_runs import LOSSES, Loss, RecentLoss, RecentRun
from gitsched.model.scheduling import total_replicas
from gitsched.model.time import format_age, format_time
from gitsched.report.history import UNTIMED, describe_edited_cause, describe_evictions, describe_source
from gitsched.report.lines import abbreviate_oid, format_clusters, format_key, format_words, serialize_clusters, sort_moves
from gitsched.report.serialization import serialize_key, serialize_source

RUNS_SHOWN = 3
NAMES_SHOWN = 3
"""The number of runs that are listed, and of workloads that are named of each; the others are counted."""
NAMES_RETURNED = 10
"""The number of workloads that a command to bring them back names; for more it takes all that are elsewhere."""
_TITLES: Mapping[Loss, tuple[str, str]] = {
    "unplaced": ("workload became unplaced", "workloads became unplaced"),
    "copied": ("workload with data got a copy with empty volumes", "workloads with data got copies with empty volumes"),
    "fewer": ("workload has fewer replicas", "workloads have fewer replicas"),
    "removed": ("workload was removed from the source", "workloads were removed from the source"),
    "moved": ("workload moved", "workloads moved"),
}


def describe_recent_runs(runs: Sequence[RecentRun], now: datetime) -> list[str]:
    """Return a few lines for each run: its commit of the source, what it took from which workloads, and how to undo that."""
    shown = count_shown(len(runs), RUNS_SHOWN)
    lines = [line for run in runs[:shown] for line in _describe_run(run, now)]
    more = len(runs) - shown
    return [*lines, *([f"and {more:,} more runs: gitsched history lists them"] if more else [])]


def _describe_run(run: RecentRun, now: datetime) -> list[str]:
    origin = "; ".join(map(describe_source, run.sources)) or describe_evictions(run.departures)
    origin = origin or describe_edited_cause(run.cause, run.edits).removeprefix("by ")
    more = f" and {format_count(run.more_sources, 'more commit')}" if run.more_sources else ""
    age = f" {format_age(run.time, now)} ago" if run.cause not in UNTIMED or run.sources else ""
    lines = [f"Changed{age} by {origin}{more}{_describe_rest(run)}:"]
    for kind in LOSSES:
        found = sort_moves([loss.move for loss in run.losses if loss.kind == kind])
        if found:
            names = format_names([_describe_loss(kind, move) for move in found], NAMES_SHOWN)
            lines.append(f"  {format_count(len(found), *_TITLES[kind])}: {names}")
    lines += [f"  {format_count(run.more_moves, 'more workload')} moved, which are not read"] if run.more_moves else []
    return [*lines, f"  {_describe_cure(run)}"]


def _describe_rest(run: RecentRun) -> str:
    """Return how many workloads a run took something from, and of how many that is still so; "" if it is of all."""
    if run.concerned <= len(run.losses):
        return ""
    still = format_count(len(run.losses), "is still as it left it", "are still as it left them")
    return f", which concerned {format_count(run.concerned, 'workload')}, of which {still}"


def _describe_loss(kind: Loss, move: Move) -> str:
    before, after, name = move.before, move.after, format_key(move.key)
    if kind == "fewer":
        text = f"{name} {total_replicas(before.values())} -> {total_replicas(after.values())}"
        return f"{text} ({_describe_clusters(before, after)})" if before.keys() - after.keys() else text
    if kind == "moved":
        return f"{name} ({_describe_clusters(before, after)})"
    if kind == "copied":
        joined = {cluster: after[cluster] for cluster in after.keys() - before.keys()}
        return f"{name} (data: {format_clusters(before, NAMES_SHOWN)}; copy: {format_clusters(joined, NAMES_SHOWN)})"
    return f"{name} (was on {format_clusters(before, NAMES_SHOWN)})"


def _describe_clusters(before: Mapping[str, int | None], after: Mapping[str, int | None]) -> str:
    """Return the clusters that a workload left, joined, or has with another number of replicas, as they were before and after, and the
    number of the others."""
    left, joined = (
        {cluster: replicas[cluster] for cluster in replicas if cluster not in other or replicas[cluster] != other[cluster]}
        for replicas, other in ((before, after), (after, before))
    )
    shown, same = format_clusters(left), len(after.keys() - joined.keys())
    unchanged = f"; {format_count(same, 'cluster')} unchanged" if same else ""
    return f"{shown} -> {format_clusters(joined)}{unchanged}" if joined else f"left {shown}{unchanged}"


def _describe_cure(run: RecentRun) -> str:
    """Return how to undo what a run did, or what is left to do after a revert."""
    first = next((loss.move.key for loss in run.losses if loss.kind == "copied"), run.losses[0].move.key)
    back, held = _describe_return(run)
    explain = f"gitsched explain {format_words(first)}"
    if run.reverted_by is not None or run.is_undone:
        done = f"reverted by {describe_source(run.reverted_by)}" if run.reverted_by is not None else "nothing is left to revert"
        if run.awaits_run:
            return f"{done}: gitsched reconcile carries that out{f', then {back}' if back else ''}{held}"
        left = f"to bring back what moved: {back}{held}; " if back else f"{held.removeprefix('; ')}; " if held else ""
        return f"{done}; {left}what keeps them there: {explain}"
    details = f"all moves: gitsched history --from {abbreviate_oid(run.commit)} -m 1"
    if run.cause == "records" and len(run.edits) == 1:
        return f"to undo it: {describe_revert(run.edits[0])} on the output branch, and gitsched reconcile; {details}"
    if run.sources and run.departures:
        names = list(dict.fromkeys(one.cluster for one in run.departures))
        later = f", then {back}" if back else ""
        return f"when {format_names(names)} {choose_form(len(names), 'is', 'are')} ready again: gitsched reconcile{later}{held}; {details}"
    if run.reverts is not None:
        return f"it reverts {describe_source(run.reverts)}; {details}; why: {explain}"
    if not run.sources:
        return f"{details}; why: {explain}"
    later = f", then {back}, then git add and git commit" if back else ""  # one run for both, so that workloads move once
    return f"to undo it: {_describe_revert(run)}{later}, and gitsched reconcile{held}; {details}"


def _describe_revert(run: RecentRun) -> str:
    """Return the commands that take back what the commits of the source of a run decided."""
    if run.replaced:
        newest, withheld = run.sources[0], "; ".join(map(describe_source, run.replaced))
        return f"{', then '.join(map(describe_revert, (newest, *run.replaced)))}, as this replaced what was withheld: {withheld}"
    return describe_undo(run.sources[0], run.files) if run.has_one_source else "git revert the commit that did it"


def _describe_return(run: RecentRun) -> tuple[str, str]:
    """Return the command that brings back what a run moved, and what else it takes back, "" if nothing moved; and what it leaves out."""
    moved = [loss for loss in run.losses if loss.kind == "moved"]
    names = sorted(format_words(loss.move.key) for loss in moved if not loss.left_data)
    command = f"gitsched rebalance --to {abbreviate_oid(run.before)}"
    if len(names) > NAMES_RETURNED or (run.more_moves and moved):
        return f"{command} shows what stays where it is, and later moves of others, which --write takes back, too", ""
    back = f"{command} {' '.join(names)} --write for what stays where it is" if names else ""
    held = sorted(format_key(loss.move.key) for loss in moved if loss.left_data)
    if held:
        stay, them = ("stays with its data", "it") if len(held) == 1 else ("stay with their data", "them")
        return back, f"; {format_names(held, NAMES_SHOWN)} {stay} unless {command} names {them}"
    return back, ""


def describe_revert(source: SourceChange) -> str:
    """Return the command that reverts a commit of the source."""
    return f"git revert {'-m 1 ' if source.is_merge else ''}{abbreviate_oid(source.commit)}"


def describe_undo(source: SourceChange, files: CauseFiles) -> str:
    """Return the command that takes back what a commit of the source decided: only these files where it changed others, too."""
    revert, others = describe_revert(source), format_count(files.others, "other file" if files.is_known else "file")
    if files.restored:
        paths = " ".join(map(shlex.quote, files.restored))
        return f"git checkout {abbreviate_oid(source.commit)}^ -- {paths} and git commit ({revert} would take back {others}, too)"
    if files.others and files.is_known:
        return f"{revert}, which also takes back {others}"
    return f"{revert}, which takes back {others}" if files.others > 1 else revert


def describe_requests(sources: Sequence[SourceChange], more: int = 0) -> str:
    """Return which commits of the source ask for withheld changes, and how to withdraw these; "" if none is known."""
    if not sources:
        return ""
    asked = "; ".join(map(describe_source, sources)) + (f" and {format_count(more, 'more commit')}" if more else "")
    undo = "" if more else f"; to withdraw {'it' if len(sources) == 1 else 'them'}: {'; '.join(map(describe_revert, sources))}"
    return f"requested by {asked}{undo}"


def serialize_recent_runs(runs: Sequence[RecentRun]) -> list[dict[str, Any]]:
    """Return the member `recent` of a FleetStatus."""
    return [
        {
            "commit": run.commit,
            "before": run.before,
            "time": format_time(run.time),
            "cause": run.cause,
            "sources": [serialize_source(one) for one in run.sources],
            "moreSources": run.more_sources,
            "revertedBy": serialize_source(run.reverted_by) if run.reverted_by is not None else None,
            "edits": list(map(serialize_source, run.edits)),
            "concerned": run.concerned,
            "losses": [_serialize_loss(loss) for loss in run.losses],
        }
        for run in runs
    ]


def _serialize_loss(loss: RecentLoss) -> dict[str, Any]:
    move = loss.move
    sides = {"before": serialize_clusters(move.before), "after": serialize_clusters(move.after)}
    return {**serialize_key(move.key), "loss": loss.kind, **sides}
