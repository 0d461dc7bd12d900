"""Clusters that were created for an application (auto_cluster_create) and that no application uses any more."""

from __future__ import annotations

from collections.abc import Iterator

from gitsched.apis.krake.candidates import is_deleted
from gitsched.apis.krake.cluster_states import ONLINE
from gitsched.apis.krake.names import APPLICATION
from gitsched.apis.krake.scheduler import KrakeScheduler
from gitsched.model.document import Document, get_field


def find_unused_clusters(scheduler: KrakeScheduler) -> Iterator[Document]:
    """Yield the generated clusters without an application, in key order.

    As in Krake, a cluster that is not ONLINE counts as used: its application may still wait for it. So do all clusters of a namespace with
    an invalid Application, whose cluster is unknown.
    """
    used, uncertain = set(), {key.namespace for key in scheduler.snapshot.quarantined if key[:2] == APPLICATION}
    for key, decision in scheduler.applications.items():
        status = decision.attempts[-1].status
        if not is_deleted(decision.app.document.body):
            used |= {(ref.namespace, ref.name) for ref in (status.target,) if ref is not None}
            used |= {(key.namespace, status.awaited_cluster)}
    for key, cluster in scheduler.clusters.items():
        document = cluster.document
        if (
            get_field(document.body, "spec", "auto_generated") is True
            and cluster.candidate.reported_state == ONLINE
            and not is_deleted(document.body)
            and key.namespace not in uncertain
            and (key.namespace, key.name) not in used
        ):
            yield document
