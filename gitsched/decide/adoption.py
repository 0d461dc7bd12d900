"""Adopt a running fleet: make the output that has everything where it runs, and say what the next run would change.

The records are those that a hub has, completed from where objects run. Two plans are made from them: one that decides, whose moves are
reported, and one in which everything is fixed, which becomes the output.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator

from gitsched.apis.adoption import Adopting
from gitsched.decide.decisions import DecisionSet, decide
from gitsched.decide.incremental.plan_state import PreviousOutput
from gitsched.decide.plan import make_plan
from gitsched.decide.plan_input import PlanInput
from gitsched.decide.plan_result import Plan
from gitsched.decide.recorded_decisions import compare_recorded, describe_previous
from gitsched.decide.registry import apis_by_group
from gitsched.decide.relations.object_queries import is_delivered
from gitsched.model.adoption import AdoptedObject, AdoptedRecord, Adoption, ClusterReplicas, RunningObjects
from gitsched.model.changes import RecordChange
from gitsched.model.document import Body, Key
from gitsched.model.finding import Finding, format_names
from gitsched.model.scheduling import Outcome, RecordTarget
from gitsched.model.variants import BUNDLE_KIND
from gitsched.named_tuples import NamedTuple
from gitsched.render.format_versions import mark_unrecorded
from gitsched.render.output_files import escape_segment

UNKNOWN_REASON = "it is not known where it runs"
DEPENDENT_REASON = "it is not known where the workloads run that it belongs to"
_NAMESPACE = ("", "Namespace")
"""Delivered with the objects in it, and never deleted, so that nobody needs to select it."""


class AdoptionPlan(NamedTuple):
    """What is adopted, the plan of the output with everything where it runs, and the plan of the next run."""

    adoption: Adoption
    output: Plan
    following: Plan
    findings: tuple[Finding, ...]


def plan_adoption(source: PlanInput, running: RunningObjects) -> AdoptionPlan:
    """Plan the adoption of what runs. Objects that an earlier run placed, or adopted with complete information, keep their records."""
    decisions = _decide(source)
    records = list(_list_records(source, decisions, running))
    held = {name: why for name, why in source.adopted.items() if name not in {str(record.subject) for record in records}}
    made_from = source._replace(previous=_add_records(source.previous, records, decisions.cluster_facts), adopted=held)
    known, free = _add_clusters(running, decisions), make_plan(made_from)
    adoption = _compare(records, free, made_from.previous, known)
    holds = {**held, **adoption.holds}
    following = free
    if adoption.holds:  # what depends on a held object stays as well
        following = make_plan(made_from._replace(adopted=holds))
        others = _compare(records, following, made_from.previous, known, holds)
        unknown = sorted((*adoption.unknown, *others.unknown), key=lambda one: one.key)
        adoption = others._replace(held=adoption.held, unknown=tuple(unknown))
        holds |= adoption.holds
    adoption = adoption._replace(excluded=tuple(_list_excluded(records, decisions, following, adoption)))
    changes = adoption.moving or adoption.holds or adoption.new
    output = make_plan(made_from._replace(fixed=True, adopted=holds)) if changes else following
    return AdoptionPlan(adoption, output, following, tuple(_list_findings(records, decisions, running, following, adoption)))


def _decide(source: PlanInput) -> DecisionSet:
    tree = source.source
    return decide(
        tree.documents,
        source.previous.records,
        tree.config,
        *source.times,
        None,
        source.observations,
        kustomized=tree.kustomized,
        variants=tree.variants,
        tenancy=tree.tenancy,
    )


def _add_clusters(running: RunningObjects, decisions: DecisionSet) -> RunningObjects:
    """Return the running objects with the APIs that directories and clusters make complete or partial: those that no hub is known of."""
    known = running.complete | running.partial
    others = frozenset(engine.name for engine in decisions.engines if isinstance(engine, Adopting)) - known
    if not running.has_clusters:
        return running
    if decisions.cluster_facts.keys() <= running.observed:
        return running._replace(complete=running.complete | others | running.partial, partial=frozenset())
    return running._replace(partial=running.partial | others)


def _list_records(source: PlanInput, decisions: DecisionSet, running: RunningObjects) -> Iterator[AdoptedRecord]:
    """Yield the records that policy APIs make, without those of objects that an earlier run placed."""
    running, existing = _add_clusters(running, decisions), source.previous.records
    for engine in decisions.engines:
        if isinstance(engine, Adopting):
            selected = [decisions.templates[key] for key, outcome in decisions.outcomes.items() if outcome.api == engine.name]
            for record in engine.adopt(selected, running):
                outcome = decisions.outcomes.get(record.subject)
                is_placed = record.key in existing if outcome is None else bool(outcome.previous_targets) and record.key in existing
                if not is_placed or str(record.subject) in source.adopted:
                    lost = sorted(record.clusters.keys() - decisions.cluster_facts.keys())
                    missing = (
                        (f"{format_names(lost)} {'has' if len(lost) == 1 else 'have'} no document in the source",) if lost else ()
                    )
                    yield record._replace(missing=(*record.missing, *missing))


def _add_records(previous: PreviousOutput, records: Iterable[AdoptedRecord], clusters: Iterable[str]) -> PreviousOutput:
    """Return the previous output with the records of what runs."""
    added: dict[Key, Body] = {
        record.key: mark_unrecorded(record.body) if record.clusters and not any(record.clusters.values()) else record.body
        for record in records
    }
    return previous._replace(
        records={**dict(previous.records), **added},
        list_other_records=lambda keys: previous.list_other_records([*keys, *added]),
        clusters=previous.clusters | {escape_segment(name) for name in clusters},
    )


def _compare(
    records: Iterable[AdoptedRecord],
    plan: Plan,
    previous: PreviousOutput,
    running: RunningObjects,
    omitted: Container[str] = (),
) -> Adoption:
    """Return what the next plan would change, without the `omitted` objects, by key as text."""
    by_subject = {record.subject: record for record in records}
    moves = {move.key: move for move in plan.moves}
    groups: dict[str, list[AdoptedObject]] = {name: [] for name in ("moving", "held", "unknown", "new")}
    in_place = 0
    for key, outcome in plan.outcomes.items():
        if str(key) in omitted:
            continue
        record, move = by_subject.get(key), moves.get(key)
        if record is not None:
            before = _find_running(key, record, plan, running)
            if move is None or _is_same(key, before, outcome, plan) or (outcome.held is not None and not record.missing):
                in_place += 1  # a workload with data stays until it is released, as in any run
            elif not outcome.policy and outcome.api in running.partial and move.after.keys() < move.before.keys():
                groups["unknown"].append(AdoptedObject(key, before, move.after, DEPENDENT_REASON))
            else:
                reason = "; ".join(record.missing) or move.reason
                groups["held" if record.missing else "moving"].append(AdoptedObject(key, before, move.after, reason))
        elif outcome.previous_targets and move is None:
            in_place += 1
        elif outcome.previous_targets and move is not None:  # an earlier run placed it
            groups["moving"].append(AdoptedObject(key, move.before, move.after, move.reason))
        elif outcome.api in running.partial and not any(name in running.records for name, _ in outcome.records):
            groups["unknown"].append(AdoptedObject(key, after=outcome.replicas_by_cluster, reason=UNKNOWN_REASON))
        elif outcome.targets:
            groups["new"].append(AdoptedObject(key, after=outcome.replicas_by_cluster, reason=outcome.reason))
    for change in compare_recorded(describe_previous(previous.records), plan.totals.engines.recorded):
        if change.subject in plan.outcomes or str(change.subject) in omitted:
            continue
        record = by_subject.get(change.subject)
        one = AdoptedObject(
            change.subject, _list_targets(change.before), _list_targets(change.after), _describe_change(change, record)
        )
        has_gaps = bool(record is not None and record.missing)
        is_unknown = not change.before and (has_gaps or (change.api in running.partial and change.subject not in running.records))
        one = one._replace(reason=UNKNOWN_REASON) if is_unknown and not has_gaps else one
        name = "unknown" if is_unknown else "held" if has_gaps else "moving" if change.before else "new"
        groups[name].append(one)
    unselected, foreign = _list_others(plan, running)
    moving, kept, unknown, new = (tuple(sorted(found, key=lambda one: one.key)) for found in groups.values())
    return Adoption(in_place, moving, kept, unknown, new, unselected, foreign)


def _list_excluded(
    records: Iterable[AdoptedRecord], decisions: DecisionSet, plan: Plan, adoption: Adoption
) -> Iterator[AdoptedObject]:
    """Yield the objects that stay in a cluster which their policies exclude; `decisions` are those about new objects."""
    engines = {engine.name: engine for engine in plan.decisions.engines}
    others = {one.key for one in (*adoption.moving, *adoption.held, *adoption.unknown)}
    for record in sorted(records, key=lambda one: one.subject):
        fresh, outcome = decisions.outcomes.get(record.subject), plan.outcomes.get(record.subject)
        if (
            fresh is None
            or outcome is None
            or record.subject in others
            or not record.clusters.keys() - fresh.replicas_by_cluster.keys()
        ):
            continue
        candidates = engines[outcome.api].evaluate_candidates(decisions.templates[record.subject])
        reasons = [
            f"{one.name}: {one.reason}" for one in candidates if not one.eligible and one.name in outcome.replicas_by_cluster
        ]
        if reasons:
            yield AdoptedObject(record.subject, record.clusters, fresh.replicas_by_cluster, "; ".join(reasons))


def _find_running(key: Key, record: AdoptedRecord, plan: Plan, running: RunningObjects) -> ClusterReplicas:
    """Return where a workload runs. The record of one with variants has what its policy counts, which is not what runs."""
    return running.clusters.get(key, record.clusters) if key in plan.decisions.variants else record.clusters


def _is_same(key: Key, before: ClusterReplicas, outcome: Outcome, plan: Plan) -> bool:
    """Return whether a workload with variants runs where its policy places it. The record of a Bundle, which says where it was, is written
    with the first output."""
    after = outcome.replicas_by_cluster
    return before.keys() == after.keys() if key[:2] == BUNDLE_KIND else key in plan.decisions.variants and before == after


def _describe_change(change: RecordChange, record: AdoptedRecord | None) -> str:
    missing = record.missing if record is not None else ()
    return "; ".join(missing) or change.reason or f"its rules choose another {change.target_kind} now"


def _list_targets(targets: Iterable[RecordTarget]) -> dict[str, int | None]:
    return {target.name: target.amount for target in targets}


def _list_others(plan: Plan, running: RunningObjects) -> tuple[tuple[AdoptedObject, ...], tuple[AdoptedObject, ...]]:
    """Return the running objects that no policy selects, and those that the source does not have."""
    assert plan.details is not None, "only a complete plan has all objects"
    decisions, relations = plan.decisions, plan.details.relations.database
    catalog = decisions.catalog
    known = {*catalog.templates, *catalog.duplicate_templates, *catalog.broken, *decisions.kustomized}
    known |= {one.key for found in decisions.variants.values() for variant in found.variants for one in variant.objects}
    unselected: list[AdoptedObject] = []
    foreign: list[AdoptedObject] = []
    for key, clusters in sorted(running.clusters.items()):
        if key not in plan.outcomes and not is_delivered(relations, key) and key[:2] != _NAMESPACE:
            (unselected if key in known else foreign).append(AdoptedObject(key, clusters))
    return tuple(unselected), tuple(foreign)


def _list_findings(
    records: Iterable[AdoptedRecord], decisions: DecisionSet, running: RunningObjects, plan: Plan, adoption: Adoption
) -> Iterator[Finding]:
    """Yield findings about clusters that run objects and have no document, and about APIs of which some objects may be missing."""
    used: dict[str, int] = {}
    for record in records:
        for cluster in record.clusters:
            if cluster not in decisions.cluster_facts:
                used[cluster] = used.get(cluster, 0) + 1
    for cluster, count in sorted(used.items()):
        message = (
            f"cluster {cluster} runs {count} of the adopted objects and has no document in the source: they stay there, and gitsched "
            "writes no manifest for it; add its document and adopt again"
        )
        yield Finding("error", "adopt-cluster-missing", message, None, ("Cluster", "", cluster))
    groups = {key: outcome.api for key, outcome in plan.outcomes.items()}
    names = Counter(groups.get(one.key) or apis_by_group[one.key.group].name for one in adoption.unknown)
    unread = sorted(decisions.cluster_facts.keys() - running.observed) if running.has_clusters else []
    what = f"clusters without information: {format_names(unread)}" if unread else "the dumps do not have all of its decisions"
    for name, count in sorted(names.items()):
        objects = f"{count} objects of {name} run" if count > 1 else f"1 object of {name} runs"
        message = (
            f"it is not known where {objects} ({what}), so nothing is placed for {'them' if count > 1 else 'it'}; adopt again with a "
            f"complete dump, or pass --not-running {name} if nothing else of it runs"
        )
        yield Finding("warning", "adopt-incomplete", message)
