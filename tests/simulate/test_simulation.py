"""`gitsched simulate` with one event."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
import yaml

from gitsched.reconcile.incremental import new_state
from tests.scenarios.conftest import policy
from tests.simulate.conftest import OFF, SHOP, WEIGHTED, Fleet, Simulate, cluster, deployment, divide, effects, replicas_by_cluster


def test_workloads_of_lost_clusters_move_and_unplaced_ones_have_a_reason(shop: Fleet, simulate: Simulate) -> None:
    found = simulate("--lose", "w1", "--lose", "w2", "-o", "json")
    assert found["lost"] == ["w1", "w2"]
    result = effects(found)
    assert replicas_by_cluster(result["cart"]["after"]) == {"e1": 4}
    assert (result["pay"]["short"], result["pay"]["homeless"]) == (3, True)
    assert "did not match the placement cluster affinity" in result["pay"]["why"]
    assert (found["homeless"], found["short"]) == (1, 3)


COPIES = {
    **{f"clusters/{name}.yaml": cluster(name) for name in ("one", "two", "three")},
    "apps/half.yaml": deployment("half", 4),
    "apps/third.yaml": deployment("third", 1),
    "apps/limits.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: limits, namespace: default}\n",
    "policies/half.yaml": divide("half", "clusterNames: [one, two]", "{replicaSchedulingType: Duplicated}"),
    "policies/third.yaml": divide("third", "labelSelector: {}", "{replicaSchedulingType: Duplicated}"),
    "policies/limits.yaml": policy("one, two, three", name="limits", kind="ConfigMap"),
}
REDUCED = "Deployment default/half runs on with 4 of 8 replicas.\nDeployment default/third runs on with 2 of 3 replicas.\n"


@pytest.fixture
def copies(fleet: Fleet) -> Fleet:
    """Workloads of which each cluster has an equal copy, reconciled."""
    fleet.commit(COPIES)
    fleet.reconcile()
    return fleet


@pytest.mark.parametrize("how", ["--lose", "--drain"])
def test_each_workload_with_fewer_copies_says_with_how_many_replicas_it_runs_on(
    copies: Fleet, simulate: Simulate, how: str
) -> None:
    text, found, page = (simulate(how, "two", *form) for form in ((), ("-o", "json"), ("-o", "html")))
    assert "3 of 3 workloads change clusters or replicas, 2 workloads run on with fewer replicas.\n" in text
    assert REDUCED in text
    assert "1 workload loses one of several copies: ConfigMap default/limits.\n" in text
    reduced = {name: effect["reduced"] for name, effect in effects(found).items()}
    assert reduced == {"half": {"running": 4, "of": 8}, "third": {"running": 2, "of": 3}, "limits": None}
    assert found["reduced"] == 2
    row = '<th scope="row">Deployment default/half</th><td data-label="Stops in">two 4</td>'
    assert f'{row}<td data-label="What remains">runs on with 4 of 8 replicas</td>' in page
    tables = [base64.b64decode(text).decode() for text in re.findall(r'href="data:text/csv;charset=utf-8;base64,([^"]+)"', page)]
    assert any("Deployment default/half,two 4,runs on with 4 of 8 replicas," in table for table in tables)


def test_a_plan_says_of_a_drain_what_its_simulation_says(copies: Fleet, simulate: Simulate, plan: Simulate) -> None:
    simulated = simulate("--drain", "two")
    drained = COPIES["clusters/two.yaml"] + "  taints: [{key: gitsched.io/drain, effect: NoExecute}]\n"
    copies.commit({"clusters/two.yaml": drained}, hour=1)
    sentence = REDUCED.partition(".\n")[0]
    assert sentence in simulated
    assert sentence in plan()


def test_replicas_that_the_source_no_longer_requests_are_not_missed(copies: Fleet, simulate: Simulate) -> None:
    assert "no replica is missing" in simulate("--scale", "half=0.5")
    assert "Deployment default/half runs on with 2 of 4 replicas.\n" in simulate("--scale", "half=0.5", "--lose", "two")


def test_the_answer_says_that_no_replica_is_missing_only_where_none_is(shop: Fleet, simulate: Simulate) -> None:
    assert "no replica is missing" not in simulate("--lose", "e2")
    assert "no replica is missing" not in simulate("--lose", "w1", "--lose", "w2")
    assert simulate("--add-like", "e2=e3").startswith(
        "If cluster e3 is added, like e2: 1 of 3 workloads changes clusters or replicas, 2 replicas start, no replica is missing."
    )


def test_a_manifest_without_replicas_counts_as_none_as_in_a_tree(fleet: Fleet, simulate: Simulate) -> None:
    """The sentence is the sum of the rows."""
    job = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: job, namespace: default}\nspec: {schedule: '@daily'}\n"
    jobs = policy("one", "two", name="job", kind="CronJob").replace("apps/v1, kind: C", "batch/v1, kind: C")
    clusters = {"one.yaml": cluster("one"), "two.yaml": cluster("two")}
    fleet.commit({**clusters, "web.yaml": deployment("web", 3), "p.yaml": policy("one", "two"), "job.yaml": job, "q.yaml": jobs})
    fleet.reconcile()
    text = simulate("--lose", "one")
    assert text.startswith(
        "If cluster one is lost: 2 of 2 workloads change clusters or replicas, 3 replicas start, no replica is missing."
    )
    rows = [line for line in text.splitlines() if line.startswith(("CronJob", "Deployment"))]
    assert [row.split("  ")[-1].strip() for row in rows] == ["two", "two +3"]


def test_the_reason_of_an_unplaced_workload_counts_the_lost_clusters(shop: Fleet, simulate: Simulate) -> None:
    why = effects(simulate("--lose", "w1", "--lose", "w2", "-o", "json"))["pay"]["why"]
    assert why == ("0/4 clusters are available: 2 lost, 2 cluster(s) did not match the placement cluster affinity constraint.")


def test_a_workload_that_stays_bound_to_an_unreachable_cluster_stops_there(shop: Fleet, simulate: Simulate) -> None:
    text = simulate("--lose", "w1", "--lose", "w2", "--lost", "silent")
    assert "its workloads stay there" in text
    assert "REMOVED" not in text
    assert "STOPS IN" in text


def test_html_begins_with_the_answer_and_says_how_much_of_it_is_shown(fleet: Fleet, simulate: Simulate) -> None:
    names = [f"c{number}" for number in range(6)]
    fleet.commit(
        {
            **{f"clusters/{name}.yaml": cluster(name, pods=1) for name in names},
            **{f"apps/w{number}.yaml": deployment(f"w{number}", 1) for number in range(6)},
            **{f"policies/w{number}.yaml": divide(f"w{number}", f"clusterNames: [c{number}]") for number in range(6)},
        }
    )
    fleet.reconcile()
    page = simulate("--sweep", "pairs", "-o", "html")
    assert (
        "<h1>Losing any two of 6 clusters (6 workloads), 15 losses: 15 losses leave replicas missing or workloads unplaced, 0 do not.</h1>"
        in page
    )
    assert ">The worst losses, 10 of 15</h2>" in page
    assert ">The most affected workloads</h2>" in page
    assert page.index("</table>") < page.index("Save as")


def test_a_simulation_changes_no_file_and_no_ref(shop: Fleet, simulate: Simulate) -> None:
    before = shop.git("for-each-ref")
    simulate("--sweep", "clusters")
    simulate("--lose", "region/west", "--scale", "cart=3", "--add-like", "e1=e9")
    assert (shop.git("for-each-ref"), shop.git("status", "--porcelain")) == (before, "")


def test_a_cluster_in_several_zones_survives_the_loss_of_one_of_them(shop: Fleet, simulate: Simulate) -> None:
    found = simulate("--lose", "zone/ea", "-o", "json")
    assert (found["lost"], found["partlyLost"]) == (["e1"], ["e2"])
    both = simulate("--lose", "zone/ea", "--lose", "zone/eb", "-o", "json")
    assert (both["lost"], both["partlyLost"]) == (["e1", "e2"], [])


def test_a_drained_cluster_keeps_workloads_that_tolerate_all_taints(fleet: Fleet, simulate: Simulate) -> None:
    tolerant = SHOP["policies/pay.yaml"].replace(
        "    replicaScheduling", "    clusterTolerations: [{operator: Exists}]\n    replicaScheduling"
    )
    fleet.commit(SHOP | {"policies/pay.yaml": tolerant})
    fleet.reconcile()
    drained = effects(simulate("--drain", "w1", "--drain", "w2", "-o", "json"))
    assert (drained.keys() & {"cart", "pay"}, replicas_by_cluster(drained["cart"]["after"])) == ({"cart"}, {"e1": 4})
    assert "pay" in effects(simulate("--lose", "w1", "--lose", "w2", "-o", "json"))


def test_a_limited_toleration_has_expired_when_a_cluster_is_drained(fleet: Fleet, simulate: Simulate) -> None:
    patient = "    clusterTolerations: [{operator: Exists, effect: NoExecute, tolerationSeconds: 300}]\n    replicaScheduling"
    fleet.commit(SHOP | {"policies/pay.yaml": SHOP["policies/pay.yaml"].replace("    replicaScheduling", patient)})
    fleet.reconcile()
    assert replicas_by_cluster(effects(simulate("--drain", "w1", "-o", "json"))["pay"]["after"]) == {"w2": 3}


def test_replicas_that_exceed_the_free_capacity_wait(fleet: Fleet, simulate: Simulate) -> None:
    """Each workload alone fits on w2, but not both. Where they share capacity, as in a run, the second one is not placed."""
    files = {
        "clusters/w1.yaml": cluster("w1", pods=50),
        "clusters/w2.yaml": cluster("w2", pods=5),
        **{f"apps/{name}.yaml": deployment(name, 4) for name in ("a", "b")},
        **{f"policies/{name}.yaml": divide(name, "clusterNames: [w1, w2]") for name in ("a", "b")},
    }
    fleet.commit(files)
    fleet.reconcile()
    shared = simulate("--lose", "w1", "-o", "json")
    assert {name: effect["short"] for name, effect in effects(shared).items()} == {"a": 0, "b": 4}
    assert (shared["waiting"], shared["short"]) == (0, 4)
    fleet.commit({"gitsched.yaml": OFF})
    fleet.reconcile()
    found = simulate("--lose", "w1", "-o", "json")
    waiting = {name: effect["waiting"] for name, effect in effects(found).items()}
    assert (waiting, found["waiting"], found["short"]) == ({"a": 0, "b": 3}, 3, 0)
    assert found["full"] == [{"cluster": "w2", "sent": 8, "waiting": 3, "resource": "pods"}]
    assert "w2 receives 8 more replicas but has capacity for 5 of them: not enough pods." in simulate("--lose", "w1")


def test_a_workload_that_stops_is_not_counted_as_running_on(fleet: Fleet, simulate: Simulate) -> None:
    """It keeps the cluster to which it moves, in which none of its replicas has room."""
    files = {
        "gitsched.yaml": OFF,
        "clusters/w1.yaml": cluster("w1", pods=50),
        "clusters/w2.yaml": cluster("w2", pods=5),
        **{f"apps/{name}.yaml": deployment(name, 4) for name in ("a", "b", "c")},
        **{f"policies/{name}.yaml": divide(name, "clusterNames: [w1, w2]") for name in ("a", "b", "c")},
    }
    fleet.commit(files)
    fleet.reconcile()
    text, page, found = (simulate("--lose", "w1", *form) for form in ((), ("-o", "html"), ("-o", "json")))
    assert {name: effect["reduced"] for name, effect in effects(found).items()} == {
        "a": None,
        "b": {"running": 1, "of": 4},
        "c": {"running": 0, "of": 4},
    }
    headline = "7 replicas exceed the free capacity, 1 workload stops, 1 workload runs on with fewer replicas"
    assert headline in " ".join(text.split())
    assert headline in page
    assert "Deployment default/c stops: it has 0 replicas instead of 4." in text


def test_resource_requests_count_in_addition_to_pods(fleet: Fleet, simulate: Simulate) -> None:
    pod = "{containers: [{name: c, image: c, resources: {requests: {cpu: 300m}}}]}"
    container = "  template: {metadata: {labels: {app: %s}}, spec: " + pod + "}\n"
    files = {
        "gitsched.yaml": OFF,
        "clusters/w1.yaml": cluster("w1", pods=50),
        "clusters/w2.yaml": cluster("w2", pods=50, cpu=1),
        **{f"apps/{name}.yaml": deployment(name, 2) + container % name for name in ("a", "b")},
        **{f"policies/{name}.yaml": divide(name, "clusterNames: [w1, w2]") for name in ("a", "b")},
    }
    fleet.commit(files)
    fleet.reconcile()
    assert simulate("--lose", "w1", "-o", "json")["full"] == [{"cluster": "w2", "sent": 4, "waiting": 1, "resource": "cpu"}]


def test_a_whole_set_uses_what_all_of_its_workloads_request(fleet: Fleet, simulate: Simulate) -> None:
    """Each set has 3 pods: w2 has room for one of them."""
    bundle = "apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {name: %s, namespace: default}\nspec: {path: sets/%s}\n"
    files = {
        "gitsched.yaml": OFF,
        "clusters/w1.yaml": cluster("w1", pods=50),
        "clusters/w2.yaml": cluster("w2", pods=5),
        **{f"sets/{name}/web.yaml": deployment(f"{name}-web", 2) for name in ("a", "b")},
        **{f"sets/{name}/db.yaml": deployment(f"{name}-db", 1) for name in ("a", "b")},
        **{f"bundles/{name}.yaml": bundle % (name, name) for name in ("a", "b")},
        **{
            f"policies/{name}.yaml": divide(name, "clusterNames: [w1, w2]").replace(
                "apps/v1, kind: Deployment", "gitsched.io/v1alpha1, kind: Bundle"
            )
            for name in ("a", "b")
        },
    }
    fleet.commit(files)
    fleet.reconcile()
    found = simulate("--lose", "w1", "-o", "json")
    assert found["full"] == [{"cluster": "w2", "sent": 2, "waiting": 1, "resource": "pods"}]
    described = simulate("--lose", "w1")
    assert "w2 receives 2 more replicas but has capacity for 1 of them: not enough pods." in described


def test_a_cluster_of_unknown_capacity_is_assumed_sufficient_and_named(fleet: Fleet, simulate: Simulate) -> None:
    fleet.commit(SHOP | {"clusters/w2.yaml": cluster("w2", zone="wb")})
    fleet.reconcile()
    assert "Free capacity unknown, assumed to be sufficient: w2." in simulate("--lose", "w1")


@pytest.mark.parametrize(
    ("pattern", "grown"),
    [
        ("cart=1.5", {"cart": 6}),
        ("default/*=2", {"cart": 8, "pay": 6, "site": 4}),
        ("deploy/default/p?y=2", {"pay": 6}),
        ("app=cart=0", {"cart": 0}),
        ("cart=0.3", {"cart": 2}),
    ],
)
def test_workloads_grow_by_a_factor_rounded_up(fleet: Fleet, simulate: Simulate, pattern: str, grown: dict[str, int]) -> None:
    labelled = deployment("cart", 4).replace("metadata:\n", "metadata:\n  labels: {app: cart}\n")
    fleet.commit(SHOP | {"apps/cart.yaml": labelled})
    fleet.reconcile()
    result = effects(simulate("--scale", pattern, "-o", "json"))
    assert {name: effect["replicas"] for name, effect in result.items()} == grown
    assert (
        sum(count or 0 for count in replicas_by_cluster(result["cart"]["after"]).values()) == grown["cart"]
        if "cart" in grown
        else True
    )


def test_growth_beyond_the_capacity_of_all_clusters_leaves_unplaced_replicas(fleet: Fleet, simulate: Simulate) -> None:
    fleet.commit(SHOP | {"policies/pay.yaml": divide("pay", "clusterNames: [w1, w2]")})
    fleet.reconcile()
    found = simulate("--scale", "pay=100", "-o", "json")
    result = effects(found)["pay"]
    assert (result["replicas"], result["short"], found["short"]) == (300, 297, 297)
    assert "not enough" in result["why"]


def test_static_weights_ignore_capacity_and_excess_replicas_wait(shop: Fleet, simulate: Simulate) -> None:
    found = simulate("--scale", "pay=100", "-o", "json")
    assert (found["short"], found["waiting"], [cluster["cluster"] for cluster in found["full"]]) == (0, 297 - 91, ["w1", "w2"])


def test_an_added_cluster_receives_unplaced_workloads(fleet: Fleet, simulate: Simulate) -> None:
    fleet.commit(SHOP | {"policies/pay.yaml": divide("pay", "labelSelector: {matchLabels: {tier: gold}}", WEIGHTED)})
    fleet.reconcile()
    new = cluster("w3", pods=9).replace("  name: w3\n", "  name: w3\n  labels: {tier: gold}\n")
    fleet.write({"new.txt": new})
    result = effects(simulate("--add", str(fleet.path / "new.txt"), "-o", "json"))["pay"]
    assert (result["shortBefore"], result["short"], replicas_by_cluster(result["after"])) == (3, 0, {"w3": 3})


def test_a_copy_of_a_full_cluster_is_empty(fleet: Fleet, simulate: Simulate) -> None:
    full = yaml.safe_load(cluster("w1", pods=4))
    full["status"]["resourceSummary"]["allocated"] = {"pods": "4"}
    files = SHOP | {
        "clusters/w1.yaml": yaml.safe_dump(full),
        "policies/cart.yaml": divide("cart", "fieldSelector: {matchExpressions: [{key: region, operator: In, values: [west]}]}"),
    }
    fleet.commit(files)
    fleet.reconcile()
    found = effects(simulate("--add-like", "w1=w9", "--lose", "w2", "-o", "json"))
    assert replicas_by_cluster(found["cart"]["after"]) == {"w9": 4}


def test_a_quarantined_workload_on_a_lost_cluster_is_unplaced(shop: Fleet, simulate: Simulate) -> None:
    shop.commit({"apps/again.yaml": f"{SHOP['apps/pay.yaml']}  paused: true\n"}, hour=1)
    result = effects(simulate("--lose", "region/west", "-o", "json"))["pay"]
    assert (result["homeless"], result["why"]) == (True, "its document is broken or defined more than once, so it is not scheduled")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "use either an event"),
        (("--lose", "w1", "--sweep", "zones"), 2, "use either an event"),
        (("--lose", "moon"), 1, "there is no cluster 'moon'; there are: e1, e2, w1, w2"),
        (("--lose", "ee1"), 1, "there is no cluster 'ee1'; did you mean e1?"),
        (("--lose", "ea"), 1, "there is no cluster 'ea'; did you mean zone/ea?"),
        (("--lose", "zone=ea"), 1, "there is no cluster 'zone=ea'; did you mean zone/ea?"),
        (("--lose", "region=west"), 1, "there is no cluster 'region=west'; did you mean region/west?"),
        (("--lose", "zone/west"), 1, "there is no zone 'west'; did you mean region/west?"),
        (("--lose", "provider/moon"), 1, "there is no provider 'moon'; there are: own"),
        (("--lose", "planet/mars"), 2, "'planet/mars' is not a cluster or one of"),
        (("--scale", "cart"), 2, "is not of the form WORKLOADS=FACTOR"),
        (("--scale", "cart=1e9"), 2, "is not of the form WORKLOADS=FACTOR"),
        (("--scale", "missing=2"), 1, "no workload with replicas is selected by 'missing'"),
        (("--add-like", "w1"), 2, "is not of the form CLUSTER=NEW"),
        (("--add-like", "w1=w2"), 1, "there is a cluster 'w2' already"),
        (("--add-like", "moon=w9"), 1, "there is no cluster 'moon' to copy"),
        (("--add", "nothing.yaml"), 2, "cannot read nothing.yaml"),
        (("--lose", "w1", "--against", "main"), 2, "--against requires --sweep"),
    ],
)
def test_invalid_arguments_are_refused_in_one_line(
    shop: Fleet, simulate: Simulate, arguments: tuple[str, ...], code: int, message: str
) -> None:
    result = simulate(*arguments, code=code)
    assert message in result
    assert "Traceback" not in result


def test_an_added_document_must_be_a_valid_cluster(shop: Fleet, simulate: Simulate) -> None:
    shop.write({"new.txt": deployment("x")})
    assert "is not a cluster, so it cannot be added" in simulate("--add", str(shop.path / "new.txt"), code=1)
    shop.write({"new.txt": cluster("w3").replace("syncMode: Push", "syncMode: Sometimes")})
    assert "the added Cluster w3 is not valid" in simulate("--add", str(shop.path / "new.txt"), code=1)


def test_fail_on_short_sets_the_exit_code(shop: Fleet, simulate: Simulate) -> None:
    simulate("--lose", "e2", "--fail-on", "short")
    simulate("--lose", "region/west", "--fail-on", "short", code=1)


TAINTING = """\
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterTaintPolicy
metadata: {name: leave}
spec:
  targetClusters: {}
  addOnConditions: [{conditionType: Ready, operator: NotIn, statusValues: ['True']}]
  removeOnConditions: [{conditionType: Ready, operator: In, statusValues: ['True']}]
  taints: [{key: dead, effect: NoExecute}]
