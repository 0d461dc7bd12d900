"""The rollout of a ManifestWorkReplicaSet that the previous output records, and the reports that its clusters made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from gitsched.apis.ocm.names import MANAGED_CLUSTER, MANIFEST_WORK_REPLICA_SET
from gitsched.model.document import Body, Document, Key, get_field, read_annotations, read_json
from gitsched.model.observation import DELIVERY_STATUS, DeliveryStatus
from gitsched.model.time import format_time, parse_time
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.rollout import FAILURE, SUCCESS, ClusterRevision, RolloutReport


def waits_for_reports(replica_set: Body) -> bool:
    """Report whether the rollout of a ManifestWorkReplicaSet depends on reports; the document need not be valid."""
    references = get_field(replica_set, "spec", "placementRefs")
    entries = references if isinstance(references, list) else []
    return any(get_field(entry, "rolloutStrategy", "type") not in (None, "All") for entry in entries if isinstance(entry, dict))


def list_reporting_clusters(documents: Iterable[Body]) -> set[str]:
    """Return the names of all ManagedClusters if the rollout of a ManifestWorkReplicaSet waits for their reports."""
    bodies = list(documents)
    if not any(waits_for_reports(body) for body in bodies if body.get("kind") == MANIFEST_WORK_REPLICA_SET):
        return set()
    return {str(get_field(body, "metadata", "name")) for body in bodies if body.get("kind") == MANAGED_CLUSTER}


ROLLOUT_ANNOTATION = "gitsched.io/rollout"
"""An annotation of a record, JSON: steps as [revision, applied at, clusters], objects as [group, kind, namespace, name], and lost clusters
with the time since when, if there are any."""


class PreviousRollout(NamedTuple):
    """The rollout of the previous output; `objects` are the objects of all revisions that clusters have, and `lost` the clusters that were
    lost before they reported on the revision, with the time since when."""

    revisions: Mapping[str, ClusterRevision]
    objects: tuple[Key, ...]
    lost: Mapping[str, datetime] = {}


NO_PREVIOUS_ROLLOUT = PreviousRollout({}, ())


def read_previous_rollout(record: Body | None) -> PreviousRollout:
    """Read the rollout from its record; an empty one if there is none, or the annotation is invalid."""
    text = read_annotations(record or {}).get(ROLLOUT_ANNOTATION)
    if text is None:
        return NO_PREVIOUS_ROLLOUT
    try:
        content: Any = read_json(text)
        revisions = {
            str(name): ClusterRevision(str(revision), time)
            for revision, applied_at, clusters in content["steps"]
            if (time := parse_time(applied_at)) is not None
            for name in clusters
        }
        known = content.get("lost") or {}
        lost = {str(name): time for name, since in known.items() if (time := parse_time(since)) is not None}
        return PreviousRollout(revisions, tuple(Key(*map(str, entry)) for entry in content["objects"]), lost)
    except (ValueError, KeyError, TypeError, AttributeError):
        return NO_PREVIOUS_ROLLOUT


def format_rollout(
    revisions: Mapping[str, ClusterRevision], objects: Iterable[Key], lost: Mapping[str, datetime] = NO_PREVIOUS_ROLLOUT.lost
) -> str:
    """Format the annotation; clusters with the same revision and time share an entry."""
    clusters_by_revision: dict[ClusterRevision, list[str]] = {}
    for name, step in sorted(revisions.items()):
        clusters_by_revision.setdefault(step, []).append(name)
    content: Body = {
        "objects": [list(key) for key in sorted(objects)],
        "steps": [[step.revision, format_time(step.applied_at), names] for step, names in sorted(clusters_by_revision.items())],
    }
    if lost:
        content["lost"] = {name: format_time(since) for name, since in sorted(lost.items())}
    return json.dumps(content, separators=(",", ":"))


class RolloutReports(NamedTuple):
    """The last report of each cluster: from the source, and combined with commit statuses read at `observed_at` (None if none were)."""

    from_source: Mapping[str, RolloutReport]
    combined: Mapping[str, RolloutReport]
    observed_at: datetime | None

    def known_at(self, time: datetime) -> Mapping[str, RolloutReport]:
        """Return the reports known at a time."""
        return self.combined if self.observed_at is None or self.observed_at <= time else self.from_source


def read_reports(documents: Iterable[Document], observations: Mapping[Any, Any]) -> RolloutReports:
    """Read RolloutReports, and the commit statuses among the observations."""
    from_source, observed = list(_read_source_reports(documents)), list(_read_observed_reports(observations))
    # Observations without a time count as known at any time.
    time = getattr(observations, "time", None) if observed else None
    observed_at = time.replace(microsecond=0) if isinstance(time, datetime) else None
    return RolloutReports(_latest_by_cluster(from_source), _latest_by_cluster([*from_source, *observed]), observed_at)


def _latest_by_cluster(reports: Iterable[tuple[str, RolloutReport]]) -> dict[str, RolloutReport]:
    latest: dict[str, RolloutReport] = {}
    for cluster, report in reports:
        last = latest.get(cluster)
        # Of two reports with the same time, a failure wins.
        if last is None or (last.time, last.state == FAILURE) < (report.time, report.state == FAILURE):
            latest[cluster] = report
    return latest


def _read_source_reports(documents: Iterable[Document]) -> Iterable[tuple[str, RolloutReport]]:
    for document in documents:
        for entry in document.body["spec"]["clusters"]:
            time = parse_time(entry["time"])
            if time is not None:
                yield entry["name"], RolloutReport(entry["state"], time)


def _read_observed_reports(observations: Mapping[Any, Any]) -> Iterable[tuple[str, RolloutReport]]:
    for key, status in observations.items():
        is_status = isinstance(key, tuple) and len(key) == 4 and key[0] == DELIVERY_STATUS
        if is_status and isinstance(status, DeliveryStatus) and status.state in (SUCCESS, FAILURE):
            yield str(key[2]), RolloutReport(status.state, status.time)
