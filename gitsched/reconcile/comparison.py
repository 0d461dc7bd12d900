"""Compare the plan of a commit with the output branch or with the plan of a base commit, for a review."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gitsched.apis.gitsched.config import Config
from gitsched.decide.catalog import Catalog, build_catalog
from gitsched.decide.decisions import DecisionSet
from gitsched.decide.gc_pause import gc_paused
from gitsched.decide.registry import reserved_groups
from gitsched.diff.causes import CatalogComparison, compare_catalogs, find_causes
from gitsched.diff.plans import compare_choices, list_choices, list_moves_between
from gitsched.diff.retained import CommitInput, find_retained
from gitsched.model.changes import Move, RetainedWorkload
from gitsched.model.commit import Commit
from gitsched.model.document import Document, Key
from gitsched.model.explanation import Explanation
from gitsched.model.finding import Finding
from gitsched.model.scheduling import Outcome
from gitsched.reconcile.fetch import Fetched
from gitsched.reconcile.reconciler import Reconciler
from gitsched.reconcile.review_check import compute_plan_digest, describe_manifest_changes, find_manifest_changes
from gitsched.reconcile.run import RunResult, RunSettings, make_review
from gitsched.reconcile.source_locations import RuleLocations, locate_causes
from gitsched.render.layout import CLUSTERS, escape_segment
from gitsched.report.review import ComparisonBase, Review

MAX_EXPLAINED_MOVES = 100
"""Moves for which each cluster is asked what speaks against it; for the others, what differs between the commits has to do."""
_MERGE_CONFLICT = (
    "{head} does not contain {base}, and merging them needs a person, or more history than is here: {head} is planned as it is, so what "
    "{base} has gained since shows reversed."
)
_OUTPUT_LAG = (
    "The output branch is not yet what {base} asks for: {moves} more workloads will move, which is no part of this comparison."
)


class PlannedCommit(NamedTuple):
    """What was decided about one commit, and by which settings."""

    run: RunResult
    decisions: DecisionSet
    config: Config


class PlanComparison(NamedTuple):
    """A review, the run of its later commit, which has the plan, and the session of both. `earlier` is the plan of the base, where it is
    a commit, and `later` the one that is compared with it."""

    review: Review
    run: RunResult
    reconciler: Reconciler
    later: PlannedCommit
    earlier: PlannedCommit | None = None


def compare_plans(settings: RunSettings, base: str | None = None) -> PlanComparison:
    """Plan what the settings say, and tell what differs from the plan of `base`; without one, from the output branch.

    Both plans are made over the same output and observations. Where the source does not contain `base`, what merging them gives is
    planned. Objects may be written to the repository, no ref moves.
    """
    session = Reconciler(settings)
    with gc_paused():
        found = _compare_with_output(session) if base is None else _compare_with_base(session, base)
    session.save_caches()
    return found


def _compare_with_output(session: Reconciler) -> PlanComparison:
    observed = session.fetch()
    later = _plan_commit(session, observed)
    run, decided = later.run, later.decisions
    record, earlier = observed.record, None
    if record is not None and record.source and session.source.fetch_commit(record.source):
        earlier = session.source.repository.commit(record.source)
    ground = compare_catalogs(_read_catalog(session, earlier) if earlier is not None else decided.catalog, decided.catalog)
    told = _CauseFinder(session, decided, ground, {})
    moves = tuple(map(told.add_causes, run.plan.moves))
    differences = find_manifest_changes(observed.output.repository, observed.prefix, observed.output_tree, run.tree)
    directories = _list_cluster_directories(observed)
    facts, retiring = run.plan.cluster_facts.keys(), run.plan.retiring.keys()
    return PlanComparison(
        make_review(run)._replace(
            source_name=session.settings.revision or "",
            base=ComparisonBase(
                states=_count_states_from_findings(record.findings) if record else None,
                findings=record.findings if record else None,
            ),
            moves=moves,
            digest=compute_plan_digest(moves, differences, run.choices),
            delivery=describe_manifest_changes(observed.output.repository, observed.prefix, observed.output_tree, differences),
            added_clusters=sorted(name for name in facts - retiring if escape_segment(name) not in directories)
            if directories
            else (),
            removed_clusters=sorted(retiring - (record.retiring.keys() if record else set())),
            changed_paths=_list_changed_paths(session, earlier, observed.source),
            retained=_list_retained(session, ground, earlier, observed.source, later) if earlier is not None else (),
        ),
        run,
        session,
        later,
    )


def _compare_with_base(session: Reconciler, name: str) -> PlanComparison:
    settings = session.settings
    base = session.find_commit(name)
    observed = session.fetch(base)
    head, wanted, notes = observed.source, settings.revision or "HEAD", []
    repository, source = session.source.repository, head
    if head.oid and not repository.has_ancestor(head.oid, base.oid):
        session.source.deepen(base.oid, head.oid)
        repository = session.source.repository
    if head.oid and not repository.has_ancestor(head.oid, base.oid):
        tree = repository.merge_commits(base.oid, head.oid)
        if tree is None:
            notes.append(_MERGE_CONFLICT.format(head=wanted, base=name))
        else:
            source = head._replace(tree=tree)
    # The merge is yet to come: what it changes has its time now, however old the commit is, and timers start then.
    observed = observed._replace(source=source._replace(time=settings.now))
    earlier, later = _plan_commit(session, observed._replace(source=base)), _plan_commit(session, observed)
    before, run, decided = earlier.run, later.run, later.decisions
    if before.plan.moves:
        notes.append(_OUTPUT_LAG.format(base=name, moves=len(before.plan.moves)))
    ground = compare_catalogs(earlier.decisions.catalog, decided.catalog)
    told = _CauseFinder(session, decided, ground, before.plan.outcomes)
    moves = tuple(map(told.add_causes, list_moves_between(before.plan, run.plan, decided.templates)))
    differences = find_manifest_changes(observed.output.repository, observed.prefix, before.tree, run.tree)
    choices = compare_choices(list_choices(earlier.decisions), list_choices(decided))
    clusters = [_list_clusters(plan) for plan in (before, run)]
    return PlanComparison(
        make_review(run)._replace(
            source_name="" if settings.worktree else wanted,
            changed=before.tree != run.tree,
            base=ComparisonBase(base.oid, name, source is not head, before.plan.state_counts, before.plan.findings),
            moves=moves,
            digest=compute_plan_digest(moves, differences, choices),
            delivery=describe_manifest_changes(observed.output.repository, observed.prefix, before.tree, differences),
            added_clusters=sorted(clusters[1] - clusters[0]),
            removed_clusters=sorted(clusters[0] - clusters[1]),
            changed_paths=_list_changed_paths(session, base, source),
            comparison_notes=notes,
            retained=_list_retained(session, ground, base, source, later),
            choices=choices,
        ),
        run,
        session,
        later,
        earlier,
    )


class _CauseFinder:
    """Says what makes workloads move. Asking the APIs is dear, so it is done for the first moves only."""

    def __init__(self, session: Reconciler, decided: DecisionSet, ground: CatalogComparison, before: Mapping[Key, Outcome]) -> None:
        self._reconciler, self._decided, self._comparison, self._before = session, decided, ground, before
        self._locations: RuleLocations = {}
        self._explained = 0

    def add_causes(self, move: Move) -> Move:
        """The move with its causes and where they stand."""
        was, now = self._before.get(move.key), self._decided.outcomes.get(move.key)
        causes = find_causes(move, was, now, self._comparison, self._explain(move))
        return move._replace(causes=locate_causes(causes, self._reconciler.source.repository, self._locations))

    def _explain(self, move: Move) -> Explanation | None:
        template: Document | None = self._decided.templates.get(move.key)
        if template is None or not move.before.keys() - move.after.keys() or self._explained >= MAX_EXPLAINED_MOVES:
            return None
        self._explained += 1
        return self._decided.explain(template)


def _plan_commit(session: Reconciler, observed: Fetched) -> PlannedCommit:
    step = session.plan(observed, session.settings.now)
    assert step.plan.decisions is not None, "a whole plan has it"
    return PlannedCommit(session.write(observed, step, publish=False), step.plan.decisions, step.config)


def _list_retained(
    session: Reconciler, ground: CatalogComparison, earlier: Commit, later: Commit, planned: PlannedCommit
) -> tuple[RetainedWorkload, ...]:
    """What memory holds, where anything but workloads differs."""
    if not ground.changed_keys:
        return ()
    plan, now = planned.run.plan, session.settings.now
    snapshots = [session.read_source_at(commit) for commit in (earlier, later)]
    rules = [CommitInput(snapshot.documents, snapshot.config, min(later.time, now), plan.observations) for snapshot in snapshots]
    return find_retained(rules[0], rules[1], now, planned.decisions, max(now, plan.time))


def _read_catalog(session: Reconciler, commit: Commit) -> Catalog:
    snapshot = session.read_source_at(commit)
    return build_catalog(snapshot.documents, snapshot.config.kinds, reserved_groups())


def _list_cluster_directories(observed: Fetched) -> set[str]:
    """The directories of clusters on the output branch."""
    return (
        set(observed.output.repository.list_directory(observed.output_tree, f"{observed.prefix}{CLUSTERS}"))
        if observed.output_tree
        else set()
    )


def _list_clusters(run: RunResult) -> set[str]:
    return set(run.plan.cluster_facts.keys() - run.plan.retiring.keys())


def _list_changed_paths(session: Reconciler, earlier: Commit | None, later: Commit) -> frozenset[str]:
    return frozenset(session.source.repository.changed_paths(earlier.tree if earlier else None, later.tree))


def _count_states_from_findings(findings: Iterable[Finding]) -> dict[str, int]:
    """The states of workloads as far as findings tell them."""
    counts = Counter(finding.code for finding in findings)
    return {"pending": counts["unschedulable"], "stale": counts["stale-decision"]}
