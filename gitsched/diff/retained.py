"""Find workloads that a policy change affects but that keep their placement because of scheduling history.

Scheduling depends on previous decisions. For example, a workload that moved to a later group of clusters does not return by itself when
the earlier group recovers, so reverting a change does not revert its effect. To find such workloads, both commits are scheduled without
previous decisions. If these results differ but the plan does not follow, scheduling history is the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta

from gitsched.apis.capabilities import Rescheduling
from gitsched.apis.gitsched.config import Config
from gitsched.apis.gitsched.tenancy import Tenancy
from gitsched.decide.catalog import RawDocument, build_catalog
from gitsched.decide.decisions import DecisionInput, decide
from gitsched.decide.partial_decisions import decide_some
from gitsched.decide.registry import read_required_by, reserved_groups
from gitsched.model.changes import RetainedWorkload
from gitsched.model.document import Key
from gitsched.model.observation import Observations
from gitsched.model.scheduling import Outcome
from gitsched.model.time import add_duration
from gitsched.named_tuples import NamedTuple
from gitsched.simulate.baseline import Baseline, decide_changed_catalog
from gitsched.simulate.scenario import edit_catalog

_AFTER_PLAN = timedelta(seconds=1)
"""The time between carrying out the plan and a request to reschedule."""


class CommitInput(NamedTuple):
    """A commit to be scheduled as if for the first time."""

    documents: Iterable[RawDocument]
    config: Config
    source_time: datetime
    observations: Observations
    tenancy: Tenancy | None = None

    def schedule(self, now: datetime, keys: Collection[Key]) -> Mapping[Key, Outcome]:
        """Return the decisions about some workloads as if none had been made before, and each were alone."""
        documents, config, observations, tenancy = self.documents, self.config, self.observations, self.tenancy
        times = self.source_time, max(now, self.source_time)
        if tenancy is not None:
            return decide(documents, {}, config, *times, observations=observations, tenancy=tenancy, alone=True).outcomes
        catalog = build_catalog(documents, config.kinds, reserved_groups)
        return decide_some(DecisionInput(catalog, {}, config, *times, observations), keys).outcomes


ScheduleCommit = Callable[[Collection[Key]], Mapping[Key, Outcome]]
"""Returns the decisions about some workloads of a commit as if none had been made before, and each were alone."""


def find_retained(
    placed: Mapping[Key, Outcome],
    before: ScheduleCommit,
    after: ScheduleCommit,
    make_baseline: Callable[[Collection[Key]], Baseline],
) -> tuple[RetainedWorkload, ...]:
    """Return the workloads of a plan that keep their clusters although the change affects them, in the order of the `placed` ones.

    `placed` are workloads of the plan that the change may affect, `before` and `after` schedule the commits, and `make_baseline` returns
    the plan, with at least the decisions about some workloads. Workloads that move, and those that would only follow others, are not
    included.
    """
    staying = {key: outcome for key, outcome in placed.items() if outcome.state == "placed" and outcome.policy}
    new = after(staying.keys()) if staying else {}
    expected = {key: new[key] for key, outcome in staying.items() if key in new and _is_elsewhere(new[key], outcome)}
    old = before(expected.keys()) if expected else {}
    keys = [key for key, outcome in expected.items() if _is_affected(old.get(key), outcome)]
    if not keys:
        return ()
    baseline = make_baseline(keys)
    decided = baseline.decisions.outcomes
    retained = {key: decided[key] for key in keys if key in decided and _stays(decided[key], expected[key])}
    return _omit_following(_find_remedies(retained, expected, baseline), retained) if retained else ()


def _omit_following(found: tuple[RetainedWorkload, ...], outcomes: Mapping[Key, Outcome]) -> tuple[RetainedWorkload, ...]:
    """Return the workloads without those that would only follow others of them that bring them along: nothing else moves these."""
    by_record = {(record.namespace, record.name): one for one in found for record, _ in outcomes[one.key].records}

    def follows(one: RetainedWorkload) -> bool:
        outcome = outcomes[one.key]
        required_by = read_required_by(outcome.api, (body for _, body in outcome.records))
        owners = [by_record[record] for record in required_by & by_record.keys() if by_record[record] is not one]
        before, after = one.current.keys(), one.if_rescheduled.keys()
        left = (before - after).difference(*(owner.current for owner in owners))
        return bool(owners) and not left and not (after - before).difference(*(owner.if_rescheduled for owner in owners))

    return tuple(one for one in found if not follows(one))


def _find_remedies(
    retained: Mapping[Key, Outcome], expected: Mapping[Key, Outcome], baseline: Baseline
) -> tuple[RetainedWorkload, ...]:
    """Return how each workload can be moved to the expected clusters. If its API supports rescheduling, the result is simulated.

    A rescheduled workload can have other replicas than a new one in the same clusters, because its last division breaks ties. Of the
    baseline, the outcomes and templates of the retained workloads are enough, with what finds the use of all.
    """
    catalog, templates = baseline.decisions.catalog, baseline.decisions.templates
    remedies = dict.fromkeys(retained, "it moves there when another change causes it to be rescheduled")
    results = {key: expected[key].replicas_by_cluster for key in retained}
    for engine in baseline.decisions.engines:
        keys = [key for key, outcome in retained.items() if outcome.api == engine.name]
        if not keys or not isinstance(engine, Rescheduling):
            continue
        changed = edit_catalog(catalog, {}, (engine.make_rescheduling_document(templates[key] for key in keys),))
        rescheduled = decide_changed_catalog(
            baseline._replace(time=add_duration(baseline.time, _AFTER_PLAN)), changed, set(keys)
        ).outcomes
        remedies |= {
            key: engine.describe_remedy(templates[key], retained[key], rescheduled.get(key), expected[key]) for key in keys
        }
        simulated = {key: rescheduled[key].replicas_by_cluster for key in keys if key in rescheduled}
        results |= {key: clusters for key, clusters in simulated.items() if clusters.keys() == results[key].keys()}
    return tuple(
        RetainedWorkload(key, outcome.replicas_by_cluster, results[key], remedies[key]) for key, outcome in retained.items()
    )


def _stays(outcome: Outcome, expected: Outcome) -> bool:
    """Return whether a placed workload keeps its clusters, and would get others without previous decisions."""
    previous = {target.cluster for target in outcome.previous_targets if not target.evicting}
    placed = outcome.state == "placed" and bool(outcome.policy)
    return placed and previous == outcome.replicas_by_cluster.keys() and _is_elsewhere(expected, outcome)


def _is_elsewhere(expected: Outcome, kept: Outcome) -> bool:
    return bool(expected.replicas_by_cluster) and expected.replicas_by_cluster.keys() != kept.replicas_by_cluster.keys()


def _is_affected(former: Outcome | None, expected: Outcome) -> bool:
    """Return whether the change affects a workload that stays: without previous decisions, it would move. `former` is its outcome before
    the change."""
    return former is None or former.replicas_by_cluster.keys() != expected.replicas_by_cluster.keys()
