"""The composite action with a real remote: plans of pull requests, reconciles after a push, and untrusted pull requests."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import fork_server
from tests.forge.fake_forge import FakeForge
from tests.scenarios.conftest import cluster, deployment
from tests.tables import each_row

from .conftest import TOKEN, Hub, git
from .runner import ROOT, Done, run_action

pytestmark = pytest.mark.long

LOST = {"clusters/first.yaml": cluster("first", "power:NoExecute")}
Action = Callable[..., Done]


@pytest.fixture
def action(environment: dict[str, str], tmp_path: Path) -> Action:
    def install(temp: Path) -> None:
        """Create what the first step installs with pip, because tests must not need a package index."""
        fork_server.write_script(temp / "gitsched" / "venv" / "bin" / "gitsched")

    def run(at: Path, github: dict[str, Any], **inputs: str) -> Done:
        temp = tmp_path / f"temp-{len(list(tmp_path.glob('temp-*')))}"
        return run_action(at, temp, github, environment, install, **inputs)

    return run


def pull_request(hub: Hub, head: str, talk: FakeForge | None = None, *, fork: bool = False, number: int = 5) -> dict[str, Any]:
    return {
        "event_name": "pull_request",
        "repository": "acme/fleet",
        "api_url": talk.url if talk else "http://127.0.0.1:9",
        "token": TOKEN,
        "event": {
            "pull_request": {
                "number": number,
                "head": {"sha": head, "repo": {"full_name": "mallory/fleet" if fork else "acme/fleet"}},
            }
        },
    }


def test_a_pull_request_gets_its_plan_as_a_comment_a_summary_and_outputs(hub: Hub, action: Action, talk: FakeForge) -> None:
    head, before = hub.request(LOST), hub.placements
    done = action(hub.clone("refs/pull/5/merge"), pull_request(hub, head, talk))
    assert done.code == 0, done.log
    (comment,) = talk.texts
    assert comment.startswith("<!-- gitsched:plan id=default -->\n")
    assert "1 of 1 workload moves" in comment
    assert ": `− first 2`, `+ second 2`\\\n" in comment
    assert done.summary.strip() == comment.strip()
    assert (done.outputs["changed"], done.outputs["moves"], done.outputs["sha"]) == ("true", "1", before)
    assert Path(done.outputs["plan"]).read_text() == comment
    assert hub.placements == before, "a plan writes nothing"


def test_the_plan_shows_the_resilience_on_request(hub: Hub, action: Action, talk: FakeForge) -> None:
    head = hub.request({"clusters/second.yaml": cluster("second", "closed:NoSchedule")})
    done = action(hub.clone("refs/pull/5/merge"), pull_request(hub, head, talk), resilience="clusters")
    assert done.code == 0, done.log
    (comment,) = talk.texts
    assert "losing cluster first" in comment
    assert "If any one cluster is lost" in comment


def test_the_next_push_updates_the_comment(hub: Hub, action: Action, talk: FakeForge) -> None:
    first = hub.request(LOST)
    action(hub.clone("refs/pull/5/merge"), pull_request(hub, first, talk))
    head = hub.request({"README.md": "nothing of interest\n"})
    done = action(hub.clone("refs/pull/5/merge"), pull_request(hub, head, talk))
    (comment,) = talk.texts
    assert "No changes" in comment
    assert done.outputs["changed"] == "false"


def test_a_pull_request_that_changes_nothing_gets_a_comment_only_on_request(hub: Hub, action: Action, talk: FakeForge) -> None:
    head = hub.request({"README.md": "nothing of interest\n"})
    github = pull_request(hub, head, talk)
    done = action(hub.clone("refs/pull/5/merge"), github)
    assert (done.code, talk.texts, done.outputs["unchanged"]) == (0, [], "true"), done.log
    assert "No changes" in done.summary
    action(hub.clone("refs/pull/5/merge"), github, comment_unchanged="true")
    (comment,) = talk.texts
    assert "No changes" in comment


def test_later_commits_of_main_are_not_part_of_the_plan(hub: Hub, action: Action, talk: FakeForge) -> None:
    head = hub.request({"apps/api.yaml": deployment("api", 3)})
    hub.commit({"apps/web.yaml": deployment("web", 7)})
    hub.push("main")
    git("checkout", "-q", "--detach", "main", at=hub.work)
    git("merge", "-q", "--no-ff", "-m", "Merge", head, at=hub.work)
    git("push", "-q", "-f", "origin", "HEAD:refs/pull/5/merge", at=hub.work)
    action(hub.clone("refs/pull/5/merge"), pull_request(hub, head, talk))
    (comment,) = talk.texts
    assert "Deployment default/api" in comment
    assert "`Deployment default/web`: " not in comment


def test_a_pull_request_from_a_fork_is_planned_and_not_commented(hub: Hub, action: Action, talk: FakeForge) -> None:
    """The token is read-only, so the plan is only in the summary and the forge gets no request."""
    head = hub.request(LOST)
    done = action(hub.clone("refs/pull/5/merge"), pull_request(hub, head, talk, fork=True))
    assert done.code == 0, done.log
    assert "Comment" not in done.ran
    assert talk.asked == []
    assert "1 of 1 workload moves" in done.summary


def test_a_trusted_workflow_comments_a_pull_request_from_a_fork_without_checking_it_out(
    hub: Hub, action: Action, talk: FakeForge
) -> None:
    head = hub.request(LOST | {"gitsched.py": "raise SystemExit('executed')\n"})
    at = hub.clone()
    github = {
        "event_name": "workflow_run",
        "api_url": talk.url,
        "token": TOKEN,
        "event": {"workflow_run": {"head_sha": head}},
    }
    done = action(at, github, request="5")
    assert done.code == 0, done.log
    assert len(talk.texts) == 1
    assert git("status", "--porcelain", at=at) == ""
    assert not (at / "gitsched.py").exists()


def test_settings_of_an_untrusted_branch_send_no_query(hub: Hub, action: Action, talk: FakeForge, tmp_path: Path) -> None:
    """The target branch of the pull request sets the output branch."""
    elsewhere = tmp_path / "elsewhere.git"
    git("init", "-q", "--bare", str(elsewhere), at=tmp_path)
    settings = f"spec: {{output: {{repository: 'file://{elsewhere}', branch: theirs}}}}\n"
    config = f"apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {{name: gitsched}}\n{settings}"
    head = hub.request({"gitsched.yaml": config, **LOST})
    done = action(hub.clone("refs/pull/5/merge"), pull_request(hub, head, talk))
    assert (done.code, done.outputs["sha"], done.outputs["moves"]) == (0, hub.placements, "1"), done.log
    assert [path for path in (tmp_path / "cache").rglob("*") if "elsewhere" in path.name] == []
    assert str(elsewhere) not in "".join(path.read_text() for path in (tmp_path / "cache").rglob("config"))


def test_an_untrusted_pull_request_number_is_verified(hub: Hub, action: Action, talk: FakeForge) -> None:
    """The number comes from an artifact of the fork's run, its commit from GitHub."""
    hub.request({"apps/api.yaml": deployment("api", 3)}, number=4)
    head = hub.request(LOST, number=5)
    github = {
        "event_name": "workflow_run",
        "api_url": talk.url,
        "token": TOKEN,
        "event": {"workflow_run": {"head_sha": head}},
    }
    done = action(hub.clone(), github, request="4")
    assert (done.code, talk.asked) == (0, [])
    assert "moved on" in done.log
    done = action(hub.clone(), github, request="5; touch pwned")
    assert (done.code, talk.asked) == (1, [])


