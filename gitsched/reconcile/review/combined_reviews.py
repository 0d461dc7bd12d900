"""Combine the reviewed plans of the commits since the last run: two reviewed pull requests that are merged together are reviewed.

The digest that a commit names is verified: its change is planned again, on its parent or on an earlier commit of the branch, as
`gitsched plan BASE HEAD` planned it for the review. The changes that have this digest are those that were reviewed.
"""

from __future__ import annotations

from collections.abc import Callable

from gitsched.decide.recorded_decisions import compare_recorded
from gitsched.diff.combined_reviews import PlanChanges, list_unreviewed
from gitsched.diff.plans import FileChange, ReviewComparison, find_reviewed_digest, list_moves_between
from gitsched.model.commit import Commit
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.bundles.source_commits import list_source_commits
from gitsched.reconcile.output.manifest_changes import find_manifest_changes
from gitsched.reconcile.output.output_commit import write
from gitsched.reconcile.run import Fetched, Planned, RunContext, Written
from gitsched.report.lines import abbreviate_oid

MAX_COMMITS = 20
"""Commits since the last run whose reviews are combined."""
MAX_PLANS = 40
"""Plans that are made to verify reviews."""


class _PlannedCommit(NamedTuple):
    planned: Planned
    written: Written


def combine_reviews(
    context: RunContext,
    fetched: Fetched,
    total: PlanChanges,
    compared: ReviewComparison | None,
    plan_commit: Callable[..., Planned],
) -> ReviewComparison | None:
    """Compare the changes of a run with the reviewed plans of the commits since the last run; None if they name none.

    `compared` is the comparison with the reviewed plan of the last commit alone, None if it names none. Only the first parents count: the
    commits of a merged branch are its author's.
    """
    chain = _list_chain(context, fetched)
    named = {commit.oid: plan.digest for commit in chain[1:] if (plan := find_reviewed_digest(commit)) is not None}
    given = context.settings.choices.reviewed
    if given is not None and len(chain) > 1:
        named[fetched.source.oid] = given.digest
    if not named:
        return None
    verifier = _Verifier(context, fetched, plan_commit)
    reviewed = [verifier.list_late_changes(chain[0])]
    lines, confirmed = [], []
    for number, commit in enumerate(chain[1:], start=1):
        digest = named.get(commit.oid)
        changes = verifier.find_reviewed(chain[:number], commit, digest) if digest is not None else None
        if changes is not None:
            reviewed.append(changes)
            confirmed.append(f"{digest} (commit {abbreviate_oid(commit.oid)})")
        elif digest is not None and verifier.is_exhausted:
            lines.append(
                f"  commit {abbreviate_oid(commit.oid)} names {digest}, which would take more than {MAX_PLANS} plans to verify"
            )
        elif digest is not None:
            lines.append(f"  commit {abbreviate_oid(commit.oid)} names {digest}, which is not the plan of its changes")
    unreviewed = list_unreviewed(total, reviewed)
    if not unreviewed:
        return ReviewComparison(True, (f"As reviewed: plan{'s' if len(confirmed) > 1 else ''} {', '.join(confirmed)}.",))
    if given is not None and given.moves is not None:
        return compared  # which lists the differences from the plan that is given
    first = compared.lines if compared is not None else (f"Not as reviewed: commit {fetched.source.oid} names no reviewed plan.",)
    return ReviewComparison(False, (*first, *lines, *(f"  in no reviewed plan: {line}" for line in unreviewed)))


def _list_chain(context: RunContext, fetched: Fetched) -> list[Commit]:
    """Return the commit that was planned last, and the first parents since then up to the planned one; none if that is not known."""
    repository, planned = context.source.repository, {fetched.reconciled.source}
    planned |= {fetched.record.source} if fetched.record is not None else set()
    chain = [fetched.source]
    while fetched.source.oid and len(chain) <= MAX_COMMITS and chain[0].parents:
        parent = chain[0].parents[0]
        if not context.source.fetch_commit(parent):
            break
        chain.insert(0, repository.commit(parent))
        if parent in planned:
            return chain
    return []


class _Verifier:
    def __init__(self, context: RunContext, fetched: Fetched, plan_commit: Callable[..., Planned]) -> None:
        # Reviews have the recorded observations.
        self._context = context._replace(settings=context.settings._replace(observations="recorded"))
        self._fetched, self._plan_commit = fetched, plan_commit
        self._bases: dict[str, _PlannedCommit] = {}
        self._plans = 0

    @property
    def is_exhausted(self) -> bool:
        """Whether no more plans are made."""
        return self._plans >= MAX_PLANS

    def list_late_changes(self, commit: Commit) -> PlanChanges:
        """Return what time changes since the commit was planned. What the guard withholds does not count."""
        fetched = self._fetched._replace(source=commit)
        planned = self._plan_commit(self._context, fetched, withholds=True)
        written = write(self._context, fetched, planned)
        return PlanChanges(
            planned.plan.moves, self._list_files(self._fetched.output_tree, written.tree, commit.oid), written.record_changes
        )

    def find_reviewed(self, earlier: list[Commit], commit: Commit, digest: str) -> PlanChanges | None:
        """Return the changes that have this digest: those of a commit on its parent or on an earlier commit of the branch, or those
        between an earlier commit and this one; None if there are none."""
        for base in reversed(earlier):
            for tree in dict.fromkeys((self._apply(earlier[-1], commit, base), commit.tree)):
                if tree is not None and not self.is_exhausted:
                    changes = self._plan_change(base, commit, tree)
                    if changes.digest == digest:
                        return changes
        return None

    def _apply(self, parent: Commit, commit: Commit, base: Commit) -> str | None:
        """Return the tree that has the changes of a commit on another one than its parent; None if they conflict."""
        return commit.tree if base is parent else self._context.source.repository.merge_trees(parent.tree, base.tree, commit.tree)

    def _plan_change(self, base: Commit, commit: Commit, tree: str) -> PlanChanges:
        # Both as made now: what time has changed since the review is in both plans, and so no change.
        now = self._context.settings.now
        if base.oid not in self._bases:
            self._bases[base.oid] = self._plan(self._fetched._replace(source=base._replace(time=now)))
        before = self._bases[base.oid]
        merge = commit._replace(tree=tree, time=now)
        decisions = before.planned.plan.decisions
        fetched = self._fetched._replace(source=merge, source_commits=list_source_commits(decisions.variants))
        after = self._plan(fetched)
        earlier, later = before.planned.plan, after.planned.plan
        return PlanChanges(
            list_moves_between(earlier, later, later.decisions.templates),
            self._list_files(before.written.tree, after.written.tree, commit.oid),
            compare_recorded(earlier.totals.engines.recorded, later.totals.engines.recorded),
        )

    def _plan(self, fetched: Fetched) -> _PlannedCommit:
        self._plans += 1
        planned = self._plan_commit(self._context, fetched)
        return _PlannedCommit(planned, write(self._context, fetched, planned))

    def _list_files(self, before: str | None, after: str, commit: str) -> tuple[FileChange, ...]:
        return find_manifest_changes(self._fetched.output.repository, self._fetched.prefix, before, after, commit)
