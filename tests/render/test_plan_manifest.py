"""Manifests of clusters reuse the source blob, or edit only the fields that differ."""

from __future__ import annotations

import yaml

from gitsched.model.document import Document, remove_server_owned
from gitsched.model.planned_files import EditedBlob, ExistingBlob, NewBlob
from gitsched.render.output_files import plan_manifest

from .conftest import BLOB, Place, Resolve

WEB = """\
# The shop's front.
kind: Deployment   # kind first, on purpose
apiVersion: apps/v1
metadata: {name: web, namespace: shop}
spec:
  replicas: 5  # see the runbook
  template: {}
"""
DUMPED = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  # who owns it
  name: web
  namespace: shop
  uid: 1-2-3
  resourceVersion: "17"
spec:
  replicas: 5
status:
  replicas: 5
"""
OWNED = ('  uid: 1-2-3\n  resourceVersion: "17"\n', "status:\n  replicas: 5\n")
REPLICAS = {"spec.replicas": "replicas: 5"}


def test_an_unchanged_manifest_reuses_the_blob(place: Place) -> None:
    document = place(WEB, marks=REPLICAS)
    assert plan_manifest(document) == ExistingBlob(BLOB)
    assert plan_manifest(document, ("spec.replicas", 5)) == ExistingBlob(BLOB)


def test_changed_replicas_edit_only_that_scalar(place: Place, resolve: Resolve) -> None:
    file = plan_manifest(place(WEB, marks=REPLICAS), ("spec.replicas", 12))
    assert isinstance(file, EditedBlob)
    assert resolve(file, WEB) == WEB.replace("replicas: 5", "replicas: 12")


def test_line_endings_and_a_byte_order_mark_are_kept(place: Place, resolve: Resolve) -> None:
    source = "\ufeff" + WEB.replace("\n", "\r\n")
    text = resolve(plan_manifest(place(source, marks=REPLICAS), ("spec.replicas", 0)), source)
    assert text == source.replace("replicas: 5", "replicas: 0")


def test_only_server_owned_fields_are_removed_from_a_dump(place: Place, resolve: Resolve) -> None:
    document = place(DUMPED, cuts=OWNED, marks=REPLICAS)
    text = resolve(plan_manifest(document, ("spec.replicas", 2)), DUMPED)
    assert text == (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  # who owns it\n  name: web\n  namespace: shop\nspec:\n  replicas: 2\n"
    )
    assert yaml.safe_load(resolve(plan_manifest(document), DUMPED)) == remove_server_owned(document.body)


def test_only_the_selected_document_of_a_file_is_rendered(place: Place, resolve: Resolve) -> None:
    source = f"# head\nkind: A\n---\n{WEB}---\nkind: C\n"
    document = place(source, document=WEB, marks=REPLICAS)
    assert resolve(plan_manifest(document), source) == WEB
    assert resolve(plan_manifest(document, ("spec.replicas", 1)), source) == WEB.replace("replicas: 5", "replicas: 1")


def test_the_first_and_the_last_of_several_documents_are_rendered(place: Place, resolve: Resolve) -> None:
    for source in (f"{WEB}---\nkind: C\n", f"kind: A\n---\n{WEB}"):
        assert resolve(plan_manifest(place(source, document=WEB)), source) == WEB


def test_server_owned_fields_of_a_dump_in_flow_style_are_removed_in_place(place: Place, resolve: Resolve) -> None:
    source = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, uid: 1-2-3}, spec: {replicas: 5}, status: {replicas: 5}}  # x\n"
    text = resolve(plan_manifest(place(source, cuts=None), ("spec.replicas", 2)), source)
    assert text == "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2}}  # x\n"


def test_an_item_of_a_list_is_rewritten(place: Place) -> None:
    source = 'apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {mode: "on"}}\n'
    expected = b'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  mode: "on"\n'
    assert plan_manifest(place(source, item=0)) == NewBlob(expected)


def test_missing_replicas_are_added(place: Place, resolve: Resolve) -> None:
    source = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web  # web\n"
    document = place(source)
    assert resolve(plan_manifest(document, ("spec.replicas", 2)), source) == source + "spec:\n  replicas: 2\n"
    assert "spec" not in document.body, "the shared document is not modified"


def test_a_document_without_source_text_is_rendered(place: Place) -> None:
    document = Document(place(WEB).key, "apps/v1", place(WEB).body)
    file = plan_manifest(document, ("spec.replicas", 5))
    assert isinstance(file, NewBlob)
    assert yaml.safe_load(file.data) == document.body


def test_fields_of_the_user_with_server_owned_names_are_kept() -> None:
    body = {
        "metadata": {
            "name": "web",
            "uid": "1",
            "managedFields": [],
            "generation": 1,
            "creationTimestamp": None,
            "labels": {"uid": "x"},
        },
        "spec": {"status": 1, "metadata": {"uid": "mine"}},
        "status": {},
    }
    assert remove_server_owned(body) == {"metadata": {"name": "web", "labels": {"uid": "x"}}, "spec": body["spec"]}
    clean = {"metadata": {"name": "web"}}
    assert remove_server_owned(clean) is clean


def test_the_last_applied_annotation_is_removed() -> None:
    last = "kubectl.kubernetes.io/last-applied-configuration"
    assert remove_server_owned({"metadata": {"name": "a", "annotations": {last: "{}"}}}) == {"metadata": {"name": "a"}}
    kept = {"metadata": {"name": "a", "annotations": {"mine": "1"}}}
    assert remove_server_owned({"metadata": {"name": "a", "annotations": {last: "{}", "mine": "1"}}}) == kept
