"""Bindings of Clusters to clouds and MagnumClusters to projects for which another program has to create the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gitsched.apis.krake.candidates import is_deleted
from gitsched.apis.krake.cluster_states import read_state
from gitsched.apis.krake.names import ResourceRef, describe_backend, read_ref
from gitsched.model.document import Document, get_field
from gitsched.model.finding import Finding, locate_document
from gitsched.named_tuples import NamedTuple

_MAX_NAMED = 3
"""Maximum number of bindings that have a finding each; more of them have one together."""


class PendingCluster(NamedTuple):
    """A Cluster or MagnumCluster that does not exist yet, and the cloud or project that it is bound to."""

    document: Document
    target: ResourceRef


def find_pending_cluster(document: Document, target: ResourceRef | None) -> PendingCluster | None:
    """Return the binding if the cluster does not exist yet: its state is PENDING, and it has neither a kubeconfig nor an id."""
    body = document.body
    exists = get_field(body, "spec", "kubeconfig") or get_field(body, "status", "cluster_id") or read_state(body) != "PENDING"
    return None if target is None or exists or is_deleted(body) else PendingCluster(document, target)


def has_binding(pending: PendingCluster) -> bool:
    """Return whether Krake has the binding: the document was read from Krake's API, which sets the uid, and contains it."""
    if not get_field(pending.document.body, "metadata", "uid"):
        return False
    name = "project" if pending.document.key.kind == "MagnumCluster" else "scheduled_to"
    return read_ref(get_field(pending.document.body, "status", name)) == pending.target


def report_pending_clusters(pending: Iterable[PendingCluster]) -> Iterator[Finding]:
    """Yield the findings that nothing creates the clusters: one for each, or one for many."""
    found = list(pending)
    cure = (
        "gitsched creates no clusters; hand the binding to Krake with `gitsched export krake`, or create the cluster, and set"
        " spec.krake.provisioner in gitsched.yaml to what does so"
    )
    if len(found) > _MAX_NAMED:
        shown = ", ".join(_describe(one) for one in found[:_MAX_NAMED])
        message = f"{len(found)} clusters are bound, but do not exist ({shown} and {len(found) - _MAX_NAMED} more): {cure}"
        yield _warn_pending(found[0].document, message)
        return
    for one in found:
        yield _warn_pending(one.document, f"{_describe(one)}, but does not exist: {cure}")


def _describe(pending: PendingCluster) -> str:
    return f"{pending.document.key} is bound to {describe_backend(pending.target, pending.document.key.namespace)}"


def _warn_pending(document: Document, message: str) -> Finding:
    return Finding("warning", "krake-cluster-pending", message, locate_document(document), document.key.resource)
