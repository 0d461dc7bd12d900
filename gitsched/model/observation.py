"""What metrics providers said: the one input of a plan that comes from neither Git nor a clock."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

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


def write_observations(observations: Mapping[ObservationKey, float | Failure]) -> dict[str, Any]:
    """Observations as JSON, by `kind/namespace/provider/metric`."""
    return {
        "/".join(key): {"code": value.code, "error": value.error} if isinstance(value, Failure) else value
        for key, value in sorted(observations.items())
    }


def read_observations(entries: Mapping[str, Any], time: datetime | None) -> Observations:
    """What `write_observations` wrote; entries that it did not write are left aside."""
    found = Observations(time=time)
    for text, value in entries.items():
        key = text.split("/", 3)
        if len(key) != 4:
            continue
        if isinstance(value, dict):
            found[key[0], key[1], key[2], key[3]] = Failure(str(value.get("code")), str(value.get("error")))
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max:
            found[key[0], key[1], key[2], key[3]] = float(value)
    return found
