"""Kinds of Kubeflow."""

from __future__ import annotations

from gitsched.kinds.kind import CLUSTER, NAMESPACED, Component, Kind, KindTable, Replicas, Test

_NOT_FAILED = ((Test("status.conditions", "not in", (None,)), Test(condition="Failed", negated=True)),)
_ROLES = ("PS", "Worker", "Chief", "Master", "Evaluator")


def _role(path: str, name: str, default: int = 1) -> Component:
    return Component(f"{path}.{name}", "replicas", default, "template", name=name.lower())


_STOPPED = "status.containerState.terminated"

KINDS: KindTable = {
    ("kubeflow.org", "JAXJob"): Kind(NAMESPACED, "kubeflow/training-operator/manifests/base/crds/kubeflow.org_jaxjobs.yaml"),
    ("kubeflow.org", "MPIJob"): Kind(
        NAMESPACED,
        "kubeflow/mpi-operator/deploy/v2beta1/mpi-operator.yaml",
        interpreter="kubeflow.org/v2beta1/MPIJob",
        components=(
            Component(
                "spec.mpiReplicaSpecs.*", "replicas", 1, "template", name="{}", template_required=True, absent=(("worker", 0),)
            ),
        ),
        health=((Test("status.conditions", "not in", (None, [])), Test(condition="Failed", negated=True)),),
    ),
    ("kubeflow.org", "Notebook"): Kind(
        NAMESPACED,
        "kubeflow/kubeflow/components/notebook-controller/config/crd/bases/kubeflow.org_notebooks.yaml",
        interpreter="kubeflow.org/v1/Notebook",
        replicas=Replicas(pod_template="spec.template", fixed=1),
        health=(
            (Test("status.containerState.running", "not in", (None,)),),
            (Test("status.containerState.waiting.reason", values=("ContainerCreating",)),),
            (
                Test("status.containerState.waiting", values=(None,)),
                Test(_STOPPED, "not in", (None,)),
                Test(f"{_STOPPED}.reason", "not in", ("Error", "OOMKilled", "ContainerCannotRun")),
                Test(f"{_STOPPED}.exitCode", values=(None, 0)),
            ),
        ),
    ),
    ("kubeflow.org", "PaddleJob"): Kind(NAMESPACED, "kubeflow/training-operator/manifests/base/crds/kubeflow.org_paddlejobs.yaml"),
    ("kubeflow.org", "PodDefault"): Kind(NAMESPACED, "kubeflow/kubeflow/components/admission-webhook/manifests/base/crd.yaml"),
    ("kubeflow.org", "Profile"): Kind(
        CLUSTER, "kubeflow/kubeflow/components/profile-controller/config/crd/bases/kubeflow.org_profiles.yaml"
    ),
    ("kubeflow.org", "PyTorchJob"): Kind(
        NAMESPACED,
        "kubeflow/training-operator/manifests/base/crds/kubeflow.org_pytorchjobs.yaml",
        interpreter="kubeflow.org/v1/PyTorchJob",
        pod_templates=("spec.pytorchReplicaSpecs.*.template",),
        components=tuple(_role("spec.pytorchReplicaSpecs", name) for name in ("Master", "Worker")),
        health=_NOT_FAILED,
    ),
    ("kubeflow.org", "TFJob"): Kind(
        NAMESPACED,
        "kubeflow/training-operator/manifests/base/crds/kubeflow.org_tfjobs.yaml",
        interpreter="kubeflow.org/v1/TFJob",
        pod_templates=("spec.tfReplicaSpecs.*.template",),
        components=tuple(_role("spec.tfReplicaSpecs", name) for name in _ROLES),
        health=_NOT_FAILED,
    ),
    ("kubeflow.org", "XGBoostJob"): Kind(
        NAMESPACED, "kubeflow/training-operator/manifests/base/crds/kubeflow.org_xgboostjobs.yaml"
    ),
    ("trainer.kubeflow.org", "ClusterTrainingRuntime"): Kind(
        CLUSTER, "kubeflow/training-operator/manifests/base/crds/trainer.kubeflow.org_clustertrainingruntimes.yaml"
    ),
    ("trainer.kubeflow.org", "TrainJob"): Kind(
        NAMESPACED, "kubeflow/training-operator/manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml"
    ),
    ("trainer.kubeflow.org", "TrainingRuntime"): Kind(
        NAMESPACED, "kubeflow/training-operator/manifests/base/crds/trainer.kubeflow.org_trainingruntimes.yaml"
    ),
}
