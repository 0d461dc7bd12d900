"""The summary of a plan: its headline, the counts of moves, rows of numbers, changed settings and withheld changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from gitsched.model.changes import RENAMED_FROM
from gitsched.model.finding import choose_form, format_count, format_names, join_all
from gitsched.model.mistakes import KUSTOMIZE_UNBUILT, UNKNOWN_FIELD
from gitsched.model.scheduling import AtLeast, Unknown, weigh_replicas
from gitsched.named_tuples import NamedTuple
from gitsched.report.first_placement import describe_first_placement, describe_unfetched
from gitsched.report.lines import (
    CLUSTERS_SHOWN,
    ChangeRow,
    abbreviate_oid,
    classify_move,
    count_replicas,
    format_key,
    format_revision,
    list_before,
    list_limited,
    shrinks,
    sum_replicas,
)

if TYPE_CHECKING:
    from gitsched.model.changes import Move, RecordChange, WithheldChanges
    from gitsched.model.document import Key
    from gitsched.model.finding import Finding
    from gitsched.model.scheduling import RecordedDecision, RecordTarget
    from gitsched.report.review import Review

INVALID_SHOWN = 2
"""The number of invalid documents that a headline names."""
LIMITS_SHOWN, POLICIES_SHOWN = 10, 5
"""The numbers of exceeded limits, and of policies that select nothing by mistake, that are listed."""
EDITS_SHOWN = 2
"""The number of commits of people that a headline names."""
REPORTED_ELSEWHERE = frozenset(("changes-withheld", "copy-retained", "stateful-held", "adopted-held"))
"""The codes of findings that say what is withheld, or which workloads are held or have copies: other sections say it, too."""


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

    `moved`, `left`, `resized`, `first`, `again`, `lost` and `kept` count workloads; their sum is the number of moves. `replicas_moved`
    counts replicas that go from one cluster to another, `replicas_added` and `replicas_removed` all other differences. `clusters` are
    those with a difference. `has_minima`: autoscaled workloads count with their minimum; `has_unknown`: some have an unknown number, as 0.
    """

    moved: int
    left: int
    resized: int
    first: int
    again: int
    lost: int
    kept: int
    replicas_moved: int
    replicas_added: int
    replicas_removed: int
    clusters: dict[str, ClusterDelta]
    has_minima: bool = False
    has_unknown: bool = False

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
    counts = dict.fromkeys(("moved", "left", "resized", "first", "again", "lost", "kept"), 0)
    moved = added = removed = 0
    marks: set[type[int]] = set()
    clusters: dict[str, ClusterDelta] = {}
    for move in moves:
        counts[classify_move(move)] += 1
        up = down = 0
        before = list_before(move)
        for name in before.keys() | move.after.keys():
            delta = clusters.get(name, ClusterDelta())
            earlier = count_replicas(before, name) + move.included.get(name, 0)
            if before.get(name) != move.after.get(name):
                marks |= {type(count) for count in (before.get(name), move.after.get(name)) if count is not None}
            difference = count_replicas(move.after, name) - earlier
            up, down = up + max(difference, 0), down + max(-difference, 0)
            clusters[name] = ClusterDelta(
                delta.gained + (name not in before),
                delta.lost + (name not in move.after),
                delta.replicas_gained + max(difference, 0),
                delta.replicas_lost + max(-difference, 0),
            )
        moved, added, removed = moved + min(up, down), added + max(up - down, 0), removed + max(down - up, 0)
    changed = {name: delta for name, delta in sorted(clusters.items()) if any(delta)}
    sums = {"replicas_moved": moved, "replicas_added": added, "replicas_removed": removed}
    return MoveCounts(**counts, **sums, clusters=changed, has_minima=AtLeast in marks, has_unknown=Unknown in marks)


REVIEWED_TRAILER = "Gitsched-Reviewed"
"""The trailer of a source commit with the digest of the reviewed plan."""


