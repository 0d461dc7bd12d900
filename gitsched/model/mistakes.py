"""Findings that say why a workload is in no cluster, or what it lacks in its clusters: documents want of clusters or policies what none
has, or a cluster is gone or full."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from gitsched.model.finding import UNSCHEDULABLE

if TYPE_CHECKING:
    from gitsched.model.finding import Finding

KUSTOMIZE_UNBUILT: Final = "kustomize-unbuilt"
"""The code of the finding that nothing builds a workload that kustomizations change."""
CLUSTER_UNKNOWN: Final = "karmada-cluster-unknown"
"""The code of the finding that a policy names a cluster that has no document."""
CLUSTER_GONE: Final = "cluster-gone"
UNKNOWN_FIELD: Final = "unknown-field"
"""The code of the finding that a document has a field which its schema does not define, as one that is misspelled."""
RESCHEDULE_DISPLACED: Final = "gitsched rebalance --all-displaced --write"
"""The command that requests to place what is in clusters without a document, which findings with CLUSTER_GONE name where it does."""
IMPAIRMENTS: Final = {
    CLUSTER_GONE: (
        "workload has replicas on a cluster without a document",
        "workloads have replicas on clusters without a document",
    ),
    "capacity-exceeded": ("workload exceeds the capacity of its cluster", "workloads exceed the capacity of their clusters"),
    "reference-not-delivered": (
        "object does not go where a workload refers to it",
        "objects do not go where workloads refer to them",
    ),
    "ocm-rollout-failed": (
        "workload failed in clusters while it was rolled out",
        "workloads failed in clusters while they were rolled out",
    ),
    UNSCHEDULABLE: (
        "workload could not be scheduled and keeps what it has",
        "workloads could not be scheduled and keep what they have",
    ),
}
"""Codes of findings that workloads run with less than they need, with what they mean for one and for several."""
MISTAKES: Final = {
    "selector-unmatched": ("policy wants a label or name that no cluster has", "policies want labels or names that no cluster has"),
    "cluster-label-misspelled": (
        "cluster has a label that is probably misspelled",
        "clusters have labels that are probably misspelled",
    ),
    CLUSTER_UNKNOWN: ("policy names a cluster that does not exist", "policies name clusters that do not exist"),
    KUSTOMIZE_UNBUILT: (
        "workload is changed by kustomizations that nothing builds",
        "workloads are changed by kustomizations that nothing builds",
    ),
    "krake-constraint-impossible": (
        "workload has a constraint that no cluster can meet",
        "workloads have constraints that no cluster can meet",
    ),
    "ocm-placement-missing": ("object names a Placement that does not exist", "objects name Placements that do not exist"),
}
"""Codes of findings about what documents want of clusters or policies and none has, so that nothing can be placed, with what they mean for
one and for several."""

EXPOSED: Final = ("secret-in-plain-text", "krake-secret-in-git")
"""The codes of findings that the source has a secret in plain text."""

MISTAKE_ENDS: Final = (*MISTAKES, UNKNOWN_FIELD, "-selects-nothing")
"""The ends of the codes of warnings that a document probably does not do what its author wants."""


def find_mistakes(findings: Iterable[Finding]) -> dict[str, Finding]:
    """Return the first finding about what each document wants and does not exist, by the kind, namespace and name of the document."""
    found: dict[str, Finding] = {}
    for finding in findings:
        if finding.resource is not None and finding.severity != "info" and finding.code in MISTAKES:
            found.setdefault("/".join(filter(None, finding.resource)), finding)
    return found


def choose_mistake(mistakes: Mapping[str, Finding], workload: str, policies: str) -> Finding | None:
    """Return the first mistake of the policies of a workload, which may have the group of their kind, else that of the workload."""
    for policy in policies.split(", "):
        kind, *path = policy.split("/")
        title = "/".join([kind.partition(".")[0], *path])
        if title in mistakes:
            return mistakes[title]
    return mistakes.get(workload)


def format_sentence(finding: Finding) -> str:
    """Return a finding as a part of a sentence, with its place."""
    return f"{finding.message} ({finding.location.text})" if finding.location is not None else finding.message
