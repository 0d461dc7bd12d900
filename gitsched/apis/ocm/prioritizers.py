"""Scores for prioritizers: allocatable resources and AddOnPlacementScores, as columns over the fleet."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import lru_cache

from gitsched.model.document import Body, Document, get_field
from gitsched.model.time import parse_time
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.scores import ScoreColumn

_QUANTITY = re.compile(r"([+-]?)0*(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,18})|(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE])?)", re.ASCII)
_BINARY_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_MAX_DIGITS, _NANO_EXPONENT = 18, -9
_MAX_INT64 = (1 << 63) - 1


def _round_up_to_nanos(digits: int, scale: int, *, is_binary: bool) -> tuple[int, int]:
    """Return an integer and its power of ten in nanos; a quantity with a binary suffix is at most the largest int64."""
    shift = scale - _NANO_EXPONENT
    nanos = digits * 10**shift if shift >= 0 else -(-digits // 10**-shift)
    return (_MAX_INT64, 0) if is_binary and nanos > _MAX_INT64 * 10**9 else (nanos, _NANO_EXPONENT)


@lru_cache(maxsize=1 << 12)
def approximate_float64(text: str) -> float | None:
    """Return a quantity as float64 as apimachinery's AsApproximateFloat64 does; None if it is invalid or not finite.

    Short numbers are an integer times a power of ten. Others (fractions with a binary suffix, many digits) are rounded up to
    nanos first, then multiplied by 1e-9, with the rounding error of that product.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None or not any(character.isdigit() for character in text.partition("e")[0].partition("E")[0]):
        return None
    sign, whole, fraction, power, suffix = match.groups()
    whole, fraction = whole or "0", fraction or ""
    binary = _BINARY_SUFFIXES.get(suffix or "")
    exponent = int(power) if power else _DECIMAL_SUFFIXES.get(suffix or "", 0)
    if abs(exponent) > 400:
        return None
    digits = int(whole + fraction)
    scale = exponent - len(fraction)
    if binary is None:
        short = len(whole) + len(fraction) <= _MAX_DIGITS and scale >= _NANO_EXPONENT
    else:
        digits <<= binary
        short = not fraction and 15 - len(whole) - int(binary * 3 / 10) - 1 >= 0 and digits <= _MAX_INT64
    if not short and digits:
        digits, scale = _round_up_to_nanos(digits, scale, is_binary=binary is not None)
    try:
        value = float(digits) * float(f"1e{scale}") if scale else float(digits)
    except OverflowError:
        return None
    if not math.isfinite(value):
        return None
    return -value if sign == "-" else value


_ONE_MICROSECOND = timedelta(microseconds=1)


class AddOnScores(NamedTuple):
    """One add-on score at one time: values by candidate, and when the next one expires.

    `expired` are candidates whose score has expired, with its validUntil, and `expiring` those whose score is valid until then;
    `missing` are candidates that have no such score.
    """

    column: ScoreColumn
    expired: tuple[tuple[int, datetime], ...]
    expiring: tuple[tuple[int, datetime], ...]
    missing: tuple[int, ...]
    next_expiry: datetime | None


class PrioritizerScores:
    """Scores of all clusters: AddOnPlacementScores and allocatable resources."""

    __slots__ = ("_allocatable", "_columns", "_names", "_objects", "_resources", "bodies")

    def __init__(self, documents: Iterable[Document], names: tuple[str, ...], bodies: tuple[Body, ...]) -> None:
        self._objects = {(document.key.namespace, document.key.name): document.body for document in documents}
        self._names, self.bodies = names, bodies
        self._allocatable: dict[str, ScoreColumn] = {}
        self._resources: dict[str, list[tuple[int, dict[str, int], datetime | None]]] = {}
        self._columns: dict[tuple[str, str, datetime], AddOnScores] = {}

    def list_addon_scores(self, cluster: str, resource: str) -> list[Body] | None:
        """Return the scores of an AddOnPlacementScore, expired or not; None if the object does not exist."""
        body = self._objects.get((cluster, resource))
        return None if body is None else get_field(body, "status", "scores") or []

    def list_resources(self) -> set[str]:
        """Return the names of all AddOnPlacementScores."""
        return {name for _, name in self._objects}

    def list_score_names(self, resource: str) -> set[str]:
        """Return the names of all scores in the AddOnPlacementScores with this name, expired or not."""
        return {name for _, values, _ in self._read_resource_scores(resource) for name in values}

    def allocatable(self, resource: str) -> ScoreColumn:
        """Return the numbers for ResourceAllocatableCPU or ResourceAllocatableMemory: the allocatable amount by candidate, or None for a
        cluster that does not list the resource in its capacity, too."""
        if resource not in self._allocatable:
            self._allocatable[resource] = ScoreColumn(_read_allocatable(body, resource) for body in self.bodies)
        return self._allocatable[resource]

    def add_on(self, resource: str, score: str, time: datetime) -> AddOnScores:
        """Return an add-on score of every cluster at a time."""
        cache_key = (resource, score, time)
        if cache_key not in self._columns:
            self._columns[cache_key] = self._read_addon_scores(resource, score, time)
        return self._columns[cache_key]

    def _read_addon_scores(self, resource: str, score: str, time: datetime) -> AddOnScores:
        values_by_candidate: list[float | None] = [None] * len(self._names)
        expired: list[tuple[int, datetime]] = []
        missing = dict.fromkeys(range(len(self._names)))
        expiring: list[tuple[int, datetime]] = []
        for index, values, valid_until in self._read_resource_scores(resource):
            if score not in values:
                continue
            missing.pop(index, None)
            if valid_until is not None and time > valid_until:
                expired.append((index, valid_until))
                continue
            values_by_candidate[index] = values[score]
            if valid_until is not None:
                expiring.append((index, valid_until))
        # A score is valid up to and including validUntil, so the decision can change one microsecond later.
        next_expiry = min(valid_until for _, valid_until in expiring) + _ONE_MICROSECOND if expiring else None
        return AddOnScores(ScoreColumn(values_by_candidate), tuple(expired), tuple(expiring), tuple(missing), next_expiry)

    def _read_resource_scores(self, resource: str) -> list[tuple[int, dict[str, int], datetime | None]]:
        """Return candidate index, values by score name, and validUntil of each AddOnPlacementScore with this name."""
        if resource not in self._resources:
            self._resources[resource] = [
                (
                    index,
                    {item["name"]: item["value"] for item in status.get("scores") or ()},
                    _parse_valid_until(status.get("validUntil")),
                )
                for index, name in enumerate(self._names)
                if (body := self._objects.get((name, resource))) is not None
                for status in (body.get("status") or {},)
            ]
        return self._resources[resource]


@lru_cache(maxsize=1 << 10)
def _parse_valid_until(text: str | None) -> datetime | None:
    """Parse validUntil; cached because one controller writes the same time for thousands of clusters."""
    return parse_time(text)


def _read_allocatable(body: Body, resource: str) -> float | None:
    status = body.get("status") or {}
    amounts = status.get("allocatable") or {}
    if resource not in amounts or resource not in (status.get("capacity") or {}):
        return None
    return approximate_float64(str(amounts[resource]))