class SummaryRow(NamedTuple):
    """One line of the summary. `before` is "" if the line has one value only; `names` is true for a list of names."""

    name: str
    before: str
    after: str
    names: bool = False


def summarize_moves(moves: Sequence[Move], workloads: int = 0, withheld: Collection[Move] = ()) -> str:
    """Return the number of workloads by kind of move, as in "14 of 42 workloads move, 3 scale (1 to fewer replicas), 0 become unplaced".
    Of each kind it says how many the guard has `withheld`.

    The number of those that become unplaced is always named unless others scale to 0, the others if there are any; "" without moves. Those
    that the source no longer asks for are removed.
    """
    if not moves:
        return ""
    counts = Counter(map(_classify_summarized, moves))
    shrinking = Counter(_classify_summarized(move) for move in moves if shrinks(move))
    kept = {move.key for move in withheld}
    left_out = Counter(_classify_summarized(move) for move in moves if move.key in kept)
    parts: list[str] = []
    for kind, one, many in _MOVE_KINDS:
        number = counts[kind]
        if not number and (kind != "lost" or counts["stopped"]):
            continue
        subject = f"{number:,}"
        if not parts:
            subject = f"{number:,} of {format_count(workloads, 'workload')}" if workloads else format_count(number, "workload")
        more = (_describe_fewer(kind, shrinking[kind], number) + _describe_withheld(left_out[kind], number)).replace(") (", ", ")
        parts.append(f"{subject} {one if number == 1 else many}{more}")
    return ", ".join(parts)


def _classify_summarized(move: Move) -> str:
    if is_removed(move):
        return "removed"
    kind = classify_move(move)
    if kind not in ("left", "resized") or not shrinks(move):
        return kind
    later = sum_replicas(move)[1]
    if later is None or not weigh_replicas(later):
        return "stopped" if kind == "resized" else kind
    is_scaled = any(count_replicas(move.after, name) < count_replicas(move.before, name) for name in move.after)
    return "resized" if is_scaled else kind


def _describe_fewer(kind: str, shrinking: int, number: int) -> str:
    """Return that `shrinking` of so many workloads run on with fewer replicas."""
    if not shrinking or kind == "stopped":
        return ""
    if kind != "resized":
        return f" ({shrinking:,} with fewer replicas)"
    return " to fewer replicas" if shrinking == number else f" ({shrinking:,} to fewer replicas)"


def _describe_withheld(withheld: int, number: int) -> str:
    """Return that so many of a `number` of moves are withheld."""
    return "" if not withheld else " (withheld)" if withheld == number else f" ({withheld:,} withheld)"


_MOVE_KINDS = (
    ("moved", "moves", "move"),
    ("left", "leaves some clusters", "leave some clusters"),
    ("stopped", "scales to 0 replicas", "scale to 0 replicas"),
    ("resized", "scales", "scale"),
    ("first", "is newly placed", "are newly placed"),
    ("again", "is placed again where its copies still run", "are placed again where their copies still run"),
    ("kept", "is kept in its clusters", "are kept in their clusters"),
    ("removed", "is removed", "are removed"),
    ("lost", "becomes unplaced", "become unplaced"),
)


def is_removed(move: Move) -> bool:
    """Return whether a workload has no cluster any more because the source does not ask for it any more."""
    return move.intended and not (move.after or move.preserved)


def describe_newer_source(commit: str, branch: str) -> str:
    """Return that a run has planned this commit of the source, which is later than the one here; of another `branch`, or ""."""
    cure = f"for branch {branch}: merge that branch" if branch else ": pull it"
    return f"The source here is older than commit {abbreviate_oid(commit)}, which was reconciled last{' ' if branch else ''}{cure}"


def describe_move_kind(kind: str, number: int) -> str:
    """Return "3,000 workloads move"."""
    one, many = next((one, many) for name, one, many in _MOVE_KINDS if name == kind)
    return f"{format_count(number, 'workload')} {one if number == 1 else many}"


