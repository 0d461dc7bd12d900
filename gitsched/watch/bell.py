"""What wakes a process that waits: rung by other threads and by signal handlers, which may do little more than write a byte."""

from __future__ import annotations

import contextlib
import os
import select
import time

_LONGEST = 3600.0
"""Seconds of one wait for the kernel, whose counter is not endless."""


class Bell:
    """`stopped` asks for the end; `heard` is when somebody first asked for a look since the last one (time.monotonic), or None.

    A pipe rather than a threading.Event: a signal handler that runs while its own thread holds the lock of an event would wait for
    itself.
    """

    def __init__(self) -> None:
        self.stopped = False
        self.heard: float | None = None
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._poll = select.poll()
        self._poll.register(self._reader, select.POLLIN)

    def ring(self) -> None:
        """Ask for a look, soon."""
        if self.heard is None:
            self.heard = time.monotonic()
        self._wake()

    def stop(self) -> None:
        """Ask for the end."""
        self.stopped = True
        self._wake()

    def is_set(self) -> bool:
        """Whether somebody asked for anything; named as watchfiles wants it."""
        return self.stopped or self.heard is not None

    def take(self) -> float | None:
        """When a look was asked for; what is asked for from now on is asked for anew."""
        heard, self.heard = self.heard, None
        return heard

    def wait(self, seconds: float, *, for_stop_only: bool = False) -> None:
        """Until the time is over or somebody asks for something."""
        end = time.monotonic() + seconds
        while not (self.stopped if for_stop_only else self.is_set()):
            left = end - time.monotonic()
            if left <= 0:
                return
            # Rounded up: a wait that ends early would be begun again at once, many times.
            self._poll.poll(int(min(left, _LONGEST) * 1000) + 1)
            with contextlib.suppress(BlockingIOError):
                while os.read(self._reader, 4096):
                    pass

    def _wake(self) -> None:
        # A full pipe wakes as well as one more byte would.
        with contextlib.suppress(BlockingIOError):
            os.write(self._writer, b"!")
