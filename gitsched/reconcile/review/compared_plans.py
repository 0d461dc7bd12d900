"""The parts of a comparison of two commits that depend on how these are planned, and complete plans of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from gitsched.decide.catalog import build_catalog
from gitsched.decide.registry import reserved_groups
from gitsched.decide.variants.kustomized_parts import resolve_parts
from gitsched.diff.counterfactual_placements import DecidedCommit
from gitsched.diff.document_changes import DocumentChanges
from gitsched.diff.plans import list_moves_between
from gitsched.diff.policy_names import PolicyNames
from gitsched.diff.retained import CommitInput, find_retained
from gitsched.model.observation import read_observations
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.facts.cluster_facts import add_all_facts
from gitsched.reconcile.facts.facts_branches import find_recorded_facts
from gitsched.reconcile.output.output_commit import write
from gitsched.reconcile.review.unplaced_objects import list_added, list_unplaced, list_unselected, may_be_unselected, omit_built
from gitsched.reconcile.run import Facts, Fetched, RunContext, RunResult, StateUpdate, make_result
from gitsched.reconcile.source.source_tree import read_source_at
from gitsched.reconcile.source_plan import use_plan
from gitsched.simulate.baseline import make_baseline

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.decide.decisions import DecisionSet
    from gitsched.model.changes import Move, RetainedWorkload, UnplacedObject
    from gitsched.model.commit import Commit
    from gitsched.model.variants import TemplateVariants
    from gitsched.reconcile.run import Planned, Written


class PlannedCommit(NamedTuple):
    """The run of one commit, which publishes nothing, the fetched commit, the settings of its gitsched.yaml, and its Tenants. `update` is
    the incremental plan and the state that it started from; None for a complete plan."""

    run: RunResult
    fetched: Fetched
    config: Config
    tenants: tuple[Mapping[str, Any], ...] = ()
    update: StateUpdate | None = None

    @property
    def decisions(self) -> DecisionSet:
        """All decisions of a complete plan. AssertionError for an incremental one."""
        return self.run.plan.decisions

    @property
    def variants(self) -> TemplateVariants:
        """What clusters get in place of templates; no commit with any has an incremental plan."""
        return self.decisions.variants if self.run.plan.complete else {}


class ComparedInputs(NamedTuple):
    """What changed between the inputs of two plans, the names of the policies in both, and a function that returns the decisions of the
    later one."""

    changes: DocumentChanges
    policy_names: tuple[PolicyNames, PolicyNames]
    read_decided: Callable[[], DecidedCommit]


class CommitComparer(Protocol):
    """Plans commits, and compares the plans."""

    def plan(self, context: RunContext, fetched: Fetched, /) -> PlannedCommit:
        """Plan a commit. Nothing is published."""
        ...

    def list_moves(self, earlier: PlannedCommit, later: PlannedCommit, /) -> tuple[Move, ...]:
        """Return the moves from one plan to another."""
        ...

    def compare(self, context: RunContext, earlier: PlannedCommit, later: PlannedCommit, /) -> ComparedInputs:
        """Return what changed between the inputs of two plans."""
        ...

    def compare_with_recorded(
        self, context: RunContext, fetched: Fetched, earlier: Commit, later: PlannedCommit, /
    ) -> ComparedInputs | None:
        """Return what changed since the last run, which planned the commit `earlier`; None without a record of it."""
        ...

    def list_retained(
        self, context: RunContext, inputs: ComparedInputs, earlier: Commit, later: Commit, planned: PlannedCommit, /
    ) -> tuple[RetainedWorkload, ...]:
        """Return the workloads of the plan of the later commit that keep their placement because of scheduling history."""
        ...

    def list_unplaced(self, earlier: PlannedCommit, later: PlannedCommit, /) -> Iterator[UnplacedObject]:
        """Yield the objects that no cluster gets in the later plan, without those that move and those without a cluster in both."""
        ...

    def list_added(self, inputs: ComparedInputs, later: PlannedCommit, /) -> Iterator[UnplacedObject]:
        """Yield the objects of the later plan that are new in its input and that no policy selects."""
        ...

    def list_clusters(self, context: RunContext, planned: PlannedCommit, /) -> set[str]:
        """Return the names of the clusters with a document."""
        ...


class CompleteComparer:
    """Makes complete plans: see `CommitComparer`."""

    def plan(self, context: RunContext, fetched: Fetched, /) -> PlannedCommit:
        if context.caches.made_plan is not None:
            from gitsched.reconcile.incremental.new_state import find_made_plan  # only where no run has left a state

            made = find_made_plan(context, fetched)
            if made is not None:
                return _make_planned_commit(fetched, made.planned, made.written)
        return plan_commit(context, fetched, None)

    def list_moves(self, earlier: PlannedCommit, later: PlannedCommit, /) -> tuple[Move, ...]:
        return list_moves_between(earlier.run.plan, later.run.plan, later.decisions.templates)

    def list_unplaced(self, earlier: PlannedCommit, later: PlannedCommit, /) -> Iterator[UnplacedObject]:
        before, after = earlier.run.plan.outcomes, later.run.plan.outcomes
        if later.run.plan.state_counts.get("pending"):
            yield from list_unplaced(after, before, after)
        known, templates = set(earlier.decisions.list_unclaimed()), later.decisions.catalog.templates
        old = earlier.decisions.catalog.templates
        new = [
            templates[key] for key in later.decisions.list_unclaimed() if key not in known and may_be_unselected(key, before, old)
        ]
        new = omit_built(new, earlier.decisions.variants)
        yield from list_unselected(new, {one.key for one in new if one.key not in old}, later.decisions.engines)

    def list_added(self, inputs: ComparedInputs, later: PlannedCommit, /) -> Iterator[UnplacedObject]:
        return list_added(inputs.changes, frozenset(later.decisions.list_unclaimed()), later.decisions.engines)

    def compare(self, _context: RunContext, earlier: PlannedCommit, later: PlannedCommit, /) -> ComparedInputs:
        before, after = earlier.decisions.input, later.decisions.input
        assert before is not None, "the decisions of a plan have an input"
        assert after is not None, "the decisions of a plan have an input"
        names = PolicyNames(earlier.decisions.outcomes), PolicyNames(later.decisions.outcomes)
        return ComparedInputs(DocumentChanges(before, after), names, partial(DecidedCommit.from_decisions, later.decisions))

    def compare_with_recorded(
        self, context: RunContext, fetched: Fetched, earlier: Commit, later: PlannedCommit, /
    ) -> ComparedInputs | None:
        record, after = fetched.record, later.decisions.input
        if record is None or after is None:
            return None
        facts = find_recorded_facts(context.source.repository, record.facts, fetched.facts)
        source = read_source_at(context, fetched, earlier)
        if facts != Facts():
            source = add_all_facts(context, facts, source, record.time, {}).source
        if source.variants:
            from gitsched.reconcile.bundles.source_commits import add_source_commits  # few sources have Bundles

            source = add_source_commits(source, fetched._replace(source=earlier), after.previous, context)
        catalog = build_catalog(source.documents, source.config.kinds, reserved_groups)
        before = after._replace(
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
        names = PolicyNames({}), PolicyNames(later.decisions.outcomes)
        return ComparedInputs(DocumentChanges(before, after), names, partial(DecidedCommit.from_decisions, later.decisions))

    def list_retained(
        self, context: RunContext, inputs: ComparedInputs, earlier: Commit, later: Commit, planned: PlannedCommit, /
    ) -> tuple[RetainedWorkload, ...]:
        if not any(key.group in reserved_groups for key in inputs.changes.by_key):
            return ()
        plan, now = planned.run.plan, context.settings.now
        facts, recorded = planned.fetched.facts, planned.fetched.record.facts if planned.fetched.record is not None else {}
        sources = [read_source_at(context, planned.fetched, commit) for commit in (earlier, later)]
        if facts != Facts():
            sources = [add_all_facts(context, facts, source, now, recorded).source for source in sources]
        before, after = (
            CommitInput(source.documents, source.config, min(later.time, now), plan.observations, source.tenancy)
            for source in sources
        )
        decided, time = planned.decisions, max(now, plan.time)
        retained = find_retained(
            decided.outcomes,
            partial(before.schedule, now),
            partial(after.schedule, now),
            lambda _: make_baseline(decided, after.config, time, plan.observations, plan.retained),
        )
        return tuple(workload for workload in retained if workload.key not in plan.totals.held)

    def list_clusters(self, _context: RunContext, planned: PlannedCommit, /) -> set[str]:
        return set(planned.decisions.cluster_facts)


def plan_commit(context: RunContext, fetched: Fetched, planned: Planned | None) -> PlannedCommit:
    """Write the tree of a plan of the commit, which is complete unless it is `planned` already. No ref moves."""
    return _make_planned_commit(
        fetched, *use_plan(context, fetched, context.settings.now, partial(write, context, fetched), planned)
    )


def _make_planned_commit(fetched: Fetched, planned: Planned, written: Written) -> PlannedCommit:
    update = planned.state if isinstance(planned.state, StateUpdate) else None
    return PlannedCommit(make_result(fetched, planned, written, None), fetched, planned.config, planned.tenants, update)
