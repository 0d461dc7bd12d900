"""Schedule many variants of a fleet on all cores: how many workloads fit if each cluster has more or less capacity."""

from collections.abc import Iterable
from concurrent.futures import Executor, ProcessPoolExecutor
from datetime import UTC, datetime
from typing import Any

import gitsched

NOW = datetime(2026, 1, 1, tzinfo=UTC)
Documents = list[dict[str, Any]]


def make_fleet(clusters: int, workloads: int) -> Documents:
    """Return clusters with 8 processors each, and workloads of four replicas that need one each."""
    policy = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "all", "namespace": "shop"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            "placement": {
                "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
            },
        },
    }
    return [policy, *(make_cluster(f"c{i}") for i in range(clusters)), *(make_workload(f"web-{i}") for i in range(workloads))]


def make_cluster(name: str) -> dict[str, Any]:
    summary = {"allocatable": {"cpu": "8", "pods": "110"}}
    metadata = {"name": name}
    kind = {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster"}
    return kind | {"metadata": metadata, "spec": {"syncMode": "Pull"}, "status": {"resourceSummary": summary}}


def make_workload(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "nginx:1.27", "resources": {"requests": {"cpu": "1"}}}
    metadata = {"name": name, "namespace": "shop"}
    spec = {"replicas": 4, "template": {"spec": {"containers": [container]}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def scale_clusters(documents: Documents, processors: int) -> Documents:
    """Return the documents with another number of processors in every cluster."""
    summary = {"allocatable": {"cpu": str(processors), "pods": "110"}}
    return [body | {"status": {"resourceSummary": summary}} if body["kind"] == "Cluster" else body for body in documents]


def count_placed(documents: Documents) -> int:
    """Schedule one variant, and return how many workloads have a cluster. This runs in another process."""
    bindings = [body for body in gitsched.schedule(documents, now=NOW).documents if body["kind"] == "ResourceBinding"]
    return sum(bool(body["spec"].get("clusters")) for body in bindings)


def sweep(documents: Documents, sizes: Iterable[int], executor: Executor) -> dict[int, int]:
    """Return the number of placed workloads for each size of the clusters."""
    sizes = list(sizes)
    return dict(zip(sizes, executor.map(count_placed, [scale_clusters(documents, size) for size in sizes]), strict=True))


if __name__ == "__main__":
    with ProcessPoolExecutor() as pool:
        for processors, placed in sweep(make_fleet(clusters=3, workloads=5), (0, 1, 2, 8), pool).items():
            print(f"{processors} processors a cluster: {placed} of 5 workloads are placed")
