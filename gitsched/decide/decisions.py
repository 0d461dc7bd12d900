"""Decide the placement of every workload with the policy engines, and reuse cached decisions whose inputs did not change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from gitsched.apis.engine import DependencyTracking, PolicyEngine, ReferenceReading, Snapshot
from gitsched.apis.gitsched.config import Config
from gitsched.decide.catalog import Catalog, RawDocument, build_catalog, make_duplicate_finding, make_scope_finding
from gitsched.decide.registry import create_engines, reserved_groups
from gitsched.model.document import Body, Document, Key
from gitsched.model.explanation import Explanation
from gitsched.model.finding import Finding, locate_document
from gitsched.model.scheduling import Outcome


class DecisionSet(NamedTuple):
    """`frozen` are workloads whose document is broken or there twice: their manifests stay what they were.

    `restless` are those that may be decided otherwise when they are looked at again, `own` those that an API decides about by itself.
    """

    catalog: Catalog
    engines: tuple[PolicyEngine, ...]
    outcomes: Mapping[Key, Outcome]
    templates: Mapping[Key, Document]
    quarantined: frozenset[Key]
    findings: tuple[Finding, ...]
    unstable: frozenset[Key]
    own_workloads: frozenset[Key] = frozenset()

    def explain(self, document: Document) -> Explanation | None:
        """Why a workload is where it is, as the API tells that places it; None where none does."""
        return next((told for session in self.engines if (told := session.explain(document))), None)

    @property
    def unclaimed(self) -> int:
        """How many objects no policy selects, no API has a record of, and none consults."""
        claimed = self.outcomes.keys() | {key for session in self.engines for key, _ in session.records()}
        claimed |= {key for session in self.engines if isinstance(session, ReferenceReading) for key in session.referenced_keys()}
        return sum(key not in claimed for key in self.catalog.templates)

    @property
    def wakeups(self) -> list[datetime]:
        """The moments at which time alone can change something."""
        wakeups = [outcome.wakeup for outcome in self.outcomes.values()] + [session.wakeup for session in self.engines]
        return [wakeup for wakeup in wakeups if wakeup is not None]


class CachedDecision(NamedTuple):
    """An outcome that changed nothing, and what it was read from: it holds as long as all of that is the same and no deadline passed.

    `basis` is what it was read from besides its own document and records, `at` the source's moment then: one that lies before it may
    tell another time.
    """

    document: Document
    previous: tuple[Body | None, ...]
    outcome: Outcome
    inputs: tuple[object, ...]
    source_time: datetime


class DecisionCache:
    """Results of earlier runs in this process. Forgetting them costs time, never correctness."""

    __slots__ = ("context", "decisions")

    def __init__(self) -> None:
        self.context: Any = None
        self.decisions: dict[Key, CachedDecision] = {}


def decide(
    documents: Iterable[RawDocument],
    previous: Mapping[Key, Body],
    config: Config,
    at: datetime,
    now: datetime,
    memory: DecisionCache | None = None,
    observations: Mapping[Any, Any] | None = None,
    once: bool = False,
) -> DecisionSet:
    """Decide every workload, `once` or until a second look changes nothing. The order is (namespace, name); no decision depends on it."""
    memory = memory or DecisionCache()
    catalog = build_catalog(documents, config.kinds, reserved_groups())
    broken = frozenset((*catalog.broken, *catalog.duplicate_templates))
    observed = observations or {}
    catalogued = (catalog.duplicate_api_documents, catalog.read_order)
    world = Snapshot(catalog.api_documents, catalog.templates, broken, previous, config, at, now, observed, *catalogued, once)
    context = (catalog.api_documents, broken, config, catalog.duplicate_api_documents)
    if memory.context != context:
        memory.context = context
        memory.decisions.clear()
    sessions = create_engines(world)
    relating = list_dependency_trackers(sessions)
    templates = dict(catalog.templates)
    outcomes: dict[Key, Outcome] = {}
    for key, document in catalog.templates.items():
        outcome = _read_cached_decision(document, relating, world, memory) or _decide_and_cache(
            document, sessions, relating, world, memory
        )
        if outcome is not None:
            outcomes[key] = outcome
    findings = [*catalog.findings, *(finding for session in sessions for finding in session.findings)]
    frozen: set[Key] = set()
    for key, document, why, finding in _list_quarantined(catalog):
        kept = next((kept for session in sessions if (kept := session.keep_previous(document, why))), None)
        if finding is not None and (kept is not None or any(session.selects(document) for session in sessions)):
            findings.append(finding)
        if kept is not None:
            outcomes[key], templates[key] = kept, document
            frozen.add(key)
    own: set[Key] = set()
    for document, outcome in (decision for session in sessions for decision in session.own_workloads()):
        rival = outcomes.get(document.key)
        if rival is not None:
            findings.append(_make_two_claims_finding(document, rival, outcome))
        if rival is None or not rival.previous_targets:
            outcomes[document.key], templates[document.key] = outcome, document
            own.add(document.key)
    chosen = {(key.group, key.kind) for key in outcomes}
    findings += [make_scope_finding(document) for kind, document in sorted(catalog.guessed_scopes.items()) if kind in chosen]
    restless = frozenset(key for key in outcomes if key not in memory.decisions)
    return DecisionSet(catalog, sessions, outcomes, templates, frozenset(frozen), tuple(findings), restless, frozenset(own))


def _make_two_claims_finding(document: Document, one: Outcome, other: Outcome) -> Finding:
    """Two APIs would decide where a workload goes: whoever had it keeps it."""
    message = f"{document.key} is claimed by {one.policy} ({one.api}) and by {other.policy} ({other.api}): let one of them go"
    return Finding("error", "two-claims", message, locate_document(document), document.key.resource)


def list_dependency_trackers(sessions: Iterable[PolicyEngine]) -> tuple[DependencyTracking, ...]:
    return tuple(session for session in sessions if isinstance(session, DependencyTracking))


def _read_cached_decision(
    document: Document, relating: tuple[DependencyTracking, ...], world: Snapshot, memory: DecisionCache
) -> Outcome | None:
    steady = memory.decisions.get(document.key)
    if (
        steady is None
        or world.at < steady.source_time
        or steady.document != document
        or steady.inputs != _list_decision_inputs(document, relating)
    ):
        return None
    known = zip(steady.outcome.records, steady.previous, strict=True)
    if any(world.previous.get(key) is not before for (key, _), before in known):
        return None
    wakeup = steady.outcome.wakeup
    return steady.outcome if wakeup is None or wakeup > world.now else None


def _list_decision_inputs(document: Document, relating: tuple[DependencyTracking, ...]) -> tuple[object, ...]:
    return tuple(entry for session in relating for entry in session.decision_inputs(document))


def _decide_and_cache(
    document: Document,
    sessions: tuple[PolicyEngine, ...],
    relating: tuple[DependencyTracking, ...],
    world: Snapshot,
    memory: DecisionCache,
) -> Outcome | None:
    memory.decisions.pop(document.key, None)
    outcome = decide_workload(document, sessions)
    if outcome is not None and is_unchanged(outcome, world.previous):
        previous = tuple(world.previous.get(key) for key, _ in outcome.records)
        memory.decisions[document.key] = CachedDecision(
            document, previous, outcome, _list_decision_inputs(document, relating), world.at
        )
    return outcome


def decide_workload(document: Document, sessions: Iterable[PolicyEngine]) -> Outcome | None:
    """What the API makes of a workload that selects it; None when none does.

    Of several the one that has it already keeps it, else the first, with a finding.
    """
    found: list[Outcome] = []
    for session in sessions:
        outcome = session.decide(document) if not found or session.selects(document) else None
        if outcome is not None:
            found.append(outcome)
    if len(found) < 2:
        return found[0] if found else None
    holder = next((outcome for outcome in found if outcome.previous_targets), found[0])
    rival = next(outcome for outcome in found if outcome is not holder)
    return holder._replace(findings=(*holder.findings, _make_two_claims_finding(document, holder, rival)))


def is_unchanged(outcome: Outcome, previous: Mapping[Key, Body]) -> bool:
    """Whether a decision changed nothing, so that it would be taken again."""
    return all(previous.get(key) == body for key, body in outcome.records)


def _list_quarantined(catalog: Catalog) -> Iterable[tuple[Key, Document, str, Finding | None]]:
    for key, copies in sorted(catalog.duplicate_templates.items()):
        yield key, copies[0], "it stands in several places", make_duplicate_finding(copies)
    for key, document in sorted(catalog.broken.items()):
        if key.group in reserved_groups():  # an API may place documents of its own
            yield key, document, "its document is broken, or there twice", None
        elif key not in catalog.duplicate_templates:
            yield key, document, "its document is broken", None
