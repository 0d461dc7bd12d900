"""What clusters get of a Bundle that Flux or Argo CD builds: objects that refer to the source at a commit, in place of manifests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from gitsched.model.delivery import BundleDelivery, DeliveryConfig, FieldEdit, make_bundle_delivery
from gitsched.model.document import Body, Document, Key, get_field, is_encrypted
from gitsched.model.finding import FieldOrigin, Finding, Severity, format_names, locate_document
from gitsched.model.urls import normalize_repository_url
from gitsched.model.variants import BUNDLE_KIND, MANIFESTS, Variant, WorkloadVariants
from gitsched.render.bundle_delivery.argocd import (
    find_argocd_problem,
    list_build_options,
    list_uncreated_namespaces,
    make_application,
)
from gitsched.render.bundle_delivery.flux import find_flux_problem, make_flux_objects
from gitsched.render.bundle_delivery.source_reference import make_name
from gitsched.render.output_files import hub_path, relative_path, write_manifest

if TYPE_CHECKING:
    from gitsched.model.planned_files import PlannedFile
    from gitsched.model.scheduling import Outcome, TargetCluster

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
    return next((body for one, body in objects if one == key and one[:2] == BUNDLE_KIND), {})


class BundleDeliveries:
    """The deliveries of a Bundle by a tool. What depends only on a variant and its replicas is computed once for all clusters."""

    def __init__(self, key: Key, tool: str, variants: WorkloadVariants, settings: DeliveryConfig) -> None:
        self.key, self.tool = key, tool
        self._variants, self._settings = variants, settings
        self._deliveries: dict[object, tuple[BundleDelivery, str] | None] = {}

    def find(self, target: TargetCluster) -> BundleDelivery | None:
        """Return what a cluster gets; None without a variant."""
        found = self._find(target)
        return found[0]._replace(cluster=target.cluster) if found is not None else None

    def find_problem(self, target: TargetCluster) -> str:
        """Return why the tool cannot build what gitsched builds, with a cure; "" if it can."""
        found = self._find(target)
        return found[1] if found is not None else ""

    def find_problems(self, targets: Iterable[TargetCluster]) -> dict[str, str]:
        """Return the clusters for which the tool cannot build what gitsched builds, with the reason and a cure."""
        problems = ((target.cluster, self.find_problem(target)) for target in targets if not target.keeps_manifest)
        return {cluster: problem for cluster, problem in problems if problem}

    def list_findings(self, template: Document, targets: Iterable[TargetCluster]) -> Iterator[Finding]:
        """Yield an error for each reason why the tool cannot build the Bundle, and a warning for each thing that it lacks."""
        found: dict[tuple[Severity, str], list[str]] = {}
        warnings: dict[int, list[str]] = {}
        for target in targets:
            entry = None if target.keeps_manifest else self._find(target)
            if entry is None:
                continue
            delivery, problem = entry
            if problem:
                found.setdefault(("error", problem), []).append(target.cluster)
                continue
            if id(delivery) not in warnings:
                warnings[id(delivery)] = list(_list_warnings(delivery, self.tool, self._settings))
            for text in warnings[id(delivery)]:
                found.setdefault(("warning", text), []).append(target.cluster)
        origin = template.origin
        field = FieldOrigin(origin, ("spec", "delivery")) if origin is not None and template.key == self.key else None
        for (severity, text), clusters in found.items():
            where = f"{self.key} for {format_names(sorted(clusters), _MAX_NAMES)}"
            message = f"{where}: {text}"
            if severity == "error":
                message = f"{self.tool} cannot build {message}; clusters that have the Bundle keep it, and no other gets it"
            yield Finding(severity, "bundle-delivery", message, locate_document(template), template.key.resource, field)

    def render(self, delivery: BundleDelivery) -> dict[str, PlannedFile]:
        """Render the files for one cluster by their paths: relative to its directory, or for Argo CD to the root of the output."""
        if self.tool == ARGOCD:
            destination = self._variants.destinations.get(delivery.cluster, "")
            key, body = make_application(delivery, self._settings, destination)
            return {hub_path(delivery.cluster, key): write_manifest(body)}
        return {relative_path(key): write_manifest(body) for key, body in make_flux_objects(delivery, self._settings)}

    def list_paths(self, delivery: BundleDelivery) -> list[str]:
        """Return the paths that the directory of the cluster has, besides Namespaces."""
        return [] if self.tool == ARGOCD else sorted(relative_path(key) for key, _ in make_flux_objects(delivery, self._settings))

    def _find(self, target: TargetCluster) -> tuple[BundleDelivery, str] | None:
        index = self._variants.by_cluster.get(target.cluster)
        if index is None:
            return None
        identity = index, target.workload, target.edits
        if identity not in self._deliveries:
            variant = self._variants.variants[index]
            edits = () if target.workload is None else tuple(_list_edits(variant, target.workload, target.edits))
            source, url = variant.source, self._settings.source.url
            made = make_bundle_delivery(self.key, target.cluster, variant, source, url, edits) if source is not None else None
            self._deliveries[identity] = (made, _find_problem(made, self.tool)) if made is not None else None
        return self._deliveries[identity]


def _find_problem(delivery: BundleDelivery, tool: str) -> str:
    if not delivery.url:
        return "the URL of the source is unknown; set spec.delivery.source.url in gitsched.yaml to the https or ssh URL that clusters use"
    return find_flux_problem(delivery) if tool == FLUX else find_argocd_problem(delivery)


def find_application_path(key: Key, cluster: str) -> str:
    """Return the path of the Application of a Bundle for a cluster."""
    return hub_path(cluster, Key("argoproj.io", "Application", "", make_name(key.namespace, key.name, cluster)))


def list_missing_namespaces(delivery: BundleDelivery, tool: str) -> tuple[str, ...]:
    """Return the namespaces of objects that the Bundle does not have, and that the tool does not create."""
    if tool == ARGOCD or delivery.source.helm is not None:
        return ()
    own = {key.name for key in delivery.objects if key.kind == "Namespace" and not key.group}
    return tuple(sorted(delivery.namespaces - own))


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
            yield f"{encrypted} is encrypted by SOPS, and Flux gets no keys; set spec.delivery.flux.decryption.secretName in gitsched.yaml"
        if normalize_repository_url(delivery.url).startswith("ssh://") and not settings.source.secret:
            yield "the source has an ssh URL, and Flux gets no key; set spec.delivery.source.secretName in gitsched.yaml"
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
        yield f"Argo CD does not create the namespace{plural} {format_names(sorted(namespaces), _MAX_NAMES)}; add {added} to the bundle"
