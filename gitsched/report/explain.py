"""Why one workload is where it is, in the order in which it was decided."""

from __future__ import annotations

from gitsched.model.explanation import Candidate, Counterfactual, Explanation, Override, Share, Table
from gitsched.report.blocks import Block, Grid, Items, Paragraph
from gitsched.report.table import columns, count, fits, wrap


def write_explanation(value: Explanation, width: int) -> str:
    """Policy, groups, clusters, division and result; lines of at most `width` characters where words allow."""
    lines = wrap(value.workload + (f"  ({value.location})" if value.location else ""), width)
    if not value.policy:
        lines += _section("Policy", ["none selects it", value.policy_reason], width)
        if value.attached:
            lines += _section("Attached to", list(value.attached), width)
            lines += _section("Why now", [value.trigger], width)
            lines += _section("Result", [_share(share) for share in value.result] or ["nowhere"], width)
            lines += _section("Overrides, in order", list(map(describe_override, value.overrides)), width)
        lines += _section("Findings", [str(finding) for finding in value.findings], width)
        return "\n".join(lines) + "\n"
    if value.narrowed:
        lines += _section("Policy", [value.policy], width)
        lines += _candidates(value.candidates, value.among, width)
        lines += _section("Result", [f"it runs in {_share(share)}" for share in value.result], width)
        lines += _section("Would be chosen if", list_advice(value), width)
        return "\n".join(lines) + "\n"
    losers = [f"not {loser.policy}: {loser.why}" for loser in value.losers]
    policy = f"{value.policy}: {value.policy_reason}" if value.policy_reason else value.policy
    lines += _section("Policy", [policy, value.claim, *losers], width)
    lines += _section("Attached to", list(value.attached), width)
    lines += _section("Why now", [value.trigger], width)
    groups = [f"{attempt.name or 'the only group'}: {attempt.verdict}" + _after(attempt.message) for attempt in value.attempts]
    lines += _section("Groups, in order", groups, width)
    lines += _candidates(value.candidates, value.among, width)
    lines += _section("Selection", [*value.selection], width)
    lines += _section("Division", [*value.division_rule, *map(_weigh, value.division)], width)
    lines += _section("Result", [_share(share) for share in value.result] or ["nowhere"], width)
    lines += _section("Overrides, in order", list(map(describe_override, value.overrides)), width)
    lines += _section("Would be chosen if", list_advice(value), width)
    lines += [line for table in value.tables for line in _table(table, width)]
    lines += _section("Findings", [str(finding) for finding in value.findings], width)
    return "\n".join(lines) + "\n"


def list_explanation_blocks(value: Explanation) -> list[Block]:
    """The same for Markdown."""
    head = (value.among.capitalize(), "Group", "Fits", "Why")
    rows = [(e.verdict.name, e.group, "yes" if e.verdict.eligible else "no", describe_candidate(e)) for e in value.candidates]
    policy = f"{value.policy or 'none selects it'}: {value.policy_reason}" if value.policy_reason else value.policy
    losers = (f"not {loser.policy}: {loser.why}" for loser in value.losers)
    groups = [f"{attempt.name or 'the only group'}: {attempt.verdict}" + _after(attempt.message) for attempt in value.attempts]
    result = [_share(share) for share in value.result] or ["nowhere"]
    return [
        Paragraph(value.workload + (f"  ({value.location})" if value.location else ""), heading=True),
        Items("Result", [] if value.narrowed and not value.result else result),
        Items("Policy", list(filter(None, [policy, value.claim, *losers]))),
        Items("Attached to", value.attached),
        Items("Why now", [value.trigger] if value.trigger and not value.narrowed else []),
        Items("Groups, in order", [] if value.narrowed else groups),
        Grid(head, rows),
        Items("Selection", value.selection),
        Items("Division", [*value.division_rule, *map(_weigh, value.division)]),
        Items("Overrides, in order", [] if value.narrowed else list(map(describe_override, value.overrides))),
        Items("Would be chosen if", list_advice(value)),
        *(Grid(table.columns, table.rows, caption=table.title) for table in value.tables if not value.narrowed),
        Items("Findings", [] if value.narrowed else [str(finding) for finding in value.findings]),
    ]


