"""`reconcile --verify` compares a plan that starts from the state of the last run with a complete one."""

from __future__ import annotations

import pytest

from gitsched.apis.karmada.continuation import state_continuation
from gitsched.model.finding import Finding
from gitsched.reconcile import RunResult
from gitsched.reconcile.output import output_commit
from tests.scenarios.conftest import Fleet, cluster, deployment, policy

FILES = {
    "ams.yaml": cluster("ams"),
    "bru.yaml": cluster("bru"),
    "web.yaml": deployment("web"),
    "policy.yaml": policy("ams"),
}


def list_errors(run: RunResult) -> list[Finding]:
    return [found for found in run.plan.findings if found.severity == "error"]


@pytest.fixture
def moved(fleet: Fleet) -> Fleet:
    """A fleet with a state, in which the policy of the last commit names the other cluster."""
    fleet.commit(FILES)
    fleet.reconcile(0)
    fleet.reconcile(1)
    fleet.commit({"policy.yaml": policy("bru")}, hour=2)
    return fleet


def test_a_plan_that_is_the_complete_one_is_used(moved: Fleet) -> None:
    run = moved.reconcile(2, verify=True)
    assert not run.plan.complete
    assert not list_errors(run)
    assert moved.where("default/deployment-web") == ["bru"]


def test_a_plan_that_is_not_the_complete_one_is_an_error_and_the_complete_one_is_delivered(
    moved: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_continuation, "find_affected_by_policies", lambda *_: ())
    run = moved.reconcile(2, verify=True)
    assert run.plan.complete
    (found,) = list_errors(run)
    assert found.code == "state-differs"
    assert "clusters/bru/default/deployment-web.yaml" in found.message
    assert moved.where("default/deployment-web") == ["bru"]
    again = moved.reconcile(2, verify=True)
    assert not again.plan.complete, "the state was made anew"
    assert not list_errors(again)


def test_without_the_option_the_same_plan_is_delivered_as_it_is(moved: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_continuation, "find_affected_by_policies", lambda *_: ())
    assert not list_errors(moved.reconcile(2))
    assert moved.where("default/deployment-web") == ["ams"]


def test_a_run_that_only_reads_what_the_output_branch_records_is_compared_too(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_commit, "MIN_KEYED_ROWS", 0)  # as in a large fleet
    fleet.commit(FILES)
    fleet.reconcile()
    run = fleet.reconcile(1, cache=fleet.path.parent / "empty", verify=True)
    assert not run.plan.complete
    assert run.after is None
    assert not list_errors(run)
