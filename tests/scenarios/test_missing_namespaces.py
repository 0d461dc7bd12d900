"""Objects without metadata.namespace: clusters get plain manifests with their namespace, and a warning names what is built without one."""

from __future__ import annotations

import shutil

import pytest

from gitsched.render import output_files
from tests.builders.krake import application_yaml, cluster_yaml

from .conftest import Fleet, cluster, deployment, policy

BARE = deployment("web").replace("  namespace: default\n", "")
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {a: b}\n"
SETTINGS = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec:\n"
STRICT = f"{SETTINGS}  guard: {{fleet: {{removed: 0, moved: 0, replicasLost: 0}}}}\n"
CLUSTERS = {"clusters/one.yaml": cluster("one"), "clusters/two.yaml": cluster("two")}
DIVIDED = policy("", scheduling="Divided")
BUNDLE = (
    "apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {name: web, namespace: default}\nspec: {path: bundle}\n---\n"
    "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: bundles, namespace: default}\nspec:\n"
    "  resourceSelectors: [{apiVersion: gitsched.io/v1alpha1, kind: Bundle}]\n  placement: {clusterAffinity: {clusterNames: [one]}}\n"
)
OVERRIDE = (
    "apiVersion: policy.karmada.io/v1alpha1\nkind: OverridePolicy\nmetadata: {name: tier, namespace: default}\nspec:\n"
    "  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]\n  overrideRules:\n  - targetCluster: {clusterNames: [two]}\n"
    "    overriders: {labelsOverrider: [{operator: add, value: {tier: two}}]}\n"
)
SOPS = "sops: {mac: 'ENC[AES256_GCM,data:bWFj,type:str]', lastmodified: '2026-01-01T00:00:00Z', version: 3.9.0}\n"


def warnings(fleet: Fleet, hour: float = 0) -> list[str]:
    found = fleet.reconcile(hour).plan.findings
    return [f"{one.location}: {one.message}" for one in found if one.code == "namespace-missing"]


def test_clusters_get_the_namespace_of_a_plain_manifest(fleet: Fleet) -> None:
    """With divided replicas, with an override, and by a continued plan as by a complete one."""
    fleet.commit({**CLUSTERS, "web.yaml": BARE, "policy.yaml": DIVIDED, "override.yaml": OVERRIDE})
    assert warnings(fleet) == []
    path = "default/deployment-web.yaml"
    given = BARE.replace("replicas: 2", "replicas: 1")
    assert fleet.read(f"clusters/one/{path}") == given.replace("metadata:\n", "metadata:\n  namespace: default\n")
    assert fleet.load(f"clusters/two/{path}")["metadata"] == {"name": "web", "namespace": "default", "labels": {"tier": "two"}}
    fleet.commit({"web.yaml": BARE.replace("as many", "just as many")}, hour=1)
    assert warnings(fleet, hour=1) == []
    files = fleet.files()
    assert "just as many" in fleet.read(f"clusters/one/{path}")
    assert fleet.load(f"clusters/one/{path}")["metadata"] == {"name": "web", "namespace": "default"}
    shutil.rmtree(fleet.cache)
    assert fleet.reconcile(1).before == fleet.head
    assert fleet.files() == files


def test_an_output_without_namespaces_gets_them_without_a_move(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier version wrote it; a guard that allows no move does not see one."""
    fleet.commit({**CLUSTERS, "gitsched.yaml": STRICT, "web.yaml": BARE, "policy.yaml": DIVIDED})
    with monkeypatch.context() as earlier:
        earlier.setattr(output_files, "is_namespace_added", lambda _: False)
        fleet.reconcile()
    before = fleet.files()
    shutil.rmtree(fleet.cache)
    run = fleet.reconcile(1)
    assert (run.plan.moves, run.plan.withheld.moves) == ((), ())
    changed = {path for path, blob in fleet.files().items() if before.get(path) != blob}
    assert {path for path in changed if "/" in path} == {f"clusters/{name}/default/deployment-web.yaml" for name in ("one", "two")}
    assert fleet.reconcile(2).before == fleet.head


@pytest.mark.needs("kubectl")
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"bundle.yaml": BUNDLE, "bundle/kustomization.yaml": "resources: [web.yaml]\n", "bundle/web.yaml": MAP},
            "bundle/web.yaml:1:1: Bundle.gitsched.io/default/web: ConfigMap/default/web: delivered without a namespace, as kustomize "
            "builds it. Flux applies nothing of a directory with such an object, unless its Kustomization has a targetNamespace; set "
            "`namespace` in the kustomization, or metadata.namespace",
        ),
        (
            {"policy.yaml": policy("one", kind="ConfigMap"), "web.yaml": f"{MAP}{SOPS}"},
            "web.yaml:1:1: ConfigMap/default/web: delivered without a namespace, as SOPS encrypted it. Flux applies nothing of a "
            "directory with such an object, unless its Kustomization has a targetNamespace; set metadata.namespace with `sops edit`",
        ),
        (
            {
                "bundle.yaml": BUNDLE,
                "bundle/kustomization.yaml": "namespace: default\nresources: [web.yaml]\n",
                "bundle/web.yaml": MAP,
            },
            "",
        ),
        ({"bundle.yaml": BUNDLE, "bundle/web.yaml": MAP}, ""),
    ],
)
def test_what_is_built_or_encrypted_without_a_namespace_is_a_warning(fleet: Fleet, files: dict[str, str], expected: str) -> None:
    fleet.commit({**CLUSTERS, **files})
    assert warnings(fleet) == ([expected] if expected else [])
    delivered = fleet.load("clusters/one/default/configmap-web.yaml")["metadata"]
    assert delivered == ({"name": "web"} if expected else {"name": "web", "namespace": "default"})


def test_the_objects_of_an_application_of_krake_get_their_namespace(fleet: Fleet) -> None:
    """But not those of a kind of which nothing says that it has namespaces."""
    odd = "  - {apiVersion: example.com/v1, kind: Odd, metadata: {name: echo}}\n"
    fleet.commit({"one.yaml": cluster_yaml("one"), "echo.yaml": application_yaml(more=odd)})
    fleet.reconcile()
    directory = "clusters/tenant-a.one/default"
    assert fleet.load(f"{directory}/configmap-echo-settings.yaml")["metadata"] == {"name": "echo-settings", "namespace": "default"}
    assert fleet.load(f"{directory}/odd.example.com-echo.yaml")["metadata"] == {"name": "echo"}
