"""A caller may change a document of a schedule: no other one changes with it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

import gitsched
from gitsched.model.separate_documents import separate_documents

FLEET = """\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: ams}
spec: {syncMode: Push, apiEndpoint: https://ams.example.com}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: all, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement: {clusterAffinity: {clusterNames: [ams]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: one, namespace: default}
spec: {replicas: 2, selector: {matchLabels: {app: one}}, template: {metadata: {labels: {app: one}}, spec: {containers: []}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: two, namespace: default}
spec: {replicas: 2, selector: {matchLabels: {app: two}}, template: {metadata: {labels: {app: two}}, spec: {containers: []}}}
"""


def collect_ids(value: Any) -> set[int]:
    entries = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return set() if entries is None else {id(value)}.union(*map(collect_ids, entries))


def test_bindings_of_one_policy_have_no_part_in_common() -> None:
    first, second = (
        document for document in gitsched.schedule(yaml.safe_load_all(FLEET)).documents if document["kind"] == "ResourceBinding"
    )
    for part in ("metadata", "spec", "status"):
        assert collect_ids(first[part]).isdisjoint(collect_ids(second[part])), part
    assert first["spec"]["clusters"] == second["spec"]["clusters"]


@pytest.mark.parametrize("place", [("spec",), ("spec", "placement"), ("status",)])
def test_what_is_shared_is_copied_and_the_rest_stays(place: tuple[str, ...]) -> None:
    shared: dict[str, Any] = {"entries": [{"name": "ams"}]}

    def make(name: str) -> dict[str, Any]:
        body: Any = shared
        for field in reversed(place):
            body = {field: body, "name": name}
        return {"metadata": {"name": name}, **body}

    given = [make(name) for name in "abc"]
    found = list(separate_documents(given))
    assert found == given
    assert [document["metadata"] for document in found] == [document["metadata"] for document in given]
    ids = [collect_ids(document) for document in found]
    assert all(one.isdisjoint(other) for number, one in enumerate(ids) for other in ids[:number])
