"""Render the manifests of workloads with variants, and find objects that several workloads define differently on one cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from gitsched.model.document import Document, Key
from gitsched.model.finding import Finding, locate_document
from gitsched.model.planned_files import ExistingBlob, PlannedFile
from gitsched.model.scheduling import Outcome, TargetCluster
from gitsched.model.variants import TemplateVariants, WorkloadVariants, is_bundle
from gitsched.render.output_files import cluster_path, plan_manifest, relative_path, write_manifest

Files = Mapping[str, PlannedFile]
FindBlob = Callable[[str], str | None]
MAX_NAMED = 3
"""Objects or clusters that one finding names."""


def render_variants(
    outcome: Outcome, quarantined: bool, others: Files, variants: TemplateVariants, find_blob: FindBlob
) -> dict[str, Files]:
    """Return the manifests of a workload with variants by cluster and relative path.

    `others` are the objects that a workload has besides its Bundles. `find_blob` returns the blob of a path in the previous output.
    """
    own = variants.get(outcome.key)
    manifests: dict[str, Files] = {}
    written: dict[tuple[int, TargetCluster], Files] = {}  # clusters with the same variant share their files
    for target in outcome.targets:
        if target.keeps_manifest or quarantined:
            kept = outcome.kept_paths.get(target.cluster, (relative_path(outcome.key),) if not outcome.bundles else ())
            manifests[target.cluster] = _keep(target.cluster, kept, find_blob)
            continue
        files = dict(others)
        if own is not None and not outcome.bundles:
            files |= _render_document(outcome.key, own, target)
        for key in outcome.bundles:
            found = variants.get(key)
            if found is None or target.cluster in found.failed:
                files |= _keep(target.cluster, outcome.kept_paths.get(target.cluster, ()), find_blob)
            elif target.cluster in found.by_cluster:
                identity = found.by_cluster[target.cluster], target._replace(cluster="", replicas=None, evicting=False)
                if len(outcome.bundles) > 1 or identity not in written:
                    written[identity] = _render_objects(found, target)
                files |= written[identity]
        manifests[target.cluster] = files
    return manifests


def _keep(cluster: str, paths: Iterable[str], find_blob: FindBlob) -> Files:
    blobs = ((path, find_blob(cluster_path(cluster, path))) for path in paths)
    return {path: ExistingBlob(blob) for path, blob in blobs if blob is not None}


def _render_document(key: Key, variants: WorkloadVariants, target: TargetCluster) -> Files:
    variant = variants.find(target.cluster)
    if variant is None:
        return {}
    file = plan_manifest(variant.objects[0], *target.edits) if target.body is None else write_manifest(target.body)
    return {relative_path(key): file}


def _render_objects(variants: WorkloadVariants, target: TargetCluster) -> Files:
    variant = variants.find(target.cluster)
    return {
        relative_path(document.key): plan_manifest(document, *(target.edits if document.key == target.workload else ()))
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
            names = _list_names(sorted(paths))
            clusters = _list_names(sorted({cluster for found in paths.values() for cluster in found}))
            message = (
                f"{other} and {one} define {names} differently for {clusters}: the file there stays as it was; remove it from one of "
                "them, or place them on different clusters"
            )
            bundle = other if is_bundle(other.group, other.kind) else one
            yield Finding("error", "bundle-conflict", message, locate_document(templates[bundle]), bundle.resource)


def _list_names(names: list[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"{', '.join(names[:MAX_NAMED])}{more}"
