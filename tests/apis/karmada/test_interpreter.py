"""Replicas and resource requests by kind, as Karmada's default interpreter reads them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gitsched.apis.karmada.interpreter import WorkloadPaths, read_replica_requirements, revise_replicas
from gitsched.model.document import Document, Key, parse_api_group
from gitsched.model.scheduling import Assignment
from tests.tables import each_row

REPLICAS = """
{kind: Deployment, apiVersion: apps/v1, spec: {replicas: 3}}: 3
{kind: Deployment, apiVersion: apps/v1, spec: {replicas: 0}}: 0
{kind: Deployment, apiVersion: apps/v1, spec: {}}: 1
{kind: Deployment, apiVersion: apps/v1}: 1
{kind: ReplicaSet, apiVersion: apps/v1, spec: {replicas: 3}}: 3
{kind: StatefulSet, apiVersion: apps/v1, spec: {replicas: 3}}: 3
{kind: Job, apiVersion: batch/v1, spec: {parallelism: 5, completions: 3}}: 3
{kind: Job, apiVersion: batch/v1, spec: {parallelism: 2, completions: 3}}: 2
{kind: Job, apiVersion: batch/v1, spec: {parallelism: 2}}: 2
{kind: Job, apiVersion: batch/v1, spec: {completions: 3}}: 1
{kind: Job, apiVersion: batch/v1, spec: {parallelism: 0, completions: 3}}: 0
{kind: Pod, apiVersion: v1, spec: {}}: 1
{kind: DaemonSet, apiVersion: apps/v1, spec: {replicas: 3}}: null
{kind: CronJob, apiVersion: batch/v1, spec: {}}: null
{kind: ConfigMap, apiVersion: v1}: null
{kind: Deployment, apiVersion: apps/v1beta1, spec: {replicas: 3}}: null
{kind: Rollout, apiVersion: argoproj.io/v1alpha1, spec: {replicas: 3}}: null
"""
REQUESTS = """
containers add up:
  pod: {containers: [{resources: {requests: {cpu: 100m, memory: 1Gi}}}, {resources: {requests: {cpu: 200m}}}]}
  asks: {cpu: 300m, memory: 1Gi}
a limit stands in for a missing request:
  pod: {containers: [{resources: {limits: {cpu: 2, memory: 1Gi}, requests: {cpu: 1}}}]}
  asks: {cpu: "1", memory: 1Gi}
an init container needs its own at least:
  pod: {containers: [{resources: {requests: {cpu: 1, memory: 4Gi}}}], initContainers: [{resources: {requests: {cpu: 3, memory: 1Gi}}}]}
  asks: {cpu: "3", memory: 4Gi}
init containers run one after another:
  pod: {containers: [], initContainers: [{resources: {requests: {cpu: 1}}}, {resources: {requests: {cpu: 2}}}]}
  asks: {cpu: "2"}
overhead comes on top of the larger:
  pod:
    containers: [{resources: {requests: {cpu: 1}}}]
    initContainers: [{resources: {requests: {cpu: 2}}}]
    overhead: {cpu: 500m, memory: 8Mi}
  asks: {cpu: 2500m, memory: 8Mi}
nothing is not asked for:
  pod: {containers: [{resources: {requests: {cpu: 0, memory: 1Gi}}}]}
  asks: {memory: 1Gi}
what the scheduler does not know is left out:
  pod: {containers: [{resources: {requests: {cpu: 1, fancy: 1}}}]}
  asks: {cpu: "1"}
extended resources stay:
  pod: {containers: [{resources: {requests: {nvidia.com/gpu: 2, hugepages-2Mi: 4Mi, ephemeral-storage: 1G, pods: 1}}}]}
  asks: {ephemeral-storage: 1G, hugepages-2Mi: 4Mi, nvidia.com/gpu: "2", pods: "1"}
what is no quantity is left out:
  pod: {containers: [{resources: {requests: {cpu: lots, memory: 1Gi}}}, {resources: null}, nonsense]}
  asks: {memory: 1Gi}
no requests at all:
  pod: {containers: [{image: x}]}
  asks: null
"""
CLAIMS = """
a node selector: {pod: {nodeSelector: {disk: ssd}}, claim: {nodeSelector: {disk: ssd}}}
tolerations: {pod: {tolerations: [{key: a, operator: Exists}]}, claim: {tolerations: [{key: a, operator: Exists}]}}
required affinity:
  pod: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: []}]}}}}
  claim: {hardNodeAffinity: {nodeSelectorTerms: [{matchFields: []}]}}
