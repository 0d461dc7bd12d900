"""HTTP routes: /healthz, /readyz, /metrics, the webhook at /hook, which only requests a run and ignores its body, /scores/CLUSTER, and the
pages at /, /history and /events."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Literal, Protocol

from gitsched.forge.credentials import Credential
from gitsched.forge.webhook import SignatureCheck, open_signature_check
from gitsched.model.errors import Permanent
from gitsched.watch.health import HealthStatus, WatchHealth
from gitsched.watch.http_server import Headers, HttpHandler, HttpResponse, HttpStream, RequestBody

_log = logging.getLogger("gitsched.watch")
WEBHOOK_PATH, SCORES_PATH = b"/hook", b"/scores/"
PAGE_PATHS = FLEET_PATH, HISTORY_PATH, EVENTS_PATH = b"/", b"/history", b"/events"
_WARNING_INTERVAL = 60.0
"""Minimum seconds between two log lines about rejected webhooks."""
_READ_METHODS = (b"GET", b"HEAD")

WebhookOutcome = Literal["accepted", "unsigned", "refused"]


class MetricsEndpoint(Protocol):
    """The metrics, as the routes use them."""

    def count_webhook(self, outcome: WebhookOutcome) -> None:
        """Count a webhook."""

    def expose(self, accepted: str) -> tuple[str, bytes]:
        """Return the content type and text of all metrics, in the format that the Accept header prefers."""


class HttpRoutes:
    """The routes of the watch process. A valid webhook calls `request_run`; without a secret there is no webhook, without `scores` no
    endpoint for them, and without `pages` no pages."""

    def __init__(
        self,
        health: WatchHealth,
        metrics: MetricsEndpoint,
        *,
        secret: Credential | None,
        request_run: Callable[[], None],
        scores: HttpHandler | None = None,
        pages: HttpHandler | None = None,
    ) -> None:
        self._health, self._metrics, self._secret, self._request_run = health, metrics, secret, request_run
        self._scores, self._pages = scores, pages
        self._warned_at = -_WARNING_INTERVAL

    def handle(self, method: bytes, path: bytes, headers: Headers) -> HttpResponse | RequestBody | HttpStream:
        """Return the response to a request, the object that receives its body, or a stream."""
        if path == WEBHOOK_PATH and self._secret is not None:
            return self._open_webhook(self._secret, headers) if method == b"POST" else _reject_method("POST")
        if path.startswith(SCORES_PATH) and self._scores is not None:
            return self._scores.handle(method, path, headers)
        if path in PAGE_PATHS and self._pages is not None:
            return self._pages.handle(method, path, headers)
        if path not in (b"/healthz", b"/readyz", b"/metrics"):
            return HttpResponse(404, b"not found\n")
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
            _log.error("%s; webhooks are rejected", error)
            return HttpResponse(503, b"the webhook secret cannot be read\n")
        return _WebhookBody(check, self._finish_webhook) if check is not None else self._finish_webhook("unsigned")

    def _finish_webhook(self, outcome: WebhookOutcome) -> HttpResponse:
        """Request a run, or reject the webhook without naming the part of the signature that is wrong."""
        self._metrics.count_webhook(outcome)
        if outcome == "accepted":
            self._request_run()
            return HttpResponse(202, b"a run is requested\n")
        reason = "no valid signature header" if outcome == "unsigned" else "the signature is wrong"
        now = time.monotonic()
        if now - self._warned_at > _WARNING_INTERVAL:
            # Rate-limited: the operator needs the warning, but a client must not fill the log.
            self._warned_at = now
            _log.warning("rejected a webhook: %s", reason)
        return HttpResponse(401, f"{reason}\n".encode())


class _WebhookBody:
    """Receives the body of a webhook."""

    def __init__(self, check: SignatureCheck, finish: Callable[[WebhookOutcome], HttpResponse]) -> None:
        self.feed = check.feed
        self._check, self._finish = check, finish

    def respond(self) -> HttpResponse:
        """Return the response after the complete body."""
        return self._finish("accepted" if self._check.is_valid() else "refused")


def _report_health(status: HealthStatus) -> HttpResponse:
    return HttpResponse(200 if status.healthy else 503, f"{status.message}\n".encode())


def _reject_method(allowed: str) -> HttpResponse:
    """Return the response to a request with another method than the `allowed` ones."""
    return HttpResponse(405, f"only {allowed}\n".encode(), headers=(("Allow", allowed),))
