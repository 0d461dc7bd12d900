"""Objects for a hub of Open Cluster Management: Placements that its controller does not schedule, PlacementDecisions, and
ManifestWorkReplicaSets or ManifestWorks for the workloads.

API servers ignore a status that is applied with an object, so statuses are separate objects, for the subresource `status`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping

from gitsched.apis.export import ExportInput
from gitsched.apis.ocm import names
from gitsched.apis.ocm.manifestworkreplicaset import API_NAME
from gitsched.apis.ocm.workloads import read_placement_annotation, template_record
from gitsched.model.document import Body, Document, Key, as_string_map, get_field, read_labels, remove_server_owned
from gitsched.model.finding import Finding, locate_document
from gitsched.model.labels import is_label_value
from gitsched.named_tuples import NamedTuple

MAX_MANIFESTS = 500 * 1024
"""Bytes of all manifests in one object: the default of the hub's webhook (upstream: pkg/work/webhook/common/validator.go)."""
_NEW_DEFAULTS = {"scoreRateLimit": "1m", "sortBy": "ClusterName"}
"""Defaults of fields that older hubs do not know; kubectl refuses an unknown field."""
MANAGED_BY = {"app.kubernetes.io/managed-by": "gitsched"}


class HubWorkload(NamedTuple):
    """A workload of Placements: `key` and `spec` are those of its ManifestWorkReplicaSet, `document` is in the source."""

    key: Key
    spec: Body
    document: Document


def list_placements(found: ExportInput, selected: str) -> list[Key]:
    """Return the keys of the Placements with a document or a decision; only `selected` (namespace/name) unless it is ""."""
    documents = (document.key for document in found.documents.get((names.GROUP, names.PLACEMENT), ()))
    decided = (
        names.placement_key(key.namespace, read_labels(body).get(names.PLACEMENT_LABEL, ""))
        for key, body in found.records
        if key.kind == names.PLACEMENT_DECISION
    )
    return sorted(key for key in {*documents, *decided} if selected in ("", f"{key.namespace}/{key.name}"))


def list_decisions(found: ExportInput, placement: Key) -> list[tuple[Key, Body]]:
    """Return the PlacementDecisions of a Placement in the order of their numbers."""
    decisions = [
        (key, body)
        for key, body in found.records
        if (key.group, key.kind, key.namespace) == (names.GROUP, names.PLACEMENT_DECISION, placement.namespace)
        and read_labels(body).get(names.PLACEMENT_LABEL) == placement.name
    ]
    return sorted(decisions, key=lambda decision: (len(decision[0].name), decision[0].name))


def make_placements(found: ExportInput, placements: Iterable[Key]) -> Iterator[Body]:
    """Yield the Placements of the source with the annotation that keeps the hub's scheduler from replacing their decisions."""
    documents = {document.key: document for document in found.documents.get((names.GROUP, names.PLACEMENT), ())}
    for key in placements:
        if key in documents:
            body = remove_server_owned(documents[key].body)
            spec = {name: value for name, value in body["spec"].items() if _NEW_DEFAULTS.get(name) != value}
            annotations = {**as_string_map(body["metadata"].get("annotations")), names.SCHEDULING_DISABLED_ANNOTATION: "true"}
            yield _add_metadata({**body, "spec": spec}, key, annotations)


def make_decisions(found: ExportInput, placements: Iterable[Key]) -> Iterator[Body]:
    """Yield the PlacementDecisions without their status.

    They have no owner: an ownerReference needs the uid that the hub gave the Placement, and the hub deletes an object whose owner has
    another uid.
    """
    for placement in placements:
        for key, body in list_decisions(found, placement):
            metadata = body["metadata"]
            labels = {**as_string_map(metadata.get("labels")), **MANAGED_BY}
            yield {
                "apiVersion": body["apiVersion"],
                "kind": key.kind,
                "metadata": {
                    "name": key.name,
                    "namespace": key.namespace,
                    "labels": labels,
                    **({"annotations": metadata["annotations"]} if metadata.get("annotations") else {}),
                },
            }


def make_statuses(found: ExportInput, placements: Iterable[Key]) -> Iterator[Body]:
    """Yield the statuses of the Placements and PlacementDecisions, for the subresource `status`."""
    statuses = {key: body for key, body in found.records if key.kind == names.PLACEMENT}
    for placement in placements:
        own = [(placement, statuses[placement])] if placement in statuses else []
        for key, body in (*list_decisions(found, placement), *own):
            yield {
                "apiVersion": body["apiVersion"],
                "kind": key.kind,
                "metadata": {"name": key.name, "namespace": key.namespace},
                "status": body["status"],
            }


