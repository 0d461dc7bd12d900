"""Objects with which Flux and Argo CD build a bundle, checked against the schemas of their CRDs."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
import yaml

from gitsched.model.delivery import (
    ArgoSettings,
    BundleDelivery,
    DeliveryConfig,
    FieldEdit,
    FluxSettings,
    SourceAddress,
    make_bundle_delivery,
)
from gitsched.model.document import Body, Document, Key
from gitsched.model.variants import HelmOptions, Variant, VariantSource
from gitsched.render.bundle_delivery.argocd import (
    find_argocd_problem,
    list_build_options,
    list_uncreated_namespaces,
    make_application,
)
from gitsched.render.bundle_delivery.flux import find_flux_problem, make_flux_objects
from gitsched.render.bundle_delivery.source_reference import list_directories, make_name
from tests.upstream_schemas import validate

URL = "https://git.example.com/platform/fleet.git"
COMMIT = "5d0c9e6b2f4a1c3e8b7d6f5a4c3b2a1908f7e6d5"
DEFAULTS = DeliveryConfig()


def built(text: str) -> tuple[Document, ...]:
    """Return the documents of a stream, each `KIND NAMESPACE/NAME` on a line; `-` is no namespace, and `_` a cluster-scoped kind."""
    documents = []
    for line in text.strip().splitlines():
        kind, _, path = line.strip().partition(" ")
        namespace, _, name = path.partition("/")
        metadata = {"name": name} | ({"namespace": namespace} if namespace not in "-_" else {})
        group = "apps" if kind == "Deployment" else ""
        key = Key(group, kind, {"-": "default", "_": ""}.get(namespace, namespace), name)
        documents.append(Document(key, f"{group}/v1".strip("/"), {"metadata": metadata, "kind": kind}))
    return tuple(documents)


WEB = "Deployment shop/web\nService shop/web"


def deliver(
    objects: str = WEB,
    *,
    path: str = "apps/web/production",
    values: tuple[tuple[str, str], ...] = (),
    edits: tuple[FieldEdit, ...] = (),
    url: str = URL,
    name: str = "web",
    cluster: str = "dub-prod-1",
    **source: Any,
) -> BundleDelivery:
    files = source.pop("files", {"apps/web/base/web.yaml", f"{path}/kustomization.yaml"})
    variant = Variant(path, built(objects), "sha256:1f", values, COMMIT)
    made = VariantSource(files=frozenset(files), directories=tuple(list_directories(files)), **source)
    return make_bundle_delivery(Key("gitsched.io", "Bundle", "shop", name), cluster, variant, made, url, edits)


def chart(**options: Any) -> dict[str, Any]:
    return {"format": "helm", "helm": HelmOptions("web", **options), "path": "charts/web"}


def flux(delivery: BundleDelivery, settings: DeliveryConfig = DEFAULTS) -> dict[str, Body]:
    """Return the valid Flux objects by kind."""
    objects = make_flux_objects(delivery, settings)
    for key, body in objects:
        validate(body)
        assert (key.kind, key.namespace, key.name) == (body["kind"], body["metadata"]["namespace"], body["metadata"]["name"])
    return {key.kind: body for key, body in objects}


def application(delivery: BundleDelivery, settings: DeliveryConfig = DEFAULTS, destination: str = "dub-prod-1") -> Body:
    """Return the valid Application."""
    _, body = make_application(delivery, settings, destination)
    validate(body)
    return body


def test_flux_builds_the_variant_from_the_source_at_the_commit() -> None:
    objects = flux(deliver())
    assert objects["GitRepository"]["spec"] == {
        "interval": "10m",
        "url": URL,
        "ref": {"commit": COMMIT},
        "ignore": "/*\n!/apps/web/base\n!/apps/web/production\n",
    }
    assert objects["Kustomization"]["spec"] == {
        "interval": "10m",
        "sourceRef": {"kind": "GitRepository", "name": "shop.web"},
        "path": "./apps/web/production",
        "prune": True,
        "wait": True,
    }
    assert {body["metadata"]["namespace"] for body in objects.values()} == {"flux-system"}


def test_settings_reach_the_flux_objects() -> None:
    settings = DeliveryConfig(SourceAddress(secret="read"), FluxSettings("gitops", "1h", False, "deployer", "sops-age"))
    objects = flux(deliver(), settings)
    repository, kustomization = objects["GitRepository"]["spec"], objects["Kustomization"]["spec"]
    assert repository["secretRef"] == {"name": "read"}
    assert (kustomization["interval"], kustomization["prune"], kustomization["serviceAccountName"]) == ("1h", False, "deployer")
    assert kustomization["decryption"] == {"provider": "sops", "secretRef": {"name": "sops-age"}}
    assert objects["Kustomization"]["metadata"]["namespace"] == "gitops"


def test_values_of_a_kustomization_are_substituted_by_flux() -> None:
    spec = flux(deliver(values=(("region", "eu"), ("tier", "1"))))["Kustomization"]["spec"]
    assert spec["postBuild"] == {"substitute": {"region": "eu", "tier": "1"}}


def test_divided_replicas_are_a_patch() -> None:
    edit = FieldEdit(Key("apps", "Deployment", "shop", "web"), "spec.replicas", 3)
    delivery = deliver(edits=(edit,))
    (patch,) = flux(delivery)["Kustomization"]["spec"]["patches"]
    assert patch["target"] == {"group": "apps", "kind": "Deployment"}
    assert yaml.safe_load(patch["patch"]) == [{"op": "add", "path": "/spec/replicas", "value": 3}]
    assert application(delivery)["spec"]["source"]["kustomize"] == {"patches": [patch]}
    several = deliver(f"{WEB}\nDeployment shop/worker", edits=(edit,))
    assert "Deployment.apps/shop/web" in find_flux_problem(several)
    assert "Deployment.apps/shop/web" in find_argocd_problem(several)
    assert find_flux_problem(delivery) == find_argocd_problem(delivery) == ""


def test_a_chart_is_a_helm_release() -> None:
    files = {"charts/web/Chart.yaml", "charts/web/values.yaml", "env/production.yaml"}
    options = chart(namespace="shop-eu", values_files=("env/production.yaml",), values={"replicaCount": 2})
    edit = FieldEdit(Key("apps", "Deployment", "shop", "web"), "spec.replicas", 3)
    objects = flux(deliver(files=files, edits=(edit,), **options))
    spec = objects["HelmRelease"]["spec"]
    assert spec["chart"]["spec"] == {
        "chart": "./charts/web",
        "reconcileStrategy": "Revision",
        "sourceRef": {"kind": "GitRepository", "name": "shop.web"},
        # Flux reads only the listed files, so the chart's own values come first.
        "valuesFiles": ["charts/web/values.yaml", "env/production.yaml"],
    }
    assert (spec["releaseName"], spec["targetNamespace"], spec["values"]) == ("web", "shop-eu", {"replicaCount": 2})
    assert spec["postRenderers"][0]["kustomize"]["patches"][0]["target"]["kind"] == "Deployment"
    assert objects["GitRepository"]["spec"]["ignore"] == "/*\n!/charts/web\n!/env\n"


def test_a_release_without_namespace_is_in_that_of_the_bundle() -> None:
    assert flux(deliver(**chart()))["HelmRelease"]["spec"]["targetNamespace"] == "shop"
    assert application(deliver(**chart()))["spec"]["destination"]["namespace"] == "shop"


def test_a_helm_release_stays_where_nothing_is_pruned() -> None:
    release = flux(deliver(**chart()), DeliveryConfig(flux=FluxSettings(prune=False)))["HelmRelease"]
    assert release["metadata"]["annotations"] == {"kustomize.toolkit.fluxcd.io/prune": "disabled"}


@pytest.mark.parametrize(
    ("url", "for_flux"),
    [
        ("git@git.example.com:platform/fleet.git", "ssh://git@git.example.com/platform/fleet.git"),
        ("ssh://git@git.example.com:7999/fleet.git", "ssh://git@git.example.com:7999/fleet.git"),
        (URL, URL),
    ],
)
def test_flux_gets_a_url_with_a_scheme(url: str, for_flux: str) -> None:
    assert flux(deliver(url=url))["GitRepository"]["spec"]["url"] == for_flux
    assert application(deliver(url=url))["spec"]["source"]["repoURL"] == url


@pytest.mark.parametrize(
    ("files", "directories"),
    [
        (["a/b/x.yaml", "a/b/c/y.yaml", "a/bc/z.yaml"], ["a/b", "a/bc"]),
        (["x.yaml", "base/y.yaml"], ["base", "x.yaml"]),
        ([], []),
    ],
)
def test_the_artifact_has_the_directories_that_a_build_reads(files: list[str], directories: list[str]) -> None:
    assert list_directories(files) == directories


def test_characters_of_patterns_are_escaped() -> None:
    rules = flux(deliver(files={"apps/[web]/x.yaml", "a b/y.yaml"}))["GitRepository"]["spec"]["ignore"]
    assert rules == "/*\n!/a\\ b\n!/apps/\\[web\\]\n"


def test_what_flux_cannot_do_is_a_problem() -> None:
    assert "apps/web/link.yaml" in find_flux_problem(deliver(links=frozenset({"apps/web/link.yaml"})))
    assert "Deployment/default/web" in find_flux_problem(deliver("Deployment -/web"))
    assert "charts/db" in find_flux_problem(deliver(charts=("charts/db",)))
    assert "apps/web/a.json" in find_flux_problem(deliver(format="yaml", files={"apps/web/a.json", "apps/web/b.yaml"}))
    assert find_flux_problem(deliver(files={"apps/web/a.json", "apps/web/kustomization.yaml"})) == ""
    assert find_flux_problem(deliver("Namespace _/shop")) == ""
    assert find_flux_problem(deliver("Deployment -/web", **chart())) == ""


def test_an_application_builds_the_variant_on_its_cluster() -> None:
    body = application(deliver())
    assert body["metadata"]["name"] == "shop.web.dub-prod-1"
    assert body["metadata"]["finalizers"] == ["resources-finalizer.argocd.argoproj.io"]
    assert body["spec"] == {
        "project": "default",
        "destination": {"name": "dub-prod-1", "namespace": "shop"},
        "source": {"repoURL": URL, "targetRevision": COMMIT, "path": "apps/web/production"},
        "syncPolicy": {"automated": {"prune": True, "selfHeal": True}, "syncOptions": ["CreateNamespace=true"]},
    }


def test_settings_reach_the_application() -> None:
    settings = DeliveryConfig(argocd=ArgoSettings("openshift-gitops", "fleet", prune=False))
    body = application(deliver(), settings, "https://10.0.0.1:6443")
    assert body["metadata"]["namespace"] == "openshift-gitops"
    assert "finalizers" not in body["metadata"]
    assert body["spec"]["project"] == "fleet"
    assert body["spec"]["destination"] == {"server": "https://10.0.0.1:6443", "namespace": "shop"}
    assert body["spec"]["syncPolicy"]["automated"] == {"prune": False, "selfHeal": True}


def test_the_destination_is_that_of_the_cluster_else_of_the_settings() -> None:
    settings = DeliveryConfig(argocd=ArgoSettings(destination="https://{cluster}.example.com"))
    assert application(deliver(), settings, "")["spec"]["destination"]["server"] == "https://dub-prod-1.example.com"
    assert application(deliver(), settings, "dublin")["spec"]["destination"]["name"] == "dublin"
    assert application(deliver(), DEFAULTS, "")["spec"]["destination"]["name"] == "dub-prod-1"


def test_an_application_has_the_values_of_a_chart() -> None:
    options = chart(values_files=("env/production.yaml",), values={"image": {"tag": "2"}})
    delivery = deliver(values=(("region", "eu"),), **options)
    assert find_argocd_problem(delivery) == ""
    assert application(delivery)["spec"]["source"]["helm"] == {
        "releaseName": "web",
        "valueFiles": ["/env/production.yaml"],
        "valuesObject": {"image": {"tag": "2"}},
    }


def test_an_application_reads_all_files_below_a_directory_of_yaml() -> None:
    assert application(deliver(format="yaml"))["spec"]["source"]["directory"] == {"recurse": True}


def test_what_argocd_cannot_do_is_a_problem() -> None:
    assert "${region}" in find_argocd_problem(deliver(values=(("region", "eu"),)))
    edit = FieldEdit(Key("apps", "Deployment", "shop", "web"), "spec.replicas", 3)
    assert "chart" in find_argocd_problem(deliver(edits=(edit,), **chart()))
    files = {"apps/web/a.yaml"}
    assert "directory" in find_argocd_problem(deliver(edits=(edit,), format="yaml", files=files))
    assert find_argocd_problem(deliver(format="yaml", files=files)) == ""
    inner = deliver(format="yaml", files={*files, "apps/web/db/kustomization.yaml"})
    assert "apps/web/db/kustomization.yaml" in find_argocd_problem(inner)


def test_neither_tool_builds_a_directory_with_documents_of_gitsched() -> None:
    delivery = deliver(omitted=("apps/web/production/policy.yaml",))
    assert find_flux_problem(delivery) == find_argocd_problem(delivery)
    assert "apps/web/production/policy.yaml has a document of gitsched" in find_flux_problem(delivery)


def test_argocd_needs_options_for_charts_and_for_files_outside_of_the_root() -> None:
    assert list_build_options(deliver()) == []
    delivery = deliver(charts=("charts/db",), outside=frozenset({"common.yaml"}))
    assert list_build_options(delivery) == ["--load-restrictor LoadRestrictionsNone", "--enable-helm"]


def test_argocd_creates_only_the_namespace_of_the_destination() -> None:
    assert list_uncreated_namespaces(deliver()) == []
    assert list_uncreated_namespaces(deliver("ConfigMap shop/a\nConfigMap web/b\nNamespace _/web")) == ["shop"]


def test_names_are_unique_and_are_label_values() -> None:
    parts = [("a", "b", "c"), ("a", "b.c", "d"), ("a", "b", "c.d"), ("a", "x" * 80, "c"), ("a", "x" * 81, "c")]
    names = [make_name(*part) for part in parts]
    assert names[0] == "a.b.c"
    assert len(set(names)) == len(names)
    assert max(map(len, names)) <= 63
    assert make_name("a", "b.c") == "a.b.c"


def test_the_schemas_refuse_what_the_crds_refuse() -> None:
    body = flux(deliver())["GitRepository"]
    with pytest.raises(jsonschema.ValidationError):
        validate({**body, "spec": {**body["spec"], "url": "/srv/git/fleet.git"}})