"""
ALLOWED = (
    "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: c}\nspec: {karmada: {allowNoExecuteTaintPolicy: true}}\n"
)


def test_an_unreachable_cluster_keeps_its_workloads_unless_a_policy_evicts_them(shop: Fleet, simulate: Simulate) -> None:
    found = simulate("--lose", "w1", "--lost", "silent", "-o", "json")
    result = effects(found)["pay"]
    assert result["short"] == 2
    assert result["why"].startswith("Cluster w1 is not ready but its workloads stay there: its condition Ready is Unknown")
    assert "set spec.karmada.failover: cluster" in result["why"]
    assert "cluster w1 does not answer" in found["event"]
    shop.commit({"policies/leave.yaml": TAINTING, "gitsched.yaml": ALLOWED}, hour=1)
    shop.reconcile(1)
    result = effects(simulate("--lose", "w1", "--lost", "silent", "-o", "json"))["pay"]
    assert (result["short"], replicas_by_cluster(result["after"])) == (0, {"w2": 3})


def test_with_failover_an_unreachable_cluster_loses_its_workloads(shop: Fleet, simulate: Simulate) -> None:
    shop.commit({"gitsched.yaml": ALLOWED.replace("allowNoExecuteTaintPolicy: true", "failover: cluster")}, hour=1)
    shop.reconcile(1)
    result = effects(simulate("--lose", "w1", "--lost", "silent", "-o", "json"))["pay"]
    assert (result["short"], replicas_by_cluster(result["after"])) == (0, {"w2": 3})


def test_a_lost_backup_group_returns_workloads_only_with_failback(fleet: Fleet, simulate: Simulate) -> None:
    taint = "  taints: [{key: down, effect: NoExecute}]\n"
    files = {"web.yaml": deployment("web"), "policy.yaml": policy("w1", "w2"), "w2.yaml": cluster("w2")}
    fleet.commit({**files, "w1.yaml": cluster("w1") + taint})
    fleet.reconcile()
    fleet.commit({"w1.yaml": cluster("w1")}, hour=0.5)
    fleet.reconcile(0.5)
    lost = effects(simulate("--lose", "w2", "-o", "json"))["web"]
    assert (lost["homeless"], lost["after"]) == (True, [])
    assert "affinity group group-0 can run it" in lost["why"]
    assert "set spec.karmada.failback: WhenUnschedulable" in lost["why"]
    fleet.commit({"gitsched.yaml": ALLOWED.replace("allowNoExecuteTaintPolicy: true", "failback: WhenUnschedulable")}, hour=1)
    returned = effects(simulate("--lose", "w2", "-o", "json"))["web"]
    assert (returned["homeless"], replicas_by_cluster(returned["after"])) == (False, {"w1": 2})


def test_all_losses_of_unreachable_clusters_show_which_workloads_need_a_policy(shop: Fleet, simulate: Simulate) -> None:
    gone = simulate("--sweep", "clusters", "-o", "json")
    silent = simulate("--sweep", "clusters", "--lost", "silent", "-o", "json")
    assert [sum(row["short"] for row in table["losses"]) for table in (gone, silent)] == [0, 7]


def test_timers_beyond_the_limit_are_noted(shop: Fleet, simulate: Simulate, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.commit({"gitsched.yaml": ALLOWED.replace("allowNoExecuteTaintPolicy: true", "failover: cluster")}, hour=1)
    assert "further timers" not in simulate("--lose", "w1", "--lost", "silent")
    monkeypatch.setattr("gitsched.simulate.baseline._MAX_TIMER_ROUNDS", 1)
    for event in ("--lose=w1", "--sweep=clusters"):
        assert "Not simulated: further timers" in simulate(event, "--lost", "silent")


WITHHELD = {
    **{f"clusters/{name}.yaml": cluster(name) for name in ("one", "two", "three")},
    **{f"apps/{name}.yaml": deployment(name, 4) for name in ("kept", "gone", "other")},
    "policies/kept.yaml": divide("kept", "clusterNames: [one, two]", WEIGHTED),
    "policies/gone.yaml": divide("gone", "clusterNames: [one]", WEIGHTED),
    "policies/other.yaml": divide("other", "clusterNames: [one, three]", WEIGHTED),
}


@pytest.mark.parametrize("state", [(), ("--state", "off", "--cache-dir", "other")], ids=["from the state", "completely"])
def test_workloads_with_withheld_changes_lose_what_they_have(
    fleet: Fleet, simulate: Simulate, state: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One would go to no cluster and one is removed, but a freeze withholds both, so that they run where they are."""
    monkeypatch.chdir(tmp_path)
    fleet.commit(WITHHELD)
    fleet.reconcile()
    nowhere = divide("kept", "clusterNames: [nowhere]", WEIGHTED)
    frozen = OFF.replace("spec: {", "spec: {guard: {freeze: Holidays}, ")
    fleet.commit({"apps/gone.yaml": None, "policies/kept.yaml": nowhere, "gitsched.yaml": frozen}, hour=1)
    assert len(fleet.reconcile(1).plan.withheld.moves) == 2
    found = simulate("--lose", "one", "-o", "json", *state)
    result = effects(found)
    assert found["workloads"] == 3
    assert {name: (effect["short"], replicas_by_cluster(effect["after"])) for name, effect in result.items()} == {
        "kept": (2, {"two": 2}),
        "gone": (4, {}),
        "other": (0, {"three": 4}),
    }
    assert result["kept"]["why"].startswith("its change is withheld")
    for lost in (("one", "two"), ("one", "three"), ("two", "three")):
        both = simulate("--lose", lost[0], "--lose", lost[1], "-o", "json", *state)
        pairs = simulate("--sweep", "pairs", "-o", "json", *state)["losses"]
        [pair] = [row for row in pairs if sorted(row["lost"]) == sorted(lost)]
        assert [pair[name] for name in ("homeless", "short")] == [both[name] for name in ("homeless", "short")], lost