def list_advice(value: Explanation) -> list[str]:
    """What would have to be otherwise, a line for each cluster."""
    lines = [f"{entry.cluster}: {_advise(entry)}" for entry in value.advice]
    return [*lines, f"{count(value.unasked, 'more cluster')}: ask with --why-not CLUSTER"] if value.unasked else lines


def _advise(entry: Counterfactual) -> str:
    changes = " and ".join(change.text + (f" ({change.location})" if change.location else "") for change in entry.changes)
    if not changes:
        return "nobody knows by what change"
    if not entry.enough:
        return f"at least {changes}; whether that is enough is not known"
    return changes + (f"; it would get {count(entry.gets, 'replica')}" if entry.gets is not None else "")


def _section(title: str, entries: list[str], width: int) -> list[str]:
    shown = [line for entry in entries if entry for line in wrap(entry, width, "  ")]
    return ["", title, *shown] if shown else []


def _table(table: Table, width: int) -> list[str]:
    """A table where it fits, else a paragraph for each row."""
    head, *rest = table.columns
    lines = columns([(f"  {head.upper()}", *map(str.upper, rest)), *((f"  {first}", *more) for first, *more in table.rows)])
    if not fits(lines, width):
        words = (
            f"{row[0]}: " + ", ".join(f"{name} {cell}" for name, cell in zip(rest, row[1:], strict=True)) for row in table.rows
        )
        lines = [line for text in words for line in wrap(text, width, "  ")]
    return ["", table.title, *lines] if table.rows else []


def _candidates(candidates: tuple[Candidate, ...], among: str, width: int) -> list[str]:
    """A table where it fits, else a paragraph for each candidate."""
    if not candidates:
        return []
    rows = [
        (f"  {entry.verdict.name}", entry.group, "yes" if entry.verdict.eligible else "no", describe_candidate(entry))
        for entry in candidates
    ]
    if len({entry.group for entry in candidates}) > 1:
        table = columns([(f"  {among.upper()}", "GROUP", "FITS", "WHY"), *rows])
    else:
        table = columns([(f"  {among.upper()}", "FITS", "WHY"), *((name, fit, why) for name, _, fit, why in rows)])
        rows = [(name, "", fit, why) for name, _, fit, why in rows]
    if not fits(table, width):
        words = ((f"{name.strip()}{f' in {group}' if group else ''}: {fit}" + _after(why)) for name, group, fit, why in rows)
        table = [line for text in words for line in wrap(text, width, "  ")]
    return ["", f"{among.capitalize()}s", *table]


def describe_candidate(entry: Candidate) -> str:
    """The first thing against a candidate with its file:line, or its score, and its room; "" where there is nothing to say."""
    verdict = entry.verdict
    scores = entry.arithmetic or ", ".join(f"{name} {score:g}" for name, score in sorted(verdict.scores.items()))
    total = f"score {verdict.total:g}" if verdict.total is not None else ""
    place = f"({entry.location})" if entry.location else ""
    against = " ".join(filter(None, [verdict.reason, place]))
    score = " ".join(filter(None, [total, f"= {scores}" if total and scores else scores]))
    return "; ".join(filter(None, [against, score, entry.room]))


def describe_override(override: Override) -> str:
    """A policy, what it changes and where."""
    place = f" ({override.location})" if override.location else ""
    return f"{override.policy}{place}: {', '.join(override.changes)} in {', '.join(override.clusters)}"


def _after(message: str) -> str:
    return f": {message}" if message else ""


def _weigh(share: Share) -> str:
    return _share(share) + (f", weight {share.weight}" if share.weight is not None else "")


def _share(share: Share) -> str:
    return share.cluster if share.replicas is None else f"{share.cluster}: {share.replicas}"
