"""Argo CD Applications that build bundles from the source repository, one for each bundle and cluster, and an ApplicationSet of them.

They are applied where Argo CD runs. Shapes as in the CRDs Application and ApplicationSet `argoproj.io/v1alpha1`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection
from typing import Any

from gitsched.model.delivery import CLUSTER_PLACEHOLDER, BundleDelivery, DeliveryConfig
from gitsched.model.document import Body, Key
from gitsched.render.bundle_delivery.source_reference import SOURCE_DIGEST, find_common_problem, make_name, make_patches
from gitsched.render.delivery_tools import OutputBranch, generate_from_git
from gitsched.render.output_files import HUB, escape_segment

KUSTOMIZATION_FILES = frozenset(("kustomization.yaml", "kustomization.yml", "Kustomization"))
_GROUP, _VERSION = "argoproj.io", "argoproj.io/v1alpha1"
_FINALIZER = "resources-finalizer.argocd.argoproj.io"
"""With this finalizer, Argo CD deletes the objects of an Application that is deleted."""


def make_application(delivery: BundleDelivery, settings: DeliveryConfig, destination: str = "") -> tuple[Key, Body]:
    """Return the Application of a bundle for one cluster; `destination` is the name or URL of the cluster in Argo CD, "" for that of the
    settings."""
    argocd = settings.argocd
    destination = destination or argocd.destination.replace(CLUSTER_PLACEHOLDER, delivery.cluster)
    name = make_name(delivery.bundle.namespace, delivery.bundle.name, delivery.cluster)
    metadata: Body = {"name": name, "namespace": argocd.namespace, "annotations": {SOURCE_DIGEST: delivery.variant.digest}}
    if argocd.prune:
        metadata["finalizers"] = [_FINALIZER]
    spec: Body = {
        "project": argocd.project,
        "destination": {**make_destination(destination), "namespace": find_release_namespace(delivery)},
        "source": {
            "repoURL": delivery.url,
            "targetRevision": delivery.variant.commit,
            "path": delivery.variant.path,
            **_make_options(delivery),
        },
        "syncPolicy": {
            "automated": {"prune": argocd.prune, "selfHeal": True},
            "syncOptions": ["CreateNamespace=true"],
        },
    }
    body = {"apiVersion": _VERSION, "kind": "Application", "metadata": metadata, "spec": spec}
    return Key(_GROUP, "Application", argocd.namespace, name), body


def make_destination(destination: str) -> dict[str, str]:
    """Return the destination of an Application: a URL is that of the API server, anything else is a name."""
    return {"server" if destination.startswith(("https://", "http://")) else "name": destination}


def find_release_namespace(delivery: BundleDelivery) -> str:
    """Return the namespace of the chart, or the one of the built objects if there is only one; otherwise `default`, where Kubernetes
    puts objects without a namespace."""
    helm = delivery.source.helm
    if helm is not None:
        return helm.namespace or delivery.bundle.namespace
    return next(iter(delivery.namespaces)) if len(delivery.namespaces) == 1 else "default"


def find_argocd_problem(delivery: BundleDelivery) -> str:
    """Return why Argo CD cannot build what gitsched builds, with a cure; "" if it can."""
    if delivery.variant.values and delivery.source.helm is None:
        names = ", ".join(f"${{{name}}}" for name, _ in delivery.variant.values)
        return f"Argo CD does not substitute {names}; use delivery flux or manifests, or a chart, whose values it sets"
    if delivery.edits and delivery.source.format != "kustomize":
        what = "a chart" if delivery.source.format == "helm" else "a directory without kustomization"
        return f"its replicas are divided, and Argo CD cannot set those of {what}; use delivery flux or manifests"
    inner = min((path for path in delivery.source.files if posixpath.basename(path) in KUSTOMIZATION_FILES), default="")
    if inner and delivery.source.format == "yaml":
        return (
            f"Argo CD does not build {inner} as a part of a directory; add a kustomization for all files of {delivery.variant.path}"
        )
    return find_common_problem(delivery)


def list_build_options(delivery: BundleDelivery) -> list[str]:
    """Return the options of kustomize that a bundle needs, and that are not set in Argo CD by default."""
    options = ["--load-restrictor LoadRestrictionsNone"] if delivery.source.outside else []
    return [*options, "--enable-helm"] if delivery.source.charts else options


def list_uncreated_namespaces(delivery: BundleDelivery) -> list[str]:
    """Return the namespaces of built objects that neither the bundle nor Argo CD creates."""
    own = {key.name for key in delivery.objects if key.kind == "Namespace" and not key.group}
    used = delivery.namespaces - {"default", find_release_namespace(delivery)}
    return sorted(used - own)


def make_application_set(branch: OutputBranch, clusters: Collection[str] | None, name: str, namespace: str, prune: bool) -> Body:
    """Return an ApplicationSet that creates the Applications of the output branch, for all clusters if `clusters` is None.

    The generator reads the Applications themselves, so the ApplicationSet does not change with them. With `prune`, the Application of a
    bundle that leaves a cluster is deleted with its objects.
    """
    directories = ["*"] if clusters is None else [escape_segment(cluster) for cluster in clusters]
    spec: dict[str, Any] = {
        **generate_from_git(branch, "files", [f"{HUB}/{directory}/*.yaml" for directory in directories]),
        "template": {
            "metadata": {"name": "{{.metadata.name}}"},
            "spec": {
                "project": "{{.spec.project}}",
                "destination": {},
                "source": {"repoURL": "{{.spec.source.repoURL}}"},
            },
        },
        "templatePatch": 'metadata: {{omit .metadata "name" "namespace" | toJson}}\nspec: {{.spec | toJson}}\n',
    }
    if not prune:
        spec["syncPolicy"] = {"preserveResourcesOnDeletion": True, "applicationsSync": "create-update"}
    return {
        "apiVersion": _VERSION,
        "kind": "ApplicationSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def make_hub_application(branch: OutputBranch, name: str, namespace: str, project: str, prune: bool) -> Body:
    """Return the Application that delivers the Applications of the output branch to the cluster of Argo CD."""
    return {
        "apiVersion": _VERSION,
        "kind": "Application",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "project": project,
            "destination": {"name": "in-cluster", "namespace": namespace},
            "source": {"repoURL": branch.url, "targetRevision": branch.name, "path": f"{branch.prefix}{HUB}"},
            "syncPolicy": {"automated": {"prune": prune, "selfHeal": True}},
        },
    }


def _make_options(delivery: BundleDelivery) -> Body:
    """Return the options of the tool that builds the source; Argo CD recognizes a kustomization and a chart by their files."""
    helm = delivery.source.helm
    if helm is not None:
        options: Body = {"releaseName": helm.release_name}
        if helm.values_files:
            options["valueFiles"] = [f"/{path}" for path in helm.values_files]
        if helm.values:
            options["valuesObject"] = dict(helm.values)
        return {"helm": options}
    if delivery.source.format == "yaml":
        return {"directory": {"recurse": True}}
    return {"kustomize": {"patches": make_patches(delivery.edits)}} if delivery.edits else {}
