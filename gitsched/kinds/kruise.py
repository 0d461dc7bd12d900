"""Kinds of OpenKruise."""

from __future__ import annotations

from gitsched.kinds.kind import CLUSTER, NAMESPACED, Kind, KindTable, Replicas, Test

_REPLICAS = Replicas("spec.replicas", pod_template="spec.template")
_TEMPLATE = ("spec.template",)
_OBSERVED = Test("status.observedGeneration", "==", other="metadata.generation")
_ROLLED_OUT = (
    (
        _OBSERVED,
        Test("status.updatedReplicas", ">=", other="spec.replicas", optional=True),
        Test("status.availableReplicas", ">=", other="status.updatedReplicas"),
    ),
)
_STARTED = (Test("status.desired", "not in", (0,)), Test("status.failed", values=(0,)))

KINDS: KindTable = {
    ("apps.kruise.io", "AdvancedCronJob"): Kind(
        NAMESPACED,
        "openkruise/kruise/config/crd/bases/apps.kruise.io_advancedcronjobs.yaml",
        interpreter="apps.kruise.io/v1alpha1/AdvancedCronJob",
        pod_templates=("spec.template.jobTemplate.spec.template", "spec.template.broadcastJobTemplate.spec.template"),
    ),
    ("apps.kruise.io", "BroadcastJob"): Kind(
        NAMESPACED,
        "openkruise/kruise/config/crd/bases/apps.kruise.io_broadcastjobs.yaml",
        interpreter="apps.kruise.io/v1alpha1/BroadcastJob",
        pod_templates=_TEMPLATE,
        replicas=Replicas("spec.parallelism", pod_template="spec.template"),
        health=((*_STARTED, Test("status.succeeded", "not in", (0,))), (*_STARTED, Test("status.active", "not in", (0,)))),
    ),
    ("apps.kruise.io", "CloneSet"): Kind(
        NAMESPACED,
        "openkruise/kruise/config/crd/bases/apps.kruise.io_clonesets.yaml",
        interpreter="apps.kruise.io/v1alpha1/CloneSet",
        pod_templates=_TEMPLATE,
        replicas=_REPLICAS,
        health=_ROLLED_OUT,
    ),
    ("apps.kruise.io", "ContainerRecreateRequest"): Kind(
        NAMESPACED, "openkruise/kruise/config/crd/bases/apps.kruise.io_containerrecreaterequests.yaml"
    ),
    ("apps.kruise.io", "DaemonSet"): Kind(
        NAMESPACED,
        "openkruise/kruise/config/crd/bases/apps.kruise.io_daemonsets.yaml",
        interpreter="apps.kruise.io/v1alpha1/DaemonSet",
        pod_templates=_TEMPLATE,
        health=(
            (
                _OBSERVED,
                Test("status.updatedNumberScheduled", ">=", other="status.desiredNumberScheduled"),
                Test("status.numberAvailable", ">=", other="status.updatedNumberScheduled"),
            ),
        ),
    ),
    ("apps.kruise.io", "EphemeralJob"): Kind(NAMESPACED, "openkruise/kruise/config/crd/bases/apps.kruise.io_ephemeraljobs.yaml"),
    ("apps.kruise.io", "ImageListPullJob"): Kind(
        NAMESPACED, "openkruise/kruise/config/crd/bases/apps.kruise.io_imagelistpulljobs.yaml"
    ),
    ("apps.kruise.io", "ImagePullJob"): Kind(NAMESPACED, "openkruise/kruise/config/crd/bases/apps.kruise.io_imagepulljobs.yaml"),
    ("apps.kruise.io", "NodeImage"): Kind(CLUSTER, "openkruise/kruise/config/crd/bases/apps.kruise.io_nodeimages.yaml"),
    ("apps.kruise.io", "NodePodProbe"): Kind(CLUSTER, "openkruise/kruise/config/crd/bases/apps.kruise.io_nodepodprobes.yaml"),
    ("apps.kruise.io", "PersistentPodState"): Kind(
        NAMESPACED, "openkruise/kruise/config/crd/bases/apps.kruise.io_persistentpodstates.yaml"
    ),
    ("apps.kruise.io", "PodProbeMarker"): Kind(
        NAMESPACED, "openkruise/kruise/config/crd/bases/apps.kruise.io_podprobemarkers.yaml"
    ),
    ("apps.kruise.io", "ResourceDistribution"): Kind(
        CLUSTER, "openkruise/kruise/config/crd/bases/apps.kruise.io_resourcedistributions.yaml"
    ),
    ("apps.kruise.io", "SidecarSet"): Kind(
        CLUSTER,
        "openkruise/kruise/config/crd/bases/apps.kruise.io_sidecarsets.yaml",
        interpreter="apps.kruise.io/v1alpha1/SidecarSet",
        replicas=Replicas(fixed=0),
        health=(
            (Test("status", "not in", (None,)), Test("status.matchedPods", values=(None, 0))),
            (Test("status", "not in", (None,)), Test("status.updatedPods", "==", other="status.matchedPods")),
        ),
    ),
    ("apps.kruise.io", "StatefulSet"): Kind(
        NAMESPACED,
        "openkruise/kruise/config/crd/bases/apps.kruise.io_statefulsets.yaml",
        interpreter="apps.kruise.io/v1beta1/StatefulSet",
        pod_templates=_TEMPLATE,
        replicas=_REPLICAS,
        health=_ROLLED_OUT,
    ),
    ("apps.kruise.io", "UnitedDeployment"): Kind(
        NAMESPACED,
        "openkruise/kruise/config/crd/bases/apps.kruise.io_uniteddeployments.yaml",
        interpreter="apps.kruise.io/v1alpha1/UnitedDeployment",
        pod_templates=_TEMPLATE,
        replicas=_REPLICAS,
        health=_ROLLED_OUT,
    ),
    ("apps.kruise.io", "WorkloadSpread"): Kind(
        NAMESPACED, "openkruise/kruise/config/crd/bases/apps.kruise.io_workloadspreads.yaml"
    ),
    ("policy.kruise.io", "PodUnavailableBudget"): Kind(
        NAMESPACED, "openkruise/kruise/config/crd/bases/policy.kruise.io_podunavailablebudgets.yaml"
    ),
}
