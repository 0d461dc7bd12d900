"""Data of the head of the HTML page: what is wrong, which commits are compared, and what a reader has to know before the changes."""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from gitsched.model.changes import Move
from gitsched.model.document import Key
from gitsched.model.finding import (
    FROZEN,
    LAST_VALID_USED,
    OVERCOMMITTED,
    UNSCHEDULABLE,
    Finding,
    Severity,
    count_shown,
    format_count,
    format_names,
    format_part,
)
from gitsched.model.fleet_status import Freeze
from gitsched.model.history import EndedDrain, SourceChange
from gitsched.model.mistakes import MISTAKE_ENDS, MISTAKES
from gitsched.model.time import format_time
from gitsched.named_tuples import NamedTuple
from gitsched.report.consequences import list_consequence_lines, list_consequences
from gitsched.report.first_placement import describe_first_placement, describe_withheld_cause
from gitsched.report.fleet_problems import UNPUSHED, describe_freeze
from gitsched.report.held import describe_held
from gitsched.report.lines import abbreviate_oid, escape_unprintable, format_key
from gitsched.report.page.content import write_text
from gitsched.report.page.ended_drains import describe_ended_drain
from gitsched.report.page.links import PageLinks
from gitsched.report.recent_runs import describe_requests
from gitsched.report.review import Review, list_existing_findings
from gitsched.report.summary import NO_CHANGES, describe_setting_changes, describe_withheld, format_headline

_NAMES_IN_ALERT = 3
"""An alert names at most so many clusters or workloads, and counts more."""
_FINDINGS_SHOWN, _CONSEQUENCES_SHOWN, _DRAINS_SHOWN = 3, 2, 2
"""The page shows at most so many errors, new warnings, consequences and ended drains above the changes; the others follow below, or are
folded."""
_REQUESTS_SHOWN, _REQUESTS_FOLDED = 3, 200
"""The page names at most so many commits that ask for what is withheld, and has so many more below them, folded."""
_EFFECTS, _OTHER = (UNSCHEDULABLE, "copy-retained"), 2
"""The codes of findings that are consequences, and the rank of those that are neither mistakes nor consequences."""
_REPORTED_ELSEWHERE, _HELD = frozenset(("changes-withheld", "rollout-stopped")), frozenset(("stateful-held", "adopted-held"))
"""Codes of findings that have an alert of their own: about changes and rollouts, and about held workloads."""
_WITHHELD_LIMITS = "Which limits are exceeded, and how to allow it"
_TRAILER = re.compile(r"\bGitsched-[A-Z][A-Za-z-]*: [\w./-]*[\w/-]")


class Alert(NamedTuple):
    """What is wrong with the fleet or the change, with the section that says more."""

    kind: str
    text: str
    anchor: str


class Problem(NamedTuple):
    """A part of the head with its id: lines that are shown at once, and lines that are folded below a title.

    `more` counts what only the section with the id `section` has; "" if nothing is left out."""

    id: str
    kind: str
    shown: Sequence[Markup] = ()
    title: str = ""
    folded: Sequence[Markup] = ()
    more: str = ""
    section: str = ""


