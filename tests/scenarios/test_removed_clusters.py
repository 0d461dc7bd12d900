"""A cluster whose document is removed: what `status`, `simulate` and `rebalance` say of the replicas that it had."""

from __future__ import annotations

import pytest

from gitsched.model.changes import Move
from gitsched.model.document import Key
from gitsched.model.errors import Permanent
from gitsched.model.simulation import FailureDomain
from gitsched.reconcile.reschedule import WorkloadSelection, make_reschedule_file
from gitsched.reconcile.review.explanation import explain_resource
from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.reconcile.review.source_simulation import simulate_source
from gitsched.report.fleet_status import write_fleet_status
from gitsched.report.held import describe_target
from gitsched.report.simulation import write_simulation
from gitsched.simulate.scenario import Scenario
from tests.scenarios.conftest import UNGUARDED, Fleet, cluster, deployment, policy

FILES = {
    "gitsched.yaml": UNGUARDED,
    "one.yaml": cluster("one"),
    "two.yaml": cluster("two"),
    "web.yaml": deployment("web", 4),
    "policy.yaml": policy("one,two", scheduling="Divided"),
}


@pytest.fixture
def removed(fleet: Fleet) -> Fleet:
    fleet.commit(FILES)
    fleet.reconcile(0)
    fleet.commit({"two.yaml": None}, hour=1)
    fleet.reconcile(1)
    return fleet


def simulate(fleet: Fleet, scenario: Scenario) -> str:
    return write_simulation(simulate_source(fleet.settings(0), scenario, [], lambda *_: None), 200)


def test_a_loss_says_that_it_assumes_an_eviction(fleet: Fleet) -> None:
    fleet.commit(FILES)
    fleet.reconcile(0)
    lose = (FailureDomain("cluster", "two"),)
    text = simulate(fleet, Scenario(lose=lose))
    assert "2 replicas start, no replica is missing." in text
    assert text.splitlines()[1].startswith(
        "Assumed: workloads are evicted from two, as gitsched drain does; if only its document is removed, divided replicas"
    ), "the condition comes before the effects"
    assert text.count("Assumed: ") == 1
    assert "Assumed: " not in simulate(fleet, Scenario(lose=lose, unreachable=True))


def test_replicas_of_a_removed_cluster_are_missing_and_stay_until_they_are_placed(removed: Fleet) -> None:
    lines = write_fleet_status(read_fleet_status(removed.settings(2))).splitlines()
    assert lines.pop(1).startswith("policy.yaml:")
    unknown = "1 policy names a cluster that does not exist"
    assert lines[0] == f"Needs attention: {unknown}, Deployment default/web lacks 2 of 4 replicas, 1 of 2 clusters is gone."
    commit = removed.git("rev-parse", "main").strip()[:10]
    gone = f"Cluster two has no document any more: {commit} Change (Ada Author) removed it; to get it back: git revert {commit}; "
    assert lines[1] == f"{gone}`gitsched tree two` shows what it still has"
    assert next(line for line in lines if line.startswith("two ")).split(maxsplit=3) == [
        "two",
        "Gone",
        "1",
        "it has no document any more; 1 copy stays there",
    ]
    assert lines[2].startswith(
        "Missing: Deployment default/web has 2 of 4 replicas: Deployment.apps/default/web has 2 of its 4 replicas on two"
    )
    stays = "stays until it is rescheduled, which no run does by itself: gitsched rebalance --all-displaced --write requests it"
    assert stays in lines[2]
    assert not any("[cluster-gone]" in line for line in lines), "it is named once"
    stays = "1 workload runs where it was before (Deployment default/web), until rescheduled, which no run does by itself: "
    assert any(line.startswith(stays) for line in lines)


def test_the_removal_of_the_last_clusters_is_reported_first_and_once(removed: Fleet) -> None:
    removed.commit({"one.yaml": None}, hour=2)
    removed.reconcile(2)
    text = write_fleet_status(read_fleet_status(removed.settings(3)))
    assert text.startswith(
        "Needs attention: 1 workload is unplaced, 2 of 2 clusters are gone.\nCluster one has no document any more: "
    )
    assert text.count("what it has there is not changed any more") == 1
    removed.commit({"web.yaml": None}, hour=4)
    removed.reconcile(4)
    text = write_fleet_status(read_fleet_status(removed.settings(5)))
    assert text.startswith("Needs attention: 2 of 2 clusters are gone.\n"), "nothing can be placed, although nothing is missing"


def test_a_removed_cluster_that_a_command_names_is_called_removed(removed: Fleet) -> None:
    for name, clusters in (("web", ("two",)), ("two", ())):
        with pytest.raises(Permanent, match=r"cluster two has no document any more: \w+ Change [(]Ada Author[)] removed it"):
            explain_resource(removed.settings(2), "", None, name, clusters)
    with pytest.raises(Permanent, match="there is no cluster 'three'; there are: one"):
        explain_resource(removed.settings(2), "", None, "web", ("three",))


