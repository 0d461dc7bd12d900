"""The sections of the pull request comment, each written with a given level of detail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gitsched.model.changes import Cause, ManifestChange, Move, RetainedWorkload
from gitsched.model.finding import Finding
from gitsched.model.markdown import format_code, format_code_block, format_text
from gitsched.model.scheduling import Outcome
from gitsched.model.simulation import Resilience, ResilienceChange
from gitsched.report.review import Review
from gitsched.report.simulation import describe_losses, format_loss_row, list_loss_headers
from gitsched.report.summary import (
    REVIEWED_TRAILER,
    MoveCounts,
    SummaryRow,
    abbreviate_oid,
    count_moves,
    describe_choices,
    format_choice,
    format_clusters,
    format_finding_counts,
    format_headline,
    format_key,
    format_replica_change,
    list_common_causes,
    list_comparison_notes,
    list_reasons,
    list_summary_rows,
    sort_moves,
)
from gitsched.report.terminal import format_count
from gitsched.report.text import format_manifest_title

_KNOWN_FINDINGS_SHOWN = 20
_MAX_LINE = 300


class DetailLevel(NamedTuple):
    """How much of everything is shown."""

    manifests: int
    names: int
    reasons: bool
    findings: int
    known_findings: bool
    clusters: int
    retained: int
    unplaced: int
    losses: int
    rows: int


class CommentData(NamedTuple):
    """What is told of a review, computed once however often it is written."""

    review: Review
    title: str
    moves: list[Move]
    counts: MoveCounts
    rows: list[SummaryRow]
    causes: list[tuple[Cause, int]]
    new_findings: list[Finding]


def collect_comment_data(review: Review) -> CommentData:
    """Everything that the blocks are written from."""
    counts = count_moves(review.moves)
    rows, causes = list_summary_rows(review, counts), list_common_causes(review.moves)
    return CommentData(review, format_headline(review), sort_moves(review.moves), counts, rows, causes, review.new_findings)


def write_sections(facts: CommentData, detail: DetailLevel, identity: str) -> str:
    """The comment with so much detail."""
    review, moves = facts.review, facts.moves
    left: list[str] = []
    blocks = [
        f"<!-- gitsched:plan id={identity} -->",
        f"### {facts.title}",
        _describe_inputs(review),
        *_list_alerts(facts, detail),
        _write_summary(facts, detail),
        _write_causes(facts, detail),
        _write_moves(moves, detail, left),
        _write_reasons(moves, detail, left),
        _write_choices(review, detail, left),
        _write_retained(review, detail, left),
        _write_losses(review, detail, left),
        _write_cluster_deltas(facts, detail, left),
        _write_findings(facts, detail, left),
        _write_manifests(review, detail, left),
        _write_footer(review, left),
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _describe_inputs(review: Review) -> str:
    head = _format_revision(review.source_name, review.source) if review.source else "the worktree"
    branch = f"branch {format_code(review.branch)}" + (
        f" at {format_code(abbreviate_oid(review.before))}" if review.before else ", which is not there yet"
    )
    if review.base.commit:
        return f"{_format_revision(review.base.name, review.base.commit)} → {head}, both computed over {branch}."
    return f"{head}, against {branch}."


def _format_revision(name: str, oid: str) -> str:
    known = name and not oid.startswith(name)
    return f"{format_code(name)} ({format_code(abbreviate_oid(oid))})" if known else format_code(abbreviate_oid(oid))


def _list_alerts(facts: CommentData, detail: DetailLevel) -> Iterator[str]:
    """What nobody should overlook."""
    review = facts.review
    if review.refused:
        yield _format_alert("CAUTION", f"**gitsched would refuse this:** {format_text(review.refused, 600)}.")
    placeless = [outcome for outcome in review.outcomes if outcome.state == "pending"]
    if placeless:
        yield _format_alert("WARNING", *_list_unplaced(placeless, detail.unplaced))
    errors = sum(finding.severity == "error" for finding in facts.new_findings)
    if errors:
        yield _format_alert(
            "WARNING",
            f"**{format_count(errors, 'new error')}** in the source; what is concerned keeps its last valid state. See the findings.",
        )
    notes = list_comparison_notes(review)
    if notes:
        yield _format_alert("NOTE", *(format_text(note, 600) for note in notes))


def _list_unplaced(outcomes: list[Outcome], most: int) -> Iterator[str]:
    number = len(outcomes)
    yield f"**{format_count(number, 'workload')} without a place:**"
    for outcome in outcomes[:most]:
        yield f"- {format_code(format_key(outcome.key))}: {format_text(outcome.reason or 'no cluster can take it', _MAX_LINE)}"
    if number > most:
        yield f"- and {number - most} more"


def _format_alert(kind: str, *lines: str) -> str:
    return "\n".join([f"> [!{kind}]", *(f"> {line}" for line in lines)])


def _write_summary(facts: CommentData, detail: DetailLevel) -> str:
    lines = []
    for row in facts.rows:
        if row.names and not detail.clusters:
            continue
        value = (
            format_text(row.after, 600)
            if not row.before
            else f"{row.after}, as before"
            if row.before == row.after
            else f"{row.before} → {row.after}"
        )
        lines.append(f"- {row.name}: {value}")
    return "\n".join(lines)


def _write_causes(facts: CommentData, detail: DetailLevel) -> str:
    """What many moves have in common."""
    lines = [f"- {format_count(number, 'workload')}: {_write_cause(cause)}" for cause, number in facts.causes if detail.clusters]
    return "\n".join(["**What makes them move:**", "", *lines]) if lines else ""


def _write_moves(moves: list[Move], detail: DetailLevel, left: list[str]) -> str:
    if not moves:
        return ""
    lines = ["| workload | before | after | replicas | why |", "|---|---|---|---|---|"]
    for move in moves[: detail.rows]:
        before, after = (format_code(format_clusters(places)) for places in (move.before, move.after))
        why = _write_cause(move.causes[0]) if move.causes else format_text(move.reason, _MAX_LINE)
        lines.append(
            f"| {format_code(format_key(move.key))} | {before} | {after} | {format_replica_change(move).replace('->', '→')} | {why} |"
        )
    more = len(moves) - detail.rows
    if more > 0:
        left.append(f"{more} of {len(moves)} moves")
        lines.append(f"| … and {more} more | | | | |")
    return "\n".join(lines) if detail.rows else f"{format_count(len(moves), 'workload')} in all, too many to be listed here."


def _write_cause(cause: Cause) -> str:
    text = format_text(cause.text, _MAX_LINE)
    if cause.location is None:
        return text
    return f"{text} ({'was ' if cause.removed else ''}{format_code(f'{cause.location.path}:{cause.location.line}')})"


def _write_reasons(moves: list[Move], detail: DetailLevel, left: list[str]) -> str:
    """What else there is to say of moves whose row has only the first reason."""
    told = []
    for move in moves[: detail.rows]:
        further = [_write_cause(cause) for cause in move.causes[1:]]
        further += [format_text(text, _MAX_LINE) for text in list_reasons(move)[len(move.causes) or 1 :]]
        if further:
            told.append("\n".join([f"- {format_code(format_key(move.key))}", *(f"  - {text}" for text in further)]))
    if told and not detail.reasons:
        left.append("further reasons")
        return ""
    return _write_details(f"Further reasons of {format_count(len(told), 'move')}", "\n".join(told))


def _write_choices(review: Review, detail: DetailLevel, left: list[str]) -> str:
    """Documents that place nothing themselves, and choose other clusters."""
    if not review.choices:
        return ""
    shown = ((format_key(choice.key), *format_choice(choice)) for choice in review.choices[: detail.retained])
    lines = [f"- {format_code(name)}: {format_code(before)} → {format_code(after)}" for name, before, after in shown]
    more = len(review.choices) - detail.retained
    if more > 0:
        left.append(f"{more} that choose other clusters")
        lines.append(f"- and {more} more")
    return f"**{describe_choices(review)}:**\n\n" + "\n".join(lines)


def _write_retained(review: Review, detail: DetailLevel, left: list[str]) -> str:
    """What the change concerns and memory holds: a reader who expects a move must not have to wonder."""
    if not review.retained:
        return ""
    moved = {move.key for move in review.moves}
    lines = [
        _write_retained_workload(stay, "comes only to" if stay.key in moved else "stays in")
        for stay in review.retained[: detail.retained]
    ]
    more = len(review.retained) - detail.retained
    if more > 0:
        left.append(f"{more} that stay")
        lines.append(f"- and {more} more")
    stays = format_count(len(review.retained), "workload")
    return f"**What was decided before holds {stays} that this concerns:**\n\n" + "\n".join(lines)


def _write_retained_workload(stay: RetainedWorkload, verb: str) -> str:
    places, anew = format_code(format_clusters(stay.current)), format_code(format_clusters(stay.if_rescheduled))
    workload, remedy = format_code(format_key(stay.key)), format_text(stay.remedy, _MAX_LINE)
    return f"- {workload} {verb} {places}; placed anew it would be in {anew}; {remedy}"


def _write_losses(review: Review, detail: DetailLevel, left: list[str]) -> str:
    """What a change does to the resilience of the fleet, and the table of all losses."""
    if review.resilience is None:
        return ""
    verdict, told = describe_losses(review.resilience)
    lines = [f"**{format_text(verdict, _MAX_LINE)}**", *(f"- {format_text(text, _MAX_LINE)}" for text in told[: detail.losses])]
    more = len(told) - detail.losses
    if more > 0:
        left.append(format_count(more, "loss", "losses"))
        lines += [f"- and {more} more"] if detail.losses else []
    table = review.resilience.head if isinstance(review.resilience, ResilienceChange) else review.resilience
    block = "\n".join((lines[0], "", *lines[1:]) if lines[1:] else lines)
    return "\n\n".join(filter(None, (block, _write_loss_table(table, detail.losses))))


def _write_loss_table(table: Resilience, most: int) -> str:
    if not table.rows or not most:
        return ""
    head = [name.lower() for name in list_loss_headers(table.domain_kind)]
    rows = [format_loss_row(row) for row in table.rows[:most]]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {format_code(name)} | {' | '.join(map(format_text, cells))} |" for name, *cells in rows]
    lines += [f"\n… and {len(table.rows) - most} more"] if len(table.rows) > most else []
    return _write_details(f"If any one {table.domain_kind} is lost", "\n".join(lines))


def _write_cluster_deltas(facts: CommentData, detail: DetailLevel, left: list[str]) -> str:
    balances = list(facts.counts.clusters.items())
    if len(balances) < 2:
        return ""
    balances.sort(key=lambda entry: (-entry[1].gained - entry[1].lost, entry[0]))
    lines = ["| cluster | workloads | replicas |", "|---|---|---|"]
    for name, balance in balances[: detail.clusters]:
        workloads = f"+{balance.gained} −{balance.lost}"
        lines.append(f"| {format_code(name)} | {workloads} | +{balance.replicas_gained} −{balance.replicas_lost} |")
    more = len(balances) - detail.clusters
    if more > 0:
        left.append(format_count(more, "cluster"))
        lines.append(f"| … and {more} more | | |")
    return _write_details(f"What {format_count(len(balances), 'cluster')} gain and lose", "\n".join(lines))


def _write_findings(facts: CommentData, detail: DetailLevel, left: list[str]) -> str:
    """What the change brings, or all where nobody knows what stood before."""
    review, fresh = facts.review, facts.new_findings
    stood = _list_known_findings(review, fresh)
    if not review.findings and not review.fixed_count:
        return ""
    lines = [_write_finding(finding) for finding in fresh[: detail.findings]]
    more = len(fresh) - detail.findings
    if more > 0:
        left.append(format_count(more, "finding"))
        lines.append(f"- and {more} more")
    grave = [finding for finding in stood if finding.severity != "info"]
    if grave and detail.known_findings:
        lines += [*([""] if lines else []), "Stood before:", "", *map(_write_finding, grave[:_KNOWN_FINDINGS_SHOWN])]
        lines += [f"- and {len(stood) - _KNOWN_FINDINGS_SHOWN} more"] if len(stood) > _KNOWN_FINDINGS_SHOWN else []
    elif grave:
        left.append(f"{format_count(len(grave), 'finding')} that stood before")
    new = "" if review.base.findings is None else " new"
    parts = [f"{format_finding_counts(fresh) if fresh else 'none'}{new}"]
    parts += [f"{len(stood)} as before"] if stood else []
    parts += [f"{review.fixed_count} mended"] if review.fixed_count and review.base.findings is not None else []
    return _write_details(f"Findings: {', '.join(parts)}", "\n".join(lines)) or f"Findings: {', '.join(parts)}."


def _list_known_findings(review: Review, fresh: list[Finding]) -> list[Finding]:
    new = {id(finding) for finding in fresh}
    return [finding for finding in review.findings if id(finding) not in new]


def _write_finding(finding: Finding) -> str:
    place = f"{format_code(str(finding.location))} " if finding.location else ""
    return f"- **{finding.severity}** {place}{format_text(finding.message, _MAX_LINE)} {format_code(f'[{finding.code}]')}"


def _write_manifests(review: Review, detail: DetailLevel, left: list[str]) -> str:
    rendered, more = review.delivery.rendered, review.delivery.omitted
    if not rendered or (review.before is None and not review.base.commit):
        return ""  # at first everything is new
    blocks = [_write_manifest(entry, body=True) for entry in rendered[: detail.manifests]]
    named, rest = 0, rendered[detail.manifests :]
    if rest:
        names = [_write_manifest(entry, body=False) for entry in rest[: detail.names]]
        named = len(names)
        if names:
            blocks.append("\n".join(f"- {name}" for name in names))
        left.append(f"the text of {format_count(len(rest) + more, 'manifest')}")
    unnamed = len(rest) - named + more
    if unnamed:
        blocks.append(f"… and {unnamed} more")
    return _write_details(
        f"Rendered manifests: {len(rendered) + more} differ in {format_count(review.delivery.files, 'file')}", "\n\n".join(blocks)
    )


def _write_manifest(entry: ManifestChange, *, body: bool) -> str:
    title = format_text(format_manifest_title(entry), 600)
    if not body or not entry.diff:
        return title
    lines = ["".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in line[:400]) for line in entry.diff.splitlines()]
    return f"{title}\n\n{format_code_block(chr(10).join(lines), 'diff')}"


def _write_footer(review: Review, left: Sequence[str]) -> str:
    lines = []
    if left:
        lines.append(f"Left out, to fit: {', '.join(left)}. `gitsched plan -o json` has everything.")
    if review.digest:
        lines.append(
            f"Plan {format_code(review.digest)}. With `{REVIEWED_TRAILER}: {review.digest}` as the last line of the merge commit's "
            "message, `gitsched reconcile` says whether what it does is what was reviewed here."
        )
    return "\n\n".join(f"<sub>{line}</sub>" for line in lines)


def _write_details(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>" if text else ""
