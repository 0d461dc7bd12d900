"""What metrics providers said: the one input of a plan that comes from neither Git nor a clock."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

ObservationKey = tuple[str, str, str, str]
"""Kind of the provider, its namespace ("" for a global one), its name, and the metric's name on the provider."""


class Failure(NamedTuple):
    """Why there is no number: `code` is UNREACHABLE_METRICS_PROVIDER or INVALID_METRIC, `error` says it to people, without secrets."""

    code: str
    error: str


class Observations(dict[ObservationKey, float | Failure]):
    """A finite number, or a Failure, by key. `time` is when they were made, None where nobody says."""

    __slots__ = ("time",)

    def __init__(self, entries: Iterable[tuple[ObservationKey, float | Failure]] = (), time: datetime | None = None) -> None:
        super().__init__(entries)
        self.time = time
