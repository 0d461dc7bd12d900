"""A run as a person reads it in a terminal: the verdict first, then what moves and why, then what is wrong, the manifests last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gitsched.model.change import Move, Rendered
from gitsched.model.finding import Finding
from gitsched.model.time import format_time
from gitsched.report.review import Review
from gitsched.report.simulation import tell_losses
from gitsched.report.table import columns, count, fits, printable, wrap
from gitsched.report.verdict import (
    CLUSTERS_SHOWN,
    count_findings,
    headline,
    label,
    list_common_causes,
    list_provenance,
    list_reasons,
    list_rows,
    order_moves,
    output_branch,
    revision,
    short,
    summarise,
    tell_choices,
    write_choice,
    write_places,
)

FINDINGS_SHOWN = 50
INFOS_SHOWN = 5
"""Findings that are printed one by one, and those of severity info among them; JSON has all."""
ALIKE_SHOWN = 10
"""Findings of one code that are printed before the next ones of all codes."""
CODES_SHOWN = 3
"""Codes of findings that are counted but not printed."""
MOVES_SHOWN = 500
"""Workloads that are printed one by one, the gravest first; JSON has all."""
STAYS_SHOWN = 20
"""Workloads that stay, and could be elsewhere, that are printed one by one."""
CHOICES_SHOWN = 20
"""Placements that choose other clusters that are printed one by one."""
LOSSES_SHOWN = 20
"""Losses, or workloads that a loss hits otherwise than before, that are printed one by one."""
DIFF_LINES = 400
"""Lines of manifests that are printed; JSON has more."""


def write_plan(review: Review, width: int) -> str:
    """What a commit would change; lines of at most `width` characters where words allow, but for manifests."""
    return _join(
        wrap(plan_verdict(review), width),
        _provenance_lines(review, width),
        wrap(f"Refused: {review.refused}", width) if review.refused else [],
        _summary_lines(review, width),
        _cause_lines(review.moves, width),
        _move_lines(order_moves(review.moves), width),
        _choice_lines(review, width),
        _stay_lines(review, width),
        _loss_lines(review, width),
        _finding_lines(review, width),
        _count_lines(review, width),
        _delivery_lines(review, width),
    )


def write_run(review: Review, width: int) -> str:
    """What a reconcile did."""
    return _join(
        wrap(_run_verdict(review), width),
        [line for text in review.reviewed for line in wrap(text, width)],
        wrap(f"Refused: {review.refused}", width) if review.refused else [],
        _move_lines(review.moves, width),
        _choice_lines(review, width),
        _finding_lines(review, width),
        _count_lines(review, width),
    )


def write_findings(findings: Sequence[Finding], width: int) -> str:
    """Findings, worst first, and their counts."""
    return _join(_list_findings(findings, width), wrap(_say_findings(findings), width))


def plan_verdict(review: Review) -> str:
    """What a plan comes to, in one sentence."""
    if review.base.commit:
        earlier = revision(review.base.name, review.base.commit)
        return f"{headline(review)}: {revision(review.name, review.source)} against {earlier}."
    source = f"commit {revision(review.name, review.source)}" if review.source else "the worktree"
    if review.before is None:
        placed = count(review.states["placed"], "workload")
        return f"First placement: {source} would create {output_branch(review)} and place {placed}."
    if review.moves:
        return f"{headline(review)}: {source} against {output_branch(review)}."
    if review.choices:
        return f"{headline(review)}: {source} against {output_branch(review)}."
    if review.changed:
        return f"No workload moves, but files of {output_branch(review)} change with {source}."
    return f"Nothing changes: {output_branch(review)} already is what {source} asks for."


def _provenance_lines(review: Review, width: int) -> list[str]:
    lines = []
    if review.base.commit:
        lines += wrap(
            f"Both are computed over {output_branch(review) if review.before else 'no output branch, as there is none yet'}.", width
        )
    for note in list_provenance(review):
        lines += wrap(note, width)
    return [*lines, f"Plan {review.digest}"] if review.digest else lines


def _run_verdict(review: Review) -> str:
    source = f"commit {short(review.source)}"
    if review.refused:
        return f"Nothing committed. {summarise(review.moves) or 'The change'}."
    if review.after is None:
        return f"Nothing changed: {output_branch(review)} already is what {source} asks for."
    commit = f"Committed {short(review.after)} to {output_branch(review, head=False)}"
    if review.before is None:
        return f"{commit}, its first: {count(review.states['placed'], 'workload')} placed from {source}."
    quiet = f"{tell_choices(review)}, no workload moves" if review.choices else "files change, no workload moves"
    return f"{commit}: {summarise(review.moves) or quiet}, from {source}."


def _summary_lines(review: Review, width: int) -> list[str]:
    if not review.digest:
        return []
    lines = []
    for row in list_rows(review):
        value = row.after if not row.before else row.after if row.before == row.after else f"{row.before} -> {row.after}"
        lines += wrap(f"{row.name}: {value}", width, "  ")
    return lines


def _cause_lines(moves: Sequence[Move], width: int) -> list[str]:
    return [line for cause, number in list_common_causes(moves) for line in wrap(f"{count(number, 'workload')}: {cause}", width)]


def _move_lines(moves: Sequence[Move], width: int) -> list[str]:
    """A table where it fits; else a few lines for each move, which can still be read at 80 columns."""
    more = len(moves) - MOVES_SHOWN
    if more > 0:
        return [*_move_lines(moves[:MOVES_SHOWN], width), f"and {more} more: -o json has all"]
    if not moves:
        return []
    for shown in (CLUSTERS_SHOWN, 3, 2):
        table = columns(
            [("WORKLOAD", "BEFORE", "AFTER", "REASON"), *((*_row(move, shown), "; ".join(list_reasons(move))) for move in moves)]
        )
        if fits(table, width):
            return table
    lines = []
    for move in moves:
        workload, before, after = _row(move, CLUSTERS_SHOWN)
        lines += [*wrap(workload, width), *wrap(f"{before} -> {after}", width, "  ")]
        lines += [line for reason in list_reasons(move) for line in wrap(reason, width, "  ")]
    return lines


def _row(move: Move, shown: int) -> tuple[str, str, str]:
    return label(move.key), write_places(move.before, shown), write_places(move.after, shown)


def _choice_lines(review: Review, width: int) -> list[str]:
    """Documents that place nothing themselves: what they choose is for other programs."""
    lines = []
    for choice in review.choices[:CHOICES_SHOWN]:
        before, after = write_choice(choice)
        lines += wrap(f"{label(choice.key)} chooses {before} -> {after}", width)
    more = len(review.choices) - CHOICES_SHOWN
    return [*lines, f"and {more} more: -o json has all"] if more > 0 else lines


def _stay_lines(review: Review, width: int) -> list[str]:
    """What the change concerns and memory holds."""
    lines, moved = [], {move.key for move in review.moves}
    for stay in review.stays[:STAYS_SHOWN]:
        verb = "comes only to" if stay.key in moved else "stays in"
        lines += wrap(f"{label(stay.key)} {verb} {write_places(stay.places)}", width)
        lines += wrap(f"placed anew it would be in {write_places(stay.anew)}; {stay.remedy}", width, "  ")
    more = len(review.stays) - STAYS_SHOWN
    return [*lines, f"and {more} more stay: -o json has all"] if more > 0 else lines


def _loss_lines(review: Review, width: int) -> list[str]:
    """What losses would do, where somebody asked."""
    if review.resilience is None:
        return []
    verdict, told = tell_losses(review.resilience)
    more = [f"and {len(told) - LOSSES_SHOWN} more: -o json has all"] if len(told) > LOSSES_SHOWN else []
    return [*wrap(verdict, width), *(line for text in told[:LOSSES_SHOWN] for line in wrap(text, width, "  ")), *more]


def _finding_lines(review: Review, width: int) -> list[str]:
    """What the change brings, where that is known; else everything."""
    if review.base.findings is None:
        return _list_findings(review.findings, width)
    fresh = review.fresh
    lines = _list_findings(fresh, width)
    known = len(review.findings) - len(fresh)
    parts = [
        f"{count(known, 'finding')} stood before" if known else "",
        f"{review.mended} mended" if review.mended else "",
    ]
    said = ", ".join(filter(None, parts))
    return [*lines, *wrap(f"{said}.", width)] if said else lines


def _list_findings(findings: Sequence[Finding], width: int) -> list[str]:
    infos = [finding for finding in findings if finding.severity == "info"]
    grave = [finding for finding in findings if finding.severity != "info"]
    shown = [*_choose(grave), *infos[:INFOS_SHOWN]][:FINDINGS_SHOWN]
    lines = [line for finding in shown for line in wrap(str(finding), width)]
    left = Counter(finding.code for finding in findings)
    left.subtract(finding.code for finding in shown)
    if not left.total():
        return lines
    codes = [f"{number} {code}" for code, number in sorted(left.items(), key=lambda entry: (-entry[1], entry[0])) if number]
    named = ", ".join(codes[:CODES_SHOWN]) + (", ..." if len(codes) > CODES_SHOWN else "")
    return [*lines, *wrap(f"and {left.total()} more ({named}): -o json has all", width)]


def _choose(findings: Sequence[Finding]) -> list[Finding]:
    """As many as are printed, in their order: where they are too many, no code crowds out the others."""
    if len(findings) <= FINDINGS_SHOWN:
        return list(findings)
    rank: Counter[str] = Counter()
    places: list[tuple[int, int]] = []
    for at, finding in enumerate(findings):
        places.append((rank[finding.code] // ALIKE_SHOWN, at))
        rank[finding.code] += 1
    return [findings[at] for at in sorted(at for _, at in sorted(places)[:FINDINGS_SHOWN])]


def _say_findings(findings: Sequence[Finding]) -> str:
    said = count_findings(findings)
    return said[0].upper() + said[1:]


def _count_lines(review: Review, width: int) -> list[str]:
    states = review.states
    parts = [
        f"{states['placed']} placed",
        f"{states['pending']} without a place" if states["pending"] else "",
        f"{states['stale']} kept as decided before" if states["stale"] else "",
    ]
    unclaimed = f"; {count(review.unclaimed, 'object')} selected by no policy" if review.unclaimed else ""
    lines = wrap(f"{count(len(review.outcomes), 'workload')}: {', '.join(filter(None, parts))}{unclaimed}.", width)
    if review.clusters == 0:
        lines += wrap("No cluster is described, so that nothing can be placed.", width)
    lines += wrap(f"{_say_findings(review.findings)}.", width)
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
        body = [printable(line) for line in entry.diff.splitlines()]
        if len(lines) + len(body) > DIFF_LINES:
            break
        lines += [*wrap(title_of(entry), width), *body]
        shown += 1
    left = len(review.delivery.rendered) - shown + review.delivery.more
    return [*lines, f"and {count(left, 'more manifest')}: -o json has their names"] if left else lines


def title_of(entry: Rendered) -> str:
    """One manifest in a sentence: what becomes of it, and where."""
    places = ", ".join(entry.clusters[:CLUSTERS_SHOWN])
    more = len(entry.clusters) - CLUSTERS_SHOWN
    where = f"{entry.verb} in {places}{f' and {more} more' if more > 0 else ''}"
    copied = f", as it is in {entry.copied}{' but for this' if entry.diff else ''}" if entry.copied else ""
    return f"{entry.path} {where}{copied}{f' ({entry.note})' if entry.note else ''}"


def _join(*blocks: list[str]) -> str:
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"
