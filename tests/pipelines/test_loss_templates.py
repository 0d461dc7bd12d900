"""The templates that simulate losses in shards are valid, and what they run gives the result of all losses."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from tests.simulate.conftest import Fleet, Simulate, fleet, make_fleet, shop, simulate

from .runner import ROOT
from .test_lint import SEARCHED, check

__all__ = ["fleet", "make_fleet", "shop", "simulate"]

GITHUB = (ROOT / "ci" / "losses-github.yml").read_text()
GITLAB = (ROOT / "ci" / "losses-gitlab.yml").read_text()
JOB = list(yaml.safe_load_all((ROOT / "deploy" / "losses" / "job.yaml").read_text()))
WORKFLOW = yaml.safe_load((ROOT / "deploy" / "losses" / "workflow.yaml").read_text())


def list_scripts() -> dict[str, tuple[str, str, list[dict[str, str]]]]:
    """Return the scripts of one shard and of all, and the variables of each shard."""
    jobs, shards = yaml.safe_load(GITHUB)["jobs"], yaml.safe_load(GITHUB)["jobs"]["simulate"]["strategy"]["matrix"]["shard"]
    runs = [next(step["run"] for step in jobs[name]["steps"] if "run" in step) for name in ("simulate", "merge")]
    gitlab, pod = yaml.safe_load(GITLAB), JOB[1]["spec"]["template"]["spec"]["containers"][0]
    number, count = gitlab["gitsched:losses"]["parallel"], JOB[1]["spec"]["completions"]
    templates = {template["name"]: template for template in WORKFLOW["spec"]["templates"]}
    ends = {entry["name"]: entry["value"] for entry in WORKFLOW["spec"]["arguments"]["parameters"]}
    return {
        "github": (
            runs[0],
            runs[1],
            [{"SHARD": str(shard), "SHARDS": yaml.safe_load(GITHUB)["env"]["SHARDS"]} for shard in shards],
        ),
        "gitlab": (
            gitlab["gitsched:losses"]["script"][0],
            "\n".join(gitlab["gitsched:losses:merge"]["script"]),
            [{"CI_NODE_INDEX": str(index), "CI_NODE_TOTAL": str(number)} for index in range(1, number + 1)],
        ),
        "job": (
            pod["args"][0],
            "gitsched simulate merge $(ls /losses/*.jsonl)",
            [{"JOB_COMPLETION_INDEX": str(index)} for index in range(count)],
        ),
        "argo": (
            templates["simulate"]["container"]["args"][0],
            templates["merge"]["container"]["args"][0],
            [{"SHARD": str(index), "SHARDS": ends["shards"]} for index in range(1, int(ends["shards"]) + 1)],
        ),
    }


def test_the_templates_are_valid(tmp_path: Path) -> None:
    check("vendor.github-workflows", GITHUB, tmp_path)
    check("vendor.gitlab-ci", GITLAB, tmp_path)
    for manifest in JOB:
        kubernetes_validate.validate(manifest, "1.33", strict=True)
    parameters = {entry["name"] for entry in WORKFLOW["spec"]["arguments"]["parameters"]}
    assert set(re.findall(r"\{\{workflow\.parameters\.(\w+)\}\}", json.dumps(WORKFLOW))) == parameters
    names = {template["name"] for template in WORKFLOW["spec"]["templates"]}
    steps = [step for steps in WORKFLOW["spec"]["templates"][0]["steps"] for step in steps]
    assert {step["template"] for step in steps} | {WORKFLOW["spec"]["entrypoint"]} == names


@pytest.mark.long
@pytest.mark.parametrize("name", ["github", "gitlab", "job", "argo"])
def test_the_scripts_give_the_result_of_all_losses(shop: Fleet, simulate: Simulate, tmp_path: Path, name: str) -> None:
    """Each shard runs in a clone of its own, as on its own machine."""
    expected = simulate("--sweep", "pairs", "--now", "2026-03-02T10:00:00Z")
    one, merge, shards = list_scripts()[name]
    shop.git("config", "uploadpack.allowFilter", "true")
    common = {
        "NOW": "2026-03-02T10:00:00Z",
        "COMMIT": "HEAD",
        "REPOSITORY": str(shop.path),
        "CI_COMMIT_TIMESTAMP": "2026-03-02T10:00:00Z",
    }
    common |= {"CI_COMMIT_SHA": shop.git("rev-parse", "HEAD"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"), "COLUMNS": "200"}
    results = tmp_path / "losses"
    results.mkdir()
    for variables in shards:
        run(one, results, shop, common | variables | {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    printed = run(merge, results, shop, common)
    if name == "github":
        assert "Losing any two of 4 clusters" in (tmp_path / "summary").read_text()
    else:
        assert printed.splitlines()[0] == expected.splitlines()[0]


def run(script: str, results: Path, shop: Fleet, variables: dict[str, str]) -> str:
    """Run a script in a clone of the repository, where /losses is a directory with the results."""
    clone = results.parent / "clone"
    if not clone.exists():
        subprocess.run(["git", "clone", "--quiet", str(shop.path), str(clone)], check=True)
    text = script.replace("/losses", str(results)).replace("$(git log -1 --format=%cI)", "2026-03-02T10:00:00Z")
    done = subprocess.run(
        ["bash", "-euc", text], cwd=clone, env={**os.environ, **SEARCHED, **variables}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
