"""Clusters that are not ready and evict nothing: what a finding says about them."""

from __future__ import annotations

from collections.abc import Iterable

from gitsched.apis.karmada.cluster.taints import find_unready_reason
from gitsched.apis.karmada.settings import KarmadaConfig
from gitsched.model.document import Document
from gitsched.model.finding import Finding, locate_document
from gitsched.model.taints import NO_EXECUTE
from gitsched.schedule.fleet import Fleet

_ENABLE_FAILOVER = "set karmada.failover: cluster, or commit a ClusterTaintPolicy that adds a NoExecute taint"
_ENABLE_EVICTION = "remove karmada.taintEviction: false"


def find_unready_clusters(documents: Iterable[Document], fleet: Fleet, settings: KarmadaConfig) -> dict[str, Finding]:
    """Return the finding about each Cluster that is not ready and whose workloads stay, by name.

    The Ready condition alone adds a NoSchedule taint, which moves nothing; only NoExecute evicts.
    """
    found: dict[str, Finding] = {}
    for document in documents:
        reason = find_unready_reason(document.body)
        candidate = fleet.candidates[fleet.index[document.key.name]]
        evicts = any(taint.effect == NO_EXECUTE for taint in candidate.taints)
        if not reason or candidate.deleting or (evicts and settings.taint_eviction):
            continue
        why = "karmada.taintEviction is false, so NoExecute taints evict nothing" if evicts else "no NoExecute taint evicts them"
        fix = _ENABLE_FAILOVER if settings.taint_eviction else f"{_ENABLE_EVICTION}, and {_ENABLE_FAILOVER}"
        message = f"Cluster {document.key.name} is not ready but its workloads stay there: {reason}, and {why}; "
        message += _ENABLE_EVICTION if evicts else fix
        found[document.key.name] = Finding(
            "warning", "cluster-failover-off", message, locate_document(document), document.key.resource
        )
    return found
