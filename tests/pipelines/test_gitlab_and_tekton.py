"""The scripts of the GitLab jobs and the Tekton tasks with a real remote."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.forge.fake_forge import OURS, FakeForge
from tests.metrics.conftest import Server, vector
from tests.scenarios.conftest import cluster

from .conftest import SCORES, TOKEN, Hub, git
from .runner import ROOT

QUERY = "prometheus: {{url: '{url}', query: up, tokenFrom: {{file: '{token}'}}}}"
OPERATOR = """\
apiVersion: gitsched.io/v1alpha1
kind: OperatorConfig
spec: {{allow: {{tokens: [{{file: '{token}', hosts: [127.0.0.1]}}]}}}}
"""
LOST = {"clusters/first.yaml": cluster("first", "power:NoExecute")}
JOBS = yaml.safe_load((ROOT / "ci" / "gitlab.yml").read_text())
TASKS = {task["metadata"]["name"]: task["spec"] for task in yaml.safe_load_all((ROOT / "ci" / "tekton.yaml").read_text())}


def run(script: str, at: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-e", "-c", script], cwd=at, env={**os.environ, **environment}, capture_output=True, text=True)


def run_job(name: str, at: Path, environment: Mapping[str, str], **variables: str) -> subprocess.CompletedProcess[str]:
    (script,) = JOBS[name]["script"]
    return run(script, at, {**environment, "GITSCHED_FAIL_ON": JOBS["variables"]["GITSCHED_FAIL_ON"], **variables})


def outputs(at: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in (at / "gitsched.env").read_text().splitlines())


def merge_request(hub: Hub, head: str, talk: FakeForge, *, fork: bool = False) -> dict[str, str]:
    return {
        "CI_PROJECT_ID": "9" if fork else "1",
        "CI_MERGE_REQUEST_PROJECT_ID": "1",
        "CI_MERGE_REQUEST_PROJECT_URL": f"file://{str(hub.bare).removesuffix('.git')}",
        "CI_MERGE_REQUEST_PROJECT_PATH": "acme/fleet",
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
        "CI_MERGE_REQUEST_IID": "5",
        "CI_COMMIT_SHA": head,
        "CI_API_V4_URL": talk.url,
    }


def test_gitlab_plans_a_merge_request_and_comments(hub: Hub, talk: FakeForge, environment: dict[str, str]) -> None:
    talk.account = OURS
    head, before = hub.request(LOST), hub.placements
    at = hub.clone("refs/heads/topic", depth=None)
    done = run_job("gitsched:plan", at, environment, **merge_request(hub, head, talk), GITSCHED_FORGE_TOKEN=TOKEN)
    assert done.returncode == 0, done.stderr
    (comment,) = talk.texts
    assert "1 of 1 workload moves" in comment
    assert (at / "gitsched-plan.md").read_text() == comment
    assert (outputs(at)["changed"], outputs(at)["moves"]) == ("true", "1")
    assert "<testsuite" in (at / "gitsched.xml").read_text()
    assert hub.placements == before


def test_gitlab_shows_the_resilience_on_request(hub: Hub, talk: FakeForge, environment: dict[str, str]) -> None:
    head = hub.request(LOST)
    at = hub.clone("refs/heads/topic", depth=None)
    done = run_job("gitsched:plan", at, environment, **merge_request(hub, head, talk), GITSCHED_RESILIENCE="clusters")
    assert done.returncode == 0, done.stderr
    assert "If any one cluster is lost" in (at / "gitsched-plan.md").read_text()


def test_gitlab_plans_a_merge_request_of_a_fork_against_the_branches_of_the_project(
    hub: Hub, talk: FakeForge, environment: dict[str, str], tmp_path: Path
) -> None:
    head = hub.request(LOST)
    fork = tmp_path / "mallory.git"
    git("clone", "-q", "--bare", str(hub.bare), str(fork), at=tmp_path)
    git("update-ref", "-d", "refs/heads/placements", at=fork)
    git("update-ref", "-d", "refs/heads/main", at=fork)
    at = hub.clone("refs/heads/topic", depth=None)
    git("remote", "set-url", "origin", f"file://{fork}", at=at)
    done = run_job("gitsched:plan", at, environment, **merge_request(hub, head, talk, fork=True))
    assert done.returncode == 0, done.stderr
    assert "1 of 1 workload moves" in (at / "gitsched-plan.md").read_text()
    assert talk.asked == []


def test_gitlab_fails_a_request_with_mistakes_after_the_comment(hub: Hub, talk: FakeForge, environment: dict[str, str]) -> None:
    talk.account = OURS
    head = hub.request({"clusters/first.yaml": cluster("first").replace("Push", "Pul")})
    at = hub.clone("refs/heads/topic", depth=None)
    done = run_job("gitsched:plan", at, environment, **merge_request(hub, head, talk), GITSCHED_FORGE_TOKEN=TOKEN)
    assert (done.returncode, len(talk.texts)) == (1, 1)


FORGED = "<!-- gitsched:plan id=default -->\nNo changes, says a stranger.\n"
BROKEN = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {source: {paths: [nowhere]}}\n"


@pytest.mark.parametrize("kind", ["file", "link", "directory"])
def test_a_merge_request_cannot_provide_its_own_plan(
    hub: Hub, talk: FakeForge, environment: dict[str, str], tmp_path: Path, kind: str
) -> None:
    """A committed file can have the name of the artifact, and a failed plan writes no artifact."""
    talk.account = OURS
    outside = tmp_path / "outside"
    outside.write_text("untouched")
    names = ("gitsched-plan.md", "gitsched.xml", "gitsched.env")
    files = {"gitsched.yaml": BROKEN}
    for name in names:
        if kind == "link":
            (hub.work / name).symlink_to(outside)
        else:
            files[name + ("/x" if kind == "directory" else "")] = FORGED
    head = hub.request(files)
    at = hub.clone("refs/heads/topic", depth=None)
    git("fetch", "-q", "origin", "main:refs/remotes/origin/main", at=at)
    done = run_job("gitsched:plan", at, environment, **merge_request(hub, head, talk), GITSCHED_FORGE_TOKEN=TOKEN)
    assert (done.returncode, talk.asked) == (1, []), done.stderr
    assert [name for name in names if (at / name).exists()] == []
    git("checkout", "-q", "-f", head, at=at)
    (tmp_path / "token").mkdir()
    (tmp_path / "token" / "token").write_text(TOKEN)
    asked = {"base": "origin/main", "head": head, "forge": "github", "request": "5", "forge_api": talk.url}
    places = {"source": str(at), "forge-token": str(tmp_path / "token")}
    done = run_task("gitsched-plan", tmp_path, environment, tmp_path / "results", places, **asked, forge_project="acme/fleet")
    assert (done.returncode, talk.asked) == (1, []), done.stderr
    assert not (at / "gitsched-plan.md").exists()
    assert outside.read_text() == "untouched"


@pytest.mark.parametrize("name", [job for job, entry in JOBS.items() if "script" in entry])
def test_gitlab_keeps_no_cache_in_the_checkout(name: str) -> None:
    """A cache in the checkout could have been committed."""
    settings = {**JOBS["variables"], **JOBS[".gitsched"].get("variables", {}), **JOBS[name].get("variables", {})}
    assert "CACHE" not in " ".join(settings)
    assert "CACHE" not in "".join(JOBS[name]["script"])


def test_a_branch_name_is_not_an_option(hub: Hub, environment: dict[str, str], tmp_path: Path) -> None:
    at = hub.clone(depth=None)
    html = tmp_path / "written"
    done = run_task(
        "gitsched-plan", tmp_path, environment, tmp_path / "results", {"source": str(at)}, base="HEAD", head=f"--report=html={html}"
    )
    assert (done.returncode, html.exists()) == (1, False)
    assert "has no branch, tag or commit '--report" in done.stderr


def test_gitlab_reconciles_the_default_branch(hub: Hub, environment: dict[str, str]) -> None:
    commit = hub.commit(LOST)
    hub.push("main")
    at = hub.clone(depth=None)
    variables = {
        "CI_SERVER_URL": "https://gitlab.example.com",
        "CI_PROJECT_URL": f"file://{str(hub.bare).removesuffix('.git')}",
        "CI_COMMIT_BRANCH": "main",
        "CI_COMMIT_SHA": commit,
        "GITSCHED_PUSH_TOKEN": TOKEN,
    }
    for changed in ("true", "false"):
        done = run_job("gitsched:reconcile", at, environment, **variables)
        assert done.returncode == 0, done.stderr
        assert (outputs(at)["changed"], outputs(at)["sha"]) == (changed, hub.placements)
    assert "second" in hub.where()
    older = variables | {"CI_COMMIT_SHA": git("rev-parse", f"{commit}^", at=at)}
    before = hub.placements
    assert run_job("gitsched:reconcile", at, environment, **older).returncode == 1
    assert hub.placements == before
    assert run_job("gitsched:reconcile", at, environment, **older, GITSCHED_ALLOW_OLDER="true").returncode == 0
    assert hub.placements != before


def test_the_gitlab_token_is_passed_to_git_and_not_written(hub: Hub, environment: dict[str, str]) -> None:
    at = hub.clone(depth=None)
    variables = {
        "CI_SERVER_URL": "https://gitlab.example.com",
        "CI_PROJECT_URL": f"file://{str(hub.bare).removesuffix('.git')}",
        "CI_COMMIT_BRANCH": "main",
        "CI_COMMIT_SHA": git("rev-parse", "HEAD", at=at),
        "GITSCHED_PUSH_TOKEN": TOKEN,
    }
    run_job("gitsched:reconcile", at, environment, **variables)
    asked = "printf 'protocol=https\\nhost=gitlab.example.com\\n\\n' | git credential fill"
    answer = run(asked, at, {**environment, "GITSCHED_PUSH_TOKEN": TOKEN}).stdout
    assert f"username=gitsched\npassword={TOKEN}\n" in answer
    other = run(asked.replace("gitlab.", "other."), at, {**environment, "GITSCHED_PUSH_TOKEN": TOKEN, "GIT_TERMINAL_PROMPT": "0"})
    assert TOKEN not in other.stdout, "another host, such as that of a submodule, gets no token"
    assert [path for path in at.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()] == []


def run_task(name: str, at: Path, environment: Mapping[str, str], results: Path, places: Mapping[str, str], **params: str) -> Any:
    """Run one step as Tekton's entrypoint does: variables replaced in the environment, the script as a file."""
    spec = TASKS[name]
    known = {param["name"]: params.get(param["name"].replace("-", "_"), param.get("default")) for param in spec["params"]}
    results.mkdir(exist_ok=True)

    def fill(text: str) -> str:
        def replace(match: re.Match[str]) -> str:
            group, name = match[1], match[2]
            if group == "params":
                assert known[name] is not None, f"no value for {name}"
                return str(known[name])
            return str(results / name) if group == "results" else places.get(name, "")

        return re.sub(r"\$\((params|results|workspaces)\.([\w-]+)(?:\.path)?\)", replace, text)

    (step,) = spec["steps"]
    given = {entry["name"]: fill(entry["value"]) for entry in step["env"]}
    script = results / "script"
    script.write_text(step["script"])
    script.chmod(0o755)
    place = Path(fill(step["workingDir"])) if "workingDir" in step else at
    known_to_all = {name: value for name, value in os.environ.items() if name != "GIT_CONFIG_GLOBAL"}  # its HOME is its own
    return subprocess.run([script], cwd=place, env={**known_to_all, **environment, **given}, capture_output=True, text=True)


