"""Objects of Kubernetes' own kinds are checked against its schemas: what an API server refuses is found with line and column."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import jsonschema_rs
import pytest
import yaml

from gitsched.apis.built_in_schemas import load_built_in_kinds, read_built_in_schemas
from gitsched.decide.validation import validate_document, validate_source_document
from gitsched.manifests.parser import parse_file
from gitsched.manifests.schema import get_schema_key
from tests.tables import each_row

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  creationTimestamp: null
  labels: {app: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  strategy: {rollingUpdate: {maxSurge: 25%, maxUnavailable: 1}}
  template:
    metadata: {labels: {app: web}, annotations: null}
    spec:
      containers:
        - name: web
          image: nginx
          ports: [{containerPort: 80}]
          env: [{name: PORT, value: "80"}]
          resources: {limits: {cpu: 2, memory: 1Gi}, requests: {cpu: 0.5}}
          livenessProbe: {httpGet: {port: http}}
      volumes: [{name: scratch, emptyDir: null}]
status: {replicas: unknown}
"""
SECRET = """\
apiVersion: v1
kind: Secret
metadata: {name: token}
data: {token: aHVudGVyMg==}
"""
INGRESS = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web}\nspec: {rules: [{host: example.com}]}\n"
SLICE = "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: web}\naddressType: IPv4\n"
STORAGE = "apiVersion: storagemigration.k8s.io/v1beta1\nkind: StorageVersionMigration\nmetadata: {name: web}\n"
PORTS = "[{containerPort: 80}]"

MISTAKES = [
    # the object, what is replaced by what, the findings
    (DEPLOYMENT, "replicas: 3", "replicas: three", ['8:13 error wrong-type \'replicas\' must be an integer, not "three"']),
    (DEPLOYMENT, "replicas: 3", "replicas: 3000000000", ["8:13 error out-of-range"]),
    (DEPLOYMENT, PORTS, '[{containerPort: "80"}]', ["17:35 error wrong-type 'containerPort' must be an integer, not \"80\""]),
    (DEPLOYMENT, PORTS, "{containerPort: 80}", ["17:11 error wrong-type 'ports' must be a list, not a mapping; make it an entry"]),
    (DEPLOYMENT, 'value: "80"', "value: 80", ["18:37 error wrong-type 'value' must be a string, not 80; quote it"]),
    (DEPLOYMENT, "cpu: 2", "cpu: [2]", ["19:32 error wrong-type 'cpu' must be a string or a number, not a list"]),
    (DEPLOYMENT, "maxSurge: 25%", "maxSurge: 0.25", ["10:40 error wrong-type 'maxSurge' must be an integer or a string, not 0.25"]),
    (DEPLOYMENT, "replicas: 3", "replica: 3", ["8:3 warning unknown-field the field 'replica' is unknown to Kubernetes 1.36"]),
    (DEPLOYMENT, "image: nginx", "imagee: nginx", ["15:11 error missing-field 'image' is required", "16:11 warning unknown-field"]),
    (DEPLOYMENT, "selector: {", "# {", ["7:1 warning missing-field 'spec' lacks 'selector', which is required"]),
    (DEPLOYMENT, "- name: web", "- tty: true", ["15:11 error missing-field entry 0 lacks 'name', which is required"]),
    (DEPLOYMENT, "apps/v1", "extensions/v1beta1", ["1:13 error removed-version Kubernetes 1.36 has no Deployment in extensions/v1beta1"]),
    (DEPLOYMENT, "apps/v1", "apps/v1beta1", ["1:13 error removed-version Kubernetes 1.36 has no Deployment in apps/v1beta1: write"]),
    (DEPLOYMENT, "apps/v1", "apps/v11", ["1:13 error unknown-version Kubernetes 1.36 has no Deployment in apps/v11: write apps/v1"]),
    (DEPLOYMENT, "apps/v1", "apps/one", ["1:13 error unknown-version"]),
    (DEPLOYMENT, "apps/v1", "v1", ["1:13 error unknown-kind Kubernetes 1.36 has no Deployment in v1: write apps/v1"]),
    (DEPLOYMENT, "kind: Deployment", "kind: Deploymnet", ["2:7 error unknown-kind"]),
    (DEPLOYMENT, "kind: Deployment", "kind: DEPLOYMENT", ["2:7 error unknown-kind Kubernetes 1.36 has no kind 'DEPLOYMENT' in"]),
    (DEPLOYMENT, "apps/v1\nkind: Deployment", "batch/v1\nkind: deployment", ["2:7 error unknown-kind"]),
    (DEPLOYMENT, "kind: Deployment", "kind: Unheard", []),  # of a newer Kubernetes
    (INGRESS, "networking.k8s.io", "networkng.k8s.io", ["1:13 error unknown-kind Kubernetes 1.36 has no Ingress in"]),
    (INGRESS, "networking.k8s.io/v1", "networking.internal.knative.dev/v1alpha1", []),  # a custom resource
    (INGRESS, "networking.k8s.io/v1", "networking.k8s.io/v1beta1", ["1:13 error removed-version"]),
    (SLICE, "v1", "v2", ["1:13 error unknown-version"]),
    (STORAGE, "v1beta1", "v1", []),  # of a newer Kubernetes
    (STORAGE, "v1beta1", "v1beta2", []),
    (STORAGE, "v1beta1", "v1beta11", ["1:13 error unknown-version"]),
    (DEPLOYMENT, "replicas: 3", "replicas: ${REPLICAS}", []),  # Flux substitutes it
    (DEPLOYMENT, "apps/v1", "apps.openshift.io/v1", []),  # a custom resource
    (SECRET, "aHVudGVyMg==", "hunter2", ["4:15 error wrong-format 'token' must be base64, not a value that is not shown; plain text"]),
    (SECRET, "aHVudGVyMg==", "12345678901", ["4:15 error wrong-type 'token' must be a string, not a value that is not shown"]),
    (SECRET, "aHVudGVyMg==", "\"ENC[AES256_GCM,data:x]\"", []),  # SOPS
    (SECRET, "aHVudGVyMg==", "<path:secret/data/token#value>", []),  # Argo CD's plug-in for Vault
]  # fmt: skip


