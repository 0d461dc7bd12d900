"""User stories 1 and 2 of the design: scores are computed from metrics without a custom controller."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from tests.cli.conftest import OCM_CLUSTERS, Run
from tests.metrics.conftest import Received, Response, Server

pytestmark = pytest.mark.usefixtures("local_servers")

HEAD = "apiVersion: gitsched.io/v1alpha1\nkind: ClusterScores\nmetadata: {name: default}\nspec:\n  scores:\n"
PUSHED = HEAD + "  - name: cpuratio\n    static: {ash: 88, bru: 66, cph: 40, dub: 10, edi: 0}\n    range: {worst: 0, best: 100}\n"
ASKED = HEAD + "  - name: cpuratio\n    prometheus: {url: 'URL', query: 'free by (cluster)', label: cluster}\n"
SETTINGS = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {}\n"
AT = ("--now", "2026-03-02T08:00:00Z")


def vector(values: dict[str, str]) -> Response:
    result = [{"metric": {"cluster": name}, "value": [1, value]} for name, value in values.items()]
    return Response(json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}))


def read(place: Path, name: str = "default") -> dict[str, tuple[str | None, dict[str, int]]]:
    """Return the expiry time and the scores of each cluster."""
    documents = yaml.load_all((place / f"scores/{name}.yaml").read_text(), yaml.BaseLoader)
    return {
        body["metadata"]["namespace"]: (
            body["status"].get("validUntil"),
            {score["name"]: int(score["value"]) for score in body["status"]["scores"]},
        )
        for body in documents
    }


def chosen(gitsched: Run, git: Callable[..., str], place: Path, now: str) -> list[str]:
    done = gitsched("reconcile", "--now", now)
    assert done.returncode == 0, done.stderr
    path = "placements:status/cluster.open-cluster-management.io/placementdecision/ns1/placement-decision-1.yaml"
    decision = yaml.safe_load(git("show", path, at=place))
    return [entry["clusterName"] for entry in decision["status"]["decisions"]]


def test_story_1_scores_pushed_by_clusters_select_the_best_three(
    gitsched: Run, git: Callable[..., str], commit: Callable[..., None], place: Path
) -> None:
    commit(place, source=PUSHED)
    done = gitsched("scores", *AT)
    assert (done.returncode, done.stdout) == (0, "scores/default.yaml: scores of 5 clusters\n"), done.stderr
    assert read(place)["ash"] == ("2026-03-02T09:00:00Z", {"cpuratio": 76})
    assert [scores["cpuratio"] for _, scores in read(place).values()] == [76, 32, -20, -80, -100]
    commit(place)
    assert chosen(gitsched, git, place, "2026-03-02T08:00:00Z") == ["ash", "bru", "cph"]
    commit(place, source=PUSHED.replace("ash: 88", "ash: 1"))
    gitsched("scores", "--now", "2026-03-02T08:30:00Z")
    commit(place)
    assert chosen(gitsched, git, place, "2026-03-02T08:30:00Z") == ["bru", "cph", "dub"]


def test_a_definition_with_several_scores_writes_them_into_one_document_per_cluster(
    gitsched: Run, commit: Callable[..., None], place: Path
) -> None:
    memory = "  - name: memratio\n    static: {ash: 77, bru: 10, cph: 0, dub: 0, edi: 100}\n    range: {worst: 0, best: 100}\n"
    commit(place, source=PUSHED + memory)
    assert gitsched("scores", *AT).returncode == 0
    scores = {name: found for name, (_, found) in read(place).items()}
    assert scores["ash"] == {"cpuratio": 76, "memratio": 54}
    assert {name: tuple(found) for name, found in scores.items()} == dict.fromkeys(OCM_CLUSTERS, ("cpuratio", "memratio"))


def test_story_2_scores_from_hub_metrics_select_and_expire(
    gitsched: Run, git: Callable[..., str], commit: Callable[..., None], place: Path, server: Server
) -> None:
    requests: list[Received] = []

    def answer(received: Received) -> Response:
        requests.append(received)
        return vector({"ash": "1e9", "bru": "3e9", "cph": "2e9", "dub": "1.5e9", "unknown": "9e9"})

    server.handle = answer
    commit(place, source=ASKED.replace("URL", f"{server.url}/thanos"))
    done = gitsched("scores", *AT)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "scores/default.yaml: scores of 4 clusters\n"
    assert "cluster edi without the score cpuratio, which counts as 0: the query returns no series" in done.stderr
    assert "clusters that the source does not have: unknown" in done.stderr
    assert done.stderr.count("source.yaml:7:63: ") == 2, "the line and column of the query"
    assert parse_qs(urlsplit(requests[0].path).query) == {"query": ["free by (cluster)"]}
    assert urlsplit(requests[0].path).path == "/thanos/api/v1/query"
    assert {name: scores["cpuratio"] for name, (_, scores) in read(place).items()} == {
        "ash": -100,
        "bru": 100,
        "cph": 0,
        "dub": -50,
    }
    commit(place)
    assert chosen(gitsched, git, place, "2026-03-02T08:30:00Z") == ["bru", "cph", "edi"]
    assert chosen(gitsched, git, place, "2026-03-02T09:00:01Z") == ["ash", "bru", "cph"], "expired: names decide"


def test_a_token_is_read_from_the_environment_and_sent_only_to_the_server(
    gitsched: Run, commit: Callable[..., None], place: Path, server: Server
) -> None:
    server.handle = lambda received: vector({"ash": "1"})
    commit(place, source=ASKED.replace("URL", server.url).replace("label: cluster", "tokenFrom: {env: THANOS_TOKEN}"))
    done = gitsched("scores", *AT, THANOS_TOKEN="f00d", GITSCHED_ALLOW_TOKENS="env:THANOS_TOKEN@127.0.0.1")
    assert done.returncode == 0, done.stderr
    assert server.seen[0].headers["Authorization"] == "Bearer f00d"
    assert "f00d" not in (place / "scores/default.yaml").read_text() + done.stdout + done.stderr


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Response("", 500), "status 500"),
        (Response('{"data": {"resultType": "matrix", "result": []}}'), "does not return an instant vector"),
        (Response('{"data": {"resultType": "vector", "result": [{"metric": {}, "value": [1, "2"]}]}}'), "label 'cluster'"),
    ],
)
def test_a_failed_query_leaves_the_file_unchanged(
    gitsched: Run, commit: Callable[..., None], place: Path, server: Server, answer: Response, why: str
) -> None:
    server.handle = lambda received: answer
    commit(place, source=ASKED.replace("URL", server.url))
    (place / "scores").mkdir()
    (place / "scores/default.yaml").write_text("# as it was\n")
    done = gitsched("scores", *AT)
    assert done.returncode == 4
    assert why in done.stderr
    assert server.url not in done.stderr
    assert (place / "scores/default.yaml").read_text() == "# as it was\n"


SERIES = [
    {"metric": {"cluster": "ash"}, "value": [1, "1"]},
    {"metric": {"cluster": "bru"}, "value": [1, "NaN"]},
    {"metric": {"cluster": "cph"}, "value": [1, "+Inf"]},
    {"metric": {"cluster": "dub"}, "value": [1, "2"]},
    {"metric": {"cluster": "dub"}, "value": [1, "3"]},
    {"metric": {"cluster": "edi"}, "value": [1, "9"]},
    {"metric": {"pod": "x"}, "value": [1, "9"]},
]


def test_an_invalid_series_costs_the_score_of_its_own_cluster_only(
    gitsched: Run, commit: Callable[..., None], place: Path, server: Server
) -> None:
    server.handle = lambda received: Response(json.dumps({"data": {"resultType": "vector", "result": SERIES}}))
    commit(place, source=ASKED.replace("URL", server.url))
    done = gitsched("scores", *AT)
    assert (done.returncode, done.stdout) == (0, "scores/default.yaml: scores of 2 clusters\n"), done.stderr
    assert {cluster: scores for cluster, (_, scores) in read(place).items()} == {
        "ash": {"cpuratio": -100},
        "edi": {"cpuratio": 100},
    }
    for cluster, reason in (("bru", "the value is NaN"), ("cph", "the value is +Inf"), ("dub", "there are several series")):
        assert re.search(
            rf"source\.yaml:7:\d+: cluster {cluster} without the score cpuratio, .*{re.escape(reason)}.*\(query: free by \(cluster\)\) "
            r"\[score-value-invalid\]",
            done.stderr,
        )
    assert "1 series have no label 'cluster'" in done.stderr


def test_unchanged_scores_are_written_again_when_less_than_half_of_their_time_remains(
    gitsched: Run, commit: Callable[..., None], place: Path, server: Server
) -> None:
    values = iter(({"ash": "0.50"}, {"ash": "0.51"}, {"ash": "0.49"}, {"ash": "0.90"}))
    server.handle = lambda received: vector(next(values))
    commit(place, source=ASKED.replace("URL", server.url) + "    range: {worst: 0, best: 1}\n")
    seen = []
    for time in ("08:00", "08:30", "08:31", "08:32"):
        assert gitsched("scores", "--now", f"2026-03-02T{time}:00Z").returncode == 0
        seen.append(read(place)["ash"])
    assert seen == [
        ("2026-03-02T09:00:00Z", {"cpuratio": 0}),
        ("2026-03-02T09:00:00Z", {"cpuratio": 0}),
        ("2026-03-02T09:31:00Z", {"cpuratio": 0}),
        ("2026-03-02T09:32:00Z", {"cpuratio": 80}),
    ]


def test_a_dry_run_prints_the_documents(gitsched: Run, commit: Callable[..., None], place: Path) -> None:
    commit(place, source=PUSHED.replace("spec:\n", "spec:\n  validFor: forever\n  path: fleet/scores.yaml\n"))
    done = gitsched("scores", "--dry-run", *AT)
    documents = list(yaml.safe_load_all(done.stdout))
    assert [body["metadata"]["namespace"] for body in documents] == list(OCM_CLUSTERS)
    assert all("validUntil" not in body["status"] for body in documents)
    assert not (place / "fleet").exists()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("range: {worst: 0, best: 100}", "range: {worst: 1, best: 1}"), "ocm-score-source"),
        (("range: {worst: 0, best: 100}", "prometheus: {url: 'http://x', query: up}"), "ocm-score-source"),
        (("range: {worst: 0, best: 100}", "\n  - {name: cpuratio, static: {}}"), "ocm-score-duplicate"),
        (("cpuratio", "7"), "wrong-type"),
    ],
)
def test_invalid_definitions_are_reported_with_their_location(
    gitsched: Run, commit: Callable[..., None], place: Path, change: tuple[str, str], code: str
) -> None:
    commit(place, source=PUSHED.replace(*change))
    done = gitsched("validate")
    assert f"[{code}]" in done.stdout
    assert "source.yaml:" in done.stdout
    assert gitsched("scores", *AT).returncode == 1


@pytest.mark.parametrize("path", ["../outside.yaml", "/tmp/outside.yaml", ".git/config"])
def test_nothing_is_written_outside_of_the_worktree(gitsched: Run, commit: Callable[..., None], place: Path, path: str) -> None:
    commit(place, source=PUSHED.replace("spec:\n", f"spec:\n  path: {path}\n"))
    done = gitsched("scores", *AT)
    assert (done.returncode, "is not a path inside the repository" in done.stderr) == (1, True)


@pytest.mark.parametrize("target", [".git", "gitsched.yaml"])
def test_scores_are_not_written_through_a_symlink(gitsched: Run, commit: Callable[..., None], place: Path, target: str) -> None:
    (place / "gitsched.yaml").write_text(SETTINGS)
    (place / "link.yaml").symlink_to(target)
    path = "link.yaml/scores.yaml" if target == ".git" else "link.yaml"
    commit(place, source=PUSHED.replace("spec:\n", f"spec:\n  path: {path}\n"))
    done = gitsched("scores", *AT)
    assert (done.returncode, "is not a path inside the worktree" in done.stderr) == (1, True), done.stderr
    assert not (place / ".git/scores.yaml").exists()
    assert (place / "gitsched.yaml").read_text() == SETTINGS


@pytest.mark.parametrize("ignored", [False, True])
def test_scores_do_not_replace_a_file_with_other_content(
    gitsched: Run, commit: Callable[..., None], place: Path, ignored: bool
) -> None:
    (place / "settings.yaml").write_text(SETTINGS)
    if ignored:
        (place / ".gitignore").write_text("settings.yaml\n")
    commit(place, source=PUSHED.replace("spec:\n", "spec:\n  path: settings.yaml\n"))
    done = gitsched("scores", *AT)
    assert (done.returncode, "settings.yaml has other content than scores" in done.stderr) == (1, True), done.stderr
    assert (place / "settings.yaml").read_text() == SETTINGS


def test_a_missing_definition_is_reported(gitsched: Run, place: Path) -> None:
    done = gitsched("scores", *AT)
    assert (done.returncode, "there is no ClusterScores" in done.stderr) == (1, True)
