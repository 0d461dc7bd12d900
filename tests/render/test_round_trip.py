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
    key = Key(parse_api_group(body["apiVersion"]), body["kind"], metadata.get("namespace") or "default", metadata["name"])
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


def delivered(document: Document) -> Body:
    """Return what a cluster gets of a document, with its namespace."""
    body = remove_server_owned(document.body)
    return {**body, "metadata": {**body["metadata"], "namespace": document.key.namespace}}


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
        assert bodies(content(plan_manifest(document), source)) == [delivered(document)]


@pytest.mark.parametrize("count", [0, 5, 12])
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_replicas_can_be_set_in_every_document_of_a_file(source: str, count: int) -> None:
    for document in documents(source):
        expected = delivered(document)
        expected = {**expected, "spec": {**expected.get("spec", {}), "replicas": count}}
        assert bodies(content(plan_manifest(document, ("spec.replicas", count)), source)) == [expected]


@pytest.mark.parametrize("name", ["comments around it", "windows", "byte order mark", "ünïcode"])
def test_only_the_replica_count_changes(name: str) -> None:
    source = SOURCES[name]
    (document,) = documents(source)
    assert content(plan_manifest(document, ("spec.replicas", 12)), source).decode() == source.replace("replicas: 5", "replicas: 12")


HEAD = "apiVersion: v1\nkind: ConfigMap\n"


@each_row(
    ("source", "expected"),
    [
        (
            f"{HEAD}metadata:  # Who.\n  # The name.\n  name: web  # short\n",
            f"{HEAD}metadata:  # Who.\n  namespace: default\n  # The name.\n  name: web  # short\n",
        ),
        (f"{HEAD}metadata: {{name: web}}  # short\n", f"{HEAD}metadata: {{namespace: default, name: web}}  # short\n"),
        (f"{HEAD}metadata: &one {{name: web}}\n", f"{HEAD}metadata: &one {{name: web, namespace: default}}\n"),
        (f'{HEAD}metadata:\n  name: web\n  namespace: ""\n', f'{HEAD}metadata:\n  name: web\n  namespace: "default"\n'),
        (f"{HEAD}metadata:\r\n  name: web\r\n", f"{HEAD}metadata:\r\n  namespace: default\r\n  name: web\r\n"),
        (
            f"{HEAD}metadata:\n  uid: abc\n  name: web\n---\n{HEAD}metadata:\n  name: other\n  namespace: shop\n",
            f"{HEAD}metadata:\n  namespace: default\n  name: web\n",
        ),
        (
            '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}}\n',
            '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": "web"}}\n',
        ),
    ],
)
def test_a_missing_namespace_is_all_that_is_added(source: str, expected: str) -> None:
    """Flux refuses a directory with an object that has none."""
    document = documents(source)[0]
    assert content(plan_manifest(document), source).decode() == expected


@each_row(
    ("source", "scope", "root"),
    [
        ("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: web\n", "", ""),
        (f"{HEAD}metadata:\n  name: web\n", "default", "overlays/eu"),
        (f"{HEAD}metadata:\n  name: web\ndata: {{a: ENC}}\nsops: {{mac: ENC}}\n", "default", ""),
        (f"{HEAD}metadata:\n  name: web\n  namespace: shop\n", "shop", ""),
    ],
)
def test_no_namespace_is_added_to_what_has_none_is_built_or_encrypted(source: str, scope: str, root: str) -> None:
    (document,) = documents(source)
    assert document.origin is not None
    document = document._replace(key=document.key._replace(namespace=scope), origin=document.origin._replace(root=root))
    assert content(plan_manifest(document), source).decode() == source
