"""Delivery on hold (spec/karmada.md §2): scheduling goes on, but what a cluster has stays as it is, and nothing new comes.

Upstream stops the syncing of what it hands to a cluster and deletes nothing there. So a suspended cluster keeps the files that it has on
the output branch, to the byte; what is not there yet does not appear before the suspension ends.
"""

from __future__ import annotations

from collections.abc import Iterable

from gitsched.apis.karmada.policy import Policy
from gitsched.model.document import Body, member
from gitsched.model.finding import Finding, locate
from gitsched.model.outcome import Placed


def hold(places: tuple[Placed, ...], binding: Body) -> tuple[Placed, ...]:
    """Mark the places to which nothing is delivered. Copies that leave are no targets any more, and leave in their time."""
    everywhere, clusters = _suspended(binding.get("spec") or {})
    if not everywhere and not clusters:
        return places
    return tuple(p._replace(kept=True) if not p.leaving and (everywhere or p.cluster in clusters) else p for p in places)


def find_suspended(policies: Iterable[Policy]) -> list[Finding]:
    """One finding for each policy that holds back deliveries: a suspension is easily forgotten."""
    findings = []
    for policy in policies:
        everywhere, clusters = _suspended(policy.spec)
        if everywhere or clusters:
            where = "every cluster" if everywhere else ", ".join(sorted(clusters))
            message = f"{policy.key.title} suspends dispatching to {where}: what is there stays as it is, nothing new is delivered"
            findings.append(Finding("info", "dispatching-suspended", message, locate(policy.document), policy.key.resource))
    return findings


def _suspended(spec: Body) -> tuple[bool, frozenset[str]]:
    everywhere = member(spec, "suspension", "dispatching") is True
    names = member(spec, "suspension", "dispatchingOnClusters", "clusterNames") or ()
    return everywhere, frozenset(map(str, names))
