"""A dump is read object by object: YAML and JSON alike, also if it is cut."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gitsched.manifests import dump
from gitsched.manifests.dump import DumpedObject, DumpEnd, read_dump
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
