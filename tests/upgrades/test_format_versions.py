"""The first run of a new format version: the older form is read, and rewritten in a commit of its own without a move."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from gitsched import __version__
from gitsched.cli import main
from gitsched.git import output as git_output
from gitsched.model.history import HistoryFilter
from gitsched.reconcile import Reconciler
from gitsched.reconcile.output.freeze import set_freeze
from gitsched.reconcile.output.output_history import open_history
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.render.format_versions import FORMAT_VERSION, FormatStep, upgrade_metadata, upgrade_record
from tests.scenarios.conftest import UNGUARDED, Fleet, cluster, deployment, execute, policy
from tests.upgrades.older_form import OLDER, age, register, replace_head
from tests.upgrades.recorded import RecordedBranch, describe_run, list_recorded

CHANGE = f"gitsched {__version__} (format version {FORMAT_VERSION} → {FORMAT_VERSION + 1})"
SUBJECT = f"place: output rewritten for {CHANGE}"
NOTE = f"The output is rewritten for {CHANGE}, in a commit of its own, with which no workload moves."
MOVED = "place: 1 workload placed (Change)"
RECORDED = {name.rpartition("/")[2]: recorded for name, recorded in list_recorded() if name.startswith("a9db83c9/")}
NAMES = ("adopted", "applications", "facts", "guarded", "moves", "placements", "random-3", "tenants", "vreplicas", "waves")


@pytest.fixture(params=NAMES)
def recorded(request: pytest.FixtureRequest) -> RecordedBranch:
    return RECORDED[request.param]


@pytest.fixture
def present(recorded: RecordedBranch, tmp_path: Path) -> Fleet:
    """A recorded branch in the present form."""
    fleet = recorded.open(tmp_path / "fleet", tmp_path / "cache")
    fleet.reconcile(recorded.hour, observations="recorded")
    return fleet


@pytest.fixture
def old(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """Two Deployments on two clusters, whose output branch has the older form. Reconciled from a cache directory of its own."""
    files = {f"clusters/{name}.yaml": cluster(name) for name in ("first", "second")}
    files |= {f"apps/{name}.yaml": deployment(name) for name in ("api", "web")}
    fleet.commit({**files, "policy.yaml": policy("first,second", scheduling="Divided"), "gitsched.yaml": UNGUARDED})
    fleet.reconcile()
    age(fleet)
    register(monkeypatch, OLDER)
    return fleet


def subjects(fleet: Fleet, since: str | None, until: str = "placements") -> list[str]:
    return fleet.git("log", "--reverse", "--format=%s", f"{since}..{until}").splitlines()


def test_a_branch_of_an_older_form_is_rewritten_in_a_commit_of_its_own_without_a_move(
    recorded: RecordedBranch, present: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet, files, members = present, present.files(), present.load("gitsched.json")
    aged, date = age(fleet), fleet.git("log", "-1", "--format=%ct", "placements")
    assert fleet.files() != files
    register(monkeypatch, OLDER)
    run = fleet.reconcile(recorded.hour, observations="recorded")
    assert describe_run(fleet, run).keys() <= {"withheld"}
    assert fleet.git("rev-list", f"{aged}..placements").split() == [run.after]
    assert fleet.git("log", "-1", "--format=%s %ct", "placements") == f"{SUBJECT} {date}"
    assert fleet.trailers() == {"Gitsched-Source": members["source"], "Gitsched-Version": __version__, "Gitsched-Cause": "upgrade"}
    assert dict(fleet.files().items() ^ files.items()).keys() == {"gitsched.json"}
    assert fleet.load("gitsched.json") == members | {"formatVersion": FORMAT_VERSION + 1}
    assert fleet.reconcile(recorded.hour, observations="recorded").after is None


def test_what_the_source_changes_follows_the_rewrite_in_another_commit(
    recorded: RecordedBranch, present: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet, files, aged = present, present.files(), age(present)
    register(monkeypatch, OLDER)
    for later in recorded.later[:2]:
        if later.files is not None:
            fleet.commit(later.files, hour=later.hour, message=later.message)
        run = fleet.reconcile(later.hour, observations="recorded")
        assert describe_run(fleet, run) == later.expected
    rewrite, *others = fleet.git("rev-list", "--reverse", f"{aged}..placements").split()
    assert others or not any(later.expected for later in recorded.later[:2])
    assert fleet.git("log", "-1", "--format=%s", rewrite) == SUBJECT
    assert dict(fleet.files(rewrite).items() ^ files.items()).keys() == {"gitsched.json"}


def test_both_commits_appear_at_once(old: Fleet) -> None:
    """After a run that is killed, the branch is at the old commit or at the new one, as always."""
    before = old.head
    old.commit({"apps/more.yaml": deployment("more")}, hour=1)
    run = old.reconcile(1)
    assert subjects(old, before) == [SUBJECT, MOVED]
    assert old.git("reflog", "--format=%H", "placements").splitlines()[0] == run.after
    assert old.git("rev-parse", "placements@{1}") == before
    assert (run.before, run.rewrite) == (before, NOTE)


def test_a_remote_gets_both_commits_at_once_or_nothing(old: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remote = tmp_path / "remote.git"
    execute("clone", "-q", "--bare", "--mirror", str(old.path), str(remote), at=tmp_path)
    old.git("remote", "add", "origin", str(remote))
    before = old.head
    old.commit({"apps/more.yaml": deployment("more")}, hour=1)
    push_commit, attempts = git_output.push_commit, list[str]()

    def push(*arguments: object, **options: object) -> bool:
        if not attempts:  # a person is faster
            execute("update-ref", "refs/heads/placements", make_commit(remote), at=remote)
        attempts.append("")
        return push_commit(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(git_output, "push_commit", push)
    old.reconcile(1, push="origin")
    assert len(attempts) == 2
    assert subjects(old, before) == ["freeze: by hand", SUBJECT, MOVED]
    assert execute("rev-parse", "refs/heads/placements", at=remote) == old.head
    assert old.reconcile(1, push="origin").after is None


def make_commit(repository: Path) -> str:
    """Return a commit of a person on the output branch, which changes nothing."""
    tree, parent = execute("rev-parse", "placements^{tree}", "placements", at=repository).split()
    return execute("commit-tree", tree, "-p", parent, "-m", "freeze: by hand", at=repository)


def test_a_shallow_clone_rewrites_the_branch_of_its_remote(old: Fleet, tmp_path: Path) -> None:
    old.commit({"apps/more.yaml": deployment("more")}, hour=1)
    before = old.head
    execute("clone", "-q", "--depth=1", "--no-single-branch", f"file://{old.path}", str(tmp_path / "clone"), at=tmp_path)
    old.git("checkout", "-q", "--detach")
    run = Fleet(tmp_path / "clone", tmp_path / "other").reconcile(1, push="origin")
    assert [str(move.key) for move in run.plan.moves] == ["Deployment.apps/default/more"]
    assert subjects(old, before) == [SUBJECT, MOVED]


def test_an_output_in_a_directory_is_rewritten_there(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"clusters/first.yaml": cluster("first"), "apps/web.yaml": deployment("web"), "policy.yaml": policy("first")}
    fleet.commit({**files, "gitsched.yaml": UNGUARDED + "  output: {path: out/fleet}\n"})
    fleet.reconcile()
    others = fleet.files()
    before = age(fleet, "out/fleet/")
    register(monkeypatch, OLDER)
    fleet.reconcile()
    assert subjects(fleet, before) == [SUBJECT]
    assert dict(fleet.files().items() ^ others.items()).keys() == {"out/fleet/gitsched.json"}


def test_a_resident_process_and_a_cache_of_the_version_before_lead_to_the_same(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"clusters/first.yaml": cluster("first"), "apps/web.yaml": deployment("web"), "policy.yaml": policy("first")}
    fleet.commit(files)
    resident = Reconciler(fleet.settings())
    resident.run(fleet.settings().now)
    before = age(fleet)
    register(monkeypatch, OLDER)
    fleet.commit({"apps/more.yaml": deployment("more")}, hour=1)
    expected = Fleet(fleet.path, tmp_path / "empty").preview(1)
    assert resident.run(fleet.settings(1).now).tree == expected.tree
    assert subjects(fleet, before) == [SUBJECT, MOVED]
    assert resident.run(fleet.settings(2).now).after is None


def test_a_freeze_does_not_rewrite(old: Fleet) -> None:
    before = old.head
    set_freeze(old.settings(1), "audit")
    assert subjects(old, before) == ["freeze: audit"]
    assert old.load("gitsched.json")["formatVersion"] == FORMAT_VERSION
    old.commit({"policy.yaml": policy("second", scheduling="Divided")}, hour=1)
    run = old.reconcile(1)
    assert (len(run.plan.moves), len(run.plan.withheld.moves)) == (0, 2)
    assert subjects(old, before)[:2] == ["freeze: audit", SUBJECT]


def test_a_plan_shows_the_moves_of_the_commit_and_one_line_about_the_rewrite(old: Fleet) -> None:
    before = old.head
    old.git("checkout", "-q", "-b", "change")
    old.commit({"apps/web.yaml": deployment("web", 6)}, hour=1)
    for base in ("main", None):
        review = compare_plans(old.settings(1, revision="change"), base).review
        assert [str(move.key) for move in review.moves] == ["Deployment.apps/default/web"]
        assert [note for note in review.comparison.notes if "which is reconciled" not in note] == [NOTE]
        assert review.comparison.delivery.files == 2
    assert old.head == before


def test_the_history_names_the_rewrite_and_shows_nothing_that_moved(old: Fleet) -> None:
    old.reconcile(1)
    history = open_history(old.settings(1), HistoryFilter())
    rewrite, first = history.read_entries(10)
    assert (rewrite.cause, rewrite.summary, rewrite.moves, rewrite.records, rewrite.notes) == (
        "upgrade",
        f"output rewritten for gitsched {__version__}",
        (),
        (),
        (),
    )
    assert len(first.moves) == 2


COMMANDS = (
    ["status"],
    ["status", "--workloads"],
    ["explain", "deployment/web"],
    ["explain", "cluster/first"],
    ["simulate", "--lose", "first"],
    ["tree", "first"],
    ["validate"],
    ["tidy"],
    ["rebalance", "--all-displaced"],
    ["plan"],
)


def test_commands_that_look_show_what_they_show_of_the_present_form(
    old: Fleet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They only have another output commit, and say that the next run rewrites the branch."""
    before = old.head
    older = [show(old, arguments, monkeypatch, capsys) for arguments in COMMANDS]
    assert old.head == before, "nothing moves"
    old.reconcile(1)
    assert older == [show(old, arguments, monkeypatch, capsys) for arguments in COMMANDS]


