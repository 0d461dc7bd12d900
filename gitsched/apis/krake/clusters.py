"""Bind Clusters to clouds and MagnumClusters to projects (once), and create Clusters for Applications (auto_cluster_create)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from hashlib import sha256

from gitsched.apis.krake.candidates import ScoredCandidates, is_deleted
from gitsched.apis.krake.constraints import ConstraintSet, parse_constraints
from gitsched.apis.krake.names import CLUSTER, NO_SUITABLE_RESOURCE
from gitsched.apis.krake.scheduling_status import SchedulingStatus
from gitsched.model.document import Body, Document, Key, get_field
from gitsched.model.scheduling import CandidateResult
from gitsched.named_tuples import NamedTuple

FINAL_CLUSTER_STATES = ("FAILED",)
"""Cluster and MagnumCluster states that the scheduler sets."""
_DELETED_REASON = "it is being deleted"
_BOUND_REASON = "an earlier run bound it, and a binding is final"


def read_constraints(document: Document) -> ConstraintSet:
    """Return a Cluster's constraints on its cloud, or a MagnumCluster's on the labels of its project: of projects, nothing else counts."""
    constraints = get_field(document.body, "spec", "constraints") or {}
    if document.key.kind == "MagnumCluster":
        return parse_constraints({"labels": (constraints.get("project") or {}).get("labels")})
    return parse_constraints(constraints.get("cloud"))


class CloudBinding(NamedTuple):
    """The result of binding one resource: `action` is bind, fail, wait or ignored.

    `used_live_metrics` means that observed metrics, not only static ones, influenced the result.
    """

    action: str
    status: SchedulingStatus
    reason: str = ""
    used_live_metrics: bool = False


def bind_cluster(
    document: Document, status: SchedulingStatus, candidate_sets: Iterable[ScoredCandidates], time: datetime, *, hold: bool
) -> CloudBinding:
    """Bind a cluster to the best cloud of the first set with a match: namespaced clouds come before global ones, regardless of scores."""
    constraints = read_constraints(document)
    used_live_metrics = False
    for candidates in candidate_sets:
        matching = candidates.match_constraints(constraints)
        used_live_metrics = used_live_metrics or candidates.has_live_metrics
        reason = _find_wait_reason(candidates, constraints, hold)
        if reason:
            return CloudBinding("wait", status, reason, used_live_metrics)
        if matching:
            chosen, _ = candidates.choose_best(matching, None, f"Cluster/{document.key.namespace}/{document.key.name}")
            return CloudBinding(
                "bind", status.bind(candidates.candidates[chosen].ref)._replace(scheduled=time), "", used_live_metrics
            )
    return CloudBinding("fail", _mark_failed(status, "No matching cloud found"), "No matching cloud found", used_live_metrics)


def evaluate_clouds(document: Document, candidate_sets: Iterable[ScoredCandidates]) -> list[CandidateResult]:
    """Return the results of all clouds up to the set that decides.

    Global clouds are named GlobalCloud/<name>, because a namespaced cloud may have the same name.
    """
    constraints = read_constraints(document)
    results: list[CandidateResult] = []
    for candidates in candidate_sets:
        matching = candidates.match_constraints(constraints)
        for candidate, result in zip(candidates.candidates, candidates.evaluate(constraints, None, matching), strict=True):
            results.append(result._replace(name=candidate.display_name))
        if matching:
            break
    return sorted(results)


def bind_magnum_cluster(document: Document, status: SchedulingStatus, candidates: ScoredCandidates, *, hold: bool) -> CloudBinding:
    """Bind a MagnumCluster to the best project of any namespace.

    If any matching project declares metrics, only projects with readable metrics are candidates.
    """
    if is_deleted(document.body):
        return CloudBinding("ignored", status, _DELETED_REASON)
    if status.target is not None:
        return CloudBinding("ignored", status, _BOUND_REASON)
    constraints = read_constraints(document)
    matching = candidates.match_constraints(constraints)
    ranked = candidates.select_comparable(matching)
    reason = _find_wait_reason(candidates, constraints, hold)
    if reason:
        return CloudBinding("wait", status, reason, candidates.has_live_metrics)
    if not ranked:
        reason = "No OpenStack project available" if matching else "No matching OpenStack project found"
        return CloudBinding("fail", _mark_failed(status, reason), reason, candidates.has_live_metrics)
    chosen, _ = candidates.choose_best(ranked, None, f"MagnumCluster/{document.key.namespace}/{document.key.name}")
    return CloudBinding("bind", status.bind(candidates.candidates[chosen].ref), "", candidates.has_live_metrics)


def evaluate_projects(document: Document, candidates: ScoredCandidates) -> list[CandidateResult]:
    """Return the results of all projects for a MagnumCluster."""
    constraints = read_constraints(document)
    matching = candidates.match_constraints(constraints)
    return candidates.evaluate(constraints, None, matching, candidates.select_comparable(matching))


def find_skip_reason(document: Document, status: SchedulingStatus) -> str:
    """Return why a cluster needs no cloud; "" if it needs one."""
    if is_deleted(document.body):
        return _DELETED_REASON
    if get_field(document.body, "spec", "kubeconfig"):
        return "it has a kubeconfig, so it exists already"
    if status.state == "FAILED" and not status.failed_before:
        return "its status says that it has failed; remove status.state to bind it again"
    return _BOUND_REASON if status.target is not None else ""


def _find_wait_reason(candidates: ScoredCandidates, constraints: ConstraintSet, hold: bool) -> str:
    """Return why to wait: a final binding must not depend on a provider outage. "" if nothing prevents the binding."""
    unavailable = candidates.provider_failed & candidates.eligible & candidates.match_affinity(constraints) if hold else 0
    if not unavailable:
        return ""
    return f"unknown metrics of {', '.join(candidates.fleet.names[i] for i in candidates.fleet.members(unavailable)[:3])}"


def _mark_failed(status: SchedulingStatus, message: str) -> SchedulingStatus:
    return status._replace(state="FAILED", reason={"code": NO_SUITABLE_RESOURCE, "message": message})


_NAME_NUMBERS = 10_000


def generate_cluster_name(identity: str, taken: Collection[str]) -> str:
    """Return an unused name, `cluster-` and four digits derived from the application's identity; five digits if all are taken."""
    first = int.from_bytes(sha256(identity.encode()).digest()[:8], "big") % _NAME_NUMBERS
    numbers = (f"cluster-{(first + step) % _NAME_NUMBERS:04}" for step in range(_NAME_NUMBERS))
    return next((name for name in numbers if name not in taken), f"cluster-{_NAME_NUMBERS + len(taken)}")


def make_cluster_document(application: Document, name: str) -> Document:
    """Return the document of a new cluster for an application, with the application's constraints as its cloud constraints."""
    wanted = get_field(application.body, "spec", "constraints", "cluster") or {}
    cloud = {part: wanted[part] for part in ("labels", "metrics") if wanted.get(part)}
    group, kind = CLUSTER
    body: Body = {
        "api": group,
        "kind": kind,
        "metadata": {"name": name, "namespace": application.key.namespace, "inherit_labels": True},
        "spec": {"auto_generated": True, "inherit_metrics": True, "constraints": {"cloud": cloud}},
    }
    return Document(Key(group, kind, application.key.namespace, name), group, body)
