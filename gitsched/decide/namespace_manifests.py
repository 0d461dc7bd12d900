"""The manifests of Namespaces in the directories of clusters: of the source, needed by objects, and protected ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from gitsched.decide.catalog import make_duplicate_findings
from gitsched.model.document import Body, Document, Key
from gitsched.model.finding import Finding, locate_document
from gitsched.model.planned_files import ExistingBlob, PlannedFile
from gitsched.named_tuples import NamedTuple
from gitsched.render.cluster_directory import is_added_namespace, is_never_pruned, namespace_path, plan_namespace, write_namespace
from gitsched.render.output_files import cluster_path, escape_segment, relative_path

if TYPE_CHECKING:
    from gitsched.decide.decisions import DecisionSet
    from gitsched.decide.skipped_workloads import FindBlob
    from gitsched.decide.workload_files import Files, WorkloadFiles


class ChosenNamespaces(NamedTuple):
    """The Namespaces that clusters get where they have objects in them: `own` are the path and manifest of each of the source, by the
    directory of its objects, and `select` returns those of them that a cluster may get."""

    own: Mapping[str, tuple[str, PlannedFile]]
    select: Callable[[str], Mapping[str, tuple[str, PlannedFile]]]
    findings: Sequence[Finding] = ()


NO_NAMESPACES = ChosenNamespaces({}, lambda _: {})


def choose_namespaces(
    decisions: DecisionSet,
    workloads: Collection[WorkloadFiles],
    manifests: dict[str, dict[str, PlannedFile]],
    delivered: Mapping[str, Collection[str]],
    find_blob: FindBlob,
    read_manifest: Callable[[str], Body | None],
    protected: Container[str],
) -> ChosenNamespaces:
    """Return the Namespaces of the source that clusters get, and add those of objects that a delivery tool builds to the `manifests`.
    `manifests` and `delivered` are as in `render`."""
    own = list_namespace_manifests(decisions.templates, protected)
    last, findings = _keep_duplicates(decisions, workloads, manifests, delivered, find_blob, protected)
    own |= last
    if decisions.withheld or any(outcome.held is not None for outcome in decisions.outcomes.values()):
        own |= _keep_withheld(decisions, read_manifest, find_blob)
    select = _select_namespaces(decisions, own)
    _add_needed_namespaces(manifests, workloads, select, protected)
    return ChosenNamespaces(own, select, findings)


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


def keep_namespace(cluster: str, path: str, decisions: DecisionSet, protected: Iterable[str], find_blob: FindBlob) -> PlannedFile:
    """Return the protected Namespace that the previous output has at a path, with annotations that keep it in the cluster.

    If documents define it differently, it stays as it is.
    """
    key = Key("", "Namespace", "", next(name for name in protected if namespace_path(name) == path))
    template = decisions.templates.get(key)
    if key in decisions.catalog.duplicate_templates and (blob := find_blob(cluster_path(cluster, path))) is not None:
        return ExistingBlob(blob)
    return plan_namespace(template) if template is not None else write_namespace(key.name)


def _keep_duplicates(
    decisions: DecisionSet,
    workloads: Iterable[WorkloadFiles],
    manifests: Mapping[str, Files],
    delivered: Mapping[str, Collection[str]],
    find_blob: FindBlob,
    protected: Container[str],
) -> tuple[dict[str, tuple[str, PlannedFile]], list[Finding]]:
    """Return the Namespaces that documents define differently and that clusters need, as they were delivered last, by the directory of
    their objects, and the findings about them. `manifests` and `delivered` are as in `render`.

    One file is for all clusters: also for one that gets the first object of a namespace. The findings about Namespaces that a policy
    selects are among those of the decisions.
    """
    duplicates = {
        escape_segment(key.name): copies
        for key, copies in decisions.catalog.duplicate_templates.items()
        if (key.group, key.kind) == ("", "Namespace")
    }
    if not duplicates:
        return {}, []
    used = _list_used_namespaces(decisions, duplicates, workloads, manifests, delivered)
    kept: dict[str, tuple[str, PlannedFile]] = {}
    reported = []
    for directory, copies in duplicates.items():
        document, path = copies[0], relative_path(copies[0].key)
        clusters = [name for name, directories in used.items() if directory in directories]
        if not clusters:
            continue
        blobs = (find_blob(cluster_path(name, path)) for name in dict.fromkeys((*clusters, *used)))
        blob = next((blob for blob in blobs if blob is not None), None)
        is_protected = document.key.name in protected
        if blob is not None and not is_protected:
            kept[directory] = path, ExistingBlob(blob)
        is_selected = document.key in decisions.quarantined or any(engine.selects(document) for engine in decisions.engines)
        if not is_selected and (blob is not None or not is_protected):
            reported.append(copies)
    return kept, make_duplicate_findings(reported)


def _keep_withheld(
    decisions: DecisionSet, read_manifest: Callable[[str], Body | None], find_blob: FindBlob
) -> dict[str, tuple[str, PlannedFile]]:
    """Return the Namespaces that the source does not have any more, as they were delivered last, by the directory of their objects, where
    workloads keep their clusters because the guard withholds that they go, or because they have data.

    A Namespace that gitsched added stays as it is without being kept.
    """
    lost = {key for key, outcome in decisions.outcomes.items() if outcome.held is not None and outcome.held.lost}
    kept: dict[str, tuple[str, PlannedFile]] = {}
    for workload in sorted(decisions.withheld | lost):
        name, outcome = workload.namespace, decisions.outcomes.get(workload)
        if not name or outcome is None or escape_segment(name) in kept or Key("", "Namespace", "", name) in decisions.templates:
            continue
        path = namespace_path(name)
        for target in outcome.targets:
            delivered = cluster_path(target.cluster, path)
            blob, body = find_blob(delivered), read_manifest(delivered)
            if blob is not None and body is not None and not is_added_namespace(body):
                kept[escape_segment(name)] = path, ExistingBlob(blob)
                break
    return kept


def _list_used_namespaces(
    decisions: DecisionSet,
    duplicates: Mapping[str, Sequence[Document]],
    workloads: Iterable[WorkloadFiles],
    manifests: Mapping[str, Files],
    delivered: Mapping[str, Collection[str]],
) -> dict[str, set[str]]:
    """Return the directories of the namespaces in which each cluster has objects, or whose Namespace of the `duplicates` it has."""
    used: dict[str, set[str]] = {}
    for name in sorted(decisions.cluster_facts.keys() | manifests.keys()):
        paths = {*manifests.get(name, ()), *delivered.get(escape_segment(name), ())}
        used[name] = {path.partition("/")[0] for path in paths}
        used[name] |= {one for one, copies in duplicates.items() if relative_path(copies[0].key) in paths}
    for workload in workloads:
        for name, namespaces in workload.namespaces.items():
            used.setdefault(name, set()).update(map(escape_segment, namespaces))
    return used


def _select_namespaces(
    decisions: DecisionSet, own: Mapping[str, tuple[str, PlannedFile]]
) -> Callable[[str], Mapping[str, tuple[str, PlannedFile]]]:
    """Return what gives the Namespaces of the source that a cluster may get."""
    tenancy = decisions.tenancy
    if tenancy is None or not own:
        return lambda _: own
    from gitsched.decide.tenants.tenant_namespaces import make_namespace_filter  # few sources have tenants

    keys = (*decisions.templates, *decisions.catalog.duplicate_templates)
    return make_namespace_filter(own, keys, decisions.catalog.api_documents, tenancy)


def _add_needed_namespaces(
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
