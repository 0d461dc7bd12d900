"""Warnings about valid policies that name unknown clusters or kinds."""

from __future__ import annotations

import pytest

import gitsched
from gitsched.apis.karmada.policy.near_selection import AND_REMOVED, IF_REMOVED
from gitsched.decide.workload_explanation import list_near_selections
from gitsched.model.document import Body
from tests.tables import each_row


def cluster(name: str) -> Body:
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": {"syncMode": "Pull"},
    }


def policy(placement: Body) -> Body:
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}], "placement": placement},
    }


def list_messages(*documents: Body, code: str = "karmada-cluster-unknown") -> list[str]:
    findings = gitsched.schedule(documents).findings
    return [f"{f.severity}: {f.message}" for f in findings if f.code == code]


@pytest.mark.parametrize(
    ("placement", "messages"),
    [
        ({"clusterAffinity": {"clusterNames": ["fra-1"]}}, []),
        ({"clusterAffinity": {"exclude": ["fra-2"]}}, []),
        ({"clusterAffinity": {"clusterNames": ["fra-1", "fra-2"]}}, ["fra-2; the fleet has fra-1"]),  # it may have been removed
        ({"clusterAffinity": {"clusterNames": ["fraa-1"]}}, ["fraa-1; did you mean fra-1?"]),
        ({"clusterAffinities": [{"affinityName": "a", "clusterNames": ["x", "y", "z", "w"]}]}, ["w, x, y, z; the fleet has fra-1"]),
        ({}, []),
    ],
)
def test_clusters_without_a_document(placement: Body, messages: list[str]) -> None:
    start = "warning: PropagationPolicy/shop/web names clusters without a Cluster document: "
    assert list_messages(policy(placement), cluster("fra-1")) == [start + end for end in messages]


def test_a_bounded_number_of_clusters_is_named_if_none_is_similar() -> None:
    fleet = [cluster(f"fra-{number}") for number in range(40)]
    (message,) = list_messages(policy({"clusterAffinity": {"clusterNames": ["madrid"]}}), *fleet)
    assert message.endswith("madrid; the fleet has fra-0, fra-1, fra-10, fra-11, fra-12 and 35 more")


def test_no_warning_without_any_cluster() -> None:
    assert list_messages(policy({"clusterAffinity": {"clusterNames": ["fra-1"]}})) == []


def selecting(*selectors: str, kind: str = "PropagationPolicy") -> Body:
    """A policy with selectors such as `apps/v1 Deployment web`."""
    parts = (dict(zip(("apiVersion", "kind", "name"), selector.split(), strict=False)) for selector in selectors)
    metadata = {"name": "web"} | ({"namespace": "shop"} if kind == "PropagationPolicy" else {})
    body = {"apiVersion": "policy.karmada.io/v1alpha1", "kind": kind, "metadata": metadata}
    return {**body, "spec": {"resourceSelectors": list(parts), "placement": {}}}


def thing(api_version: str, kind: str, namespace: str = "shop") -> Body:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "web", "namespace": namespace}}


HERE = (
    thing("apps/v1", "Deployment"),
    thing("v1", "Service"),
    thing("v1", "ConfigMap", "office"),
    thing("networking.k8s.io/v1", "Ingress"),
    thing("serving.knative.dev/v1", "Route"),
    thing("sources.knative.dev/v1", "PingSource"),
)


@each_row(
    ("selectors", "messages"),
    [
        (["apps/v1 Deployment"], ""),
        (["apps/v1 Deployment web"], ""),
        (["apps/v1 StatefulSet", "v1 Service"], ""),
        (["extensions/v1beta1 Ingress", "networking.k8s.io/v1 Ingress"], ""),
        (["v1 Deployment"], "warning: selects Deployment of v1, but the repository has Deployment of apps/v1"),
        (["v1 Deployment", "v1 Service"], "warning: selects Deployment of v1, but the repository has Deployment of apps/v1"),
        (
            ["apps/v1 Deploymnt"],
            "warning: selects Deploymnt of apps/v1, which the repository does not have; did you mean Deployment?",
        ),
        (
            ["serving.knative.dev/v1beta1 Route"],
            "warning: selects Route of serving.knative.dev/v1beta1, but the repository has Route of serving.knative.dev/v1",
        ),
        (["v1 Route", "v1 Service"], ""),
        (
            ["v1 Service", "v1 ServiceX"],
            "warning: selects ServiceX of v1, which the repository does not have; did you mean Service?",
        ),
        (
            ["apps/v1 Deployment web", "apps/v1 Deploymnt api"],
            "warning: selects Deploymnt of apps/v1, which the repository does not have; did you mean Deployment?",
        ),
        (["sources.knative.dev/v1 PingSource"], ""),
        (["apps/v1 Deployment wbe"], "warning: selects nothing: namespace shop has no Deployment wbe; did you mean web?"),
        (["v1 ConfigMap web"], "warning: selects nothing: namespace shop has no ConfigMap web; did you mean the namespace office?"),
        (["v1 ConfigMap"], "info: selects nothing: namespace shop has no ConfigMap"),
        (
            ["v1 Secret", "batch/v1 Job", "batch/v1 CronJob", "apps/v1 StatefulSet"],
            "info: selects nothing: namespace shop has no Secret, Job, CronJob, StatefulSet",
        ),
    ],
)
def test_a_policy_that_selects_nothing(selectors: list[str], messages: str) -> None:
    expected = messages.replace(" selects", " PropagationPolicy/shop/web selects", 1)
    expected += (IF_REMOVED if expected.endswith("?") else AND_REMOVED) if " selects nothing" in expected else ""
    assert list_messages(selecting(*selectors), *HERE, code="karmada-selects-nothing") == ([expected] if messages else [])


