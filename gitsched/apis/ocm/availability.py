"""Taints that the condition ManagedClusterConditionAvailable adds, as Open Cluster Management's registration controller does
(pkg/registration/hub/taint/controller.go).

Upstream writes them to spec.taints and its webhook sets timeAdded at that moment, which is when the condition changed. Here the document
stays as it is: the taints are added to what the scheduler reads and to the record of the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from gitsched.apis.added_taints import TAINTS_ADDED, AddedTaint, read_added_taints, write_added_taints, write_taint
from gitsched.apis.ocm.names import GROUP
from gitsched.model.document import Body, Document, Key, get_field, list_objects
from gitsched.model.finding import Finding, Pointer, locate_document, locate_field
from gitsched.model.taints import Taint, parse_taint
from gitsched.model.time import parse_time
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.schedule.fleet import Fleet

AVAILABLE_CONDITION = "ManagedClusterConditionAvailable"
TAINT_KEYS: Mapping[str, str] = {"False": f"{GROUP}/unavailable", "Unknown": f"{GROUP}/unreachable"}
"""Keys of the taints by the status of the condition."""
NO_SELECT = "NoSelect"
_MAX_LISTED = 5


class AvailabilityTaint(NamedTuple):
    """The taint that the condition of a ManagedCluster adds, the reason, and where the condition is in the document."""

    taint: Taint
    reason: str
    pointer: Pointer


def derive_availability_taint(cluster: Body, record: Body | None, time: datetime) -> AvailabilityTaint | None:
    """Return the taint that the condition adds to a ManagedCluster; None if there is none, or spec.taints already has it.

    Its time is when the condition changed (lastTransitionTime), else when the condition was first seen: the time in the record of the
    last run, else `time`. A time after `time` counts as unknown, so that a clock that is wrong does not postpone the end of tolerations.
    A missing condition adds nothing, because such a document is written by hand; upstream adds the taint `unreachable`. Like upstream,
    nothing is added to a cluster that is being deleted.
    """
    conditions = list_objects(get_field(cluster, "status", "conditions"))
    found = ((i, c) for i, c in enumerate(conditions) if c.get("type") == AVAILABLE_CONDITION)
    position, condition = next(found, (0, {}))
    status = str(condition.get("status"))
    if status not in TAINT_KEYS or get_field(cluster, "metadata", "deletionTimestamp"):
        return None
    taint = Taint(TAINT_KEYS[status], "", NO_SELECT)
    own = map(parse_taint, list_objects(get_field(cluster, "spec", "taints")))
    if any(entry._replace(since=None) == taint for entry in own):
        return None
    known = (parse_time(condition.get("lastTransitionTime")), _read_recorded_time(record, taint))
    since = next((moment for moment in known if moment is not None and moment <= time), time)
    reason = f"its condition {AVAILABLE_CONDITION} is {status}"
    return AvailabilityTaint(taint._replace(since=since), reason, ("status", "conditions", position))


def add_availability_taint(cluster: Body, added: AvailabilityTaint) -> Body:
    """Return a ManagedCluster with the taint in spec.taints, as upstream stores it."""
    spec = cluster.get("spec") or {}
    return {**cluster, "spec": {**spec, "taints": [*(spec.get("taints") or ()), write_taint(added.taint)]}}


def write_cluster_record(document: Document, added: AvailabilityTaint) -> tuple[Key, Body]:
    """Return the record of a ManagedCluster with an added taint."""
    annotations = {TAINTS_ADDED: write_added_taints([AddedTaint(added.taint, added.reason)])}
    metadata = {"name": document.key.name, "annotations": annotations}
    return document.key, {"apiVersion": document.api_version, "kind": document.key.kind, "metadata": metadata}


def find_availability_findings(clusters: Iterable[tuple[Document, AvailabilityTaint]]) -> Iterator[Finding]:
    """Report added taints: one finding for all clusters with the same taint, at the first of them."""
    by_reason: dict[str, list[tuple[Document, AvailabilityTaint]]] = {}
    for entry in clusters:
        by_reason.setdefault(entry[1].reason, []).append(entry)
    for reason, entries in sorted(by_reason.items()):
        document, added = entries[0]
        names = [cluster.key.name for cluster, _ in entries]
        more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
        message = (
            f"ManagedCluster{'s' if len(names) > 1 else ''} {', '.join(names[:_MAX_LISTED])}{more}: taint "
            f"{added.taint} is added: {reason}"
        )
        field = locate_field(document.origin, added.pointer)
        yield Finding("info", "cluster-taint-added", message, locate_document(document), document.key.resource, field=field)


def find_unavailable(fleet: Fleet) -> dict[str, str]:
    """Return the clusters with a taint that no Placement may select, each with the reason."""
    found = {}
    for candidate in fleet.candidates:
        taint = next((taint for taint in candidate.taints if taint.effect == NO_SELECT), None)
        if taint is not None:
            found[candidate.name] = f"it has the taint {taint.key}:{taint.effect}"
    return found


def find_reported_unready(fleet: Fleet) -> frozenset[str]:
    """Return the clusters whose taints against selection are only those of a condition."""
    keys = frozenset(TAINT_KEYS.values())
    return frozenset(
        candidate.name
        for candidate in fleet.candidates
        if (taints := [taint for taint in candidate.taints if taint.effect == NO_SELECT]) and {t.key for t in taints} <= keys
    )


def _read_recorded_time(record: Body | None, taint: Taint) -> datetime | None:
    """Return the time of a taint in the record of the last run; malformed text has none."""
    entries = (entry.taint for entry in read_added_taints(record or {}))
    return next((entry.since for entry in entries if entry._replace(since=None) == taint), None)
