"""A Placement's status: how many clusters are chosen, their groups, and the two conditions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from gitsched.apis.ocm.decisions import DecisionGroup
from gitsched.apis.ocm.placement import Mistake
from gitsched.model.document import Body, Key, member
from gitsched.model.time import format_time


class Satisfaction(NamedTuple):
    """The condition PlacementSatisfied."""

    status: bool
    reason: str
    message: str


class Offer(NamedTuple):
    """What a Placement may choose from: the sets that are bound and exist, those of them that it wants, and their candidates."""

    bound: tuple[str, ...]
    eligible: tuple[str, ...]
    available: int


def judge(offer: Offer, wanted: Sequence[str], selected: int, count: int | None) -> Satisfaction:
    """The first that applies, in upstream's words."""
    if not offer.bound:
        message = "No valid ManagedClusterSetBindings found in placement namespace"
        return Satisfaction(False, "NoManagedClusterSetBindings", message)
    if not offer.eligible:
        message = f"None of ManagedClusterSets [{','.join(wanted)}] is bound to placement namespace"
        return Satisfaction(False, "NoIntersection", message)
    if not offer.available:
        message = f"All ManagedClusterSets [{','.join(offer.eligible)}] have no member ManagedCluster"
        return Satisfaction(False, "AllManagedClusterSetsEmpty", message)
    if not selected:
        return Satisfaction(False, "NoManagedClusterMatched", "No ManagedCluster matches any of the cluster predicate")
    if count is None or count == selected:
        return Satisfaction(True, "AllDecisionsScheduled", "All cluster decisions scheduled")
    return Satisfaction(False, "NotAllDecisionsScheduled", f"{count - selected} cluster decisions unscheduled")


def write_status(
    satisfaction: Satisfaction,
    mistake: Mistake | None,
    groups: Sequence[DecisionGroup],
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
        "conditions": [_misconfigured(mistake, previous, moment), _satisfied(satisfaction, previous, moment)],
    }


def write_mistake(mistake: Mistake, previous: Body | None, moment: datetime) -> Body:
    """The status of a misconfigured Placement: what was decided before stands."""
    kept = (previous or {}).get("status") or {}
    others = [condition for condition in kept.get("conditions") or () if condition.get("type") == "PlacementSatisfied"]
    return {**kept, "conditions": [_misconfigured(mistake, previous, moment), *others]}


def write_record(key: Key, status: Body) -> Body:
    """The Placement as a server would show it, without the spec: that is the source's."""
    metadata = {"name": key.name, "namespace": key.namespace}
    return {"apiVersion": f"{key.group}/v1beta1", "kind": key.kind, "metadata": metadata, "status": status}


def _misconfigured(mistake: Mistake | None, previous: Body | None, moment: datetime) -> Body:
    if mistake is None:
        said = ("False", "Succeedconfigured", "Placement configurations check pass")
    else:
        said = ("True", "Misconfigured", str(mistake))
    return _condition("PlacementMisconfigured", *said, previous, moment)


def _satisfied(satisfaction: Satisfaction, previous: Body | None, moment: datetime) -> Body:
    status = "True" if satisfaction.status else "False"
    return _condition("PlacementSatisfied", status, satisfaction.reason, satisfaction.message, previous, moment)


def _condition(kind: str, status: str, reason: str, message: str, previous: Body | None, moment: datetime) -> Body:
    conditions = member(previous or {}, "status", "conditions") or ()
    before: Body = next((condition for condition in conditions if condition.get("type") == kind), {})
    time = before.get("lastTransitionTime") if before.get("status") == status else None
    stamp = time or format_time(moment.replace(microsecond=0))
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": stamp}
