"""Target clusters of a binding and the manifest of each, with suspended dispatching."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gitsched.apis.karmada.dependencies.dependencies_distributor import Attachment, merge_target_clusters
from gitsched.apis.karmada.interpreter import ReplicaRequirements, revise_replicas
from gitsched.apis.karmada.names import format_clusters
from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.model.document import Body, Document, get_field
from gitsched.model.finding import Finding, locate_document
from gitsched.model.scheduling import Assignment, TargetCluster
from gitsched.schedule.dispenser import prefers_descending

if TYPE_CHECKING:
    from gitsched.apis.karmada.engine import KarmadaEngine


def mark_suspended(places: tuple[TargetCluster, ...], binding: Body) -> tuple[TargetCluster, ...]:
    """Mark the places to which nothing is delivered. Copies that leave are no targets any more, and leave in their time."""
    everywhere, clusters = _read_suspension(binding.get("spec") or {})
    if not everywhere and not clusters:
        return places
    return tuple(p._replace(keeps_manifest=True) if not p.evicting and (everywhere or p.cluster in clusters) else p for p in places)


def find_suspended_policies(policies: Iterable[PropagationPolicy]) -> list[Finding]:
    """One finding for each policy that holds back deliveries: a suspension is easily forgotten."""
    findings = []
    for policy in policies:
        everywhere, clusters = _read_suspension(policy.spec)
        if everywhere or clusters:
            where = "every cluster" if everywhere else ", ".join(sorted(clusters))
            message = f"{policy.key.title} suspends dispatching to {where}: what is there stays as it is, nothing new is delivered"
            findings.append(
                Finding("info", "dispatching-suspended", message, locate_document(policy.document), policy.key.resource)
            )
    return findings


def _read_suspension(spec: Body) -> tuple[bool, frozenset[str]]:
    everywhere = get_field(spec, "suspension", "dispatching") is True
    names = get_field(spec, "suspension", "dispatchingOnClusters", "clusterNames") or ()
    return everywhere, frozenset(map(str, names))


RenderedTargets = tuple[tuple[TargetCluster, ...], tuple[Finding, ...]]


def find_target_clusters(
    session: KarmadaEngine,
    template: Document,
    targets: tuple[Assignment, ...],
    tasks: tuple[Body, ...],
    demand: ReplicaRequirements,
    divided: bool,
    attachment: Attachment | None,
) -> RenderedTargets:
    """The clusters that exist of those it is bound to, those that a graceful eviction still keeps it on, and those that its owners ask for;
    and what is wrong with them."""
    known = session.fleet.index
    edits = revise_replicas(template, demand, targets, prefers_descending(read_uid(template))) if divided else {}
    placed = [TargetCluster(t.name, t.replicas or None, False, edits.get(t.name, ())) for t in targets if t.name in known]
    taken = {target.name for target in targets}
    for task in tasks:
        source = str(task.get("fromCluster"))
        if source in known and source not in taken and task.get("purgeMode") != "Directly":
            left = task.get("replicas")
            kept = ((demand.replicas_path, left),) if divided and demand.replicas_path and isinstance(left, int) else ()
            placed.append(TargetCluster(source, left, True, kept))
    manifests, misfits = session.overrides.apply(template, merge_target_clusters(tuple(placed), attachment, known))
    return manifests, (
        *_report_gone_clusters(template, [t for t in targets if t.name not in known], demand if divided else None),
        *misfits,
    )


def _report_gone_clusters(template: Document, gone: list[Assignment], demand: ReplicaRequirements | None) -> tuple[Finding, ...]:
    """What is bound to clusters without a document. Replicas that are divided are missed one by one, so each workload has a finding."""
    missing = sum(target.replicas for target in gone)
    if demand is not None and missing:
        where = format_clusters(sorted(target.name for target in gone))
        message = (
            f"{template.key} has {missing} of its {demand.replicas} replicas on {where}, without a document: "
            "nothing is delivered there, and a WorkloadRebalancer that names it places them anew"
        )
        return (Finding("warning", "cluster-gone", message, locate_document(template), template.key.resource),)
    names = sorted(target.name for target in gone)
    text = "has no document, but workloads are bound to it"
    return tuple(Finding("warning", "cluster-gone", f"cluster {name} {text}", None, ("Cluster", "", name)) for name in names)


def read_uid(template: Document) -> str:
    """What breaks the dispenser's ties: the uid, where a dump carries one."""
    return str(get_field(template.body, "metadata", "uid") or "")
