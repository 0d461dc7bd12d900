"""Words and lines that all reports share: names of workloads, commits and clusters, kinds of moves, counts with nouns; for a terminal
aligned columns, wrapped paragraphs, escaped control characters and CI commands."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gitsched.model.finding import SEVERITIES, Finding, count_shown, format_count, format_names
from gitsched.model.scheduling import AtLeast, Unknown, add_replicas
from gitsched.named_tuples import NamedTuple
from gitsched.report.paint import Paint, paint_severity, paint_sign

if TYPE_CHECKING:
    from gitsched.model.changes import Move
    from gitsched.model.document import Key
    from gitsched.report.review import Review

COLUMN_GAP = "  "
# GitHub runs commands in lines that start with two colons (after blanks) and after `##[` anywhere; Azure uses `##vso[`, TeamCity
# `##teamcity[`.
_CI_COMMAND = re.compile(r"^[^\S\n]*(?=::)|##(?=(?:vso|teamcity)?\[)", re.MULTILINE | re.IGNORECASE)

CLUSTERS_SHOWN = 6
"""The number of clusters listed by name for one side of a move; the others are counted."""
TABLE_WIDTH = 160
"""The greatest width of a table of moves, and of others where lines are not wrapped; what does not fit is a few lines for each row."""
WRAPPED_WIDTH = 10_000
"""The greatest width of a terminal; lines for others are not wrapped."""
MOVE_TITLES, RECORD_TITLES = ("WORKLOAD", "CLUSTERS", "REPLICAS"), ("RECORDED DECISION", "BEFORE", "AFTER")
"""The titles of the columns of tables of moves and of changed recorded decisions."""
TABLE_CLUSTERS = (CLUSTERS_SHOWN, 3, 2)
"""The numbers of clusters with which a table is tried until it fits into the width."""
MIN_GROUP_SIZE = 3
"""The number of moves from which those with the same cause are a group."""
MOVE_ORDER = ("lost", "kept", "left", "moved", "resized", "again", "first")
"""The kinds of moves, the gravest first."""
MOVE_SIGNS = {"lost": "-", "kept": "-", "left": "~", "moved": "~", "resized": "~", "again": "+", "first": "+"}
"""How the kinds of moves are marked at the start of a line."""


def escape_unprintable(text: str) -> str:
    """Return the text on one line with unprintable characters escaped, so that a manifest cannot send terminal control sequences."""
    return "".join(c if c.isprintable() else "\\n" if c == "\n" else c.encode("unicode_escape").decode() for c in text)


def escape_ci_commands(text: str) -> str:
    """Insert a backslash into text that a CI runner would execute as a command, since the text may come from a manifest."""
    return _CI_COMMAND.sub(r"\g<0>\\", text)


def wrap(text: str, width: int, indent: str = "") -> list[str]:
    """Wrap one paragraph. Words longer than a line are not broken, so that paths can be copied."""
    lines = textwrap.wrap(
        escape_unprintable(text),
        max(width, len(indent) + 20),
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines or [indent.rstrip()]


def wrap_indented(text: str, width: int) -> list[str]:
    """Wrap one paragraph, and indent its lines as the first one is."""
    return wrap(text.lstrip(" "), width, " " * (len(text) - len(text.lstrip(" ")))) if len(text) > width else [text]


def wrap_lines(texts: Iterable[str], width: int) -> list[str]:
    """Wrap several lines without unprintable characters, each indented as it begins."""
    return [line for text in texts for line in wrap_indented(escape_unprintable(text), width)]


def wrap_all(texts: Iterable[str], width: int, indent: str = "") -> list[str]:
    """Wrap several paragraphs."""
    return [line for text in texts for line in wrap(text, width, indent)]


def wrap_finding(finding: Finding, width: int, paint: Paint | None, indent: str = "") -> list[str]:
    """Wrap a finding, with its severity in colour."""
    lines = wrap(str(finding), width, indent)
    if paint is None:
        return lines
    location = f"{escape_unprintable(str(finding.location))}: " if finding.location else ""
    return paint_severity(lines, len(indent + location), finding.severity, paint)


def format_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of cells as aligned lines; each column is as wide as its widest cell."""
    cells = [[escape_unprintable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [COLUMN_GAP.join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def fits_width(lines: Sequence[str], width: int) -> bool:
    """Return whether all lines of a table fit into the width."""
    limit = width if width <= WRAPPED_WIDTH else TABLE_WIDTH
    return all(len(line) <= limit for line in lines)


class ChangeRow(NamedTuple):
    """A row of a table of changes. `format_cells` returns a name, and what changes, with so many clusters listed; `separator` joins these
    on a line.

    `mark` is what the last cell says about fewer replicas, or "".
    """

    sign: str
    format_cells: Callable[[int], tuple[str, ...]]
    reasons: Sequence[str]
    mark: str = ""
    separator: str = " -> "


def format_changes(
    titles: Sequence[str], rows: Sequence[ChangeRow], width: int, clusters: Sequence[int], paint: Paint | None
) -> list[str]:
    """Return a table if it fits into the width with one of these numbers of clusters, else a few lines for each change."""
    if not rows:
        return []
    for shown in clusters:
        cells = [_make_cells(row, shown) for row in rows]
        head, *lines = format_columns(
            [(f"  {titles[0]}", *titles[1:], "REASON" if any(each[-1] for each in cells) else ""), *cells]
        )
        if fits_width([head, *lines], min(width, TABLE_WIDTH)):
            return [head, *(_paint_row(line, row, paint) for line, row in zip(lines, rows, strict=True))]
    found = []
    for row in rows:
        name, *changes = row.format_cells(clusters[0])
        first, *rest = wrap(f"{row.sign} {name}", width)
        found += [_paint_row(first, row, paint), *rest]
        found += wrap(row.separator.join(filter(None, changes)), width, "    ")
        found += wrap_all(row.reasons, width, "    ")
    return found


def _make_cells(row: ChangeRow, shown: int) -> tuple[str, ...]:
    name, *cells = row.format_cells(shown)
    return f"{row.sign} {name}", *cells, "; ".join(row.reasons)


def _paint_row(line: str, row: ChangeRow, paint: Paint | None) -> str:
    if paint is None:
        return line
    return paint_sign(line, row.mark, paint)


def list_limited(lines: Sequence[str], limit: int, more: str = "and {} more") -> list[str]:
    """Return the first lines, and a line with the number of the others, which `more` has a place for."""
    shown = count_shown(len(lines), limit)
    return [*lines[:shown], more.format(f"{len(lines) - shown:,}")] if len(lines) > shown else list(lines)


def count_omitted(more: int) -> list[str]:
    """Return a line with the number of entries that are left out."""
    return [f"and {more:,} more; use -o json for all"] if more > 0 else []


def join_blocks(*blocks: list[str]) -> str:
    """Return blocks of lines as one text, separated by empty lines; an empty block is left out."""
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def count_replicas(replicas: Mapping[str, int | None], cluster: str) -> int:
    """Return the replicas in a cluster; 0 for a workload without replicas."""
    return replicas.get(cluster) or 0


def serialize_replicas(replicas: int | None) -> dict[str, Any]:
    """Return the members of JSON for replicas in a cluster: `replicas` is null without a number, and then `unknown` says that no manifest
    has one; `atLeast` marks the minimum of an autoscaler."""
    if isinstance(replicas, Unknown):
        return {"replicas": None, "unknown": True}
    return {"replicas": int(replicas), "atLeast": True} if isinstance(replicas, AtLeast) else {"replicas": replicas}


def serialize_clusters(replicas: Mapping[str, int | None]) -> list[dict[str, Any]]:
    """Return clusters with their replicas, null for a copy without a number, by name."""
    return [{"cluster": cluster, **serialize_replicas(replicas[cluster])} for cluster in sorted(replicas)]


def classify_move(move: Move) -> str:
    """Return the kind of a move: "lost" (becomes unplaced), "kept" (it has no cluster any more, and its objects are kept), "first" (was
    unplaced), "again" (was unplaced, and its copies still run in these clusters), "resized" (same clusters), "left" (it only leaves some of
    its clusters) or "moved" (it gets one that it did not have)."""
    if not move.before:
        return "again" if move.copies and move.copies.keys() == move.after.keys() else "first"
    if not move.after:
        return "kept" if move.preserved else "lost"
    if move.after.keys() - move.before.keys():
        return "moved"
    return "resized" if move.before.keys() == move.after.keys() else "left"


def abbreviate_oid(oid: str) -> str:
    """Return the first ten digits of an object id."""
    return oid[:10]


def format_key(key: Key) -> str:
    """Return a workload as "Deployment shop/cart"."""
    return f"{key.kind} {key.namespace}/{key.name}" if key.namespace else f"{key.kind} {key.name}"


def format_words(key: Key) -> str:
    """Return an object as it is written on the command line."""
    return "/".join(filter(None, (key.kind.lower(), key.namespace, key.name)))


def format_revision(name: str, oid: str) -> str:
    """Return a revision with its commit id: "main (1a2b3c4d5e)"."""
    return f"{name} ({abbreviate_oid(oid)})" if name and oid and not oid.startswith(name) else abbreviate_oid(oid) or "the worktree"


def describe_output_branch(review: Review, *, head: bool = True) -> str:
    """Return the name of the output branch with its head commit and its repository."""
    commit = f" at {abbreviate_oid(review.before)}" if head and review.before else ""
    return f"branch {review.branch}{commit}" + (f" of {review.output_repository}" if review.output_repository else "")


def format_clusters(replicas: Mapping[str, int | None], most: int = CLUSTERS_SHOWN) -> str:
    """Return clusters with their replicas, as in "dub-prod-1 2, fra-prod-1 3"; "nowhere" if there are none."""
    if not replicas:
        return "nowhere"
    return format_names([format_cluster(name, replicas[name]) for name in sorted(replicas)], most)


class ClusterChange(NamedTuple):
    """A cluster that loses a workload ("left"), gets it ("joined"), or has another number of its replicas ("scaled")."""

    kind: str
    cluster: str
    before: int | None
    after: int | None

    def format(self, minus: str = "-", arrow: str = "->") -> str:
        """Return what changes there: "- fra-1 3", "+ dub-1 2" or "eu-1 2 -> 3"."""
        if self.kind == "scaled":
            before, after = ("none" if count is None else f"{count}" for count in (self.before, self.after))
            return f"{self.cluster} {before} {arrow} {after}"
        sign, count = (minus, self.before) if self.kind == "left" else ("+", self.after)
        return f"{sign} {format_cluster(self.cluster, count)}"

    def serialize(self) -> dict[str, Any]:
        """Return the members of JSON: the replicas before and after, each null where the cluster does not have the workload."""
        before = None if self.kind == "joined" else serialize_replicas(self.before)
        after = None if self.kind == "left" else serialize_replicas(self.after)
        return {"cluster": self.cluster, "kind": self.kind, "before": before, "after": after}


def list_cluster_changes(move: Move) -> tuple[list[ClusterChange], int]:
    """Return the clusters in which a move changes something, those that lose the workload first; and how many stay as they are."""
    before, after = list_before(move), move.after
    left = [ClusterChange("left", name, before[name], None) for name in sorted(before.keys() - after.keys())]
    joined = [ClusterChange("joined", name, None, after[name]) for name in sorted(after.keys() - before.keys())]
    both = sorted(before.keys() & after.keys())
    scaled = [ClusterChange("scaled", name, before[name], after[name]) for name in both if before[name] != after[name]]
    return [*left, *joined, *scaled], len(both) - len(scaled)


def format_cluster_changes(move: Move, most: int = CLUSTERS_SHOWN, minus: str = "-", arrow: str = "->") -> list[str]:
    """Return what changes in each cluster of a move, at most so many, and the number of those that stay as they are."""
    changes, unchanged = list_cluster_changes(move)
    if not changes and move.copies:
        return [f"still in {format_clusters(move.after, most)}"]
    shown = list_limited([change.format(minus, arrow) for change in changes], most)
    return [*shown, *([f"{format_count(unchanged, 'cluster')} unchanged"] if unchanged else [])]


def format_cluster(name: str, replicas: int | None) -> str:
    """Return a cluster with its replicas: "fra-1 3", or its name without replicas."""
    return name if replicas is None else f"{name} {replicas}"


def format_replica_change(move: Move) -> str:
    """Return the sum of replicas before and after: "4 -> 6", "4" if unchanged, "" if the workload has no replicas."""
    return _format_sums(*sum_replicas(move))


def _format_sums(earlier: int | None, later: int | None) -> str:
    if earlier is None and later is None:
        return ""
    return str(later) if earlier == later else " -> ".join("0" if count is None else str(count) for count in (earlier, later))


def list_before(move: Move) -> Mapping[str, int | None]:
    """Return the replicas before a move by cluster; of an unplaced workload those of its copies that still run."""
    return move.before or move.copies


def sum_replicas(move: Move) -> tuple[int | None, int | None]:
    """Return the replicas before and after; None if the workload has no replicas there."""
    return _sum_replicas(list_before(move)), _sum_replicas(move.after)


def describe_remaining(later: int, earlier: int) -> str:
    """Return what a workload with fewer replicas than before does: "runs on with 4 of 8 replicas"."""
    return f"runs on with {later:,} of {earlier:,} replicas" if later else f"stops: it has 0 replicas instead of {earlier:,}"


def shrinks(move: Move) -> bool:
    """Return whether a workload runs on with fewer replicas than before."""
    return _are_fewer(move, *sum_replicas(move))


def _are_fewer(move: Move, earlier: int | None, later: int | None) -> bool:
    return bool(move.after) and earlier is not None and not isinstance(later, Unknown) and earlier > (later or 0)


def make_move_row(move: Move, reasons: Sequence[str]) -> ChangeRow:
    """Return the row of a move in a table for a terminal."""
    sums = sum_replicas(move)
    mark = "(fewer)" if _are_fewer(move, *sums) else ""
    replicas = " ".join(filter(None, (_format_sums(*sums), mark)))

    def format_cells(shown: int) -> tuple[str, ...]:
        return format_key(move.key), ", ".join(format_cluster_changes(move, shown)), replicas

    return ChangeRow(MOVE_SIGNS[classify_move(move)], format_cells, reasons, mark, "; replicas: ")


def format_finding_counts(findings: Iterable[Finding], which: str = "") -> str:
    """Return the number of findings by severity: "1 error, 2 notes", or with `which` "1 new error, 2 new notes"."""
    counts = Counter(finding.severity for finding in findings)
    nouns = {level: f"{which} {noun}".lstrip() for level, noun in (("error", "error"), ("warning", "warning"), ("info", "note"))}
    return ", ".join(format_count(counts[level], nouns[level]) for level in SEVERITIES if counts[level]) or "no findings"


def sort_moves(moves: Sequence[Move]) -> list[Move]:
    """Sort moves by importance: lost, left, moved, resized, first placement; then by the number of changed replicas, then by name."""

    def rank(move: Move) -> tuple[object, ...]:
        return MOVE_ORDER.index(classify_move(move)), -_count_changed_replicas(move), move.key.namespace, move.key.name, move.key

    return sorted(moves, key=rank)


def _count_changed_replicas(move: Move) -> int:
    before = list_before(move)
    return sum(abs(count_replicas(move.after, name) - count_replicas(before, name)) for name in before.keys() | move.after.keys())


def _sum_replicas(replicas: Mapping[str, int | None]) -> int | None:
    return add_replicas(replicas.values())
