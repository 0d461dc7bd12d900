"""Simulate a scenario on a plan: schedule again on the changed documents and list the effect on each workload."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from gitsched.apis.capabilities import InnerPlacementReporting
from gitsched.apis.policy_api import PolicyEngine
from gitsched.decide.catalog import Catalog
from gitsched.decide.decisions import describe_recorded
from gitsched.decide.engines import list_engine_records
from gitsched.decide.recorded_decisions import compare_recorded
from gitsched.model.changes import RecordChange
from gitsched.model.document import Document, Key, get_field, workload_sort_key
from gitsched.model.finding import FAILOVER_OFF
from gitsched.model.holds import HeldPlacement
from gitsched.model.scheduling import Outcome, add_replicas, total_replicas
from gitsched.model.simulation import Simulation, WorkloadEffect
from gitsched.named_tuples import NamedTuple
from gitsched.report.held import describe_hold
from gitsched.simulate.baseline import Baseline, ClusterEvent, KeptReplicas, SimulationResult, decide_changed_catalog
from gitsched.simulate.capacity_check import check_capacity
from gitsched.simulate.failure_domains import DomainIndex
from gitsched.simulate.scenario import ChangedCatalog, Scenario, apply_scenario, describe_scenario

_WITHHELD = "its change is withheld, so that nothing is decided about it until that is allowed or corrected"
ReplicasByWorkload = dict[Key, dict[str, int | None]]


def simulate(baseline: Baseline, scenario: Scenario, index: DomainIndex | None = None) -> Simulation:
    """Simulate a scenario on a plan. Raise Permanent if it refers to a missing cluster. `index` has the clusters of the plan, if the caller
    has one."""
    return describe_event(baseline, scenario, decide_event(baseline, scenario, index))


class DecidedEvent(NamedTuple):
    """The documents and decisions after an event, and the replicas by remaining cluster of what was decided again."""

    changed: ChangedCatalog
    after: SimulationResult
    placements: ReplicasByWorkload


def decide_event(baseline: Baseline, scenario: Scenario, index: DomainIndex | None = None) -> DecidedEvent:
    """Decide what an event can affect."""
    catalog, nodes = baseline.decisions.catalog, baseline.has_inner_placements
    changed = apply_scenario(catalog, scenario, baseline.config, baseline.time, nodes, index)
    is_other = bool(scenario.scale) or scenario.fresh
    event = ClusterEvent(frozenset((*changed.lost, *changed.drained)), bool(changed.added))
    after = decide_changed_catalog(baseline, changed.catalog, fresh=scenario.fresh, event=None if is_other else event)
    return DecidedEvent(
        changed, after, {key: _drop_lost(outcome.replicas_by_cluster, changed.lost) for key, outcome in after.outcomes.items()}
    )


def describe_event(baseline: Baseline, scenario: Scenario, decided: DecidedEvent) -> Simulation:
    """Return the effect of an event on each workload."""
    changed, after, placements = decided
    known = baseline.decisions.outcomes
    capacity = check_capacity(baseline, after, placements)
    for key in baseline.decisions.quarantined & known.keys():  # not scheduled until their documents are fixed
        placements[key] = _drop_lost(known[key].replicas_by_cluster, changed.lost)
    effects = []
    for key in sorted({*placements, *baseline.kept}, key=workload_sort_key):
        kept = baseline.kept.get(key)
        if key in placements and (kept is None or not kept.is_withheld):
            effect = _evaluate_workload(
                key, known.get(key), after.outcomes.get(key), placements[key], capacity.waiting.get(key, 0), changed.lost
            )
        else:
            effect = _evaluate_undecided(key, known.get(key), changed.lost)
        if kept is not None:
            effect = _add_kept(effect, kept, changed.lost)
        if effect.moves or effect.lost_replicas:
            effects.append(effect)
    inner = list(_evaluate_inner_placements(baseline, after, changed.lost))
    effects += [effect for effect in inner if effect.moves or effect.lost_replicas]
    recorded = describe_recorded(list_engine_records(after.engines), (after.outcomes[key] for key in after.own_workloads))
    domain = (
        scenario.lose[0]
        if scenario.lose and scenario == Scenario(lose=scenario.lose[:1], unreachable=scenario.unreachable)
        else None
    )
    return Simulation(
        event=describe_scenario(scenario),
        domain=domain,
        lost=changed.lost,
        drained=changed.drained,
        added=changed.added,
        partly_lost=changed.partly_lost,
        workloads=len(known) + sum(key not in known for key in after.outcomes) + len(inner) + baseline.others + baseline.gone_count,
        effects=tuple(effects),
        overloaded=capacity.overloaded,
        unknown_capacity=capacity.unknown_capacity,
        record_changes=tuple(_list_described(compare_recorded(baseline.decisions.recorded, recorded), changed.catalog, inner)),
        has_more_timers=after.has_more_timers,
        held=dict(_list_held(known, after.outcomes)),
        evicts=changed.evicts,
    )


def _list_held(before: Mapping[Key, Outcome], after: Mapping[Key, Outcome]) -> Iterator[tuple[Key, HeldPlacement]]:
    """Yield the workloads that are held after an event and not before."""
    for key, outcome in after.items():
        if outcome.held is not None and (key not in before or before[key].held is None):
            yield key, outcome.held


def _list_described(changes: Iterable[RecordChange], catalog: Catalog, inner: Iterable[WorkloadEffect]) -> Iterator[RecordChange]:
    """Yield the changes of records of documents that exist, without those whose effect is listed by itself."""
    listed = {effect.key for effect in inner}
    documents: Mapping[Key, Document] | None = None
    for change in changes:
        if documents is None:
            documents = catalog.api_documents_by_key
        if (change.subject in documents or change.subject in catalog.templates) and change.subject not in listed:
            yield change


def list_inner_placement_reporters(engines: Iterable[PolicyEngine]) -> list[InnerPlacementReporting]:
    """Return the engines that place pods inside a cluster."""
    return [engine for engine in engines if isinstance(engine, InnerPlacementReporting)]


def _evaluate_inner_placements(baseline: Baseline, after: SimulationResult, lost: Collection[str]) -> Iterator[WorkloadEffect]:
    """Yield effects on placements inside clusters, which stay bound to a lost node without running."""
    before = {
        key: load
        for engine in list_inner_placement_reporters(baseline.decisions.engines)
        for key, load in engine.inner_placements().items()
    }
    for key, load in (
        entry for engine in list_inner_placement_reporters(after.engines) for entry in engine.inner_placements().items()
    ):
        replicas_before: Mapping[str, int] = before[key].placed if key in before else {}
        replicas = {pod: count for pod, count in load.placed.items() if load.nodes.get(pod) not in lost}
        stopped = sum(load.placed.values()) - sum(replicas.values())
        short_before = max(before[key].desired - sum(replicas_before.values()), 0) if key in before else 0
        short = max(load.desired - sum(replicas.values()), 0)
        why = f"{stopped} of them stay on pods that are down until their node is back" if stopped else ""
        yield WorkloadEffect(
            key,
            dict(replicas_before),
            dict(replicas),
            load.desired,
            short,
            short_before,
            reason=why or ("the free capacity of the pods is too small for the rest" if short > short_before else ""),
            expected=_scale_replicas(replicas_before, before[key].desired if key in before else None, load.desired),
        )


def _drop_lost(shares: Mapping[str, int | None], lost: Collection[str]) -> dict[str, int | None]:
    return {name: count for name, count in shares.items() if name not in lost}


def _evaluate_workload(
    key: Key,
    before: Outcome | None,
    after: Outcome | None,
    placements: Mapping[str, int | None],
    waiting: int,
    lost: Collection[str],
) -> WorkloadEffect:
    now = after or before
    short, short_before = (
        _count_shortfall(after or before, placements),
        _count_shortfall(before, before.replicas_by_cluster) if before else 0,
    )
    lacking = short > short_before or (before is not None and bool(before.replicas_by_cluster) and not placements)
    return WorkloadEffect(
        key=key,
        before=before.replicas_by_cluster if before else {},
        after=placements,
        replicas=now.replicas if now else None,
        shortfall=short,
        shortfall_before=short_before,
        waiting=waiting,
        policy=now.policy if now else "",
        reason=_describe_cause(after, lost) if lacking else "",
        expected=_scale_replicas(before.replicas_by_cluster, before.replicas, now.replicas) if before and now else 0,
    )


def _evaluate_undecided(key: Key, before: Outcome | None, lost: Collection[str]) -> WorkloadEffect:
    """Return the effect on a workload that stays in the remaining clusters."""
    return _evaluate_workload(key, before, None, _drop_lost(before.replicas_by_cluster if before else {}, lost), 0, lost)


def _add_kept(effect: WorkloadEffect, kept: KeptReplicas, lost: Collection[str]) -> WorkloadEffect:
    """Return the effect on a workload of which clusters keep more than was decided. What is withheld stays undecided after the event."""
    decided = ({}, {}) if kept.is_withheld else (effect.before, effect.after)
    before, after = {**decided[0], **kept.replicas}, {**_drop_lost(kept.replicas, lost), **decided[1]}
    placed, left = (total_replicas(counts.values()) for counts in (before, after))
    if kept.is_withheld:
        return effect._replace(
            before=before,
            after=after,
            replicas=add_replicas(before.values()),
            shortfall=placed - left,
            shortfall_before=0,
            waiting=0,
            reason=_WITHHELD if before != after else "",
            expected=placed,
        )
    more = [max(total - total_replicas(counts.values()), 0) for total, counts in zip((placed, left), decided, strict=True)]
    return effect._replace(
        before=before,
        after=after,
        shortfall=max(effect.shortfall - more[1], 0),
        shortfall_before=max(effect.shortfall_before - more[0], 0),
        expected=max(effect.expected, placed),
    )


def _scale_replicas(placed: Mapping[str, int | None], wanted_before: int | None, wanted: int | None) -> int:
    """Return how many replicas would run in some clusters if the event only changed how many the source asks for."""
    total = total_replicas(placed.values())
    return total * wanted // wanted_before if wanted_before and wanted is not None and wanted != wanted_before else total


def _count_shortfall(outcome: Outcome | None, placements: Mapping[str, int | None]) -> int:
    """Return the number of unplaced replicas; a workload with undivided replicas has all or none."""
    if outcome is None or not outcome.replicas or not placements:
        return outcome.replicas or 0 if outcome is not None else 0
    if outcome.unassigned is None:
        return 0
    return outcome.unassigned + sum(count or 0 for name, count in outcome.replicas_by_cluster.items() if name not in placements)


_NO_FIT = re.compile(r"0/(\d+) clusters are available: (.*)\.", re.DOTALL)
_NO_FIT_COUNT = re.compile(r"(?:^|, )(\d+) cluster\(s\) ")


def _count_lost(message: str, lost: Collection[str]) -> str:
    """Return Karmada's reason with the number of lost clusters: it counts them among all, and says nothing about them."""
    found = _NO_FIT.fullmatch(message)
    if found is None:
        return message
    number = int(found[1]) - sum(map(int, _NO_FIT_COUNT.findall(found[2])))
    others = [found[2]] if found[2] != "no cluster exists" else []
    return f"0/{found[1]} clusters are available: {', '.join([f'{number} lost', *others])}." if 0 < number <= len(lost) else message


def _describe_cause(outcome: Outcome | None, lost: Collection[str]) -> str:
    """Return the reason for missing replicas as the policy API reports it."""
    if outcome is None:
        return "its document is broken or defined more than once, so it is not scheduled"
    if outcome.held is not None:
        return describe_hold(outcome.held)
    findings = {finding.code: finding for finding in outcome.findings}
    if skipped := findings.get("earlier-group-fits"):
        return skipped.message
    for _, body in outcome.records:
        for condition in get_field(body, "status", "conditions") or ():
            if condition.get("type") == "Scheduled" and condition.get("status") == "False":
                return _count_lost(str(condition.get("message") or condition.get("reason") or ""), lost)
    bound = sorted(outcome.replicas_by_cluster.keys() & set(lost))
    unevicted = findings.get(FAILOVER_OFF)
    if unevicted is not None and bound:
        return unevicted.message
    return f"it stays bound to {', '.join(bound)}: nothing triggers an eviction" if bound else outcome.reason
