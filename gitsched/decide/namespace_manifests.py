"""The manifests of Namespaces in the directories of clusters: of the source, needed by objects, and protected ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.model.document import Document, Key
from gitsched.model.finding import Finding, locate_document
from gitsched.model.planned_files import PlannedFile
from gitsched.render.cluster_directory import is_never_pruned, namespace_path, plan_namespace, write_namespace
from gitsched.render.output_files import escape_segment, relative_path

if TYPE_CHECKING:
    from gitsched.decide.decisions import DecisionSet
    from gitsched.decide.workload_files import Files, WorkloadFiles


def list_namespace_manifests(templates: Mapping[Key, Document], protected: Container[str]) -> dict[str, tuple[str, PlannedFile]]:
    """Return the path and manifest of each Namespace in the source that is not protected, by the directory of its objects."""
    return {
        escape_segment(key.name): (relative_path(key), plan_namespace(template))
        for key, template in templates.items()
        if key.kind == "Namespace" and not key.group and key.name not in protected
    }


def withhold_namespaces(rendered: dict[Key, WorkloadFiles], decisions: DecisionSet, protected: Collection[str]) -> list[Finding]:
    """Remove from `rendered` the manifests of protected Namespaces that a delivery tool would delete later, with a finding for each.

    A Namespace whose source says that it is never pruned is delivered.
    """
    findings = []
    templates = decisions.templates
    for key, files in rendered.items():
        outcome = files.outcome
        objects = ((key, templates[key].body),) if outcome.manifests is None else outcome.manifests
        if outcome.bundles:
            from gitsched.decide.variants.rendered_variants import list_variant_objects

            built = (document for document in list_variant_objects(outcome, decisions.variants) if document.key.kind == "Namespace")
            objects = (*objects, *((document.key, document.body) for document in built))
        names = [
            one.name
            for one, body in objects
            if one.kind == "Namespace" and not one.group and one.name in protected and not is_never_pruned(body)
        ]
        if not names or not outcome.targets:
            continue
        paths = frozenset(map(namespace_path, names))
        manifests = {
            cluster: {path: file for path, file in manifests.items() if path not in paths}
            for cluster, manifests in files.manifests.items()
        }
        rendered[key] = files._replace(manifests=manifests)
        message = (
            f"Namespace {', '.join(names)} is not delivered, because a delivery tool would delete it with all its objects when its "
            "placement ends; to deliver it, annotate it with kustomize.toolkit.fluxcd.io/prune: disabled (Flux) or "
            "argocd.argoproj.io/sync-options: Prune=false (Argo CD), else remove it from the policy"
        )
        findings.append(Finding("warning", "namespace-protected", message, locate_document(templates[key]), key.resource))
    return findings


def keep_namespace(path: str, templates: Mapping[Key, Document], protected: Iterable[str]) -> PlannedFile:
    """Return the protected Namespace that the previous output has at a path, with annotations that keep it in the cluster."""
    name = next(name for name in protected if namespace_path(name) == path)
    template = templates.get(Key("", "Namespace", "", name))
    return plan_namespace(template) if template is not None else write_namespace(name)


def select_namespaces(
    decisions: DecisionSet, own: Mapping[str, tuple[str, PlannedFile]]
) -> Callable[[str], Mapping[str, tuple[str, PlannedFile]]]:
    """Return what gives the Namespaces of the source that a cluster may get."""
    tenancy = decisions.tenancy
    if tenancy is None or not own:
        return lambda _: own
    from gitsched.decide.tenants.tenant_namespaces import make_namespace_filter  # few sources have tenants

    return make_namespace_filter(own, decisions.templates, decisions.catalog.api_documents, tenancy)


def add_needed_namespaces(
    manifests: dict[str, dict[str, PlannedFile]],
    workloads: Iterable[WorkloadFiles],
    select: Callable[[str], Mapping[str, tuple[str, PlannedFile]]],
    protected: Container[str],
) -> None:
    """Add the Namespaces of objects that a delivery tool builds, unless a workload delivers them."""
    for workload in workloads:
        for cluster, names in workload.namespaces.items():
            for name in names:
                if name not in protected:
                    path, file = select(cluster).get(escape_segment(name)) or (namespace_path(name), write_namespace(name))
                    manifests.setdefault(cluster, {}).setdefault(path, file)


def add_namespace_manifests(manifests: Files, own: Mapping[str, tuple[str, PlannedFile]]) -> Files:
    """Add the Namespace manifests of the source for all namespaces in use, whether or not a policy selects them."""
    used = {path.partition("/")[0] for path in manifests} & own.keys() if own else ()
    added = {own[namespace][0]: own[namespace][1] for namespace in used}
    return {**added, **manifests} if added else manifests
