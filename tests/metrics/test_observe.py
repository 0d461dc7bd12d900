"""What `gitsched.observe` promises whoever runs it: bounded, and never led to places or made to tell secrets."""

from __future__ import annotations

import base64
import contextlib
import logging
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gitsched
from gitsched.metrics.http_client import check_host, resolve_host
from gitsched.metrics.instant_query import query_vector
from gitsched.metrics.queries import ProviderUnreachable
from gitsched.model.observation import MetricFailure, Observations
from tests.metrics.conftest import Response, Server, documents, key, vector

CANARY = "canary-5c1f0a"


def reason(found: Observations, metric: str = "load") -> str:
    failure = found[key(metric)]
    assert isinstance(failure, MetricFailure), failure
    return failure.error


def test_many_metrics_are_asked_at_once(server: Server) -> None:
    names = [f"m{i}" for i in range(12)]
    together = threading.Barrier(len(names), timeout=10)

    def meet(received: Any) -> Response:
        together.wait()  # broken unless all of them are here
        return vector(received.path.partition("=")[2], "0.5")

    server.handle = meet
    found = gitsched.observe(documents("prometheus", {"url": server.url}, *names))
    assert [found[key(name)] for name in names] == [0.5] * 12
    assert found.time is not None


def test_the_same_metric_is_asked_once(server: Server) -> None:
    server.handle = lambda _: vector("load", "1")
    twice = documents("prometheus", {"url": server.url}, "load")
    twice += [{**twice[1], "metadata": {"name": "load_elsewhere"}}]
    assert gitsched.observe(twice) == {key("load"): 1.0}
    assert len(server.seen) == 1


def test_one_deadline_holds_for_everything_together(server: Server) -> None:
    def drip(_: Any) -> Response:
        def pieces() -> Iterator[bytes]:
            while not enough.wait(0.05):
                yield b" "

        return Response(pieces())

    enough = threading.Event()
    server.handle = drip
    found = gitsched.observe(documents("prometheus", {"url": server.url}, *(f"m{i}" for i in range(40))), timeout=0.4)
    enough.set()  # only now: a server that drips for ever holds up nothing
    assert len(found) == 40
    assert all(isinstance(value, MetricFailure) and "in time" in value.error for value in found.values())


def test_an_endless_answer_is_cut_off(server: Server) -> None:
    def endless(_: Any) -> Response:
        return Response(b"x" * (1 << 16) for _ in range(1 << 10))

    server.handle = endless
    assert "more than" in reason(gitsched.observe(documents("prometheus", {"url": server.url}, "load"), timeout=5))


def test_a_compressed_answer_is_refused(server: Server) -> None:
    server.handle = lambda _: Response("", headers=(("Content-Encoding", "gzip"),))
    assert "compressed" in reason(gitsched.observe(documents("prometheus", {"url": server.url}, "load"), timeout=5))


def test_a_redirect_within_the_host_is_followed(server: Server) -> None:
    server.handle = lambda received: (
        vector("load", "7")
        if received.path.startswith("/new")
        else Response(status=302, headers=(("Location", "/new?query=load"),))
    )
    assert gitsched.observe(documents("prometheus", {"url": server.url}, "load"), timeout=5) == {key("load"): 7.0}


def test_a_redirect_to_another_host_is_not(server: Server, rival: Server) -> None:
    server.handle = lambda _: Response(status=302, headers=(("Location", f"{rival.url}/api/v1/query"),))
    assert "another host" in reason(gitsched.observe(documents("prometheus", {"url": server.url}, "load"), timeout=5))
    assert rival.seen == []


def test_a_redirect_in_a_circle_ends(server: Server) -> None:
    server.handle = lambda _: Response(status=302, headers=(("Location", "/again"),))
    assert "too often" in reason(gitsched.observe(documents("prometheus", {"url": server.url}, "load"), timeout=5))


