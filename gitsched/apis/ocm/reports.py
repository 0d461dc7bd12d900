"""What clusters say about what they were given: RolloutReports of the repository, and statuses that the shell observed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from gitsched.apis.ocm.rollout import FAILURE, SUCCESS, Report
from gitsched.model.document import Document
from gitsched.model.observation import STATUS, Status
from gitsched.model.time import parse_time

KIND = "RolloutReport"


class Reports(NamedTuple):
    """The latest word of each cluster: as the source has it, and with what was observed `seen`, None where nothing was."""

    written: Mapping[str, Report]
    all: Mapping[str, Report]
    seen: datetime | None

    def at(self, moment: datetime) -> Mapping[str, Report]:
        """What is known at a moment."""
        return self.all if self.seen is None or self.seen <= moment else self.written


def read_reports(documents: Iterable[Document], observations: Mapping[Any, Any]) -> Reports:
    """RolloutReports, and the commit statuses among the observations."""
    written, observed = list(_written(documents)), list(_observed(observations))
    # Without a time they were known from the start.
    seen = getattr(observations, "time", None) if observed else None
    moment = seen.replace(microsecond=0) if isinstance(seen, datetime) else None
    return Reports(_latest(written), _latest([*written, *observed]), moment)


def _latest(reports: Iterable[tuple[str, Report]]) -> dict[str, Report]:
    latest: dict[str, Report] = {}
    for cluster, report in reports:
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
        said = isinstance(key, tuple) and len(key) == 4 and key[0] == STATUS
        if said and isinstance(status, Status) and status.state in (SUCCESS, FAILURE):
            yield str(key[2]), Report(status.state, status.time)
