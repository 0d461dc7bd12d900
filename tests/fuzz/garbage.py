"""Files that nobody can use. None of them may change what is decided about other documents."""

from __future__ import annotations

from gitsched.decide.validation import validate_document
from gitsched.manifests.parser import parse_file
from gitsched.model.document import Body

NAME = "garbage"

GARBAGE: tuple[bytes, ...] = (
    b"\x00\xff\xfe",
    b"a: [\n",
    b"%TAG ! x\n",
    b"- - -\n---\n? {}\n: 5\n",
    b"kind: ConfigMap\napiVersion: v1\n",
    b"{{ .Values.a }}: {{ if }}\n",
    b"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: garbage, namespace: default}\nspec: 5\n",
    b"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: garbage, namespace: 7, labels: [a]}\nspec: {replicas: many}\n",
    b"apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: garbage}\nspec: {taints: 5}\n",
    b"apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: garbage, namespace: default}\n"
    b"spec: {priority: 100, resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: [5]}\n",
    b"apiVersion: policy.karmada.io/v1alpha1\nkind: OverridePolicy\nmetadata: {name: garbage, namespace: default}\n"
    b"spec: {overrideRules: 1}\n",
    b"apiVersion: apps.karmada.io/v1alpha1\nkind: WorkloadRebalancer\nmetadata: {name: garbage}\nspec: {workloads: {a: 1}}\n",
    b"apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {name: garbage}\nspec: [1]\n",
    b"apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {name: garbage, namespace: default}\n"
    b"spec: {numberOfClusters: all}\n",
    b"api: kubernetes\nkind: Application\nmetadata: {name: garbage, namespace: default}\nspec: {manifest: 5}\n",
    b"api: kubernetes\nkind: Cluster\nmetadata: {name: garbage, namespace: default}\nspec: {metrics: 5}\nstatus: {state: ONLINE}\n",
    b"apiVersion: sources.knative.dev/v1\nkind: KafkaSource\nmetadata: {name: garbage, namespace: default}\nspec: {consumers: x}\n",
    b"apiVersion: gitsched.io/v1alpha1\nkind: Tenant\nmetadata: {name: garbage}\nspec: {paths: 5}\n",
    b"apiVersion: gitsched.io/v1alpha1\nkind: Rollout\nmetadata: {name: garbage, namespace: default}\nspec: {waves: 5}\n",
)


def list_broken(data: bytes) -> list[Body]:
    """Return the documents of a file that can be read at all; each has an error."""
    bodies = [document.body for document in parse_file(data, path="garbage.yaml", validate=None).documents]
    return [body for body in bodies if any(issue.severity == "error" for issue in validate_document(body).issues)]
