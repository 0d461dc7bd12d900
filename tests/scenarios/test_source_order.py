"""A run does not take back what a later commit, or another branch, has decided, unless the operator says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gitsched.git.notes import read_note
from gitsched.git.repository import Repository
from gitsched.model.errors import Permanent
from gitsched.reconcile import Reconciler, RunResult
from gitsched.reconcile.source import source_order
from tests import fork_server

from .conftest import Fleet, at_hour, cluster, deployment, execute, policy
from .test_races import list_arguments, start_race

FIRST = {"apps/web.yaml": deployment("web"), "policy.yaml": policy("ash"), "ash.yaml": cluster("ash"), "bru.yaml": cluster("bru")}
MOVED = {"policy.yaml": policy("bru")}
API = {"apps/api.yaml": deployment("api")}
WEB = "default/deployment-web"


@pytest.fixture
def moved(fleet: Fleet) -> Fleet:
    """The last of three commits on `main` moved `web` to the cluster `bru`."""
    fleet.commit(FIRST)
    fleet.reconcile()
    fleet.commit({"README.md": "second\n"}, hour=1)
    fleet.commit(MOVED, hour=2)
    fleet.reconcile(2)
    return fleet


def load_note(fleet: Fleet, output: str = "placements") -> dict[str, Any]:
    head = fleet.git("rev-parse", output.partition(":")[0])
    note: dict[str, Any] = json.loads(read_note(Repository(fleet.path), head) or "{}")
    return note


def read_last(fleet: Fleet, output: str = "placements") -> tuple[str, str]:
    """Return the source commit and the branch that the note on the output commit names for an output."""
    last = load_note(fleet, output)["reconciled"][output]
    return last["source"], last["branch"]


def list_findings(run: RunResult) -> list[tuple[str, str]]:
    """Return the severity and the code of each finding about the order of commits."""
    return [(finding.severity, finding.code) for finding in run.plan.findings if finding.code.startswith("source-")]


def find_message(run: RunResult, code: str) -> str:
    return next(finding.message for finding in run.plan.findings if finding.code == code)


# Later and older commits


def test_a_revert_is_a_new_commit(moved: Fleet) -> None:
    moved.git("revert", "--no-edit", "main")
    assert (list_findings(moved.reconcile(3)), moved.where(WEB)) == ([], ["ash"])


def test_a_merge_of_an_older_branch_follows(moved: Fleet) -> None:
    moved.git("checkout", "-q", "-b", "feature", "main~2")
    moved.commit(API, hour=1)
    moved.git("checkout", "-q", "main")
    moved.git("merge", "-q", "--no-ff", "-m", "Merge", "feature")
    assert (list_findings(moved.reconcile(3)), moved.where(WEB)) == ([], ["bru"])
    moved.git("checkout", "-q", "--detach", "feature")
    with pytest.raises(Permanent, match=r"is older than"):
        moved.reconcile(4)


@pytest.mark.parametrize("back", [1, 2], ids=["its parent", "the first commit"])
def test_an_older_commit_is_refused_unless_it_is_allowed(moved: Fleet, back: int) -> None:
    last, head = moved.git("rev-parse", "main"), moved.head
    moved.git("checkout", "-q", f"main~{back}")
    expected = f"^commit [0-9a-f]+ is older than commit {last[:10]}, which was reconciled last for branch main: .*--allow-older$"
    with pytest.raises(Permanent, match=expected):
        moved.reconcile(3)
    assert (moved.head, read_last(moved)) == (head, (last, "main"))
    run = moved.reconcile(3, allow_older=True)
    assert (list_findings(run), moved.where(WEB)) == ([("warning", "source-older")], ["ash"])
    assert list_findings(moved.reconcile(3)) == [], "it is the last one now"
    moved.git("checkout", "-q", "main")
    assert (list_findings(moved.reconcile(4)), moved.where(WEB)) == ([], ["bru"])


def test_an_older_commit_is_refused_also_where_the_later_one_changed_nothing(moved: Fleet) -> None:
    """Only the note says that it was reconciled."""
    moved.reconcile(3)  # the overlap ends
    moved.commit({"README.md": "fourth\n"}, hour=3)
    assert moved.reconcile(3).after is None
    moved.git("checkout", "-q", "main~1")
    with pytest.raises(Permanent, match="is older than"):
        moved.reconcile(4)


def test_the_command_ends_with_one_line(moved: Fleet) -> None:
    moved.git("checkout", "-q", "main~1")
    arguments = ["reconcile", f"--repo={moved.path}", f"--cache-dir={moved.cache}", f"--now={at_hour(3).isoformat()}"]
    done = fork_server.run(arguments, moved.path, {})
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert "If this job was started again, or a later one was faster, nothing is to be done" in done.stderr
    done = fork_server.run([*arguments, "--allow-older"], moved.path, {})
    assert done.returncode == 0
    assert "source-older" in done.stdout


def test_a_plan_may_be_of_any_commit(moved: Fleet) -> None:
    moved.git("checkout", "-q", "-b", "feature", "main~1")
    assert not list_findings(moved.preview(3))


# Other branches


def test_a_commit_that_follows_on_a_branch_that_is_not_merged_is_refused(moved: Fleet) -> None:
    """Also if it is the next one, as in a job that runs for pull requests by mistake."""
    moved.git("checkout", "-q", "-b", "feature")
    for hour in (3, 4):
        moved.commit({"apps/api.yaml": deployment("api", hour)}, hour=hour)
        expected = r"of branch feature is not on branch main, which is reconciled: merge it, or pass --branch feature to"
        with pytest.raises(Permanent, match=expected):
            moved.reconcile(hour)
    moved.git("checkout", "-q", "--detach")
    with pytest.raises(Permanent, match=r"^commit [0-9a-f]+ is not on branch main, .* --branch NAME"):
        moved.reconcile(4)
    moved.git("branch", "-q", "-f", "main")
    assert (list_findings(moved.reconcile(4)), read_last(moved)) == ([], (moved.git("rev-parse", "main"), "main")), "it is merged"


def test_a_branch_that_is_not_merged_goes_on_where_it_is_named(moved: Fleet) -> None:
    moved.git("checkout", "-q", "-b", "feature")
    moved.commit(API, hour=3)
    assert list_findings(moved.reconcile(3, branch="feature")) == []
    assert read_last(moved) == (moved.git("rev-parse", "feature"), "feature")
    moved.git("checkout", "-q", "main")
    with pytest.raises(Permanent, match=r"of branch main is older than .* reconciled last for branch feature"):
        moved.reconcile(4)
    moved.commit({"apps/cache.yaml": deployment("cache")}, hour=4)
    with pytest.raises(Permanent, match=r"\(it is on branch feature\): .*--branch main"):
        moved.reconcile(4)


def test_a_branch_that_the_settings_name_goes_on(moved: Fleet) -> None:
    moved.git("branch", "-q", "release")
    settings = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {source: {branch: release}}\n"
    moved.commit({"gitsched.yaml": settings}, hour=3)
    moved.git("checkout", "-q", "release")
    moved.commit(API, hour=3)
    moved.git("checkout", "-q", "main")
    assert list_findings(moved.reconcile(3)) == []
    assert moved.where("default/deployment-api") == ["bru"]


def test_another_branch_is_refused_until_it_is_named(moved: Fleet) -> None:
    moved.git("checkout", "-q", "-b", "feature", "main~1")
    moved.commit(API, hour=3)
    with pytest.raises(Permanent, match=r"of branch feature does not have .* \(it is on branch main\): .*--branch feature"):
        moved.reconcile(3)
    run = moved.reconcile(3, branch="feature")
    assert (list_findings(run), read_last(moved)[1]) == ([("warning", "source-diverged")], "feature")
    moved.git("checkout", "-q", "main")
    with pytest.raises(Permanent, match="--branch main"):
        moved.reconcile(4)
    assert moved.where(WEB) == ["ash"]
    assert list_findings(moved.reconcile(4, branch="main")) == [("warning", "source-diverged")]
    assert moved.where(WEB) == ["bru"]


def test_a_detached_head_that_is_on_no_reconciled_branch_is_refused(moved: Fleet) -> None:
    moved.git("checkout", "-q", "--detach", "main~1")
    moved.commit(API, hour=3)
    with pytest.raises(Permanent, match=r"^commit [0-9a-f]+ does not have .*--branch NAME"):
        moved.reconcile(3)
    assert list_findings(moved.reconcile(3, allow_older=True)) == [("warning", "source-diverged")]


@pytest.mark.parametrize("note", ["none", "of an earlier version"])
def test_where_no_branch_is_recorded_every_branch_counts_that_has_the_last_commit(moved: Fleet, note: str) -> None:
    if note == "none":
        moved.git("update-ref", "-d", "refs/notes/hydrator.metadata")
    else:
        text = json.dumps({"drySha": moved.git("rev-parse", "main")})
        moved.git("notes", "--ref=hydrator.metadata", "add", "-f", "-m", text, moved.head or "")
    moved.git("checkout", "-q", "-b", "feature", "main~1")
    with pytest.raises(Permanent, match="is older than"):
        moved.reconcile(3)
    moved.commit(API, hour=3)
    with pytest.raises(Permanent, match=r"it is on branch main"):
        moved.reconcile(3)
    moved.git("checkout", "-q", "main")
    moved.commit(API, hour=4)
    assert (list_findings(moved.reconcile(4)), read_last(moved)[1]) == ([], "main")


# Rewritten branches


def test_a_branch_that_was_rewritten_is_planned_with_a_warning(moved: Fleet) -> None:
    moved.git("reset", "-q", "--hard", "main~1")
    moved.commit(API, hour=3)
    message = find_message(moved.reconcile(3), "source-diverged")
    assert message.endswith("(no branch is known to have it, as after a force-push): it is taken back")
    assert moved.where(WEB) == ["ash"]


@pytest.mark.parametrize("branch", [None, "main"], ids=["by default", "named"])
def test_a_branch_without_the_commits_of_the_origin_is_refused(moved: Fleet, tmp_path: Path, branch: str | None) -> None:
    """As in a clone with commits of its own that lacks those which another clone has pushed and reconciled. That `--branch` names the
    branch that is reconciled anyway says nothing."""
    moved.git("clone", "-q", "--bare", ".", str(tmp_path / "remote.git"))
    moved.git("remote", "add", "origin", str(tmp_path / "remote.git"))
    moved.git("reset", "-q", "--hard", "main~1")
    moved.commit(API, hour=3)
    with pytest.raises(Permanent, match=r"\(it is on origin/main\): .*pass --allow-older$"):
        moved.reconcile(3, branch=branch)
    moved.git("fetch", "-q", "origin")
    execute("branch", "-m", "main", "gone", at=tmp_path / "remote.git")
    moved.git("remote", "set-url", "origin", str(tmp_path / "absent.git"))
    with pytest.raises(Permanent, match=r"\(it is on origin/main\)"):  # as of the last fetch
        moved.reconcile(3, branch=branch)


def test_only_some_branches_are_searched(moved: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_order, "MAX_BRANCHES", 1)
    moved.git("branch", "-q", "a-first-branch", "main~2")
    moved.git("branch", "-q", "other", "main")
    moved.git("reset", "-q", "--hard", "main~1")
    moved.commit(API, hour=3)
    assert "no branch is known to have it" in find_message(moved.reconcile(3), "source-diverged")


# Several outputs


def test_outputs_in_directories_of_one_branch_have_an_order_each(fleet: Fleet) -> None:
    fleet.commit(FIRST)
    for name in ("prod", "test"):
        fleet.git("checkout", "-q", "-b", name, "main")
        for hour in (1, 2):
            fleet.commit({f"apps/{name}.yaml": deployment(name, hour)}, hour=hour)
            assert list_findings(fleet.reconcile(hour, output_path=name)) == []
    fleet.git("checkout", "-q", "prod")
    fleet.commit(API, hour=3)
    assert list_findings(fleet.reconcile(3, output_path="prod")) == []
    assert [read_last(fleet, f"placements:{name}")[1] for name in ("prod", "test")] == ["prod", "test"]
    assert load_note(fleet)["operatorOutputs"] == ["placements:prod", "placements:test"]
    fleet.git("checkout", "-q", "--detach", "test~1")
    with pytest.raises(Permanent, match="reconciled last for branch test"):
        fleet.reconcile(4, output_path="test")
    fleet.git("checkout", "-q", "test")
    assert list_findings(fleet.reconcile(4, output_path="test")) == []


def test_branches_with_an_output_branch_each_do_not_meet(moved: Fleet) -> None:
    moved.git("checkout", "-q", "-b", "feature", "main~1")
    for hour in (3, 4):
        moved.commit({"README.md": f"{hour}\n"}, hour=hour)
        assert list_findings(moved.reconcile(hour, output_branch="preview")) == []
    assert read_last(moved, "preview")[1] == "feature"
    moved.git("checkout", "-q", "main")
    assert (list_findings(moved.reconcile(5)), read_last(moved)[1]) == ([], "main")


# Clones without history, as in CI


@pytest.fixture
def remote(moved: Fleet, tmp_path: Path) -> Path:
    """A remote with the source and the output."""
    path = tmp_path / "remote.git"
    moved.git("clone", "-q", "--bare", ".", str(path))
    execute("config", "uploadpack.allowAnySHA1InWant", "true", at=path)
    execute("config", "uploadpack.allowFilter", "true", at=path)
    execute("fetch", "-q", str(moved.path), "refs/notes/*:refs/notes/*", at=path)
    moved.git("remote", "add", "origin", path.as_uri())
    return path


def check_out(remote: Path, into: Path, commit: str, branch: str = "") -> Fleet:
    """Return a clone with one commit, as a job of CI has it: of a branch, else with a detached HEAD."""
    clone = Fleet(into, into.parent / "cache")
    clone.git("remote", "add", "origin", remote.as_uri())
    clone.git("fetch", "-q", "--depth=1", "origin", f"+{commit}:refs/remotes/origin/{branch or 'pull/1/merge'}")
    clone.git("checkout", "-q", *(["-B", branch] if branch else ["--detach"]), commit)
    return clone


@pytest.mark.parametrize("branch", ["main", ""], ids=["of the branch", "with a detached HEAD"])
def test_a_job_that_was_started_again_is_refused(moved: Fleet, remote: Path, tmp_path: Path, branch: str) -> None:
    before = execute("for-each-ref", at=remote)
    with pytest.raises(Permanent, match=r"^commit [0-9a-f]+.* is older than"):
        check_out(remote, tmp_path / "job", moved.git("rev-parse", "main~2"), branch).reconcile(3, push="origin")
    assert execute("for-each-ref", at=remote) == before


@pytest.mark.parametrize("branch", ["main", ""], ids=["of the branch", "with a detached HEAD"])
def test_a_job_that_has_one_commit_fetches_the_commits_between(moved: Fleet, remote: Path, tmp_path: Path, branch: str) -> None:
    for number in range(3):
        moved.commit({"README.md": f"{number}\n"}, hour=4 + number)
    moved.git("push", "-q", "origin", "main")
    job = check_out(remote, tmp_path / "job", moved.git("rev-parse", "main"), branch)
    assert list_findings(job.reconcile(7, push="origin")) == []
    assert job.git("rev-list", "--count", "HEAD") == "1", "the clone stays as it is"


def test_a_job_for_another_branch_is_refused(moved: Fleet, remote: Path, tmp_path: Path) -> None:
    moved.git("checkout", "-q", "-b", "feature", "main~1")
    moved.commit(API, hour=3)
    moved.git("push", "-q", "origin", "feature")
    feature = moved.git("rev-parse", "feature")
    with pytest.raises(Permanent, match=r"of branch feature does not have .* \(it is on origin/main\)"):
        check_out(remote, tmp_path / "job", feature, "feature").reconcile(3, push="origin")


def test_jobs_of_a_branch_that_was_pushed_by_force(moved: Fleet, remote: Path, tmp_path: Path) -> None:
    """The job of the new commit goes on, and that of the old one, started again, does not."""
    old = moved.git("rev-parse", "main")
    moved.git("reset", "-q", "--hard", "main~1")
    moved.commit(API, hour=3)
    moved.git("push", "-q", "--force", "origin", "main")
    job = check_out(remote, tmp_path / "new", moved.git("rev-parse", "main"), "main")
    assert list_findings(job.reconcile(3, push="origin")) == [("warning", "source-diverged")]
    with pytest.raises(Permanent, match=r"\(it is on origin/main\)"):
        check_out(remote, tmp_path / "old", old, "main").reconcile(4, push="origin")


def test_a_job_for_a_branch_that_was_renamed_goes_on(moved: Fleet, remote: Path, tmp_path: Path) -> None:
    moved.commit({"README.md": "third\n"}, hour=3)
    moved.git("push", "-q", "origin", "main:trunk")
    execute("branch", "-q", "-D", "main", at=remote)
    job = check_out(remote, tmp_path / "job", moved.git("rev-parse", "main"), "trunk")
    assert list_findings(job.reconcile(3, push="origin")) == []


def test_a_job_that_a_later_one_overtakes_is_refused(moved: Fleet, remote: Path, tmp_path: Path) -> None:
    """The later one commits while the earlier one pushes."""
    moved.commit(API, hour=3)
    moved.git("push", "-q", "origin", "main")
    earlier = check_out(remote, tmp_path / "earlier", moved.git("rev-parse", "main"), "main")
    moved.commit({"policy.yaml": policy("ash")}, hour=4)
    moved.git("push", "-q", "origin", "main")
    later = check_out(remote, tmp_path / "later", moved.git("rev-parse", "main"), "main")
    done = start_race(remote, list_arguments(later, 4, "text"), earlier, 4, "text", tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "is older than" in done.stderr
    trailers = execute("log", "-1", "--format=%(trailers:key=Gitsched-Source,valueonly)", "placements", at=remote)
    assert trailers.strip() == later.git("rev-parse", "HEAD")


@pytest.fixture
def cut_off(moved: Fleet, remote: Path, tmp_path: Path) -> tuple[Fleet, Path]:
    """A job that has one commit, two after that of the last run, and no remote; and the repository of the output."""
    for hour in (3, 4):
        moved.commit({"README.md": f"{hour}\n"}, hour=hour)
    moved.git("push", "-q", "origin", "main")
    job = check_out(remote, tmp_path / "job", moved.git("rev-parse", "main"), "main")
    output = tmp_path / "output.git"
    execute("clone", "-q", "--bare", "--single-branch", "-b", "placements", str(remote), str(output), at=remote)
    execute("fetch", "-q", str(remote), "refs/notes/*:refs/notes/*", at=output)
    job.git("remote", "remove", "origin")
    return job, output


def test_where_the_remote_sends_no_history_the_order_is_not_known(cut_off: tuple[Fleet, Path]) -> None:
    job, output = cut_off
    assert list_findings(job.reconcile(4, output=str(output))) == [("info", "source-order-unknown")]


def test_a_service_goes_on_with_the_next_commit_that_follows(moved: Fleet, remote: Path) -> None:
    service = Reconciler(moved.settings(3, location=remote.as_uri(), cache=moved.cache / "service"))
    assert list_findings(service.run(moved.settings(3).now)) == []
    last = moved.git("rev-parse", "main")
    execute("update-ref", "refs/heads/main", moved.git("rev-parse", "main~2"), at=remote)
    with pytest.raises(Permanent, match="is older than"):
        service.run(moved.settings(4).now)
    execute("update-ref", "refs/heads/main", last, at=remote)
    moved.commit({"apps/web.yaml": deployment("web", 3)}, hour=5)
    moved.git("push", "-q", "origin", "main")
    assert service.run(moved.settings(5).now).after is not None
