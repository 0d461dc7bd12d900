"""A second run at the same commit changes nothing, whatever the previous bindings are."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.search_depth import count_examples

NAMES = ("m1", "m2", "m3", "m4", "m5")
SCHEDULING: list[dict[str, Any] | None] = [
    None,
    {"replicaSchedulingType": "Duplicated"},
    {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"},
    {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
    {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {"dynamicWeight": "AvailableReplicas"},
    },
]
CLUSTERS = st.fixed_dictionaries(
    {
        name: st.fixed_dictionaries(
            {"region": st.sampled_from(["r1", "r2", "r3"]), "tainted": st.booleans(), "pods": st.sampled_from([1, 4, 50])}
        )
        for name in NAMES
    }
)
GROUPS = st.tuples(st.integers(1, 3), st.integers(0, 2))
PLACEMENTS = st.fixed_dictionaries(
    {"scheduling": st.sampled_from(SCHEDULING), "clusters": st.none() | GROUPS, "regions": st.none() | GROUPS}
)
HELD = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 4), max_size=4)


def make_world(clusters: dict[str, Any], placement: dict[str, Any], replicas: int) -> str:
    fleet = [
        {
            "kind": "Cluster",
            "metadata": {"name": name},
            "spec": {"region": c["region"], "taints": [{"key": "work", "effect": "NoSchedule"}] if c["tainted"] else []},
            "status": {"resourceSummary": {"allocatable": {"pods": str(c["pods"]), "cpu": "64"}}},
        }
        for name, c in clusters.items()
    ]
    fields = (
        ("cluster", placement["clusters"] or (1, 4) if placement["regions"] else placement["clusters"]),
        ("region", placement["regions"]),
    )
    spreads = [{"spreadByField": f, "minGroups": bounds[0], "maxGroups": sum(bounds)} for f, bounds in fields if bounds]
    rules = {"spreadConstraints": spreads, "replicaScheduling": placement["scheduling"]}
    container = {"name": "main", "image": "web", "resources": {"requests": {"cpu": "1"}}}
    web = {
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [container]}}},
    }
    selector = {"apiVersion": "apps/v1", "kind": "Deployment"}
    policy = {
        "kind": "PropagationPolicy",
        "metadata": {"name": "p"},
        "spec": {"resourceSelectors": [selector], "placement": {name: rule for name, rule in rules.items() if rule}},
    }
    return "\n---\n".join(map(yaml.safe_dump, [*fleet, web, policy]))


def remember(held: dict[str, int]) -> str:
    targets = [{"name": name, "replicas": count} for name, count in held.items()]
    binding = {
        "kind": "ResourceBinding",
        "metadata": {"name": "web-deployment", "namespace": "default"},
        "spec": {"clusters": targets},
    }
    return yaml.safe_dump(binding)


@given(clusters=CLUSTERS, placement=PLACEMENTS, replicas=st.integers(0, 6), held=HELD)
@settings(max_examples=count_examples(30), deadline=None)
def test_a_second_run_changes_nothing(
    run: Any, clusters: dict[str, Any], placement: dict[str, Any], replicas: int, held: dict[str, int]
) -> None:
    files = make_world(clusters, placement, replicas)
    first = run(files, remember(held) if held else None)
    second = run(files, first)
    if placement["regions"] and "Divided" not in str(placement["scheduling"]):
        # As upstream, copies that are there count as capacity, so that one region may then be enough.
        assert run(files, second).binding("web") == second.binding("web")
    else:
        assert second.binding("web") == first.binding("web")
    before = first.outcome("web")
    if first.engine.repeats(first.template("web"), before):
        assert second.outcome("web")._replace(previous_targets=before.previous_targets) == before
    placed = {target["name"]: target.get("replicas", 0) for target in first.binding("web")["spec"].get("clusters", [])}
    if first.condition("web")["reason"] == "Success":
        assert not [name for name in placed if clusters[name]["tainted"] and name not in held], "nothing new where nothing may go"
        divided = "Divided" in str(placement["scheduling"])
        assert not divided or sum(placed.values()) == replicas
    else:
        assert "unschedulable" in first.codes("web")


@pytest.mark.parametrize(
    ("placement", "is_known"),
    [
        ({"scheduling": None, "clusters": None, "regions": None}, True),
        ({"scheduling": None, "clusters": (1, 1), "regions": None}, True),
        ({"scheduling": SCHEDULING[3], "clusters": None, "regions": None}, True),
        ({"scheduling": SCHEDULING[3], "clusters": (1, 1), "regions": (1, 1)}, True),
        ({"scheduling": None, "clusters": None, "regions": (1, 1)}, False),
    ],
    ids=["all clusters", "the best clusters", "divided", "divided within regions", "the best regions"],
)
def test_usual_decisions_are_known_to_be_stable(run: Any, placement: dict[str, Any], is_known: bool) -> None:
    clusters = {name: {"region": "r1", "tainted": name == "m1", "pods": 50} for name in NAMES}
    first = run(make_world(clusters, placement, 6))
    assert first.condition("web")["reason"] == "Success"
    assert first.engine.repeats(first.template("web"), first.outcome("web")) is is_known


def test_a_cluster_that_was_eligible_only_by_its_replicas_is_not_tried_again(run: Any) -> None:
    clusters = {name: {"region": "r1", "tainted": True, "pods": 50} for name in NAMES}
    placement = {"scheduling": None, "clusters": None, "regions": None}
    first = run(make_world(clusters, placement, 2), remember({"m1": 2}))
    assert first.clusters("web") == {"m1": 2}
    second = run(make_world(clusters, placement, 0), first)
    assert (second.clusters("web"), second.condition("web")["reason"]) == ({}, "NoClusterFit")
    assert run(make_world(clusters, placement, 0), second).binding("web") == second.binding("web")
