"""Wake up the waiting watch process from other threads and signal handlers, and shut it down gracefully: end a run that has not published
anything, and let one that publishes finish, with a time limit."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType
from typing import Literal

from gitsched.model.progress import PUBLISHING

_MAX_POLL_SECONDS = 3600.0
"""Maximum seconds of one poll call, whose timeout is a 32-bit number."""


class Wakeup:
    """Wakes up the loop. `stopped` requests the end; `requested_at` is the time (time.monotonic) of the first request since the
    last run, or None.

    It uses a pipe instead of a threading.Event: a signal handler that runs while its own thread holds the event's lock would
    deadlock.
    """

    def __init__(self) -> None:
        self.stopped = False
        self.requested_at: float | None = None
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._poll = select.poll()
        self._poll.register(self._reader, select.POLLIN)

    def request_run(self) -> None:
        """Request a run."""
        if self.requested_at is None:
            self.requested_at = time.monotonic()
        self._notify()

    def stop(self) -> None:
        """Request the end."""
        self.stopped = True
        self._notify()

    def is_set(self) -> bool:
        """Return whether a run or the end is requested; the name is part of watchfiles' stop event."""
        return self.stopped or self.requested_at is not None

    def take_request(self) -> float | None:
        """Return the time of the pending request and clear it."""
        requested_at, self.requested_at = self.requested_at, None
        return requested_at

    def wait(self, seconds: float, *, for_stop_only: bool = False) -> None:
        """Wait until the time is over or a request arrives."""
        end = time.monotonic() + seconds
        while not (self.stopped if for_stop_only else self.is_set()):
            left = end - time.monotonic()
            if left <= 0:
                return
            # Rounded up: a poll that ends early would be repeated at once, many times.
            self._poll.poll(int(min(left, _MAX_POLL_SECONDS) * 1000) + 1)
            with contextlib.suppress(BlockingIOError):
                while os.read(self._reader, 4096):
                    pass

    def _notify(self) -> None:
        # A full pipe wakes up the reader, too.
        with contextlib.suppress(BlockingIOError):
            os.write(self._writer, b"!")


_ABORT_RETRY_SECONDS = 5.0
"""Seconds until RunAborted is raised again in a run that did not end: longer than git needs to terminate."""
_Stage = Literal["waiting", "planning", "publishing"]


class RunAborted(BaseException):
    """Abort the run at once. This leaves nothing incomplete: a ref moves in one step, at the end of a run."""


class GracefulShutdown:
    """The signal that requested the end; 0 before a signal."""

    def __init__(self, wakeup: Wakeup, grace: timedelta) -> None:
        self.wakeup, self.grace, self.signal_number = wakeup, grace, 0
        self._may_abort = True
        self._stage: _Stage = "waiting"

    def follow_run(self, stage: str, _done: int, _total: int) -> None:
        """Note the stage of a run: its `progress`. A run that is to end does not begin another stage before it publishes."""
        self._stage = "publishing" if stage == PUBLISHING else "planning"
        if self.signal_number and self._stage == "planning":
            self._abort()

    def end_run(self) -> None:
        """Note that no run is in progress."""
        self._stage = "waiting"

    def complete(self, work: Callable[[], None]) -> bool:
        """Do the work until `wakeup` is stopped; return False if it is aborted. Later signals abort nothing."""
        try:
            try:
                work()
            finally:
                self._may_abort = False
        except (RunAborted, KeyboardInterrupt):  # watchfiles replaces any exception of a signal handler by KeyboardInterrupt
            self._may_abort = False
            return False
        return True

    def handle_signal(self, number: int, _frame: FrameType | None) -> None:
        """Request the end. This aborts a run that does not publish yet; a second signal aborts any."""
        if self.signal_number:
            # Repeated like after the grace period: an exception is lost that is raised in a destructor or a callback.
            signal.setitimer(signal.ITIMER_REAL, _ABORT_RETRY_SECONDS, _ABORT_RETRY_SECONDS)
            return self._abort()
        self.signal_number = number
        self.wakeup.stop()
        # Zero would disable the timer.
        signal.setitimer(signal.ITIMER_REAL, max(self.grace.total_seconds(), 0.001), _ABORT_RETRY_SECONDS)
        return self._abort() if self._stage == "planning" else None

    def handle_timeout(self, _number: int, _frame: FrameType | None) -> None:
        """Abort the run after the grace period."""
        self._abort()

    def _abort(self) -> None:
        if self._may_abort:
            raise RunAborted


@contextmanager
def handle_signals(wakeup: Wakeup, grace: timedelta) -> Iterator[GracefulShutdown]:
    """Stop `wakeup` on SIGTERM and SIGINT. RunAborted is raised in a run that does not publish yet, and in one that has not finished after
    `grace`. Only for the main thread."""
    shutdown = GracefulShutdown(wakeup, grace)
    handlers = {
        signal.SIGTERM: shutdown.handle_signal,
        signal.SIGINT: shutdown.handle_signal,
        signal.SIGALRM: shutdown.handle_timeout,
    }
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield shutdown
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, previous in before.items():
            signal.signal(number, previous)
