"""Leave withheld changes out of a plan: their workloads keep the records and manifests of the previous output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import SharedDecisions
from gitsched.apis.stateful_holds import make_held_finding
from gitsched.decide.decisions import DecisionSet
from gitsched.decide.engines import keep_records
from gitsched.decide.guard.large_changes import add_moves
from gitsched.decide.kept_outcomes import keep_outcomes
from gitsched.decide.registry import policy_apis
from gitsched.decide.removals import RemovedPlacement
from gitsched.decide.variants.variant_outcomes import read_kept_paths
from gitsched.model.changes import Move, WithheldChanges
from gitsched.model.document import Body, Document, Key
from gitsched.model.finding import Finding, format_count, format_names
from gitsched.model.scheduling import WITHHELD_REASON, Outcome, TargetCluster
from gitsched.model.time import format_duration, format_time
from gitsched.model.variants import BUNDLE_KIND

if TYPE_CHECKING:
    from gitsched.apis.gitsched.guard_config import GuardConfig
    from gitsched.apis.policy_api import PolicyEngine

MAX_NAMED_WORKLOADS = 5
"""The maximum number of workloads that the message about withheld changes lists."""


def extend_to_followers(
    withheld: WithheldChanges, moves: Iterable[Move], engines: Iterable[PolicyEngine], templates: Mapping[Key, Document]
) -> WithheldChanges:
    """Return the withheld changes with those of all workloads that follow the same decision, such as that of a Placement.

    A decision has one record, which cannot have changed for some of its workloads only.
    """
    sharing = [engine for engine in engines if isinstance(engine, SharedDecisions)]
    if not sharing or not withheld.moves:
        return withheld
    followed = {move.key: frozenset(_list_shared_records(templates.get(move.key), sharing)) for move in moves}
    keys = {move.key for move in withheld.moves}
    pending = set().union(*(followed.get(key, frozenset()) for key in keys))
    while pending:
        added = {key for key, found in followed.items() if key not in keys and found & pending}
        pending = set().union(*(followed[key] for key in added)) - pending
        keys |= added
    if len(keys) == len(withheld.moves):
        return withheld
    return add_moves(withheld, (move for move in moves if move.key in keys))


def _list_shared_records(document: Document | None, engines: Iterable[SharedDecisions]) -> dict[Key, frozenset[Key]]:
    """Return the decisions that a workload follows together with others, each with the keys of its records."""
    found: dict[Key, frozenset[Key]] = {}
    if document is not None:
        for engine in engines:
            found |= engine.list_shared_records(document)
    return found


def list_kept_records(documents: Iterable[Document | None], engines: Iterable[PolicyEngine]) -> frozenset[Key]:
    """Return the keys of the records that stay as they were, because workloads with withheld changes follow the decisions."""
    sharing = [engine for engine in engines if isinstance(engine, SharedDecisions)]
    found = (records for document in documents for records in _list_shared_records(document, sharing).values())
    return frozenset[Key]().union(*found) if sharing else frozenset()


def withhold(
    decisions: DecisionSet,
    withheld: WithheldChanges,
    removed: Mapping[Key, RemovedPlacement],
    previous: Mapping[Key, Body],
    source_time: datetime,
) -> DecisionSet:
    """Return the decisions with the previous placement of each workload whose change is withheld, and of what depends on it.

    `removed` are the workloads that no API places now, `previous` the records of the previous output.
    """
    assert decisions.input is not None, "these are all decisions about a commit"
    kept: dict[Key, Outcome] = {}
    wakeups: dict[Key, datetime] = {}
    for move in withheld.kept:
        outcome = decisions.outcomes.get(move.key)
        if outcome is not None:
            wakeups |= {move.key: outcome.wakeup} if outcome.wakeup is not None else {}
            kept[move.key] = keep_placement(outcome, decisions.templates.get(move.key), previous, source_time)
        elif move.key in removed:
            kept[move.key] = restore_placement(removed[move.key], previous, source_time)
    kept |= {key: restore_placement(removed[key], previous, source_time) for key in _list_required(kept, removed)}
    found = keep_outcomes(kept, decisions.engines, decisions.catalog.templates, decisions.input.make_snapshot(), decisions.findings)
    outcomes = {key: outcome for key, outcome in {**decisions.outcomes, **found.outcomes}.items() if outcome is not None}
    order = sorted(outcomes, key=lambda key: (key.namespace, key.name, key))
    documents = {key: decisions.catalog.templates.get(key) or Document(key, "", {}, None) for key in (*kept, *found.followers)}
    decisions = decisions._replace(
        outcomes={key: outcomes[key] for key in order},
        templates={**documents, **decisions.templates},
        quarantined=decisions.quarantined | kept.keys(),
        findings=found.findings,
        unstable=decisions.unstable | found.followers,
        withheld=frozenset(kept),
        withheld_wakeups=wakeups,
        followers=found.followers,
    )
    shared = list_kept_records(map(decisions.templates.get, kept), decisions.engines)
    return decisions._replace(engine_records=keep_records(found.records, shared, previous), kept_records=shared)


def _list_required(kept: Mapping[Key, Outcome], removed: Mapping[Key, RemovedPlacement]) -> list[Key]:
    """Return the removed objects that a workload brought along which keeps its placement."""
    records = {(key.namespace, key.name) for outcome in kept.values() for key, _ in outcome.records}
    found = (key for key, entry in removed.items() if key not in kept and not records.isdisjoint(entry.workload.required_by))
    return sorted(found)


def keep_placement(outcome: Outcome, document: Document | None, previous: Mapping[Key, Body], source_time: datetime) -> Outcome:
    """Return the outcome of a workload that keeps its previous clusters, manifests and records. A held one is held with its previous
    replicas."""
    targets = tuple(target._replace(keeps_manifest=True, edits=(), body=None) for target in outcome.previous_targets)
    records = tuple((key, previous[key]) for key, _ in outcome.records if key in previous)
    read = policy_apis[outcome.api].read_removed_workload
    recorded = [found for _, body in records if read is not None and (found := read(body)) is not None]
    objects = tuple(key for workload in recorded for key in workload.objects or ())
    kept = outcome._replace(
        state="stale", targets=targets, records=records, reason=WITHHELD_REASON, time=source_time, wakeup=None, trigger=""
    )
    if outcome.held is not None and document is not None:
        held = outcome.held._replace(clusters=outcome.previous_replicas)
        former, present = (make_held_finding(document, one) for one in (outcome.held, held))
        kept = kept._replace(held=held, findings=tuple(present if one == former else one for one in kept.findings))
    return kept if outcome.manifests is None else kept._replace(manifests=(), previous_objects=objects)


def restore_placement(removed: RemovedPlacement, previous: Mapping[Key, Body], source_time: datetime) -> Outcome:
    """Return the outcome of a workload that is no longer in the source or selected, from its previous record."""
    workload, is_whole = removed.workload, removed.workload.key[:2] == BUNDLE_KIND
    bundle = previous.get(workload.key) if is_whole else None
    targets = tuple(TargetCluster(cluster, replicas, keeps_manifest=True) for cluster, replicas in workload.replicas.items())
    return Outcome(
        key=workload.key,
        api=removed.api,
        state="stale",
        policy="",
        group="",
        targets=targets,
        replicas=None,
        records=(removed.record, *([(workload.key, bundle)] if bundle is not None else [])),
        reason=WITHHELD_REASON,
        time=source_time,
        previous_targets=targets,
        manifests=None if workload.objects is None else (),
        previous_objects=workload.objects or (),
        bundles=(workload.key,) if is_whole else (),
        kept_paths=read_kept_paths(bundle),
    )


def make_withheld_findings(withheld: WithheldChanges, config: GuardConfig) -> list[Finding]:
    """Return what is said about withheld changes, and about moves that wait."""
    findings = [make_withheld_finding(withheld)] if withheld.moves else []
    return [*findings, *([_make_waiting_finding(withheld, config)] if withheld.waiting else [])]


def _make_waiting_finding(withheld: WithheldChanges, config: GuardConfig) -> Finding:
    """Return the note that says which moves wait for a later period, and until when."""
    waiting, until = withheld.waiting, withheld.next_period
    names = format_names([str(move.key) for move in waiting], MAX_NAMED_WORKLOADS)
    start = format_time(until) if until is not None else "the next run"
    message = (
        f"{format_count(len(waiting), 'workload waits', 'workloads wait')} to move ({names}): observations alone cause this, and the guard "
        f"limits how many decisions do so in {format_duration(config.period)}; the next move from {start} on. To let more move at a time, "
        "raise spec.guard.movedPerPeriod in gitsched.yaml"
    )
    return Finding("info", "moves-waiting", message)


def make_withheld_finding(withheld: WithheldChanges) -> Finding:
    """Return the error that says which limits are exceeded, and how to make exactly these changes."""
    why = [f"placements are frozen ({withheld.freeze})"] if withheld.freeze else []
    why += list(map(str, withheld.limits[:MAX_NAMED_WORKLOADS]))
    if len(withheld.limits) > MAX_NAMED_WORKLOADS:
        why.append(f"{format_count(len(withheld.limits) - MAX_NAMED_WORKLOADS, 'more limit')} exceeded")
    names = format_names([str(move.key) for move in withheld.moves], MAX_NAMED_WORKLOADS)
    message = (
        f"The changes of {format_count(len(withheld.moves), 'workload')} are withheld ({names}): {'; '.join(why)}. "
        f"{'' if withheld.freeze or withheld.is_doubted else 'If they are a mistake, correct it or revert the commit. '}"
        f"If they are intended, {withheld.allowance}"
    )
    return Finding("error", "changes-withheld", message)
