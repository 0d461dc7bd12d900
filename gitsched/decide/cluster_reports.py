"""The reports of clusters about output commits: from commit statuses and from documents of kind ClusterReport."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from gitsched.decide.catalog import Catalog
from gitsched.model.cluster_report import CLUSTER_REPORT, ClusterReport, read_cluster_report
from gitsched.model.observation import DELIVERY_STATUS, DeliveryStatus
from gitsched.model.rollouts import ChangedCluster
from gitsched.schedule.rollout import FAILURE, SUCCESS, RolloutReport

STATES: Mapping[str, str] = {"Healthy": SUCCESS, "Degraded": FAILURE}
"""The states of rollouts by the health of a report; Progressing is neither."""


class KnownReports:
    """The reports that a plan knows. `commits` are the latest output commits, the newest first: reports about others do not count."""

    def __init__(self, catalog: Catalog, observations: Mapping[Any, Any], commits: Sequence[str]) -> None:
        self._ages = {commit: age for age, commit in enumerate(commits)}
        documents = catalog.api_documents.get(CLUSTER_REPORT, ())
        read = (read_cluster_report(document.body) for document in documents)
        self.by_cluster: dict[str, ClusterReport] = {report.cluster: report for report in read if report is not None}
        self._statuses: dict[str, list[tuple[int, str, datetime]]] = {}
        for cluster, commit, state, since in _list_entries(observations, self.by_cluster.values()):
            if commit in self._ages:
                self._statuses.setdefault(cluster, []).append((self._ages[commit], state, since))
        self.exist = bool(self.by_cluster or self._statuses)

    def find(self, changed: ChangedCluster) -> RolloutReport | None:
        """Return the last report of a cluster about a commit that has its change; None if there is none.

        The commits are in one line, so those after the parent of the change have it. Of a parent that is not known any more, all known
        commits are later. A report made before the change counts from the change.
        """
        limit = self._ages.get(changed.parent, len(self._ages))
        about = [entry for entry in self._statuses.get(changed.cluster, ()) if entry[0] < limit]
        if not about:
            return None
        # Of several reports about the same commit, a failure counts.
        _, state, since = min(about, key=lambda entry: (entry[0], entry[1] != FAILURE, entry[2]))
        return RolloutReport(state, max(since, changed.applied_at))


def _list_entries(observations: Mapping[Any, Any], documents: Any) -> Iterator[tuple[str, str, str, datetime]]:
    for key, status in observations.items():
        if isinstance(key, tuple) and len(key) == 4 and key[0] == DELIVERY_STATUS and isinstance(status, DeliveryStatus):
            yield str(key[2]), str(key[3]), status.state, status.since or status.time
    for report in documents:
        yield report.cluster, report.commit, STATES.get(report.health, ""), report.since
