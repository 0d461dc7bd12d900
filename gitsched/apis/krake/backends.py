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
from gitsched.model.document import Body, Document, member

FINAL = ("FAILED",)
"""The state that the scheduler gives to a cluster or Magnum cluster."""


class Binding(NamedTuple):
    """What became of one resource: `action` is bind, fail, wait, none or ignored. `why` is for people; `verdicts` come by arena."""

    action: str
    memory: Memory
    why: str = ""
    verdicts: tuple[Verdict, ...] = ()
    live: bool = False


def bind_cluster(document: Document, memory: Memory, arenas: Iterable[Arena], moment: datetime, *, hold: bool) -> Binding:
    """Choose a cloud: the first arena in which any cloud matches counts, whatever the scores of a later one (the global clouds)."""
    spec: Body = document.body.get("spec") or {}
    if is_deleted(document.body) or spec.get("kubeconfig") or memory.state == "FAILED" or memory.target is not None:
        return Binding("ignored", memory)
    constraints = parse_constraints(member(spec, "constraints", "cloud"))
    identity = f"Cluster/{document.key.namespace}/{document.key.name}"
    verdicts: tuple[Verdict, ...] = ()
    live = False
    for arena in arenas:
        mask = arena.matching(constraints)
        verdicts += tuple(arena.verdicts(constraints, None, mask))
        live = live or arena.live
        why = _unknown(arena, constraints, hold)
        if why:
            return Binding("wait", memory, why, verdicts, live)
        if mask:
            chosen, _ = arena.choose(mask, None, identity)
            return Binding("bind", memory.own(arena.sites[chosen].ref)._replace(scheduled=moment), "", verdicts, live)
    return Binding("fail", _failed(memory, "No matching cloud found"), "No matching cloud found", verdicts, live)


def bind_magnum_cluster(document: Document, memory: Memory, arena: Arena, *, hold: bool) -> Binding:
    """Choose a project of any namespace. Those that declare metrics go first, and where none of them can be read nothing is chosen."""
    if is_deleted(document.body) or memory.target is not None:
        return Binding("ignored", memory)
    constraints = parse_constraints(member(document.body, "spec", "constraints", "project"))
    mask = arena.matching(constraints)
    ranked = mask & arena.ranking.measured if mask & arena.declaring else mask
    verdicts = tuple(arena.verdicts(constraints, None, mask, ranked))
    why = _unknown(arena, constraints, hold)
    if why:
        return Binding("wait", memory, why, verdicts, arena.live)
    if not ranked:
        why = "No OpenStack project available" if mask else "No matching OpenStack project found"
        return Binding("fail", _failed(memory, why), why, verdicts, arena.live)
    chosen, _ = arena.choose(ranked, None, f"MagnumCluster/{document.key.namespace}/{document.key.name}")
    return Binding("bind", memory.own(arena.sites[chosen].ref), "", verdicts, arena.live)


def _unknown(arena: Arena, constraints: Constraints, hold: bool) -> str:
    """Why to wait: a choice that is made once should not be made by an outage."""
    unread = arena.failed & arena.open & arena.meeting(constraints) if hold else 0
    if not unread:
        return ""
    return f"nobody knows the metrics of {', '.join(arena.fleet.names[i] for i in arena.fleet.members(unread)[:3])}"


def _failed(memory: Memory, message: str) -> Memory:
    return memory._replace(state="FAILED", reason={"code": names.NO_SUITABLE_RESOURCE, "message": message})
