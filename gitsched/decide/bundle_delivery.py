"""Render what clusters get of a Bundle that Flux or Argo CD builds: objects that refer to the source at a commit, in place of manifests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from gitsched.model.delivery import BundleDelivery, DeliveryConfig, FieldEdit
from gitsched.model.document import Body, Document, Key, is_encrypted
from gitsched.model.finding import FieldOrigin, Finding, Severity, locate_document
from gitsched.model.planned_files import ExistingBlob, PlannedFile
from gitsched.model.variants import Variant
from gitsched.render.bundle_delivery.argocd import (
    find_argocd_problem,
    find_destination,
    list_uncreated_namespaces,
    make_application,
)
from gitsched.render.bundle_delivery.flux import find_flux_problem, make_flux_objects
from gitsched.render.output_files import cluster_path, hub_path, relative_path, write_manifest

FindBlob = Callable[[str], str | None]
WriteNamespaces = Callable[[Iterable[str]], Mapping[str, PlannedFile]]
_MAX_NAMES = 5


class ClusterVariant(NamedTuple):
    """A cluster that gets a variant, and the numbers that scheduling changes in it. `annotations` are those of its document. With `kept`,
    its files stay as they are."""

    cluster: str
    variant: Variant
    annotations: Mapping[str, str] = {}
    edits: tuple[FieldEdit, ...] = ()
    kept: bool = False


class DeliveryFiles(NamedTuple):
    """The files of a Bundle: by cluster and path relative to the directory of the cluster, and by path on the output branch for the hub."""

    manifests: Mapping[str, Mapping[str, PlannedFile]]
    hub: Mapping[str, PlannedFile]
    findings: tuple[Finding, ...]


def render_delivery(
    bundle: Document,
    tool: str,
    targets: Iterable[ClusterVariant],
    settings: DeliveryConfig,
    find_blob: FindBlob,
    write_namespaces: WriteNamespaces,
) -> DeliveryFiles:
    """Render the objects of a Bundle for all its clusters; `tool` is flux or argocd.

    Where the tool cannot build what gitsched builds, a finding says so, and the cluster keeps what it has. `find_blob` returns the blob of
    a path of the previous output; `write_namespaces` returns Namespaces by path, without those that clusters have by themselves.
    """
    manifests: dict[str, dict[str, PlannedFile]] = {}
    hub: dict[str, PlannedFile] = {}
    problems: dict[tuple[Severity, str], list[str]] = {}
    for target in targets:
        name = target.cluster
        delivery = _make_delivery(bundle.key, target, settings)
        objects = _make_objects(delivery, tool, target.annotations, settings)
        paths = {relative_path(key) if tool == "flux" else hub_path(name, key): body for key, body in objects}
        files = manifests.setdefault(name, {}) if tool == "flux" else hub
        problem = "" if target.kept else _find_problem(delivery, tool)
        if problem or target.kept:
            if problem:
                problems.setdefault(("error", f"{problem}. The clusters keep what they have"), []).append(name)
            files |= _keep_files(paths, name if tool == "flux" else "", find_blob)
            continue
        files |= {path: write_manifest(body) for path, body in paths.items()}
        if tool == "flux":
            files |= write_namespaces(_list_namespaces(delivery))
        for warning in _list_warnings(delivery, tool, settings):
            problems.setdefault(("warning", warning), []).append(name)
    findings = tuple(
        _make_finding(bundle, severity, f"{tool} for {_join(clusters)}: {text}") for (severity, text), clusters in problems.items()
    )
    return DeliveryFiles(manifests, hub, findings)


def _make_delivery(bundle: Key, target: ClusterVariant, settings: DeliveryConfig) -> BundleDelivery:
    source = target.variant.source
    assert source is not None, "every variant of a Bundle has a source"
    return BundleDelivery(bundle, target.cluster, target.variant, source, settings.source.url, target.edits)


def _make_objects(
    delivery: BundleDelivery, tool: str, annotations: Mapping[str, str], settings: DeliveryConfig
) -> list[tuple[Key, Body]]:
    if tool == "flux":
        return make_flux_objects(delivery, settings)
    destination = find_destination(delivery.cluster, annotations, settings.argocd)
    return [make_application(delivery, settings, destination)]


def _find_problem(delivery: BundleDelivery, tool: str) -> str:
    if not delivery.url:
        return (
            "the URL of the source is unknown; set delivery.source.url in gitsched.yaml to the https or ssh URL that clusters use"
        )
    return find_flux_problem(delivery) if tool == "flux" else find_argocd_problem(delivery)


def _list_warnings(delivery: BundleDelivery, tool: str, settings: DeliveryConfig) -> Iterable[str]:
    encrypted = next((document.key for document in delivery.variant.objects if is_encrypted(document.body)), None)
    if tool == "flux":
        if encrypted is not None and not settings.flux.decryption_secret:
            yield f"{encrypted} is encrypted by SOPS, and Flux gets no keys; set delivery.flux.decryption.secretName in gitsched.yaml"
        if delivery.url.startswith("ssh://") and not settings.source.secret:
            yield "the source has an ssh URL, and Flux gets no key; set delivery.source.secretName in gitsched.yaml"
        return
    if encrypted is not None:
        yield f"{encrypted} is encrypted by SOPS, which Argo CD does not decrypt without a plug-in; use delivery flux"
    namespaces = list_uncreated_namespaces(delivery)
    if namespaces:
        yield f"Argo CD does not create the namespace {_join(namespaces)}; add a Namespace to the bundle"


def _list_namespaces(delivery: BundleDelivery) -> list[str]:
    """Return the namespaces that Flux needs and the bundle does not have."""
    own = {key.name for key in delivery.objects if key.kind == "Namespace" and not key.group}
    return sorted({key.namespace for key in delivery.objects} - own - {""})


def _keep_files(paths: Iterable[str], cluster: str, find_blob: FindBlob) -> dict[str, PlannedFile]:
    blobs = ((path, find_blob(cluster_path(cluster, path) if cluster else path)) for path in paths)
    return {path: ExistingBlob(blob) for path, blob in blobs if blob is not None}


def _make_finding(bundle: Document, severity: Severity, text: str) -> Finding:
    field = FieldOrigin(bundle.origin, ("spec", "delivery")) if bundle.origin is not None else None
    return Finding(severity, "bundle-delivery", f"delivery {text}", locate_document(bundle), bundle.key.resource, field)


def _join(names: Iterable[str]) -> str:
    found = sorted(names)
    more = f" and {len(found) - _MAX_NAMES} more" if len(found) > _MAX_NAMES else ""
    return f"{', '.join(found[:_MAX_NAMES])}{more}"
