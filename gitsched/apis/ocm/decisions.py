"""Decision groups, PlacementDecisions and the status of a Placement."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from gitsched.apis.ocm import names
from gitsched.apis.ocm.managed_clusters import EligibleClusters
from gitsched.apis.ocm.placement import Misconfiguration, OcmPlacement
from gitsched.model.document import Body, Key, get_field, list_objects, read_annotations
from gitsched.model.time import format_time
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.fleet import Fleet

MAX_CLUSTER_DECISIONS = 100
"""The most clusters in one PlacementDecision."""
SCORES_ANNOTATION = "gitsched.io/scores"
"""An annotation of a PlacementDecision: the total scores of its clusters at the time of the decision, as JSON."""
_PERCENTAGE = re.compile(r"([0-9]+)%", re.ASCII)


class ClusterDecisionGroup(NamedTuple):
    """A decision group with its clusters as ascending candidate indices."""

    name: str
    clusters: Sequence[int]


def group_clusters(
    placement: OcmPlacement, chosen: Sequence[int], fleet: Fleet
) -> tuple[ClusterDecisionGroup, ...] | Misconfiguration:
    """Divide the selected clusters into decision groups by decisionStrategy: at most clustersPerDecisionGroup clusters in a group.

    A cluster belongs to the first group whose selector matches it. At least one group is returned, which may be empty.
    """
    length = _group_length(placement.clusters_per_group, len(chosen))
    if isinstance(length, Misconfiguration):
        return length
    groups: list[ClusterDecisionGroup] = []
    remaining = 0
    if placement.decision_groups:
        remaining = fleet.mask(fleet.names[index] for index in chosen)
    for group in placement.decision_groups:
        if group.error:
            return Misconfiguration("", group.error, pointer=("spec", "decisionStrategy", "decisionGroups"))
        matched = remaining & fleet.matching(group.affinity)
        remaining &= ~matched
        groups += _split_group(group.name, fleet.members(matched), length)
    groups += _split_group("", fleet.members(remaining) if placement.decision_groups else chosen, length)
    return tuple(groups) or (ClusterDecisionGroup("", ()),)


def _group_length(clusters_per_group: object, total: int) -> int | Misconfiguration:
    length = total
    if isinstance(clusters_per_group, str):
        match = _PERCENTAGE.fullmatch(clusters_per_group)
        if match is None:
            return Misconfiguration(
                "",
                f"{clusters_per_group} invalid type: string is not a percentage",
                pointer=("spec", "decisionStrategy", "groupStrategy", "clustersPerDecisionGroup"),
                cure="use a number without quotes, or a percentage such as 20%",
            )
        length = math.ceil(int(match[1]) / 100 * total)  # in this order, so that 7% of 100 is 8 as upstream
    elif isinstance(clusters_per_group, (int, float)):
        length = int(clusters_per_group)
    return length if 0 < length <= total else total


def _split_group(name: str, clusters: Sequence[int], length: int) -> Iterable[ClusterDecisionGroup]:
    return (ClusterDecisionGroup(name, clusters[at : at + length]) for at in range(0, len(clusters), length or 1))


def write_decisions(
    placement: Key,
    uid: str,
    groups: Sequence[ClusterDecisionGroup],
    fleet: Fleet,
    totals: Mapping[int, int],
    previous: Mapping[str, Body],
) -> tuple[list[tuple[Key, Body]], list[list[str]]]:
    """Return the PlacementDecisions, and the names of the PlacementDecisions of each group.

    A decision with the same clusters as before keeps its previous scores.
    """
    documents: list[tuple[Key, Body]] = []
    objects: list[list[str]] = []
    for at, group in enumerate(groups):
        objects.append([])
        for start in range(0, len(group.clusters) or 1, MAX_CLUSTER_DECISIONS):
            part = group.clusters[start : start + MAX_CLUSTER_DECISIONS]
            name = f"{placement.name}-decision-{len(documents) + 1}"
            key = names.decision_key(placement.namespace, name)
            decisions = [{"clusterName": fleet.names[index], "reason": ""} for index in part]
            scores = {fleet.names[index]: totals[index] for index in part}
            documents.append(
                (key, _write_decision(key, placement, uid, group.name, at, decisions, _format_scores(scores, previous.get(name))))
            )
            objects[-1].append(name)
    return documents, objects


def _format_scores(scores: Mapping[str, int], previous: Body | None) -> str:
    if previous is not None and list_decision_clusters(previous) == list(scores):
        return read_annotations(previous).get(SCORES_ANNOTATION, "")
    return json.dumps(scores, separators=(",", ":")) if scores else ""


def _write_decision(key: Key, placement: Key, uid: str, group: str, index: int, decisions: list[Body], scores: str) -> Body:
    metadata: Body = {
        "name": key.name,
        "namespace": key.namespace,
        "labels": {
            names.GROUP_INDEX_LABEL: str(index),
            names.GROUP_NAME_LABEL: group,
            names.PLACEMENT_LABEL: placement.name,
        },
        "ownerReferences": [
            {
                "apiVersion": f"{names.GROUP}/v1beta1",
                "kind": names.PLACEMENT,
                "name": placement.name,
                "uid": uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    if scores:
        metadata["annotations"] = {SCORES_ANNOTATION: scores}
    return {
        "apiVersion": f"{names.GROUP}/v1beta1",
        "kind": names.PLACEMENT_DECISION,
        "metadata": metadata,
        "status": {"decisions": decisions},
    }


def list_decision_clusters(decision: Body) -> list[str]:
    """Return the clusters of a PlacementDecision in its order; a previous one is not validated and may have any content."""
    entries = get_field(decision, "status", "decisions")
    known = (entry.get("clusterName") for entry in (entries if isinstance(entries, list) else ()) if isinstance(entry, dict))
    return [name for name in known if isinstance(name, str)]


class SatisfiedCondition(NamedTuple):
    """The PlacementSatisfied condition."""

    status: bool
    reason: str
    message: str


def evaluate_satisfaction(
    eligible: EligibleClusters, requested_sets: Sequence[str], selected: int, count: int | None
) -> SatisfiedCondition:
    """Return the PlacementSatisfied condition with upstream's reasons and messages."""
    if not eligible.bound_sets:
        message = "No valid ManagedClusterSetBindings found in placement namespace"
        return SatisfiedCondition(False, "NoManagedClusterSetBindings", message)
    if not eligible.eligible_sets:
        message = f"None of ManagedClusterSets [{','.join(requested_sets)}] is bound to placement namespace"
        return SatisfiedCondition(False, "NoIntersection", message)
    if not eligible.clusters:
        message = f"All ManagedClusterSets [{','.join(eligible.eligible_sets)}] have no member ManagedCluster"
        return SatisfiedCondition(False, "AllManagedClusterSetsEmpty", message)
    if not selected:
        return SatisfiedCondition(False, "NoManagedClusterMatched", "No ManagedCluster matches any of the cluster predicate")
    if count is None or count == selected:
        return SatisfiedCondition(True, "AllDecisionsScheduled", "All cluster decisions scheduled")
    return SatisfiedCondition(False, "NotAllDecisionsScheduled", f"{count - selected} cluster decisions unscheduled")


