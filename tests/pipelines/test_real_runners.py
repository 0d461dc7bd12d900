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

from .conftest import TOKEN, Hub
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
_INCLUDE = "include: [{local: gitsched.yml}]\n"
_TOOLS = Path(os.environ.get("GITSCHED_RUNNERS", ROOT / ".venv" / "node_modules" / ".bin")).resolve()


def run_act(hub: Hub, workflow: str, ref: str, event: str, payload: dict[str, Any], api: str = "http://127.0.0.1:9") -> str:
    """Run the first workflow of this name in docs/ci.md for an event, and return the log."""
    base, job = hub.base / "act", hub.base / "act" / "job"
    text = next(text for title, text in BLOCKS if title == workflow)
    actions = {"gitsched": ROOT, "checkout": base / "checkout", "other": base / "other"}
    written = {"checkout": _CHECKOUT, **dict.fromkeys(("other", "other/upload-sarif", "other/restore", "other/save"), _STAND_IN)}
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
