"""A plan or a reconcile as text for the terminal: headline, moves, causes, findings, manifests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from gitsched.model.finding import Finding, count_shown, format_count
from gitsched.model.mistakes import EXPOSED, MISTAKE_ENDS, MISTAKES
from gitsched.report.alike_findings import AlikeFindings, fold_alike
from gitsched.report.consequences import describe_run_unplaced, describe_unplaced_objects
from gitsched.report.first_placement import (
    describe_first_placement,
    describe_unfetched,
    describe_unplaced,
    describe_withheld_cause,
)
from gitsched.report.lines import (
    MIN_GROUP_SIZE,
    MOVE_TITLES,
    RECORD_TITLES,
    TABLE_CLUSTERS,
    abbreviate_oid,
    count_omitted,
    describe_output_branch,
    format_changes,
    format_finding_counts,
    format_revision,
    join_blocks,
    list_limited,
    make_move_row,
    sort_moves,
    wrap,
    wrap_all,
    wrap_finding,
)
from gitsched.report.paint import Paint, Role, paint_start
from gitsched.report.retained_copies import describe_ended_copies, describe_next_change, describe_retained_copies
from gitsched.report.review import list_existing_findings
from gitsched.report.summary import (
    REPORTED_ELSEWHERE,
    describe_edits,
    describe_invalid,
    describe_record_changes,
    describe_setting_changes,
    describe_unknown_fields,
    describe_withheld,
    format_headline,
    list_comparison_notes,
    list_summary_rows,
    make_record_row,
    summarize_moves,
)

if TYPE_CHECKING:
    from gitsched.model.changes import Move, RecordChange, UnplacedObject
    from gitsched.report.review import Review

FINDINGS_SHOWN = 50
INFOS_SHOWN = 5
"""The number of findings that are printed, and of notes among them; JSON contains all."""
SHOWN_PER_CODE = 10
"""If there are too many findings, this many of each code are printed before further ones of any code."""
CODES_SHOWN = 3
"""The number of codes listed with the count of omitted findings."""
SETTINGS_SHOWN = 50
"""The number of changed settings that are printed."""
RECORDS_SHOWN = 100
"""The number of changed recorded decisions that are printed."""
LOSSES_SHOWN = 20
"""The number of lines of a resilience report that are printed."""
TOP_PROBLEMS, FIRST_PROBLEMS, FIXED_SHOWN = 3, 10, 3
"""The numbers of new problems that come directly below the headline, also of a first placement, and of fixed findings that are listed."""
SCREEN_LINES = 40
"""The number of lines from which a plan ends with what it begins with, where a terminal shows it: what workloads lose, and the headline."""


def write_plan(review: Review, width: int, paint: Paint | None = None, *, each: bool = False) -> str:
    """Return what a commit would change. Lines other than manifests are wrapped at `width` characters.

    Many moves are listed in groups with a common cause, unless `each` is true.
    """
    headline, losses = summarize_plan(review), _describe_consequences(review)
    top = _list_top_problems(review, (headline, *losses))
    consequences, problems = wrap_all(losses, width), _top_lines(review, top, width, paint)
    blocks = [
        wrap(review.comparison.older, width) if review.comparison.older else [],
        _paint(wrap(headline, width), paint),
        problems,
        _comparison_lines(review, width),
        # Without moves this is what the change does.
        [] if review.moves else _retained_number_lines(review, width),
        consequences,
        _refusal_lines(review, width, paint),
        _setting_lines(review, width, paint),
        _withheld_lines(review, width, paint, planned=True),
        _summary_lines(review, width),
        _held_lines(review, width),
        *_move_blocks(review.moves, width, paint, each=each),
        _image_lines(review, width),
        _copy_lines(review, width),
        _rollout_lines(review, width),
        _record_lines(review.record_changes, width, paint),
        _retained_number_lines(review, width) if review.moves else [],
        _retained_lines(review, width),
        _loss_lines(review, width),
        _delivery_lines(review, width, paint),
        _finding_lines(review, top, width, paint),
        _count_lines(review, width),
    ]
    if (review.moves or top) and sum(len(block) + 1 for block in blocks if block) > SCREEN_LINES:
        blocks += [consequences, problems, _paint(wrap(f"{format_headline(review)}.", width), paint)]
    return join_blocks(*blocks)


def write_run(review: Review, width: int, paint: Paint | None = None, *, each: bool = False) -> str:
    """Return the result of a reconcile. Many moves are listed in groups with a common cause, unless `each` is true."""
    headline = f"{_summarize_run(review)}{_explain_unplaced(review)}"
    top = _list_top_problems(review, (headline, describe_withheld_cause(review) if review.withheld.moves else ""))
    return join_blocks(
        _paint(wrap(headline, width), paint),
        _top_lines(review, top, width, paint),
        _refusal_lines(review, width, paint),
        wrap_all((*review.comparison.notes, *review.review_messages), width),
        wrap_all(describe_run_unplaced(review), width) if review.comparison.unplaced else [],
        _setting_lines(review, width, paint),
        _held_lines(review, width),
        *_move_blocks(review.moves, width, paint, each=each),
        _copy_lines(review, width),
        _rollout_lines(review, width),
        *_withheld_blocks(review, width, paint),
        _record_lines(review.record_changes, width, paint),
        _finding_lines(review, top, width, paint),
        _count_lines(review, width),
    )


def write_findings(
    findings: Sequence[Finding],
    width: int,
    paint: Paint | None = None,
    unclaimed: int = 0,
    unselected: Sequence[UnplacedObject] = (),
) -> str:
    """Return the findings, the most severe first, and their counts; and the number of objects that no policy selects, with the first of
    those that have pods."""
    counts = wrap(f"{_capitalize_finding_counts(findings)}{_count_unclaimed(unclaimed)}", width)
    return join_blocks(
        _list_findings(findings, width, paint), wrap_all(describe_unplaced_objects(unselected), width) if unselected else [], counts
    )


def _count_unclaimed(unclaimed: int) -> str:
    return f"; {format_count(unclaimed, 'object')} not selected by any policy (gitsched status --unclaimed)" if unclaimed else ""


def summarize_plan(review: Review) -> str:
    """Return the result of a plan in one sentence, and why workloads are unplaced in another one."""
    return f"{_summarize_changes(review)}{_explain_unplaced(review)}"


def _explain_unplaced(review: Review) -> str:
    return describe_unplaced(review) if review.states["pending"] else ""


def _summarize_changes(review: Review) -> str:
    if review.base.commit:
        earlier = format_revision(review.base.name, review.base.commit)
        return f"{format_headline(review)}: {format_revision(review.source_name, review.source)} against {earlier}."
    source = f"commit {format_revision(review.source_name, review.source)}" if review.source else "the worktree"
    if review.before is None:
        placed, why = describe_first_placement(review)
        recorded = f", and make {format_count(len(review.record_changes), 'recorded decision')}" if review.record_changes else ""
        first = describe_unfetched(review) or "First placement"
        return f"{first}: {source} would create {describe_output_branch(review)} and place {placed}{recorded}.{why}"
    found = review.comparison
    is_wrong = describe_invalid(review) or describe_unknown_fields(review)
    if review.moves or review.record_changes or found.delivery.images or found.unplaced or is_wrong:
        return f"{format_headline(review)}: {source} against {describe_output_branch(review)}."
    if review.changed:
        return f"No workload moves{describe_edits(review)}, but files of {describe_output_branch(review)} change with {source}."
    settings = ", but it changes settings" if review.setting_changes else ""
    return f"No changes: {describe_output_branch(review)} is up to date with {source}{settings}."


def _comparison_lines(review: Review, width: int) -> list[str]:
    lines = []
    if review.base.commit:
        lines += wrap(
            f"Both plans start from {describe_output_branch(review) if review.before else 'an empty output branch'}.",
            width,
        )
    lines += wrap_all((note for note in list_comparison_notes(review) if note != review.comparison.older), width)
    return [*lines, f"Plan {review.comparison.digest}"] if review.comparison.digest else lines


def _describe_consequences(review: Review) -> list[str]:
    """Return what workloads lose, each with its cause and the line of it."""
    compared = review.comparison
    if not (compared.unplaced or compared.stopped or review.record_changes or any(move.before for move in review.moves)):
        return []
    from gitsched.report.consequences import list_consequence_lines, list_consequences  # a reconcile shows none

    return list_consequence_lines(list_consequences(review))


def _list_top_problems(review: Review, others: Sequence[str]) -> list[Finding]:
    """Return the new errors, secrets in plain text, and new warnings about mistakes, in a first placement all warnings, without those that
    `others` state."""
    ends = ("",) if _is_first(review) else MISTAKE_ENDS
    found = [
        finding
        for finding in (review.findings if review.base.findings is None else review.new_findings)
        if (
            finding.severity == "error"
            or finding.code in EXPOSED
            or (finding.severity == "warning" and finding.code.endswith((*ends, "allowance-unused")))
        )
        and finding.code not in REPORTED_ELSEWHERE
        and not any(finding.message in text for text in others)
    ]
    return sorted(found, key=lambda one: (one.severity != "error", one.code not in MISTAKES, one.code not in EXPOSED))


def _is_first(review: Review) -> bool:
    """Return whether everything that is placed is new."""
    return review.before is None and not review.base.commit


def _select_top(review: Review, problems: Sequence[Finding]) -> Sequence[Finding]:
    most = FIRST_PROBLEMS if _is_first(review) else TOP_PROBLEMS
    return problems if len(problems) <= most else problems[: count_shown(len(problems), most)]


def _top_lines(review: Review, problems: Sequence[Finding], width: int, paint: Paint | None) -> list[str]:
    """Return the first problems, and the number of the others, which are among the findings."""
    shown = _select_top(review, problems)
    more = len(problems) - len(shown)
    lines = [line for finding in shown for line in wrap_finding(finding, width, paint)]
    return [*lines, f"and {more:,} more among the findings below"] if more else lines


def _refusal_lines(review: Review, width: int, paint: Paint | None) -> list[str]:
    return _paint(wrap(f"Refused: {review.refused}", width), paint, "Refused:", "error") if review.refused else []


def _setting_lines(review: Review, width: int, paint: Paint | None) -> list[str]:
    """Return the changes of gitsched.yaml."""
    if not review.setting_changes:
        return []
    changes = describe_setting_changes(review, SETTINGS_SHOWN)
    lines = [_paint(wrap(change, width, "  "), paint, "  warning:", "warning") for change in changes]
    return ["Changed settings in gitsched.yaml:", *chain.from_iterable(lines)]


def _withheld_lines(review: Review, width: int, paint: Paint | None, *, planned: bool = False) -> list[str]:
    """Return what the guard withholds, without the moves."""
    if not review.withheld.moves:
        return []
    cause = "" if planned else describe_withheld_cause(review)
    found = describe_withheld(review.withheld, planned=planned, cause=cause, requested=review.comparison.requested)
    lines = wrap_all(found, width)
    return _paint(lines, paint, "Withheld by ", "error")


def _withheld_blocks(review: Review, width: int, paint: Paint | None) -> list[list[str]]:
    """Return what the guard withholds, with the moves."""
    if not review.withheld.moves:
        return []
    return [_withheld_lines(review, width, paint), *_move_blocks(review.withheld.moves, width, paint)]


def _summarize_run(review: Review) -> str:
    source = f"commit {abbreviate_oid(review.source)}"
    if review.refused:
        parts = (_summarize_moves(review), describe_record_changes(review.record_changes))
        return f"Nothing committed. Planned: {', '.join(filter(None, parts))}."
    if review.after is None and review.withheld.moves:
        withheld = format_count(len(review.withheld.moves), "change is", "changes are")
        return f"{withheld} withheld: {describe_output_branch(review)} is otherwise up to date with {source}."
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
        count = review.states["placed"]
        is_all = count and count == len(review.outcomes)
        placed, why = (format_count(count, "workload"), "") if is_all else describe_first_placement(review)
        return f"{commit} (first commit): {placed} placed{recorded}, from {source}.{why}"
    moves = _summarize_moves(review)
    changes = [moves if review.moves else "", describe_record_changes(review.record_changes), "" if review.moves else moves]
    if not review.moves and not review.record_changes:
        changes[0] = "files change"
    changes += [f"{format_count(len(review.withheld.moves), 'change')} withheld"] if review.withheld.moves else []
    return f"{commit}: {', '.join(filter(None, changes))}, from {source}."


def _summarize_moves(review: Review) -> str:
    return f"{summarize_moves(review.moves) or 'no workload moves'}{describe_edits(review)}"


def _summary_lines(review: Review, width: int) -> list[str]:
    if not review.comparison.digest:
        return []
    lines = []
    for row in list_summary_rows(review):
        value = row.after if not row.before else row.after if row.before == row.after else f"{row.before} -> {row.after}"
        lines += wrap(f"{row.name}: {value}", width, "  ")
    return lines


def _copy_lines(review: Review, width: int) -> list[str]:
    """Return the copies that stay for an overlap, and those that go because it is over."""
    if not review.retained_copies and not review.ended_copies:
        return []
    return wrap_all(
        [
            *describe_retained_copies(review.retained_copies, unmerged=review.unmerged, withheld=review.planned_withheld),
            *describe_ended_copies(review.ended_copies),
        ],
        width,
    )


def _image_lines(review: Review, width: int) -> list[str]:
    """Return the images that change in manifests."""
    if not review.comparison.delivery.images:
        return []
    from gitsched.report.images import describe_image_changes  # a reconcile shows none

    return wrap_all(describe_image_changes(review.comparison.delivery.images), width)


def _move_blocks(moves: Sequence[Move], width: int, paint: Paint | None, *, each: bool = False) -> list[list[str]]:
    """Return a table of moves, and groups of those with the same cause."""
    if len(moves) >= MIN_GROUP_SIZE or each or any(move.causes for move in moves):
        from gitsched.report.move_lines import list_move_blocks  # many runs move a few workloads

        return list_move_blocks(moves, width, paint, each=each)
    rows = [make_move_row(move, [move.reason] if move.reason else []) for move in sort_moves(moves)]
    return [format_changes(MOVE_TITLES, rows, width, TABLE_CLUSTERS, paint)]


def _record_lines(changes: Sequence[RecordChange], width: int, paint: Paint | None) -> list[str]:
    """Return the changed recorded decisions, the first RECORDS_SHOWN of them."""
    if not changes:
        return []
    from gitsched.report.causes import list_reasons  # few runs change recorded decisions

    shown = count_shown(len(changes), RECORDS_SHOWN)
    rows = [make_record_row(change, list_reasons(change)) for change in changes[:shown]]
    lines = format_changes(RECORD_TITLES, rows, width, TABLE_CLUSTERS, paint)
    return [*lines, *count_omitted(len(changes) - shown)]


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


def _retained_number_lines(review: Review, width: int) -> list[str]:
    """Return how many workloads keep their placement because of scheduling history."""
    if not review.retained:
        return []
    from gitsched.report.held import describe_retained_number  # as below

    return wrap_all(describe_retained_number(review.retained), width)


def _retained_lines(review: Review, width: int) -> list[str]:
    """Return the workloads that the change affects but that keep their placement because of scheduling history."""
    if not review.retained:
        return []
    from gitsched.report.held import describe_retained  # few runs compare with what history keeps

    return wrap_all(describe_retained(review.retained, {move.key for move in review.moves}), width)


def _loss_lines(review: Review, width: int) -> list[str]:
    """Return the result of --resilience."""
    if review.resilience is None:
        return []
    from gitsched.report.simulation import describe_losses  # only with --resilience

    summary, losses = describe_losses(review.resilience)
    shown = count_shown(len(losses), LOSSES_SHOWN)
    return [*wrap(summary, width), *wrap_all(losses[:shown], width, "  "), *count_omitted(len(losses) - shown)]


def _finding_lines(review: Review, top: Sequence[Finding], width: int, paint: Paint | None) -> list[str]:
    """Return the new findings besides the first of those on `top`, and the fixed ones; all findings if those of the base are unknown."""
    shown = {id(finding) for finding in _select_top(review, top)}
    new = review.findings if review.base.findings is None else review.new_findings
    findings = [finding for finding in _omit_shown_settings(review, new) if id(finding) not in shown]
    if review.base.findings is None:
        return _list_findings(findings, width, paint)
    lines = _list_findings(findings, width, paint)
    for name, found, more in (
        ("Changed", review.changed_findings, "and {} more changed findings"),
        ("Fixed", _list_fixed(review), "and {} more fixed findings"),
    ):
        texts = [f"{name}: {finding.message} [{finding.code}]" for finding in found]
        lines += wrap_all(list_limited(texts, FIXED_SHOWN, more), width)
    return lines


def _list_fixed(review: Review) -> list[Finding]:
    return [finding for finding in review.fixed_findings if finding.code not in REPORTED_ELSEWHERE]


def _omit_shown_settings(review: Review, findings: Sequence[Finding]) -> Sequence[Finding]:
    """Return the findings without those that say what the list of changed settings says."""
    return [finding for finding in findings if finding.code != "sensitive-setting"] if review.setting_changes else findings


def _list_findings(findings: Sequence[Finding], width: int, paint: Paint | None) -> list[str]:
    infos = [finding for finding in findings if finding.severity == "info"]
    problems = [finding for finding in findings if finding.severity != "info"]
    # What selectors and policies want and nothing has comes before what it causes.
    problems.sort(key=lambda finding: (finding.severity != "error", finding.code not in MISTAKES))
    shown = _select_shown(fold_alike(problems)) if problems else []
    lines = []
    omitted = Counter(finding.code for finding in findings)
    for one in shown:
        lines += [*wrap_finding(one.finding, width, paint), *(wrap(one.note, width, "  ") if one.others else [])]
        omitted.subtract([one.finding.code] * (1 + len(one.others)))
    most = max(0, min(INFOS_SHOWN, FINDINGS_SHOWN - len(shown)))
    for finding in infos if len(infos) <= most else infos[: count_shown(len(infos), most)]:
        lines += wrap_finding(finding, width, paint)
        omitted[finding.code] -= 1
    if not omitted.total():
        return lines
    codes = [f"{number} {code}" for code, number in sorted(omitted.items(), key=lambda entry: (-entry[1], entry[0])) if number]
    listed = ", ".join(codes[:CODES_SHOWN]) + (", ..." if len(codes) > CODES_SHOWN else "")
    return [*lines, *wrap(f"and {omitted.total():,} more ({listed}); use -o json for all", width)]


def _select_shown(findings: Sequence[AlikeFindings]) -> list[AlikeFindings]:
    """Return the findings to print, in order; if there are too many, every code gets a share."""
    if count_shown(len(findings), FINDINGS_SHOWN) == len(findings):
        return list(findings)
    seen: Counter[str] = Counter()
    ranked: list[tuple[int, int]] = []
    for index, (finding, _) in enumerate(findings):
        ranked.append((seen[finding.code] // SHOWN_PER_CODE, index))
        seen[finding.code] += 1
    return [findings[index] for index in sorted(index for _, index in sorted(ranked)[:FINDINGS_SHOWN])]


def _capitalize_finding_counts(findings: Sequence[Finding]) -> str:
    counts = format_finding_counts(findings)
    return counts[0].upper() + counts[1:]


def _count_lines(review: Review, width: int) -> list[str]:
    states = review.states
    parts = [
        f"{states['placed']:,} placed",
        f"{states['pending']:,} unplaced" if states["pending"] else "",
        f"{states['stale']:,} stale (previous placement kept)" if states["stale"] else "",
    ]
    sentences = [
        f"{format_count(len(review.outcomes), 'workload')}: {', '.join(filter(None, parts))}{_count_unclaimed(review.unclaimed)}."
    ]
    is_needed = review.outcomes or review.unclaimed or not review.findings  # what is bound to clouds or projects needs no cluster
    if review.cluster_count == 0 and not review.recorded and is_needed:
        sentences.append(
            "No Cluster found in the source, so nothing can be scheduled. Add one: `gitsched init` writes clusters and a policy."
        )
    sentences.append(f"{_count_findings(review)}.")
    if review.next_wakeup:
        sentences.append(f"Next change without a commit: {describe_next_change(review)}.")
    return wrap_all(sentences, width)


def _count_findings(review: Review) -> str:
    """Return the number of findings: of new, existing and fixed ones if those of the base are known."""
    if review.base.findings is None:
        return _capitalize_finding_counts(review.findings)
    new, changed = review.new_findings, review.changed_findings
    existing = list_existing_findings(review, (*new, *changed))
    groups = {"new": new, "changed": changed, "existing": existing, "fixed": _list_fixed(review)}
    return ", ".join(format_finding_counts(found, name) for name, found in groups.items() if found) or "No findings"


def _delivery_lines(review: Review, width: int, paint: Paint | None) -> list[str]:
    """Return the changed manifests as unified diffs; none for a first placement, where every manifest is new."""
    if _is_first(review):
        return []
    from gitsched.report.manifests import list_manifest_lines  # a reconcile shows none

    return list_manifest_lines(review.comparison.delivery, width, paint)


def _paint(lines: list[str], paint: Paint | None, start: str = "", role: Role = "heading") -> list[str]:
    """Return lines of which `start` is painted, by default all."""
    if paint is None:
        return lines
    return paint_start(lines, start, role, paint)