def test_mistakes_are_annotated_commented_and_fail_the_job_at_the_end(hub: Hub, action: Action, talk: FakeForge) -> None:
    head = hub.request({"clusters/first.yaml": cluster("first").replace("Push", "Pul")})
    done = action(hub.clone("refs/pull/5/merge"), pull_request(hub, head, talk), sarif="true")
    assert done.code == 1
    assert done.ran[-3:] == ["Comment", "Upload findings", "Set the exit code"]
    assert re.search(r"^::error file=clusters/first\.yaml,line=6,col=", done.log, re.MULTILINE), done.log
    assert len(talk.texts) == 1
    ((used, given),) = done.used
    assert used.startswith("github/codeql-action/upload-sarif@")
    (run,) = json.loads(Path(given["sarif_file"]).read_text())["runs"]
    assert [result["ruleId"] for result in run["results"] if result["level"] == "error"] == ["value-not-allowed"]


def test_mistakes_may_be_allowed(hub: Hub, action: Action, talk: FakeForge) -> None:
    head = hub.request({"clusters/first.yaml": cluster("first").replace("Push", "Pul")})
    done = action(hub.clone("refs/pull/5/merge"), pull_request(hub, head, talk), fail_on="none", annotations="false")
    assert done.code == 0
    assert "::error" not in done.log


