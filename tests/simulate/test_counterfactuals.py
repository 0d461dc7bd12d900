"""`gitsched explain --why-not`: the proposed change, and that it places the workload on the cluster."""

from __future__ import annotations

import pytest

from tests.simulate.conftest import WEIGHTED, Explain, Fleet, cluster, deployment, divide

REBALANCER = """\
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata: {name: now}
spec: {workloads: [{apiVersion: apps/v1, kind: Deployment, namespace: default, name: cart}]}
"""


def capacity(pods: int) -> str:
    return f"status:\n  resourceSummary:\n    allocatable: {{pods: '{pods}'}}\n"


TAINTED = cluster("w3").replace("spec:\n", "spec:\n  taints:\n  - {key: power, value: 'off', effect: NoSchedule}\n")
CORDONED = TAINTED.replace("power, value: 'off'", "cluster.karmada.io/unschedulable")
DRAINED = TAINTED.replace("  - {key: power", "  - {key: gitsched.io/drain, effect: NoExecute}\n  - {key: power")
NOT_READY = cluster("w3") + "status:\n  conditions: [{{type: Ready, status: '{}'}}]\n"
UNREACHABLE = TAINTED.replace("power, value: 'off'", "cluster.karmada.io/unreachable")
REPORTED_READY = "current facts said that it is ready, so that it had no taint"
TOLERATING = "    clusterTolerations: [{key: power, operator: Equal, value: 'off', effect: NoSchedule}]\n"
LABELS = "labelSelector: {matchExpressions: [{key: tier, operator: In, values: [gold]}, {key: old, operator: DoesNotExist}]}"
OLD = cluster("w3").replace("  name: w3\n", "  name: w3\n  labels: {old: 'yes'}\n")
NEW = cluster("w3").replace("  name: w3\n", "  name: w3\n  labels: {tier: gold}\n")
EVERY = "labelSelector: {}"
DUPLICATED = "{replicaSchedulingType: Duplicated}"
SPREAD = "    spreadConstraints: [{{spreadByField: cluster, maxGroups: {}, minGroups: 1}}]\n"
STATIC = (
    "{{replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {{staticWeightList: ["
    "{{targetCluster: {{clusterNames: [w1]}}, weight: 1}}{}]}}}}"
)
DYNAMIC = (
    "{replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}"
)
EAST = "fieldSelector: {matchExpressions: [{key: region, operator: In, values: [east]}]}"
ORDERED = divide("cart", EVERY, DUPLICATED).replace(
    "    clusterAffinity:\n      labelSelector: {}\n",
    "    clusterAffinities:\n    - {affinityName: home, clusterNames: [w1]}\n    - {affinityName: away, clusterNames: [w3]}\n",
)
SERVING = cluster("w3") + "status:\n  apiEnablements: [{groupVersion: v1, resources: [{kind: Pod, name: pods}]}]\n"
ALL = SERVING.replace(
    "{kind: Pod, name: pods}]}",
    "{kind: Pod, name: pods}]}, {groupVersion: apps/v1, resources: [{kind: Deployment, name: deployments}]}",
)
OWNED = divide("cart", EVERY, DUPLICATED).replace(
    "    clusterAffinity:\n      labelSelector: {}\n",
    "    clusterAffinities:\n    - {affinityName: private, labelSelector: {matchLabels: {ownership: private}}}\n"
    "    - {affinityName: cloud, labelSelector: {matchLabels: {ownership: cloud}}}\n",
)


def own(name: str, ownership: str) -> str:
    return cluster(name).replace(f"  name: {name}\n", f"  name: {name}\n  labels: {{ownership: {ownership}}}\n")


