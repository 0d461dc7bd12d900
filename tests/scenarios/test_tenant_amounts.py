"""What counts for the limits of a Tenant: every way in which a manifest runs pods, or has another one run more."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any

import yaml

from gitsched.apis.gitsched.config import Config
from gitsched.apis.gitsched.tenant import Tenant, parse_tenant
from gitsched.decide.pod_amounts import PodAmounts
from gitsched.decide.tenants.tenant_amounts import Amounts, TenantUse, find_exceeded_limit, measure_outcome
from gitsched.model.document import Document, Key
from gitsched.model.scheduling import Outcome, TargetCluster
from tests.tables import each_row

CONTAINER = "{name: c, image: x, resources: {requests: {cpu: 2}}}"
POD = f"{{containers: [{CONTAINER}]}}"
TEMPLATE = f"{{spec: {POD}}}"
CASES = """\
Deployment: {of: apps/v1, spec: {replicas: 5, template: TEMPLATE}, has: [5, 10]}
Text: {of: apps/v1, kind: Deployment, spec: {replicas: "5", template: TEMPLATE}, has: [5, 10]}
Float: {of: apps/v1, kind: Deployment, spec: {replicas: 5.0, template: TEMPLATE}, has: [5, 10]}
Negative: {of: apps/v1, kind: Deployment, spec: {replicas: -5, template: TEMPLATE}, has: [1, 2]}
PodLevel: {of: apps/v1, kind: Deployment,
  spec: {replicas: 5, template: {spec: {resources: {requests: {cpu: 3}}, containers: [CONTAINER]}}}, has: [5, 15]}
Digits: {of: apps/v1, kind: Deployment,
  spec: {template: {spec: {containers: [{name: c, resources: {requests: {cpu: "LONG"}}}]}}}, has: [1, null]}
ReplicationController: {of: v1, spec: {replicas: 5, template: TEMPLATE}, has: [5, 10]}
Job: {of: batch/v1, spec: {parallelism: 5, completions: 9, template: TEMPLATE}, has: [5, 10]}
CronJob: {of: batch/v1, spec: {jobTemplate: {spec: {parallelism: 5, template: TEMPLATE}}}, has: [5, 10]}
Rollout: {of: argoproj.io/v1alpha1, spec: {replicas: 5, template: TEMPLATE}, has: [5, 10]}
ScaledJob: {of: keda.sh/v1alpha1, spec: {maxReplicaCount: 5, jobTargetRef: {parallelism: 2, template: TEMPLATE}}, has: [10, 20]}
UnlimitedScaledJob: {of: keda.sh/v1alpha1, kind: ScaledJob, spec: {jobTargetRef: {template: TEMPLATE}}, has: [100, 200]}
RayCluster: {of: ray.io/v1,
  spec: {headGroupSpec: {template: TEMPLATE}, workerGroupSpecs: [{replicas: 1, maxReplicas: 4, template: TEMPLATE}]}, has: [5, 10]}
VolcanoJob: {of: batch.volcano.sh/v1alpha1, kind: Job,
  spec: {tasks: [{replicas: 2, template: TEMPLATE}, {replicas: 3, template: TEMPLATE}]}, has: [5, 10]}
PyTorchJob: {of: kubeflow.org/v1,
  spec: {pytorchReplicaSpecs: {Master: {template: TEMPLATE}, Worker: {replicas: 4, template: TEMPLATE}}}, has: [5, 10]}
Prometheus: {of: monitoring.coreos.com/v1, spec: {replicas: 5, shards: 2, resources: {requests: {cpu: 2}}}, has: [10, 20]}
SparkApplication: {of: sparkoperator.k8s.io/v1beta2, spec: {driver: {cores: 1}, executor: {instances: 5, cores: 2}}, has: [5, 10]}
Service: {of: serving.knative.dev/v1,
  spec: {template: {metadata: {annotations: {autoscaling.knative.dev/max-scale: "5"}}, spec: POD}}, has: [5, 10]}
HorizontalPodAutoscaler: {of: autoscaling/v2,
  spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 5}, has: [5, 10]}
