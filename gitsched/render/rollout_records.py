"""Write and read the rollouts in gitsched.json."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gitsched.model.document import Body, Key, list_objects
from gitsched.model.rollouts import ApprovedFiles, ChangedCluster, HeldFiles, LostCopy, RolloutRecord
from gitsched.model.time import format_time, parse_time


def write_rollout(record: RolloutRecord) -> Body:
    """Return a rollout as JSON, without its name."""
    entry: Body = {
        "clusters": {one.cluster: _write_cluster(one) for one in record.changed},
        "held": [[list(one.workload), one.cluster, list(one.paths)] for one in sorted(record.held)],
    }
    unapproved = sorted((one.workload, one.cluster) for one in record.held if not one.approved)
    lists: Body = {
        "unapproved": [[list(workload), cluster] for workload, cluster in unapproved],
        "lost": [[list(one.workload), one.cluster, one.content] for one in sorted(record.lost)],
        "approved": [[list(one.workload), one.cluster, list(one.paths)] for one in sorted(record.approved)],
    }
    return entry | {name: value for name, value in lists.items() if value}


def _write_cluster(one: ChangedCluster) -> Body:
    entry: Body = {"parent": one.parent, "appliedAt": format_time(one.applied_at)}
    entry |= {"lost": format_time(one.lost)} if one.lost is not None else {}
    state = "Success" if one.succeeded else "Failure" if one.failed else "Skipped" if one.skipped else ""
    return entry | ({"state": state} if state else {})


def read_rollout(name: str, entry: Body) -> RolloutRecord:
    """Parse what `write_rollout` returns; what is malformed is skipped."""
    unapproved = {(key, cluster) for key, cluster, _ in _read_pairs(entry.get("unapproved"))}
    held = tuple(
        HeldFiles(key, cluster, _read_paths(rest), (key, cluster) not in unapproved)
        for key, cluster, rest in _read_pairs(entry.get("held"))
    )
    lost = tuple(LostCopy(key, cluster, str(rest or "")) for key, cluster, rest in _read_pairs(entry.get("lost")))
    approved = tuple(ApprovedFiles(key, cluster, _read_paths(rest)) for key, cluster, rest in _read_pairs(entry.get("approved")))
    return RolloutRecord(name, tuple(_read_clusters(entry.get("clusters"))), held, lost, approved)


def _read_clusters(value: Any) -> Iterator[ChangedCluster]:
    for name, entry in sorted(value.items()) if isinstance(value, dict) else ():
        known = list_objects([entry])
        applied_at = parse_time(known[0].get("appliedAt")) if known else None
        if applied_at is not None:
            state, lost = entry.get("state"), parse_time(entry.get("lost"))
            parent = str(entry.get("parent") or "")
            yield ChangedCluster(name, parent, applied_at, state == "Success", state == "Failure", lost, state == "Skipped")


def _read_pairs(value: Any) -> Iterator[tuple[Key, str, Any]]:
    """Yield workloads with a cluster, and what else the entry has; None for nothing."""
    for entry in value if isinstance(value, list) else ():
        match entry:
            case [[str(group), str(kind), str(namespace), str(name)], str(cluster), *rest]:
                yield Key(group, kind, namespace, name), cluster, rest[0] if rest else None


def _read_paths(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()
