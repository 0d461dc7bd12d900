"""Clusters onto clouds, and Magnum clusters onto projects: decided once, never again."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from gitsched.apis.krake import names
from gitsched.apis.krake.arena import Arena
from gitsched.apis.krake.constraint_sets import Constraints, parse_constraints
from gitsched.apis.krake.inventory import is_deleted
from gitsched.apis.krake.memory import Memory
from gitsched.model.decision import Verdict
from gitsched.model.document import Document, member

FINAL = ("FAILED",)
"""The state that the scheduler gives to a cluster or Magnum cluster."""
_DELETED = "it is being deleted"
_ONCE = "an earlier run bound it, and that is done once"


def wanted_of(document: Document) -> Constraints:
    """What a cluster wants of its cloud, or a Magnum cluster of its project."""
    target = "project" if document.key.kind == "MagnumCluster" else "cloud"
    return parse_constraints(member(document.body, "spec", "constraints", target))


class Binding(NamedTuple):
    """What became of one resource: `action` is bind, fail, wait or ignored. `why` is for people; `live` says that metrics of servers
    had a part in it."""

    action: str
    memory: Memory
    why: str = ""
    live: bool = False


def bind_cluster(document: Document, memory: Memory, arenas: Iterable[Arena], moment: datetime, *, hold: bool) -> Binding:
    """Choose a cloud: the first arena in which any cloud matches counts, whatever the scores of a later one (the global clouds)."""
    constraints = wanted_of(document)
    live = False
    for arena in arenas:
        mask = arena.matching(constraints)
        live = live or arena.live
        why = _unknown(arena, constraints, hold)
        if why:
            return Binding("wait", memory, why, live)
        if mask:
            chosen, _ = arena.choose(mask, None, f"Cluster/{document.key.namespace}/{document.key.name}")
            return Binding("bind", memory.own(arena.sites[chosen].ref)._replace(scheduled=moment), "", live)
    return Binding("fail", _failed(memory, "No matching cloud found"), "No matching cloud found", live)


def judge_clouds(document: Document, arenas: Iterable[Arena]) -> list[Verdict]:
    """How every cloud fares for a cluster, up to the arena that counts. A global one is called GlobalCloud/<name>: a cloud of the
    namespace may have the same name."""
    constraints = wanted_of(document)
    found: list[Verdict] = []
    for arena in arenas:
        mask = arena.matching(constraints)
        for site, verdict in zip(arena.sites, arena.verdicts(constraints, None, mask), strict=True):
            found.append(verdict if site.ref.namespace else verdict._replace(name=f"{site.ref.kind}/{site.name}"))
        if mask:
            break
    return sorted(found)


def bind_magnum_cluster(document: Document, memory: Memory, arena: Arena, *, hold: bool) -> Binding:
    """Choose a project of any namespace. Those that declare metrics go first, and where none of them can be read nothing is chosen."""
    if is_deleted(document.body):
        return Binding("ignored", memory, _DELETED)
    if memory.target is not None:
        return Binding("ignored", memory, _ONCE)
    constraints = wanted_of(document)
    mask = arena.matching(constraints)
    ranked = arena.preferred(mask)
    why = _unknown(arena, constraints, hold)
    if why:
        return Binding("wait", memory, why, arena.live)
    if not ranked:
        why = "No OpenStack project available" if mask else "No matching OpenStack project found"
        return Binding("fail", _failed(memory, why), why, arena.live)
    chosen, _ = arena.choose(ranked, None, f"MagnumCluster/{document.key.namespace}/{document.key.name}")
    return Binding("bind", memory.own(arena.sites[chosen].ref), "", arena.live)


def judge_projects(document: Document, arena: Arena) -> list[Verdict]:
    """How every project fares for a Magnum cluster."""
    constraints = wanted_of(document)
    mask = arena.matching(constraints)
    return arena.verdicts(constraints, None, mask, arena.preferred(mask))


def settle(document: Document, memory: Memory) -> str:
    """Why nothing is to be chosen for a cluster; "" where something is."""
    if is_deleted(document.body):
        return _DELETED
    if member(document.body, "spec", "kubeconfig"):
        return "it has a kubeconfig, so that it exists already"
    if memory.state == "FAILED":
        return "it has failed; only another version of it is looked at again"
    return _ONCE if memory.target is not None else ""


def _unknown(arena: Arena, constraints: Constraints, hold: bool) -> str:
    """Why to wait: a choice that is made once should not be made by an outage."""
    unread = arena.failed & arena.open & arena.meeting(constraints) if hold else 0
    if not unread:
        return ""
    return f"nobody knows the metrics of {', '.join(arena.fleet.names[i] for i in arena.fleet.members(unread)[:3])}"


def _failed(memory: Memory, message: str) -> Memory:
    return memory._replace(state="FAILED", reason={"code": names.NO_SUITABLE_RESOURCE, "message": message})
