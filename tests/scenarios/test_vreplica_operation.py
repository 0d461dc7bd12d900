"""Normal operation of Knative's vreplicas (N1 to N3), and compaction and removal of pods."""

from __future__ import annotations

from collections.abc import Callable

import yaml

from tests.builders.knative import RENDERED, node, pods, settings, source

from .conftest import Fleet, at_hour
from .vreplicas import VreplicaFleet

HOURLY = "{refreshPeriodSeconds: 3600}"
ADAPTER_TEMPLATE = """\
  template:
    spec:
      terminationGracePeriodSeconds: 0
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - weight: 50
            podAffinityTerm:
              labelSelector: {matchLabels: {control-plane: kafkasource-mt-adapter}}
              topologyKey: topology.kubernetes.io/zone
          - weight: 50
            podAffinityTerm:
              labelSelector: {matchLabels: {control-plane: kafkasource-mt-adapter}}
              topologyKey: kubernetes.io/hostname
      containers: [{name: receive-adapter, image: adapter:v2}]
"""


def test_n1_replicas_scale_up_immediately_and_down_after_a_refresh_period(fleet: Fleet) -> None:
    events = VreplicaFleet(fleet, autoscaler=HOURLY)
    assert events.replicas == 6
    events.commit({"sources/busy.yaml": source("busy", 20)}, 0.5)
    assert events.replicas == 9, "two are pending; pods come in threes, one for each node"
    events.nodes_by_ordinal.update({6: "n0", 7: "n1", 8: "n2"})
    events.commit({"pods.yaml": pods(events.nodes_by_ordinal), "sources/busy.yaml": None}, 1)
    assert (events.placements(), events.replicas) == ({0: 2, 1: 2, 2: 2}, 9)
    assert fleet.reconcile(1.9).after is None
    fleet.reconcile(2)
    assert events.replicas == 3, "pods that hold nothing go, and the three that are left serve one node each"
    assert fleet.git("log", "-1", "--format=%ct", "placements") == str(int(at_hour(2).timestamp()))


def test_n2_a_rolling_upgrade_of_all_nodes_moves_nothing(fleet: Fleet) -> None:
    events = VreplicaFleet(fleet)
    before = events.fleet.head
    for step, (name, zone) in enumerate(events.zones.items()):
        original = dict(events.nodes_by_ordinal)
        other_node = "n2" if name != "n2" else "n0"
        events.commit({f"nodes/{name}.yaml": node(name, zone, cordoned=True)}, step + 0.1)
        events.move(step + 0.2, **{f"p{o}": None for o, node_name in original.items() if node_name == name})
        events.move(step + 0.3, **{f"p{o}": other_node for o, node_name in original.items() if node_name == name})
        events.commit({f"nodes/{name}.yaml": node(name, zone)}, step + 0.4)
        events.move(step + 0.5, **{f"p{o}": node_name for o, node_name in original.items()})
    assert events.fleet.head == before


def test_n2_an_adapter_that_is_applied_again_keeps_its_replicas_and_placements(fleet: Fleet) -> None:
    events = VreplicaFleet(fleet)
    events.commit({"sources/busy.yaml": source("busy", 20)}, 1)
    placed = events.placements(), events.placements("busy")
    upgraded = f"{events.adapter(6)}{ADAPTER_TEMPLATE}"
    events.commit({"adapter.yaml": upgraded}, 2)
    assert (events.placements(), events.placements("busy")) == placed
    assert events.findings("knative-moved") == []
    rendered = fleet.load(RENDERED)["spec"]
    assert rendered == yaml.safe_load(upgraded)["spec"] | {"replicas": 9}, "the other fields are delivered as written"


def test_n3_pending_pods_are_not_requested_again(fleet: Fleet) -> None:
    events = VreplicaFleet(fleet)
    events.commit({"sources/busy.yaml": source("busy", 30)}, 1)
    assert (sum(events.placements("busy").values()), events.replicas) == (18, 9)
    events.nodes_by_ordinal.update(dict.fromkeys((6, 7, 8)))
    events.move(2)
    assert fleet.reconcile(3).after is None
    assert events.replicas == 9, "the pods it has are Pending: asking for more would not help"
    events.move(4, p6="n0", p7="n1", p8="n2")
    assert sum(events.placements("busy").values()) == 30


def make_fleet_with_sources(fleet: Fleet, **more: str) -> VreplicaFleet:
    """Six pods, of which the last three have one vreplica each and the first three have capacity for them."""
    events = VreplicaFleet(fleet, **more)
    events.commit({"sources/full.yaml": source("full", 9)}, 0.1)
    assert (events.placements(), events.placements("full")) == (
        {0: 2, 1: 2, 2: 2},
        {0: 2, 1: 2, 2: 2, 3: 1, 4: 1, 5: 1},
    )
    events.commit({"sources/orders.yaml": source("orders", 3)}, 0.2)
    assert events.placements() == {0: 1, 1: 1, 2: 1}
    return events