POLICY = "policies/cart.yaml"
LAZY = "  activationPreference: Lazy\n"
CASES = [
    pytest.param(
        {POLICY: divide("cart", "clusterNames: [w1]", DUPLICATED)},
        "clusterNames named it (policies/cart.yaml:9)",
        {POLICY: divide("cart", "clusterNames: [w1, w3]", DUPLICATED)},
        id="by name",
    ),
    pytest.param(
        {POLICY: divide("cart", "clusterNames: [w1]", DUPLICATED) + LAZY},
        "it were edited, because its policy is Lazy (apps/cart.yaml:1) and clusterNames named it (policies/cart.yaml:9)",
        {
            POLICY: divide("cart", "clusterNames: [w1, w3]", DUPLICATED) + LAZY,
            "apps/cart.yaml": deployment("cart", 4) + "  paused: false\n",
        },
        id="Lazy",
    ),
    pytest.param(
        {POLICY: divide("cart", "exclude: [w3]", DUPLICATED)},
        "exclude did not name it (policies/cart.yaml:9)",
        {POLICY: divide("cart", "exclude: []", DUPLICATED)},
        id="excluded",
    ),
    pytest.param(
        {POLICY: divide("cart", LABELS, DUPLICATED), "clusters/w3.yaml": OLD, "clusters/w1.yaml": NEW.replace("w3", "w1")},
        "it had the label tier=gold and not the label old=yes (clusters/w3.yaml:5)",
        {"clusters/w3.yaml": NEW},
        id="labels",
    ),
    pytest.param(
        {POLICY: OWNED, "clusters/w1.yaml": own("w1", "cloud"), "clusters/w3.yaml": own("w3", "privte")},
        "it had the label ownership=private, or its policy selected ownership=privte (clusters/w3.yaml:5)"
        " and a WorkloadRebalancer rescheduled it",
        {"clusters/w3.yaml": own("w3", "private"), "again.yaml": REBALANCER},
        id="misspelt label of an earlier group",
    ),
    pytest.param(
        {POLICY: OWNED, "clusters/w1.yaml": own("w1", "cloud"), "clusters/w3.yaml": own("w3", "none")},
        "it had the label ownership=private (clusters/w3.yaml:5) and a WorkloadRebalancer rescheduled it",
        {"clusters/w3.yaml": own("w3", "private"), "again.yaml": REBALANCER},
        id="earlier group without clusters",
    ),
    pytest.param(
        {POLICY: OWNED, "clusters/w1.yaml": own("w1", "cloud"), "clusters/w3.yaml": own("w3", "clod")},
        "it had the label ownership=cloud (clusters/w3.yaml:5)",
        {"clusters/w3.yaml": own("w3", "cloud")},
        id="misspelt label of the used group",
    ),
    pytest.param(
        {POLICY: divide("cart", EAST, DUPLICATED), "clusters/w1.yaml": cluster("w1", region="east")},
        "its region were east (clusters/w3.yaml:7)",
        {"clusters/w3.yaml": cluster("w3", region="east")},
        id="region",
    ),
    pytest.param(
        {POLICY: divide("cart", EVERY, DUPLICATED), "clusters/w3.yaml": TAINTED},
        "its policy tolerated power=off:NoSchedule (policies/cart.yaml:7)",
        {POLICY: divide("cart", EVERY, DUPLICATED) + TOLERATING},
        id="taint",
    ),
    pytest.param(
        {POLICY: divide("cart", EVERY, DUPLICATED), "clusters/w3.yaml": NOT_READY.format("False")},
        f"{REPORTED_READY} cluster.karmada.io/not-ready:NoSchedule (clusters/w3.yaml:1)",
        {"clusters/w3.yaml": NOT_READY.format("True")},
        id="not ready",
    ),
    pytest.param(
        {POLICY: divide("cart", EVERY, DUPLICATED), "clusters/w3.yaml": UNREACHABLE},
        f"{REPORTED_READY} cluster.karmada.io/unreachable:NoSchedule (clusters/w3.yaml:1)",
        {"clusters/w3.yaml": cluster("w3")},
        id="not observed, as stale facts have it",
    ),
    pytest.param(
        {POLICY: divide("cart", EVERY, DUPLICATED), "clusters/w3.yaml": CORDONED},
        "gitsched uncordon w3 had removed its taint cluster.karmada.io/unschedulable:NoSchedule (clusters/w3.yaml:7)",
        {"clusters/w3.yaml": cluster("w3")},
        id="cordon",
    ),
    pytest.param(
        {POLICY: divide("cart", EVERY, DUPLICATED), "clusters/w3.yaml": DRAINED},
        "gitsched uncordon w3 had removed its taint gitsched.io/drain:NoExecute (clusters/w3.yaml:7) and its policy tolerated "
        "power=off:NoSchedule (policies/cart.yaml:7)",
        {"clusters/w3.yaml": TAINTED, POLICY: divide("cart", EVERY, DUPLICATED) + TOLERATING},
        id="drain of a cluster with another taint",
    ),
    pytest.param(
        {POLICY: divide("cart", EVERY, DUPLICATED), "clusters/w3.yaml": SERVING},
        "it served Deployment of apps/v1 (clusters/w3.yaml:10)",
        {"clusters/w3.yaml": ALL},
        id="API",
    ),
    pytest.param(
        {POLICY: ORDERED},
        "no cluster of home could take it, so that it went to away (policies/cart.yaml:8)",
        {"clusters/w1.yaml": TAINTED.replace("w3", "w1").replace("NoSchedule", "NoExecute")},
        id="a later group",
    ),
    pytest.param(
        {POLICY: divide("cart", EVERY, DUPLICATED) + SPREAD.format(1)},
        "maxGroups of clusters were 2 instead of 1 (policies/cart.yaml:11)",
        {POLICY: divide("cart", EVERY, DUPLICATED) + SPREAD.format(2)},
        id="spread",
    ),
    pytest.param(
        {POLICY: divide("cart", EVERY, STATIC.format(""))},
        "its static weight there were 1 (policies/cart.yaml:10)",
        {POLICY: divide("cart", EVERY, STATIC.format(", {targetCluster: {clusterNames: [w3]}, weight: 1}"))},
        id="weight",
    ),
    pytest.param(
        {
            POLICY: divide("cart", EVERY),
            "clusters/w1.yaml": cluster("w1") + capacity(8),
            "clusters/w3.yaml": cluster("w3") + capacity(5),
        },
        "a WorkloadRebalancer rescheduled it and it had capacity for 13 replicas (allocatable: 13 pods) (clusters/w3.yaml:10)",
        {"clusters/w3.yaml": cluster("w3") + capacity(13), "again.yaml": REBALANCER},
        id="capacity",
    ),
]


