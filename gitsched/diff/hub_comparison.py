"""Compare decisions of gitsched with those of a running hub: decide from the records of one dump and the documents of a later one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from gitsched.apis.hub_comparison import HubComparison
from gitsched.diff.hub_causes import CauseSearch
from gitsched.diff.hub_decisions import list_aspects, make_decider
from gitsched.model.document import Key
from gitsched.model.finding import Finding, Location, Severity, format_count, format_names
from gitsched.model.hub_comparison import (
    VERDICTS,
    ComparedDecision,
    DifferenceCause,
    HubChange,
    HubComparisonResult,
    HubDecision,
    HubDump,
    Resource,
)


def compare_hub(first: HubDump, second: HubDump, settings: Mapping[str, Any], now: datetime) -> HubComparisonResult:
    """Decide from the records of the first dump and the documents of the second, compare with the records of the second, and explain
    each difference.

    `settings` is the spec of a gitsched.yaml; what it leaves out is as on a hub without flags. `now` is the time of the decisions.
    Permanent for settings that cannot be read.
    """
    decider = make_decider(settings, now)
    decided = decider.decide(second.state.documents.values(), first.state.records)
    own, hub = decider.read_own(decided), decider.read(second.state.records)
    change = HubChange(first.state, second.state)
    compared, apis = [], dict[Key, str]()
    for subject in sorted(own.keys() | hub.keys()):
        theirs, ours = hub.get(subject), own.get(subject)
        apis[subject] = api = (theirs or own[subject]).api
        decisions = (theirs.decision if theirs else None, ours.decision if ours else None)
        one = _compare(change, decider.comparisons[api], subject, *decisions)
        compared.append(one._replace(location=_locate(second.locations, one)))
    search = CauseSearch(decider, change, decided, second.locations, apis)
    differing = [one for one in compared if one.verdict == "different"]
    known = [one for one in compared if one.verdict != "different"]
    decisions_found = sorted([*known, *search.explain(differing)], key=lambda one: (VERDICTS.index(one.verdict), one.subject))
    findings = [*_locate_findings(decided.findings, second.locations), *_list_incomplete(decisions_found)]
    return HubComparisonResult(tuple(decisions_found), tuple(findings), first.time, second.time)


def _compare(
    change: HubChange, comparison: HubComparison, subject: Key, hub: HubDecision | None, own: HubDecision | None
) -> ComparedDecision:
    """Return the verdict about one decision. Differences do not have their causes yet."""
    aspects = list_aspects(hub, own) if hub is not None and own is not None else ("clusters",)
    if not aspects or (hub is None and own is not None and not own.clusters and not own.leaving and not own.details):
        return ComparedDecision(subject, "equal", hub, own)
    missing = _list_missing(change, comparison, subject, hub, own)
    if missing:
        return ComparedDecision(subject, "not-compared", hub, own, aspects, missing)
    progress = comparison.find_progress(change, hub, own)
    if progress is not None:
        return ComparedDecision(subject, progress.verdict, hub, own, aspects, (DifferenceCause("hub", progress.text),))
    return ComparedDecision(subject, "different", hub, own, aspects)


def _list_missing(
    change: HubChange, comparison: HubComparison, subject: Key, hub: HubDecision | None, own: HubDecision | None
) -> tuple[DifferenceCause, ...]:
    """Return what the second dump lacks so that a decision cannot be compared."""
    if hub is not None and subject not in change.second.documents:
        return (DifferenceCause("input", f"the second dump does not have {subject.title}"),)
    return tuple(cause for cause in comparison.list_causes(change, hub, own) if cause.kind == "input")


def _list_incomplete(decisions: list[ComparedDecision]) -> Iterator[Finding]:
    """Yield a finding if decisions cannot be compared because of what the dumps lack: an error if no decision can."""
    lacking = [one for one in decisions if one.verdict == "not-compared" and any(cause.kind == "input" for cause in one.causes)]
    if not lacking:
        return
    texts = list(dict.fromkeys(cause.text for one in lacking for cause in one.causes if cause.kind == "input"))
    message = (
        f"{format_count(len(lacking), 'decision')} cannot be compared: {format_names(texts)}; dump the kinds that docs/shadow.md lists, "
        "with -A"
    )
    severity: Severity = "error" if len(lacking) == len(decisions) else "warning"
    yield Finding(severity, "shadow-incomplete", message, lacking[0].location)


def _locate(locations: Mapping[Resource, Location], one: ComparedDecision) -> Location | None:
    keys = (one.hub.record if one.hub is not None else None, one.subject)
    return next((locations[key.resource] for key in keys if key is not None and key.resource in locations), None)


def _locate_findings(findings: list[Finding], locations: Mapping[Resource, Location]) -> Iterator[Finding]:
    """Yield findings with the places of the objects that they are about."""
    for finding in findings:
        known = finding.location is None and finding.resource is not None
        yield finding._replace(location=locations.get(finding.resource)) if known and finding.resource is not None else finding
