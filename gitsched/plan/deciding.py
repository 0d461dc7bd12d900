"""From documents to outcomes: every workload asked of every API, what does not change taken from memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from gitsched.apis.gitsched.config import Config
from gitsched.apis.world import Consulting, Relating, Session, World
from gitsched.model.document import Body, Document, Key
from gitsched.model.explanation import Explanation
from gitsched.model.finding import Finding, locate
from gitsched.model.outcome import Outcome
from gitsched.plan.catalog import Catalog, Loose, build_catalog, scope_finding, twin_finding
from gitsched.plan.registry import APIS, RESERVED


class Decided(NamedTuple):
    """`frozen` are workloads whose document is broken or there twice: their manifests stay what they were.

    `restless` are those that may be decided otherwise when they are looked at again, `own` those that an API decides about by itself.
    """

    catalog: Catalog
    sessions: tuple[Session, ...]
    outcomes: Mapping[Key, Outcome]
    templates: Mapping[Key, Document]
    frozen: frozenset[Key]
    findings: tuple[Finding, ...]
    restless: frozenset[Key]
    own: frozenset[Key] = frozenset()

    def explain(self, document: Document) -> Explanation | None:
        """Why a workload is where it is, as the API tells that places it; None where none does."""
        return next((told for session in self.sessions if (told := session.explain(document))), None)

    @property
    def unclaimed(self) -> int:
        """How many objects no policy selects, no API has a record of, and none consults."""
        claimed = self.outcomes.keys() | {key for session in self.sessions for key, _ in session.documents()}
        claimed |= {key for session in self.sessions if isinstance(session, Consulting) for key in session.consulted()}
        return sum(key not in claimed for key in self.catalog.templates)

    @property
    def wakeups(self) -> list[datetime]:
        """The moments at which time alone can change something."""
        wakeups = [outcome.wakeup for outcome in self.outcomes.values()] + [session.wakeup for session in self.sessions]
        return [wakeup for wakeup in wakeups if wakeup is not None]


class Steady(NamedTuple):
    """An outcome that changed nothing, and what it was read from: it holds as long as all of that is the same and no deadline passed.

    `basis` is what it was read from besides its own document and records, `at` the source's moment then: one that lies before it may
    tell another time.
    """

    document: Document
    previous: tuple[Body | None, ...]
    outcome: Outcome
    basis: tuple[object, ...]
    at: datetime


class Memory:
    """Results of earlier runs in this process. Forgetting them costs time, never correctness."""

    __slots__ = ("context", "steady")

    def __init__(self) -> None:
        self.context: Any = None
        self.steady: dict[Key, Steady] = {}


def decide(
    documents: Iterable[Loose],
    previous: Mapping[Key, Body],
    config: Config,
    at: datetime,
    now: datetime,
    memory: Memory | None = None,
    observations: Mapping[Any, Any] | None = None,
    once: bool = False,
) -> Decided:
    """Decide every workload, `once` or until a second look changes nothing. The order is (namespace, name); no decision depends on it."""
    memory = memory or Memory()
    catalog = build_catalog(documents, config.kinds, RESERVED)
    broken = frozenset((*catalog.broken, *catalog.twins))
    observed = observations or {}
    catalogued = (catalog.contested, catalog.arrival)
    world = World(catalog.settings, catalog.templates, broken, previous, config, at, now, observed, *catalogued, once)
    context = (catalog.settings, broken, config, catalog.contested)
    if memory.context != context:
        memory.context = context
        memory.steady.clear()
    sessions = tuple(api.open(world) for api in APIS if api.is_used(world))
    relating = list_relating(sessions)
    templates = dict(catalog.templates)
    outcomes: dict[Key, Outcome] = {}
    for key, document in catalog.templates.items():
        outcome = _recall(document, relating, world, memory) or _decide(document, sessions, relating, world, memory)
        if outcome is not None:
            outcomes[key] = outcome
    findings = [*catalog.findings, *(finding for session in sessions for finding in session.findings)]
    frozen: set[Key] = set()
    for key, document, why, finding in _quarantined(catalog):
        kept = next((kept for session in sessions if (kept := session.keep(document, why))), None)
        if finding is not None and (kept is not None or any(session.selects(document) for session in sessions)):
            findings.append(finding)
        if kept is not None:
            outcomes[key], templates[key] = kept, document
            frozen.add(key)
    own: set[Key] = set()
    for document, outcome in (decision for session in sessions for decision in session.own()):
        rival = outcomes.get(document.key)
        if rival is not None:
            findings.append(_contend(document, rival, outcome))
        if rival is None or not rival.before:
            outcomes[document.key], templates[document.key] = outcome, document
            own.add(document.key)
    chosen = {(key.group, key.kind) for key in outcomes}
    findings += [scope_finding(document) for kind, document in sorted(catalog.guessed.items()) if kind in chosen]
    restless = frozenset(key for key in outcomes if key not in memory.steady)
    return Decided(catalog, sessions, outcomes, templates, frozenset(frozen), tuple(findings), restless, frozenset(own))


def _contend(document: Document, one: Outcome, other: Outcome) -> Finding:
    """Two APIs would decide where a workload goes: whoever had it keeps it."""
    message = f"{document.key} is claimed by {one.policy} ({one.api}) and by {other.policy} ({other.api}): let one of them go"
    return Finding("error", "two-claims", message, locate(document), document.key.resource)


def list_relating(sessions: Iterable[Session]) -> tuple[Relating, ...]:
    return tuple(session for session in sessions if isinstance(session, Relating))


def _recall(document: Document, relating: tuple[Relating, ...], world: World, memory: Memory) -> Outcome | None:
    steady = memory.steady.get(document.key)
    if steady is None or world.at < steady.at or steady.document != document or steady.basis != _basis(document, relating):
        return None
    known = zip(steady.outcome.documents, steady.previous, strict=True)
    if any(world.previous.get(key) is not before for (key, _), before in known):
        return None
    wakeup = steady.outcome.wakeup
    return steady.outcome if wakeup is None or wakeup > world.now else None


def _basis(document: Document, relating: tuple[Relating, ...]) -> tuple[object, ...]:
    return tuple(entry for session in relating for entry in session.basis(document))


def _decide(
    document: Document, sessions: tuple[Session, ...], relating: tuple[Relating, ...], world: World, memory: Memory
) -> Outcome | None:
    memory.steady.pop(document.key, None)
    outcome = decide_one(document, sessions)
    if outcome is not None and is_settled(outcome, world.previous):
        previous = tuple(world.previous.get(key) for key, _ in outcome.documents)
        memory.steady[document.key] = Steady(document, previous, outcome, _basis(document, relating), world.at)
    return outcome


def decide_one(document: Document, sessions: Iterable[Session]) -> Outcome | None:
    """What the API makes of a workload that selects it; None when none does.

    Of several the one that has it already keeps it, else the first, with a finding.
    """
    found: list[Outcome] = []
    for session in sessions:
        outcome = session.place(document) if not found or session.selects(document) else None
        if outcome is not None:
            found.append(outcome)
    if len(found) < 2:
        return found[0] if found else None
    holder = next((outcome for outcome in found if outcome.before), found[0])
    rival = next(outcome for outcome in found if outcome is not holder)
    return holder._replace(findings=(*holder.findings, _contend(document, holder, rival)))


def is_settled(outcome: Outcome, previous: Mapping[Key, Body]) -> bool:
    """Whether a decision changed nothing, so that it would be taken again."""
    return all(previous.get(key) == body for key, body in outcome.documents)


def _quarantined(catalog: Catalog) -> Iterable[tuple[Key, Document, str, Finding | None]]:
    for key, copies in sorted(catalog.twins.items()):
        yield key, copies[0], "it stands in several places", twin_finding(copies)
    for key, document in sorted(catalog.broken.items()):
        if key.group in RESERVED:  # an API may place documents of its own
            yield key, document, "its document is broken, or there twice", None
        elif key not in catalog.twins:
            yield key, document, "its document is broken", None
