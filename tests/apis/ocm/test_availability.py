"""Taints that the condition ManagedClusterConditionAvailable adds to ManagedClusters."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
import yaml

import gitsched
from gitsched.model.time import parse_time
from tests.apis.ocm.chosen_clusters import list_chosen
from tests.builders.ocm import GROUP, Body, bound_global_set, managed_cluster, placement, taint

UNREACHABLE, UNAVAILABLE = f"{GROUP}/unreachable", f"{GROUP}/unavailable"
CONDITION = "ManagedClusterConditionAvailable"


def at(text: str) -> datetime:
    time = parse_time(f"2026-03-02T{text}Z")
    assert time is not None
    return time


def cluster(status: str | None, since: str = "", taints: list[Body] | None = None, **metadata: Any) -> Body:
    """The cluster `dub`; status None is no condition."""
    body = managed_cluster("dub", taints=taints or [])
    body["metadata"] |= metadata
    if status is not None:
        condition = {"type": CONDITION, "status": status, **({"lastTransitionTime": f"2026-03-02T{since}Z"} if since else {})}
        body["status"] = {"conditions": [{"type": "HubAcceptedManagedCluster", "status": "False"}, condition]}
    return body


def schedule(*documents: Body, previous: Any = (), now: str = "08:00:00", **spec: Any) -> Any:
    """Schedule `p`, which wants one of all clusters."""
    given = [*bound_global_set("ns"), *documents, managed_cluster("par"), placement("p", "ns", 1, **spec)]
    return gitsched.schedule(given, previous=previous, now=at(now))


def chosen(result: Any) -> list[str]:
    decisions = (body["status"]["decisions"] for body in result.documents if body["kind"] == "PlacementDecision")
    return [entry["clusterName"] for entries in decisions for entry in entries]


def added(result: Any) -> list[dict[str, str]]:
    """The added taints in the record of `dub`."""
    records = [body for body in result.documents if body["kind"] == "ManagedCluster"]
    return [taint for body in records for taint in json.loads(body["metadata"]["annotations"]["gitsched.io/taints-added"])]


CONDITIONS = f"""
available:                        {{status: "True", taint: ""}}
not available:                    {{status: "False", taint: {UNAVAILABLE}}}
unknown:                          {{status: Unknown, taint: {UNREACHABLE}}}
no condition:                     {{status: null, taint: ""}}
the taint is in the document:     {{status: Unknown, own: {{key: {UNREACHABLE}, effect: NoSelect}}, taint: "", avoided: true}}
with another effect:              {{status: Unknown, own: {{key: {UNREACHABLE}, effect: PreferNoSelect}}, taint: {UNREACHABLE}}}
the other taint in the document:  {{status: "False", own: {{key: {UNREACHABLE}, effect: NoSelect}}, taint: {UNAVAILABLE}}}
a taint of an available cluster:  {{status: "True", own: {{key: {UNREACHABLE}, effect: NoSelect}}, taint: "", avoided: true}}
"""


@pytest.mark.parametrize("case", (conditions := yaml.safe_load(CONDITIONS)).values(), ids=conditions)
def test_the_condition_adds_the_taint_of_the_registration_controller(case: dict[str, Any]) -> None:
    result = schedule(cluster(case["status"], "07:00:00", [case["own"]] if "own" in case else []))
    assert [(entry["key"], entry["effect"]) for entry in added(result)] == ([(case["taint"], "NoSelect")] if case["taint"] else [])
    avoided = case.get("avoided", bool(case["taint"]))
    assert chosen(result) == (["par"] if avoided else ["dub"])
    assert [f.code for f in result.findings] == (["cluster-taint-added"] if case["taint"] else [])


def test_a_cluster_that_is_being_deleted_gets_no_taint() -> None:
    assert added(schedule(cluster("Unknown", deletionTimestamp="2026-03-02T07:00:00Z", finalizers=["example.com/x"]))) == []


def tolerate(seconds: int | None) -> dict[str, Any]:
    limit = {} if seconds is None else {"tolerationSeconds": seconds}
    return {"tolerations": [{"key": UNREACHABLE, "operator": "Exists", **limit}]}


def test_tolerations_count_from_the_transition_of_the_condition() -> None:
    unknown = cluster("Unknown", "07:58:00")
    limited = schedule(unknown, **tolerate(300))
    assert (chosen(limited), limited.next_wakeup) == (["dub"], at("08:03:00"))
    assert chosen(schedule(unknown, now="08:03:00", **tolerate(300))) == ["par"]
    assert chosen(schedule(unknown, now="23:00:00", **tolerate(None))) == ["dub"]


def test_a_condition_without_a_time_counts_from_the_run_that_saw_it_first() -> None:
    unknown = cluster("Unknown")
    first = schedule(unknown, now="08:00:00", **tolerate(300))
    assert [entry["timeAdded"] for entry in added(first)] == ["2026-03-02T08:00:00Z"]
    other_document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    second = schedule(unknown, other_document, previous=first.documents, now="08:04:00", **tolerate(300))
    assert (added(second), second.next_wakeup) == (added(first), at("08:05:00"))
    assert chosen(schedule(unknown, previous=second.documents, now="08:05:00", **tolerate(300))) == ["par"]
    other = schedule(cluster("False"), previous=second.documents, now="08:04:30")
    assert [entry["timeAdded"] for entry in added(other)] == ["2026-03-02T08:04:30Z"], "another taint has its own time"
    assert added(schedule(cluster("True"), previous=second.documents)) == []


@pytest.mark.parametrize(
    "text", ["{", "7", "[7]", '[{"key": 7}]', f'[{{"key": "{UNREACHABLE}", "effect": "NoSelect", "timeAdded": "x"}}]']
)
def test_a_malformed_record_gives_no_time(text: str) -> None:
    metadata = {"name": "dub", "annotations": {"gitsched.io/taints-added": text}}
    record = {"apiVersion": f"{GROUP}/v1", "kind": "ManagedCluster", "metadata": metadata}
    assert [entry["timeAdded"] for entry in added(schedule(cluster("Unknown"), previous=[record]))] == ["2026-03-02T08:00:00Z"]


def test_an_expression_reads_the_added_taint() -> None:
    tainted = f"managedCluster.spec.taints.exists(t, t.key == '{UNREACHABLE}' && t.timeAdded == '2026-03-02T07:00:00Z')"
    selector = {
        "requiredClusterSelector": {"celSelector": {"celExpressions": [f"!has(managedCluster.spec.taints) || !({tainted})"]}}
    }
    documents = [*bound_global_set("ns"), managed_cluster("par"), placement("p", "ns", predicates=[selector], **tolerate(None))]
    assert list_chosen([*documents, cluster("Unknown", "07:00:00")]) == ["par"]
    assert list_chosen([*documents, cluster("Unknown", "07:30:00")]) == ["dub", "par"]


def test_explain_names_the_condition() -> None:
    (dub, _) = schedule(cluster("Unknown", "07:00:00")).explain("Placement", "p", "ns")
    assert dub.reason == f"its taint {UNREACHABLE}:NoSelect is not tolerated (its condition {CONDITION} is Unknown)"
    (own, _) = schedule(cluster("Unknown", "07:00:00", [taint("other")])).explain("Placement", "p", "ns")
    assert own.reason == "its taint other:NoSelect is not tolerated"


def test_clusters_with_the_same_condition_have_one_finding() -> None:
    documents = [{**cluster("Unknown"), "metadata": {"name": f"c{number}"}} for number in range(7)]
    (finding,) = gitsched.schedule(documents, now=at("08:00:00")).findings
    assert finding.message == (
        f"ManagedClusters c0, c1, c2, c3, c4 and 2 more: taint {UNREACHABLE}:NoSelect is added: its condition {CONDITION} is Unknown"
    )


def test_a_time_in_the_future_counts_as_unknown() -> None:
    """The clock of a cluster may be wrong: the toleration ends after its seconds all the same."""
    broken = cluster("Unknown")
    tolerations = [{"key": UNREACHABLE, "operator": "Exists", "tolerationSeconds": 600}]
    for text in ("9999-12-31T23:59:59Z", "2026-03-03T00:00:00Z", "soon"):
        broken["status"]["conditions"][1]["lastTransitionTime"] = text
        first = schedule(broken, tolerations=tolerations)
        assert [entry["timeAdded"] for entry in added(first)] == ["2026-03-02T08:00:00Z"]
        assert chosen(first) == ["dub"]
        assert chosen(schedule(broken, previous=first.documents, now="08:09:00", tolerations=tolerations)) == ["dub"]
        assert chosen(schedule(broken, previous=first.documents, now="08:11:00", tolerations=tolerations)) == ["par"]
