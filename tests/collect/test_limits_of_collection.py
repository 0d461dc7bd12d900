"""A cluster with more than a limit keeps its earlier facts, or loses only what a note names."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gitsched.collect import observation
from gitsched.collect.argo_cd import read_secrets
from gitsched.collect.cluster_report import read_report
from gitsched.collect.discovery import read_apis
from gitsched.collect.observation import Observation, observe_cluster
from gitsched.collect.sources import read_hub, read_profiles
from gitsched.decide.registry import policy_apis
from gitsched.kubectl.client import KubectlClient, KubectlOptions
from gitsched.model.errors import Permanent
from gitsched.reconcile.facts.collection import find_problem
from gitsched.reconcile.facts.proposed_clusters import drop_invalid_metadata
from tests.builders.recorded_cluster import make_discovery, make_node, make_pod
from tests.collect.test_any_answer import AnsweringReader
from tests.collect.test_collection import MANAGED_CLUSTER, PROFILE, make_flux, make_secret, make_workload

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
COMMIT = "placements@sha1:" + "a" * 40
FLUX, ARGO = "/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations", "/apis/argoproj.io/v1alpha1/applications"
WORKLOADS = [f"/apis/apps/v1/{plural}" for plural in ("deployments", "statefulsets", "daemonsets")]
PROFILES = "/apis/multicluster.x-k8s.io/v1alpha1/clusterprofiles"


def answer(**lists: Any) -> AnsweringReader:
    core, groups = make_discovery({"v1": ["ConfigMap"], "apps/v1": ["Deployment"]})
    found = {name: {"items": lists.get(name, [])} for name in ("nodes", "pods")}
    answers = {f"/api/v1/{name}": items for name, items in found.items()}
    return AnsweringReader({"/version": {"gitVersion": "v1.34.1"}, "/api": core, "/apis": groups, "/readyz": 200, **answers})


def observe(**lists: Any) -> Observation:
    return observe_cluster(answer(**lists), "ash", None, NOW)


@pytest.mark.parametrize(
    ("limit", "lists"), [("MAX_NODES", {"nodes": [make_node("n1"), make_node("n2")]}), ("MAX_PODS", {"pods": [{}] * 2})]
)
def test_a_cluster_with_too_many_nodes_or_pods_is_not_observed(limit: str, lists: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    observe(**lists)
    monkeypatch.setattr(observation, limit, 1)
    with pytest.raises(Permanent, match="has more than 1 objects"):
        observe(**lists)


def test_resources_and_zones_beyond_the_limit_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observation, "_MAX_RESOURCES", 5)
    monkeypatch.setattr(observation, "_MAX_ZONES", 1)
    nodes = [make_node("n1", **{"example.com/a": "1"}), make_node("n2", **{"example.com/a": "1", "example.com/b": "1"})]
    found = observe(nodes=nodes)
    assert found.notes == (
        "the nodes have more than 5 resources: the facts have only 5 of them",
        "the nodes are in 2 zones: the facts have only the first 1 by name",
    )
    facts = found.cluster.facts
    assert (sorted(facts.allocatable), found.cluster.zones) == (
        ["cpu", "ephemeral-storage", "example.com/a", "memory", "pods"],
        ("eu-west-1a",),
    )


def test_no_pod_hides_the_requests_of_others_by_resources_that_no_node_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observation, "_MAX_RESOURCES", 5)
    nodes = [make_node("n1", **{"example.com/gpu": "4"})]
    hostile = make_pod("hostile")
    hostile["spec"]["containers"][0]["resources"]["requests"] = {**{f"x.org/{number}": "1" for number in range(9)}, "cpu": "2"}
    honest = make_pod("honest")
    honest["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "1", "example.com/gpu": "3"}
    found = observe(nodes=nodes, pods=[hostile, honest])
    assert found.notes == ()
    allocated = found.cluster.facts.allocated
    assert (allocated["cpu"], allocated["example.com/gpu"], "x.org/0" in allocated) == ("3", "3", False)


@pytest.mark.parametrize("aggregated", [True, False])
@pytest.mark.parametrize(("limit", "kept"), [("MAX_VERSIONS", 2), ("MAX_KINDS", 2)])
def test_versions_and_kinds_beyond_the_limit_are_named(
    limit: str, kept: int, aggregated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"gitsched.collect.discovery.{limit}", kept)
    kinds = {"v1": ["A"], "a.org/v1": ["B"], "b.org/v1": ["C"]}
    core, groups = make_discovery(kinds)
    if not aggregated:
        listed = [{"name": name, "versions": [{"version": "v1"}]} for name in ("a.org", "b.org", "c.org")]
        core, groups = {"versions": ["v1"]}, {"groups": listed}
    lists = {
        f"/api{'s' if '/' in version else ''}/{version}": {"resources": [{"name": "x", "kind": names[0]}]}
        for version, names in kinds.items()
    }
    notes: list[str] = []
    found = read_apis(AnsweringReader({"/api": core, "/apis": groups, **lists}), {}, notes.append)
    assert list(found) == ["a.org/v1", "v1"]
    assert notes[0].startswith(
        ("the kinds of b.org/v1 are ignored: the cluster serves more than", "the cluster serves 3 versions of APIs")
    )


@pytest.mark.parametrize("source", ["hub", "profiles", "secrets"])
def test_a_hub_with_too_many_clusters_is_not_read(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    load = policy_apis["ocm"].load_cluster_format
    assert load is not None
    hub = load().hub
    assert hub is not None
    if source == "secrets":
        reader = AnsweringReader(
            {"/api/v1/namespaces/argocd/secrets": {"items": [make_secret("a", "https://a", {}), make_secret("b", "https://b", {})]}}
        )
    else:
        reader = AnsweringReader({hub.path: {"items": [MANAGED_CLUSTER] * 2}, PROFILES: {"items": [PROFILE] * 2}})
    for module in ("sources", "argo_cd"):
        monkeypatch.setattr(f"gitsched.collect.{module}.MAX_CLUSTERS", 1)
    with pytest.raises(Permanent, match="has more than 1 objects"):
        read_hub(reader, hub, "hub", NOW) if source == "hub" else (read_profiles if source == "profiles" else read_secrets)(
            reader, "hub", NOW
        )


def test_a_secret_with_a_value_that_is_too_long_is_named_without_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitsched.collect.argo_cd._MAX_VALUE", 100)
    long = make_secret("dub", "https://dub.example.com", {"bearerToken": "t0ken" * 30})
    found = read_secrets(AnsweringReader({"/api/v1/namespaces/argocd/secrets": {"items": [long]}}), "the hub", NOW)
    (note,) = found.notes
    assert (found.targets, "its value config is no" in note or "one that is too long" in note) == ((), True)
    assert base64.b64encode(b"t0ken").decode()[:6] not in note


@pytest.mark.parametrize("limit", ["MAX_TOOL_OBJECTS", "MAX_WORKLOADS"])
def test_a_cluster_with_too_many_objects_of_its_tools_reports_nothing_new(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    flux = [make_flux(COMMIT), make_flux(COMMIT)]
    answers = {
        FLUX: {"items": flux},
        ARGO: {"items": []},
        **{path: {"items": [make_workload("web", 1, 1)] * 2} for path in WORKLOADS},
    }
    notes: list[str] = []
    assert read_report(AnsweringReader(answers), "ash", "placements", None, NOW, notes.append) is not None
    assert notes == []
    monkeypatch.setattr(f"gitsched.collect.cluster_report.{limit}", 1)
    assert read_report(AnsweringReader(answers), "ash", "placements", None, NOW, notes.append) is None
    assert "has more than 1 objects" in notes[0]


def test_an_answer_of_kubectl_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "kubectl"
    program.write_text("#!/bin/sh\necho one\necho two\n")
    program.chmod(0o755)
    client = KubectlClient(KubectlOptions(executable=str(program)))
    assert client.list_contexts() == ["one", "two"]
    monkeypatch.setattr("gitsched.kubectl.client.MAX_OUTPUT", 4)
    with pytest.raises(Permanent, match="printed more than 4 bytes"):
        client.list_contexts()


def test_a_cluster_with_too_many_invalid_parts_is_not_proposed(monkeypatch: pytest.MonkeyPatch) -> None:
    taints = [{"key": "a b", "effect": "NoSchedule"}, {"key": "c d", "effect": "NoSchedule"}]
    body = {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "ash"},
        "spec": {"syncMode": "Pull", "taints": taints},
    }
    assert "taints" not in drop_invalid_metadata(body)[0]["spec"]
    monkeypatch.setattr("gitsched.reconcile.facts.proposed_clusters._MAX_DROPPED", 1)
    left, notes = drop_invalid_metadata(body)
    assert (len(left["spec"]["taints"]), len(notes), bool(find_problem(left))) == (1, 1, True)
