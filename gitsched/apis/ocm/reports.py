"""What clusters say about what they were given: RolloutReports of the repository, and statuses that the shell observed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from gitsched.apis.ocm.rollout import FAILURE, SUCCESS, Report
from gitsched.model.document import Document
from gitsched.model.time import parse_time

KIND = "RolloutReport"
STATUS = "CommitStatus"
"""First member of the key of an observed status: (STATUS, "", cluster, output commit) -> an object with `state` and `time`."""


def read_reports(documents: Iterable[Document], observations: Mapping[Any, Any]) -> dict[str, Report]:
    """The latest word of each cluster."""
    latest: dict[str, Report] = {}
    for cluster, report in (*_written(documents), *_observed(observations)):
        known = latest.get(cluster)
        # Of two reports about one moment the worse one counts.
        if known is None or (known.time, known.state == FAILURE) < (report.time, report.state == FAILURE):
            latest[cluster] = report
    return latest


def _written(documents: Iterable[Document]) -> Iterable[tuple[str, Report]]:
    for document in documents:
        for entry in document.body["spec"]["clusters"]:
            moment = parse_time(entry["time"])
            if moment is not None:
                yield entry["name"], Report(entry["state"], moment)


def _observed(observations: Mapping[Any, Any]) -> Iterable[tuple[str, Report]]:
    for key, status in observations.items():
        if isinstance(key, tuple) and len(key) == 4 and key[0] == STATUS:
            state, moment = getattr(status, "state", None), getattr(status, "time", None)
            if state in (SUCCESS, FAILURE) and isinstance(moment, datetime):
                yield str(key[2]), Report(state, moment)
