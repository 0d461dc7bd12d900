"""PUT /scores/CLUSTER: commit the scores that a cluster pushes to its facts branch. Each cluster has a bearer token of its own."""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import Full, Queue
from typing import Literal, Protocol

from gitsched.forge.credentials import Credential
from gitsched.model.errors import GitschedError, Permanent, RejectedInput
from gitsched.named_tuples import NamedTuple
from gitsched.watch.http_routes import SCORES_PATH
from gitsched.watch.http_server import Headers, HttpResponse, RequestBody

_log = logging.getLogger("gitsched.watch")
MAX_BODY_BYTES = 256 * 1024
MAX_QUEUE = 64
"""Pushes that wait for their commit; the next one is rejected."""
MIN_TOKEN_LENGTH = 16
_WARNING_INTERVAL = 60.0
"""Minimum seconds between two log lines about rejected tokens."""
_TOKEN_LINE = re.compile(r"([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)[ \t]+(\S+)")
_CLUSTER = re.compile(rb"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")

ScoreOutcome = Literal["committed", "unchanged", "unauthorized", "rejected", "failed"]


class ScoreCommitter(Protocol):
    """Commits scores: `gitsched.reconcile.facts.score_reception.ScoreReceiver`."""

    def receive(self, cluster: str, data: bytes, /) -> str | None:
        """Commit scores of a cluster and return the commit; None if they are already there. Raises RejectedInput for invalid ones."""
        ...


class ClusterTokens:
    """The tokens of the clusters: lines of a cluster and its token. A cluster has several tokens during their rotation."""

    def __init__(self, credential: Credential) -> None:
        self._credential = credential

    def read(self) -> list[tuple[str, bytes]]:
        """Return clusters and digests of their tokens. Raises Permanent without token text in its message."""
        found = []
        for number, line in enumerate(self._credential.read(), 1):
            match = _TOKEN_LINE.fullmatch(line)
            if match is None or len(match[2]) < MIN_TOKEN_LENGTH:
                raise Permanent(
                    f"line {number} of the {self._credential.name} is not the name of a cluster and a token of at least "
                    f"{MIN_TOKEN_LENGTH} characters"
                )
            found.append((match[1], hashlib.sha256(match[2].encode()).digest()))
        return found

    def is_valid(self, cluster: str, headers: Headers) -> bool:
        """Return whether a request has a token of the cluster. All tokens are compared, in constant time."""
        values = [value for name, value in headers if name == b"authorization"]
        scheme, _, token = values[0].partition(b" ") if len(values) == 1 else (b"", b"", b"")
        digest = hashlib.sha256(token.strip()).digest()
        matches = [hmac.compare_digest(digest, known) and name == cluster for name, known in self.read()]
        return any(matches) and scheme.lower() == b"bearer"


class _Push(NamedTuple):
    cluster: str
    data: bytes
    response: Future[HttpResponse]


class ScoreEndpoint:
    """Receives the scores of clusters, and commits them one after another in a thread of its own."""

    def __init__(
        self,
        tokens: ClusterTokens,
        receiver: ScoreCommitter,
        count: Callable[[ScoreOutcome], None],
        request_run: Callable[[], None],
    ) -> None:
        self._tokens, self._receiver, self._count, self._request_run = tokens, receiver, count, request_run
        self._queue: Queue[_Push] = Queue(MAX_QUEUE)
        self._warned_at = -_WARNING_INTERVAL
        # A daemon, so that a remote that does not answer does not delay the exit of the process.
        threading.Thread(target=self._work, name="scores", daemon=True).start()

    def handle(self, method: bytes, path: bytes, headers: Headers) -> HttpResponse | RequestBody:
        """Return the response to a request, or the object that receives its body."""
        name = path.removeprefix(SCORES_PATH)
        if not _CLUSTER.fullmatch(name):
            return HttpResponse(404, b"not found\n")
        if method != b"PUT":
            return HttpResponse(405, b"only PUT\n", headers=(("Allow", "PUT"),))
        cluster = name.decode()
        try:
            valid = self._tokens.is_valid(cluster, headers)
        except Permanent as error:
            _log.error("%s; scores are rejected", error)
            return HttpResponse(503, b"the tokens cannot be read\n")
        if not valid:
            return self._reject_token()
        return _ScoreBody(lambda data: self._submit(cluster, data))

    def _reject_token(self) -> HttpResponse:
        """Reject a request without naming what is wrong with its token."""
        self._count("unauthorized")
        now = time.monotonic()
        if now - self._warned_at > _WARNING_INTERVAL:
            self._warned_at = now
            _log.warning("rejected scores: no valid token")
        return HttpResponse(401, b"no valid token of this cluster\n", headers=(("WWW-Authenticate", "Bearer"),))

    def _submit(self, cluster: str, data: bytes | None) -> HttpResponse | Future[HttpResponse]:
        if data is None:
            self._count("rejected")
            return HttpResponse(413, f"the body may have at most {MAX_BODY_BYTES} bytes\n".encode())
        push = _Push(cluster, data, Future())
        try:
            self._queue.put_nowait(push)
        except Full:
            self._count("failed")
            return HttpResponse(503, b"too many pushes are waiting\n", headers=(("Retry-After", "30"),))
        return push.response

    def _work(self) -> None:
        while True:
            push = self._queue.get()
            if push.response.set_running_or_notify_cancel():
                push.response.set_result(self._commit(push.cluster, push.data))

    def _commit(self, cluster: str, data: bytes) -> HttpResponse:
        try:
            commit = self._receiver.receive(cluster, data)
        except RejectedInput as error:
            self._count("rejected")
            return HttpResponse(422, f"{error}\n".encode("utf-8", "replace"))
        except GitschedError as error:
            self._count("failed")
            _log.error("the scores of %s are not committed: %s", cluster, error)
            return HttpResponse(503, b"the scores are not committed; send them again\n", headers=(("Retry-After", "30"),))
        except Exception:  # noqa: BLE001 - logged with its traceback; one request must not end the thread
            self._count("failed")
            _log.exception("the scores of %s are not committed", cluster)
            return HttpResponse(500, b"the scores are not committed\n")
        self._count("unchanged" if commit is None else "committed")
        if commit is not None:
            self._request_run()
        return HttpResponse(200, b"unchanged\n" if commit is None else f"committed {commit}\n".encode())


class _ScoreBody:
    """Receives the body of a push; `submit` gets it, or None if it is too large."""

    def __init__(self, submit: Callable[[bytes | None], HttpResponse | Future[HttpResponse]]) -> None:
        self._submit, self._data = submit, bytearray()

    def feed(self, data: bytes) -> None:
        """Receive the next bytes; what exceeds the limit is not stored."""
        self._data += data[: MAX_BODY_BYTES + 1 - len(self._data)]

    def respond(self) -> HttpResponse | Future[HttpResponse]:
        """Return the response after the complete body."""
        return self._submit(bytes(self._data) if len(self._data) <= MAX_BODY_BYTES else None)
