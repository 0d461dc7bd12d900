"""The blocks of a plan in Markdown, each with as much detail as it is given room for. What is left out is added to a list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gitsched.model.change import Cause, Move, Rendered, Stay
from gitsched.model.finding import Finding
from gitsched.model.markdown import code, fence, prose
from gitsched.model.outcome import Outcome
from gitsched.model.simulation import Resilience, ResilienceChange
from gitsched.report.review import Review
from gitsched.report.simulation import loss_cells, loss_head, tell_losses
from gitsched.report.table import count
from gitsched.report.tally import Tally, tally
from gitsched.report.text import title_of
from gitsched.report.verdict import (
    REVIEWED,
    Row,
    count_findings,
    headline,
    label,
    list_common_causes,
    list_provenance,
    list_reasons,
    list_rows,
    order_moves,
    short,
    tell_choices,
    write_choice,
    write_places,
    write_replicas,
)

_KNOWN = 20
_LINE = 300


class Detail(NamedTuple):
    """How much of everything is shown."""

    manifests: int
    names: int
    reasons: bool
    findings: int
    known: bool
    clusters: int
    stays: int
    placeless: int
    losses: int
    rows: int


class Facts(NamedTuple):
    """What is told of a review, computed once however often it is written."""

    review: Review
    title: str
    moves: list[Move]
    counts: Tally
    rows: list[Row]
    causes: list[tuple[Cause, int]]
    fresh: list[Finding]


def gather_facts(review: Review) -> Facts:
    """Everything that the blocks are written from."""
    counts = tally(review.moves)
    rows, causes = list_rows(review, counts), list_common_causes(review.moves)
    return Facts(review, headline(review), order_moves(review.moves), counts, rows, causes, review.fresh)


def write_sections(facts: Facts, detail: Detail, identity: str) -> str:
    """The comment with so much detail."""
    review, moves = facts.review, facts.moves
    left: list[str] = []
    blocks = [
        f"<!-- gitsched:plan id={identity} -->",
        f"### {facts.title}",
        _describe_inputs(review),
        *_warn(facts, detail),
        _write_summary(facts, detail),
        _write_causes(facts, detail),
        _write_moves(moves, detail, left),
        _write_reasons(moves, detail, left),
        _write_choices(review, detail, left),
        _write_stays(review, detail, left),
        _write_losses(review, detail, left),
        _write_balance(facts, detail, left),
        _write_findings(facts, detail, left),
        _write_manifests(review, detail, left),
        _write_end(review, left),
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _describe_inputs(review: Review) -> str:
    head = _revision(review.name, review.source) if review.source else "the worktree"
    branch = f"branch {code(review.branch)}" + (
        f" at {code(short(review.before))}" if review.before else ", which is not there yet"
    )
    if review.base.commit:
        return f"{_revision(review.base.name, review.base.commit)} → {head}, both computed over {branch}."
    return f"{head}, against {branch}."


def _revision(name: str, oid: str) -> str:
    known = name and not oid.startswith(name)
    return f"{code(name)} ({code(short(oid))})" if known else code(short(oid))


def _warn(facts: Facts, detail: Detail) -> Iterator[str]:
    """What nobody should overlook."""
    review = facts.review
    if review.refused:
        yield _alert("CAUTION", f"**gitsched would refuse this:** {prose(review.refused, 600)}.")
    placeless = [outcome for outcome in review.outcomes if outcome.state == "pending"]
    if placeless:
        yield _alert("WARNING", *_list_placeless(placeless, detail.placeless))
    errors = sum(finding.severity == "error" for finding in facts.fresh)
    if errors:
        yield _alert(
            "WARNING",
            f"**{count(errors, 'new error')}** in the source; what is concerned keeps its last valid state. See the findings.",
        )
    notes = list_provenance(review)
    if notes:
        yield _alert("NOTE", *(prose(note, 600) for note in notes))


def _list_placeless(outcomes: list[Outcome], most: int) -> Iterator[str]:
    number = len(outcomes)
    yield f"**{count(number, 'workload')} without a place:**"
    for outcome in outcomes[:most]:
        yield f"- {code(label(outcome.key))}: {prose(outcome.reason or 'no cluster can take it', _LINE)}"
    if number > most:
        yield f"- and {number - most} more"


def _alert(kind: str, *lines: str) -> str:
    return "\n".join([f"> [!{kind}]", *(f"> {line}" for line in lines)])


def _write_summary(facts: Facts, detail: Detail) -> str:
    lines = []
    for row in facts.rows:
        if row.names and not detail.clusters:
            continue
        value = (
            prose(row.after, 600)
            if not row.before
            else f"{row.after}, as before"
            if row.before == row.after
            else f"{row.before} → {row.after}"
        )
        lines.append(f"- {row.name}: {value}")
    return "\n".join(lines)


def _write_causes(facts: Facts, detail: Detail) -> str:
    """What many moves have in common."""
    lines = [f"- {count(number, 'workload')}: {_write_cause(cause)}" for cause, number in facts.causes if detail.clusters]
    return "\n".join(["**What makes them move:**", "", *lines]) if lines else ""


def _write_moves(moves: list[Move], detail: Detail, left: list[str]) -> str:
    if not moves:
        return ""
    lines = ["| workload | before | after | replicas | why |", "|---|---|---|---|---|"]
    for move in moves[: detail.rows]:
        before, after = (code(write_places(places)) for places in (move.before, move.after))
        why = _write_cause(move.causes[0]) if move.causes else prose(move.reason, _LINE)
        lines.append(f"| {code(label(move.key))} | {before} | {after} | {write_replicas(move).replace('->', '→')} | {why} |")
    more = len(moves) - detail.rows
    if more > 0:
        left.append(f"{more} of {len(moves)} moves")
        lines.append(f"| … and {more} more | | | | |")
    return "\n".join(lines) if detail.rows else f"{count(len(moves), 'workload')} in all, too many to be listed here."


def _write_cause(cause: Cause) -> str:
    text = prose(cause.text, _LINE)
    if cause.location is None:
        return text
    return f"{text} ({'was ' if cause.gone else ''}{code(f'{cause.location.path}:{cause.location.line}')})"


def _write_reasons(moves: list[Move], detail: Detail, left: list[str]) -> str:
    """What else there is to say of moves whose row has only the first reason."""
    told = []
    for move in moves[: detail.rows]:
        further = [_write_cause(cause) for cause in move.causes[1:]]
        further += [prose(text, _LINE) for text in list_reasons(move)[len(move.causes) or 1 :]]
        if further:
            told.append("\n".join([f"- {code(label(move.key))}", *(f"  - {text}" for text in further)]))
    if told and not detail.reasons:
        left.append("further reasons")
        return ""
    return _fold(f"Further reasons of {count(len(told), 'move')}", "\n".join(told))


def _write_choices(review: Review, detail: Detail, left: list[str]) -> str:
    """Documents that place nothing themselves, and choose other clusters."""
    if not review.choices:
        return ""
    shown = ((label(choice.key), *write_choice(choice)) for choice in review.choices[: detail.stays])
    lines = [f"- {code(name)}: {code(before)} → {code(after)}" for name, before, after in shown]
    more = len(review.choices) - detail.stays
    if more > 0:
        left.append(f"{more} that choose other clusters")
        lines.append(f"- and {more} more")
    return f"**{tell_choices(review)}:**\n\n" + "\n".join(lines)


def _write_stays(review: Review, detail: Detail, left: list[str]) -> str:
    """What the change concerns and memory holds: a reader who expects a move must not have to wonder."""
    if not review.stays:
        return ""
    moved = {move.key for move in review.moves}
    lines = [_write_stay(stay, "comes only to" if stay.key in moved else "stays in") for stay in review.stays[: detail.stays]]
    more = len(review.stays) - detail.stays
    if more > 0:
        left.append(f"{more} that stay")
        lines.append(f"- and {more} more")
    stays = count(len(review.stays), "workload")
    return f"**What was decided before holds {stays} that this concerns:**\n\n" + "\n".join(lines)


def _write_stay(stay: Stay, verb: str) -> str:
    places, anew = code(write_places(stay.places)), code(write_places(stay.anew))
    return f"- {code(label(stay.key))} {verb} {places}; placed anew it would be in {anew}; {prose(stay.remedy, _LINE)}"


def _write_losses(review: Review, detail: Detail, left: list[str]) -> str:
    """What a change does to the resilience of the fleet, and the table of all losses."""
    if review.resilience is None:
        return ""
    verdict, told = tell_losses(review.resilience)
    lines = [f"**{prose(verdict, _LINE)}**", *(f"- {prose(text, _LINE)}" for text in told[: detail.losses])]
    more = len(told) - detail.losses
    if more > 0:
        left.append(count(more, "loss", "losses"))
        lines += [f"- and {more} more"] if detail.losses else []
    table = review.resilience.head if isinstance(review.resilience, ResilienceChange) else review.resilience
    block = "\n".join((lines[0], "", *lines[1:]) if lines[1:] else lines)
    return "\n\n".join(filter(None, (block, _write_table(table, detail.losses))))


def _write_table(table: Resilience, most: int) -> str:
    if not table.rows or not most:
        return ""
    head = [name.lower() for name in loss_head(table.by)]
    rows = [loss_cells(row) for row in table.rows[:most]]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {code(name)} | {' | '.join(map(prose, cells))} |" for name, *cells in rows]
    lines += [f"\n… and {len(table.rows) - most} more"] if len(table.rows) > most else []
    return _fold(f"If any one {table.by} is lost", "\n".join(lines))


def _write_balance(facts: Facts, detail: Detail, left: list[str]) -> str:
    balances = list(facts.counts.clusters.items())
    if len(balances) < 2:
        return ""
    balances.sort(key=lambda entry: (-entry[1].gained - entry[1].lost, entry[0]))
    lines = ["| cluster | workloads | replicas |", "|---|---|---|"]
    for name, balance in balances[: detail.clusters]:
        workloads = f"+{balance.gained} −{balance.lost}"
        lines.append(f"| {code(name)} | {workloads} | +{balance.replicas_gained} −{balance.replicas_lost} |")
    more = len(balances) - detail.clusters
    if more > 0:
        left.append(count(more, "cluster"))
        lines.append(f"| … and {more} more | | |")
    return _fold(f"What {count(len(balances), 'cluster')} gain and lose", "\n".join(lines))


def _write_findings(facts: Facts, detail: Detail, left: list[str]) -> str:
    """What the change brings, or all where nobody knows what stood before."""
    review, fresh = facts.review, facts.fresh
    stood = _list_known(review, fresh)
    if not review.findings and not review.mended:
        return ""
    lines = [_write_finding(finding) for finding in fresh[: detail.findings]]
    more = len(fresh) - detail.findings
    if more > 0:
        left.append(count(more, "finding"))
        lines.append(f"- and {more} more")
    grave = [finding for finding in stood if finding.severity != "info"]
    if grave and detail.known:
        lines += [*([""] if lines else []), "Stood before:", "", *map(_write_finding, grave[:_KNOWN])]
        lines += [f"- and {len(stood) - _KNOWN} more"] if len(stood) > _KNOWN else []
    elif grave:
        left.append(f"{count(len(grave), 'finding')} that stood before")
    new = "" if review.base.findings is None else " new"
    parts = [f"{count_findings(fresh) if fresh else 'none'}{new}"]
    parts += [f"{len(stood)} as before"] if stood else []
    parts += [f"{review.mended} mended"] if review.mended and review.base.findings is not None else []
    return _fold(f"Findings: {', '.join(parts)}", "\n".join(lines)) or f"Findings: {', '.join(parts)}."


def _list_known(review: Review, fresh: list[Finding]) -> list[Finding]:
    new = {id(finding) for finding in fresh}
    return [finding for finding in review.findings if id(finding) not in new]


def _write_finding(finding: Finding) -> str:
    place = f"{code(str(finding.location))} " if finding.location else ""
    return f"- **{finding.severity}** {place}{prose(finding.message, _LINE)} {code(f'[{finding.code}]')}"


def _write_manifests(review: Review, detail: Detail, left: list[str]) -> str:
    rendered, more = review.delivery.rendered, review.delivery.more
    if not rendered or (review.before is None and not review.base.commit):
        return ""  # at first everything is new
    blocks = [_write_manifest(entry, body=True) for entry in rendered[: detail.manifests]]
    named, rest = 0, rendered[detail.manifests :]
    if rest:
        names = [_write_manifest(entry, body=False) for entry in rest[: detail.names]]
        named = len(names)
        if names:
            blocks.append("\n".join(f"- {name}" for name in names))
        left.append(f"the text of {count(len(rest) + more, 'manifest')}")
    unnamed = len(rest) - named + more
    if unnamed:
        blocks.append(f"… and {unnamed} more")
    return _fold(
        f"Rendered manifests: {len(rendered) + more} differ in {count(review.delivery.files, 'file')}", "\n\n".join(blocks)
    )


def _write_manifest(entry: Rendered, *, body: bool) -> str:
    title = prose(title_of(entry), 600)
    if not body or not entry.diff:
        return title
    lines = ["".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in line[:400]) for line in entry.diff.splitlines()]
    return f"{title}\n\n{fence(chr(10).join(lines), 'diff')}"


def _write_end(review: Review, left: Sequence[str]) -> str:
    lines = []
    if left:
        lines.append(f"Left out, to fit: {', '.join(left)}. `gitsched plan -o json` has everything.")
    if review.digest:
        lines.append(
            f"Plan {code(review.digest)}. With `{REVIEWED}: {review.digest}` as the last line of the merge commit's message, "
            "`gitsched reconcile` says whether what it does is what was reviewed here."
        )
    return "\n\n".join(f"<sub>{line}</sub>" for line in lines)


def _fold(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>" if text else ""
