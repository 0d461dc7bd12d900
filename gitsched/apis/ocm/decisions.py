"""Decision groups, PlacementDecisions and the status of a Placement."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from gitsched.apis.ocm import names
from gitsched.apis.ocm.placement import Misconfiguration, OcmPlacement
from gitsched.model.document import Body, Key, as_string_map, get_field
from gitsched.model.time import format_time
from gitsched.schedule.fleet import Fleet

MAX_CLUSTER_DECISIONS = 100
"""Clusters in one PlacementDecision at most."""
SCORES_ANNOTATION = "gitsched.io/scores"
"""On a PlacementDecision: the totals that its clusters had when they were chosen, as JSON."""
_PERCENTAGE = re.compile(r"([0-9]+)%", re.ASCII)


class ClusterDecisionGroup(NamedTuple):
    """`clusters` are indices, ascending."""

    name: str
    clusters: Sequence[int]


def group_clusters(
    placement: OcmPlacement, chosen: Sequence[int], fleet: Fleet
) -> tuple[ClusterDecisionGroup, ...] | Misconfiguration:
    """The chosen clusters by the first group that takes them, in pieces of the wanted length; at least one group, be it empty."""
    length = _group_length(placement.clusters_per_group, len(chosen))
    if isinstance(length, Misconfiguration):
        return length
    groups: list[ClusterDecisionGroup] = []
    left = 0
    if placement.decision_groups:
        left = fleet.mask(fleet.names[index] for index in chosen)
    for group in placement.decision_groups:
        if group.error:
            return Misconfiguration("", group.error)
        taken = left & fleet.matching(group.affinity)
        left &= ~taken
        groups += _split_group(group.name, fleet.members(taken), length)
    groups += _split_group("", fleet.members(left) if placement.decision_groups else chosen, length)
    return tuple(groups) or (ClusterDecisionGroup("", ()),)


def _group_length(wanted: object, total: int) -> int | Misconfiguration:
    length = total
    if isinstance(wanted, str):
        match = _PERCENTAGE.fullmatch(wanted)
        if match is None:
            return Misconfiguration("", f"{wanted} invalid type: string is not a percentage")
        length = math.ceil(int(match[1]) / 100 * total)  # from left to right, so that 7 % of 100 are 8 as upstream
    elif isinstance(wanted, (int, float)):
        length = int(wanted)
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
    """The PlacementDecisions, and the names of those of each group.

    A decision that is what it was keeps the scores that it was made with.
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
        return as_string_map(get_field(previous, "metadata", "annotations")).get(SCORES_ANNOTATION, "")
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
    """The clusters of a PlacementDecision, in its order; nobody has checked an earlier one."""
    entries = get_field(decision, "status", "decisions")
    known = (entry.get("clusterName") for entry in (entries if isinstance(entries, list) else ()) if isinstance(entry, dict))
    return [name for name in known if isinstance(name, str)]


class SatisfiedCondition(NamedTuple):
    """The condition PlacementSatisfied."""

    status: bool
    reason: str
    message: str


class EligibleClusters(NamedTuple):
    """What a Placement may choose from: the sets that are bound and exist, those of them that it wants, and their candidates."""

    bound_sets: tuple[str, ...]
    eligible_sets: tuple[str, ...]
    clusters: int


def evaluate_satisfaction(offer: EligibleClusters, wanted: Sequence[str], selected: int, count: int | None) -> SatisfiedCondition:
    """The first that applies, in upstream's words."""
    if not offer.bound_sets:
        message = "No valid ManagedClusterSetBindings found in placement namespace"
        return SatisfiedCondition(False, "NoManagedClusterSetBindings", message)
    if not offer.eligible_sets:
        message = f"None of ManagedClusterSets [{','.join(wanted)}] is bound to placement namespace"
        return SatisfiedCondition(False, "NoIntersection", message)
    if not offer.clusters:
        message = f"All ManagedClusterSets [{','.join(offer.eligible_sets)}] have no member ManagedCluster"
        return SatisfiedCondition(False, "AllManagedClusterSetsEmpty", message)
    if not selected:
        return SatisfiedCondition(False, "NoManagedClusterMatched", "No ManagedCluster matches any of the cluster predicate")
    if count is None or count == selected:
        return SatisfiedCondition(True, "AllDecisionsScheduled", "All cluster decisions scheduled")
    return SatisfiedCondition(False, "NotAllDecisionsScheduled", f"{count - selected} cluster decisions unscheduled")


def write_placement_status(
    satisfaction: SatisfiedCondition,
    mistake: Misconfiguration | None,
    groups: Sequence[ClusterDecisionGroup],
    objects: Sequence[Sequence[str]],
    previous: Body | None,
    moment: datetime,
) -> Body:
    """The status after a decision; a condition keeps its time while its status stays."""
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
        "conditions": [_misconfigured_condition(mistake, previous, moment), _satisfied_condition(satisfaction, previous, moment)],
    }


def write_misconfigured_status(mistake: Misconfiguration, previous: Body | None, moment: datetime) -> Body:
    """The status of a misconfigured Placement: what was decided before stands."""
    kept = (previous or {}).get("status") or {}
    others = [condition for condition in kept.get("conditions") or () if condition.get("type") == "PlacementSatisfied"]
    return {**kept, "conditions": [_misconfigured_condition(mistake, previous, moment), *others]}


def write_placement_record(key: Key, status: Body) -> Body:
    """The Placement as a server would show it, without the spec: that is the source's."""
    metadata = {"name": key.name, "namespace": key.namespace}
    return {"apiVersion": f"{key.group}/v1beta1", "kind": key.kind, "metadata": metadata, "status": status}


def _misconfigured_condition(mistake: Misconfiguration | None, previous: Body | None, moment: datetime) -> Body:
    if mistake is None:
        said = ("False", "Succeedconfigured", "Placement configurations check pass")
    else:
        said = ("True", "Misconfigured", str(mistake))
    return _condition("PlacementMisconfigured", *said, previous, moment)


def _satisfied_condition(satisfaction: SatisfiedCondition, previous: Body | None, moment: datetime) -> Body:
    status = "True" if satisfaction.status else "False"
    return _condition("PlacementSatisfied", status, satisfaction.reason, satisfaction.message, previous, moment)


def _condition(kind: str, status: str, reason: str, message: str, previous: Body | None, moment: datetime) -> Body:
    conditions = get_field(previous or {}, "status", "conditions") or ()
    before: Body = next((condition for condition in conditions if condition.get("type") == kind), {})
    time = before.get("lastTransitionTime") if before.get("status") == status else None
    stamp = time or format_time(moment.replace(microsecond=0))
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": stamp}
