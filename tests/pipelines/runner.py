"""Run a composite action as GitHub's runner does: expressions, conditions, the environment, output files."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[2]
_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_WORD = re.compile(r"'[^']*'|[A-Za-z_][\w.-]*|\|\||&&|!=|==|!|\(|\)")


class Done(NamedTuple):
    """`ran` are the names of the executed steps, `used` the called actions with their inputs."""

    code: int
    outputs: dict[str, str]
    ran: list[str]
    used: list[tuple[str, dict[str, str]]]
    log: str
    summary: str


def evaluate(text: str, context: Mapping[str, Any]) -> Any:
    """Evaluate an expression of GitHub Actions: names, texts, comparisons, not, and, or. A missing value is ""."""
    words = []
    for word in _WORD.findall(text):
        if word[0] == "'" or word in ("==", "!=", "(", ")"):
            words.append(word)
        elif word in ("||", "&&", "!"):
            words.append({"||": "or", "&&": "and", "!": "not"}[word])
        elif word in ("true", "false"):
            words.append(word.capitalize())
        else:
            words.append(repr(_look_up(word, context)))
    assert re.sub(r"\s", "", _WORD.sub("", text)) == "", f"not understood: {text}"
    return eval(" ".join(words), {"__builtins__": {}})


def _look_up(path: str, context: Any) -> Any:
    for name in path.split("."):
        context = context.get(name, "") if isinstance(context, Mapping) else ""
    return "" if context is None else context


def fill(text: Any, context: Mapping[str, Any]) -> str:
    """Replace the expressions in a value, formatted as by GitHub."""

    def show(match: re.Match[str]) -> str:
        value = evaluate(match[1], context)
        return str(value).lower() if isinstance(value, bool) else str(value)

    return _EXPRESSION.sub(show, str(text))


def run_action(
    at: Path, temp: Path, github: Mapping[str, Any], environment: Mapping[str, str], prepare: Callable[[Path], None], **inputs: str
) -> Done:
    """Run action.yml in a workspace. `prepare` gets the directory for temporary files before the first step."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    temp.mkdir(exist_ok=True)
    prepare(temp)
    # What only its default can know comes from the event.
    github = {"action_path": str(ROOT), "token": "", "api_url": "", "repository": "acme/fleet", **github}
    context: dict[str, Any] = {"github": github, "runner": {"temp": str(temp), "os": "Linux"}, "steps": {}}
    unknown = inputs.keys() - {name.replace("-", "_") for name in action["inputs"]}
    assert not unknown, unknown
    context["inputs"] = {
        name: inputs.get(name.replace("-", "_"), fill(entry.get("default", ""), context))
        for name, entry in action["inputs"].items()
    }
    done = Done(0, {}, [], [], "", "")
    for number, step in enumerate(action["runs"]["steps"]):
        condition = str(step.get("if", "true"))
        if done.code or not evaluate(_EXPRESSION.sub(r"\1", condition), context):
            continue
        done.ran.append(step["name"])
        if "uses" in step:
            done.used.append((step["uses"], {name: fill(value, context) for name, value in step.get("with", {}).items()}))
            continue
        done = _run(step, done, context, at, temp / str(number), environment)
    outputs = {name: fill(entry["value"], context) for name, entry in action["outputs"].items()}
    return done._replace(outputs=outputs)


def _run(step: dict[str, Any], done: Done, context: dict[str, Any], at: Path, place: Path, environment: Mapping[str, str]) -> Done:
    place.mkdir()
    output, summary = place / "output", place / "summary"
    output.touch()
    summary.touch()
    given = {name: fill(value, context) for name, value in step.get("env", {}).items()}
    script = place / "script.sh"
    script.write_text(step["run"])
    assert step["shell"] == "bash"
    ended = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],  # as the runner starts it
        cwd=at / fill(step.get("working-directory", "."), context),
        env={**os.environ, **environment, **given, "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)},
        capture_output=True,
        text=True,
    )
    if "id" in step:
        lines = [line.partition("=") for line in output.read_text().splitlines()]
        context["steps"][step["id"]] = {"outputs": {name: value for name, _, value in lines}}
    log = f"{done.log}{ended.stdout}{ended.stderr}"
    return done._replace(code=ended.returncode, log=log, summary=done.summary + summary.read_text())
