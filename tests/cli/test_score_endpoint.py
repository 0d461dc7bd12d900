"""Scores that clusters push: PUT /scores/CLUSTER of the watch service with a real remote, and the commands of the documentation."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from gitsched.watch.http_server import MAX_BODY_BYTES
from gitsched.watch.score_endpoint import MAX_BODY_BYTES as MAX_SCORE_BYTES
from tests.builders.ocm import addon_scores, to_yaml
from tests.cli.conftest import Process, Run
from tests.cli.test_facts import CLUSTERS_ONLY
from tests.cli.test_service import Site
from tests.local import PATIENCE

Git, Commit = Callable[..., str], Callable[..., None]
TOKENS = {"ash": "ash-0123456789abcdef", "bru": "bru-0123456789abcdef", "edi": "edi-0123456789abcdef"}
LINES = "".join(f"{cluster} {token}\n" for cluster, token in TOKENS.items())
DOCS = Path(__file__).parents[2] / "docs"
DECISION = "placements:status/cluster.open-cluster-management.io/placementdecision/ns1/placement-decision-1.yaml"


def in_minutes(minutes: float) -> str:
    return f"{datetime.now(UTC) + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}"


def make_scores(cluster: str, value: int = 50, minutes: float = 60) -> str:
    return to_yaml(addon_scores(cluster, {"cpuratio": value}, valid_until=in_minutes(minutes)))


@pytest.fixture
def remote(place: Path, git: Git, commit: Commit, tmp_path: Path) -> Path:
    commit(place, gitsched=CLUSTERS_ONLY)
    path = tmp_path / "remote.git"
    git("clone", "-q", "--bare", str(place), str(path), at=tmp_path)
    return path


@pytest.fixture
def site(remote: Path, watcher: Callable[..., Process], tmp_path: Path) -> Site:
    """A service that watches the remote and accepts scores."""
    tokens = tmp_path / "tokens"
    tokens.write_text(LINES)
    given = {"GITSCHED_REPO": remote.as_uri(), "GITSCHED_LISTEN": "127.0.0.1:0", "GITSCHED_SCORE_TOKENS_FILE": str(tokens)}
    started = Site(watcher(tmp_path, "--interval", "3600", "--debounce", "0.1", **given))
    started.process.wait_for(lambda: started.send_request("GET", "/readyz") == (200, "ok\n"))
    return started


def put(site: Site, cluster: str, body: str | bytes, token: str | None = None) -> tuple[int, str]:
    data = body.encode() if isinstance(body, str) else body
    return site.send_request("PUT", f"/scores/{cluster}", data, {"Authorization": f"Bearer {token or TOKENS[cluster]}"})


def test_pushed_scores_are_committed_to_the_branch_of_the_cluster_and_decide(site: Site, git: Git, remote: Path) -> None:
    code, answer = put(site, "edi", make_scores("edi", 90))
    assert (code, answer) == (200, f"committed {git('rev-parse', 'cluster-facts/edi', at=remote)}\n")
    site.process.wait_for(
        lambda: (
            [entry["clusterName"] for entry in yaml.safe_load(git("show", DECISION, at=remote))["status"]["decisions"]]
            == ["ash", "bru", "edi"]
        )
    )
    assert site.scrape()["gitsched_score_pushes_total{outcome=committed}"] == 1
    assert git("log", "-1", "--format=%s", "cluster-facts/edi", at=remote) == "scores: edi"


@pytest.mark.parametrize("odd", ["directory", "symlink"])
def test_scores_replace_what_is_no_file_on_the_branch(site: Site, git: Git, remote: Path, tmp_path: Path, odd: str) -> None:
    agent = tmp_path / "agent"
    git("init", "-q", str(agent), at=tmp_path)
    if odd == "directory":
        (agent / "scores.yaml").mkdir()
        (agent / "scores.yaml/more.yaml").write_text("a: b\n")
    else:
        (agent / "scores.yaml").symlink_to("/etc/hostname")
    git("add", ".", at=agent)
    git("commit", "-qm", "Odd", at=agent)
    git("push", "-q", str(remote), "HEAD:refs/heads/cluster-facts/ash", at=agent)
    scores = make_scores("ash", 90)
    assert [put(site, "ash", scores)[1].split()[0] for _ in range(2)] == ["committed", "unchanged"]
    assert git("ls-tree", "-r", "--format=%(objectmode) %(path)", "cluster-facts/ash", at=remote) == "100644 scores.yaml"


def test_the_same_scores_make_another_commit_only_when_less_than_half_of_their_time_remains(
    site: Site, git: Git, remote: Path
) -> None:
    answers = [
        put(site, "ash", make_scores("ash", value, minutes))[1].split()[0]
        for value, minutes in ((50, 60), (50, 61), (50, 110), (50, 200), (51, 200))
    ]
    assert answers == ["committed", "unchanged", "unchanged", "committed", "committed"]
    assert git("rev-list", "--count", "cluster-facts/ash", at=remote) == "3"


def test_the_history_of_a_branch_is_bounded_also_for_a_service_that_starts_again(
    site: Site, git: Git, remote: Path, watcher: Callable[..., Process], tmp_path: Path
) -> None:
    for value in (10, 20, 30, 40):
        assert put(site, "ash", make_scores("ash", value))[0] == 200
    assert git("rev-list", "--count", "cluster-facts/ash", at=remote) == "1"
    site.process.end()
    given = {"GITSCHED_REPO": remote.as_uri(), "GITSCHED_LISTEN": "127.0.0.1:0", "GITSCHED_SCORE_TOKENS": LINES}
    other = Site(watcher(tmp_path, "--cache-dir", str(tmp_path / "other"), **given))
    other.process.wait_for(lambda: other.send_request("GET", "/readyz") == (200, "ok\n"))
    assert put(other, "ash", make_scores("ash", 60))[0] == 200
    assert git("rev-list", "--count", "cluster-facts/ash", at=remote) == "2"


INVALID = {
    "of another cluster": (
        make_scores("bru"),
        422,
        "AddOnPlacementScore default is of the cluster bru: ash can only send its own scores",
    ),
    "one of another cluster": (make_scores("ash") + "---\n" + make_scores("bru"), 422, "is of the cluster bru"),
    "out of range": (make_scores("ash", 101), 422, "line 10, column 12: "),
    "not a number": (make_scores("ash").replace("value: 50", "value: NaN"), 422, "line 10, column 12: "),
    "a Secret": ("apiVersion: v1\nkind: Secret\nmetadata: {name: x, namespace: ash}\n", 422, "Secret is not AddOnPlacementScore"),
    "empty": ("", 422, "the body has 0 documents"),
    "not YAML": ("status: [", 422, "the body has 0 documents"),
    "a cycle": ("a: &a [*a]\nkind: X", 422, "line "),
    "not UTF-8": (b"\xff\xfe", 422, "line 1, column 1"),
    "too large": ("# " + "x" * MAX_SCORE_BYTES, 413, "262144 bytes"),
}


def test_invalid_scores_are_rejected_with_a_reason_and_commit_nothing(site: Site, git: Git, remote: Path) -> None:
    refs = git("for-each-ref", at=remote)
    for case, (body, code, message) in INVALID.items():
        found, answer = put(site, "ash", body)
        assert (found, message in answer) == (code, True), f"{case}: {answer}"
    assert git("for-each-ref", at=remote) == refs
    assert site.scrape()["gitsched_score_pushes_total{outcome=rejected}"] == len(INVALID)


UNAUTHORIZED: dict[str, dict[str, str]] = {
    "none": {},
    "of another cluster": {"Authorization": f"Bearer {TOKENS['bru']}"},
    "another scheme": {"Authorization": f"Basic {TOKENS['ash']}"},
    "empty": {"Authorization": "Bearer "},
    "no scheme": {"Authorization": TOKENS["ash"]},
    "wrong": {"Authorization": f"Bearer {TOKENS['ash']}x"},
}


def test_only_the_token_of_the_cluster_is_accepted(site: Site, git: Git, remote: Path) -> None:
    refs, body = git("for-each-ref", at=remote), make_scores("ash").encode()
    for case, headers in UNAUTHORIZED.items():
        assert site.send_request("PUT", "/scores/ash", body, headers) == (401, "no valid token of this cluster\n"), case
        assert site.send_request("PUT", "/scores/unknown", body, headers)[0] == 401, case
    assert git("for-each-ref", at=remote) == refs


def test_tokens_are_rotated_without_a_restart_and_never_logged(site: Site, tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(f"ash {TOKENS['ash']}\nash another-0123456789\n")
    assert put(site, "ash", make_scores("ash"), "another-0123456789")[0] == 200
    assert put(site, "ash", make_scores("ash"))[0] == 200
    assert put(site, "bru", make_scores("bru"))[0] == 401
    (tmp_path / "tokens").write_text(f"ash {TOKENS['ash']}\nbru short-token\n")
    assert put(site, "ash", make_scores("ash")) == (503, "the tokens cannot be read\n")
    log = site.process.log.read_text()
    assert "line 2 of the tokens for scores is not the name of a cluster and a token of at least 16 characters" in log
    assert not re.search("0123456789|short-token", log)


def test_other_methods_and_paths_are_rejected(site: Site) -> None:
    token = {"Authorization": f"Bearer {TOKENS['ash']}"}
    assert site.send_request("POST", "/scores/ash", b"", token)[0] == 405
    assert [site.send_request("PUT", f"/scores/{name}", b"", token)[0] for name in ("", "..", "a/b", "ASH", "a%2Fb")] == [404] * 5


def test_a_remote_that_does_not_respond_is_no_success(site: Site, remote: Path) -> None:
    remote.rename(remote.with_name("gone.git"))
    assert put(site, "ash", make_scores("ash")) == (503, "the scores are not committed; send them again\n")
    remote.with_name("gone.git").rename(remote)
    assert put(site, "ash", make_scores("ash"))[0] == 200


@pytest.mark.needs("curl")
def test_clusters_push_at_the_same_time(site: Site, git: Git, remote: Path) -> None:
    processes = []
    for cluster, token in TOKENS.items():
        command = ["curl", "-sS", "-X", "PUT", "-d", make_scores(cluster), "-H", f"Authorization: Bearer {token}"]
        processes.append(subprocess.Popen([*command, f"http://{site.address}/scores/{cluster}"], stdout=subprocess.PIPE, text=True))
    answers = [process.communicate(timeout=PATIENCE)[0] for process in processes]
    assert [answer.split()[0] for answer in answers] == ["committed"] * 3
    assert git("for-each-ref", "--format=%(refname)", "refs/heads/cluster-facts", at=remote).split() == [
        f"refs/heads/cluster-facts/{cluster}" for cluster in TOKENS
    ]


def test_without_branches_of_clusters_scores_are_refused(
    place: Path, commit: Commit, watcher: Callable[..., Process], tmp_path: Path
) -> None:
    site = Site(watcher(place, "--listen", "127.0.0.1:0", GITSCHED_SCORE_TOKENS=LINES))
    assert put(site, "ash", make_scores("ash"))[0] == 503
    assert "source.facts.clusterBranches is not set" in site.process.log.read_text()


def test_without_tokens_there_is_no_endpoint(place: Path, watcher: Callable[..., Process]) -> None:
    site = Site(watcher(place, "--listen", "127.0.0.1:0"))
    assert put(site, "ash", make_scores("ash")) == (404, "not found\n")


@pytest.mark.parametrize(
    ("tokens", "listen", "message"),
    [
        (LINES, (), "tokens for scores require --listen"),
        ("ash short", ("--listen", "127.0.0.1:0"), "line 1 of the tokens for scores"),
        ("just-one-word-0123456789", ("--listen", "127.0.0.1:0"), "line 1 of the tokens for scores"),
    ],
)
def test_invalid_tokens_stop_the_service_at_its_start(gitsched: Run, tokens: str, listen: tuple[str, ...], message: str) -> None:
    done = gitsched("watch", *listen, GITSCHED_SCORE_TOKENS=tokens)
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert "0123456789" not in done.stderr


def read_shell_blocks() -> list[str]:
    section = (DOCS / "ocm.md").read_text().partition("### Scores that clusters push")[2].partition("\n### ")[0]
    return re.findall(r"```sh\n(.*?)```", section, re.DOTALL)


@pytest.mark.needs("curl")
def test_the_documented_commands_push_scores(
    site: Site, git: Git, remote: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    with_git, with_http = read_shell_blocks()
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "write-scores"
    variables = {"FLEET_URL": str(remote), "TOKEN": "dub-0123456789abcdef", "PATH": f"{tmp_path / 'bin'}:{environment['PATH']}"}
    with_git = with_git.replace("https://git.example.com/shop/fleet.git", str(remote))
    (tmp_path / "tokens").write_text(f"dub {variables['TOKEN']}\n")
    for number, script in enumerate((with_git, with_git, with_http.replace("https://HOST", f"http://{site.address}"))):
        program.write_text(f"#!/bin/sh\ncat <<'END'\n{make_scores('dub', 10 + number)}END\n")
        program.chmod(0o755)
        at = tmp_path / f"agent-{number}"
        at.mkdir()
        done = subprocess.run(["sh", "-ec", script], cwd=at, env=environment | variables, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"value: {10 + number}" in git("show", "cluster-facts/dub:scores.yaml", at=remote)


def test_a_body_is_smaller_than_what_the_server_reads() -> None:
    assert MAX_SCORE_BYTES < MAX_BODY_BYTES