@pytest.mark.parametrize("branch", ["", "main"])
def test_tekton_reconciles_without_a_checkout(hub: Hub, environment: dict[str, str], tmp_path: Path, branch: str) -> None:
    hub.commit(LOST)
    hub.push("main")
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / ".gitconfig").write_text("[user]\n\tname = Tekton\n")
    places = {"credentials": str(secret)}
    for changed in ("true", "false"):
        done = run_task(
            "gitsched-reconcile", tmp_path, environment, tmp_path / "results", places, url=f"file://{hub.bare}", branch=branch
        )
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "results" / "changed").read_text() == changed
        assert (tmp_path / "results" / "sha").read_text() == hub.placements
    assert "second" in hub.where()
    git("push", "-q", "--force", "origin", "HEAD^:refs/heads/main", at=hub.work)
    before = hub.placements
    for allowed, code in (("false", 1), ("true", 0)):
        done = run_task(
            "gitsched-reconcile", tmp_path, environment, tmp_path / "results", places, url=f"file://{hub.bare}", allow_older=allowed
        )
        assert done.returncode == code, done.stderr
        assert (hub.placements == before) == (code == 1)


def test_tekton_plans_and_comments_only_with_a_token(
    hub: Hub, talk: FakeForge, environment: dict[str, str], tmp_path: Path
) -> None:
    head = hub.request(LOST)
    at = hub.clone("refs/heads/topic", depth=None)
    git("fetch", "-q", "origin", "main:refs/remotes/origin/main", at=at)
    places, asked = (
        {"source": str(at)},
        {"base": "origin/main", "head": head, "forge": "github", "request": "5", "forge_api": talk.url},
    )
    done = run_task("gitsched-plan", tmp_path, environment, tmp_path / "results", places, **asked)
    assert (done.returncode, talk.asked) == (0, []), done.stderr
    assert (tmp_path / "results" / "moves").read_text() == "1"
    assert "If any one cluster is lost" not in (at / "gitsched-plan.md").read_text()
    done = run_task("gitsched-plan", tmp_path, environment, tmp_path / "results", places, **asked, resilience="clusters")
    assert (done.returncode, talk.asked) == (0, []), done.stderr
    assert "If any one cluster is lost" in (at / "gitsched-plan.md").read_text()
    (tmp_path / "token").mkdir()
    (tmp_path / "token" / "token").write_text(TOKEN)
    places["forge-token"] = str(tmp_path / "token")
    done = run_task("gitsched-plan", tmp_path, environment, tmp_path / "results", places, **asked, forge_project="acme/fleet")
    assert done.returncode == 0, done.stderr
    assert "1 of 1 workload moves" in talk.texts[0]