def find(text: str) -> list[str]:
    parsed = parse_file(text.encode(), path="a.yaml", validate=validate_source_document)
    assert len(parsed.documents) == 1
    return [f"{issue.line}:{issue.column} {issue.severity} {issue.code} {issue.message}" for issue in parsed.issues]


@pytest.mark.parametrize("text", [DEPLOYMENT, SECRET])
def test_what_an_api_server_accepts_has_no_findings(text: str) -> None:
    assert find(text) == []


@each_row(("text", "old", "new", "expected"), MISTAKES)
def test_a_mistake_is_found_at_its_field(text: str, old: str, new: str, expected: list[str]) -> None:
    assert text.count(old) >= 1
    found = find(text.replace(old, new, 1))
    assert len(found) == len(expected)
    assert all(one.startswith(start) for one, start in zip(found, expected, strict=True)), found
    assert "hunter2" not in "".join(found)


def test_an_object_without_its_main_part_is_taken_for_a_patch() -> None:
    patch = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 2}\n"
    assert find(patch) == []
    assert len(find(patch.replace("2", "two"))) == 1
    assert [row.split()[1:3] for row in find(patch.replace("replicas: 2", "tempalte: {}"))] == [
        ["warning", "missing-field"],
        ["error", "missing-field"],
        ["warning", "unknown-field"],
    ]


EMPTY = {
    "apps/v1": "DaemonSet Deployment ReplicaSet StatefulSet",
    "batch/v1": "CronJob Job",
    "v1": "PersistentVolume PersistentVolumeClaim Pod PodTemplate ReplicationController Service",
    "networking.k8s.io/v1": "Ingress",
    "autoscaling/v2": "HorizontalPodAutoscaler",
}


@pytest.mark.parametrize("spec", ["", "spec: null", "spec:", "spce: {template: {}}"])
def test_an_object_without_its_spec_is_an_error(spec: str) -> None:
    for version, kinds in EMPTY.items():
        for kind in kinds.split():
            text = spec.replace("spec", "template").replace("spce", "tempalte") if kind == "PodTemplate" else spec
            found = find(f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: web}}\n{text}\n")
            assert [row for row in found if " error " in row], (version, kind)
    for kind in ("ConfigMap", "Secret", "ServiceAccount", "Namespace", "LimitRange", "ResourceQuota"):
        assert not find(f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: web}}\n")


def test_unknown_fields_stay_in_the_manifest_and_strict_makes_them_errors() -> None:
    body = yaml.safe_load(DEPLOYMENT.replace("image: nginx", "imagee: nginx"))
    assert validate_source_document(body).body == body
    assert {issue.severity for issue in validate_source_document(body, strictness="strict").issues} == {"error"}
    assert validate_document(body).issues == ()  # schedule() and validate() in Python say what the upstream says


def test_the_schemas_name_their_source_and_stay_small() -> None:
    document = read_built_in_schemas()
    assert document["source"].keys() == {"version", "source", "sha256", "license"}
    assert len(json.dumps(document)) < 300_000
    assert all(
        jsonschema_rs.meta.is_valid({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})
        for schema in document["definitions"].values()
    )


