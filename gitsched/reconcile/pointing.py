"""The line on which a rule stands, for people who want to change it: the core knows the place in the document, the text is in Git."""

from __future__ import annotations

from collections.abc import Iterable

from gitsched.git import Repository
from gitsched.manifests.limits import LIMITS
from gitsched.model.change import Cause
from gitsched.model.explanation import Candidate, Change, Explanation
from gitsched.model.finding import Finding, Location, Rule, begin
from gitsched.plan.catalog import Loose

Places = dict[Rule, Location | None]


def point(explanation: Explanation, repository: Repository, places: Places | None = None) -> Explanation:
    """The explanation with the line of each rule instead of that of its document, where the text is at hand.

    `places` are those that were looked up before; more are added.
    """
    places = {} if places is None else places
    candidates = tuple(_point(candidate, repository, places) for candidate in explanation.candidates)
    advice = tuple(
        entry._replace(changes=tuple(_point_change(change, repository, places) for change in entry.changes))
        for entry in explanation.advice
    )
    return explanation._replace(candidates=candidates, advice=advice, findings=point_findings(explanation.findings, repository))


def locate_findings(findings: Iterable[Finding], documents: Iterable[Loose]) -> tuple[Finding, ...]:
    """The findings with the place where the document of their resource begins, where that is among these."""
    findings = tuple(findings)
    if not findings:
        return ()
    known = {(loose.kind, loose.namespace, loose.name): loose.origin for loose in documents}
    located = []
    for finding in findings:
        kind, space, name = finding.resource or ("", "", "")
        origin = known.get((kind, space, name)) or (known.get((kind, "", name)) if space == "default" else None)
        located.append(finding._replace(location=begin(origin)) if origin else finding)
    return tuple(located)


def point_findings(findings: Iterable[Finding], repository: Repository) -> tuple[Finding, ...]:
    """The findings with the place of each rule instead of that of its document, in their order."""
    places: Places = {}
    return tuple(
        finding._replace(location=_find(finding.rule, repository, places) or finding.location, rule=None)
        if finding.rule is not None
        else finding
        for finding in findings
    )


def point_rule(rule: Rule, repository: Repository) -> Location | None:
    """The place of one rule; None where its text is not at hand."""
    return _find(rule, repository, {})


def point_causes(causes: Iterable[Cause], repository: Repository, places: Places) -> tuple[Cause, ...]:
    """The causes with the place of each rule instead of that of its document; `places` are those found before."""
    return tuple(
        cause._replace(location=_find(cause.rule, repository, places) or cause.location, rule=None) if cause.rule else cause
        for cause in causes
    )


def _point(candidate: Candidate, repository: Repository, places: Places) -> Candidate:
    place = None if candidate.rule is None else _find(candidate.rule, repository, places)
    return candidate if place is None else candidate._replace(location=f"{place.path}:{place.line}")


def _point_change(change: Change, repository: Repository, places: Places) -> Change:
    place = None if change.rule is None else _find(change.rule, repository, places)
    return change if place is None else change._replace(location=f"{place.path}:{place.line}")


def _find(rule: Rule, repository: Repository, places: Places) -> Location | None:
    if rule not in places:
        origin, pointer = rule
        known = repository.has(origin.blob) and repository.size(origin.blob) <= LIMITS.size
        from gitsched.manifests.reading import locate  # loads PyYAML, and few findings are about a field

        found = locate(repository.blob(origin.blob), origin.index, origin.item, pointer) if known else None
        places[rule] = Location(origin.path, *found) if found else None
    return places[rule]
