"""Wake up the waiting watch process from other threads and signal handlers, and shut it down gracefully: let the current run
finish, with a time limit."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType

_MAX_POLL_SECONDS = 3600.0
"""Seconds of one wait for the kernel, whose counter is not endless."""


class Wakeup:
    """`stopped` asks for the end; `heard` is when somebody first asked for a look since the last one (time.monotonic), or None.

    A pipe rather than a threading.Event: a signal handler that runs while its own thread holds the lock of an event would wait for
    itself.
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
        """Ask for a look, soon."""
        if self.requested_at is None:
            self.requested_at = time.monotonic()
        self._notify()

    def stop(self) -> None:
        """Ask for the end."""
        self.stopped = True
        self._notify()

    def is_set(self) -> bool:
        """Whether somebody asked for anything; named as watchfiles wants it."""
        return self.stopped or self.requested_at is not None

    def take_request(self) -> float | None:
        """When a look was asked for; what is asked for from now on is asked for anew."""
        heard, self.requested_at = self.requested_at, None
        return heard

    def wait(self, seconds: float, *, for_stop_only: bool = False) -> None:
        """Until the time is over or somebody asks for something."""
        end = time.monotonic() + seconds
        while not (self.stopped if for_stop_only else self.is_set()):
            left = end - time.monotonic()
            if left <= 0:
                return
            # Rounded up: a wait that ends early would be begun again at once, many times.
            self._poll.poll(int(min(left, _MAX_POLL_SECONDS) * 1000) + 1)
            with contextlib.suppress(BlockingIOError):
                while os.read(self._reader, 4096):
                    pass

    def _notify(self) -> None:
        # A full pipe wakes as well as one more byte would.
        with contextlib.suppress(BlockingIOError):
            os.write(self._writer, b"!")


_ABORT_RETRY_SECONDS = 5.0
"""Seconds until a run that was told to stop where it is, and could not hear it, is told again: longer than git takes to end."""


class RunAborted(BaseException):
    """Stop where you are. Nothing is half done by that: a ref moves as the last step of a run, and in one step."""


class GracefulShutdown:
    """Which signal asked for an end: 0 while none did."""

    def __init__(self, bell: Wakeup, grace: timedelta) -> None:
        self.wakeup, self.grace, self.signal_number = bell, grace, 0

    def handle_signal(self, number: int, _frame: FrameType | None) -> None:
        """Whoever asks twice does not want to wait for the end of a run."""
        if self.signal_number:
            raise RunAborted
        self.signal_number = number
        self.wakeup.stop()
        # A zero would mean never.
        signal.setitimer(signal.ITIMER_REAL, max(self.grace.total_seconds(), 0.001), _ABORT_RETRY_SECONDS)

    def handle_timeout(self, _number: int, _frame: FrameType | None) -> None:
        """The time is over."""
        raise RunAborted


@contextmanager
def handle_signals(bell: Wakeup, grace: timedelta) -> Iterator[GracefulShutdown]:
    """SIGTERM and SIGINT stop the bell; a run that is not done after `grace` raises Abandoned. For the main thread."""
    ending = GracefulShutdown(bell, grace)
    handlers = {signal.SIGTERM: ending.handle_signal, signal.SIGINT: ending.handle_signal, signal.SIGALRM: ending.handle_timeout}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield ending
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, former in before.items():
            signal.signal(number, former)
