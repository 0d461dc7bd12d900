"""Advice of findings about deliveries, references, claims and the guard is carried out, and what it promises happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from gitsched.reconcile import RunResult
from tests.builders.ocm import bound_global_set, managed_cluster, placement, to_yaml

from .conftest import UNGUARDED, Fleet, cluster, deployment, policy

POD = """\
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web%s}]
"""
WITH_MAP = {"web.yaml": deployment("web") + POD % ", envFrom: [{configMapRef: {name: options}}]"}
WITHOUT_MAP = {"web.yaml": deployment("web") + POD % ""}
SERVICE = (
    "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n"
)
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: options, namespace: default}\ndata: {a: b}\n"
OPTIONS = "default/configmap-options"
BASE = {
    "gitsched.yaml": UNGUARDED,
    "first.yaml": cluster("first"),
    "second.yaml": cluster("second"),
    "policy.yaml": policy("first"),
}
SELECTORS = "  - {apiVersion: apps/v1, kind: Deployment}\n"


def select(*lines: str) -> dict[str, str]:
    return {"policy.yaml": policy("first").replace(SELECTORS, SELECTORS + "".join(f"  - {line}\n" for line in lines))}


def has(*paths: str) -> Callable[[Fleet, RunResult], bool]:
    """The output has these files, and the finding is gone."""
    return lambda fleet, run: set(paths) <= set(fleet.files())


def lacks(*paths: str) -> Callable[[Fleet, RunResult], bool]:
    return lambda fleet, run: not set(paths) & set(fleet.files())


class Advice(NamedTuple):
    """`phrase` is printed after `files` were reconciled; `follow` carries it out. Then the finding is gone, and `holds` is true."""

    phrase: str
    files: dict[str, str | None]
    follow: dict[str, str | None]
    holds: Callable[[Fleet, RunResult], bool] = lambda fleet, run: True
    more: list[dict[str, str | None]] = []


ADVICE: dict[str, Any] = {
    "dependencies go along": Advice(
        "set spec.propagateDeps: true in PropagationPolicy/default/all",
        {**WITH_MAP, "map.yaml": MAP},
        {"policy.yaml": policy("first", more="  propagateDeps: true\n")},
        has(f"clusters/first/{OPTIONS}.yaml"),
    ),
    "a policy that selects it": Advice(
        "select it with a policy",
        {**WITH_MAP, "map.yaml": MAP},
        select("{apiVersion: v1, kind: ConfigMap, namespace: default, name: options}"),
        has(f"clusters/first/{OPTIONS}.yaml"),
    ),
    "a Service beside its Deployment": Advice(
        "add to spec.resourceSelectors of PropagationPolicy/default/all",
        {**WITHOUT_MAP, "service.yaml": SERVICE},
        select("{apiVersion: v1, kind: Service, namespace: default, name: web}"),
        has("clusters/first/default/service-web.yaml"),
    ),
    "the policy of the other object": Advice(
        "list these clusters in its policy",
        {**WITH_MAP, "map.yaml": MAP, "maps.yaml": policy("second", kind="ConfigMap", name="maps")},
        {"maps.yaml": policy("first,second", kind="ConfigMap", name="maps")},
        has(f"clusters/first/{OPTIONS}.yaml", f"clusters/second/{OPTIONS}.yaml"),
    ),
    "an object that the source does not have": Advice(
        "commit it, or list it under `spec.assumed`",
        WITH_MAP,
        {"map.yaml": MAP, **select("{apiVersion: v1, kind: ConfigMap, namespace: default, name: options}")},
        has(f"clusters/first/{OPTIONS}.yaml"),
    ),
    "an object that clusters have by themselves": Advice(
        "list it under `spec.assumed`",
        WITH_MAP,
        {"gitsched.yaml": UNGUARDED + "  assumed:\n  - {apiVersion: v1, kind: ConfigMap, namespace: default, name: options}\n"},
    ),
    "a protected namespace": Advice(
        "to deliver it, annotate it with kustomize.toolkit.fluxcd.io/prune: disabled",
        {
            "namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system}\n",
            "spaces.yaml": (
                "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: spaces}\nspec:\n"
                "  resourceSelectors: [{apiVersion: v1, kind: Namespace}]\n  placement: {}\n"
            ),
        },
        {
            "namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: kube-system\n"
            "  annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}\n"
        },
        has("clusters/first/_/namespace-kube-system.yaml"),
    ),
    "a workload that fits nowhere keeps its copy": Advice(
        "to remove it, delete the workload, or have no policy select it",
        {"web.yaml": deployment("web")},
        {"web.yaml": None},
        lacks("clusters/first/default/deployment-web.yaml"),
        [{"first.yaml": cluster("first", "power:NoExecute")}],
    ),
    "a cluster set that is not bound": Advice(
        "no ManagedClusterSet is bound to the namespace shop: add a ManagedClusterSetBinding",
        {
            "fleet.yaml": to_yaml(managed_cluster("hub-one"), placement("pick", "shop", 1)),
            "shop.yaml": deployment("shop", namespace="shop").replace(
                "  namespace: shop\n", "  namespace: shop\n  annotations: {cluster.open-cluster-management.io/placement: pick}\n"
            ),
            "policy.yaml": None,
        },
        {"binding.yaml": to_yaml(*bound_global_set("shop"))},
        has("clusters/hub-one/shop/deployment-shop.yaml"),
    ),
}


def list_messages(run: RunResult) -> str:
    return " ".join(" ".join(str(finding).split()) for finding in run.plan.findings)


@pytest.mark.parametrize("case", ADVICE.values(), ids=ADVICE)
def test_advice_does_what_it_promises(fleet: Fleet, case: Advice) -> None:
    fleet.commit({path: text for path, text in {**BASE, **case.files}.items() if text is not None})
    run = fleet.reconcile()
    for hour, files in enumerate(case.more, start=1):
        fleet.commit(files, hour=hour)
        fleet.reconcile(hour)
        run = fleet.reconcile(hour + 0.5)
    assert case.phrase in list_messages(run), list_messages(run)
    fleet.commit(case.follow, hour=3)
    fleet.reconcile(3)
    run = fleet.reconcile(4)
    assert case.phrase not in list_messages(run)
    assert case.holds(fleet, run)


def test_what_the_guard_withholds_is_made_with_the_digest_that_it_prints(fleet: Fleet) -> None:
    files = {f"apps/{name}.yaml": deployment(name) for name in "abcdefghijkl"}
    fleet.commit({**BASE, **files, "gitsched.yaml": "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\n"})
    fleet.reconcile()
    fleet.commit({"policy.yaml": policy("second")}, hour=1)
    run = fleet.reconcile(1)
    digest = run.plan.withheld.digest
    assert f"Gitsched-Allow: {digest}" in list_messages(run) or f"--allow {digest}" in list_messages(run)
    assert fleet.where("default/deployment-a") == ["first"]
    fleet.commit({}, hour=2, message=f"Allow\n\nGitsched-Allow: {digest}")
    assert not fleet.reconcile(2).plan.withheld.moves
    assert fleet.where("default/deployment-a") == ["second"]
