"""Replicas and requests of a workload with variants: a Bundle, or an object that overlays define differently.

If every variant has one workload, with the same number of replicas and without an autoscaler, its replicas are divided as those of any
workload. Otherwise a variant is a set that is placed as a whole: one replica, with the requests of all replicas of all its workloads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gitsched.apis.karmada.autoscalers import RETAIN_REPLICAS, read_target
from gitsched.apis.karmada.interpreter import (
    ReplicaRequirements,
    WorkloadPaths,
    read_replica_requirements,
    revise_copy,
    revise_replicas,
)
from gitsched.model.document import Document, get_field, read_labels
from gitsched.model.scheduling import Assignment, CandidateVariant, TargetCluster
from gitsched.model.variants import Variant, WorkloadVariants
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.estimator import PODS, ResourceRequest

Edits = tuple[tuple[str, int], ...]
DeclaredPaths = Mapping[tuple[str, str], WorkloadPaths]


class VariantWorkload(NamedTuple):
    """A workload of a variant with its replicas and requests."""

    document: Document
    requirements: ReplicaRequirements


class VariantRequirements(NamedTuple):
    """What the scheduler needs to know of a workload with variants.

    `candidates` has the variants with the clusters that get them. `divisible` is the only workload of each variant, by its index, if its
    replicas can be divided; None if variants are placed as whole sets. `reason` says why they are not divided.
    """

    requirements: ReplicaRequirements
    candidates: tuple[CandidateVariant, ...]
    divisible: tuple[VariantWorkload, ...] | None
    variants: WorkloadVariants
    reason: str = ""

    @property
    def places_sets(self) -> bool:
        """Whether a variant is placed as a whole, so that its number of replicas says nothing."""
        return self.divisible is None

    def revise_replicas(self, assignments: Sequence[Assignment], identity: str) -> dict[str, Edits]:
        """ReviseReplica: return the changes to the workload of each cluster when replicas are divided."""
        edits: dict[str, Edits] = {}
        for assignment in assignments:
            workload = self._find_workload(assignment.name)
            if workload is not None:
                revised = revise_replicas(workload.document, workload.requirements, assignments, identity)
                edits[assignment.name] = revised.get(assignment.name, ())
        return edits

    def revise_copy(self, cluster: str, replicas: int) -> Edits:
        """Return the changes to the workload of one cluster that give it this many replicas."""
        workload = self._find_workload(cluster)
        return () if workload is None else revise_copy(workload.document, workload.requirements, replicas)

    def name_workloads(self, template: Document, targets: tuple[TargetCluster, ...]) -> tuple[TargetCluster, ...]:
        """Return the targets with the object that their changes are about, where it is not the template itself."""
        workloads = {target.cluster: self._find_workload(target.cluster) for target in targets if target.edits}
        return tuple(
            target._replace(workload=workload.document.key)
            if (workload := workloads.get(target.cluster)) is not None and workload.document.key != template.key
            else target
            for target in targets
        )

    def _find_workload(self, cluster: str) -> VariantWorkload | None:
        index = self.variants.by_cluster.get(cluster)
        return None if index is None or self.divisible is None else self.divisible[index]


def read_variant_requirements(template: Document, variants: WorkloadVariants, declared: DeclaredPaths) -> VariantRequirements:
    """Return the replicas and requests of a workload with variants. `declared` are the kinds that gitsched.yaml declares."""
    workloads = [_list_workloads(variant, declared) for variant in variants.variants]
    divisible, reason = _find_divisible(template, variants.variants, workloads)
    if divisible:
        requirements = divisible[0].requirements
    elif any(workloads):
        requirements = ReplicaRequirements(1, None, None)
    else:
        requirements = ReplicaRequirements(None, None, None)
    requests = [
        found[0].requirements.resource_request if divisible and found else _sum_requests(found) if found else None
        for found in workloads
    ]
    return VariantRequirements(requirements, tuple(_list_candidates(variants, requests)), divisible, variants, reason)


def _list_workloads(variant: Variant, declared: DeclaredPaths) -> list[VariantWorkload]:
    found = (VariantWorkload(document, read_replica_requirements(document, declared)) for document in variant.objects)
    return [workload for workload in found if workload.requirements.replicas is not None or workload.requirements.invalid_replicas]


def _find_divisible(
    template: Document, variants: Iterable[Variant], workloads: list[list[VariantWorkload]]
) -> tuple[tuple[VariantWorkload, ...] | None, str]:
    """Return the only workload of each variant if its replicas can be divided, else why they cannot; "" without any workload."""
    if not any(workloads):
        return None, ""
    if any(len(found) != 1 for found in workloads):
        return None, "it has several workloads, or variants without one"
    only = tuple(found[0] for found in workloads)
    replicas = {workload.requirements.replicas for workload in only}
    if len(replicas) > 1:
        return None, f"its variants have different replicas ({', '.join(sorted(map(str, replicas)))})"
    if replicas == {0}:
        return None, "its workload has 0 replicas"
    if any(workload.requirements.replicas_path is None for workload in only):
        return None, f"{only[0].document.key.kind} has no field with replicas"
    for variant, workload in zip(variants, only, strict=True):
        if workload.document.key != template.key and _is_scaled(workload.document, variant.objects):
            return None, f"an autoscaler sets the replicas of {workload.document.key}"
    return only, ""


def _is_scaled(workload: Document, objects: Iterable[Document]) -> bool:
    """Return whether an autoscaler of the same variant sets the replicas of a workload, or its label says so."""
    label = read_labels(workload.body).get(RETAIN_REPLICAS)
    return label == "true" if label is not None else any(read_target(document) == workload.key for document in objects)


def _sum_requests(workloads: Iterable[VariantWorkload]) -> ResourceRequest:
    """Return what all replicas of all workloads request together, with their pods."""
    total: dict[str, int] = {}
    for _, requirements in workloads:
        replicas = requirements.replicas or 0
        for name, amount in ((PODS, 1), *(requirements.resource_request or ())):
            total[name] = total.get(name, 0) + amount * replicas
    return tuple((name, amount) for name, amount in sorted(total.items()) if amount)


def _list_candidates(variants: WorkloadVariants, requests: list[ResourceRequest | None]) -> Iterable[CandidateVariant]:
    names: dict[int, set[str]] = {}
    for cluster, index in variants.by_cluster.items():
        names.setdefault(index, set()).add(cluster)
    for index, clusters in sorted(names.items()):
        yield CandidateVariant(frozenset(clusters), requests[index], _list_apis(variants.variants[index].objects))
    failed: dict[str, set[str]] = {}
    for cluster, reason in variants.failed.items():
        failed.setdefault(reason if cluster in variants.lacking else "", set()).add(cluster)
    for reason, clusters in sorted(failed.items()):
        yield CandidateVariant(frozenset(clusters), broken=True, reason=reason)


def _list_apis(objects: Iterable[Document]) -> frozenset[tuple[str, str]]:
    """Return the APIs of the objects, without those that CustomResourceDefinitions among them define."""
    objects = tuple(objects)
    defined = {
        (get_field(document.body, "spec", "group"), get_field(document.body, "spec", "names", "kind"))
        for document in objects
        if document.key.kind == "CustomResourceDefinition"
    }
    return frozenset(
        (document.api_version, document.key.kind) for document in objects if (document.key.group, document.key.kind) not in defined
    )
