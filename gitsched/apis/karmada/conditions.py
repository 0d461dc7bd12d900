"""What the conditions of a Cluster say, and what they mean for its taints (spec/karmada.md §9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gitsched.model.document import Body, member
from gitsched.model.taints import NO_SCHEDULE, Taint

READY = "Ready"
NOT_READY = Taint("cluster.karmada.io/not-ready", "", NO_SCHEDULE)
UNREACHABLE = Taint("cluster.karmada.io/unreachable", "", NO_SCHEDULE)


class Match(NamedTuple):
    """What a ClusterTaintPolicy asks of one condition; an operator that is neither In nor NotIn never matches."""

    condition: str
    operator: str
    values: frozenset[str]

    def holds(self, conditions: Mapping[str, str]) -> bool:
        """A condition that the cluster does not have matches nothing, not even NotIn."""
        status = conditions.get(self.condition)
        if status is None:
            return False
        return status in self.values if self.operator == "In" else self.operator == "NotIn" and status not in self.values


class Readiness(NamedTuple):
    """What the Ready condition does to the taints of its cluster: the one it adds, those it takes away, and why."""

    add: Taint | None
    remove: tuple[Taint, ...]
    why: str


def read_conditions(cluster: Body) -> dict[str, str]:
    """The status ("True", "False" or "Unknown") of each condition, by its type."""
    entries = member(cluster, "status", "conditions")
    conditions: dict[str, str] = {}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("type"), str) and isinstance(entry.get("status"), str):
            conditions.setdefault(entry["type"], entry["status"])
    return conditions


def judge_readiness(conditions: Mapping[str, str], assume: bool) -> Readiness:
    """A cluster that says nothing is not ready for Karmada; with `assume` it is taken to be a document that people wrote."""
    match conditions.get(READY):
        case "False":
            return Readiness(NOT_READY, (UNREACHABLE,), "its condition Ready is False")
        case "Unknown":
            return Readiness(UNREACHABLE, (NOT_READY,), "its condition Ready is Unknown")
        case "True":
            return Readiness(None, (NOT_READY, UNREACHABLE), "its condition Ready is True")
        case None if not assume:
            return Readiness(NOT_READY, (), "it has no condition Ready")
    return Readiness(None, (), "")


def parse_matches(entries: Any) -> tuple[Match, ...]:
    """addOnConditions or removeOnConditions."""
    found = (entry for entry in entries if isinstance(entry, dict)) if isinstance(entries, list) else ()
    return tuple(
        Match(str(e.get("conditionType")), str(e.get("operator")), frozenset(map(str, e.get("statusValues") or ()))) for e in found
    )


def all_hold(matches: Iterable[Match], conditions: Mapping[str, str]) -> bool:
    """Whether every match holds; none at all never does."""
    asked = tuple(matches)
    return bool(asked) and all(match.holds(conditions) for match in asked)