@pytest.mark.parametrize(("files", "expected", "fixed"), CASES)
def test_the_proposed_change_places_the_workload_on_the_cluster(
    fleet: Fleet, explain: Explain, files: dict[str, str], expected: str, fixed: dict[str, str]
) -> None:
    base = {"clusters/w1.yaml": cluster("w1"), "clusters/w3.yaml": cluster("w3"), "apps/cart.yaml": deployment("cart", 4)}
    fleet.commit(base | files)
    fleet.reconcile()
    assert fleet.where("default/deployment-cart") == ["w1"]
    answer = explain("deploy/cart", "--why-not", "w3", "-o", "json")["advice"][0]
    assert answer["enough"], answer
    assert " and ".join(c["text"] + (f" ({c['location']})" if c["location"] else "") for c in answer["changes"]) == expected
    fleet.commit(fixed, hour=1)
    fleet.reconcile(1)
    where = fleet.where("default/deployment-cart")
    assert "w3" in where
    placed = {entry["name"]: entry.get("replicas") for entry in fleet.binding("cart-deployment")["spec"]["clusters"]}
    assert answer["replicas"] == placed["w3"]


GOLD = cluster("w3", region="east").replace("  name: w3\n", "  name: w3\n  labels: {tier: gold}\n")


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        ("labelSelector: {matchLabels: {tier: glod}}", "its policy selected tier=gold"),
        ("labelSelector: {matchLabels: {teir: gold}}", "its policy selected tier=gold"),
        ("labelSelector: {matchExpressions: [{key: tier, operator: In, values: [glod]}]}", "its policy selected tier=gold"),
        ("labelSelector: {matchLabels: {tier: gold, zone: '1'}}", "it had the label zone=1"),
        ("labelSelector: {matchLabels: {tier: platinum}}", "it had the label tier=platinum"),
        (EAST.replace("east", "eest"), "its policy selected region=east"),
    ],
)
def test_a_selector_that_is_probably_misspelt_is_corrected(fleet: Fleet, explain: Explain, affinity: str, expected: str) -> None:
    """Not the clusters, which would get the slip, too."""
    policy = divide("cart", affinity, DUPLICATED)
    fleet.commit({"w1.yaml": cluster("w1"), "w3.yaml": GOLD, "cart.yaml": deployment("cart", 1), "p.yaml": policy})
    fleet.reconcile()
    answer = explain("deploy/cart", "--why-not", "w3", "-o", "json")["advice"][0]
    place = "p.yaml:9" if "policy" in expected else "w3.yaml:5"
    assert (answer["enough"], [(one["text"], one["location"]) for one in answer["changes"]]) == (True, [(expected, place)])


def test_several_obstacles_are_reported_together(fleet: Fleet, explain: Explain) -> None:
    tolerant = cluster("w3", region="east").replace(
        "spec:\n", "spec:\n  taints: [{key: a, effect: NoSchedule}, {key: b, effect: NoExecute}]\n"
    )
    north = "fieldSelector: {matchExpressions: [{key: region, operator: In, values: [north]}]}"
    fleet.commit(
        {
            "w1.yaml": cluster("w1"),
            "w3.yaml": tolerant,
            "cart.yaml": deployment("cart", 1),
            "p.yaml": divide("cart", north, DUPLICATED),
        }
    )
    fleet.reconcile()
    result = explain("deploy/cart", "--why-not", "w3")
    assert (
        "w3: its region were north (w3.yaml:8) and its policy tolerated a:NoSchedule (p.yaml:7) and its policy tolerated b:NoExecute"
        in result
    )
    assert "it would get 1 replica" in result


