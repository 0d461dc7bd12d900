"""From documents to outcomes: every workload asked of every API, what does not change taken from memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from gitsched.apis.gitsched.config import GROUP, Config
from gitsched.apis.karmada import names
from gitsched.apis.karmada.session import KarmadaSession
from gitsched.apis.world import Session, World
from gitsched.model.document import Body, Document, Key
from gitsched.model.finding import Finding
from gitsched.model.outcome import Outcome
from gitsched.plan.catalog import Catalog, Loose, build_catalog, twin_finding

APIS: tuple[type[KarmadaSession], ...] = (KarmadaSession,)
"""Every policy API, in the order in which they are asked. A new one is one package under apis/ and one line here."""

RESERVED = names.GROUPS | {GROUP}
"""API groups whose documents are read by gitsched and never placed."""


class Decided(NamedTuple):
    """`frozen` are workloads whose document is broken or there twice: their manifests stay what they were."""

    catalog: Catalog
    sessions: tuple[Session, ...]
    templates: Mapping[Key, Document]
    outcomes: Mapping[Key, Outcome]
    frozen: frozenset[Key]
    unclaimed: int
    findings: tuple[Finding, ...]


class Steady(NamedTuple):
    """An outcome that changed nothing, and what it was read from: it holds as long as all of that is the same and no deadline passed."""

    document: Document
    previous: Body | None
    outcome: Outcome | None


class Memory:
    """Outcomes of earlier runs in this process. Forgetting it costs time, never correctness."""

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
) -> Decided:
    """Decide every workload. The order is (namespace, name); no decision depends on it."""
    catalog = build_catalog(documents, config.kinds, RESERVED)
    world = World(catalog.settings, frozenset(catalog.broken), previous, config, at, now)
    memory = memory or Memory()
    sessions = _open(world, memory)
    outcomes: dict[Key, Outcome] = {}
    templates: dict[Key, Document] = {}
    unclaimed = 0
    for document in catalog.templates:
        outcome = _recall(document, world, memory) or _decide(document, sessions, world, memory)
        templates[document.key] = document
        if outcome is None:
            unclaimed += 1
        else:
            outcomes[document.key] = outcome
    findings = [*catalog.findings, *(finding for session in sessions for finding in session.findings)]
    frozen: set[Key] = set()
    for key, document, why, finding in _quarantined(catalog):
        selected = next((session for session in sessions if session.selects(document)), None)
        kept = next((kept for session in sessions if (kept := session.keep(document, why))), None)
        if finding is not None and (selected or kept):
            findings.append(finding)
        if kept is not None:
            outcomes[key], templates[key] = kept, document
            frozen.add(key)
    return Decided(catalog, sessions, templates, outcomes, frozenset(frozen), unclaimed, tuple(findings))


def _open(world: World, memory: Memory) -> tuple[Session, ...]:
    """The sessions of a run. Outcomes in memory hold only under the very same settings."""
    context = (world.documents, world.broken, world.config)
    if memory.context != context:
        memory.context = context
        memory.steady.clear()
    return tuple(api(world) for api in APIS)


def _recall(document: Document, world: World, memory: Memory) -> Outcome | None:
    steady = memory.steady.get(document.key)
    if steady is None or steady.outcome is None or steady.document != document:
        return None
    if any(world.previous.get(key) is not steady.previous for key, _ in steady.outcome.documents):
        return None
    wakeup = steady.outcome.wakeup
    return steady.outcome if wakeup is None or wakeup > world.now else None


def _decide(document: Document, sessions: tuple[Session, ...], world: World, memory: Memory) -> Outcome | None:
    for session in sessions:
        outcome = session.place(document)
        if outcome is not None:
            ((key, body),) = outcome.documents
            previous = world.previous.get(key)
            if previous == body:
                memory.steady[document.key] = Steady(document, previous, outcome)
            return outcome
    return None


def _quarantined(catalog: Catalog) -> Iterable[tuple[Key, Document, str, Finding | None]]:
    for key, copies in sorted(catalog.twins.items()):
        yield key, copies[0], "it stands in several places", twin_finding(copies)
    for key, document in sorted(catalog.broken.items()):
        if key.group not in RESERVED and key not in catalog.twins:
            yield key, document, "its document is broken", None