def list_alerts(
    review: Review, clusters: Sequence[Mapping[str, Any]], degraded: Sequence[str] = (), freezes: Sequence[Freeze] = ()
) -> list[Alert]:
    """Return what a reader has to know before anything else, the gravest first. `clusters` are those of the matrix; those with these names
    report that they are `degraded`."""
    removed = review.comparison.removed_clusters
    lost, drained = _list_unavailable(clusters, removed)
    (new, old), (new_warnings, warnings) = _count_findings(review, "error"), _count_findings(review, "warning")
    states, stay = review.states_left, {move.key for move in review.withheld.moves if move.before}
    few = 0 < states["pending"] <= _NAMES_IN_ALERT
    unplaced = [outcome.key for outcome in review.outcomes if outcome.state == "pending" and outcome.key not in stay] if few else []
    rollouts = [one for one in review.rollouts if one.state in ("stopped", "progressing")][:_NAMES_IN_ALERT]
    as_before = " as before" if review.base.findings is not None else ""
    alerts = [
        ("error", "refused: nothing is written" if review.refused else "", "refused"),
        ("error", _count(new, "new error" if review.base.findings is not None else "error"), "errors"),
        ("error", _state(states["pending"], "unplaced", unplaced), "topology"),
        ("error", _describe_unselected(review), "consequences"),
        ("error", _describe_withheld(review.withheld.moves), "withheld"),
        ("error", _describe_clusters(removed, "removed from the fleet"), "map"),
        ("error", _describe_clusters(lost, "not available"), "map"),
        ("error", _describe_overcommitted(review, clusters), "map"),
        ("warning", _describe_full(clusters), "map"),
        ("error", _describe_clusters(degraded, "degraded"), "map"),
        ("warning", _describe_clusters(drained, "drained"), "map"),
        *(("error" if one.state == "stopped" else "warning", f"rollout {one.name} {one.state}", "rollouts") for one in rollouts),
        ("warning", _describe_frozen(review, freezes), "frozen"),
        ("warning", _state(len(review.held), "held", list(review.held)), "held"),
        ("warning", _count(new_warnings, "new warning"), "warnings"),
        ("warning", _state(states["stale"], "stale: not decided, they stay"), "findings"),
        ("warning", f"{_count(old, 'error')} as before" if old else "", "listed-errors"),
        ("warning", f"{_count(warnings, 'warning')}{as_before}" if warnings else "", "listed-warnings"),
    ]
    return [Alert(kind, escape_unprintable(text), anchor) for kind, text, anchor in alerts if text]


def _count(number: int, noun: str) -> str:
    return format_count(number, noun) if number else ""


def _state(number: int, what: str, keys: Sequence[Key] = ()) -> str:
    """Return how many are what, with their names if they are few; "" for none."""
    names = f": {format_names(list(map(format_key, keys)))}" if 0 < len(keys) <= _NAMES_IN_ALERT else ""
    return f"{number:,} {what}{names}" if number else ""


def _describe_unselected(review: Review) -> str:
    """Return how many new objects no policy selects, with their names if they are few; other ones count as unplaced."""
    keys = [one.key for one in review.comparison.unplaced if not one.selected]
    return _state(len(keys), f"new {'object' if len(keys) == 1 else 'objects'} without a policy", keys)


def _describe_withheld(moves: Sequence[Move]) -> str:
    return _state(len(moves), f"change{'s' if len(moves) != 1 else ''} withheld", [move.key for move in moves])


def _describe_clusters(names: Sequence[str], what: str) -> str:
    if not names:
        return ""
    return f"{format_count(len(names), 'cluster') if len(names) > _NAMES_IN_ALERT else format_names(names)} {what}"


