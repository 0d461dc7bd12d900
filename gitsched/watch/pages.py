"""What is served: two probes, metrics and the hook. The hook rings a bell and does nothing else, whatever its body says."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Literal, Protocol

from gitsched.forge.hook import Check, open_check
from gitsched.forge.secret import Secret
from gitsched.model.errors import Permanent
from gitsched.watch.condition import Condition, Verdict
from gitsched.watch.server import Answer, Headers, Reading

_log = logging.getLogger("gitsched.watch")
HOOK = b"/hook"
_QUIET = 60.0
"""Seconds between two lines about refused webhooks."""
_LOOKS = (b"GET", b"HEAD")

Outcome = Literal["accepted", "unsigned", "refused"]


class Meter(Protocol):
    """What pages need of the metrics."""

    def count_hook(self, outcome: Outcome) -> None:
        """A webhook came."""

    def expose(self, accepted: str) -> tuple[str, bytes]:
        """The type and text of all metrics, in what an Accept header prefers."""


class Pages:
    """`ring` is what a webhook does; without a secret there is no hook."""

    def __init__(self, condition: Condition, meter: Meter, *, secret: Secret | None, ring: Callable[[], None]) -> None:
        self._condition, self._meter, self._secret, self._ring = condition, meter, secret, ring
        self._complained = -_QUIET

    def open(self, method: bytes, path: bytes, headers: Headers) -> Answer | Reading:
        """The answer to a request's head, or what its body is for."""
        if path == HOOK and self._secret is not None:
            return self._open_hook(self._secret, headers) if method == b"POST" else _refuse_method("POST")
        if path not in (b"/healthz", b"/readyz", b"/metrics"):
            return Answer(404, b"there is nothing here\n")
        if method not in _LOOKS:
            return _refuse_method("GET, HEAD")
        if path == b"/metrics":
            accepted = b",".join(value for name, value in headers if name == b"accept")
            media, text = self._meter.expose(accepted.decode("latin-1"))
            return Answer(200, text, media)
        return _tell(self._condition.judge_life() if path == b"/healthz" else self._condition.judge_readiness())

    def _open_hook(self, secret: Secret, headers: Headers) -> Answer | Reading:
        try:
            check = open_check(headers, secret.read(), time.time())
        except Permanent as error:
            _log.error("%s; webhooks are refused", error)
            return Answer(503, b"this hook is out of order\n")
        return _Hook(check, self._conclude) if check is not None else self._conclude("unsigned")

    def _conclude(self, outcome: Outcome) -> Answer:
        """Ring and thank, or refuse. Which part of a signature is wrong is nobody's business."""
        self._meter.count_hook(outcome)
        if outcome == "accepted":
            self._ring()
            return Answer(202, b"looking\n")
        reason = "it bears no signature that could be checked" if outcome == "unsigned" else "its signature is wrong"
        now = time.monotonic()
        if now - self._complained > _QUIET:
            # Once in a while: an operator wants to know, and a stranger must not fill the log.
            self._complained = now
            _log.warning("a webhook was refused: %s", reason)
        return Answer(401, f"{reason}\n".encode())


class _Hook:
    """A webhook on its way in."""

    def __init__(self, check: Check, conclude: Callable[[Outcome], Answer]) -> None:
        self.feed = check.feed
        self._check, self._conclude = check, conclude

    def answer(self) -> Answer:
        """What the check says, now that all is there."""
        return self._conclude("accepted" if self._check.passes() else "refused")


def _tell(verdict: Verdict) -> Answer:
    return Answer(200 if verdict.well else 503, f"{verdict.text}\n".encode())


def _refuse_method(allowed: str) -> Answer:
    return Answer(405, f"only {allowed}\n".encode(), headers=(("Allow", allowed),))