def test_names_in_a_hostile_pull_request_are_not_executed(hub: Hub, action: Action, talk: FakeForge, tmp_path: Path) -> None:
    name = "$(touch pwned)`touch pwned`'\"; touch pwned #"
    head = hub.request({f"apps/{name}.yaml": deployment("x").replace("replicas: 2", "replicas: nope"), **LOST})
    at = hub.clone("refs/pull/5/merge")
    done = action(at, pull_request(hub, head, talk), fail_on="none", directory=".", comment_id="a-b")
    assert done.code == 0, done.log
    assert list(tmp_path.rglob("pwned")) == []


VENV_WITH_PIP_OF_THE_TESTS = """\
#!/bin/sh
case "$*" in
"-I -m venv "*)
  "{python}" "$@" --without-pip
  for directory in "$4"/lib/*/site-packages; do echo "{packages}" > "$directory/pip.pth"; done ;;
*) exec "{python}" "$@" ;;
esac
"""
"""A Python whose virtual environments have the pip of the tests, since installing one takes seconds."""


def test_installation_runs_no_code_of_the_pull_request(hub: Hub, environment: dict[str, str], tmp_path: Path) -> None:
    """Python imports modules from the working directory first, so a committed file could replace a standard module."""
    python = tmp_path / "python"
    python.write_text(VENV_WITH_PIP_OF_THE_TESTS.format(python=sys.executable, packages=sysconfig.get_path("purelib")))
    python.chmod(0o755)
    trap = f"open({str(tmp_path / 'pwned')!r}, 'w')\n"
    hub.request({f"{name}.py": trap for name in ("venv", "pip", "ensurepip", "sys", "runpy", "types")})
    at = hub.clone("refs/pull/5/merge")
    (script,) = (step["run"] for step in ACTION["runs"]["steps"] if step.get("id") == "install")
    given = {"PYTHON": str(python), "SOURCE": str(tmp_path / "nowhere"), "WORK": str(tmp_path / "temp")}
    given["GITHUB_OUTPUT"] = str(tmp_path / "output")
    done = subprocess.run(["bash", "-e", "-c", script], cwd=at, env={**os.environ, **environment, **given}, capture_output=True)
    assert b"nowhere" in done.stdout + done.stderr, "pip came to look at the source"
    assert not (tmp_path / "pwned").exists()


def test_no_manifest_gives_the_runner_a_command(hub: Hub, action: Action, talk: FakeForge) -> None:
    """The runner executes commands in the output: `::` at the start of a line, also after blanks, and `##[` anywhere."""
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\ndata:\n  text: |\n{}\n    {}\n"
    lines = "\n".join(f"    {line}" for line in ("::stop-commands::x", "##[add-mask]e", "::set-output name=plan::x"))
    policy = (hub.work / "policies" / "all.yaml").read_text().replace("apps/v1", "v1").replace("Deployment", "ConfigMap")
    hub.commit({"apps/text.yaml": text.format(lines, "old"), "policies/texts.yaml": policy.replace("name: all", "name: texts")})
    hub.push("main")
    hub.reconcile()
    hostile = {
        "apps/text.yaml": text.format(lines, "new ##[set-output name=sha]x"),
        "apps/##[error]x.yaml": deployment("x").replace("replicas: 2", 'replicas: "\\n::error::x ##vso[task.x]"'),
    }
    head = hub.request(hostile)
    done = action(hub.clone("refs/pull/5/merge"), pull_request(hub, head, talk), fail_on="none")
    assert "stop-commands" in done.log, "the difference is shown"
    obeyed = [line for line in done.log.splitlines() if "##[" in line or "##vso[" in line or line.lstrip().startswith("::")]
    assert [line for line in obeyed if not re.match(r"::(error|warning|notice) (file=|title=)", line)] == []
    assert done.outputs["sha"] == hub.placements


