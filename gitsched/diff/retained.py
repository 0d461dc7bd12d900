"""Find workloads that a policy change affects but that keep their placement because of scheduling history.

Scheduling depends on previous decisions. For example, a workload that moved to a later group of clusters does not return by itself when
the earlier group recovers, so reverting a change does not revert its effect. To find such workloads, both commits are scheduled without
previous decisions. If these results differ but the plan does not follow, scheduling history is the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta

from gitsched.apis.capabilities import Rescheduling
from gitsched.apis.gitsched.config import Config
from gitsched.apis.gitsched.tenancy import Tenancy
from gitsched.decide.catalog import RawDocument, build_catalog
from gitsched.decide.decisions import DecisionInput, DecisionSet, decide
from gitsched.decide.partial_decisions import decide_some
from gitsched.decide.registry import reserved_groups
from gitsched.model.changes import RetainedCopy, RetainedWorkload
from gitsched.model.document import Key
from gitsched.model.observation import Observations
from gitsched.model.scheduling import Outcome
from gitsched.model.time import add_duration
from gitsched.named_tuples import NamedTuple
from gitsched.simulate.baseline import Baseline, decide_changed_catalog, make_baseline
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


def find_retained(
    before: CommitInput,
    after: CommitInput,
    now: datetime,
    decided: DecisionSet,
    applied_at: datetime,
    copies: Collection[RetainedCopy] = (),
) -> tuple[RetainedWorkload, ...]:
    """Return the workloads of a plan that keep their clusters although the change affects them, in the order of the outcomes.

    `decided` is the plan of the later commit, `applied_at` the time when it is carried out, and `copies` are those that stay for an overlap
    then. Workloads that move, and attached workloads that follow others, are not included.
    """
    new = _decide_without_history(after, now)
    staying = {key: outcome for key, outcome in decided.outcomes.items() if stays(outcome, new.get(key))}
    if not staying:
        return ()
    old = _decide_without_history(before, now, staying.keys())
    retained = {key: outcome for key, outcome in staying.items() if is_retained(old.get(key), new[key])}
    if not retained:
        return ()
    return find_remedies(retained, new, make_baseline(decided, after.config, applied_at, after.observations, copies))


def find_remedies(
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


def stays(outcome: Outcome, expected: Outcome | None) -> bool:
    """Return whether a placed workload keeps its clusters, and would get others without previous decisions."""
    if expected is None or outcome.state != "placed" or not outcome.policy or not expected.replicas_by_cluster:
        return False
    clusters = outcome.replicas_by_cluster.keys()
    previous = {target.cluster for target in outcome.previous_targets if not target.evicting}
    return previous == clusters and expected.replicas_by_cluster.keys() != clusters


def is_retained(former: Outcome | None, expected: Outcome) -> bool:
    """Return whether the change affects a workload that stays: without previous decisions, it would move. `former` is its outcome before
    the change."""
    return former is None or former.replicas_by_cluster.keys() != expected.replicas_by_cluster.keys()


def _decide_without_history(commit: CommitInput, now: datetime, only: Collection[Key] | None = None) -> Mapping[Key, Outcome]:
    """Return the decisions about all workloads, or about `only` some, as if none had been made before, and each were alone."""
    documents, config, observations, tenancy = commit.documents, commit.config, commit.observations, commit.tenancy
    times = commit.source_time, max(now, commit.source_time)
    if only is None or tenancy is not None:
        return decide(documents, {}, config, *times, observations=observations, tenancy=tenancy, alone=True).outcomes
    catalog = build_catalog(documents, config.kinds, reserved_groups)
    return decide_some(DecisionInput(catalog, {}, config, *times, observations), only).outcomes
