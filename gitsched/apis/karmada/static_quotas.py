"""FederatedResourceQuotas with static assignments: each named cluster gets a ResourceQuota of the same name, with what is assigned to it.

Source: karmada/pkg/controllers/federatedresourcequota/federated_resource_quota_sync_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gitsched.apis.karmada import names
from gitsched.apis.karmada.queue.coupled_decisions import list_quotas
from gitsched.model.document import Body, Document, Key, as_object, get_field, get_text, list_objects
from gitsched.model.finding import Finding, locate_document, locate_field
from gitsched.model.scheduling import Outcome, TargetCluster

if TYPE_CHECKING:
    from gitsched.apis.karmada.state import KarmadaState

_RESOURCE_QUOTA = ("", "ResourceQuota")


def list_static_quotas(state: KarmadaState) -> Iterator[tuple[Document, Outcome]]:
    """Yield the quotas with static assignments, and what their clusters get."""
    for document in list_quotas(state):
        if get_field(document.body, "spec", "staticAssignments"):
            yield document, _place(state, document)


def write_assignments(document: Document) -> Body:
    """Return the member of a quota's status that says what is assigned to each cluster; {} without static assignments."""
    assigned = _read_assignments(document)
    return {"aggregatedStatus": [{"clusterName": name, "hard": dict(hard)} for name, hard in assigned.items()]} if assigned else {}


def _read_assignments(document: Document) -> dict[str, Body]:
    """Return what is assigned to each cluster; of several assignments to one cluster the first."""
    found: dict[str, Body] = {}
    for one in list_objects(get_field(document.body, "spec", "staticAssignments")):
        found.setdefault(str(one.get("clusterName")), as_object(one.get("hard")))
    return found


def _place(state: KarmadaState, document: Document) -> Outcome:
    assigned, existing = _read_assignments(document), state.fleet.index
    key, quota = document.key, Key(*_RESOURCE_QUOTA, document.key.namespace, document.key.name)
    bodies = {name: _make_quota(quota, hard) for name, hard in assigned.items() if name in existing}
    previous = state.snapshot.previous.get(key)
    before = (get_text(one, "clusterName") for one in list_objects(get_field(previous or {}, "status", "aggregatedStatus")))
    status: Body = {"overall": as_object(get_field(document.body, "spec", "overall")), **write_assignments(document)}
    metadata = {"name": key.name, "namespace": key.namespace}
    record = {"apiVersion": document.api_version, "kind": key.kind, "metadata": metadata, "status": status}
    return Outcome(
        key=key,
        api=names.API_NAME,
        state="placed" if bodies else "pending",
        policy=key.title,
        group="",
        targets=tuple(TargetCluster(name, bodies=((quota, body),)) for name, body in sorted(bodies.items())),
        replicas=None,
        records=() if state.settings.gates.quota else ((key, record),),
        reason="static assignments",
        time=state.snapshot.at,
        findings=tuple(_report_unknown(document, assigned.keys() - existing.keys())),
        previous_targets=tuple(TargetCluster(name) for name in sorted(before) if name in existing),
        manifests=((quota, next(iter(bodies.values()), _make_quota(quota, {}))),),
    )


def _make_quota(key: Key, hard: Body) -> Body:
    metadata = {"name": key.name, "namespace": key.namespace}
    return {"apiVersion": "v1", "kind": key.kind, "metadata": metadata, "spec": {"hard": dict(hard)}}


def _report_unknown(document: Document, unknown: set[str]) -> Iterator[Finding]:
    for number, one in enumerate(list_objects(get_field(document.body, "spec", "staticAssignments"))):
        name = str(one.get("clusterName"))
        if name in unknown:
            field = ("spec", "staticAssignments", number, "clusterName")
            origin = locate_field(document.origin, field)
            message = f"{document.key.title} assigns a quota to cluster {name}, which does not exist"
            yield Finding("warning", "karmada-cluster-unknown", message, locate_document(document), document.key.resource, origin)
