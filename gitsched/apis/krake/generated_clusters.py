"""Clusters that were created for an application (auto_cluster_create) and that no application uses any more."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from gitsched.apis.krake.candidates import is_deleted
from gitsched.apis.krake.cluster_states import ONLINE
from gitsched.apis.krake.names import APPLICATION
from gitsched.apis.krake.scheduler import KrakeScheduler
from gitsched.model.document import Document, get_field
from gitsched.model.finding import Finding, locate_document
from gitsched.model.time import format_time, parse_time
from gitsched.named_tuples import NamedTuple

UNUSED_SINCE_ANNOTATION: Final = "gitsched.io/unused-since"
"""Record annotation with the time of the first source commit with which no application used a generated cluster."""


class UnusedCluster(NamedTuple):
    """A generated cluster without an application. `recorded` means that an earlier run has recorded `since`."""

    document: Document
    since: datetime
    recorded: bool


def find_unused_clusters(scheduler: KrakeScheduler) -> Iterator[UnusedCluster]:
    """Yield the generated clusters without an application, in key order.

    As in Krake, a cluster that is not ONLINE counts as used: its application may still wait for it. So do all clusters that an invalid
    Application may use, whose cluster is unknown.
    """
    generated = [
        cluster
        for cluster in scheduler.clusters.values()
        if get_field(cluster.document.body, "spec", "auto_generated") is True
        and cluster.candidate.reported_state == ONLINE
        and not is_deleted(cluster.document.body)
    ]
    if not generated:
        return
    uncertain = {key.namespace for key in scheduler.snapshot.quarantined if key[:2] == APPLICATION}
    if uncertain and scheduler.shares_clusters:
        return
    used = set()
    for key, decision in scheduler.applications.items():
        status = decision.attempts[-1].status
        if not is_deleted(decision.app.document.body):
            used |= {(ref.namespace, ref.name) for ref in (status.target,) if ref is not None}
            used.add((key.namespace, status.awaited_cluster))
    for cluster in generated:
        key = cluster.document.key
        if key.namespace not in uncertain and (key.namespace, key.name) not in used:
            previous = scheduler.snapshot.previous.get(key) or {}
            since = parse_time(get_field(previous, "metadata", "annotations", UNUSED_SINCE_ANNOTATION))
            yield UnusedCluster(cluster.document, since or scheduler.snapshot.at, since is not None)


def report_unused_clusters(scheduler: KrakeScheduler) -> Iterator[Finding]:
    """Yield a remark for each generated cluster without an application."""
    for document, since, _ in find_unused_clusters(scheduler):
        message = (
            f"{document.key} was created for an application, and no application uses it since {format_time(since)}: if it is not needed, "
            "remove its document, for example with `gitsched tidy --write`, and delete the cluster"
        )
        yield Finding("info", "krake-cluster-unused", message, locate_document(document), document.key.resource)