def test_gitlab_proposes_the_removal_of_expired_requests(hub: Hub, environment: dict[str, str], tmp_path: Path) -> None:
    git("config", "receive.advertisePushOptions", "true", at=hub.bare)
    hook = hub.bare / "hooks" / "post-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f'#!/bin/sh\nenv | grep ^GIT_PUSH_OPTION >> "{tmp_path}/options"\n')
    hook.chmod(0o755)
    hub.expire()
    for _ in range(2):
        at = hub.clone(depth=None)
        variables = {
            "CI_SERVER_URL": "https://gitlab.example.com",
            "CI_PROJECT_URL": f"file://{str(hub.bare).removesuffix('.git')}",
            "CI_COMMIT_BRANCH": "main",
            "CI_COMMIT_SHA": git("rev-parse", "HEAD", at=at),
        }
        done = run_job("gitsched:tidy", at, environment, **variables)
        assert done.returncode == 0, done.stderr
    assert git("diff", "--name-status", "main", "gitsched/tidy", at=hub.bare) == "D\trebalance/old.yaml"
    options = (tmp_path / "options").read_text().splitlines()
    assert options.count("GIT_PUSH_OPTION_0=merge_request.create") == 1, "an unchanged proposal is not pushed again"
    assert "GIT_PUSH_OPTION_1=merge_request.target=main" in options


