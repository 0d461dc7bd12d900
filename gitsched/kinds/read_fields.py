"""The fields that are read of kinds of other projects, besides those that follow from the table of kinds, by their type.

Of the documents that say how delivery tools build directories, all plain fields of the spec are here: one of another type, and the API
server accepts nothing of the document, so that the tool builds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_PATCHES = "{0}.patches[].patch {0}.patches[].target.kind {0}.patches[].target.name"
_SOURCE_FIELDS: Final[Mapping[str, str]] = {
    "text": (
        "repoURL path targetRevision chart ref name helm.releaseName helm.values helm.namespace helm.kubeVersion helm.version "
        "helm.valueFiles[] helm.apiVersions[] helm.parameters[].name helm.parameters[].value helm.fileParameters[].name "
        "helm.fileParameters[].path kustomize.namePrefix kustomize.nameSuffix kustomize.namespace kustomize.version "
        "kustomize.kubeVersion kustomize.apiVersions[] kustomize.images[] kustomize.components[] kustomize.replicas[].name "
        "kustomize.commonLabels.* kustomize.commonAnnotations.* kustomize.patches[].patch kustomize.patches[].path "
        "kustomize.patches[].target.* directory.include directory.exclude"
    ),
    "flag": (
        "helm.ignoreMissingValueFiles helm.skipCrds helm.skipSchemaValidation helm.skipTests helm.passCredentials "
        "helm.parameters[].forceString kustomize.labelWithoutSelector kustomize.labelIncludeTemplates kustomize.forceCommonLabels "
        "kustomize.forceCommonAnnotations kustomize.commonAnnotationsEnvsubst kustomize.ignoreMissingComponents "
        "kustomize.patches[].options.* directory.recurse directory.disableExtensionFilter"
    ),
    "object": "plugin helm.valuesObject directory.jsonnet",
    "amount": "kustomize.replicas[].count",
}
_GENERATOR_FIELDS: Final[Mapping[str, str]] = {
    "text": (
        "list.elementsYaml git.repoURL git.revision git.pathParamPrefix git.files[].path git.directories[].path git.values.* "
        "clusters.values.* clusters.selector.matchLabels.* clusters.selector.matchExpressions[].key "
        "clusters.selector.matchExpressions[].operator clusters.selector.matchExpressions[].values[] selector.matchLabels.* "
        "selector.matchExpressions[].key selector.matchExpressions[].operator selector.matchExpressions[].values[]"
    ),
    "flag": "git.directories[].exclude git.files[].exclude clusters.flatList",
    "object": "list.elements[]",
}


def _add_paths(fields: Mapping[str, str], *parents: str) -> Mapping[str, str]:
    """Return the fields below each of the parents, by their type."""
    return {name: " ".join(f"{parent}.{path}" for parent in parents for path in paths.split()) for name, paths in fields.items()}


def _join_paths(*fields: Mapping[str, str]) -> Mapping[str, str]:
    """Return the fields of several tables, by their type."""
    return {
        name: " ".join(table[name] for table in fields if name in table) for name in {name: 0 for table in fields for name in table}
    }


def _list_sources(spec: str) -> Mapping[str, str]:
    """Return the fields of an Application at the path of its spec."""
    own = {
        "number": "revisionHistoryLimit",
        "text": "project syncPolicy.syncOptions[]",
        "flag": " ".join(f"syncPolicy.automated.{field}" for field in ("enabled", "prune", "selfHeal", "allowEmpty")),
        "object": "ignoreDifferences[] info[]",
    }
    sources = (f"{spec}.source", f"{spec}.sources[]", f"{spec}.sourceHydrator.drySource")
    return _join_paths(_add_paths(own, spec), _add_paths(_SOURCE_FIELDS, *sources))


READ_FIELDS: Final[Mapping[tuple[str, str], Mapping[str, str]]] = {
    ("apps.kruise.io", "BroadcastJob"): {"amount": "spec.parallelism"},  # also as a percentage
    ("argoproj.io", "Application"): _list_sources("spec"),
    ("argoproj.io", "ApplicationSet"): _join_paths(
        _list_sources("spec.template.spec"),
        _add_paths(
            _GENERATOR_FIELDS, "spec.generators[]", "spec.generators[].matrix.generators[]", "spec.generators[].merge.generators[]"
        ),
        {
            "text": (
                "spec.template.metadata.name spec.template.metadata.namespace spec.templatePatch spec.goTemplateOptions[] "
                "spec.generators[].merge.mergeKeys[]"
            ),
            "flag": "spec.goTemplate",
        },
    ),
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
