"""Kinds of Ray."""

from __future__ import annotations

from gitsched.kinds.kind import NAMESPACED, Component, Kind, KindTable, Replicas, Test, condition

_JOB_PODS = (
    "spec.rayClusterSpec.headGroupSpec.template",
    "spec.rayClusterSpec.workerGroupSpecs[].template",
    "spec.submitterPodTemplate",
)
_SERVICE_PODS = ("spec.rayClusterConfig.headGroupSpec.template", "spec.rayClusterConfig.workerGroupSpecs[].template")


def _list_components(path: str) -> tuple[Component, ...]:
    return (
        Component(f"{path}headGroupSpec", "", 1, "template", name="ray-head", template_required=True),
        Component(f"{path}workerGroupSpecs[]", "replicas", 0, "template", name="worker-{}", name_field="groupName", first=1),
    )


KINDS: KindTable = {
    ("ray.io", "RayCluster"): Kind(
        NAMESPACED,
        "ray-project/kuberay/helm-chart/kuberay-operator/crds/ray.io_rayclusters.yaml",
        interpreter="ray.io/v1/RayCluster",
        components=_list_components("spec."),
        health=(
            (
                Test(condition="HeadPodReady"),
                Test(condition="RayClusterProvisioned"),
                Test(condition="RayClusterReplicaFailure", negated=True),
            ),
        ),
    ),
    ("ray.io", "RayCronJob"): Kind(NAMESPACED, "ray-project/kuberay/helm-chart/kuberay-operator/crds/ray.io_raycronjobs.yaml"),
    ("ray.io", "RayJob"): Kind(
        NAMESPACED,
        "ray-project/kuberay/helm-chart/kuberay-operator/crds/ray.io_rayjobs.yaml",
        interpreter="ray.io/v1/RayJob",
        components=_list_components("spec.rayClusterSpec."),
        pod_templates=_JOB_PODS,
        health=(
            (Test("status.jobDeploymentStatus", values=("Running",)),),
            (Test("status.jobDeploymentStatus", values=("Complete",)), Test("status.jobStatus", values=("SUCCEEDED",))),
        ),
    ),
    ("ray.io", "RayService"): Kind(
        NAMESPACED,
        "ray-project/kuberay/helm-chart/kuberay-operator/crds/ray.io_rayservices.yaml",
        interpreter="ray.io/v1/RayService",
        pod_templates=_SERVICE_PODS,
        replicas=Replicas(
            components=(
                Component("spec.rayClusterConfig.headGroupSpec", pod_template="template"),
                Component("spec.rayClusterConfig.workerGroupSpecs[]", "replicas", 0, "template"),
            ),
            revised=1,
        ),
        health=condition("Ready"),
    ),
}