def _list_unavailable(clusters: Sequence[Mapping[str, Any]], removed: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the names of the clusters that are not available without people wanting that, and of those that are drained."""
    away = [one for one in clusters if "unavailable" in one and one["name"] not in removed]
    lost, drained = ([one["name"] for one in away if ("drained" in one) == is_drained] for is_drained in (False, True))
    return lost, drained


def _describe_full(clusters: Sequence[Mapping[str, Any]]) -> str:
    """Return the clusters that have nothing free of a resource after the plan, and are not over capacity."""
    used = {one["name"]: [use[1] + use[2] for use in one.get("resources", ()) if use[1] is not None] for one in clusters}
    names = sorted(name for name, shares in used.items() if shares and max(shares) >= 100 and round(max(shares)) == 100)
    return f"full, no new workload with requests fits: {format_names(names, _NAMES_IN_ALERT)}" if names else ""


def _describe_overcommitted(review: Review, clusters: Sequence[Mapping[str, Any]]) -> str:
    """Return the clusters that lack capacity for what their workloads request, with the largest share where it is known."""
    lacking = {one.resource[2] for one in review.findings if one.code == OVERCOMMITTED and one.resource is not None}
    shares = {
        one["name"]: round(max((use[1] + use[2] for use in one.get("resources", ()) if use[1] is not None), default=0))
        for one in clusters
    }
    full = sorted(
        (name for name, share in shares.items() if share > 100 or name in lacking), key=lambda name: (-shares[name], name)
    )
    names = [f"{name} {shares[name]:,} %" if shares[name] > 100 else name for name in full]
    return f"over capacity: {format_names(names, _NAMES_IN_ALERT)}" if names else ""


def _split_findings(review: Review, severity: Severity) -> tuple[list[Finding], list[Finding]]:
    """Return the findings that the change introduces, and the others. Where those of the base are not known, all errors are new, and no
    warning is."""
    new = review.new_findings if severity == "error" or review.base.findings is not None else []
    first, second = (
        [finding for finding in found if finding.severity == severity] for found in (new, list_existing_findings(review, new))
    )
    return first, second


def _omit_reported(review: Review, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings without those that have an alert of their own."""
    reported = {FROZEN, *(_HELD if review.held else ())}
    reported |= _REPORTED_ELSEWHERE if review.withheld.moves or review.rollouts else set()
    return [finding for finding in findings if finding.code not in reported]


def _count_findings(review: Review, severity: Severity) -> tuple[int, int]:
    """Return the numbers of new and of other findings, 0 of those that all have an alert of their own."""
    new, old = (len(found) if _omit_reported(review, found) else 0 for found in _split_findings(review, severity))
    return new, old


def list_problems(
    review: Review,
    links: PageLinks,
    freezes: Sequence[Freeze] = (),
    requests: Sequence[SourceChange] = (),
    ended: Sequence[EndedDrain] = (),
    drained: Collection[str] = (),
) -> list[Problem]:
    """Return what stands above the changes: errors, what workloads lose, what is withheld, new warnings, freezes, ended drains, holds and
    settings. Warnings about mistakes stand before the consequences of these. `drained` are the clusters that are drained after the change.
    """
    lines = _link_all(list_consequence_lines(list_consequences(review)), links)
    more = lines[_CONSEQUENCES_SHOWN:]
    warnings, explains = _describe_findings(review, "warning", links), _explains_losses(review)
    problems = [
        Problem("refused", "error", [Markup("Refused: {}").format(escape_unprintable(review.refused))]) if review.refused else None,
        _describe_findings(review, "error", links),
        warnings if explains else None,
        Problem("consequences", "error", lines[:_CONSEQUENCES_SHOWN], f"{len(more)} more" if more else "", more) if lines else None,
        _describe_withheld_changes(review, requests, links) if review.withheld.moves else None,
        _list_more_requests(requests, links) if review.withheld.moves else None,
        None if explains else warnings,
        *(Problem("frozen", "warning", _link_all([line], links)) for line in _list_frozen(review, freezes)),
        *_list_ended_drains(review, ended, drained, links),
        _fold("held", "warning", describe_held(review.held, len(review.held)), links) if review.held else None,
        _describe_settings(describe_setting_changes(review, len(review.setting_changes)), links),
    ]
    return [problem for problem in problems if problem is not None]


def _describe_withheld_changes(review: Review, requests: Sequence[SourceChange], links: PageLinks) -> Problem:
    """Return what is withheld, with the mistake that causes it and the commits that ask for it; the limits are folded."""
    first, *lines = describe_withheld(review.withheld, planned=True)
    number = count_shown(len(requests), _REQUESTS_SHOWN)
    shown = filter(None, (describe_withheld_cause(review), describe_requests(requests[:number], len(requests) - number)))
    title = Markup("<strong>{}</strong>").format(escape_unprintable(first))
    return Problem(
        "withheld", "error", [title, *_link_all(map(_capitalize, shown), links)], _WITHHELD_LIMITS, _link_all(lines, links)
    )


def _list_more_requests(requests: Sequence[SourceChange], links: PageLinks) -> Problem | None:
    """Return the commits that ask for what is withheld besides the first ones, folded; None without any."""
    others = requests[count_shown(len(requests), _REQUESTS_SHOWN) :]
    if not others:
        return None
    folded = list(map(links.describe_commit, others[:_REQUESTS_FOLDED]))
    left = len(others) - len(folded)
    folded += [Markup("and {:,} more").format(left)] if left else []
    title = format_count(len(others), "more commit asks for it", "more commits ask for it")
    return Problem("more-requests", "error", title=title, folded=folded)


def _list_ended_drains(
    review: Review, ended: Sequence[EndedDrain], drained: Collection[str], links: PageLinks
) -> Iterator[Problem]:
    """Yield what is said of each drain that a change ends, and then of the others, folded."""
    found = [
        _link_all(describe_ended_drain(one, review, is_drained=one.cluster in drained), links)
        for one in ended
        if one.cluster not in review.comparison.removed_clusters
    ]
    more, section = ("Where these workloads would go", "retained") if review.retained else ("", "")
    shown = count_shown(len(found), _DRAINS_SHOWN)
    for number, lines in enumerate(found[:shown], 1):
        yield Problem(f"ended-drain-{number}", "note", lines, more=more if len(lines) > 1 else "", section=section)
    if len(found) > shown:
        folded = [line for lines in found[shown:] for line in lines]
        yield Problem(
            "ended-drains", "note", title=format_count(len(found) - shown, "more drain ends", "more drains end"), folded=folded
        )


def _capitalize(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _list_frozen(review: Review, freezes: Sequence[Freeze]) -> list[str]:
    """Return why placements are frozen, who froze them and since when; without `freezes` only what the findings say."""
    known = [f"Placements are frozen: {describe_freeze(freeze)}" for freeze in freezes]
    known += [f"Not pushed: {UNPUSHED.format(freeze.push)}" for freeze in freezes if freeze.push]
    return known or [finding.text for finding in review.findings if finding.code == FROZEN]


def _describe_frozen(review: Review, freezes: Sequence[Freeze]) -> str:
    """Return the alert of a freeze: its reason, who froze placements, and since which day; "" if they are not frozen."""
    if freezes:
        by = (f"{one.author} since {format_time(one.since)[:10]}" if one.since is not None else one.author for one in freezes)
        texts = (f"{one.reason}{f' ({who})' if who else ''}" for one, who in zip(freezes, by, strict=True))
        return f"frozen: {'; '.join(texts)}"
    if review.withheld.freeze:
        return f"frozen: {review.withheld.freeze}"
    return "frozen" if any(finding.code == FROZEN for finding in review.findings) else ""


def _rank_cause(finding: Finding) -> int:
    """Return the rank of a finding: mistakes come before what they cause."""
    if finding.code in MISTAKES:
        return 0
    return _OTHER - 1 if finding.code.endswith(MISTAKE_ENDS) else _OTHER + (finding.code in _EFFECTS)


def _explains_losses(review: Review) -> bool:
    """Return whether a new warning is about a mistake."""
    return any(_rank_cause(finding) < _OTHER for finding in _omit_reported(review, _split_findings(review, "warning")[0]))


def _describe_findings(review: Review, severity: Severity, links: PageLinks) -> Problem | None:
    """Return the first new findings of a severity, and how many others there are."""
    new = _split_findings(review, severity)[0]
    findings = sorted(_omit_reported(review, new), key=_rank_cause)
    if not findings:
        return None
    lost = {move.key.resource for move in review.moves if move.becomes_unplaced}
    others = [finding for finding in findings if finding.code not in _EFFECTS or finding.resource not in lost]
    findings = others or findings  # the consequences say the same of workloads that become unplaced
    number = count_shown(len(findings), _FINDINGS_SHOWN)
    shown = [
        Markup('<span class="{}">{}</span> {}{}{}').format(
            severity,
            severity,
            links.link_location(finding.location, escape_unprintable(str(finding.location or ""))),
            ": " if finding.location else "",
            links.link_places(escape_unprintable(finding.text)),
        )
        for finding in findings[:number]
    ]
    paths = {finding.location.path for finding in findings[:number] if finding.location is not None}
    shown += _link_all(_list_last_valid(review, paths) if severity == "error" else (), links)
    left = len(new) - number
    more = f"and {format_count(left, f'more {severity}')}" if left else ""
    return Problem(f"{severity}s", severity, shown, more=more, section="findings")


def _list_last_valid(review: Review, paths: Container[str]) -> Iterator[str]:
    """Yield what counts in place of what is broken in files, so that it runs on."""
    for finding in review.findings:
        if finding.code == LAST_VALID_USED and finding.location is not None and finding.location.path in paths:
            yield finding.text


def _fold(anchor: str, kind: str, lines: Sequence[str], links: PageLinks) -> Problem:
    return Problem(anchor, kind, title=escape_unprintable(lines[0]), folded=_link_all(lines[1:], links))


def _describe_settings(lines: Sequence[str], links: PageLinks) -> Problem | None:
    """Return the changed settings; those that need attention are shown at once."""
    if not lines:
        return None
    marked = [line for line in lines if line.startswith("warning: ")]
    others = [line for line in lines if line not in marked]
    title = f"{format_count(len(others), 'other change' if marked else 'change')} of gitsched.yaml" if others else ""
    return Problem("settings", "warning", _link_all(marked, links), title, _link_all(others, links))


def _link_all(lines: Iterable[str], links: PageLinks) -> list[Markup]:
    """Return escaped lines with arrows and with links to places; trailers of commits can be copied."""
    return [_mark_trailers(links.link_places(write_text(line))) for line in lines]


def _mark_trailers(line: Markup) -> Markup:
    return Markup(_TRAILER.sub(r"<code data-copy>\g<0></code>", str(line)))  # noqa: S704  # the pattern matches no markup


def write_heading(review: Review, clusters: int, *, live: bool = False) -> str:
    """Return what the change does, without the commits, which are below it; of a first placement also why it places no more.
    That of a `live` page says what the output branch has now."""
    is_first = review.before is None and not review.base.commit
    has_errors = any(finding.severity == "error" for finding in review.findings)
    if (is_first or live) and not (clusters or sum(review.states.values()) or review.moves or has_errors):
        return "No clusters and no workloads: run gitsched init"
    if live:
        return _summarize_fleet(review, clusters)
    headline = format_headline(review)
    if headline == NO_CHANGES:
        return "No changes: no workload moves, and no file of a cluster differs"
    why = describe_first_placement(review)[1] if is_first else ""
    return f"{headline}.{why}" if why else headline


def _summarize_fleet(review: Review, clusters: int) -> str:
    placed, total = review.states_left["placed"], sum(review.states.values())
    part = format_count(placed, "workload") if placed == total else f"{placed:,} of {format_count(total, 'workload')}"
    used = len({name for outcome in review.outcomes for name in outcome.replicas_by_cluster})
    return f"{part} placed on {format_count(used, 'cluster') if used == clusters else format_part(used, clusters, 'cluster')}"


def list_commits(
    review: Review, commits: Mapping[str, SourceChange], links: PageLinks, placed_from: str = "", *, live: bool = False
) -> list[tuple[str, Markup]]:
    """Return the commit that is planned and what it is compared with: what each is, and its id, subject and author.

    `placed_from` is the source commit that the head of the output branch follows, "" if it is not known. A `live` page shows what the
    branch has now.
    """

    def describe(oid: str) -> Markup:
        return links.describe_commit(commits.get(oid, SourceChange(oid)))

    base = review.base
    rows = [(review.source_name or "commit", describe(review.source) if review.source else Markup("the worktree"))]
    if base.commit:
        rows.append((f"against {base.name}".strip(), describe(base.commit)))
    elif live:
        rows.append(("output", escape(_describe_output(review, review.after or review.before))))
    elif review.before:
        output = escape(_describe_output(review, review.before))
        known = Markup(", made from {}").format(describe(placed_from)) if placed_from else ""
        rows.append(("against", output + known))
    return [(escape_unprintable(title), text) for title, text in rows]


def _describe_output(review: Review, head: str | None) -> str:
    """Return the output branch and its head, without its repository, which may be a path of this machine."""
    return escape_unprintable(f"branch {review.branch}{f' at {abbreviate_oid(head)}' if head else ''}")
