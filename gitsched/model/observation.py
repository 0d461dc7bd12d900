"""Observations: metric values and delivery statuses, the one input of a plan that comes from neither Git nor the clock."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from gitsched.model.time import format_time, parse_time
from gitsched.named_tuples import NamedTuple

ObservationKey = tuple[str, str, str, str]
"""Kind of the provider, its namespace ("" for a global one), its name, and the metric's name on the provider."""


class MetricQuery(NamedTuple):
    """A query of one metric from one provider. `spec` is the provider's configuration for its `type`."""

    key: ObservationKey
    type: str
    spec: Mapping[str, Any]

    @property
    def provider(self) -> str:
        return self.key[2]

    @property
    def metric(self) -> str:
        return self.key[3]


class MetricFailure(NamedTuple):
    """Why a metric has no value: `code` is UNREACHABLE_METRICS_PROVIDER or INVALID_METRIC, `error` is a message without secrets."""

    code: str
    error: str


DELIVERY_STATUS = "CommitStatus"
"""Kind of the key of a DeliveryStatus: (DELIVERY_STATUS, "", cluster, output commit)."""


class DeliveryStatus(NamedTuple):
    """The status of an output commit that a cluster reported: `state` is Success, Failure or Progressing, `time` the date of the commit.

    `since` is the time from which the cluster has this state, None where it does not say.
    """

    state: str
    time: datetime
    since: datetime | None = None


Observation = float | MetricFailure | DeliveryStatus


class Observations(dict[ObservationKey, Observation]):
    """A finite number, a MetricFailure, or a DeliveryStatus, by key. `time` is when they were made, None if unknown."""

    __slots__ = ("time",)

    def __init__(self, entries: Iterable[tuple[ObservationKey, Observation]] = (), time: datetime | None = None) -> None:
        super().__init__(entries)
        self.time = time


def write_observations(observations: Mapping[ObservationKey, Observation]) -> dict[str, Any]:
    """Return observations as JSON, by `kind/namespace/provider/metric`."""
    return {"/".join(key): _write_observation(observations[key]) for key in sorted(observations)}


def _write_observation(value: Observation) -> Any:
    if isinstance(value, DeliveryStatus):
        since = {} if value.since is None else {"since": format_time(value.since)}
        return {"state": value.state, "time": format_time(value.time), **since}
    return value._asdict() if isinstance(value, MetricFailure) else value


def read_observations(entries: Mapping[str, Any], time: datetime | None) -> Observations:
    """Parse the output of `write_observations`; invalid entries are skipped."""
    found = Observations(time=time)
    for text, value in entries.items():
        key = text.split("/", 3)
        if len(key) != 4:
            continue
        status_time = parse_time(value.get("time")) if isinstance(value, dict) else None
        if isinstance(value, dict) and status_time is not None:
            found[key[0], key[1], key[2], key[3]] = DeliveryStatus(
                str(value.get("state")), status_time, parse_time(value.get("since"))
            )
        elif isinstance(value, dict):
            found[key[0], key[1], key[2], key[3]] = MetricFailure(str(value.get("code")), str(value.get("error")))
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max:
            found[key[0], key[1], key[2], key[3]] = float(value)
    return found
