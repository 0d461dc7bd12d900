"""What is worth telling about a run: mistakes, empty sets, expired scores, Placements that nobody may choose for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from gitsched.apis.ocm.evaluation import Evaluation
from gitsched.apis.ocm.placement import Mistake
from gitsched.apis.ocm.run import Blocked, Run
from gitsched.model.document import Document
from gitsched.model.finding import Finding, Pointer, Rule, Severity, locate
from gitsched.schedule.choose import FILTERS
from gitsched.schedule.fleet import Fleet

_SHOWN = 5
_POINTERS: Mapping[str, Pointer] = {"Predicate": ("spec", "predicates"), "TaintToleration": ("spec", "tolerations")}


def note_run(run: Run, fleet: Fleet, overspent: Callable[[tuple[str, ...]], bool]) -> Iterator[Finding]:
    """Findings in the order of the Placements."""
    for found in run.evaluations.values():
        yield from _note(found, overspent)
        if found.choice is not None and not found.choice.chosen and found.placement.number != 0:
            document = found.placement.document
            message = f"{document.key} chooses no cluster: {_tell_nothing(found, fleet)}"
            yield _finding("warning", "ocm-nothing-chosen", message, document)
    for blocked in run.blocked.values():
        yield from _note_blocked(blocked)


def _note(found: Evaluation, overspent: Callable[[tuple[str, ...]], bool]) -> Iterator[Finding]:
    document = found.placement.document
    if found.mistake is not None:
        message = f"{document.key} is misconfigured and keeps what it had decided: {str(found.mistake).removeprefix(':')}"
        mistake = found.mistake
        pointer = _POINTERS.get(mistake.plugin, ("spec",))
        rule = Rule(document.origin, pointer) if document.origin is not None else None
        finding = _finding("error", mistake.code if mistake.code else "ocm-misconfigured", message, document)
        yield finding._replace(rule=rule)
        return
    predicates = found.placement.predicates
    if not isinstance(predicates, Mistake) and any(overspent(predicate.expressions) for predicate in predicates):
        message = f"{document.key} has an expression that takes too many steps: it holds for none of the clusters where it does"
        yield _finding("warning", "cel-cost", message, document)
    if found.expired:
        told = ", ".join(f"{cluster}/{resource}" for cluster, resource in found.expired[:_SHOWN])
        more = f" and {len(found.expired) - _SHOWN} more" if len(found.expired) > _SHOWN else ""
        message = f"{document.key} counts AddOnPlacementScores that have expired as 0: {told}{more}"
        yield _finding("warning", "ocm-scores-expired", message, document)


def _tell_nothing(found: Evaluation, fleet: Fleet) -> str:
    """Where all clusters were lost; upstream's status says only that none matches, be it for a binding, a predicate or a taint."""
    offer, request, choice = found.offer, found.request, found.choice
    if not offer.bound:
        return f"the namespace {found.placement.key.namespace} is bound to no cluster set; a ManagedClusterSetBinding is missing"
    if not offer.eligible:
        return f"it wants {', '.join(found.placement.sets)}, and its namespace is bound to {', '.join(offer.bound)}"
    if request is None or choice is None or not offer.available:
        return f"{', '.join(offer.eligible)} has no cluster"
    matched = choice.left[0]
    reasons = Counter(FILTERS[1].reason(request, fleet, index) for index in fleet.members(matched & ~choice.left[1]))
    told = [f"{count} because {reason}" for reason, count in sorted(reasons.items(), key=lambda entry: (-entry[1], entry[0]))]
    lost = offer.available.bit_count() - matched.bit_count()
    parts = [*([f"{lost} do not meet its predicates"] if lost else []), *told[:_SHOWN]]
    return (
        f"of {offer.available.bit_count()}, {'; '.join(parts)}"
        if parts
        else "none of those that are left may be, to be spread evenly"
    )


def _note_blocked(blocked: Blocked) -> Iterator[Finding]:
    if blocked.unusable is None:
        return
    unusable, document = blocked.unusable, blocked.placement.document
    message = f"{unusable.key} selects no clusters that can be known: {blocked.why}"
    yield _finding("error", "ocm-set-unusable", message, unusable)
    message = f"{document.key} keeps what it had decided: {unusable.key} cannot be used"
    yield _finding("warning", "stale-decision", message, document)


def _finding(severity: Severity, code: str, message: str, document: Document) -> Finding:
    return Finding(severity, code, message, locate(document), document.key.resource)
