"""The HTTP server of the watch process."""

from __future__ import annotations

import hashlib
import hmac
import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from gitsched.forge.credentials import Credential
from gitsched.model.errors import Permanent
from gitsched.watch import Wakeup, http_server
from gitsched.watch.health import WatchHealth
from gitsched.watch.http_routes import HttpRoutes
from gitsched.watch.http_server import HttpServer, format_address, listen
from gitsched.watch.prometheus_metrics import PrometheusMetrics
from tests.local import PATIENCE
from tests.search_depth import count_examples
from tests.tables import each_row

SECRET = "0123456789abcdef"


class Site:
    """A server with its wakeup. `send_request` sends one request, `send` raw bytes; both return the response."""

    def __init__(self, address: str = "127.0.0.1:0", secret: Credential | None = None) -> None:
        self.bell = Wakeup()
        condition = WatchHealth(self.bell)
        self.meters = PrometheusMetrics(condition)
        self.sockets = listen(address)
        self.host, self.port = self.sockets[0].getsockname()[:2]
        pages = HttpRoutes(condition, self.meters, secret=secret, request_run=self.bell.request_run)
        self.server = HttpServer(self.sockets, pages)

    def send_request(
        self, method: str, path: str, body: bytes | Iterator[bytes] | None = None, **headers: str
    ) -> tuple[int, str, str]:
        connection = HTTPConnection(self.host, self.port, timeout=PATIENCE)
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        response: HTTPResponse = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, text, response.headers.get("Allow", "")

    def send(self, data: bytes) -> bytes:
        with socket.create_connection((self.host, self.port), PATIENCE) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            return receive(connection)

    def count(self, outcome: str) -> float:
        """Return the numbers of webhooks by outcome, from the metrics."""
        _, text, _ = self.send_request("GET", "/metrics")
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        return next(s.value for s in samples if s.name == "gitsched_webhooks_total" and s.labels == {"outcome": outcome})


def receive(connection: socket.socket) -> bytes:
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def sign(body: bytes, secret: str = SECRET) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


Open = Callable[..., Site]


@pytest.fixture
def open_site() -> Iterator[Open]:
    opened: list[Site] = []

    def make(address: str = "127.0.0.1:0", secret: Credential | None = None) -> Site:
        opened.append(Site(address, secret or Credential("webhook secret", value=SECRET)))
        return opened[-1]

    yield make
    for site in opened:
        site.server.close()


@pytest.fixture
def site(open_site: Open) -> Site:
    return open_site()


def test_a_signed_webhook_requests_a_run_and_its_body_is_ignored(site: Site) -> None:
    for number, body in enumerate((b"", b"{}", b"\x00\xff" * 50_000, b'{"ref": "refs/heads/main", "after": "$(reboot)"}'), 1):
        assert site.send_request("POST", "/hook", body, X_Hub_Signature_256=sign(body))[0] == 202
        assert site.bell.take_request() is not None
        assert site.count("accepted") == number


