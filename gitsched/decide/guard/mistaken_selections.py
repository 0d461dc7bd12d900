"""Withhold that workloads become unplaced because of a policy that probably no longer selects them by mistake, however few they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import NearSelecting
from gitsched.decide.guard.large_changes import add_moves
from gitsched.decide.removals import find_lost_policy
from gitsched.model.changes import Cause, ExceededLimit, Move, WithheldChanges

if TYPE_CHECKING:
    from gitsched.apis.gitsched.guard_config import GuardConfig
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.decide.removals import RemovedPlacement
    from gitsched.model.document import Key


def find_mistaken_selections(
    moves: Iterable[Move], removed: Mapping[Key, RemovedPlacement], engines: Iterable[PolicyEngine]
) -> dict[Key, Cause]:
    """Return the workloads that are still in the source and that their policy probably no longer selects by mistake; with what is wrong
    with the policy."""
    selecting = [engine for engine in engines if isinstance(engine, NearSelecting)]
    lost: dict[Key, list[Key]] = {}
    for move in moves:
        policy = find_lost_policy(move, removed)
        if policy is not None:
            lost.setdefault(policy, []).append(move.key)
    found: dict[Key, Cause] = {}
    for policy, workloads in lost.items():
        cause = next(filter(None, (engine.describe_lost_selection(policy, workloads) for engine in selecting)), None)
        if cause is not None:
            found |= dict.fromkeys(workloads, cause)
    return found


def add_mistaken_selections(
    withheld: WithheldChanges, moves: Iterable[Move], mistaken: Mapping[Key, Cause], config: GuardConfig
) -> WithheldChanges:
    """Return what is withheld with the moves of these workloads, and with what is wrong with their policies, unless the settings let a
    fleet lose everything."""
    percent = config.limits.get("fleet", {}).get("removed")
    lost = [move for move in moves if move.key in mistaken]
    if percent is None or percent >= 100 or not lost:
        return withheld
    causes = Counter(mistaken[move.key] for move in lost)
    order = sorted(causes.items(), key=lambda entry: str(entry[0]))
    limits = [ExceededLimit("policy", "", "unselected", count, count, 0, cause=cause) for cause, count in order]
    return add_moves(withheld, lost)._replace(limits=(*withheld.limits, *limits))
