"""HTTP routes: /healthz, /readyz, /metrics and the webhook at /hook, which only requests a run and ignores its body."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Literal, Protocol

from gitsched.forge.credentials import Credential
from gitsched.forge.webhook import SignatureCheck, open_signature_check
from gitsched.model.errors import Permanent
from gitsched.watch.health import HealthStatus, WatchHealth
from gitsched.watch.http_server import Headers, HttpResponse, RequestBody

_log = logging.getLogger("gitsched.watch")
WEBHOOK_PATH = b"/hook"
_WARNING_INTERVAL = 60.0
"""Seconds between two lines about refused webhooks."""
_READ_METHODS = (b"GET", b"HEAD")

WebhookOutcome = Literal["accepted", "unsigned", "refused"]


class MetricsEndpoint(Protocol):
    """What pages need of the metrics."""

    def count_webhook(self, outcome: WebhookOutcome) -> None:
        """A webhook came."""

    def expose(self, accepted: str) -> tuple[str, bytes]:
        """The type and text of all metrics, in what an Accept header prefers."""


class HttpRoutes:
    """`ring` is what a webhook does; without a secret there is no hook."""

    def __init__(
        self, condition: WatchHealth, meter: MetricsEndpoint, *, secret: Credential | None, ring: Callable[[], None]
    ) -> None:
        self._health, self._metrics, self._secret, self._request_run = condition, meter, secret, ring
        self._warned_at = -_WARNING_INTERVAL

    def handle(self, method: bytes, path: bytes, headers: Headers) -> HttpResponse | RequestBody:
        """The answer to a request's head, or what its body is for."""
        if path == WEBHOOK_PATH and self._secret is not None:
            return self._open_webhook(self._secret, headers) if method == b"POST" else _reject_method("POST")
        if path not in (b"/healthz", b"/readyz", b"/metrics"):
            return HttpResponse(404, b"there is nothing here\n")
        if method not in _READ_METHODS:
            return _reject_method("GET, HEAD")
        if path == b"/metrics":
            accepted = b",".join(value for name, value in headers if name == b"accept")
            media, text = self._metrics.expose(accepted.decode("latin-1"))
            return HttpResponse(200, text, media)
        return _report_health(self._health.check_liveness() if path == b"/healthz" else self._health.check_readiness())

    def _open_webhook(self, secret: Credential, headers: Headers) -> HttpResponse | RequestBody:
        try:
            check = open_signature_check(headers, secret.read(), time.time())
        except Permanent as error:
            _log.error("%s; webhooks are refused", error)
            return HttpResponse(503, b"this hook is out of order\n")
        return _WebhookBody(check, self._finish_webhook) if check is not None else self._finish_webhook("unsigned")

    def _finish_webhook(self, outcome: WebhookOutcome) -> HttpResponse:
        """Ring and thank, or refuse. Which part of a signature is wrong is nobody's business."""
        self._metrics.count_webhook(outcome)
        if outcome == "accepted":
            self._request_run()
            return HttpResponse(202, b"looking\n")
        reason = "it bears no signature that could be checked" if outcome == "unsigned" else "its signature is wrong"
        now = time.monotonic()
        if now - self._warned_at > _WARNING_INTERVAL:
            # Once in a while: an operator wants to know, and a stranger must not fill the log.
            self._warned_at = now
            _log.warning("a webhook was refused: %s", reason)
        return HttpResponse(401, f"{reason}\n".encode())


class _WebhookBody:
    """A webhook on its way in."""

    def __init__(self, check: SignatureCheck, conclude: Callable[[WebhookOutcome], HttpResponse]) -> None:
        self.feed = check.feed
        self._check, self._finish = check, conclude

    def respond(self) -> HttpResponse:
        """What the check says, now that all is there."""
        return self._finish("accepted" if self._check.is_valid() else "refused")


def _report_health(verdict: HealthStatus) -> HttpResponse:
    return HttpResponse(200 if verdict.healthy else 503, f"{verdict.message}\n".encode())


def _reject_method(allowed: str) -> HttpResponse:
    return HttpResponse(405, f"only {allowed}\n".encode(), headers=(("Allow", allowed),))
