"""The tables of what gitsched makes of each field of the policy APIs: complete, documented, and true of a small fleet."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import gitsched
from gitsched.apis.schemas import (
    FIELD_CODE,
    KIND_CODE,
    FieldVerdict,
    KindFields,
    is_below,
    load_field_table,
    make_field_validator,
)
from tests.search_depth import DEEP
from tests.tables import each_row
from tests.upstream_definitions import NEEDS_DEFINITIONS, read_definitions

from .field_mutations import Body, Mutation, Result, Scenario, apply, list_mutations, list_values, run

ROOT = Path(__file__).parents[2]
APIS = sorted(path.stem for path in (ROOT / "schemas" / "fields").glob("*.json"))
ENTRIES = [(api, entry) for api in APIS for entry in load_field_table(api)]
ALL_FIELDS = [(api, entry, path) for api, entry in ENTRIES for path in entry.fields]


@each_row(("api", "entry", "path"), ALL_FIELDS)
def test_schemas_have_the_fields_of_the_tables(api: str, entry: KindFields, path: str) -> None:
    assert "unknown-field" not in {finding.code for finding in gitsched.validate([make_document(entry, path)])}


_MAX_RECORDED = 24
"""Values that are tried of a field that has no effect."""
_TYPES = {"string", "integer", "number", "boolean", "time", "amount", "object", "any"}


@each_row(("api", "entry"), ENTRIES)
def test_each_field_has_a_row_and_each_row_has_fields(api: str, entry: KindFields) -> None:
    assert not [path for path in entry.fields if entry.find_row(path) is None]
    named = [path for row in entry.rows for path in row.fields]
    assert len(named) == len(set(named))
    used = {entry.find_row(path) for path in entry.fields}
    assert not [row for row in entry.rows if row not in used]
    assert not [path for path in named if not any(is_below(field, path) for field in entry.fields)]
    assert not [type_ for type_ in entry.fields.values() if type_ not in _TYPES and not type_.startswith("=")]
    for row in entry.rows:
        assert row.verdict in ("same", "differs", "recorded", "finding")
        assert row.reason or row.verdict == "same"


@cache
def decide_unchanged(scenario: Scenario, index: int) -> Result:
    return run(scenario, scenario.documents, index)


def find_results(mutation: Mutation) -> Iterator[tuple[Result, Result]]:
    """Yield what is decided without and with a mutation, where the document is not refused because of it."""
    for documents in apply(mutation):
        result = run(mutation.scenario, documents, mutation.index)
        if not result.refused:
            yield decide_unchanged(mutation.scenario, mutation.index), result


def is_true(api: str, entry: KindFields, path: str) -> bool:
    """Return whether a field does what its row says: a change is decided upon or reported, or no change is, or each value is reported."""
    row = entry.find_row(path)
    assert row is not None
    if row.verdict == "finding":
        return is_reported(api, entry, row, path)
    if row.verdict == "differs" or (row.verdict == "same" and row.reason):
        return True  # the row says what happens
    limit = _MAX_RECORDED if row.verdict == "recorded" else None
    for mutation in islice(list_mutations(api, entry, path), limit):
        for before, after in find_results(mutation):
            if before.decided != after.decided or (row.verdict == "same" and after.findings - before.findings):
                return row.verdict == "same"
    return row.verdict == "recorded"


def is_reported(api: str, entry: KindFields, row: FieldVerdict, path: str) -> bool:
    """Return whether a finding is about each value of the field that its row concerns."""
    code = row.code or (FIELD_CODE if any(row.fields) else KIND_CODE)
    mutations = [mutation for mutation in list_mutations(api, entry, path) if is_concerned(row, mutation.value)][:5]
    if not mutations:
        return code in {finding.code for finding in gitsched.schedule([make_document(entry, path)]).findings}
    changed = [documents[mutation.index] for mutation in mutations for documents in apply(mutation)]
    found = [gitsched.schedule([body]).findings if row.code else gitsched.validate([body]) for body in changed]
    return all(any(finding.severity == "error" or finding.code == code for finding in findings) for findings in found)


def is_concerned(row: FieldVerdict, value: Any) -> bool:
    if not isinstance(value, str | int | dict) or not value:
        return False
    return str(value) in row.values if row.values else str(value) not in row.unless


def make_document(entry: KindFields, path: str) -> Body:
    """Return a document that has nothing but the field."""
    inner: Any = next(value for value in list_values(entry.fields[path], ["x"]) if value)
    for part in reversed(path.split(".")):
        inner = {part.removesuffix("[]").replace("*", "name"): [inner] if part.endswith("[]") else inner}
    version = {"apiVersion": f"{entry.group}/{entry.versions[0]}"} if entry.versions[0] else {"api": entry.group}
    metadata = {"name": "one", "namespace": "shop", **inner.pop("metadata", {})}
    return {**version, "kind": entry.kinds[0], "metadata": metadata, **inner}


REPORTED = [field for field in ALL_FIELDS if (row := field[1].find_row(field[2])) is not None and row.verdict == "finding"]
OTHERS = [field for field in ALL_FIELDS if field not in REPORTED]


@each_row(("api", "entry", "path"), REPORTED)
def test_every_value_that_is_not_supported_is_reported(api: str, entry: KindFields, path: str) -> None:
    assert is_true(api, entry, path)


@each_row(("api", "entry", "path"), OTHERS[::60])
def test_some_fields_do_what_the_table_says(api: str, entry: KindFields, path: str) -> None:
    assert is_true(api, entry, path)


@pytest.mark.search
@pytest.mark.skipif(not DEEP, reason="it takes minutes: a search runs it")
@pytest.mark.parametrize("part", range(16))
def test_every_field_does_what_the_table_says(part: int) -> None:
    assert not [(entry.kinds, path) for api, entry, path in OTHERS[part::16] if not is_true(api, entry, path)]


@NEEDS_DEFINITIONS
def test_no_field_of_the_definitions_is_missing() -> None:
    known: dict[tuple[str, str, str], set[str]] = {}
    for _, entry in ENTRIES:
        for version in entry.versions:
            known.update({(entry.group, version, kind): set(entry.fields) for kind in entry.kinds})
    groups = {group for group, _, _ in known}
    found = {key: fields for key, fields in read_definitions() if key[0] in groups}
    assert found, "no definition of these groups"
    assert {key: missing for key, fields in found.items() if (missing := sorted(fields - known.get(key, set())))} == {}


def test_values_that_say_nothing_have_no_finding() -> None:
    spec = {
        "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap"}],
        "schedulerName": "default-scheduler",
        "association": False,
        "placement": {"spreadConstraints": []},
    }
    body = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "p", "namespace": "d"},
        "spec": spec,
    }
    assert gitsched.validate([body]) == []


def test_a_finding_is_at_the_field() -> None:
    validator = make_field_validator("karmada", "policy.karmada.io", "PropagationPolicy")
    assert validator is not None
    constraints = [{"spreadByField": "cluster"}, {"spreadByLabel": "rack"}]
    (issue,) = validator({"kind": "PropagationPolicy", "spec": {"placement": {"spreadConstraints": constraints}}})
    assert (issue.severity, issue.pointer) == ("warning", ("spec", "placement", "spreadConstraints", 1, "spreadByLabel"))
    assert issue.message.startswith("spreadByLabel is not supported: ")


NOT_READ = [
    ("work.karmada.io/v1alpha1", "Sample"),
    ("apps.karmada.io/v1alpha1", "Sample"),
    ("search.karmada.io/v1alpha1", "Sample"),
    ("work.open-cluster-management.io/v1", "Sample"),
]


@each_row(("version", "kind"), NOT_READ)
def test_a_kind_that_nothing_reads_is_a_finding(version: str, kind: str) -> None:
    """Objects of these groups are delivered nowhere."""
    (finding,) = gitsched.validate([{"apiVersion": version, "kind": kind, "metadata": {"name": "one", "namespace": "shop"}}])
    assert (finding.severity, finding.code) == ("warning", "unknown-kind")


TEMPLATES = [
    ("cluster.open-cluster-management.io/v1alpha1", "ClusterClaim"),
    ("cluster.open-cluster-management.io/v1beta1", "BackupSchedule"),
    ("multicluster.x-k8s.io/v1alpha1", "ServiceExport"),
    ("eventing.knative.dev/v1", "Broker"),
    ("operator.karmada.io/v1alpha1", "Karmada"),
]


@each_row(("version", "kind"), TEMPLATES)
def test_kinds_that_policies_select_have_none(version: str, kind: str) -> None:
    assert gitsched.validate([{"apiVersion": version, "kind": kind, "metadata": {"name": "one", "namespace": "shop"}}]) == []
