"""An API server that answers as a recorded cluster does: versions, health, discovery, nodes and pods in pages; or with something else."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.builders.api_server import ApiServer, Body

DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
READ = re.compile(r"/api/v1/(nodes|pods)|/apis/.+/[a-z]+")


def make_node(name: str, cpu: str = "4", memory: str = "16374540Ki", **changes: Any) -> Body:
    """Return a node as a kubelet of v1.34 reports it."""
    amounts = {"cpu": cpu, "memory": memory, "pods": "110", "ephemeral-storage": "203056560Ki", "hugepages-1Gi": "0"}
    ready = {"type": "Ready", "status": changes.pop("ready", "True"), "reason": "KubeletReady"}
    pressure = {"type": "MemoryPressure", "status": "False"}
    labels = {"topology.kubernetes.io/region": "eu-west-1", "topology.kubernetes.io/zone": f"eu-west-1{'ab'[int(name[-1]) % 2]}"}
    return {
        "metadata": {"name": name, "labels": labels, "managedFields": [{"manager": "kubelet"}]},
        "spec": {"providerID": f"aws:///eu-west-1/{name}", **changes.pop("spec", {})},
        "status": {"capacity": amounts, "allocatable": amounts | changes, "conditions": [pressure, ready]},
    }


def make_pod(name: str, node: str = "n1", cpu: str = "500m", memory: str = "1Gi", **spec: Any) -> Body:
    """Return a running pod with one container."""
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    return {"metadata": {"name": name, "namespace": "shop"}, "spec": {"nodeName": node, "containers": [container], **spec}}


def make_discovery(kinds: dict[str, list[str]]) -> tuple[Body, Body]:
    """Return the aggregated discovery of /api and of /apis."""
    core: list[Body] = []
    groups: dict[str, Body] = {}
    for version, names in kinds.items():
        group, _, name = version.rpartition("/")
        resources = [{"resource": f"{kind.lower()}s", "responseKind": {"kind": kind}, "verbs": ["list"]} for kind in names]
        entry = {"version": name, "freshness": "Current", "resources": resources}
        if group:
            groups.setdefault(group, {"metadata": {"name": group}, "versions": []})["versions"].append(entry)
        else:
            core.append(entry)
    kind = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2"}
    return {**kind, "items": [{"metadata": {"name": ""}, "versions": core}]}, {**kind, "items": list(groups.values())}


class RecordedCluster(ApiServer):
    """`lists` are the items of lists by path, `answers` what is answered at other paths; bytes are sent as they are, and an integer is
    the status of a failure. `asked` are the verbs and paths of all requests."""

    def __init__(self) -> None:
        self.lists: dict[str, list[Body]] = {"/api/v1/nodes": [make_node("n1"), make_node("n2")], "/api/v1/pods": [make_pod("web")]}
        api, apis = make_discovery({"v1": ["ConfigMap", "Service"], "apps/v1": ["Deployment"]})
        self.answers: dict[str, Any] = {
            "/version": {"major": "1", "minor": "34", "gitVersion": "v1.34.1"},
            "/readyz": b"ok",
            "/api": api,
            "/apis": apis,
        }
        self.asked: list[tuple[str, str]] = []
        super().__init__()

    def answer(self, verb: str, path: str, query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        self.asked.append((verb, path))
        found = self.answers.get(path)
        if callable(found):
            found = found(query)
        if isinstance(found, int):
            return found, {"kind": "Status", "message": f"refused with {found}", "code": found}
        if found is not None:
            return 200, found
        if path in self.lists:
            return 200, self._list_part(path, query)
        return super().answer(verb, path, query, body)

    def _list_part(self, path: str, query: dict[str, list[str]]) -> Body:
        items, start = self.lists[path], int(query.get("continue", ["0"])[0])
        limit = int(query.get("limit", ["500"])[0])
        following = {"continue": str(start + limit)} if start + limit < len(items) else {}
        return {"kind": "List", "apiVersion": "v1", "metadata": following, "items": items[start : start + limit]}


def dump_bytes(size: int) -> bytes:
    """Return a JSON list of this size."""
    return json.dumps({"items": [{"x": "y" * size}]}).encode()