def format_headline(review: Review) -> str:
    """Return the result as one sentence without a full stop."""
    if review.before is None and not review.base.commit:
        return describe_unfetched(review) or f"First placement of {describe_first_placement(review)[0]}"
    if review.moves:
        removed = {move.key for move in review.moves if not move.after}  # or not placed any more
        removed -= {outcome.key for outcome in review.outcomes} if removed else set()
        known = max(len(review.outcomes) + len(removed), len({move.key for move in review.moves}))
        summary = summarize_moves(review.moves, known, review.withheld.moves)
    else:
        summary = "no workload moves"
    summary += describe_edits(review)
    number = len(review.held if review.base.held is None and review.moves else review.newly_held)
    held = f"{number:,} held" if number else ""
    images, records = describe_images(review), describe_record_changes(review.record_changes)
    changes = [held, *_describe_unplaced(review), _describe_empty(review), images, records]
    others = "" if review.moves or any(changes) else _describe_other_changes(review)
    parts = [describe_invalid(review), describe_unknown_fields(review), summary, *changes, others]
    text = ", ".join(filter(None, parts))
    is_wrong = any(parts[:2])
    if others == _NOTHING and not is_wrong:
        return NO_CHANGES
    start = text[0] if is_wrong else text[0].upper()  # the name of a document may be a path
    return f"{start}{text[1:]}".removesuffix(f", {_NOTHING}")


def describe_edits(review: Review) -> str:
    """Return what completes the number of moves where people edited records, from which the run decides; "" otherwise."""
    commits = format_names([abbreviate_oid(oid) for oid in review.comparison.edits], EDITS_SHOWN)
    return f" besides what records edited by hand in {commits} move" if commits else ""


def _describe_unplaced(review: Review) -> Iterator[str]:
    """Yield the number of new workloads for which no cluster fits, and of new objects that no policy selects."""
    if not review.base.commit and review.base.states is not None:
        lost = sum(move.becomes_unplaced for move in review.moves)
        more = review.states["pending"] - review.base.states.get("pending", 0) - lost
        if more > 0:
            yield format_count(more, "more workload is unplaced", "more workloads are unplaced")
    for selected, one, many in ((True, "is placed in no cluster", "are placed in no cluster"), (False, *_UNSELECTED)):
        number = sum(found.selected == selected for found in review.comparison.unplaced)
        number += 0 if selected else len(_list_unbuilt(review.new_findings) - _list_unbuilt(review.base.findings or ()))
        if number:
            yield f"{format_count(number, 'new workload' if selected else 'new object')} {one if number == 1 else many}"


def _list_unbuilt(findings: Iterable[Finding]) -> set[object]:
    return {finding.resource for finding in findings if finding.code == KUSTOMIZE_UNBUILT}


def _describe_empty(review: Review) -> str:
    """Return which new clusters get nothing; "" if all get something."""
    empty = review.comparison.empty_clusters
    return (
        f"new {'cluster' if len(empty) == 1 else 'clusters'} {format_names(empty)} get{'s' * (len(empty) == 1)} nothing"
        if empty
        else ""
    )


_UNSELECTED = ("is selected by no policy", "are selected by no policy")
_NOTHING = "nothing changes"
NO_CHANGES = "No changes"
"""The headline of a plan that changes nothing."""


def _describe_other_changes(review: Review) -> str:
    if review.comparison.delivery.files:
        return "rendered manifests change"
    if review.more_unclaimed and not describe_invalid(review):  # else what was built of invalid documents
        more = review.more_unclaimed
        return f"{format_count(more, 'more object')} {_UNSELECTED[more > 1]}"
    if review.changed:
        return "only status records change"
    return "settings change" if review.setting_changes else _NOTHING


