"""Decisions of earlier plans, which are reused where nothing changed that they depend on."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from gitsched.apis.capabilities import DependencyTracking
from gitsched.apis.policy_api import PolicyEngine
from gitsched.apis.snapshot import Snapshot
from gitsched.decide.workload_decision import (
    decide_workload,
    is_unchanged,
)
from gitsched.model.document import Body, Document, Key

if TYPE_CHECKING:
    from gitsched.model.scheduling import Outcome


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


def read_cached_decision(
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


def decide_and_cache(
    document: Document,
    engines: tuple[PolicyEngine, ...],
    trackers: tuple[DependencyTracking, ...],
    snapshot: Snapshot,
    cache: DecisionCache,
) -> Outcome | None:
    cache.decisions.pop(document.key, None)
    outcome = decide_workload(document, engines, snapshot)
    if outcome is not None and is_unchanged(outcome, snapshot.previous):
        previous = tuple(snapshot.previous.get(key) for key, _ in outcome.records)
        cache.decisions[document.key] = CachedDecision(
            document, previous, outcome, _list_decision_inputs(document, trackers, snapshot), snapshot.at
        )
    return outcome
