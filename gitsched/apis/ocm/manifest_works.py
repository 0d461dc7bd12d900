"""ManifestWorks for a hub whose ManifestWorkReplicaSet controller is off: one object for each workload and cluster."""

from __future__ import annotations

from collections.abc import Iterator

from gitsched.apis.export import ExportInput
from gitsched.apis.ocm import names
from gitsched.apis.ocm.hub_objects import MANAGED_BY, HubWorkload, make_finding
from gitsched.model.document import Body
from gitsched.model.finding import Finding

API_VERSION = f"{names.WORK_GROUP}/v1"


def make_manifest_works(found: ExportInput, workload: HubWorkload) -> Iterator[Body]:
    """Yield the ManifestWork of each cluster that has the current revision; the namespace is that of the cluster on the hub."""
    outcome = found.outcomes.get(workload.document.key)
    for target in outcome.targets if outcome is not None else ():
        if not target.keeps_manifest:
            yield {
                "apiVersion": API_VERSION,
                "kind": "ManifestWork",
                "metadata": {
                    "name": f"{workload.key.namespace}.{workload.key.name}",
                    "namespace": target.cluster,
                    "labels": dict(MANAGED_BY),
                },
                "spec": workload.spec["manifestWorkTemplate"],
            }


def find_waiting_clusters(found: ExportInput, workload: HubWorkload) -> Finding | None:
    """Return the finding about clusters that keep the manifests of a previous revision, which the source does not contain any more."""
    outcome = found.outcomes.get(workload.document.key)
    waiting = [target.cluster for target in outcome.targets if target.keeps_manifest] if outcome is not None else []
    if not waiting:
        return None
    shown = f"{', '.join(waiting[:5])}{f' and {len(waiting) - 5} more' if len(waiting) > 5 else ''}"
    return make_finding(
        workload, f"its rollout has not reached {shown}: leave their ManifestWorks as they are, and do not prune them"
    )
