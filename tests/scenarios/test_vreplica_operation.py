"""Normal operation of Knative's vreplicas, N1 to N3, and how pods are emptied and taken away."""

from __future__ import annotations

from collections.abc import Callable

from .conftest import Fleet, moment
from .vreplicas import RENDERED, Stage, node, pods, settings, source

HOURLY = "{refreshPeriodSeconds: 3600}"


def test_n1_replicas_follow_the_sources_up_at_once_and_down_after_a_refresh_period(fleet: Fleet) -> None:
    stage = Stage(fleet, autoscaler=HOURLY)
    assert stage.replicas == 6
    stage.commit({"sources/busy.yaml": source("busy", 20)}, 0.5)
    assert stage.replicas == 9, "two are pending; pods come in threes, one for each node"
    stage.where.update({6: "n0", 7: "n1", 8: "n2"})
    stage.commit({"pods.yaml": pods(stage.where), "sources/busy.yaml": None}, 1)
    assert (stage.placements(), stage.replicas) == ({0: 2, 1: 2, 2: 2}, 9)
    assert fleet.reconcile(1.9).after is None
    fleet.reconcile(2)
    assert stage.replicas == 3, "pods that hold nothing go, and the three that are left serve one node each"
    assert fleet.git("log", "-1", "--format=%ct", "placements") == str(int(moment(2).timestamp()))


def test_n2_a_rolling_upgrade_of_all_nodes_moves_nothing(fleet: Fleet) -> None:
    stage = Stage(fleet)
    before = stage.fleet.head
    for step, (name, zone) in enumerate(stage.zones.items()):
        home = dict(stage.where)
        refuge = "n2" if name != "n2" else "n0"
        stage.commit({f"nodes/{name}.yaml": node(name, zone, cordoned=True)}, step + 0.1)
        stage.move(step + 0.2, **{f"p{o}": None for o, place in home.items() if place == name})
        stage.move(step + 0.3, **{f"p{o}": refuge for o, place in home.items() if place == name})
        stage.commit({f"nodes/{name}.yaml": node(name, zone)}, step + 0.4)
        stage.move(step + 0.5, **{f"p{o}": place for o, place in home.items()})
    assert stage.fleet.head == before


def test_n3_without_resources_for_new_pods_their_number_is_asked_for_once(fleet: Fleet) -> None:
    stage = Stage(fleet)
    stage.commit({"sources/busy.yaml": source("busy", 30)}, 1)
    assert (sum(stage.placements("busy").values()), stage.replicas) == (18, 9)
    stage.where.update(dict.fromkeys((6, 7, 8)))
    stage.move(2)
    assert fleet.reconcile(3).after is None
    assert stage.replicas == 9, "the pods it has are Pending: asking for more would not help"
    stage.move(4, p6="n0", p7="n1", p8="n2")
    assert sum(stage.placements("busy").values()) == 30


def crowd(fleet: Fleet, **more: str) -> Stage:
    """Six pods, of which the last three hold one vreplica each and the first three have room for them."""
    stage = Stage(fleet, **more)
    stage.commit({"sources/full.yaml": source("full", 9)}, 0.1)
    assert (stage.placements(), stage.placements("full")) == ({0: 2, 1: 2, 2: 2}, {0: 2, 1: 2, 2: 2, 3: 1, 4: 1, 5: 1})
    stage.commit({"sources/orders.yaml": source("orders", 3)}, 0.2)
    assert stage.placements() == {0: 1, 1: 1, 2: 1}
    return stage


def test_pods_are_emptied_when_the_others_had_room_for_a_refresh_period_and_go_after_another(fleet: Fleet) -> None:
    stage = crowd(fleet, autoscaler=HOURLY)
    fleet.reconcile(1.1)
    assert stage.marked() == set(), "the period began when the source shrank"
    run = fleet.reconcile(1.2)
    assert stage.marked() == {3, 4, 5}
    assert stage.placements("full") == {0: 3, 1: 3, 2: 3}
    assert stage.placements() == {0: 1, 1: 1, 2: 1}, "nobody else is touched"
    assert stage.replicas == 6, "make before break: the pods are still there"
    assert [f.message for f in run.plan.findings if f.code == "knative-moved"] == stage.findings("knative-moved") != []
    fleet.reconcile(2.2)
    assert (stage.replicas, stage.marked()) == (3, set())
    assert fleet.reconcile(9).after is None, "it has come to rest"


def test_a_source_that_grows_meanwhile_gets_the_pods_back(fleet: Fleet) -> None:
    stage = crowd(fleet, autoscaler=HOURLY)
    fleet.reconcile(1.2)
    assert stage.marked() == {3, 4, 5}
    stage.commit({"sources/orders.yaml": source("orders", 9)}, 1.5)
    assert (stage.marked(), stage.replicas) == (set(), 6)
    assert sum(stage.placements().values()) == 9


