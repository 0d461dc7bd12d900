"""HTTP client for all providers, protected against SSRF: an allow list of hosts, forbidden addresses, no redirects to other hosts, and
limits of time and size."""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
import threading
import time
from queue import Empty, SimpleQueue
from types import TracebackType

import httpx

from gitsched.metrics.providers import ProviderRequest, ProviderResponse
from gitsched.metrics.queries import ProviderUnreachable
from gitsched.model.allow_list import AllowList, Purpose

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_FORBIDDEN_NETWORKS = tuple(
    map(
        ipaddress.ip_network,
        (
            "169.254.0.0/16",  # link-local: cloud metadata services, which return credentials
            "fe80::/10",
            "fd00:ec2::254/128",  # a cloud's metadata service at an address that is not link-local
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
"""Maximum number of addresses of one name that are tried."""
_EMBEDDED_IPV4_NETWORKS = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("::/96"))
"""IPv6 networks that embed IPv4 addresses, in addition to those that `ipaddress` supports."""
_LOOPBACK = ipaddress.ip_address("::1")


def resolve_host(host: str, port: int) -> tuple[str, ...]:
    """Return the addresses of a host in the system's order of preference. Raises ProviderUnreachable if there is none or one is forbidden.

    Connections use these addresses: the name is not resolved a second time.
    """
    try:
        results = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ProviderUnreachable("its host name cannot be resolved") from error
    addresses = [str(entry[4][0]) for entry in results]
    if any(_is_forbidden(ipaddress.ip_address(address.partition("%")[0])) for address in addresses):
        raise ProviderUnreachable("its host has a link-local or reserved address, which is not allowed")
    if not addresses:
        raise ProviderUnreachable("its host name cannot be resolved")
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
"""Maximum size of a response in bytes."""
_MAX_REDIRECTS = 3
_MAX_CAUSES = 16


class HttpClient:
    """Thread-safe HTTP client. `allow` and `purpose` say which hosts may be contacted; `secure` is required for https URLs."""

    def __init__(self, allow: AllowList, purpose: Purpose, *, secure: bool) -> None:
        self._allow, self._purpose = allow, purpose
        # Loading CA certificates is slow, so http-only clients have none, and their https connections fail verification.
        context = ssl.create_default_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # Proxies and .netrc of the environment are ignored, so a request only goes to the host in the document.
        self._client = httpx.Client(verify=context, trust_env=False, follow_redirects=False)

    def __enter__(self) -> HttpClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._client.close()

    def send(self, request: ProviderRequest, deadline: float) -> ProviderResponse:
        """Return the response to a request before `deadline` (time.monotonic). Raises ProviderUnreachable without secrets in its message.

        Redirects are followed only to the same scheme, host and port.
        """
        # httpx has no total timeout: slow name resolution, or headers sent byte by byte, exceed the timeouts of single reads.
        responses: SimpleQueue[ProviderResponse | Exception] = SimpleQueue()
        threading.Thread(target=lambda: responses.put(self._exchange(request, deadline)), daemon=True).start()
        try:
            response = responses.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            raise ProviderUnreachable("it did not answer in time") from None
        if isinstance(response, ProviderResponse):
            return response
        raise response

    def _exchange(self, request: ProviderRequest, deadline: float) -> ProviderResponse | Exception:
        """Return the response, or the exception that the waiting thread raises."""
        try:
            return self._follow_redirects(httpx.URL(request.url), request, deadline)
        except (httpx.InvalidURL, UnicodeError):  # UnicodeError: invalid host names
            return ProviderUnreachable("its address is not an http or https URL")
        except httpx.TimeoutException:
            return ProviderUnreachable("it did not answer in time")
        except (httpx.HTTPError, OSError, ValueError) as error:
            return ProviderUnreachable(_describe_error(error))
        except Exception as error:  # noqa: BLE001 - raised in the waiting thread
            return error

    def _follow_redirects(self, url: httpx.URL, request: ProviderRequest, deadline: float) -> ProviderResponse:
        for _ in range(_MAX_REDIRECTS + 1):
            response = self._try_addresses(url, request, deadline)
            if isinstance(response, ProviderResponse):
                return response
            if (response.scheme, response.host, response.port) != (url.scheme, url.host, url.port):
                raise ProviderUnreachable("it redirects to another host")
            url = response
        raise ProviderUnreachable("it redirects too often")

    def _try_addresses(self, url: httpx.URL, request: ProviderRequest, deadline: float) -> ProviderResponse | httpx.URL:
        """Return the response, or the redirect's URL, of the first address that accepts a connection."""
        refusal = self._allow.find_host_refusal(str(url), self._purpose)
        if refusal:
            raise ProviderUnreachable(refusal)
        *other_addresses, last_address = resolve_host(url.host, url.port or (443 if url.scheme == "https" else 80))
        for count, address in enumerate(other_addresses):
            try:
                return self._send_to_address(url, address, request, deadline, share=len(other_addresses) + 1 - count)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue  # localhost has an IPv4 and an IPv6 address, and a server may listen on only one of them
        return self._send_to_address(url, last_address, request, deadline, share=1)

    def _send_to_address(
        self, url: httpx.URL, address: str, request: ProviderRequest, deadline: float, *, share: int
    ) -> ProviderResponse | httpx.URL:
        """Return the response of one address; the connect timeout is the remaining time divided by `share`."""
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise httpx.PoolTimeout("the deadline has passed")
        host = url.netloc.decode("ascii")
        http_request = self._client.build_request(
            "GET" if request.body is None else "POST",
            url.copy_with(host=address, userinfo=b""),  # httpx logs the address of every request
            json=request.body,
            headers={"Accept": "application/json", **dict(request.headers), "Host": host, "Accept-Encoding": "identity"},
            extensions={"sni_hostname": url.host},
            timeout=httpx.Timeout(remaining, connect=remaining / share),
        )
        credentials = (
            httpx.BasicAuth(url.username, url.password) if url.userinfo and "Authorization" not in http_request.headers else None
        )
        response = self._client.send(http_request, stream=True, auth=credentials)
        try:
            return _read_response(response, url, request, deadline)
        finally:
            response.close()


def _describe_error(error: Exception) -> str:
    """Return why a request failed. Messages of httpx and the system are not included because they contain addresses."""
    causes: list[BaseException] = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None and len(causes) < _MAX_CAUSES:
        causes.append(cause)
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return "its certificate is not trusted or not valid for its host"
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return "no https connection: check whether it is an http server"
    if isinstance(error, (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)):
        return "its response is incomplete or not HTTP"
    errno = next((cause.errno for cause in causes if isinstance(cause, OSError) and cause.errno), None)
    return f"no connection ({os.strerror(errno).lower() if errno else type(error).__name__})"


def _read_response(
    response: httpx.Response, url: httpx.URL, request: ProviderRequest, deadline: float
) -> ProviderResponse | httpx.URL:
    status = response.status_code
    if status in (307, 308) or (status in (301, 302, 303) and request.body is None):
        return url.join(response.headers.get("Location", ""))
    if not 200 <= status < 300:
        raise ProviderUnreachable(f"it answered with status {status}")
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise ProviderUnreachable("its response is compressed, but the request does not accept that")
    data = bytearray()
    for chunk in response.iter_raw():
        data += chunk
        if len(data) > MAX_RESPONSE_BYTES:
            raise ProviderUnreachable(f"its response has more than {MAX_RESPONSE_BYTES} bytes")
        if time.monotonic() > deadline:
            raise httpx.ReadTimeout("the deadline has passed")
    return ProviderResponse(response.headers.get("Content-Type", "").partition(";")[0].strip().lower(), bytes(data))
