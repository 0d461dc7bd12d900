"""What memory holds: workloads that a change of the rules concerns, and that stay where they are all the same.

Policy APIs remember: a workload that went to a later group of clusters does not come back by itself when the earlier one recovers, for
one. So taking a change back does not take back what it did. Both commits are decided as if nothing had ever been placed; where those
differ and the plan does not follow, something remembered is the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from gitsched.apis.gitsched.config import Config
from gitsched.model.change import Stay
from gitsched.model.document import Key
from gitsched.model.observation import Observations
from gitsched.model.outcome import Outcome
from gitsched.plan.catalog import Loose
from gitsched.plan.deciding import decide


class Rules(NamedTuple):
    """A commit to be decided as if for the first time."""

    documents: Iterable[Loose]
    config: Config
    at: datetime
    observations: Observations


def find_stays(before: Rules, after: Rules, now: datetime, outcomes: Mapping[Key, Outcome]) -> tuple[Stay, ...]:
    """The workloads among the outcomes of the later commit that stay though the change concerns them, in their order."""
    old, new = _decide(before, now), _decide(after, now)
    stays = []
    for key, outcome in outcomes.items():
        fresh = new.get(key)
        if fresh is None or outcome.state != "placed" or not fresh.shares or fresh.shares.keys() == outcome.shares.keys():
            continue
        known = old.get(key)
        if known is None or known.shares.keys() != fresh.shares.keys():
            stays.append(Stay(key, outcome.shares, fresh.shares, _find_remedy(outcome, fresh)))
    return tuple(stays)


def _find_remedy(outcome: Outcome, fresh: Outcome) -> str:
    """What would bring the workload where it would be placed anew."""
    if outcome.api != "karmada":
        return "it goes there when something else makes it be scheduled anew"
    back = ", or karmada.failback in gitsched.yaml" if outcome.group != fresh.group else ""
    return f"a WorkloadRebalancer that names it brings it there{back}"


def _decide(rules: Rules, now: datetime) -> Mapping[Key, Outcome]:
    return decide(rules.documents, {}, rules.config, rules.at, max(now, rules.at), observations=rules.observations).outcomes
