"""Rows of workloads are read as they were written, whether they are stored as plain values or with their types."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from gitsched.decide.incremental.plan_state import WorkloadRow
from gitsched.model.document import Key
from gitsched.model.finding import Finding
from gitsched.model.scheduling import Outcome, TargetCluster
from gitsched.model.time import EPOCH
from gitsched.reconcile.cache.row_format import CorruptCacheError, deserialize, flatten_row, restore_row, serialize

KEY = Key("apps", "Deployment", "shop", "web")
BINDING = Key("work.karmada.io", "ResourceBinding", "shop", "web-deployment")
TARGETS = (TargetCluster("a", 2), TargetCluster("b", 0), TargetCluster("c"))
PATHS = ("shop/deployment-web.yaml",)
OUTCOME = Outcome(KEY, "karmada", "placed", "policy", "", TARGETS, 2, (), "reason", EPOCH + timedelta(microseconds=7))
ROW = WorkloadRow(OUTCOME, "web.yaml", ("status/web.yaml",), dict.fromkeys("abc", PATHS), record_keys=(BINDING,))


@pytest.mark.parametrize(
    "row",
    [
        ROW,
        ROW._replace(manifest_paths={}),
        ROW._replace(manifest_paths=dict.fromkeys("cba", PATHS)),
        ROW._replace(manifest_paths={"a": PATHS, "b": (), "c": PATHS}),
        ROW._replace(outcome=OUTCOME._replace(targets=(), replicas=None), manifest_paths={}),
    ],
)
def test_rows_of_most_workloads_are_plain_values(row: WorkloadRow) -> None:
    assert not isinstance(flatten_row(row), WorkloadRow)
    assert _list_types(_store(row)) == _list_types(row)


@pytest.mark.parametrize(
    "row",
    [
        ROW._replace(amounts=({"cpu": 1}, {})),
        *(
            ROW._replace(outcome=OUTCOME._replace(**changed))
            for changed in (
                {"targets": (TargetCluster("a", 2, evicting=True),)},
                {"targets": (TargetCluster("a", 2, edits=(("spec.replicas", 2),)),)},
                {"records": ((BINDING, {"spec": {}}),)},
                {"time": datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1)))},
                {"wakeup": EPOCH},
                {"findings": (Finding("error", "code", "message"),)},
                {"kept_paths": {"a": PATHS}},
                {"absent": frozenset("a")},
            )
        ),
    ],
)
def test_rows_with_more_keep_their_types(row: WorkloadRow) -> None:
    assert flatten_row(row) is row
    assert _list_types(_store(row)) == _list_types(row)


@pytest.mark.parametrize("stored", [None, (), (("apps",), *([()] * 9)), "web"])
def test_another_value_is_a_damaged_row(stored: object) -> None:
    with pytest.raises(CorruptCacheError):
        restore_row(stored)


def _store(row: WorkloadRow) -> WorkloadRow:
    return restore_row(deserialize(serialize(flatten_row(row))))


def _list_types(value: Any) -> Any:
    """Return a value with the types of its parts and the order of its members."""
    if isinstance(value, tuple):
        return type(value), [_list_types(part) for part in value]
    return (dict, [(name, _list_types(part)) for name, part in value.items()]) if isinstance(value, dict) else (type(value), value)
