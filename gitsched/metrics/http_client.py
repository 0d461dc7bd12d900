"""HTTP client for all providers: limits of time and size, allowed hosts, forbidden addresses, no redirect to another host."""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
import threading
import time
from collections.abc import Collection
from queue import Empty, SimpleQueue
from types import TracebackType

import httpx

from gitsched.metrics.providers import ProviderRequest, ProviderResponse
from gitsched.metrics.queries import ProviderUnreachable

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_FORBIDDEN_NETWORKS = tuple(
    map(
        ipaddress.ip_network,
        (
            "169.254.0.0/16",  # link-local: the metadata services of clouds answer there, with credentials
            "fe80::/10",
            "fd00:ec2::254/128",  # the same service of one cloud, at an address that is not link-local
            "fd20:ce::254/128",
            "100.100.100.200/32",
            "168.63.129.16/32",
            "192.0.0.192/32",
            "0.0.0.0/8",
            "::/128",
            "224.0.0.0/4",
            "ff00::/8",
        ),
    )
)
_MAX_ADDRESSES = 4
"""Addresses of one name that are tried."""
_EMBEDDED_IPV4_NETWORKS = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("::/96"))
"""IPv6 networks whose addresses end with one of IPv4, beside those that `ipaddress` knows."""
_LOOPBACK = ipaddress.ip_address("::1")


def check_host(host: str, allowed: Collection[str] | None) -> None:
    """Raise Unreachable for a host that is not on the list: a name, or `*.` and a domain. None allows every host."""
    if allowed is None:
        return
    name = host.lower().rstrip(".")
    for entry in allowed:
        wanted = entry.lower().rstrip(".")
        if name == wanted or (wanted.startswith("*.") and name.endswith(wanted[1:])):
            return
    raise ProviderUnreachable("its host is not one of those that may be asked")


