"""A dump is read object by object: YAML and JSON alike, also if it is cut."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterator

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gitsched.manifests import dump
from gitsched.manifests.dump import read_dump
from gitsched.manifests.dumped_object import DumpedObject, DumpEnd
from tests.tables import each_row

SECRET = "c2VjcmV0"
OBJECTS = [
    {
        "apiVersion": "v1",
        "data": {"password": SECRET},
        "kind": "Secret",
        "metadata": {"managedFields": [{"manager": "x", "fieldsV1": {"f:data": {}}}], "name": "a", "namespace": "ns"},
    },
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"annotations": {"text": "- x\nkind: List\n---\nitems:\n"}, "name": "b", "namespace": "ns"},
        "spec": {"replicas": 3, "list": ["- a", {"kind": "x"}]},
    },
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ü", "namespace": "ns"}},
]
YAML = yaml.safe_dump(
    {"apiVersion": "v1", "items": OBJECTS, "kind": "List", "metadata": {"resourceVersion": ""}}, allow_unicode=True
)
JSON = json.dumps({"apiVersion": "v1", "items": OBJECTS, "kind": "List"}, indent=4, ensure_ascii=False)
INDENTED = "".join(
    f"  {line}" if line[:1] in " -" and not line.startswith("  resource") else line for line in YAML.splitlines(True)
)


def read(text: str) -> tuple[list[DumpedObject], bool]:
    *objects, end = read_dump(text.encode().splitlines(True))
    assert isinstance(end, DumpEnd)
    return [entry for entry in objects if isinstance(entry, DumpedObject)], end.cut


def names(text: str) -> tuple[list[str], bool]:
    objects, cut = read(text)
    assert not [entry.problem for entry in objects if entry.problem]
    return [entry.body["metadata"]["name"] for entry in objects if entry.body is not None], cut


@pytest.mark.parametrize(
    "text",
    [YAML, JSON, INDENTED, json.dumps({"items": OBJECTS}), f"---\n{YAML}", "---\n".join(map(yaml.safe_dump, OBJECTS))],
    ids=["yaml", "json", "indented", "one line", "marker", "documents"],
)
def test_all_forms_have_the_same_objects_and_no_values_of_secrets(text: str) -> None:
    assert names(text) == (["a", "b", "ü"], False)
    objects, _ = read(text)
    assert SECRET not in str(objects)
    assert "managedFields" not in str(objects)
    assert objects[1].body == OBJECTS[1]


def test_several_dumps_in_one_file() -> None:
    assert names(YAML + YAML) == (["a", "b", "ü"] * 2, False)
    assert names(f"{YAML}---\n{YAML}") == (["a", "b", "ü"] * 2, False)


@pytest.mark.parametrize("text", [YAML, JSON], ids=["yaml", "json"])
@given(data=st.data())
def test_a_cut_dump_has_only_whole_objects(text: str, data: st.DataObject) -> None:
    whole, _ = read(text)
    end = text.index("kind: List\n", text.index("ü")) if text is YAML else len(text)
    length = data.draw(st.integers(text.index("- apiVersion") if text is YAML else text.index("["), end - 2))
    found, cut = read(text[:length])
    assert [entry.body for entry in found] == [entry.body for entry in whole][: len(found)]
    assert cut or len(found) == len(whole)


@each_row("text", ["", "\n", "[]", "{}", "a: b\n", "items:\n", "{", "items:\n- 3\n- [\nkind: List\n", "\x00\n", '{"items": [3]}'])
def test_no_text_raises_an_error(text: str) -> None:
    read(text)


def test_the_memory_does_not_grow_with_the_dump() -> None:
    item = "".join(
        f"{'- ' if number == 0 else '  '}{line}\n" for number, line in enumerate(yaml.safe_dump(OBJECTS[1]).splitlines())
    )

    def lines(count: int) -> Iterator[bytes]:
        yield from (b"apiVersion: v1\n", b"items:\n")
        for _ in range(count):
            yield from item.encode().splitlines(True)
        yield b"kind: List\n"

    assert len(b"".join(lines(1000))) > 200_000
    tracemalloc.start()
    assert sum(1 for _ in read_dump(lines(1000))) == 1001
    assert tracemalloc.get_traced_memory()[1] < 300_000
    tracemalloc.stop()


def test_an_object_that_is_too_large_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dump, "MAX_OBJECT_SIZE", 120)
    objects, cut = read(YAML)
    assert not cut
    assert [entry.body is None for entry in objects] == [True, True, False]


def list_places(text: str) -> list[tuple[str, int, int]]:
    """Return the name or the problem of each object with its line and column."""
    objects, _ = read(text)
    return [(entry.body["metadata"]["name"] if entry.body else entry.problem, entry.line, entry.column) for entry in objects]


TYPED = {"apiVersion": "apps/v1", "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}], "kind": "DeploymentList"}


@pytest.mark.parametrize(
    "text",
    [yaml.safe_dump(TYPED), json.dumps(TYPED, indent=1), json.dumps(dict(reversed(TYPED.items()))), json.dumps(TYPED) * 2],
    ids=["yaml", "json", "kind first", "two lists"],
)
def test_items_of_a_list_of_one_kind_have_that_kind(text: str) -> None:
    objects, cut = read(text)
    assert not cut
    assert {(entry.body or {}).get("kind") for entry in objects} == {"Deployment"}
    assert {(entry.body or {}).get("apiVersion") for entry in objects} == {"apps/v1"}


def test_every_object_has_the_place_where_it_begins() -> None:
    starts = [number for number, line in enumerate(YAML.splitlines(), 1) if line.startswith("- ")]
    assert [line for _, line, _ in list_places(YAML)] == starts
    one, two = list_places('\n{"kind":"List","items":[\n  {"kind": "A", "metadata": {"name": "a"}}, {"kind": "A"}]}')
    assert one == ("a", 3, 3)
    assert two == ("it has no apiVersion, kind and name", 3, 45)
    assert list_places("apiVersion: v1\nkind: Secret\ndata:\n  a: b\nmetadata:\n  name: a\n  name: b\n") == [
        ("it is not valid YAML", 1, 1)
    ]
    assert list_places("apiVersion: v1\nkind: ConfigMap\ndata:\n  a: b\nmetadata:\n  name: a\n  name: b\n") == [
        ("duplicate key 'name': line 6 has it already", 7, 3)
    ]


def test_an_object_with_items_in_it_is_no_list() -> None:
    one = json.dumps({"kind": "A", "metadata": {"name": "a"}, "spec": {"items": [1]}})
    assert names(one) == (["a"], False)
    assert names(f"{one}\n{one}") == (["a", "a"], False)


@pytest.mark.parametrize("form", [yaml.safe_dump, json.dumps])
def test_what_kubectl_applied_last_is_dropped(form: Callable[[object], str]) -> None:
    applied = {"kubectl.kubernetes.io/last-applied-configuration": '{"data":{"password":"c2VjcmV0"}}', "kept": "x"}
    objects, _ = read(form({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "annotations": applied}}))
    assert objects[0].body == {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "annotations": {"kept": "x"}}}


def test_items_without_a_kind_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dump, "MAX_UNTYPED_SIZE", 20)
    objects, _ = read(yaml.safe_dump({**TYPED, "items": [{"metadata": {"name": name}} for name in "abcdef"]}))
    assert [entry.problem for entry in objects if entry.problem] == [
        "it has no apiVersion, kind and name: write the kind of the List before its items"
    ] * sum(entry.body is None for entry in objects)
    assert 0 < sum(entry.body is not None for entry in objects) < 6