def test_the_summary_of_a_run_is_one_code_block(hub: Hub, action: Action) -> None:
    hub.commit({"apps/web.yaml": deployment("web", 3), "clusters/third.yaml": cluster("third").replace("Push", "'Pu ```` <b>'")})
    hub.push("main")
    done = action(hub.clone(), {"event_name": "push"}, fail_on="none")
    assert "````" in done.summary
    assert [line for line in done.summary.splitlines() if line and not line.startswith("    ")] == []


@pytest.mark.parametrize("event", ["push", "schedule", "workflow_dispatch"])
def test_a_push_and_a_schedule_reconcile_and_push_the_branch(hub: Hub, action: Action, event: str) -> None:
    hub.commit(LOST)
    hub.push("main")
    before = hub.placements
    done = action(hub.clone(), {"event_name": event})
    assert done.code == 0, done.log
    assert hub.placements != before
    assert "second" in hub.where()
    assert (done.outputs["changed"], done.outputs["sha"], done.outputs["moves"]) == ("true", hub.placements, "1")
    assert "Deployment default/web" in done.summary


def test_a_reconcile_saves_its_state_and_every_mode_restores_the_newest_one(hub: Hub, action: Action, talk: FakeForge) -> None:
    caches, head = [], hub.request(LOST)
    hub.commit({"clusters/first.yaml": cluster("first", "power:NoExecute")})
    hub.push("main")
    for request in ({"event_name": "push"}, {"event_name": "schedule"}, pull_request(hub, head, talk)):
        done = action(hub.clone(), {**request, "sha": "c0ffee"}, cache="true")
        caches.append([(name.partition("@")[0], given["key"]) for name, given in done.used if name.startswith("actions/cache/")])
        assert all(given["path"].endswith("/gitsched/plan-*.sqlite3") for name, given in done.used if "cache" in name)
        assert all(given["restore-keys"] == "gitsched-Linux-" for name, given in done.used if "restore" in name)
    restored = ("actions/cache/restore", "gitsched-Linux-c0ffee")
    saved = ("actions/cache/save", f"gitsched-Linux-c0ffee-{hub.placements}")
    assert caches == [[restored, saved], [restored], [restored]], "a plan saves nothing, nor does a run without a change"
    assert not [name for name, _ in action(hub.clone(), {"event_name": "push"}).used if "cache" in name], "only on request"


def test_a_run_without_a_changed_decision_commits_nothing_and_reports_it(hub: Hub, action: Action) -> None:
    before = hub.placements
    done = action(hub.clone(), {"event_name": "schedule"})
    assert (done.code, done.outputs["changed"], done.outputs["sha"]) == (0, "false", before)
    assert hub.placements == before


def test_a_reconcile_with_mistakes_commits_what_is_valid_and_fails(hub: Hub, action: Action) -> None:
    hub.commit({"apps/api.yaml": deployment("api"), "clusters/second.yaml": cluster("second").replace("Push", "Pul")})
    hub.push("main")
    done = action(hub.clone(), {"event_name": "push"})
    assert (done.code, done.outputs["changed"]) == (1, "true")
    assert hub.where("deployment-api") == ["first"]


