"""The taints that clusters have beside those in their documents: from the Ready condition, and from ClusterTaintPolicies.

Karmada's controllers write such taints into the Cluster. Nobody writes into the source here, so they stand in the Cluster's record under
status/, which is also their memory: a policy's taint stays until removeOnConditions hold, whatever becomes of addOnConditions or of the
policy.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from gitsched.apis.karmada.conditions import all_hold, judge_readiness
from gitsched.apis.karmada.taint_policy import TaintPolicy
from gitsched.model.document import Body, member, text_map
from gitsched.model.taints import Taint, parse_taint
from gitsched.model.time import format_time

ADDED = "gitsched.io/taints-added"
"""On the record of a Cluster: the taints that its document does not have, as JSON, each with who added it."""

_POLICY = "ClusterTaintPolicy/"
_Identity = tuple[str, str]


class Added(NamedTuple):
    """A taint that is not in the document; its `since` is when it was added. `by` is a reason for people."""

    taint: Taint
    by: str

    @property
    def policy(self) -> str:
        """The name of the ClusterTaintPolicy that added it; "" for the Ready condition."""
        return self.by.removeprefix(_POLICY) if self.by.startswith(_POLICY) else ""


class Tainted(NamedTuple):
    """`added` are taints beside the document's own; `lifted` are own ones that a policy takes away, each with that policy's name."""

    added: tuple[Added, ...] = ()
    lifted: tuple[tuple[Taint, str], ...] = ()


def derive_taints(
    own: Iterable[Taint],
    conditions: Mapping[str, str],
    remembered: Iterable[Added],
    policies: Iterable[TaintPolicy],
    assume: bool,
    moment: datetime,
) -> Tainted:
    """What the conditions of a cluster make of its taints. `policies` are those that target it, in their order.

    Taints are the same when key and effect are. What people wrote into the document counts before what was added; the Ready condition
    takes away nothing of it, a policy that names it does, for as long as its removeOnConditions hold. A taint that stays keeps its time;
    the added ones are in the order of their keys, so that a second look gives the same.
    """
    own, remembered, policies = tuple(own), tuple(remembered), tuple(policies)
    readiness = judge_readiness(conditions, assume)
    if not (remembered or policies or readiness.add):
        return Tainted()
    state: dict[_Identity, Added] = {_identify(taint): Added(taint, "") for taint in own}
    for entry in remembered:
        if entry.policy:
            state.setdefault(_identify(entry.taint), entry)
    for taint in readiness.remove:
        if (held := state.get(_identify(taint))) is not None and held.by:
            del state[_identify(taint)]
    if readiness.add is not None:
        state.setdefault(_identify(readiness.add), Added(readiness.add, readiness.why))
    lifted: dict[_Identity, str] = {}
    for policy in policies:
        if all_hold(policy.add, conditions):
            for taint in policy.taints:
                state.setdefault(_identify(taint), Added(taint, f"{_POLICY}{policy.name}"))
        if all_hold(policy.remove, conditions):
            for taint in policy.taints:
                if (gone := state.pop(_identify(taint), None)) is not None and not gone.by:
                    lifted[_identify(taint)] = policy.name
    since = {entry.taint._replace(since=None): entry.taint.since for entry in remembered}
    added = sorted((entry for entry in state.values() if entry.by), key=lambda entry: _identify(entry.taint))
    return Tainted(
        tuple(
            Added(e.taint._replace(since=since.get(e.taint._replace(since=None)) or e.taint.since or moment), e.by) for e in added
        ),
        tuple((taint, lifted[_identify(taint)]) for taint in own if _identify(taint) in lifted),
    )


def apply_taints(own: Iterable[Taint], tainted: Tainted) -> tuple[Taint, ...]:
    """The taints that count: the document's own but for the lifted ones, then the added ones."""
    gone = {taint for taint, _ in tainted.lifted}
    return (*(taint for taint in own if taint not in gone), *(entry.taint for entry in tainted.added))


def recall_taints(record: Body | None) -> tuple[Added, ...]:
    """What the record of a Cluster says was added; anything malformed is left out."""
    try:
        entries: Any = json.loads(text_map(member(record or {}, "metadata", "annotations")).get(ADDED, "[]"))
    except ValueError:
        return ()
    entries = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return tuple(Added(parse_taint(entry), str(entry.get("addedBy") or "")) for entry in entries)


def note_taints(added: Iterable[Added]) -> str:
    """The annotation's text: taints as a Cluster has them, and `addedBy`."""
    return json.dumps([_write(entry) for entry in added], separators=(",", ":"))


def _write(entry: Added) -> Body:
    taint = entry.taint
    members = {"key": taint.key, "value": taint.value, "effect": taint.effect}
    timed = {"timeAdded": format_time(taint.since)} if taint.since else {}
    return {**{name: text for name, text in members.items() if text}, **timed, "addedBy": entry.by}


def _identify(taint: Taint) -> _Identity:
    return taint.key, taint.effect
