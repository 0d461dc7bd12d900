"""What plans and explanations say about a WorkloadRebalancer: what it moves, what it leaves where it is, and why."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

import gitsched
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.reconcile.review.explanation import explain_resource
from gitsched.report.explanation import serialize_explanation, write_explanation
from gitsched.report.text import write_plan
from tests.scenarios.conftest import Fleet, cluster, deployment, policy
from tests.scenarios.test_rebalancer import RECORD, WEB, make_rebalancer

DOWN = {"clusters/first.yaml": cluster("first", "power:NoExecute")}
UP = {"clusters/first.yaml": cluster("first")}


@pytest.fixture
def displaced(pair: Fleet) -> Fleet:
    """`web` runs on the second cluster; the first has failed at hour 1 and has a taint."""
    pair.reconcile()
    pair.commit(DOWN, hour=1)
    pair.reconcile(1.5)
    assert pair.where(WEB) == ["second"]
    return pair


def list_messages(run: Any, code: str) -> list[str]:
    return [finding.message for finding in run.plan.findings if finding.code == code]


def test_a_rebalancer_merged_while_the_cluster_is_tainted_says_that_it_moves_nothing_and_why(displaced: Fleet) -> None:
    displaced.commit({"demo.yaml": make_rebalancer("web")}, hour=2)
    (message,) = list_messages(displaced.preview(2), "rebalance-without-effect")
    assert message.startswith(
        "WorkloadRebalancer demo does not move apps/v1 Deployment default web: group group-0: cluster first: "
    )
    assert "`gitsched rebalance`" in message
    displaced.reconcile(2)
    assert displaced.load(RECORD)["status"]["observedWorkloads"][0]["result"] == "Successful", "as Karmada reports it"
    assert message in displaced.load(RECORD)["metadata"]["annotations"]["gitsched.io/remarks"]
    assert list_messages(displaced.preview(2.5), "rebalance-without-effect") == [message], "until its file is removed"
    assert json.loads(displaced.read("gitsched.json"))["findings"], "the output branch records it"


def test_a_plan_does_not_advise_to_write_a_rebalancer_that_exists(displaced: Fleet) -> None:
    displaced.commit({"demo.yaml": make_rebalancer("web")}, hour=2)
    displaced.reconcile(2)
    displaced.commit(UP, hour=3)
    (stay,) = compare_plans(displaced.settings(3)).review.retained
    assert stay.remedy == (
        "WorkloadRebalancer demo has been handled and will not act again: a new WorkloadRebalancer, under another name or from "
        "`gitsched rebalance -n default Deployment/web`, brings it there; "
        "so does spec.karmada.failback: {AfterStabilization: 10m} in gitsched.yaml, when the earlier group could run it for that time"
    )
    displaced.reconcile(3)
    displaced.commit({"demo.yaml": make_rebalancer("web").replace("name: demo", "name: again")}, hour=4)
    displaced.reconcile(4)
    assert displaced.where(WEB) == ["first"]


def test_a_later_creation_time_in_the_document_is_another_request(displaced: Fleet) -> None:
    displaced.commit({"demo.yaml": make_rebalancer("web")}, hour=2)
    displaced.reconcile(2)
    dated = make_rebalancer("web").replace("name: demo", "name: demo\n  creationTimestamp: 2026-03-02T11:30:00Z")
    displaced.commit({**UP, "demo.yaml": dated}, hour=4)
    displaced.reconcile(4)
    assert displaced.where(WEB) == ["first"]
    record = displaced.load(RECORD)
    assert str(record["metadata"]["creationTimestamp"]) == "2026-03-02T11:30:00Z"
    assert "gitsched.io/remarks" not in record["metadata"]["annotations"]


def test_uncommitted_changes_are_planned_with_the_moves_that_follow_their_commit(displaced: Fleet) -> None:
    displaced.write({**UP, "demo.yaml": make_rebalancer("web")})
    (planned,) = displaced.preview(3, worktree=True).plan.moves
    (compared,) = compare_plans(displaced.settings(3, worktree=True), "HEAD").review.moves
    displaced.commit(hour=3)
    (made,) = displaced.reconcile(3).plan.moves
    assert (
        (planned.before, planned.after)
        == (compared.before, compared.after)
        == (made.before, made.after)
        == ({"second": 2}, {"first": 2})
    )


def test_a_clean_worktree_is_planned_like_its_commit(displaced: Fleet) -> None:
    committed, clean = displaced.preview(9), displaced.preview(9, worktree=True)
    assert (committed.tree, committed.plan.time) == (clean.tree, clean.plan.time)


def test_a_rebalancer_in_the_second_of_the_last_run_takes_effect(displaced: Fleet) -> None:
    displaced.commit({**UP, "web.yaml": deployment("other")}, hour=3)
    displaced.reconcile(3)
    displaced.commit(
        {"demo.yaml": make_rebalancer("web")}, hour=1
    )  # a commit that was made before the deadline and pushed after it
    displaced.reconcile(3)
    assert displaced.where(WEB) == ["first"]


def test_a_target_scheduled_after_the_date_stays_and_the_plan_says_why(displaced: Fleet) -> None:
    dated = make_rebalancer("web").replace("name: demo", "name: demo\n  creationTimestamp: 2026-03-02T08:30:00Z")
    displaced.commit({**UP, "demo.yaml": dated}, hour=3)
    shown = " ".join(write_plan(compare_plans(displaced.settings(3)).review, 200).split())
    assert "was created at 2026-03-02T08:30:00Z, but apps/v1 Deployment default web was scheduled later" in shown
    assert "it is not rescheduled and stays where it is" in shown
    displaced.reconcile(3)
    assert displaced.where(WEB) == ["second"]


def explain(fleet: Fleet, hour: float, **more: Any) -> str:
    """Return the explanation without its columns."""
    found = explain_resource(fleet.settings(hour, **more), "WorkloadRebalancer", "default", "demo")
    return " ".join(write_explanation(found, 300).split())  # type: ignore[arg-type]


def test_explain_names_each_target_its_result_and_its_effect(displaced: Fleet) -> None:
    displaced.write({**UP, "demo.yaml": make_rebalancer("web", "ghost", ttl=3600)})
    before = explain(displaced, 3, worktree=True)
    assert "apps/v1 Deployment default web pending second 2 moves to first 2" in before
    assert "apps/v1 Deployment default ghost pending none: it has no binding" in before
    displaced.commit(hour=3)
    displaced.reconcile(3)
    after = explain(displaced, 3.5)
    assert "Created at 2026-03-02T11:00:00Z. It has finished at 2026-03-02T11:00:00Z" in after
    assert "It expires at 2026-03-02T12:00:00Z." in after
    assert "Successful first 2 none any more; another request would not move it" in after
    assert "Failed: ReferencedBindingNotFound" in after
    displaced.commit(DOWN, hour=5)
    displaced.reconcile(5)
    displaced.commit(UP, hour=6)
    assert "second 2 none any more; another request would move it to first 2" in explain(displaced, 6)
    assert "no policy selects it" not in explain(displaced, 6)


def test_explain_as_data_has_a_row_for_each_target(displaced: Fleet) -> None:
    displaced.commit({"demo.yaml": make_rebalancer("web")}, hour=2)
    found = explain_resource(displaced.settings(2), "workloadrebalancer", "default", "demo")
    (table,) = serialize_explanation(found)["tables"]  # type: ignore[arg-type]
    (row,) = table["rows"]
    assert (row["Workload"], row["Result"], row["Runs on"]) == ("apps/v1 Deployment default web", "pending", "second 2")
    assert row["Effect"].startswith("none: group group-0: ")


def test_an_undated_rebalancer_acts_in_the_python_api() -> None:
    """Without `now`, the documents and the result of the last call may have no time at all."""
    documents = [yaml.safe_load(text) for text in (cluster("first", "power:NoExecute"), cluster("second"), deployment("web"))]
    documents.append(yaml.safe_load(policy("first", "second")))
    before = gitsched.schedule(documents)
    recovered = [yaml.safe_load(cluster("first")), *documents[1:]]
    request = yaml.safe_load(make_rebalancer("web"))
    for now in (None, datetime(1970, 1, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC)):
        after = gitsched.schedule([*recovered, request], previous=before.documents, now=now)
        (binding,) = (body for body in after.documents if body["kind"] == "ResourceBinding")
        assert binding["spec"]["clusters"] == [{"name": "first", "replicas": 2}]
        again = gitsched.schedule([*recovered, request], previous=after.documents, now=now)
        assert again.documents == after.documents, "it acts once"


def test_a_policy_that_is_lazy_is_rebalanced_with_the_placement_of_its_binding(fleet: Fleet) -> None:
    lazy = "  activationPreference: Lazy\n"
    files = {"1.yaml": cluster("first"), "2.yaml": cluster("second"), "3.yaml": cluster("third"), "web.yaml": deployment("web")}
    fleet.commit({**files, "policy.yaml": policy("first", "second", more=lazy)})
    fleet.reconcile()
    fleet.commit({"1.yaml": cluster("first", "power:NoExecute")}, hour=1)
    fleet.reconcile(1.5)
    fleet.commit({"1.yaml": cluster("first"), "policy.yaml": policy("third", more=lazy)}, hour=2)
    fleet.reconcile(2)
    assert fleet.where(WEB) == ["second"]
    fleet.commit({"demo.yaml": make_rebalancer("web")}, hour=3)
    fleet.reconcile(3)
    assert fleet.where(WEB) == ["first"], "the placement of the binding, not that of the changed policy"
    fleet.commit({"demo.yaml": make_rebalancer("web").replace("name: demo", "name: again")}, hour=4)
    (message,) = list_messages(fleet.preview(4), "rebalance-without-effect")
    assert "its policy is Lazy" in message


def test_a_target_that_is_defined_twice_waits_and_one_with_an_earlier_valid_version_does_not(displaced: Fleet) -> None:
    twice, broken = {"again.yaml": deployment("web", 3)}, policy("first", "second").replace("resourceSelectors", "selectors")
    displaced.commit({**UP, **twice, "demo.yaml": make_rebalancer("web")}, hour=2)
    displaced.reconcile(2)
    assert "result" not in displaced.load(RECORD)["status"]["observedWorkloads"][0]
    assert "pending second 2 none yet: its document is not valid and unique" in explain(displaced, 2.5)
    displaced.commit({"again.yaml": None, "policies/all.yaml": broken}, hour=3)
    displaced.reconcile(3)
    assert displaced.load(RECORD)["status"]["observedWorkloads"][0]["result"] == "Successful"
    assert displaced.where(WEB) == ["first"], "the invalid policy counts with its last valid version"
