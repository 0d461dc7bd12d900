"""Spans of documents and fields in the source text."""

from __future__ import annotations

import json
from textwrap import dedent, indent
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gitsched.manifests.field_locations import FieldLocator
from gitsched.manifests.parser import ParsedDocument, ParsedFile, parse_file
from gitsched.model.document import SERVER_OWNED, SourceSpans, remove_server_owned
from tests.tables import each_row


def read_text(text: str, marks: tuple[str, ...] = ("spec.replicas",)) -> ParsedFile:
    return parse_file(text.encode(), path="a.yaml", validate=None, editable=marks)


def cut(text: str, document: ParsedDocument) -> str:
    assert document.spans.server_owned is not None
    for start, end in reversed(document.spans.server_owned):
        text = text[:start] + text[end:]
    return text


def test_server_owned_fields_of_a_kubectl_dump_are_located() -> None:
    text = dedent("""\
        # kept above
        apiVersion: apps/v1
        kind: Deployment
        metadata:
          annotations:
            example.com/revision: "1"
            # about the next line
            kubectl.kubernetes.io/last-applied-configuration: |
              {"apiVersion":"apps/v1","kind":"Deployment"}

          creationTimestamp: "2024-01-01T00:00:00Z"  # gone with its line
          generation: 2
          managedFields:
          - apiVersion: apps/v1
            fieldsV1:
              f:metadata: {}
            manager: kubectl
          # kept between
          name: web
          resourceVersion: "123"
          uid: 3f1c
        spec:
          replicas: 3  # kept beside
        status:
          conditions:
          - type: Available
            message: >-
              all
              is well
        # kept below
        """)
    file = read_text(text)
    (document,) = file.documents
    assert document.spans.whole_file
    assert cut(text, document) == dedent("""\
        # kept above
        apiVersion: apps/v1
        kind: Deployment
        metadata:
          annotations:
            example.com/revision: "1"
            # about the next line
          # kept between
          name: web
        spec:
          replicas: 3  # kept beside
        # kept below
        """)
    ((path, start, end),) = document.spans.editable
    assert (path, text[start:end]) == ("spec.replicas", "3")


HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"


@each_row(
    ("text", "gone"),
    [
        pytest.param(HEAD, [], id="nothing to cut"),
        pytest.param(HEAD + "status: {}", ["status: {}"], id="no final newline"),
        pytest.param(HEAD + "  uid:\nspec: {}\n", ["  uid:\n"], id="empty value"),
        pytest.param(HEAD + "status:", ["status:"], id="empty value at the end"),
        pytest.param(HEAD + "status: |\n  a\n\n", ["status: |\n  a\n\n"], id="block text at the end"),
        pytest.param(HEAD + "status: |\n  a", ["status: |\n  a"], id="block text without final newline"),
        pytest.param(HEAD + "status: 'a\n  b'\n", ["status: 'a\n  b'\n"], id="quoted text of two lines"),
        pytest.param((HEAD + "status: {a: 1}\nx: 1\n").replace("\n", "\r\n"), ["status: {a: 1}\r\n"], id="CRLF"),
        pytest.param("apiVersion: v1\nkind: Pod\nmetadata: {name: a, uid: b}\n", None, id="flow style"),
        pytest.param('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "status": {}}', None, id="JSON"),
        pytest.param(HEAD + "spec: &a {}\nstatus: *a\n", None, id="aliases"),
        pytest.param(HEAD + "? status\n: {}\n", None, id="explicit key"),
    ],
)
def test_server_owned_fields_have_spans_that_can_be_removed(text: str, gone: list[str] | None) -> None:
    cuts = read_text(text).documents[0].spans.server_owned
    assert (cuts if cuts is None else [text[start:end] for start, end in cuts]) == gone


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param("spec: {}", id="missing"),
        pytest.param("spec: {replicas: }", id="empty"),
        pytest.param("spec: {replicas: [1]}", id="no scalar"),
        pytest.param("spec: {replicas: &a 1}", id="anchor"),
        pytest.param("other: &a 1\nspec: {replicas: *a}", id="alias"),
        pytest.param("other: &a {replicas: 1}\nspec: {<<: *a}", id="merged"),
        pytest.param("other: &a {replicas: 1}\nspec: *a", id="alias above"),
        pytest.param("spec: {replicas: !!int 1}", id="tag"),
        pytest.param("spec: 3", id="no mapping"),
    ],
)
def test_a_scalar_that_cannot_be_edited_in_place_has_no_span(spec: str) -> None:
    assert read_text(HEAD + spec + "\n").documents[0].spans.editable == ()


@pytest.mark.parametrize(("value", "marked"), [("3", "3"), ("'3'", "'3'"), ('"3"', '"3"'), ("3 # x", "3"), ("${R}", "${R}")])
def test_editable_spans_cover_the_scalar_as_written(value: str, marked: str) -> None:
    text = f"{HEAD}spec:\n  other: é\n  parallelism: {value}\n  replicas: {value}\n"
    file = read_text(text, ("spec.replicas", "spec.parallelism", "spec.missing"))
    assert [(path, text[start:end]) for path, start, end in file.documents[0].spans.editable] == [
        ("spec.replicas", marked),
        ("spec.parallelism", marked),
    ]


