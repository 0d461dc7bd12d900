"""A hostile pull request and a hostile merge: nothing is contacted, read or written that the operator has not allowed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gitsched.cli import main
from gitsched.model.allow_list import parse_host_rule, parse_token_rule
from gitsched.model.errors import Permanent
from gitsched.reconcile import RunResult
from gitsched.reconcile.review.comparison import compare_plans
from tests.builders.krake import application_yaml, cluster_yaml, global_metric_yaml, global_provider_yaml
from tests.metrics.conftest import Server
from tests.scenarios.conftest import Fleet, cluster, deployment, execute, policy
from tests.scenarios.test_repository_locations import bare
from tests.scenarios.test_rollout_statuses import Forge, start

SECRET = "s3cr3t-of-the-operator"
NOTHING: dict[str, Any] = {"hosts": (), "status_hosts": (), "remotes": (), "tokens": ()}
"""An operator who allows nothing, as by default."""
HEAD = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec:\n"
SETTINGS = """\
  output: {repository: OUTPUT, branch: stolen, path: there, signing: {format: ssh, key: KEY}}
  source:
    kustomize: {build: [overlay], remotes: [127.0.0.1]}
  observations:
    statuses: {url: 'URL', repository: acme/fleet, tokenFrom: {env: OPERATOR_TOKEN}}
  guard: {fleet: {removed: 100}}
  delivery: {source: {url: 'https://evil.example.com/fleet'}}
"""
SCORES = """\
apiVersion: gitsched.io/v1alpha1
kind: ClusterScores
metadata: {name: default}
spec:
  scores:
  - {name: cpu, prometheus: {url: 'URL', query: up, tokenFrom: {env: OPERATOR_TOKEN}}}
"""
OVERLAY = f"resources: ['http://127.0.0.1:PORT/example/app.git?ref={'a' * 40}']\n"
LOOKING = {
    "validate": ["validate"],
    "validate a commit": ["validate", "pr"],
    "plan": ["plan", "--revision", "pr"],
    "plan live": ["plan", "--revision", "pr", "--observations", "live"],
    "plan a merge": ["plan", "main", "pr"],
    "plan a merge live": ["plan", "main", "pr", "--observations", "live"],
    "plan the worktree": ["plan", "--worktree"],
    "explain": ["explain", "application/tenant-a/echo", "--observations", "live"],
    "simulate": ["simulate", "--lose", "cluster/tenant-a.one"],
    "export": ["export", "argocd", "--url", "https://git.example.com/fleet"],
    "status": ["status"],
    "adopt": ["adopt", "--cluster", "tenant-a.one=../running.yaml", "--dry-run"],
    "collect": ["collect", "--dry-run", "--context", "one=nowhere", "--kubectl", "/bin/false", "--write-clusters", "proposed"],
    "scores": ["scores", "--dry-run"],
    "tidy": ["tidy"],
    "rebalance": ["rebalance", "application/tenant-a/echo"],
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The server of a stranger. It records every request."""
    monkeypatch.setenv("OPERATOR_TOKEN", SECRET)
    monkeypatch.setenv("FORGE_TOKEN", SECRET)
    server = Server()
    yield server
    server.close()


@pytest.fixture
def trusted(fleet: Fleet) -> Fleet:
    """A fleet that has been reconciled once, as a maintainer has merged it."""
    metrics = f"{global_metric_yaml('a')}---\n{global_provider_yaml('static', '{metrics: {a: 0.5}}')}"
    fleet.commit({"one.yaml": cluster_yaml("one", "a"), "two.yaml": cluster_yaml("two"), "metrics.yaml": metrics})
    fleet.commit({"echo.yaml": application_yaml(), "gitsched.yaml": f"{HEAD}  guard: {{fleet: {{removed: 20}}}}\n"})
    fleet.reconcile(**NOTHING)
    return fleet


