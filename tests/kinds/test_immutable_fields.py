"""Changes of fields that an API server refuses, by kind."""

from __future__ import annotations

import yaml

from gitsched.kinds.immutable_fields import list_immutable_changes, replaces_object
from tests.tables import each_row

# kind; manifest before; manifest after; the fields that an API server refuses to change
ROWS = (
    (
        "apps/Deployment",
        "spec: {replicas: 1, selector: {matchLabels: {a: b}}}",
        "spec: {replicas: 2, selector: {matchLabels: {a: b}}}",
        "",
    ),
    ("apps/Deployment", "spec: {selector: {matchLabels: {a: b}}}", "spec: {selector: {matchLabels: {a: c}}}", "spec.selector"),
    ("apps/DaemonSet", "spec: {selector: {matchLabels: {a: b}}}", "spec: {selector: {matchLabels: {a: '1'}}}", "spec.selector"),
    ("apps/StatefulSet", "spec: {serviceName: a, replicas: 1}", "spec: {serviceName: b, replicas: 2}", "spec.serviceName"),
    ("apps/StatefulSet", "spec: {replicas: 1}", "spec: {replicas: 1, podManagementPolicy: OrderedReady}", ""),
    ("apps/StatefulSet", "spec: {replicas: 1}", "spec: {podManagementPolicy: Parallel}", "spec.podManagementPolicy"),
    ("apps/StatefulSet", "spec: {template: {a: 1}, updateStrategy: {}}", "spec: {template: {a: 2}, minReadySeconds: 1}", ""),
    ("apps/StatefulSet", "spec: {}", "spec: {volumeClaimTemplates: [{metadata: {name: a}}]}", "spec.volumeClaimTemplates"),
    (
        "apps/StatefulSet",
        "spec: {volumeClaimTemplates: [{spec: {resources: {requests: {storage: 1Gi}}}}]}",
        "spec: {volumeClaimTemplates: [{spec: {resources: {requests: {storage: 1024Mi}}}}]}",
        "",
    ),
    ("batch/Job", "spec: {parallelism: 1, completions: 2}", "spec: {parallelism: 2, completions: 2}", ""),
    ("batch/Job", "spec: {completions: 2}", "spec: {completions: 4}", "spec.completions"),
    ("batch/Job", "spec: {}", "spec: {completions: 1}", ""),
    ("batch/Job", "spec: {}", "spec: {completions: 2}", "spec.completions"),
    ("batch/Job", "spec: {selector: {a: b}}", "spec: {}", "spec.selector"),
    ("batch/Job", "spec: {template: {a: 1}}", "spec: {template: {a: 2}}", "spec.template"),
    ("batch/Job", "spec: {suspend: true, template: {a: 1}}", "spec: {template: {a: 2}}", ""),
    ("batch/Job", "spec: {completions: 2}", "spec: {completions: 2, completionMode: NonIndexed}", ""),
    (
        "batch/Job",
        "spec: {completionMode: Indexed, completions: 2, parallelism: 2}",
        "spec: {completionMode: Indexed, completions: 3, parallelism: 3}",
        "",
    ),
    (
        "batch/Job",
        "spec: {completionMode: Indexed, completions: 2, parallelism: 2}",
        "spec: {completionMode: Indexed, completions: 3, parallelism: 2}",
        "spec.completions",
    ),
    ("/ConfigMap", "data: {a: b}", "data: {a: c}", ""),
    ("/ConfigMap", "{immutable: true, data: {a: b}}", "{immutable: true, data: {a: c}}", "data"),
    ("/Secret", "{type: Opaque, data: {a: b}}", "{type: kubernetes.io/tls, data: {a: c}}", "type"),
    ("/Secret", "{immutable: true, stringData: {a: b}}", "{stringData: {a: b}}", "immutable"),
    ("/Service", "spec: {clusterIP: 10.0.0.1}", "spec: {clusterIP: 10.0.0.2}", "spec.clusterIP"),
    ("/Service", "spec: {ports: []}", "spec: {clusterIP: 10.0.0.2}", ""),
    ("/Service", "spec: {ports: []}", "spec: {clusterIP: None}", "spec.clusterIP"),
    ("/Service", "spec: {clusterIP: None}", "spec: {ports: []}", ""),
    ("/Service", "spec: {type: ExternalName}", "spec: {clusterIP: None}", ""),
    ("/Service", "spec: {loadBalancerClass: a}", "spec: {loadBalancerClass: b}", "spec.loadBalancerClass"),
    ("/Service", "spec: {ipFamilies: [IPv4]}", "spec: {ipFamilies: [IPv4, IPv6]}", ""),
    ("/Service", "spec: {ipFamilies: [IPv4, IPv6]}", "spec: {ipFamilies: [IPv6, IPv4]}", "spec.ipFamilies"),
    ("/Secret", "data: {a: b}", "{type: Opaque, data: {a: c}}", ""),
    ("networking.k8s.io/Ingress", "spec: {ingressClassName: a}", "spec: {ingressClassName: b, rules: []}", ""),
    ("/ResourceQuota", "spec: {scopes: [BestEffort]}", "spec: {scopes: [NotBestEffort]}", "spec.scopes"),
    ("/PersistentVolumeClaim", "spec: {resources: {requests: {storage: 1}}}", "spec: {resources: {requests: {storage: 2}}}", ""),
    (
        "/PersistentVolumeClaim",
        "spec: {resources: {requests: {storage: 2Gi}}}",
        "spec: {resources: {requests: {storage: 1Gi}}}",
        "spec.resources.requests.storage",
    ),
    (
        "/PersistentVolumeClaim",
        "spec: {resources: {requests: {storage: 1Gi}}}",
        "spec: {resources: {requests: {storage: 1024Mi}}}",
        "",
    ),
    ("/PersistentVolumeClaim", "spec: {}", "spec: {resources: {limits: {storage: 1}}}", "spec.resources.limits"),
    ("/PersistentVolumeClaim", "spec: {accessModes: [a]}", "spec: {accessModes: [b]}", "spec.accessModes"),
    (
        "/PersistentVolume",
        "spec: {hostPath: {path: /a}, capacity: {storage: 1}}",
        "spec: {hostPath: {path: /b}, capacity: {storage: 2}}",
        "spec.hostPath",
    ),
    ("/PersistentVolumeClaim", "spec: {storageClassName: a}", "spec: {storageClassName: b}", "spec.storageClassName"),
    ("/PersistentVolumeClaim", "spec: {}", "spec: {volumeMode: Filesystem}", ""),
    ("/Pod", "spec: {containers: [{name: a, image: b}]}", "spec: {containers: [{name: a, image: c}]}", ""),
    (
        "/Pod",
        "spec: {containers: [{name: a, env: []}]}",
        "spec: {containers: [{name: a}], nodeName: n}",
        "spec.containers, spec.nodeName",
    ),
    ("rbac.authorization.k8s.io/RoleBinding", "roleRef: {name: a}", "roleRef: {name: b}", "roleRef"),
    ("rbac.authorization.k8s.io/RoleBinding", "{roleRef: {name: a}, subjects: []}", "roleRef: {name: a}", ""),
    ("scheduling.k8s.io/PriorityClass", "value: 1", "value: 2", "value"),
    ("storage.k8s.io/StorageClass", "provisioner: a", "{provisioner: a, reclaimPolicy: Delete}", ""),
    ("storage.k8s.io/StorageClass", "{provisioner: a, parameters: {a: b}}", "provisioner: a", "parameters"),
    ("example.com/Widget", "spec: {selector: a}", "spec: {selector: b}", ""),
    ("apps/Deployment", "spec: text", "spec: {selector: {}}", "spec.selector"),
    ("apps/StatefulSet", "spec: text", "spec: [1]", ""),
    ("/Pod", "spec: {containers: text}", "spec: {containers: [text]}", "spec.containers"),
)


