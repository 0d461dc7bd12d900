"""The fields that are read of kinds of other projects, besides those that follow from the table of kinds, by their type.

Of the documents that say how delivery tools build directories, all plain fields of the spec are here: one of another type, and the API
server accepts nothing of the document, so that the tool builds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_PATCHES = "{0}.patches[].patch {0}.patches[].target.kind {0}.patches[].target.name"
_SOURCE_TEXTS = (
    "repoURL path targetRevision chart ref helm.releaseName helm.values helm.namespace helm.kubeVersion helm.valueFiles[] "
    "helm.apiVersions[] helm.parameters[].name helm.parameters[].value kustomize.namePrefix kustomize.nameSuffix kustomize.namespace "
    "kustomize.images[] kustomize.components[] kustomize.replicas[].name kustomize.commonLabels.* kustomize.commonAnnotations.* "
    "kustomize.patches[].patch kustomize.patches[].path directory.include directory.exclude"
)
_SOURCE_FLAGS = (
    "helm.ignoreMissingValueFiles helm.skipCrds helm.parameters[].forceString kustomize.labelWithoutSelector directory.recurse"
)


def _list_sources(spec: str) -> Mapping[str, str]:
    """Return the fields of an Application at the path of its spec."""
    sources = (f"{spec}.source", f"{spec}.sources[]")
    return {
        "number": f"{spec}.revisionHistoryLimit",
        "text": " ".join(
            (
                f"{spec}.project {spec}.syncPolicy.syncOptions[]",
                *(f"{source}.{field}" for source in sources for field in _SOURCE_TEXTS.split()),
            )
        ),
        "flag": " ".join(
            (
                *(f"{spec}.syncPolicy.automated.{field}" for field in ("enabled", "prune", "selfHeal", "allowEmpty")),
                *(f"{source}.{field}" for source in sources for field in _SOURCE_FLAGS.split()),
            )
        ),
        "object": " ".join(
            (
                f"{spec}.ignoreDifferences[] {spec}.info[]",
                *(f"{source}.{field}" for source in sources for field in ("plugin", "helm.valuesObject")),
            )
        ),
        "amount": " ".join(f"{source}.kustomize.replicas[].count" for source in sources),
    }


_TEMPLATE = _list_sources("spec.template.spec")

READ_FIELDS: Final[Mapping[tuple[str, str], Mapping[str, str]]] = {
    ("apps.kruise.io", "BroadcastJob"): {"amount": "spec.parallelism"},  # also as a percentage
    ("argoproj.io", "Application"): _list_sources("spec"),
    ("argoproj.io", "ApplicationSet"): {
        **_TEMPLATE,
        "text": (
            f"{_TEMPLATE['text']} spec.template.metadata.name spec.template.metadata.namespace spec.templatePatch "
            "spec.generators[].list.elementsYaml spec.generators[].git.repoURL spec.generators[].git.revision "
            "spec.generators[].git.pathParamPrefix spec.generators[].git.files[].path spec.generators[].git.directories[].path "
            "spec.generators[].clusters.selector.matchLabels.* spec.generators[].clusters.values.* spec.generators[].merge.mergeKeys[]"
        ),
        "flag": f"{_TEMPLATE['flag']} spec.goTemplate spec.generators[].git.directories[].exclude",
        "object": (
            f"{_TEMPLATE['object']} spec.generators[].list.elements[] spec.generators[].matrix.generators[] "
            "spec.generators[].merge.generators[] spec.generators[].clusters.selector.matchExpressions[]"
        ),
    },
    ("argoproj.io", "Rollout"): {
        "number": "spec.replicas",
        "text": "spec.workloadRef.apiVersion spec.workloadRef.kind spec.workloadRef.name",
    },
    ("helm.toolkit.fluxcd.io", "HelmRelease"): {
        "text": (
            "spec.chart.spec.chart spec.chart.spec.version spec.chart.spec.sourceRef.kind spec.chart.spec.sourceRef.name "
            "spec.chart.spec.sourceRef.namespace spec.chart.spec.valuesFiles[] spec.chartRef.kind spec.chartRef.name "
            "spec.chartRef.namespace spec.releaseName spec.targetNamespace spec.storageNamespace spec.dependsOn[].name "
            f"spec.valuesFrom[].kind spec.valuesFrom[].name {_PATCHES.format('spec.postRenderers[].kustomize')}"
        ),
        "duration": "spec.interval spec.timeout spec.chart.spec.interval",
        "object": "spec.values",
        "flag": "spec.suspend",
    },
    ("keda.sh", "ScaledObject"): {"number": "spec.minReplicaCount spec.maxReplicaCount spec.idleReplicaCount"},
    ("kustomize.toolkit.fluxcd.io", "Kustomization"): {
        "text": (
            "spec.path spec.targetNamespace spec.namePrefix spec.nameSuffix spec.components[] spec.buildMetadata[] spec.sourceRef.kind "
            "spec.sourceRef.name spec.sourceRef.namespace spec.dependsOn[].name spec.dependsOn[].namespace spec.images[].name "
            "spec.images[].newName spec.images[].newTag spec.images[].digest spec.commonMetadata.labels.* "
            "spec.commonMetadata.annotations.* spec.postBuild.substitute.* spec.postBuild.substituteFrom[].kind "
            f"spec.postBuild.substituteFrom[].name spec.postBuild.substituteStrategy {_PATCHES.format('spec')} "
            "spec.deletionPolicy spec.validation"
        ),
        "duration": "spec.interval spec.retryInterval spec.timeout",
        "flag": "spec.ignoreMissingComponents spec.suspend spec.postBuild.substituteFrom[].optional spec.force spec.prune spec.wait",
        "object": "spec.patchesStrategicMerge[] spec.patchesJson6902[] spec.dependsOn[] spec.healthChecks[] spec.healthCheckExprs[]",
    },
    ("sources.knative.dev", "KafkaSource"): {"number": "spec.consumers"},
    ("sources.knative.dev", "RedisStreamSource"): {"number": "spec.consumers"},
    **{
        ("source.toolkit.fluxcd.io", kind): {
            "text": (
                "spec.url spec.ref.branch spec.ref.name spec.ref.semver spec.ref.tag spec.ref.commit spec.ref.digest spec.ignore"
            ),
            "duration": "spec.interval",
            "timeout": "spec.timeout",
            "flag": "spec.suspend",
        }
        for kind in ("Bucket", "GitRepository", "HelmRepository", "OCIRepository")
    },
}
"""Paths separated by spaces, as in `gitsched.kinds.kind`, by group and kind and by type. The definition of each kind upstream has these
types in every version."""