def test_pods_are_emptied_after_one_refresh_period_and_removed_after_another(fleet: Fleet) -> None:
    events = make_fleet_with_sources(fleet, autoscaler=HOURLY)
    fleet.reconcile(1.1)
    assert events.marked() == set(), "the period began when the source shrank"
    run = fleet.reconcile(1.2)
    assert events.marked() == {3, 4, 5}
    assert events.placements("full") == {0: 3, 1: 3, 2: 3}
    assert events.placements() == {0: 1, 1: 1, 2: 1}, "other sources are not affected"
    assert events.replicas == 6, "make before break: the pods are still there"
    assert [f.message for f in run.plan.findings if f.code == "knative-moved"] == events.findings("knative-moved") != []
    fleet.reconcile(2.2)
    assert (events.replicas, events.marked()) == (3, set())
    assert fleet.reconcile(9).after is None, "it has come to rest"


def test_a_growing_source_removes_the_marks_of_pods(fleet: Fleet) -> None:
    events = make_fleet_with_sources(fleet, autoscaler=HOURLY)
    fleet.reconcile(1.2)
    assert events.marked() == {3, 4, 5}
    events.commit({"sources/orders.yaml": source("orders", 9)}, 1.5)
    assert (events.marked(), events.replicas) == (set(), 6)
    assert sum(events.placements().values()) == 9


def test_a_removed_mark_is_ignored_even_if_the_source_repeats_it(fleet: Fleet) -> None:
    events = make_fleet_with_sources(fleet, autoscaler=HOURLY)
    fleet.reconcile(1.2)
    events.commit({"pods.yaml": pods(events.nodes_by_ordinal, marked={3, 4, 5})}, 1.4)
    assert events.marked() == {3, 4, 5}
    events.commit({"sources/orders.yaml": source("orders", 9)}, 1.5)
    assert events.marks() == {3: False, 4: False, 5: False}
    assert sum(events.placements().values()) == 9
    before = fleet.head
    events.commit({"notes.txt": "nothing"}, 1.6)
    assert fleet.head == before, "it stays so in the next run"
    events.commit({"pods.yaml": pods(events.nodes_by_ordinal)}, 1.7)
    assert events.marks() == {}


def test_vreplicas_that_cannot_leave_a_marked_pod_stay_until_new_pods_exist(fleet: Fleet) -> None:
    events = VreplicaFleet(fleet)
    events.commit({"sources/busy.yaml": source("busy", 18)}, 1)
    events.commit({"pods.yaml": pods(events.nodes_by_ordinal, marked={2})}, 2)
    assert (events.placements()[2], events.placements("busy")[2], events.replicas) == (2, 2, 9)
    assert len(events.findings("knative-lingering")) == 2
    events.nodes_by_ordinal.update({6: "n0", 7: "n1", 8: "n2"})
    events.commit({"pods.yaml": pods(events.nodes_by_ordinal, marked={2})}, 3)
    assert 2 not in events.placements() | events.placements("busy")
    assert (
        sum(events.placements().values()),
        sum(events.placements("busy").values()),
        events.replicas,
    ) == (6, 18, 9)
    assert events.findings("knative-lingering") == []


def test_placed_and_removed_vreplicas_are_reported(fleet: Fleet) -> None:
    events = VreplicaFleet(fleet)
    assert events.findings("knative-placed") == ["placed 6 vreplicas of 1 source: shop/orders (6)"]
    events.commit({"sources/orders.yaml": source("orders", 5), "sources/more.yaml": source("more", 2)}, 1)
    assert events.findings("knative-placed") == ["placed 2 vreplicas of 1 source: shop/more (2)"]
    assert events.findings("knative-removed") == ["removed 1 vreplica of 1 source: shop/orders (1)"]


def test_nodes_and_pods_are_not_reported_as_unplaced_workloads(fleet: Fleet) -> None:
    events = VreplicaFleet(fleet)
    assert fleet.reconcile(1).plan.unclaimed == 0
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: other, namespace: shop}\nspec: {containers: [{name: web, image: web}]}\n"
    events.fleet.commit({"other.yaml": pod}, hour=2)
    assert fleet.reconcile(2).plan.unclaimed == 1