def describe_invalid(review: Review) -> str:
    """Return which documents the change makes invalid, so that what it writes there has no effect; "" for none, or if it is not known."""
    names = _name_documents(review, lambda finding: finding.severity == "error" and not finding.is_change)
    return f"{format_names(names, INVALID_SHOWN)} {'is' if len(names) == 1 else 'are'} invalid" if names else ""


def describe_unknown_fields(review: Review) -> str:
    """Return which documents get a field that their schema does not define, as a misspelled one has no effect; "" as above."""
    names = _name_documents(review, lambda finding: finding.severity == "warning" and finding.code == UNKNOWN_FIELD)
    return (
        f"{format_names(names, INVALID_SHOWN)} {'has an unknown field' if len(names) == 1 else 'have unknown fields'}"
        if names
        else ""
    )


def _name_documents(review: Review, is_meant: Callable[[Finding], bool]) -> list[str]:
    """Return the documents that new findings are about; none if it is not known which are new."""
    found = [] if review.base.findings is None else filter(is_meant, review.new_findings)
    return list(dict.fromkeys(filter(None, map(_name_document, found))))


def _name_document(finding: Finding) -> str:
    if finding.resource is not None:
        kind, namespace, name = finding.resource
        return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
    return finding.location.path if finding.location is not None else ""


def describe_images(review: Review) -> str:
    """Return the number of manifests in which an image changes; "" for none."""
    number = len({path for one in review.comparison.delivery.images for path in one.paths})
    return f"{format_count(number, 'workload')} {'gets another image' if number == 1 else 'get other images'}" if number else ""


def describe_withheld(
    withheld: WithheldChanges,
    *,
    planned: bool = False,
    cause: str = "",
    commit: str = "the commit that gitsched status names",
    requested: str = "",
    is_status: bool = False,
) -> list[str]:
    """Return what the guard withholds, who `requested` that, the `cause` if it is a mistake, the limits that are exceeded, and what to do:
    to correct a mistake, or to revert the `commit`, or to allow it. `planned`: a run will withhold it. The status says elsewhere what lifts
    a freeze, and which workloads stay in clusters that they have to leave."""
    count = format_count(len(withheld.moves), "change")
    lines = [f"Withheld by {withheld.withheld_by}: {f'a run leaves out {count}' if planned else count}."]
    lines += [f"  {text}" for text in (requested, cause) if text]
    if withheld.freeze:
        lift = f". To lift it, {withheld.lift}" if withheld.lift and not is_status else ""
        lines.append(f"  Placements are frozen: {withheld.freeze}{lift}")
    lines += [] if is_status else list_limited(_describe_stays(withheld), LIMITS_SHOWN, "  and {} more")
    for is_policy, more in ((True, "that select nothing"), (False, "limits")):
        limits = [f"  {limit}" for limit in withheld.limits if (limit.cause is not None) is is_policy]
        lines += list_limited(limits, POLICIES_SHOWN if is_policy else LIMITS_SHOWN, f"  and {{}} more {more}")
    if not (withheld.freeze or withheld.is_doubted):
        undone = "what requests it" if requested else "the change" if planned else commit
        lines.append(f"If this is a mistake, correct it, or revert {undone}.")
    others = f" and the {format_count(len(withheld.of_base), 'change')} of the base" if withheld.of_base else ""
    return [*lines, f"To allow exactly these{others}, {withheld.allowance}."]


def _describe_stays(withheld: WithheldChanges) -> list[str]:
    """Return which workloads stay in clusters that they have to leave, because more of them changes than this."""
    staying: dict[str, list[str]] = {}
    for move in withheld.moves:
        for name in sorted((move.before.keys() - move.after.keys()) & withheld.unavailable.keys()):
            reason = withheld.unavailable[name].removeprefix("it ")
            staying.setdefault(f"{name}, which {reason}", []).append(format_key(move.key))
    return [
        f"  {format_names(keys, LIMITS_SHOWN)} {choose_form(len(keys), 'stays', 'stay')} on {place}"
        for place, keys in staying.items()
    ]


