"""Plans and runs say in their first line how many of the workloads they place, and why they do not place them all."""

from __future__ import annotations

import pytest

from gitsched.reconcile import validate_source
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.reconcile.run import make_review
from gitsched.report.fleet_status import serialize_fleet_status, write_fleet_status
from gitsched.report.summary import format_headline
from gitsched.report.text import summarize_plan, write_findings, write_plan, write_run
from tests.builders import krake, ocm
from tests.scenarios.conftest import Fleet, cluster, deployment, policy

FLEET = {"one.yaml": cluster("one"), "a.yaml": deployment("a"), "b.yaml": deployment("b")}
ONLY_A = policy("one", name="a").replace("Deployment}", "Deployment, name: a}")
SETTINGS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, namespace: shop}\n"
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
NOWHERE = policy("oen", name="b").replace("Deployment}", "Deployment, name: b}")
FIRST: dict[str, tuple[dict[str, str], str, str, str]] = {
    "everything": ({"p.yaml": policy("one")}, "2 workloads", "", "Nothing is wrong: "),
    "no cluster of the policy": (
        {"p.yaml": policy("oen")},
        "0 of 2 workloads",
        " PropagationPolicy/default/all names clusters without a Cluster document: oen; did you mean one? (p.yaml:12).",
        "Needs attention: 2 workloads are unplaced.",
    ),
    "another policy": (
        {
            "one.yaml": cluster("one", "power:NoSchedule"),
            "p.yaml": policy("one"),
            "q.yaml": policy("oen", name="maps", kind="ConfigMap"),
        },
        "0 of 2 workloads",
        " Deployment.apps/default/a could not be scheduled: 0/1 clusters are available: ",
        "Needs attention: 1 policy names a cluster that does not exist, 2 workloads are unplaced.",
    ),
    "a part": (
        {"p.yaml": ONLY_A, "q.yaml": NOWHERE},
        "1 of 2 workloads",
        " PropagationPolicy/default/b names clusters without a Cluster document: oen; did you mean one? (q.yaml:12).",
        "Needs attention: 1 workload is unplaced.",
    ),
    "a misspelled kind": (
        {"p.yaml": policy("one").replace("Deployment", "Deploymnt")},
        "no workload",
        " PropagationPolicy/default/all selects Deploymnt of apps/v1, which the repository does not have; did you mean Deployment? "
        "(p.yaml:8).",
        "Needs attention: no policy selects an object.",
    ),
    "no policy": (
        {},
        "no workload",
        " No policy selects an object of the source: gitsched status --unclaimed lists 2 objects.",
        "Needs attention: no policy selects an object.",
    ),
}


@pytest.mark.parametrize("name", FIRST)
def test_a_first_run_says_how_much_it_places_and_why_no_more(name: str, fleet: Fleet) -> None:
    files, placed, why, status = FIRST[name]
    fleet.commit({**FLEET, **files})
    plan = summarize_plan(make_review(fleet.preview()))
    assert f" and place {placed}.{why}" in plan
    assert plan.endswith(f" and place {placed}.") == (not why)
    first = write_run(make_review(fleet.reconcile()), 10_000).splitlines()[0]
    assert f" (first commit): {placed} placed, from commit " in first
    assert f".{why}" in first
    assert write_fleet_status(read_fleet_status(fleet.settings())).startswith(status)


CONFIG_MAP = ocm.placed_config_map("b", "shop", "nowhere")
OCM_FLEET = ocm.to_yaml(ocm.managed_cluster("one", {"env": "prod"}), *ocm.bound_global_set("shop"))
LATER: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "a cluster of Karmada": (
        {**FLEET, "p.yaml": ONLY_A},
        {"q.yaml": NOWHERE},
        "PropagationPolicy/default/b names clusters without a Cluster document: oen; did you mean one? (q.yaml:12)",
    ),
    "a label of OCM": (
        {"fleet.yaml": OCM_FLEET},
        {"b.yaml": ocm.to_yaml(CONFIG_MAP, ocm.placement("nowhere", "shop", predicates=[ocm.label_predicate(env="production")]))},
        "Placement/shop/nowhere: no cluster has env=production; the fleet has prod (b.yaml:19)",
    ),
    "a Placement of OCM": (
        {"fleet.yaml": OCM_FLEET, "p.yaml": ocm.to_yaml(ocm.placement("nowhre", "shop"))},
        {"b.yaml": ocm.to_yaml(CONFIG_MAP)},
        "ConfigMap/shop/b references Placement.cluster.open-cluster-management.io/shop/nowhere, which does not exist; did you mean "
        "nowhre? (b.yaml:7)",
    ),
    "another namespace of OCM": (
        {"fleet.yaml": OCM_FLEET, "p.yaml": ocm.to_yaml(ocm.placement("nowhere", "office"))},
        {"b.yaml": ocm.to_yaml(CONFIG_MAP)},
        "ConfigMap/shop/b references Placement.cluster.open-cluster-management.io/shop/nowhere, which does not exist; did you mean "
        "office/nowhere? (b.yaml:7)",
    ),
    "a constraint of Krake": (
        {"fleet.yaml": krake.cluster_yaml("one"), "a.yaml": krake.application_yaml("a")},
        {"b.yaml": krake.application_yaml("b", "  constraints: {cluster: {labels: [location is FR]}}\n")},
        "Application.kubernetes/tenant-a/b: the constraint location == FR cannot be satisfied: no candidate has location=FR; the fleet "
        "has DE (b.yaml:13)",
    ),
}


