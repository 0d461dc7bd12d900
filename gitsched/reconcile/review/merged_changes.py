"""Merge several branches in memory, and plan what each set of them changes: which of them fit together, before any is merged."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.config import FILE
from gitsched.apis.gitsched.reserve_config import requires_reserve
from gitsched.apis.registered import Registered
from gitsched.decide.garbage_collection import gc_paused
from gitsched.decide.recorded_decisions import compare_recorded
from gitsched.diff.fitting_sets import MAX_EXHAUSTIVE, find_fitting_sets
from gitsched.model.errors import LimitsExceededError, Permanent
from gitsched.model.finding import Finding
from gitsched.model.fits import ChangeSet, FitReport, SetVerdict
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.bundles.source_commits import list_source_commits
from gitsched.reconcile.cache.shared_rows import SharedRows
from gitsched.reconcile.fetch import fetch, find_commit
from gitsched.reconcile.incremental.incremental_comparer import IncrementalComparer
from gitsched.reconcile.incremental.state_plan import try_with_state
from gitsched.reconcile.review.compared_plans import CompleteComparer
from gitsched.reconcile.run import make_review, open_context
from gitsched.reconcile.worker_processes import count_processes, map_in_processes
from gitsched.report.consequences import list_consequences, loses_placements
from gitsched.report.review import ComparisonBase

if TYPE_CHECKING:
    from gitsched.model.commit import Commit
    from gitsched.reconcile.review.compared_plans import CommitComparer, PlannedCommit
    from gitsched.reconcile.run import Fetched, RunContext
    from gitsched.reconcile.run_settings import RunSettings
    from gitsched.report.review import Review

MAX_BRANCHES = 100
"""Branches that are compared at a time."""
MAX_PLANS = 500
"""Plans that are made of merged branches, if every set of them is tried."""
MAX_SEARCHED = 100
"""Plans besides one for each branch that are made of more branches, most of them to find out why one does not fit."""
_CHECK_RESERVES = Registered("gitsched.reconcile.review.reserve_check", "check_plan")
MIN_DIVIDED = 8
"""Plans from which on they are made in several processes."""
MIN_WORKLOADS = 1_000
"""Workloads from which on any two plans are made in several processes."""
MAX_DECIDED = 80_000
"""Workloads that plans of more branches decide in all, those of the plan of each branch excepted: a minute of processor time."""
MAX_REASONS = 100
"""Reasons why one set of branches does not fit."""
_REQUEST = re.compile(r"[#!]([0-9]{1,9})")
_REQUEST_REFS = ("origin/pull/{}", "origin/pull/{}/head", "origin/merge-requests/{}", "origin/merge-requests/{}/head")
"""Where clones have the commits of pull and merge requests, if they fetch them."""
_NOT_RELATED = "there is no common ancestor with {}, or the clone is too shallow: fetch more of its history"


def find_fits(settings: RunSettings, base: str | None, names: Sequence[str], is_over: Callable[[], bool]) -> FitReport:
    """Return which branches, tags or commits fit together on top of a base, by default the head of the source branch.

    A set fits if it merges without conflicts, and if `gitsched plan BASE` of the merge, with the settings of the base, does not fail.
    Nothing is written to the repository.
    No more sets are tried when `is_over` returns true, or after so many plans.
    """
    if len(names) > MAX_BRANCHES:
        raise Permanent(f"{len(names)} branches are too many to compare: at most {MAX_BRANCHES}")
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise Permanent(f"{repeated} is there twice")
    context = open_context(settings)
    context.caches.shared_rows = SharedRows()
    with gc_paused():
        commit = find_commit(context, base) if base is not None else fetch(context, shows_findings=True).source
        fetched = fetch(context, commit)
        changes = [_find_change(context, name) for name in names]
        merged = _MergedChanges(context, fetched._replace(source=commit), changes, is_over, count_processes())
        merged.prepare_all([frozenset((number,)) for number in range(len(changes))])
        found = find_fitting_sets(len(changes), merged.check, merged.prepare)
    context.caches.save()
    listed = tuple((name, change.oid) for name, change in zip(names, changes, strict=True))
    return FitReport(
        (base or fetched.branch or "HEAD", commit.oid), listed, found, merged.verdicts, merged.plans, merged.list_with_settings()
    )


def _find_change(context: RunContext, name: str) -> Commit:
    """Return the commit of a branch, tag, commit or `#NUMBER`."""
    request = _REQUEST.fullmatch(name)
    if request is None:
        return find_commit(context, name)
    repository, number = context.source.repository, request[1]
    refs = [f"refs/remotes/{ref.format(number)}" for ref in _REQUEST_REFS]
    oids = (repository.resolve_ref(ref) for ref in (*refs, f"refs/pull/{number}/head", f"refs/merge-requests/{number}/head"))
    oid = next(filter(None, oids), None)
    if oid is None:
        fetching = f"git fetch origin 'refs/pull/{number}/head:{refs[0]}'"
        raise Permanent(f"the repository has no commit of {name}: run {fetching}, or for GitLab the same with merge-requests")
    return repository.commit(oid)


class PlannedSet(NamedTuple):
    """The verdict about a set, and the number of workloads that its plan decided."""

    verdict: SetVerdict
    decided: int


class _MergedChanges:
    """Merges sets of changes and plans them. `verdicts` are those of the sets that were tried, `plans` is the number of their plans."""

    def __init__(
        self, context: RunContext, base: Fetched, changes: Sequence[Commit], is_over: Callable[[], bool], processes: int
    ) -> None:
        # As in a comparison: the merges will be made now, and the base is planned at the same time.
        base = base._replace(source=base.source._replace(time=context.settings.now.replace(microsecond=0)))
        self._context, self._base, self._changes, self._is_over = context, base, changes, is_over
        self._repository = context.source.repository
        self._merges: dict[ChangeSet, str | SetVerdict] = {frozenset(): base.source.oid}
        self._planned_base: dict[bool, PlannedCommit] = {}
        self._by_tree: dict[str, PlannedSet] = {base.source.tree: PlannedSet(SetVerdict(), 0)}
        self._tried = {base.source.tree}
        self._processes = processes
        self._is_exhaustive = len(changes) <= MAX_EXHAUSTIVE
        self._limit = MAX_PLANS if self._is_exhaustive else min(MAX_PLANS, MAX_SEARCHED + len(changes))
        self._decided, self._decidable = 0, math.inf if self._is_exhaustive else MAX_DECIDED
        self.verdicts: dict[ChangeSet, SetVerdict] = {}

    @property
    def plans(self) -> int:
        return len(self._tried) - 1

    def prepare(self, sets: Sequence[ChangeSet]) -> None:
        """Plan the merges of sets that may be checked next, in several processes; without any effect but their results."""
        self._plan_some(sets, self._processes)

    def prepare_all(self, sets: Sequence[ChangeSet]) -> None:
        """Plan the merges of sets that will be checked, as `prepare`."""
        if sets and not self._planned_base:
            self.check(sets[0])  # what plans have in common is read before this process is copied
        self._plan_some(sets, len(sets))

    def _plan_some(self, sets: Sequence[ChangeSet], count: int) -> None:
        """Plan the first ones of the sets that are not planned yet."""
        if self._processes == 1:
            return
        by_tree: dict[str, ChangeSet] = {}
        for wanted in sets:
            merged = self._merge(wanted)
            if isinstance(merged, str):
                tree = self._keep_settings(self._repository.commit(merged).tree)
                if tree not in self._by_tree:
                    by_tree.setdefault(tree, wanted)
            if len(by_tree) == count:
                break
        workloads = max((one.run.plan.totals.overview.workload_count for one in self._planned_base.values()), default=0)
        if len(by_tree) < (2 if workloads >= MIN_WORKLOADS else MIN_DIVIDED):
            return

        def plan(tree: str) -> PlannedSet | None:
            return None if self._is_over() else self._plan(tree, by_tree[tree])

        planned = map_in_processes(plan, list(by_tree), self._processes)
        self._by_tree.update((tree, found) for tree, found in zip(by_tree, planned, strict=True) if found is not None)

    def check(self, wanted: ChangeSet) -> bool | None:
        """Return whether changes fit together; None if no more is tried."""
        merged = self._merge(wanted)
        if isinstance(merged, SetVerdict):
            self.verdicts[wanted] = merged
            return False
        tree = self._keep_settings(self._repository.commit(merged).tree)
        if tree not in self._tried:
            if self.plans >= self._limit or self._decided >= self._decidable or (tree not in self._by_tree and self._is_over()):
                return None
            self._tried.add(tree)
            if tree not in self._by_tree:
                self._by_tree[tree] = self._plan(tree, wanted)
            self._decided += self._by_tree[tree].decided if len(wanted) > 1 else 0
        self.verdicts[wanted] = self._by_tree[tree].verdict
        return self.verdicts[wanted].fits

    def list_with_settings(self) -> ChangeSet:
        """Return the changes that change settings."""
        trees = {
            number: self._repository.commit(merged).tree
            for number in range(len(self._changes))
            if isinstance(merged := self._merge(frozenset((number,))), str)
        }
        return frozenset(number for number, tree in trees.items() if self._keep_settings(tree) != tree)

    def _keep_settings(self, tree: str) -> str:
        """Return a merged tree with the settings of the base: those of a change must not decide about others."""
        entry = self._repository.find_entry(self._base.source.tree, FILE)
        if self._repository.find_entry(tree, FILE) == entry:
            return tree
        return self._repository.scratch.replace_entry(tree, FILE, entry)

    def _merge(self, wanted: ChangeSet) -> str | SetVerdict:
        """Return the commit that merges changes in their order, or what keeps them from being merged."""
        if wanted not in self._merges:
            last = max(wanted)
            before = self._merge(wanted - {last})
            self._merges[wanted] = before if isinstance(before, SetVerdict) else self._add(before, self._changes[last])
        return self._merges[wanted]

    def _add(self, before: str, change: Commit) -> str | SetVerdict:
        if self._repository.has_ancestor(before, change.oid):
            return before
        if self._repository.find_merge_base(before, change.oid) is None:
            self._context.source.deepen(self._base.source.oid, change.oid)
            self._repository = self._context.source.repository
        try:
            merged = self._repository.merge(before, change.oid)
        except Permanent as error:
            return SetVerdict((str(error),))
        if merged is None:
            return SetVerdict((_NOT_RELATED.format(change.oid[:12]),))
        if merged.tree is None:
            return SetVerdict(files=merged.conflicts)
        return self._repository.scratch.write_commit(merged.tree, (before, change.oid))

    def _plan(self, tree: str, wanted: ChangeSet) -> PlannedSet:
        """Return why the plan of a merge with this tree fails, as `gitsched plan BASE` would."""
        last = self._changes[max(wanted)]
        source = last._replace(tree=tree, parents=(last.oid, self._base.source.oid), time=self._base.source.time)
        fetched = self._base._replace(source=source)
        refuses = len(wanted) > 1 and not self._is_exhaustive  # one reason is enough then
        try:
            found = try_with_state(lambda: self._compare(fetched, IncrementalComparer(), within_limits=refuses))
            review, decided = found if found is not None else self._compare(fetched, CompleteComparer())
        except LimitsExceededError as error:
            return PlannedSet(SetVerdict((str(error),)), error.decided)
        except Permanent as error:
            return PlannedSet(SetVerdict((str(error),)), 0)
        reasons = [str(finding) for finding in review.new_findings if finding.severity == "error"]
        reasons += [review.refused] if review.refused else []
        if loses_placements(review):
            reasons += [one.text for one in list_consequences(review) if one.fails]
        if review.withheld.moves and not reasons:
            reasons.append("the guard withholds changes")
        return PlannedSet(SetVerdict(tuple(reasons[:MAX_REASONS])), decided)

    def _compare(self, fetched: Fetched, comparer: CommitComparer, *, within_limits: bool = False) -> tuple[Review, int]:
        """Return the review of a merge, without the causes of its moves, and the number of workloads that were decided. With
        `within_limits`, LimitsExceededError may be raised."""
        context, complete = self._context, isinstance(comparer, CompleteComparer)
        if complete not in self._planned_base:
            self._planned_base[complete] = comparer.plan(context, self._base._replace(base_tenants=()))
        earlier = self._planned_base[complete]
        fetched = fetched._replace(source_commits=list_source_commits(earlier.variants), base_tenants=earlier.tenants)
        choices = context.settings.choices._replace(within_limits=within_limits)
        later = comparer.plan(context._replace(settings=context.settings._replace(choices=choices)), fetched)
        before, moves = earlier.run.plan, comparer.list_moves(earlier, later)
        records = compare_recorded(before.totals.engines.recorded, later.run.plan.totals.engines.recorded)
        if records:
            changes = comparer.compare(context, earlier, later).changes
            records = tuple(one._replace(intended=changes.removes(one.subject)) for one in records)
        review = make_review(later.run)
        findings = (*review.findings, *(self._check_reserves(earlier, later) if complete else ()))
        comparison = review.comparison
        if any(not move.after for move in moves):
            comparison = comparison._replace(unplaced=tuple(comparer.list_unplaced(earlier, later)))
        known = ComparisonBase(self._base.source.oid, "", True, before.state_counts, before.findings)
        update, totals = later.update, later.run.plan.totals
        decided = totals.overview.workload_count if update is None else len(update.incremental.changes.workloads)
        return review._replace(moves=moves, record_changes=records, findings=findings, comparison=comparison, base=known), decided

    def _check_reserves(self, earlier: PlannedCommit, later: PlannedCommit) -> tuple[Finding, ...]:
        """Return the findings about reserves that any side has."""
        sides = earlier, later
        if not requires_reserve((side.config.reserve for side in sides), (body for side in sides for body in side.tenants)):
            return ()
        found: tuple[Finding, ...] = _CHECK_RESERVES(self._context, earlier, later, False)[1]
        return found