def test_a_mark_that_was_taken_back_counts_no_more_though_a_dump_repeats_it(fleet: Fleet) -> None:
    stage = crowd(fleet, autoscaler=HOURLY)
    fleet.reconcile(1.2)
    stage.commit({"pods.yaml": pods(stage.where, marked={3, 4, 5})}, 1.4)
    assert stage.marked() == {3, 4, 5}
    stage.commit({"sources/orders.yaml": source("orders", 9)}, 1.5)
    assert stage.marks() == {3: False, 4: False, 5: False}
    assert sum(stage.placements().values()) == 9
    before = fleet.head
    stage.commit({"notes.txt": "nothing"}, 1.6)
    assert fleet.head == before, "it stays so in the next run"
    stage.commit({"pods.yaml": pods(stage.where)}, 1.7)
    assert stage.marks() == {}


def test_what_cannot_leave_a_marked_pod_stays_asks_for_pods_and_goes_when_they_are_there(fleet: Fleet) -> None:
    stage = Stage(fleet)
    stage.commit({"sources/busy.yaml": source("busy", 18)}, 1)
    stage.commit({"pods.yaml": pods(stage.where, marked={2})}, 2)
    assert (stage.placements()[2], stage.placements("busy")[2], stage.replicas) == (2, 2, 9)
    assert len(stage.findings("knative-lingering")) == 2
    stage.where.update({6: "n0", 7: "n1", 8: "n2"})
    stage.commit({"pods.yaml": pods(stage.where, marked={2})}, 3)
    assert 2 not in stage.placements() | stage.placements("busy")
    assert (sum(stage.placements().values()), sum(stage.placements("busy").values()), stage.replicas) == (6, 18, 9)
    assert stage.findings("knative-lingering") == []


def test_what_gets_a_place_and_what_goes_is_counted(fleet: Fleet) -> None:
    stage = Stage(fleet)
    assert stage.findings("knative-placed") == ["placed 6 vreplicas of 1 source: shop/orders (6)"]
    stage.commit({"sources/orders.yaml": source("orders", 5), "sources/more.yaml": source("more", 2)}, 1)
    assert stage.findings("knative-placed") == ["placed 2 vreplicas of 1 source: shop/more (2)"]
    assert stage.findings("knative-removed") == ["removed 1 vreplica of 1 source: shop/orders (1)"]


def test_nodes_and_pods_are_no_forgotten_workloads(fleet: Fleet) -> None:
    stage = Stage(fleet)
    assert fleet.reconcile(1).plan.unclaimed == 0
    stage.fleet.commit({"other.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: other, namespace: shop}\n"}, hour=2)
    assert fleet.reconcile(2).plan.unclaimed == 1


def test_a_late_run_empties_pods_as_punctual_ones_did(make_fleet: Callable[[str], Fleet]) -> None:
    punctual, late = make_fleet("punctual"), make_fleet("late")
    for fleet, hours in ((punctual, (0.5, 1.2, 1.7, 2.2, 5)), (late, (5,))):
        stage = crowd(fleet, autoscaler=HOURLY)
        for hour in hours:
            fleet.reconcile(hour)
        assert stage.replicas == 3
    assert punctual.files().keys() == late.files().keys()
    assert punctual.read(RENDERED) == late.read(RENDERED)
    adapter = "status/apps/statefulset/knative-eventing/kafkasource-mt-adapter.yaml"
    assert punctual.read(adapter) == late.read(adapter)


def test_replace_empties_at_once_and_leaves_the_moving_to_the_next_run(fleet: Fleet) -> None:
    stage = crowd(fleet)
    stage.commit({"gitsched.yaml": settings(cluster="events", scaleUp="replace")}, 1)
    assert stage.marked() == {3, 4, 5}
    assert stage.placements("full") == {0: 2, 1: 2, 2: 2, 3: 1, 4: 1, 5: 1}
    fleet.reconcile(2)
    assert stage.placements("full") == {0: 3, 1: 3, 2: 3}


def test_replace_takes_away_pods_that_nobody_needs_while_no_node_can_be_used(fleet: Fleet) -> None:
    stage = Stage(fleet, scaleUp="replace", autoscaler="{attemptScaleDown: true}")
    cordoned = {f"nodes/{name}.yaml": node(name, zone, cordoned=True) for name, zone in stage.zones.items()}
    stage.commit({"sources/orders.yaml": None, "sources/idle.yaml": source("idle", 0), **cordoned}, 1)
    assert stage.replicas == 0


def test_a_count_that_somebody_writes_into_the_source_is_taken_for_what_it_says(fleet: Fleet) -> None:
    stage = Stage(fleet)
    stage.commit({"sources/busy.yaml": source("busy", 20)}, 1)
    assert stage.replicas == 9
    stage.commit({"adapter.yaml": stage.adapter(12)}, 2)
    assert stage.replicas == 12
    stage.commit({"sources/busy.yaml": None}, 3)
    assert stage.replicas == 12