@pytest.mark.parametrize("name", LATER)
def test_a_later_plan_and_run_say_in_the_first_line_why_a_new_workload_is_unplaced(name: str, fleet: Fleet) -> None:
    files, added, why = LATER[name]
    fleet.commit(files)
    total = f"1 of {len(fleet.reconcile().plan.outcomes) + 1} workload"
    fleet.commit(added, hour=1)
    planned = compare_plans(fleet.settings(1)).review
    assert format_headline(planned).startswith("No workload moves, 1 more workload is unplaced")
    assert f"{total}{'s' * ('1 of 1 ' not in total)} is unplaced: {why}." in summarize_plan(planned)
    compared = compare_plans(fleet.settings(1), "HEAD~1").review
    assert summarize_plan(compared).endswith(f". {why}."), "the headline of a comparison counts new unplaced workloads"
    assert f" is unplaced: {why}." in write_run(make_review(fleet.reconcile(1)), 10_000).splitlines()[0]
    again = summarize_plan(compare_plans(fleet.settings(2)).review)
    assert again.startswith("No changes: ")
    assert f" is unplaced: {why}." in again
    reason = why.removeprefix("Application.kubernetes/tenant-a/b: ")
    assert f"{reason}; " in write_fleet_status(read_fleet_status(fleet.settings(2))), "`status` gives the same reason"


def test_a_workload_without_replicas_is_not_reported_as_unplaced(fleet: Fleet) -> None:
    fleet.commit({**FLEET, "p.yaml": policy("one")})
    fleet.reconcile()
    fleet.commit({"b.yaml": deployment("b", 0), "c.yaml": deployment("c", 0)}, hour=1)
    assert " unplaced" not in summarize_plan(compare_plans(fleet.settings(1)).review).replace("0 become unplaced", "")


UNSELECTED: dict[str, tuple[dict[str, str], list[str]]] = {
    "another namespace, kind and name": (
        {
            "p.yaml": policy("one").replace("Deployment}", "Deployment, name: a}"),
            "c.yaml": deployment("a", namespace="shop"),
            "d.yaml": deployment("a").replace("kind: Deployment", "kind: StatefulSet"),
            "e.yaml": deployment("e", 0, namespace="shop"),
            "f.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a, namespace: argocd}\n"
            "spec: {source: {repoURL: https://example.com/x.git, path: x, targetRevision: main}, destination: {name: one}}\n",
            "n.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n",
            "s.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n",
        },
        [
            "StatefulSet default/a is selected by no policy, so that it runs in no cluster: PropagationPolicy/default/all selects "
            "Deployment a (p.yaml:1); this one is a StatefulSet (d.yaml:2)",
            "Deployment default/b is selected by no policy, so that it runs in no cluster: PropagationPolicy/default/all selects "
            "Deployment a (p.yaml:1); this one is b (b.yaml:4)",
            "Deployment shop/a is selected by no policy, so that it runs in no cluster: PropagationPolicy/default/all selects "
            "Deployment a in namespace default (p.yaml:1); this one is in shop (c.yaml:5)",
        ],
    ),
    "a label": (
        {"p.yaml": policy("one").replace("Deployment}", "Deployment, labelSelector: {matchLabels: {tier: front}}}")},
        [
            "Deployment default/a, Deployment default/b are selected by no policy, so that they run in no cluster: "
            "PropagationPolicy/default/all selects Deployment with tier=front (p.yaml:1); this one has no label tier (a.yaml:3)",
        ],
    ),
    "nothing similar": (
        {"p.yaml": policy("one", kind="ConfigMap")},
        [
            "Deployment default/a, Deployment default/b are selected by no policy, so that they run in no cluster: no policy has a "
            "similar selector (a.yaml:1)",
        ],
    ),
    "no annotation": (
        {"one.yaml": OCM_FLEET},
        [
            "Deployment default/a, Deployment default/b are selected by no policy, so that they run in no cluster: it has no annotation "
            "cluster.open-cluster-management.io/placement, which names its policy (a.yaml:1)",
        ],
    ),
    "a kustomization that nothing builds": (
        {
            "p.yaml": policy("one"),
            "base/k.yaml": deployment("k", namespace="shop"),
            "base/n.yaml": deployment("n", 0, namespace="shop"),
            "base/kustomization.yaml": "resources: [k.yaml, n.yaml]\n",
            "prod/kustomization.yaml": "resources: [../base]\nnamePrefix: prod-\n",
        },
        [
            "base/k.yaml:1:1: warning: Deployment shop/k is selected by no policy, so that it runs in no cluster: kustomize changes it, "
            "and nothing builds the result: prod/kustomization.yaml (namePrefix prod-); place the overlay with a Bundle (spec.path), or "
            "name it in source.kustomize.build [kustomize-unbuilt]",
        ],
    ),
    "many": (
        {f"{number}.yaml": deployment(f"w{number}", namespace=f"n{number}") for number in range(9)} | {"p.yaml": policy("one")},
        ["and 4 more workloads like these"],
    ),
}


