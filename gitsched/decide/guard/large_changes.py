"""Find changes that look like a mistake: too many workloads that are removed or move, too many replicas that are lost or added.

Each change of a placed workload counts for the workload, its namespace, the clusters that it leaves, and the fleet. A move away from
clusters that their API reports as unavailable is failover, and never counts, unless only reported facts make most clusters unavailable.
A workload that returns to clusters where its copies still run, as after a revert, counts only for the replicas that it loses.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from hashlib import sha256
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import AvailabilityReporting
from gitsched.apis.gitsched.guard_config import MIN_PERCENT_SIZE, MIN_SCOPE_SIZE, GuardConfig
from gitsched.apis.policy_api import PolicyEngine
from gitsched.decide.engines import collect_unavailable_clusters
from gitsched.decide.guard.scope_sizes import PlacedWorkload, ScopeSizes, count_replicas, list_scopes
from gitsched.model.changes import NOTHING_WITHHELD, ExceededLimit, GuardEffect, GuardScope, Move, RetainedCopy, WithheldChanges
from gitsched.model.document import Key
from gitsched.model.scheduling import weigh_replicas
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.gitsched.tenancy import Tenancy
    from gitsched.decide.guard.change_owners import ChangeOwners, FindOwner

_DIGEST_LENGTH = 16
_SCOPES: tuple[GuardScope, ...] = ("fleet", "namespace", "cluster", "workload")


class _Change(NamedTuple):
    """An amount by which a move counts against one limit: `name` is the namespace, cluster or workload."""

    scope: GuardScope
    name: str
    effect: GuardEffect
    amount: int


class GuardedMoves(NamedTuple):
    """The moves of placed workloads, by key: those that the guard counts, and failover. `reported` are the clusters that are unavailable
    only by reported facts, `cluster_count` is the number of all clusters. Of the `limited` workloads, whose moves are limited by period,
    only added and lost replicas count, and of the `returning` ones, which copies of an overlap replace, only lost ones. `unavailable` are
    the clusters that workloads have to leave, with the reason."""

    counted: tuple[Move, ...]
    failover: tuple[Move, ...] = ()
    reported: frozenset[str] = frozenset()
    cluster_count: int = 0
    limited: frozenset[Key] = frozenset()
    returning: frozenset[Key] = frozenset()
    unavailable: Mapping[str, str] = {}

    @property
    def every(self) -> tuple[Move, ...]:
        """All moves of placed workloads."""
        return (*self.counted, *self.failover)

    @property
    def following(self) -> tuple[Move, ...]:
        """The moves of workloads that leave a cluster because of reported facts, also where they leave others as well."""
        return tuple(move for move in self.every if _list_left(move) & self.reported)

    @property
    def is_guarded(self) -> bool:
        """Whether the guard may withhold a move."""
        return bool(self.counted) or bool(self.following)


def list_guarded_moves(moves: Iterable[Move], engines: Iterable[PolicyEngine], cluster_count: int = 0) -> GuardedMoves:
    """Divide the moves of placed workloads into those that the guard counts, and failover."""
    placed = sorted((move for move in moves if move.before), key=lambda move: move.key)
    if not placed:
        return GuardedMoves(())
    reporting = [engine for engine in engines if isinstance(engine, AvailabilityReporting)]
    unavailable = collect_unavailable_clusters(reporting)
    counted: list[Move] = []
    failover: list[Move] = []
    for move in placed:
        (failover if is_failover(move, unavailable.keys()) else counted).append(move)
    reported = (
        frozenset(name for engine in reporting for name in engine.clusters_reported_unready()) if unavailable else frozenset()
    )
    return GuardedMoves(tuple(counted), tuple(failover), reported, cluster_count, unavailable=unavailable)


def find_returning(moves: Iterable[Move], retained: Iterable[RetainedCopy]) -> frozenset[Key]:
    """Return the workloads that go back to clusters where their `retained` copies still run, and that get no more replicas anywhere than
    run there."""
    running: dict[Key, dict[str, int]] = {}
    for copy in retained:
        running.setdefault(copy.workload, {})[copy.cluster] = weigh_replicas(copy.replicas)

    def returns(move: Move) -> bool:
        copies = running[move.key]
        present = {**{name: weigh_replicas(count) for name, count in move.before.items()}, **copies}
        goes_back = not copies.keys().isdisjoint(move.after.keys() - move.before.keys())
        return goes_back and all(weigh_replicas(count) <= present.get(name, 0) for name, count in move.after.items())

    return frozenset(move.key for move in moves if move.key in running and returns(move))


def _list_left(move: Move) -> frozenset[str]:
    """Return the clusters that a workload leaves."""
    return frozenset(move.before.keys() - move.after.keys())


def is_failover(move: Move, unavailable: Set[str]) -> bool:
    """Return whether a workload leaves only unavailable clusters, and has a cluster afterwards."""
    left = _list_left(move)
    return bool(move.after) and bool(left) and left <= unavailable


def find_withheld_changes(
    guarded: GuardedMoves,
    placed: Iterable[PlacedWorkload],
    config: GuardConfig,
    tenancy: Tenancy | None = None,
    find_former: FindOwner | None = None,
) -> WithheldChanges:
    """Return the changes that exceed a limit. `placed` are the workloads of the previous output, `tenancy` says whose they are, and
    `find_former` whose those were that are gone.

    While placements are frozen, all counted moves are withheld. What follows facts that look like those of a collector that has stopped is
    withheld, whatever else moves with it.
    """
    moving = {move.key for move in guarded.every}
    placed = tuple(one._replace(stays=False) if one.stays and one.key in moving else one for one in placed)
    suspected, following = _suspect_facts(guarded, placed, config)
    withheld = _find_counted(guarded, placed, config, tenancy, find_former)
    if suspected is None:
        return withheld._replace(unavailable=guarded.unavailable) if withheld.moves else withheld
    moves = tuple(sorted({move.key: move for move in (*withheld.moves, *following)}.values(), key=lambda move: move.key))
    freeze, limits = config.freeze if withheld.moves else "", (suspected, *withheld.limits)
    doubted, unavailable = guarded.reported, guarded.unavailable
    return WithheldChanges(moves, limits, compute_digest(moves), freeze, unavailable=unavailable, doubted=doubted)


def _suspect_facts(
    guarded: GuardedMoves, placed: tuple[PlacedWorkload, ...], config: GuardConfig
) -> tuple[ExceededLimit | None, tuple[Move, ...]]:
    """Return the exceeded limit if facts alone make too many clusters unready, of all clusters and of those with workloads that may move,
    and the moves that follow. In a fleet of few clusters, workloads that no other cluster can take leave all the same."""
    percent, following = config.limits.get("fleet", {}).get("clustersUnready"), guarded.following
    if percent is None or percent >= 100 or not following:
        return None, ()
    busy = {cluster for workload in placed if not workload.stays for cluster in workload.replicas}
    unready, known = guarded.reported, max(guarded.cluster_count, len(busy | guarded.reported))
    if known <= MIN_SCOPE_SIZE:
        following = tuple(move for move in following if move.after)
    if not following or 100 * len(unready) <= percent * known or 100 * len(unready & busy) <= percent * len(busy):
        return None, ()
    return ExceededLimit("fleet", "", "clustersUnready", len(unready), known, percent), following


def _find_counted(
    guarded: GuardedMoves,
    placed: tuple[PlacedWorkload, ...],
    config: GuardConfig,
    tenancy: Tenancy | None,
    find_former: FindOwner | None,
) -> WithheldChanges:
    """Return the counted moves that exceed a limit. Of the owners that share a scope, those that do not cause it pass."""
    changes = [(move, list(_list_guarded_changes(move, guarded))) for move in guarded.counted]
    if not changes:
        return NOTHING_WITHHELD
    amounts: Counter[tuple[GuardScope, str, GuardEffect]] = Counter()
    for entry in (entry for _, entries in changes for entry in entries):
        amounts[entry[:3]] += entry.amount
    sizes = ScopeSizes(placed)
    limits = {
        measured: exceeded for measured, amount in amounts.items() if (exceeded := _check_limit(*measured, amount, sizes, config))
    }
    if not limits and not config.freeze:
        return NOTHING_WITHHELD
    from gitsched.decide.guard.change_owners import ChangeOwners  # few changes exceed a limit

    owners = ChangeOwners(tenancy, find_former)
    limits = _find_exceeding_owners(changes, limits, placed, owners)

    def is_withheld(move: Move, entries: list[_Change]) -> bool:
        exceeded = [limits[entry[:3]] for entry in entries if entry.amount and entry[:3] in limits]
        return any(not limit.owners or owners.name_owner(move.key) in limit.owners for limit in exceeded)

    withheld = tuple(move for move, entries in changes if config.freeze or is_withheld(move, entries))
    if not withheld:
        return NOTHING_WITHHELD
    order = sorted(limits.values(), key=lambda limit: (_SCOPES.index(limit.scope), limit.name, limit.effect))
    return WithheldChanges(withheld, tuple(order), compute_digest(withheld), config.freeze)


def _find_exceeding_owners(
    changes: list[tuple[Move, list[_Change]]],
    limits: dict[tuple[GuardScope, str, GuardEffect], ExceededLimit],
    placed: tuple[PlacedWorkload, ...],
    owners: ChangeOwners,
) -> dict[tuple[GuardScope, str, GuardEffect], ExceededLimit]:
    """Return the limits with the owners whose changes are withheld, where those of others pass."""
    amounts: dict[tuple[GuardScope, str, GuardEffect], Counter[str]] = {measured: Counter() for measured in limits}
    for move, entries in changes:
        for entry in entries:
            if entry.amount and entry[:3] in amounts:
                amounts[entry[:3]][owners.name_owner(move.key)] += entry.amount
    shared = {measured: found for measured, found in amounts.items() if len(found) > 1}
    if not shared:
        return limits
    from gitsched.decide.guard.change_owners import choose_withheld_owners  # only where several owners share a scope

    by_owner: dict[str, list[PlacedWorkload]] = {}
    for workload in placed:
        by_owner.setdefault(owners.name_owner(workload.key), []).append(workload)
    sizes, each = ScopeSizes(placed), {owner: ScopeSizes(found) for owner, found in by_owner.items()}
    found_limits = dict(limits)
    for measured, found in shared.items():
        limit = limits[measured]
        owned = {owner: each[owner].measure(*measured, amount) for owner, amount in found.items()}
        chosen = choose_withheld_owners(owned, limit.size, sizes.measure(*measured, limit.amount).workloads, limit.percent)
        if len(chosen) < len(owned):
            found_limits[measured] = limit._replace(owners=tuple(sorted(chosen)))
    return found_limits


def _list_guarded_changes(move: Move, guarded: GuardedMoves) -> Iterator[_Change]:
    """Yield what a move counts for. One back to copies that still run adds nothing, and only takes replicas away."""
    returns = move.key in guarded.returning
    changes = _list_changes(move, is_limited=returns or move.key in guarded.limited)
    yield from (change for change in changes if not returns or change.effect == "replicasLost")


def _list_changes(move: Move, *, is_limited: bool = False) -> Iterator[_Change]:
    """Yield what a move counts for. A workload that leaves a cluster counts as removed from it, wherever it goes, unless its move
    `is_limited` by period."""
    scopes, left = list_scopes(move.key), sorted(move.before.keys() - move.after.keys())
    if not move.after:
        yield from (_Change(scope, name, "removed", 1) for scope, name in scopes[:2])
    elif left and not is_limited:
        yield from (_Change(scope, name, "moved", 1) for scope, name in scopes[:2])
    if not is_limited:
        yield from (_Change("cluster", cluster, "removed", 1) for cluster in left)
    if move.after:
        before, after = map(count_replicas, (move.before, move.after))
        effect: GuardEffect = "replicasLost" if after < before else "replicasAdded"
        yield from (_Change(scope, name, effect, abs(after - before)) for scope, name in scopes if after != before)


def _check_limit(
    scope: GuardScope, name: str, effect: GuardEffect, amount: int, sizes: ScopeSizes, config: GuardConfig
) -> ExceededLimit | None:
    """Return the limit that an amount exceeds; None if it exceeds none."""
    percent = config.limits.get(scope, {}).get(effect)
    if percent is None:
        return None
    _, size, workloads, staying = sizes.measure(scope, name, effect, amount)
    if (size if scope == "workload" else workloads) > MIN_PERCENT_SIZE:
        exceeded = 100 * amount > percent * size
    else:
        exceeded = effect == "removed" and scope != "cluster" and MIN_SCOPE_SIZE < size <= amount and percent < 100
    return ExceededLimit(scope, name, effect, amount, size, percent, staying=staying) if exceeded else None


def add_moves(withheld: WithheldChanges, added: Iterable[Move]) -> WithheldChanges:
    """Return the withheld changes with more moves, each workload once."""
    moves = tuple(sorted({move.key: move for move in (*withheld.moves, *added)}.values(), key=lambda move: move.key))
    return withheld._replace(moves=moves, digest=compute_digest(moves))


def compute_digest(moves: Iterable[Move]) -> str:
    """Return hex digits that identify changes: each workload with its clusters and replicas before and after."""
    lines = [[*move.key, sorted(move.before.items()), sorted(move.after.items())] for move in moves]
    return sha256(json.dumps(lines, separators=(",", ":")).encode()).hexdigest()[:_DIGEST_LENGTH]


def may_exceed_limit(
    guarded: GuardedMoves, workloads: int, replicas: int, config: GuardConfig, count: Callable[[GuardScope, str], int]
) -> bool:
    """Return whether changes may exceed a limit, given at least the number of workloads and at most that of replicas before the changes,
    without workloads that stay as they are.

    `count` returns at most the number of workloads of the fleet, a namespace or a cluster that have been placed. For replicas the least
    number counts to which a limit applies, so `find_withheld_changes` has the last word.
    """
    if guarded.following:
        return True
    if config.freeze and guarded.counted:
        return True
    changes = [change for move in guarded.counted for change in _list_changes(move) if change.amount]
    amounts: Counter[tuple[GuardScope, str, GuardEffect]] = Counter()
    for change in changes:
        # Replicas that a limit counts may be few even in a large scope, so those of all scopes of a kind are added up.
        name = change.name if change.effect in ("removed", "moved") else ""
        amounts[change.scope, name, change.effect] += change.amount
    for (scope, name, effect), amount in amounts.items():
        if effect == "removed" and scope != "cluster" and amount > MIN_SCOPE_SIZE and count(scope, name) <= MIN_PERCENT_SIZE:
            return True  # it may be so small that only the removal of everything counts
        percent = config.limits.get(scope, {}).get(effect)
        if percent is None or (scope == "fleet" and workloads <= MIN_PERCENT_SIZE):
            continue
        size = count(scope, name) if effect in ("removed", "moved") else replicas if scope == "fleet" else 0
        # A limit applies to nothing smaller; one of replicas does so for each workload.
        least = 1 if effect not in ("removed", "moved") and scope != "workload" else MIN_PERCENT_SIZE + 1
        if 100 * amount > percent * max(size, least):
            return True
    return False
