"""Decide one workload: the outcome of the API that selects it, adapted to its kind and its variants; or the decision of an earlier plan
where nothing changed that it depends on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gitsched.apis.capabilities import DependencyTracking
from gitsched.apis.policy_api import PolicyEngine
from gitsched.apis.snapshot import Snapshot
from gitsched.decide.controlled_objects import find_controlled
from gitsched.decide.delivered_replicas import count_delivered
from gitsched.decide.encrypted import adapt_encrypted
from gitsched.decide.missing_namespaces import find_missing_namespace
from gitsched.decide.plain_secrets import find_plain_secret
from gitsched.decide.relations.remote_destinations import find_delivered_elsewhere
from gitsched.model.capacity_use import NO_PLACEMENTS
from gitsched.model.delivery import DELIVERING_KINDS
from gitsched.model.document import Body, Document, Key
from gitsched.model.finding import Finding, locate_document
from gitsched.model.variants import BUNDLE_KIND
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.capacity_use import EarlierPlacements
    from gitsched.model.scheduling import Outcome

TWO_CLAIMS = "two-claims"


class DecidedAlone(NamedTuple):
    """The `outcomes` of workloads that are decided each by itself, with what decided them. Those that are `fixed` keep their outcome, and
    those that are `postponed` have none yet. `earlier` is what the previous output has."""

    outcomes: Mapping[Key, Outcome]
    templates: Mapping[Key, Document]
    engines: tuple[PolicyEngine, ...]
    snapshot: Snapshot
    fixed: frozenset[Key] = frozenset()
    earlier: EarlierPlacements = NO_PLACEMENTS
    postponed: frozenset[Key] = frozenset()


class WorkloadCheck(NamedTuple):
    """A check of one workload and its decision. It reads nothing else. `find` is called for the documents that it `concerns`, which tells
    at once."""

    concerns: Callable[[Document], bool]
    find: Callable[[Document, Outcome], Iterable[Finding]]


WORKLOAD_CHECKS: tuple[WorkloadCheck, ...] = (
    WorkloadCheck(lambda document: document.key.kind in DELIVERING_KINDS, find_delivered_elsewhere),
    WorkloadCheck(lambda document: document.key[:2] == ("", "Secret"), find_plain_secret),
    WorkloadCheck(lambda document: "ownerReferences" in document.body["metadata"], find_controlled),
    WorkloadCheck(lambda document: not document.body["metadata"].get("namespace"), find_missing_namespace),
)
"""The checks whose findings belong to the workload, in this order."""


def make_two_claims_finding(document: Document, one: Outcome, other: Outcome) -> Finding:
    """Return the error that two APIs claim a workload. The one that placed it before keeps it."""
    message = (
        f"{document.key} is claimed by {one.policy} ({one.api}) and by {other.policy} ({other.api}): remove it from one of them"
    )
    return Finding("error", TWO_CLAIMS, message, locate_document(document), document.key.resource)


def decide_workload(document: Document, engines: Iterable[PolicyEngine], snapshot: Snapshot) -> Outcome | None:
    """Return the outcome of the API that selects a workload; None when no API does."""
    outcome = _choose_outcome(document, engines)
    return adapt_outcome(document, outcome, snapshot) if outcome is not None else None


def adapt_outcome(document: Document, outcome: Outcome, snapshot: Snapshot, *, keeps: bool = False) -> Outcome:
    """Return the outcome with what follows from the kind of the document and from its variants, and with the replicas that are delivered.
    With `keeps`, no manifest changes."""
    adapted = _adapt_variants(document, _adapt_kind(document, outcome), snapshot)
    return count_delivered(document, adapted, snapshot, keeps=keeps)


def adapt_own_outcome(document: Document, outcome: Outcome, snapshot: Snapshot) -> Outcome:
    """Return the outcome of a workload that an API decides itself, as `adapt_outcome`."""
    return count_delivered(document, _adapt_variants(document, outcome, snapshot), snapshot)


def _adapt_variants(document: Document, outcome: Outcome, snapshot: Snapshot) -> Outcome:
    if not snapshot.variants and document.key[:2] != BUNDLE_KIND:
        return outcome
    from gitsched.decide.variants.variant_outcomes import adapt_variants  # few sources have variants

    return adapt_variants(document, outcome, snapshot.variants, snapshot.previous, snapshot.config)


def _adapt_kind(document: Document, outcome: Outcome) -> Outcome:
    """Return the outcome with what follows from the kind of the document: encrypted ones stay unchanged, others may have findings."""
    if "sops" in document.body or document.key.kind == "SealedSecret":
        outcome = adapt_encrypted(document, outcome)
    found = [finding for check in WORKLOAD_CHECKS if check.concerns(document) for finding in check.find(document, outcome)]
    return outcome._replace(findings=(*outcome.findings, *found)) if found else outcome


def _choose_outcome(document: Document, engines: Iterable[PolicyEngine]) -> Outcome | None:
    """Return the outcome of the API that selects a workload.

    When several do, the one that placed it before wins, else the first, with a finding.
    """
    found: list[Outcome] = []
    for engine in engines:
        outcome = engine.decide(document) if not found or engine.selects(document) else None
        if outcome is not None:
            found.append(outcome)
    if len(found) < 2:
        return found[0] if found else None
    owner = next((outcome for outcome in found if outcome.previous_targets), found[0])
    other = next(outcome for outcome in found if outcome is not owner)
    return owner._replace(findings=(*owner.findings, make_two_claims_finding(document, owner, other)))


def is_unchanged(outcome: Outcome, previous: Mapping[Key, Body]) -> bool:
    """Return whether a decision changed no record, so that deciding again gives the same result. A hold depends on other documents."""
    return outcome.held is None and all(previous.get(key) == body for key, body in outcome.records)


class CachedDecision(NamedTuple):
    """An outcome that changed nothing, and its inputs. It is valid while the inputs stay the same and no deadline passes.

    `inputs` are those besides the document and its records. `source_time` is the time of the source: the outcome is not valid for an
    earlier one.
    """

    document: Document
    previous: tuple[Body | None, ...]
    outcome: Outcome
    inputs: tuple[object, ...]
    source_time: datetime


class DecisionCache:
    """Decisions of earlier runs in this process. Without them a run decides again, with the same result."""

    __slots__ = ("context", "decisions")

    def __init__(self) -> None:
        self.context: Any = None
        self.decisions: dict[Key, CachedDecision] = {}


def decide_or_reuse(
    document: Document,
    engines: tuple[PolicyEngine, ...],
    trackers: tuple[DependencyTracking, ...],
    snapshot: Snapshot,
    cache: DecisionCache,
) -> Outcome | None:
    """Return the decision of an earlier run that is still valid, else decide a workload."""
    known = _read_cached_decision(document, trackers, snapshot, cache)
    if known is not None:
        return known
    cache.decisions.pop(document.key, None)
    outcome = decide_workload(document, engines, snapshot)
    if outcome is not None and is_unchanged(outcome, snapshot.previous):
        previous = tuple(snapshot.previous.get(key) for key, _ in outcome.records)
        cache.decisions[document.key] = CachedDecision(
            document, previous, outcome, _list_decision_inputs(document, trackers, snapshot), snapshot.at
        )
    return outcome


def _read_cached_decision(
    document: Document, trackers: tuple[DependencyTracking, ...], snapshot: Snapshot, cache: DecisionCache
) -> Outcome | None:
    cached = cache.decisions.get(document.key)
    if (
        cached is None
        or snapshot.at < cached.source_time
        or cached.document != document
        or cached.inputs != _list_decision_inputs(document, trackers, snapshot)
    ):
        return None
    known = zip(cached.outcome.records, cached.previous, strict=True)
    if any(snapshot.previous.get(key) is not before for (key, _), before in known):
        return None
    wakeup = cached.outcome.wakeup
    return cached.outcome if wakeup is None or wakeup > snapshot.now else None


def _list_decision_inputs(document: Document, trackers: tuple[DependencyTracking, ...], snapshot: Snapshot) -> tuple[object, ...]:
    variants = (snapshot.variants.get(document.key),) if snapshot.variants else ()
    return (*variants, *(entry for engine in trackers for entry in engine.decision_inputs(document)))
