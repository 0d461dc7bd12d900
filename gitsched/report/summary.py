"""What every report begins with: counts of moves, the headline, the summary rows, and how workloads, commits and clusters are
printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gitsched.model.changes import Cause, Move, SelectionChange
from gitsched.model.document import Key
from gitsched.model.finding import SEVERITIES, Finding
from gitsched.report.review import Review
from gitsched.report.terminal import format_count


class ClusterDelta(NamedTuple):
    """What one cluster gains and loses."""

    gained: int = 0
    lost: int = 0
    replicas_gained: int = 0
    replicas_lost: int = 0

    @property
    def replicas(self) -> int:
        """The difference in replicas."""
        return self.replicas_gained - self.replicas_lost


class MoveCounts(NamedTuple):
    """`moved`, `resized`, `first` and `lost` count workloads and add up to all moves. `replicas_moved` go from one cluster to another;
    what comes or goes beside them is `replicas_added` and `replicas_removed`. `clusters` are those that gain or lose anything, by name."""

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
        """Clusters that get a workload or more replicas."""
        return [name for name, balance in self.clusters.items() if balance.gained or balance.replicas_gained]

    @property
    def losing(self) -> list[str]:
        """Clusters that lose a workload or replicas."""
        return [name for name, balance in self.clusters.items() if balance.lost or balance.replicas_lost]


def count_moves(moves: Iterable[Move]) -> MoveCounts:
    """Count a change."""
    counts = dict.fromkeys(("moved", "resized", "first", "lost"), 0)
    moved = added = removed = 0
    clusters: dict[str, ClusterDelta] = {}
    for move in moves:
        counts[classify_move(move)] += 1
        up = down = 0
        for name in move.before.keys() | move.after.keys():
            known = clusters.get(name, ClusterDelta())
            difference = (move.after.get(name) or 0) - (move.before.get(name) or 0)
            up, down = up + max(difference, 0), down + max(-difference, 0)
            clusters[name] = ClusterDelta(
                known.gained + (name not in move.before),
                known.lost + (name not in move.after),
                known.replicas_gained + max(difference, 0),
                known.replicas_lost + max(-difference, 0),
            )
        moved, added, removed = moved + min(up, down), added + max(up - down, 0), removed + max(down - up, 0)
    touched = {name: balance for name, balance in sorted(clusters.items()) if any(balance)}
    return MoveCounts(**counts, replicas_moved=moved, replicas_added=added, replicas_removed=removed, clusters=touched)


def classify_move(move: Move) -> str:
    """lost: the last place goes; first: there was none; resized: the clusters stay; moved: everything else."""
    if move.becomes_unplaced:
        return "lost"
    if not move.before:
        return "first"
    return "resized" if move.before.keys() == move.after.keys() else "moved"


def group_causes(moves: Iterable[Move]) -> list[tuple[Cause, int]]:
    """The first cause of each move, with how many moves it is the first one of; the most frequent first."""
    counts = Counter(move.causes[0] for move in moves if move.causes)
    return sorted(counts.items(), key=lambda entry: (-entry[1], str(entry[0])))


CLUSTERS_SHOWN = 6
"""Clusters named for one side of a move; the others are counted."""
CAUSES_SHOWN = 10
"""Causes that several workloads share, and how many moves there must be before they are told."""
REVIEWED_TRAILER = "Gitsched-Reviewed"
"""The trailer of a source commit that names the digest of the plan that somebody reviewed."""


class SummaryRow(NamedTuple):
    """One line of the summary. `before` is "" where only what changes is told; `names`: it is a list of names, not a number."""

    name: str
    before: str
    after: str
    names: bool = False


def summarize_moves(moves: Sequence[Move], workloads: int = 0) -> str:
    """What happens to how many workloads: "3 of 42 workloads move, 1 loses its last place"; "" when nothing does."""
    counts = Counter(map(classify_move, moves))
    parts: list[str] = []
    for kind, one, many in _MOVE_KINDS:
        number = counts[kind]
        if number:
            whole = (
                f"{number} of {format_count(workloads, 'workload')}"
                if workloads and not parts
                else format_count(number, "workload")
            )
            parts.append(f"{whole} {one if number == 1 else many}")
    return ", ".join(parts)


_MOVE_KINDS = (
    ("lost", "loses its last place", "lose their last place"),
    ("moved", "moves", "move"),
    ("resized", "is resized", "are resized"),
    ("first", "gets its first place", "get their first place"),
)


def format_headline(review: Review) -> str:
    """The verdict as one sentence without its end."""
    if review.before is None and not review.base.commit:
        return f"First placement of {format_count(review.states['placed'], 'workload')}"
    if review.moves:
        known = {outcome.key for outcome in review.outcomes}
        return summarize_moves(review.moves, len(known | {move.key for move in review.moves}))
    if review.choices:
        return f"No workload moves, but {describe_choices(review)}"
    return (
        "No workload moves, but what is delivered changes"
        if review.delivery.files
        else ("No workload moves, only records change" if review.changed else "Nothing changes")
    )


def describe_choices(review: Review) -> str:
    """How many documents choose otherwise: "2 Placements choose other clusters"."""
    number = len(review.choices)
    return (
        f"{format_count(number, review.choices[0].key.kind)} {'chooses' if number == 1 else 'choose'} other clusters"
        if number
        else ""
    )


def format_choice(choice: SelectionChange) -> tuple[str, str]:
    """The clusters of a choice before and after."""
    before, after = (format_clusters(dict.fromkeys(names)) if names else "none" for names in (choice.before, choice.after))
    return before, after


def abbreviate_oid(oid: str) -> str:
    """An object id as people recognise it."""
    return oid[:10]


def format_key(key: Key) -> str:
    """A workload as people name it: "Deployment shop/cart"."""
    return f"{key.kind} {key.namespace}/{key.name}" if key.namespace else f"{key.kind} {key.name}"


def format_revision(name: str, oid: str) -> str:
    """A commit as somebody called it, with its id: "main (1a2b3c4d5e)"."""
    return f"{name} ({abbreviate_oid(oid)})" if name and oid and not oid.startswith(name) else abbreviate_oid(oid) or "the worktree"


def describe_output_branch(review: Review, *, head: bool = True) -> str:
    """The output branch with its commit and where it is."""
    at = f" at {abbreviate_oid(review.before)}" if head and review.before else ""
    return f"branch {review.branch}{at}" + (f" of {review.output_repository}" if review.output_repository else "")


def format_clusters(places: Mapping[str, int | None], most: int = CLUSTERS_SHOWN) -> str:
    """Clusters with their replicas, "nowhere" for none: "dub-prod-1 2, fra-prod-1 3"."""
    if not places:
        return "nowhere"
    shown = [name if places[name] is None else f"{name} {places[name]}" for name in sorted(places)]
    more = len(shown) - most
    return ", ".join(shown[:most]) + (f" and {more} more" if more > 0 else "")


def format_replica_change(move: Move) -> str:
    """The sum of replicas before and after: "4 -> 6", "4" where it stays, "" where nothing is counted."""
    earlier, later = (_sum_replicas(places) for places in (move.before, move.after))
    if earlier is None and later is None:
        return ""
    return str(later) if earlier == later else f"{earlier or 0} -> {later or 0}"


def list_reasons(move: Move) -> list[str]:
    """All there is to say of why a workload moves, the most telling first; what a cause says already is not said again."""
    causes = list(map(str, move.causes))
    told = any(move.reason in text for text in causes)
    return [*causes, *([] if told or not move.reason else [move.reason])]


def format_finding_counts(findings: Sequence[Finding]) -> str:
    """Findings by severity: "1 error, 2 notes"."""
    counts = Counter(finding.severity for finding in findings)
    nouns = {"error": "error", "warning": "warning", "info": "note"}
    return ", ".join(format_count(counts[level], nouns[level]) for level in SEVERITIES if counts[level]) or "no findings"


def list_common_causes(moves: Sequence[Move]) -> list[tuple[Cause, int]]:
    """What makes many workloads move, where that is shorter to say than each move: causes with how many they move."""
    groups = [(cause, number) for cause, number in group_causes(moves) if number > 1]
    return groups[:CAUSES_SHOWN] if len(moves) > CAUSES_SHOWN else []


def list_summary_rows(review: Review, counts: MoveCounts | None = None) -> list[SummaryRow]:
    """The summary: what changes in which number, and what stands how before and after. Lines about nothing are left out.

    `counts` is the tally of the moves, where it is at hand.
    """
    counts, was = counts or count_moves(review.moves), review.base.states
    rows = [
        SummaryRow("replicas that change cluster", "", str(counts.replicas_moved) if counts.replicas_moved else ""),
        SummaryRow("replicas added", "", str(counts.replicas_added) if counts.replicas_added else ""),
        SummaryRow("replicas removed", "", str(counts.replicas_removed) if counts.replicas_removed else ""),
        SummaryRow("clusters that gain", "", format_cluster_deltas(counts, gaining=True), True),
        SummaryRow("clusters that lose", "", format_cluster_deltas(counts, gaining=False), True),
        SummaryRow("clusters joining the fleet", "", _join_sorted(review.added_clusters), True),
        SummaryRow("clusters leaving the fleet", "", _join_sorted(review.removed_clusters), True),
    ]
    rows = [row for row in rows if row.after]
    for name, state in (("workloads without a place", "pending"), ("workloads kept as decided before", "stale")):
        after, before = review.states[state], was.get(state, 0) if was is not None else None
        if after or before:
            rows.append(SummaryRow(name, "" if before is None else str(before), str(after)))
    files = review.delivery.files
    return [*rows, SummaryRow("files that differ in clusters", "", str(files))] if files else rows


def format_cluster_deltas(counts: MoveCounts, *, gaining: bool) -> str:
    """The clusters that gain, or lose, the most first, with what: "fra +2 workloads, +5 replicas"."""
    sign, found = ("+" if gaining else "-"), []
    for name, balance in counts.clusters.items():
        workloads, replicas = (balance.gained, balance.replicas_gained) if gaining else (balance.lost, balance.replicas_lost)
        if workloads or replicas:
            parts = [f"{sign}{format_count(workloads, 'workload')}"] * bool(workloads) + [
                f"{sign}{format_count(replicas, 'replica')}"
            ] * bool(replicas)
            found.append((-workloads, -replicas, name, f"{name} ({', '.join(parts)})"))
    return _join_names([text for *_, text in sorted(found)])


def list_comparison_notes(review: Review) -> list[str]:
    """What a reader has to know of how the comparison was made: whole sentences."""
    lines = list(review.comparison_notes)
    if review.base.merged:
        lines.insert(
            0,
            f"{format_revision(review.source_name, review.source)} does not contain "
            f"{format_revision(review.base.name, review.base.commit)}: what merging them gives was planned.",
        )
    return lines


def sort_moves(moves: Sequence[Move]) -> list[Move]:
    """The moves that matter most first: lost, then moved, resized and first placed workloads; by how many replicas differ, then by name."""
    order = {kind: position for position, (kind, *_) in enumerate(_MOVE_KINDS)}
    return sorted(
        moves,
        key=lambda move: (order[classify_move(move)], -_count_changed_replicas(move), move.key.namespace, move.key.name, move.key),
    )


def _count_changed_replicas(move: Move) -> int:
    return sum(abs((move.after.get(name) or 0) - (move.before.get(name) or 0)) for name in move.before.keys() | move.after.keys())


def _sum_replicas(places: Mapping[str, int | None]) -> int | None:
    counted = [replicas for replicas in places.values() if replicas is not None]
    return sum(counted) if counted else None


def _join_sorted(names: Sequence[str]) -> str:
    return _join_names(sorted(names))


def _join_names(texts: Sequence[str]) -> str:
    more = len(texts) - CLUSTERS_SHOWN
    return ", ".join(texts[:CLUSTERS_SHOWN]) + (f" and {more} more" if more > 0 else "")