def describe_record_changes(changes: Sequence[RecordChange]) -> str:
    """Return the number of changed recorded decisions by kind of subject: "the decisions about 2 Clusters and 1 Placement change"."""
    counts = Counter(change.subject.kind for change in changes)
    if not counts:
        return ""
    parts = [format_count(number, kind) for kind, number in sorted(counts.items())]
    listed = join_all(parts)
    return f"the decision about {listed} changes" if counts.total() == 1 else f"the decisions about {listed} change"


def format_targets(targets: Iterable[RecordTarget], most: int = CLUSTERS_SHOWN) -> str:
    """Return the targets of a recorded decision, as in "web-0 3, web-1 2" or "fra (canary)"; "none" without targets."""
    texts = [
        f"{target.name}{'' if target.amount is None else f' {target.amount}'}{f' ({target.group})' if target.group else ''}"
        for target in targets
    ]
    return format_names(texts, most) if texts else "none"


def format_record_change(change: RecordChange, shown: int = CLUSTERS_SHOWN) -> tuple[str, str, str]:
    """Return the subject of a changed recorded decision, and its targets before and after."""
    return format_subject(change), format_targets(change.before, shown), format_targets(change.after, shown)


def make_record_row(change: RecordChange, reasons: Sequence[str] = ()) -> ChangeRow:
    """Return the row of a changed recorded decision in a table for a terminal."""
    sign = "~" if change.before and change.after else "+" if change.after else "-"
    return ChangeRow(sign, lambda shown: format_record_change(change, shown), reasons)


def format_subject(change: RecordChange | RecordedDecision) -> str:
    """Return the subject of a recorded decision with the kind of its targets: "Cluster prod/new, cloud"."""
    return f"{format_key(change.subject)}, {change.target_kind}"


def list_summary_rows(review: Review, counts: MoveCounts | None = None) -> list[SummaryRow]:
    """Return the rows of the summary; rows with nothing to report are left out. Withheld moves have rows of their own.

    `counts` are the counts of the moves without withheld ones, if the caller has them.
    """
    counts, previous, states = counts or count_moves(review.allowed_moves), review.base.states, review.states_left
    rows = [
        *_list_move_rows(counts, staying=_count_staying(review)),
        *_list_move_rows(count_moves(review.withheld.moves), " (withheld)"),
        SummaryRow("recorded decisions changed", "", f"{len(review.record_changes):,}" if review.record_changes else ""),
        SummaryRow("clusters added to the fleet", "", _list_added(review), True),
        SummaryRow("clusters removed from the fleet", "", _join_sorted(review.comparison.removed_clusters), True),
    ]
    rows = [row for row in rows if row.after]
    for name, state in (("unplaced workloads", "pending"), ("stale workloads", "stale")):
        after, before = states[state], previous.get(state, 0) if previous is not None else None
        if after or before:
            rows.append(SummaryRow(name, "" if before is None else f"{before:,}", f"{after:,}"))
    if review.base.unclaimed not in (None, review.unclaimed):
        rows.append(SummaryRow("objects that no policy selects", f"{review.base.unclaimed:,}", f"{review.unclaimed:,}"))
    files, note = (
        review.comparison.delivery.files,
        "" if len(review.allowed_moves) == len(review.moves) else ", withheld ones included",
    )
    return [*rows, SummaryRow("changed manifest files", "", f"{files:,}{note}")] if files else rows


def _list_added(review: Review) -> str:
    """Return the clusters that are new, and which of them get nothing."""
    empty = frozenset(review.comparison.empty_clusters)
    return _join_sorted([f"{name} (gets nothing)" if name in empty else name for name in review.comparison.added_clusters])