def test_extents_of_documents_in_one_file() -> None:
    bodies = [HEAD, HEAD + "# end\n", "# start\n" + HEAD]
    text = "---\n" + bodies[0] + "---  # second\n" + bodies[1] + "...\n---\n" + bodies[2]
    file = read_text(text)
    assert [text[d.spans.start : d.spans.end] for d in file.documents] == bodies
    assert not any(document.spans.whole_file for document in file.documents)


@pytest.mark.parametrize("text", [HEAD, "---\n" + HEAD, "# a\n---\n" + HEAD + "---\n", HEAD + "...\n"])
def test_a_file_with_one_document_is_a_whole_file(text: str) -> None:
    assert read_text(text).documents[0].spans.whole_file


def test_a_file_with_other_content_is_not_a_whole_file() -> None:
    assert not read_text(HEAD + "---\n- a list\n").documents[0].spans.whole_file


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-99, 99)
    | st.sampled_from(["", "a", "a: b", "# c", "yes", "x\ny\n", "x\n\n", " x", "-", "a" * 90])
)
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3), max_leaves=6
)
owned = st.dictionaries(st.sampled_from(sorted(SERVER_OWNED)), trees, max_size=4)
notes = st.dictionaries(
    st.sampled_from(["a", "b.c/d", "kubectl.kubernetes.io/last-applied-configuration"]), st.text("a{}: \n#", max_size=9), max_size=3
)


@given(owned, st.none() | notes, trees, st.booleans(), st.randoms(use_true_random=False), st.integers(1, 4), st.booleans())
def test_removing_the_spans_leaves_the_body_without_server_owned_fields(
    extra: dict[str, Any], annotations: dict[str, str] | None, spec: Any, has_status: bool, order: Any, step: int, compact: bool
) -> None:
    metadata = list({"name": "a", **extra, **({} if annotations is None else {"annotations": annotations})}.items())
    members = [("apiVersion", "v1"), ("kind", "Pod"), ("spec", spec), *([("status", spec)] if has_status else [])]
    order.shuffle(metadata)
    members.append(("metadata", dict(metadata)))
    order.shuffle(members)

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    text = yaml.dump(dict(members), Dumper=Dumper, sort_keys=False, indent=2 + step, width=30 + step, default_flow_style=False)
    if compact:
        text = text.rstrip("\n") if not text.endswith("\n\n") else text
    (document,) = read_text(text).documents
    rest = cut(text, document)
    assert read_text(rest).documents[0].body == remove_server_owned(document.body)
    assert read_text(rest).documents[0].spans.server_owned == ()


@given(trees)
def test_a_result_survives_serialization_as_json(spec: Any) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "A", "uid": "x"}, "spec": spec})
    for source in (text, yaml.safe_dump_all([json.loads(text), {"kind": "x"}, json.loads(text)])):
        file = read_text(source)
        assert file.issues
        assert ParsedFile.from_json(json.loads(json.dumps(file))) == file


def test_json_surrogate_pairs_are_parsed_but_never_edited_in_place() -> None:
    text = json.dumps(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"a": "\U0001f600 \\ud83d", "replicas": 3}}
    )
    (document,) = read_text(text).documents
    assert document.body["spec"]["a"] == "\U0001f600 \\ud83d"
    assert document.spans == SourceSpans(False, 0, 0, None, ())


PLACES = dedent("""\
    # first
    kind: List
    apiVersion: v1
    items:
    - kind: Pod
      apiVersion: v1
      metadata:
        name: a
        labels: {on: "x", é: y}
      spec:
        containers:
        - name: b
        -   name: c
            image: >
              d
    """)


@each_row(
    ("pointer", "place"),
    [
        ((), (5, 3)),
        (("metadata", "name"), (8, 11)),
        (("metadata",), (7, 3)),
        (("metadata", "labels", "true"), (9, 18)),
        (("metadata", "labels", "é"), (9, 26)),
        (("spec", "containers", 1), (13, 9)),
        (("spec", "containers", 1, "image"), (14, 16)),
        (("spec", "containers", 1, "missing", "deeper"), (13, 9)),
        (("spec", "containers", 7), (11, 5)),
        (("nothing",), (5, 3)),
    ],
)
def test_fields_are_located(pointer: tuple[str | int, ...], place: tuple[int, int]) -> None:
    assert FieldLocator(PLACES.encode()).locate(0, 0, [pointer]) == [place]


def test_a_field_in_a_later_document_is_located_after_an_invalid_one() -> None:
    locator = FieldLocator((PLACES + "---\nkind: a: b\n---\n" + indent(HEAD, "  ")).encode())
    assert locator.locate(1, -1, [("metadata", "name")]) == [(22, 11)]
    assert locator.locate(2, -1, [()]) == []
