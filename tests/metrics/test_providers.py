"""Protocols of the metrics providers: tokens, requests and responses."""

from __future__ import annotations

import base64
import logging
from pathlib import Path

import pytest

import gitsched
from gitsched.model.observation import MetricFailure
from tests.local import PATIENCE
from tests.metrics.conftest import Response, Server, documents, find_error, key, vector

CANARY = "canary-5c1f0a"


INFLUX = {"org": "o", "bucket": "b"}
CSV = "#datatype,string,long,double\r\n#group,false,false,false\r\n#default,_result,,\r\n,result,table,_value\r\n,,0,4.5\r\n\r\n"


@pytest.mark.parametrize("location", ["env", "file"])
def test_a_token_is_read_from_a_variable_or_a_file(
    server: Server, location: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("INFLUX_TOKEN", CANARY)
    (tmp_path / "token").write_text(f"{CANARY}\n")
    server.handle = lambda _: Response(CSV, media="text/csv")
    source = {"env": "INFLUX_TOKEN", "file": str(tmp_path / "token")}
    spec = {**INFLUX, "url": server.url, "token": "not this one", "tokenFrom": {location: source[location]}}
    assert "does not allow reading" in find_error(gitsched.observe(documents("influx", spec, "load")))
    assert server.seen == []
    allowed = [f"{location}:{source[location]}@127.0.0.1"]
    assert gitsched.observe(documents("influx", spec, "load"), tokens=allowed) == {key("load"): 4.5}
    assert server.seen[0].headers["Authorization"] == f"Token {CANARY}"


@pytest.mark.parametrize("kind", ["prometheus", "kafka"])
@pytest.mark.parametrize("configured", [True, False])
def test_a_bearer_token_is_sent_if_configured(server: Server, monkeypatch: pytest.MonkeyPatch, kind: str, configured: bool) -> None:
    monkeypatch.setenv("GITSCHED_TEST_TOKEN", CANARY)
    spec = {"url": server.url, "table": "t", "comparison_column": "c", "value_column": "v"}
    gitsched.observe(
        documents(kind, spec | ({"tokenFrom": {"env": "GITSCHED_TEST_TOKEN"}} if configured else {}), "load"),
        timeout=PATIENCE,
        tokens=["env:GITSCHED_TEST_TOKEN"],
    )
    assert server.seen[0].headers.get("Authorization") == (f"Bearer {CANARY}" if configured else None)


def test_a_missing_token_is_a_failure_without_a_query(server: Server) -> None:
    spec = {**INFLUX, "url": server.url, "tokenFrom": {"env": "GITSCHED_NO_SUCH_TOKEN"}}
    found = gitsched.observe(documents("influx", spec, "load"), tokens=["env:GITSCHED_NO_SUCH_TOKEN"])
    assert "GITSCHED_NO_SUCH_TOKEN is not set" in find_error(found)
    assert server.seen == []


@pytest.mark.parametrize("status", [401, 500])
def test_failures_contain_no_secrets(server: Server, status: int) -> None:
    server.handle = lambda _: Response(f"denied: {CANARY}", status=status)
    spec = {**INFLUX, "url": server.url.replace("http://", f"http://user:{CANARY}@"), "token": CANARY}
    assert CANARY not in str(gitsched.observe(documents("influx", spec, "load")))


def test_logs_contain_no_secrets(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    server.handle = lambda _: vector("load", "1")
    address = server.url.replace("http://", f"http://user:{CANARY}@")
    assert gitsched.observe(documents("prometheus", {"url": address}, "load"), timeout=PATIENCE) == {key("load"): 1.0}
    assert server.seen[0].headers["Authorization"] == "Basic " + base64.b64encode(f"user:{CANARY}".encode()).decode()
    server.handle = lambda _: Response(CSV, media="text/csv")
    gitsched.observe(documents("influx", {**INFLUX, "url": address, "token": CANARY}, "load"), timeout=PATIENCE)
    assert server.seen[1].headers["Authorization"] == f"Token {CANARY}"
    assert "HTTP" in caplog.text, "httpx does log requests"
    assert CANARY not in caplog.text


@pytest.mark.parametrize("token", [f"{CANARY}\n", f"{CANARY}ü"])
def test_an_invalid_token_is_not_quoted(server: Server, token: str) -> None:
    observations = gitsched.observe(documents("influx", {**INFLUX, "url": server.url, "token": token}, "load"))
    assert CANARY not in str(observations)
    assert "not allowed in a header" in find_error(observations)


@pytest.mark.parametrize("text", ["NaN", "+Inf", "-Inf", "1e999", "0x10", "1_000", "", "five", "5 5"])
def test_a_value_must_be_a_finite_number(server: Server, text: str) -> None:
    server.handle = lambda _: vector("load", text)
    observations = gitsched.observe(documents("prometheus", {"url": server.url}, "load"), timeout=PATIENCE)
    failure = observations[key("load")]
    assert isinstance(failure, MetricFailure)
    assert failure.code == "INVALID_METRIC"


def test_quotes_in_flux_strings_are_escaped(server: Server) -> None:
    server.handle = lambda _: Response(CSV, media="text/csv")
    gitsched.observe(documents("influx", {**INFLUX, "url": server.url, "token": "t"}, 'a" or true) |> yield("'))
    assert r"== \"a\\\" or true) |> yield(\\\"\")" in server.seen[0].body


ENTRY = '{"metric":{"__name__":"load"},"value":[1,"5"]}'


@pytest.mark.parametrize(
    ("entries", "value"),
    [
        pytest.param("{}," + ENTRY, 5.0, id="an empty entry is skipped"),
        pytest.param(ENTRY.replace("load", "other") + "," + ENTRY, 5.0, id="another metric is skipped"),
        pytest.param('{"metric":{},"value":[1,"4"]},' + ENTRY, None, id="an entry without a name is the result of an expression"),
        pytest.param('{"metric":{"__name__":"load"}},' + ENTRY, None, id="the first entry counts, even without a value"),
        pytest.param("7", None, id="not a vector"),
        pytest.param("", None, id="empty"),
    ],
)
def test_the_first_series_with_the_metrics_name_counts(server: Server, entries: str, value: float | None) -> None:
    server.handle = lambda _: Response(f'{{"data":{{"result":[{entries}]}}}}', media="text/vendor+json")
    observations = gitsched.observe(documents("prometheus", {"url": server.url}, "load"), timeout=PATIENCE)[key("load")]
    assert (
        observations == value
        if value is not None
        else isinstance(observations, MetricFailure) and observations.code == "INVALID_METRIC"
    )


@pytest.mark.parametrize("data", ["[" * 100_000, '{"data":' * 50_000])
def test_a_deeply_nested_response_is_a_failure(server: Server, data: str) -> None:
    server.handle = lambda _: Response(data)
    assert "not valid JSON" in find_error(gitsched.observe(documents("prometheus", {"url": server.url}, "load"), timeout=PATIENCE))


def test_json_must_be_utf_8_without_a_byte_order_mark(server: Server) -> None:
    response = '{"data":{"result":[' + ENTRY + "]}}"
    for data in (response.encode("utf-8-sig"), response.encode("utf-16")):
        server.handle = lambda _, data=data: Response(iter([data]))
        assert "not valid JSON" in find_error(
            gitsched.observe(documents("prometheus", {"url": server.url}, "load"), timeout=PATIENCE)
        )


def test_spaces_in_queries_are_encoded_as_plus(server: Server) -> None:
    server.handle = lambda _: Response(CSV, media="text/csv")
    gitsched.observe(documents("prometheus", {"url": server.url}, "sum by (job) (a+b)"), timeout=PATIENCE)
    gitsched.observe(documents("influx", {**INFLUX, "url": server.url, "token": "t", "org": "my org"}, "load"), timeout=PATIENCE)
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
def test_an_influxdb_value_must_match_its_column_type(server: Server, kind: str, text: str, value: float | None) -> None:
    server.handle = lambda _: Response(CSV.replace("double", kind).replace("4.5", text), media="text/csv")
    observations = gitsched.observe(documents("influx", {**INFLUX, "url": server.url, "token": "t"}, "load"), timeout=PATIENCE)[
        key("load")
    ]
    assert (
        observations == value
        if value is not None
        else isinstance(observations, MetricFailure) and observations.code == "INVALID_METRIC"
    )


def test_an_empty_influxdb_value_is_the_default_of_its_column(server: Server) -> None:
    server.handle = lambda _: Response(CSV.replace("4.5", "").replace("_result,,", "_result,,7"), media="text/csv")
    observations = gitsched.observe(documents("influx", {**INFLUX, "url": server.url, "token": "t"}, "load"), timeout=PATIENCE)
    assert observations == {key("load"): 7.0}


@pytest.mark.parametrize("removed", [",,0,4.5", "#group,false,false,false\r\n"], ids=["a record", "an annotation"])
def test_an_incomplete_influxdb_response_is_a_failure(server: Server, removed: str) -> None:
    server.handle = lambda _: Response(CSV.replace(removed, ",,0" if "4.5" in removed else ""), media="text/csv")
    observations = gitsched.observe(documents("influx", {**INFLUX, "url": server.url, "token": "t"}, "load"), timeout=PATIENCE)[
        key("load")
    ]
    assert isinstance(observations, MetricFailure)
    assert observations.code == "UNREACHABLE_METRICS_PROVIDER"