def _list_move_rows(counts: MoveCounts, suffix: str = "", staying: int = 0) -> list[SummaryRow]:
    """Return the rows about moves; `staying` of the removed replicas stay until other clusters have them."""
    notes = ["autoscaled ones as their minimum"] * counts.has_minima + ["unknown ones as 0"] * counts.has_unknown
    note = f" ({', '.join(notes)})" if notes else ""
    which = "which" if staying == counts.replicas_removed else f"of which {staying:,}"
    removed_note = f"{note}, {which} stay until other clusters have them" if staying else note
    return [
        SummaryRow(f"replicas changing cluster{suffix}", "", f"{counts.replicas_moved:,}{note}" if counts.replicas_moved else ""),
        SummaryRow(f"replicas added{suffix}", "", f"{counts.replicas_added:,}{note}" if counts.replicas_added else ""),
        SummaryRow(
            f"replicas removed{suffix}", "", f"{counts.replicas_removed:,}{removed_note}" if counts.replicas_removed else ""
        ),
        SummaryRow(f"clusters gaining replicas{suffix}", "", format_cluster_deltas(counts, gaining=True), True),
        SummaryRow(f"clusters losing replicas{suffix}", "", format_cluster_deltas(counts, gaining=False), True),
    ]


def _count_staying(review: Review) -> int:
    """Return how many of the removed replicas stay where they are, because no other cluster has them yet."""
    staying: dict[Key, int] = {}
    moves = {move.key: move for move in review.allowed_moves}
    for copy in review.retained_copies:
        if copy.start is None and copy.workload in moves:
            left = weigh_replicas(moves[copy.workload].after.get(copy.cluster, 0))
            staying[copy.workload] = staying.get(copy.workload, 0) + max(0, (copy.replicas or 0) - left)
    return sum(min(number, count_moves([moves[key]]).replicas_removed) for key, number in staying.items())


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
    return format_names([text for *_, text in sorted(found)], CLUSTERS_SHOWN)


def describe_setting_changes(review: Review, most: int) -> list[str]:
    """Return a line for changes of gitsched.yaml that do the same, with what they do; the sensitive ones are first and marked."""
    groups: dict[tuple[bool, str], list[str]] = {}
    for change in review.setting_changes:
        groups.setdefault((not change.sensitive, change.effect), []).append(change.text)
    lines = [
        f"{'' if harmless else 'warning: '}{'; '.join(texts)}. {effect}"
        for (harmless, effect), texts in sorted(groups.items(), key=lambda group: (group[0][0], group[1]))
    ]
    return list_limited(lines, most)


def list_comparison_notes(review: Review) -> list[str]:
    """Return sentences that explain how the comparison was made."""
    lines = [*filter(None, [review.comparison.older]), *review.comparison.notes]
    if review.base.merged:
        lines.insert(
            0,
            f"{format_revision(review.source_name, review.source)} does not contain "
            f"{format_revision(review.base.name, review.base.commit)}, so the merge of the two was planned.",
        )
    return [*lines, *_list_renamed(review)]


def _list_renamed(review: Review) -> Iterator[str]:
    """Yield a sentence for objects that a change removes from one namespace, and places under the same name in another one."""
    gone = {move.key._replace(namespace=""): move.key for move in review.moves if is_removed(move) and move.key.namespace}
    new = [move.key for move in review.moves if gone and move.after and not move.before and move.key.namespace]
    continued = {copy.workload for copy in review.retained_copies if copy.follows is not None}
    pairs = ((gone.get(key._replace(namespace="")), key) for key in new)
    renamed = Counter((old.namespace, key.namespace) for old, key in pairs if old is not None and old not in continued)
    for (old_name, new_name), number in sorted(renamed.items()):
        objects = format_count(number, "object that is", "objects that are")
        yield (
            f"{objects} removed from namespace {old_name} {'has its' if number == 1 else 'have their'} name in namespace {new_name} now: "
            f"annotate what continues there with {RENAMED_FROM}: {old_name}/NAME, so that the old copies stay until the new ones run."
        )


def _join_sorted(names: Sequence[str]) -> str:
    return format_names(sorted(names), CLUSTERS_SHOWN)
