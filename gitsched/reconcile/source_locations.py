"""Find the line in the source file for each rule that a finding, cause or explanation refers to."""

from __future__ import annotations

from collections.abc import Iterable

from gitsched.decide.plan import Plan
from gitsched.git import Repository
from gitsched.manifests.parsed_file import DEFAULT_LIMITS
from gitsched.model.changes import Cause
from gitsched.model.explanation import ExplainedCandidate, Explanation, ProposedChange
from gitsched.model.finding import FieldOrigin, Finding, Location, finding_sort_key

RuleLocations = dict[FieldOrigin, Location | None]


def locate_explanation(explanation: Explanation, repository: Repository, places: RuleLocations | None = None) -> Explanation:
    """The explanation with the line of each rule instead of that of its document, where the text is at hand.

    `places` are those that were looked up before; more are added.
    """
    places = {} if places is None else places
    candidates = tuple(_locate_candidate(candidate, repository, places) for candidate in explanation.candidates)
    advice = tuple(
        entry._replace(changes=tuple(_locate_change(change, repository, places) for change in entry.changes))
        for entry in explanation.counterfactuals
    )
    return explanation._replace(
        candidates=candidates, counterfactuals=advice, findings=locate_finding_rules(explanation.findings, repository)
    )


def locate_plan_findings(plan: Plan, repository: Repository) -> Plan:
    """Return the plan with the line of each rule that its findings are about, the findings in their order."""
    return plan._replace(findings=tuple(sorted(locate_finding_rules(plan.findings, repository), key=finding_sort_key)))


def locate_finding_rules(findings: Iterable[Finding], repository: Repository) -> tuple[Finding, ...]:
    """The findings with the place of each rule instead of that of its document, in their order."""
    places: RuleLocations = {}
    return tuple(
        finding._replace(location=_find_location(finding.field, repository, places) or finding.location, field=None)
        if finding.field is not None
        else finding
        for finding in findings
    )


def locate_rule(rule: FieldOrigin, repository: Repository) -> Location | None:
    """The place of one rule; None where its text is not at hand."""
    return _find_location(rule, repository, {})


def locate_causes(causes: Iterable[Cause], repository: Repository, places: RuleLocations) -> tuple[Cause, ...]:
    """The causes with the place of each rule instead of that of its document; `places` are those found before."""
    return tuple(
        cause._replace(location=_find_location(cause.field, repository, places) or cause.location, field=None)
        if cause.field
        else cause
        for cause in causes
    )


def _locate_candidate(candidate: ExplainedCandidate, repository: Repository, places: RuleLocations) -> ExplainedCandidate:
    place = None if candidate.field is None else _find_location(candidate.field, repository, places)
    return candidate if place is None else candidate._replace(location=f"{place.path}:{place.line}")


def _locate_change(change: ProposedChange, repository: Repository, places: RuleLocations) -> ProposedChange:
    place = None if change.field is None else _find_location(change.field, repository, places)
    return change if place is None else change._replace(location=f"{place.path}:{place.line}")


def _find_location(rule: FieldOrigin, repository: Repository, places: RuleLocations) -> Location | None:
    if rule not in places:
        origin, pointer = rule
        known = repository.has(origin.blob) and repository.blob_size(origin.blob) <= DEFAULT_LIMITS.size
        from gitsched.manifests.parser import locate_field  # loads PyYAML, and few findings are about a field

        found = locate_field(repository.blob(origin.blob), origin.index, origin.item, pointer) if known else None
        places[rule] = Location(origin.path, *found) if found else None
    return places[rule]
