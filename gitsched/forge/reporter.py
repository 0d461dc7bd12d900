"""Sends statuses in a thread of its own, so that no forge can hold up a placement."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from typing import Literal, NamedTuple

import httpx

from gitsched import __version__
from gitsched.forge.secret import Secret
from gitsched.forge.status import Forge, Status
from gitsched.model.errors import GitschedError

_log = logging.getLogger("gitsched.forge")
TRIES = 10
_TIMEOUT = 10.0
_FIRST, _LAST, _PATIENCE = 1.0, 60.0, 900.0
"""Seconds of the first pause after a failure, of the longest one, and of the longest that a forge may ask for."""
_WAITING = 64
"""Statuses kept while a forge is away; the oldest make way."""
_LARGEST = 1 << 16
_PLAIN = {"Accept-Encoding": "identity", "User-Agent": f"gitsched/{__version__}"}
_MENTIONED = 200

Outcome = Literal["sent", "failed", "dropped"]


class Retry(NamedTuple):
    """The forge may take it later; `after` is in seconds, None where it does not say."""

    reason: str
    after: float | None


class Reporter:
    """`told` hears how each status ended. A newer status of a commit replaces one that waits."""

    def __init__(self, forge: Forge, token: Secret, told: Callable[[Outcome], None]) -> None:
        self._forge, self._token, self._told = forge, token, told
        self._waiting: dict[tuple[str, str], Status] = {}
        self._news = threading.Condition()
        self._ends: float | None = None
        self._last: Status | None = None
        self._thread = threading.Thread(target=self._work, name="statuses", daemon=True)
        self._thread.start()

    def report(self, status: Status) -> None:
        """Send a status, soon; nothing where it is the last one again."""
        with self._news:
            if status == self._last:
                return
            self._last = status
            self._waiting.pop((status.commit, status.context), None)
            self._waiting[status.commit, status.context] = status
            if len(self._waiting) > _WAITING:
                del self._waiting[next(iter(self._waiting))]
                self._told("dropped")
            self._news.notify()

    def close(self, seconds: float) -> None:
        """Send what waits, for so long at most."""
        with self._news:
            self._ends = time.monotonic() + seconds
            self._news.notify()
        self._thread.join(seconds)

    def _work(self) -> None:
        with httpx.Client(timeout=_TIMEOUT, follow_redirects=False) as client:
            while (status := self._next()) is not None:
                self._told(self._deliver(client, status))

    def _next(self) -> Status | None:
        with self._news:
            while not self._waiting and self._ends is None:
                self._news.wait()
            return self._waiting.pop(next(iter(self._waiting))) if self._waiting else None

    def _deliver(self, client: httpx.Client, status: Status) -> Outcome:
        pause = _FIRST
        for attempt in range(1, TRIES + 1):
            problem = self._try(client, status)
            if problem is None:
                return "sent"
            if isinstance(problem, str) or attempt == TRIES or not self._rest(max(pause, problem.after or 0)):
                reason = problem if isinstance(problem, str) else problem.reason
                _log.warning("%s did not take the status of %s: %s", self._forge.title, status.commit[:12], reason)
                return "failed"
            with self._news:
                newer = self._waiting.pop((status.commit, status.context), None)
            if newer is not None:
                self._told("dropped")
                status = newer
            pause = min(2 * pause, _LAST)
        raise AssertionError("unreachable")

    def _rest(self, seconds: float) -> bool:
        """Wait; whether there is another try. Who ends does not wait longer than there is time."""
        end = time.monotonic() + min(seconds, _PATIENCE)
        with self._news:
            while (left := end - time.monotonic()) > 0:
                if self._ends is not None and self._ends < end:
                    return False
                self._news.wait(left)
        return True

    def _try(self, client: httpx.Client, status: Status) -> str | Retry | None:
        """None when it is set, else what is wrong."""
        try:
            post = self._forge.write(status, self._token.read()[0])
            with client.stream("POST", post.url, headers={**post.headers, **_PLAIN}, json=dict(post.body)) as response:
                message = _read_message(response)
        except GitschedError as error:
            return str(error)
        except httpx.TransportError as error:
            # The text of the error may hold what was sent.
            return Retry(f"no connection ({type(error).__name__})", None)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            return f"the request cannot be sent ({type(error).__name__})"
        code = response.status_code
        if self._forge.read(code, message):
            return None
        reason = f"status {code}{f': {message}' if message else ''}"
        after = _read_pause(response.headers)
        late = code in (408, 429) or code >= 500 or (code == 403 and after is not None)
        return Retry(reason, after) if late else reason


def _read_message(response: httpx.Response) -> str:
    """What a forge says about a failure: the member that both call `message`, on one line and not too long."""
    data, end = bytearray(), time.monotonic() + _TIMEOUT
    for chunk in response.iter_raw():
        data += chunk
        if len(data) >= _LARGEST or time.monotonic() > end:
            break
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        return ""
    message = body.get("message", "") if isinstance(body, dict) else ""
    text = message if isinstance(message, str) else json.dumps(message)
    return " ".join("".join(ch if ch.isprintable() else " " for ch in text).split())[:_MENTIONED]


def _read_pause(headers: httpx.Headers) -> float | None:
    """Seconds that a forge asks for, as both do when there were too many requests."""
    try:
        if "Retry-After" in headers:
            return max(float(headers["Retry-After"]), 0)
        if headers.get("X-RateLimit-Remaining") == "0":
            return max(float(headers["X-RateLimit-Reset"]) - time.time(), 0)
    except (KeyError, ValueError):
        return None
    return None