preferred affinity:
  pod: {affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1}]}}}
  claim: null
empty ones: {pod: {nodeSelector: {}, tolerations: []}, claim: null}
"""


def template(body: dict[str, Any]) -> Document:
    return Document(Key(parse_api_group(body["apiVersion"]), body["kind"], "default", "web"), body["apiVersion"], body)


def parse_pairs(text: str) -> list[tuple[dict[str, Any], int | None]]:
    return [
        (yaml.safe_load(line.rpartition(": ")[0]), yaml.safe_load(line.rpartition(": ")[2])) for line in text.strip().splitlines()
    ]


@each_row(("body", "replicas"), parse_pairs(REPLICAS))
def test_replicas_by_kind(body: dict[str, Any], replicas: int | None) -> None:
    assert read_replica_requirements(template(body), {}).replicas == replicas


@pytest.mark.parametrize("case", (cases := yaml.safe_load(REQUESTS)).values(), ids=cases)
@pytest.mark.parametrize("kind", ["Deployment", "Pod"])
def test_resource_request_of_a_replica(case: dict[str, Any], kind: str) -> None:
    spec = case["pod"] if kind == "Pod" else {"template": {"spec": case["pod"]}}
    body = {"apiVersion": "v1" if kind == "Pod" else "apps/v1", "kind": kind, "spec": spec}
    expected = {"resourceRequest": case["asks"]} if case["asks"] else None
    assert read_replica_requirements(template(body), {}).requirements == expected


@pytest.mark.parametrize("case", (cases := yaml.safe_load(CLAIMS)).values(), ids=cases)
def test_node_claim_of_a_replica(case: dict[str, Any]) -> None:
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": case["pod"]}}}
    expected = {"nodeClaim": case["claim"]} if case["claim"] else None
    assert read_replica_requirements(template(body), {}).requirements == expected


@pytest.mark.parametrize(
    ("spec", "workload"),
    [
        ({"replicas": 1}, True),
        ({"replicas": 0}, False),
        ({"replicas": 0, "template": {"spec": {"nodeSelector": {"disk": "ssd"}}}}, True),
    ],
)
def test_an_object_without_replicas_and_requests_is_not_a_workload(spec: dict[str, Any], workload: bool) -> None:
    assert (
        read_replica_requirements(template({"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}), {}).is_workload
        is workload
    )


@pytest.mark.parametrize("written", ["${REPLICAS}", "3", -1, 2.5, True, 2**31, [], {}])
def test_replicas_that_are_not_a_number_are_invalid(written: Any) -> None:
    demand = read_replica_requirements(template({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": written}}), {})
    assert (demand.replicas, demand.invalid_replicas, demand.is_workload) == (None, True, False)


def test_a_declared_kind_is_read_at_the_configured_paths() -> None:
    body = {"apiVersion": "example.com/v1", "kind": "Fleet", "spec": {"size": 4, "pod": {"nodeSelector": {"a": "b"}}}}
    demand = read_replica_requirements(
        template(body), {("example.com/v1", "Fleet"): WorkloadPaths(("spec", "size"), ("spec", "pod"))}
    )
    assert (demand.replicas, demand.replicas_path) == (4, "spec.size")
    assert demand.requirements == {"nodeClaim": {"nodeSelector": {"a": "b"}}}


def test_invalid_replicas_are_reported_and_not_divided(run: Any) -> None:
    policy = """
kind: PropagationPolicy
metadata: {name: p}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement: {replicaScheduling: {replicaSchedulingType: Divided}}
"""
    workload = "kind: Deployment\nmetadata: {name: web}\nspec: {replicas: '${N}'}"
    result = run("\n---\n".join([workload, policy, "kind: Cluster\nmetadata: {name: m1}", "kind: Cluster\nmetadata: {name: m2}"]))
    assert (result.clusters("web"), result.codes("web")) == ({"m1": None, "m2": None}, ["opaque-replicas"])
    assert all(not place.edits for place in result.outcome("web").targets)


def test_a_divided_job_has_its_completions_divided_like_its_parallelism() -> None:
    job = yaml.safe_load(
        "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: n}, spec: {parallelism: 4, completions: 10}}"
    )
    template = Document(Key("batch", "Job", "n", "j"), "batch/v1", job)
    demand = read_replica_requirements(template, {})
    assert revise_replicas(template, demand, [Assignment("a", 3), Assignment("b", 1)]) == {
        "a": (("spec.parallelism", 3), ("spec.completions", 7)),
        "b": (("spec.parallelism", 1), ("spec.completions", 3)),
    }