def test_a_webhook_without_a_valid_signature_requests_no_run(site: Site) -> None:
    assert site.send_request("POST", "/hook", b"{}")[0] == 401
    assert site.send_request("POST", "/hook", b"{}", X_Hub_Signature_256=sign(b"{ }"))[0] == 401
    assert site.send_request("POST", "/hook", b"{}", X_Hub_Signature_256=sign(b"{}", "another"))[0] == 401
    assert site.send_request("POST", "/hook", b"{}", X_Gitlab_Token="another")[0] == 401
    assert site.bell.take_request() is None
    assert (site.count("unsigned"), site.count("refused"), site.count("accepted")) == (1, 3, 0)
    assert site.send_request("POST", "/hook", b"{}", X_Gitlab_Token=SECRET)[0] == 202


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW"])
def test_the_webhook_accepts_post_only(site: Site, method: str) -> None:
    code, _, allowed = site.send_request(method, "/hook", X_Hub_Signature_256=sign(b""))
    assert (code, allowed) == (405, "POST")
    assert site.bell.take_request() is None


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_probes_are_read_only_and_head_has_no_body(site: Site, path: str) -> None:
    assert site.send_request("POST", path, b"x")[::2] == (405, "GET, HEAD")
    code, text, _ = site.send_request("HEAD", f"{path}?verbose")
    assert text == ""
    assert code == site.send_request("GET", path)[0] == (503 if path == "/readyz" else 200)
    raw = site.send(f"HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert raw.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("path", ["/", "/hook/", "/HOOK", "/hook/../hook", "//hook", "/%68ook", "/metrics/x", "/.git/config", "*"])
def test_other_paths_are_not_found(site: Site, path: str) -> None:
    assert site.send_request("POST", path, b"", X_Hub_Signature_256=sign(b""))[0] == 404


def test_without_a_secret_the_webhook_is_disabled() -> None:
    site = Site()
    assert site.send_request("POST", "/hook", b"", X_Hub_Signature_256=sign(b"", ""))[0] == 404
    site.server.close()


def test_a_secret_file_is_read_for_every_webhook(open_site: Open, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    site = open_site(secret=Credential("webhook secret", path=file))
    assert site.send_request("POST", "/hook", b"", X_Signature=sign(b""))[0] == 202
    file.write_text("the next one\n")
    assert site.send_request("POST", "/hook", b"", X_Signature=sign(b""))[0] == 401
    assert site.send_request("POST", "/hook", b"", X_Signature=sign(b"", "the next one"))[0] == 202
    file.unlink()
    assert site.send_request("POST", "/hook", b"", X_Signature=sign(b"", "the next one"))[0] == 503
    assert site.send_request("GET", "/healthz")[0] == 200


def test_a_body_may_be_chunked_or_follow_100_continue(site: Site) -> None:
    body = b"a" * 100_000
    assert site.send_request("POST", "/hook", iter([body[:1], body[1:]]), X_Hub_Signature_256=sign(body))[0] == 202
    head = (
        f"POST /hook HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\nX-Hub-Signature-256: {sign(b'{}')}\r\n\r\n"
    )
    with socket.create_connection((site.host, site.port), PATIENCE) as connection:
        connection.sendall(head.encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 100 ")
        connection.sendall(b"{}")
        assert receive(connection).startswith(b"HTTP/1.1 202 ")


def test_a_body_that_is_too_large_is_rejected_with_413(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "MAX_BODY_BYTES", 1000)
    body = b"a" * 3_000_000
    code, text, _ = site.send_request("POST", "/hook", body, X_Hub_Signature_256=sign(body))
    assert (code, text) == (413, "the body may have at most 1000 bytes\n")
    chunked = iter([body[:900], body[:101]])
    assert site.send_request("POST", "/hook", chunked, X_Hub_Signature_256=sign(body[:1001]))[0] == 413
    assert site.send_request("POST", "/hook", body[:1000], X_Hub_Signature_256=sign(body[:1000]))[0] == 202
    head = b"POST /hook HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\nExpect: 100-continue\r\nX-Gitlab-Token: x\r\n\r\n"
    assert site.send(head).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 500 + b"\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 20_000, 431),
        (b"GET /" + b"a" * 20_000, 431),
        (b"GET / HTTP/1.1\r\nHost: x\r\n folded: y\r\n\r\n", 404),
        (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
        (b"POST /hook HTTP/1.1\r\nHost: x\r\nX-Gitlab-Token: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef", 400),
        (b"POST /hook HTTP/1.1\r\nHost: x\r\nX-Gitlab-Token: x\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST /hook HTTP/1.1\r\nHost: x\r\nX-Gitlab-Token: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
        (b"POST /hook HTTP/1.1\r\nHost: x\r\nX-Gitlab-Token: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"POST /hook HTTP/1.1\r\nHost: x\r\nX-Gitlab-Token: x\r\nContent-Length: 5\r\n\r\nabc", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 404),
        (b"GET /healthz HTTP/1.0\r\n\r\n", 200),
    ],
    ids=[
        "TLS",
        "long head",
        "long line",
        "folded",
        "no host",
        "two hosts",
        "two lengths",
        "negative length",
        "gzip",
        "no chunk",
        "cut off",
        "HTTP/2",
        "HTTP/1.0",
    ],
)
def test_a_malformed_request_gets_a_response_and_the_server_continues(site: Site, data: bytes, code: int) -> None:
    assert site.send(data).startswith(f"HTTP/1.1 {code} ".encode())
    assert site.send_request("GET", "/healthz")[0] == 200
    assert site.bell.take_request() is None


@given(st.binary(max_size=200))
@settings(max_examples=count_examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_no_bytes_stop_the_server(site: Site, data: bytes) -> None:
    site.send(data)
    assert site.send_request("GET", "/healthz")[0] == 200


def test_a_connection_serves_one_request(site: Site) -> None:
    answers = site.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
    assert answers.count(b"HTTP/1.1 ") == 1
    assert b"\r\nConnection: close\r\n" in answers


def test_slow_clients_do_not_block_others_and_are_disconnected(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """More clients than connections: each new connection closes the oldest one."""
    monkeypatch.setattr(http_server, "MAX_CONNECTIONS", 4)
    slow = [socket.create_connection((site.host, site.port), PATIENCE) for _ in range(12)]
    for connection in slow:
        connection.sendall(b"POST /hook HTTP/1.1\r\nX-")
        assert site.send_request("GET", "/healthz")[0] == 200
    body = b"{}"
    assert site.send_request("POST", "/hook", body, X_Hub_Signature_256=sign(body))[0] == 202
    assert receive(slow[0]) == b""
    for connection in slow:
        connection.close()


def test_a_burst_of_connections_opens_no_more_files_than_the_limit(site: Site) -> None:
    """Idle clients that connect faster than the server answers: the backlog holds more of them than may be open."""
    before, most = count_files(), 0
    clients = []
    for _ in range(400):
        clients.append(socket.create_connection((site.host, site.port), PATIENCE))
        most = max(most, count_files() - before - len(clients))
    assert site.send_request("GET", "/healthz")[0] == 200
    assert most <= http_server.MAX_CONNECTIONS + 4  # sockets that are being closed or accepted
    assert receive(clients[0]) == b"", "the oldest was closed"
    for client in clients:
        client.close()


def count_files() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


@pytest.mark.parametrize(("hard", "message"), [(1024, None), (100, r"336 open files.*may have 100: .*ulimit -n 336")])
def test_open_files_are_reserved_for_runs(monkeypatch: pytest.MonkeyPatch, hard: int, message: str | None) -> None:
    """As with the limits of a shell on which `ulimit -Sn 80` was called."""
    limits = [(80, hard)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, values: limits.append(values))
    with pytest.raises(Permanent, match=message) if message else nullcontext():
        http_server.reserve_files()
    assert limits[-1] == ((80, hard) if message else (336, hard))


@pytest.mark.parametrize(("size", "code"), [(http_server.MAX_HEADER_BYTES, 200), (http_server.MAX_HEADER_BYTES + 1, 431)])
def test_the_head_of_a_request_has_a_limit_in_whatever_parts_it_arrives(site: Site, size: int, code: int) -> None:
    start, end = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: ", b"\r\n\r\n"
    head = start + b"x" * (size - len(start) - len(end)) + end
    assert site.send(head).startswith(f"HTTP/1.1 {code} ".encode())


def test_a_complete_exchange_has_one_deadline(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "REQUEST_TIMEOUT", 0.2)
    with socket.create_connection((site.host, site.port), 0.01) as connection:
        for _ in range(3000):  # a byte now and then, for ever
            try:
                connection.sendall(b"G")
                assert connection.recv(1) == b"", "no answer to half a request"
                return
            except TimeoutError:
                continue
            except ConnectionError:
                return
    raise AssertionError("it was served for half a minute")


@pytest.mark.parametrize("address", ["[::1]:0", "localhost:0", ":0", "127.0.0.1:0"])
def test_every_form_of_an_address_is_accepted(open_site: Open, address: str) -> None:
    site = open_site(address)
    assert site.send_request("GET", "/healthz")[1] == "ok\n"
    assert len({opened.getsockname()[1] for opened in site.sockets}) == 1
    if address == "[::1]:0":
        assert format_address(site.sockets[0]) == f"[::1]:{site.port}"


@each_row("address", ["", "8080", "host", "::1:80", "[::1]", "a:b", "a:99999", "http://a:80", "[::1]x:80", "no such host:1"])
def test_an_invalid_address_is_rejected(address: str) -> None:
    with pytest.raises(Permanent, match="cannot listen on"):
        listen(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "[::1]"])
def test_an_address_in_use_is_reported(address: str) -> None:
    (taken,) = listen(f"{address}:0")
    with taken, pytest.raises(Permanent, match=r"cannot listen on .*: Address already in use"):
        listen(format_address(taken))


def test_a_closed_server_refuses_connections(open_site: Open) -> None:
    site = open_site()
    site.server.close()
    with pytest.raises(ConnectionRefusedError):
        site.send_request("GET", "/healthz")


def test_metrics_are_in_openmetrics_format_if_the_client_prefers_it(site: Site) -> None:
    _, text, _ = site.send_request("GET", "/metrics", Accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
    assert text.endswith("# EOF\n")


@pytest.mark.parametrize(
    "accepted",
    [
        "text/plain;version=x",
        "text/plain;version=1.0.0;escaping=\xff",
        "application/openmetrics-text;version=99.9.9;escaping=x",
        "application/openmetrics-text;version=1.0.0-\x80",
        ",;=,;version=",
        "text/plain;version=1..0",
    ],
)
def test_no_accept_header_is_echoed_or_makes_the_server_fail(site: Site, accepted: str) -> None:
    answer = site.send(f"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: {accepted}\r\n\r\n".encode("latin-1"))
    head = answer.partition(b"\r\n\r\n")[0]
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"gitsched_build_info" in answer
    assert [part for part in (b"99.9", b"escaping=x", b"\xff", b"\x80", b"1..0") if part in head] == []


def test_the_accept_header_of_prometheus_gets_its_format(site: Site) -> None:
    accepted = (
        "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
        "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
    )
    answer = site.send(f"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: {accepted}\r\n\r\n".encode())
    assert b"Content-Type: application/openmetrics-text; version=1.0.0" in answer
    assert answer.endswith(b"# EOF\n")
