"""The Python API returns findings, or says what is wrong with its arguments, whatever documents, records and settings it gets."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import gitsched
from gitsched.model.errors import GitschedError
from tests.builders import knative
from tests.scenarios.conftest import cluster, deployment, policy

from .mutation import SEEDS, mutate

CASES = int(os.environ.get("GITSCHED_FUZZ_CASES", "40"))
NOW = datetime(2026, 1, 2, tzinfo=UTC)
TIMES = (NOW, None, datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC))


def run_case(seed: int) -> list[str]:
    """Schedule mutated documents with mutated records and settings; return the codes of the findings."""
    random = Random(seed)
    documents, config = random.choice(SEEDS)
    previous: list[Any] = gitsched.schedule(documents, now=NOW, config=config).documents
    changed = [mutate(body, random, random.choice((0, 0, 1, 3))) for body in documents]
    records = [mutate(body, random, random.choice((0, 1, 3))) for body in random.choice(([], previous, [*previous, *documents]))]
    spec = mutate(config, random, 1) if config and random.random() < 0.3 else config
    try:
        found = gitsched.schedule(changed, previous=records, now=random.choice(TIMES), config=spec)
    except GitschedError:
        return []
    for body in changed:
        gitsched.validate([body])
    return [finding.code for finding in found.findings]


@pytest.mark.parametrize("start", range(4))
def test_no_documents_records_or_settings_raise_an_unexpected_error(start: int) -> None:
    for seed in range(start * CASES, (start + 1) * CASES):
        codes = run_case(seed)
        assert "internal-error" not in codes, seed


@pytest.mark.parametrize("metadata", [1.5, [1], "x", True])
def test_a_placed_application_whose_metadata_is_no_mapping_is_a_finding(metadata: Any) -> None:
    """Krake computes versions of broken documents, too: records without a name may belong to them."""
    body = {"api": "kubernetes", "kind": "Application", "metadata": metadata, "spec": {"manifest": []}}
    record = {
        "api": "kubernetes",
        "kind": "Application",
        "metadata": {"name": "", "namespace": "default"},
        "status": {"state": "RUNNING"},
    }
    found = gitsched.schedule([body], previous=[record], now=NOW)
    assert {finding.code for finding in found.findings} & {"wrong-type", "invalid-document", "missing-name", "invalid-metadata"}
    assert all(finding.code != "internal-error" for finding in found.findings)


def test_a_decision_group_with_an_index_of_many_digits_is_no_bug() -> None:
    for documents, config in SEEDS:
        records = json.loads(json.dumps(gitsched.schedule(documents, now=NOW, config=config).documents))
        for record in records:
            labels = record.setdefault("metadata", {}).setdefault("labels", {})
            labels["cluster.open-cluster-management.io/decision-group-index"] = "9" * 5000
        found = gitsched.schedule(documents, previous=records, now=NOW, config=config)
        assert all(finding.code != "internal-error" for finding in found.findings)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters())
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=4), max_leaves=10
)
OBJECTS = st.dictionaries(st.text(max_size=5) | st.sampled_from(("apiVersion", "kind", "metadata", "spec")), JSON, max_size=5)


@settings(max_examples=CASES)
@given(st.lists(OBJECTS, max_size=3), st.lists(OBJECTS, max_size=2))
def test_objects_that_are_no_documents_are_findings(documents: list[Any], previous: list[Any]) -> None:
    web = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}}
    found = gitsched.schedule([*documents, web], previous=previous, now=NOW)
    assert all(finding.code != "internal-error" for finding in found.findings)
    assert web["metadata"]["name"] in str(found.decisions.catalog.templates)
    gitsched.validate(documents)


@pytest.mark.parametrize("key", [1, None, (1, 2)], ids=repr)
def test_keys_that_are_no_strings_are_findings_wherever_they_are(key: Any) -> None:
    """Beside strings, they have no order, and most have no JSON."""
    for documents, config in SEEDS:
        for number, body in enumerate(documents):
            for place in (("metadata", "labels"), ("kind",), ("status",)):
                changed: list[Any] = json.loads(json.dumps(documents))
                parent, value = {}, changed[number]
                for name in place:
                    parent, value = value, value.get(name) if isinstance(value, dict) else None
                if isinstance(value, dict):
                    value[key] = "x"
                elif place and isinstance(parent, dict):
                    parent[place[-1]] = {key: "x", "other": "y"}
                found = gitsched.schedule(changed, now=NOW, config=config)
                assert all(finding.code != "internal-error" for finding in found.findings), body["kind"]
                gitsched.validate([changed[number]])


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-12:00"])
def test_times_at_the_ends_of_the_calendar_do_not_overflow(text: str) -> None:
    for documents, config in SEEDS:
        changed = json.loads(json.dumps(documents).replace("2026-01-01T00:00:00Z", text))
        first = gitsched.schedule(changed, now=NOW, config=config)
        for now in TIMES:
            records = json.loads(json.dumps(first.documents).replace("2026-01-02T00:00:00Z", text))
            found = gitsched.schedule(changed, previous=records, now=now, config=config)
            assert all(finding.code != "internal-error" for finding in found.findings)


def test_pods_of_a_stateful_set_with_two_billion_replicas_are_counted() -> None:
    found = gitsched.schedule(knative.parse(knative.adapter(2_000_000_000)), now=NOW, config={"knative": {"capacity": 4}})
    (finding,) = (finding for finding in found.findings if finding.code == "knative-unused-pods")
    assert " more are unused" in finding.message


@pytest.mark.parametrize("metadata", [{}, {"namespace": "default"}, {"name": None}, None], ids=repr)
def test_a_document_without_a_name_is_a_finding_and_has_no_effect_on_others(metadata: Any) -> None:
    """The finding names the document itself: no other one is reported in its place."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "spec": {"scaleTargetRef": target, "maxReplicas": 5},
    }
    documents = list(yaml.safe_load_all("---\n".join((cluster("ash"), policy("ash"), deployment("web")))))
    alone = gitsched.schedule(documents)
    found = gitsched.schedule([*documents, autoscaler if metadata is None else {**autoscaler, "metadata": metadata}])
    assert found.documents == alone.documents
    (finding,) = [finding for finding in found.findings if finding not in alone.findings]
    assert (finding.severity, finding.code) == ("error", "missing-name")
    assert finding.message == "document 4 is not read: this HorizontalPodAutoscaler has no metadata.name"
