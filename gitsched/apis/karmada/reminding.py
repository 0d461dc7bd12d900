"""What is worth a word about policies that are valid: what is easily forgotten, and names that stand for nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from gitsched.apis.karmada.fleet import locate
from gitsched.apis.karmada.policy import Policy
from gitsched.apis.karmada.preemption import find_idle_preemption
from gitsched.apis.karmada.suspension import find_suspended
from gitsched.model.document import member
from gitsched.model.finding import Finding

_NAMED = 3


def remind(policies: Collection[Policy], preemption: bool, fleet: Collection[str]) -> tuple[Finding, ...]:
    """Every finding about the policies themselves. `preemption` says whether settings allow it, `fleet` has the names of all clusters."""
    return (*find_suspended(policies), *find_idle_preemption(policies, preemption), *find_strangers(policies, fleet))


def find_strangers(policies: Collection[Policy], fleet: Collection[str]) -> Iterator[Finding]:
    """One finding for each policy that names clusters which nobody describes; none where no cluster is described at all."""
    known = frozenset(fleet)
    for policy in policies if known else ():
        strangers = sorted({name for group in _groups(policy) for name in map(str, group.get("clusterNames") or ())} - known)
        if not strangers:
            continue
        from difflib import get_close_matches  # rarely needed

        more = f" and {len(strangers) - _NAMED} more" if len(strangers) > _NAMED else ""
        near = get_close_matches(strangers[0], sorted(known), n=1)
        hint = f"; did you mean {near[0]}?" if near and len(strangers) == 1 else ""
        message = f"{policy.key.title} names clusters that nobody describes: {', '.join(strangers[:_NAMED])}{more}{hint}"
        yield Finding("warning", "karmada-cluster-unknown", message, locate(policy.document), policy.key.resource)


def _groups(policy: Policy) -> Iterator[Mapping[str, Any]]:
    placement = policy.spec.get("placement") or {}
    yield member(placement, "clusterAffinity") or {}
    yield from placement.get("clusterAffinities") or ()