def test_a_late_run_has_the_same_placements_as_runs_on_time_and_removes_pods_later(make_fleet: Callable[[str], Fleet]) -> None:
    punctual, late = make_fleet("punctual"), make_fleet("late")
    for fleet, hours in ((punctual, (0.5, 1.2, 1.7, 2.2, 5)), (late, (5,))):
        events = make_fleet_with_sources(fleet, autoscaler=HOURLY)
        for hour in hours:
            fleet.reconcile(hour)
        assert events.placements("full") == {0: 3, 1: 3, 2: 3}
        assert events.replicas == (3 if fleet is punctual else 6), "the late run has only just committed the placements"
    assert late.reconcile(5.9).after is None
    late.reconcile(6)
    assert punctual.files().keys() == late.files().keys()
    assert punctual.read(RENDERED) == late.read(RENDERED)


def test_replicas_are_lowered_in_a_later_commit_than_the_placements(fleet: Fleet) -> None:
    """24 vreplicas shrink to 7 on six pods; the next run is much later than the refresh period."""
    events = VreplicaFleet(fleet, autoscaler="{refreshPeriodSeconds: 10}")
    events.commit({"sources/orders.yaml": source("orders", 24)}, 1)
    events.fleet.commit({"sources/orders.yaml": source("orders", 7)}, hour=2)
    fleet.reconcile(3 + 1.9 / 3600)
    assert sum(events.placements().values()) == 7
    assert events.replicas == 6, "the sources learn from this commit that they leave the pods"
    assert fleet.load("gitsched.json")["nextWakeup"] == "2026-03-02T11:00:11Z", "times are whole seconds"
    fleet.reconcile(3.5)
    replicas, used = events.replicas, max(events.placements())
    assert (replicas, replicas > used) == (3, True)


def test_replicas_are_lowered_in_a_later_commit_than_the_removal_of_a_source(fleet: Fleet) -> None:
    """A late run learns of the removal; a source that is being deleted still runs on its pods until the output commit."""
    events = VreplicaFleet(fleet, autoscaler="{refreshPeriodSeconds: 10}")
    events.commit({"sources/more.yaml": source("more", 18)}, 1)
    events.fleet.commit({"sources/orders.yaml": None, "sources/more.yaml": None}, hour=2)
    fleet.reconcile(3)
    assert not any(path.startswith("status/sources.knative.dev/") for path in fleet.files())
    assert events.replicas == 6, "the commit that removes the placements leaves the pods"
    fleet.reconcile(3.5)
    assert events.replicas == 3


def test_a_commit_that_changes_placements_does_not_lower_the_replicas_of_an_earlier_surplus(fleet: Fleet) -> None:
    events = VreplicaFleet(fleet, autoscaler=HOURLY)
    events.commit({"sources/orders.yaml": source("orders", 3)}, 1)
    events.commit({"sources/orders.yaml": source("orders", 2)}, 2.5)
    assert (sum(events.placements().values()), events.replicas) == (2, 6)
    assert fleet.reconcile(3.4).after is None
    fleet.reconcile(3.5)
    assert events.replicas == 3


def test_replace_empties_pods_immediately_and_moves_in_the_next_run(fleet: Fleet) -> None:
    events = make_fleet_with_sources(fleet)
    events.commit({"gitsched.yaml": settings(cluster="events", scaleUp="replace")}, 1)
    assert events.marked() == {3, 4, 5}
    assert events.placements("full") == {0: 2, 1: 2, 2: 2, 3: 1, 4: 1, 5: 1}
    fleet.reconcile(2)
    assert events.placements("full") == {0: 3, 1: 3, 2: 3}


def test_replace_removes_unused_pods_without_a_usable_node(fleet: Fleet) -> None:
    events = VreplicaFleet(fleet, scaleUp="replace", autoscaler="{attemptScaleDown: true}")
    cordoned = {f"nodes/{name}.yaml": node(name, zone, cordoned=True) for name, zone in events.zones.items()}
    events.commit({"sources/orders.yaml": None, "sources/idle.yaml": source("idle", 0), **cordoned}, 1)
    assert events.replicas == 0


def test_replicas_changed_in_the_source_take_precedence(fleet: Fleet) -> None:
    events = VreplicaFleet(fleet)
    events.commit({"sources/busy.yaml": source("busy", 20)}, 1)
    assert events.replicas == 9
    events.commit({"adapter.yaml": events.adapter(12)}, 2)
    assert events.replicas == 12
    events.commit({"sources/busy.yaml": None}, 3)
    assert events.replicas == 12


def test_a_source_uses_the_capacity_that_a_later_one_releases(fleet: Fleet) -> None:
    events = VreplicaFleet(fleet)
    events.commit({"sources/orders.yaml": source("orders", 24)}, 1)
    events.commit({"sources/orders.yaml": source("orders", 20), "sources/first.yaml": source("first", 4)}, 2)
    assert (sum(events.placements("first").values()), sum(events.placements().values())) == (4, 20)
    assert (events.findings("knative-pending"), events.replicas) == ([], 6)
