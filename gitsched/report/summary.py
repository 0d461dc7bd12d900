"""Text that all reports share: the counts and headline of a plan, names of workloads, commits and clusters; for a terminal aligned columns,
wrapped paragraphs, escaped control characters and CI commands."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gitsched.model.changes import Move, RecordChange, WithheldChanges
from gitsched.model.document import Key
from gitsched.model.finding import SEVERITIES, Finding
from gitsched.model.scheduling import RecordedDecision, RecordTarget
from gitsched.report.review import Review

COLUMN_GAP = "  "
LIMITS_SHOWN = 10
"""The number of exceeded limits that are listed."""
# GitHub runs commands in lines that start with two colons (after blanks) and after `##[` anywhere; Azure uses `##vso[`, TeamCity
# `##teamcity[`.
_CI_COMMAND = re.compile(r"^[^\S\n]*(?=::)|##(?=(?:vso|teamcity)?\[)", re.MULTILINE | re.IGNORECASE)


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


def wrap_all(texts: Iterable[str], width: int, indent: str = "") -> list[str]:
    """Wrap several paragraphs."""
    return [line for text in texts for line in wrap(text, width, indent)]


def format_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of cells as aligned lines; each column is as wide as its widest cell."""
    cells = [[escape_unprintable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [COLUMN_GAP.join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def fits_width(lines: Sequence[str], width: int) -> bool:
    """Return whether all lines fit into the width."""
    return all(len(line) <= width for line in lines)


def format_count(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: "1 workload", "2 workloads"."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or noun + 's'}"


class ClusterDelta(NamedTuple):
    """Workloads and replicas that one cluster gains and loses."""

    gained: int = 0
    lost: int = 0
    replicas_gained: int = 0
    replicas_lost: int = 0

    @property
    def replicas(self) -> int:
        """Replicas gained minus replicas lost."""
        return self.replicas_gained - self.replicas_lost


class MoveCounts(NamedTuple):
    """Counts of a set of moves.

    `moved`, `resized`, `first` and `lost` count workloads; their sum is the number of moves. `replicas_moved` counts replicas that go
    from one cluster to another, `replicas_added` and `replicas_removed` all other differences. `clusters` are those with a difference.
    """

    moved: int
    resized: int
    first: int
    lost: int
    replicas_moved: int
    replicas_added: int
    replicas_removed: int
    clusters: dict[str, ClusterDelta]

    @property
    def gaining(self) -> list[str]:
        """Clusters that gain a workload or replicas."""
        return [name for name, delta in self.clusters.items() if delta.gained or delta.replicas_gained]

    @property
    def losing(self) -> list[str]:
        """Clusters that lose a workload or replicas."""
        return [name for name, delta in self.clusters.items() if delta.lost or delta.replicas_lost]


def count_moves(moves: Iterable[Move]) -> MoveCounts:
    """Count moves by kind, and workloads and replicas by cluster."""
    counts = dict.fromkeys(("moved", "resized", "first", "lost"), 0)
    moved = added = removed = 0
    clusters: dict[str, ClusterDelta] = {}
    for move in moves:
        counts[classify_move(move)] += 1
        up = down = 0
        for name in move.before.keys() | move.after.keys():
            delta = clusters.get(name, ClusterDelta())
            earlier = _count_replicas(move, move.before, name) + move.included.get(name, 0)
            difference = _count_replicas(move, move.after, name) - earlier
            up, down = up + max(difference, 0), down + max(-difference, 0)
            clusters[name] = ClusterDelta(
                delta.gained + (name not in move.before),
                delta.lost + (name not in move.after),
                delta.replicas_gained + max(difference, 0),
                delta.replicas_lost + max(-difference, 0),
            )
        moved, added, removed = moved + min(up, down), added + max(up - down, 0), removed + max(down - up, 0)
    changed = {name: delta for name, delta in sorted(clusters.items()) if any(delta)}
    return MoveCounts(**counts, replicas_moved=moved, replicas_added=added, replicas_removed=removed, clusters=changed)


def _count_replicas(move: Move, replicas: Mapping[str, int | None], cluster: str) -> int:
    """Return the replicas in a cluster; a cluster without a number has a full copy."""
    count = replicas.get(cluster, 0)
    return move.copy_replicas if count is None else count


def classify_move(move: Move) -> str:
    """Return the kind of a move: "lost" (becomes unplaced), "first" (was unplaced), "resized" (same clusters) or "moved"."""
    if move.becomes_unplaced:
        return "lost"
    if not move.before:
        return "first"
    return "resized" if move.before.keys() == move.after.keys() else "moved"


CLUSTERS_SHOWN = 6
"""The number of clusters listed by name for one side of a move; the others are counted."""
REVIEWED_TRAILER = "Gitsched-Reviewed"
"""The trailer of a source commit with the digest of the reviewed plan."""


class SummaryRow(NamedTuple):
    """One line of the summary. `before` is "" if the line has one value only; `names` is true for a list of names."""

    name: str
    before: str
    after: str
    names: bool = False


def summarize_moves(moves: Sequence[Move], workloads: int = 0) -> str:
    """Return the number of workloads by kind of move, as in "3 of 42 workloads become unplaced, 1 workload moves"; "" without moves."""
    counts = Counter(map(classify_move, moves))
    parts: list[str] = []
    for kind, one, many in _MOVE_KINDS:
        number = counts[kind]
        if number:
            subject = (
                f"{number} of {format_count(workloads, 'workload')}"
                if workloads and not parts
                else format_count(number, "workload")
            )
            parts.append(f"{subject} {one if number == 1 else many}")
    return ", ".join(parts)


_MOVE_KINDS = (
    ("lost", "becomes unplaced", "become unplaced"),
    ("moved", "moves", "move"),
    ("resized", "is resized", "are resized"),
    ("first", "is placed for the first time", "are placed for the first time"),
)


def format_headline(review: Review) -> str:
    """Return the result as one sentence without a full stop."""
    if review.before is None and not review.base.commit:
        return f"First placement of {format_count(review.states['placed'], 'workload')}"
    if review.moves:
        workloads = {outcome.key for outcome in review.outcomes}
        summary = summarize_moves(review.moves, len(workloads | {move.key for move in review.moves}))
        return ", ".join(filter(None, (summary, describe_record_changes(review.record_changes))))
    if review.record_changes:
        return f"No workload moves, {describe_record_changes(review.record_changes)}"
    return (
        "No workload moves, rendered manifests change"
        if review.delivery.files
        else ("No workload moves, only status records change" if review.changed else "No changes")
        if review.delivery.files or review.changed or not review.setting_changes
        else "No workload moves, settings change"
    )


def describe_withheld(withheld: WithheldChanges, *, planned: bool = False) -> list[str]:
    """Return what the guard withholds, the limits that are exceeded, and how to allow it. `planned`: a run will withhold it."""
    count = format_count(len(withheld.moves), "change")
    lines = [f"Withheld by the guard: a run leaves out {count}." if planned else f"Withheld by the guard: {count}."]
    if withheld.freeze:
        lines.append(f"  Placements are frozen: {withheld.freeze}")
    lines += [f"  {limit}" for limit in withheld.limits[:LIMITS_SHOWN]]
    if len(withheld.limits) > LIMITS_SHOWN:
        lines.append(f"  and {format_count(len(withheld.limits) - LIMITS_SHOWN, 'more limit')}")
    return [*lines, f"To allow exactly these, {withheld.allowance}."]


def describe_record_changes(changes: Sequence[RecordChange]) -> str:
    """Return the number of changed recorded decisions by kind of subject: "the decisions about 2 Clusters and 1 Placement change"."""
    counts = Counter(change.subject.kind for change in changes)
    if not counts:
        return ""
    parts = [format_count(number, kind) for kind, number in sorted(counts.items())]
    listed = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
    return f"the decision about {listed} changes" if counts.total() == 1 else f"the decisions about {listed} change"


def format_targets(targets: Iterable[RecordTarget], most: int = CLUSTERS_SHOWN) -> str:
    """Return the targets of a recorded decision, as in "web-0 3, web-1 2" or "fra (canary)"; "none" without targets."""
    texts = [
        f"{target.name}{'' if target.amount is None else f' {target.amount}'}{f' ({target.group})' if target.group else ''}"
        for target in targets
    ]
    more = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {more} more" if more > 0 else "") if texts else "none"


def format_record_change(change: RecordChange, shown: int = CLUSTERS_SHOWN) -> tuple[str, str, str]:
    """Return the subject of a changed recorded decision, and its targets before and after."""
    return format_subject(change), format_targets(change.before, shown), format_targets(change.after, shown)


def format_subject(change: RecordChange | RecordedDecision) -> str:
    """Return the subject of a recorded decision with the kind of its targets: "Cluster prod/new, cloud"."""
    return f"{format_key(change.subject)}, {change.target_kind}"


def abbreviate_oid(oid: str) -> str:
    """Return the first ten digits of an object id."""
    return oid[:10]


def join_blocks(*blocks: list[str]) -> str:
    """Return blocks of lines as one text, separated by empty lines; an empty block is left out."""
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def format_key(key: Key) -> str:
    """Return a workload as "Deployment shop/cart"."""
    return f"{key.kind} {key.namespace}/{key.name}" if key.namespace else f"{key.kind} {key.name}"


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
    shown = [name if replicas[name] is None else f"{name} {replicas[name]}" for name in sorted(replicas)]
    more = len(shown) - most
    return ", ".join(shown[:most]) + (f" and {more} more" if more > 0 else "")


def format_replica_change(move: Move) -> str:
    """Return the sum of replicas before and after: "4 -> 6", "4" if unchanged, "" if the workload has no replicas."""
    earlier, later = (_sum_replicas(move, replicas) for replicas in (move.before, move.after))
    if earlier is None and later is None:
        return ""
    return str(later) if earlier == later else f"{earlier or 0} -> {later or 0}"


def format_finding_counts(findings: Sequence[Finding]) -> str:
    """Return the number of findings by severity: "1 error, 2 notes"."""
    counts = Counter(finding.severity for finding in findings)
    nouns = {"error": "error", "warning": "warning", "info": "note"}
    return ", ".join(format_count(counts[level], nouns[level]) for level in SEVERITIES if counts[level]) or "no findings"


def list_summary_rows(review: Review, counts: MoveCounts | None = None) -> list[SummaryRow]:
    """Return the rows of the summary; rows with nothing to report are left out.

    `counts` are the counts of the moves, if the caller has them.
    """
    counts, previous = counts or count_moves(review.moves), review.base.states
    rows = [
        SummaryRow("replicas changing cluster", "", str(counts.replicas_moved) if counts.replicas_moved else ""),
        SummaryRow("replicas added", "", str(counts.replicas_added) if counts.replicas_added else ""),
        SummaryRow("replicas removed", "", str(counts.replicas_removed) if counts.replicas_removed else ""),
        SummaryRow("clusters gaining replicas", "", format_cluster_deltas(counts, gaining=True), True),
        SummaryRow("clusters losing replicas", "", format_cluster_deltas(counts, gaining=False), True),
        SummaryRow("recorded decisions changed", "", str(len(review.record_changes)) if review.record_changes else ""),
        SummaryRow("clusters added to the fleet", "", _join_sorted(review.added_clusters), True),
        SummaryRow("clusters removed from the fleet", "", _join_sorted(review.removed_clusters), True),
    ]
    rows = [row for row in rows if row.after]
    for name, state in (("unplaced workloads", "pending"), ("stale workloads", "stale")):
        after, before = review.states[state], previous.get(state, 0) if previous is not None else None
        if after or before:
            rows.append(SummaryRow(name, "" if before is None else str(before), str(after)))
    files = review.delivery.files
    return [*rows, SummaryRow("changed files", "", str(files))] if files else rows


def format_cluster_deltas(counts: MoveCounts, *, gaining: bool) -> str:
    """Return the clusters that gain, or lose, the largest difference first: "fra (+2 workloads, +5 replicas)"."""
    sign, found = ("+" if gaining else "-"), []
    for name, delta in counts.clusters.items():
        workloads, replicas = (delta.gained, delta.replicas_gained) if gaining else (delta.lost, delta.replicas_lost)
        if workloads or replicas:
            parts = [f"{sign}{format_count(workloads, 'workload')}"] * bool(workloads) + [
                f"{sign}{format_count(replicas, 'replica')}"
            ] * bool(replicas)
            found.append((-workloads, -replicas, name, f"{name} ({', '.join(parts)})"))
    return _join_names([text for *_, text in sorted(found)])


def describe_setting_changes(review: Review, most: int) -> list[str]:
    """Return a line for changes of gitsched.yaml that do the same, with what they do; the sensitive ones are first and marked."""
    groups: dict[tuple[bool, str], list[str]] = {}
    for change in review.setting_changes:
        groups.setdefault((not change.sensitive, change.effect), []).append(change.text)
    lines = [
        f"{'' if harmless else 'warning: '}{'; '.join(texts)}. {effect}"
        for (harmless, effect), texts in sorted(groups.items(), key=lambda group: (group[0][0], group[1]))
    ]
    return [*lines[:most], f"and {len(lines) - most} more"] if len(lines) > most else lines


def list_comparison_notes(review: Review) -> list[str]:
    """Return sentences that explain how the comparison was made."""
    lines = list(review.comparison_notes)
    if review.base.merged:
        lines.insert(
            0,
            f"{format_revision(review.source_name, review.source)} does not contain "
            f"{format_revision(review.base.name, review.base.commit)}, so the merge of the two was planned.",
        )
    return lines


def sort_moves(moves: Sequence[Move]) -> list[Move]:
    """Sort moves by importance: lost, moved, resized, first placement; then by the number of changed replicas, then by name."""
    order = {kind: position for position, (kind, *_) in enumerate(_MOVE_KINDS)}
    return sorted(
        moves,
        key=lambda move: (order[classify_move(move)], -_count_changed_replicas(move), move.key.namespace, move.key.name, move.key),
    )


def _count_changed_replicas(move: Move) -> int:
    return sum(
        abs(_count_replicas(move, move.after, name) - _count_replicas(move, move.before, name))
        for name in move.before.keys() | move.after.keys()
    )


def _sum_replicas(move: Move, replicas: Mapping[str, int | None]) -> int | None:
    counts = [move.copy_replicas or None if count is None else count for count in replicas.values()]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _join_sorted(names: Sequence[str]) -> str:
    return _join_names(sorted(names))


def _join_names(texts: Sequence[str]) -> str:
    more = len(texts) - CLUSTERS_SHOWN
    return ", ".join(texts[:CLUSTERS_SHOWN]) + (f" and {more} more" if more > 0 else "")
