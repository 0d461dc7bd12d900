"""Findings about Placements: misconfigured ones, skipped ones, and ones that choose no cluster, with the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.ocm import names
from gitsched.apis.ocm.placement import Misconfiguration
from gitsched.apis.ocm.preferred_clusters import find_preference_findings
from gitsched.apis.ocm.scheduling import PlacementResult, SchedulingRun, SkippedPlacement, describe_missing_sets
from gitsched.model.document import Document
from gitsched.model.finding import Finding, Pointer, Severity, format_names, locate_document, locate_field
from gitsched.schedule.fleet import Fleet
from gitsched.schedule.selection import PredicateFilter, list_stages

if TYPE_CHECKING:
    from gitsched.apis.ocm.cel.cluster_expressions import ExpressionCompiler

_MAX_LISTED = 5
_POINTERS: Mapping[str, Pointer] = {"Predicate": ("spec", "predicates"), "TaintToleration": ("spec", "tolerations")}


def list_findings(run: SchedulingRun, fleet: Fleet, expressions: ExpressionCompiler) -> Iterator[Finding]:
    """Return the findings in the order of the Placements. Placements that choose no cluster for one reason are one finding."""
    without_decision: dict[str, list[Document]] = {}
    for result in run.results.values():
        yield from _list_result_findings(result, expressions)
        if result.placement.preferred is not None:
            yield from find_preference_findings(result, fleet)
        if result.choice is not None and not result.choice.selected and result.placement.number_of_clusters != 0:
            without_decision.setdefault(_describe_exclusions(result, fleet), []).append(result.placement.document)
    for reason, documents in without_decision.items():
        keys = ", ".join(str(document.key) for document in documents[:_MAX_LISTED])
        more = f" and {len(documents) - _MAX_LISTED} more" if len(documents) > _MAX_LISTED else ""
        message = f"{keys}{more} {'chooses' if len(documents) == 1 else 'choose'} no cluster: {reason}"
        yield _make_finding("warning", "ocm-nothing-chosen", message, documents[0])
    for skipped in run.skipped.values():
        yield from _list_skipped_findings(skipped)


def _list_result_findings(result: PlacementResult, compiler: ExpressionCompiler) -> Iterator[Finding]:
    document = result.placement.document
    if result.misconfiguration is not None:
        misconfiguration = result.misconfiguration
        reason = str(misconfiguration).removeprefix(":").strip().removesuffix(":")
        cure = f"; {misconfiguration.cure}" if misconfiguration.cure else ""
        message = f"{document.key} is misconfigured and keeps its previous decisions: {reason}{cure}"
        pointer = misconfiguration.pointer or _POINTERS.get(misconfiguration.plugin, ("spec",))
        field = locate_field(document.origin, pointer)
        finding = _make_finding("error", misconfiguration.code if misconfiguration.code else "ocm-misconfigured", message, document)
        yield finding._replace(field=field)
        return
    predicates = result.placement.predicates
    if isinstance(predicates, Misconfiguration):
        return
    texts = [text for predicate in predicates for text in predicate.expressions]
    for text, error in compiler.list_failing(texts):
        message = f"{document.key}: the CEL expression {text} fails for every cluster and matches none: {error}; correct it"
        yield _make_finding("warning", "cel-failed", message, document)
    exceeding = compiler.list_exceeding(texts)
    if exceeding:
        expressions = f"CEL expression{'s' if len(exceeding) > 1 else ''}"
        message = (
            f"{document.key} exceeds the cost limit of CEL; clusters for which it does do not match: simplify the {expressions} "
            f"{format_names(exceeding)}"
        )
        yield _make_finding("warning", "cel-cost", message, document)


def describe_no_decision(result: PlacementResult, fleet: Fleet) -> str:
    """Describe why a scheduled Placement without decisions has none."""
    if result.misconfiguration is not None:
        return f"it is misconfigured: {str(result.misconfiguration).removeprefix(':').strip().removesuffix(':')}"
    if result.placement.number_of_clusters == 0:
        return "its numberOfClusters is 0"
    return _describe_exclusions(result, fleet)


def describe_skipped(skipped: SkippedPlacement) -> str:
    """Describe why a Placement is not scheduled."""
    if skipped.invalid_set is not None:
        return f"{skipped.invalid_set.key} has an invalid selector: {skipped.reason}"
    if skipped.placement.scheduling_disabled:
        return f"it has the annotation {names.SCHEDULING_DISABLED_ANNOTATION}"
    if skipped.is_kept:
        return "it keeps the decisions with which it was adopted, because what is known about them is incomplete"
    return "it is being deleted"


def _describe_exclusions(result: PlacementResult, fleet: Fleet) -> str:
    """Describe how many clusters each step excludes; upstream's status says only that no cluster matches."""
    if not fleet.candidates:
        return "the source has no ManagedCluster; commit those of the hub (kubectl get managedclusters -o yaml)"
    eligible, request, choice = result.eligible, result.request, result.choice
    if not eligible.eligible_sets:
        return describe_missing_sets(result)
    if request is None or choice is None or not eligible.clusters:
        return f"{', '.join(eligible.eligible_sets)} has no cluster"
    number, unmatched, reasons = eligible.clusters.bit_count(), 0, Counter[str]()
    for rule, before, remaining in list_stages(request, choice):
        rejected = before & ~remaining
        if isinstance(rule, PredicateFilter):
            unmatched = rejected.bit_count()
        else:
            reasons.update(rule.reason(request, fleet, index) for index in fleet.members(rejected))
    exclusions = [
        f"{count} excluded because {reason if count == 1 else reason.replace('its ', 'their ', 1)}"
        for reason, count in sorted(reasons.items(), key=lambda entry: (-entry[1], entry[0]))
    ]
    parts = [*([f"{unmatched} excluded by its predicates"] if unmatched else []), *exclusions[:_MAX_LISTED]]
    return (
        f"of {number} {'cluster' if number == 1 else 'clusters'}, {'; '.join(parts)}"
        if parts
        else "its spread constraints allow none of the remaining clusters"
    )


def _list_skipped_findings(skipped: SkippedPlacement) -> Iterator[Finding]:
    invalid_set, document = skipped.invalid_set, skipped.placement.document
    if invalid_set is None:
        if skipped.placement.scheduling_disabled:
            message = f"{document.key} is not scheduled: remove its annotation {names.SCHEDULING_DISABLED_ANNOTATION}"
            yield _make_finding("info", "ocm-scheduling-disabled", message, document)
        return
    message = f"{invalid_set.key} has an invalid selector: {skipped.reason}"
    yield _make_finding("error", "ocm-set-unusable", message, invalid_set)
    message = f"{document.key} keeps its previous decisions: {invalid_set.key} is invalid"
    yield _make_finding("warning", "stale-decision", message, document)


def _make_finding(severity: Severity, code: str, message: str, document: Document) -> Finding:
    return Finding(severity, code, message, locate_document(document), document.key.resource)
