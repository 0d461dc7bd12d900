"""Knative on the command line: nodes and pods from standard input, patches and the scheduler state."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Run

DUMP = """\
apiVersion: v1
kind: List
metadata: {resourceVersion: ""}
items:
- apiVersion: v1
  kind: Node
  metadata: {name: worker, labels: {topology.kubernetes.io/zone: east}, uid: 0c1, resourceVersion: "9"}
  spec: {podCIDR: 10.244.1.0/24, providerID: kind://worker}
  status: {conditions: [{type: Ready, status: "True"}], capacity: {cpu: "8", pods: "110"}}
- apiVersion: v1
  kind: Pod
  metadata: {name: kafkasource-mt-adapter-0, namespace: knative-eventing, uid: 0c2}
  spec: {nodeName: worker, containers: [{name: adapter, image: adapter}]}
  status: {phase: Running}
- apiVersion: v1
  kind: Pod
  metadata: {name: coredns-x, namespace: kube-system}
  spec: {nodeName: worker}
"""
SOURCES = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: gitsched}
spec:
  knative: {capacity: 5, cluster: events}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: kafkasource-mt-adapter, namespace: knative-eventing}
spec: {replicas: 1}
---
apiVersion: sources.knative.dev/v1beta1
kind: KafkaSource
metadata: {name: orders, namespace: shop}
spec: {consumers: 7}
"""


@pytest.fixture
def events(fleet: Path, commit: Callable[..., None]) -> Path:
    config, adapter, source = SOURCES.split("---\n")
    commit(fleet, gitsched=config, dump=DUMP, adapter=adapter, orders=source)
    return fleet


def test_nodes_and_pods_are_read_from_standard_input(gitsched: Run, tmp_path: Path) -> None:
    sources = tmp_path / "sources.yaml"
    sources.write_text(SOURCES)
    done = gitsched("schedule", "-f", "-", "-f", str(sources), data=DUMP, at=tmp_path)
    assert done.returncode == 0, done.stderr
    decided = {document["kind"]: document for document in yaml.safe_load_all(done.stdout)}
    assert decided["KafkaSource"]["status"] == {"placements": [{"podName": "kafkasource-mt-adapter-0", "vreplicas": 5}]}
    assert decided["StatefulSet"]["spec"] == {"replicas": 2}
    assert "2 of 7 vreplicas" in done.stderr


def test_patches_are_valid_shell_commands(gitsched: Run, events: Path) -> None:
    assert gitsched("reconcile").returncode == 0
    lines = gitsched("export", "knative").stdout.splitlines()
    words = [shlex.split(line) for line in lines]
    assert [(word[:4], "--subresource=status" in word) for word in words] == [
        (["kubectl", "patch", "kafkasource.v1beta1.sources.knative.dev", "orders"], True),
        (["kubectl", "patch", "statefulset.v1.apps", "kafkasource-mt-adapter"], False),
    ]
    assert json.loads(words[0][-1]) == {"status": {"placements": [{"podName": "kafkasource-mt-adapter-0", "vreplicas": 5}]}}
    assert json.loads(words[1][-1]) == {"spec": {"replicas": 2}}


def test_an_up_to_date_source_needs_no_patch(gitsched: Run, events: Path, commit: Callable[..., None]) -> None:
    status = "status: {placements: [{podName: kafkasource-mt-adapter-0, vreplicas: 5}]}\n"
    _, adapter, source = SOURCES.split("---\n")
    commit(events, orders=source + status, adapter=adapter.replace("replicas: 1", "replicas: 2"))
    assert gitsched("export", "knative").stdout == ""
    assert json.loads(gitsched("export", "knative", "-o", "json").stdout)["items"] == []


def test_explain_shows_the_scheduler_state_of_the_statefulset(gitsched: Run, events: Path) -> None:
    output = gitsched("explain", "StatefulSet/knative-eventing/kafkasource-mt-adapter", COLUMNS="200").stdout
    facts = dict(line.strip().rsplit(None, 1) for line in output.partition("\nState\n")[2].partition("\n\n")[0].splitlines())
    assert facts == {
        "WHAT": "VALUE",
        "capacity of a pod": "5",
        "replicas": "2",
        "schedulable pods": "1",
        "free capacity": "0",
        "last ordinal": "0",
        "nodes": "1",
        "zones": "1",
        "pods at a time": "1",
        "expected vreplicas": "7",
        "pending vreplicas": "2",
    }
    assert "KafkaSource.sources.knative.dev/shop/orders  7         2        0=5      worker=5  east=5" in output
    found = json.loads(gitsched("explain", "StatefulSet/knative-eventing/kafkasource-mt-adapter", "-o", "json").stdout)
    assert [table["title"] for table in found["tables"]] == ["State", "Pods", "Usable nodes", "Sources"]


def test_explain_of_a_source_lists_its_pods(gitsched: Run, events: Path) -> None:
    output = gitsched("explain", "kafkasource/shop/orders", COLUMNS="200").stdout
    assert "  kafkasource-mt-adapter-0  no    PodFitsResources: the pod is full" in output
    assert "[knative-pending]" in output


def test_a_plan_shows_what_it_places_and_counts_no_earlier_note_as_fixed(
    gitsched: Run, events: Path, commit: Callable[..., None]
) -> None:
    assert gitsched("reconcile").returncode == 0
    _, _, source = SOURCES.split("---\n")
    commit(events, orders=source.replace("7", "4"), clicks=source.replace("orders", "clicks").replace("7", "1"))
    output = gitsched("plan", COLUMNS="200").stdout
    assert "placed 1 vreplica of 1 source: shop/clicks (1) [knative-placed]" in output
    assert "removed 1 vreplica of 1 source: shop/orders (1) [knative-removed]" in output
    assert gitsched("reconcile").returncode == 0
    commit(events, notes="# nothing\n")
    assert "fixed" not in gitsched("plan").stdout


def test_vreplicas_are_scheduled_without_a_cluster(gitsched: Run, events: Path, commit: Callable[..., None]) -> None:
    commit(events, gitsched=SOURCES.split("---\n")[0].replace(", cluster: events", ""), one=None, two=None)
    for command in ("plan", "reconcile"):
        output = gitsched(command).stdout
        assert "KafkaSource shop/orders" in output
        assert "[knative-no-cluster]" in output
        assert "nothing can be scheduled" not in output
