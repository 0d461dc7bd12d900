"""Evictions that the records of bindings show: why a workload left a cluster with a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from gitsched.apis.added_taints import AddedTaint
from gitsched.apis.karmada.failover.graceful_eviction import (
    APPLICATION_FAILURE,
    TAINT_UNTOLERATED,
    find_eviction_time,
    read_applied_tolerations,
)
from gitsched.apis.karmada.names import APPLIED_PLACEMENT_ANNOTATION
from gitsched.apis.policy_api import RecordedEviction
from gitsched.model.document import Body, get_field, list_objects, read_annotations
from gitsched.model.taints import Toleration


def list_recorded_evictions(
    before: Body, after: Body, taints: Mapping[str, Sequence[AddedTaint]], time: datetime
) -> Iterator[RecordedEviction]:
    """Yield the evictions between two records of a binding, of which the later one is of `time`, with those `taints` of the cluster that
    the workload did not tolerate.

    A late run records no task of an eviction that is over in the meantime.
    """
    known = [_identify(task) for task in _list_tasks(before)]
    reasons = {str(task.get("fromCluster")): task.get("reason") for task in _list_tasks(after) if _identify(task) not in known}
    names = [{str(target.get("name")) for target in list_objects(get_field(body, "spec", "clusters"))} for body in (before, after)]
    for name in sorted(names[0] - names[1]):
        if reasons.get(name) == APPLICATION_FAILURE:
            yield RecordedEviction(name, unhealthy=True)
            continue
        found = _list_evicting(taints.get(name, ()), before, time) or _list_evicting(taints.get(name, ()), after, time)
        ended = {added: end for added, end in found.items() if reasons.get(name) == TAINT_UNTOLERATED or end < time}
        if ended or reasons.get(name) == TAINT_UNTOLERATED:
            yield RecordedEviction(
                name, {added: added.taint.since is not None and end > added.taint.since for added, end in ended.items()}
            )


def _list_evicting(taints: Sequence[AddedTaint], record: Body, time: datetime) -> dict[AddedTaint, datetime]:
    """Return the taints that evict a workload up to `time`, each with when it did so."""
    tolerations = read_applied_tolerations(read_annotations(record).get(APPLIED_PLACEMENT_ANNOTATION)) or ()
    ends = {added: _find_end(added, tolerations, time) for added in taints}
    return {added: end for added, end in ends.items() if end is not None and end <= time}


def _find_end(added: AddedTaint, tolerations: tuple[Toleration, ...], time: datetime) -> datetime | None:
    """Return when a workload had to leave because of one taint; None if it tolerates that."""
    since = added.taint.since
    return find_eviction_time([added.taint], tolerations, time if since is None else min(since, time))


def _list_tasks(record: Body) -> list[Body]:
    return list_objects(get_field(record, "spec", "gracefulEvictionTasks"))


def _identify(task: Body) -> tuple[object, object]:
    return task.get("fromCluster"), task.get("creationTimestamp")
