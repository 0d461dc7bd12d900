"""Find workloads that a policy change affects but that keep their placement because of scheduling history.

Policy APIs remember: a workload that went to a later group of clusters does not come back by itself when the earlier one recovers, for
one. So taking a change back does not take back what it did. Both commits are decided as if nothing had ever been placed; where those
differ and the plan does not follow, something remembered is the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from gitsched.apis.engine import Rescheduling
from gitsched.apis.gitsched.config import Config
from gitsched.decide.catalog import RawDocument
from gitsched.decide.decisions import DecisionSet, decide
from gitsched.model.changes import RetainedWorkload
from gitsched.model.document import Key
from gitsched.model.observation import Observations
from gitsched.model.scheduling import Outcome
from gitsched.simulate.baseline import Baseline, decide_changed_catalog, make_baseline
from gitsched.simulate.scenario import edit_catalog

_AFTER_PLAN = timedelta(seconds=1)
"""Somebody asks after the plan was carried out."""


class CommitInput(NamedTuple):
    """A commit to be decided as if for the first time."""

    documents: Iterable[RawDocument]
    config: Config
    source_time: datetime
    observations: Observations


def find_retained(
    before: CommitInput, after: CommitInput, now: datetime, decided: DecisionSet, moment: datetime
) -> tuple[RetainedWorkload, ...]:
    """The workloads of a plan that stay though the change of rules concerns them, in their order.

    `decided` is the plan of the later rules, and `moment` when it will have been carried out.

    What moves all the same is no stay, nor is what only goes where other workloads go.
    """
    old, new, outcomes = _decide_without_history(before, now), _decide_without_history(after, now), decided.outcomes
    staying: dict[Key, Outcome] = {}
    for key, outcome in outcomes.items():
        fresh, known = new.get(key), old.get(key)
        if fresh is None or outcome.state != "placed" or not outcome.policy or not fresh.replicas_by_cluster:
            continue
        stays = {place.cluster for place in outcome.previous_targets if not place.evicting} == outcome.replicas_by_cluster.keys()
        moved = known is None or known.replicas_by_cluster.keys() != fresh.replicas_by_cluster.keys()
        if stays and moved and fresh.replicas_by_cluster.keys() != outcome.replicas_by_cluster.keys():
            staying[key] = outcome
    if not staying:
        return ()
    remedies = _find_remedies(staying, new, make_baseline(decided, after.config, moment, after.observations))
    return tuple(
        RetainedWorkload(key, outcome.replicas_by_cluster, new[key].replicas_by_cluster, remedies[key])
        for key, outcome in staying.items()
    )


def _find_remedies(staying: Mapping[Key, Outcome], wanted: Mapping[Key, Outcome], ground: Baseline) -> Mapping[Key, str]:
    """What would bring each workload where it is wanted. Where its API can be asked to place it anew, that is tried."""
    catalog, templates = ground.decisions.catalog, ground.decisions.templates
    remedies = dict.fromkeys(staying, "it goes there when something else makes it be scheduled anew")
    for session in ground.decisions.engines:
        keys = [key for key, outcome in staying.items() if outcome.api == session.name]
        if not keys or not isinstance(session, Rescheduling):
            continue
        asked = edit_catalog(catalog, {}, (session.make_rescheduling_document(templates[key] for key in keys),))
        anew = decide_changed_catalog(ground._replace(time=ground.time + _AFTER_PLAN), asked, set(keys)).outcomes
        remedies |= {key: session.describe_remedy(templates[key], staying[key], anew.get(key), wanted[key]) for key in keys}
    return remedies


def _decide_without_history(rules: CommitInput, now: datetime) -> Mapping[Key, Outcome]:
    return decide(
        rules.documents, {}, rules.config, rules.source_time, max(now, rules.source_time), observations=rules.observations
    ).outcomes
