"""What simulations ask of Karmada's clusters and workloads: room, what a replica takes of it, and which clusters matter to whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gitsched.apis.karmada import names
from gitsched.apis.karmada.binding import recall
from gitsched.model.document import Document
from gitsched.schedule.room import PODS, Room

if TYPE_CHECKING:  # the session calls this module
    from gitsched.apis.karmada.session import KarmadaSession


def list_room(session: KarmadaSession) -> Mapping[str, Room | None]:
    """What is free on each cluster; a broken one has nothing for anybody."""
    return {c.name: Room({}) if c.frozen else c.room for c in session.fleet.candidates}


def read_ask(session: KarmadaSession, template: Document) -> tuple[tuple[str, int], ...]:
    """What one replica takes: its pod, and what it requests."""
    demand = session.demand(template)
    return tuple(({PODS: 1} | dict(demand.request or ())).items()) if demand.workload else ()


def find_reach(session: KarmadaSession, template: Document) -> frozenset[str] | None:
    """The clusters of all its groups, and those that hold it; any where the decision comes from another workload's."""
    if session.relations.attachment(template) is not None:
        return None
    previous = session.world.previous.get(names.binding_key(template.key))
    policy, _ = session.governing(template, previous)
    memory, fleet = recall(previous), session.fleet
    held = {*(target.name for target in memory.clusters), *(str(task.get("fromCluster")) for task in memory.tasks)}
    mask = 0
    for group in policy.placement.groups if policy is not None else ():
        mask |= fleet.all if group.affinity is None else fleet.matching(group.affinity)
        for affinity in group.overflow:
            mask |= fleet.matching(affinity)
    return frozenset(held) | fleet.remember(("names", mask), lambda: frozenset(fleet.names[i] for i in fleet.members(mask)))
