"""karmada.spread: strict: zones and providers are chosen as regions are."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import gitsched
from tests.search_depth import count_examples

SCHEDULING: tuple[dict[str, Any], ...] = (
    {"replicaSchedulingType": "Duplicated"},
    {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
)


def place(clusters: dict[str, dict[str, str]], spreads: list[dict[str, Any]], scheduling: dict[str, Any], strict: bool) -> Any:
    """Return the clusters of a Deployment, or the message that says why it has none."""
    resources: list[dict[str, Any]] = [
        {
            "apiVersion": "cluster.karmada.io/v1alpha1",
            "kind": "Cluster",
            "metadata": {"name": name},
            "spec": {"syncMode": "Pull", **{key: value for key, value in fields.items() if key != "pods"}},
            "status": {"resourceSummary": {"allocatable": {"pods": fields["pods"]}}},
        }
        for name, fields in clusters.items()
    ]
    metadata = {"name": "web", "namespace": "shop"}
    selector = {"apiVersion": "apps/v1", "kind": "Deployment"}
    placement = {"spreadConstraints": spreads, "replicaScheduling": scheduling}
    resources += [
        {
            "apiVersion": "policy.karmada.io/v1alpha1",
            "kind": "PropagationPolicy",
            "metadata": metadata,
            "spec": {"resourceSelectors": [selector], "placement": placement},
        },
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"replicas": 4}},
    ]
    config = {"karmada": {"spread": "strict" if strict else "upstream", "missingFacts": "assume"}}
    result = gitsched.schedule(resources, config=config)
    [binding] = [body for body in result.documents if body["kind"] == "ResourceBinding"]
    found = sorted((one["name"], one.get("replicas")) for one in binding["spec"].get("clusters", ()))
    return found or binding["status"]["conditions"][0]["message"]


def make_constraint(field: str, least: int, most: int) -> dict[str, Any]:
    return {"spreadByField": field, "minGroups": least, "maxGroups": most}


@pytest.mark.parametrize("field", ["zone", "provider"])
@pytest.mark.parametrize("seed", range(count_examples(20)))
def test_a_spread_by_another_field_is_that_by_region(seed: int, field: str) -> None:
    random = Random(seed)
    clusters = {f"c{number}": {"region": random.choice("xyz"), "pods": str(random.randrange(9))} for number in range(6)}
    renamed = {name: {field: fields["region"], "pods": fields["pods"]} for name, fields in clusters.items()}
    least = random.randrange(1, 4)
    rest = [make_constraint("cluster", random.randrange(1, 4), 6)]
    groups, scheduling = (least, least + random.randrange(2)), random.choice(SCHEDULING)
    expected = place(clusters, [make_constraint("region", *groups), *rest], scheduling, strict=False)
    found = place(renamed, [make_constraint(field, *groups), *rest], scheduling, strict=True)
    if isinstance(expected, str):
        expected = expected.replace("feasible region", f"feasible {field}")
    assert found == expected


def test_without_the_setting_zones_only_have_to_be_set() -> None:
    clusters = {
        "a": {"zone": "x", "pods": "9"},
        "b": {"zone": "x", "pods": "9"},
        "c": {"zone": "y", "pods": "9"},
        "d": {"pods": "9"},
    }
    spreads = [make_constraint("zone", 2, 2), make_constraint("cluster", 1, 2)]
    duplicated = SCHEDULING[0]
    assert place(clusters, spreads, duplicated, strict=False) == [("a", 4), ("b", 4)]
    assert place(clusters, spreads, duplicated, strict=True) == [("a", 4), ("c", 4)]


def test_several_fields_are_chosen_one_after_the_other() -> None:
    clusters = {
        "a": {"provider": "p", "region": "r", "zone": "x", "pods": "9"},
        "b": {"provider": "p", "region": "s", "zone": "y", "pods": "9"},
        "c": {"provider": "q", "region": "t", "zone": "z", "pods": "99"},
    }
    spreads = [make_constraint("provider", 1, 1), make_constraint("region", 2, 2), make_constraint("cluster", 2, 2)]
    assert place(clusters, spreads, SCHEDULING[0], strict=True) == [("a", 4), ("b", 4)]
    impossible = [make_constraint("provider", 2, 2), make_constraint("zone", 1, 1), make_constraint("cluster", 1, 1)]
    assert "fewer than spreadConstraint.MinGroups" in place(clusters, impossible, SCHEDULING[0], strict=True)
