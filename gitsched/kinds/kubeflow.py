"""Kinds of Kubeflow."""

from __future__ import annotations

from gitsched.kinds.kind import CLUSTER, NAMESPACED, Kind, KindTable, Replicas, Test

_NOT_FAILED = ((Test("status.conditions", "not in", (None,)), Test(condition="Failed", negated=True)),)
_STOPPED = "status.containerState.terminated"

KINDS: KindTable = {
    ("kubeflow.org", "JAXJob"): Kind(NAMESPACED, "kubeflow/training-operator/manifests/base/crds/kubeflow.org_jaxjobs.yaml"),
    ("kubeflow.org", "MPIJob"): Kind(
        NAMESPACED,
        "kubeflow/mpi-operator/deploy/v2beta1/mpi-operator.yaml",
        interpreter="kubeflow.org/v2beta1/MPIJob",
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
        health=_NOT_FAILED,
    ),
    ("kubeflow.org", "TFJob"): Kind(
        NAMESPACED,
        "kubeflow/training-operator/manifests/base/crds/kubeflow.org_tfjobs.yaml",
        interpreter="kubeflow.org/v1/TFJob",
        pod_templates=("spec.tfReplicaSpecs.*.template",),
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
