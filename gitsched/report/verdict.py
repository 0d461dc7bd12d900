"""What every report begins with, whatever its form: one sentence, what it was compared with, and the counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gitsched.model.change import Cause, Choice, Move
from gitsched.model.document import Key
from gitsched.model.finding import SEVERITIES, Finding
from gitsched.report.review import Review
from gitsched.report.table import count
from gitsched.report.tally import Tally, classify, group_causes, tally

CLUSTERS_SHOWN = 6
"""Clusters named for one side of a move; the others are counted."""
CAUSES_SHOWN = 10
"""Causes that several workloads share, and how many moves there must be before they are told."""
REVIEWED = "Gitsched-Reviewed"
"""The trailer of a source commit that names the digest of the plan that somebody reviewed."""


class Row(NamedTuple):
    """One line of the summary. `before` is "" where only what changes is told; `names`: it is a list of names, not a number."""

    name: str
    before: str
    after: str
    names: bool = False


def summarise(moves: Sequence[Move], workloads: int = 0) -> str:
    """What happens to how many workloads: "3 of 42 workloads move, 1 loses its last place"; "" when nothing does."""
    counts = Counter(map(classify, moves))
    parts: list[str] = []
    for kind, one, many in _KINDS:
        number = counts[kind]
        if number:
            whole = f"{number} of {count(workloads, 'workload')}" if workloads and not parts else count(number, "workload")
            parts.append(f"{whole} {one if number == 1 else many}")
    return ", ".join(parts)


_KINDS = (
    ("lost", "loses its last place", "lose their last place"),
    ("moved", "moves", "move"),
    ("resized", "is resized", "are resized"),
    ("first", "gets its first place", "get their first place"),
)


def headline(review: Review) -> str:
    """The verdict as one sentence without its end."""
    if review.before is None and not review.base.commit:
        return f"First placement of {count(review.states['placed'], 'workload')}"
    if review.moves:
        known = {outcome.key for outcome in review.outcomes}
        return summarise(review.moves, len(known | {move.key for move in review.moves}))
    if review.choices:
        return f"No workload moves, but {tell_choices(review)}"
    return (
        "No workload moves, but what is delivered changes"
        if review.delivery.files
        else ("No workload moves, only records change" if review.changed else "Nothing changes")
    )


def tell_choices(review: Review) -> str:
    """How many documents choose otherwise: "2 Placements choose other clusters"."""
    number = len(review.choices)
    return f"{count(number, review.choices[0].key.kind)} {'chooses' if number == 1 else 'choose'} other clusters" if number else ""


def write_choice(choice: Choice) -> tuple[str, str]:
    """The clusters of a choice before and after."""
    before, after = (write_places(dict.fromkeys(names)) if names else "none" for names in (choice.before, choice.after))
    return before, after


def short(oid: str) -> str:
    """An object id as people recognise it."""
    return oid[:10]


def label(key: Key) -> str:
    """A workload as people name it: "Deployment shop/cart"."""
    return f"{key.kind} {key.namespace}/{key.name}" if key.namespace else f"{key.kind} {key.name}"


def revision(name: str, oid: str) -> str:
    """A commit as somebody called it, with its id: "main (1a2b3c4d5e)"."""
    return f"{name} ({short(oid)})" if name and oid and not oid.startswith(name) else short(oid) or "the worktree"


def output_branch(review: Review, *, head: bool = True) -> str:
    """The output branch with its commit and where it is."""
    at = f" at {short(review.before)}" if head and review.before else ""
    return f"branch {review.branch}{at}" + (f" of {review.place}" if review.place else "")


def write_places(places: Mapping[str, int | None], most: int = CLUSTERS_SHOWN) -> str:
    """Clusters with their replicas, "nowhere" for none: "dub-prod-1 2, fra-prod-1 3"."""
    if not places:
        return "nowhere"
    shown = [name if places[name] is None else f"{name} {places[name]}" for name in sorted(places)]
    more = len(shown) - most
    return ", ".join(shown[:most]) + (f" and {more} more" if more > 0 else "")


def write_replicas(move: Move) -> str:
    """The sum of replicas before and after: "4 -> 6", "4" where it stays, "" where nothing is counted."""
    earlier, later = (_sum(places) for places in (move.before, move.after))
    if earlier is None and later is None:
        return ""
    return str(later) if earlier == later else f"{earlier or 0} -> {later or 0}"


def list_reasons(move: Move) -> list[str]:
    """All there is to say of why a workload moves, the most telling first; what a cause says already is not said again."""
    causes = list(map(str, move.causes))
    told = any(move.reason in text for text in causes)
    return [*causes, *([] if told or not move.reason else [move.reason])]


def count_findings(findings: Sequence[Finding]) -> str:
    """Findings by severity: "1 error, 2 notes"."""
    counts = Counter(finding.severity for finding in findings)
    nouns = {"error": "error", "warning": "warning", "info": "note"}
    return ", ".join(count(counts[level], nouns[level]) for level in SEVERITIES if counts[level]) or "no findings"


def list_common_causes(moves: Sequence[Move]) -> list[tuple[Cause, int]]:
    """What makes many workloads move, where that is shorter to say than each move: causes with how many they move."""
    groups = [(cause, number) for cause, number in group_causes(moves) if number > 1]
    return groups[:CAUSES_SHOWN] if len(moves) > CAUSES_SHOWN else []


def list_rows(review: Review, counts: Tally | None = None) -> list[Row]:
    """The summary: what changes in which number, and what stands how before and after. Lines about nothing are left out.

    `counts` is the tally of the moves, where it is at hand.
    """
    counts, was = counts or tally(review.moves), review.base.states
    rows = [
        Row("replicas that change cluster", "", str(counts.replicas_moved) if counts.replicas_moved else ""),
        Row("replicas added", "", str(counts.replicas_added) if counts.replicas_added else ""),
        Row("replicas removed", "", str(counts.replicas_removed) if counts.replicas_removed else ""),
        Row("clusters that gain", "", name_clusters(counts, gaining=True), True),
        Row("clusters that lose", "", name_clusters(counts, gaining=False), True),
        Row("clusters joining the fleet", "", _names(review.joined), True),
        Row("clusters leaving the fleet", "", _names(review.gone), True),
    ]
    rows = [row for row in rows if row.after]
    for name, state in (("workloads without a place", "pending"), ("workloads kept as decided before", "stale")):
        after, before = review.states[state], was.get(state, 0) if was is not None else None
        if after or before:
            rows.append(Row(name, "" if before is None else str(before), str(after)))
    files = review.delivery.files
    return [*rows, Row("files that differ in clusters", "", str(files))] if files else rows


def name_clusters(counts: Tally, *, gaining: bool) -> str:
    """The clusters that gain, or lose, the most first, with what: "fra +2 workloads, +5 replicas"."""
    sign, found = ("+" if gaining else "-"), []
    for name, balance in counts.clusters.items():
        workloads, replicas = (balance.gained, balance.replicas_gained) if gaining else (balance.lost, balance.replicas_lost)
        if workloads or replicas:
            parts = [f"{sign}{count(workloads, 'workload')}"] * bool(workloads) + [f"{sign}{count(replicas, 'replica')}"] * bool(
                replicas
            )
            found.append((-workloads, -replicas, name, f"{name} ({', '.join(parts)})"))
    return _join([text for *_, text in sorted(found)])


def list_provenance(review: Review) -> list[str]:
    """What a reader has to know of how the comparison was made: whole sentences."""
    lines = list(review.notes)
    if review.base.merged:
        lines.insert(
            0,
            f"{revision(review.name, review.source)} does not contain {revision(review.base.name, review.base.commit)}: "
            "what merging them gives was planned.",
        )
    return lines


def order_moves(moves: Sequence[Move]) -> list[Move]:
    """The moves that matter most first: lost, then moved, resized and first placed workloads; by how many replicas differ, then by name."""
    order = {kind: position for position, (kind, *_) in enumerate(_KINDS)}
    return sorted(moves, key=lambda move: (order[classify(move)], -_weigh(move), move.key.namespace, move.key.name, move.key))


def _weigh(move: Move) -> int:
    return sum(abs((move.after.get(name) or 0) - (move.before.get(name) or 0)) for name in move.before.keys() | move.after.keys())


def _sum(places: Mapping[str, int | None]) -> int | None:
    counted = [replicas for replicas in places.values() if replicas is not None]
    return sum(counted) if counted else None


def _names(names: Sequence[str]) -> str:
    return _join(sorted(names))


def _join(texts: Sequence[str]) -> str:
    more = len(texts) - CLUSTERS_SHOWN
    return ", ".join(texts[:CLUSTERS_SHOWN]) + (f" and {more} more" if more > 0 else "")