def show(
    fleet: Fleet, arguments: Sequence[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    """Return the exit code and the output of a command, without the output commit and the line about the rewrite."""
    monkeypatch.chdir(fleet.path)
    code = main(list(arguments))
    printed = capsys.readouterr()
    text = " ".join((printed.out + printed.err).split()).replace(NOTE, "")
    return code, re.sub(r" +", " ", text.replace((fleet.head or "")[:10], "HEAD")).strip()


def test_steps_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = ("work.karmada.io", "ResourceBinding")
    register(
        monkeypatch,
        FormatStep(lambda members: {**members, "a": 1}),
        FormatStep(lambda members: {**members, "b": members["a"] + 1}, lambda body: {**body, "c": 3}, (kind,)),
    )
    first, second, third = range(FORMAT_VERSION, FORMAT_VERSION + 3)
    assert upgrade_metadata({"formatVersion": first}, first) == {"formatVersion": third, "a": 1, "b": 2}
    assert upgrade_metadata({"formatVersion": second, "a": 5}, second) == {"formatVersion": third, "a": 5, "b": 6}
    assert upgrade_record(*kind, {}, first) == upgrade_record(*kind, {}, second) == {"c": 3}
    assert upgrade_record(*kind, {}, third) == upgrade_record("core", "Pod", {}, first) == {}


def test_a_damaged_record_does_not_stop_the_others(old: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    damaged = "status/work.karmada.io/resourcebinding/default/web-deployment.yaml"
    before = replace_head(old, {damaged: b"spec: {targets: [\n"})
    run = old.reconcile(1)
    assert [str(move.key) for move in run.plan.moves] == ["Deployment.apps/default/web"], "as without its record"
    assert subjects(old, before) == [SUBJECT, MOVED]
    assert "was read in the present form" in caplog.text
