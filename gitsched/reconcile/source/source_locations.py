"""Find the line in the source file for each rule that a finding, cause or explanation refers to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gitsched.manifests.parsed_file import DEFAULT_LIMITS
from gitsched.model.finding import FieldOrigin, Finding, Location, finding_sort_key

if TYPE_CHECKING:
    from gitsched.decide.plan_result import Plan
    from gitsched.git import Repository
    from gitsched.model.changes import Cause
    from gitsched.model.explanation import ExplainedCandidate, Explanation, ProposedChange

RuleLocations = dict[FieldOrigin, Location | None]


def locate_explanation(explanation: Explanation, repository: Repository, locations: RuleLocations | None = None) -> Explanation:
    """Return the explanation with the line of each rule instead of the line of its document, where the source has the text.

    `locations` are those that earlier calls found; this call adds more.
    """
    locations = {} if locations is None else locations
    candidates = tuple(_locate_candidate(candidate, repository, locations) for candidate in explanation.candidates)
    counterfactuals = tuple(
        entry._replace(changes=tuple(_locate_change(change, repository, locations) for change in entry.changes))
        for entry in explanation.counterfactuals
    )
    return explanation._replace(
        candidates=candidates, counterfactuals=counterfactuals, findings=locate_finding_rules(explanation.findings, repository)
    )


def locate_plan_findings(plan: Plan, repository: Repository, locations: RuleLocations | None = None) -> Plan:
    """Return the plan with the line of each rule that its findings are about, the findings in their order; `locations` as above."""
    return plan._replace(findings=tuple(sorted(locate_finding_rules(plan.findings, repository, locations), key=finding_sort_key)))


def locate_finding_rules(
    findings: Iterable[Finding], repository: Repository, locations: RuleLocations | None = None
) -> tuple[Finding, ...]:
    """Return the findings with the location of each rule instead of the location of its document, in their order; `locations` as above."""
    locations = {} if locations is None else locations
    return tuple(
        finding._replace(location=_find_location(finding.field, repository, locations) or finding.location, field=None)
        if finding.field is not None
        else finding
        for finding in findings
    )


def locate_causes(causes: Iterable[Cause], repository: Repository, locations: RuleLocations) -> tuple[Cause, ...]:
    """Return the causes with the location of each rule instead of the location of its document; `locations` as above."""
    return tuple(
        cause._replace(location=_find_location(cause.field, repository, locations) or cause.location, field=None)
        if cause.field
        else cause
        for cause in causes
    )


def _locate_candidate(candidate: ExplainedCandidate, repository: Repository, locations: RuleLocations) -> ExplainedCandidate:
    location = None if candidate.field is None else _find_location(candidate.field, repository, locations)
    return candidate if location is None else candidate._replace(location=f"{location.path}:{location.line}")


def _locate_change(change: ProposedChange, repository: Repository, locations: RuleLocations) -> ProposedChange:
    location = None if change.field is None else _find_location(change.field, repository, locations)
    return change if location is None else change._replace(location=f"{location.path}:{location.line}")


def _find_location(rule: FieldOrigin, repository: Repository, locations: RuleLocations) -> Location | None:
    if rule not in locations:
        origin, pointer = rule
        known = not origin.root and repository.has(origin.blob) and repository.blob_size(origin.blob) <= DEFAULT_LIMITS.size
        from gitsched.manifests.parser import locate_field  # loads PyYAML, and few findings are about a field

        found = locate_field(repository.blob(origin.blob), origin.index, origin.item, pointer) if known else None
        locations[rule] = Location(origin.path, *found) if found else None
    return locations[rule]
