"""What clusters are preferred by: allocatable resources and the scores that add-ons write, as columns over the fleet."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from gitsched.apis.ocm.amount import approximate
from gitsched.model.document import Body, Document, member
from gitsched.model.time import parse_time
from gitsched.schedule.score import Column

_INSTANT = timedelta(microseconds=1)


class AddOn(NamedTuple):
    """A score at one moment: by candidate, of whom it has expired, and when the next one expires."""

    column: Column
    expired: tuple[str, ...]
    missing: int
    expires: datetime | None


class Scores:
    """The AddOnPlacementScores of a commit, and what the clusters have to give."""

    __slots__ = ("_allocatable", "_columns", "_names", "_objects", "_resources", "bodies")

    def __init__(self, documents: Iterable[Document], names: tuple[str, ...], bodies: tuple[Body, ...]) -> None:
        self._objects = {(document.key.namespace, document.key.name): document.body for document in documents}
        self._names, self.bodies = names, bodies
        self._allocatable: dict[str, Column] = {}
        self._resources: dict[str, list[tuple[int, dict[str, int], datetime | None]]] = {}
        self._columns: dict[tuple[str, str, datetime], AddOn] = {}

    def of(self, cluster: str, resource: str) -> list[Body] | None:
        """The items of a cluster's AddOnPlacementScore, expired or not; None where there is no such object."""
        body = self._objects.get((cluster, resource))
        return None if body is None else member(body, "status", "scores") or []

    def allocatable(self, resource: str) -> Column:
        """How much each cluster can give; nothing is known of one that does not name the resource in its capacity, too."""
        if resource not in self._allocatable:
            self._allocatable[resource] = Column(_read_amount(body, resource) for body in self.bodies)
        return self._allocatable[resource]

    def add_on(self, resource: str, score: str, moment: datetime) -> AddOn:
        """A score of every cluster at a moment."""
        question = (resource, score, moment)
        if question not in self._columns:
            self._columns[question] = self._read(resource, score, moment)
        return self._columns[question]

    def _read(self, resource: str, score: str, moment: datetime) -> AddOn:
        numbers: list[float | None] = [None] * len(self._names)
        expired, found = [], 0
        ends = set()
        for index, values, end in self._of_resource(resource):
            if end is not None and moment > end:
                expired.append(self._names[index])
            elif score in values:
                numbers[index] = values[score]
                found += 1
                if end is not None:
                    ends.add(end)
        # At its very end a score still counts: what changes something is the instant after.
        expires = min(ends) + _INSTANT if ends else None
        return AddOn(Column(numbers), tuple(expired), len(numbers) - found, expires)

    def _of_resource(self, resource: str) -> list[tuple[int, dict[str, int], datetime | None]]:
        """The objects of one name, by candidate: their values (the last one of a name counts) and until when they do."""
        if resource not in self._resources:
            self._resources[resource] = [
                (index, {item["name"]: item["value"] for item in status.get("scores") or ()}, _read_end(status.get("validUntil")))
                for index, name in enumerate(self._names)
                if (body := self._objects.get((name, resource))) is not None
                for status in (body.get("status") or {},)
            ]
        return self._resources[resource]


@lru_cache(maxsize=1 << 10)
def _read_end(text: str | None) -> datetime | None:
    """Thousands of clusters are scored in one go, until the same moment."""
    return parse_time(text)


def _read_amount(body: Body, resource: str) -> float | None:
    status = body.get("status") or {}
    amounts = status.get("allocatable") or {}
    if resource not in amounts or resource not in (status.get("capacity") or {}):
        return None
    return approximate(str(amounts[resource]))
