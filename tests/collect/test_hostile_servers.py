"""Servers that hang, refuse or answer nonsense: a failure with a reason, bounded in time and memory, that affects no other cluster."""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gitsched.collect.collector import ClusterResult, collect
from gitsched.collect.sources import FoundClusters, find_contexts
from gitsched.kubectl.client import KubectlOptions
from gitsched.kubectl.proxy import MAX_ANSWER, MAX_VALUES
from tests.builders.recorded_cluster import RecordedCluster, make_node, make_pod

pytestmark = pytest.mark.needs("kubectl")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DEEP = b'{"items":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
WRONG: list[Any] = [
    *(None, 3, "x", [], {}),
    {"metadata": 1, "spec": [], "status": "x"},
    {"spec": {"containers": [1, {"resources": 2}]}},
]
MEMORY = 3 << 20
"""KiB of this process and of a kubectl."""


class Servers:
    """Recorded clusters by name, which are observed at once."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.clusters: dict[str, RecordedCluster] = {}

    def add(self, name: str) -> RecordedCluster:
        self.clusters[name] = RecordedCluster()
        return self.clusters[name]

    def observe(self, seconds: float = 60.0) -> dict[str, ClusterResult]:
        found = FoundClusters()
        for name, cluster in self.clusters.items():
            options = KubectlOptions("", str(cluster.write_kubeconfig(self._directory / name)))
            found = found._replace(targets=(*found.targets, *find_contexts([f"{name}=fake"], options).targets))
        return {result.cluster: result for result in collect(found, [], lambda _: None, NOW, seconds).results}


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    made = Servers(tmp_path)
    yield made
    for cluster in made.clusters.values():
        cluster.close()


def repeat(_query: dict[str, list[str]]) -> Any:
    return {"metadata": {"continue": "again"}, "items": [make_node("n1")]}


def make_long_answer(_query: dict[str, list[str]]) -> bytes:
    return b'{"items": ["' + b"x" * (MAX_ANSWER + 1) + b'"]}'


def make_answer_with_many_values(_query: dict[str, list[str]]) -> bytes:
    return b'{"items": [{}' + b",{}" * (MAX_VALUES + 1) + b"]}"


ANSWERS: list[tuple[str, Any, str, bool]] = [
    ("/api/v1/nodes", 403, "GET /api/v1/nodes?limit=250: 403 refused with 403", False),
    ("/api/v1/pods", 500, "500 refused with 500", True),
    ("/api/v1/nodes", b"<html>login</html>", "the answer is no JSON", False),
    ("/api/v1/nodes", b'{"items": [NaN]}', "NaN is no number of JSON", False),
    ("/api/v1/nodes", b'{"items": [' + b"9" * 5000 + b"]}", "the answer is no JSON", False),
    ("/api/v1/nodes", DEEP, "the answer is no JSON", False),
    ("/api/v1/nodes", b"[]", "the answer is no JSON object", False),
    ("/api/v1/nodes", {"items": "none"}, "has no list of items", False),
    ("/api/v1/nodes", repeat, "never ends", False),
    ("/api/v1/nodes", make_long_answer, f"more than {MAX_ANSWER} bytes", False),
    ("/api/v1/nodes", make_answer_with_many_values, f"more than {MAX_VALUES} values", False),
    ("/version", b"", "the answer is no JSON", False),
]


def test_an_answer_that_cannot_be_is_a_failure_with_its_reason(servers: Servers) -> None:
    for number, (path, answer, _, _) in enumerate(ANSWERS):
        servers.add(f"c{number}").answers[path] = answer
    servers.add("healthy")
    results = servers.observe()
    assert results.pop("healthy").collected is not None, "the others do not affect it"
    for number, (_, _, reason, temporary) in enumerate(ANSWERS):
        result = results[f"c{number}"]
        assert (reason in result.failure, result.temporary, result.collected) == (True, temporary, None), result
    for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF):
        assert resource.getrusage(who).ru_maxrss < MEMORY


AMOUNTS: list[tuple[Any, str]] = [
    ({"cpu": "-4"}, "node n3 are not counted: allocatable.cpu is '-4'"),
    ({"memory": 1e300}, "allocatable.memory is 1e+300"),
    ({"pods": "NaN"}, "allocatable.pods is 'NaN'"),
    ({"cpu": ["4"]}, "allocatable.cpu is ['4']"),
    ({"cpu": "9" * 60}, "allocatable.cpu is '9999"),
]


def test_a_node_with_an_amount_that_cannot_be_is_not_counted(servers: Servers) -> None:
    for number, (amounts, _) in enumerate(AMOUNTS):
        node = make_node("n3") | {"status": {"capacity": {}, "allocatable": amounts}}
        servers.add(f"c{number}").lists["/api/v1/nodes"].append(node)
    results = servers.observe()
    for number, (_, note) in enumerate(AMOUNTS):
        result = results[f"c{number}"]
        assert result.collected is not None, result
        assert note in result.notes[0]
        assert result.collected.facts.allocatable["cpu"] == "8", "the other nodes count"


def test_a_node_that_is_listed_twice_is_counted_once(servers: Servers) -> None:
    twice = servers.add("twice")
    twice.lists["/api/v1/nodes"] = [make_node("n1", cpu="1"), make_node("n1", cpu="9")]
    result = servers.observe()["twice"]
    assert result.collected is not None, result
    assert (result.collected.facts.nodes, result.collected.facts.allocatable["cpu"]) == ((1, 1), "1")
    assert result.notes == ("the server lists node n1 twice: the first one counts",)


def test_objects_of_wrong_types_are_survived_and_ten_thousand_nodes_counted(servers: Servers) -> None:
    wrong, large = servers.add("wrong"), servers.add("large")
    wrong.lists["/api/v1/nodes"] += WRONG
    wrong.lists["/api/v1/pods"] += WRONG
    kinds = {"kind": "APIGroupDiscoveryList", "items": [1, {"versions": [{"version": "v1\n", "resources": 3}]}]}
    wrong.answers |= {"/apis": kinds, "/version": {"gitVersion": ["v1"]}}
    large.lists["/api/v1/nodes"] = [make_node(f"n{number}", cpu="1") for number in range(1, 10_001)]
    large.lists["/api/v1/pods"] = [make_pod("web")] * 1_000
    found = {name: result.collected for name, result in servers.observe().items()}
    assert found["wrong"] is not None
    assert found["wrong"].facts.apis == {"v1": ("ConfigMap", "Service")}
    assert found["large"] is not None
    facts = found["large"].facts
    assert (facts.nodes, facts.allocatable["cpu"], facts.allocated and facts.allocated["cpu"]) == ((10_000, 10_000), "10k", "500")


def test_servers_that_hang_drip_or_are_gone_end_at_the_limit(servers: Servers, tmp_path: Path) -> None:
    ended = threading.Event()
    servers.add("gone").close()
    gone = servers.observe()["gone"]
    assert (gone.collected, gone.temporary) == (None, True)
    assert "connection refused" in gone.failure
    servers.clusters = {}
    servers.add("hangs").answers["/api/v1/nodes"] = lambda _: ended.wait(60) and {}
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=drip, args=(listening,), daemon=True).start()
        dripping = RecordedCluster()
        dripping.close()
        servers.clusters["drips"] = dripping
        port = listening.getsockname()[1]
        dripping.write_kubeconfig = lambda path: write_kubeconfig(path, port)  # type: ignore[method-assign]
        results = servers.observe(seconds=1.0)  # without the limit, neither would end
    ended.set()
    assert all(result.collected is None and result.temporary for result in results.values())
    assert "within 1 s" in results["hangs"].failure
    servers.clusters = {}


def write_kubeconfig(path: Path, port: int) -> Path:
    path.write_text(
        f"apiVersion: v1\nkind: Config\nclusters: [{{name: fake, cluster: {{server: 'http://127.0.0.1:{port}'}}}}]\n"
        "contexts: [{name: fake, context: {cluster: fake}}]\ncurrent-context: fake\n"
    )
    return path


def drip(listening: socket.socket) -> None:
    connection, _ = listening.accept()
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n")
    try:
        while True:
            connection.sendall(b" ")
            time.sleep(0.05)
    except OSError:
        connection.close()


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ("", "asks for a user name: the kubeconfig has no credentials for the context"),
        (", user: empty", "asks for a user name: the kubeconfig has no credentials for the context"),
        (", user: missing", "cannot locate user missing"),
    ],
    ids=["no user", "no credentials", "a user without an entry"],
)
def test_a_context_without_credentials_says_so(tmp_path: Path, user: str, message: str) -> None:
    """kubectl asks for a user name where a server with TLS needs one."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        f"""\
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "https://127.0.0.1:1"}}}}]
contexts: [{{name: dub, context: {{cluster: c{user}}}}}]
users: [{{name: empty, user: {{}}}}]
"""
    )
    found = find_contexts(["dub"], KubectlOptions("", str(kubeconfig)))
    (result,) = collect(found, [], lambda _: None, NOW, 20.0).results
    assert message in result.failure
    assert not result.temporary


def test_without_kubectl_the_failure_says_so() -> None:
    found = find_contexts(["dub=fake"], KubectlOptions(executable="no-kubectl"))
    (result,) = collect(found, [], lambda _: None, NOW, 5.0).results
    assert "no-kubectl is not on the PATH: install kubectl" in result.failure


@pytest.mark.parametrize("clusters", ["[]", "[{name: c, cluster: {}}]"], ids=["no entry", "no server"])
def test_a_context_without_a_server_is_not_observed_on_this_machine(tmp_path: Path, clusters: str) -> None:
    """kubectl queries localhost:8080 for such a context."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        f"apiVersion: v1\nkind: Config\nclusters: {clusters}\ncontexts: [{{name: dub, context: {{cluster: c}}}}]\n"
    )
    found = find_contexts(["dub"], KubectlOptions("", str(kubeconfig)))
    (result,) = collect(found, [], lambda _: None, NOW, 20.0).results
    assert (result.collected, result.temporary) == (None, False)
    assert "cannot locate cluster" in result.failure or "the context dub has no server" in result.failure
