"""Plan only what changed between two source trees, from the state of the last plan."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from gitsched.apis.snapshot import Snapshot
from gitsched.decide.catalog import build_catalog
from gitsched.decide.decisions import make_holds_loader
from gitsched.decide.guard.guard_settings import GuardRecord, read_guard_record
from gitsched.decide.incremental.incremental_plan import IncrementalPlan, PlanState, make_incremental_plan
from gitsched.decide.incremental.withheld_workloads import GuardRules
from gitsched.decide.plan import compute_plan_times
from gitsched.decide.registry import policy_apis, reserved_groups
from gitsched.model.cluster_facts import NO_FACTS, AppliedFacts
from gitsched.model.cluster_report import CLUSTER_REPORT
from gitsched.model.document import Body, Document, Key
from gitsched.model.errors import NeedsCompletePlan
from gitsched.model.rollouts import ROLLOUT_KIND
from gitsched.model.scheduling import Outcome
from gitsched.reconcile.cache.plan_cache import LazyDocuments, PlanCache
from gitsched.reconcile.cache.row_format import CorruptCacheError
from gitsched.reconcile.facts.observations import observe_metrics_again
from gitsched.reconcile.fetch import find_output_blob
from gitsched.reconcile.incremental.changed_files import TemplateFinder, find_limit, list_due, read_source_diff
from gitsched.reconcile.incremental.fallback import attempt
from gitsched.reconcile.incremental.kept_versions import stays_in_force
from gitsched.reconcile.output.output_records import open_records
from gitsched.reconcile.review.allowances import list_allowed_changes, read_releases
from gitsched.reconcile.review.guard_input import make_guard_input
from gitsched.reconcile.run import Facts, Fetched, Planned, RunContext, StateUpdate
from gitsched.reconcile.source.settled_files import keeps_versions
from gitsched.reconcile.source.source_locations import RuleLocations, locate_plan_findings
from gitsched.reconcile.source.source_reader import SourceReader
from gitsched.reconcile.source.source_tree import load

if TYPE_CHECKING:
    from gitsched.apis.capabilities import DocumentPair
    from gitsched.apis.gitsched.tenancy import Tenancy
    from gitsched.decide.incremental.changed_documents import SourceDiff
    from gitsched.decide.incremental.plan_state import Totals
    from gitsched.model.changes import SettingChange
    from gitsched.model.template_index import TemplateIndex
    from gitsched.model.variants import TemplateVariants
    from gitsched.reconcile.cache.caches import TreeCache
    from gitsched.reconcile.incremental.tree_diff import TreeDiff


def plan_incrementally(
    context: RunContext,
    fetched: Fetched,
    cache: PlanCache,
    now: datetime,
    plan_source: Callable[[RunContext, Fetched, datetime], Planned],
    *,
    reads_trees: bool = False,
    withholds: bool = False,
) -> Planned:
    """Plan only what changed since the plan in the cache. Raise NeedsCompletePlan if a complete plan is needed, which `plan_source` makes.

    `reads_trees`: all files are read where changed ones concern others. `withholds`: changes over limits of the guard are left out.
    """
    header, record = cache.header, fetched.record
    if not _has_known_tenants(context, fetched, header.totals):
        raise NeedsCompletePlan("the Tenants that count may be others")
    if not _has_known_guard(context, fetched, header.totals, withholds=withholds):
        raise NeedsCompletePlan("what the guard withholds or holds may be something else")
    if record is not None and header.totals.source.with_variants:
        repository = context.source.repository
        if not (repository.is_shallow or repository.has_ancestor(fetched.source.oid, record.source)):
            raise NeedsCompletePlan("the history was rewritten, so that commits of Bundles may be gone")
    if header.output_tree != fetched.output_tree:
        raise NeedsCompletePlan("the output branch is not that of the last plan")
    if now < header.totals.now:
        raise NeedsCompletePlan("the last plan was made for a later time")
    if read_releases(context, fetched) is not None:
        raise NeedsCompletePlan("a release may concern any workload")
    # After a bug, the complete plan finds the document on which it shows.
    planning = partial(_plan_from_cache, context, fetched, now, cache, reads_trees=reads_trees, withholds=withholds)
    found = attempt(planning)
    if found is None:
        raise NeedsCompletePlan("the state of the last plan is damaged, or a bug shows on a document")
    made, facts, tree_diff = found
    outcomes = RecoverableOutcomes(made.plan.outcomes, lambda: plan_source(context, fetched, now).plan.outcomes)
    plan, config = made.plan._replace(outcomes=outcomes), made.totals.config
    if made.totals.owners and fetched.base_tenants == ():
        from gitsched.reconcile.tenants.source_tenants import report_first_tenants  # few sources have tenants

        plan = plan._replace(findings=report_first_tenants(plan.findings, cache.api_documents))
    setting_changes: tuple[SettingChange, ...] = ()
    trees: tuple[TreeCache, ...] = ()
    if fetched.trusted.commit is not None and fetched.trusted.config != config:
        from gitsched.reconcile.review.setting_findings import report_settings  # few commits change settings

        reported = report_settings(context, fetched, config, refuses=False)
        if reported.findings or fetched.trusted.is_base:
            raise NeedsCompletePlan("changed settings are reported")
        setting_changes = reported.changes
    if plan.has_rule_findings:
        locations = RuleLocations(context.source.repository, header.rule_locations)
        plan = locate_plan_findings(plan, locations)
        rules = {finding.field for finding in made.plan.findings}
        cache.header = header._replace(rule_locations={rule: found for rule, found in locations.found.items() if rule in rules})
    builds, reading_rules, settled = header.builds, header.reading_rules, header.settled
    if tree_diff is not None:
        builds, reading_rules, trees, settled = tree_diff.builds, tree_diff.reading_rules, tree_diff.trees, tree_diff.settled
    kept_files = {path: commit for path, commit in settled.items() if commit is not None}
    changed = made.decided.diff.tenants
    tenants = changed.records if changed is not None else record.tenants if record is not None else ()
    state = StateUpdate(cache, made, reading_rules, trees)
    return Planned(plan, config, state, builds, kept_files, setting_changes, tenants=tenants, facts=facts)


def try_incrementally(
    context: RunContext,
    fetched: Fetched,
    cache: PlanCache,
    now: datetime,
    plan_source: Callable[[RunContext, Fetched, datetime], Planned],
    *,
    withholds: bool,
) -> Planned | None:
    """Plan only what changed since the plan in the cache; None, which is reported with the reason, if a complete plan is needed."""
    try:
        return plan_incrementally(context, fetched, cache, now, plan_source, reads_trees=True, withholds=withholds)
    except NeedsCompletePlan as needed:
        context.report_step(f"planning everything, because {needed}")
        return None


def _has_known_guard(context: RunContext, fetched: Fetched, totals: Totals, *, withholds: bool) -> bool:
    """Return whether the guard withholds and holds what it did in the last plan, and the output branch has the same record of it."""
    if fetched.record is None:
        return True
    record, own = read_guard_record(fetched.record.guard), totals.config.guard
    if not withholds:  # a complete plan reports what is withheld
        is_plain = not (fetched.frozen or context.settings.choices.allowed or totals.withheld.kept)
        return is_plain and not (fetched.record.guard and record.has_changed(GuardRecord(own)))
    held = {own.hold_stateful, record.settings.hold_stateful, (record.planned if record.digest else own).hold_stateful}
    return record.digest == totals.withheld.digest and len(held) == 1 and not (record.keeps_holds or record.unverified)


def _has_known_tenants(context: RunContext, fetched: Fetched, totals: Totals) -> bool:
    """Return whether the Tenants that count are those of the last plan, also where the base of a comparison has no trusted side, and no
    facts branch has documents without an owner. None that the operator requires is missing."""
    recorded = fetched.record.tenants if fetched.record is not None else ()
    required = context.settings.operator.required_tenants
    if required:
        from gitsched.reconcile.tenants.required_tenants import list_missing  # few operators require Tenants

        if list_missing(required, [str(tenant.get("name")) for tenant in recorded]):
            return False
    if not (recorded or totals.owners or fetched.base_tenants):
        return True
    return bool(recorded and totals.owners) and fetched.base_tenants in (None, (), recorded) and fetched.facts == Facts()


def _plan_from_cache(
    context: RunContext, fetched: Fetched, now: datetime, cache: PlanCache, *, reads_trees: bool, withholds: bool
) -> tuple[IncrementalPlan, AppliedFacts, TreeDiff | None]:
    totals, repository, tree = cache.header.totals, context.source.repository, fetched.source.tree
    if fetched.record is not None:
        # The state leaves these to the record.
        totals = totals._replace(retained=fetched.record.retained, adopted=fetched.record.adopted)
    settled = cache.header.settled
    if settled and fetched.facts != Facts():
        raise NeedsCompletePlan("files are broken, and facts branches complete documents")
    reader = SourceReader(repository, context.caches.files, totals.config, strict=totals.config.source.strict)
    finder = TemplateFinder(repository, tree, cache, reader, partial(read_templates, context, fetched))
    due, limit = list_due(totals, now), find_limit(totals.overview.workload_count)
    if context.caches.shared_rows is not None:
        limit += totals.overview.workload_count  # several plans share what most of the time of an incremental one goes into
    find: Callable[[Key], Document | None] = finder.find
    trees = None
    try:
        if not stays_in_force(context, fetched, cache, due):
            raise NeedsCompletePlan("something else is used in place of broken files or failed builds")
        diff = read_source_diff(repository, tree, cache, totals, reader, finder, due)
    except NeedsCompletePlan:
        if not reads_trees or totals.owners:
            raise
        from gitsched.reconcile.incremental.tree_diff import read_tree_diff  # most files concern no others

        trees = read_tree_diff(context, fetched, cache, due, limit)
        diff, find = trees.changes, trees.find
        totals, settled = totals._replace(source=totals.source._replace(hidden_codes=trees.hidden_codes)), trees.settled
    if diff.api_documents and _are_observed(diff):
        raise NeedsCompletePlan("a changed document names whom to query for metrics, which is reported")
    facts = cache.header.facts
    if facts != NO_FACTS or fetched.facts != Facts():
        from gitsched.reconcile.facts.changed_facts import read_changed_facts  # few sources have facts branches

        changed = read_changed_facts(context, fetched, cache, totals, diff, now)
        if changed is None:
            raise NeedsCompletePlan("facts branches may complete other documents")
        diff, totals, facts = changed
    source_time = max(fetched.time, facts.stale_since)
    times = compute_plan_times(source_time, fetched.record.time if fetched.record else None, now)
    if diff.settings is not None:
        totals = totals._replace(config=diff.settings.config)
    removed = frozenset(key for key, (_, after) in diff.templates.items() if after is None)
    templates = LazyTemplates(diff.documents, removed, cache.template_index, find, partial(read_templates, context, fetched))
    records = open_records(context, fetched)
    holds, holds_data = None, totals.config.guard.hold_stateful
    if holds_data or totals.adopted:
        holds = make_holds_loader(templates, adopted=totals.adopted, holds_data=holds_data)
    documents = merge_documents(cache.api_documents, diff.stored_documents)
    if any(key[:2] == CLUSTER_REPORT for key in diff.api_documents) and awaits_reports(documents):
        raise NeedsCompletePlan("policies wait for reports of clusters")
    observed = observe_metrics_again(context, fetched, documents, totals.config, now)
    if observed is None:
        raise NeedsCompletePlan("something is found while metrics are queried")
    part_kinds = totals.source.part_kinds if trees is None else trees.part_kinds
    tenancy = None
    if totals.owners and fetched.record is not None:
        from gitsched.reconcile.incremental.changed_rules import read_changed_rules  # few sources have tenants
        from gitsched.reconcile.tenants.source_tenants import make_tenancy

        rules = read_changed_rules(repository, fetched.record.tenants, totals, diff, documents)
        if rules[1] is not None and (
            context.settings.operator.required_tenants or (rules[1].findings and fetched.base_tenants == ())
        ):
            raise NeedsCompletePlan("required Tenants may be missing, or the base of the comparison has other ones")
        diff = diff._replace(tenants=rules[1])
        tenancy = make_tenancy(rules[0], cache.template_index, documents, {**diff.templates, **diff.api_documents})
    variants: TemplateVariants = {}
    if totals.source.with_variants:
        from gitsched.decide.variants.lazy_variants import LazyVariants  # few sources have Bundles

        variants = LazyVariants(totals.source.with_variants, partial(read_variants, context, fetched, records))
    snapshot = Snapshot(
        documents,
        templates,
        frozenset(),
        records,
        totals.config,
        *times,
        observations=observed,
        variants=variants,
        load_holds=holds,
        has_adopted=bool(totals.adopted),
        tenancy=tenancy,
        part_kinds=part_kinds,
        unused=totals.source.unused,
    )
    guard_input = make_guard_input(context, fetched, has_tenants=tenancy is not None)
    guard = GuardRules(
        guard_input, partial(list_allowed_changes, context, fetched), withholds, context.settings.choices.within_limits
    )
    rollouts = None
    if ROLLOUT_KIND in cache.header.kinds or (fetched.record is not None and fetched.record.rollouts):
        from gitsched.reconcile.rollout_input import read_rollout_input  # most sources have no Rollout

        rollouts = read_rollout_input(context, fetched)
    elif any(key[:2] == ROLLOUT_KIND for key in diff.api_documents):
        raise NeedsCompletePlan("the first Rollout comes")
    state = PlanState(totals, cache, cache.header.kinds, guard, rollouts)
    find_blob = partial(find_output_blob, fetched)
    made = make_incremental_plan(state, diff, snapshot, find_blob, context.caches.decisions.rendered, limit)
    if settled and not keeps_versions(made, settled):
        raise NeedsCompletePlan("what is used in place of a broken file concerns others")
    if (settled or cache.header.settled) and (made.plan.rollouts or (rollouts is not None and rollouts.records)):
        raise NeedsCompletePlan("files are broken during a rollout")
    wakeups = [time for time in (made.plan.next_wakeup, facts.wakeup) if time is not None]
    made = made._replace(plan=made.plan._replace(next_wakeup=min(wakeups, default=None), observations=observed))
    if trees is not None and trees.kept_files:
        made = made._replace(plan=made.plan._replace(files={**made.plan.files, **trees.kept_files}))
    return made, facts, trees


def merge_documents(
    known: Mapping[tuple[str, str], tuple[Document, ...]], changes: Mapping[Key, DocumentPair]
) -> Mapping[tuple[str, str], tuple[Document, ...]]:
    """Return the documents of policy APIs by kind, with some of them changed. Other kinds are still read on demand."""
    if not changes:
        return known
    updated: dict[tuple[str, str], tuple[Document, ...]] = {}
    for kind in sorted({key[:2] for key in changes}):
        by_key = {document.key: document for document in known.get(kind, ())}
        for key, (_, after) in changes.items():
            if key[:2] == kind and after is None:
                by_key.pop(key, None)
            elif key[:2] == kind and after is not None:
                by_key[key] = after
        updated[kind] = tuple(by_key[key] for key in sorted(by_key))
    kinds = [kind for kind in {**dict.fromkeys(known), **updated} if updated.get(kind, ((),))]
    return LazyDocuments(kinds, lambda kind: updated[kind] if kind in updated else known[kind])


def find_owners(
    tenancy: Tenancy | None,
    cache: PlanCache,
    documents: Mapping[tuple[str, str], tuple[Document, ...]],
    changes: Mapping[Key, DocumentPair],
) -> Tenancy | None:
    """Return the owners of other documents with the same Tenants; None without any. `documents` are all of policy APIs, and `changes` what
    differs from the plan in the cache."""
    if tenancy is None:
        return None
    from gitsched.decide.incremental.continued_views import SourceOwners  # few sources have tenants

    return tenancy._replace(owners=SourceOwners(tenancy.paths, cache.template_index, documents, changes))


def read_templates(context: RunContext, fetched: Fetched) -> Mapping[Key, Document]:
    source = load(context, fetched, check_output=False)
    return build_catalog(source.documents, source.config.kinds, reserved_groups).templates


def read_variants(context: RunContext, fetched: Fetched, records: Mapping[Key, Body]) -> TemplateVariants:
    """Return the variants of the fetched commit. `records` are those of the previous output."""
    from gitsched.reconcile.bundles.source_commits import add_source_commits

    return add_source_commits(load(context, fetched, check_output=False), fetched, records, context).variants


def _are_observed(diff: SourceDiff) -> bool:
    """Return whether a changed document names whom to query, which is reported, or reads reports of clusters."""
    groups = {group for api in policy_apis.values() if api.metrics is not None for group in api.metrics.groups}
    kinds = {api.scoring.definition for api in policy_apis.values() if api.scoring is not None}
    documents = [after for _, after in diff.api_documents.values() if after is not None]
    naming = [document for document in documents if document.key.group in groups or document.key[:2] in kinds]
    if naming:
        from gitsched.reconcile.review.contact_changes import list_contacts  # few commits change documents about metrics

        if any(True for document in naming for _ in list_contacts(document.body)):
            return True
    by_kind: dict[tuple[str, str], tuple[Document, ...]] = {}
    for document in documents:
        by_kind[document.key[:2]] = (*by_kind.get(document.key[:2], ()), document)
    return awaits_reports(by_kind)


def awaits_reports(documents: Mapping[tuple[str, str], tuple[Document, ...]]) -> bool:
    """Return whether a rollout of a policy API waits for reports of clusters."""
    reporting = [api.delivery_reports for api in policy_apis.values() if api.delivery_reports is not None]
    return any(
        reports.list_clusters(document.body for kind in documents if kind[0] in reports.groups for document in documents[kind])
        for reports in reporting
    )


class LazyTemplates(Mapping[Key, Document]):
    """All templates of a source. One is read on demand; all are read when a caller asks for all documents."""

    def __init__(
        self,
        known: Mapping[Key, Document],
        removed: Container[Key],
        index: TemplateIndex,
        find: Callable[[Key], Document | None],
        read: Callable[[], Mapping[Key, Document]],
    ) -> None:
        self._known, self._removed, self._index = dict(known), removed, index
        self._find, self._read = find, read
        self._all: Mapping[Key, Document] | None = None

    def __getitem__(self, key: Key) -> Document:
        if key not in self:
            raise KeyError(key)
        if key not in self._known:
            self._known[key] = (self._find(key) if self._all is None else None) or self._read_all()[key]
        return self._known[key]

    def __contains__(self, key: object) -> bool:
        return key in self._known or (key in self._index and key not in self._removed)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._read_all())

    def __len__(self) -> int:
        return len(self._read_all())

    def _read_all(self) -> Mapping[Key, Document]:
        if self._all is None:
            self._all = self._read()
        return self._all


class RecoverableOutcomes(Mapping[Key, Outcome]):
    """Outcomes of an incremental plan. When a row turns out to be unreadable, a complete plan gives the same outcomes."""

    def __init__(self, known: Mapping[Key, Outcome], plan_again: Callable[[], Mapping[Key, Outcome]]) -> None:
        self._known, self._plan_again, self._count = known, plan_again, len(known)

    def __getitem__(self, key: Key) -> Outcome:
        try:
            return self._known[key]
        except CorruptCacheError:
            self._known = self._plan_again()
            return self._known[key]

    def __iter__(self) -> Iterator[Key]:
        try:
            keys = list(self._known)
        except CorruptCacheError:
            self._known = self._plan_again()
            keys = list(self._known)
        return iter(keys)

    def __len__(self) -> int:
        return self._count
