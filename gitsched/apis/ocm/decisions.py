"""From chosen clusters to decision groups, and from groups to PlacementDecisions."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gitsched.apis.ocm import names
from gitsched.apis.ocm.placement import Mistake, Placement
from gitsched.model.document import Body, Key, member, text_map
from gitsched.schedule.fleet import Fleet

SLICE = 100
"""Clusters in one PlacementDecision at most."""
SCORES = "gitsched.io/scores"
"""On a PlacementDecision: the totals that its clusters had when they were chosen, as JSON."""
_PERCENTAGE = re.compile(r"([0-9]+)%", re.ASCII)


class DecisionGroup(NamedTuple):
    """`clusters` are indices, ascending."""

    name: str
    clusters: Sequence[int]


def group_clusters(placement: Placement, chosen: Sequence[int], fleet: Fleet) -> tuple[DecisionGroup, ...] | Mistake:
    """The chosen clusters by the first group that takes them, in pieces of the wanted length; at least one group, be it empty."""
    length = _length(placement.per_group, len(chosen))
    if isinstance(length, Mistake):
        return length
    groups: list[DecisionGroup] = []
    left = 0
    if placement.groups:
        left = fleet.mask(fleet.names[index] for index in chosen)
    for group in placement.groups:
        if group.mistake:
            return Mistake("", group.mistake)
        taken = left & fleet.matching(group.affinity)
        left &= ~taken
        groups += _cut(group.name, fleet.members(taken), length)
    groups += _cut("", fleet.members(left) if placement.groups else chosen, length)
    return tuple(groups) or (DecisionGroup("", ()),)


def _length(wanted: object, total: int) -> int | Mistake:
    length = total
    if isinstance(wanted, str):
        match = _PERCENTAGE.fullmatch(wanted)
        if match is None:
            return Mistake("", f"{wanted} invalid type: string is not a percentage")
        length = math.ceil(int(match[1]) / 100 * total)  # from left to right, so that 7 % of 100 are 8 as upstream
    elif isinstance(wanted, (int, float)):
        length = int(wanted)
    return length if 0 < length <= total else total


def _cut(name: str, clusters: Sequence[int], length: int) -> Iterable[DecisionGroup]:
    return (DecisionGroup(name, clusters[at : at + length]) for at in range(0, len(clusters), length or 1))


def write_decisions(
    placement: Key,
    uid: str,
    groups: Sequence[DecisionGroup],
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
        for start in range(0, len(group.clusters) or 1, SLICE):
            part = group.clusters[start : start + SLICE]
            name = f"{placement.name}-decision-{len(documents) + 1}"
            key = names.decision_key(placement.namespace, name)
            decisions = [{"clusterName": fleet.names[index], "reason": ""} for index in part]
            scores = {fleet.names[index]: totals[index] for index in part}
            documents.append((key, _write(key, placement, uid, group.name, at, decisions, _remember(scores, previous.get(name)))))
            objects[-1].append(name)
    return documents, objects


def _remember(scores: Mapping[str, int], previous: Body | None) -> str:
    if previous is not None and list_clusters(previous) == list(scores):
        return text_map(member(previous, "metadata", "annotations")).get(SCORES, "")
    return json.dumps(scores, separators=(",", ":")) if scores else ""


def _write(key: Key, placement: Key, uid: str, group: str, index: int, decisions: list[Body], scores: str) -> Body:
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
        metadata["annotations"] = {SCORES: scores}
    return {
        "apiVersion": f"{names.GROUP}/v1beta1",
        "kind": names.DECISION,
        "metadata": metadata,
        "status": {"decisions": decisions},
    }


def list_clusters(decision: Body) -> list[str]:
    """The clusters of a PlacementDecision, in its order; nobody has checked an earlier one."""
    entries = member(decision, "status", "decisions")
    known = (entry.get("clusterName") for entry in (entries if isinstance(entries, list) else ()) if isinstance(entry, dict))
    return [name for name in known if isinstance(name, str)]