@pytest.mark.parametrize(
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
def test_reserved_addresses_are_never_asked(host: str) -> None:
    found = gitsched.observe(documents("prometheus", {"url": f"http://{host}/latest"}, "load"), timeout=5)
    assert "reserved address" in reason(found)


def test_an_ordinary_address_may_be_asked() -> None:
    assert resolve_host("127.0.0.1", 80) == ("127.0.0.1",)
    assert resolve_host("::1", 80) == ("::1",)


def test_a_name_with_several_addresses_is_asked_where_somebody_listens(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    port = int(server.url.rpartition(":")[2])
    both = [
        (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", port, 0, 0)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)),
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *_, **__: both)
    server.handle = lambda _: vector("load", "7")
    assert gitsched.observe(documents("prometheus", {"url": f"http://localhost:{port}"}, "load"), timeout=5) == {key("load"): 7.0}


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("http://[v1.x]/", id="no address"),
        pytest.param("http://0251.0376.0251.0376/", id="octal"),
        pytest.param("http://\u2460.0.0.1/", id="no name"),
        pytest.param("http://a\0b/", id="unprintable"),
        pytest.param("http://xn--a/", id="no encoding"),
        pytest.param(f"http://127.0.0.1/{'a' * 70_000}", id="long"),
        pytest.param("ftp://127.0.0.1/", id="another scheme"),
    ],
)
def test_an_address_that_is_none_is_a_failure_of_its_provider(url: str) -> None:
    assert "no http or https URL" in reason(gitsched.observe(documents("prometheus", {"url": url}, "load"), timeout=5))


def test_why_there_is_no_connection_is_told_in_words(server: Server) -> None:
    url = server.url.replace("http:", "https:")
    assert "https" in reason(gitsched.observe(documents("prometheus", {"url": url}, "load"), timeout=5))
    server.close()
    assert "connection refused" in reason(gitsched.observe(documents("prometheus", {"url": server.url}, "load"), timeout=5))


def test_a_head_that_never_ends_holds_up_nobody() -> None:
    """Each byte of it comes in time, so no timeout of a read ever passes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        done = threading.Event()

        def drip_head() -> None:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                while not done.wait(0.05):
                    connection.sendall(b"x")

        dripper = threading.Thread(target=drip_head)
        dripper.start()
        with pytest.raises(ProviderUnreachable, match="in time"):
            query_vector({"url": f"http://127.0.0.1:{listener.getsockname()[1]}", "query": "load"}, 0.3, None)
        done.set()
        dripper.join()


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("prom.example.com", ["prom.example.com"]),
        ("PROM.example.com.", ["prom.example.com"]),
        ("a.b.example.com", ["*.example.com"]),
    ],
)
def test_a_host_on_the_list_may_be_asked(host: str, allowed: list[str]) -> None:
    check_host(host, allowed)


@pytest.mark.parametrize(
    ("host", "allowed"),
    [("evil.com", ["example.com"]), ("example.com", ["*.example.com"]), ("notexample.com", ["*.example.com"]), ("example.com", [])],
)
def test_no_other_host_is(host: str, allowed: list[str]) -> None:
    with pytest.raises(ProviderUnreachable):
        check_host(host, allowed)


def test_a_host_that_is_not_on_the_list_is_not_asked(server: Server) -> None:
    found = gitsched.observe(documents("prometheus", {"url": server.url}, "load"), hosts=["prom.example.com"])
    assert "may be asked" in reason(found)
    assert server.seen == []


INFLUX = {"org": "o", "bucket": "b"}
CSV = "#datatype,string,long,double\r\n#group,false,false,false\r\n#default,_result,,\r\n,result,table,_value\r\n,,0,4.5\r\n\r\n"


@pytest.mark.parametrize("place", ["env", "file"])
def test_a_token_comes_from_where_the_operator_keeps_it(
    server: Server, place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("INFLUX_TOKEN", CANARY)
    (tmp_path / "token").write_text(f"{CANARY}\n")
    server.handle = lambda _: Response(CSV, media="text/csv")
    source = {"env": "INFLUX_TOKEN", "file": str(tmp_path / "token")}
    spec = {**INFLUX, "url": server.url, "token": "not this one", "tokenFrom": {place: source[place]}}
    assert gitsched.observe(documents("influx", spec, "load")) == {key("load"): 4.5}
    assert server.seen[0].headers["Authorization"] == f"Token {CANARY}"


@pytest.mark.parametrize("kind", ["prometheus", "kafka"])
@pytest.mark.parametrize("wanted", [True, False])
def test_a_server_gets_a_bearer_token_where_one_is_named(
    server: Server, monkeypatch: pytest.MonkeyPatch, kind: str, wanted: bool
) -> None:
    monkeypatch.setenv("GITSCHED_TEST_TOKEN", CANARY)
    spec = {"url": server.url, "table": "t", "comparison_column": "c", "value_column": "v"}
    gitsched.observe(documents(kind, spec | ({"tokenFrom": {"env": "GITSCHED_TEST_TOKEN"}} if wanted else {}), "load"), timeout=5)
    assert server.seen[0].headers.get("Authorization") == (f"Bearer {CANARY}" if wanted else None)


def test_a_token_that_is_not_there_is_told_without_asking(server: Server) -> None:
    spec = {**INFLUX, "url": server.url, "tokenFrom": {"env": "GITSCHED_NO_SUCH_TOKEN"}}
    assert "GITSCHED_NO_SUCH_TOKEN is not set" in reason(gitsched.observe(documents("influx", spec, "load")))
    assert server.seen == []


@pytest.mark.parametrize("status", [401, 500])
def test_nothing_secret_is_in_a_failure(server: Server, status: int) -> None:
    server.handle = lambda _: Response(f"denied: {CANARY}", status=status)
    spec = {**INFLUX, "url": server.url.replace("http://", f"http://user:{CANARY}@"), "token": CANARY}
    assert CANARY not in str(gitsched.observe(documents("influx", spec, "load")))


def test_nothing_secret_is_in_a_log(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    server.handle = lambda _: vector("load", "1")
    address = server.url.replace("http://", f"http://user:{CANARY}@")
    assert gitsched.observe(documents("prometheus", {"url": address}, "load"), timeout=5) == {key("load"): 1.0}
    assert server.seen[0].headers["Authorization"] == "Basic " + base64.b64encode(f"user:{CANARY}".encode()).decode()
    server.handle = lambda _: Response(CSV, media="text/csv")
    gitsched.observe(documents("influx", {**INFLUX, "url": address, "token": CANARY}, "load"), timeout=5)
    assert server.seen[1].headers["Authorization"] == f"Token {CANARY}"
    assert "HTTP" in caplog.text, "the client does log"
    assert CANARY not in caplog.text


@pytest.mark.parametrize("token", [f"{CANARY}\n", f"{CANARY}ü"])
def test_a_token_that_no_header_can_have_is_not_told(server: Server, token: str) -> None:
    found = gitsched.observe(documents("influx", {**INFLUX, "url": server.url, "token": token}, "load"))
    assert CANARY not in str(found)
    assert "no header can have" in reason(found)


@pytest.mark.parametrize("text", ["NaN", "+Inf", "-Inf", "1e999", "0x10", "1_000", "", "five", "5 5"])
def test_what_is_no_finite_number_is_none(server: Server, text: str) -> None:
    server.handle = lambda _: vector("load", text)
    found = gitsched.observe(documents("prometheus", {"url": server.url}, "load"), timeout=5)
    failure = found[key("load")]
    assert isinstance(failure, MetricFailure)
    assert failure.code == "INVALID_METRIC"


def test_a_quote_cannot_end_a_flux_string(server: Server) -> None:
    server.handle = lambda _: Response(CSV, media="text/csv")
    gitsched.observe(documents("influx", {**INFLUX, "url": server.url, "token": "t"}, 'a" or true) |> yield("'))
    assert r"== \"a\\\" or true) |> yield(\\\"\")" in server.seen[0].body


ENTRY = '{"metric":{"__name__":"load"},"value":[1,"5"]}'


@pytest.mark.parametrize(
    ("entries", "value"),
    [
        pytest.param("{}," + ENTRY, 5.0, id="an empty entry is skipped"),
        pytest.param(ENTRY.replace("load", "other") + "," + ENTRY, 5.0, id="so is another metric"),
        pytest.param('{"metric":{},"value":[1,"4"]},' + ENTRY, None, id="an entry without a name is the result of an expression"),
        pytest.param('{"metric":{"__name__":"load"}},' + ENTRY, None, id="the first entry counts, with a value or without"),
        pytest.param("7", None, id="no vector"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_the_first_entry_of_a_metrics_name_counts(server: Server, entries: str, value: float | None) -> None:
    server.handle = lambda _: Response(f'{{"data":{{"result":[{entries}]}}}}', media="text/vendor+json")
    found = gitsched.observe(documents("prometheus", {"url": server.url}, "load"), timeout=5)[key("load")]
    assert found == value if value is not None else isinstance(found, MetricFailure) and found.code == "INVALID_METRIC"


@pytest.mark.parametrize("deep", ["[" * 100_000, '{"data":' * 50_000])
def test_a_deep_answer_is_no_crash(server: Server, deep: str) -> None:
    server.handle = lambda _: Response(deep)
    assert "no JSON" in reason(gitsched.observe(documents("prometheus", {"url": server.url}, "load"), timeout=5))


def test_documents_that_are_not_sound_are_passed_over() -> None:
    bodies: list[Any] = [
        {},
        {"api": "core", "kind": "GlobalMetric", "metadata": {"name": "m"}, "spec": {}},
        {"api": "core", "kind": "GlobalMetricsProvider", "metadata": {"name": "p"}, "spec": {"type": "prometheus"}},
        {"api": "core", "kind": "GlobalMetric", "metadata": None, "spec": []},
    ]
    assert gitsched.observe(bodies) == {}


def test_an_answer_is_utf_8_without_a_mark(server: Server) -> None:
    answer = '{"data":{"result":[' + ENTRY + "]}}"
    for data in (answer.encode("utf-8-sig"), answer.encode("utf-16")):
        server.handle = lambda _, data=data: Response(iter([data]))
        assert "no JSON" in reason(gitsched.observe(documents("prometheus", {"url": server.url}, "load"), timeout=5))


def test_a_blank_in_a_query_is_a_plus(server: Server) -> None:
    server.handle = lambda _: Response(CSV, media="text/csv")
    gitsched.observe(documents("prometheus", {"url": server.url}, "sum by (job) (a+b)"), timeout=5)
    gitsched.observe(documents("influx", {**INFLUX, "url": server.url, "token": "t", "org": "my org"}, "load"), timeout=5)
    assert [seen.path.partition("?")[2] for seen in server.seen] == ["query=sum+by+(job)+(a%2Bb)", "org=my+org"]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("double", "4.5", 4.5),
        ("long", "-4", -4.0),
        ("long", "4.5", None),
        ("unsignedLong", "4e2", None),
        ("string", "4.5", 4.5),
        ("boolean", "true", 1.0),
        ("boolean", "1", None),
        ("dateTime:RFC3339", "4", None),
        ("base64Binary", "1234", None),
    ],
)
def test_a_value_of_influxdb_is_what_its_column_says(server: Server, kind: str, text: str, value: float | None) -> None:
    server.handle = lambda _: Response(CSV.replace("double", kind).replace("4.5", text), media="text/csv")
    found = gitsched.observe(documents("influx", {**INFLUX, "url": server.url, "token": "t"}, "load"), timeout=5)[key("load")]
    assert found == value if value is not None else isinstance(found, MetricFailure) and found.code == "INVALID_METRIC"


def test_an_empty_value_of_influxdb_is_its_columns_default(server: Server) -> None:
    server.handle = lambda _: Response(CSV.replace("4.5", "").replace("_result,,", "_result,,7"), media="text/csv")
    found = gitsched.observe(documents("influx", {**INFLUX, "url": server.url, "token": "t"}, "load"), timeout=5)
    assert found == {key("load"): 7.0}


@pytest.mark.parametrize("cut", [",,0,4.5", "#group,false,false,false\r\n"], ids=["a record", "an annotation"])
def test_an_answer_of_influxdb_that_lacks_something_is_none(server: Server, cut: str) -> None:
    server.handle = lambda _: Response(CSV.replace(cut, ",,0" if "4.5" in cut else ""), media="text/csv")
    found = gitsched.observe(documents("influx", {**INFLUX, "url": server.url, "token": "t"}, "load"), timeout=5)[key("load")]
    assert isinstance(found, MetricFailure)
    assert found.code == "UNREACHABLE_METRICS_PROVIDER"
