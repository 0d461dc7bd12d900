"""The limits of the guard come from the trusted side, and a file on the output branch freezes placements."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from gitsched.cli import cli
from gitsched.model.finding import Finding
from gitsched.reconcile import RunResult
from gitsched.reconcile.review.comparison import compare_plans

from .conftest import Fleet, at_hour, cluster, deployment, policy
from .test_guard import SETTINGS, fill, labelled, on, select, withheld

UNSELECTED = {"doomed.yaml": select("domed", "first")}
"""A mistyped label, which selects nothing."""
LOOSE = SETTINGS.format("guard: {fleet: {removed: 100, moved: 100}, namespace: {removed: 100}, cluster: {removed: 100}}")


def findings(run: RunResult, code: str) -> list[Finding]:
    return [finding for finding in run.plan.findings if finding.code == code]


def recorded(fleet: Fleet) -> Any:
    return fleet.load("gitsched.json").get("guard")


def run_command(fleet: Fleet, hour: float, *arguments: str) -> tuple[int, str]:
    options = ("--repo", str(fleet.path), "--cache-dir", str(fleet.cache), "--now", at_hour(hour).isoformat())
    result = CliRunner().invoke(cli, [*arguments, *options], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.return_value, result.output


def test_a_commit_does_not_pass_under_limits_that_it_loosens_itself(fleet: Fleet) -> None:
    fill(fleet, doomed=11, safe=5)
    fleet.commit({**UNSELECTED, "gitsched.yaml": LOOSE}, hour=1)
    for hour in (1, 2):
        run = fleet.reconcile(hour)
        assert "11 of 16 workloads would be removed from the fleet (limit: 20 %)" in withheld(run)
        assert len(on(fleet, "first")) == 11
    (finding,) = findings(run, "guard-loosened")
    assert "fleet.removed: 20 -> 100" in finding.message
    fleet.commit({"note.yaml": labelled("note", "safe")}, hour=3)
    assert withheld(fleet.reconcile(3)), "another commit does not make the limits trusted"
    fleet.reconcile(4, allowed=(run.plan.withheld.digest,))
    assert (on(fleet, "first"), recorded(fleet)["limits"]["fleet"]) == ([], {"moved": 100.0, "removed": 100.0})


def test_limits_of_an_earlier_commit_are_trusted_even_if_it_changed_nothing_else(fleet: Fleet) -> None:
    fill(fleet, doomed=11, safe=5)
    fleet.commit({"gitsched.yaml": LOOSE}, hour=1)
    run = fleet.reconcile(1)
    assert (withheld(run), len(findings(run, "guard-loosened")), run.after) == ((), 1, fleet.head)
    assert fleet.git("log", "-1", "--format=%s", "placements") == "place: the guard changed (Change)"
    fleet.commit(UNSELECTED, hour=2)
    again = fleet.reconcile(2)
    assert (withheld(again), findings(again, "guard-loosened"), on(fleet, "first")) == ((), [], [])


def test_limits_that_a_later_commit_loosens_are_meant(fleet: Fleet) -> None:
    fill(fleet, doomed=11, safe=5)
    fleet.commit(UNSELECTED, hour=1)
    assert withheld(fleet.reconcile(1))
    fleet.commit({"gitsched.yaml": LOOSE}, hour=2)
    assert (withheld(fleet.reconcile(2)), on(fleet, "first")) == ((), [])


def test_stricter_limits_count_at_once(fleet: Fleet) -> None:
    fill(fleet, doomed=8, safe=12)
    strict = SETTINGS.format("guard: {fleet: {removed: 5}, namespace: {removed: 5}}")
    fleet.commit({"gitsched.yaml": strict, "doomed/0.yaml": None, "doomed/1.yaml": None}, hour=1)
    assert "2 of 20 workloads would be removed from the fleet (limit: 5 %)" in withheld(fleet.reconcile(1))
    assert len(on(fleet, "first")) == 8


def test_a_pull_request_is_planned_under_the_limits_of_its_base(fleet: Fleet) -> None:
    fill(fleet, doomed=11, safe=5)
    base = fleet.git("rev-parse", "HEAD")
    fleet.commit({**UNSELECTED, "gitsched.yaml": LOOSE}, hour=1)
    comparison = compare_plans(fleet.settings(1, trusted=False), base)
    assert "11 of 16 workloads would be removed from the fleet (limit: 20 %)" in withheld(comparison.run)
    assert [finding.severity for finding in comparison.review.findings if finding.code == "guard-loosened"] == ["warning"]


def test_an_option_of_the_operator_takes_precedence(fleet: Fleet) -> None:
    fill(fleet, doomed=11, safe=5)
    fleet.commit(UNSELECTED, hour=1)
    limits = ("fleet.removed=100", "namespace.removed=100", "cluster.removed=100")
    options = [text for limit in limits for text in ("--guard", limit)]
    code, _ = run_command(fleet, 1, "reconcile", *options[:2])
    assert (code, len(on(fleet, "first"))) == (1, 11)
    code, _ = run_command(fleet, 1, "reconcile", *options)
    assert (code, on(fleet, "first"), recorded(fleet)) == (0, [], None)


@pytest.mark.parametrize(
    ("guard", "code", "text"),
    [
        pytest.param("{fleet: {removed: -1}}", "out-of-range", "removed", id="a negative percentage"),
        pytest.param("{fleet: {removed: 101}}", "out-of-range", "removed", id="more than everything"),
        pytest.param(
            "{namespace: {removed: 5}}", "guard-limits", "less than guard.fleet.removed (20)", id="limits that contradict"
        ),
        pytest.param("{cluster: {removed: 0}}", "guard-limits", "guard.cluster.removed is 0", id="no workload may leave a cluster"),
        pytest.param(
            "{fleet: {removed: 100, moved: 100}, namespace: {removed: 100}, cluster: {removed: 100}}",
            "guard-limits",
            "withholds no removal and no move",
            id="a guard that is off",
        ),
    ],
)
def test_limits_that_make_no_sense_are_findings(fleet: Fleet, guard: str, code: str, text: str) -> None:
    fleet.commit({"gitsched.yaml": SETTINGS.format(f"guard: {guard}"), "first.yaml": cluster("first")})
    found = [
        finding
        for finding in fleet.preview(findings_only=True).plan.findings
        if finding.location and finding.location.path == "gitsched.yaml"
    ]
    assert any(text in finding.message and finding.code in (code, "invalid-config", "wrong-type") for finding in found), found


def test_an_allowance_of_another_plan_is_a_finding(fleet: Fleet) -> None:
    fill(fleet, doomed=11, safe=5)
    assert findings(fleet.reconcile(0, allowed=("0123",)), "allowance-unused")
    fleet.commit(UNSELECTED, hour=1, message="Close\n\nGitsched-Allow: 0123456789abcdef")
    run = fleet.reconcile(1)
    (finding,) = findings(run, "allowance-unused")
    assert finding.message.startswith("0123456789abcdef allows no change of this run: withheld are " + run.plan.withheld.digest)
    assert not findings(fleet.reconcile(2, allowed=(run.plan.withheld.digest,)), "changes-withheld")


def freeze_with_git(fleet: Fleet, reason: str | None) -> None:
    """Commit or remove the file FREEZE on the output branch, as an operator does."""
    worktree = fleet.path.parent / "output"
    fleet.git("worktree", "add", "-q", str(worktree), "placements")
    if reason is None:
        fleet.git("-C", str(worktree), "rm", "-q", "FREEZE")
    else:
        (worktree / "FREEZE").write_text(reason)
        fleet.git("-C", str(worktree), "add", "FREEZE")
    fleet.git("-C", str(worktree), "commit", "-q", "-m", "Freeze")
    fleet.git("worktree", "remove", str(worktree))


def freeze_with_command(fleet: Fleet, reason: str | None) -> None:
    assert run_command(fleet, 1, "freeze", *(["--lift"] if reason is None else [reason]))[0] == 0


@pytest.mark.parametrize("freeze", [freeze_with_git, freeze_with_command], ids=["by git", "by the command"])
def test_a_file_on_the_output_branch_freezes_placements_until_it_is_removed(fleet: Fleet, freeze: Any) -> None:
    fill(fleet, doomed=2, safe=2, groups=("first", "second"))
    freeze(fleet, "the network is migrated\n")
    run = fleet.reconcile(1)
    assert (run.plan.withheld.moves, run.after) == ((), fleet.head), "README.md says so"
    assert "- placements are frozen: the network is migrated" in fleet.read("README.md")
    (finding,) = findings(run, "placements-frozen")
    assert "gitsched freeze --lift" in finding.message
    fleet.commit({"safe/0.yaml": None, "new.yaml": labelled("new", "safe")}, hour=2)
    assert fleet.preview(2).plan.withheld.freeze == "the network is migrated"
    run = fleet.reconcile(2)
    assert [move.key.name for move in run.plan.withheld.moves] == ["safe-0"]
    assert {f"clusters/second/default/deployment-{name}.yaml" for name in ("safe-0", "new")} <= fleet.files().keys()
    fleet.commit({"clusters/first.yaml": cluster("first", "power:NoExecute")}, hour=3)
    fleet.reconcile(3)
    assert "clusters/second/default/deployment-doomed-0.yaml" in fleet.files(), "failover passes"
    assert fleet.reconcile(3).changed is False
    freeze(fleet, None)
    fleet.reconcile(4)
    assert "clusters/second/default/deployment-safe-0.yaml" not in fleet.files()
    assert "frozen" not in fleet.read("README.md")
    assert recorded(fleet) is None


def test_the_command_says_what_it_did(fleet: Fleet) -> None:
    fill(fleet, doomed=1, safe=0)
    assert run_command(fleet, 1, "freeze", "maintenance")[1].startswith("Placements are frozen: maintenance (committed ")
    code, text = run_command(fleet, 1, "freeze", "maintenance", "-o", "json")
    assert (code, json.loads(text)["frozen"], json.loads(text)["commit"]) == (0, "maintenance", None)
    assert "are not frozen" in run_command(fleet, 2, "freeze", "--lift")[1]


VOLUMES = "spec: {resources: {requests: {storage: 1Gi}}, accessModes: [ReadWriteOnce]}"
CLAIM = f"  volumeClaimTemplates:\n  - metadata: {{name: data}}\n    {VOLUMES}\n"
DATABASE = deployment("db").replace("kind: Deployment", "kind: StatefulSet") + CLAIM
UNHELD = {"gitsched.yaml": SETTINGS.format("guard: {holdStateful: false}")}
DRAINED = {"clusters/first.yaml": cluster("first", "power:NoExecute")}


@pytest.fixture
def database(fleet: Fleet) -> Fleet:
    """A StatefulSet with a volume in `first`. Committed and reconciled."""
    files = {
        "db.yaml": DATABASE,
        "policy.yaml": policy("first", "second", kind="StatefulSet"),
        "gitsched.yaml": SETTINGS.format(""),
    }
    fleet.commit({**files, **{f"clusters/{name}.yaml": cluster(name) for name in ("first", "second")}})
    fleet.reconcile()
    return fleet


DB = "default/statefulset-db"


def test_a_commit_does_not_move_data_by_turning_holds_off(database: Fleet) -> None:
    database.commit({**UNHELD, **DRAINED}, hour=1)
    for hour in (1, 2):
        run = database.reconcile(hour)
        assert (database.where(DB), len(findings(run, "stateful-held"))) == (["first"], 1)
        (finding,) = findings(run, "guard-loosened")
        assert "holdStateful: true -> false" in finding.message
    assert recorded(database) == {"keepsHolds": True}
    database.commit({"note.txt": "another commit"}, hour=3)
    assert len(findings(database.reconcile(3), "stateful-held")) == 1
    database.commit(hour=4, message="Move\n\nGitsched-Release: default/db")
    run = database.reconcile(4)
    assert (database.where(DB), findings(run, "stateful-held"), recorded(database)) == (["second"], [], {"holdStateful": False})
    assert findings(database.reconcile(5), "guard-loosened") == []


def test_holds_that_an_earlier_commit_turned_off_do_not_hold(database: Fleet) -> None:
    database.commit(UNHELD, hour=1)
    assert len(findings(database.reconcile(1), "guard-loosened")) == 1
    assert recorded(database) == {"holdStateful": False}
    database.commit(DRAINED, hour=2)
    assert (findings(database.reconcile(2), "stateful-held"), database.where(DB)) == ([], ["second"])


def test_holds_that_a_later_commit_turns_off_are_meant(database: Fleet) -> None:
    database.commit(DRAINED, hour=1)
    assert len(findings(database.reconcile(1), "stateful-held")) == 1
    database.commit({**UNHELD, "web.yaml": deployment("web")}, hour=2)
    run = database.reconcile(2)
    assert (findings(run, "stateful-held"), findings(run, "guard-loosened"), database.where(DB)) == ([], [], ["second"])


def test_holds_count_at_once(database: Fleet) -> None:
    database.commit(UNHELD, hour=1)
    database.reconcile(1)
    database.commit({**DRAINED, "gitsched.yaml": SETTINGS.format("guard: {holdStateful: true}")}, hour=2)
    assert (len(findings(database.reconcile(2), "stateful-held")), database.where(DB)) == (1, ["first"])


def test_a_pull_request_is_planned_under_the_holds_of_its_base(database: Fleet) -> None:
    base = database.git("rev-parse", "HEAD")
    database.commit({**UNHELD, **DRAINED}, hour=1)
    comparison = compare_plans(database.settings(1, trusted=False), base)
    assert [finding.code for finding in comparison.review.findings if finding.code.startswith("stateful")] == ["stateful-held"]
