"""A repository with an adapter's StatefulSet, Pods, Nodes and sources, and the records about them on the output branch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.builders.knative import MARK, RENDERED, adapter, node, pods, settings, source

from .conftest import Fleet


class VreplicaFleet:
    """Three nodes in two zones (n0 and n1 in east, n2 in west) with two pods each: 0 and 3, 1 and 4, 2 and 5. A source `orders` has six
    vreplicas, two on each of the pods 0, 1 and 2. The capacity of a pod is 4, and scaling down is disabled by default."""

    def __init__(self, fleet: Fleet, **more: Any) -> None:
        self.fleet = fleet
        self.nodes_by_ordinal: dict[int, str | None] = {ordinal: f"n{ordinal % 3}" for ordinal in range(6)}
        self.zones = {"n0": "east", "n1": "east", "n2": "west"}
        self.fleet.commit(
            {
                "gitsched.yaml": settings(**{"cluster": "events", "autoscaler": "{attemptScaleDown: false}", **more}),
                "adapter.yaml": adapter(6),
                "pods.yaml": pods(self.nodes_by_ordinal),
                "sources/orders.yaml": source("orders", 6),
                **{f"nodes/{name}.yaml": node(name, zone) for name, zone in self.zones.items()},
            }
        )
        self.fleet.reconcile()

    adapter = staticmethod(adapter)

    def commit(self, files: Mapping[str, str | None], hour: float) -> None:
        """Commit and reconcile."""
        self.fleet.commit(files, hour=hour)
        self.fleet.reconcile(hour)

    def move(self, hour: float, **nodes: str | None) -> None:
        """Move pods to other nodes ("p1" is the pod with ordinal 1) and commit; None leaves a pod without a node."""
        self.nodes_by_ordinal.update({int(name[1:]): node_name for name, node_name in nodes.items()})
        self.commit({"pods.yaml": pods(self.nodes_by_ordinal)}, hour)

    def placements(self, name: str = "orders") -> dict[int, int]:
        """Return the vreplicas of a source by ordinal."""
        body = self.fleet.load(f"status/sources.knative.dev/kafkasource/shop/{name}.yaml")
        return {int(p["podName"].rsplit("-", 1)[1]): p["vreplicas"] for p in body["status"]["placements"]}

    @property
    def replicas(self) -> int:
        """Return spec.replicas of the manifest in the directory of the cluster."""
        return int(self.fleet.load(RENDERED)["spec"]["replicas"])

    def marks(self) -> dict[int, bool]:
        """Return the recorded pods: True if marked unschedulable, False if the mark was removed."""
        paths = (path for path in self.fleet.files() if path.startswith("status/") and "/pod/" in path)
        annotations = {path: self.fleet.load(path)["metadata"]["annotations"][MARK] for path in paths}
        return {int(path.removesuffix(".yaml").rsplit("-", 1)[1]): annotation == "true" for path, annotation in annotations.items()}

    def marked(self) -> set[int]:
        """Return the pods that are marked unschedulable."""
        return {ordinal for ordinal, marked in self.marks().items() if marked}

    def findings(self, code: str) -> list[str]:
        return [entry["message"] for entry in self.fleet.load("gitsched.json")["findings"] if entry["code"] == code]
