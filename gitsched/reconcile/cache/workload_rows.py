"""Rows of workloads as plain values, which take a fifth of the time and fewer bytes than their types: each value names its type.

A row with anything that most workloads do not have, such as findings or edits, is stored with its types.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import repeat
from typing import Any

from gitsched.decide.plan_state import NO_COMPANION_ROW, NO_REFERENCE_ROW, CompanionRow, ReferenceRow, WorkloadRow
from gitsched.kinds.companion_targets import CompanionFeatures
from gitsched.model.document import Key
from gitsched.model.scheduling import Outcome, TargetCluster
from gitsched.model.time import EPOCH
from gitsched.reconcile.cache.row_format import CorruptCacheError

_OUTCOME_FIELDS, _TARGET_FIELDS, _ROW_FIELDS, _COMPANION_FIELDS = 10, 2, 7, 3
"""The fields of an outcome, a target and a row before those that have their defaults, and of companions before the plain ones."""
_SAMPLE = WorkloadRow(Outcome(Key("", "", "", ""), "", "", "", "", (), None, (), "", EPOCH), "", (), {})
_OUTCOME_DEFAULTS, _ROW_DEFAULTS = _SAMPLE.outcome[_OUTCOME_FIELDS:], _SAMPLE[_ROW_FIELDS:]
_TARGET_DEFAULTS = TargetCluster("")[_TARGET_FIELDS:]

Paths = tuple[str, ...]


def flatten_row(row: WorkloadRow) -> object:
    """Return a row as plain values; the row itself if it has more than these can say."""
    outcome = row.outcome
    if (
        outcome[_OUTCOME_FIELDS:] != _OUTCOME_DEFAULTS
        or outcome.records
        or outcome.time.tzinfo is not UTC
        or row[_ROW_FIELDS:] != _ROW_DEFAULTS
        or any(target[_TARGET_FIELDS:] != _TARGET_DEFAULTS for target in outcome.targets)
    ):
        return row
    names = [target.cluster for target in outcome.targets]
    return (
        tuple(outcome.key),
        (outcome.api, outcome.state, outcome.policy, outcome.group, outcome.replicas, outcome.reason, outcome.time.isoformat()),
        names,
        [target.replicas for target in outcome.targets],
        row.source_path,
        row.record_paths,
        _flatten_paths(row.manifest_paths, names),
        None if row.references == NO_REFERENCE_ROW else tuple(row.references),
        None if row.companions == NO_COMPANION_ROW else _flatten_companions(row.companions),
        _flatten_keys(row.record_keys),
    )


def restore_row(stored: Any) -> WorkloadRow:
    """Return the row of a stored value. Raise CorruptCacheError for any other value."""
    if isinstance(stored, WorkloadRow):
        return stored
    try:
        key, head, names, counts, source_path, record_paths, paths, references, companions, record_keys = stored
        api, state, policy, group, replicas, reason, time = head
        targets = tuple(map(TargetCluster, names, counts))
        return WorkloadRow(
            Outcome(Key(*key), api, state, policy, group, targets, replicas, (), reason, datetime.fromisoformat(time)),
            source_path,
            record_paths,
            dict(zip(names, repeat(paths), strict=False)) if isinstance(paths, tuple) else paths,
            NO_REFERENCE_ROW if references is None else ReferenceRow(*references),
            NO_COMPANION_ROW if companions is None else _restore_companions(*companions),
            _restore_keys(record_keys),
        )
    except (TypeError, ValueError) as error:
        raise CorruptCacheError(f"not the row of a workload: {error}") from error


def _flatten_paths(paths: Mapping[str, Paths], names: list[str]) -> Mapping[str, Paths] | Paths:
    """Return the paths alone where each target has the same ones."""
    first = next(iter(paths.values()), None)
    if first is None or list(paths) != names or any(found != first for found in paths.values()):
        return paths
    return first


def _flatten_companions(row: CompanionRow) -> tuple[object, ...]:
    features = None if row.features is None else tuple(row.features._replace(names=()))
    names = () if row.features is None else _flatten_keys(row.features.names)
    return (features, names, _flatten_keys(row.targets), _flatten_keys(row.companions), row[_COMPANION_FIELDS:])


def _restore_companions(features: Any, names: Any, targets: Any, companions: Any, others: Any) -> CompanionRow:
    found = None if features is None else CompanionFeatures(*features)
    if found is not None and names:
        found = found._replace(names=_restore_keys(names))
    return CompanionRow(found, _restore_keys(targets), _restore_keys(companions), *others)


def _flatten_keys(keys: Iterable[Key]) -> tuple[tuple[str, ...], ...]:
    return tuple(map(tuple, keys))


def _restore_keys(keys: Iterable[Any]) -> tuple[Key, ...]:
    return tuple([Key(*key) for key in keys])
