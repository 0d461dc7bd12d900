"""Kinds of Flink."""

from __future__ import annotations

from gitsched.kinds.kind import NAMESPACED, Component, Kind, KindTable, Replicas, Test

_STEADY = ("RUNNING", "FINISHED", "FAILED", "CANCELED", "SUSPENDED", "CANCELLING", "FAILING", "RESTARTING")
_IMAGE_ERRORS = ("ErrImagePull", "ImagePullBackOff", "CrashLoopBackOff")
_STATE = "status.jobStatus.state"

_COMPONENTS = (
    Component(replicas="spec.jobManager.replicas", resources="spec.jobManager.resource", name="jobmanager"),
    Component(
        replicas="spec.taskManager.replicas",
        resources="spec.taskManager.resource",
        quotient=(("spec", "job", "parallelism"), ("spec", "flinkConfiguration", "taskmanager.numberOfTaskSlots")),
        name="taskmanager",
    ),
)

KINDS: KindTable = {
    ("flink.apache.org", "FlinkBlueGreenDeployment"): Kind(
        NAMESPACED,
        "apache/flink-kubernetes-operator/helm/flink-kubernetes-operator/crds/flinkbluegreendeployments.flink.apache.org-v1.yml",
    ),
    ("flink.apache.org", "FlinkDeployment"): Kind(
        NAMESPACED,
        "apache/flink-kubernetes-operator/helm/flink-kubernetes-operator/crds/flinkdeployments.flink.apache.org-v1.yml",
        interpreter="flink.apache.org/v1beta1/FlinkDeployment",
        replicas=Replicas(
            pod_spec="spec.podTemplate.spec",
            pod_fields=("nodeSelector", "tolerations", "priorityClassName"),
            components=_COMPONENTS,
        ),
        components=_COMPONENTS,
        health=(
            (Test(_STATE, values=_STEADY),),
            (
                Test(_STATE, values=(None,)),
                Test("status.jobManagerDeploymentStatus", values=("READY",)),
                Test("status.lifecycleState", values=("STABLE",)),
            ),
            (Test(_STATE, values=("CREATED", "INITIALIZING", "RECONCILING")), Test("status.error", "contains", _IMAGE_ERRORS)),
        ),
    ),
    ("flink.apache.org", "FlinkSessionJob"): Kind(
        NAMESPACED, "apache/flink-kubernetes-operator/helm/flink-kubernetes-operator/crds/flinksessionjobs.flink.apache.org-v1.yml"
    ),
    ("flink.apache.org", "FlinkStateSnapshot"): Kind(
        NAMESPACED,
        "apache/flink-kubernetes-operator/helm/flink-kubernetes-operator/crds/flinkstatesnapshots.flink.apache.org-v1.yml",
    ),
}
