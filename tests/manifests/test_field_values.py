"""Values of Kubernetes' own kinds that every API server refuses are errors at their line, and what it accepts is not."""

from __future__ import annotations

import json

import pytest

from gitsched.apis.built_in_schemas import read_built_in_schemas
from gitsched.decide.validation import validate_source_document
from gitsched.kinds.field_relations import RELATIONS
from gitsched.kinds.field_values import FIELD_VALUES
from gitsched.manifests.cron_schedules import is_cron_schedule
from gitsched.manifests.field_relations import RelationTree
from gitsched.manifests.parser import parse_file
from gitsched.model.finding import Issue
from tests.tables import each_row

POD = """\
      {restart}dnsPolicy: ClusterFirst
      volumes: [{{name: data, emptyDir: {{}}}}]
      tolerations: [{{key: a, operator: Equal, value: b, effect: NoSchedule}}]
      initContainers: [{{name: init, image: "i:1"}}]
      containers:
      - name: main
        image: registry.example.com/app:1
        imagePullPolicy: Always
        ports: [{{name: http, containerPort: 80, protocol: TCP}}, {{name: dns, containerPort: 53, protocol: UDP}}]
        env: [{{name: A, value: b}}, {{name: C, valueFrom: {{fieldRef: {{fieldPath: metadata.name}}}}}}]
        resources: {{requests: {{cpu: 500m, memory: 256Mi, nvidia.com/gpu: 1}}, limits: {{cpu: "1", memory: 1e9, nvidia.com/gpu: 1}}}}
        livenessProbe: {{httpGet: {{path: /, port: http}}, periodSeconds: 0}}
        readinessProbe: {{tcpSocket: {{port: 80}}, successThreshold: 2}}
        volumeMounts: [{{name: data, mountPath: /data}}]
        securityContext: {{privileged: true}}
"""


def workload(kind: str, more: str = "", restart: str = "") -> str:
    return (
        f"apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: web}}\nspec:\n{more}  selector: {{matchLabels: {{app: web}}}}\n"
        f"  template:\n    metadata: {{labels: {{app: web}}}}\n    spec:\n{POD.format(restart=restart)}"
    )


DEPLOYMENT = workload(
    "Deployment", "  replicas: 2\n  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 0}}\n"
)
JOB = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: web}\nspec:\n  completions: 2\n  template:\n    spec:\n" + POD.format(
    restart="restartPolicy: Never\n      "
)
CRON = (
    'apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: web}\nspec:\n  schedule: "*/5 4 * * 1-5"\n  concurrencyPolicy: Forbid\n'
    "  jobTemplate:\n    spec:\n      template:\n        spec: {restartPolicy: OnFailure, containers: [{name: main, image: a}]}\n"
)
SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: LoadBalancer
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: http}, {name: dns, port: 53, protocol: UDP, targetPort: 8053}]
"""
INGRESS = """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  rules:
  - host: "*.example.com"
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
"""
HPA = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  minReplicas: 2
  maxReplicas: 4
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
"""
PDB = (
    "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\n"
    "spec: {minAvailable: 50%, selector: {matchLabels: {app: web}}}\n"
)
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {app.properties: a}\n"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: web}\ntype: kubernetes.io/tls\ndata: {tls.crt: eA==, tls.key: eA==}\n"
ROLE = (
    "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: web}\n"
    "rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n"
)
BINDING = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: web}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: web}
subjects: [{kind: ServiceAccount, name: web, namespace: default}]
"""
POLICY = """\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web}
spec:
  podSelector: {}
  policyTypes: [Ingress]
  ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8}}], ports: [{protocol: TCP, port: 80, endPort: 90}]}]
"""
CLAIM = (
    "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: web}\n"
    "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
)
STATEFUL_SET = workload(
    "StatefulSet",
    "  serviceName: web\n  volumeClaimTemplates:\n  - metadata: {name: claim}\n"
    "    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n",
).replace("name: data, mountPath", "name: claim, mountPath")
POD_ALONE = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: main, image: a}]}\n"
DAEMON_SET = workload("DaemonSet", "  updateStrategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}\n")
CONTROLLER = workload("ReplicationController").replace("apps/v1", "v1").replace("{matchLabels: {app: web}}", "{app: web}")
VOLUME = (
    "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: web}\n"
    "spec: {accessModes: [ReadWriteOnce], capacity: {storage: 10Gi}, nfs: {server: a, path: /}}\n"
)
STORAGE = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: web}\nprovisioner: ebs.csi.aws.com\n"
WEBHOOK = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: web}
webhooks:
- {name: a.example.com, clientConfig: {service: {name: web, namespace: shop}}, sideEffects: None, admissionReviewVersions: [v1]}
"""
ENDPOINTS = (
    "apiVersion: v1\nkind: Endpoints\nmetadata: {name: web}\n"
    "subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{name: http, port: 80}]}]\n"
)
VALID = {
    text: text
    for text in (
        *(DEPLOYMENT, JOB, CRON, SERVICE, INGRESS, HPA, PDB, CONFIG, SECRET, ROLE, BINDING, POLICY, CLAIM, POD_ALONE),
        *(
            STATEFUL_SET,
            *(DAEMON_SET, CONTROLLER, VOLUME, STORAGE, ENDPOINTS, WEBHOOK),
            workload("ReplicaSet"),
        ),
    )
}