def attack(fleet: Fleet, server: Server, output: str) -> None:
    """Commit what a stranger would like to be merged."""
    settings = SETTINGS.replace("URL", server.url).replace("OUTPUT", output).replace("KEY", str(fleet.path.parent / "key"))
    provider = global_provider_yaml("prometheus", f"{{url: '{server.url}', tokenFrom: {{env: OPERATOR_TOKEN}}}}")
    files = {
        "gitsched.yaml": HEAD + settings,
        "metrics.yaml": f"{global_metric_yaml('a')}---\n{provider}",
        "scores.yaml": SCORES.replace("URL", server.url),
        "overlay/kustomization.yaml": OVERLAY.replace("PORT", server.url.rpartition(":")[2]),
    }
    fleet.commit({**files}, hour=1, message="A small improvement")


@pytest.mark.parametrize("command", LOOKING)
def test_looking_at_a_hostile_pull_request_contacts_nobody(
    trusted: Fleet, server: Server, command: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    trusted.git("switch", "-q", "-c", "pr")
    attack(trusted, server, f"{server.url}/x.git")
    monkeypatch.chdir(trusted.path)
    (trusted.path.parent / "running.yaml").write_text(deployment("echo", namespace="shop"))
    refs = trusted.git("for-each-ref")
    code = main([*LOOKING[command], "--cache-dir", str(trusted.cache), "--now", "2026-03-02T10:00:00Z"])
    printed = "".join(capfd.readouterr())
    assert code in (0, 1, 4), printed
    assert server.seen == []
    assert (trusted.git("for-each-ref"), trusted.git("status", "--short")) == (refs, "")
    assert SECRET not in printed
    if command in ("explain", "simulate", "status", "export", "adopt", "plan", "plan a merge"):
        assert "output.repository is " in printed
        assert "setting-ignored" in printed


def test_the_plan_of_a_hostile_pull_request_says_what_it_does(
    trusted: Fleet, server: Server, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    trusted.git("switch", "-q", "-c", "pr")
    attack(trusted, server, f"{server.url}/x.git")
    monkeypatch.chdir(trusted.path)
    reports = [f"--report={form}={trusted.path.parent / form}" for form in ("markdown", "html")]
    main(["plan", "main", "pr", "-o", "json", *reports, "--cache-dir", str(trusted.cache), "--now", "2026-03-02T10:00:00Z"])
    plan = json.loads(capfd.readouterr().out)
    assert {change["path"] for change in plan["settings"] if change["sensitive"]} == {
        "delivery.source.url",
        "observations.statuses.repository",
        "observations.statuses.tokenFrom.env",
        "observations.statuses.url",
        "output.branch",
        "output.path",
        "output.repository",
        "output.signing.format",
        "output.signing.key",
        "source.kustomize.remotes",
    }
    (guard,) = (change for change in plan["settings"] if change["path"] == "guard.fleet.removed")
    assert (guard["before"], guard["after"]) == (20, 100)
    located = [(one["code"], one["location"]) for one in plan["findings"] if one["severity"] == "warning" and one["location"]]
    warnings = [(code, where["line"]) for code, where in located if where["path"] == "gitsched.yaml"]
    assert [code for code, _ in warnings].count("setting-ignored") == 4
    assert {"guard-loosened", "sensitive-setting"} <= {code for code, _ in warnings}
    assert all(line > 1 for code, line in warnings if code != "guard-loosened")
    for form in ("markdown", "html"):
        text = (trusted.path.parent / form).read_text()
        assert "observations.statuses.url" in text.replace("\\", "")
        assert "output.branch" in text.replace("\\", "")


def test_a_plan_says_whom_changed_documents_would_contact(trusted: Fleet, server: Server) -> None:
    attack(trusted, server, "x")
    port = server.url.rpartition(":")[2]
    hosts, tokens = ((parse_host_rule(f"127.0.0.1:{port}"),),), ((parse_token_rule("env:OPERATOR_TOKEN@127.0.0.1"),),)
    for allowed, verdict in (
        ({}, "It is not contacted: the operator does not allow its host 127.0.0.1"),
        ({"hosts": hosts}, "does not allow reading the environment variable OPERATOR_TOKEN"),
        ({"hosts": hosts, "tokens": tokens}, "The operator allows it"),
    ):
        run = compare_plans(trusted.settings(1, observations="recorded", **{**NOTHING, **allowed}), "HEAD~1").run
        found = {one.resource[0]: one for one in run.plan.findings if one.code == "sensitive-contact" and one.resource is not None}
        assert set(found) == {"GlobalMetricsProvider", "ClusterScores"}
        for finding in found.values():
            assert (
                f"queries {server.url}, with the token in the environment variable OPERATOR_TOKEN, and did not before"
                in finding.message
            )
            assert verdict in finding.message
            assert finding.location is not None
            assert finding.location.line > 4
    assert server.seen == []
    trusted.reconcile(1, **NOTHING)
    assert not [one for one in trusted.reconcile(2, **NOTHING).plan.findings if one.code == "sensitive-contact"]


def check_untouched(fleet: Fleet, run: RunResult, server: Server) -> None:
    """A run has contacted nobody, and has written only where earlier runs have."""
    assert server.seen == []
    assert run.branch == "placements"
    assert set(fleet.git("for-each-ref", "--format=%(refname)").split()) == {
        "refs/heads/main",
        "refs/heads/placements",
        "refs/notes/hydrator.metadata",
    }
    assert "clusters" in fleet.git("ls-tree", "--name-only", "placements").split()
    assert fleet.git("cat-file", "commit", "placements").count("gpgsig") == 0
    assert SECRET not in "".join(fleet.read(path) for path in fleet.files())


def test_a_hostile_merge_changes_nothing_but_what_the_operator_allows(trusted: Fleet, server: Server, tmp_path: Path) -> None:
    """Also in the second run, when the merge is the last reconciled commit."""
    other = bare(tmp_path / "other.git")
    for output in (str(other), f"{server.url}/x.git"):
        attack(trusted, server, output)
        for hour in (1, 2):
            run = trusted.reconcile(hour, **NOTHING)
            check_untouched(trusted, run, server)
            assert execute("for-each-ref", at=other) == ""
        refusals = [finding.message for finding in run.plan.findings if "--metrics-host 127.0.0.1" in finding.message]
        assert refusals, run.plan.findings


def test_a_merge_cannot_send_decisions_to_the_branch_of_another_environment(trusted: Fleet) -> None:
    """Its branch was chosen by an option, so only the option chooses it again."""
    trusted.reconcile(output_branch="production", **NOTHING)
    before = trusted.git("rev-parse", "production")
    trusted.commit({"gitsched.yaml": f"{HEAD}  output: {{branch: production}}\n", "echo.yaml": None}, hour=1)
    for hour in (1, 2):
        run = trusted.reconcile(hour, **NOTHING)
        assert run.branch == "placements"
    assert trusted.git("rev-parse", "production") == before
    assert trusted.reconcile(3, output_branch="production", **NOTHING).branch == "production"


def test_the_operator_moves_the_output_once_and_later_runs_stay_there(trusted: Fleet) -> None:
    trusted.commit({"gitsched.yaml": f"{HEAD}  output: {{branch: elsewhere}}\n"}, hour=1)
    assert trusted.reconcile(1, **NOTHING).branch == "placements"
    assert trusted.reconcile(2, output_branch="elsewhere", **NOTHING).branch == "elsewhere"
    run = trusted.reconcile(3, **NOTHING)
    assert (run.branch, run.changed) == ("elsewhere", False)
    assert "setting-ignored" not in {finding.code for finding in run.plan.findings}


@pytest.mark.parametrize("runs", [0, 1], ids=["at once", "after a run"])
def test_a_merge_cannot_send_decisions_back_to_a_branch_that_the_operator_left(trusted: Fleet, runs: int) -> None:
    trusted.commit({"gitsched.yaml": f"{HEAD}  output: {{branch: elsewhere}}\n"}, hour=1)
    trusted.reconcile(1, **NOTHING)
    trusted.reconcile(2, output_branch="elsewhere", **NOTHING)
    for hour in range(3, 3 + runs):
        trusted.commit({}, hour=hour)
        trusted.reconcile(hour, **NOTHING)
    before = trusted.head
    trusted.commit({"gitsched.yaml": f"{HEAD}  output: {{branch: placements}}\n", "echo.yaml": None}, hour=5)
    for hour in (5, 6):
        run = trusted.reconcile(hour, **NOTHING)
        assert (run.branch, trusted.head) == ("elsewhere", before)
        assert "setting-ignored" in {finding.code for finding in run.plan.findings}
    assert trusted.reconcile(7, output_branch="placements", **NOTHING).branch == "placements"
    trusted.commit({}, hour=8)
    assert trusted.reconcile(8, **NOTHING).branch == "placements"


def test_only_the_operator_lets_runs_push_and_the_source_can_keep_them_from_it(trusted: Fleet, tmp_path: Path) -> None:
    origin = bare(tmp_path / "origin.git")
    trusted.git("remote", "add", "origin", origin.as_uri())
    trusted.commit({"gitsched.yaml": f"{HEAD}  output: {{push: true}}\n"}, hour=1)
    for hour in (1, 2):
        run = trusted.reconcile(hour, **NOTHING)
        (message,) = (finding.message for finding in run.plan.findings if finding.code == "setting-ignored")
        assert "decisions are not pushed to origin" in message
    assert execute("for-each-ref", at=origin) == ""
    trusted.git("branch", "-q", "-D", "placements")
    run = trusted.reconcile(3, push="origin", **NOTHING)
    assert not {"setting-ignored", "push-disabled"} & {finding.code for finding in run.plan.findings}
    before = trusted.git("ls-remote", "origin", "placements")
    assert before
    changed = application_yaml().replace("echo", "other")
    trusted.commit({"gitsched.yaml": f"{HEAD}  output: {{push: false}}\n", "echo.yaml": changed}, hour=4)
    for hour in (4, 5):
        run = trusted.reconcile(hour, push="origin", **NOTHING)
        assert "push-disabled" in {finding.code for finding in run.plan.findings}
    assert trusted.git("ls-remote", "origin", "placements") == before
    assert str(trusted.head) not in before
    trusted.commit({"gitsched.yaml": HEAD}, hour=6)
    trusted.reconcile(6, push="origin", **NOTHING)
    assert trusted.git("ls-remote", "origin", "placements") != before


def test_a_shallow_clone_does_not_send_decisions_back_to_a_branch_that_the_operator_left(trusted: Fleet, tmp_path: Path) -> None:
    """Notes say where the output was moved: the commits of the source between the runs are not needed."""
    trusted.commit({"gitsched.yaml": f"{HEAD}  output: {{branch: elsewhere}}\n"}, hour=1)
    trusted.reconcile(1, **NOTHING)
    trusted.reconcile(2, output_branch="elsewhere", **NOTHING)
    trusted.commit({}, hour=3)
    trusted.commit({"gitsched.yaml": f"{HEAD}  output: {{branch: placements}}\n"}, hour=5)
    trusted.git("config", "uploadpack.allowAnySHA1InWant", "true")
    for back in (False, True):
        if back:
            trusted.reconcile(6, output_branch="placements", **NOTHING)
            trusted.commit({"gitsched.yaml": f"{HEAD}  output: {{branch: elsewhere}}\n"}, hour=7)
        clone = tmp_path / f"clone-{back}"
        execute("clone", "-q", "--depth=1", "--no-single-branch", f"file://{trusted.path}", str(clone), at=tmp_path)
        execute("fetch", "-q", "origin", "refs/notes/*:refs/notes/*", at=clone)
        run = Fleet(clone, tmp_path / f"cache-{back}").preview(8, **NOTHING)
        assert run.branch == ("placements" if back else "elsewhere")


def test_a_first_run_does_not_write_to_a_repository_that_the_operator_does_not_name(fleet: Fleet, tmp_path: Path) -> None:
    other = bare(tmp_path / "other.git")
    fleet.commit({"gitsched.yaml": f"{HEAD}  output: {{repository: '{other}'}}\n"})
    with pytest.raises(Permanent, match=r"the operator does not name it: nothing is written.*--output-repository"):
        fleet.reconcile(**NOTHING)
    assert execute("for-each-ref", at=other) == ""
    assert fleet.head is None
    assert fleet.preview(**NOTHING).plan.findings[0].code == "setting-ignored"
    assert fleet.reconcile(output=str(other), **NOTHING).plan.findings == ()
    assert execute("for-each-ref", "--format=%(refname)", "refs/heads", at=other) == "refs/heads/placements"


def test_a_merged_forge_gets_the_token_only_with_the_consent_of_the_operator(fleet: Fleet, server: Server) -> None:
    start(fleet, Forge(server, "github"))
    port = server.url.rpartition(":")[2]
    hosts, tokens = ((parse_host_rule(f"127.0.0.1:{port}"),),), ((parse_token_rule("env:FORGE_TOKEN@127.0.0.1"),),)
    server.seen.clear()
    for allowed, expected in (
        ({}, "the operator does not allow its host 127.0.0.1; to allow it: --statuses-host 127.0.0.1"),
        ({"hosts": hosts, "tokens": tokens}, "--statuses-host"),
        ({"status_hosts": hosts}, "does not allow reading the environment variable FORGE_TOKEN"),
        ({"status_hosts": hosts, "tokens": ((parse_token_rule("env:FORGE_TOKEN@example.com"),),)}, "does not allow sending"),
    ):
        run = fleet.reconcile(2, **{**NOTHING, **allowed})
        assert any(expected in finding.message for finding in run.plan.findings), run.plan.findings
        assert server.seen == []
    fleet.reconcile(2, **{**NOTHING, "status_hosts": hosts, "tokens": tokens})
    assert {seen.headers["Authorization"] for seen in server.seen} == {f"Bearer {SECRET}"}


def test_a_forge_that_a_merge_adds_is_queried_from_the_next_run_on(fleet: Fleet, server: Server) -> None:
    forge = Forge(server, "github")
    start(fleet, forge)
    stranger = Server()
    fleet.commit({"gitsched.yaml": forge.config.replace(server.url, stranger.url)}, hour=2)
    run = fleet.reconcile(2)
    contacted = (bool(server.seen), bool(stranger.seen))
    stranger.close()
    assert contacted == (True, False)
    assert [one.change.path for one in run.setting_changes] == ["observations.statuses.url"]


WEB = "default/deployment-web"
STALE = HEAD + "  source: {facts: {branch: %s, staleAfter: 1h, stale: %s}}\n"
FACTS = """\
apiVersion: gitsched.io/v1alpha1
kind: ClusterFacts
metadata: {name: first}
status: {observedAt: "2026-03-02T07:30:00Z", ready: {status: "%s"}}
"""


def write_facts(fleet: Fleet, branch: str, ready: str) -> None:
    """Write the facts about the cluster `first` to a branch."""
    dates = {"GIT_AUTHOR_DATE": "2026-03-02T07:30:00Z", "GIT_COMMITTER_DATE": "2026-03-02T07:30:00Z"}
    blob = fleet.git("hash-object", "-w", "--stdin", data=(FACTS % ready).encode())
    tree = fleet.git("mktree", data=f"100644 blob {blob}\tfirst.yaml\n".encode())
    fleet.git("update-ref", f"refs/heads/{branch}", fleet.git("commit-tree", "-m", "Facts", tree, environment=dates))


def test_a_commit_does_not_choose_whose_facts_count_for_it(fleet: Fleet) -> None:
    """Neither in its plan nor in the run after its merge: its own facts and its rule for old ones count from the next run."""
    fleet.commit({"gitsched.yaml": STALE % ("facts", "keep"), "clusters/first.yaml": cluster("first")})
    fleet.commit(
        {"clusters/second.yaml": cluster("second"), "policy.yaml": policy("first", "second"), "web.yaml": deployment("web")}
    )
    write_facts(fleet, "facts", "True")
    write_facts(fleet, "mine", "False")
    fleet.reconcile()
    assert fleet.where(WEB) == ["first"]
    fleet.commit({"gitsched.yaml": STALE % ("mine", "evict"), "new.yaml": deployment("new")}, hour=3)
    compared = compare_plans(fleet.settings(3), "HEAD~1")
    assert [move.key.name for move in compared.review.moves] == ["new"]
    run = fleet.reconcile(3)
    assert (fleet.where(WEB), fleet.where("default/deployment-new")) == (["first"], ["first"])
    told = {
        finding.message.partition(". ")[0]: finding.message for finding in run.plan.findings if finding.code == "sensitive-setting"
    }
    (message,) = (text for start, text in told.items() if "source.facts.branch" in start)
    assert "from the next run" in message
    assert {one.change.path for one in run.setting_changes} == {"source.facts.branch", "source.facts.stale"}
    fleet.reconcile(4)
    assert fleet.where(WEB) == ["second"], "the change is trusted now"


def test_a_setting_that_takes_effect_a_run_later_is_reported(fleet: Fleet) -> None:
    fleet.commit({"web.yaml": deployment("web")})
    fleet.reconcile()
    fleet.commit({"gitsched.yaml": f"{HEAD}  output: {{author: {{name: Ann, email: a@example.com}}}}\n"}, hour=1)
    (message,) = (finding.message for finding in fleet.reconcile(1).plan.findings if finding.code == "sensitive-setting")
    assert "output.author.name" in message
    assert "It takes effect from the next run" in message


@pytest.mark.parametrize("branch", ["placements", "../../etc", "/etc/passwd"])
def test_scores_go_nowhere_if_the_name_of_the_facts_branch_is_not_valid(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], branch: str
) -> None:
    settings = f"{HEAD}  source: {{facts: {{branch: '{branch}'}}}}\n"
    fleet.commit(
        {"gitsched.yaml": settings, "scores.yaml": SCORES.partition("  - {name")[0] + "  - {name: cpu, static: {ash: 1}}\n"}
    )
    monkeypatch.chdir(fleet.path)
    assert main(["scores", "--cache-dir", str(fleet.cache), "--now", "2026-03-02T10:00:00Z"]) == 1
    printed = capfd.readouterr().err
    assert re.search(r"gitsched.yaml:5:\d+: spec.source.facts.branch must be the name of a branch .* nothing is written", printed)
    assert fleet.git("status", "--short") == ""


def test_scores_are_not_committed_to_a_branch_with_the_history_of_the_source(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    fleet.commit({"scores.yaml": SCORES.partition("  - {name")[0] + "  - {name: cpu, static: {ash: 1}}\n"})
    fleet.git("branch", "release")
    fleet.commit({"gitsched.yaml": f"{HEAD}  source: {{facts: {{branch: release}}}}\n"})
    before = fleet.git("rev-parse", "release")
    monkeypatch.chdir(fleet.path)
    assert main(["scores", "--cache-dir", str(fleet.cache), "--now", "2026-03-02T10:00:00Z"]) == 1
    assert "has the history of the source" in capfd.readouterr().err
    assert fleet.git("rev-parse", "release") == before
