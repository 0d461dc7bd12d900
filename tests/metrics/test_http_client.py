"""HTTP client of the metrics providers: limits, redirects, allowed hosts and addresses."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any

import pytest

import gitsched
from gitsched.metrics.http_client import resolve_host
from gitsched.metrics.observer import query_vector
from gitsched.metrics.queries import ProviderUnreachable
from gitsched.model.allow_list import AllowList, HostRule
from tests.local import PATIENCE
from tests.metrics.conftest import Response, Server, documents, find_error, key, vector
from tests.tables import each_row


def test_a_response_has_a_maximum_size(server: Server) -> None:
    def endless(_: Any) -> Response:
        return Response(b"x" * (1 << 16) for _ in range(1 << 10))

    server.handle = endless
    assert "more than" in find_error(gitsched.observe(documents("prometheus", {"url": server.url}, "load"), timeout=PATIENCE))


def test_a_compressed_response_is_rejected(server: Server) -> None:
    server.handle = lambda _: Response("", headers=(("Content-Encoding", "gzip"),))
    assert "compressed" in find_error(gitsched.observe(documents("prometheus", {"url": server.url}, "load"), timeout=PATIENCE))


def test_a_redirect_within_the_host_is_followed(server: Server) -> None:
    server.handle = lambda received: (
        vector("load", "7")
        if received.path.startswith("/new")
        else Response(status=302, headers=(("Location", "/new?query=load"),))
    )
    assert gitsched.observe(documents("prometheus", {"url": server.url}, "load"), timeout=PATIENCE) == {key("load"): 7.0}


def test_a_redirect_to_another_host_is_not_followed(server: Server, other_server: Server) -> None:
    server.handle = lambda _: Response(status=302, headers=(("Location", f"{other_server.url}/api/v1/query"),))
    assert "another host" in find_error(gitsched.observe(documents("prometheus", {"url": server.url}, "load"), timeout=PATIENCE))
    assert other_server.seen == []


def test_a_redirect_loop_ends(server: Server) -> None:
    server.handle = lambda _: Response(status=302, headers=(("Location", "/again"),))
    assert "too often" in find_error(gitsched.observe(documents("prometheus", {"url": server.url}, "load"), timeout=PATIENCE))


@each_row(
    "host",
    [
        "169.254.169.254",
        "[fe80::1]",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
        "0.0.0.0",
        "[::]",
        "224.0.0.1",
        "[fd00:ec2::254]",
        "[2002:a9fe:a9fe::]",
        "[::169.254.169.254]",
        "2852039166",
        "168.63.129.16",
    ],
)
def test_reserved_addresses_are_not_queried(host: str) -> None:
    observations = gitsched.observe(documents("prometheus", {"url": f"http://{host}/latest"}, "load"), timeout=PATIENCE)
    assert "reserved address" in find_error(observations)


def test_ordinary_addresses_are_allowed() -> None:
    assert resolve_host("127.0.0.1", 80) == ("127.0.0.1",)
    assert resolve_host("::1", 80) == ("::1",)


def test_addresses_of_a_name_are_tried_until_one_accepts_the_connection(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    port = int(server.url.rpartition(":")[2])
    addresses = [
        (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", port, 0, 0)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)),
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *_, **__: addresses)
    server.handle = lambda _: vector("load", "7")
    assert gitsched.observe(documents("prometheus", {"url": f"http://localhost:{port}"}, "load"), timeout=PATIENCE) == {
        key("load"): 7.0
    }


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("http://[v1.x]/", id="invalid IPv6 address"),
        pytest.param("http://0251.0376.0251.0376/", id="octal"),
        pytest.param("http://\u2460.0.0.1/", id="invalid host name"),
        pytest.param("http://a\0b/", id="unprintable"),
        pytest.param("http://xn--a/", id="invalid IDNA encoding"),
        pytest.param(f"http://127.0.0.1/{'a' * 70_000}", id="long"),
        pytest.param("ftp://127.0.0.1/", id="another scheme"),
    ],
)
def test_an_invalid_url_is_a_failure_of_its_provider(url: str) -> None:
    assert "not an http or https URL" in find_error(
        gitsched.observe(documents("prometheus", {"url": url}, "load"), timeout=PATIENCE)
    )


def test_connection_errors_are_described(server: Server) -> None:
    url = server.url.replace("http:", "https:")
    assert "https" in find_error(gitsched.observe(documents("prometheus", {"url": url}, "load"), timeout=PATIENCE))
    server.close()
    assert "connection refused" in find_error(
        gitsched.observe(documents("prometheus", {"url": server.url}, "load"), timeout=PATIENCE)
    )


def test_endless_headers_do_not_exceed_the_deadline() -> None:
    """Each byte arrives in time, so no single read times out."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        done = threading.Event()

        def send_headers_slowly() -> None:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                while not done.wait(0.05):
                    connection.sendall(b"x")

        sender = threading.Thread(target=send_headers_slowly)
        sender.start()
        with pytest.raises(ProviderUnreachable, match="in time"):
            query_vector(
                {"url": f"http://127.0.0.1:{listener.getsockname()[1]}", "query": "load"}, 0.3, AllowList((HostRule("127.0.0.1"),))
            )
        done.set()
        sender.join()


def test_a_host_that_is_not_listed_is_not_queried(server: Server) -> None:
    observations = gitsched.observe(documents("prometheus", {"url": server.url}, "load"), hosts=["prom.example.com"])
    assert "does not allow its host 127.0.0.1; to allow it: --metrics-host 127.0.0.1" in find_error(observations)
    assert server.seen == []
