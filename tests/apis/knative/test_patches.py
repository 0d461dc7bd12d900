"""Decisions as merge patches and kubectl commands."""

from __future__ import annotations

from gitsched.apis.knative.names import UNSCHEDULABLE
from gitsched.apis.knative.patches import format_kubectl_commands, make_patch_list, make_patches
from gitsched.model.document import Document, Key

POD = Key("", "Pod", "events", "adapter-0")
SET = Key("apps", "StatefulSet", "events", "adapter")
SOURCE = Key("sources.knative.dev", "KafkaSource", "shop", "orders")
RECORDS = [
    (SET, {"apiVersion": "apps/v1", "spec": {"replicas": 2}}),
    (SOURCE, {"apiVersion": "sources.knative.dev/v1beta1", "status": {"placements": [{"podName": "adapter-1", "vreplicas": 1}]}}),
    (POD, {"apiVersion": "v1", "metadata": {"annotations": {UNSCHEDULABLE: "true"}}}),
]


def test_pods_are_patched_first_and_the_statefulset_last() -> None:
    assert [patch.target for patch in make_patches(RECORDS, ())] == [POD, SOURCE, SET]


def test_values_that_are_already_set_need_no_patch() -> None:
    document = Document(SET, "apps/v1", {"spec": {"replicas": 2}})
    assert [patch.target for patch in make_patches(RECORDS, [document])] == [POD, SOURCE]


def test_placements_are_patched_in_the_status_subresource() -> None:
    (_, command, _) = format_kubectl_commands(make_patches(RECORDS, ())).splitlines()
    assert command.startswith("kubectl patch kafkasource.v1beta1.sources.knative.dev orders --namespace shop --subresource=status ")


def test_a_patch_list_has_the_target_and_the_merge_patch() -> None:
    items = make_patch_list(make_patches(RECORDS[:1], ()))["items"]
    assert [(item["target"]["name"], item["type"], item["patch"]) for item in items] == [
        ("adapter", "merge", {"spec": {"replicas": 2}})
    ]