def test_missing_capacity_is_named_once_where_others_take_some(fleet: Fleet, explain: Explain) -> None:
    """The change is proposed again with what others take there, and has the same text."""
    pod = "{containers: [{name: c, image: c, resources: {requests: {cpu: '3'}}}]}"

    def write(name: str, replicas: int) -> str:
        return f"{deployment(name, replicas)}  template: {{metadata: {{labels: {{app: {name}}}}}, spec: {pod}}}\n"

    files = {
        "w1.yaml": cluster("w1", pods=50, cpu=10) + "    allocated: {cpu: '1'}\n",
        "cart.yaml": write("cart", 2),
        "pay.yaml": write("pay", 9),
        "p1.yaml": divide("cart", "clusterNames: [w1]"),
        "p2.yaml": divide(
            "pay", "clusterNames: [w1]\n    spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 2}]"
        ),
    }
    fleet.commit({name: files[name] for name in files if "pay" not in name})
    fleet.reconcile()
    fleet.commit(files)
    assert explain("deploy/pay", "--why-not", "w1").count("it had capacity") == 1


def test_counterfactuals_write_nothing(shop: Fleet, explain: Explain) -> None:
    before = shop.git("for-each-ref"), shop.files()
    explain("deploy/pay", "--why-not", "e1")
    explain("deploy/pay")
    assert (shop.git("for-each-ref"), shop.files()) == before


def test_every_unused_cluster_has_a_line_by_default(shop: Fleet, explain: Explain) -> None:
    result = explain("deploy/pay")
    section = result.partition("Would be selected if\n")[2].partition("\n\n")[0]
    assert [line.split(":")[0].strip() for line in section.splitlines()] == ["e1", "e2"]


def test_counterfactuals_of_a_large_fleet_are_computed_only_on_request(fleet: Fleet, explain: Explain) -> None:
    files = {f"clusters/c{i:02}.yaml": cluster(f"c{i:02}") for i in range(12)}
    fleet.commit(files | {"cart.yaml": deployment("cart"), "p.yaml": divide("cart", "clusterNames: [c00]", DUPLICATED)})
    fleet.reconcile()
    assert "  3 more clusters: use --why-not CLUSTER\n" in explain("deploy/cart")
    assert "c11: clusterNames named it" in explain("deploy/cart", "--why-not", "c11")


def test_a_cluster_where_it_runs_needs_no_change(shop: Fleet, explain: Explain) -> None:
    result = explain("deploy/pay", "--why-not", "w1")
    assert "runs on w1: 2" in result
    assert "Would be selected if" not in result


def test_counterfactuals_can_be_computed_at_a_revision(shop: Fleet, explain: Explain) -> None:
    old = shop.git("rev-parse", "HEAD")
    shop.commit({"policies/pay.yaml": divide("pay", "clusterNames: [w1, e1]", WEIGHTED)}, hour=1)
    assert "clusterNames named it" in explain("deploy/pay", "--at", old, "--why-not", "e1")
    assert "clusterNames" not in explain("deploy/pay", "--at", "main", "--why-not", "e1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("deploy/cart", "--why-not", "moon"), "there is no cluster 'moon'; there are: e1, e2, w1, w2"),
        (("cluster/moon",), "there is no Cluster moon in the source"),
        (("cluster/w1", "--why-not", "w2"), "is not a workload, and no API decides where it runs"),
        (("deploy/moon", "--why-not", "w2"), "there is no Deployment moon in the source"),
    ],
)
def test_an_unknown_cluster_is_reported_in_one_line(
    shop: Fleet, explain: Explain, arguments: tuple[str, ...], message: str
) -> None:
    result = explain(*arguments, code=1)
    assert message in result
    assert "Traceback" not in result


def test_a_cluster_lists_its_workloads_and_reasons_for_absent_ones(shop: Fleet, explain: Explain) -> None:
    found = explain("cluster/e1", "-o", "json")
    assert {entry["workload"]["name"]: entry["replicas"] for entry in found["residents"]} == {"cart": 2, "site": 2}
    assert [(entry["reason"], entry["count"]) for entry in found["absences"]] == [
        ("cluster(s) did not match the placement cluster affinity constraint", 1)
    ]
    assert (found["region"], found["zones"]) == ("east", ["ea"])
    assert {entry["resource"]: entry["free"] for entry in found["room"]} == {"cpu": "100", "memory": "1Ti", "pods": "50"}