def test_workloads_that_lack_replicas_are_displaced_if_a_request_places_these(removed: Fleet) -> None:
    found = make_reschedule_file(removed.settings(2), WorkloadSelection(displaced=True), None).file
    assert found is not None
    assert [(dict(row.before), dict(row.after)) for row in found.request.workloads] == [({"one": 2}, {"one": 4})]
    removed.commit({found.path: found.text}, hour=3)
    removed.reconcile(3)
    lines = write_fleet_status(read_fleet_status(removed.settings(3))).splitlines()
    assert lines[0].startswith("Needs attention: 1 policy names a cluster that does not exist.")
    assert make_reschedule_file(removed.settings(4), WorkloadSelection(displaced=True), None).file is None


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ({"one": 2, "two": 2}, {"one": 2}, "leaves two 2, so that 2 of 4 replicas remain"),
        ({"one": 2}, {"one": 1}, "goes to one 1, so that 1 of 2 replicas remains"),
        ({"one": 2}, {"two": 2}, "goes to two 2"),
        ({"one": 2}, {"one": 4}, "goes from one 2 to one 4"),
        ({}, {"one": 4}, "goes to one 4"),
        ({"one": None, "two": None}, {"one": None}, "leaves two"),
        ({"one": 2}, {}, "becomes unplaced"),
    ],
)
def test_a_move_says_how_many_replicas_remain(before: dict[str, int | None], after: dict[str, int | None], text: str) -> None:
    assert describe_target(Move(Key("apps", "Deployment", "default", "web"), before, after, "")) == text


def test_what_is_withheld_says_since_when(fleet: Fleet) -> None:
    names = [f"w{number}" for number in range(11)]
    guarded = {path: text for path, text in FILES.items() if path != "gitsched.yaml"}
    fleet.commit(guarded | {f"{name}.yaml": deployment(name, 4) for name in names})
    fleet.reconcile(0)
    fleet.commit({"two.yaml": None}, hour=1)
    assert fleet.reconcile(1).plan.withheld.moves
    fleet.commit({"one.yaml": cluster("one", region="south")}, hour=2)
    fleet.reconcile(2)
    lines = write_fleet_status(read_fleet_status(fleet.settings(3))).splitlines()
    assert "Withheld by the guard: 12 changes, since 2026-03-02T09:00:00Z (2h ago)." in lines
    named = "Deployment default/w0, Deployment default/w1, Deployment default/w10 and 9 more"
    assert any(line.startswith(f"  each of 12 workloads ({named}) leaves two 2, so that 2 of 4 replicas remain") for line in lines)


def test_all_clusters_that_a_commit_removed_are_named_at_once_and_no_similar_one(fleet: Fleet) -> None:
    clusters = {f"{name}.yaml": cluster(name) for name in ("euw", "use", "use-2", "usw")}
    policies = {name: policy(name, name=name).replace("Deployment", f"Deployment, name: {name}") for name in ("use", "use-2")}
    fleet.commit(clusters | {f"p-{name}.yaml": text for name, text in policies.items()} | {"empty.yaml": cluster("empty")})
    fleet.commit({"use-app.yaml": deployment("use"), "use-2-app.yaml": deployment("use-2"), "gitsched.yaml": UNGUARDED})
    fleet.reconcile(0)
    gone = {"use.yaml": None, "use-2.yaml": None, "empty.yaml": None}
    commit = fleet.commit(gone | {"README.md": "x"}, hour=1)[:10]
    planned = [finding.message for finding in fleet.preview(1).plan.findings if finding.code == "karmada-cluster-unknown"]
    had = "use, which had one: gitsched explain cluster/use says which commit removed it"
    assert [message.partition(": ")[2] for message in planned] == [had.replace("use,", "use-2,").replace("/use ", "/use-2 "), had]
    fleet.reconcile(1)
    lines = write_fleet_status(read_fleet_status(fleet.settings(2))).splitlines()
    assert "2 policies name clusters that do not exist" in lines[0] or "2 workloads are unplaced" in lines[0]
    assert "3 of 5 clusters are gone" in lines[0]
    removed = f"{commit} Change (Ada Author) removed them; to get them back: git revert {commit}; "
    text = f"Clusters empty, use, use-2 have no document any more: {removed}`gitsched tree NAME` shows what each still has"
    assert text in lines
    table = next(index for index, line in enumerate(lines) if line.startswith("CLUSTER"))
    assert [line.split()[0] for line in lines[table + 1 : table + 4]] == ["empty", "use", "use-2"], "they come first"
    with pytest.raises(Permanent, match=f"cluster use has no document any more: {commit} "):
        explain_resource(fleet.settings(2), "cluster", None, "use", ())
