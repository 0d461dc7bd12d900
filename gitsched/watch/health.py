"""Health of the watch process, as reported by /healthz, /readyz and gitsched_ready."""

from __future__ import annotations

import time
from typing import NamedTuple

from gitsched.model.errors import Conflict, Temporary
from gitsched.watch.loop import ReconcileAttempt
from gitsched.watch.wakeup import Wakeup

STUCK_AFTER = 3600.0
"""Seconds after which a run counts as hanging. Everything in it that waits for others gives up long before."""


class HealthStatus(NamedTuple):
    """`well` decides between 200 and 503; `text` names no address and no reason of the remote's, since anybody may ask."""

    healthy: bool
    message: str


class WatchHealth:
    """Written by the loop, read by other threads: each attribute is replaced as a whole."""

    def __init__(self, bell: Wakeup) -> None:
        self._wakeup = bell
        self._started_at: float | None = None
        self._last: tuple[ReconcileAttempt, float] | None = None
        self._failing_since: float | None = None

    def begin(self) -> None:
        """A run begins."""
        self._started_at = time.monotonic()

    def end(self, attempt: ReconcileAttempt) -> None:
        """A run is over. A lost race says that the other side is there."""
        now = time.monotonic()
        ill = attempt.error is not None and not isinstance(attempt.error, Conflict)
        self._failing_since = (self._failing_since or now) if ill else None
        self._last, self._started_at = (attempt, now), None

    def check_liveness(self) -> HealthStatus:
        """Whether it should be left alone rather than started anew: an outage of others is no reason."""
        began = self._started_at
        hangs = began is not None and time.monotonic() - began > STUCK_AFTER
        return HealthStatus(not hangs, f"a run has been going for more than {STUCK_AFTER:g} seconds" if hangs else "ok")

    def check_readiness(self) -> HealthStatus:
        """Whether the output follows the source at the moment."""
        last, since = self._last, self._failing_since
        if self._wakeup.stopped:
            return HealthStatus(False, "ending")
        if last is None:
            return HealthStatus(False, "the first look is not done yet")
        if since is None:
            return HealthStatus(True, "ok")
        attempt, then = last
        age = f"for {max(time.monotonic() - since, 0):.0f} s"
        if isinstance(attempt.error, Temporary):
            left = max(attempt.delay.total_seconds() - (time.monotonic() - then), 0)
            return HealthStatus(
                False, f"a repository cannot be reached, {age}; trying again in {left:.0f} s; the log has the reason"
            )
        return HealthStatus(False, f"what is asked for cannot be done, {age}; waiting for a change; the log has the reason")