def test_an_older_commit_is_reconciled_only_on_request(hub: Hub, action: Action) -> None:
    older = hub.clone()
    hub.commit(LOST)
    hub.push("main")
    assert action(hub.clone(), {"event_name": "push"}).code == 0
    before = hub.placements
    done = action(older, {"event_name": "push"})
    assert (done.code, hub.placements) == (1, before)
    assert "is older than commit" in done.log
    assert action(older, {"event_name": "workflow_dispatch"}, allow_older="true").code == 0
    assert hub.placements != before


def test_another_output_branch_is_planned_and_written(hub: Hub, action: Action, talk: FakeForge) -> None:
    done = action(hub.clone(), {"event_name": "push"}, output_branch="decided")
    assert done.outputs["sha"] == git("rev-parse", "refs/heads/decided", at=hub.bare)
    head = hub.request(LOST)
    done = action(hub.clone("refs/pull/5/merge"), pull_request(hub, head, talk), output_branch="decided")
    assert done.outputs["sha"] == git("rev-parse", "refs/heads/decided", at=hub.bare)


@pytest.mark.needs("curl")
def test_a_schedule_proposes_the_removal_of_expired_requests(hub: Hub, action: Action, talk: FakeForge) -> None:
    schedule = {"event_name": "schedule", "ref_name": "main", "token": TOKEN, "api_url": talk.url}
    nothing = action(hub.clone(), schedule, mode="tidy")
    assert (nothing.code, nothing.outputs["changed"], talk.pulls) == (0, "false", []), nothing.log
    hub.expire()
    done = action(hub.clone(), schedule, mode="tidy")
    assert (done.code, done.outputs["changed"]) == (0, "true"), done.log
    (pull,) = talk.pulls
    assert (pull["head"], pull["base"]) == ("gitsched/tidy", "main")
    assert "rebalance/old.yaml:1: WorkloadRebalancer/demo expired at " in pull["body"]
    proposed = git("rev-parse", "gitsched/tidy", at=hub.bare)
    assert git("diff", "--name-status", "main", "gitsched/tidy", at=hub.bare) == "D\trebalance/old.yaml"
    again = action(hub.clone(), schedule, mode="tidy")
    assert (again.code, len(talk.pulls)) == (0, 1), again.log
    assert git("rev-parse", "gitsched/tidy", at=hub.bare) == proposed, "an unchanged proposal is not pushed again"


def test_a_schedule_commits_scores_to_the_facts_branch(hub: Hub, action: Action) -> None:
    hub.add_scores()
    for changed in (True, False):
        before = git("for-each-ref", "refs/heads/facts", at=hub.bare)
        done = action(hub.clone(), {"event_name": "schedule"}, mode="scores")
        assert done.code == 0, done.log
        assert (git("for-each-ref", "refs/heads/facts", at=hub.bare) != before) is changed
        assert "scores/default.yaml: scores of 1 cluster" in done.summary
    done = action(hub.clone(), {"event_name": "schedule"})
    assert (done.code, "facts-missing" in done.log) == (0, False), "the reconcile reads the facts branch"


def test_an_unknown_mode_is_refused(hub: Hub, action: Action) -> None:
    done = action(hub.clone(), {"event_name": "push"}, mode="apply")
    assert (done.code, done.ran[-1]) == (1, "Select the mode")


ACTION = yaml.safe_load((ROOT / "action.yml").read_text())


@each_row("step", ACTION["runs"]["steps"])
def test_no_external_value_is_inserted_into_a_script(step: dict[str, Any]) -> None:
    assert "${{" not in step.get("run", "")


def test_every_input_step_and_output_in_an_expression_exists() -> None:
    text = (ROOT / "action.yml").read_text()
    steps = {step["id"]: step for step in ACTION["runs"]["steps"] if "id" in step}
    assert set(re.findall(r"\binputs\.([\w-]+)", text)) == ACTION["inputs"].keys()
    named = re.findall(r"\bsteps\.([\w-]+)\.outputs\.([\w-]+)", text)
    shared = {"changed", "sha", "moves", "records", "unplaced", "unchanged"}
    for step, output in named:
        assert output in shared or f"{output}=" in steps[step]["run"], (step, output)