def test_gitlab_commits_scores_to_the_facts_branch(hub: Hub, environment: dict[str, str]) -> None:
    hub.add_scores()
    at = hub.clone(depth=None)
    variables = {
        "CI_SERVER_URL": "https://gitlab.example.com",
        "CI_PROJECT_URL": f"file://{str(hub.bare).removesuffix('.git')}",
        "CI_COMMIT_BRANCH": "main",
        "CI_COMMIT_SHA": git("rev-parse", "HEAD", at=at),
        "GITSCHED_PUSH_TOKEN": TOKEN,
    }
    for expected in ("Committed", "Nothing to commit"):
        done = run_job("gitsched:scores", at, environment, **variables)
        assert (done.returncode, expected in done.stdout) == (0, True), done.stdout + done.stderr
    assert "namespace: first" in git("show", "facts:scores/default.yaml", at=hub.bare)


def test_tekton_commits_scores_to_the_facts_branch(hub: Hub, environment: dict[str, str], tmp_path: Path) -> None:
    hub.add_scores()
    done = run_task("gitsched-scores", tmp_path, environment, tmp_path / "results", {}, url=f"file://{hub.bare}")
    assert done.returncode == 0, done.stderr
    assert "namespace: first" in git("show", "facts:scores/default.yaml", at=hub.bare)


def test_tekton_contacts_only_what_its_operator_allows(hub: Hub, environment: dict[str, str], tmp_path: Path) -> None:
    """The host by a parameter, the token by the settings in the workspace."""
    server = Server()
    server.handle = lambda _: vector("up", "7")
    hub.add_scores()
    hub.commit(
        {"scores.yaml": SCORES.replace("static: {first: 9}", QUERY.format(url=server.url, token=tmp_path / "operator" / "token"))}
    )
    hub.push("main")
    secret = tmp_path / "operator"
    secret.mkdir()
    (secret / "token").write_text(TOKEN)
    (secret / "operator.yaml").write_text(OPERATOR.format(token=secret / "token"))
    given: dict[str, str] = {"url": f"file://{hub.bare}"}
    run_task("gitsched-scores", tmp_path, environment, tmp_path / "results", {}, **given)
    assert server.seen == []
    run_task(
        "gitsched-scores",
        tmp_path,
        environment,
        tmp_path / "results",
        {"operator": str(secret)},
        **given,
        metrics_hosts="127.0.0.1",
    )
    server.close()
    assert {request.headers.get("Authorization") for request in server.seen} == {f"Bearer {TOKEN}"}
