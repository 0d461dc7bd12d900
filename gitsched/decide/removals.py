"""Workloads that the previous output placed and that no API places now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from gitsched.decide.delivered_replicas import restore_delivered
from gitsched.decide.registry import apis_by_group
from gitsched.decide.variants.built_parts import PartOwner, PartOwners, find_leaving_parts, make_part_move
from gitsched.model.changes import Move
from gitsched.model.document import Body, Key, parse_api_group
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.apis.policy_api import RemovedWorkload
    from gitsched.decide.decisions import DecisionSet
    from gitsched.decide.incremental.plan_state import PreviousOutput
    from gitsched.model.finding import Finding

REMOVED_REASON = "removed from the source"
UNSELECTED_REASON = "no longer selected by a policy"
INDEPENDENT_REASON = "no longer attached to a workload"
INTENDED_REASONS = frozenset((REMOVED_REASON, INDEPENDENT_REASON))
"""Why workloads leave all of their clusters as the source asks for."""


class RemovedPlacement(NamedTuple):
    """A removed workload, the policy API that placed it, its previous record, and what builds it now; None if nothing does."""

    workload: RemovedWorkload
    api: str
    record: tuple[Key, Body]
    owner: PartOwner | None = None


def list_removed_placements(decisions: DecisionSet, previous: PreviousOutput, config: Config) -> dict[Key, RemovedPlacement]:
    """Return the removed workloads by key."""
    recorded = [key for outcome in decisions.outcomes.values() for key, _ in outcome.records]
    owners = PartOwners(decisions, config)
    removed = read_removed_placements(previous.list_other_records(recorded))
    return {key: found._replace(owner=owners.find(key)) for key, found in removed.items()}


def read_removed_placements(records: Iterable[Body]) -> dict[Key, RemovedPlacement]:
    """Return the workloads that some records belong to, by key in the order of the records."""
    placements = (found for record in records if (found := read_removed_placement(record)) is not None)
    return {found.workload.key: found for found in placements}


def read_removed_placement(record: Body) -> RemovedPlacement | None:
    """Return the workload that a record belongs to; None for a record without a placement."""
    group = parse_api_group(str(record.get("apiVersion") or record.get("api") or ""))
    api, metadata = apis_by_group.get(group), record.get("metadata")
    workload = api.read_removed_workload(record) if api is not None and api.read_removed_workload is not None else None
    if api is None or workload is None or not isinstance(metadata, dict):
        return None
    key = Key(group, str(record.get("kind")), str(metadata.get("namespace") or ""), str(metadata.get("name")))
    return RemovedPlacement(restore_delivered(workload, record), api.name, (key, record))


def list_removal_moves(
    removed: Iterable[RemovedPlacement], templates: Container[Key], kustomized: Mapping[Key, str]
) -> Iterator[Move]:
    """Yield the moves of removed workloads. One that is a part of a Bundle now, and that no cluster loses by that, does not move.

    `templates` are those of the source, and `kustomized` says what changes objects that are not placed.
    """
    for workload, _, _, owner in removed:
        if owner is not None:
            move = make_part_move(workload.key, workload.replicas, owner)
            if move is not None:
                yield move
            continue
        reason = REMOVED_REASON
        if workload.key in templates:
            reason = INDEPENDENT_REASON if workload.dependent else UNSELECTED_REASON
        elif workload.key in kustomized:
            reason = f"{UNSELECTED_REASON}, and {kustomized[workload.key]}"
        intended = reason in INTENDED_REASONS
        preserved = workload.preservation is not None
        if workload.preservation is not None:
            reason = f"{reason}; is kept in the cluster ({workload.preservation.field})"
        yield Move(workload.key, workload.replicas, {}, reason, intended=intended or preserved, preserved=preserved)


def find_lost_policy(move: Move, removed: Mapping[Key, RemovedPlacement]) -> Key | None:
    """Return the policy of an earlier run that does not select a workload of the source any more, which leaves all clusters by that."""
    entry = removed.get(move.key)
    return entry.workload.policy if entry is not None and not move.after and move.reason == UNSELECTED_REASON else None


def list_part_findings(removed: Iterable[RemovedPlacement]) -> Iterator[Finding]:
    """Yield the findings about removed workloads that leave clusters because something builds them now."""
    yield from find_leaving_parts(
        (workload.key, workload.replicas, owner) for workload, _, _, owner in removed if owner is not None
    )


def add_included_replicas(moves: Iterable[Move], removed: Iterable[RemovedPlacement]) -> Iterator[Move]:
    """Yield moves of workloads with the replicas that their clusters already have of workloads that are parts of them now."""
    included: dict[Key, Counter[str]] = {}
    for workload, _, _, owner in removed:
        for carrier, clusters in owner.carriers.items() if owner is not None else ():
            counts = included.setdefault(carrier, Counter())
            for cluster in clusters:
                counts[cluster] += workload.replicas.get(cluster) or 0
    for move in moves:
        found = included.get(move.key, Counter())
        new = {cluster: count for cluster, count in found.items() if cluster not in move.before and count}
        yield move._replace(included=new) if new else move