MISTAKES = [
    # the object, what is replaced by what, the beginning of the finding
    (DEPLOYMENT, "replicas: 2", "replicas: -6", "5:13 out-of-range 'replicas' must be at least 0, not -6"),
    (DEPLOYMENT, "cpu: 500m", "cpu: 500mi", "21:37 wrong-format 'cpu' must be a quantity such as 500m, 2 or 1Gi"),
    (DEPLOYMENT, "memory: 256Mi", "memory: 256MB", "21:51 wrong-format 'memory' must be a quantity"),
    (DEPLOYMENT, "memory: 256Mi", "memory: 1 Gi", "21:51 wrong-format"),
    (DEPLOYMENT, "cpu: 500m", "cpu: -1", "21:37 out-of-range"),
    (DEPLOYMENT, "cpu: 500m", "cpu: 2", "21:37 out-of-range the request of \"cpu\", 2, must be at most its limit, which is 1"),
    (DEPLOYMENT, "cpu: 500m", "cpus: 500m", "21:38 value-not-allowed \"cpus\" is no resource of a container"),
    (DEPLOYMENT, "memory: 1e9, nvidia.com/gpu: 1", "memory: 1e9", "21:74 missing-field a request of \"nvidia.com/gpu\" needs a limit"),
    (DEPLOYMENT, "imagePullPolicy: Always", "imagePullPolicy: Allways", "18:26 value-not-allowed 'imagePullPolicy' must be \"Always\""),
    (DEPLOYMENT, "dnsPolicy: ClusterFirst", "restartPolicy: always", "11:22 value-not-allowed 'restartPolicy' must be \"Always\""),
    (DEPLOYMENT, "dnsPolicy: ClusterFirst", "restartPolicy: Never", "11:22 value-not-allowed 'restartPolicy' must be Always here"),
    (DEPLOYMENT, "dnsPolicy: ClusterFirst", "dnsPolicy: None2", "11:18 value-not-allowed"),
    (DEPLOYMENT, "protocol: TCP", "protocol: tcp", "19:59 value-not-allowed"),
    (DEPLOYMENT, "containerPort: 80", "containerPort: 80000", "19:45 out-of-range 'containerPort' must be at most 65535, not 80000"),
    (DEPLOYMENT, "containerPort: 80", "containerPort: 0", "19:45 out-of-range"),
    (DEPLOYMENT, "name: http", "name: http_metrics", "19:24 wrong-format"),
    (DEPLOYMENT, "name: dns", "name: http", "19:72 invalid-field two entries of ports have name \"http\""),
    (DEPLOYMENT, "name: main", "name: init", "14:31 invalid-field"),
    (DEPLOYMENT, "name: main", "name: API", "16:15 wrong-format 'name' must be lower-case letters, digits and '-'"),
    (DEPLOYMENT, "image: registry.example.com/app:1", 'image: ""', "17:16 out-of-range 'image' must not be empty"),
    (DEPLOYMENT, "image: registry.example.com/app:1", "tty: true", "16:9 missing-field 'image' is required"),
    (DEPLOYMENT, "port: http}, p", "port: \"80\"}, p", "22:50 wrong-format 'port' must be a number, or a name"),
    (DEPLOYMENT, "httpGet: {path: /, port: http}, ", "", "22:9 missing-field one of exec, grpc, httpGet, tcpSocket is required"),
    (DEPLOYMENT, "httpGet: {", "exec: {command: [a]}, httpGet: {", "22:47 invalid-field"),
    (DEPLOYMENT, "periodSeconds: 0", "periodSeconds: -1", "22:72 out-of-range"),
    (DEPLOYMENT, "periodSeconds: 0", "successThreshold: 3", "22:75 value-not-allowed"),
    (DEPLOYMENT, "{name: data, mountPath", "{name: date, mountPath", "24:31 invalid-field volumes has no entry \"date\""),
    (DEPLOYMENT, "emptyDir: {}", "emptyDir: {}, hostPath: {path: /}", "12:44 invalid-field emptyDir and hostPath exclude each other"),
    (DEPLOYMENT, "emptyDir: {}", "secret: {secretName: a, defaultMode: 644}", "12:67 out-of-range"),
    (DEPLOYMENT, "emptyDir: {}}", "emptyDir: {}}, {name: data, emptyDir: {}}", "12:52 invalid-field two entries of volumes have name"),
    (DEPLOYMENT, "operator: Equal", "operator: Exists", "13:55 invalid-field value is not allowed with operator: Exists"),
    (DEPLOYMENT, "effect: NoSchedule", "tolerationSeconds: 3", "13:21 value-not-allowed 'effect' must be NoExecute with tolerationSeconds"),
    (DEPLOYMENT, "effect: NoSchedule", "effect: NoShedule", "13:65 value-not-allowed"),
    (DEPLOYMENT, "value: b}, {name: C,", "value: b}, {name: C, value: d,", "20:56 invalid-field value and valueFrom exclude each other"),
    (DEPLOYMENT, "privileged: true", "privileged: true, allowPrivilegeEscalation: false", "25:71 invalid-field"),
    (DEPLOYMENT, "type: RollingUpdate", "type: Recreate", "6:30 invalid-field rollingUpdate is not allowed with type: Recreate"),
    (DEPLOYMENT, "type: RollingUpdate", "type: Rolling", "6:20 value-not-allowed"),
    (DEPLOYMENT, "maxSurge: 25%", "maxSurge: 0", "6:80 out-of-range maxSurge and maxUnavailable must not both be 0"),
    (DEPLOYMENT, "maxSurge: 25%", "maxSurge: 25 %", "6:61 wrong-format"),
    (DEPLOYMENT, "    metadata: {labels: {app: web}}", "    metadata: {labels: {app: other}}", "7:33 invalid-field"),
    (DEPLOYMENT, "{matchLabels: {app: web}}", "{matchExpressions: [{key: app, operator: In, values: [a]}]}", "7:33 invalid-field"),
    (DEPLOYMENT, "    metadata: {labels: {app: web}}", "    metadata: {labels: {app: web, b: a b}}", "9:38 invalid-labels"),
    (JOB, "restartPolicy: Never", "restartPolicy: Always", "8:22 value-not-allowed 'restartPolicy' must be Never or OnFailure here"),
    (JOB, "restartPolicy: Never\n      ", "", "7:5 missing-field 'restartPolicy' is required"),
    (JOB, "completions: 2", "completionMode: Indexed", "4:1 missing-field 'completions' is required with completionMode: Indexed"),
    (JOB, "completions: 2", "backoffLimit: -1", "5:17 out-of-range"),
    (CRON, '"*/5 4 * * 1-5"', '"* * * *"', "5:13 wrong-format 'schedule' must be five fields"),
    (CRON, '"*/5 4 * * 1-5"', '"61 * * * *"', "5:13 wrong-format"),
    (CRON, "Forbid", "forbid", "6:22 value-not-allowed"),
    (SERVICE, "LoadBalancer", "loadbalancer", "5:9 value-not-allowed 'type' must be \"ClusterIP\""),
    (SERVICE, "type: LoadBalancer", "type: ExternalName", "4:1 missing-field 'externalName' is required with type: ExternalName"),
    (SERVICE, "port: 80,", "port: 80000,", "7:30 out-of-range"),
    (SERVICE, "name: dns", "name: http", "7:60 invalid-field"),
    (SERVICE, "name: dns, ", "", "7:53 missing-field entry 1 lacks 'name', which is required where ports has several entries"),
    (SERVICE, "port: 53, protocol: UDP", "port: 80", "7:71 invalid-field two entries of ports have port \"80\", protocol \"TCP\""),
    (SERVICE, "targetPort: http", 'targetPort: "80"', "7:46 wrong-format"),
    (SERVICE, "app: web", "app: -web", "6:19 invalid-labels"),
    (INGRESS, "pathType: Prefix", "pathType: prefix", "7:40 value-not-allowed"),
    (INGRESS, "path: /", "path: a", "7:27 wrong-format 'path' must be an absolute path"),
    (INGRESS, '"*.example.com"', "https://example.com", "6:11 wrong-format 'host' must be a host name in lower case"),
    (INGRESS, "{number: 80}", "{number: 80, name: http}", "7:104 invalid-field"),
    (INGRESS, "{number: 80}", "{number: 80000}", "7:94 out-of-range"),
    (HPA, "minReplicas: 2", "minReplicas: 5", "5:16 out-of-range 'minReplicas' must be at most"),
    (HPA, "type: Resource", "type: Ressource", "8:20 value-not-allowed"),
    (HPA, "minReplicas: 2\n  maxReplicas: 4", "maxReplicas: 0", "5:16 out-of-range"),
    (PDB, "minAvailable: 50%", "minAvailable: half", "4:22 wrong-format 'minAvailable' must be a number"),
    (PDB, "minAvailable: 50%", "minAvailable: 1, maxUnavailable: 1", "4:41 invalid-field"),
    (CONFIG, "app.properties", "app/properties", "4:1 wrong-format 'data' must be keys of letters"),
    (SECRET, "tls.key: eA==", "key: eA==", "1:1 missing-field a Secret of the type kubernetes.io/tls needs the key tls.key"),
    (ROLE, "verbs: [get]", "verbs: []", "4:46 out-of-range"),
    (ROLE, "apiGroups: [''], ", "", "4:9 missing-field 'apiGroups' is required with resources"),
    (BINDING, ", namespace: default", "", "5:12 missing-field 'namespace' is required with kind: ServiceAccount"),
    (BINDING, "kind: ClusterRole,", "kind: Role,", "4:54 value-not-allowed"),
    (BINDING, "apiGroup: rbac.authorization.k8s.io,", "apiGroup: rbac.authorization.k8s.io/v1,", "4:21 value-not-allowed"),
    (POLICY, "endPort: 90", "endPort: 70", "7:83 out-of-range"),
    (POLICY, "[Ingress]", "[ingress]", "6:17 value-not-allowed"),
    (POLICY, "10.0.0.0/8", "10.0.0.0", "7:38 wrong-format"),
    (POLICY, "{ipBlock:", "{podSelector: {}, ipBlock:", "7:39 invalid-field"),
    (CLAIM, "ReadWriteOnce", "ReadWriteone", "4:22 value-not-allowed"),
    (DEPLOYMENT, "dnsPolicy: ClusterFirst", "dnsPolicy: None", "10:5 missing-field 'dnsConfig' is required with dnsPolicy: None"),
    (DEPLOYMENT, "dnsPolicy: ClusterFirst", "nodeSelector: {disk: a b}", "11:28 invalid-labels"),
    (DEPLOYMENT, "mountPath: /data", "mountPath: /data, subPath: a, subPathExpr: b", "24:80 invalid-field"),
    (DEPLOYMENT, "env: [", "envFrom: [{prefix: A}]\n        env: [", "20:19 missing-field one of configMapRef, secretRef"),
    (DEPLOYMENT, "livenessProbe", "lifecycle: {preStop: {}}\n        livenessProbe", "22:21 missing-field one of exec, httpGet, sleep"),
    (DEPLOYMENT, "{matchLabels: {app: web}}", "{matchExpressions: [{key: app, operator: Exists, values: [a]}]}", "7:62 invalid-field"),
    (DEPLOYMENT, "dnsPolicy: ClusterFirst", "affinity: |-\n        ${A}\n        b", "11:17 wrong-type"),
    (STATEFUL_SET, "{name: claim, mountPath", "{name: clam, mountPath", "26:31 invalid-field volumes has no entry \"clam\""),
    (STATEFUL_SET, "accessModes: [ReadWriteOnce], ", "", "8:5 missing-field 'accessModes' is required"),
    (SERVICE, "ports: [{name: http, port: 80, targetPort: http}, {name: dns, port: 53, protocol: UDP, targetPort: 8053}]", "ports: []",
        "4:1 missing-field 'ports' is required without clusterIP: None or type: ExternalName"),
    (CRON, "name: web", f"name: {'a' * 53}", "3:18 out-of-range 'name' must have at most 52 characters"),
    (CONFIG, "\ndata:", "\nbinaryData: {app.properties: eA==}\ndata:", "4:30 invalid-field"),
    (CONFIG, "properties: a", f"properties: {'a' * (1 << 20)}b", "1:1 out-of-range the values have 1048577 bytes"),
    (CLAIM, "accessModes: [ReadWriteOnce], ", "storageClassName: fast, ", "4:1 missing-field 'accessModes' is required"),
    (CLAIM, "requests: {storage: 1Gi}", "limits: {storage: 1Gi}", "4:38 missing-field 'requests' is required"),
    (CLAIM, "1Gi", "1GB", "4:70 wrong-format 'storage' must be a quantity"),
    (CLAIM, "1Gi", "-1", "4:70 out-of-range"),
    (DEPLOYMENT, "name: main", "name:", "16:14 wrong-type 'name' must be a string, not null"),
    (DEPLOYMENT, "port: http}, p", "port: null}, p", "22:50 wrong-type"),
    (DEPLOYMENT, "fieldPath: metadata.name}", "fieldPath: metadata.nam}", "20:80 wrong-format 'fieldPath' must be a field"),
    (DEPLOYMENT, "fieldRef: {fieldPath: metadata.name}", "configMapKeyRef: {name: a, key: a/b}", "20:90 wrong-format"),
    (DEPLOYMENT, "mountPath: /data", "mountPath: /data, subPath: a/../b", "24:64 wrong-format 'subPath' must be a relative path"),
    (DEPLOYMENT, "emptyDir: {}", "hostPath: {path: /a/../b}", "12:47 wrong-format"),
    (DEPLOYMENT, "emptyDir: {}", "configMap: {}", "12:30 missing-field 'name' is required"),
    (DEPLOYMENT, "env: [", "envFrom: [{secretRef: {}}]\n        env: [", "20:20 missing-field 'name' is required"),
    (DEPLOYMENT, "httpGet: {path: /, port: http}", "exec: {}", "22:25 missing-field 'command' is required"),
    (DEPLOYMENT, "dnsPolicy: ClusterFirst", "hostAliases: [{ip: a.example, hostnames: [b]}]", "11:26 wrong-format 'ip' must be an address"),
    (PDB, "app: web", "app: web web", "4:57 invalid-labels \"web web\" cannot be a label's value"),
    (DEPLOYMENT, "maxUnavailable: 0", "maxUnavailable: 150%", "6:82 wrong-format 'maxUnavailable' must be a number"),
    (SERVICE, "type: LoadBalancer", "type: ClusterIP\n  externalTrafficPolicy: Local",
        "6:26 invalid-field 'externalTrafficPolicy' is only allowed with type: LoadBalancer or type: NodePort or externalIPs"),
    (SERVICE, "type: LoadBalancer\n  selector: {app: web}\n  ports: [{", "selector: {app: web}\n  ports: [{nodePort: 31000, ",
        "6:22 invalid-field 'nodePort' is only allowed with type: LoadBalancer"),
    (SERVICE, "type: LoadBalancer", "clusterIP: 10.0.0.256", "5:14 wrong-format 'clusterIP' must be an address"),
    (SERVICE, "type: LoadBalancer", "type: LoadBalancer\n  loadBalancerSourceRanges: [10.0.0.1]", "6:30 wrong-format"),
    (INGRESS, "service: {name: web,", "service: {name: web_,", "7:74 wrong-format"),
    (INGRESS, "  rules:", "  tls: [{hosts: [https://a.example]}]\n  rules:", "5:18 wrong-format"),
    (HPA, "averageUtilization: 80", "averageUtilization: null", "8:52 missing-field one of averageUtilization, averageValue is required"),
    (HPA, "type: Resource", "type: Pods", "8:13 missing-field 'pods' is required with type: Pods"),
    (PDB, "minAvailable: 50%", "minAvailable: 101%", "4:22 wrong-format"),
    (JOB, "completions: 2", "backoffLimitPerIndex: 2", "5:25 invalid-field 'backoffLimitPerIndex' is only allowed with"),
    (JOB, "completions: 2", "podFailurePolicy: {rules: [{action: Fail}]}", "5:39 value-not-allowed"),
    (BINDING, "kind: ServiceAccount, name: web, namespace: default", "kind: User, name: a, apiGroup: v1", "5:44 value-not-allowed"),
    (SECRET, "kubernetes.io/tls", "kubernetes.io/service-account-token", "1:1 missing-field a Secret of the type kubernetes.io/service"),
    (INGRESS, '"*.example.com"', "10.0.0.1", "6:11 wrong-format 'host' must be a host name, not an address"),
    (INGRESS, "path: /, ", "", "7:20 missing-field 'path' is required with pathType: Prefix"),
    (HPA, "type: Resource,", "type: Resource, pods: {metric: {name: a}, target: {type: AverageValue, averageValue: 1}},",
        "8:104 invalid-field"),
    (PDB, "matchLabels: {app: web}", "matchExpressions: [{key: a, operator: In}]",
        "4:57 missing-field 'values' is required with operator: In"),
    (ROLE, ", verbs: [get]", "", "4:9 missing-field"),
    (BINDING, "name: web, namespace", "name: Web, namespace", "5:41 wrong-format 'name' must be the name of a ServiceAccount"),
    (POLICY, "{ipBlock: {cidr: 10.0.0.0/8}}", "{}", "7:21 missing-field one of ipBlock, namespaceSelector, podSelector is required"),
    (POLICY, "{ipBlock: {cidr: 10.0.0.0/8}}", "{podSelector: {matchLabels: {a: b c}}}", "7:53 invalid-labels"),
    (POLICY, "port: 80, endPort", "endPort", "7:61 missing-field 'port' is required with endPort"),
    (POLICY, "[Ingress]", "[Ingress, Egress, Ingress]", "6:3 out-of-range 'policyTypes'"),
    (CRON, 'schedule: "*/5 4 * * 1-5"\n  ', "", "4:1 missing-field 'spec' lacks 'schedule'"),
    (CRON, "spec:\n      template", "spec:\n      selector: {matchLabels: {a: b}}\n      template", "9:7 invalid-field"),
    (JOB, "completions: 2", "podFailurePolicy: {rules: [{action: Ignore}]}", "5:30 missing-field one of onExitCodes, onPodConditions"),
    (JOB, "completions: 2", "completions: 2\n  completionMode: Indexed\n  successPolicy: {rules: [{}]}", "7:27 missing-field"),
    (DEPLOYMENT, "dnsPolicy: ClusterFirst", "activeDeadlineSeconds: 5", "11:30 invalid-field 'activeDeadlineSeconds' is only allowed"),
    (DEPLOYMENT, "replicas: 2", "minReadySeconds: 700\n  progressDeadlineSeconds: 600", "5:20 out-of-range"),
    (DEPLOYMENT, "key: a, ", "key: a b, ", "13:27 wrong-format 'key' must be the key of a label"),
    (DEPLOYMENT, "{matchLabels: {app: web}}", "{}", "7:3 invalid-field the selector is empty"),
    (DAEMON_SET, "maxSurge: 1, maxUnavailable: 0", "maxSurge: 1", "5:20 out-of-range one of 'maxSurge' and 'maxUnavailable' must be 0"),
    (DAEMON_SET, "maxSurge: 1, maxUnavailable: 0", "maxUnavailable: 0", "5:20 out-of-range"),
    (POD_ALONE, "[{name: main, image: a}]", "[{name: main, image: a, ports: [{containerPort: 80, hostPort: 81}]}], hostNetwork: true",
        "4:82 invalid-field 'hostPort' must be the containerPort with hostNetwork: true"),
    (INGRESS, "service: {name: web, port: {number: 80}}", "service: {name: web}", "7:58 missing-field 'port' is required"),
    (BINDING, "kind: ClusterRole, name: web", "kind: ClusterRole, name: a/web", "4:73 wrong-format 'name' must be a name without"),
    (CONTROLLER, "selector: {app: web}", "selector: {app: other}", "5:19 invalid-field the selector has app=other"),
    (CONTROLLER, "imagePullPolicy: Always", "imagePullPolicy: always", "16:26 value-not-allowed"),
    (VOLUME, "accessModes: [ReadWriteOnce], ", "", "4:1 missing-field 'accessModes' is required with capacity"),
    (VOLUME, "nfs:", "hostPath: {path: /a}, nfs:", "4:87 invalid-field"),
    (VOLUME, "10Gi", "'0.0'", "4:58 wrong-format 'storage' must be a quantity such as 500m, 2 or 1Gi, above 0"),
    (DEPLOYMENT, "key: a, operator: Equal, value: b, ", "", "13:21 missing-field 'key' is required without operator: Exists"),
    (DEPLOYMENT, "      containers:\n", "      containers:\n      -\n", "16:8 wrong-type entry 0 must be a mapping, not null"),
    (POLICY, "policyTypes: [Ingress]", "policyTypes: [Ingress, null]", "6:26 value-not-allowed"),
    (PDB, "50%", "2147483648", "4:22 out-of-range"),
    (BINDING.replace("ClusterRoleBinding", "RoleBinding"), "namespace: default", "namespace: ''",
        "5:57 wrong-format kustomize refuses an empty 'namespace'"),
    (WEBHOOK, "name: web, namespace", "namespace", "5:40 missing-field 'name' is required"),
    (BINDING, "subjects: [", "subjects: [null, ", "5:12 wrong-type"),
    (VOLUME, "10Gi", "0", "4:58 out-of-range"),
    (STORAGE, "ebs.csi.aws.com", "ebs csi", "4:14 wrong-format 'provisioner' must be the name of a provisioner"),
    (ENDPOINTS, "ip: 10.0.0.1", "ip: a.example", "4:29 wrong-format 'ip' must be an address"),
    (POD_ALONE, "{name: main, image: a}", "{name: main, image: a}, {name: b}", "4:45 missing-field 'image'"),
    (POD_ALONE, "image: a", 'image: "a "', "4:41 wrong-format 'image' must not begin or end with a blank"),
]  # fmt: skip
ACCEPTED = [
    # the object, what is replaced by what
    (DEPLOYMENT, "cpu: 500m", 'cpu: "${CPU}"'),
    (DEPLOYMENT, "cpu: 500m", 'cpu: " .5 "'),
    (DEPLOYMENT, "image: registry.example.com/app:1", "image: ${IMAGE}"),
    (DEPLOYMENT, "imagePullPolicy: Always", 'imagePullPolicy: ""'),
    (DEPLOYMENT, "protocol: TCP", "protocol: null"),
    (DEPLOYMENT, "type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 0}", "type: Recreate, rollingUpdate: null"),
    (
        DEPLOYMENT,
        "  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n",
        "  template:\n    spec:\n",
    ),
    (DEPLOYMENT, "image: registry.example.com/app:1", "image: i@sha256:abc"),
    (SERVICE, "type: LoadBalancer", "clusterIP: None"),
    (SERVICE, "targetPort: http", "targetPort: 0"),
    (SERVICE, "type: LoadBalancer", "sessionAffinityConfig: {clientIP: {timeoutSeconds: 9}}"),
    (INGRESS, "service: {name: web,", "service: {name: 1web,"),
    (CONTROLLER, "  selector: {app: web}\n", ""),
    (POLICY, "{ipBlock: {cidr: 10.0.0.0/8}}", "{podSelector: {}}"),
    (DAEMON_SET, "maxSurge: 1, maxUnavailable: 0", 'maxUnavailable: "${COUNT}"'),
    (DEPLOYMENT, "emptyDir: {}", "emptyDir: {medium: other}"),
    (JOB, "completions: 2", "activeDeadlineSeconds: 60"),
    (CRON, '"*/5 4 * * 1-5"', '"@every 1h30m"'),
    (CRON, '"*/5 4 * * 1-5"', '"0 0 1 JAN-MAR sun"'),
    (CRON, '"*/5 4 * * 1-5"', '"TZ=Europe/Berlin 0 0 ? * *"'),
    (HPA, "minReplicas: 2", "minReplicas: 0"),
    (SECRET, "type: kubernetes.io/tls", "type: example.com/own"),
    (ROLE, "apiGroups: [''], resources: [pods]", "nonResourceURLs: [/healthz]"),
    (BINDING, "kind: ServiceAccount, name: web, namespace: default", "kind: Group, name: 'system:masters'"),
    (POLICY, "port: 80, endPort: 90", "port: http"),
    (SERVICE, "type: LoadBalancer", "type: ExternalName\n  externalName: a.example"),
    (CLAIM, "accessModes: [ReadWriteOnce], ", ""),
    (
        SERVICE,
        "  type: LoadBalancer\n  selector: {app: web}\n  ports: [{name: http, port: 80, targetPort: http}, "
        "{name: dns, port: 53, protocol: UDP, targetPort: 8053}]",
        "  selector: {app: web}",
    ),
    (CONFIG, "properties: a", f"properties: {'a' * (1 << 20)}"),
    (DEPLOYMENT, "image: registry.example.com/app:1", 'image: " "'),
    (DEPLOYMENT, "dnsPolicy: ClusterFirst", "securityContext: {sysctls: [{name: net.core.somaxconn}]}"),
    (DEPLOYMENT, "httpGet: {path: /,", "httpGet: {path: /, httpHeaders: [{name: X-A}],"),
    (DEPLOYMENT, "fieldPath: metadata.name}", "fieldPath: \"metadata.labels['app.kubernetes.io/name']\"}"),
    (DEPLOYMENT, "mountPath: /data", "mountPath: /data, subPath: .a/..b/c.."),
    (DEPLOYMENT, "maxSurge: 25%", "maxSurge: 200%"),
    (SERVICE, "type: LoadBalancer", "type: ${TYPE}\n  externalTrafficPolicy: Local"),
    (SERVICE, "type: LoadBalancer", "externalIPs: [192.0.2.1]\n  externalTrafficPolicy: Local"),
    (SERVICE, "type: LoadBalancer", 'clusterIP: "fd00::1"'),
    (SERVICE, "type: LoadBalancer", 'externalTrafficPolicy: ""\n  sessionAffinityConfig: {}'),
    (POLICY, "10.0.0.0/8", '"::/0"'),
    (CLAIM, "storage: 1Gi", 'storage: "+1e9"'),
    (INGRESS, "service: {name: web,", 'service: {name: "${NAME}",'),
]


