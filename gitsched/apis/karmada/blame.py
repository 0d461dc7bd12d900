"""Which rule is against a cluster: the place, in a policy or a Cluster, that `explain` points at."""

from __future__ import annotations

from gitsched.apis.karmada.policy import Policy
from gitsched.model.document import Document, member
from gitsched.model.finding import Pointer, Rule
from gitsched.model.request import Affinity, Group, Request
from gitsched.model.taints import NO_EXECUTE, NO_SCHEDULE, Taint
from gitsched.schedule.fleet import Candidate


def find_rule(
    filter_name: str, candidate: Candidate, request: Request, group: Group, policy: Policy, cluster: Document | None
) -> Rule | None:
    """The rule by which a filter refused a candidate; None where nothing that somebody wrote did."""
    match filter_name:
        case "ClusterAffinity":
            return _rule(policy.document, _affinity_pointer(candidate, request, group))
        case "SpreadConstraint":
            return _rule(policy.document, ("spec", "placement", "spreadConstraints"))
        case "TaintToleration":
            return _rule(cluster, _taint_pointer(candidate, request, cluster))
        case "APIEnablement":
            return _rule(cluster, ("status", "apiEnablements"))
        case "ClusterEviction":
            return _find_eviction(candidate, request, policy, cluster)
        case "":  # the Cluster itself is being deleted, or broken
            return _rule(cluster, ("metadata", "deletionTimestamp"))
    return None


def _rule(document: Document | None, pointer: Pointer) -> Rule | None:
    return Rule(document.origin, pointer) if document is not None and document.origin is not None else None


def _affinity_pointer(candidate: Candidate, request: Request, group: Group) -> Pointer:
    placement: Pointer = ("spec", "placement")
    term = (*placement, "clusterAffinities", request.groups.index(group)) if group.name else (*placement, "clusterAffinity")
    if group.affinity is None or group.overflow:
        return term
    return (*term, refusing_member(group.affinity, candidate))


def refusing_member(affinity: Affinity, candidate: Candidate) -> str:
    """The first member of an affinity that does not hold for a candidate."""
    if affinity.names and candidate.name not in affinity.names:
        return "clusterNames"
    if candidate.name in affinity.exclude:
        return "exclude"
    if affinity.invalid or (affinity.labels is not None and not affinity.labels.matches(candidate.labels)):
        return "labelSelector"
    return "fieldSelector"


def _taint_pointer(candidate: Candidate, request: Request, cluster: Document | None) -> Pointer:
    for taint in candidate.taints:
        if taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not any(t.tolerates(taint) for t in request.tolerations):
            return _locate_taint(taint, cluster)
    return ("spec", "taints")


def _locate_taint(taint: Taint, cluster: Document | None) -> Pointer:
    """A taint that the document does not have comes from its conditions."""
    written = (member(cluster.body, "spec", "taints") if cluster is not None else None) or ()
    known = (i for i, entry in enumerate(written) if (entry.get("key"), entry.get("effect")) == (taint.key, taint.effect))
    index = next(known, None)
    return ("status", "conditions") if index is None else ("spec", "taints", index)


def _find_eviction(candidate: Candidate, request: Request, policy: Policy, cluster: Document | None) -> Rule | None:
    """The taint that evicted; where it is tolerated for a time, the toleration, whose time is over."""
    for taint in candidate.taints:
        if taint.effect != NO_EXECUTE:
            continue
        for number, toleration in enumerate(request.tolerations):
            if toleration.tolerates(taint):
                return _rule(policy.document, ("spec", "placement", "clusterTolerations", number))
        return _rule(cluster, _locate_taint(taint, cluster))
    return None
