"""State of a cluster, from its status and from the nodes that were observed in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from gitsched.model.document import Body, as_object, get_field
from gitsched.named_tuples import NamedTuple

ONLINE, OFFLINE, UNHEALTHY, NOTREADY = "ONLINE", "OFFLINE", "UNHEALTHY", "NOTREADY"
FAILING_METRICS: Final = "FAILING_METRICS"
CLUSTER_STATES: Final = (
    *("PENDING", ONLINE, "CONNECTING", OFFLINE, UNHEALTHY, NOTREADY, FAILING_METRICS),
    *("CREATING", "RECONCILING", "DELETING", "FAILING_RECONCILIATION", "FAILED", "DEGRADED"),
)
"""Known states of clusters. Only ONLINE clusters accept applications."""
FAILURE_STATES: Final = {
    OFFLINE: "its API server cannot be reached",
    UNHEALTHY: "a node lacks memory, disk space or process ids",
    NOTREADY: "a node is not ready",
    "FAILING_RECONCILIATION": "it could not be changed as its document says",
    "DEGRADED": "it could not be created or changed as its document says",
}
"""States of an existing cluster that is unreachable or not healthy, with their meaning."""
OBSERVED_FAILURES: Final = frozenset({"CONNECTING", OFFLINE, UNHEALTHY, NOTREADY})
"""States that Krake's observer of clusters sets."""


class ClusterState(NamedTuple):
    """The state of a cluster; `observation` says which observed node it follows from, "" if the status contains it."""

    state: str
    observation: str = ""


def read_state(body: Body) -> str:
    """Return status.state of a document, PENDING by default."""
    status = body.get("status")
    return str(status.get("state") or "PENDING") if isinstance(status, dict) else "PENDING"


def read_cluster_state(body: Body) -> ClusterState:
    """Return the state of a cluster. A node that lacks resources, or is not ready, is newer knowledge than the state ONLINE.

    The rules are those of Krake's cluster observer (krake/controller/kubernetes/hooks.py): the first such condition of a node decides,
    and a cluster whose nodes are all ready is ONLINE if its status has no state.
    """
    reported, nodes = get_field(body, "status", "state"), get_field(body, "status", "nodes")
    if not isinstance(nodes, list) or reported not in (None, ONLINE, FAILING_METRICS):
        return ClusterState(read_state(body))
    conditions = list(_list_node_conditions(nodes))
    for node, kind, status in conditions:
        if kind.lower().endswith("pressure") and status == "True":
            return ClusterState(UNHEALTHY, f"node {node} reports {kind}")
        if kind.lower() == "ready" and status != "True":
            return ClusterState(NOTREADY, f"node {node} is not ready (status {status or 'missing'})")
    return ClusterState(ONLINE if reported is None and conditions else read_state(body))


def _list_node_conditions(nodes: list[Any]) -> Iterator[tuple[str, str, str]]:
    """Yield node, type and status of each condition."""
    for node in nodes:
        conditions = get_field(as_object(node), "status", "conditions")
        for condition in conditions if isinstance(conditions, list) else ():
            entry = as_object(condition)
            yield str(get_field(as_object(node), "metadata", "name")), str(entry.get("type")), str(entry.get("status") or "")