def find(text: str) -> list[str]:
    parsed = parse_file(text.encode(), path="a.yaml", validate=validate_source_document)
    assert len(parsed.documents) == 1
    return [f"{issue.line}:{issue.column} {issue.code} {issue.message}" for issue in parsed.issues if issue.severity == "error"]


@each_row("text", VALID)
def test_what_an_api_server_accepts_has_no_findings(text: str) -> None:
    assert find(text) == []


@each_row(("text", "old", "new", "expected"), MISTAKES)
def test_what_an_api_server_refuses_is_found_at_its_field(text: str, old: str, new: str, expected: str) -> None:
    assert text.count(old) >= 1
    found = find(text.replace(old, new, 1))
    assert len(found) == 1, found
    assert found[0].startswith(expected), found


@each_row(("text", "old", "new"), ACCEPTED)
def test_placeholders_defaults_and_rare_forms_are_accepted(text: str, old: str, new: str) -> None:
    assert text.count(old) >= 1
    assert find(text.replace(old, new, 1)) == []


@each_row(
    ("old", "new", "expected"),
    [
        ("env: [{name: A, value: b}, {name: C, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]", "env: ${ENV}", ["wrong-type"]),
        ("emptyDir: {}", 'configMap: "${SOURCE}"', ["wrong-type"]),
        ("        env:", "        command: 'wait ${NAME}'\n        env:", ["wrong-type"]),
        ("        env:", "        command: ${COMMAND}\n        env:", []),
        ("requests: {cpu: 500m, memory: 256Mi, nvidia.com/gpu: 1}", 'requests: "${REQUESTS}"', []),
    ],
)
def test_a_placeholder_stands_where_kustomize_looks_for_no_names(old: str, new: str, expected: list[str]) -> None:
    assert DEPLOYMENT.count(old) == 1
    assert [issue.split()[1] for issue in find(DEPLOYMENT.replace(old, new))] == expected


