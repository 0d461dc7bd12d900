"""Flux objects that build a bundle in a cluster: a GitRepository at one commit, and a Kustomization or HelmRelease.

Shapes as in the CRDs GitRepository `source.toolkit.fluxcd.io/v1`, Kustomization `kustomize.toolkit.fluxcd.io/v1` and HelmRelease
`helm.toolkit.fluxcd.io/v2`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from gitsched.model.delivery import BundleDelivery, DeliveryConfig, HelmOptions
from gitsched.model.document import Body, Key, parse_api_group
from gitsched.render.bundle_delivery.source_reference import (
    SOURCE_DIGEST,
    find_ambiguous_edit,
    make_name,
    make_patches,
    normalize_url,
)

_PATTERN_CHARACTERS = re.compile(r"([\\*?\[\] ])")
_FLUX_PRUNE = "kustomize.toolkit.fluxcd.io/prune"


def make_flux_objects(delivery: BundleDelivery, settings: DeliveryConfig) -> list[tuple[Key, Body]]:
    """Return the objects for the directory of the cluster."""
    name = make_name(delivery.bundle.namespace, delivery.bundle.name)
    make = _make_kustomization if delivery.helm is None else _make_helm_release
    objects = (_make_repository(delivery, settings, name), make(delivery, settings, name))
    return [(_make_key(body), body) for body in objects]


def find_flux_problem(delivery: BundleDelivery) -> str:
    """Return why Flux cannot build what gitsched builds, with a cure; "" if it can."""
    edit = find_ambiguous_edit(delivery)
    if edit is not None:
        return (
            f"its replicas are divided, and a patch of Flux cannot select {edit.key} alone, because the bundle has several objects of this "
            "kind; use delivery manifests"
        )
    return ""


def _make_repository(delivery: BundleDelivery, settings: DeliveryConfig, name: str) -> Body:
    spec: dict[str, Any] = {
        "interval": settings.flux.interval,
        "url": normalize_url(delivery.url),
        "ref": {"commit": delivery.commit},
        "ignore": _write_ignore_rules(delivery.directories),
    }
    if settings.source.secret:
        spec["secretRef"] = {"name": settings.source.secret}
    annotations = {SOURCE_DIGEST: delivery.digest}
    return _make_object("source.toolkit.fluxcd.io/v1", "GitRepository", name, settings, spec, annotations)


def _make_kustomization(delivery: BundleDelivery, settings: DeliveryConfig, name: str) -> Body:
    flux = settings.flux
    spec: dict[str, Any] = {
        "interval": flux.interval,
        "sourceRef": {"kind": "GitRepository", "name": name},
        "path": f"./{delivery.path}",
        "prune": flux.prune,
        "wait": True,
    }
    if flux.service_account:
        spec["serviceAccountName"] = flux.service_account
    if flux.decryption_secret:
        spec["decryption"] = {"provider": "sops", "secretRef": {"name": flux.decryption_secret}}
    if delivery.edits:
        spec["patches"] = make_patches(delivery.edits)
    if delivery.values:
        spec["postBuild"] = {"substitute": dict(sorted(delivery.values.items()))}
    return _make_object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", name, settings, spec)


def _make_helm_release(delivery: BundleDelivery, settings: DeliveryConfig, name: str) -> Body:
    flux, helm = settings.flux, delivery.helm or HelmOptions("", "")
    chart: dict[str, Any] = {
        "chart": f"./{delivery.path}",
        # With ChartVersion, the default, Flux installs a changed chart only if its version changes, too.
        "reconcileStrategy": "Revision",
        "sourceRef": {"kind": "GitRepository", "name": name},
    }
    if helm.values_files:
        chart["valuesFiles"] = list(helm.values_files)
    spec: dict[str, Any] = {
        "interval": flux.interval,
        "chart": {"spec": chart},
        "releaseName": helm.release,
        "targetNamespace": helm.namespace,
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
    if "." in directories:
        return "!/*\n/.git/\n"
    return "".join(("/*\n", *(f"!/{_escape_pattern(path)}\n" for path in sorted(directories))))


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