def test_last_copies_of_an_unplaced_workload_are_lost_with_their_cluster(fleet: Fleet, simulate: Simulate) -> None:
    fleet.commit(WITHHELD)
    fleet.reconcile()
    fleet.commit({"policies/kept.yaml": divide("kept", "clusterNames: [nowhere]", WEIGHTED)}, hour=1)
    assert len(fleet.reconcile(1).plan.retained) == 2
    assert replicas_by_cluster(effects(simulate("--lose", "one", "-o", "json"))["kept"]["after"]) == {"two": 2}


def test_a_group_of_workloads_names_what_each_cluster_loses_and_gains(fleet: Fleet, simulate: Simulate) -> None:
    """Also where workloads grow in clusters that they have; a page lists each of them."""
    names = [f"app-{number:02}" for number in range(12)]
    fleet.commit(
        {
            "gitsched.yaml": OFF,
            **{f"clusters/{name}.yaml": cluster(name) for name in ("one", "two", "three")},
            **{f"apps/{name}.yaml": deployment(name, 6) for name in names},
            **{f"policies/{name}.yaml": divide(name, "clusterNames: [one, two, three]", WEIGHTED) for name in names},
        }
    )
    fleet.reconcile()
    [row] = [line for line in simulate("--lose", "one").splitlines() if line.startswith("12 workloads: ")]
    assert re.split(" {2,}", row)[1:] == ["one 24", "three +12, two +12"]
    page = simulate("--lose", "one", "-o", "html")
    assert all(f'<th scope="row">Deployment default/{name}</th>' in page for name in names)


