"""Numbers in explanations: capacity, regions, and the division of replicas."""

from __future__ import annotations

from typing import Any

import pytest

from gitsched.model.explanation import ReplicaShare

FLEET = """
kind: Cluster
metadata: {name: eu-1}
spec: {region: eu}
status:
  resourceSummary:
    allocatable: {cpu: "16", memory: 64Gi, pods: "110"}
    allocated: {cpu: 3500m, pods: "20"}
    allocating: {memory: 9Gi}
---
kind: Cluster
metadata: {name: eu-2}
spec: {region: eu}
status: {resourceSummary: {allocatable: {cpu: "8", pods: "110"}}}
---
kind: Cluster
metadata: {name: us-1}
spec:
  region: us
  resourceModels:
  - {grade: 0, ranges: [{name: cpu, min: "0", max: "2"}, {name: memory, min: "0", max: 8Gi}]}
  - {grade: 1, ranges: [{name: cpu, min: "2", max: "999"}, {name: memory, min: 8Gi, max: 999Gi}]}
status: {resourceSummary: {allocatable: {pods: "20"}, allocatableModelings: [{grade: 0, count: 7}, {grade: 1, count: 3}]}}
---
kind: Cluster
metadata: {name: us-2}
spec: {region: us}
"""
WEB = """
kind: Deployment
metadata: {name: web}
spec:
  replicas: 6
  template: {spec: {containers: [{name: a, image: a, resources: {requests: {cpu: 750m, memory: 2Gi}}}]}}
"""


def policy(placement: str) -> str:
    return f"""
kind: PropagationPolicy
metadata: {{name: p}}
spec:
  resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment}}]
  placement:
    {placement}
"""


DIVIDED = "replicaScheduling: {replicaSchedulingType: Divided, weightPreference: {dynamicWeight: AvailableReplicas}}"
AGGREGATED = "replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}"


def explain(run: Any, placement: str, web: str = WEB, after: Any = None) -> Any:
    return run({"fleet.yaml": FLEET, "web.yaml": web, "p.yaml": policy(placement)}, after=after).explain("web")


def test_capacity_is_explained_by_resource(run: Any) -> None:
    assert {c.result.name: c.capacity for c in explain(run, DIVIDED).candidates} == {
        "eu-1": "capacity for 16: 90 pods, cpu 12.5 / 750m = 16, memory 55Gi / 2Gi = 27",
        "eu-2": "capacity for 0: 110 pods, cpu 8 / 750m = 10, no memory",
        "us-1": "capacity for 6: 20 pods, 10 modelled nodes",
        "us-2": "capacity unknown, assumed to be sufficient",
    }


def test_the_last_rounds_and_the_clusters_rounded_up_are_listed(run: Any) -> None:
    explanation = explain(run, DIVIDED)
    rule, *rounds = explanation.division_rule
    assert rule.startswith(
        "Divided by available replicas. Scale up: present replicas stay, and the rest is divided by free capacity. 6 replicas, "
    )
    assert rounds == [
        "1 replica before these: in the same way, not listed",
        "replica 2: us-1, 6 / 1 = 6",
        "replica 3: us-2, 6 / 1 = 6",
        "replica 4: eu-1, 16 / 3 = 5.333",
        "replica 5: eu-1, 16 / 5 = 3.2",
        "replica 6: eu-1, 16 / 7 = 2.286",
        "More than the exact proportion: eu-1",
    ]
    assert explanation.division == (
        ReplicaShare("eu-1", 16, 4),
        ReplicaShare("eu-2", 0, 0),
        ReplicaShare("us-1", 6, 1),
        ReplicaShare("us-2", 6, 1),
    )


def test_a_scale_up_lists_the_replicas_that_stay(run: Any) -> None:
    first = run({"fleet.yaml": FLEET, "web.yaml": WEB, "p.yaml": policy(AGGREGATED)})
    more = explain(run, AGGREGATED, WEB.replace("replicas: 6", "replicas: 9"), after=first)
    assert more.division_rule[0].startswith(
        "Aggregated, over as few clusters as have enough capacity. Scale up: present replicas stay, and the rest is divided by free "
        "capacity (stays: eu-1 6). 3 "
    )
    assert more.division == (ReplicaShare("eu-1", 16, 9),)