def test_capacity_used_by_the_plan_is_subtracted(shop: Fleet, explain: Explain) -> None:
    shop.commit({"apps/site.yaml": deployment("site", 12)}, hour=1)
    found = explain("cluster/e1", "-o", "json")
    assert {entry["resource"]: (entry["free"], entry["left"]) for entry in found["room"]}["pods"] == ("50", "36"), "4 run there"


def test_eligible_replicas_are_limited_by_remaining_capacity(fleet: Fleet, explain: Explain) -> None:
    pod = "{containers: [{name: c, image: c, resources: {requests: {cpu: '3'}}}]}"
    container = f"  template: {{metadata: {{labels: {{app: cart}}}}, spec: {pod}}}\n"
    files = {
        "w1.yaml": cluster("w1", pods=50),
        "w2.yaml": cluster("w2", pods=50, cpu=10),
        "cart.yaml": deployment("cart", 2) + container,
        "pay.yaml": deployment("pay", 2),
        "p1.yaml": divide("cart", "clusterNames: [w1, w2]"),
        "p2.yaml": divide("pay", "clusterNames: [w1]"),
    }
    fleet.commit(files)
    fleet.reconcile()
    found = explain("cluster/w2", "-o", "json")["couldTake"]
    assert [(entry["workload"]["name"], entry["here"], entry["replicas"]) for entry in found] == [("cart", False, 3)]
    assert "Could also run here, each considered alone\n  Deployment default/cart: capacity for 3 replicas\n" in explain(
        "cluster/w2"
    )


@pytest.mark.parametrize("form", ["text", "markdown", "yaml"])
def test_a_cluster_is_described_in_every_format(shop: Fleet, explain: Explain, form: str) -> None:
    result = explain("cluster/e1", "-o", form)
    assert "e1" in result
    assert "site" in result


@pytest.mark.parametrize("words", [("deploy/cart",), ("deploy/cart", "--why-not", "e2"), ("cluster/w1",)])
def test_no_line_is_longer_than_a_narrow_terminal(
    shop: Fleet, explain: Explain, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, explain(*words).splitlines())) <= 80


def test_markdown_has_the_content_of_the_text(shop: Fleet, explain: Explain) -> None:
    result = explain("deploy/pay", "-o", "markdown")
    assert "### Deployment.apps/default/pay" in result
    assert "**Would be selected if**\n\n- e1: clusterNames named it (policies/pay.yaml:9)" in result


def test_a_rebalance_that_does_not_move_a_workload_is_not_proposed(fleet: Fleet, explain: Explain) -> None:
    """The one cluster that maxGroups allows is the one that has the workload: Karmada scores it higher, also when it reschedules."""
    one = "{replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}"
    fleet.commit({POLICY: divide("cart", EVERY, one) + SPREAD.format(1), "cart.yaml": deployment("cart"), "w1.yaml": cluster("w1")})
    fleet.reconcile()
    fleet.commit({"w3.yaml": cluster("w3")}, hour=0.5)
    fleet.reconcile(0.5)
    text = explain("deploy/cart", "--why-not", "w3")
    assert "w3: no such change found" in text
    assert "Spread over 1 to 1 clusters: w1\n" in text
    assert "maxGroups of clusters leaves out w3\n" in text


def test_a_workload_of_a_later_group_needs_a_rebalance_to_return(fleet: Fleet, explain: Explain) -> None:
    """The first group fits again; Karmada schedules only the group in use and later ones."""
    tainted = cluster("w1").replace("spec:\n", "spec:\n  taints:\n  - {key: power, effect: NoExecute}\n")
    fleet.commit({POLICY: ORDERED, "cart.yaml": deployment("cart"), "w1.yaml": tainted, "w3.yaml": cluster("w3")})
    fleet.reconcile()
    assert fleet.where("default/deployment-cart") == ["w3"]
    fleet.commit({"w1.yaml": cluster("w1")}, hour=0.5)
    fleet.reconcile(0.5)
    (found,) = explain("deploy/cart", "--why-not", "w1", "-o", "json")["advice"]
    assert (found["enough"], [change["text"] for change in found["changes"]]) == (True, ["a WorkloadRebalancer rescheduled it"])
    fleet.commit({"w3.yaml": cluster("w3").replace("spec:\n", "spec:\n  taints:\n  - {key: power, effect: NoExecute}\n")}, hour=1)
    fleet.reconcile(1)
    text = explain("deploy/cart", "--why-not", "w1")
    assert "w1: a WorkloadRebalancer rescheduled it; it would get 2 replicas" in text
    assert "no such change found" not in text
