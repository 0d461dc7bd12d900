"""Decisions that several plans share: of the same workloads, with the same output, settings and times, and with other policies."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import PolicyReading
from gitsched.decide.incremental.changed_documents import NO_PARTS
from gitsched.decide.workload_decision import decide_workload

if TYPE_CHECKING:
    from datetime import datetime

    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.apis.snapshot import Snapshot
    from gitsched.decide.incremental.changed_documents import SourceDiff
    from gitsched.model.document import Document, Key
    from gitsched.model.scheduling import Outcome

    _Inputs = tuple[datetime, datetime, tuple[object, ...]]

Decide = Callable[["Document", "tuple[PolicyEngine, ...]", "Snapshot"], "Outcome | None"]


class KnownDecisions:
    """The decisions of plans that start from the same state, and whose changes are of policies alone, with what they read of these."""

    def __init__(self) -> None:
        self._known: dict[Key, list[tuple[_Inputs, Outcome | None]]] = {}

    def choose(self, diff: SourceDiff, engines: tuple[PolicyEngine, ...], snapshot: Snapshot) -> Decide:
        """Return what decides workloads: from what is known if nothing but policies differs from the state."""
        engine = engines[0] if len(engines) == 1 else None
        if not isinstance(engine, PolicyReading) or not all(key[:2] in engine.policy_kinds for key in diff.api_documents):
            return decide_workload
        others = diff.templates or diff.settings or diff.tenants or diff.parts != NO_PARTS
        if others or snapshot.tenancy or snapshot.variants or snapshot.kept or snapshot.observations:
            return decide_workload
        return partial(self._decide, engine)

    def _decide(
        self, engine: PolicyReading, document: Document, engines: tuple[PolicyEngine, ...], snapshot: Snapshot
    ) -> Outcome | None:
        read = engine.list_policy_inputs(document)
        if read is None:
            return decide_workload(document, engines, snapshot)
        inputs, known = (snapshot.at, snapshot.now, read), self._known.setdefault(document.key, [])
        for earlier, outcome in known:
            if earlier == inputs:
                return outcome
        outcome = decide_workload(document, engines, snapshot)
        known.append((inputs, outcome))
        return outcome
