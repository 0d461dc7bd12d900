"""What clusters are preferred by: allocatable resources and the scores that add-ons write, as columns over the fleet."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

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

    __slots__ = ("_allocatable", "_columns", "_names", "_objects", "bodies")

    def __init__(self, documents: Iterable[Document], names: tuple[str, ...], bodies: tuple[Body, ...]) -> None:
        self._objects = {(document.key.namespace, document.key.name): document.body for document in documents}
        self._names, self.bodies = names, bodies
        self._allocatable: dict[str, Column] = {}
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
        numbers: list[float | None] = []
        expired, missing = [], 0
        expires: datetime | None = None
        for name in self._names:
            body = self._objects.get((name, resource))
            status: Any = {} if body is None else body.get("status") or {}
            end = parse_time(status.get("validUntil"))
            number = None
            if end is not None and moment > end:
                expired.append(name)
            else:
                number = next((item["value"] for item in reversed(status.get("scores") or ()) if item["name"] == score), None)
                missing += number is None
                if end is not None and number is not None:
                    # At its very end a score still counts: what changes something is the instant after.
                    expires = min(expires or end + _INSTANT, end + _INSTANT)
            numbers.append(number)
        return AddOn(Column(numbers), tuple(expired), missing, expires)


def _read_amount(body: Body, resource: str) -> float | None:
    status = body.get("status") or {}
    amounts = status.get("allocatable") or {}
    if resource not in amounts or resource not in (status.get("capacity") or {}):
        return None
    return approximate(str(amounts[resource]))
