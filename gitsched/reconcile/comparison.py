"""Compare the plan of a commit with the output branch or with the plan of a base commit, for a review."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from gitsched.apis.capabilities import ReferenceReading
from gitsched.apis.gitsched.config import Config
from gitsched.decide.catalog import Catalog, build_catalog
from gitsched.decide.decisions import DecisionSet
from gitsched.decide.plan import gc_paused
from gitsched.decide.recorded_decisions import compare_recorded
from gitsched.decide.registry import reserved_groups
from gitsched.decide.workload_explanation import explain_workload
from gitsched.diff.causes import CatalogComparison, compare_catalogs, find_causes, find_record_causes
from gitsched.diff.plans import compute_plan_digest, list_moves_between
from gitsched.diff.retained import CommitInput, find_retained
from gitsched.git import Repository
from gitsched.model.changes import Move, RecordChange, RetainedWorkload
from gitsched.model.commit import Commit
from gitsched.model.document import Document, Key
from gitsched.model.explanation import Explanation
from gitsched.model.scheduling import Outcome
from gitsched.reconcile.facts import add_facts, find_recorded_facts
from gitsched.reconcile.fetch import fetch, find_commit
from gitsched.reconcile.output_commit import describe_manifest_changes, find_manifest_changes, write
from gitsched.reconcile.pipeline import plan_source
from gitsched.reconcile.run import Facts, Fetched, RunContext, RunResult, RunSettings, make_result, make_review, open_context
from gitsched.reconcile.source_commits import list_source_commits
from gitsched.reconcile.source_locations import RuleLocations, locate_causes
from gitsched.reconcile.source_tree import read_source_at
from gitsched.render.output_files import CLUSTERS, escape_segment
from gitsched.render.run_metadata import RunMetadata
from gitsched.report.review import ComparisonBase, Review

MAX_EXPLAINED_MOVES = 100
"""Moves whose causes include an explanation per cluster; the others have only the differences between the commits."""
_NO_DOCUMENT_CHANGED = "no document changed: a deadline passed, or an observed value changed"
_MERGE_CONFLICT = (
    "{head} does not contain {base}, and they cannot be merged automatically: there are conflicts, or too little history was fetched. "
    "{head} is planned as it is, so the newer changes of {base} appear reversed."
)
_OUTPUT_LAG = (
    "The output branch is not up to date with {base}: {moves} more workloads will move. This comparison does not include them."
)


class PlannedCommit(NamedTuple):
    """The run of one commit, which publishes nothing, its decisions, and the settings of its gitsched.yaml."""

    run: RunResult
    decisions: DecisionSet
    config: Config


class PlanComparison(NamedTuple):
    """A review, and the run of the later commit. `later` is the plan under review, `earlier` the plan of the base, None if that is the
    output branch."""

    review: Review
    run: RunResult
    context: RunContext
    later: PlannedCommit
    earlier: PlannedCommit | None = None


def compare_plans(settings: RunSettings, base: str | None = None) -> PlanComparison:
    """Compare the plan of the settings with the plan of `base`, or with the output branch where there is none.

    Both plans have the same output and the same observations. Where the source does not contain `base`, the merge of both is planned.
    Objects may be written to the repository; no ref moves.
    """
    context = open_context(settings)
    with gc_paused():
        comparison = _compare_with_output(context) if base is None else _compare_with_base(context, base)
    context.caches.save()
    return comparison


def _compare_with_output(context: RunContext) -> PlanComparison:
    fetched = fetch(context)
    later = _plan_commit(context, fetched)
    run, decisions = later.run, later.decisions
    record, earlier = fetched.record, None
    if record is not None and record.source and context.source.fetch_commit(record.source):
        earlier = context.source.repository.commit(record.source)
    repository = context.source.repository
    facts = find_recorded_facts(repository, record.facts if record is not None else {}, fetched.facts)
    catalogs = compare_catalogs(
        _read_catalog(context, earlier, facts) if earlier is not None else decisions.catalog, decisions.catalog
    )
    causes = _CauseFinder(repository, decisions, catalogs, {})
    moves = tuple(map(causes.add_causes, run.plan.moves))
    records = tuple(causes.add_record_causes(change, known=earlier is not None) for change in run.record_changes)
    changes = find_manifest_changes(fetched.output.repository, fetched.prefix, fetched.output_tree, run.tree, run.source)
    directories = _list_cluster_directories(fetched)
    clusters, retiring = run.plan.cluster_facts.keys(), run.plan.retiring.keys()
    return PlanComparison(
        make_review(run)._replace(
            source_name=context.settings.revision or "",
            base=ComparisonBase(
                states=_read_state_counts(record) if record else None,
                findings=record.findings if record else None,
            ),
            moves=moves,
            digest=compute_plan_digest(moves, changes, records),
            delivery=describe_manifest_changes(fetched.output.repository, fetched.prefix, fetched.output_tree, changes),
            added_clusters=sorted(name for name in clusters - retiring if escape_segment(name) not in directories)
            if directories
            else (),
            removed_clusters=sorted(retiring - (record.retiring.keys() if record else set())),
            changed_paths=_list_changed_paths(repository, earlier, fetched.source),
            retained=_list_retained(context, catalogs, earlier, fetched.source, later) if earlier is not None else (),
            record_changes=records,
        ),
        run,
        context,
        later,
    )


def _compare_with_base(context: RunContext, name: str) -> PlanComparison:
    settings, source = context.settings, context.source
    base = find_commit(context, name)
    fetched = fetch(context, base)
    head, revision, notes = fetched.source, settings.revision or "HEAD", []
    repository, planned = source.repository, head
    if head.oid and not repository.has_ancestor(head.oid, base.oid):
        source.deepen(base.oid, head.oid)
        repository = source.repository
    if head.oid and not repository.has_ancestor(head.oid, base.oid):
        tree = repository.merge_commits(base.oid, head.oid)
        if tree is None:
            notes.append(_MERGE_CONFLICT.format(head=revision, base=name))
        else:
            planned = head._replace(tree=tree, parents=(head.oid, base.oid))
    # The merge will be made after now, however old the commit is, so its time is now, and timers start then.
    fetched = fetched._replace(source=planned._replace(time=settings.now.replace(microsecond=0)))
    earlier = _plan_commit(context, fetched._replace(source=base))
    # What both commits build alike is no change, also if no run has recorded its commit yet.
    later = _plan_commit(context, fetched._replace(source_commits=list_source_commits(earlier.decisions.variants)))
    before, run, decisions, repository = earlier.run, later.run, later.decisions, source.repository
    if before.plan.moves:
        notes.append(_OUTPUT_LAG.format(base=name, moves=len(before.plan.moves)))
    catalogs = compare_catalogs(earlier.decisions.catalog, decisions.catalog)
    causes = _CauseFinder(repository, decisions, catalogs, before.plan.outcomes)
    moves = tuple(map(causes.add_causes, list_moves_between(before.plan, run.plan, decisions.templates)))
    changes = find_manifest_changes(fetched.output.repository, fetched.prefix, before.tree, run.tree, run.source)
    records = tuple(map(causes.add_record_causes, compare_recorded(before.plan.recorded, run.plan.recorded)))
    clusters = [_list_clusters(result) for result in (before, run)]
    return PlanComparison(
        make_review(run)._replace(
            source_name="" if settings.worktree else revision,
            changed=before.tree != run.tree,
            base=ComparisonBase(base.oid, name, planned is not head, before.plan.state_counts, before.plan.findings),
            moves=moves,
            digest=compute_plan_digest(moves, changes, records),
            delivery=describe_manifest_changes(fetched.output.repository, fetched.prefix, before.tree, changes),
            added_clusters=sorted(clusters[1] - clusters[0]),
            removed_clusters=sorted(clusters[0] - clusters[1]),
            changed_paths=_list_changed_paths(repository, base, planned),
            comparison_notes=notes,
            retained=_list_retained(context, catalogs, base, planned, later),
            record_changes=records,
        ),
        run,
        context,
        later,
        earlier,
    )


class _CauseFinder:
    """Finds the causes of moves and of changed recorded decisions. Explaining a workload is slow, so only the first moves are explained."""

    def __init__(
        self, repository: Repository, decisions: DecisionSet, catalogs: CatalogComparison, before: Mapping[Key, Outcome]
    ) -> None:
        self._repository, self._decisions, self._comparison, self._before = repository, decisions, catalogs, before
        self._locations: RuleLocations = {}
        self._related: dict[str, frozenset[Key]] = {}
        self._explained = 0

    def add_causes(self, move: Move) -> Move:
        """Return the move with its causes and their locations."""
        before, after = self._before.get(move.key), self._decisions.outcomes.get(move.key)
        explanation = self._explain(self._decisions.templates.get(move.key)) if move.before.keys() - move.after.keys() else None
        causes = find_causes(move, before, after, self._comparison, explanation)
        return move._replace(causes=locate_causes(causes, self._repository, self._locations))

    def add_record_causes(self, change: RecordChange, known: bool = True) -> RecordChange:
        """Return the change of a recorded decision with its causes; `known` is false if there is no earlier commit to compare with."""
        decisions = self._decisions
        subject = decisions.templates.get(change.subject) or decisions.catalog.api_documents_by_key.get(change.subject)
        explanation = self._explain(subject) if set(change.before) - set(change.after) else None
        causes = find_record_causes(change, self._comparison, self._list_related(change.api), explanation)
        reason = _NO_DOCUMENT_CHANGED if known and not causes else ""
        return change._replace(causes=locate_causes(causes, self._repository, self._locations), reason=reason)

    def _list_related(self, api: str) -> frozenset[Key]:
        """Return the documents outside of its groups that an API reads, the subjects of its decisions included."""
        if api not in self._related:
            readers = (engine for engine in self._decisions.engines if engine.name == api and isinstance(engine, ReferenceReading))
            subjects = (decision.subject for decision in self._decisions.recorded if decision.api == api)
            self._related[api] = frozenset((*subjects, *(key for engine in readers for key in engine.referenced_keys())))
        return self._related[api]

    def _explain(self, document: Document | None) -> Explanation | None:
        if document is None or self._explained >= MAX_EXPLAINED_MOVES:
            return None
        self._explained += 1
        return explain_workload(self._decisions, document)


def _plan_commit(context: RunContext, fetched: Fetched) -> PlannedCommit:
    planned = plan_source(context, fetched, context.settings.now)
    result = make_result(fetched, planned, write(context, fetched, planned), None)
    return PlannedCommit(result, planned.plan.decisions, planned.config)


def _list_retained(
    context: RunContext, catalogs: CatalogComparison, earlier: Commit, later: Commit, planned: PlannedCommit
) -> tuple[RetainedWorkload, ...]:
    """Return the workloads that keep their placement because of scheduling history; none if only workloads differ."""
    if not catalogs.changed_keys:
        return ()
    plan, now = planned.run.plan, context.settings.now
    sources = [read_source_at(context, commit) for commit in (earlier, later)]
    before, after = (CommitInput(source.documents, source.config, min(later.time, now), plan.observations) for source in sources)
    return find_retained(before, after, now, planned.decisions, max(now, plan.time))


def _read_catalog(context: RunContext, commit: Commit, facts: Facts) -> Catalog:
    source = add_facts(context, facts, read_source_at(context, commit))
    return build_catalog(source.documents, source.config.kinds, reserved_groups)


def _list_cluster_directories(fetched: Fetched) -> set[str]:
    """Return the names of the cluster directories on the output branch."""
    tree, repository = fetched.output_tree, fetched.output.repository
    return set(repository.list_directory(tree, f"{fetched.prefix}{CLUSTERS}")) if tree else set()


def _list_clusters(run: RunResult) -> set[str]:
    return set(run.plan.cluster_facts.keys() - run.plan.retiring.keys())


def _list_changed_paths(repository: Repository, earlier: Commit | None, later: Commit) -> frozenset[str]:
    return frozenset(repository.changed_paths(earlier.tree if earlier else None, later.tree))


def _read_state_counts(record: RunMetadata) -> Mapping[str, int]:
    """Return the number of workloads by state. A record without these numbers is estimated from its findings."""
    if record.workloads is not None:
        return record.workloads
    counts = Counter(finding.code for finding in record.findings)
    return {"pending": counts["unschedulable"], "stale": counts["stale-decision"]}
