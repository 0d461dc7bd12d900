"""Send commit statuses in a background thread with retries, so that a slow forge never delays a reconcile."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from typing import Literal

import httpx

from gitsched import __version__
from gitsched.forge.commit_status import CommitStatus, StatusAPI
from gitsched.forge.credentials import Credential
from gitsched.model.errors import GitschedError
from gitsched.named_tuples import NamedTuple

_log = logging.getLogger("gitsched.forge")
MAX_ATTEMPTS = 10
_TIMEOUT = 10.0
_MIN_DELAY, _MAX_DELAY, _MAX_RETRY_AFTER = 1.0, 60.0, 900.0
"""Seconds of the first delay after a failure, of the longest delay, and of the longest delay that a forge may ask for."""
_QUEUE_LIMIT = 64
"""Statuses that are queued while a forge is unreachable; the oldest are dropped."""
_MAX_RESPONSE_BYTES = 1 << 16
_REQUEST_HEADERS = {"Accept-Encoding": "identity", "User-Agent": f"gitsched/{__version__}"}
_MAX_MESSAGE_LENGTH = 200

StatusOutcome = Literal["sent", "failed", "dropped"]


class RetryLater(NamedTuple):
    """A temporary failure; `after` is the delay in seconds, None when the forge does not give one."""

    reason: str
    after: float | None


class StatusReporter:
    """Sends statuses and calls `on_outcome` with the outcome of each. A newer status of a commit replaces a queued one."""

    def __init__(self, forge: StatusAPI, token: Credential, on_outcome: Callable[[StatusOutcome], None]) -> None:
        self._forge, self._token, self._on_outcome = forge, token, on_outcome
        self._queue: dict[tuple[str, str], CommitStatus] = {}
        self._queue_changed = threading.Condition()
        self._close_deadline: float | None = None
        self._last_status: CommitStatus | None = None
        self._thread = threading.Thread(target=self._run, name="statuses", daemon=True)
        self._thread.start()

    def report(self, status: CommitStatus) -> None:
        """Queue a status; no effect when it equals the previous one."""
        with self._queue_changed:
            if status == self._last_status:
                return
            self._last_status = status
            self._queue.pop((status.commit, status.context), None)
            self._queue[status.commit, status.context] = status
            if len(self._queue) > _QUEUE_LIMIT:
                del self._queue[next(iter(self._queue))]
                self._on_outcome("dropped")
            self._queue_changed.notify()

    def close(self, seconds: float) -> None:
        """Send the queued statuses, for at most this many seconds."""
        with self._queue_changed:
            self._close_deadline = time.monotonic() + seconds
            self._queue_changed.notify()
        self._thread.join(seconds)

    def _run(self) -> None:
        with httpx.Client(timeout=_TIMEOUT, follow_redirects=False) as client:
            while (status := self._take_next()) is not None:
                self._on_outcome(self._send_with_retries(client, status))

    def _take_next(self) -> CommitStatus | None:
        with self._queue_changed:
            while not self._queue and self._close_deadline is None:
                self._queue_changed.wait()
            return self._queue.pop(next(iter(self._queue))) if self._queue else None

    def _send_with_retries(self, client: httpx.Client, status: CommitStatus) -> StatusOutcome:
        delay = _MIN_DELAY
        for attempt in range(1, MAX_ATTEMPTS + 1):
            problem = self._send(client, status)
            if problem is None:
                return "sent"
            if isinstance(problem, str) or attempt == MAX_ATTEMPTS or not self._wait_before_retry(max(delay, problem.after or 0)):
                reason = problem if isinstance(problem, str) else problem.reason
                _log.warning("%s did not accept the status of %s: %s", self._forge.title, status.commit[:12], reason)
                return "failed"
            with self._queue_changed:
                newer = self._queue.pop((status.commit, status.context), None)
            if newer is not None:
                self._on_outcome("dropped")
                status = newer
            delay = min(2 * delay, _MAX_DELAY)
        raise AssertionError("unreachable")

    def _wait_before_retry(self, seconds: float) -> bool:
        """Wait and return whether there is another attempt; at shutdown there is none after the deadline."""
        end = time.monotonic() + min(seconds, _MAX_RETRY_AFTER)
        with self._queue_changed:
            while (left := end - time.monotonic()) > 0:
                if self._close_deadline is not None and self._close_deadline < end:
                    return False
                self._queue_changed.wait(left)
        return True

    def _send(self, client: httpx.Client, status: CommitStatus) -> str | RetryLater | None:
        """Send a status; return None when it is set, else the failure."""
        try:
            request = self._forge.build_request(status, self._token.read()[0])
            with client.stream(
                "POST", request.url, headers={**request.headers, **_REQUEST_HEADERS}, json=dict(request.body)
            ) as response:
                message = _read_message(response)
        except GitschedError as error:
            return str(error)
        except httpx.TransportError as error:
            # The error text may contain the request.
            return RetryLater(f"no connection ({type(error).__name__})", None)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            return f"the request cannot be sent ({type(error).__name__})"
        code = response.status_code
        if self._forge.is_accepted(code, message):
            return None
        reason = f"status {code}{f': {message}' if message else ''}"
        after = _read_retry_after(response.headers)
        is_temporary = code in (408, 429) or code >= 500 or (code == 403 and after is not None)
        return RetryLater(reason, after) if is_temporary else reason


def _read_message(response: httpx.Response) -> str:
    """Return the `message` of a forge's error response, on one line and shortened."""
    data, end = bytearray(), time.monotonic() + _TIMEOUT
    for chunk in response.iter_raw():
        data += chunk
        if len(data) >= _MAX_RESPONSE_BYTES or time.monotonic() > end:
            break
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        return ""
    message = body.get("message", "") if isinstance(body, dict) else ""
    text = message if isinstance(message, str) else json.dumps(message)
    return " ".join("".join(ch if ch.isprintable() else " " for ch in text).split())[:_MAX_MESSAGE_LENGTH]


def _read_retry_after(headers: httpx.Headers) -> float | None:
    """Return the delay in seconds that a forge asks for after too many requests."""
    try:
        if "Retry-After" in headers:
            return max(float(headers["Retry-After"]), 0)
        if headers.get("X-RateLimit-Remaining") == "0":
            return max(float(headers["X-RateLimit-Reset"]) - time.time(), 0)
    except (KeyError, ValueError):
        return None
    return None