DYNAMIC = (
    "{replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}"
)
TILE = re.compile(r'<li class="tile ([^"]+)" title="([^"]+)">')


def list_tiles(html: str, side: str) -> dict[str, tuple[set[str], str]]:
    """Return the styles and the text of each cluster on one side of the map, by name."""
    part = html.split(f"<h3>{side}</h3>")[1].split("<h3>")[0].split("</section>")[0]
    return {title.partition(": ")[0]: (set(styles.split()), title.partition(": ")[2]) for styles, title in TILE.findall(part)}


@pytest.mark.parametrize("has_state", [True, False], ids=["continued", "planned-anew"])
def test_the_html_shows_each_cluster_before_and_after_an_event(
    copies: Fleet, simulate: Simulate, tmp_path: Path, has_state: bool
) -> None:
    cache = [] if has_state else ["--cache-dir", str(tmp_path / "empty")]
    page = simulate("--lose", "two", "--add-like", "three=four", "-o", "html", *cache)
    before, after = list_tiles(page, "Before"), list_tiles(page, "After")
    assert before.keys() == {"one", "two", "three"}
    assert after.keys() == {"one", "two", "three", "four"}
    assert before["two"][1] == "100 %, lost after the event"
    assert after["two"] == ({"load-0", "vacant", "bad"}, "lost, before 100 %, had 3 workloads, 5 replicas")
    assert after["four"] == ({"load-0", "gains"}, "20 %, added, +1 workload, +1 replica")
    assert after["one"][1] == "100 %"
    assert page.index("What lacks most") < page.index("Deployment default/half runs on with 4 of 8 replicas") < page.index("Map of")
    assert "html" not in simulate("--lose", "two", "-o", "markdown")


