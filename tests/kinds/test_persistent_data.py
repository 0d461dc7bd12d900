"""Which data a manifest has that stays in a cluster when the workload leaves it."""

from __future__ import annotations

import yaml

from gitsched.kinds.persistent_data import list_claim_names, list_data
from tests.tables import each_row

CLAIM = "{accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 10Gi}}}"
CASES = {
    "a StatefulSet with templates of claims": (
        f"{{apiVersion: apps/v1, kind: StatefulSet, spec: {{volumeClaimTemplates: [{{metadata: {{name: data}}, spec: {CLAIM}}}]}}}}",
        ["claim template data (10Gi, storage class fast)"],
    ),
    "a StatefulSet of OpenKruise": (
        "{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, spec: {volumeClaimTemplates: "
        f"[{{metadata: {{name: d}}, spec: {CLAIM}}}]}}}}",
        ["claim template d (10Gi, storage class fast)"],
    ),
    "a Prometheus": (
        f"{{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, spec: {{storage: {{volumeClaimTemplate: {{spec: {CLAIM}}}}}}}}}",
        ["claim template (10Gi, storage class fast)"],
    ),
    "nodes of Elasticsearch": (
        "{apiVersion: elasticsearch.k8s.elastic.co/v1, kind: Elasticsearch, spec: {nodeSets: [{volumeClaimTemplates: "
        f"[{{metadata: {{name: es}}, spec: {CLAIM}}}]}}]}}}}",
        ["claim template es (10Gi, storage class fast)"],
    ),
    "a cluster of CloudNativePG": (
        "{apiVersion: postgresql.cnpg.io/v1, kind: Cluster, spec: {storage: {size: 5Gi, storageClass: fast}, walStorage: {size: 1Gi}}}",
        ["storage of Cluster (5Gi, storage class fast)", "storage of Cluster (1Gi)"],
    ),
    "volumes of a KafkaNodePool": (
        "{apiVersion: kafka.strimzi.io/v1, kind: KafkaNodePool, spec: {storage: {type: jbod, volumes: "
        "[{type: persistent-claim, size: 2Gi, class: fast}]}}}",
        ["storage of KafkaNodePool (2Gi, storage class fast)"],
    ),
    "a Kafka whose storage ends with its pods": (
        "{apiVersion: kafka.strimzi.io/v1, kind: Kafka, spec: {kafka: {storage: {type: ephemeral}}}}",
        [],
    ),
    "a RabbitmqCluster with the default volumes": (
        "{apiVersion: rabbitmq.com/v1beta1, kind: RabbitmqCluster}",
        ["data of RabbitmqCluster"],
    ),
    "a KafkaTopic": (
        "{apiVersion: kafka.strimzi.io/v1, kind: KafkaTopic, spec: {partitions: 3}}",
        ["data of KafkaTopic"],
    ),
    "a claim without a storage class": (
        "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: files}, spec: {resources: {requests: {storage: 1Gi}}}}",
        ["claim files (1Gi)"],
    ),
    "a CronJob that mounts a claim": (
        "{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {volumes: "
        "[{name: v, persistentVolumeClaim: {claimName: dumps}}]}}}}}}",
        ["claim dumps"],
    ),
    "objects in an Application": (
        "{api: kubernetes, kind: Application, spec: {manifest: [{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}, "
        f"spec: {CLAIM}}}]}}}}",
        ["claim c (10Gi, storage class fast)"],
    ),
    "a label": (
        "{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {labels: {gitsched.io/stateful: 'true'}}, spec: {}}",
        ["label gitsched.io/stateful"],
    ),
    "a label that says otherwise": (
        "{apiVersion: apps/v1, kind: StatefulSet, metadata: {labels: {gitsched.io/stateful: 'False'}}, "
        f"spec: {{volumeClaimTemplates: [{{spec: {CLAIM}}}]}}}}",
        [],
    ),
    "volumes that end with their pod": (
        "{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {volumes: [{name: a, emptyDir: {}}, "
        f"{{name: b, ephemeral: {{volumeClaimTemplate: {{spec: {CLAIM}}}}}}}]}}}}}}}}",
        [],
    ),
    "the schema of a custom resource": (
        "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {versions: [{schema: {openAPIV3Schema: {properties: "
        "{volumeClaimTemplates: {type: array}, volumeClaimTemplate: {type: object}, "
        "persistentVolumeClaim: {properties: {claimName: {type: string}}}}}}}]}}",
        [],
    ),
    "a manifest without the members of its kind": ("{apiVersion: apps/v1, kind: StatefulSet, spec: [1], metadata: 7}", []),
    "values of other types": (
        "{apiVersion: apps/v1, kind: StatefulSet, spec: {volumeClaimTemplates: [7, {metadata: [], spec: 3}], volumeClaimTemplate: 5, "
        "persistentVolumeClaim: {claimName: [1]}}}",
        ["claim template"],
    ),
}


@each_row("name", CASES)
def test_the_data_of_a_manifest(name: str) -> None:
    text, expected = CASES[name]
    assert list(map(str, list_data(yaml.safe_load(text)))) == expected


def test_claims_that_pods_mount_are_listed_once() -> None:
    volumes = "[{persistentVolumeClaim: {claimName: a}}, {persistentVolumeClaim: {claimName: b}}, {persistentVolumeClaim: {claimName: a}}]"
    assert list_claim_names(yaml.safe_load(f"{{kind: Pod, spec: {{volumes: {volumes}}}}}")) == ["a", "b"]
