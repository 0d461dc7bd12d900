"""An adapter's StatefulSet with its pods and nodes, and sources, as files of a fleet; and what the output branch says about them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

from .conftest import Fleet

ADAPTER, NAMESPACE = "kafkasource-mt-adapter", "knative-eventing"
MARK = "eventing.knative.dev/unschedulable"
UNREACHABLE = "node.kubernetes.io/unreachable"
RENDERED = f"clusters/events/{NAMESPACE}/statefulset-{ADAPTER}.yaml"


def node(name: str, zone: str, *, cordoned: bool = False, taints: Iterable[str] = ()) -> str:
    """A Node; taints are given as key:effect."""
    pairs = (taint.split(":") for taint in taints)
    entries = ", ".join(f"{{key: {key}, effect: {effect}}}" for key, effect in pairs)
    spec = f"{{unschedulable: {str(cordoned).lower()}, taints: [{entries}]}}"
    return (
        f"apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{topology.kubernetes.io/zone: {zone}}}}}\nspec: {spec}\n"
    )


def pod(ordinal: int, node_name: str | None, marked: bool = False) -> str:
    spec = f"{{nodeName: {node_name}}}" if node_name else "{}"
    notes = f", annotations: {{{MARK}: 'true'}}" if marked else ""
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {ADAPTER}-{ordinal}, namespace: {NAMESPACE}{notes}}}\nspec: {spec}\n"


def adapter(replicas: int) -> str:
    return (
        f"apiVersion: apps/v1\nkind: StatefulSet\nmetadata:\n  name: {ADAPTER}\n  namespace: {NAMESPACE}\n"
        f"spec:\n  replicas: {replicas} # the autoscaler's\n  serviceName: adapter\n"
    )


def source(name: str, consumers: int) -> str:
    return (
        f"apiVersion: sources.knative.dev/v1beta1\nkind: KafkaSource\nmetadata: {{name: {name}, namespace: shop}}\n"
        f"spec:\n  consumers: {consumers}\n  topics: [{name}]\n"
    )


def settings(capacity: int = 4, **more: Any) -> str:
    lines = "".join(f"    {key}: {value}\n" for key, value in more.items())
    head = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec:\n  knative:\n"
    return f"{head}    capacity: {capacity}\n{lines}"


def pods(nodes: Mapping[int, str | None], marked: Container[int] = ()) -> str:
    return "---\n".join(pod(ordinal, name, ordinal in marked) for ordinal, name in nodes.items())


class Stage:
    """Three nodes in two zones (n0 and n1 in east, n2 in west) with two pods each: 0 and 3, 1 and 4, 2 and 5. A source `orders` has six
    vreplicas, two on each of the pods 0, 1 and 2. A pod holds four, and their number never falls, unless a test says otherwise."""

    def __init__(self, fleet: Fleet, **more: Any) -> None:
        self.fleet = fleet
        self.where: dict[int, str | None] = {ordinal: f"n{ordinal % 3}" for ordinal in range(6)}
        self.zones = {"n0": "east", "n1": "east", "n2": "west"}
        self.fleet.commit(
            {
                "gitsched.yaml": settings(**{"cluster": "events", "autoscaler": "{attemptScaleDown: false}", **more}),
                "adapter.yaml": adapter(6),
                "pods.yaml": pods(self.where),
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
        """Commit pods on other nodes ("p1" is the pod with ordinal 1); None leaves a pod without a node."""
        self.where.update({int(name[1:]): place for name, place in nodes.items()})
        self.commit({"pods.yaml": pods(self.where)}, hour)

    def placements(self, name: str = "orders") -> dict[int, int]:
        """Vreplicas by ordinal."""
        body = self.fleet.load(f"status/sources.knative.dev/kafkasource/shop/{name}.yaml")
        return {int(p["podName"].rsplit("-", 1)[1]): p["vreplicas"] for p in body["status"]["placements"]}

    @property
    def replicas(self) -> int:
        """Of the manifest that the cluster gets."""
        return int(self.fleet.load(RENDERED)["spec"]["replicas"])

    def marks(self) -> dict[int, bool]:
        """What the output branch says about pods: that they are to be emptied, or that they are not any more."""
        paths = (path for path in self.fleet.files() if path.startswith("status/") and "/pod/" in path)
        notes = {path: self.fleet.load(path)["metadata"]["annotations"][MARK] for path in paths}
        return {int(path.removesuffix(".yaml").rsplit("-", 1)[1]): note == "true" for path, note in notes.items()}

    def marked(self) -> set[int]:
        """The pods that are to be emptied."""
        return {ordinal for ordinal, marked in self.marks().items() if marked}

    def findings(self, code: str) -> list[str]:
        return [entry["message"] for entry in self.fleet.load("gitsched.json")["findings"] if entry["code"] == code]