def test_a_misspelled_field_of_a_selector_is_no_label_of_pods() -> None:
    (issue,) = find(DEPLOYMENT.replace("{matchLabels: {app: web}}", "{matchlabels: {app: web}}", 1))
    assert issue.startswith("7:3 invalid-field the selector is empty")


def test_a_patch_need_not_have_what_the_whole_object_has() -> None:
    patch = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n      containers: [%s]\n"
    assert find(patch % "{name: web, volumeMounts: [{name: a, mountPath: /a}], livenessProbe: {periodSeconds: 3}}") == []
    mounting = "{name: web, image: a, volumeMounts: [{name: a, mountPath: /a}]}"
    assert find(patch % f"{mounting}]\n      volumes: [{{name: b, emptyDir: {{}}}}") == []
    assert len(find(patch % "{name: web, resources: {limits: {memory: 1GB}}}")) == 1


def test_the_values_of_a_secret_have_the_size_that_an_api_server_takes() -> None:
    values = {"a": "A" * (1 << 20), "b": "A" * 350_000 + "AA=="}
    tree = RelationTree(RELATIONS["", "Secret"])
    found: list[Issue] = []
    tree.find_issues({"data": values, "stringData": {"a": "A"}}, True, found)
    assert found == []
    tree.find_issues({"data": values}, True, found)
    assert [issue.message.partition(",")[0] for issue in found] == ["the values have 1048933 bytes"]


