"""`explain` and `tree` of a workload that was removed say so, and where its history is."""

from __future__ import annotations

import pytest

from gitsched.model.errors import Permanent
from gitsched.model.fleet_tree import WorkloadTree
from gitsched.reconcile.output import removed_documents
from gitsched.reconcile.review import removed_workloads
from gitsched.reconcile.review.explanation import explain_resource
from gitsched.reconcile.review.fleet_tree import read_fleet_tree
from tests.scenarios.conftest import Fleet, cluster, deployment, policy

FILES = {"one.yaml": cluster("one"), "web.yaml": deployment("web"), "policy.yaml": policy("one", name="web")}


@pytest.fixture
def removed(fleet: Fleet) -> Fleet:
    fleet.commit({**FILES, "api.yaml": deployment("api")})
    fleet.reconcile(0)
    fleet.commit({"web.yaml": None}, hour=1)
    fleet.reconcile(1)
    fleet.commit({"api.yaml": deployment("api", 3)}, hour=2)
    fleet.reconcile(2)
    return fleet


def explain(fleet: Fleet, kind: str, namespace: str | None, name: str) -> str:
    answers = set()
    for read in (explain_resource, read_fleet_tree):
        with pytest.raises(Permanent) as error:
            read(fleet.settings(3), kind, namespace, name)
        answers.add(str(error.value))
    (answer,) = answers
    return answer


@pytest.mark.parametrize(
    ("kind", "namespace"), [("", None), ("default", None), ("Deployment", None), ("", "default"), ("deployment", "default")]
)
def test_a_removed_workload_is_gone_since_an_output_commit(kind: str, namespace: str | None, removed: Fleet) -> None:
    commit = removed.git("rev-parse", "placements~1")[:10]
    assert explain(removed, kind, namespace, "web") == (
        f"deployment/default/web is gone: output commit {commit} removed it (2026-03-02T09:00:00Z); "
        "`gitsched history deployment/default/web` shows why"
    )


def test_a_removal_that_no_run_has_carried_out_is_reported(removed: Fleet) -> None:
    removed.commit({"api.yaml": None}, hour=3)
    with pytest.raises(Permanent, match=r"^there is no workload and no cluster 'api' in namespace default"):
        explain_resource(removed.settings(3), "default", None, "api")
    tree = read_fleet_tree(removed.settings(3), "default", None, "api")
    assert isinstance(tree, WorkloadTree)
    assert (tree.workload.clusters, tree.reason) == ({"one": 3}, "removed from the source")


def test_other_names_of_a_namespace_are_no_kinds(removed: Fleet) -> None:
    assert (
        explain(removed, "default", None, "apo")
        == "there is no workload and no cluster 'apo' in namespace default; did you mean api?"
    )


def test_only_recent_commits_are_searched(removed: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removed_workloads, "MAX_COMMITS", 1)
    assert "is gone" not in explain(removed, "Deployment", "default", "web")


@pytest.mark.parametrize(("limit", "most"), [("MAX_COMMITS", 2), ("MAX_FILES", 3)])
def test_a_bounded_search_names_the_commit_that_removed_a_cluster(
    limit: str, most: int, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.commit({**FILES, "two.yaml": cluster("two")})
    fleet.reconcile(0)
    fleet.commit({"moved.yaml": cluster("one"), "one.yaml": None}, hour=0.5)
    fleet.commit({"moved.yaml": None}, hour=1)
    fleet.commit({"api.yaml": deployment("api"), "web.yaml": deployment("web", 3)}, hour=2)
    answers = []
    for value in (most, most - 1):
        monkeypatch.setattr(removed_documents, limit, value)
        with pytest.raises(Permanent) as error:
            explain_resource(fleet.settings(3), "cluster", None, "one")
        answers.append(str(error.value))
    assert [": git revert " in answer for answer in answers] == [True, False]
    assert all("cluster one has no document any more" in answer for answer in answers)
