"""Health of the watch process, as reported by /healthz, /readyz and gitsched_ready."""

from __future__ import annotations

import time

from gitsched.model.errors import Conflict, Temporary
from gitsched.named_tuples import NamedTuple
from gitsched.watch.loop import ReconcileAttempt
from gitsched.watch.wakeup import Wakeup

STUCK_AFTER = 3600.0
"""Seconds after which a run counts as stuck. Every wait inside a run has a much shorter limit."""


FAILS = "runs fail until the source, the settings or access to a repository is corrected"
"""What a permanent error means. The server of a repository that has moved or is away for a while reports one, too."""


class HealthStatus(NamedTuple):
    """`healthy` decides between 200 and 503. `message` contains no address and no error text of the remote, since probes are not
    authenticated."""

    healthy: bool
    message: str


class WatchHealth:
    """Health state, written by the loop and read by other threads: each attribute is replaced atomically."""

    def __init__(self, wakeup: Wakeup) -> None:
        self._wakeup = wakeup
        self._started_at: float | None = None
        self._last: tuple[ReconcileAttempt, float] | None = None
        self._failing_since: float | None = None

    def begin(self) -> None:
        """Record that a run begins."""
        self._started_at = time.monotonic()

    def end(self, attempt: ReconcileAttempt) -> None:
        """Record that a run ended. A conflict counts as healthy: the remote is reachable."""
        now = time.monotonic()
        failing = attempt.error is not None and not isinstance(attempt.error, Conflict)
        self._failing_since = (self._failing_since or now) if failing else None
        self._last, self._started_at = (attempt, now), None

    def check_liveness(self) -> HealthStatus:
        """Return whether the process may continue without a restart; an unreachable remote is no reason for one."""
        started_at = self._started_at
        is_stuck = started_at is not None and time.monotonic() - started_at > STUCK_AFTER
        return HealthStatus(not is_stuck, f"a run has taken more than {STUCK_AFTER:g} seconds" if is_stuck else "ok")

    def check_readiness(self) -> HealthStatus:
        """Return whether the output follows the source at present."""
        last, since = self._last, self._failing_since
        if self._wakeup.stopped:
            return HealthStatus(False, "shutting down")
        if last is None:
            return HealthStatus(False, "the first run has not finished yet")
        if since is None:
            return HealthStatus(True, "ok")
        attempt, ended_at = last
        age = f"for {max(time.monotonic() - since, 0):.0f} s"
        reason = "a repository cannot be reached" if isinstance(attempt.error, Temporary) else FAILS
        seconds_left = max(attempt.delay.total_seconds() - (time.monotonic() - ended_at), 0)
        return HealthStatus(False, f"{reason}, {age}; retrying in {seconds_left:.0f} s; see the log for the reason")
