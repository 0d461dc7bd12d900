"""How a resident process is: what it tells a probe, an operator and a load balancer in one line."""

from __future__ import annotations

import time
from typing import NamedTuple

from gitsched.model.errors import Conflict, Temporary
from gitsched.watch.bell import Bell
from gitsched.watch.loop import Attempt

STUCK = 3600.0
"""Seconds after which a run counts as hanging. Everything in it that waits for others gives up long before."""


class Verdict(NamedTuple):
    """`well` decides between 200 and 503; `text` names no address and no reason of the remote's, since anybody may ask."""

    well: bool
    text: str


class Condition:
    """Written by the loop, read by other threads: each attribute is replaced as a whole."""

    def __init__(self, bell: Bell) -> None:
        self._bell = bell
        self._began: float | None = None
        self._last: tuple[Attempt, float] | None = None
        self._ill_since: float | None = None

    def begin(self) -> None:
        """A run begins."""
        self._began = time.monotonic()

    def end(self, attempt: Attempt) -> None:
        """A run is over. A lost race says that the other side is there."""
        now = time.monotonic()
        ill = attempt.error is not None and not isinstance(attempt.error, Conflict)
        self._ill_since = (self._ill_since or now) if ill else None
        self._last, self._began = (attempt, now), None

    def judge_life(self) -> Verdict:
        """Whether it should be left alone rather than started anew: an outage of others is no reason."""
        began = self._began
        hangs = began is not None and time.monotonic() - began > STUCK
        return Verdict(not hangs, f"a run has been going for more than {STUCK:g} seconds" if hangs else "ok")

    def judge_readiness(self) -> Verdict:
        """Whether the output follows the source at the moment."""
        last, since = self._last, self._ill_since
        if self._bell.stopped:
            return Verdict(False, "ending")
        if last is None:
            return Verdict(False, "the first look is not done yet")
        if since is None:
            return Verdict(True, "ok")
        attempt, then = last
        age = f"for {max(time.monotonic() - since, 0):.0f} s"
        if isinstance(attempt.error, Temporary):
            left = max(attempt.pause.total_seconds() - (time.monotonic() - then), 0)
            return Verdict(False, f"a repository cannot be reached, {age}; trying again in {left:.0f} s; the log has the reason")
        return Verdict(False, f"what is asked for cannot be done, {age}; waiting for a change; the log has the reason")
