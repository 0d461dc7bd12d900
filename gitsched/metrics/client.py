"""One HTTP client for all providers: bounded in time and size, and never led astray."""

from __future__ import annotations

import ssl
import time
from collections.abc import Collection
from types import TracebackType

import httpx

from gitsched.metrics.addresses import check_host, resolve
from gitsched.metrics.failures import Unreachable
from gitsched.metrics.protocols import Answer, Request

LARGEST = 1 << 20
"""Bytes of an answer at most."""
_REDIRECTS = 3


class Client:
    """`allowed` are the hosts that may be asked, None for all; `secure` says that some are asked by https. For several threads at once."""

    def __init__(self, allowed: Collection[str] | None, *, secure: bool) -> None:
        self._allowed = allowed
        # Reading the authorities takes longer than most exchanges. Without any there is no https at all, rather than one unchecked.
        context = ssl.create_default_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # Proxies and .netrc of the environment are left alone: a request goes where the document says, or nowhere.
        self._client = httpx.Client(verify=context, trust_env=False, follow_redirects=False)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._client.close()

    def send(self, request: Request, deadline: float) -> Answer:
        """The answer to a request before `deadline` (time.monotonic). Raises Unreachable, whose text has nothing secret.

        A redirect is followed only to the same scheme, host and port.
        """
        url = httpx.URL(request.url)
        for _ in range(_REDIRECTS + 1):
            try:
                answer = self._try(url, request, deadline)
            except httpx.TimeoutException as error:
                raise Unreachable("it did not answer in time") from error
            except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, ValueError) as error:
                raise Unreachable(f"no connection ({type(error).__name__})") from error
            if isinstance(answer, Answer):
                return answer
            if (answer.scheme, answer.host, answer.port) != (url.scheme, url.host, url.port):
                raise Unreachable("it redirects to another host")
            url = answer
        raise Unreachable("it redirects too often")

    def _try(self, url: httpx.URL, request: Request, deadline: float) -> Answer | httpx.URL:
        """The answer, or where it redirects to."""
        check_host(url.host, self._allowed)
        address = resolve(url.host, url.port or (443 if url.scheme == "https" else 80))
        left = deadline - time.monotonic()
        if left <= 0:
            raise httpx.PoolTimeout("the deadline has passed")
        host = url.netloc.decode("ascii")
        sent = self._client.build_request(
            "GET" if request.body is None else "POST",
            url.copy_with(host=address, userinfo=b""),  # httpx logs the address of every request
            json=request.body,
            headers={"Accept": "application/json", **dict(request.headers), "Host": host, "Accept-Encoding": "identity"},
            extensions={"sni_hostname": url.host},
            timeout=left,
        )
        basic = httpx.BasicAuth(url.username, url.password) if url.userinfo and "Authorization" not in sent.headers else None
        response = self._client.send(sent, stream=True, auth=basic)
        try:
            return _receive(response, url, request, deadline)
        finally:
            response.close()


def _receive(response: httpx.Response, url: httpx.URL, request: Request, deadline: float) -> Answer | httpx.URL:
    status = response.status_code
    if status in (307, 308) or (status in (301, 302, 303) and request.body is None):
        return url.join(response.headers.get("Location", ""))
    if not 200 <= status < 300:
        raise Unreachable(f"it answered with status {status}")
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise Unreachable("its answer is compressed, which was not asked for")
    data = bytearray()
    for chunk in response.iter_raw():
        data += chunk
        if len(data) > LARGEST:
            raise Unreachable(f"its answer has more than {LARGEST} bytes")
        if time.monotonic() > deadline:
            raise httpx.ReadTimeout("the deadline has passed")
    return Answer(response.headers.get("Content-Type", "").partition(";")[0].strip().lower(), bytes(data))
