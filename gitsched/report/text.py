"""A plan or a reconcile as text for the terminal: headline, moves, causes, findings, manifests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gitsched.model.changes import ManifestChange, Move
from gitsched.model.finding import Finding
from gitsched.model.time import format_time
from gitsched.report.review import Review
from gitsched.report.simulation import describe_losses
from gitsched.report.summary import (
    CLUSTERS_SHOWN,
    abbreviate_oid,
    describe_choices,
    describe_output_branch,
    format_choice,
    format_clusters,
    format_finding_counts,
    format_headline,
    format_key,
    format_revision,
    list_common_causes,
    list_comparison_notes,
    list_reasons,
    list_summary_rows,
    sort_moves,
    summarize_moves,
)
from gitsched.report.terminal import escape_unprintable, fits_width, format_columns, format_count, wrap

FINDINGS_SHOWN = 50
INFOS_SHOWN = 5
"""Findings that are printed one by one, and those of severity info among them; JSON has all."""
SHOWN_PER_CODE = 10
"""Findings of one code that are printed before the next ones of all codes."""
CODES_SHOWN = 3
"""Codes of findings that are counted but not printed."""
MOVES_SHOWN = 500
"""Workloads that are printed one by one, the gravest first; JSON has all."""
RETAINED_SHOWN = 20
"""Workloads that stay, and could be elsewhere, that are printed one by one."""
CHOICES_SHOWN = 20
"""Placements that choose other clusters that are printed one by one."""
LOSSES_SHOWN = 20
"""Losses, or workloads that a loss hits otherwise than before, that are printed one by one."""
DIFF_LINES = 400
"""Lines of manifests that are printed; JSON has more."""


def write_plan(review: Review, width: int) -> str:
    """What a commit would change; lines of at most `width` characters where words allow, but for manifests."""
    return _join_blocks(
        wrap(summarize_plan(review), width),
        _comparison_lines(review, width),
        wrap(f"Refused: {review.refused}", width) if review.refused else [],
        _summary_lines(review, width),
        _cause_lines(review.moves, width),
        _move_lines(sort_moves(review.moves), width),
        _choice_lines(review, width),
        _retained_lines(review, width),
        _loss_lines(review, width),
        _finding_lines(review, width),
        _count_lines(review, width),
        _delivery_lines(review, width),
    )


def write_run(review: Review, width: int) -> str:
    """What a reconcile did."""
    return _join_blocks(
        wrap(_summarize_run(review), width),
        [line for text in review.review_messages for line in wrap(text, width)],
        wrap(f"Refused: {review.refused}", width) if review.refused else [],
        _move_lines(review.moves, width),
        _choice_lines(review, width),
        _finding_lines(review, width),
        _count_lines(review, width),
    )


def write_findings(findings: Sequence[Finding], width: int) -> str:
    """Findings, worst first, and their counts."""
    return _join_blocks(_list_findings(findings, width), wrap(_capitalize_finding_counts(findings), width))


def summarize_plan(review: Review) -> str:
    """What a plan comes to, in one sentence."""
    if review.base.commit:
        earlier = format_revision(review.base.name, review.base.commit)
        return f"{format_headline(review)}: {format_revision(review.source_name, review.source)} against {earlier}."
    source = f"commit {format_revision(review.source_name, review.source)}" if review.source else "the worktree"
    if review.before is None:
        placed = format_count(review.states["placed"], "workload")
        return f"First placement: {source} would create {describe_output_branch(review)} and place {placed}."
    if review.moves:
        return f"{format_headline(review)}: {source} against {describe_output_branch(review)}."
    if review.choices:
        return f"{format_headline(review)}: {source} against {describe_output_branch(review)}."
    if review.changed:
        return f"No workload moves, but files of {describe_output_branch(review)} change with {source}."
    return f"Nothing changes: {describe_output_branch(review)} already is what {source} asks for."


def _comparison_lines(review: Review, width: int) -> list[str]:
    lines = []
    if review.base.commit:
        lines += wrap(
            f"Both are computed over {describe_output_branch(review) if review.before else 'no output branch, as there is none yet'}.",
            width,
        )
    for note in list_comparison_notes(review):
        lines += wrap(note, width)
    return [*lines, f"Plan {review.digest}"] if review.digest else lines


def _summarize_run(review: Review) -> str:
    source = f"commit {abbreviate_oid(review.source)}"
    if review.refused:
        return f"Nothing committed. {summarize_moves(review.moves) or 'The change'}."
    if review.after is None:
        return f"Nothing changed: {describe_output_branch(review)} already is what {source} asks for."
    commit = f"Committed {abbreviate_oid(review.after)} to {describe_output_branch(review, head=False)}"
    if review.before is None:
        return f"{commit}, its first: {format_count(review.states['placed'], 'workload')} placed from {source}."
    quiet = f"{describe_choices(review)}, no workload moves" if review.choices else "files change, no workload moves"
    return f"{commit}: {summarize_moves(review.moves) or quiet}, from {source}."


def _summary_lines(review: Review, width: int) -> list[str]:
    if not review.digest:
        return []
    lines = []
    for row in list_summary_rows(review):
        value = row.after if not row.before else row.after if row.before == row.after else f"{row.before} -> {row.after}"
        lines += wrap(f"{row.name}: {value}", width, "  ")
    return lines


def _cause_lines(moves: Sequence[Move], width: int) -> list[str]:
    return [
        line for cause, number in list_common_causes(moves) for line in wrap(f"{format_count(number, 'workload')}: {cause}", width)
    ]


def _move_lines(moves: Sequence[Move], width: int) -> list[str]:
    """A table where it fits; else a few lines for each move, which can still be read at 80 columns."""
    more = len(moves) - MOVES_SHOWN
    if more > 0:
        return [*_move_lines(moves[:MOVES_SHOWN], width), f"and {more} more: -o json has all"]
    if not moves:
        return []
    for shown in (CLUSTERS_SHOWN, 3, 2):
        table = format_columns(
            [
                ("WORKLOAD", "BEFORE", "AFTER", "REASON"),
                *((*_move_cells(move, shown), "; ".join(list_reasons(move))) for move in moves),
            ]
        )
        if fits_width(table, width):
            return table
    lines = []
    for move in moves:
        workload, before, after = _move_cells(move, CLUSTERS_SHOWN)
        lines += [*wrap(workload, width), *wrap(f"{before} -> {after}", width, "  ")]
        lines += [line for reason in list_reasons(move) for line in wrap(reason, width, "  ")]
    return lines


def _move_cells(move: Move, shown: int) -> tuple[str, str, str]:
    return format_key(move.key), format_clusters(move.before, shown), format_clusters(move.after, shown)


def _choice_lines(review: Review, width: int) -> list[str]:
    """Documents that place nothing themselves: what they choose is for other programs."""
    lines = []
    for choice in review.choices[:CHOICES_SHOWN]:
        before, after = format_choice(choice)
        lines += wrap(f"{format_key(choice.key)} chooses {before} -> {after}", width)
    more = len(review.choices) - CHOICES_SHOWN
    return [*lines, f"and {more} more: -o json has all"] if more > 0 else lines


def _retained_lines(review: Review, width: int) -> list[str]:
    """What the change concerns and memory holds."""
    lines, moved = [], {move.key for move in review.moves}
    for stay in review.retained[:RETAINED_SHOWN]:
        verb = "comes only to" if stay.key in moved else "stays in"
        lines += wrap(f"{format_key(stay.key)} {verb} {format_clusters(stay.current)}", width)
        lines += wrap(f"placed anew it would be in {format_clusters(stay.if_rescheduled)}; {stay.remedy}", width, "  ")
    more = len(review.retained) - RETAINED_SHOWN
    return [*lines, f"and {more} more stay: -o json has all"] if more > 0 else lines


def _loss_lines(review: Review, width: int) -> list[str]:
    """What losses would do, where somebody asked."""
    if review.resilience is None:
        return []
    verdict, told = describe_losses(review.resilience)
    more = [f"and {len(told) - LOSSES_SHOWN} more: -o json has all"] if len(told) > LOSSES_SHOWN else []
    return [*wrap(verdict, width), *(line for text in told[:LOSSES_SHOWN] for line in wrap(text, width, "  ")), *more]


def _finding_lines(review: Review, width: int) -> list[str]:
    """What the change brings, where that is known; else everything."""
    if review.base.findings is None:
        return _list_findings(review.findings, width)
    fresh = review.new_findings
    lines = _list_findings(fresh, width)
    known = len(review.findings) - len(fresh)
    parts = [
        f"{format_count(known, 'finding')} stood before" if known else "",
        f"{review.fixed_count} mended" if review.fixed_count else "",
    ]
    said = ", ".join(filter(None, parts))
    return [*lines, *wrap(f"{said}.", width)] if said else lines


def _list_findings(findings: Sequence[Finding], width: int) -> list[str]:
    infos = [finding for finding in findings if finding.severity == "info"]
    grave = [finding for finding in findings if finding.severity != "info"]
    shown = [*_select_shown(grave), *infos[:INFOS_SHOWN]][:FINDINGS_SHOWN]
    lines = [line for finding in shown for line in wrap(str(finding), width)]
    left = Counter(finding.code for finding in findings)
    left.subtract(finding.code for finding in shown)
    if not left.total():
        return lines
    codes = [f"{number} {code}" for code, number in sorted(left.items(), key=lambda entry: (-entry[1], entry[0])) if number]
    named = ", ".join(codes[:CODES_SHOWN]) + (", ..." if len(codes) > CODES_SHOWN else "")
    return [*lines, *wrap(f"and {left.total()} more ({named}): -o json has all", width)]


def _select_shown(findings: Sequence[Finding]) -> list[Finding]:
    """As many as are printed, in their order: where they are too many, no code crowds out the others."""
    if len(findings) <= FINDINGS_SHOWN:
        return list(findings)
    rank: Counter[str] = Counter()
    places: list[tuple[int, int]] = []
    for at, finding in enumerate(findings):
        places.append((rank[finding.code] // SHOWN_PER_CODE, at))
        rank[finding.code] += 1
    return [findings[at] for at in sorted(at for _, at in sorted(places)[:FINDINGS_SHOWN])]


def _capitalize_finding_counts(findings: Sequence[Finding]) -> str:
    said = format_finding_counts(findings)
    return said[0].upper() + said[1:]


def _count_lines(review: Review, width: int) -> list[str]:
    states = review.states
    parts = [
        f"{states['placed']} placed",
        f"{states['pending']} without a place" if states["pending"] else "",
        f"{states['stale']} kept as decided before" if states["stale"] else "",
    ]
    unclaimed = f"; {format_count(review.unclaimed, 'object')} selected by no policy" if review.unclaimed else ""
    lines = wrap(f"{format_count(len(review.outcomes), 'workload')}: {', '.join(filter(None, parts))}{unclaimed}.", width)
    if review.cluster_count == 0:
        lines += wrap("No cluster is described, so that nothing can be placed.", width)
    lines += wrap(f"{_capitalize_finding_counts(review.findings)}.", width)
    if review.next_wakeup:
        lines += wrap(f"Time alone can change a decision at {format_time(review.next_wakeup)}.", width)
    return lines


def _delivery_lines(review: Review, width: int) -> list[str]:
    """What the clusters get, as a unified diff; lines of manifests are not wrapped, so that they can be copied."""
    if review.before is None and not review.base.commit:
        return []  # at first everything is new
    lines: list[str] = []
    shown = 0
    for entry in review.delivery.rendered:
        body = [escape_unprintable(line) for line in entry.diff.splitlines()]
        if len(lines) + len(body) > DIFF_LINES:
            break
        lines += [*wrap(format_manifest_title(entry), width), *body]
        shown += 1
    left = len(review.delivery.rendered) - shown + review.delivery.omitted
    return [*lines, f"and {format_count(left, 'more manifest')}: -o json has their names"] if left else lines


def format_manifest_title(entry: ManifestChange) -> str:
    """One manifest in a sentence: what becomes of it, and where."""
    places = ", ".join(entry.clusters[:CLUSTERS_SHOWN])
    more = len(entry.clusters) - CLUSTERS_SHOWN
    where = f"{entry.verb} in {places}{f' and {more} more' if more > 0 else ''}"
    copied = f", as it is in {entry.copied}{' but for this' if entry.diff else ''}" if entry.copied else ""
    return f"{entry.path} {where}{copied}{f' ({entry.note})' if entry.note else ''}"


def _join_blocks(*blocks: list[str]) -> str:
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"
