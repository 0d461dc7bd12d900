"""The records that an incremental plan leaves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gitsched.decide.incremental.changed_records import ChangedRecords
from gitsched.model.document import Body, Key

if TYPE_CHECKING:
    from gitsched.model.scheduling import Outcome
    from gitsched.reconcile.output.output_records import OutputRecords
    from gitsched.reconcile.run import StateUpdate


def list_planned_records(recorded: OutputRecords, update: StateUpdate, outcomes: Mapping[Key, Outcome]) -> ChangedRecords:
    """Return the records of an incremental plan as the next run would read them: the recorded ones, with those that it changes."""
    cache, incremental = update.cache, update.incremental
    before, after = dict(cache.header.totals.engines.records), dict(incremental.totals.engines.records)
    changed: dict[Key, Body | None] = {key: after.get(key) for key in before.keys() | after.keys()}
    for key, row in incremental.changes.workloads.items():
        records = dict(outcomes[key].records) if row is not None else {}
        if row is not None and not records:
            continue  # what others know of it has changed
        former = cache.read_workload(key)
        changed.update(dict.fromkeys(former.record_keys if former is not None else ()))
        changed.update(records)
    return ChangedRecords(recorded, changed)
