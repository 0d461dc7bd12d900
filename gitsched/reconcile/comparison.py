"""Compare the plan of a commit with the output branch or with the plan of a base commit, for a review."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

from gitsched.apis.gitsched.config import Config
from gitsched.decide.catalog import build_catalog
from gitsched.decide.decisions import DecisionSet
from gitsched.decide.kustomized_parts import resolve_parts
from gitsched.decide.plan import gc_paused
from gitsched.decide.recorded_decisions import compare_recorded
from gitsched.decide.registry import reserved_groups
from gitsched.diff.causes import find_causes
from gitsched.diff.document_changes import DocumentChanges
from gitsched.diff.plans import FileChange, compute_plan_digest, list_delivered, list_moves_between
from gitsched.diff.retained import CommitInput, find_retained
from gitsched.git import Repository
from gitsched.model.changes import Move, RecordChange, RetainedWorkload
from gitsched.model.commit import Commit
from gitsched.model.document import Key
from gitsched.model.finding import INTERNAL_ERROR, Finding, format_count
from gitsched.model.observation import read_observations
from gitsched.model.scheduling import Outcome
from gitsched.model.system_errors import is_bug
from gitsched.reconcile.cluster_facts import add_all_facts
from gitsched.reconcile.facts import find_recorded_facts
from gitsched.reconcile.fetch import fetch, find_commit
from gitsched.reconcile.output_commit import describe_manifest_changes, find_manifest_changes, write
from gitsched.reconcile.pipeline import use_plan
from gitsched.reconcile.run import Facts, Fetched, RunContext, RunResult, make_result, make_review, open_context
from gitsched.reconcile.run_settings import RunSettings
from gitsched.reconcile.source_commits import list_source_commits
from gitsched.reconcile.source_locations import RuleLocations, locate_causes
from gitsched.reconcile.source_tree import read_source_at
from gitsched.render.output_files import CLUSTERS, escape_segment
from gitsched.render.run_metadata import RunMetadata
from gitsched.report.review import ComparisonBase, Review

_NO_DOCUMENT_CHANGED = "no document changed: a deadline passed, or an observed value changed"
_MERGE_CONFLICT = (
    "{head} does not contain {base}, and they cannot be merged automatically: there are conflicts, or too little history was fetched. "
    "{head} is planned as it is, so the newer changes of {base} appear reversed."
)
_OUTPUT_LAG = "The output branch is not up to date with {base}: {moves} will move. This comparison does not include them."

T = TypeVar("T")


class PlannedCommit(NamedTuple):
    """The run of one commit, which publishes nothing, its decisions, the settings of its gitsched.yaml, and its Tenants."""

    run: RunResult
    decisions: DecisionSet
    config: Config
    tenants: tuple[Mapping[str, Any], ...] = ()


class PlanComparison(NamedTuple):
    """A review, and the run of the later commit.

    `later` is the plan under review, `earlier` the plan of the base, None if that is the output branch. `files` are the changed manifests.
    """

    review: Review
    run: RunResult
    context: RunContext
    later: PlannedCommit
    earlier: PlannedCommit | None = None
    files: tuple[FileChange, ...] = ()

    @property
    def delivered(self) -> dict[str, str | None]:
        """The content of the changed manifests that the digest covers, by path; None for removed ones."""
        return list_delivered(self.review.moves, self.files)


def compare_plans(settings: RunSettings, base: str | None = None) -> PlanComparison:
    """Compare the plan of the settings with the plan of `base`, or with the output branch where there is none.

    Both plans have the same output and the same observations. Where the source does not contain `base`, the merge of both is planned.
    Nothing is written to the repository.
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
    moves, records, changes, search = run.plan.moves, run.record_changes, None, _Search()
    if earlier is not None:
        since = earlier
        changes = search.attempt(lambda: _compare_with_recorded(context, fetched, since, decisions), None)
    if changes is not None:
        found = changes
        moves, records = search.attempt(lambda: _add_causes(context, moves, records, found, {}, decisions), (moves, records))
    retained: tuple[RetainedWorkload, ...] = ()
    if earlier is not None and changes is not None:
        since, found = earlier, changes
        retained = search.attempt(lambda: _list_retained(context, found, since, fetched.source, later), ())
    files = find_manifest_changes(fetched.output.repository, fetched.prefix, fetched.output_tree, run.tree, run.source)
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
            digest=compute_plan_digest(moves, files, records),
            delivery=describe_manifest_changes(context, fetched, fetched.output_tree, files, run.plan),
            added_clusters=sorted(name for name in clusters - retiring if escape_segment(name) not in directories)
            if directories
            else (),
            removed_clusters=sorted(retiring - (record.retiring.keys() if record else set())),
            changed_paths=_list_changed_paths(context.source.repository, earlier, fetched.source),
            retained=retained,
            record_changes=records,
            findings=(*run.plan.findings, *search.faults),
        ),
        run,
        context,
        later,
        files=files,
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
    unreleased = context._replace(settings=settings._replace(released_clusters=()))
    earlier = _plan_commit(unreleased, fetched._replace(source=base, base_tenants=()))
    # What both commits build alike is no change, also if no run has recorded its commit yet.
    commits = list_source_commits(earlier.decisions.variants)
    later = _plan_commit(context, fetched._replace(source_commits=commits, base_tenants=earlier.tenants))
    before, run, decisions, repository = earlier.run, later.run, later.decisions, source.repository
    if before.plan.moves:
        notes.append(_OUTPUT_LAG.format(base=name, moves=format_count(len(before.plan.moves), "more workload")))
    search = _Search()
    moves = tuple(list_moves_between(before.plan, run.plan, decisions.templates))
    records = compare_recorded(before.plan.recorded, run.plan.recorded)
    changes = search.attempt(lambda: _compare_inputs(earlier.decisions, decisions), None)
    retained: tuple[RetainedWorkload, ...] = ()
    if changes is not None:
        found = changes
        retained = search.attempt(lambda: _list_retained(context, found, base, planned, later), ())
        moves, records = search.attempt(
            lambda: _add_causes(context, moves, records, found, before.plan.outcomes, decisions), (moves, records)
        )
    files = find_manifest_changes(fetched.output.repository, fetched.prefix, before.tree, run.tree, run.source)
    clusters = [_list_clusters(result) for result in (before, run)]
    return PlanComparison(
        make_review(run)._replace(
            source_name="" if settings.worktree else revision,
            changed=before.tree != run.tree,
            base=ComparisonBase(base.oid, name, planned is not head, before.plan.state_counts, before.plan.findings),
            moves=moves,
            digest=compute_plan_digest(moves, files, records),
            delivery=describe_manifest_changes(context, fetched, before.tree, files, run.plan),
            added_clusters=sorted(clusters[1] - clusters[0]),
            removed_clusters=sorted(clusters[0] - clusters[1]),
            changed_paths=_list_changed_paths(repository, base, planned),
            comparison_notes=notes,
            retained=retained,
            record_changes=records,
            findings=(*run.plan.findings, *search.faults),
        ),
        run,
        context,
        later,
        earlier,
        files,
    )


