"""The workflows of docs/ci.md in act, and the template for GitLab in gitlab-ci-local: real runners, without containers.

`make runners` runs these tests. The action installs gitsched as it does for everyone: with pip and the hashes of requirements/.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.forge.fake_forge import OURS, FakeForge

from .conftest import TOKEN, Hub, git
from .runner import ROOT
from .test_github_action import LOST
from .test_lint import BLOCKS, SEARCHED

pytestmark = pytest.mark.runners
_STAND_IN = "name: none\ndescription: does nothing\nruns: {using: composite, steps: [{run: ':', shell: bash}]}\n"
"""In place of the actions of others, which cannot be downloaded."""
_CHECKOUT = """\
name: checkout
description: what actions/checkout does by default
runs:
  using: composite
  steps:
    - shell: bash
      run: |
        rm -rf .git .github && git init --quiet . && git remote add origin "$FORGE"
        git fetch --quiet --no-tags --depth=1 origin "$GITHUB_REF" && git checkout --quiet --detach --force FETCH_HEAD
"""
_UPLOAD = """\
name: upload
description: what actions/upload-artifact does, into a directory
inputs: {path: {required: true}, name: {required: true}, if-no-files-found: {required: false}}
runs: {using: composite, steps: [{run: 'cp "${{ inputs.path }}" "$ARTIFACTS"', shell: bash}]}
"""
_DOWNLOAD = """\
name: download
description: what actions/download-artifact does with merge-multiple, from a directory
inputs: {pattern: {required: true}, merge-multiple: {required: true}}
runs: {using: composite, steps: [{run: 'cp "$ARTIFACTS"/${{ inputs.pattern }} .', shell: bash}]}
"""
_INCLUDE = "include: [{local: gitsched.yml}]\n"
_TOOLS = Path(os.environ.get("GITSCHED_RUNNERS", ROOT / ".venv" / "node_modules" / ".bin")).resolve()


def run_act(hub: Hub, workflow: str, ref: str, event: str, payload: dict[str, Any], api: str = "http://127.0.0.1:9") -> str:
    """Run the first workflow of this name in docs/ci.md for an event, and return the log."""
    return run_workflow(hub, workflow, next(text for title, text in BLOCKS if title == workflow), ref, event, payload, api)


def run_workflow(
    hub: Hub, workflow: str, text: str, ref: str, event: str, payload: dict[str, Any], api: str = "http://127.0.0.1:9"
) -> str:
    """Run a workflow for an event, and return the log. What its jobs upload is in the directory `artifacts`."""
    base, job = hub.base / "act", hub.base / "act" / "job"
    actions = {"gitsched": ROOT, **{name: base / name for name in ("checkout", "upload-artifact", "download-artifact", "other")}}
    written = {"checkout": _CHECKOUT, **dict.fromkeys(("other", "other/upload-sarif", "other/restore", "other/save"), _STAND_IN)}
    written |= {"upload-artifact": _UPLOAD, "download-artifact": _DOWNLOAD}
    (base / "artifacts").mkdir(parents=True)
    for path, action in written.items():
        (base / path).mkdir(parents=True, exist_ok=True)
        (base / path / "action.yml").write_text(action)
    (job / workflow).parent.mkdir(parents=True)
    (job / workflow).write_text(text)
    used = set(re.findall(r"uses: (\S+)", text + (ROOT / "action.yml").read_text()))
    local = {re.sub(r"^([^/@]+/[^/@]+)[^@]*", r"\1", use): actions.get(re.split("[/@]", use)[1], base / "other") for use in used}
    (base / "event.json").write_text(json.dumps({"ref": ref, **payload}))
    options = ["--eventpath", base / "event.json", "--platform", "ubuntu-latest=-self-hosted", "--secret", f"GITHUB_TOKEN={TOKEN}"]
    options += [
        "--no-skip-checkout",
        "--env",
        f"GITHUB_API_URL={api}",
        "--env",
        f"GITHUB_REF={ref}",
        "--env",
        f"FORGE=file://{hub.bare}",
        "--env",
        f"ARTIFACTS={base / 'artifacts'}",
    ]
    options += [f"--local-repository={use}={path}" for use, path in sorted(local.items())]
    environment = {"HOME": str(base), "XDG_CACHE_HOME": str(base / "cache")}
    for command in ("init -q .", "remote add origin https://github.com/acme/fleet.git", "commit -q --allow-empty -m Start"):
        execute(["git", *command.split()], job, environment)
    return execute(["act", event, *map(str, options)], job, environment)


def execute(command: list[str], at: Path, environment: dict[str, str]) -> str:
    environment = {**os.environ, "PATH": SEARCHED["PATH"], **environment}
    done = subprocess.run(command, cwd=at, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_act_plans_a_pull_request(hub: Hub, talk: FakeForge) -> None:
    head, before = hub.request(LOST), hub.placements
    request = {"number": 5, "head": {"sha": head, "repo": {"full_name": "acme/fleet"}}, "base": {"ref": "main"}}
    payload = {"pull_request": request, "repository": {"full_name": "acme/fleet", "default_branch": "main"}}
    log = run_act(hub, ".github/workflows/plan.yml", "refs/pull/5/merge", "pull_request", payload, talk.url)
    assert len(talk.texts) == 1, log
    (comment,) = talk.texts
    assert "1 of 1 workload moves" in comment
    assert hub.placements == before, "a plan writes nothing"


def test_act_reconciles_after_a_push(hub: Hub) -> None:
    before = hub.placements
    hub.commit(LOST)
    hub.push("main")
    log = run_act(hub, ".github/workflows/place.yml", "refs/heads/main", "push", {})
    assert hub.placements != before
    assert "second" in hub.where()
    assert f"placements are at {hub.placements}" in log


def run_gitlab(job: Path, name: str, environment: dict[str, str], **variables: str) -> str:
    """Run a job of the template in a clone, and return the log."""
    program = shutil.which("gitlab-ci-local", path=os.pathsep.join((str(_TOOLS), SEARCHED["PATH"])))
    assert program, "gitlab-ci-local is not installed: make runners"
    options = [option for key, value in variables.items() for option in ("--variable", f"{key}={value}")]
    return execute([program, "--force-shell-executor", *options, name], job, environment)


def test_gitlab_ci_local_runs_the_jobs_of_the_template(hub: Hub, talk: FakeForge, environment: dict[str, str]) -> None:
    talk.account = OURS
    hub.commit({".gitlab-ci.yml": _INCLUDE, "gitsched.yml": (ROOT / "ci" / "gitlab.yml").read_text()})
    hub.push("main")
    head = hub.request(LOST)
    request = {
        "CI_PIPELINE_SOURCE": "merge_request_event",
        "CI_PROJECT_ID": "1",
        "CI_MERGE_REQUEST_PROJECT_ID": "1",
        "CI_MERGE_REQUEST_PROJECT_URL": f"file://{str(hub.bare).removesuffix('.git')}",
        "CI_MERGE_REQUEST_PROJECT_PATH": "acme/fleet",
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
        "CI_MERGE_REQUEST_IID": "5",
        "CI_COMMIT_SHA": head,
        "CI_API_V4_URL": talk.url,
        "GITSCHED_FORGE_TOKEN": TOKEN,
    }
    run_gitlab(hub.clone("refs/heads/topic", depth=None), "gitsched:plan", environment, **request)
    (comment,) = talk.texts
    assert "1 of 1 workload moves" in comment


def list_losses(hub: Hub, form: str = "text") -> str:
    """Return the result of one process."""
    now = git("log", "-1", "--format=%cI", at=hub.work)
    command = ["gitsched", "simulate", "--sweep", "pairs", "--fetch", "origin", "--now", now, "-o", form]
    return execute(command, hub.work, {"XDG_CACHE_HOME": str(hub.base / "other-cache"), "COLUMNS": "200"})


def test_act_simulates_losses_in_shards(hub: Hub) -> None:
    """The container is left out: its image is this machine."""
    text = re.sub(r"\n *container: .*", "", (ROOT / "ci" / "losses-github.yml").read_text())
    log = run_workflow(hub, ".github/workflows/losses.yml", text, "refs/heads/main", "workflow_dispatch", {})
    shards = re.findall(r"Shard (\d) of 4: \d of 1 losses simulated", log)
    assert sorted(shards) == ["1", "2", "3", "4"], log
    artifacts = hub.base / "act" / "artifacts"
    assert {path.name for path in artifacts.iterdir()} == {"losses.html", *(f"losses-{number}.jsonl" for number in range(1, 5))}
    assert (artifacts / "losses.html").read_text() == list_losses(hub, "html")


def test_gitlab_ci_local_simulates_losses_in_shards(hub: Hub, environment: dict[str, str]) -> None:
    files = {name: (ROOT / "ci" / name).read_text() for name in ("gitlab.yml", "losses-gitlab.yml")}
    include = "include: [{local: gitlab.yml}, {local: losses-gitlab.yml}]\n"
    hub.commit({".gitlab-ci.yml": include, **files})
    hub.push("main")
    schedule = {
        "CI_PIPELINE_SOURCE": "schedule",
        "GITSCHED_LOSSES": "true",
        "CI_COMMIT_SHA": git("rev-parse", "HEAD", at=hub.work),
        "CI_COMMIT_TIMESTAMP": git("log", "-1", "--format=%cI", at=hub.work),
        "COLUMNS": "200",
    }
    job = hub.clone("refs/heads/main", depth=None)
    log = run_gitlab(job, "gitsched:losses", environment, **schedule)
    assert log.count("exported artifacts") == 4, log
    merged = run_gitlab(job, "gitsched:losses:merge", environment, **schedule)
    assert list_losses(hub).splitlines()[0] in merged
