"""Files for CI systems are valid, and linters accept their scripts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import check_jsonschema  # type: ignore[import-untyped]
import jsonschema
import pytest
import yaml
from click.testing import CliRunner

from tests.tables import each_row

from .runner import ROOT, evaluate

PAGE = (ROOT / "docs" / "ci.md").read_text()
BLOCKS = re.findall(r'^```yaml(?: title="([^"]+)")?\n(.*?)^```', PAGE, re.MULTILINE | re.DOTALL)
WORKFLOWS = {title: text for title, text in BLOCKS if title.startswith(".github/workflows/")}
GITLAB = {"ci/gitlab.yml": (ROOT / "ci" / "gitlab.yml").read_text()} | {
    title: text for title, text in BLOCKS if title == ".gitlab-ci.yml"
}
SEARCHED = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
"""The environment with the programs of this Python first."""
TASKS = list(yaml.safe_load_all((ROOT / "ci" / "tekton.yaml").read_text()))


def scripts() -> dict[str, tuple[str, str]]:
    """Yield every script with its shell."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    found = {f"action: {step['name']}": ("bash", step["run"]) for step in action["runs"]["steps"] if "run" in step}
    for title, text in WORKFLOWS.items():
        for job in yaml.safe_load(text)["jobs"].values():
            runs = [step for step in job["steps"] if "run" in step]
            found |= {f"{title}: {number}": ("bash", step["run"]) for number, step in enumerate(runs)}
    jobs = yaml.safe_load(GITLAB["ci/gitlab.yml"])
    found |= {name: ("sh", "\n".join(job["script"])) for name, job in jobs.items() if "script" in job}
    for task in TASKS:
        found |= {f"task {step['name']}": ("sh", step["script"]) for step in task["spec"]["steps"]}
    return found


def test_hadolint_accepts_the_dockerfile() -> None:
    done = subprocess.run(["hadolint", "Dockerfile"], cwd=ROOT, env=SEARCHED, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def check(schema: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / "checked.yml"
    file.write_text(text)
    done = CliRunner().invoke(check_jsonschema.main, ["--builtin-schema", schema, str(file)])
    assert done.exit_code == 0, done.output


def test_the_action_is_valid(tmp_path: Path) -> None:
    check("vendor.github-actions", (ROOT / "action.yml").read_text(), tmp_path)


def test_every_input_and_output_of_the_action_is_documented() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    section = PAGE.partition("### Inputs and outputs\n")[2].partition("\n### ")[0]
    table, _, outputs = section.partition("\nOutputs: ")
    inputs = {name for cell in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE) for name in re.findall("`([^`]+)`", cell)}
    assert inputs == action["inputs"].keys()
    assert set(re.findall("`([^`]+)`", outputs)) == action["outputs"].keys()


@pytest.mark.parametrize("title", WORKFLOWS)
def test_documented_workflows_are_valid(title: str, tmp_path: Path) -> None:
    check("vendor.github-workflows", WORKFLOWS[title], tmp_path)


@pytest.mark.parametrize("title", GITLAB)
def test_the_gitlab_template_is_valid(title: str, tmp_path: Path) -> None:
    check("vendor.gitlab-ci", GITLAB[title], tmp_path)


def test_the_linters_reject_invalid_files(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        check("vendor.github-actions", "runs: {using: composite}\n", tmp_path)


def strict(*required: str, **members: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": list(required), "properties": members}


def several(entry: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "minItems": 1, "items": entry}


TEXT = {"type": "string", "minLength": 1}
NAME = {"type": "string", "pattern": "^[a-z][a-z0-9-]*$"}
# The fields that are used, as Tekton's reference for tekton.dev/v1 describes them.
TASK = strict(
    "apiVersion",
    "kind",
    "metadata",
    "spec",
    apiVersion={"const": "tekton.dev/v1"},
    kind={"const": "Task"},
    metadata=strict("name", name=NAME, labels={"type": "object"}, annotations={"type": "object"}),
    spec=strict(
        "steps",
        description=TEXT,
        params=several(strict("name", "description", name=NAME, description=TEXT, default={"type": "string"})),
        workspaces=several(
            strict(
                "name",
                "description",
                name=NAME,
                description=TEXT,
                optional={"type": "boolean"},
                readOnly={"type": "boolean"},
                mountPath={"type": "string", "pattern": "^/"},
            )
        ),
        results=several(strict("name", "description", name=NAME, description=TEXT)),
        steps=several(
            strict(
                "name",
                "image",
                "script",
                name=NAME,
                image=TEXT,
                workingDir=TEXT,
                script={"type": "string", "pattern": "^#!/bin/sh\nset -eu\n"},
                env=several(strict("name", "value", name={"type": "string", "pattern": "^[A-Z_]+$"}, value=TEXT)),
            )
        ),
    ),
)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task["metadata"]["name"])
def test_the_tekton_tasks_are_valid(task: dict[str, Any]) -> None:
    jsonschema.validate(task, TASK)
    spec = task["spec"]
    text = json.dumps(spec["steps"])
    named = set(re.findall(r"\$\((params|workspaces|results)\.([\w-]+)", text))
    there = {(group, entry["name"]) for group in ("params", "workspaces", "results") for entry in spec.get(group, ())}
    assert named == there


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task["metadata"]["name"])
def test_no_parameter_is_inserted_into_a_script(task: dict[str, Any]) -> None:
    assert [step["name"] for step in task["spec"]["steps"] if "$(params." in step["script"]] == []


@each_row("name", scripts())
def test_every_script_is_valid_in_its_shell(name: str) -> None:
    shell, text = scripts()[name]
    done = subprocess.run([shell, "-n"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.needs("shellcheck")
@pytest.mark.parametrize("name", scripts())
def test_shellcheck_reports_nothing(name: str) -> None:
    shell, text = scripts()[name]
    done = subprocess.run(["shellcheck", f"--shell={shell}", "-"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("title", WORKFLOWS)
def test_no_privileged_workflow_runs_untrusted_code(title: str) -> None:
    workflow = yaml.safe_load(WORKFLOWS[title])
    events = workflow[True]  # `on` is a boolean in YAML 1.1
    assert "pull_request_target" not in events
    rights = workflow["permissions"].values()
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            assert "${{" not in step.get("run", "")
            if "workflow_run" in events and step.get("uses", "").startswith("actions/checkout@"):
                assert "ref" not in step.get("with", {}), "the trusted workflow checks out its own branch"
    if "pull_request" in events and "write" in rights:
        assert "contents" not in workflow["permissions"] or workflow["permissions"]["contents"] == "read"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("github.event_name == 'push'", True),
        ("inputs.missing || 'default'", "default"),
        ("!(github.event_name == 'push') && true", False),
        ("github.event.pull_request.number", ""),
    ],
)
def test_expressions_are_evaluated_as_by_github(text: str, value: object) -> None:
    assert evaluate(text, {"github": {"event_name": "push"}, "inputs": {}}) == value
