"""Find the line in the source file for each rule that a finding, cause or explanation refers to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.manifests.parsed_file import DEFAULT_LIMITS
from gitsched.model.document import Origin
from gitsched.model.finding import FieldOrigin, Finding, Location, Pointer, locate_origin, sort_findings

if TYPE_CHECKING:
    from gitsched.decide.plan_result import Plan
    from gitsched.git import Repository
    from gitsched.manifests.field_locations import FieldLocator
    from gitsched.model.changes import Cause, ExceededLimit
    from gitsched.model.explanation import ExplainedCandidate, Explanation, ProposedChange
    from gitsched.model.taints import ClusterTaint


FindBlob = Callable[[str], str]
"""Returns the blob of a path of the source, "" if there is none."""


class RuleLocations:
    """Finds the lines of rules in the blobs of a repository, each once; the last file stays composed."""

    def __init__(self, repository: Repository, found: Mapping[FieldOrigin, Location | None] = {}) -> None:
        self._repository = repository
        self.found = dict(found)
        self._last: tuple[str, FieldLocator] | None = None

    def find(self, rule: FieldOrigin) -> Location | None:
        """Return where a rule is written; None where its text is not known."""
        if rule not in self.found:
            self.found[rule] = self._locate(*rule)
        return self.found[rule]

    def _locate(self, origin: Origin, pointer: Pointer) -> Location | None:
        repository = self._repository
        if origin.root or not repository.has(origin.blob) or repository.blob_size(origin.blob) > DEFAULT_LIMITS.size:
            return None
        if self._last is None or self._last[0] != origin.blob:
            from gitsched.manifests.field_locations import FieldLocator  # loads PyYAML, and few findings are about a field

            self._last = origin.blob, FieldLocator(repository.blob(origin.blob))
        found = self._last[1].locate(origin.index, origin.item, [pointer])
        return Location(origin.path, *found[0]) if found else None


def locate_explanation(explanation: Explanation, locations: RuleLocations) -> Explanation:
    """Return the explanation with the line of each rule instead of the line of its document, where the source has the text."""
    candidates = tuple(_locate_candidate(candidate, locations) for candidate in explanation.candidates)
    counterfactuals = tuple(
        entry._replace(changes=tuple(_locate_change(change, locations) for change in entry.changes))
        for entry in explanation.counterfactuals
    )
    return explanation._replace(
        candidates=candidates, counterfactuals=counterfactuals, findings=locate_finding_rules(explanation.findings, locations)
    )


def locate_plan_findings(plan: Plan, locations: RuleLocations) -> Plan:
    """Return the plan with the line of each rule that its findings are about, and withheld changes, the findings in their order."""
    limits = tuple(_locate_limit(limit, locations) for limit in plan.withheld.limits)
    findings = locate_finding_rules(plan.findings, locations)
    for before, after in zip(plan.withheld.limits, limits, strict=True):
        if before.cause is not None and before != after:
            texts = str(before), str(after)
            findings = tuple(
                one._replace(message=one.message.replace(*texts)) if one.code == "changes-withheld" else one for one in findings
            )
    return plan._replace(findings=sort_findings(findings), withheld=plan.withheld._replace(limits=limits))


def _locate_limit(limit: ExceededLimit, locations: RuleLocations) -> ExceededLimit:
    return limit if limit.cause is None else limit._replace(cause=locate_causes([limit.cause], locations)[0])


def locate_finding_rules(findings: Iterable[Finding], locations: RuleLocations) -> tuple[Finding, ...]:
    """Return the findings with the location of each rule instead of the location of its document, in their order."""
    return tuple(
        finding._replace(location=locations.find(finding.field) or finding.location, field=None)
        if finding.field is not None
        else finding
        for finding in findings
    )


def make_blob_finder(repository: Repository, tree: str) -> FindBlob:
    """Return what finds the blob of a path in a tree."""

    def find(path: str) -> str:
        entry = repository.find_entry(tree, path)
        return entry[0] if entry is not None else ""

    return find


def locate_taints(taints: Iterable[ClusterTaint], locations: RuleLocations, find_blob: FindBlob) -> tuple[ClusterTaint, ...]:
    """Return the taints with their lines, or those of their documents where the text of a file is not known. The blob of a document with
    facts is not that of its file, which `find_blob` returns for a path."""
    return tuple(_locate_taint(taint, locations, find_blob) for taint in taints)


def _locate_taint(taint: ClusterTaint, locations: RuleLocations, find_blob: FindBlob) -> ClusterTaint:
    if taint.field is None:
        return taint
    origin, pointer = taint.field
    origin = origin if origin.blob else origin._replace(blob=find_blob(origin.path))
    return taint._replace(location=(locations.find(FieldOrigin(origin, pointer)) or locate_origin(origin)).text)


def locate_causes(causes: Iterable[Cause], locations: RuleLocations) -> tuple[Cause, ...]:
    """Return the causes with the location of each rule instead of the location of its document."""
    return tuple(
        cause._replace(location=locations.find(cause.field) or cause.location, field=None) if cause.field else cause
        for cause in causes
    )


def _locate_candidate(candidate: ExplainedCandidate, locations: RuleLocations) -> ExplainedCandidate:
    location = None if candidate.field is None else locations.find(candidate.field)
    return candidate if location is None else candidate._replace(location=f"{location.path}:{location.line}")


def _locate_change(change: ProposedChange, locations: RuleLocations) -> ProposedChange:
    location = None if change.field is None else locations.find(change.field)
    return change if location is None else change._replace(location=f"{location.path}:{location.line}")
