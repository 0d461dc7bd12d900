"""ManifestWorkReplicaSets and templates annotated with a Placement."""

from __future__ import annotations

import pytest

from gitsched.apis.ocm.manifestworkreplicaset import make_outcome
from gitsched.apis.ocm.missing_placements import PlacementNames
from gitsched.apis.ocm.names import MANIFEST_WORK_REPLICA_SET, WORK_GROUP, placement_key
from gitsched.apis.ocm.placement_states import PlacementState
from gitsched.apis.ocm.rollout import NO_PREVIOUS_ROLLOUT, RolloutReports
from gitsched.apis.ocm.workload_rollout import roll_out_workload
from gitsched.apis.ocm.workloads import OcmWorkload, read_manifest_key, read_placement_annotation, read_replica_set, record_name
from gitsched.model.document import Document, Key
from gitsched.model.scheduling import Outcome
from tests.apis.ocm.chosen_clusters import NOW
from tests.builders.ocm import GROUP, PLACEMENT_ANNOTATION, Body, placed_config_map

SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"colour": "green"}}


def replica_set(*manifests: Body, placements: tuple[str, ...] = ("p",)) -> OcmWorkload:
    body = {
        "apiVersion": f"{WORK_GROUP}/v1alpha1",
        "kind": MANIFEST_WORK_REPLICA_SET,
        "metadata": {"name": "web", "namespace": "ns"},
        "spec": {
            "placementRefs": [{"name": name} for name in placements],
            "manifestWorkTemplate": {"workload": {"manifests": list(manifests)}},
        },
    }
    return read_replica_set(Document(Key(WORK_GROUP, MANIFEST_WORK_REPLICA_SET, "ns", "web"), str(body["apiVersion"]), body))


def decision(*clusters: str, index: int = 0) -> tuple[Key, Body]:
    body = {
        "metadata": {"labels": {f"{GROUP}/decision-group-index": str(index), f"{GROUP}/decision-group-name": ""}},
        "status": {"decisions": [{"clusterName": name, "reason": ""} for name in clusters]},
    }
    return Key(GROUP, "PlacementDecision", "ns", f"p-decision-{index + 1}"), body


def decide(workload: OcmWorkload, **decisions: list[tuple[Key, Body]]) -> Outcome:
    assert NOW is not None
    states = {placement_key("ns", name): PlacementState(entries) for name, entries in decisions.items()}
    reports = RolloutReports({}, {}, None)
    known = dict.fromkeys(("ash", "bru"))
    rollout = roll_out_workload(workload, states, NO_PREVIOUS_ROLLOUT, reports, known, NOW, NOW)
    return make_outcome(workload, rollout, NO_PREVIOUS_ROLLOUT, states, None)


@pytest.mark.parametrize(
    ("annotation", "key"), [("p", placement_key("ns", "p")), ("other/p", placement_key("other", "p")), ("", None)]
)
def test_the_annotation_names_a_placement(annotation: str, key: Key | None) -> None:
    body = placed_config_map("settings", "ns", annotation)
    assert body["metadata"]["annotations"] == {PLACEMENT_ANNOTATION: annotation}
    assert read_placement_annotation(Document(Key("", "ConfigMap", "ns", "settings"), "v1", body)) == key


def test_the_record_of_a_template_has_its_name_kind_and_group() -> None:
    assert record_name(Key("apps", "Deployment", "ns", "web")) == "web.deployment.apps"
    assert record_name(Key("", "ConfigMap", "ns", "settings")) == "settings.configmap"


def test_a_namespaced_manifest_without_namespace_is_in_the_default_namespace() -> None:
    assert read_manifest_key(SETTINGS) == Key("", "ConfigMap", "default", "settings")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "web", "namespace": "ignored"}}
    assert read_manifest_key(namespace) == Key("", "Namespace", "", "web")


def test_the_last_manifest_with_a_key_is_used_and_the_revision_depends_on_the_content() -> None:
    blue = {**SETTINGS, "data": {"colour": "blue"}}
    assert replica_set(SETTINGS, blue).manifests == replica_set(blue).manifests
    assert replica_set(SETTINGS, blue).revision == replica_set(blue).revision != replica_set(SETTINGS).revision


def test_a_workload_is_placed_in_the_existing_clusters_of_its_placement() -> None:
    outcome = decide(replica_set(SETTINGS), p=[decision("ash", "gone"), decision("bru", index=1)])
    assert [target.cluster for target in outcome.targets] == ["ash", "bru"]
    ((_, record),) = outcome.records
    assert record["status"]["summary"] == {"total": 2, "applied": 2, "available": 0, "degraded": 0}
    assert record["status"]["placementSummary"] == [{"name": "p", "availableDecisionGroups": "2 (2 / 2 clusters applied)"}]


@pytest.mark.parametrize(
    ("decisions", "reason", "messages", "why"),
    [
        ({}, "PlacementDecisionNotFound", ["references Placement", "p: it does not exist"], "it does not exist"),
        ({"p": [decision()]}, "PlacementDecisionEmpty", ["p: none of its clusters exists"], "none of its clusters exists"),
    ],
)
def test_a_workload_without_clusters_is_pending(
    decisions: dict[str, list[tuple[Key, Body]]], reason: str, messages: list[str], why: str
) -> None:
    outcome = decide(replica_set(SETTINGS), **decisions)
    ((_, record),) = outcome.records
    assert (outcome.state, record["status"]["conditions"][0]["reason"]) == ("pending", reason)
    assert [part in finding.message for part, finding in zip(messages, outcome.findings, strict=True)] == [True] * len(messages)
    assert outcome.reason == f"{placement_key('ns', 'p')}: {why}"


@pytest.mark.parametrize(
    ("known", "in_annotation", "expected"),
    [
        (["shop/front", "office/fornt"], True, "; did you mean front?"),
        (["office/fornt", "ship/fornt"], True, "; did you mean ship/fornt?"),
        (["office/fornt"], False, "; there is one in the namespace office"),
        (["shop/x", "shop/y"], True, "; its namespace has x, y"),
        ([f"n{number}/x" for number in range(9)], True, "; there are Placements in the namespaces n0, n1, n2, n3, n4 and 4 more"),
        ([], True, ""),
    ],
)
def test_a_missing_placement_has_a_suggestion(known: list[str], in_annotation: bool, expected: str) -> None:
    names = PlacementNames(placement_key(*name.split("/")) for name in known)
    assert names.suggest(placement_key("shop", "fornt"), in_annotation=in_annotation) == expected
