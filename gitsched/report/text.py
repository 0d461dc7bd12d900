"""A plan or a reconcile as text for the terminal: headline, moves, causes, findings, manifests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from gitsched.model.changes import ManifestChange, Move, RecordChange
from gitsched.model.finding import Finding
from gitsched.model.time import format_time
from gitsched.report.causes import describe_unproved, list_common_causes, list_reasons
from gitsched.report.review import Review
from gitsched.report.simulation import describe_losses
from gitsched.report.summary import (
    CLUSTERS_SHOWN,
    abbreviate_oid,
    describe_output_branch,
    describe_record_changes,
    describe_withheld,
    escape_unprintable,
    fits_width,
    format_clusters,
    format_columns,
    format_count,
    format_finding_counts,
    format_headline,
    format_key,
    format_record_change,
    format_revision,
    join_blocks,
    list_comparison_notes,
    list_summary_rows,
    sort_moves,
    summarize_moves,
    wrap,
    wrap_all,
)

C = TypeVar("C", bound=Move | RecordChange)
FINDINGS_SHOWN = 50
INFOS_SHOWN = 5
"""The number of findings that are printed, and of notes among them; JSON contains all."""
SHOWN_PER_CODE = 10
"""If there are too many findings, this many of each code are printed before further ones of any code."""
CODES_SHOWN = 3
"""The number of codes listed with the count of omitted findings."""
MOVES_SHOWN = 500
"""The number of moves that are printed, the most important first; JSON contains all."""
SETTINGS_SHOWN = 50
"""The number of changed settings that are printed."""
RETAINED_SHOWN = 20
"""The number of retained workloads that are printed."""
RECORDS_SHOWN = 100
"""The number of changed recorded decisions that are printed."""
LOSSES_SHOWN = 20
"""The number of lines of a resilience report that are printed."""
WITHHELD_SHOWN = 20
"""The number of withheld moves that are printed; JSON contains all."""
DIFF_LINES = 400
"""The number of lines of manifest diffs that are printed; JSON contains more."""


def write_plan(review: Review, width: int) -> str:
    """Return what a commit would change. Lines other than manifests are wrapped at `width` characters."""
    return join_blocks(
        wrap(summarize_plan(review), width),
        _comparison_lines(review, width),
        wrap(f"Refused: {review.refused}", width) if review.refused else [],
        _setting_lines(review, width),
        _withheld_lines(review, width, planned=True),
        _summary_lines(review, width),
        _cause_lines(review.moves, width),
        _move_lines(sort_moves(review.moves), width),
        _copy_lines(review, width),
        _rollout_lines(review, width),
        _record_lines(review.record_changes, width),
        _held_lines(review, width),
        _retained_lines(review, width),
        _loss_lines(review, width),
        _finding_lines(review, width),
        _count_lines(review, width),
        _delivery_lines(review, width),
    )


def write_run(review: Review, width: int) -> str:
    """Return the result of a reconcile."""
    return join_blocks(
        wrap(_summarize_run(review), width),
        wrap_all(review.review_messages, width),
        wrap(f"Refused: {review.refused}", width) if review.refused else [],
        _setting_lines(review, width),
        _move_lines(review.moves, width),
        _copy_lines(review, width),
        _rollout_lines(review, width),
        _withheld_lines(review, width),
        _held_lines(review, width),
        _record_lines(review.record_changes, width),
        _finding_lines(review, width),
        _count_lines(review, width),
    )


def write_findings(findings: Sequence[Finding], width: int) -> str:
    """Return the findings, the most severe first, and their counts."""
    return join_blocks(_list_findings(findings, width), wrap(_capitalize_finding_counts(findings), width))


def summarize_plan(review: Review) -> str:
    """Return the result of a plan in one sentence."""
    if review.base.commit:
        earlier = format_revision(review.base.name, review.base.commit)
        return f"{format_headline(review)}: {format_revision(review.source_name, review.source)} against {earlier}."
    source = f"commit {format_revision(review.source_name, review.source)}" if review.source else "the worktree"
    if review.before is None:
        placed = format_count(review.states["placed"], "workload")
        recorded = f", and make {format_count(len(review.record_changes), 'recorded decision')}" if review.record_changes else ""
        return f"First placement: {source} would create {describe_output_branch(review)} and place {placed}{recorded}."
    if review.moves or review.record_changes:
        return f"{format_headline(review)}: {source} against {describe_output_branch(review)}."
    if review.changed:
        return f"No workload moves, but files of {describe_output_branch(review)} change with {source}."
    settings = ", but it changes settings" if review.setting_changes else ""
    return f"No changes: {describe_output_branch(review)} is up to date with {source}{settings}."


def _comparison_lines(review: Review, width: int) -> list[str]:
    lines = []
    if review.base.commit:
        lines += wrap(
            f"Both plans start from {describe_output_branch(review) if review.before else 'an empty output branch'}.",
            width,
        )
    lines += wrap_all(list_comparison_notes(review), width)
    return [*lines, f"Plan {review.digest}"] if review.digest else lines


def _setting_lines(review: Review, width: int) -> list[str]:
    """Return the changes of gitsched.yaml."""
    if not review.setting_changes:
        return []
    from gitsched.report.summary import describe_setting_changes  # few commits change settings

    changes = describe_setting_changes(review, SETTINGS_SHOWN)
    return ["Changed settings in gitsched.yaml:", *wrap_all(changes, width, "  ")]


def _withheld_lines(review: Review, width: int, *, planned: bool = False) -> list[str]:
    """Return what the guard withholds. The moves are listed unless the plan shows them among its moves."""
    if not review.withheld.moves:
        return []
    lines = wrap_all(describe_withheld(review.withheld, planned=planned), width)
    return lines if planned else [*lines, *_move_lines(sort_moves(review.withheld.moves)[:WITHHELD_SHOWN], width)]


def _summarize_run(review: Review) -> str:
    source = f"commit {abbreviate_oid(review.source)}"
    if review.refused:
        parts = (summarize_moves(review.moves) or "no workload moves", describe_record_changes(review.record_changes))
        planned = ", ".join(filter(None, parts))
        return f"Nothing committed. Planned: {planned}."
    if review.after is None:
        return f"No changes: {describe_output_branch(review)} is up to date with {source}."
    branch = describe_output_branch(review, head=False)
    if review.race == "different":
        return f"Another run committed {abbreviate_oid(review.after)} to {branch} first: the branch is up to date with {source}."
    commit = f"Committed {abbreviate_oid(review.after)} to {branch}"
    if review.race:
        commit = f"Another run committed {abbreviate_oid(review.after)} to {branch} first, with the same content"
    if review.before is None:
        recorded = f", {format_count(len(review.record_changes), 'recorded decision')}" if review.record_changes else ""
        return f"{commit} (first commit): {format_count(review.states['placed'], 'workload')} placed{recorded}, from {source}."
    changes = [
        summarize_moves(review.moves),
        describe_record_changes(review.record_changes),
        "" if review.moves else "no workload moves",
    ]
    if not review.moves and not review.record_changes:
        changes[0] = "files change"
    return f"{commit}: {', '.join(filter(None, changes))}, from {source}."


def _summary_lines(review: Review, width: int) -> list[str]:
    if not review.digest:
        return []
    lines = []
    for row in list_summary_rows(review):
        value = row.after if not row.before else row.after if row.before == row.after else f"{row.before} -> {row.after}"
        lines += wrap(f"{row.name}: {value}", width, "  ")
    return lines


def _cause_lines(moves: Sequence[Move], width: int) -> list[str]:
    """Return the causes that several moves share, and the number of moves without a proved one."""
    lines = [f"{format_count(number, 'workload')}: {cause}" for cause, number in list_common_causes(moves)]
    return wrap_all(filter(None, [*lines, describe_unproved(moves)]), width)


def _move_lines(moves: Sequence[Move], width: int) -> list[str]:
    """Return the moves, the first MOVES_SHOWN of them."""

    def format_cells(move: Move, shown: int) -> tuple[str, str, str]:
        return format_key(move.key), format_clusters(move.before, shown), format_clusters(move.after, shown)

    return [*_change_lines("WORKLOAD", moves[:MOVES_SHOWN], format_cells, width), *_count_omitted(len(moves) - MOVES_SHOWN)]


def _copy_lines(review: Review, width: int) -> list[str]:
    """Return the copies that stay for an overlap, and those that go because it is over."""
    if not review.retained_copies and not review.ended_copies:
        return []
    from gitsched.report.retained_copies import describe_ended_copies, describe_retained_copies  # few plans have any

    return wrap_all([*describe_retained_copies(review.retained_copies), *describe_ended_copies(review.ended_copies)], width)


def _record_lines(changes: Sequence[RecordChange], width: int) -> list[str]:
    """Return the changed recorded decisions, the first RECORDS_SHOWN of them."""
    lines = _change_lines("RECORDED DECISION", changes[:RECORDS_SHOWN], format_record_change, width)
    return [*lines, *_count_omitted(len(changes) - RECORDS_SHOWN)]


def _count_omitted(more: int) -> list[str]:
    return [f"and {more} more; use -o json for all"] if more > 0 else []


def _change_lines(
    title: str, changes: Sequence[C], format_cells: Callable[[C, int], tuple[str, str, str]], width: int
) -> list[str]:
    """Return a table if it fits into the width, else a few lines for each change."""
    if not changes:
        return []
    for shown in (CLUSTERS_SHOWN, 3, 2):
        rows = [(*format_cells(change, shown), _format_reasons(change)) for change in changes]
        header = (title, "BEFORE", "AFTER", "REASON" if any(row[-1] for row in rows) else "")
        table = format_columns([header, *rows])
        if fits_width(table, width):
            return table
    lines = []
    for change in changes:
        name, before, after = format_cells(change, CLUSTERS_SHOWN)
        lines += [*wrap(name, width), *wrap(f"{before} -> {after}", width, "  ")]
        lines += wrap_all(list_reasons(change), width, "  ")
    return lines


def _rollout_lines(review: Review, width: int) -> list[str]:
    """Return which clusters get a change in which wave, and what the others wait for."""
    if not review.rollouts:
        return []
    from gitsched.report.rollouts import describe_rollouts  # few runs roll out in waves

    return wrap_all(describe_rollouts(review.rollouts), width)


def _held_lines(review: Review, width: int) -> list[str]:
    """Return the workloads with data that keep their clusters until they are released."""
    if not review.held:
        return []
    from gitsched.report.held import describe_held  # few runs hold a workload

    return wrap_all(describe_held(review.held), width)


def _format_reasons(change: Move | RecordChange) -> str:
    return "; ".join(list_reasons(change)) if change.causes else change.reason


def _retained_lines(review: Review, width: int) -> list[str]:
    """Return the workloads that the change affects but that keep their placement because of scheduling history."""
    lines, moved = [], {move.key for move in review.moves}
    for workload in review.retained[:RETAINED_SHOWN]:
        verb = "moves only to" if workload.key in moved else "stays on"
        lines += wrap(f"{format_key(workload.key)} {verb} {format_clusters(workload.current)}", width)
        lines += wrap(f"if rescheduled: {format_clusters(workload.if_rescheduled)}; {workload.remedy}", width, "  ")
    more = len(review.retained) - RETAINED_SHOWN
    return [*lines, f"and {more} more keep their placement; use -o json for all"] if more > 0 else lines


def _loss_lines(review: Review, width: int) -> list[str]:
    """Return the result of --resilience."""
    if review.resilience is None:
        return []
    summary, losses = describe_losses(review.resilience)
    more = [f"and {len(losses) - LOSSES_SHOWN} more; use -o json for all"] if len(losses) > LOSSES_SHOWN else []
    return [*wrap(summary, width), *wrap_all(losses[:LOSSES_SHOWN], width, "  "), *more]


def _finding_lines(review: Review, width: int) -> list[str]:
    """Return the new findings and the counts of existing and fixed ones; all findings if those of the base are unknown."""
    if review.base.findings is None:
        return _list_findings(_omit_shown_settings(review, review.findings), width)
    new = review.new_findings
    lines = _list_findings(_omit_shown_settings(review, new), width)
    existing = len(review.findings) - len(new)
    parts = [
        format_count(existing, "existing finding") if existing else "",
        f"{review.fixed_count} fixed" if review.fixed_count else "",
    ]
    counts = ", ".join(filter(None, parts))
    return [*lines, *wrap(f"{counts}.", width)] if counts else lines


def _omit_shown_settings(review: Review, findings: Sequence[Finding]) -> Sequence[Finding]:
    """Return the findings without those that say what the list of changed settings says."""
    return [finding for finding in findings if finding.code != "sensitive-setting"] if review.setting_changes else findings


def _list_findings(findings: Sequence[Finding], width: int) -> list[str]:
    infos = [finding for finding in findings if finding.severity == "info"]
    problems = [finding for finding in findings if finding.severity != "info"]
    shown = [*_select_shown(problems), *infos[:INFOS_SHOWN]][:FINDINGS_SHOWN]
    lines = wrap_all(map(str, shown), width)
    omitted = Counter(finding.code for finding in findings)
    omitted.subtract(finding.code for finding in shown)
    if not omitted.total():
        return lines
    codes = [f"{number} {code}" for code, number in sorted(omitted.items(), key=lambda entry: (-entry[1], entry[0])) if number]
    listed = ", ".join(codes[:CODES_SHOWN]) + (", ..." if len(codes) > CODES_SHOWN else "")
    return [*lines, *wrap(f"and {omitted.total()} more ({listed}); use -o json for all", width)]


def _select_shown(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings to print, in order; if there are too many, every code gets a share."""
    if len(findings) <= FINDINGS_SHOWN:
        return list(findings)
    seen: Counter[str] = Counter()
    ranked: list[tuple[int, int]] = []
    for index, finding in enumerate(findings):
        ranked.append((seen[finding.code] // SHOWN_PER_CODE, index))
        seen[finding.code] += 1
    return [findings[index] for index in sorted(index for _, index in sorted(ranked)[:FINDINGS_SHOWN])]


def _capitalize_finding_counts(findings: Sequence[Finding]) -> str:
    counts = format_finding_counts(findings)
    return counts[0].upper() + counts[1:]


def _count_lines(review: Review, width: int) -> list[str]:
    states = review.states
    parts = [
        f"{states['placed']} placed",
        f"{states['pending']} unplaced" if states["pending"] else "",
        f"{states['stale']} stale (previous placement kept)" if states["stale"] else "",
    ]
    unclaimed = f"; {format_count(review.unclaimed, 'object')} not selected by any policy" if review.unclaimed else ""
    sentences = [f"{format_count(len(review.outcomes), 'workload')}: {', '.join(filter(None, parts))}{unclaimed}."]
    if review.cluster_count == 0 and not review.recorded:
        sentences.append(
            "No Cluster found in the source, so nothing can be scheduled. Add one: `gitsched init` prints the kind for each policy API."
        )
    sentences.append(f"{_capitalize_finding_counts(review.findings)}.")
    if review.next_wakeup:
        sentences.append(f"Next change without a commit: {format_time(review.next_wakeup)}.")
    return wrap_all(sentences, width)


def _delivery_lines(review: Review, width: int) -> list[str]:
    """Return the changed manifests as unified diffs; their lines are not wrapped, so that they can be copied."""
    if review.before is None and not review.base.commit:
        return []  # every manifest of a first placement is new
    lines: list[str] = []
    shown = 0
    for entry in review.delivery.rendered:
        body = [escape_unprintable(line) for line in entry.diff.splitlines()]
        if len(lines) + len(body) > DIFF_LINES:
            break
        lines += [*wrap(format_manifest_title(entry), width), *body]
        shown += 1
    omitted = len(review.delivery.rendered) - shown + review.delivery.omitted
    return [*lines, f"and {format_count(omitted, 'more manifest')}; use -o json for their names"] if omitted else lines


def format_manifest_title(entry: ManifestChange) -> str:
    """Return the path of a manifest, what happens to it and on which clusters."""
    clusters = ", ".join(entry.clusters[:CLUSTERS_SHOWN])
    more = len(entry.clusters) - CLUSTERS_SHOWN
    change = f"{entry.verb} in {clusters}{f' and {more} more' if more > 0 else ''}"
    copied = f", {'compared with' if entry.diff else 'same as in'} {entry.copied}" if entry.copied else ""
    return f"{entry.path} {change}{copied}{f' ({entry.note})' if entry.note else ''}"
