"""Render the manifests of workloads with variants, and find objects that several workloads define differently on one cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from gitsched.decide.variants.bundle_delivery import (
    ARGOCD,
    BundleDeliveries,
    find_application_path,
    find_bundle,
    list_missing_namespaces,
    read_delivery,
)
from gitsched.decide.workload_files import Files
from gitsched.model.delivery import DeliveryConfig
from gitsched.model.document import Document, Key
from gitsched.model.finding import Finding, format_names, locate_document
from gitsched.model.planned_files import ExistingBlob, PlannedFile
from gitsched.model.scheduling import Outcome, TargetCluster
from gitsched.model.variants import BUNDLE_KIND, MANIFESTS, TemplateVariants, WorkloadVariants
from gitsched.named_tuples import NamedTuple
from gitsched.render.output_files import cluster_path, plan_changed_manifest, plan_manifest, relative_path

FindBlob = Callable[[str], str | None]


class VariantFiles(NamedTuple):
    """The files of a workload with variants: manifests by cluster and relative path, and files for the hub by path on the output branch.

    `namespaces` are those that objects of a cluster need, and that a delivery tool does not create.
    """

    manifests: dict[str, Files]
    hub: Files
    namespaces: Mapping[str, tuple[str, ...]]


def render_variants(
    outcome: Outcome,
    template: Document,
    quarantined: bool,
    others: Files,
    variants: TemplateVariants,
    settings: DeliveryConfig,
    find_blob: FindBlob,
) -> VariantFiles:
    """Render the files of a workload with variants.

    `others` are the objects that a workload has besides its Bundles. `find_blob` returns the blob of a path in the previous output.
    """
    own = variants.get(outcome.key)
    manifests: dict[str, Files] = {}
    hub: dict[str, PlannedFile] = {}
    namespaces: dict[str, tuple[str, ...]] = {}
    written: dict[
        tuple[int, TargetCluster, tuple[tuple[Key, int], ...]], Files
    ] = {}  # clusters with the same variant share their files
    deliveries = {key: _find_deliveries(key, template, outcome, variants, settings) for key in outcome.bundles}
    for target in outcome.targets:
        if target.keeps_manifest or quarantined:
            kept = outcome.kept_paths.get(target.cluster, (relative_path(outcome.key),) if not outcome.bundles else ())
            manifests[target.cluster] = _keep(target.cluster, kept, find_blob)
            for key in outcome.bundles:
                hub |= _keep_application(key, target.cluster, find_blob)
            continue
        files = dict(others)
        if own is not None and not outcome.bundles:
            files |= _render_document(outcome.key, own, target)
        for key, by_tool in deliveries.items():
            found = variants.get(key)
            delivery = by_tool.find(target) if by_tool is not None else None
            if found is None or target.cluster in found.failed or (by_tool is not None and by_tool.find_problem(target)):
                files |= _keep(target.cluster, outcome.kept_paths.get(target.cluster, ()), find_blob)
                hub |= _keep_application(key, target.cluster, find_blob)
            elif by_tool is not None and delivery is not None:
                if by_tool.tool == ARGOCD:
                    hub |= by_tool.render(delivery)
                else:
                    files |= by_tool.render(delivery)
                missing = list_missing_namespaces(delivery, by_tool.tool)
                namespaces[target.cluster] = (*namespaces.get(target.cluster, ()), *missing)
            elif target.cluster in found.by_cluster:
                changed = tuple((key, id(body)) for key, body in target.bodies)
                identity = (
                    found.by_cluster[target.cluster],
                    target._replace(cluster="", replicas=None, evicting=False, bodies=(), until=None, release=""),
                    changed,
                )
                if len(outcome.bundles) > 1 or identity not in written:
                    written[identity] = _render_objects(found, target)
                files |= written[identity]
        manifests[target.cluster] = files
    return VariantFiles(manifests, hub, namespaces)


def _find_deliveries(
    key: Key, template: Document, outcome: Outcome, variants: TemplateVariants, settings: DeliveryConfig
) -> BundleDeliveries | None:
    """Return the deliveries of a Bundle by Flux or Argo CD; None for one whose objects gitsched writes."""
    tool, found = read_delivery(find_bundle(template, outcome, key)), variants.get(key)
    return BundleDeliveries(key, tool, found, settings) if found is not None and tool != MANIFESTS else None


def _keep(cluster: str, paths: Iterable[str], find_blob: FindBlob) -> Files:
    blobs = ((path, find_blob(cluster_path(cluster, path))) for path in paths)
    return {path: ExistingBlob(blob) for path, blob in blobs if blob is not None}


def _keep_application(key: Key, cluster: str, find_blob: FindBlob) -> Files:
    """Return the Application that the previous output has of a Bundle for a cluster."""
    path = find_application_path(key, cluster)
    blob = find_blob(path)
    return {path: ExistingBlob(blob)} if blob is not None else {}


def _render_document(key: Key, variants: WorkloadVariants, target: TargetCluster) -> Files:
    variant = variants.find(target.cluster)
    if variant is None:
        return {}
    document = variant.objects[0]
    file = plan_manifest(document, *target.edits) if target.body is None else plan_changed_manifest(document, target.body)
    return {relative_path(key): file}


def _render_objects(variants: WorkloadVariants, target: TargetCluster) -> Files:
    variant, changed = variants.find(target.cluster), dict(target.bodies)
    return {
        relative_path(document.key): plan_manifest(document, *(target.edits if document.key == target.workload else ()))
        if document.key not in changed
        else plan_changed_manifest(document, changed[document.key])
        for document in (variant.objects if variant is not None else ())
    }


def list_variant_objects(outcome: Outcome, variants: TemplateVariants) -> Iterator[Document]:
    """Yield the objects of all variants of a workload's Bundles."""
    for key in outcome.bundles:
        found = variants.get(key)
        yield from (document for variant in (found.variants if found is not None else ()) for document in variant.objects)


class SharedObjects:
    """Objects that several workloads deliver to one cluster, at least one of them as a part of a Bundle.

    An object that all define alike is one object. Of one that they define differently, the previous output stays.
    """

    def __init__(self, find_blob: FindBlob) -> None:
        self._find_blob = find_blob
        self.found = False
        self._conflicts: dict[tuple[Key, Key], dict[str, list[str]]] = {}

    def merge(
        self, cluster: str, manifests: dict[str, PlannedFile], owners: dict[str, Outcome], outcome: Outcome, files: Files
    ) -> None:
        """Add the files of a workload to those of a cluster. `owners` are the workloads that the files are of."""
        for path, file in files.items():
            owner = owners.setdefault(path, outcome)
            if owner is outcome or not (owner.bundles or outcome.bundles):
                manifests[path] = file
                continue
            self.found = True
            if manifests.get(path) == file:
                continue
            clusters = self._conflicts.setdefault((owner.key, outcome.key), {})
            clusters.setdefault(path, []).append(cluster)
            manifests.pop(path, None)
            manifests |= _keep(cluster, (path,), self._find_blob)

    def list_findings(self, templates: Mapping[Key, Document]) -> Iterator[Finding]:
        """Yield an error for each pair of workloads that define objects differently."""
        for (one, other), paths in sorted(self._conflicts.items()):
            names = format_names(sorted(paths))
            clusters = format_names(sorted({cluster for found in paths.values() for cluster in found}))
            message = (
                f"{other} and {one} define {names} differently for {clusters}: the file there stays as it was; remove it from one of "
                "them, or place them on different clusters"
            )
            bundle = other if other[:2] == BUNDLE_KIND else one
            yield Finding("error", "bundle-conflict", message, locate_document(templates[bundle]), bundle.resource)
