"""Freeze placements on a remote, over each transport, beside runs of other processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gitsched.cli import main
from gitsched.cli.formats import format_json
from gitsched.cli.html_reports import write_plan_page
from gitsched.git.output import OutputRepository
from gitsched.model.errors import Conflict, Permanent
from gitsched.model.explanation import Explanation
from gitsched.model.history import HistoryFilter
from gitsched.reconcile import reconcile
from gitsched.reconcile.maintenance import plan_maintenance, write_edits
from gitsched.reconcile.output import freeze
from gitsched.reconcile.output.freeze import set_freeze
from gitsched.reconcile.output.output_history import open_history
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.reconcile.review.explanation import explain_resource
from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.reconcile.review.fleet_tree import read_fleet_tree
from gitsched.reconcile.run import make_review
from gitsched.report.explanation import write_explanation
from gitsched.report.fleet_problems import UNPUSHED
from gitsched.report.fleet_status import write_fleet_status
from gitsched.report.fleet_tree import write_fleet_tree
from gitsched.report.history import write_entry
from gitsched.report.maintenance import serialize_maintenance, write_maintenance
from gitsched.report.saved_plan import parse_saved_plan, serialize_saved_plan
from gitsched.report.summary import format_headline
from gitsched.report.text import write_plan, write_run
from tests.git.conftest import Server

from .conftest import UNGUARDED, Fleet, cluster, deployment, execute, policy

WEB = "default/deployment-web"
MOVE = {"policies/all.yaml": policy("second")}
REASON = "the network is migrated"
SSH = """\
#!/bin/sh
# Runs the command of the last argument, as the server does after it has authenticated the client.
for last; do :; done
exec sh -c "$last"
"""


@pytest.fixture
def bare(pair: Fleet, tmp_path: Path) -> Path:
    """A remote that was reconciled once, and has a newer source commit that moves `web`."""
    remote = tmp_path / "remote.git"
    pair.commit({"gitsched.yaml": UNGUARDED})
    pair.git("clone", "-q", "--bare", ".", str(remote))
    execute("config", "http.receivepack", "true", at=remote)
    pair.git("remote", "add", "origin", remote.as_uri())
    pair.reconcile(push="origin")
    pair.commit(MOVE, hour=1)
    pair.git("push", "-q", "origin", "main")
    return remote


@pytest.fixture
def url(request: pytest.FixtureRequest, bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "http":
        server = Server(bare.parent)
        yield server.url("open", bare.name)
        server.close()
    elif request.param == "ssh":
        program = tmp_path / "ssh"
        program.write_text(SSH)
        program.chmod(0o755)
        monkeypatch.setenv("GIT_SSH", str(program))
        yield f"ssh://git@example.com{bare}"
    else:
        yield bare.as_uri()


def read(bare: Path) -> str:
    return (
        execute("show", "placements:FREEZE", at=bare)
        if "FREEZE" in execute("ls-tree", "--name-only", "placements", at=bare)
        else ""
    )


def where(bare: Path) -> list[str]:
    paths = execute("ls-tree", "-r", "--name-only", "placements", at=bare).splitlines()
    return [path.split("/")[1] for path in paths if path.endswith(f"{WEB}.yaml") and path.startswith("clusters/")]


@pytest.mark.parametrize(
    ("url", "clone"),
    [("file", True), ("file", False), ("http", False), ("ssh", True)],
    ids=["a path, from a clone", "a path, with the source there", "HTTP, with the source there", "SSH, from a clone"],
    indirect=["url"],
)
def test_a_freeze_reaches_the_remote_and_is_lifted_there(pair: Fleet, bare: Path, url: str, clone: bool, tmp_path: Path) -> None:
    def settings(hour: float) -> Any:
        where = {"push": "origin"} if clone else {"location": url}
        return pair.settings(hour, cache=tmp_path / "cache", **where)

    pair.git("remote", "set-url", "origin", url)
    frozen = set_freeze(settings(1), REASON)
    assert (frozen.commit, frozen.frozen, read(bare)) == (execute("rev-parse", "placements", at=bare), REASON, REASON)
    assert set_freeze(settings(1), REASON).commit is None, "it is frozen already"
    run = reconcile(settings(2))
    assert ([move.key.name for move in run.plan.withheld.moves], where(bare)) == (["web"], ["first"])
    assert set_freeze(settings(3), "").commit == execute("rev-parse", "placements", at=bare)
    assert (set_freeze(settings(3), "").commit, read(bare)) == (None, "")
    reconcile(settings(4))
    assert "second" in where(bare)


def test_a_freeze_that_only_a_clone_has_is_no_freeze_of_runs_elsewhere(pair: Fleet, bare: Path) -> None:
    command = "git push origin placements"
    for hour, reason, problem in ((1, REASON, "the freeze is only"), (3, "", "the freeze is lifted only")):
        before = read(bare)
        assert (set_freeze(pair.settings(hour), reason).push, read(bare)) == (command, before)
        assert set_freeze(pair.settings(hour), reason).push == command, "it is still not pushed"
        lines = write_fleet_status(read_fleet_status(pair.settings(hour)), 1_000).splitlines()
        assert f"{problem} in this clone" in lines[0]
        assert any(line.startswith("Not pushed: ") and line.endswith(command) for line in lines)
        for words in (("", None, "first"), ("deployment", None, "web")):
            tree = write_fleet_tree(read_fleet_tree(pair.settings(hour), *words))
            assert (f"  not pushed: {UNPUSHED.format(command)}\n" in tree) == bool(reason)
        compared = compare_plans(pair.settings(hour), complete=True)
        assert (f"Not pushed: {UNPUSHED.format(command)}" in write_plan_page(compared, compared.review)) == bool(reason)
        pair.git(*command.split()[1:])
        assert (read(bare), set_freeze(pair.settings(hour), reason).push) == (reason, "")
        assert "in this clone" not in write_fleet_status(read_fleet_status(pair.settings(hour)))
    assert [set_freeze(pair.settings(4, push="origin"), reason).push for reason in (REASON, "")] == ["", ""]


def test_the_command_says_how_a_freeze_reaches_origin(pair: Fleet, bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["-C", str(pair.path), "--cache-dir", str(pair.cache)]
    for words, is_pushed in (([REASON], False), (["--lift", "--push"], True), ([REASON, "--push"], True)):
        assert main(["freeze", *words, *where]) == 0
        said = capsys.readouterr().out
        assert ("in this clone only" in said, ": git push origin placements (" in said) == (not is_pushed, not is_pushed), said
    assert read(bare) == REASON


def test_a_freeze_is_committed_after_a_run_that_was_faster(
    pair: Fleet, bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute("clone", "-q", bare.as_uri(), str(tmp_path / "other"), at=bare)
    other = Fleet(tmp_path / "other", tmp_path / "other-cache")
    publish, runs = OutputRepository.publish, []

    def publish_late(self: OutputRepository, *arguments: Any) -> bool:
        if not runs:
            runs.append("started")
            runs.append(str(other.reconcile(2, push="origin").after))
        return publish(self, *arguments)

    monkeypatch.setattr(OutputRepository, "publish", publish_late)
    result = set_freeze(pair.settings(2, push="origin"), REASON)
    assert execute("rev-parse", "placements~1", at=bare) == runs[1]
    assert (read(bare), result.commit) == (REASON, execute("rev-parse", "placements", at=bare))
    assert "second" in where(bare), "the run was first"


def test_a_run_that_is_slower_than_a_freeze_is_frozen(
    pair: Fleet, bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute("clone", "-q", bare.as_uri(), str(tmp_path / "other"), at=bare)
    other = Fleet(tmp_path / "other", tmp_path / "other-cache")
    publish, started = OutputRepository.publish, []

    def publish_late(self: OutputRepository, *arguments: Any) -> bool:
        if not started:
            started.append(True)
            set_freeze(other.settings(2, push="origin"), REASON)
        return publish(self, *arguments)

    monkeypatch.setattr(OutputRepository, "publish", publish_late)
    run = pair.reconcile(2, push="origin")
    assert ([move.key.name for move in run.plan.withheld.moves], where(bare), read(bare)) == (["web"], ["first"], REASON)


def test_a_freeze_gives_up_when_the_branch_never_rests(pair: Fleet, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(self: OutputRepository, *arguments: Any) -> bool:
        raise Conflict("refs/heads/placements is no longer at its commit")

    monkeypatch.setattr(OutputRepository, "publish", lose)
    monkeypatch.setattr(freeze, "_RETRY_DELAY", 0)
    with pytest.raises(Conflict):
        set_freeze(pair.settings(2, push="origin"), REASON)
    assert read(bare) == ""


def test_a_freeze_without_an_output_branch_says_what_to_do(fleet: Fleet) -> None:
    fleet.commit({"web.yaml": deployment("web"), "first.yaml": cluster("first")})
    with pytest.raises(Permanent, match="run gitsched reconcile first"):
        set_freeze(fleet.settings(), REASON)


def test_a_freeze_of_the_settings_is_named_where_that_of_the_branch_is_lifted(pair: Fleet) -> None:
    settings = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: g}\nspec: {guard: {freeze: incident}}\n"
    pair.commit({"gitsched.yaml": settings})
    pair.reconcile(0)
    result = set_freeze(pair.settings(1), "")
    assert (result.commit, result.frozen, result.frozen_by_settings) == (None, "", "incident")


@pytest.mark.parametrize(
    ("target", "edited", "target_text", "fault"),
    [
        ("three", cluster("one", "power:NoExecute"), "goes to three 2", "which is drained"),
        ("oen", cluster("one", "power:NoExecute"), "would become unplaced", "which is drained"),
        ("three", None, "goes to three 2", "whose document is gone"),
    ],
)
def test_the_status_says_why_a_workload_that_a_freeze_keeps_on_a_cluster_should_leave_it(
    target: str, edited: str | None, target_text: str, fault: str, fleet: Fleet
) -> None:
    clusters = {f"{name}.yaml": cluster(name) for name in ("one", "two", "three")}
    fleet.commit({**clusters, "web.yaml": deployment("web"), "policy.yaml": policy("one,two")})
    fleet.reconcile()
    set_freeze(fleet.settings(1), REASON)
    fleet.commit({"policy.yaml": policy(target)}, hour=2)
    fleet.reconcile(2)
    fleet.commit({"one.yaml": edited}, hour=3)
    fleet.reconcile(3)
    lines = write_fleet_status(read_fleet_status(fleet.settings(3)), 300).splitlines()
    [line] = [line for line in lines if line.startswith("  Deployment default/web")]
    assert target_text in line
    assert line.endswith(f"; it stays on one, {fault}")


@pytest.mark.parametrize("also", [False, True])
def test_what_a_freeze_withholds_is_placed_as_before_and_the_guard_is_not_named(also: bool, pair: Fleet) -> None:
    pair.reconcile()
    set_freeze(pair.settings(1), REASON)
    pair.commit({**MOVE, **({"apps/new.yaml": deployment("new")} if also else {})}, hour=2)
    run = pair.reconcile(2)
    count = "2 workloads: 2 placed." if also else "1 workload: 1 placed."
    texts = [write_run(make_review(run), 10_000)]
    assert count in texts[0]
    assert pair.load("gitsched.json").get("workloads") == {"placed": 1 + also}
    texts.append(write_run(make_review(pair.reconcile(3)), 10_000))
    assert count in texts[1]
    texts.append(write_fleet_tree(read_fleet_tree(pair.settings(3), "", None, "web")))
    explanation = explain_resource(pair.settings(3), "Deployment", "default", "web")
    assert isinstance(explanation, Explanation)
    texts.append(write_explanation(explanation, 10_000))
    texts += map(write_entry, open_history(pair.settings(3), HistoryFilter()).read_entries(2))
    assert not any("the guard" in text or "stale" in text for text in texts)
    assert "the freeze withholds that it " in texts[2]
    assert "Not applied: its change is withheld." in texts[3]
    assert "the freeze withholds changes: " in texts[4]
    set_freeze(pair.settings(4), "")
    pair.reconcile(4)
    (entry,) = open_history(pair.settings(4), HistoryFilter()).read_entries(1)
    assert "the freeze withholds nothing any more" in write_entry(entry)
    assert pair.load("gitsched.json").get("workloads") == {"placed": 1 + also}


@pytest.mark.parametrize("has_run", [True, False], ids=["a run has withheld it", "no run has planned it"])
def test_a_comparison_with_what_a_freeze_withholds_on_both_sides_shows_no_change(has_run: bool, pair: Fleet) -> None:
    pair.reconcile()
    set_freeze(pair.settings(1), REASON)
    pair.commit(MOVE, hour=2)
    if has_run:
        pair.reconcile(2)
    pair.git("checkout", "-qb", "text")
    pair.commit({"README.md": "Notes"}, hour=3)
    for revision in ("main", "text"):
        review = compare_plans(pair.settings(4, revision=revision), "main").review
        assert format_headline(review) == "No changes"
        assert [move.key.name for move in review.withheld.of_base] == ["web"]


def for_one(name: str, *clusters: str) -> str:
    """Return a policy for one Deployment, which runs on all of these clusters."""
    return (
        policy(",".join(clusters), name=name)
        .replace("Deployment}", f"Deployment, name: {name}}}")
        .replace(",", ", ", len(clusters) - 1)
    )


@pytest.mark.parametrize("has_state", [True, False])
def test_a_drain_says_what_a_freeze_keeps_on_the_cluster_and_so_do_plans_runs_and_the_status(
    fleet: Fleet, *, has_state: bool
) -> None:
    names = ("free", "pinned", "scaled", "waiting")
    files = {f"{name}.yaml": deployment(name) for name in names} | {f"{name}.yaml": cluster(name) for name in ("one", "two", "six")}
    policies = {name: for_one(name, "one", "two") for name in names} | {"pinned": for_one("pinned", "one")}
    fleet.commit({**files, **{f"policy-{name}.yaml": text for name, text in policies.items()}, "gitsched.yaml": UNGUARDED})
    fleet.reconcile()
    set_freeze(fleet.settings(1), REASON)
    fleet.commit({"policy-waiting.yaml": for_one("waiting", "one", "six"), "scaled.yaml": deployment("scaled", 3)}, hour=2)
    fleet.reconcile(2)
    settings = fleet.settings(3) if has_state else fleet.settings(3)._replace(cache=fleet.cache / "none")
    found = plan_maintenance(settings, "drain", ["one"], None)
    text = write_maintenance(found, 10_000, written=True)
    kept = "Deployment default/pinned, Deployment default/waiting stay on one until then: a freeze lets workloads leave drained clusters"
    assert kept in text
    assert f"Frozen: {REASON} (" in text
    assert "; to lift it: gitsched freeze --lift\n" in text
    assert ". Lift the freeze as above, or accept that 2 workloads stay\n" in text
    assert "one has 4 workloads now; wait until it shows only 2 workloads (2 that a drain does not move) and no copies" in text
    assert [each["name"] for each in serialize_maintenance(found, written=True)["frozen"]] == ["pinned", "waiting"]
    write_edits(fleet.path, found.files)
    fleet.commit(hour=4)
    lines = [
        f"  Placements are frozen: {REASON}. To lift it, remove the file FREEZE from the output branch, or run gitsched freeze --lift",
        "  Deployment default/pinned, Deployment default/waiting stay on one, which has the taint gitsched.io/drain:NoExecute",
    ]
    compared = compare_plans(fleet.settings(5))
    saved = parse_saved_plan(format_json(serialize_saved_plan(compared.review, compared.delivered))).review
    for review in (compared.review, compare_plans(fleet.settings(5), complete=True).review, saved):
        assert [line for line in lines if line not in write_plan(review, 10_000).splitlines()] == []
    run = write_run(make_review(fleet.reconcile(5)), 10_000)
    assert [line for line in lines if line not in run.splitlines()] == []
    assert [name for name in names if "one" in fleet.where(f"default/deployment-{name}")] == ["pinned", "waiting"]
    status = write_fleet_status(read_fleet_status(fleet.settings(6)), 10_000)
    assert status.count("; it stays on one, which is drained") == 2
    assert "to lift it: gitsched freeze --lift" in status
    assert [*plan_maintenance(fleet.settings(6), "drain", ["one"], None).frozen] == [*found.frozen], (
        "the cluster is drained already"
    )
    set_freeze(fleet.settings(6), "")
    fleet.reconcile(7)
    assert plan_maintenance(fleet.settings(8), "drain", ["one"], None).frozen == {}
