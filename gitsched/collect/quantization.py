"""Quantize observed facts with hysteresis, so that a jitter of the values changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from gitsched.model.cluster_facts import ClusterFacts, NodeCount, Readiness
from gitsched.model.quantity import NANO, Quantity, parse_quantity

TOLERANCE: Final = 12
"""Percent by which an amount may differ from the last one that was written without a change: more than the 10.5 % between the ends of a
jitter of 5 % in both directions, and than that with rounding to three digits."""
MIN_COUNT: Final = 20
"""The smallest number of countable things, such as pods or GPUs, that has a tolerance: a jitter of 5 % of fewer is less than one."""
_DIGITS: Final = 1000
"""Amounts have three significant digits."""
_MEBI: Final = NANO << 20
_MILLI: Final = NANO // 1000
_BYTES: Final = frozenset(("memory", "ephemeral-storage"))


def quantize_amount(resource: str, nano: int, *, up: bool) -> str:
    """Return an amount, in billionths, with three significant digits: bytes in Mi, cpu in thousandths, everything else in ones.

    Used amounts are rounded up and free ones down.
    """
    unit = _MEBI if resource in _BYTES else _MILLI if resource == "cpu" else NANO
    count = -(-nano // unit) if up else nano // unit
    step = 1
    while count // step >= _DIGITS:
        step *= 10
    rounded = (-(-count // step) if up else count // step) * step
    return str(Quantity(rounded * unit, binary=resource in _BYTES))


def is_within_tolerance(resource: str, before: str, now: int) -> bool:
    """Return whether an amount, in billionths, is so near to the last one that this stays."""
    quantity = parse_quantity(before)
    if quantity is None or quantity.nano < 0:
        return False
    if quantity.nano == now:
        return True
    is_counted = resource not in _BYTES and resource != "cpu"
    if is_counted and quantity.nano < MIN_COUNT * NANO - NANO:
        return False
    return abs(now - quantity.nano) * 100 <= TOLERANCE * quantity.nano


def quantize_amounts(amounts: Mapping[str, int], before: Mapping[str, str] | None, *, up: bool) -> dict[str, str]:
    """Return the amounts of all resources: the last one where the new one is within the tolerance, else the new one, rounded."""
    known = before or {}
    return {
        resource: known[resource]
        if resource in known and is_within_tolerance(resource, known[resource], nano)
        else quantize_amount(resource, nano, up=up)
        for resource, nano in sorted(amounts.items())
    }


def quantize_nodes(nodes: NodeCount, before: NodeCount | None) -> NodeCount:
    """Return the last counts where both are within the tolerance."""
    if before is None or (before.ready == 0) != (nodes.ready == 0):
        return nodes
    pairs = zip(before, nodes, strict=True)
    return before if all(is_within_tolerance("nodes", str(old), new * NANO) for old, new in pairs) else nodes


def quantize_grades(grades: Mapping[int, int], before: Mapping[int, int] | None) -> Mapping[int, int]:
    """Return the last numbers of nodes by grade where at most the tolerance of all nodes is in another grade now."""
    if not before or before.keys() != grades.keys():
        return grades
    moved = sum(abs(count - before[grade]) for grade, count in grades.items())
    return before if 100 * moved <= TOLERANCE * sum(before.values()) else grades


def settle_readiness(now: Readiness, before: Readiness | None, observed: datetime) -> Readiness:
    """Return the readiness with the time since when it has its status. The message of the last one stays while its reason does."""
    if before is None or before.status != now.status:
        return now._replace(since=now.since or observed)
    message = before.message if before.reason == now.reason else now.message
    return now._replace(since=before.since or now.since, message=message)


def settle_facts(now: ClusterFacts, before: ClusterFacts | None, refresh: timedelta) -> ClusterFacts:
    """Return the facts to write: the last ones where nothing changed and they are younger than `refresh`."""
    if before is None:
        return now
    if now._replace(observed=before.observed) != before or now.observed - before.observed >= refresh:
        return now
    return before
