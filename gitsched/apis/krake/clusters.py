"""Bind Clusters to clouds and MagnumClusters to projects (once), and create Clusters for Applications (auto_cluster_create)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

from gitsched.apis.krake import names
from gitsched.apis.krake.candidates import ScoredCandidates, is_deleted
from gitsched.apis.krake.constraints import ConstraintSet, parse_constraints
from gitsched.apis.krake.scheduling_status import SchedulingStatus
from gitsched.model.document import Body, Document, Key, get_field
from gitsched.model.scheduling import CandidateResult

FINAL_STATES = ("FAILED",)
"""The state that the scheduler gives to a cluster or Magnum cluster."""
_DELETED_REASON = "it is being deleted"
_BOUND_REASON = "an earlier run bound it, and that is done once"


def read_constraints(document: Document) -> ConstraintSet:
    """What a cluster wants of its cloud, or a Magnum cluster of its project."""
    target = "project" if document.key.kind == "MagnumCluster" else "cloud"
    return parse_constraints(get_field(document.body, "spec", "constraints", target))


class CloudBinding(NamedTuple):
    """What became of one resource: `action` is bind, fail, wait or ignored. `why` is for people; `live` says that metrics of servers
    had a part in it."""

    action: str
    status: SchedulingStatus
    reason: str = ""
    used_live_metrics: bool = False


def bind_cluster(
    document: Document, memory: SchedulingStatus, arenas: Iterable[ScoredCandidates], moment: datetime, *, hold: bool
) -> CloudBinding:
    """Choose a cloud: the first arena in which any cloud matches counts, whatever the scores of a later one (the global clouds)."""
    constraints = read_constraints(document)
    live = False
    for arena in arenas:
        mask = arena.match_constraints(constraints)
        live = live or arena.has_live_metrics
        why = _find_wait_reason(arena, constraints, hold)
        if why:
            return CloudBinding("wait", memory, why, live)
        if mask:
            chosen, _ = arena.choose_best(mask, None, f"Cluster/{document.key.namespace}/{document.key.name}")
            return CloudBinding("bind", memory.bind(arena.candidates[chosen].ref)._replace(scheduled=moment), "", live)
    return CloudBinding("fail", _mark_failed(memory, "No matching cloud found"), "No matching cloud found", live)


def evaluate_clouds(document: Document, arenas: Iterable[ScoredCandidates]) -> list[CandidateResult]:
    """How every cloud fares for a cluster, up to the arena that counts. A global one is called GlobalCloud/<name>: a cloud of the
    namespace may have the same name."""
    constraints = read_constraints(document)
    found: list[CandidateResult] = []
    for arena in arenas:
        mask = arena.match_constraints(constraints)
        for site, verdict in zip(arena.candidates, arena.evaluate(constraints, None, mask), strict=True):
            found.append(verdict if site.ref.namespace else verdict._replace(name=f"{site.ref.kind}/{site.name}"))
        if mask:
            break
    return sorted(found)


def bind_magnum_cluster(document: Document, memory: SchedulingStatus, arena: ScoredCandidates, *, hold: bool) -> CloudBinding:
    """Choose a project of any namespace. Those that declare metrics go first, and where none of them can be read nothing is chosen."""
    if is_deleted(document.body):
        return CloudBinding("ignored", memory, _DELETED_REASON)
    if memory.target is not None:
        return CloudBinding("ignored", memory, _BOUND_REASON)
    constraints = read_constraints(document)
    mask = arena.match_constraints(constraints)
    ranked = arena.select_comparable(mask)
    why = _find_wait_reason(arena, constraints, hold)
    if why:
        return CloudBinding("wait", memory, why, arena.has_live_metrics)
    if not ranked:
        why = "No OpenStack project available" if mask else "No matching OpenStack project found"
        return CloudBinding("fail", _mark_failed(memory, why), why, arena.has_live_metrics)
    chosen, _ = arena.choose_best(ranked, None, f"MagnumCluster/{document.key.namespace}/{document.key.name}")
    return CloudBinding("bind", memory.bind(arena.candidates[chosen].ref), "", arena.has_live_metrics)


def evaluate_projects(document: Document, arena: ScoredCandidates) -> list[CandidateResult]:
    """How every project fares for a Magnum cluster."""
    constraints = read_constraints(document)
    mask = arena.match_constraints(constraints)
    return arena.evaluate(constraints, None, mask, arena.select_comparable(mask))


def find_skip_reason(document: Document, memory: SchedulingStatus) -> str:
    """Why nothing is to be chosen for a cluster; "" where something is."""
    if is_deleted(document.body):
        return _DELETED_REASON
    if get_field(document.body, "spec", "kubeconfig"):
        return "it has a kubeconfig, so that it exists already"
    if memory.state == "FAILED":
        return "it has failed; only another version of it is looked at again"
    return _BOUND_REASON if memory.target is not None else ""


def _find_wait_reason(arena: ScoredCandidates, constraints: ConstraintSet, hold: bool) -> str:
    """Why to wait: a choice that is made once should not be made by an outage."""
    unread = arena.provider_failed & arena.eligible & arena.match_affinity(constraints) if hold else 0
    if not unread:
        return ""
    return f"nobody knows the metrics of {', '.join(arena.fleet.names[i] for i in arena.fleet.members(unread)[:3])}"


def _mark_failed(memory: SchedulingStatus, message: str) -> SchedulingStatus:
    return memory._replace(state="FAILED", reason={"code": names.NO_SUITABLE_RESOURCE, "message": message})


_NAME_NUMBERS = 10_000


def generate_cluster_name(identity: str, taken: Collection[str]) -> str:
    """`cluster-` and four digits: the first free one from a number that the application's identity gives; five digits where none is."""
    first = int.from_bytes(sha256(identity.encode()).digest()[:8], "big") % _NAME_NUMBERS
    numbers = (f"cluster-{(first + step) % _NAME_NUMBERS:04}" for step in range(_NAME_NUMBERS))
    return next((name for name in numbers if name not in taken), f"cluster-{_NAME_NUMBERS + len(taken)}")


def make_cluster_document(application: Document, name: str) -> Document:
    """The document of a cluster for an application: it wants of its cloud what the application wants of its cluster."""
    wanted = get_field(application.body, "spec", "constraints", "cluster") or {}
    cloud = {part: wanted[part] for part in ("labels", "metrics") if wanted.get(part)}
    group, kind = names.CLUSTER
    body: Body = {
        "api": group,
        "kind": kind,
        "metadata": {"name": name, "namespace": application.key.namespace, "inherit_labels": True},
        "spec": {"auto_generated": True, "inherit_metrics": True, "constraints": {"cloud": cloud}},
    }
    return Document(Key(group, kind, application.key.namespace, name), group, body)
