"""From a commit to placements: observe, plan, write, and again when somebody else was faster.

commit -> documents, findings -> outcomes -> files -> tree -> commit -> ref
"""

from __future__ import annotations

import logging
import random
import time

from gitsched.model.errors import Conflict
from gitsched.model.finding import Finding
from gitsched.plan.planning import Plan
from gitsched.reconcile.session import Session
from gitsched.reconcile.settings import Run, Settings

__all__ = ["Plan", "Run", "Session", "Settings", "preview", "reconcile", "validate_source"]

TRIES = 5
_log = logging.getLogger("gitsched.reconcile")


def reconcile(settings: Settings) -> Run:
    """Bring the output branch to what the source says. Raises Conflict after five lost races."""
    return run_until_won(Session(settings), settings)


def run_until_won(session: Session, settings: Settings) -> Run:
    """Run a session; a lost race is observed and planned anew, after a pause that lets rivals drift apart."""
    for attempt in range(1, TRIES + 1):
        try:
            return session.run(settings.now)
        except Conflict as conflict:
            if attempt == TRIES:
                raise
            _log.info("the output branch moved meanwhile (%s): planning again", conflict)
            time.sleep(random.uniform(0.05, 0.25) * attempt)  # noqa: S311 - jitter, not a secret
    raise AssertionError("unreachable")


def preview(settings: Settings, *, whole: bool = False) -> Run:
    """What `reconcile` would do. Objects may be written to the repository, no ref moves. A `whole` plan has `decided`, too."""
    return Session(settings).run(settings.now, write=False, whole=whole)


def validate_source(settings: Settings) -> tuple[Finding, ...]:
    """Every finding about the source: of its files, its documents and how they fit together."""
    return preview(settings._replace(observations="recorded", checking=True)).plan.findings
