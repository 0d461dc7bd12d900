"""What memory holds: workloads that a change of the rules concerns, and that stay where they are all the same.

Policy APIs remember: a workload that went to a later group of clusters does not come back by itself when the earlier one recovers, for
one. So taking a change back does not take back what it did. Both commits are decided as if nothing had ever been placed; where those
differ and the plan does not follow, something remembered is the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from gitsched.apis.gitsched.config import Config
from gitsched.apis.world import Recalling
from gitsched.model.change import Stay
from gitsched.model.document import Key
from gitsched.model.observation import Observations
from gitsched.model.outcome import Outcome
from gitsched.plan.catalog import Loose
from gitsched.plan.deciding import Decided, decide
from gitsched.plan.ground import Ground, decide_after, make_ground
from gitsched.plan.scenario import amend

_LATER = timedelta(seconds=1)
"""Somebody asks after the plan was carried out."""


class Rules(NamedTuple):
    """A commit to be decided as if for the first time."""

    documents: Iterable[Loose]
    config: Config
    at: datetime
    observations: Observations


def find_stays(before: Rules, after: Rules, now: datetime, decided: Decided, moment: datetime) -> tuple[Stay, ...]:
    """The workloads of a plan that stay though the change of rules concerns them, in their order.

    `decided` is the plan of the later rules, and `moment` when it will have been carried out.

    What moves all the same is no stay, nor is what only goes where other workloads go.
    """
    old, new, outcomes = _decide(before, now), _decide(after, now), decided.outcomes
    staying: dict[Key, Outcome] = {}
    for key, outcome in outcomes.items():
        fresh, known = new.get(key), old.get(key)
        if fresh is None or outcome.state != "placed" or not outcome.policy or not fresh.shares:
            continue
        stays = {place.cluster for place in outcome.before if not place.leaving} == outcome.shares.keys()
        moved = known is None or known.shares.keys() != fresh.shares.keys()
        if stays and moved and fresh.shares.keys() != outcome.shares.keys():
            staying[key] = outcome
    if not staying:
        return ()
    remedies = _find_remedies(staying, new, make_ground(decided, after.config, moment, after.observations))
    return tuple(Stay(key, outcome.shares, new[key].shares, remedies[key]) for key, outcome in staying.items())


def _find_remedies(staying: Mapping[Key, Outcome], wanted: Mapping[Key, Outcome], ground: Ground) -> Mapping[Key, str]:
    """What would bring each workload where it is wanted. Where its API can be asked to place it anew, that is tried."""
    catalog, templates = ground.decided.catalog, ground.decided.templates
    remedies = dict.fromkeys(staying, "it goes there when something else makes it be scheduled anew")
    for session in ground.decided.sessions:
        keys = [key for key, outcome in staying.items() if outcome.api == session.name]
        if not keys or not isinstance(session, Recalling):
            continue
        asked = amend(catalog, {}, (session.ask_anew(templates[key] for key in keys),))
        anew = decide_after(ground._replace(moment=ground.moment + _LATER), asked, set(keys)).outcomes
        remedies |= {key: session.tell_remedy(templates[key], staying[key], anew.get(key), wanted[key]) for key in keys}
    return remedies


def _decide(rules: Rules, now: datetime) -> Mapping[Key, Outcome]:
    return decide(rules.documents, {}, rules.config, rules.at, max(now, rules.at), observations=rules.observations).outcomes
