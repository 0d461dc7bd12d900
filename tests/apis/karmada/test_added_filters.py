"""An engine that continues with changed Clusters decides as a new one, whatever a filter reads that a program has added."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitsched.apis.gitsched.config import parse_config
from gitsched.schedule import fleet
from gitsched.schedule.plugins import register_filter
from tests.apis.continuation import World, check_changes, check_step, run_history, settle
from tests.apis.karmada.added_filters import MASKS, AddedFilter
from tests.apis.karmada.test_continuation import SETTINGS, document, make_builder
from tests.search_depth import count_examples

DIVIDED = {"replicaSchedulingType": "Divided"}
WEIGHTS = [
    {"targetCluster": {"labelSelector": {"matchLabels": {"tier": "a"}}}, "weight": 2},
    {"targetCluster": {"labelSelector": {"matchLabels": {"tier": "b"}}}, "weight": 1},
]
PLACEMENTS: dict[str, dict[str, Any]] = {
    "anywhere": {},
    "duplicated": {"clusterAffinity": {"labelSelector": {"matchLabels": {"env": "a"}}}},
    "static": {
        "replicaScheduling": {**DIVIDED, "replicaDivisionPreference": "Weighted", "weightPreference": {"staticWeightList": WEIGHTS}}
    },
    "dynamic": {
        "replicaScheduling": {
            **DIVIDED,
            "replicaDivisionPreference": "Weighted",
            "weightPreference": {"dynamicWeight": "AvailableReplicas"},
        }
    },
    "aggregated": {"replicaScheduling": {**DIVIDED, "replicaDivisionPreference": "Aggregated"}},
    "spread": {
        "spreadConstraints": [
            {"spreadByField": "region", "minGroups": 1, "maxGroups": 2},
            {"spreadByField": "cluster", "minGroups": 1, "maxGroups": 2},
        ]
    },
    "groups": {
        "clusterAffinities": [
            {"affinityName": "first", "labelSelector": {"matchLabels": {"env": "none"}}},
            {"affinityName": "second", "labelSelector": {"matchLabels": {"tier": "b"}}},
            {"affinityName": "third"},
        ]
    },
}


def make_cluster(name: str, env: str, tier: str, region: str, cpu: str, **more: Any) -> tuple[tuple[str, str, str], Any]:
    spec = {"syncMode": "Push", "region": region, "provider": "p1", **more}
    status = {
        "apiEnablements": [
            {"groupVersion": "apps/v1", "resources": [{"kind": "Deployment"}]},
            {"groupVersion": "v1", "resources": [{"kind": "ConfigMap"}]},
        ],
        "resourceSummary": {"allocatable": {"cpu": cpu, "pods": "50"}, "allocated": {"cpu": "1"}},
    }
    return document("Cluster", name, spec=spec, status=status, metadata={"labels": {"env": env, "tier": tier, "unread": "a"}})


def make_world() -> World:
    """Return four clusters, and for each placement a policy with a Deployment and a ConfigMap."""
    made = [
        make_cluster("c1", "a", "a", "r1", "8"),
        make_cluster("c3", "a", "b", "r1", "4"),
        make_cluster("c5", "b", "a", "r2", "8"),
        make_cluster("c7", "b", "b", "r2", "2"),
    ]
    for name, placement in PLACEMENTS.items():
        labels = {"app": name}
        selectors = [
            {"apiVersion": version, "kind": kind, "labelSelector": {"matchLabels": labels}}
            for version, kind in (("apps/v1", "Deployment"), ("v1", "ConfigMap"))
        ]
        made.append(document("PropagationPolicy", name, "default", spec={"resourceSelectors": selectors, "placement": placement}))
        container = {"name": "main", "image": "web", "resources": {"requests": {"cpu": "100m"}}}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
        made.append(document("Deployment", name, "default", metadata={"labels": labels}, spec=spec))
        made.append(document("ConfigMap", name, "default", metadata={"labels": labels}, data={"a": "1"}))
    return dict(made)


def list_edits(world: World) -> Iterator[World]:
    """Yield the world with one Cluster edited in one place, added or removed."""

    def edit(name: str, part: str, **changed: Any) -> World:
        key = ("Cluster", "", name)
        return {**world, key: {**world[key], part: {**world[key][part], **changed}}}

    yield edit("c1", "metadata", labels={"env": "a", "tier": "b", "unread": "a"})
    yield edit("c7", "metadata", labels={"env": "b", "tier": "c", "unread": "a"})
    yield edit("c3", "metadata", labels={"env": "a", "tier": "b", "unread": "b", "more": "b"})
    for effect in ("NoSchedule", "NoExecute"):
        yield edit("c1", "spec", taints=[{"key": "full", "effect": effect}])
    for name, region, cpu in (("c7", "r1", "1"), ("c1", "r2", "8500m")):
        yield edit(name, "spec", region=region, provider="")
        yield edit(name, "status", resourceSummary={"allocatable": {"cpu": "9", "pods": "50"}, "allocated": {"cpu": cpu}})
    yield edit("c3", "status", apiEnablements=[])
    for name in ("c1", "c7"):
        yield {key: body for key, body in world.items() if key[2] != name}
    for name in ("c0", "c9"):
        yield {**world, **dict([make_cluster(name, "a", "b", "r1", "64")])}


@pytest.fixture(autouse=True)
def only_built_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "FILTERS", fleet.FILTERS)


@pytest.mark.parametrize(
    "name", [None, *sorted(MASKS)[:5], *(pytest.param(name, marks=pytest.mark.long) for name in sorted(MASKS)[5:])]
)
def test_an_added_filter_decides_about_changed_clusters(name: str | None) -> None:
    """With a filter that needs the request of each workload, those are decided again for which the scheduler is called."""
    if name is not None:
        register_filter(AddedFilter(name, MASKS[name]))
    world, config, again, edits = make_world(), parse_config({}), 0, 0
    base = settle(world, config)
    for other in list_edits(world):
        _, decided = check_step(base, other, config, 10, stored=True)
        assert decided is not None, "an engine continues with other Clusters"
        again, edits = again + len(decided), edits + 1
    assert again < edits * 2 * len(PLACEMENTS)


def play(seed: int, names: list[str], steps: int) -> tuple[int, int]:
    """Play a history of changes, and single changes of its first world, with some filters added."""
    dice = Random(seed)
    config = parse_config({"karmada": dice.choice(SETTINGS)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fleet, "FILTERS", fleet.FILTERS)
        for name in names:
            register_filter(AddedFilter(name, MASKS[name]))
        builder = make_builder(dice)
        world = builder.build()
        single = check_changes(world, config, builder.change_one, steps)
        continued = run_history(world, config, builder.change, steps)
    return single[0] + continued[0], single[1] + continued[1]


@settings(max_examples=count_examples(4))
@given(st.integers(0, 1 << 32), st.lists(st.sampled_from(sorted(MASKS)), min_size=1, max_size=3, unique=True))
def test_a_history_with_several_added_filters(seed: int, names: list[str]) -> None:
    play(seed, names, 3)


def test_the_filter_that_rejects_a_cluster_is_named() -> None:
    register_filter(AddedFilter("Label", MASKS["Label"]))
    step = settle(make_world(), parse_config({}))
    engine = step.decisions.engines[0]
    template = next(one for key, one in step.decisions.templates.items() if key.kind == "Deployment" and key.name == "anywhere")
    assert [result.name for result in engine.evaluate_candidates(template) if not result.eligible] == ["c3", "c7"]
    proposal = engine.propose(template, "c3")
    assert proposal.change.text == "the filter Label let it pass"
    assert proposal.document is None
