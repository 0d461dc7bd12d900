"""The reconcile loop: run at start, on a moved ref, a webhook, a deadline or the interval; retry with backoff. The only clock of
the watch process."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from gitsched.decide.gc_pause import collect_garbage
from gitsched.model.errors import Conflict, GitschedError, Temporary
from gitsched.model.time import format_time
from gitsched.reconcile import RunResult
from gitsched.watch.ref_watcher import RunCause, read_file_states, wait_for_change
from gitsched.watch.wakeup import Wakeup

LOGGER = logging.getLogger("gitsched")
MIN_BACKOFF = timedelta(seconds=5)
CONFLICT_BACKOFF = timedelta(milliseconds=100)
MAX_BACKOFF = timedelta(minutes=5)
"""The first pause after what is temporary, after a lost race, and the longest one; a pause doubles from the first to the last."""
JITTER = 0.1
"""By which part an interval is longer or shorter, so that the looks of many processes at one forge drift apart."""
GC_INTERVAL = 64
"""Looks, after the first one, until what they left over is thrown away."""


class ReconcileRunner(Protocol):
    """What is run again and again, with a memory: `gitsched.reconcile.Session`."""

    def run(self, now: datetime) -> RunResult:
        """Bring the output branch up to date."""

    def watch_paths(self) -> list[Path]:
        """Files and directories of this machine in which a moved ref shows; none for a remote."""


class ReconcileAttempt(NamedTuple):
    """One look: what caused it, when a look was first asked for (time.monotonic, or None), how long it took and how it ended.

    Either `run` or `error` is None. `seconds` is the duration of the run, `pause` the longest time until the next one.
    """

    cause: RunCause | Literal["start", "retry"]
    requested_at: float | None
    seconds: float
    run: RunResult | None
    error: GitschedError | None
    delay: timedelta


class AttemptListener(Protocol):
    """Who wants to know what the loop does."""

    def begin(self) -> None:
        """A look begins."""

    def end(self, attempt: ReconcileAttempt) -> None:
        """It is over, whether it went well or not."""


def watch(
    session: ReconcileRunner,
    *,
    interval: timedelta,
    listener: AttemptListener,
    bell: Wakeup | None = None,
    debounce: timedelta = timedelta(seconds=1),
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> None:
    """Run until the bell stops it, and never leave because of the input.

    What is permanent waits for the next change, what is temporary for a pause that doubles. A stop is heeded between two runs, so no
    run is left half done. A look that somebody rang for comes at once, but not within `debounce` of the last one.
    """
    bell = bell or Wakeup()
    failures = runs = 0
    cause: RunCause | Literal["start", "retry"] = "start"
    while not bell.stopped:
        paths = session.watch_paths()
        # Looked at before the run: what moves meanwhile is seen right after it. So is who rings meanwhile.
        seen, heard, began = read_file_states(paths), bell.take_request(), time.monotonic()
        listener.begin()
        run: RunResult | None = None
        error: GitschedError | None = None
        wait = interval * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - jitter, not a secret
        try:
            run = session.run(now())
        except GitschedError as caught:
            error = caught
        seconds = time.monotonic() - began
        failures = failures + 1 if isinstance(error, Temporary | Conflict) else 0
        if error is not None and failures:
            wait = compute_backoff(failures, error)
        elif run is not None and run.plan.next_wakeup is not None:
            wait = min(wait, max(run.plan.next_wakeup - now(), timedelta()))
            LOGGER.debug("next wake-up at %s", format_time(run.plan.next_wakeup))
        listener.end(ReconcileAttempt(cause, heard, seconds, run, error, wait))
        _log_error(error, wait)
        if runs % GC_INTERVAL == 0:
            collect_garbage()
        runs += 1
        if error is not None and failures:
            _wait_before_retry(bell, wait, error)
            cause = "retry"
        else:
            cause = wait_for_change(paths, seen, max(wait, timedelta(milliseconds=1)), bell)
            if cause == "hook":
                bell.wait(began + debounce.total_seconds() - time.monotonic(), for_stop_only=True)


def compute_backoff(failures: int, error: GitschedError) -> timedelta:
    """How long to wait after so many failures in a row; what the other side asks for is not undercut."""
    asked = error.retry_after if isinstance(error, Temporary) else None
    doubled: timedelta = (CONFLICT_BACKOFF if isinstance(error, Conflict) else MIN_BACKOFF) * 2 ** min(failures - 1, 16)
    return max(min(doubled, MAX_BACKOFF), timedelta(seconds=asked or 0))


def _wait_before_retry(bell: Wakeup, wait: timedelta, error: GitschedError) -> None:
    """After a failure: who rings knows that the other side is back, but gets no more than a first pause would have asked for."""
    patient = isinstance(error, Temporary) and error.retry_after is not None
    least = wait if patient else min(wait, MIN_BACKOFF)
    bell.wait(least.total_seconds(), for_stop_only=True)
    bell.wait((wait - least).total_seconds())


def _log_error(error: GitschedError | None, wait: timedelta) -> None:
    if isinstance(error, Conflict):
        LOGGER.info("%s; looking again", error, extra={"fields": {"event": "conflict"}})
    elif isinstance(error, Temporary):
        LOGGER.warning("%s; trying again in %g s", error, wait.total_seconds(), extra={"fields": {"event": "temporary"}})
    elif error is not None:
        LOGGER.error("%s; waiting for a change", error, extra={"fields": {"event": "permanent"}})