def test_an_encrypted_secret_is_not_checked() -> None:
    assert find(SECRET.replace("tls.key", "a b") + "sops: {mac: x}\n") == []


@pytest.mark.parametrize("row", [*FIELD_VALUES], ids=lambda row: f"{row.definition} {row.fields}")
def test_every_row_names_fields_of_the_definition_and_a_place(row: object) -> None:
    definitions = read_built_in_schemas()["definitions"]
    definition, fields, limit, place = row  # type: ignore[misc]
    for field in fields.split():
        assert field.removesuffix("[]").removesuffix(".*") in definitions[definition]["properties"]
    assert limit
    assert ": " in place


def test_every_relation_has_a_rule_and_a_place() -> None:
    for kind, relations in RELATIONS.items():
        RelationTree(relations)
        assert all(": " in relation.place for relation in relations), kind


def test_schedules_are_those_of_the_library() -> None:
    valid = ["* * * * *", "0 0 29 2 *", "1,2,3-9/2 * * * mon-fri", "@daily", "@every 1h", "0 0 ? * ?", "5/15 * * * *"]
    invalid = [
        "",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 7",
        "*/0 * * * *",
        "@reboot",
        "5-1 * * * *",
    ]
    assert [text for text in valid if not is_cron_schedule(text)] == []
    assert [text for text in invalid if is_cron_schedule(text)] == []


def test_every_object_can_be_checked_whatever_its_values_are() -> None:
    """The rules for several fields follow the schema, but no value may make them fail."""
    odd = (None, 0, "", [], {}, [None], [[]], {"a": None}, "x", True)
    for relations in RELATIONS.values():
        tree = RelationTree(relations)
        paths = {tuple(relation.path.replace("[]", "").split(".")) for relation in relations}
        for path in paths:
            for value in odd:
                body: object = value
                for name in reversed([name for name in path if name]):
                    body = {name: body if json.dumps(body)[0] != "[" else [body]}
                for part in (body, [body]):
                    tree.find_issues(part if isinstance(part, dict) else {"spec": part}, True, [])
