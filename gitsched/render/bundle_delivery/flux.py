"""Flux objects that build a bundle in a cluster: a GitRepository at one commit, and a Kustomization or HelmRelease.

Shapes as in the CRDs GitRepository `source.toolkit.fluxcd.io/v1`, Kustomization `kustomize.toolkit.fluxcd.io/v1` and HelmRelease
`helm.toolkit.fluxcd.io/v2`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from gitsched.model.document import Body, Key, parse_api_group
from gitsched.model.urls import normalize_repository_url
from gitsched.render.bundle_delivery.source_reference import (
    SOURCE_DIGEST,
    find_common_problem,
    find_unset_namespace,
    make_name,
    make_patches,
)

if TYPE_CHECKING:
    from gitsched.model.delivery import BundleDelivery, DeliveryConfig
    from gitsched.model.variants import HelmOptions

_PATTERN_CHARACTERS = re.compile(r"([\\*?\[\] ])")
_FLUX_PRUNE = "kustomize.toolkit.fluxcd.io/prune"


def make_flux_objects(delivery: BundleDelivery, settings: DeliveryConfig) -> list[tuple[Key, Body]]:
    """Return the objects for the directory of the cluster."""
    name = make_name(delivery.bundle.namespace, delivery.bundle.name)
    helm = delivery.source.helm
    built = _make_kustomization(delivery, settings, name) if helm is None else _make_helm_release(delivery, helm, settings, name)
    return [(_make_key(body), body) for body in (_make_repository(delivery, settings, name), built)]


def find_flux_problem(delivery: BundleDelivery) -> str:
    """Return why Flux cannot build what gitsched builds, with a cure; "" if it can."""
    source, common = delivery.source, find_common_problem(delivery)
    if common:
        return common
    if source.links:
        return f"{min(source.links)} is a symbolic link, which Flux leaves out; replace it by a copy, or use delivery manifests"
    if source.charts:
        return (
            f"a kustomization renders the chart {source.charts[0]}, which Flux does not do; place the chart as a Bundle of its own"
        )
    json = min((path for path in source.files if path.endswith(".json")), default="") if source.format == "yaml" else ""
    if json:
        return f"Flux does not apply {json} without a kustomization that lists it; add one, or use delivery manifests"
    unset = find_unset_namespace(delivery) if delivery.source.helm is None else None
    if unset is not None:
        return f"{unset.title} has no namespace, and Flux does not apply it without one; set it, for example in the kustomization"
    return ""


def _make_repository(delivery: BundleDelivery, settings: DeliveryConfig, name: str) -> Body:
    spec: dict[str, Any] = {
        "interval": settings.flux.interval,
        "url": normalize_repository_url(delivery.url),
        "ref": {"commit": delivery.variant.commit},
        "ignore": _write_ignore_rules(delivery.source.directories),
    }
    if settings.source.secret:
        spec["secretRef"] = {"name": settings.source.secret}
    annotations = {SOURCE_DIGEST: delivery.variant.digest}
    return _make_object("source.toolkit.fluxcd.io/v1", "GitRepository", name, settings, spec, annotations)


def _make_kustomization(delivery: BundleDelivery, settings: DeliveryConfig, name: str) -> Body:
    flux = settings.flux
    spec: dict[str, Any] = {
        "interval": flux.interval,
        "sourceRef": {"kind": "GitRepository", "name": name},
        "path": _write_path(delivery.variant.path),
        "prune": flux.prune,
        "wait": True,
    }
    if flux.service_account:
        spec["serviceAccountName"] = flux.service_account
    if flux.decryption_secret:
        spec["decryption"] = {"provider": "sops", "secretRef": {"name": flux.decryption_secret}}
    if delivery.edits:
        spec["patches"] = make_patches(delivery.edits)
    if delivery.variant.values:
        spec["postBuild"] = {"substitute": dict(delivery.variant.values)}
    return _make_object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", name, settings, spec)


def _make_helm_release(delivery: BundleDelivery, helm: HelmOptions, settings: DeliveryConfig, name: str) -> Body:
    flux = settings.flux
    chart: dict[str, Any] = {
        "chart": _write_path(delivery.variant.path),
        # With ChartVersion, the default, Flux installs a changed chart only if its version changes, too.
        "reconcileStrategy": "Revision",
        "sourceRef": {"kind": "GitRepository", "name": name},
    }
    if helm.values_files:
        # Flux then leaves out the chart's own values.yaml, which helm always reads first.
        own = posixpath.join(delivery.variant.path, "values.yaml")
        chart["valuesFiles"] = [*([own] if own in delivery.source.files else []), *helm.values_files]
    spec: dict[str, Any] = {
        "interval": flux.interval,
        "chart": {"spec": chart},
        "releaseName": helm.release_name,
        "targetNamespace": helm.namespace or delivery.bundle.namespace,
        "install": {"createNamespace": True},
        "upgrade": {"crds": "CreateReplace"},
    }
    if flux.service_account:
        spec["serviceAccountName"] = flux.service_account
    if helm.values:
        spec["values"] = dict(helm.values)
    if delivery.edits:
        spec["postRenderers"] = [{"kustomize": {"patches": make_patches(delivery.edits)}}]
    # Deleting a HelmRelease removes what it installed; it has no field that prevents this.
    annotations = {} if flux.prune else {_FLUX_PRUNE: "disabled"}
    return _make_object("helm.toolkit.fluxcd.io/v2", "HelmRelease", name, settings, spec, annotations)


def _write_ignore_rules(directories: Iterable[str]) -> str:
    """Return rules that keep only these directories in the artifact.

    They take precedence over `.sourceignore` files and over the extensions that Flux leaves out by default, which a build may need.
    """
    return "".join(("/*\n", *(f"!/{_escape_pattern(path)}\n" for path in directories)))


def _write_path(path: str) -> str:
    return "./" if path == "." else f"./{path}"


def _escape_pattern(path: str) -> str:
    return _PATTERN_CHARACTERS.sub(r"\\\1", path)


def _make_object(
    version: str, kind: str, name: str, settings: DeliveryConfig, spec: Body, annotations: dict[str, str] | None = None
) -> Body:
    metadata: Body = {"name": name, "namespace": settings.flux.namespace}
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def _make_key(body: Body) -> Key:
    metadata = body["metadata"]
    return Key(parse_api_group(body["apiVersion"]), body["kind"], metadata["namespace"], metadata["name"])
