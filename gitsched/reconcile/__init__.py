"""From a commit to placements: observe, plan, write, and again when somebody else was faster.

commit -> documents, findings -> outcomes -> files -> tree -> commit -> ref
"""

from __future__ import annotations

import logging
import random
import time

from gitsched.decide.plan import Plan
from gitsched.model.errors import Conflict
from gitsched.model.finding import Finding
from gitsched.reconcile.reconciler import Reconciler
from gitsched.reconcile.run import RunResult, RunSettings

__all__ = ["Plan", "Reconciler", "RunResult", "RunSettings", "preview", "reconcile", "validate_source"]

MAX_ATTEMPTS = 5
_log = logging.getLogger("gitsched.reconcile")


def reconcile(settings: RunSettings) -> RunResult:
    """Bring the output branch to what the source says. Raises Conflict after five lost races."""
    return run_with_retries(Reconciler(settings), settings)


def run_with_retries(session: Reconciler, settings: RunSettings) -> RunResult:
    """Run a session; a lost race is observed and planned anew, after a pause that lets rivals drift apart."""
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            return session.run(settings.now)
        except Conflict as conflict:
            if attempt == MAX_ATTEMPTS:
                raise
            _log.info("the output branch moved meanwhile (%s): planning again", conflict)
            time.sleep(random.uniform(0.05, 0.25) * attempt)  # noqa: S311 - jitter, not a secret
    raise AssertionError("unreachable")


def preview(settings: RunSettings, *, whole: bool = False) -> RunResult:
    """What `reconcile` would do. Objects may be written to the repository, no ref moves. A `whole` plan has `decided`, too."""
    return Reconciler(settings).run(settings.now, write=False, whole=whole)


def validate_source(settings: RunSettings) -> tuple[Finding, ...]:
    """Every finding about the source: of its files, its documents and how they fit together."""
    return preview(settings._replace(observations="recorded", findings_only=True)).plan.findings
