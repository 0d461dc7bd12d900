"""Kinds of Argo CD, Argo Workflows, Argo Rollouts and Argo Events."""

from __future__ import annotations

from gitsched.kinds.kind import (
    CLUSTER,
    NAMESPACED,
    SERVICE,
    VOLUME_CLAIM,
    Kind,
    KindTable,
    Reference,
    Replicas,
    Test,
    condition,
    secrets,
    service_accounts,
)

_PROJECT = ("argoproj.io/v1alpha1", "AppProject")
_ANALYSIS = ("argoproj.io/v1alpha1", "AnalysisTemplate")
_EVENT_BUS = ("argoproj.io/v1alpha1", "EventBus")

KINDS: KindTable = {
    ("argoproj.io", "AnalysisRun"): Kind(NAMESPACED, "argoproj/argo-rollouts/manifests/crds/analysis-run-crd.yaml"),
    ("argoproj.io", "AnalysisTemplate"): Kind(NAMESPACED, "argoproj/argo-rollouts/manifests/crds/analysis-template-crd.yaml"),
    ("argoproj.io", "AppProject"): Kind(NAMESPACED, "argoproj/argo-cd/manifests/crds/appproject-crd.yaml"),
    ("argoproj.io", "Application"): Kind(
        NAMESPACED,
        "argoproj/argo-cd/manifests/crds/application-crd.yaml",
        references=(Reference("spec.project", (_PROJECT,), ignored=("default",)),),
        health=((Test("status.health.status", values=("Healthy",)),),),
        destination="spec.destination",
    ),
    ("argoproj.io", "ApplicationSet"): Kind(
        NAMESPACED,
        "argoproj/argo-cd/manifests/crds/applicationset-crd.yaml",
        references=(Reference("spec.template.spec.project", (_PROJECT,), ignored=("default",)),),
        health=condition("ResourcesUpToDate"),
        destination="spec.template.spec.destination",
    ),
    ("argoproj.io", "ClusterAnalysisTemplate"): Kind(
        CLUSTER, "argoproj/argo-rollouts/manifests/crds/cluster-analysis-template-crd.yaml"
    ),
    ("argoproj.io", "ClusterWorkflowTemplate"): Kind(
        CLUSTER, "argoproj/argo-workflows/manifests/base/crds/full/argoproj.io_clusterworkflowtemplates.yaml"
    ),
    ("argoproj.io", "CronWorkflow"): Kind(
        NAMESPACED, "argoproj/argo-workflows/manifests/base/crds/full/argoproj.io_cronworkflows.yaml"
    ),
    ("argoproj.io", "EventBus"): Kind(NAMESPACED, "argoproj/argo-events/manifests/base/crds/argoproj.io_eventbus.yaml"),
    ("argoproj.io", "EventSource"): Kind(
        NAMESPACED,
        "argoproj/argo-events/manifests/base/crds/argoproj.io_eventsources.yaml",
        references=(
            Reference("spec.eventBusName", (_EVENT_BUS,)),
            *secrets("spec.**.*secret", "spec.**.*Secret"),
        ),
        pod_specs=("spec.template",),
    ),
    ("argoproj.io", "Experiment"): Kind(NAMESPACED, "argoproj/argo-rollouts/manifests/crds/experiment-crd.yaml"),
    ("argoproj.io", "Rollout"): Kind(
        NAMESPACED,
        "argoproj/argo-rollouts/manifests/crds/rollout-crd.yaml",
        pod_templates=("spec.template",),
        references=(
            Reference("spec.strategy.canary.analysis.templates[].templateName", (_ANALYSIS,)),
            Reference("spec.strategy.canary.steps[].analysis.templates[].templateName", (_ANALYSIS,)),
            Reference("spec.strategy.blueGreen.prePromotionAnalysis.templates[].templateName", (_ANALYSIS,)),
            Reference("spec.strategy.blueGreen.postPromotionAnalysis.templates[].templateName", (_ANALYSIS,)),
            Reference("spec.strategy.canary.canaryService", (SERVICE,)),
            Reference("spec.strategy.canary.stableService", (SERVICE,)),
            Reference("spec.strategy.blueGreen.activeService", (SERVICE,)),
            Reference("spec.strategy.blueGreen.previewService", (SERVICE,)),
        ),
        health=((Test("status.phase", values=("Healthy",)),),),
    ),
    ("argoproj.io", "Sensor"): Kind(
        NAMESPACED,
        "argoproj/argo-events/manifests/base/crds/argoproj.io_sensors.yaml",
        references=(Reference("spec.eventBusName", (_EVENT_BUS,)), *secrets("spec.**.*Secret")),
        pod_specs=("spec.template",),
    ),
    ("argoproj.io", "Workflow"): Kind(
        NAMESPACED,
        "argoproj/argo-workflows/manifests/base/crds/full/argoproj.io_workflows.yaml",
        interpreter="argoproj.io/v1alpha1/Workflow",
        references=(
            *service_accounts("spec.executor.serviceAccountName"),
            Reference("spec.volumeClaimTemplates[].metadata.name", (VOLUME_CLAIM,)),
        ),
        pod_specs=("spec",),
        replicas=Replicas("spec.parallelism", pod_spec="spec", pod_fields=("affinity", "nodeSelector", "tolerations")),
        health=((Test("status.phase", "not in", (None, "", "Error", "Failed")),),),
    ),
    ("argoproj.io", "WorkflowArtifactGCTask"): Kind(
        NAMESPACED, "argoproj/argo-workflows/manifests/base/crds/full/argoproj.io_workflowartifactgctasks.yaml"
    ),
    ("argoproj.io", "WorkflowEventBinding"): Kind(
        NAMESPACED, "argoproj/argo-workflows/manifests/base/crds/full/argoproj.io_workfloweventbindings.yaml"
    ),
    ("argoproj.io", "WorkflowTaskResult"): Kind(
        NAMESPACED, "argoproj/argo-workflows/manifests/base/crds/full/argoproj.io_workflowtaskresults.yaml"
    ),
    ("argoproj.io", "WorkflowTaskSet"): Kind(
        NAMESPACED, "argoproj/argo-workflows/manifests/base/crds/full/argoproj.io_workflowtasksets.yaml"
    ),
    ("argoproj.io", "WorkflowTemplate"): Kind(
        NAMESPACED, "argoproj/argo-workflows/manifests/base/crds/full/argoproj.io_workflowtemplates.yaml"
    ),
}