def test_regions_are_listed_with_their_scores(run: Any) -> None:
    spread = """spreadConstraints:
    - {spreadByField: region, minGroups: 1, maxGroups: 1}
    - {spreadByField: cluster, minGroups: 1, maxGroups: 2}"""
    assert explain(run, f"{spread}\n    {DIVIDED}").selection == (
        "Spread over 1 to 2 clusters: eu-1, eu-2",
        "selected: region eu, score 6000, clusters eu-1, eu-2",
        "not selected: region us, score 6000, clusters us-1, us-2",
    )


def test_overflow_is_explained_for_each_set(run: Any) -> None:
    groups = """clusterAffinities:
    - {affinityName: main, clusterNames: [us-1], overflowAffinities: [{affinityName: more, clusterNames: [eu-1]}]}"""
    explanation = explain(run, f"{groups}\n    {DIVIDED}", WEB.replace("replicas: 6", "replicas: 8"))
    assert [line[:24] for line in explanation.division_rule] == ["In the group itself: Div", "In overflow set 1: Divid"]
    assert explanation.result == (ReplicaShare("us-1", None, 6), ReplicaShare("eu-1", None, 2))


def test_a_finding_says_how_many_replicas_are_missing(run: Any) -> None:
    first = run(
        {"fleet.yaml": FLEET, "web.yaml": WEB, "p.yaml": policy(f"clusterAffinity: {{clusterNames: [eu-1]}}\n    {DIVIDED}")}
    )
    more = WEB.replace("replicas: 6", "replicas: 40")
    again = run(
        {"fleet.yaml": FLEET, "web.yaml": more, "p.yaml": policy(f"clusterAffinity: {{clusterNames: [eu-1]}}\n    {DIVIDED}")},
        after=first,
    )
    (finding,) = [finding for finding in again.explain("web").findings if finding.code == "unschedulable"]
    assert finding.message.endswith(
        "Clusters available replicas 16 are not enough to schedule. "
        "Most room is for 16 replicas: eu-1 reports 12.5 cpu free, and each requests 750m. (34 of 40 replicas are unplaced)"
    )


SHORTAGES = {
    "the largest room": (
        DIVIDED,
        {"replicas": 60},
        "Most room is for 16 replicas: eu-1 reports 12.5 cpu free, and each requests 750m.",
    ),
    "no requests": (
        DIVIDED,
        {"replicas": 300, "resources": "{}"},
        "Most room is for 110 replicas: eu-2 reports 110 pods free, and each requests 1.",
    ),
    "pods": (
        DIVIDED,
        {"replicas": 300, "cpu": "1m", "memory": "1"},
        "Most room is for 110 replicas: eu-2 reports 110 pods free, and each requests 1.",
    ),
    "no room in any cluster": (
        DIVIDED,
        {"cpu": 14},
        "No cluster has room for a replica: eu-1 reports 12.5 cpu free, and each requests 14.",
    ),
    "a resource that no cluster has": (
        DIVIDED,
        {"cpu": "1, example.com/gpu: 1"},
        "No cluster has room for a replica: eu-1 reports 0 example.com/gpu free, and each requests 1.",
    ),
    "spread constraints": (
        "spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]\n    " + DIVIDED,
        {"replicas": 60},
        "Most room is for 16 replicas: eu-1 reports 12.5 cpu free, and each requests 750m.",
    ),
}


@pytest.mark.parametrize("name", SHORTAGES)
def test_a_finding_names_the_resource_that_lacks_and_the_nearest_cluster(run: Any, name: str) -> None:
    placement, values, expected = SHORTAGES[name]
    changes = {
        "replicas": "replicas: 6",
        "cpu": "cpu: 750m",
        "memory": "memory: 2Gi",
        "resources": "resources: {requests: {cpu: 750m, memory: 2Gi}}",
    }
    workload = WEB
    for field, value in values.items():
        workload = workload.replace(changes[field], f"{field}: {value}")
    placed = policy(f"clusterAffinity: {{clusterNames: [eu-1, eu-2]}}\n    {placement}")
    sized = FLEET.replace('{cpu: "8", pods: "110"}', '{cpu: "8", memory: 64Gi, pods: "110"}')
    found = run({"fleet.yaml": sized, "web.yaml": workload, "p.yaml": placed}).explain("web").findings
    (message,) = [finding.message for finding in found if finding.code == "unschedulable"]
    assert expected in message
