"""The sections of the pull request comment, each written with a given level of detail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gitsched.model.finding import UNSCHEDULABLE, Finding, count_shown, format_count
from gitsched.model.markdown import format_code, format_code_block, format_text
from gitsched.model.mistakes import MISTAKE_ENDS
from gitsched.model.scheduling import Outcome
from gitsched.model.simulation import Resilience, ResilienceChange
from gitsched.named_tuples import NamedTuple
from gitsched.report.causes import describe_unproved
from gitsched.report.consequences import Consequence, count_others, list_consequences, select_shown
from gitsched.report.images import describe_image_changes
from gitsched.report.lines import abbreviate_oid, format_finding_counts, format_key
from gitsched.report.manifests import ManifestGroup, group_manifests
from gitsched.report.markdown_kept import write_held, write_retained, write_retained_copies, write_rollouts
from gitsched.report.markdown_moves import (
    MAX_LINE,
    MIN_LINE,
    write_details,
    write_first_reason,
    write_moves,
    write_reasons,
    write_record_changes,
)
from gitsched.report.move_groups import MoveGroup, group_moves
from gitsched.report.review import Review, list_existing_findings
from gitsched.report.simulation import describe_losses, format_loss_row, list_loss_headers
from gitsched.report.summary import (
    REPORTED_ELSEWHERE,
    REVIEWED_TRAILER,
    MoveCounts,
    SummaryRow,
    count_moves,
    describe_setting_changes,
    describe_withheld,
    format_headline,
    list_comparison_notes,
    list_summary_rows,
)

_KNOWN_FINDINGS_SHOWN = 20
_PROBLEMS_SHOWN = 3
"""New errors and warnings that a comment begins with; the others are among the findings."""
_MAX_SETTINGS, _MAX_SETTING_LINE = 30, 2_000
"""Changed settings that are listed, and characters of each."""


class DetailLevel(NamedTuple):
    """How many entries of each section are shown."""

    manifests: int
    names: int
    reasons: bool
    findings: int
    known_findings: bool
    clusters: int
    retained: int
    unplaced: int
    losses: int
    records: int
    rows: int
    line: int = MAX_LINE


class CommentData(NamedTuple):
    """The data of the comment, computed once for all levels of detail."""

    review: Review
    title: str
    groups: list[MoveGroup]
    counts: MoveCounts
    rows: list[SummaryRow]
    new_findings: list[Finding]
    consequences: list[Consequence]
    unplaced: list[Outcome]

    @property
    def was_unplaced(self) -> bool:
        """Whether all workloads without a cluster, besides those that lose theirs, had none in the base."""
        known = self.review.base.states
        return known is not None and len(self.unplaced) <= known.get("pending", 0)


def collect_comment_data(review: Review) -> CommentData:
    """Collect the data from which all sections are written."""
    counts = count_moves(review.allowed_moves)
    rows, groups = list_summary_rows(review, counts), group_moves(review.moves)
    told = {move.key for move in review.moves if move.becomes_unplaced} | {one.key for one in review.comparison.unplaced}
    unplaced = [outcome for outcome in review.outcomes if outcome.state == "pending" and outcome.key not in told]
    found = list_consequences(review)
    return CommentData(review, format_headline(review), groups, counts, rows, review.new_findings, found, unplaced)


def write_sections(data: CommentData, detail: DetailLevel, identity: str) -> str:
    """Return the comment with the given level of detail."""
    review, groups = data.review, data.groups
    omitted: list[str] = []
    blocks = [
        f"<!-- gitsched:plan id={identity} -->",
        f"### {format_text(data.title, 600)}",
        _describe_inputs(review),
        *_list_alerts(data, detail),
        _write_summary(data, detail),
        describe_unproved(review.moves),
        write_held(review, detail.retained, omitted),
        write_moves(groups, detail.rows, omitted, detail.line),
        _write_images(review),
        write_retained_copies(review, detail.retained),
        write_rollouts(review, detail.retained, omitted),
        write_reasons(groups, detail.rows, omitted, fits=detail.reasons),
        write_record_changes(review.record_changes, detail.records, omitted, detail.line),
        write_retained(review, detail.retained, omitted),
        _write_losses(review, detail, omitted),
        _write_cluster_deltas(data, detail, omitted),
        _write_known_unplaced(data, detail),
        _write_findings(data, detail, omitted),
        _write_manifests(review, detail, omitted),
        _write_footer(review, omitted),
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _describe_inputs(review: Review) -> str:
    head = _format_revision(review.source_name, review.source) if review.source else "the worktree"
    branch = f"branch {format_code(review.branch)}" + (
        f" at {format_code(abbreviate_oid(review.before))}" if review.before else ", which does not exist yet"
    )
    if review.base.commit:
        return f"{_format_revision(review.base.name, review.base.commit)} → {head}, both planned on top of {branch}."
    return f"{head}, against {branch}."


def _format_revision(name: str, oid: str) -> str:
    named = name and not oid.startswith(name)
    return f"{format_code(name)} ({format_code(abbreviate_oid(oid))})" if named else format_code(abbreviate_oid(oid))


def _list_alerts(data: CommentData, detail: DetailLevel) -> Iterator[str]:
    """Yield a refusal, unplaced workloads, new errors and notes on the comparison as Markdown alerts."""
    review = data.review
    yield from _list_consequences(data.consequences, detail.line)
    if review.refused:
        yield _format_alert("CAUTION", f"**gitsched would refuse this change:** {format_text(review.refused, 600)}.")
    if review.withheld.moves:
        title, *lines = describe_withheld(review.withheld, planned=True, requested=review.comparison.requested)
        yield _format_alert("CAUTION", f"**{title}**", *(f"- {format_text(text.strip(), MAX_LINE)}" for text in lines))
    if review.setting_changes:
        kind = "WARNING" if any(change.sensitive for change in review.setting_changes) else "NOTE"
        changes = describe_setting_changes(review, _MAX_SETTINGS)
        yield _format_alert(
            kind, "**Changed settings in `gitsched.yaml`:**", *(f"- {format_text(line, _MAX_SETTING_LINE)}" for line in changes)
        )
    if data.unplaced and not data.was_unplaced:
        yield _format_alert("WARNING", *_list_unplaced(data.unplaced, detail.unplaced))
    yield from _list_problems(data, detail)
    notes = list_comparison_notes(review)
    if notes:
        yield _format_alert("NOTE", *(format_text(note, 600) for note in notes))


def _list_problems(data: CommentData, detail: DetailLevel) -> Iterator[str]:
    """Yield the first new errors and warnings, without those that other alerts have; of the warnings against the output branch, which
    may come from elsewhere, those about mistakes."""
    unplaced = {one.key.resource for one in data.unplaced} | {one.key.resource for one in data.review.comparison.unplaced}
    unplaced |= {move.key.resource for move in data.review.moves if move.becomes_unplaced}

    def is_reported(finding: Finding) -> bool:
        return finding.code in REPORTED_ELSEWHERE or (finding.code == UNSCHEDULABLE and finding.resource in unplaced)

    for severity, rest in (("error", " in the source; affected resources keep their last valid state"), ("warning", "")):
        every = [finding for finding in data.new_findings if finding.severity == severity]
        is_named = severity == "error" or data.review.base.commit
        problems = [finding for finding in every if (is_named or finding.code.endswith(MISTAKE_ENDS)) and not is_reported(finding)]
        problems.sort(key=lambda finding: not finding.code.endswith(MISTAKE_ENDS))
        if problems:
            shown = problems[: count_shown(len(problems), _PROBLEMS_SHOWN)] if detail.findings else []
            more = len(every) - len(shown)
            title = f"**{format_count(len(every), f'new {severity}')}**{rest}:"
            others = [f"- {more:,} more among the findings"] if more else []
            yield _format_alert("WARNING", title, "", *map(_write_finding, shown), *others)


def _list_consequences(found: Sequence[Consequence], line: int) -> Iterator[str]:
    """Yield what workloads lose, each with its cause and the line of it."""
    if not found:
        return
    lines = []
    for one in select_shown(found):
        cause = write_first_reason(one, line)
        lines.append(f"- **{format_text(one.text, MAX_LINE)}**{f': {cause}' if cause else ''}")
    more = count_others(found)
    level = "CAUTION" if any(one.fails for one in found) else "NOTE" if all(one.intended for one in found) else "WARNING"
    yield _format_alert(level, *lines, *([f"- {more}"] if more else []))


def _write_known_unplaced(data: CommentData, detail: DetailLevel) -> str:
    """Return the workloads without a cluster that the base does not place either."""
    if not (data.unplaced and data.was_unplaced):
        return ""
    title, *lines = _list_unplaced(data.unplaced, detail.unplaced)
    return write_details(f"As before: {title.strip('*:')}", "\n".join(lines))


def _list_unplaced(outcomes: list[Outcome], most: int) -> Iterator[str]:
    number = len(outcomes)
    yield f"**{format_count(number, 'unplaced workload')}:**"
    shown = count_shown(number, most)
    for outcome in outcomes[:shown]:
        problems = (finding.message for finding in outcome.findings if finding.severity != "info")
        reason = next(problems, outcome.reason or "no cluster fits")
        yield f"- {format_code(format_key(outcome.key))}: {format_text(reason, MIN_LINE)}"
    if number > shown:
        yield f"- and {number - shown:,} more"


def _format_alert(kind: str, *lines: str) -> str:
    return "\n".join([f"> [!{kind}]", *(f"> {line}" for line in lines)])


def _write_summary(data: CommentData, detail: DetailLevel) -> str:
    lines = []
    for row in data.rows:
        if row.names and not detail.clusters:
            continue
        value = (
            format_text(row.after, 600)
            if not row.before
            else f"{row.after} (unchanged)"
            if row.before == row.after
            else f"{row.before} → {row.after}"
        )
        lines.append(f"- {row.name}: {value}")
    return "\n".join(lines)


def _write_images(review: Review) -> str:
    """Return the images that change in manifests."""
    lines = [f"- {format_text(line, MAX_LINE)}" for line in describe_image_changes(review.comparison.delivery.images, "→")]
    return "\n".join(["**Images:**", "", *lines]) if lines else ""


def _write_losses(review: Review, detail: DetailLevel, omitted: list[str]) -> str:
    """Return the effect of a change on the resilience of the fleet, and the table of all losses."""
    if review.resilience is None:
        return ""
    summary, losses = describe_losses(review.resilience)
    shown = count_shown(len(losses), detail.losses) if detail.losses else 0
    lines = [f"**{format_text(summary, MAX_LINE)}**", *(f"- {format_text(text, MAX_LINE)}" for text in losses[:shown])]
    more = len(losses) - shown
    if more > 0:
        omitted.append(format_count(more, "loss", "losses"))
        lines += [f"- and {more} more"] if detail.losses else []
    table = review.resilience.head if isinstance(review.resilience, ResilienceChange) else review.resilience
    block = "\n".join((lines[0], "", *lines[1:]) if lines[1:] else lines)
    return "\n\n".join(filter(None, (block, _write_loss_table(table, detail.losses))))


def _write_loss_table(table: Resilience, most: int) -> str:
    if not table.rows or not most:
        return ""
    head = [name.lower() for name in list_loss_headers(table.domain_kind)]
    shown = count_shown(len(table.rows), most)
    rows = [format_loss_row(row) for row in table.rows[:shown]]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {format_code(name)} | {' | '.join(map(format_text, cells))} |" for name, *cells in rows]
    lines += [f"\n… and {len(table.rows) - shown} more"] if len(table.rows) > shown else []
    return write_details(f"If any one {table.domain_kind} is lost", "\n".join(lines))


def _write_cluster_deltas(data: CommentData, detail: DetailLevel, omitted: list[str]) -> str:
    deltas = list(data.counts.clusters.items())
    if len(deltas) < 2:
        return ""
    deltas.sort(key=lambda entry: (-entry[1].gained - entry[1].lost, entry[0]))
    lines = ["| cluster | workloads | replicas |", "|---|---|---|"]
    shown = count_shown(len(deltas), detail.clusters) if detail.clusters else 0
    for name, delta in deltas[:shown]:
        workloads = f"+{delta.gained:,} −{delta.lost:,}"
        lines.append(f"| {format_code(name)} | {workloads} | +{delta.replicas_gained:,} −{delta.replicas_lost:,} |")
    more = len(deltas) - shown
    if more > 0:
        omitted.append(format_count(more, "cluster"))
        lines.append(f"| … and {more} more | | |")
    return write_details(f"Changes per cluster: {format_count(len(deltas), 'cluster')}", "\n".join(lines))


def _write_findings(data: CommentData, detail: DetailLevel, omitted: list[str]) -> str:
    """Return new and existing findings; all findings count as new if those of the base are unknown."""
    review, new = data.review, data.new_findings
    existing = list_existing_findings(review, new)
    if not review.findings and not review.fixed_count:
        return ""
    shown = count_shown(len(new), detail.findings) if detail.findings else 0
    lines = [_write_finding(finding) for finding in new[:shown]]
    more = len(new) - shown
    if more > 0:
        omitted.append(format_count(more, "finding"))
        lines.append(f"- and {more} more")
    problems = [finding for finding in existing if finding.severity != "info"]
    if problems and detail.known_findings:
        known = count_shown(len(existing), _KNOWN_FINDINGS_SHOWN)
        lines += [*([""] if lines else []), "Existing findings:", "", *map(_write_finding, problems[:known])]
        lines += [f"- and {len(existing) - known} more"] if len(existing) > known else []
    elif problems:
        omitted.append(format_count(len(problems), "existing finding"))
    suffix = "" if review.base.findings is None else " new"
    parts = [f"{format_finding_counts(new) if new else 'none'}{suffix}"]
    changed = len(review.changed_findings)
    parts += [f"{changed} changed"] if changed else []
    parts += [f"{len(existing) - changed} existing"] if len(existing) > changed else []
    parts += [f"{review.fixed_count} fixed"] if review.fixed_count and review.base.findings is not None else []
    return write_details(f"Findings: {', '.join(parts)}", "\n".join(lines)) or f"Findings: {', '.join(parts)}."


def _write_finding(finding: Finding) -> str:
    location = f"{format_code(str(finding.location))} " if finding.location else ""
    return f"- **{finding.severity}** {location}{format_text(finding.text, MIN_LINE)} {format_code(f'[{finding.code}]')}"


def _write_manifests(review: Review, detail: DetailLevel, omitted: list[str]) -> str:
    rendered, more = review.comparison.delivery.rendered, review.comparison.delivery.omitted
    if not rendered or (review.before is None and not review.base.commit):
        return ""  # every manifest of a first placement is new
    blocks = [_write_manifest(group, body=True) for group in group_manifests(rendered[: detail.manifests])]
    named, rest = 0, rendered[detail.manifests :]
    if rest:
        named = min(len(rest), detail.names)
        names = [_write_manifest(group, body=False) for group in group_manifests(rest[:named])]
        if names:
            blocks.append("\n".join(f"- {name}" for name in names))
        omitted.append(f"the text of {format_count(len(rest) + more, 'manifest')}")
    unnamed = len(rest) - named + more
    if unnamed:
        blocks.append(f"… and {unnamed:,} more")
    return write_details(
        f"Rendered manifests: {len(rendered) + more:,} changed in {format_count(review.comparison.delivery.files, 'file')}",
        "\n\n".join(blocks),
    )


def _write_manifest(group: ManifestGroup, *, body: bool) -> str:
    title = format_text(group.title, 600)
    if not body or not group.diff:
        return title
    lines = ["".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in line[:400]) for line in group.diff.splitlines()]
    return f"{title}\n\n{format_code_block(chr(10).join(lines), 'diff')}"


def _write_footer(review: Review, omitted: Sequence[str]) -> str:
    lines = []
    if omitted:
        lines.append(f"Omitted to fit the size limit: {', '.join(omitted)}. `gitsched plan -o json` prints everything.")
    if digest := review.comparison.digest:
        lines.append(
            f"Plan {format_code(digest)}. If the last line of the merge commit's message is `{REVIEWED_TRAILER}: {digest}`, "
            "`gitsched reconcile` reports whether it makes exactly the changes reviewed here."
        )
    return "\n\n".join(f"<sub>{line}</sub>" for line in lines)
