"""Find from the state of the last run which workloads keep their clusters because of scheduling history: see `gitsched.diff.retained`.

Only what the changed documents may place otherwise is scheduled without previous decisions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import SelectionTracking, SnapshotChanges
from gitsched.apis.gitsched.tenancy import TenantPaths
from gitsched.apis.snapshot import Snapshot
from gitsched.decide.catalog import Catalog
from gitsched.decide.decisions import DecisionSet, make_holds_loader
from gitsched.decide.engines import create_engine
from gitsched.decide.incremental.plan_contents import update_template_index
from gitsched.decide.named_templates import NamedTemplates
from gitsched.decide.registry import policy_apis, reserved_groups
from gitsched.decide.workload_decision import TWO_CLAIMS, decide_workload
from gitsched.diff.retained import find_retained as compare_schedules
from gitsched.kinds.persistent_data import is_claim
from gitsched.model.document import Document, Key, workload_sort_key
from gitsched.model.errors import NeedsCompletePlan
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.cache.plan_cache import LazyDocuments
from gitsched.reconcile.incremental.planned_records import list_planned_records
from gitsched.reconcile.incremental.source_diff import find_owners, merge_documents
from gitsched.reconcile.output.output_records import open_records
from gitsched.reconcile.review.compared_plans import ComparedInputs
from gitsched.simulate.baseline import Baseline
from gitsched.simulate.simulated_capacity import PlannedUse, add_copies

if TYPE_CHECKING:
    from gitsched.apis.capabilities import DocumentPair
    from gitsched.apis.gitsched.tenancy import Tenancy
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.decide.incremental.changed_documents import ChangedTenants
    from gitsched.model.changes import RetainedWorkload
    from gitsched.model.commit import Commit
    from gitsched.model.scheduling import Outcome
    from gitsched.model.template_index import TemplateIndex
    from gitsched.reconcile.review.compared_plans import PlannedCommit
    from gitsched.reconcile.run import RunContext, StateUpdate

ApiDocuments = Mapping[tuple[str, str], tuple[Document, ...]]


def find_retained(
    context: RunContext,
    inputs: ComparedInputs,
    changes: Mapping[Key, DocumentPair],
    later: Commit,
    planned: PlannedCommit,
    update: StateUpdate,
) -> tuple[RetainedWorkload, ...]:
    """Return what complete plans of both commits give (see `gitsched.diff.retained`). Raise NeedsCompletePlan where only these can tell it.

    `changes` are the documents that differ with the same facts, `planned` is the incremental plan of the commit `later`, and `update` what
    that changes.
    """
    now, plan = context.settings.now, planned.run.plan
    changed_content = {key: pair for key, pair in changes.items() if _differ_in_content(*pair)}
    policies = {key: pair for key, pair in changed_content.items() if key.group in reserved_groups}
    edits = {key: pair for key, pair in changed_content.items() if key not in policies}
    if not policies:
        return ()
    decided = inputs.read_decided()
    documents = _read_documents(update)
    known = merge_documents(documents, {key: (new, old) for key, (old, new) in policies.items()})
    templates, former = NamedTemplates(decided.templates), NamedTemplates(decided.templates, {k: v[0] for k, v in edits.items()})
    deciding = [engine for engine in decided.engines if engine.decides_templates]
    tracking = [engine for engine in deciding if isinstance(engine, SelectionTracking)]
    decided_plan = update.incremental.decided
    tenancy, since_run = decided_plan.snapshot.tenancy, {**decided_plan.diff.templates, **decided_plan.diff.api_documents}

    rules = _list_rules(tenancy, decided_plan.diff.tenants) if tenancy is not None else (None, None)
    other_owners = rules[0].paths.list_changed_owners(rules[1].paths) if rules[0] and rules[1] else frozenset[str]()

    def schedule(source: ApiDocuments, named: NamedTemplates, tenancy: Tenancy | None) -> _FirstSchedule:
        time, config = min(later.time, now), plan.totals.config
        holds = make_holds_loader(named) if config.guard.hold_stateful else None
        owners = find_owners(tenancy, update.cache, source, {**since_run, **edits, **policies})
        snapshot = Snapshot(source, named, frozenset(), {}, config, time, now, plan.observations, load_holds=holds, tenancy=owners)
        engines = {engine.name: made for engine in tracking if (made := create_engine(policy_apis[engine.name], snapshot))}
        if len(engines) < len(tracking):
            raise NeedsCompletePlan("an engine has nothing to decide")
        return _FirstSchedule(snapshot, engines)

    before, after = schedule(known, former, rules[0]), schedule(documents, templates, rules[1])
    changed = update.incremental.changes.templates
    index = update_template_index(update.cache.template_index, changed)
    found = {*changed, *edits}
    for engine in deciding:
        if policy_apis[engine.name].groups.isdisjoint(key.group for key in policies) and not other_owners:
            continue
        if not isinstance(engine, SelectionTracking):
            raise NeedsCompletePlan(f"{engine.name} cannot tell what it may place otherwise")
        difference = SnapshotChanges(policies, edits, index, decided.outcomes.get)
        difference = difference._replace(former_tenancy=rules[0]) if other_owners else difference
        selectable = engine.list_selectable(before.engines[engine.name], after.engines[engine.name], difference)
        if selectable is None:
            raise NeedsCompletePlan("decisions depend on those about other objects")
        found |= selectable
    if tenancy is not None and other_owners:
        found |= {key for key, entry in index.items() if tenancy.paths.find_owner(entry.path) in other_owners}
    together = frozenset[Key]().union(*(_list_limited(one, index, found) for one in rules if one is not None))
    found |= together
    kept = {key: one for key in found if (one := decided.outcomes.get(key)) is not None and one.state == "placed" and one.policy}
    placed = {key: kept[key] for key in sorted(kept, key=workload_sort_key)}
    if not placed:
        return ()
    if any(finding.code == TWO_CLAIMS for finding in plan.findings):
        raise NeedsCompletePlan("an API decides about a template that a policy of another one selects")
    if len(tracking) < len(deciding):
        raise NeedsCompletePlan("many workloads may keep their clusters, or other policy APIs may decide about them")

    def make_baseline(keys: Collection[Key]) -> Baseline:
        if any(map(is_claim, keys)):
            raise NeedsCompletePlan("any workload may mount a claim")
        partial = decided.decide_some(inputs.changes.after, keys)
        listed = NamedTemplates(decided.templates, listed=tuple(keys))
        catalog = Catalog(documents, listed, {}, {}, {}, {}, {}, ())
        decisions = DecisionSet(catalog, partial.engines, partial.outcomes, listed, frozenset(), (), frozenset(), tenancy=tenancy)
        everything = decisions._replace(outcomes=plan.outcomes, templates=NamedTemplates(decided.templates))
        records = list_planned_records(open_records(context, planned.fetched), update, plan.outcomes)
        return Baseline(
            decisions,
            plan.totals.config,
            max(now, plan.time),
            plan.observations,
            records,
            {},
            {},
            adopted=plan.adopted,
            find_use=PlannedUse(lambda: add_copies(plan.totals.capacity, everything, plan.retained)),
        )

    retained = compare_schedules(
        placed,
        lambda keys: before.decide(keys, together.union(edits) if together else together),
        lambda keys: after.decide(keys, together),
        make_baseline,
    )
    return tuple(workload for workload in retained if workload.key not in plan.totals.held)


def _differ_in_content(before: Document | None, after: Document | None) -> bool:
    return before is None or after is None or (before.api_version, before.body) != (after.api_version, after.body)


def _read_documents(update: StateUpdate) -> LazyDocuments:
    """Return the documents of policy APIs of the planned commit, which are read on demand."""
    known, changed = update.cache.api_documents, update.incremental.changes.api_documents
    kinds = [kind for kind in {**dict.fromkeys(known), **changed} if changed.get(kind, ((),))]
    return LazyDocuments(kinds, lambda kind: changed[kind] if kind in changed else known[kind])


def _list_rules(tenancy: Tenancy, changed: ChangedTenants | None) -> tuple[Tenancy, Tenancy]:
    """Return the Tenants of two commits, each as those of a commit that no other one limits. The documents have the same owners."""
    if changed is None:
        return tenancy, tenancy
    before, after = (TenantPaths((), paths.own) for paths in (changed.before, tenancy.paths))
    return tenancy._replace(paths=before), tenancy._replace(paths=after)


def _list_limited(tenancy: Tenancy, index: TemplateIndex, keys: Iterable[Key]) -> frozenset[Key]:
    """Return all workloads of the tenants with limits that have one of these templates."""
    from gitsched.decide.tenants.tenant_amounts import has_limits  # few sources have tenants

    limited = {owner for owner in {tenancy.find_owner(key) for key in keys} if has_limits(tenancy.list_rules(owner))}
    return (
        frozenset(key for key, entry in index.items() if tenancy.paths.find_owner(entry.path) in limited)
        if limited
        else frozenset()
    )


class _FirstSchedule(NamedTuple):
    """The engines of a commit that is scheduled as if for the first time, by name."""

    snapshot: Snapshot
    engines: Mapping[str, PolicyEngine]

    def decide(self, keys: Collection[Key], together: frozenset[Key]) -> dict[Key, Outcome]:
        """Return the outcomes of some workloads, by (namespace, name). `together` are others of tenants with limits that count for all."""
        templates, engines = self.snapshot.templates, tuple(self.engines.values())
        documents = ((key, templates[key]) for key in sorted(together.union(keys), key=workload_sort_key) if key in templates)
        outcomes = {
            key: outcome
            for key, document in documents
            if (outcome := decide_workload(document, engines, self.snapshot)) is not None
        }
        if self.snapshot.tenancy is not None:
            from gitsched.decide.tenants.tenant_decisions import list_allowed  # few sources have tenants

            outcomes = list_allowed(outcomes, templates, engines, self.snapshot)
        return {key: outcome for key, outcome in outcomes.items() if key in keys}
