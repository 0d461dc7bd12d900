"""The reports of clusters about output commits: from commit statuses and from documents of kind ClusterReport."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from gitsched.model.cluster_report import ClusterReport, Health, read_cluster_report
from gitsched.model.document import Document
from gitsched.model.finding import Finding, locate_document
from gitsched.model.fleet_status import LastReport
from gitsched.model.observation import DELIVERY_STATUS, DeliveryStatus
from gitsched.model.rollouts import ChangedCluster
from gitsched.schedule.rollout import FAILURE, SUCCESS, RolloutReport

STATES: Mapping[str, str] = {"Healthy": SUCCESS, "Degraded": FAILURE}
"""The states of rollouts by the health of a report; Progressing is neither."""
_HEALTH: Mapping[str, Health] = {SUCCESS: "Healthy", FAILURE: "Degraded"}


UNKNOWN_CLUSTER: Final = "report-cluster-unknown"


def find_unknown_reports(reports: Iterable[Document], clusters: Collection[str]) -> Iterator[Finding]:
    """Yield a warning for each ClusterReport about a cluster that the source does not have."""
    for document in reports:
        if document.key.name not in clusters:
            message = (
                f"the source has no cluster {document.key.name}, so its report has no effect; correct the name, commit the document of the "
                "cluster, or remove the report"
            )
            yield Finding("warning", UNKNOWN_CLUSTER, message, locate_document(document), document.key.resource)


class KnownReports:
    """The reports that a plan knows. `documents` are the ClusterReports, `commits` the latest output commits, the newest first: reports
    about others do not count."""

    def __init__(self, documents: Iterable[Document], observations: Mapping[Any, Any], commits: Sequence[str]) -> None:
        self._ages = {commit: age for age, commit in enumerate(commits)}
        self._commits: dict[int, str] = {}
        read = (read_cluster_report(document.body) for document in documents)
        self.by_cluster: dict[str, ClusterReport] = {report.cluster: report for report in read if report is not None}
        self._unknown: dict[str, LastReport] = {}
        self._statuses: dict[str, list[tuple[int, str, datetime]]] = {}
        for cluster, commit, state, since in _list_entries(observations, self.by_cluster.values()):
            if commit in self._ages:
                self._statuses.setdefault(cluster, []).append((self._ages[commit], state, since))
                self._commits[self._ages[commit]] = commit
            else:
                self._unknown[cluster] = LastReport(commit, _HEALTH.get(state, "Progressing"), since, None)
        self.exist = bool(self.by_cluster or self._statuses)

    def find_last(self, cluster: str) -> LastReport | None:
        """Return the report of a cluster about the latest commit; None if it has made none."""
        found = self._statuses.get(cluster)
        if not found:
            return self._unknown.get(cluster)
        age, state, since = min(found, key=_rank)
        report = self.by_cluster.get(cluster)
        details = report.unhealthy if report is not None and self._ages.get(report.commit) == age else ()
        return LastReport(self._commits[age], _HEALTH.get(state, "Progressing"), since, age, details)

    def find(self, changed: ChangedCluster) -> RolloutReport | None:
        """Return the last report of a cluster about a commit that has its change; None if there is none.

        The commits are in one line, so those after the parent of the change have it. Of a parent that is not known any more, all known
        commits are later. A report made before the change counts from the change.
        """
        limit = self._ages.get(changed.parent, len(self._ages))
        about = [entry for entry in self._statuses.get(changed.cluster, ()) if entry[0] < limit]
        if not about:
            return None
        _, state, since = min(about, key=_rank)
        return RolloutReport(state, max(since, changed.applied_at))


def _rank(entry: tuple[int, str, datetime]) -> tuple[int, bool, datetime]:
    """Order reports: the first is about the latest commit, and of several about it, a failure counts."""
    age, state, since = entry
    return age, state != FAILURE, since


def _list_entries(observations: Mapping[Any, Any], reports: Iterable[ClusterReport]) -> Iterator[tuple[str, str, str, datetime]]:
    for key, status in observations.items():
        if isinstance(key, tuple) and len(key) == 4 and key[0] == DELIVERY_STATUS and isinstance(status, DeliveryStatus):
            yield str(key[2]), str(key[3]), status.state, status.since or status.time
    for report in reports:
        yield report.cluster, report.commit, STATES.get(report.health, ""), report.since