def test_a_cluster_policy_selects_in_every_namespace() -> None:
    found = selecting("v1 ConfigMap", "v1 Service web", kind="ClusterPropagationPolicy")
    assert list_messages(found, *HERE, code="karmada-selects-nothing") == []
    found = selecting("v1 Service wbe", kind="ClusterPropagationPolicy")
    start = (
        f"warning: ClusterPropagationPolicy/web selects nothing: this repository has no Service wbe; did you mean web?{IF_REMOVED}"
    )
    assert list_messages(found, *HERE, code="karmada-selects-nothing") == [start]


def test_a_cluster_policy_that_selects_nothing_is_reported() -> None:
    found = selecting("v1 ConfigMap", kind="ClusterPropagationPolicy")
    found["spec"]["resourceSelectors"][0]["namespace"] = "shop"
    (message,) = list_messages(found, *HERE, code="karmada-selects-nothing")
    assert message.endswith(f"this repository has no ConfigMap in namespace shop{AND_REMOVED}")


LABELLED_KINDS = (("apps/v1", "Deployment"), ("v1", "Service"))


def test_a_policy_in_a_namespace_without_objects_is_probably_in_the_wrong_one() -> None:
    found = selecting("apps/v1 Deployment")
    found["metadata"]["namespace"] = "default"
    (message,) = list_messages(found, *HERE, code="karmada-selects-nothing")
    assert message.endswith(f"namespace default has no Deployment; did you mean the namespace shop?{IF_REMOVED}")
    labels = {"labelSelector": {"matchLabels": {"app": "web"}}}
    found["spec"]["resourceSelectors"] = [{"apiVersion": version, "kind": kind, **labels} for version, kind in LABELLED_KINDS]
    labelled = [{**one, "metadata": {**one["metadata"], "labels": {"app": "web"}}} for one in HERE]
    (message,) = list_messages(found, *labelled, code="karmada-selects-nothing")
    names = "Deployment with app=web, Service with app=web"
    assert message.endswith(f"selects nothing: namespace default has no {names}; did you mean the namespace shop?{IF_REMOVED}")


def test_the_number_of_suggestions_is_limited() -> None:
    """Each slip is compared with all that there is, so thousands of them would take hours."""
    misspelled = [selecting(f"apps/v1 Deploymnt{number}", kind="ClusterPropagationPolicy") for number in range(120)]
    for number, slip in enumerate(misspelled):
        slip["metadata"]["name"] = f"p{number:03}"
    messages = list_messages(*misspelled, *HERE, code="karmada-selects-nothing")
    assert len(messages) == 120
    assert ["did you mean Deployment?" in message for message in messages] == [True] * 100 + [False] * 20


def test_a_quarantined_object_may_match_a_selector() -> None:
    broken = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}}
    twins = [broken, {**broken, "spec": {"replicas": 2}}]
    assert list_messages(selecting("apps/v1 Deployment"), *twins, code="karmada-selects-nothing") == []


