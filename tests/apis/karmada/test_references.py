"""Dependencies by kind, as Karmada's default interpreter reads them."""

from __future__ import annotations

import json

import yaml

from gitsched.apis.karmada.dependencies.references import format_references, read_references
from gitsched.apis.karmada.names import depended_by_label
from gitsched.model.document import Document, Key, parse_api_group
from tests.tables import each_row


def document(text: str) -> Document:
    body = yaml.safe_load(text)
    version, metadata = body["apiVersion"], body["metadata"]
    return Document(Key(parse_api_group(version), body["kind"], metadata.get("namespace", ""), metadata["name"]), version, body)


def pod(text: str) -> Document:
    """A Pod with this spec, in flow style."""
    return document(f"{{apiVersion: v1, kind: Pod, metadata: {{name: p, namespace: shop}}, spec: {text}}}")


def named(template: Document, path: tuple[str, ...] = ()) -> list[str]:
    return [f"{r.kind}/{r.name}" for r in read_references(template, path)]


@each_row(
    ("spec", "expected"),
    [
        ("{containers: [{envFrom: [{configMapRef: {name: a}}]}]}", ["ConfigMap/a"]),
        ("{containers: [{envFrom: [{secretRef: {name: a}}]}]}", ["Secret/a"]),
        ("{containers: [{env: [{name: x, valueFrom: {configMapKeyRef: {name: a, key: k}}}]}]}", ["ConfigMap/a"]),
        ("{containers: [{env: [{name: x, valueFrom: {secretKeyRef: {name: a, key: k}}}]}]}", ["Secret/a"]),
        ("{initContainers: [{envFrom: [{secretRef: {name: a}}]}]}", ["Secret/a"]),
        ("{ephemeralContainers: [{envFrom: [{secretRef: {name: a}}]}]}", ["Secret/a"]),
        ("{imagePullSecrets: [{name: b}, {name: a}]}", ["Secret/a", "Secret/b"]),
        ("{serviceAccountName: robot}", ["ServiceAccount/robot"]),
        ("{serviceAccount: robot}", ["ServiceAccount/robot"]),
        ("{serviceAccountName: default}", []),
        ("{volumes: [{name: v, configMap: {name: a}}]}", ["ConfigMap/a"]),
        ("{volumes: [{name: v, secret: {secretName: a}}]}", ["Secret/a"]),
        ("{volumes: [{name: v, persistentVolumeClaim: {claimName: a}}]}", ["PersistentVolumeClaim/a"]),
        (
            "{volumes: [{name: v, projected: {sources: [{configMap: {name: a}}, {secret: {name: b}}, {downwardAPI: {}}]}}]}",
            ["ConfigMap/a", "Secret/b"],
        ),
        ("{volumes: [{name: v, azureFile: {secretName: a, shareName: s}}]}", ["Secret/a"]),
        ("{volumes: [{name: v, csi: {driver: d, nodePublishSecretRef: {name: a}}}]}", ["Secret/a"]),
        (
            "{volumes: [{name: v, cephfs: {secretRef: {name: a}}}, {name: w, rbd: {secretRef: {name: b}}}]}",
            ["Secret/a", "Secret/b"],
        ),
        ("{volumes: [{name: v, emptyDir: {}}, {name: w, hostPath: {path: /x}}]}", []),
        (
            "{serviceAccountName: s, imagePullSecrets: [{name: a}], containers: [{envFrom: [{secretRef: {name: a}}, "
            "{configMapRef: {name: z}}]}], volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}",
            ["ConfigMap/z", "Secret/a", "ServiceAccount/s", "PersistentVolumeClaim/c"],
        ),
        ("{containers: [{envFrom: [{configMapRef: {name: ''}}, {configMapRef: null}, 3], env: no}], volumes: {a: b}}", []),
        ("[not, a, pod]", []),
    ],
)
def test_a_pod_refers_to(spec: str, expected: list[str]) -> None:
    assert named(pod(spec)) == expected


PODS = "spec: {imagePullSecrets: [{name: a}], volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}"


