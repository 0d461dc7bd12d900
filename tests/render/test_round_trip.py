"""Rendered manifests are parsed back as the same documents, also after an edit in place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.edits.manifest_edits import edit_manifest
from gitsched.git.trees import apply_edits
from gitsched.manifests.parser import ParsedDocument, parse_file
from gitsched.model.document import Body, Document, Key, Origin, parse_api_group, remove_server_owned
from gitsched.model.planned_files import EditedBlob, ExistingBlob, NewBlob, PatchedBlob, PlannedFile
from gitsched.render.output_files import plan_manifest
from gitsched.render.yaml import dump
from tests.tables import each_row

TEXT = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    ["yes", "1e3", "012", "0o17", "a\nb\n", "~", "1:30", "2026-01-02"]
)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(-1e18, 1e18)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)
BLOB = "b" * 40

ONE = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
spec:
  replicas: 5   # five
"""
DUMP = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: |
      {"kind": "Deployment"}
  creationTimestamp: "2026-01-02T03:04:05Z"
  name: web
  managedFields:
  - manager: kubectl
    fieldsV1: {}
  namespace: shop
spec:
  replicas: 5
  template:
    metadata:
      creationTimestamp: null
status:
  replicas: 5
"""
LIST = 'apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {mode: "on"}}\n'
FLOW = '{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "uid": "1"}, "spec": {"replicas": 5}}\n'
SOURCES = {
    "one document": ONE,
    "comments around it": f"# head\n---\n{ONE}# tail\n",
    "no newline at the end": ONE.rstrip("\n"),
    "windows": ONE.replace("\n", "\r\n"),
    "byte order mark": "\ufeff" + ONE,
    "dump": DUMP,
    "dump on windows": DUMP.replace("\n", "\r\n"),
    "several": f"{ONE}---\n{DUMP}---\n# the last\n{ONE}",
    "several with empty ones": f"---\n---\n{DUMP}...\n---\n{ONE}---\n",
    "a list": LIST,
    "flow style": FLOW,
    "no replicas": ONE.replace("  replicas: 5   # five\n", "  paused: true\n"),
    "no spec": ONE[: ONE.index("spec")],
    "quoted replicas": ONE.replace("replicas: 5 ", 'replicas: "5" '),
    "anchored replicas": ONE.replace("replicas: 5 ", "replicas: &n 5 ") + "  minReadySeconds: *n\n",
    "a variable": ONE.replace("replicas: 5 ", "replicas: ${REPLICAS} "),
    "ünïcode": ONE.replace("# five", "# fünf 🚀").replace("metadata", "# – 🚀\nmetadata", 1),
}


def documents(source: str) -> list[Document]:
    return [_document(parsed) for parsed in parse_file(source.encode(), path="web.yaml", validate=None).documents]


def _document(parsed: ParsedDocument) -> Document:
    body, metadata = parsed.body, parsed.body["metadata"]
    key = Key(parse_api_group(body["apiVersion"]), body["kind"], metadata.get("namespace", "default"), metadata["name"])
    origin = Origin("web.yaml", BLOB, parsed.index, parsed.item, parsed.line, parsed.column, parsed.spans)
    return Document(key, body["apiVersion"], body, origin)


def content(file: PlannedFile, source: str) -> bytes:
    match file:
        case ExistingBlob():
            return source.encode()
        case EditedBlob():
            return apply_edits(source.encode(), file.edits)
        case PatchedBlob():
            return edit_manifest(source, file).file.data
        case NewBlob():
            return file.data


def bodies(data: bytes) -> list[Body]:
    return [parsed.body for parsed in parse_file(data, path="web.yaml", validate=None).documents]


@given(st.dictionaries(TEXT, VALUES, max_size=4))
def test_gitsched_reads_back_what_it_writes(spec: dict[str, Any]) -> None:
    body = {"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "a"}, "spec": spec}
    assert bodies(dump(body).encode()) == [body]


@each_row("source", SOURCES.values())
def test_every_document_of_a_file_is_extracted_completely(source: str) -> None:
    found = documents(source)
    assert found
    for document in found:
        assert bodies(content(plan_manifest(document), source)) == [remove_server_owned(document.body)]


@pytest.mark.parametrize("count", [0, 5, 12])
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_replicas_can_be_set_in_every_document_of_a_file(source: str, count: int) -> None:
    for document in documents(source):
        expected = remove_server_owned(document.body)
        expected = {**expected, "spec": {**expected.get("spec", {}), "replicas": count}}
        assert bodies(content(plan_manifest(document, ("spec.replicas", count)), source)) == [expected]


@pytest.mark.parametrize("name", ["comments around it", "windows", "byte order mark", "ünïcode"])
def test_only_the_replica_count_changes(name: str) -> None:
    source = SOURCES[name]
    (document,) = documents(source)
    assert content(plan_manifest(document, ("spec.replicas", 12)), source).decode() == source.replace("replicas: 5", "replicas: 12")