ScaledObject: {of: keda.sh/v1alpha1, spec: {scaleTargetRef: {name: web}, maxReplicaCount: 5}, has: [5, 10]}
DefaultScaledObject: {of: keda.sh/v1alpha1, kind: ScaledObject, spec: {scaleTargetRef: {name: web}}, has: [100, 200]}
PausedScaledObject: {of: keda.sh/v1alpha1, kind: ScaledObject, annotations: {autoscaling.keda.sh/paused-replicas: "9"},
  spec: {scaleTargetRef: {name: web}, maxReplicaCount: 5}, has: [9, 18]}
HTTPScaledObject: {of: http.keda.sh/v1alpha1, spec: {scaleTargetRef: {name: web}, replicas: {min: 0, max: 5}}, has: [5, 10]}
RolloutOfDeployment: {of: argoproj.io/v1alpha1, kind: Rollout,
  spec: {replicas: 5, workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}}, has: [5, 10]}
KafkaTopic: {of: kafka.strimzi.io/v1beta2, spec: {replicas: 3, partitions: 9}, has: [0, 0]}
ConfigMap: {of: v1, spec: {}, has: [0, 0]}
"""


def read_cases() -> dict[str, Any]:
    texts = {"TEMPLATE": TEMPLATE, "POD": POD, "CONTAINER": CONTAINER, "LONG": f"{'0' * 80}5"}
    text = CASES
    for name, value in texts.items():
        text = text.replace(name, value)
    return dict(yaml.safe_load(text))


def measure(api: str, kind: str, spec: Any, annotations: Any = None) -> Amounts:
    body = {"apiVersion": api, "kind": kind, "metadata": {"name": "x", "namespace": "a", "annotations": annotations}, "spec": spec}
    name = "web" if spec.get("selector") else "x"
    key = Key(api.rpartition("/")[0], kind, "a", name)
    targets = (TargetCluster("dub"),)
    outcome = Outcome(key, "karmada", "placed", "p", "", targets, None, (), "", datetime(2026, 3, 2, tzinfo=UTC))
    return measure_outcome(outcome, Document(key, api, body), {}, Config())


@each_row(("name", "case"), read_cases().items())
def test_pods_count(name: str, case: dict[str, Any]) -> None:
    found = measure(case["of"], case.get("kind", name), case["spec"], case.get("annotations"))
    target = measure("apps/v1", "Deployment", {"replicas": 1, "selector": {"a": "b"}, "template": yaml.safe_load(TEMPLATE)})
    if found.scales:
        found.add(target)
    replicas, cpu = case["has"]
    assert found.total_replicas == replicas
    amount = found.count_requests("cpu")
    assert amount > 10**18 if cpu is None else amount == cpu * 10**9


def tenant(**limits: Any) -> Tenant:
    return parse_tenant({"metadata": {"name": "a"}, "spec": {"paths": ["a"], "limits": limits}})


def test_objects_of_one_name_in_two_groups_both_count() -> None:
    found = measure("apps/v1", "StatefulSet", {"replicas": 5, "template": yaml.safe_load(TEMPLATE)})
    found.add(measure("apps.kruise.io/v1beta1", "StatefulSet", {"replicas": 5, "template": yaml.safe_load(TEMPLATE)}))
    assert found.total_replicas == 10


def test_a_service_without_a_maximum_needs_one() -> None:
    found = measure("serving.knative.dev/v1", "Service", {"template": yaml.safe_load(TEMPLATE)})
    violation = find_exceeded_limit(Key("", "Service", "a", "x"), TenantUse(), found, [tenant(replicas=10)])
    assert violation is not None
    assert "the number of its replicas has no maximum" in violation.text
    assert "max-scale" in violation.text


def test_the_totals_of_a_tenant_are_those_of_all_its_objects() -> None:
    """Whatever is added, also several times and in any order: objects, and autoscalers of these."""
    dice, together, use = Random(1), Amounts(), TenantUse()
    names = [(cluster, Key("apps", "Deployment", "a", name)) for cluster in ("ams", "dub") for name in ("x", "y", "z")]
    for _ in range(200):
        added = Amounts()
        for name in dice.sample(names, dice.randrange(4)):
            added.pods[name] = PodAmounts(dice.randrange(9), {"cpu": dice.randrange(5), "memory": dice.randrange(5)})
        added.scales = {name: dice.randrange(12) for name in dice.sample(names, dice.randrange(3))}
        use.add(added)
        together.add(added)
        assert use.totals.replicas == together.total_replicas
        assert [use.totals.requests.get(name, 0) for name in ("cpu", "memory")] == [
            *map(together.count_requests, ("cpu", "memory"))
        ]