@each_row(
    ("text", "expected"),
    [
        (f"apiVersion: apps/v1\nkind: Deployment\nspec: {{template: {{{PODS}}}}}", ["Secret/a", "PersistentVolumeClaim/data"]),
        (f"apiVersion: apps/v1\nkind: DaemonSet\nspec: {{template: {{{PODS}}}}}", ["Secret/a", "PersistentVolumeClaim/data"]),
        (f"apiVersion: apps/v1\nkind: StatefulSet\nspec: {{template: {{{PODS}}}}}", ["Secret/a", "PersistentVolumeClaim/data"]),
        (
            "apiVersion: apps/v1\nkind: StatefulSet\n"
            f"spec: {{volumeClaimTemplates: [{{metadata: {{name: data}}}}], template: {{{PODS}}}}}",
            ["Secret/a"],
        ),
        (f"apiVersion: batch/v1\nkind: Job\nspec: {{template: {{{PODS}}}}}", ["Secret/a", "PersistentVolumeClaim/data"]),
        (
            f"apiVersion: batch/v1\nkind: CronJob\nspec: {{jobTemplate: {{spec: {{template: {{{PODS}}}}}}}}}",
            ["Secret/a", "PersistentVolumeClaim/data"],
        ),
        (
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nspec: {tls: [{secretName: b}, {secretName: [c]}, {secretName: a}]}",
            ["Secret/a", "Secret/b"],
        ),
        (
            "apiVersion: multicluster.x-k8s.io/v1alpha1\nkind: ServiceImport\nspec: {type: ClusterSetIP}",
            ["Service/derived-w", "EndpointSlice/"],
        ),
        (f"apiVersion: v1\nkind: ConfigMap\nspec: {{template: {{{PODS}}}}}", []),
        (f"apiVersion: example.com/v1\nkind: Farm\nspec: {{template: {{{PODS}}}}}", []),
    ],
)
def test_a_kind_refers_to(text: str, expected: list[str]) -> None:
    assert named(document(f"{text}\nmetadata: {{name: w, namespace: shop}}")) == expected


def test_a_declared_kind_has_its_pod_spec_at_the_configured_path() -> None:
    farm = document(
        "{apiVersion: example.com/v1, kind: Farm, metadata: {name: f, namespace: shop}, spec: {pods: {serviceAccountName: robot}}}"
    )
    assert named(farm, ("spec", "pods")) == ["ServiceAccount/robot"]


def test_endpoint_slices_are_found_by_the_name_of_their_service() -> None:
    imported = document(
        "{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport, metadata: {name: web, namespace: shop}, spec: {}}"
    )
    _, slices = read_references(imported)
    piece = "{{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {{name: x, namespace: {}, labels: {{{}}}}}}}"
    assert slices.matches(document(piece.format("shop", "kubernetes.io/service-name: derived-web")))
    assert not slices.matches(document(piece.format("other", "kubernetes.io/service-name: derived-web")))
    assert not slices.matches(document(piece.format("shop", "kubernetes.io/service-name: web")))


def test_references_are_written_as_karmada_writes_them() -> None:
    template = pod("{serviceAccountName: robot, volumes: [{name: v, configMap: {name: a}}]}")
    shown = format_references(read_references(template))
    assert shown.startswith('[{"apiVersion":"v1","kind":"ConfigMap","namespace":"shop","name":"a"},')
    assert [entry["name"] for entry in json.loads(shown)] == ["a", "robot"]
    imported = document("{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport, metadata: {name: w, namespace: s}}")
    assert json.loads(format_references(read_references(imported)))[1]["labelSelector"] == {
        "matchLabels": {"kubernetes.io/service-name": "derived-w"}
    }


def test_the_labels_of_dependents_differ() -> None:
    keys = [("prod-xxx", "web-deployment"), ("qa-xxx", "web-deployment"), ("", "web-deployment"), ("a", "b-c"), ("a-b", "c")]
    labels = [depended_by_label(Key("work.karmada.io", "ResourceBinding", *key)) for key in keys]
    assert len(set(labels)) == len(labels)
    assert all(label.startswith("resourcebinding.karmada.io/depended-by-") for label in labels)
    assert all(set(label.rpartition("-")[2]) <= set("bcdfghjklmnpqrstvwxz2456789") for label in labels)
