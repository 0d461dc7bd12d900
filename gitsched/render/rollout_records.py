"""Write and read the rollouts in gitsched.json."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gitsched.model.document import Body, Key, list_objects
from gitsched.model.rollouts import ChangedCluster, HeldFiles, RolloutRecord
from gitsched.model.time import format_time, parse_time


def write_rollouts(records: Iterable[RolloutRecord]) -> Body:
    """Return the rollouts by name, as JSON."""
    return {
        record.name: {
            "clusters": {one.cluster: _write_cluster(one) for one in record.changed},
            "held": [[list(one.workload), one.cluster, list(one.paths)] for one in sorted(record.held)],
        }
        for record in records
    }


def _write_cluster(one: ChangedCluster) -> Body:
    entry: Body = {"parent": one.parent, "appliedAt": format_time(one.applied_at)}
    return entry | ({"state": "Success"} if one.succeeded else {"state": "Failure"} if one.failed else {})


def read_rollouts(value: Any) -> tuple[RolloutRecord, ...]:
    """Parse what `write_rollouts` returns; what is malformed is skipped."""
    if not isinstance(value, dict):
        return ()
    return tuple(
        RolloutRecord(name, tuple(_read_clusters(entry.get("clusters"))), tuple(_read_held(entry.get("held"))))
        for name, entry in sorted(value.items())
        if isinstance(entry, dict)
    )


def _read_clusters(value: Any) -> Iterator[ChangedCluster]:
    for name, entry in sorted(value.items()) if isinstance(value, dict) else ():
        known = list_objects([entry])
        applied_at = parse_time(known[0].get("appliedAt")) if known else None
        if applied_at is not None:
            state = entry.get("state")
            yield ChangedCluster(name, str(entry.get("parent") or ""), applied_at, state == "Success", state == "Failure")


def _read_held(value: Any) -> Iterator[HeldFiles]:
    for entry in value if isinstance(value, list) else ():
        match entry:
            case [[str(group), str(kind), str(namespace), str(name)], str(cluster), list(paths)]:
                yield HeldFiles(Key(group, kind, namespace, name), cluster, tuple(map(str, paths)))