def resolve_host(host: str, port: int) -> tuple[str, ...]:
    """The addresses of a host, at least one and none of them a forbidden one, in the order in which the system prefers them.

    The connection goes there: the name is not looked up again. Raises Unreachable.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ProviderUnreachable("its host is not known") from error
    addresses = [str(entry[4][0]) for entry in found]
    if any(_is_forbidden(ipaddress.ip_address(address.partition("%")[0])) for address in addresses):
        raise ProviderUnreachable("its host has a link-local or otherwise reserved address, and such are never asked")
    if not addresses:
        raise ProviderUnreachable("its host is not known")
    return tuple(dict.fromkeys(addresses))[:_MAX_ADDRESSES]


def _is_forbidden(address: IpAddress) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address != _LOOPBACK and any(address in network for network in _EMBEDDED_IPV4_NETWORKS):
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return _is_forbidden(inner)
    return any(address in network for network in _FORBIDDEN_NETWORKS if network.version == address.version)


MAX_RESPONSE_BYTES = 1 << 20
"""Bytes of an answer at most."""
_MAX_REDIRECTS = 3
_MAX_CAUSES = 16


class HttpClient:
    """`allowed` are the hosts that may be asked, None for all; `secure` says that some are asked by https. For several threads at once."""

    def __init__(self, allowed: Collection[str] | None, *, secure: bool) -> None:
        self._allowed = allowed
        # Reading the authorities takes longer than most exchanges. Without any there is no https at all, rather than one unchecked.
        context = ssl.create_default_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # Proxies and .netrc of the environment are left alone: a request goes where the document says, or nowhere.
        self._client = httpx.Client(verify=context, trust_env=False, follow_redirects=False)

    def __enter__(self) -> HttpClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._client.close()

    def send(self, request: ProviderRequest, deadline: float) -> ProviderResponse:
        """The answer to a request before `deadline` (time.monotonic). Raises Unreachable, whose text has nothing secret.

        A redirect is followed only to the same scheme, host and port.
        """
        # A name that is slow to look up, or a head that comes byte by byte, outlasts every timeout of a single read.
        answered: SimpleQueue[ProviderResponse | Exception] = SimpleQueue()
        threading.Thread(target=lambda: answered.put(self._exchange(request, deadline)), daemon=True).start()
        try:
            answer = answered.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            raise ProviderUnreachable("it did not answer in time") from None
        if isinstance(answer, ProviderResponse):
            return answer
        raise answer

    def _exchange(self, request: ProviderRequest, deadline: float) -> ProviderResponse | Exception:
        """The answer, or what is to be raised by who waits."""
        try:
            return self._follow_redirects(httpx.URL(request.url), request, deadline)
        except (httpx.InvalidURL, UnicodeError):  # the latter for names of hosts that are none
            return ProviderUnreachable("its address is no http or https URL")
        except httpx.TimeoutException:
            return ProviderUnreachable("it did not answer in time")
        except (httpx.HTTPError, OSError, ValueError) as error:
            return ProviderUnreachable(_describe_error(error))
        except Exception as error:  # noqa: BLE001 - raised by who waits: a thread that dies in silence would look like a slow provider
            return error

    def _follow_redirects(self, url: httpx.URL, request: ProviderRequest, deadline: float) -> ProviderResponse:
        for _ in range(_MAX_REDIRECTS + 1):
            answer = self._try_addresses(url, request, deadline)
            if isinstance(answer, ProviderResponse):
                return answer
            if (answer.scheme, answer.host, answer.port) != (url.scheme, url.host, url.port):
                raise ProviderUnreachable("it redirects to another host")
            url = answer
        raise ProviderUnreachable("it redirects too often")

    def _try_addresses(self, url: httpx.URL, request: ProviderRequest, deadline: float) -> ProviderResponse | httpx.URL:
        """The answer, or where it redirects to, from the first address of the host that takes a connection."""
        check_host(url.host, self._allowed)
        *others, last = resolve_host(url.host, url.port or (443 if url.scheme == "https" else 80))
        for count, address in enumerate(others):
            try:
                return self._send_to_address(url, address, request, deadline, share=len(others) + 1 - count)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue  # a name such as localhost has an address of each family, and a server may listen at one of them only
        return self._send_to_address(url, last, request, deadline, share=1)

    def _send_to_address(
        self, url: httpx.URL, address: str, request: ProviderRequest, deadline: float, *, share: int
    ) -> ProviderResponse | httpx.URL:
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
            return _read_response(response, url, request, deadline)
        finally:
            response.close()


def _describe_error(error: Exception) -> str:
    """Why an exchange failed. Neither the client's words nor the system's are told but for the name of the error: they have addresses."""
    causes: list[BaseException] = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None and len(causes) < _MAX_CAUSES:
        causes.append(cause)
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return "its certificate is not trusted, or not for its host"
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return "no connection by https: is it an http server?"
    if isinstance(error, (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)):
        return "its answer breaks off, or is none of HTTP"
    known = next((cause.errno for cause in causes if isinstance(cause, OSError) and cause.errno), None)
    return f"no connection ({os.strerror(known).lower() if known else type(error).__name__})"


def _read_response(
    response: httpx.Response, url: httpx.URL, request: ProviderRequest, deadline: float
) -> ProviderResponse | httpx.URL:
    status = response.status_code
    if status in (307, 308) or (status in (301, 302, 303) and request.body is None):
        return url.join(response.headers.get("Location", ""))
    if not 200 <= status < 300:
        raise ProviderUnreachable(f"it answered with status {status}")
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise ProviderUnreachable("its answer is compressed, which was not asked for")
    data = bytearray()
    for chunk in response.iter_raw():
        data += chunk
        if len(data) > MAX_RESPONSE_BYTES:
            raise ProviderUnreachable(f"its answer has more than {MAX_RESPONSE_BYTES} bytes")
        if time.monotonic() > deadline:
            raise httpx.ReadTimeout("the deadline has passed")
    return ProviderResponse(response.headers.get("Content-Type", "").partition(";")[0].strip().lower(), bytes(data))