@each_row(("kind", "before", "after", "refused"), ROWS)
def test_fields_that_an_api_server_refuses_to_change(kind: str, before: str, after: str, refused: str) -> None:
    group, _, name = kind.rpartition("/")
    changes = list_immutable_changes((group, name), yaml.safe_load(before), yaml.safe_load(after))
    assert ", ".join(sorted(change.path for change in changes)) == refused


def test_values_of_secrets_are_not_part_of_a_change() -> None:
    before, after = ({"immutable": True, "data": {"key": value}} for value in ("b25l", "dHdv"))
    (change,) = list_immutable_changes(("", "Secret"), before, after)
    assert (change.before, change.after) == (None, None)


@each_row(
    ("annotations", "replaces"),
    (
        ({"kustomize.toolkit.fluxcd.io/force": "enabled"}, True),
        ({"kustomize.toolkit.fluxcd.io/force": "disabled"}, False),
        ({"argocd.argoproj.io/sync-options": "Force=true, Replace=true"}, True),
        ({"argocd.argoproj.io/sync-options": "Replace=true"}, False),
        ({}, False),
    ),
)
def test_annotations_that_have_an_object_replaced(annotations: dict[str, str], replaces: bool) -> None:
    assert replaces_object({"metadata": {"annotations": annotations}}) is replaces