@pytest.mark.parametrize("name", UNSELECTED)
def test_a_first_plan_and_validate_name_the_workloads_that_no_policy_selects_with_the_reason(name: str, fleet: Fleet) -> None:
    files, lines = UNSELECTED[name]
    fleet.commit({**FLEET, **files})
    plan = write_plan(compare_plans(fleet.settings()).review, 10_000).splitlines()
    validated = validate_source(fleet.settings())
    text = write_findings(validated.findings, 10_000, None, validated.unclaimed, validated.unselected).splitlines()
    for found in (plan, text):
        listed = [line for line in found if "selected by no policy" in line or line.startswith("and ")]
        assert listed[-len(lines) :] == lines
        assert len(listed) <= 6, "the list is short, however many there are"
    fleet.reconcile()
    again = validate_source(fleet.settings(1))
    assert (again.unclaimed, again.unselected) == (validated.unclaimed, validated.unselected)


def test_later_plans_name_the_new_objects_that_no_policy_selects(fleet: Fleet) -> None:
    fleet.commit({**FLEET, "p.yaml": policy("one"), "old.yaml": deployment("old", namespace="shop")})
    fleet.reconcile()
    lonely = {"new/c.yaml": deployment("c", namespace="shop"), "new/m.yaml": SETTINGS, "new/n.yaml": NAMESPACE}
    fleet.commit(lonely, hour=1)
    line = (
        "Deployment shop/c is selected by no policy, so that it runs in no cluster: PropagationPolicy/default/all selects Deployment in "
        "namespace default (p.yaml:1); this one is in shop (new/c.yaml:5)"
    )
    for base, complete in ((None, False), (None, True), ("HEAD~1", False), ("HEAD~1", True)):
        review = compare_plans(fleet.settings(1), base, complete=complete).review
        assert format_headline(review) == "No workload moves, 2 new objects are selected by no policy"
        text = write_plan(review, 10_000)
        assert summarize_plan(review).startswith("No workload moves, 2 new objects are selected by no policy: ")
        assert line in text.splitlines()
        assert (
            "ConfigMap shop/m is selected by no policy, so that it runs in no cluster: added to the source (new/m.yaml:1)" in text
        )
        assert "shop/old" not in text
        assert review.has_news
    fleet.reconcile(1)
    assert line in write_plan(compare_plans(fleet.settings(2)).review, 10_000), "no run has committed anything since"
    fleet.commit({"a.yaml": deployment("a", 3)}, hour=3)
    fleet.reconcile(3)
    assert "selected by no policy" not in summarize_plan(compare_plans(fleet.settings(4)).review)


@pytest.mark.parametrize("has_state", [True, False])
def test_status_names_the_file_of_each_object_that_no_policy_selects(fleet: Fleet, *, has_state: bool) -> None:
    fleet.commit({**FLEET, "p.yaml": ONLY_A, "new/m.yaml": SETTINGS})
    fleet.reconcile()
    status = read_fleet_status(fleet.settings(1) if has_state else fleet.settings(1)._replace(cache=fleet.cache / "none"))
    assert write_fleet_status(status, unclaimed=True).splitlines() == [
        "Deployment default/b  b.yaml:1      PropagationPolicy/default/a selects Deployment a (p.yaml:1); this one is b",
        "ConfigMap shop/m      new/m.yaml:1",
    ]
    assert [each["location"] for each in serialize_fleet_status(status)["unclaimed"]] == [
        {"path": path, "line": 1, "column": 1} for path in ("b.yaml", "new/m.yaml")
    ]
