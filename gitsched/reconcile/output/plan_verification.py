"""Compare a plan that starts from the state of the last run with a complete plan of the same commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from gitsched.model.finding import Finding
from gitsched.reconcile.cache.caches import Caches, ParseCache
from gitsched.temporary_directory import TemporaryDirectory

if TYPE_CHECKING:
    from gitsched.decide.plan_result import Plan
    from gitsched.model.document import Key
    from gitsched.model.scheduling import Outcome
    from gitsched.reconcile.output.output_commit import NewCommit
    from gitsched.reconcile.run import Fetched, Planned, RunContext, Written

STATE_DIFFERS = "state-differs"
"""The code of the error about a plan that is not the complete one."""
_MAX_NAMED = 5


WrittenPlan: TypeAlias = "tuple[Planned, tuple[Written, NewCommit | None]]"
"""A plan, its output tree, and the commit that publishes it, None if nothing changes or nothing may be written."""


def verify_plan(
    context: RunContext, fetched: Fetched, found: WrittenPlan, plan_completely: Callable[[RunContext], WrittenPlan]
) -> WrittenPlan:
    """Return the plan if a complete one gives the same commit and the same report, else the complete one with an error.

    `plan_completely` makes the complete plan with empty caches. Both have the metrics that the first one has observed.
    """
    with TemporaryDirectory("verify") as directory:
        caches = Caches(directory, ParseCache(directory))
        caches.metric_values = found[0].plan.observations
        complete = plan_completely(context._replace(caches=caches))
    differences = list(_list_differences(fetched, found, complete))
    if not differences:
        return found
    named = ", ".join(differences[:_MAX_NAMED])
    more = f" and {len(differences) - _MAX_NAMED} more" if len(differences) > _MAX_NAMED else ""
    message = (
        f"the plan that starts from the state of the last run is not the complete plan: different are {named}{more}. The complete plan is "
        f"used, and the state is made anew. Report this bug with the source commit {fetched.source.oid} and the one of the run before"
    )
    planned, (written, commit) = complete
    return planned, (written._replace(findings=(*written.findings, Finding("error", STATE_DIFFERS, message))), commit)


def _list_differences(fetched: Fetched, found: WrittenPlan, complete: WrittenPlan) -> Iterator[str]:
    """Yield what differs, files of the output first."""
    repository, written = fetched.output.repository, (found[1], complete[1])
    trees = [one.tree for one, _ in written]
    if trees[0] != trees[1]:
        yield from repository.changed_paths(*trees)
    commits = [repository.commit(commit.oid) if commit is not None else None for _, commit in written]
    messages = [commit.message if commit is not None else "" for commit in commits]
    if messages[0] != messages[1]:
        yield "the commit message"
    metadata = [commit.tree if commit is not None else "" for commit in commits]
    if trees[0] == trees[1] and metadata[0] != metadata[1]:
        yield "README.md or gitsched.json"
    plans = (found[0].plan, complete[0].plan)
    reports = [_describe(plan) for plan in plans]
    yield from (name for name in reports[0] if reports[0][name] != reports[1][name])
    yield from (f"what is decided about {key}" for key in _list_differing_outcomes(*plans))


def _describe(plan: Plan) -> dict[str, object]:
    """Return what a report says of a plan, by name."""
    return {
        "findings": set(plan.findings),
        "the next wake-up": plan.next_wakeup,
        "the number of objects without a policy": plan.unclaimed,
        "moves": sorted(map(str, plan.moves)),
        "withheld changes": plan.withheld.digest,
        "retiring clusters": dict(plan.retiring),
        "held workloads": dict(plan.totals.held),
        "numbers of workloads": {state: count for state, count in plan.state_counts.items() if count},
    }


def _list_differing_outcomes(found: Plan, complete: Plan) -> Iterator[Key]:
    for key in sorted({*found.outcomes, *complete.outcomes}):
        if _summarize(found.outcomes.get(key)) != _summarize(complete.outcomes.get(key)):
            yield key


def _summarize(outcome: Outcome | None) -> object:
    if outcome is None:
        return None
    return outcome.state, outcome.replicas_by_cluster, outcome.policy, outcome.group, outcome.reason, outcome.findings
