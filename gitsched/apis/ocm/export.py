"""`gitsched export ocm`: the objects for a hub or for Argo CD."""

from __future__ import annotations

from gitsched.apis.export import ExportInput, ExportResult, make_object_list
from gitsched.apis.ocm.argocd_generator import make_application_set, make_decision_copies, make_generator_objects
from gitsched.apis.ocm.hub_objects import (
    find_invalid_workloads,
    find_obstacle,
    list_placements,
    list_workloads,
    make_decisions,
    make_placements,
    make_replica_set,
    make_statuses,
)
from gitsched.apis.ocm.manifest_works import find_waiting_clusters, make_manifest_works
from gitsched.model.document import Body, Key
from gitsched.model.finding import Finding


def make_export(found: ExportInput) -> ExportResult:
    """Return the objects for the consumer in the option `for`; with `status` only those for the subresource `status`."""
    options = found.options
    placements = list_placements(found, options["placement"])
    missing: list[Finding] = []
    if options["placement"] and not placements:
        missing = [Finding("warning", "ocm-not-exported", f"no Placement {options['placement']} found: use NAMESPACE/NAME")]
    consumer, status = options["for"], bool(options["status"])
    if consumer != "argocd" and not status:
        missing += find_invalid_workloads(found)
    if consumer == "argocd":
        return make_object_list(_make_argocd_objects(found, placements), missing)
    if consumer == "works":
        objects, findings = _make_works(found, placements)
        return make_object_list([] if status else objects, [*missing, *findings])
    if status:
        return make_object_list(make_statuses(found, placements), missing)
    objects, findings = _make_replica_sets(found, placements)
    return make_object_list(
        [*make_placements(found, placements), *make_decisions(found, placements), *objects], [*missing, *findings]
    )


def _make_argocd_objects(found: ExportInput, placements: list[Key]) -> list[Body]:
    options = found.options
    namespace, status = options["namespace"], bool(options["status"])
    objects = [] if status else list(make_generator_objects(namespace))
    objects += make_decision_copies(found, placements, namespace, status=status)
    if options["app-url"] and not status:
        objects += [make_application_set(key, namespace, options["app-url"], options["app-path"]) for key in placements]
    return objects


def _make_replica_sets(found: ExportInput, placements: list[Key]) -> tuple[list[Body], list[Finding]]:
    objects: list[Body] = []
    findings: list[Finding] = []
    for workload in list_workloads(found, placements):
        obstacle = find_obstacle(workload, with_secrets=bool(found.options["secrets"]))
        if obstacle is None:
            objects.append(make_replica_set(workload))
        else:
            findings.append(obstacle)
    return objects, findings


def _make_works(found: ExportInput, placements: list[Key]) -> tuple[list[Body], list[Finding]]:
    objects: list[Body] = []
    findings: list[Finding] = []
    for workload in list_workloads(found, placements):
        obstacle = find_obstacle(workload, with_secrets=bool(found.options["secrets"]))
        if obstacle is None:
            objects += make_manifest_works(found, workload)
            obstacle = find_waiting_clusters(found, workload)
        findings += [obstacle] if obstacle is not None else []
    objects.sort(key=lambda body: (body["metadata"]["namespace"], body["metadata"]["name"]))
    return objects, findings
