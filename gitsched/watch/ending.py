"""How a resident process ends: a run that has begun may finish, but not for ever."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType

from gitsched.watch.bell import Bell

_AGAIN = 5.0
"""Seconds until a run that was told to stop where it is, and could not hear it, is told again: longer than git takes to end."""


class Abandoned(BaseException):
    """Stop where you are. Nothing is half done by that: a ref moves as the last step of a run, and in one step."""


class Ending:
    """Which signal asked for an end: 0 while none did."""

    def __init__(self, bell: Bell, grace: timedelta) -> None:
        self.bell, self.grace, self.number = bell, grace, 0

    def note(self, number: int, _frame: FrameType | None) -> None:
        """Whoever asks twice does not want to wait for the end of a run."""
        if self.number:
            raise Abandoned
        self.number = number
        self.bell.stop()
        # A zero would mean never.
        signal.setitimer(signal.ITIMER_REAL, max(self.grace.total_seconds(), 0.001), _AGAIN)

    def abandon(self, _number: int, _frame: FrameType | None) -> None:
        """The time is over."""
        raise Abandoned


@contextmanager
def heed_signals(bell: Bell, grace: timedelta) -> Iterator[Ending]:
    """SIGTERM and SIGINT stop the bell; a run that is not done after `grace` raises Abandoned. For the main thread."""
    ending = Ending(bell, grace)
    handlers = {signal.SIGTERM: ending.note, signal.SIGINT: ending.note, signal.SIGALRM: ending.abandon}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield ending
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, former in before.items():
            signal.signal(number, former)