@pytest.mark.parametrize(
    ("selector", "thing", "expected"),
    [
        ({"name": "web"}, {"namespace": "default"}, "Deployment web in namespace shop; this one is in default"),
        ({"name": "web", "apiVersion": "apps/v1beta1"}, {}, "Deployment web of apps/v1beta1; this one is of apps/v1"),
        ({"name": "wbe"}, {}, "Deployment wbe; this one is web"),
        ({"kind": "deployment"}, {}, "the kind deployment; this one is a Deployment"),
        ({"labelSelector": {"matchLabels": {"app": "wbe"}}}, {}, "Deployment with app=wbe; this one has app=web"),
        ({"labelSelector": {"matchLabels": {"tier": "front"}}}, {}, "Deployment with tier=front; this one has no label tier"),
        (
            {"labelSelector": {"matchLabels": {"tier": "front"}}},
            {"pods": {"tier": "front"}},
            "Deployment with tier=front; this one has no label tier in metadata.labels, only its pod template has tier=front",
        ),
        (
            {"labelSelector": {"matchLabels": {"tier": "front"}}},
            {"pods": {"tier": "back"}},
            "Deployment with tier=front; this one has no label tier",
        ),
        (
            {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["wbe", "api"]}]}},
            {},
            "Deployment with app in (api, wbe); this one has app=web",
        ),
        ({"name": "api"}, {}, "Deployment api; this one is web"),
        ({"name": "wbe"}, {"namespace": "default"}, ""),
        ({"kind": "StatefulSet"}, {}, "StatefulSet; this one is a Deployment"),
        ({"kind": "CronJob", "apiVersion": "batch/v1", "name": "web"}, {}, "CronJob web; this one is a Deployment"),
        ({"kind": "Deploymnet"}, {}, "Deploymnet; this one is a Deployment"),
        ({"kind": "Deploymnet"}, {"namespace": "default"}, ""),
        ({"kind": "StatefulSet"}, {"namespace": "default"}, ""),
        ({"kind": "ConfigMap", "apiVersion": "v1"}, {}, ""),
    ],
)
def test_the_policy_that_nearly_selects_an_object(selector: Body, thing: Body, expected: str) -> None:
    policy = selecting("apps/v1 Deployment")
    policy["spec"]["resourceSelectors"][0].update(selector)
    pods = {"spec": {"template": {"metadata": {"labels": thing.pop("pods")}}}} if "pods" in thing else {}
    metadata = {"name": "web", "namespace": "shop", "labels": {"app": "web"}, **thing}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, **pods}
    decisions = gitsched.schedule([policy, web]).decisions
    near = list_near_selections(decisions, decisions.list_unclaimed())
    assert [one.text for one in near.values()] == ([f"PropagationPolicy/shop/web selects {expected}"] if expected else [])


@pytest.mark.parametrize(
    ("namespaces", "expected"),
    [
        (
            ["shop"],
            "PropagationPolicy/shop/web selects Deployment in namespace shop; this one has no namespace, so that it is in default",
        ),
        (
            ["shop", "pay", "zoo"],
            "policies of namespace pay, shop, zoo select only what is there; this one has no namespace, so that it is in default",
        ),
    ],
)
def test_no_policy_of_several_namespaces_is_named_for_an_object_without_a_namespace(namespaces: list[str], expected: str) -> None:
    policies = [selecting("apps/v1 Deployment") for _ in namespaces]
    for policy, namespace in zip(policies, namespaces, strict=True):
        policy["metadata"]["namespace"] = namespace
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    decisions = gitsched.schedule([*policies, web]).decisions
    assert [one.text for one in list_near_selections(decisions, decisions.list_unclaimed()).values()] == [expected]


def test_a_similar_name_is_nearer_than_another_label() -> None:
    policy = selecting("apps/v1 Deployment wbe", "apps/v1 Deployment")
    policy["spec"]["resourceSelectors"][1]["labelSelector"] = {"matchLabels": {"tier": "front"}}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}}
    decisions = gitsched.schedule([policy, web]).decisions
    (near,) = list_near_selections(decisions, decisions.list_unclaimed()).values()
    assert near.text == "PropagationPolicy/shop/web selects Deployment wbe; this one is web"


def test_another_label_of_a_policy_in_the_own_namespace_is_nearer_than_another_namespace() -> None:
    own, other = selecting("apps/v1 Deployment"), selecting("apps/v1 Deployment")
    own["spec"]["resourceSelectors"][0]["labelSelector"] = {"matchLabels": {"mode": "regional"}}
    other["spec"]["resourceSelectors"][0]["labelSelector"] = {"matchLabels": {"mode": "home"}}
    other["metadata"]["namespace"] = "bank"
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"mode": "home"}},
    }
    there = {**web, "metadata": {**web["metadata"], "namespace": "bank"}}
    decisions = gitsched.schedule([own, other, web, there]).decisions
    (near,) = list_near_selections(decisions, decisions.list_unclaimed()).values()
    assert near.text == "PropagationPolicy/shop/web selects Deployment with mode=regional; this one has mode=home"
