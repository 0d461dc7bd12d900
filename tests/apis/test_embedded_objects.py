"""The objects that a workload of a policy API consists of are checked as other objects are."""

from __future__ import annotations

from typing import Any

from gitsched.decide.validation import validate_source_document
from tests.tables import each_row

POD = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": POD},
}
ROWS = [
    # what is changed in the object, and the code and the place of the error
    ({}, "", ()),
    ({"spec": "x"}, "wrong-type", ("spec",)),
    ({"spec": {**DEPLOYMENT["spec"], "replicas": "x"}}, "wrong-type", ("spec", "replicas")),
    ({"metadata": "x"}, "invalid-metadata", ("metadata",)),
    ({"metadata": {"name": "A_b"}}, "invalid-name", ("metadata", "name")),
    ({"metadata": {"name": "web", "namespace": ["x"]}}, "invalid-namespace", ("metadata", "namespace")),
    ({"apiVersion": "apps/v1beta1"}, "removed-version", ("apiVersion",)),
    ({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "spec": ["x"]}, "wrong-type", ("spec",)),
]  # fmt: skip
REPLICA_SET: dict[str, Any] = {
    "apiVersion": "work.open-cluster-management.io/v1alpha1",
    "kind": "ManifestWorkReplicaSet",
    "metadata": {"name": "m", "namespace": "default"},
}
APPLICATION: dict[str, Any] = {"api": "kubernetes", "kind": "Application", "metadata": {"name": "a", "namespace": "default"}}


@each_row(("change", "code", "place"), ROWS)
def test_an_error_of_an_embedded_object_is_reported_at_its_place(change: Any, code: str, place: tuple[str, ...]) -> None:
    made = {**DEPLOYMENT, **change}
    template = {"workload": {"manifests": [DEPLOYMENT, made]}}
    works = {**REPLICA_SET, "spec": {"placementRefs": [{"name": "p"}], "manifestWorkTemplate": template}}
    application = {**APPLICATION, "spec": {"manifest": [DEPLOYMENT, made], "constraints": {}}}
    for body, path in ((works, ("spec", "manifestWorkTemplate", "workload", "manifests")), (application, ("spec", "manifest"))):
        found = [issue for issue in validate_source_document(body).issues if issue.severity == "error"]
        assert [issue.pointer for issue in found] == ([(*path, 1, *place)] if code else []), body["kind"]
        assert {issue.code for issue in found} <= {code, "wrong-type"}  # the schema of an Application has the types of metadata
