"""The taints of a cluster in its record: those that conditions and policies add, which its document does not have, and since when its own
ones evict workloads."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from gitsched.model.document import Body, list_objects, read_annotations, read_json
from gitsched.model.taints import Taint, parse_taint, split_taint
from gitsched.model.time import format_time, parse_time
from gitsched.named_tuples import NamedTuple

TAINTS_ADDED = "gitsched.io/taints-added"
"""On the record of a cluster: the taints that are not in its document, as JSON, each with what added it."""

TAINTS_FIRST_SEEN = "gitsched.io/taints-first-seen"
"""On the record of a cluster: when each NoExecute taint of its document without timeAdded was first seen, as JSON."""


class AddedTaint(NamedTuple):
    """A taint that is not in the document; its `since` is when it was added. `added_by` is a reason for people, "" for a taint of the
    document."""

    taint: Taint
    added_by: str


def read_added_taints(record: Body) -> tuple[AddedTaint, ...]:
    """Read the added taints from the record of a cluster; malformed entries are ignored."""
    try:
        entries: Any = read_json(read_annotations(record).get(TAINTS_ADDED, "[]"))
    except ValueError:
        return ()
    return tuple(AddedTaint(parse_taint(entry), str(entry.get("addedBy") or "")) for entry in list_objects(entries))


def read_first_seen(record: Body) -> dict[str, datetime]:
    """Return when the undated taints of a cluster were first seen, by their text; malformed entries are ignored."""
    try:
        value: Any = read_json(read_annotations(record).get(TAINTS_FIRST_SEEN, "{}"))
    except ValueError:
        return {}
    times = {str(name): parse_time(text) for name, text in value.items()} if isinstance(value, dict) else {}
    return {name: time for name, time in times.items() if time is not None}


def read_recorded_taints(record: Body) -> tuple[AddedTaint, ...]:
    """Return all taints that the record of a cluster has."""
    own = (AddedTaint(split_taint(text, time), "") for text, time in read_first_seen(record).items())
    return (*own, *read_added_taints(record))


def write_added_taints(added: Iterable[AddedTaint]) -> str:
    """Return the value of the annotation: taints as in spec.taints of a cluster, with `addedBy`."""
    entries = ({**write_taint(entry.taint), "addedBy": entry.added_by} for entry in added)
    return json.dumps([*entries], separators=(",", ":"))


def write_taint(taint: Taint) -> dict[str, str]:
    """Return a taint as an entry of spec.taints."""
    members = {"key": taint.key, "value": taint.value, "effect": taint.effect}
    timed = {"timeAdded": format_time(taint.since)} if taint.since else {}
    return {name: text for name, text in members.items() if text} | timed
