"""What clusters get of a Bundle that Flux or Argo CD builds: objects that refer to the source at a commit, in place of manifests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gitsched.model.delivery import BundleDelivery, DeliveryConfig, FieldEdit
from gitsched.model.document import Body, Document, Key, get_field, is_encrypted
from gitsched.model.finding import FieldOrigin, Finding, Severity, locate_document
from gitsched.model.planned_files import PlannedFile
from gitsched.model.scheduling import Outcome, TargetCluster
from gitsched.model.urls import normalize_repository_url
from gitsched.model.variants import MANIFESTS, Variant, WorkloadVariants, is_bundle
from gitsched.render.bundle_delivery.argocd import (
    find_argocd_problem,
    list_build_options,
    list_uncreated_namespaces,
    make_application,
)
from gitsched.render.bundle_delivery.flux import find_flux_problem, make_flux_objects
from gitsched.render.bundle_delivery.source_reference import make_name
from gitsched.render.output_files import hub_path, relative_path, write_manifest

FLUX, ARGOCD = "flux", "argocd"
_MAX_NAMES = 5


def read_delivery(bundle: Body) -> str:
    """Return the delivery of a Bundle: manifests, flux or argocd."""
    return str(get_field(bundle, "spec", "delivery") or MANIFESTS)


def find_bundle(template: Document, outcome: Outcome, key: Key) -> Body:
    """Return a Bundle of a workload: the workload itself, or one of the objects that it consists of."""
    if template.key == key:
        return template.body
    objects = ((one._replace(namespace=one.namespace or template.key.namespace), body) for one, body in outcome.manifests or ())
    return next((body for one, body in objects if one == key and is_bundle(*one[:2])), {})


def find_problems(
    key: Key, tool: str, targets: Iterable[TargetCluster], variants: WorkloadVariants, settings: DeliveryConfig
) -> dict[str, str]:
    """Return the clusters for which the tool cannot build what gitsched builds, with the reason and a cure."""
    deliveries = _make_deliveries(key, targets, variants, settings)
    return {delivery.cluster: problem for delivery in deliveries if (problem := find_problem(delivery, tool))}


def find_problem(delivery: BundleDelivery, tool: str) -> str:
    """Return why the tool cannot build what gitsched builds, with a cure; "" if it can."""
    if not delivery.url:
        return (
            "the URL of the source is unknown; set delivery.source.url in gitsched.yaml to the https or ssh URL that clusters use"
        )
    return find_flux_problem(delivery) if tool == FLUX else find_argocd_problem(delivery)


def list_delivery_findings(
    template: Document, key: Key, tool: str, targets: Iterable[TargetCluster], variants: WorkloadVariants, settings: DeliveryConfig
) -> Iterator[Finding]:
    """Yield an error for each reason why the tool cannot build a Bundle, and a warning for each thing that the tool lacks."""
    found: dict[tuple[Severity, str], list[str]] = {}
    for delivery in _make_deliveries(key, targets, variants, settings):
        problem = find_problem(delivery, tool)
        entries: list[tuple[Severity, str]] = [("error", problem)] if problem else []
        entries += [("warning", text) for text in _list_warnings(delivery, tool, settings)] if not problem else []
        for entry in entries:
            found.setdefault(entry, []).append(delivery.cluster)
    origin = template.origin
    field = FieldOrigin(origin, ("spec", "delivery")) if origin is not None and template.key == key else None
    for (severity, text), clusters in found.items():
        where = f"{key} for {_join(clusters)}"
        message = (
            f"{tool} cannot build {where}: {text}; the clusters keep what they have" if severity == "error" else f"{where}: {text}"
        )
        yield Finding(severity, "bundle-delivery", message, locate_document(template), template.key.resource, field)


def make_delivery(key: Key, target: TargetCluster, variants: WorkloadVariants, settings: DeliveryConfig) -> BundleDelivery | None:
    """Return what a cluster gets of a Bundle; None without a variant."""
    variant = variants.find(target.cluster)
    if variant is None or variant.source is None:
        return None
    edits = () if target.workload is None else tuple(_list_edits(variant, target.workload, target.edits))
    return BundleDelivery(key, target.cluster, variant, variant.source, settings.source.url, edits)


def render_delivery(delivery: BundleDelivery, tool: str, destination: str, settings: DeliveryConfig) -> dict[str, PlannedFile]:
    """Render the files of a Bundle for one cluster by their paths: relative to its directory, or for Argo CD to the root of the output."""
    if tool == ARGOCD:
        key, body = make_application(delivery, settings, destination)
        return {hub_path(delivery.cluster, key): write_manifest(body)}
    return {relative_path(key): write_manifest(body) for key, body in make_flux_objects(delivery, settings)}


def find_application_path(key: Key, cluster: str) -> str:
    """Return the path of the Application of a Bundle for a cluster."""
    return hub_path(cluster, Key("argoproj.io", "Application", "", make_name(key.namespace, key.name, cluster)))


def list_missing_namespaces(delivery: BundleDelivery, tool: str) -> tuple[str, ...]:
    """Return the namespaces of objects that the Bundle does not have, and that the tool does not create."""
    if tool == ARGOCD or delivery.source.helm is not None:
        return ()
    own = {key.name for key in delivery.objects if key.kind == "Namespace" and not key.group}
    return tuple(sorted({key.namespace for key in delivery.objects} - own - {""}))


def _make_deliveries(
    key: Key, targets: Iterable[TargetCluster], variants: WorkloadVariants, settings: DeliveryConfig
) -> Iterator[BundleDelivery]:
    for target in targets:
        delivery = make_delivery(key, target, variants, settings)
        if delivery is not None and not target.keeps_manifest:
            yield delivery


def _list_edits(variant: Variant, workload: Key, edits: Iterable[tuple[str, int]]) -> Iterator[FieldEdit]:
    """Yield the numbers that differ from those that the variant has."""
    body = next((document.body for document in variant.objects if document.key == workload), {})
    for field, value in edits:
        if get_field(body, *field.split(".")) != value:
            yield FieldEdit(workload, field, value)


def _list_warnings(delivery: BundleDelivery, tool: str, settings: DeliveryConfig) -> Iterator[str]:
    encrypted = next((document.key for document in delivery.variant.objects if is_encrypted(document.body)), None)
    if tool == FLUX:
        if encrypted is not None and not settings.flux.decryption_secret:
            yield f"{encrypted} is encrypted by SOPS, and Flux gets no keys; set delivery.flux.decryption.secretName in gitsched.yaml"
        if normalize_repository_url(delivery.url).startswith("ssh://") and not settings.source.secret:
            yield "the source has an ssh URL, and Flux gets no key; set delivery.source.secretName in gitsched.yaml"
        return
    if encrypted is not None:
        yield f"{encrypted} is encrypted by SOPS, which Argo CD does not decrypt without a plug-in; use delivery flux"
    options = list_build_options(delivery)
    if options:
        yield f"kustomize needs the options {' '.join(options)}; set them in kustomize.buildOptions of the ConfigMap argocd-cm"
    namespaces = list_uncreated_namespaces(delivery)
    if namespaces:
        plural = "s" if len(namespaces) > 1 else ""
        added = "Namespaces" if plural else "a Namespace"
        yield f"Argo CD does not create the namespace{plural} {_join(namespaces)}; add {added} to the bundle"


def _join(names: Iterable[str]) -> str:
    found = sorted(names)
    more = f" and {len(found) - _MAX_NAMES} more" if len(found) > _MAX_NAMES else ""
    return f"{', '.join(found[:_MAX_NAMES])}{more}"
