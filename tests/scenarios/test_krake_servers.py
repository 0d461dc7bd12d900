"""Applications with real metrics servers: Prometheus, and servers with the protocols of ksqlDB and InfluxDB."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import gitsched
from gitsched.model.observation import MetricFailure
from tests.builders.krake import application_yaml, cluster_yaml, global_metric_yaml, global_provider_yaml
from tests.local import PATIENCE
from tests.metrics.conftest import Received, Response, Server
from tests.metrics.conftest import documents as provider_documents
from tests.scenarios.conftest import Fleet
from tests.scenarios.test_krake import codes, target_cluster


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


LISTENING = re.compile(r'msg="Listening on" address=(127\.0\.0\.1:[1-9]\d*)')


class Exporter:
    """An exporter for Prometheus with the metrics `a` and `b`."""

    def __init__(self, server: Server) -> None:
        self.values = {"a": 0.9, "b": 0.1}
        self.target = server.url.removeprefix("http://")
        server.handle = lambda _: Response("".join(f"{n} {v}\n" for n, v in self.values.items()), media="text/plain; version=0.0.4")


class Prometheus:
    """A Prometheus process that scrapes an exporter twice per second."""

    def __init__(self, directory: Path, target: str) -> None:
        config = directory / "prometheus.yml"
        config.write_text(
            "scrape_configs:\n- job_name: t\n  scrape_interval: 500ms\n  scrape_timeout: 500ms\n"
            f"  static_configs: [{{targets: ['{target}']}}]\n"
        )
        options = [f"--config.file={config}", f"--storage.tsdb.path={directory / 'data'}", "--web.listen-address=127.0.0.1:0"]
        self._log = (directory / "log").open("wb")
        self._process = subprocess.Popen(["prometheus", *options], stdout=self._log, stderr=self._log)
        end = time.monotonic() + PATIENCE
        while (found := LISTENING.search((directory / "log").read_text())) is None:
            assert self._process.poll() is None, (directory / "log").read_text()
            assert time.monotonic() < end, (directory / "log").read_text()
            time.sleep(0.05)
        self.url = f"http://{found[1]}"

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self._log.close()


@pytest.fixture
def exporter(server: Server) -> Exporter:
    return Exporter(server)


@pytest.fixture
def prometheus(exporter: Exporter, tmp_path: Path) -> Iterator[Prometheus]:
    running = Prometheus(tmp_path, exporter.target)
    yield running
    running.stop()


def documents(url: str) -> list[dict[str, object]]:
    """Return a Prometheus provider and the metrics `a` and `b`."""
    return provider_documents("prometheus", {"url": url}, "a", "b")


def settle(exporter: Exporter, prometheus: Prometheus, **values: float) -> None:
    """Change the measured values, and wait until Prometheus has scraped them."""
    exporter.values = values
    wanted = {("GlobalMetricsProvider", "", "p", name): value for name, value in values.items()}
    end = time.monotonic() + PATIENCE
    while (seen := gitsched.observe(documents(prometheus.url))) != wanted:
        assert time.monotonic() < end, seen
        time.sleep(0.1)


def lay_out(fleet: Fleet, source: str) -> None:
    fleet.commit(
        {
            "one.yaml": cluster_yaml("one", "a"),
            "two.yaml": cluster_yaml("two", "b"),
            "metrics.yaml": f"{global_metric_yaml('a')}---\n{global_metric_yaml('b')}---\n{source}",
            "echo.yaml": application_yaml(),
        }
    )


@pytest.mark.needs("prometheus")
def test_an_application_follows_prometheus_beyond_the_threshold_and_stays_when_it_stops(
    fleet: Fleet, exporter: Exporter, prometheus: Prometheus
) -> None:
    lay_out(fleet, global_provider_yaml("prometheus", f"{{url: '{prometheus.url}'}}"))
    settle(exporter, prometheus, a=0.9, b=0.1)
    fleet.reconcile()
    assert target_cluster(fleet) == "one"
    settle(exporter, prometheus, a=0.5, b=0.59)
    assert not fleet.reconcile(1).changed, "better, but not beyond the threshold"
    settle(exporter, prometheus, a=0.5, b=0.61)
    assert fleet.reconcile(2).changed
    assert target_cluster(fleet) == "two"
    assert fleet.reconcile(2.5).changed, "the copy in the first cluster is over"
    prometheus.stop()
    run = fleet.reconcile(3)
    assert not run.changed
    assert target_cluster(fleet) == "two"
    assert "stale-decision" in codes(run)


def ksql(values: dict[str, float]) -> Callable[[Received], Response]:
    """Return ksqlDB's response to the statement for one row."""

    def answer(received: Received) -> Response:
        assert (received.method, received.path) == ("POST", "/query")
        statement = re.fullmatch(r"SELECT value FROM t WHERE name = '(\w)';", json.loads(received.body)["ksql"])
        assert statement is not None
        rows = [{"header": {"queryId": "q", "schema": "`VALUE` DOUBLE"}}, {"row": {"columns": [values[statement[1]]]}}]
        return Response(json.dumps(rows), media="application/vnd.ksql.v1+json")

    return answer


def influx(values: dict[str, float]) -> Callable[[Received], Response]:
    """Return InfluxDB's response to a Flux query with the right token."""

    def answer(received: Received) -> Response:
        assert (received.method, received.path) == ("POST", "/api/v2/query?org=o")
        if received.headers["Authorization"] != "Token secret":
            return Response("{}", status=401)
        wanted = re.search(r'_measurement == "(\w)"', json.loads(received.body)["query"])
        assert wanted is not None
        head = "#datatype,string,long,double,string\r\n#group,false,false,false,true\r\n#default,_result,,,\r\n"
        return Response(f"{head},result,table,_value,_measurement\r\n,,0,{values[wanted[1]]},{wanted[1]}\r\n\r\n", media="text/csv")

    return answer


@pytest.mark.parametrize(
    ("speak", "source"),
    [
        pytest.param(ksql, ("kafka", "url: '{url}', table: t, comparison_column: name, value_column: value"), id="ksql"),
        pytest.param(influx, ("influx", "url: '{url}', org: o, bucket: b, tokenFrom: {{env: INFLUX_TOKEN}}"), id="influx"),
    ],
)
def test_an_application_follows_ksql_and_influxdb(
    fleet: Fleet,
    server: Server,
    speak: Callable[[dict[str, float]], Callable[[Received], Response]],
    source: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("INFLUX_TOKEN", "secret")
    lay_out(fleet, global_provider_yaml(source[0], f"{{{source[1].format(url=server.url)}}}"))
    server.handle = speak({"a": 0.9, "b": 0.1})
    assert fleet.reconcile().plan.findings == ()
    assert target_cluster(fleet) == "one"
    server.handle = speak({"a": 0.1, "b": 0.9})
    fleet.reconcile(1)
    assert target_cluster(fleet) == "two"
    assert fleet.reconcile(1.5).changed, "the copy in the first cluster is over"
    server.close()
    run = fleet.reconcile(2)
    assert not run.changed
    assert "stale-decision" in codes(run)


def test_an_invalid_response_is_reported_as_invalid_metric(server: Server) -> None:
    server.handle = lambda _: Response("[]")
    (failure, _) = gitsched.observe(documents(server.url)).values()
    assert failure == MetricFailure("INVALID_METRIC", "Metric 'a' not in Prometheus response")