def list_workloads(found: ExportInput, placements: Iterable[Key]) -> list[HubWorkload]:
    """Return the workloads of the Placements: ManifestWorkReplicaSets of the source, and objects annotated with a Placement."""
    wanted = frozenset(placements)
    workloads = []
    for document in found.documents.get((names.WORK_GROUP, names.MANIFEST_WORK_REPLICA_SET), ()):
        references = document.body["spec"].get("placementRefs") or ()
        if wanted.intersection(names.placement_key(document.key.namespace, reference["name"]) for reference in references):
            workloads.append(HubWorkload(document.key, document.body["spec"], document))
    for template in found.templates.values():
        by_namespace: dict[str, list[Body]] = {}
        for placement in _list_template_placements(found, template, wanted):
            by_namespace.setdefault(placement.namespace, []).append({"name": placement.name})
        for namespace, references in by_namespace.items():
            work = {"workload": {"manifests": [_make_manifest(template)]}}
            spec = {"manifestWorkTemplate": work, "placementRefs": references}
            workloads.append(HubWorkload(template_record(template.key, namespace), spec, template))
    return sorted(workloads, key=lambda workload: (workload.key, workload.document.key))


def _list_template_placements(found: ExportInput, template: Document, wanted: Collection[Key]) -> list[Key]:
    """Return the Placements of a template: that of its annotation, and those of the workloads that it follows, which its outcome names."""
    annotated, outcome = read_placement_annotation(template), found.outcomes.get(template.key)
    named = outcome.policy.split(", ") if outcome is not None and outcome.api == API_NAME else ()
    return sorted(placement for placement in wanted if placement == annotated or str(placement) in named)


def make_replica_set(workload: HubWorkload) -> Body:
    """Return the ManifestWorkReplicaSet of a workload."""
    is_document = workload.document.key == workload.key
    body = remove_server_owned(workload.document.body) if is_document else {"metadata": {}}
    version = names.VERSIONS[names.WORK_GROUP, names.MANIFEST_WORK_REPLICA_SET]
    body = {"apiVersion": f"{names.WORK_GROUP}/{version}", "kind": names.MANIFEST_WORK_REPLICA_SET, **body, "spec": workload.spec}
    return _add_metadata(body, workload.key, as_string_map(body["metadata"].get("annotations")))


def find_obstacle(workload: HubWorkload, *, with_secrets: bool) -> Finding | None:
    """Return why an object for the workload is not printed, or would be refused by the hub's webhook; None if nothing prevents it."""
    manifests = get_field(workload.spec, "manifestWorkTemplate", "workload", "manifests") or []
    size = len(json.dumps(manifests, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass"))
    label = f"{workload.key.namespace}.{workload.key.name}"
    reason = ""
    if not with_secrets and any((body.get("apiVersion"), body.get("kind")) == ("v1", "Secret") for body in manifests):
        reason = "it contains a Secret, which every reader of the printed objects would see: use --secrets to print it"
    elif not manifests:
        reason = "it has no manifests, and the hub refuses it: add one"
    elif size > MAX_MANIFESTS:
        reason = f"its manifests have {size} bytes, and the hub refuses more than {MAX_MANIFESTS}: split it"
    elif not is_label_value(label):
        reason = f"the hub labels its ManifestWorks with {label!r}, which is not a label value of at most 63 characters: shorten the name"
    return make_finding(workload, reason) if reason else None


def find_invalid_workloads(found: ExportInput) -> Iterator[Finding]:
    """Yield the findings about workloads without a valid document, for example because two files define them."""
    for key, outcome in sorted(found.outcomes.items()):
        if outcome.api == API_NAME and outcome.state == "stale":
            message = f"{key} is not exported: {outcome.reason}; leave its objects on the hub as they are"
            yield Finding("warning", "ocm-not-exported", message, resource=key.resource)


def make_finding(workload: HubWorkload, reason: str) -> Finding:
    """Return the finding that a workload is not among the printed objects."""
    document = workload.document
    message = f"{document.key} is not exported: {reason}"
    return Finding("warning", "ocm-not-exported", message, locate_document(document), document.key.resource)


def _make_manifest(template: Document) -> Body:
    """Return the template as a cluster gets it; without a namespace, the agent of the cluster could not apply it."""
    body = remove_server_owned(template.body)
    if template.key.namespace and not body["metadata"].get("namespace"):
        return {**body, "metadata": {**body["metadata"], "namespace": template.key.namespace}}
    return body


def _add_metadata(body: Body, key: Key, annotations: Mapping[str, str]) -> Body:
    metadata = body["metadata"]
    labels = {**as_string_map(metadata.get("labels")), **MANAGED_BY}
    known = {"name": key.name, "namespace": key.namespace, "labels": labels} | (
        {"annotations": dict(annotations)} if annotations else {}
    )
    return {**body, "metadata": {**metadata, **known}}
