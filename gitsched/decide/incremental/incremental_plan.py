"""Update the last plan where documents changed: decide again, render and record only what they affect.

What only a complete plan can tell (other settings, an object that is defined twice, a finding that others depend on, a limit of the guard)
requires one, which gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.registered import Registered
from gitsched.decide.catalog import is_template
from gitsched.decide.engines import collect_cluster_facts
from gitsched.decide.foreign_documents import changes_notes, list_foreign_kinds
from gitsched.decide.incremental.affected_workloads import TAKEN_PATH, decide_affected, render_affected, shares_capacity
from gitsched.decide.incremental.changed_clusters import update_cluster_rows
from gitsched.decide.incremental.changed_documents import NO_PARTS
from gitsched.decide.incremental.changed_namespaces import list_rows_with_objects, update_namespace_manifests
from gitsched.decide.incremental.changed_output import NO_COPY_PATHS, has_record_conflict, list_changed_files
from gitsched.decide.incremental.changed_parts import find_changed_parts
from gitsched.decide.incremental.continued_engines import ContinuedEngines, continue_engines
from gitsched.decide.incremental.incremental_changes import IncrementalChanges
from gitsched.decide.incremental.plan_contents import make_template_entry, make_workload_row
from gitsched.decide.incremental.plan_state import (
    NO_OUTPUT,
    ClusterRow,
    PlanRows,
    PlanTimes,
    StateChanges,
    StoredOutcomes,
    Totals,
    WorkloadRow,
)
from gitsched.decide.incremental.withheld_workloads import NO_RULES, GuardRules, check_guard
from gitsched.decide.plan import build_plan
from gitsched.decide.plan_result import Plan, mark_copies
from gitsched.decide.plan_totals import UPDATED_CODES, list_unclaimed, update_totals
from gitsched.decide.policies_without_effect import update_policies_without_effect
from gitsched.decide.registry import reserved_groups
from gitsched.decide.relations.located_findings import mark_withheld
from gitsched.decide.rendered_tree import BlobLookup, RenderCache
from gitsched.decide.workload_decision import is_unchanged
from gitsched.model.changes import NOTHING_RETAINED, CopyRetention
from gitsched.model.errors import NeedsCompletePlan
from gitsched.model.rollouts import NOTHING_ROLLED_OUT, ROLLOUT_KIND
from gitsched.named_tuples import NamedTuple
from gitsched.render.output_files import escape_segment

if TYPE_CHECKING:
    from datetime import datetime

    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.apis.snapshot import Snapshot
    from gitsched.decide.incremental.changed_documents import SourceDiff
    from gitsched.decide.incremental.changed_moves import ChangedMoves
    from gitsched.decide.relations.located_findings import LocatedFinding
    from gitsched.decide.relations.plan_relations import FactChanges, PlanRelations
    from gitsched.decide.tenants.tenant_amounts import Amounts
    from gitsched.model.document import Document, Key
    from gitsched.model.finding import Finding
    from gitsched.model.rollouts import RolloutInput
    from gitsched.model.scheduling import Outcome
    from gitsched.model.template_index import TemplateEntry

_ABOUT_CHANGES = "a finding about something that was not decided again is about a changed file"
_ADD_CHANGED_ROLLOUTS = Registered("gitsched.decide.incremental.continued_rollouts", "add_changed_rollouts")
_CONTINUE_ROLLOUTS = Registered("gitsched.decide.incremental.continued_rollouts", "continue_rollouts")


class PlanState(NamedTuple):
    """The state that an earlier plan left: its totals, its rows and its engines, which are read on demand. `kinds` are the kinds of the
    documents of policy APIs. `guard` is what limits the changes of the run, and `rollouts` what Rollouts read; None without any."""

    totals: Totals
    rows: PlanRows
    kinds: tuple[tuple[str, str], ...] = ()
    guard: GuardRules = NO_RULES
    rollouts: RolloutInput | None = None

    @property
    def engines(self) -> tuple[PolicyEngine, ...]:
        return self.rows.engines


class IncrementalPlan(NamedTuple):
    """A plan that holds only changes, the changes of the plan state, what was `decided` again, and the relations of all objects."""

    plan: Plan
    totals: Totals
    changes: StateChanges
    decided: IncrementalChanges
    relations: PlanRelations


def make_incremental_plan(
    state: PlanState, diff: SourceDiff, snapshot: Snapshot, find_blob: BlobLookup, cache: RenderCache, limit: int
) -> IncrementalPlan:
    """Make the next plan from the state of the last one. Raise NeedsCompletePlan if a complete plan is needed, also to decide more than
    `limit` workloads."""
    totals, rows = state.totals, state.rows
    _check_findings(totals, diff, snapshot)
    in_progress = state.rollouts is not None and bool(state.rollouts.records)
    is_idle = not in_progress and _is_idle(totals, diff, snapshot)
    idle = _make_idle_changes(state, diff, snapshot) if is_idle else None
    decide = _prepare(state, diff, snapshot, find_blob, limit) if idle is None else lambda _: idle
    guarded = check_guard(decide, state.guard)
    moves, changes = guarded.moves, render_affected(guarded.changes, find_blob, cache)
    if _keeps_findings_about_changes(changes):
        raise NeedsCompletePlan(_ABOUT_CHANGES)
    if has_record_conflict(changes, find_blob):
        raise NeedsCompletePlan("two workloads write the same record")
    part_findings = find_changed_parts(changes) if diff.parts != NO_PARTS else ()
    if not is_idle and (changes.own or totals.engines.own):
        from gitsched.decide.incremental.own_objects import have_taken_paths  # few sources have such workloads

        if have_taken_paths(changes):
            raise NeedsCompletePlan(TAKEN_PATH)
    relations = _update_relations(changes, state.rollouts, is_idle=is_idle)
    retention = _keep_copies(totals) if is_idle else _retain_copies(changes, moves, find_blob)
    retiring = _list_retiring(changes, retention)
    rollouts, continued, all_moves = NOTHING_ROLLED_OUT, None, moves.moves
    completed: Mapping[Key, Outcome] = {}
    if state.rollouts is not None:
        from gitsched.decide.rollouts.waiting_replicas import count_step, list_completed  # few sources have Rollouts

        continued = _CONTINUE_ROLLOUTS(changes, state.rollouts, moves.moves, retention, find_blob, relations.relations)
        rollouts = continued.result
        completed = list_completed(rollouts, changes.outcomes)
        counted = {**changes.outcomes, **rollouts.counted}
        all_moves = count_step(all_moves, rollouts, counted, changes.had_workloads)
        changes = changes._replace(workloads=continued.workloads, outcomes=counted)
    copies = NO_COPY_PATHS
    if not is_idle and (totals.retained or retention.copies):
        from gitsched.decide.incremental.changed_copies import list_copy_paths  # few plans retain copies

        copies = list_copy_paths(changes, retention, retiring, find_blob)
    amounts: Mapping[Key, Amounts] = {}
    if totals.owners and not is_idle:
        from gitsched.decide.incremental.changed_tenants import measure_changes  # few sources have tenants

        amounts = measure_changes(changes)
    workload_rows = _list_workload_rows(changes, amounts)
    decided_rows = {key: workload_rows[key] for key in (*changes.outcomes, *changes.removed)}
    cluster_rows = update_cluster_rows(rows, decided_rows, changes.continued.clusters, copies)
    new = update_totals(changes, cluster_rows, None if is_idle else retention.findings, part_findings)._replace(
        namespace_manifests=update_namespace_manifests(totals, rows, diff.templates, cluster_rows.values(), changes.withheld.moves),
        relation_findings=relations.findings,
        retiring=retiring,
        retained=retention.copies,
        has_settled_copies=retention.is_settled and bool(retention.copies),  # else a state without copies would be written again
        withheld=changes.withheld,
        withheld_wakeups=changes.withheld_wakeups,
    )
    if guarded.withheld.moves and not state.guard.withholds:
        new = new._replace(relation_findings=mark_withheld(relations.findings, guarded.withheld))
    if continued is not None:
        new = new._replace(other_findings=continued.update_findings(new.other_findings))
    wakeups = totals.engines.wakeups or ()
    if not is_idle:
        new = new._replace(other_findings=update_policies_without_effect(new.other_findings, changes, guarded.withheld))
        own = (outcome for key, outcome in changes.outcomes.items() if key in changes.own)
        has_news = any(finding.is_change for finding in new.engines.findings) or not all(
            is_unchanged(one, snapshot.previous) for one in own
        )
        wakeups = tuple(engine.wakeup for engine in changes.continued.engines if engine.wakeup is not None)
        new = new._replace(engines=new.engines._replace(wakeups=None if has_news else wakeups))
    if totals.adopted:
        from gitsched.decide.incremental.changed_adoption import update_adopted_holds  # only after a partial adoption

        new = new._replace(other_findings=update_adopted_holds(changes, moves.moves, new.other_findings))
    changed: dict[Key, Outcome | None] = {**dict.fromkeys(changes.removed), **changes.outcomes}
    with_namespaces = dict[str, ClusterRow]()
    namespaces: Collection[Key] = diff.templates.keys()
    if diff.tenants is not None:
        from gitsched.decide.incremental.changed_tenants import list_namespaces  # few commits change Tenants

        namespaces = frozenset((*namespaces, *list_namespaces(totals, diff.tenants, snapshot)))
        new = new._replace(trusted_tenants=snapshot.tenancy.paths.unsettled if snapshot.tenancy is not None else None)
    if new.namespace_manifests is not totals.namespace_manifests or diff.tenants is not None:
        clusters = (*collect_cluster_facts(changes.continued.engines), *retiring)
        with_namespaces = list_rows_with_objects(rows, clusters, namespaces)
    findings = (*guarded.findings, *(diff.tenants.findings if diff.tenants is not None else ()))
    plan = build_plan(
        new._replace(other_findings=(*new.other_findings, *findings)) if findings else new,
        StoredOutcomes(rows, new.overview.workload_count, changed),
        changes.outcomes.values(),
        mark_copies(all_moves, totals.retained),
        {**dict(list_changed_files(changes, new, {**with_namespaces, **cluster_rows}, copies)), **rollouts.files},
        wakeups=(*wakeups, *rollouts.wakeups, *(copy.until for copy in new.retained if copy.until is not None)),
        deadlines=(*rollouts.events, *(copy.until for copy in retention.ended if copy.until is not None)),
    )._replace(
        rollouts=rollouts.statuses,
        rollout_records=rollouts.records,
        completed=completed,
        withheld=guarded.withheld,
        guard=state.guard.given.make_record(totals.config.guard, guarded.withheld, holds=bool(new.held)),
        ended=retention.ended,
        adopted=totals.adopted,
    )
    state_changes = _list_state_changes(changes, workload_rows, cluster_rows, relations.facts)
    return IncrementalPlan(plan, new, state_changes, changes, relations.relations)


class _Relations(NamedTuple):
    """The relations of all objects, what has changed of their facts, None if nothing has, and the findings."""

    relations: PlanRelations
    facts: FactChanges | None
    findings: tuple[LocatedFinding, ...]


def _update_relations(changes: IncrementalChanges, rollouts: RolloutInput | None, *, is_idle: bool) -> _Relations:
    """Return where related objects go now, and what Rollouts select."""
    before, findings = changes.rows.relations, changes.totals.relation_findings
    if is_idle and changes.diff.settings is None:
        return _Relations(before, None, findings)
    from gitsched.decide.incremental.changed_facts import continue_findings, list_changed_facts  # not for an idle run

    facts, relations = list_changed_facts(changes), before.fork()
    if rollouts is not None:
        facts = _ADD_CHANGED_ROLLOUTS(facts, changes)
    relations.assign(facts, changes.totals.config)
    return _Relations(relations, facts, continue_findings(relations, facts, findings, changes))


def _check_findings(totals: Totals, diff: SourceDiff, snapshot: Snapshot) -> None:
    """Raise NeedsCompletePlan unless the changed files and the time leave everything in force that an incremental plan keeps."""
    if any(held.lost for held in totals.held.values()):
        raise NeedsCompletePlan("a workload stays in a cluster without a document")
    if snapshot.at < totals.source_time:
        raise NeedsCompletePlan("the commit is older than the one of the last plan")
    updated: Container[str] = UPDATED_CODES
    if any(key[:2] == ROLLOUT_KIND for key in diff.api_documents):
        from gitsched.decide.rollouts.rollout_findings import STEP_CODES  # few commits change Rollouts

        updated = STEP_CODES.union(UPDATED_CODES)
    other = (finding for finding in totals.other_findings if finding.code not in updated and finding not in diff.parts.reported)
    if any(_is_about(finding, diff.findings) for finding in other):
        raise NeedsCompletePlan(_ABOUT_CHANGES)


def _is_idle(totals: Totals, diff: SourceDiff, snapshot: Snapshot) -> bool:
    """Return whether the engines have accepted the same documents and output before, and no time has come for them to check again, nor for
    a retained copy to go. A workload that was decided otherwise than recorded is in `diff`, so the output is the one that the engines know.
    """
    if diff.documents or diff.api_documents or diff.findings or diff.tenants or snapshot.observations or totals.withheld.moves:
        return False
    if snapshot.at != totals.source_time or totals.engines.wakeups is None or diff.parts != NO_PARTS:
        return False
    if totals.retained and not totals.has_settled_copies:
        return False
    if any(wakeup <= snapshot.now for key, wakeup in totals.wakeups.items() if key in totals.engines.own):
        return False
    ends = (copy.until for copy in totals.retained if copy.until is not None)
    return all(time > snapshot.now for time in (*totals.engines.wakeups, *ends))


def _make_idle_changes(state: PlanState, diff: SourceDiff, snapshot: Snapshot) -> IncrementalChanges:
    """Return that nothing changes. No engine is read."""
    totals = state.totals
    continued = ContinuedEngines((), frozenset(), totals.engines.findings, totals.engines.records, totals.engines.recorded)
    return IncrementalChanges(totals, state.rows, diff, snapshot, continued, {}, {}, {}, {}, totals.unstable)


def _prepare(
    state: PlanState, diff: SourceDiff, snapshot: Snapshot, find_blob: BlobLookup, limit: int
) -> Callable[[frozenset[Key]], IncrementalChanges]:
    """Continue the engines, and return what decides the workloads that the changes affect, and others."""
    if state.totals.owners:
        from gitsched.decide.incremental.changed_tenants import may_continue_tenants  # few sources have tenants

        if not may_continue_tenants(state.totals, state.rows, diff, snapshot):
            raise NeedsCompletePlan("a change may concern other tenants, or the rules of one")
    continued = continue_engines(state.totals, state.rows, diff, snapshot, state.kinds)
    if continued is None:
        raise NeedsCompletePlan("an engine cannot tell what the changed documents affect")
    if not continued.is_new and any(_is_about(one, diff.findings) for one in continued.findings):
        raise NeedsCompletePlan(_ABOUT_CHANGES)
    withheld = state.totals.withheld
    is_decided = state.guard.allows(withheld) or shares_capacity(state.totals, continued)  # what is not placed is divided again
    again = [move.key for move in withheld.moves] if is_decided else []
    if diff.tenants is not None and snapshot.tenancy is not None:
        from gitsched.decide.incremental.changed_tenants import list_concerned  # few commits change Tenants

        again += list_concerned(state.rows, diff.tenants, snapshot.tenancy)
    if state.rollouts is not None and state.rollouts.records:
        from gitsched.decide.incremental.continued_rollouts import list_waiting  # few rollouts are in progress

        again += list_waiting(state.rollouts, state.totals, diff, snapshot)

    def decide(others: frozenset[Key]) -> IncrementalChanges:
        changes = decide_affected(state.totals, state.rows, diff, snapshot, continued, limit, (*again, *sorted(others)))
        if changes.totals.source.kind_scopes and _changes_foreign_notes(changes):
            raise NeedsCompletePlan("notes about documents of other tools change")
        if snapshot.tenancy is None:
            return changes
        from gitsched.decide.tenants.left_clusters import drop_left_clusters  # few sources have tenants

        kept = drop_left_clusters(
            changes.outcomes, snapshot.tenancy, snapshot.documents, snapshot.previous, find_blob, state.totals.retained
        )
        return changes._replace(outcomes=kept)

    return decide


def _keeps_findings_about_changes(changes: IncrementalChanges) -> bool:
    """Return whether a finding about a workload that was not decided again is about a changed file, unless its template is gone."""
    by_workload, diff = changes.totals.findings_by_workload, changes.diff
    pairs = (*diff.templates.items(), *diff.api_documents.items())
    gone = {one for key, (_, after) in pairs if after is None for one in by_workload.get(key, ())}
    others = (finding for key, group in by_workload.items() if key not in changes.documents for finding in group)
    return any(_is_about(finding, diff.findings) and finding not in gone for finding in others)


def _is_about(finding: Finding, paths: Container[str]) -> bool:
    """Return whether the location of a finding, or of the rule that it is about, is in one of these files."""
    by_rule = finding.field is not None and finding.field.origin.path in paths
    return by_rule or (finding.location is not None and finding.location.path in paths)


def _changes_foreign_notes(changes: IncrementalChanges) -> bool:
    """Return whether the notes about documents of other tools may be others now."""
    kinds = list_foreign_kinds(changes.totals.source.kind_scopes)
    return bool(kinds) and changes_notes(list_unclaimed(changes), changes.templates, kinds)


def _keep_copies(totals: Totals) -> CopyRetention:
    """Return the copies of the last plan, which stay where nothing moves and no end passes."""
    return CopyRetention(totals.retained, is_settled=True)


def _retain_copies(changes: IncrementalChanges, moves: ChangedMoves, find_blob: BlobLookup) -> CopyRetention:
    """Return the copies that stay for an overlap. Raise NeedsCompletePlan if only a complete plan can tell."""
    from gitsched.decide.incremental.changed_copies import may_lack_replicas, retain_changed_copies  # few changes move anything
    from gitsched.decide.overlap.retention_input import list_leaving  # as above

    totals = changes.totals
    if may_lack_replicas(changes, moves.moves):
        raise NeedsCompletePlan("a cluster may keep a manifest with fewer replicas than were decided")
    leaving, moving = list_leaving(changes.outcomes.values()), any(move.before for move in moves.moves)
    evicting = any(target.evicting for outcome in changes.outcomes.values() for target in outcome.targets)
    if not (totals.retained or leaving or (moving and (evicting or totals.config.output.overlap.duration))):
        return NOTHING_RETAINED
    own = changes.own | totals.engines.own
    if not own.isdisjoint((*(move.key for move in moves.moves), *(copy.workload for copy in totals.retained))):
        raise NeedsCompletePlan("a workload that a policy API decides itself moves")
    return retain_changed_copies(changes, moves, leaving, find_blob)


def _list_retiring(changes: IncrementalChanges, retention: CopyRetention) -> Mapping[str, datetime]:
    """Return the clusters that retire, and since when."""
    totals, clusters, snapshot = changes.totals, changes.continued.clusters, changes.snapshot
    gone = [name for name, facts in clusters.items() if facts is None]
    if any(name in totals.retiring for name in clusters) or any(escape_segment(name) != name for name in gone):
        raise NeedsCompletePlan("a cluster that retires changes")
    if not gone and not totals.retiring:
        return totals.retiring
    from gitsched.decide.overlap.retiring_clusters import list_retiring_clusters  # few clusters lose their document

    previous = NO_OUTPUT._replace(retiring=totals.retiring, retained=totals.retained)
    times = PlanTimes(snapshot.at, snapshot.now)
    retiring, ended = list_retiring_clusters({*totals.retiring, *gone}, previous, retention.copies, times, totals.config.output)
    if ended:
        raise NeedsCompletePlan("the directory of a cluster is removed")
    return retiring


def _list_workload_rows(changes: IncrementalChanges, amounts: Mapping[Key, Amounts]) -> dict[Key, WorkloadRow | None]:
    """Return the rows of workloads that were decided again or removed; None for removed ones."""
    changed: dict[Key, WorkloadRow | None] = {
        key: make_workload_row(files, _read_source_path(changes.documents[key]), amounts.get(key))
        for key, files in changes.workloads.items()
    }
    return changed | dict.fromkeys(changes.removed)


def _read_source_path(document: Document) -> str:
    return document.origin.path if document.origin else ""


def _list_state_changes(
    changes: IncrementalChanges,
    workload_rows: Mapping[Key, WorkloadRow | None],
    cluster_rows: Mapping[str, ClusterRow | None],
    facts: FactChanges | None,
) -> StateChanges:
    """Return what changes in the rows of the plan state."""
    diff, index, continued = changes.diff, changes.rows.template_index, changes.continued
    templates: dict[Key, TemplateEntry | None] = dict.fromkeys(key for key, (_, after) in diff.templates.items() if after is None)
    restored = changes.restored
    for key, document in changes.documents.items():
        if key in restored or not is_template(*key[:2], reserved_groups):
            continue  # the index has no objects of policy APIs, which these decide themselves
        entry = make_template_entry(document, changes.outcomes.get(key))
        if index.get(key) != entry:
            templates[key] = entry
    kinds = {key[:2] for key in diff.stored_documents}
    return StateChanges(
        workload_rows,
        cluster_rows,
        templates,
        facts,
        {kind: changes.snapshot.documents.get(kind, ()) for kind in kinds},
        continued.engines if continued.is_new else None,
        diff.added_paths,
        diff.removed_paths,
    )
