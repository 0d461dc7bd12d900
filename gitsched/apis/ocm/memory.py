"""What a record remembers of a workload's rollout: who was given which revision when, and which objects that were."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from gitsched.apis.ocm.rollout import Step
from gitsched.model.document import Body, Key, member, text_map
from gitsched.model.time import format_time, parse_time

ROLLOUT = "gitsched.io/rollout"
"""On a record: steps as [revision, since, clusters], objects as [group, kind, namespace, name], in JSON."""


class Memory(NamedTuple):
    """`objects` are all that any of the steps put into a cluster."""

    steps: Mapping[str, Step]
    objects: tuple[Key, ...]


NOTHING = Memory({}, ())


def recall(record: Body | None) -> Memory:
    """The memory in a record; nothing where there is none, or none that can be read."""
    text = text_map(member(record or {}, "metadata", "annotations")).get(ROLLOUT)
    if text is None:
        return NOTHING
    try:
        noted: Any = json.loads(text)
        steps = {
            str(name): Step(str(revision), moment)
            for revision, since, clusters in noted["steps"]
            if (moment := parse_time(since)) is not None
            for name in clusters
        }
        return Memory(steps, tuple(Key(*map(str, entry)) for entry in noted["objects"]))
    except (ValueError, KeyError, TypeError):
        return NOTHING


def remember(steps: Mapping[str, Step], objects: Iterable[Key]) -> str:
    """The annotation, with clusters that were given the same together."""
    together: dict[Step, list[str]] = {}
    for name, step in sorted(steps.items()):
        together.setdefault(step, []).append(name)
    noted = {
        "objects": [list(key) for key in sorted(objects)],
        "steps": [[step.revision, _stamp(step.since), names] for step, names in sorted(together.items())],
    }
    return json.dumps(noted, separators=(",", ":"))


def _stamp(moment: datetime) -> str:
    return format_time(moment)