def write_placement_status(
    condition: SatisfiedCondition,
    misconfiguration: Misconfiguration | None,
    groups: Sequence[ClusterDecisionGroup],
    objects: Sequence[Sequence[str]],
    previous: Body | None,
    now: datetime,
) -> Body:
    """Return the status after a decision; a condition with the same status keeps its lastTransitionTime."""
    return {
        "numberOfSelectedClusters": sum(len(group.clusters) for group in groups),
        "decisionGroups": [
            {
                "decisionGroupIndex": index,
                "decisionGroupName": group.name,
                "decisions": list(decisions),
                "clusterCount": len(group.clusters),
            }
            for index, (group, decisions) in enumerate(zip(groups, objects, strict=True))
        ],
        "conditions": [
            _misconfigured_condition(misconfiguration, previous, now),
            _satisfied_condition(condition, previous, now),
        ],
    }


def write_misconfigured_status(misconfiguration: Misconfiguration, previous: Body | None, now: datetime) -> Body:
    """Return the status of a misconfigured Placement, which keeps its previous decisions."""
    status = (previous or {}).get("status") or {}
    others = [condition for condition in status.get("conditions") or () if condition.get("type") == "PlacementSatisfied"]
    return {**status, "conditions": [_misconfigured_condition(misconfiguration, previous, now), *others]}


def write_placement_record(key: Key, status: Body) -> Body:
    """Return the record of a Placement: its status without the spec, which is in the source."""
    metadata = {"name": key.name, "namespace": key.namespace}
    return {"apiVersion": f"{key.group}/v1beta1", "kind": key.kind, "metadata": metadata, "status": status}


def _misconfigured_condition(misconfiguration: Misconfiguration | None, previous: Body | None, now: datetime) -> Body:
    if misconfiguration is None:
        status_reason_message = ("False", "Succeedconfigured", "Placement configurations check pass")
    else:
        status_reason_message = ("True", "Misconfigured", str(misconfiguration))
    return _condition("PlacementMisconfigured", *status_reason_message, previous, now)


def _satisfied_condition(condition: SatisfiedCondition, previous: Body | None, now: datetime) -> Body:
    status = "True" if condition.status else "False"
    return _condition("PlacementSatisfied", status, condition.reason, condition.message, previous, now)


def _condition(kind: str, status: str, reason: str, message: str, previous: Body | None, now: datetime) -> Body:
    conditions = list_objects(get_field(previous or {}, "status", "conditions"))
    last: Body = next((condition for condition in conditions if condition.get("type") == kind), {})
    since = last.get("lastTransitionTime") if last.get("status") == status else None
    transition_time = since or format_time(now.replace(microsecond=0))
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": transition_time}
