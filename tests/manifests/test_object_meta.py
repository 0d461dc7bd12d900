"""Validate the type and metadata of objects."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.manifests.object_meta import validate_object_meta
from gitsched.manifests.parser import parse_file
from tests.tables import each_row


def codes(metadata: dict[str, Any], version: str = "v1", kind: str = "ConfigMap") -> list[tuple[str, tuple[str | int, ...]]]:
    return [
        (issue.code, issue.pointer) for issue in validate_object_meta({"apiVersion": version, "kind": kind, "metadata": metadata})
    ]


@pytest.mark.parametrize("name", ["a", "0", "web-1", "a.b.c", "a" * 253, "${APP}-web", "${CLUSTER:=x}"])
def test_valid_names(name: str) -> None:
    assert codes({"name": name}) == []


@each_row(
    "name",
    [
        "",
        "../../x",
        "..",
        ".",
        "a/b",
        "A",
        "a_b",
        "-a",
        "a-",
        "a..b",
        "a b",
        "a\n",
        "\x00",
        "a" * 254,
        "é",
        "\u202eabc",
        "a:b",
        ".git",
        "${../x}",
    ],
)
def test_invalid_names(name: str) -> None:
    assert codes({"name": name}) == [("invalid-name", ("metadata", "name"))]


@pytest.mark.parametrize("text", ["../../x", "..", "a/b", "Pod ", "Pod\n", "é", "", "a" * 64, "1Pod"])
def test_a_kind_that_could_be_a_path_is_rejected(text: str) -> None:
    assert codes({"name": "a"}, "v1", text) == [("invalid-type-meta", ("kind",))]


@pytest.mark.parametrize("text", ["../v1", "..", "a/b/v1", "apps/../v1", "apps/", "/v1", "v1\n", "a b/v1", "é/v1"])
def test_an_api_version_is_a_group_and_a_version(text: str) -> None:
    assert codes({"name": "a"}, text) == [("invalid-type-meta", ("apiVersion",))]
    assert codes({"name": "a"}, "${GROUP}/v1") == codes({"name": "a"}, "example.com/v1beta1") == []


def test_names_of_roles_may_be_any_path_segment() -> None:
    assert codes({"name": "system:masters"}, "rbac.authorization.k8s.io/v1", "ClusterRole") == []
    for name in ("a/b", "..", ".", "a%b", "a b", ""):
        assert codes({"name": name}, "rbac.authorization.k8s.io/v1", "ClusterRole") == [("invalid-name", ("metadata", "name"))]


def test_the_name_of_a_namespace_is_a_dns_label() -> None:
    assert codes({"name": "a.b"}, "v1", "Namespace") == [("invalid-name", ("metadata", "name"))]


@pytest.mark.parametrize("namespace", ["../x", "a.b", "A", "a" * 64])
def test_invalid_namespaces(namespace: str) -> None:
    assert codes({"name": "a", "namespace": namespace}) == [("invalid-namespace", ("metadata", "namespace"))]


@pytest.mark.parametrize("namespace", ["a", "kube-system", "", None, "${NAMESPACE}"])
def test_valid_namespaces(namespace: str | None) -> None:
    assert codes({"name": "a", "namespace": namespace}) == []


@each_row(
    ("member", "value", "pointer"),
    [
        ("labels", ["a"], ("metadata", "labels")),
        ("labels", {"a": True}, ("metadata", "labels", "a")),
        ("labels", {"a": 1}, ("metadata", "labels", "a")),
        ("labels", {"a": {}}, ("metadata", "labels", "a")),
        ("labels", {"a": "x" * 64}, ("metadata", "labels", "a")),
        ("labels", {"a": "x y"}, ("metadata", "labels", "a")),
        ("labels", {"a/b/c": "x"}, ("metadata", "labels", "a/b/c")),
        ("annotations", "x", ("metadata", "annotations")),
        ("annotations", {"a": 1}, ("metadata", "annotations", "a")),
        ("annotations", {"a b": "x"}, ("metadata", "annotations", "a b")),
    ],
)
def test_invalid_labels_and_annotations(member: str, value: object, pointer: tuple[str, ...]) -> None:
    assert codes({"name": "a", member: value}) == [(f"invalid-{member}", pointer)]


@pytest.mark.parametrize("value", [None, {}, {"a": ""}, {"a": None}, {"app.kubernetes.io/name": "x"}, {"a": "${TIER}"}])
def test_valid_labels(value: object) -> None:
    assert codes({"name": "a", "labels": value}) == []


def test_the_error_of_a_boolean_label_suggests_quotes() -> None:
    (issue,) = validate_object_meta({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"canary": True}}})
    assert issue.message.startswith("the value of 'canary' is a boolean, not a string; quote it: \"true\"")


@given(st.text(max_size=30))
def test_every_valid_name_is_one_safe_path_segment(name: str) -> None:
    for version, kind in (("v1", "Pod"), ("rbac.authorization.k8s.io/v1", "Role")):
        if not codes({"name": name}, version, kind):
            assert name.isascii()
            assert name.isprintable()
            assert "/" not in name
            assert name not in ("", ".", "..")


@given(st.text(max_size=20))
def test_issues_of_a_named_document_have_its_resource(name: str) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}})
    file = parse_file(text.encode(), path="a.json", validate=None)
    assert all(problem.resource == ("Pod", "", name) for problem in file.issues)
    assert len(file.documents) == 1 or "{{" in name


@pytest.mark.parametrize(
    ("version", "kind", "name"),
    [("user.openshift.io/v1", "Group", "demo_team"), ("image.openshift.io/v1", "ImageStream", "label_sync")],
)
def test_openshift_kinds_accept_more_names(version: str, kind: str, name: str) -> None:
    assert codes({"name": name}, version, kind) == []
    assert codes({"name": "a/b"}, version, kind) == [("invalid-name", ("metadata", "name"))]


@pytest.mark.parametrize(
    ("version", "member", "reported"),
    [
        ("v1", "title", True),
        ("networking.k8s.io/v1", "title", True),
        ("backstage.io/v1alpha1", "title", False),
        ("backstage.io/v1alpha1", "links", False),
        ("backstage.io/v1alpha1", "lables", True),
        ("example.io/v1", "annotation", True),
    ],
)
def test_an_unknown_metadata_field_is_reported_for_kubernetes_kinds(version: str, member: str, reported: bool) -> None:
    known = [("unknown-field", ("metadata", member))] if reported else []
    assert codes({"name": "a", member: {}}, version, "Component") == known


_OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u"}


@each_row(
    ("member", "value", "expected"),
    [
        ("generateName", 5, [("wrong-type", ())]),
        ("finalizers", "a", [("wrong-type", ())]),
        ("finalizers", ["a", 1], [("wrong-type", (1,))]),
        ("ownerReferences", {}, [("wrong-type", ())]),
        ("ownerReferences", ["a"], [("wrong-type", (0,))]),
        ("ownerReferences", [{**_OWNER, "controller": "yes"}], [("wrong-type", (0, "controller"))]),
        ("ownerReferences", [_OWNER, {**_OWNER, "uid": 5}], [("wrong-type", (1, "uid"))]),
        ("ownerReferences", [{"kind": "Pod", "name": "a", "uid": ""}], [("missing-field", (0,)), ("missing-field", (0,))]),
        ("ownerReferences", [{**_OWNER, "blockOwnerDeletion": True}], []),
        ("finalizers", [None, "a"], []),
        ("finalizers", None, []),
    ],
)
def test_members_that_few_objects_have_are_of_their_types(
    member: str, value: object, expected: list[tuple[str, tuple[str | int, ...]]]
) -> None:
    found = codes({"name": "a", member: value}, "example.com/v1", "Example")
    assert found == [(code, ("metadata", member, *path)) for code, path in expected]
