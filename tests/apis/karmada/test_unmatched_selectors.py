"""Selectors of a policy that match nothing, beside others that do: what is probably wrong, and what is no mistake."""

from __future__ import annotations

from typing import Any

import yaml

import gitsched
from gitsched.apis.karmada.policy.near_selection import AND_REMOVED, IF_REMOVED
from tests.tables import each_row

Body = dict[str, Any]
OBJECTS = """\
apps/v1 Deployment shop/web: {app: web, tier: front}
apps/v1 Deployment shop/api: {app: api, tier: front}
apps/v1 Deployment shop/cart: {app: cart, tier: front}
v1 Service shop/web: {}
v1 ConfigMap shop/web: {}
v1 ConfigMap office/mail: {}
serving.knative.dev/v1 Route shop/web: {}
"""


def list_objects() -> list[Body]:
    """The objects of the table above."""
    found = []
    for text, labels in yaml.safe_load(OBJECTS).items():
        api_version, kind, path = text.split()
        namespace, name = path.split("/")
        metadata = {"name": name, "namespace": namespace, "labels": labels}
        found.append({"apiVersion": api_version, "kind": kind, "metadata": metadata})
    return found


def list_found(*selectors: str, kind: str = "PropagationPolicy", other: str = "") -> list[str]:
    """The findings about a policy that selects the Deployment web and more, beside a policy with one `other` selector."""
    bodies = []
    for name, texts in (("policy", ("{apiVersion: apps/v1, kind: Deployment, name: web}", *selectors)), ("other", (other,))):
        metadata = {"name": name} | ({"namespace": "shop"} if kind == "PropagationPolicy" else {})
        spec = {"resourceSelectors": [yaml.safe_load(text) for text in texts if text], "placement": {}}
        if spec["resourceSelectors"]:
            bodies.append({"apiVersion": "policy.karmada.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec})
    findings = gitsched.schedule([*bodies, *list_objects()]).findings
    start = f"{kind}/shop/policy selects " if kind == "PropagationPolicy" else f"{kind}/policy selects "
    return [f"{f.severity}: {f.message.removeprefix(start)}" for f in findings if f.code == "karmada-selects-nothing"]


LABELLED = "{apiVersion: apps/v1, kind: Deployment, labelSelector: %s}"


@each_row(
    ("selector", "found"),
    [
        # names
        (
            "{apiVersion: apps/v1, kind: Deployment, name: apii}",
            "Deployment apii, which namespace shop does not have; did you mean api?",
        ),
        ("{apiVersion: v1, kind: Service, name: wbe}", "Service wbe, which namespace shop does not have; did you mean web?"),
        ("{apiVersion: v1, kind: Service, name: zebra}", "(note) Service zebra, which namespace shop does not have"),
        ("{apiVersion: v1, kind: ConfigMap, name: mail}", "(note) ConfigMap mail, which namespace shop does not have"),
        # kinds
        (
            "{apiVersion: apps/v1, kind: deployment, name: api}",
            "deployment of apps/v1, which the repository does not have; did you mean Deployment?",
        ),
        ("{apiVersion: v1, kind: configmap}", "configmap of v1, which the repository does not have; did you mean ConfigMap?"),
        (
            "{apiVersion: apps/v1, kind: statefulset, name: db}",
            "statefulset of apps/v1: Kubernetes 1.36 has no kind 'statefulset' in apps/v1: write StatefulSet",
        ),
        (
            "{apiVersion: serving.knative.dev/v1, kind: Routes, name: api}",
            "Routes of serving.knative.dev/v1, which the repository does not have; did you mean Route?",
        ),
        # versions
        (
            "{apiVersion: app/v1, kind: Deployment, name: api}",
            "Deployment of app/v1, but the repository has Deployment of apps/v1",
        ),
        (
            "{apiVersion: apps/v1beta1, kind: Deployment}",
            "Deployment of apps/v1beta1, but the repository has Deployment of apps/v1",
        ),
        (
            "{apiVersion: extensions/v1beta1, kind: Ingress, name: web}",
            "Ingress of extensions/v1beta1: Kubernetes 1.36 has no Ingress in extensions/v1beta1: write networking.k8s.io/v1",
        ),
        ("{apiVersion: apps/v1beta1, kind: Deployment, name: web}", ""),  # the same selector has the right version as well
        (
            "{apiVersion: serving.knative.dev/v1, kind: Service, name: web}",
            "(note) Service web, which namespace shop does not have",
        ),
        # labels
        (
            LABELLED % "{matchLabels: {app: crat}}",
            "Deployment with app=crat, which namespace shop does not have; did you mean app=cart of Deployment/shop/cart?",
        ),
        (
            LABELLED % "{matchLabels: {teir: front}}",
            "Deployment with teir=front, which namespace shop does not have; did you mean the label tier of Deployment/shop/api?",
        ),
        (
            LABELLED % "{matchExpressions: [{key: app, operator: In, values: [zebra, kraken]}]}",
            "(note) Deployment with app in (kraken, zebra), which namespace shop does not have",
        ),
        (
            LABELLED % "{matchLabels: {app: cart}, matchExpressions: [{key: tier, operator: NotIn, values: [front]}]}",
            "(note) Deployment with app=cart, tier!=front, which namespace shop does not have",
        ),
        (LABELLED % "{matchExpressions: [{key: app, operator: NotIn, values: [zebra]}]}", ""),
        # all objects of a kind may come later
        ("{apiVersion: apps/v1, kind: StatefulSet}", ""),
        ("{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor}", ""),
    ],
)
def test_a_selector_that_matches_nothing_beside_one_that_matches(selector: str, found: str) -> None:
    severity, text = ("info", found.removeprefix("(note) ")) if found.startswith("(note) ") else ("warning", found)
    assert list_found(selector) == ([f"{severity}: {text}"] if found else [])


def test_each_of_several_has_a_finding() -> None:
    names = [f"{{apiVersion: apps/v1, kind: Deployment, name: {name}}}" for name in ("apii", "crat")]
    assert [text.partition(", ")[0] for text in list_found(*names)] == ["warning: Deployment apii", "warning: Deployment crat"]


@each_row(
    ("selector", "other"),
    [
        ("{apiVersion: apps/v1, kind: Deployment, name: apii}", "{apiVersion: apps/v1, kind: Deployment, name: api}"),
        (LABELLED % "{matchLabels: {app: apii}}", LABELLED % "{matchLabels: {app: api}}"),
        (LABELLED % "{matchLabels: {teir: front}}", LABELLED % "{matchLabels: {tier: front}}"),
    ],
)
def test_what_another_policy_selects_is_not_meant(selector: str, other: str) -> None:
    (found,) = list_found(selector, other=other)
    assert found.startswith("info: ")
    assert "did you mean" not in found


def test_a_cluster_policy_names_a_namespace_that_nothing_is_in() -> None:
    assert list_found("{apiVersion: v1, kind: ConfigMap, name: mail, namespace: ofice}", kind="ClusterPropagationPolicy") == [
        "warning: ConfigMap mail in namespace ofice, which this repository does not have; did you mean the namespace office?"
    ]
    assert list_found("{apiVersion: v1, kind: Service, labelSelector: {}}", kind="ClusterPropagationPolicy") == []


def list_found_overrides(selector: str, kind: str, namespace: str) -> list[str]:
    metadata = {"name": "o"} | ({"namespace": namespace} if namespace else {})
    selectors = [yaml.safe_load(selector)] if selector else []
    overriders = {"labelsOverrider": [{"operator": "add", "value": {"team": "web"}}]}
    spec = {"resourceSelectors": selectors, "overrideRules": [{"overriders": overriders}]}
    policy = {"apiVersion": "policy.karmada.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}
    findings = gitsched.schedule([policy, *list_objects()]).findings
    return [f"{f.severity}: {f.message}" for f in findings if f.code == "karmada-selects-nothing"]


@each_row(
    ("selector", "kind", "namespace", "found"),
    [
        (
            "{apiVersion: apps/v1, kind: Deployment, name: web}",
            "OverridePolicy",
            "default",
            "warning: OverridePolicy/default/o selects nothing: namespace default has no Deployment web; did you mean the namespace shop?",
        ),
        (
            "{apiVersion: apps/v1, kind: Deployment, name: wbe}",
            "OverridePolicy",
            "shop",
            "warning: OverridePolicy/shop/o selects nothing: namespace shop has no Deployment wbe; did you mean web?",
        ),
        (
            "{apiVersion: apps/v1, kind: Deployment, namespace: shoop, name: web}",
            "ClusterOverridePolicy",
            "",
            "warning: ClusterOverridePolicy/o selects nothing: this repository has no Deployment web in namespace shoop; did you mean the "
            "namespace shop?",
        ),
        (
            LABELLED % "{matchLabels: {tier: frnt}}",
            "OverridePolicy",
            "shop",
            "warning: OverridePolicy/shop/o selects nothing: namespace shop has no Deployment with tier=frnt; did you mean tier=front of "
            "Deployment/shop/api?",
        ),
        (
            "{apiVersion: apps/v1, kind: Deployment, name: zebra}",
            "OverridePolicy",
            "shop",
            "info: OverridePolicy/shop/o selects nothing: namespace shop has no Deployment zebra",
        ),
        ("", "OverridePolicy", "default", "warning: OverridePolicy/default/o selects nothing: namespace default has no objects"),
        ("", "OverridePolicy", "shop", None),
        ("", "ClusterOverridePolicy", "", None),
        ("{apiVersion: apps/v1, kind: Deployment}", "ClusterOverridePolicy", "", None),
    ],
)
def test_an_override_policy_that_selects_nothing_says_what_is_meant(
    selector: str, kind: str, namespace: str, found: str | None
) -> None:
    end = IF_REMOVED if found and found.endswith("?") else AND_REMOVED
    assert list_found_overrides(selector, kind, namespace) == ([f"{found}{end}"] if found else [])


def test_a_policy_whose_workload_was_removed_is_not_taken_for_one_of_another_workload() -> None:
    """Nothing tells a policy that is left behind from a misspelled one, so both cures are named; what has a policy of its own is not
    meant."""
    deployment = "{apiVersion: apps/v1, kind: Deployment, name: %s}"
    left = "info: PropagationPolicy/shop/other selects nothing: namespace shop has no Deployment wbe; if what it selected was removed, "
    assert list_found(other=deployment % "wbe") == [f"{left}delete the policy"]
    near = "warning: PropagationPolicy/shop/other selects nothing: namespace shop has no Deployment carts; did you mean cart? If what it "
    assert list_found(other=deployment % "carts") == [f"{near}selected was removed, delete the policy"]


def test_what_has_a_policy_of_its_own_in_another_namespace_is_not_meant() -> None:
    selector = yaml.safe_load("{apiVersion: apps/v1, kind: Deployment, name: web}")
    policies = [
        {
            "apiVersion": "policy.karmada.io/v1alpha1",
            "kind": "PropagationPolicy",
            "metadata": {"name": "web", "namespace": namespace},
            "spec": {"resourceSelectors": [selector], "placement": {}},
        }
        for namespace in ("shop", "default")
    ]
    found = [f.message for f in gitsched.schedule([*policies, *list_objects()]).findings if f.code == "karmada-selects-nothing"]
    assert found == [f"PropagationPolicy/default/web selects nothing: namespace default has no Deployment web{AND_REMOVED}"]
