"""A run as a person reads it: the verdict first, then what moves, then what is wrong, then the counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from gitsched.model.change import Move
from gitsched.model.document import Key
from gitsched.model.finding import SEVERITIES, Finding
from gitsched.model.time import format_time
from gitsched.report.review import Review
from gitsched.report.table import columns, count, fits, wrap

CLUSTERS_SHOWN = 6
"""Clusters named for one side of a move; the others are counted."""
FINDINGS_SHOWN = 50
INFOS_SHOWN = 5
"""Findings that are printed one by one, and those of severity info among them; JSON has all."""


def write_plan(review: Review, width: int) -> str:
    """What a commit to the output branch would change; lines of at most `width` characters where words allow."""
    return _write(plan_verdict(review), review, width)


def write_run(review: Review, width: int) -> str:
    """What a reconcile did; otherwise like `write_plan`."""
    return _write(_run_verdict(review), review, width)


def write_findings(findings: Sequence[Finding], width: int) -> str:
    """Findings, worst first, and their counts."""
    return _join(_finding_lines(findings, width), wrap(_count_findings(findings), width))


def label(key: Key) -> str:
    """A workload as people name it: "Deployment shop/cart"."""
    return f"{key.kind} {key.namespace}/{key.name}" if key.namespace else f"{key.kind} {key.name}"


def short(oid: str) -> str:
    """An object id as people recognise it."""
    return oid[:10]


def _write(verdict: str, review: Review, width: int) -> str:
    return _join(
        wrap(verdict, width),
        wrap(f"Refused: {review.refused}", width) if review.refused else [],
        _move_lines(review.moves, width),
        _finding_lines(review.findings, width),
        _count_lines(review, width),
    )


def plan_verdict(review: Review) -> str:
    """What a plan comes to, in one sentence."""
    source = f"commit {short(review.source)}" if review.source else "the worktree"
    if review.before is None:
        placed = review.states["placed"]
        return f"First placement: {source} would create {_output(review)} and place {count(placed, 'workload')}."
    if review.moves:
        return f"{_summary(review.moves)}: {source} against {_output(review)}."
    if review.changed:
        return f"No workload moves, but files of {_output(review)} change with {source}."
    return f"Nothing changes: {_output(review)} already is what {source} asks for."


def _run_verdict(review: Review) -> str:
    source = f"commit {short(review.source)}"
    if review.refused:
        return f"Nothing committed: the guard refused. {_summary(review.moves) or 'The change'}."
    if review.after is None:
        return f"Nothing changed: {_output(review)} already is what {source} asks for."
    commit = f"Committed {short(review.after)} to {_output(review, head=False)}"
    if review.before is None:
        return f"{commit}, its first: {count(review.states['placed'], 'workload')} placed from {source}."
    return f"{commit}: {_summary(review.moves) or 'files change, no workload moves'}, from {source}."


def _summary(moves: Sequence[Move]) -> str:
    lost = sum(move.lost for move in moves)
    first = sum(not move.before for move in moves)
    resized = sum(bool(move.before) and move.before.keys() == move.after.keys() for move in moves)
    moved = len(moves) - lost - first - resized
    parts = [
        f"{count(moved, 'workload')} {'moves' if moved == 1 else 'move'}" if moved else "",
        f"{count(resized, 'workload')} {'is' if resized == 1 else 'are'} resized" if resized else "",
        f"{count(first, 'workload')} {'gets its' if first == 1 else 'get their'} first place" if first else "",
        f"{count(lost, 'workload')} {'loses its' if lost == 1 else 'lose their'} last place" if lost else "",
    ]
    return ", ".join(filter(None, parts))


def _output(review: Review, *, head: bool = True) -> str:
    at = f" at {short(review.before)}" if head and review.before else ""
    return f"branch {review.branch}{at}" + (f" of {review.place}" if review.place else "")


def _move_lines(moves: Sequence[Move], width: int) -> list[str]:
    """A table where it fits; else a few lines for each move, which can still be read at 80 columns."""
    if not moves:
        return []
    for shown in (CLUSTERS_SHOWN, 3, 2):
        table = columns([("WORKLOAD", "BEFORE", "AFTER", "REASON"), *(_row(move, shown) for move in moves)])
        if fits(table, width):
            return table
    lines = []
    for workload, before, after, reason in (_row(move, CLUSTERS_SHOWN) for move in moves):
        lines += [*wrap(workload, width), *wrap(f"{before} -> {after}", width, "  ")]
        lines += wrap(reason, width, "  ") if reason else []
    return lines


def _row(move: Move, shown: int) -> tuple[str, str, str, str]:
    return label(move.key), write_places(move.before, shown), write_places(move.after, shown), move.reason


def write_places(places: Mapping[str, int | None], most: int = CLUSTERS_SHOWN) -> str:
    """Clusters with their replicas, "nowhere" for none: "dub-prod-1 2, fra-prod-1 3"."""
    if not places:
        return "nowhere"
    shown = [name if places[name] is None else f"{name} {places[name]}" for name in sorted(places)]
    more = len(shown) - most
    return ", ".join(shown[:most]) + (f" and {more} more" if more > 0 else "")


def _finding_lines(findings: Sequence[Finding], width: int) -> list[str]:
    infos = [finding for finding in findings if finding.severity == "info"]
    grave = [finding for finding in findings if finding.severity != "info"]
    shown = [*grave, *infos[:INFOS_SHOWN]][:FINDINGS_SHOWN]
    lines = [line for finding in shown for line in wrap(str(finding), width)]
    more = len(findings) - len(shown)
    return [*lines, f"and {more} more: -o json has all"] if more else lines


def _count_findings(findings: Sequence[Finding]) -> str:
    counts = Counter(finding.severity for finding in findings)
    nouns = {"error": "error", "warning": "warning", "info": "note"}
    return ", ".join(count(counts[level], nouns[level]) for level in SEVERITIES if counts[level]) or "No findings"


def _count_lines(review: Review, width: int) -> list[str]:
    states = review.states
    parts = [
        f"{states['placed']} placed",
        f"{states['pending']} without a place" if states["pending"] else "",
        f"{states['stale']} kept as decided before" if states["stale"] else "",
    ]
    unclaimed = f"; {count(review.unclaimed, 'object')} selected by no policy" if review.unclaimed else ""
    lines = wrap(f"{count(len(review.outcomes), 'workload')}: {', '.join(filter(None, parts))}{unclaimed}.", width)
    lines += wrap(f"{_count_findings(review.findings)}.", width)
    if review.next_wakeup:
        lines += wrap(f"Time alone can change a decision at {format_time(review.next_wakeup)}.", width)
    return lines


def _join(*blocks: list[str]) -> str:
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"