@pytest.mark.parametrize("observed", ["", "2026-01-01T00:00:00Z"], ids=["observed-at-an-unknown-time", "observed-before"])
@pytest.mark.parametrize("has_state", [True, False], ids=["continued", "planned-anew"])
def test_the_map_of_a_simulation_has_the_requested_share_where_the_capacity_is_known(
    fleet: Fleet, simulate: Simulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_state: bool, observed: str
) -> None:
    """Workloads that were placed before and after the facts were observed count once, and what an event starts is added."""
    noted = "metadata:\n" + (f'  annotations: {{gitsched.io/observed-at: "{observed}"}}\n' if observed else "")
    fleet.commit(
        {
            "clusters/one.yaml": cluster("one", pods=10).replace("metadata:\n", noted),
            "clusters/two.yaml": cluster("two", pods=5).replace("metadata:\n", noted),
            "clusters/far.yaml": cluster("far"),
            "apps/web.yaml": deployment("web", 4),
            "policies/web.yaml": divide("web", "clusterNames: [one, two]", DYNAMIC),
        }
    )
    fleet.reconcile()
    monkeypatch.setattr(new_state, "MIN_WORKLOADS", 0 if has_state else 1_000)
    page = simulate("--lose", "one", "-o", "html", "--cache-dir", str(tmp_path / "empty"))
    before, after = list_tiles(page, "Before"), list_tiles(page, "After")
    assert (before["two"][1], after["two"][1]) == ("20 %", "80 %, before 20 %, +3 replicas")
    assert after["two"][0] == {"load-3", "gains"}
    assert after["far"] == ({"load-none"}, "load not known")


