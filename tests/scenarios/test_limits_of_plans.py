"""What exceeds a limit on plans, explanations, edits and data of programs is counted, noted, or an error that names the limit."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import gitsched
from gitsched.apis.gitsched.config import ForgeConfig
from gitsched.diff.changed_documents import ChangedDocuments
from gitsched.diff.document_changes import Change
from gitsched.diff.plans import FileChange, ManifestChange, compare_manifests
from gitsched.edits.list_alignment import align_entries
from gitsched.git.urls import check_url
from gitsched.metrics import http_client
from gitsched.metrics.commit_statuses import fetch_commit_statuses
from gitsched.metrics.http_client import resolve_host
from gitsched.metrics.providers import ProviderResponse, ProviderUnreachable, find_token, parse_number
from gitsched.metrics.queries import InvalidMetricValue
from gitsched.model.allow_list import METRICS, AllowList, parse_host_rule, parse_token_rule
from gitsched.model.cluster_report import ClusterReport, UnhealthyWorkload, read_cluster_report, write_cluster_report
from gitsched.model.document import Key
from gitsched.model.errors import GitschedError, Permanent
from gitsched.model.known_values import find_near
from gitsched.model.time import parse_duration
from gitsched.report.manifests import list_manifest_lines

from .conftest import Fleet, at_hour
from .test_causes import CLUSTERS, compare, of_team, start, team_policy

TEXTS = {"old": b"a: 1\nb: 2\nc: 3\n", "new": b"a: 1\nb: 3\nc: 4\nd: 5\n"}


def compare_texts(count: int) -> tuple[list[ManifestChange], list[str]]:
    """Compare some manifests whose texts change; return the changes, and the lines of the report."""
    entries = [FileChange(f"clusters/one/default/{name}.yaml", "old", "new") for name in "abc"[:count]]
    found = compare_manifests(entries, lambda paths: {}, lambda path: None, TEXTS.__getitem__, lambda path: "")
    return list(found.rendered), list_manifest_lines(found, 120, None)


@pytest.mark.parametrize(
    ("constant", "limit", "note"),
    [
        ("_MAX_SIZE", 17, "too large for a diff"),
        ("_MAX_LINES", 3, "too long for a diff"),
        ("MAX_DIFF_LINES", 4, "3 more lines not shown"),
    ],
)
def test_a_diff_beyond_a_limit_says_what_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, constant: str, limit: int, note: str
) -> None:
    assert [entry.note for entry in compare_texts(1)[0]] == [""]
    monkeypatch.setattr(f"gitsched.diff.plans.{constant}", limit)
    assert [entry.note for entry in compare_texts(1)[0]] == [note]


def test_manifests_beyond_the_limit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitsched.diff.plans.MAX_MANIFESTS", 1)
    shown, lines = compare_texts(3)
    assert [entry.path for entry in shown] == ["default/a.yaml"]
    assert lines[-1] == "and 2 more manifests; use -o json for their names"


@pytest.mark.parametrize(
    ("constant", "limit", "causes"),
    [
        ("gitsched.diff.document_changes.MAX_FIELDS", 1, [("PropagationPolicy/default/blue more than 1 fields changed", True)]),
        ("gitsched.diff.cause_search._MAX_ROUNDS", 0, None),
    ],
)
def test_a_search_for_causes_beyond_a_limit_says_what_is_not_proved(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, constant: str, limit: int, causes: Any
) -> None:
    start(fleet, {**CLUSTERS, "blue.yaml": team_policy("blue", "c0, c1"), "b.yaml": of_team("b", "blue")})
    fleet.commit({"blue.yaml": team_policy("blue", "c2, c3")}, hour=1)
    monkeypatch.setattr(constant, limit)
    (move,) = compare(fleet).moves
    found = [(cause.text, cause.proved) for cause in move.causes]
    assert found == causes or (causes is None and found and not any(proved for _, proved in found))


def test_changes_beyond_the_units_of_a_search_are_taken_back_together(monkeypatch: pytest.MonkeyPatch) -> None:
    class Document:
        def __init__(self, key: Key) -> None:
            self.key, self.text, self.changes = key, "", (Change(key, 0),)
            self.differences = ()

    keys = [Key("policy.karmada.io", "PropagationPolicy", "default", f"p{number}") for number in range(4)]
    changes: Any = type("Changes", (), {"by_key": {key: Document(key) for key in keys}, "others": (), "time_differs": False})()
    monkeypatch.setattr("gitsched.diff.changed_documents.MAX_UNITS", 2)
    units = ChangedDocuments(changes)._list_units(lambda document: document.key)  # type: ignore[attr-defined]
    assert [len(unit) for unit in units] == [1, 1, 2]
    assert frozenset().union(*units) == {Change(key, 0) for key in keys}


def test_long_lists_are_aligned_by_position(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = ["a", "b", "c"], ["x", "y", "b", "z"]
    assert [part[:] for part in align_entries(before, after)] == [(0, 1, 0, 1), (1, 1, 1, 2), (1, 2, 2, 3), (2, 3, 3, 4)]
    monkeypatch.setattr("gitsched.edits.list_alignment._MAX_COMPARISONS", 2)
    assert [part[:] for part in align_entries(before, after)] == [(0, 3, 0, 3), (3, 3, 3, 4)]


def test_lists_of_equal_entries_are_aligned_by_position() -> None:
    """Their alignment would take seconds: the time grows with the cube of the number of entries."""
    assert align_entries(["a", "b"] * 500, ["b", "a", "a"] * 333) == [(0, 999, 0, 999), (999, 1000, 999, 999)]


def nest(depth: int) -> Any:
    value: Any = "a"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("constant", "limit", "value", "message"),
    [
        ("plain_documents.MAX_DEPTH", 5, nest(6), "collections are nested more than 5 deep"),
        ("plain_documents.MAX_COLLECTIONS", 5, [[], [], [], []], "there are more than 5 collections"),
        ("argument_types._MAX_DEPTH", 300, nest(400), "collections are nested more than 200 deep"),
    ],
)
def test_a_document_of_a_program_beyond_a_limit_is_not_read(
    monkeypatch: pytest.MonkeyPatch, constant: str, limit: int, value: Any, message: str
) -> None:
    monkeypatch.setattr(f"gitsched.model.{constant}", limit)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    found = gitsched.schedule([body, {**body, "data": value}]).findings
    assert [(finding.severity, finding.code) for finding in found] == [("error", "invalid-document")]
    assert message in found[0].message


@pytest.mark.parametrize(("depth", "place"), [(3, r"documents\[0\]\['data'\]\[0\]\[0\]\[0\]"), (400, "documents")])
def test_a_value_of_another_type_is_a_type_error_without_its_place_where_it_is_nested_deep(depth: int, place: str) -> None:
    deep = [object()]
    for _ in range(depth - 1):
        deep = [deep]
    with pytest.raises(TypeError, match=rf"^`{place}(\[0\])?` is .*: a document consists of"):
        gitsched.schedule([{"kind": "a", "data": deep}])


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({1: 2}, "spec: the key 1 must be a string"),
        ({"guard": {"fleet": 5}}, "spec.guard.fleet: "),
        ({"karmada": []}, "spec.karmada: "),
        ({"output": {"branch": {}}}, "spec.output.branch: "),
    ],
)
def test_settings_that_no_file_may_have_are_refused(config: Any, message: str) -> None:
    with pytest.raises(Permanent, match=re.escape(message)):
        gitsched.schedule([], config=config)


def test_a_report_of_a_cluster_has_a_limited_size() -> None:
    workloads = [
        UnhealthyWorkload(Key("apps", "Deployment", "shop", f"w{number:03}"), "Degraded", "x" * 2_000) for number in range(101)
    ]
    body = write_cluster_report(ClusterReport("one", "a" * 40, "Degraded", at_hour(0), tuple(workloads)))
    assert len(body["spec"]["unhealthy"]) == 100
    assert {len(entry["message"]) for entry in body["spec"]["unhealthy"]} == {1_024}
    report = read_cluster_report(body)
    assert report is not None
    assert len(report.unhealthy) == 100
    (finding,) = gitsched.validate([{**body, "spec": {**body["spec"], "unhealthy": [*body["spec"]["unhealthy"]] * 2}}])
    assert (finding.severity, finding.code) == ("error", "out-of-range")


def test_statuses_of_a_commit_beyond_the_limit_are_not_read_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitsched.metrics.commit_statuses._MAX_PAGES", 2)
    requests: list[str] = []

    class Client(http_client.HttpClient):
        def send(self, request: Any, deadline: float) -> ProviderResponse:
            requests.append(request.url)
            entries = [{"context": f"other/{number}", "state": "success"} for number in range(100)]
            return ProviderResponse("application/json", json.dumps(entries).encode())

    monkeypatch.setattr(http_client, "HttpClient", Client)
    forge = ForgeConfig("github", "acme/fleet", "https://forge.example.com", "delivery/{cluster}")
    allow = AllowList(statuses=(parse_host_rule("forge.example.com"),))
    with pytest.raises(ProviderUnreachable, match="a commit has more than 200 statuses: the others are not read"):
        fetch_commit_statuses(forge, [("a" * 40, at_hour(0))], ["one"], 10, allow)
    assert len(requests) == 2


def test_addresses_of_a_name_beyond_the_limit_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(0, 0, 6, "", (f"192.0.2.{number}", 80)) for number in range(1, 9)]
    monkeypatch.setattr("socket.getaddrinfo", lambda host, *_, **__: found)
    assert resolve_host("metrics.example.com", 80) == tuple(f"192.0.2.{number}" for number in range(1, 5))


def test_a_file_that_is_too_large_for_a_token_is_not_read_in_part(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("x" * 16_385)
    allow = AllowList((parse_host_rule("metrics.example.com"),), tokens=(parse_token_rule(f"file:{file}@metrics.example.com"),))
    with pytest.raises(ProviderUnreachable, match="has more than 16384 bytes, so that it contains no token"):
        find_token({"tokenFrom": {"file": str(file)}}, "https://metrics.example.com", allow, METRICS)


@pytest.mark.parametrize(
    ("parse", "within", "beyond"),
    [
        (check_url, f"https://git.example.com/{'a' * 4_072}", f"https://git.example.com/{'a' * 4_073}"),
        (parse_duration, "1m" * 50, "1m" * 51),
        (lambda text: parse_number(text, "load"), f"{'0' * 399}1", f"{'0' * 400}1"),
    ],
    ids=["URL", "duration", "number"],
)
def test_a_text_beyond_a_limit_is_not_valid(parse: Any, within: str, beyond: str) -> None:
    assert parse(within) is not None
    try:
        found = parse(beyond)
    except (GitschedError, InvalidMetricValue):
        return
    assert found is None


def test_a_name_is_compared_with_a_limited_number_of_existing_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitsched.model.known_values._MAX_COMPARED", 2)
    assert find_near("frontent", ["backend", "frontend"]) == "frontend"
    assert find_near("frontent", ["backend", "database", "frontend"]) == ""
    assert find_near("Frontend", ["backend", "database", "frontend"]) == "frontend"
