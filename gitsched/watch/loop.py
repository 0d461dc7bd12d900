"""The reconcile loop: run at start, on a moved ref, a webhook, a deadline or the interval; retry with backoff. The only clock of
the watch process."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, Protocol

from gitsched.decide.garbage_collection import collect_garbage
from gitsched.model.errors import Conflict, GitschedError, Permanent, Temporary
from gitsched.model.fault import describe_fault
from gitsched.model.system_errors import convert_system_error
from gitsched.model.time import format_time
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile import RunResult
from gitsched.watch.ref_watcher import RunCause, read_file_states, wait_for_change
from gitsched.watch.wakeup import Wakeup

LOGGER = logging.getLogger("gitsched")
MIN_BACKOFF = timedelta(seconds=5)
CONFLICT_BACKOFF = timedelta(milliseconds=100)
MAX_BACKOFF = timedelta(minutes=5)
"""Delays after a temporary error and after a conflict, and the longest delay; a delay doubles from the first to the longest."""
JITTER = 0.1
"""Relative random deviation of the interval, so that many processes do not poll one forge at the same time."""
GC_INTERVAL = 64
"""Runs between two garbage collections, after the first one."""


class RunFault(Temporary):
    """A bug on which a run failed. The next run, without caches, or with another input, may succeed."""


class ReconcileRunner(Protocol):
    """Runs reconcile repeatedly and caches between runs: `gitsched.reconcile.Reconciler`."""

    def run(self, now: datetime) -> RunResult:
        """Update the output branch."""

    def watch_paths(self) -> list[Path]:
        """Return the local files and directories that change when a ref moves; none for a remote."""

    def close_files(self) -> None:
        """Close files that git may have replaced."""

    def drop_caches(self) -> None:
        """Start the next run without the state of earlier ones."""


class ReconcileAttempt(NamedTuple):
    """One run: its cause, the time at which it was requested (time.monotonic, or None), its duration and its result.

    Either `run` or `error` is None. `seconds` is the duration of the run, `delay` the maximum time until the next one.
    """

    cause: RunCause | Literal["start", "retry"]
    requested_at: float | None
    seconds: float
    run: RunResult | None
    error: GitschedError | None
    delay: timedelta


class AttemptListener(Protocol):
    """Is notified of each run."""

    def begin(self) -> None:
        """Record that a run begins."""

    def end(self, attempt: ReconcileAttempt) -> None:
        """Return the run has ended, with or without an error."""


def read_clock() -> datetime:
    """Return the current time."""
    return datetime.now(UTC)


def watch(
    runner: ReconcileRunner,
    *,
    interval: timedelta,
    listener: AttemptListener,
    wakeup: Wakeup | None = None,
    debounce: timedelta = timedelta(seconds=1),
    now: Callable[[], datetime] = read_clock,
) -> None:
    """Run reconcile until `wakeup` is stopped, with debounce and backoff; no input ends the loop.

    A permanent error waits for the next change, or for the interval, which doubles while the error repeats; a temporary error waits
    for a delay that doubles. A stop takes effect between two runs,
    so no run is interrupted. A requested run starts at once, but not within `debounce` of the previous one. A run for a deadline
    starts after a pause of at least `debounce` and of the duration of the previous run: deadlines that are close together share a
    run, which decides each one as of its own time, so that thousands of them occupy at most half of a core.
    """
    wakeup = wakeup or Wakeup()
    failures = runs = repeated = 0
    last_error = ""
    cause: RunCause | Literal["start", "retry"] = "start"
    while not wakeup.stopped:
        paths = runner.watch_paths()
        # Read before the run: a ref that moves, or a request that arrives, during the run causes another run.
        file_states, requested_at, started_at = read_file_states(paths), wakeup.take_request(), time.monotonic()
        listener.begin()
        run: RunResult | None = None
        error: GitschedError | None = None
        delay = interval * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - jitter, not a secret
        try:
            run = runner.run(now())
        except Exception as caught:  # noqa: BLE001 - logged below; no input ends the loop
            error = convert_error(caught)
        if isinstance(error, RunFault):
            runner.drop_caches()
        seconds = time.monotonic() - started_at
        runner.close_files()
        failures = failures + 1 if isinstance(error, Temporary | Conflict) else 0
        if error is not None and failures:
            delay = compute_backoff(failures, error)
        elif run is not None and run.plan.next_wakeup is not None:
            delay = min(delay, max(run.plan.next_wakeup - now(), debounce, timedelta(seconds=seconds)))
            LOGGER.debug("next wake-up at %s", format_time(run.plan.next_wakeup))
        repeated = repeated + 1 if error is not None and str(error) == last_error else 0
        last_error = str(error) if error is not None else ""
        if isinstance(error, Permanent):
            delay = max(delay, min(delay * 2 ** min(repeated, 16), MAX_BACKOFF))
        attempt = ReconcileAttempt(cause, requested_at, seconds, run, error, delay)
        try:
            listener.end(attempt)
        except Exception as caught:  # noqa: BLE001 - the run is complete; a bug in its report must not end the loop
            _log_error(convert_error(caught), delay)
        if _is_power_of_two(repeated + 1):  # the same error is not logged each time
            _log_error(error, delay)
        if runs % GC_INTERVAL == 0:
            collect_garbage()
        runs += 1
        if error is not None and failures:
            _wait_before_retry(wakeup, delay, error)
            cause = "retry"
        else:
            cause = wait_for_change(paths, file_states, max(delay, timedelta(milliseconds=1)), wakeup)
            if cause == "hook":
                wakeup.wait(started_at + debounce.total_seconds() - time.monotonic(), for_stop_only=True)


def convert_error(error: Exception) -> GitschedError:
    """Return the error to log: a failed system call with its reason, a bug with its place and an id for reports."""
    if isinstance(error, GitschedError):
        return error
    found = convert_system_error(error)
    if found is None:
        LOGGER.debug("traceback of a bug", exc_info=error)
        found = RunFault(f"this is a bug: {describe_fault(error)}; report it with the id, and change back what changed last")
    return found


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0


def compute_backoff(failures: int, error: GitschedError) -> timedelta:
    """Return the delay after a number of failures in a row, but at least the delay that the remote asks for."""
    retry_after = error.retry_after if isinstance(error, Temporary) else None
    doubled: timedelta = (CONFLICT_BACKOFF if isinstance(error, Conflict) else MIN_BACKOFF) * 2 ** min(failures - 1, 16)
    return max(min(doubled, MAX_BACKOFF), timedelta(seconds=retry_after or 0))


def _wait_before_retry(wakeup: Wakeup, delay: timedelta, error: GitschedError) -> None:
    """Wait after a failure. A request means that the remote is reachable again, so it ends the wait after the first delay."""
    fixed_delay = isinstance(error, Temporary) and error.retry_after is not None
    minimum = delay if fixed_delay else min(delay, MIN_BACKOFF)
    wakeup.wait(minimum.total_seconds(), for_stop_only=True)
    wakeup.wait((delay - minimum).total_seconds())


def _log_error(error: GitschedError | None, delay: timedelta) -> None:
    if isinstance(error, Conflict):
        LOGGER.info("%s; planning again", error, extra={"fields": {"event": "conflict"}})
    elif isinstance(error, RunFault):
        LOGGER.error("%s; trying again without caches in %g s", error, delay.total_seconds(), extra={"fields": {"event": "bug"}})
    elif isinstance(error, Temporary):
        LOGGER.warning("%s; retrying in %g s", error, delay.total_seconds(), extra={"fields": {"event": "temporary"}})
    elif error is not None:
        LOGGER.error("%s; waiting for a change", error, extra={"fields": {"event": "permanent"}})