def test_the_html_names_all_that_stop_before_those_that_run_on(fleet: Fleet, simulate: Simulate) -> None:
    names = [f"app-{number:02}" for number in range(9)]
    fleet.commit(
        {
            "clusters/one.yaml": cluster("one", pods=100),
            "clusters/two.yaml": cluster("two", pods=1),
            **{f"apps/{name}.yaml": deployment(name, 2) for name in (*names, "half")},
            **{f"policies/{name}.yaml": divide(name, "clusterNames: [one]") for name in names},
            "policies/half.yaml": divide("half", "clusterNames: [one, two]", WEIGHTED),
        }
    )
    fleet.reconcile()
    page = simulate("--lose", "one", "-o", "html")
    listed = page.split("What lacks most")[1].split("</ul>")[0]
    assert re.findall(r"default/(\S+) becomes unplaced", listed) == names
    losses = simulate("--sweep", "clusters")
    assert "Deployment default/app-00: unplaced, and 9 more workloads" in losses


def test_the_headline_of_the_html_names_the_condition_of_a_loss(fleet: Fleet, simulate: Simulate) -> None:
    fleet.commit(
        {
            "gitsched.yaml": OFF,
            **{f"clusters/{name}.yaml": cluster(name) for name in ("one", "two")},
            "apps/web.yaml": deployment("web", 4),
            "policies/web.yaml": divide("web", "clusterNames: [one, two]", WEIGHTED),
        }
    )
    evicted, kept = (
        re.findall("<h1>(.*)</h1>", simulate(*words, "--lose", "one", "-o", "html")) for words in ((), ("--lost", "silent"))
    )
    assert evicted[0].startswith("If cluster one is lost, and workloads are evicted from the lost cluster as in a drain: 1 of 1")
    assert kept[0].startswith("If cluster one does not answer: ")


def test_the_html_of_single_losses_has_a_tile_for_each(copies: Fleet, simulate: Simulate) -> None:
    page = simulate("--sweep", "clusters", "-o", "html")
    assert "Map of the losses" in page
    assert {name for _, title in TILE.findall(page) for name in [title.partition(": ")[0]]} == {"one", "two", "three"}
