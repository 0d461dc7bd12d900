"""Objects of a Karmada hub as its API server returns them, with uids, versions and times."""

from __future__ import annotations

import copy
import json
from typing import Any

Body = dict[str, Any]
START, LATER = "2026-03-01T08:00:00Z", "2026-03-02T08:00:00Z"
CANARY = "canary-5f2d"
PLACEMENT: Body = {
    "clusterAffinity": {"clusterNames": ["m1", "m2"]},
    "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"},
}


class Hub:
    """A hub in the namespace shop. Each change of an object gives it the next version."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Body] = {}
        self._version = 100

    def dump(self) -> list[Body]:
        """Return a copy of all objects."""
        return copy.deepcopy(list(self.objects.values()))

    def add(self, api: str, kind: str, name: str, namespace: str = "shop", **members: Any) -> Body:
        metadata = {"name": name, **({"namespace": namespace} if namespace else {}), "creationTimestamp": START}
        self._version += 1
        metadata |= {"uid": f"uid-of-{kind}-{name}", "resourceVersion": str(self._version), "generation": 1}
        body = self.objects[kind, name] = {"apiVersion": api, "kind": kind, "metadata": metadata, **members}
        return body

    def change(self, kind: str, name: str, **spec: Any) -> Body:
        """Change members of a spec; the generation counts the changes."""
        body = self.objects[kind, name]
        body["spec"] = {**body["spec"], **spec}
        self._version += 1
        body["metadata"] |= {"resourceVersion": str(self._version), "generation": body["metadata"]["generation"] + 1}
        return body

    def add_cluster(self, name: str, cpu: str = "8") -> Body:
        apis = [("v1", "Secret", "secrets"), ("apps/v1", "Deployment", "deployments")]
        ready = {"type": "Ready", "status": "True", "reason": "ClusterReady", "lastTransitionTime": START}
        status = {
            "kubernetesVersion": "v1.34.1",
            "apiEnablements": [
                {"groupVersion": version, "resources": [{"kind": kind, "name": plural}]} for version, kind, plural in apis
            ],
            "conditions": [ready],
            "resourceSummary": {"allocatable": {"cpu": cpu, "memory": "32Gi", "pods": "110"}},
        }
        return self.add("cluster.karmada.io/v1alpha1", "Cluster", name, "", spec={"syncMode": "Push"}, status=status)

    def add_deployment(self, name: str, replicas: int) -> Body:
        container = {"name": "main", "image": "example.com/app:1", "resources": {"requests": {"cpu": "1"}}}
        template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
        spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
        return self.add("apps/v1", "Deployment", name, spec=spec)

    def add_policy(self, name: str, placement: Body = PLACEMENT, **more: Any) -> Body:
        selectors = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": name}]
        spec = {"resourceSelectors": selectors, "placement": placement, **more}
        return self.add("policy.karmada.io/v1alpha1", "PropagationPolicy", name, spec=spec)

    def bind(self, name: str, clusters: dict[str, int], time: str = START, **spec: Any) -> Body:
        """Write the binding of a Deployment as the scheduler of the hub does with the present policy."""
        template, policy = self.objects["Deployment", name], self.objects["PropagationPolicy", name]
        known = self.objects.get(("ResourceBinding", f"{name}-deployment"))
        placement = policy["spec"]["placement"]
        resource = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": name}
        resource["resourceVersion"] = template["metadata"]["resourceVersion"]
        members = {
            "spec": {
                "clusters": [{"name": cluster, "replicas": count} for cluster, count in clusters.items()],
                "placement": placement,
                "replicas": template["spec"]["replicas"],
                "resource": resource,
                "schedulerName": policy["spec"].get("schedulerName", "default-scheduler"),
                **spec,
            },
            "status": {
                "lastScheduledTime": time,
                "conditions": [{"type": "Scheduled", "status": "True", "reason": "Success", "lastTransitionTime": time}],
            },
        }
        body = self.add("work.karmada.io/v1alpha2", "ResourceBinding", f"{name}-deployment", **members)
        if known is not None:
            body["metadata"]["generation"] = known["metadata"]["generation"] + 1
        body["status"]["schedulerObservedGeneration"] = body["metadata"]["generation"]
        body["metadata"]["annotations"] = {
            "policy.karmada.io/applied-placement": json.dumps(placement),
            "propagationpolicy.karmada.io/name": name,
            "propagationpolicy.karmada.io/namespace": "shop",
        }
        return body

    def add_secret(self, name: str) -> Body:
        """Add a Secret that has its value everywhere that kubectl prints it."""
        body = self.add("v1", "Secret", name, data={"password": CANARY}, stringData={"token": CANARY}, type="Opaque")
        applied = json.dumps({"data": {"password": CANARY}})
        body["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": applied}
        return body


def make_hub(*names: str, replicas: int = 2) -> Hub:
    """Return a hub with two clusters, and Deployments with these names that it has placed on both."""
    hub = Hub()
    for cluster in ("m1", "m2"):
        hub.add_cluster(cluster)
    for name in names:
        hub.add_deployment(name, replicas)
        hub.add_policy(name)
        hub.bind(name, {"m1": replicas // 2, "m2": replicas - replicas // 2})
    return hub
