"""A machine whose caches have no state of the last plan, or that of an earlier run, does not plan everything again and again."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest

from gitsched.reconcile import Reconciler, RunResult
from gitsched.reconcile.incremental import new_state
from gitsched.reconcile.output import output_commit
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.reconcile.run_settings import RunSettings
from tests.scenarios.conftest import LOCAL_SERVERS, Fleet, at_hour, cluster, deployment, policy
from tests.scenarios.plain_histories import PlainHistory
from tests.scenarios.test_incremental_comparison import write_reports
from tests.scenarios.test_incremental_plan import differs, summarize

pytestmark = pytest.mark.usefixtures("bugs_are_raised")

FIRST, OTHER, LOOKING = "first", "other", "looking"
"""Names of machines, each with a cache directory of its own."""


@pytest.fixture(autouse=True)
def treat_small_fleets_as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_state, "MIN_WORKLOADS", 0)
    monkeypatch.setattr(output_commit, "MIN_KEYED_ROWS", 0)


class Machines:
    """Machines that reconcile one branch, each with its own caches, and one without caches that reconciles another branch."""

    def __init__(self, fleet: Fleet, where: Path) -> None:
        self.fleet, self._where, self._steps = fleet, where, 0

    def settings(self, machine: str, hour: float, branch: str = "placements", **more: Any) -> RunSettings:
        return self.fleet.settings(hour, cache=self._where / machine, output_branch=branch, **more)

    def run(self, machine: str, hour: float) -> RunResult:
        """Run on one machine, and compare with a complete run."""
        self._steps += 1
        own, whole = self.settings(machine, hour), self.settings(f"none-{self._steps}", hour, "complete")
        found, expected = (Reconciler(settings).run(settings.now) for settings in (own, whole))
        assert not differs(summarize(found), summarize(expected)), f"hour {hour}"
        heads = {self.fleet.git("rev-parse", f"refs/heads/{branch}") for branch in ("placements", "complete")}
        assert len(heads) == 1, f"hour {hour}"
        return found


@pytest.fixture
def machines(fleet: Fleet, tmp_path: Path) -> Machines:
    """Two machines that have reconciled a fleet."""
    found = Machines(fleet, tmp_path)
    fleet.commit(
        {f"apps/{name}.yaml": deployment(name) for name in ("web", "cache", "mail")}
        | {"policy.yaml": policy("first,second"), "clusters.yaml": f"{cluster('first')}---\n{cluster('second')}"}
    )
    for machine in (FIRST, OTHER):
        found.run(machine, 0)
    return found


def test_a_run_continues_what_other_machines_have_reconciled(fleet: Fleet, tmp_path: Path) -> None:
    history, machines = PlainHistory(Random(4), lenient=True), Machines(fleet, tmp_path)
    fleet.commit(history.files)
    for machine in (FIRST, OTHER):
        machines.run(machine, 0)
    for hour, kind in enumerate(("edit", "policy", "cluster"), start=1):
        fleet.commit(history.go_on(kind), hour=hour)
        assert not machines.run((FIRST, OTHER)[hour % 2], hour).plan.complete, kind


def test_a_command_that_looks_makes_a_state_that_later_ones_continue(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet, base = machines.fleet, machines.fleet.git("rev-parse", "HEAD")
    head = fleet.commit({"policy.yaml": policy("second")}, hour=1)

    def compare() -> None:
        settings = machines.settings(LOOKING, 1, revision=head, trusted=False)
        found, whole = compare_plans(settings, base), compare_plans(settings, base, complete=True)
        assert not found.run.plan.complete
        assert write_reports(found) == write_reports(whole)

    compare()
    monkeypatch.setattr(new_state, "make_state", None)  # nothing needs a complete plan from here on
    compare()
    fleet.commit({"policy.yaml": policy("first,second"), "apps/web.yaml": deployment("web", 3)}, hour=1)
    machines.run(FIRST, 1)
    compare()


def edit_by_hand(fleet: Fleet) -> None:
    index = {"GIT_INDEX_FILE": str(fleet.path.parent / "index")}
    date = {"GIT_AUTHOR_DATE": "1772442000 +0000", "GIT_COMMITTER_DATE": "1772442000 +0000"}
    for branch in ("placements", "complete"):
        fleet.git("read-tree", branch, environment=index)
        path = next(path for path in sorted(fleet.files(branch)) if path.startswith("clusters/first/") and "web" in path)
        fleet.git("rm", "-q", "--cached", path, environment=index)
        tree = fleet.git("write-tree", environment=index)
        fleet.git(
            "update-ref", f"refs/heads/{branch}", fleet.git("commit-tree", tree, "-p", branch, "-m", "Edit", environment=date)
        )


def test_a_state_that_leads_to_another_output_does_not_count(machines: Machines) -> None:
    machines.fleet.commit({"apps/web.yaml": deployment("web", 3)}, hour=1)
    machines.run(OTHER, 1)
    edit_by_hand(machines.fleet)
    assert machines.run(FIRST, 2).plan.complete, "the output branch has not what a run would write"
    assert not machines.run(FIRST, 3).plan.complete


def test_a_job_with_the_cache_of_an_earlier_job_needs_no_history(fleet: Fleet, tmp_path: Path) -> None:
    server, clone = tmp_path / "server.git", tmp_path / "job"
    fleet.commit({"apps/web.yaml": deployment("web"), "policy.yaml": policy("first"), "cluster.yaml": cluster("first")})
    fleet.git("clone", "-q", "--bare", str(fleet.path), str(server))

    def run(machine: str, replicas: int) -> RunResult:
        fleet.commit({"apps/web.yaml": deployment("web", replicas)}, hour=replicas)
        fleet.git("push", "-q", str(server), "HEAD:main")
        shutil.rmtree(clone, ignore_errors=True)
        fleet.git("clone", "-q", "--depth=1", f"file://{server}", str(clone))
        settings = RunSettings(at_hour(replicas), tmp_path / machine, str(clone), push="origin", **LOCAL_SERVERS)
        return Reconciler(settings).run(settings.now)

    assert run(FIRST, 2).plan.complete
    assert run(OTHER, 3).plan.complete
    assert run(OTHER, 4).after
    continued = run(FIRST, 5)
    assert not continued.plan.complete
    assert [move.after for move in continued.plan.moves] == [{"first": 5}]
