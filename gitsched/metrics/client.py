"""One HTTP client for all providers: bounded in time and size, and never led astray."""

from __future__ import annotations

import os
import ssl
import threading
import time
from collections.abc import Collection
from queue import Empty, SimpleQueue
from types import TracebackType

import httpx

from gitsched.metrics.addresses import check_host, resolve
from gitsched.metrics.failures import Unreachable
from gitsched.metrics.protocols import Answer, Request

LARGEST = 1 << 20
"""Bytes of an answer at most."""
_REDIRECTS = 3
_CAUSES = 16


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
        # A name that is slow to look up, or a head that comes byte by byte, outlasts every timeout of a single read.
        answered: SimpleQueue[Answer | Exception] = SimpleQueue()
        threading.Thread(target=lambda: answered.put(self._exchange(request, deadline)), daemon=True).start()
        try:
            answer = answered.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            raise Unreachable("it did not answer in time") from None
        if isinstance(answer, Answer):
            return answer
        raise answer

    def _exchange(self, request: Request, deadline: float) -> Answer | Exception:
        """The answer, or what is to be raised by who waits."""
        try:
            return self._follow(httpx.URL(request.url), request, deadline)
        except (httpx.InvalidURL, UnicodeError):  # the latter for names of hosts that are none
            return Unreachable("its address is no http or https URL")
        except httpx.TimeoutException:
            return Unreachable("it did not answer in time")
        except (httpx.HTTPError, OSError, ValueError) as error:
            return Unreachable(_tell(error))
        except Exception as error:  # noqa: BLE001 - raised by who waits: a thread that dies in silence would look like a slow provider
            return error

    def _follow(self, url: httpx.URL, request: Request, deadline: float) -> Answer:
        for _ in range(_REDIRECTS + 1):
            answer = self._try(url, request, deadline)
            if isinstance(answer, Answer):
                return answer
            if (answer.scheme, answer.host, answer.port) != (url.scheme, url.host, url.port):
                raise Unreachable("it redirects to another host")
            url = answer
        raise Unreachable("it redirects too often")

    def _try(self, url: httpx.URL, request: Request, deadline: float) -> Answer | httpx.URL:
        """The answer, or where it redirects to, from the first address of the host that takes a connection."""
        check_host(url.host, self._allowed)
        *others, last = resolve(url.host, url.port or (443 if url.scheme == "https" else 80))
        for count, address in enumerate(others):
            try:
                return self._ask(url, address, request, deadline, share=len(others) + 1 - count)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue  # a name such as localhost has an address of each family, and a server may listen at one of them only
        return self._ask(url, last, request, deadline, share=1)

    def _ask(self, url: httpx.URL, address: str, request: Request, deadline: float, *, share: int) -> Answer | httpx.URL:
        """The answer of one address; to connect it has one of `share` parts of the time that is left."""
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
            timeout=httpx.Timeout(left, connect=left / share),
        )
        basic = httpx.BasicAuth(url.username, url.password) if url.userinfo and "Authorization" not in sent.headers else None
        response = self._client.send(sent, stream=True, auth=basic)
        try:
            return _receive(response, url, request, deadline)
        finally:
            response.close()


def _tell(error: Exception) -> str:
    """Why an exchange failed. Neither the client's words nor the system's are told but for the name of the error: they have addresses."""
    causes: list[BaseException] = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None and len(causes) < _CAUSES:
        causes.append(cause)
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return "its certificate is not trusted, or not for its host"
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return "no connection by https: is it an http server?"
    if isinstance(error, (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)):
        return "its answer breaks off, or is none of HTTP"
    known = next((cause.errno for cause in causes if isinstance(cause, OSError) and cause.errno), None)
    return f"no connection ({os.strerror(known).lower() if known else type(error).__name__})"


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
