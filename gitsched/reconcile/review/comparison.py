"""Compare the plan of a commit with the output branch or with the plan of a base commit, for a review."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from gitsched.apis.gitsched.reserve_config import requires_reserve
from gitsched.apis.registered import Registered
from gitsched.decide.garbage_collection import gc_paused
from gitsched.decide.plan_result import mark_awaited
from gitsched.decide.recorded_decisions import compare_recorded
from gitsched.diff.causes import find_causes, name_near_changes
from gitsched.diff.plans import FileChange, compute_plan_digest, list_delivered
from gitsched.git import Repository
from gitsched.model.changes import Move, RecordChange, RetainedCopy, RetainedWorkload, UnplacedObject
from gitsched.model.commit import Commit
from gitsched.model.fault import make_fault_finding
from gitsched.model.finding import Finding, format_count, format_names
from gitsched.model.system_errors import is_bug
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.bundles.source_commits import list_source_commits
from gitsched.reconcile.fetch import fetch, find_commit
from gitsched.reconcile.incremental.incremental_comparer import IncrementalComparer
from gitsched.reconcile.incremental.state_plan import try_with_state
from gitsched.reconcile.output.manifest_changes import describe_manifest_changes, find_manifest_changes, list_empty_clusters
from gitsched.reconcile.output.removed_documents import list_cluster_directories, name_former_clusters
from gitsched.reconcile.pipeline import rewrite_output
from gitsched.reconcile.review.changed_lines import ChangedLines, locate_images
from gitsched.reconcile.review.compared_plans import CommitComparer, ComparedInputs, CompleteComparer, PlannedCommit
from gitsched.reconcile.review.stopped_objects import OutputTrees, list_stopped_objects
from gitsched.reconcile.review.unplaced_objects import list_unselected_workloads, locate_unplaced
from gitsched.reconcile.run import Fetched, RunContext, RunResult, find_newer_source, make_review, open_context
from gitsched.reconcile.run_settings import RunSettings
from gitsched.reconcile.source.source_locations import RuleLocations, locate_causes
from gitsched.reconcile.source.source_order import describe_unmerged
from gitsched.render.output_files import escape_segment
from gitsched.render.run_metadata import RunMetadata
from gitsched.report.lines import format_key
from gitsched.report.review import ComparisonBase, DeliveryChanges, OutputComparison, Review
from gitsched.report.summary import describe_newer_source

if TYPE_CHECKING:
    from gitsched.decide.plan_result import Plan
    from gitsched.model.history import SourceChange
    from gitsched.model.reserve import ReserveCheck
    from gitsched.report.page import FleetView

_NO_DOCUMENT_CHANGED = "no document changed: a deadline passed, or an observed value changed"
_MERGE_CONFLICT = (
    "{head} does not contain {base}, and they cannot be merged automatically: there are conflicts, or too little history was fetched. "
    "{head} is planned as it is, so the newer changes of {base} appear reversed."
)
_CONTAINED = "{base} contains {head}, so the merge changes nothing. What {base} changes: gitsched plan {head} {base}"
_OUTPUT_LAG = "The output branch is not up to date with {base}: {moves} there. This comparison leaves that out."
_WITHHELD_IN_BASE = "{guard} withholds {count} of {base} as well: {names}. This comparison leaves that out."

_CHECK_RESERVES = Registered("gitsched.reconcile.review.reserve_check", "check_plan")
_LIST_REQUESTS = Registered("gitsched.reconcile.review.withheld_changes", "list_plan_requests")
_DESCRIBE_REQUESTS = Registered("gitsched.reconcile.review.withheld_changes", "describe_plan_requests")
_CAUSES_SEARCHED = "the causes of moves were searched: the moves are right"
_RESERVES_CHECKED = "reserves were checked, and they are not: the moves are right"

T = TypeVar("T")


class PlanComparison(NamedTuple):
    """A review, and the run of the later commit.

    `later` is the plan under review, `earlier` the plan of the base, None if that is the output branch. `files` are the changed manifests.
    `has_faults`: a bug showed in the search for causes. `fleet` is what a page shows besides the review, if it was asked for.
    `was_available` says of clusters whose documents changed whether they were available in the base, None where that is not known.
    `requests` are the commits of the source that ask for what a plan without a base withholds.
    """

    review: Review
    run: RunResult
    context: RunContext
    later: PlannedCommit
    earlier: PlannedCommit | None = None
    files: tuple[FileChange, ...] = ()
    has_faults: bool = False
    fleet: FleetView | None = None
    was_available: Mapping[str, bool] | None = None
    requests: tuple[SourceChange, ...] = ()

    @property
    def delivered(self) -> dict[str, str | None]:
        """The content of the changed manifests that the digest covers, by path; None for removed ones."""
        return list_delivered(self.review.moves, self.files)


def compare_plans(
    settings: RunSettings, base: str | None = None, *, complete: bool = False, shows_fleet: bool = False
) -> PlanComparison:
    """Compare the plan of the settings with the plan of `base`, or with the output branch where there is none.

    Both plans have the same output and the same observations. Where the source does not contain `base`, the merge of both is planned.
    Nothing is written to the repository. A `complete` comparison has all decisions of its plans; otherwise incremental plans may do. With
    `shows_fleet`, one of incremental plans has what a page shows of the fleet.
    """
    context = open_context(settings)
    with gc_paused():
        commit = None if base is None else find_commit(context, base)
        fetched = fetch(context, commit, shows_findings=True)
        fetched_base = None if commit is None else fetched._replace(source=commit, base_tenants=())

        def compare(comparer: CommitComparer) -> PlanComparison:
            if fetched_base is None or base is None:
                found = _compare_with_output(context, fetched, comparer)
            else:
                found = _compare_with_base(context, fetched, comparer, fetched_base, base)
            if not shows_fleet or found.later.update is None:
                return found
            from gitsched.reconcile.review.fleet_view import view_fleet  # only for a page

            return found._replace(fleet=view_fleet(context, found.later, found.review, settings.progress))

        comparison = None if complete else _compare_incrementally(compare)
        if comparison is None:
            comparison = _check_reserves(compare(CompleteComparer()))
        comparison = _add_requests(comparison) if base is None else comparison
    context.caches.save()
    return comparison


def _add_requests(compared: PlanComparison) -> PlanComparison:
    """Return a comparison with the output branch with the commits that ask for what is withheld: not only the last one may do so."""
    review = compared.review
    if not review.withheld.moves:
        return compared
    requests = _LIST_REQUESTS(compared.context, compared.later.fetched, review.withheld)
    comparison = review.comparison._replace(requested=_DESCRIBE_REQUESTS(requests))
    return compared._replace(review=review._replace(comparison=comparison), requests=requests)


def _check_reserves(compared: PlanComparison) -> PlanComparison:
    """Return a comparison of complete plans with what workloads lack after the losses that reserves are for."""
    found, fetched = (compared.later, *filter(None, [compared.earlier])), compared.later.fetched
    recorded = fetched.record.tenants if fetched.record is not None else ()
    tenants = (*recorded, *(body for side in found for body in side.tenants))
    if not requires_reserve((config.reserve for config in (*(side.config for side in found), fetched.trusted.config)), tenants):
        return compared
    search, review = _Search(), compared.review
    nothing: tuple[ReserveCheck | None, tuple[Finding, ...]] = None, ()
    checked = search.attempt(
        lambda: _CHECK_RESERVES(compared.context, compared.earlier, compared.later), nothing, _RESERVES_CHECKED
    )
    return compared._replace(
        review=review._replace(
            comparison=review.comparison._replace(reserve=checked[0]), findings=(*review.findings, *checked[1], *search.faults)
        )
    )


def _compare_incrementally(compare: Callable[[CommitComparer], PlanComparison]) -> PlanComparison | None:
    """Compare plans that start from the state of the last run; None where complete ones are needed."""
    found = try_with_state(lambda: compare(IncrementalComparer()))
    return None if found is None or found.has_faults else found


def _compare_with_output(context: RunContext, fetched: Fetched, comparer: CommitComparer) -> PlanComparison:
    later = comparer.plan(context, fetched)
    rewritten = rewrite_output(context, fetched, later.run.plan, context.settings.now) if later.run.changed else None
    if rewritten is not None:
        fetched, later = rewritten, comparer.plan(context, rewritten)
    run = later.run
    record, earlier = fetched.record, None
    if record is not None and record.source and context.source.fetch_commit(record.source):
        earlier = context.source.repository.commit(record.source)
    moves, records, changes, search = run.plan.moves, run.record_changes, None, _Search()
    lines = _read_lines(context.source.repository, earlier, fetched.source)
    if earlier is not None:
        since = earlier
        changes = search.attempt(lambda: comparer.compare_with_recorded(context, fetched, since, later), None)
    if changes is not None:
        found = changes
        moves, records = search.attempt(lambda: _add_causes(context, moves, records, found, lines), (moves, records))
    retained: tuple[RetainedWorkload, ...] = ()
    if earlier is not None and changes is not None:
        since, found = earlier, changes
        retained = search.attempt(lambda: _list_retained(context, comparer, found, (since, fetched.source), later), ())
    nothing: tuple[UnplacedObject, ...] = ()
    unselected = search.attempt(lambda: _list_unselected(context, comparer, changes, later), nothing)
    files = find_manifest_changes(fetched.output.repository, fetched.prefix, fetched.output_tree, run.tree, run.source)
    directories = list_cluster_directories(fetched)
    clusters = comparer.list_clusters(context, later)
    added = sorted(name for name in clusters if escape_segment(name) not in directories) if directories else []
    return PlanComparison(
        make_review(run)._replace(
            source_name=context.settings.revision or "",
            base=ComparisonBase(
                states=_read_state_counts(record) if record else None,
                findings=name_former_clusters(fetched, record.findings) if record else None,
                unclaimed=record.unclaimed if record else None,
            ),
            moves=moves,
            comparison=OutputComparison(
                digest=compute_plan_digest(moves, files, records),
                delivery=_describe_delivery(context, fetched, fetched.output_tree, files, run.plan, lines),
                added_clusters=added,
                empty_clusters=list_empty_clusters(fetched, run, added, moves),
                removed_clusters=_list_removed_clusters(later, clusters, changes),
                changed_paths=lines.paths,
                notes=tuple(filter(None, (run.rewrite, describe_unmerged(context, fetched)))),
                unplaced=unselected,
                edits=run.edits,
                older=_describe_older(context, fetched),
            ),
            retained=retained,
            record_changes=records,
            findings=(*fetched.output.unfetched, *run.plan.findings, *search.faults),
        ),
        run,
        context,
        later,
        files=files,
        has_faults=bool(search.faults),
        was_available=_list_earlier_availability(changes, search),
    )


def _describe_older(context: RunContext, fetched: Fetched) -> str:
    """Return what a plan means whose source is older than the commit that a run has planned; "" without such a commit."""
    newer, branch = find_newer_source(context, fetched), fetched.other_branch
    if not newer:
        return ""
    option = " without --allow-older" if branch else ""
    warning = f"what follows would take back what came since, and gitsched reconcile refuses that{option}"
    return f"{describe_newer_source(newer, branch)}, and plan again; {warning}."


def _omit_releases(context: RunContext) -> RunContext:
    """Return the context in which the base of a comparison is planned: what the command releases concerns the other commit."""
    choices = context.settings.choices._replace(released_clusters=())
    return context._replace(settings=context.settings._replace(choices=choices))


def _compare_with_base(
    context: RunContext, fetched: Fetched, comparer: CommitComparer, fetched_base: Fetched, name: str
) -> PlanComparison:
    settings, source, base = context.settings, context.source, fetched_base.source
    head, revision, notes = fetched.source, settings.revision or "HEAD", []
    repository, planned = source.repository, head
    if head.oid and not repository.has_ancestor(head.oid, base.oid):
        source.deepen(base.oid, head.oid)
        repository = source.repository
    if head.oid and not repository.has_ancestor(head.oid, base.oid):
        if repository.has_ancestor(base.oid, head.oid):
            notes.append(_CONTAINED.format(head=revision, base=name))
        tree = repository.merge_commits(base.oid, head.oid)
        if tree is None:
            notes.append(_MERGE_CONFLICT.format(head=revision, base=name))
        else:
            planned = head._replace(tree=tree, parents=(base.oid, head.oid))
    # The merge will be made after now, however old the commits are, so the time of both is now: timers start then, and what both
    # decide has the same time.
    now = settings.now.replace(microsecond=0)
    fetched = fetched._replace(source=planned._replace(time=now))
    earlier = comparer.plan(_omit_releases(context), fetched_base._replace(source=base._replace(time=now)))
    # What both commits build alike is no change, also if no run has recorded its commit yet.
    commits = list_source_commits(earlier.variants)
    later = comparer.plan(context, fetched._replace(source_commits=commits, base_tenants=earlier.tenants))
    before, run, repository = earlier.run, later.run, source.repository
    notes += _describe_output_lag(before.plan, name)
    search, lines = _Search(), _read_lines(repository, base, planned)
    moves = comparer.list_moves(earlier, later)
    records = compare_recorded(before.plan.totals.engines.recorded, run.plan.totals.engines.recorded)
    changes = search.attempt(lambda: comparer.compare(context, earlier, later), None)
    retained: tuple[RetainedWorkload, ...] = ()
    if changes is not None:
        found = changes
        retained = search.attempt(lambda: _list_retained(context, comparer, found, (base, planned), later), ())
        moves, records = search.attempt(lambda: _add_causes(context, moves, records, found, lines), (moves, records))
    nothing: tuple[UnplacedObject, ...] = ()
    no_moves: tuple[Move, ...] = ()
    unplaced = search.attempt(lambda: _locate(context, comparer.list_unplaced(earlier, later)), nothing)
    files = find_manifest_changes(fetched.output.repository, fetched.prefix, before.tree, run.tree, run.source)
    clusters = [comparer.list_clusters(context, planned) for planned in (earlier, later)]
    added = sorted(clusters[1] - clusters[0])
    return PlanComparison(
        make_review(run)._replace(
            source_name="" if settings.worktree else revision,
            changed=before.tree != run.tree,
            base=ComparisonBase(
                base.oid,
                name,
                planned is not head,
                make_review(before).states_left,
                before.plan.findings,
                before.plan.unclaimed,
                before.plan.totals.held,
            ),
            moves=moves,
            comparison=OutputComparison(
                digest=compute_plan_digest(moves, files, records),
                delivery=_describe_delivery(context, fetched, before.tree, files, run.plan, lines),
                added_clusters=added,
                empty_clusters=list_empty_clusters(fetched, run, added, moves),
                removed_clusters=sorted(clusters[0] - clusters[1]),
                changed_paths=lines.paths,
                notes=(*filter(None, (run.rewrite,)), *notes),
                unplaced=unplaced,
                stopped=search.attempt(lambda: _list_stopped(fetched, before, run, moves, files), no_moves),
            ),
            retained=retained,
            record_changes=records,
            findings=(*run.plan.findings, *search.faults),
            withheld=run.plan.withheld.compare(before.plan.withheld),
            retained_copies=_list_own_copies(before.plan, run.plan, moves),
        ),
        run,
        context,
        later,
        earlier,
        files,
        has_faults=bool(search.faults),
        was_available=_list_earlier_availability(changes, search),
    )


def _describe_output_lag(plan: Plan, name: str) -> Iterator[str]:
    """Yield what a run of the base of a comparison, with this name, would move, and what it would withhold."""
    withheld = plan.withheld
    number = len(plan.moves) - len(withheld.moves)
    if number > 0:
        yield _OUTPUT_LAG.format(base=name, moves=format_count(number, "more workload moves", "more workloads move"))
    if withheld.moves:
        names = format_names([format_key(move.key) for move in withheld.moves])
        count = format_count(len(withheld.moves), "change")
        yield _WITHHELD_IN_BASE.format(guard=withheld.withheld_by.capitalize(), count=count, base=name, names=names)


def _list_retained(
    context: RunContext, comparer: CommitComparer, inputs: ComparedInputs, commits: tuple[Commit, Commit], planned: PlannedCommit
) -> tuple[RetainedWorkload, ...]:
    """Return the workloads that keep their placement because of scheduling history, with the changes that are closest to them."""
    found = comparer.list_retained(context, inputs, *commits, planned)
    if not found:
        return ()
    locations = RuleLocations(context.source.repository)
    return name_near_changes(found, inputs.changes, inputs.policy_names[1], lambda causes: locate_causes(causes, locations))


def _list_own_copies(earlier: Plan, later: Plan, moves: Iterable[Move]) -> tuple[RetainedCopy, ...]:
    """Return the copies of a later plan that an earlier one does not retain, and those of workloads that move from one to the other."""
    known, moving = {(copy.workload, copy.cluster) for copy in earlier.retained}, {move.key for move in moves}
    own = tuple(copy for copy in later.retained if copy.workload in moving or (copy.workload, copy.cluster) not in known)
    return mark_awaited(own, later.findings)


class _Search:
    """The search for what caused moves. Where a bug shows in it, the review has less, and a finding in `faults`."""

    def __init__(self) -> None:
        self.faults: list[Finding] = []

    def attempt(self, work: Callable[[], T], otherwise: T, during: str = _CAUSES_SEARCHED) -> T:
        """Return what `work` returns; `otherwise` if a bug shows in it."""
        try:
            return work()
        except Exception as error:
            if not is_bug(error):
                raise
            self.faults.append(make_fault_finding(error, during))
            return otherwise


def _add_causes(
    context: RunContext,
    moves: tuple[Move, ...],
    records: tuple[RecordChange, ...],
    inputs: ComparedInputs,
    lines: ChangedLines,
) -> tuple[tuple[Move, ...], tuple[RecordChange, ...]]:
    """Return moves and changed recorded decisions with their causes and the locations of these."""
    if not (moves or records):
        return moves, records
    names, decided = inputs.policy_names, inputs.read_decided()
    found = find_causes(moves, records, inputs.changes, names, decided, context.settings.progress, lines.find_built)
    locations = RuleLocations(context.source.repository)
    return (
        tuple(move._replace(causes=locate_causes(move.causes, locations)) for move in found.moves),
        tuple(
            record._replace(causes=locate_causes(record.causes, locations), reason="" if record.causes else _NO_DOCUMENT_CHANGED)
            for record in found.records
        ),
    )


def _list_earlier_availability(inputs: ComparedInputs | None, search: _Search) -> dict[str, bool] | None:
    return search.attempt(inputs.changes.list_earlier_availability, None) if inputs is not None else None


def _list_removed_clusters(planned: PlannedCommit, clusters: set[str], changes: ComparedInputs | None) -> list[str]:
    """Return the clusters that have lost their document since the last run: those that retire, and those where workloads stay."""
    plan, record = planned.run.plan, planned.fetched.record
    retiring = plan.retiring.keys() - (record.retiring.keys() if record is not None else set())
    staying = (
        plan.cluster_facts.keys() - plan.retiring.keys() - clusters if plan.complete else set[str]()
    )  # none in an incremental plan
    if staying and changes is not None:
        staying &= changes.changes.list_removed_clusters()
    return sorted(retiring | staying)


def _locate(context: RunContext, objects: Iterable[UnplacedObject]) -> tuple[UnplacedObject, ...]:
    """Return objects that no cluster gets, each with the line of the field that is to blame."""
    return locate_unplaced(objects, RuleLocations(context.source.repository))


def _list_unselected(
    context: RunContext, comparer: CommitComparer, inputs: ComparedInputs | None, later: PlannedCommit
) -> tuple[UnplacedObject, ...]:
    """Return the objects that no policy selects and that are new since the last run; before the first run those with pods."""
    plan = later.run.plan
    if later.fetched.record is not None:
        return _locate(context, comparer.list_added(inputs, later)) if inputs is not None else ()
    if not (plan.complete and plan.unclaimed):
        return ()
    return list_unselected_workloads(later.decisions, RuleLocations(context.source.repository))


def _list_stopped(
    fetched: Fetched, before: RunResult, run: RunResult, moves: Sequence[Move], files: Iterable[FileChange]
) -> tuple[Move, ...]:
    """Return the objects of workloads that go on of which no cluster runs a replica any more."""
    trees = OutputTrees(fetched.output.repository, fetched.prefix, before.tree, run.tree, run.plan.totals.config)
    return tuple(list_stopped_objects(files, moves, (before.plan.outcomes, run.plan.outcomes), trees))


def _describe_delivery(
    context: RunContext, fetched: Fetched, before: str | None, files: tuple[FileChange, ...], plan: Plan, lines: ChangedLines
) -> DeliveryChanges:
    found = describe_manifest_changes(context, fetched, before, files, plan)
    return found._replace(images=locate_images(found.images, lines)) if found.images else found


def _read_lines(repository: Repository, earlier: Commit | None, later: Commit) -> ChangedLines:
    trees = earlier.tree if earlier else None, later.tree
    return ChangedLines(repository, *trees, frozenset(repository.changed_paths(*trees)))


def _read_state_counts(record: RunMetadata) -> Mapping[str, int]:
    """Return the number of workloads by state. A record without these numbers is estimated from its findings."""
    if record.workloads is not None:
        return record.workloads
    counts = Counter(finding.code for finding in record.findings)
    return {"pending": counts["unschedulable"], "stale": counts["stale-decision"]}
