"""What the pods of a workload say: whom it requires, by which labels it is selected, and which objects its arguments may name."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gitsched.kinds.companion_targets import read_features
from gitsched.kinds.pods import ONLY_PODS, POD_SPECS, read_pod_template
from gitsched.kinds.possible_creators import read_creator_features
from gitsched.kinds.requirements import read_references
from gitsched.model.document import Key
from tests.tables import each_row

POD = "metadata: {labels: {app: web, tier: 1}}, spec: {serviceAccountName: runner, containers: [{args: [--lock, web-lock]}]}"
TEMPLATES = {
    "a pod with references and arguments": f"{{{POD}}}",
    "a Secret that several containers use": "{spec: {containers: [{envFrom: [{secretRef: {name: s}}]}, "
    "{envFrom: [{secretRef: {name: s}}], command: [run, 1]}], volumes: [{configMap: {name: c, optional: true}}]}}",
    "malformed fields": "{metadata: [], spec: {containers: [null], volumes: 1}}",
    "no pod": "null",
}


def test_the_kinds_of_kubernetes_with_nothing_but_pods_are_known() -> None:
    assert sorted(kind for _, kind in ONLY_PODS) == ["CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet"]


@pytest.mark.parametrize("kind", sorted(ONLY_PODS))
@each_row("template", [pytest.param(text, id=name) for name, text in TEMPLATES.items()])
def test_pods_say_the_same_as_the_fields_of_any_kind(kind: tuple[str, str], template: str) -> None:
    body: dict[str, Any] = {POD_SPECS[kind][-2]: yaml.safe_load(template)}
    for name in reversed(POD_SPECS[kind][:-2]):
        body = {name: body}
    key = Key(*kind, "default", "web")
    pods, creator = read_pod_template(key, body), read_creator_features(key, body)
    assert pods.requires == read_references(key, body).requires
    assert tuple(sorted(pods.labels.items())) == read_features(key, body, {}).pod_labels
    assert pods.words == (creator.words if creator is not None else frozenset())