def test_an_object_with_many_mistakes_is_explained_quickly() -> None:
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a"},
        "data": {f"key{number}": 1 for number in range(50_000)},
    }
    started = time.monotonic()
    assert len(validate_source_document(body).issues) == 20
    assert time.monotonic() - started < 2


@cache
def other_validator(kind: str) -> jsonschema_rs.Draft202012Validator:
    """Return the validator of `kubernetes-validate` for the same version of Kubernetes, which allows no unknown fields."""
    directory = files("kubernetes_validate").joinpath("kubernetes-json-schema", "v1.36.0-local-strict")
    schema, definitions = (
        directory.joinpath(name).read_text().replace("/api/_definitions.json#", "#")
        for name in (f"{kind}.json", "_definitions.json")
    )
    return jsonschema_rs.Draft202012Validator({**json.loads(schema), "$defs": json.loads(definitions)["$defs"]})


def mutate(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield each place of a value with what replaces it there."""
    if isinstance(value, dict):
        yield path, {**value, "unheard": 1}
        for name, part in value.items():
            yield from mutate(part, (*path, name))
    elif isinstance(value, list):
        yield path, "text"
        for index, part in enumerate(value):
            yield from mutate(part, (*path, index))
    elif value is not None:
        yield path, [value]


def test_the_verdict_is_that_of_another_validator() -> None:
    body = yaml.safe_load(DEPLOYMENT)
    del body["status"]
    kinds, other = load_built_in_kinds(), other_validator("deployment-apps-v1")
    assert other.is_valid(body)
    compared = 0
    for path, replaced in mutate(body):
        changed = copy.deepcopy(body)
        holder: Any = changed
        for step in path[:-1]:
            holder = holder[step]
        if path:
            holder[path[-1]] = replaced
        else:
            changed = replaced
        if path not in (("apiVersion",), ("kind",)):
            found = kinds.find_issues(get_schema_key(body), changed)
            if other.is_valid(changed):  # it knows types alone
                assert not {"unknown-field", "wrong-type"} & {issue.code for issue in found}, (path, found)
            else:
                assert found, path
            compared += 1
    assert compared > 30


REMOVED = """
extensions/v1beta1 NetworkPolicy DaemonSet Deployment ReplicaSet PodSecurityPolicy Ingress
apps/v1beta1 Deployment StatefulSet
apps/v1beta2 DaemonSet Deployment ReplicaSet StatefulSet
settings.k8s.io/v1alpha1 PodPreset
admissionregistration.k8s.io/v1beta1 MutatingWebhookConfiguration ValidatingWebhookConfiguration
apiextensions.k8s.io/v1beta1 CustomResourceDefinition
apiregistration.k8s.io/v1beta1 APIService
authentication.k8s.io/v1beta1 TokenReview
authorization.k8s.io/v1beta1 LocalSubjectAccessReview SelfSubjectAccessReview SubjectAccessReview
certificates.k8s.io/v1beta1 CertificateSigningRequest
coordination.k8s.io/v1beta1 Lease
networking.k8s.io/v1beta1 Ingress IngressClass
rbac.authorization.k8s.io/v1beta1 ClusterRole ClusterRoleBinding Role RoleBinding
scheduling.k8s.io/v1beta1 PriorityClass
storage.k8s.io/v1beta1 CSIDriver CSINode StorageClass VolumeAttachment CSIStorageCapacity
batch/v1beta1 CronJob
discovery.k8s.io/v1beta1 EndpointSlice
events.k8s.io/v1beta1 Event
autoscaling/v2beta1 HorizontalPodAutoscaler
autoscaling/v2beta2 HorizontalPodAutoscaler
policy/v1beta1 PodDisruptionBudget PodSecurityPolicy
node.k8s.io/v1beta1 RuntimeClass
flowcontrol.apiserver.k8s.io/v1beta1 FlowSchema PriorityLevelConfiguration
"""
"""What the deprecated API migration guide of Kubernetes lists for the releases up to 1.27."""
SERVED_LATER = """
flowcontrol.apiserver.k8s.io/v1beta2 FlowSchema
flowcontrol.apiserver.k8s.io/v1beta3 PriorityLevelConfiguration
admissionregistration.k8s.io/v1beta1 ValidatingAdmissionPolicy
"""


@pytest.mark.parametrize(("versions", "severity"), [(REMOVED, "error"), (SERVED_LATER, "warning")], ids=["removed", "served later"])
def test_versions_that_kubernetes_has_removed(versions: str, severity: str) -> None:
    for version, kind in ((line.split()[0], kind) for line in versions.split("\n") if line for kind in line.split()[1:]):
        found = validate_source_document({"apiVersion": version, "kind": kind, "metadata": {"name": "web"}}).issues
        assert [(issue.severity, issue.code) for issue in found] == [(severity, "removed-version")], (version, kind)