class _Search:
    """The search for what caused moves. Where a bug shows in it, the review has less, and a finding in `faults`."""

    def __init__(self) -> None:
        self.faults: list[Finding] = []

    def attempt(self, work: Callable[[], T], otherwise: T) -> T:
        """Return what `work` returns; `otherwise` if a bug shows in it."""
        try:
            return work()
        except Exception as error:
            if not is_bug(error):
                raise
            from gitsched.model.fault import describe_fault  # only after a bug

            message = (
                f"{describe_fault(error)} while the causes of moves were searched: the moves are right; report this bug with the id"
            )
            self.faults.append(Finding("error", INTERNAL_ERROR, message))
            return otherwise


def _compare_inputs(earlier: DecisionSet, later: DecisionSet) -> DocumentChanges:
    assert earlier.input is not None, "the decisions of a plan have an input"
    assert later.input is not None, "the decisions of a plan have an input"
    return DocumentChanges(earlier.input, later.input)


def _compare_with_recorded(context: RunContext, fetched: Fetched, earlier: Commit, later: DecisionSet) -> DocumentChanges | None:
    """Return what changed since the last run, which planned the commit `earlier`."""
    record = fetched.record
    if record is None or later.input is None:
        return None
    facts = find_recorded_facts(context.source.repository, record.facts, fetched.facts)
    source = read_source_at(context, earlier)
    if facts != Facts():
        source = add_all_facts(context, facts, source, record.time, {}).source
    if source.variants:
        from gitsched.reconcile.source_commits import add_source_commits  # few sources have Bundles

        source = add_source_commits(source, fetched._replace(source=earlier), later.input.previous, context)
    catalog = build_catalog(source.documents, source.config.kinds, reserved_groups)
    before = later.input._replace(
        catalog=catalog,
        config=source.config,
        source_time=record.time,
        now=record.time,
        observations=read_observations(record.observations, record.observed_at),
        parts=resolve_parts(source.kustomized, catalog),
        variants=source.variants,
        releases=None,
        tenancy=source.tenancy,
    )
    return DocumentChanges(before, later.input)


def _add_causes(
    context: RunContext,
    moves: tuple[Move, ...],
    records: tuple[RecordChange, ...],
    changes: DocumentChanges,
    outcomes: Mapping[Key, Outcome],
    decided: DecisionSet,
) -> tuple[tuple[Move, ...], tuple[RecordChange, ...]]:
    """Return moves and changed recorded decisions with their causes and the locations of these."""
    found = find_causes(moves, records, changes, outcomes, decided, context.settings.progress)
    repository = context.source.repository
    locations: RuleLocations = {}
    return (
        tuple(move._replace(causes=locate_causes(move.causes, repository, locations)) for move in found.moves),
        tuple(
            record._replace(
                causes=locate_causes(record.causes, repository, locations), reason="" if record.causes else _NO_DOCUMENT_CHANGED
            )
            for record in found.records
        ),
    )


def _plan_commit(context: RunContext, fetched: Fetched) -> PlannedCommit:
    planned, written = use_plan(context, fetched, context.settings.now, partial(write, context, fetched))
    result = make_result(fetched, planned, written, None)
    return PlannedCommit(result, planned.plan.decisions, planned.config, planned.tenants)


def _list_retained(
    context: RunContext, changes: DocumentChanges, earlier: Commit, later: Commit, planned: PlannedCommit
) -> tuple[RetainedWorkload, ...]:
    """Return the workloads that keep their placement because of scheduling history; none if only workloads differ."""
    if not any(key.group in reserved_groups for key in changes.by_key):
        return ()
    plan, now = planned.run.plan, context.settings.now
    sources = [read_source_at(context, commit) for commit in (earlier, later)]
    before, after = (
        CommitInput(source.documents, source.config, min(later.time, now), plan.observations, source.tenancy) for source in sources
    )
    retained = find_retained(before, after, now, planned.decisions, max(now, plan.time))
    return tuple(workload for workload in retained if workload.key not in plan.totals.held)


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
