"""Describe what workloads with a reserve lack after losses, and what ends it: sentences for findings, and the documented JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gitsched.model.finding import choose_form, format_count, format_names, format_part
from gitsched.model.preferred_clusters import PREFERRED_CLUSTERS
from gitsched.model.quantity import describe_amount
from gitsched.model.reserve import (
    ANY_TWO,
    AddedCapacity,
    Amounts,
    ReserveCheck,
    ReserveMove,
    ReserveRemedy,
    ReserveShortage,
    Shortage,
)
from gitsched.report.lines import format_clusters, format_key, serialize_clusters


def describe_shortages(shortages: Sequence[ReserveShortage]) -> str:
    """Return what one workload lacks after its worst loss, and the numbers of other losses, as a clause."""
    worst, *others = shortages
    reason = worst.after.reason.rstrip(".")
    also = [f"{one.loss} {format_shortage(one.after)} (before: {format_shortage(one.before)})" for one in others]
    parts = [
        f"if {_describe_loss(worst)}, {_describe_shortage(worst.after)} (before: {format_shortage(worst.before)})",
        f": {reason}" if reason else "",
        f"; without {format_names(also)}" if also else "",
    ]
    return "".join(parts)


def _describe_loss(shortage: ReserveShortage) -> str:
    return f"{shortage.loss} {'is' if len(shortage.loss.names) == 1 else 'are'} lost"


def _describe_shortage(shortage: Shortage) -> str:
    requested = format_amounts({name: amount for name, amount in shortage.requests.items() if name != "pods"})
    if not shortage.missing:
        return "no cluster is left for it"
    total = shortage.missing if shortage.replicas is None else max(shortage.replicas, shortage.missing)
    missing = format_part(shortage.missing, total, "replica", "has no place", "have no place")
    return missing + (f", which {choose_form(shortage.missing, 'requests', 'request')} {requested}" if requested else "")


def format_shortage(shortage: Shortage) -> str:
    """Return how many replicas are missing, or "unplaced" for a workload without replicas."""
    return "unplaced" if shortage.unplaced and not shortage.missing else str(shortage.missing)


def format_amounts(amounts: Amounts) -> str:
    """Return amounts such as "cpu 500m, memory 2Gi"."""
    return ", ".join(f"{name} {describe_amount(name, amount)}" for name, amount in sorted(amounts.items()))


def describe_known(shortages: Sequence[ReserveShortage]) -> str:
    """Return what workloads lack that the change does not make larger, as a clause."""
    entries = [f"{format_key(one.key)} {format_shortage(one.after)} if {_describe_loss(one)}" for one in shortages]
    workloads = len({one.key for one in shortages})
    verb = choose_form(workloads, "lacks", "lack")
    return f"{format_count(workloads, 'workload')} {verb} replicas after losses that a reserve is for: {format_names(entries)}"


def describe_unavailable(kind: str, number: int) -> str:
    """Return why a reserve for a kind of loss cannot be had, in a fleet with so many clusters, zones or regions."""
    pairs = kind == ANY_TWO
    noun = "cluster" if pairs else kind
    if not number:
        return f"a reserve is for the loss of a {noun}, and no cluster has one: name it in the documents of the clusters"
    left = "there are no two to lose" if pairs and number == 1 else "no cluster is left after the loss"
    lost = kind if pairs else f"a {noun}"
    return f"a reserve is for the loss of {lost}, and the fleet has {format_count(number, noun)}: {left}; add clusters elsewhere"


def describe_remedy(check: ReserveCheck) -> str:
    """Return what ends the shortages that a change makes larger, or that nothing was found, as sentences without the last full stop."""
    tried = format_count(check.attempts, "plan")
    remedy = check.remedy
    if remedy is None:
        more = ", and the search ended before all were tried" if check.is_partial else ""
        return (
            f"No move of one or two workloads, no capacity of one or two clusters and no cluster like another one ends this ({tried} "
            f"tried{more}): change replicas or policies, or add clusters that the workloads may run in"
        )
    more = "; the search ended before all were tried, so less may do" if check.is_partial else ""
    ends = _describe_moves(remedy) if remedy.moves else "; ".join(map(_describe_capacity, remedy.capacity))
    return f"To end this: {ends}. Planned with this, no shortage is larger than before ({tried} tried{more})"


def _describe_moves(remedy: ReserveRemedy) -> str:
    commands = [
        f"`gitsched rebalance{f' -n {move.key.namespace}' if move.key.namespace else ''} {move.key.kind}/{move.key.name} --write`"
        for move in remedy.moves
        if move.preferred is not None
    ]
    moves = "; ".join(map(_describe_move, remedy.moves))
    return f"move {moves}; request it with {' and '.join(commands)}"


def _describe_move(move: ReserveMove) -> str:
    follows = " (it follows)" if move.preferred is None else ""
    annotated = f" with the annotation {PREFERRED_CLUSTERS}: {move.preferred}" if move.preferred else ""
    return f"{format_key(move.key)} from {format_clusters(move.before)} to {format_clusters(move.after)}{annotated}{follows}"


def _describe_capacity(capacity: AddedCapacity) -> str:
    if capacity.added:
        return f"add a cluster like {capacity.cluster}, with its labels and capacity (planned as {capacity.added})"
    return f"give {capacity.cluster} {format_amounts(capacity.amounts)} more"


def serialize_reserve(check: ReserveCheck) -> dict[str, Any]:
    """Return the member `reserve` of a Plan: see docs/development/json.md."""
    return {
        "losses": check.losses,
        "notSimulated": check.skipped,
        "compared": check.is_compared,
        "unavailable": [{"lose": kind, "found": number} for kind, number in check.unavailable],
        "shortages": [_serialize_shortage(shortage) for shortage in check.shortages],
        "remedy": None if check.remedy is None else _serialize_remedy(check.remedy),
        "plansTried": check.attempts,
        "searchEnded": check.is_partial,
    }


def _serialize_shortage(shortage: ReserveShortage) -> dict[str, Any]:
    after, before = shortage.after, shortage.before
    return {
        "lose": shortage.loss.kind,
        "lost": list(shortage.loss.names),
        "workload": shortage.key._asdict(),
        "tenant": shortage.tenant,
        "replicas": after.replicas,
        "missing": after.missing,
        "unplaced": after.unplaced,
        "requests": {name: describe_amount(name, amount) for name, amount in sorted(after.requests.items())},
        "missingBefore": before.missing,
        "unplacedBefore": before.unplaced,
        "larger": shortage.is_larger,
        "why": after.reason,
    }


def _serialize_remedy(remedy: ReserveRemedy) -> dict[str, Any]:
    return {
        "moves": [
            {
                "workload": move.key._asdict(),
                "before": serialize_clusters(move.before),
                "after": serialize_clusters(move.after),
                "preferred": move.preferred,
            }
            for move in remedy.moves
        ],
        "capacity": [
            {
                "cluster": one.cluster,
                "add": {name: describe_amount(name, amount) for name, amount in sorted(one.amounts.items())},
                "newClusterLikeIt": one.added,
            }
            for one in remedy.capacity
        ],
        "documents": [request.body for request in remedy.requests],
    }
