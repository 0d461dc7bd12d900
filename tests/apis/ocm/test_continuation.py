"""An engine that continues with changed documents decides as a new one, and decides only what a change can affect."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gitsched.apis.gitsched.config import Config
from tests.apis.continuation import World, run_history
from tests.builders.ocm import (
    Body,
    add_on,
    addon_scores,
    binding,
    built_in,
    cluster_set,
    global_set,
    label_predicate,
    managed_cluster,
    placed_config_map,
    placement,
    taint,
)
from tests.search_depth import count_examples

NAMES = ("m1", "m2", "m3", "m4", "m5", "m6")


def add(world: World, body: Body) -> None:
    metadata = body["metadata"]
    world[body["kind"], metadata.get("namespace", ""), metadata["name"]] = body


class WorldBuilder:
    """Makes and changes random worlds."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice

    def make(self, kind: str) -> Body:
        dice = self.dice
        match kind:
            case "ManagedCluster":
                labels = {label: dice.choice("ab") for label in ("env", "tier", "unread") if dice.random() < 0.7}
                taints = (
                    [taint("full", dice.choice(("NoSelect", "NoSelectIfNew", "PreferNoSelect")))] if dice.random() < 0.3 else []
                )
                found = managed_cluster(
                    dice.choice(NAMES), labels, taints, cluster_set=dice.choice(("", "one")), claims={"zone": dice.choice("xy")}
                )
                if dice.random() < 0.3:
                    condition = {"type": "ManagedClusterConditionAvailable", "status": dice.choice(("True", "False", "Unknown"))}
                    found["status"]["conditions"] = [condition]
                return found
            case "AddOnPlacementScore":
                valid = dice.choice(("", "2026-01-01T00:12:00Z"))
                return addon_scores(dice.choice(NAMES), {"cpu": dice.randint(-100, 100)}, valid_until=valid)
            case "ManagedClusterSetBinding":
                return binding(dice.choice(("global", "one")), dice.choice(("default", "other")))
            case "ManagedClusterSet":
                return cluster_set("one")
            case "Placement":
                return self.make_placement()
            case "Service":
                labels = {"app": dice.choice("xy")}
                return {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "metadata": {"name": "front", "namespace": "default"},
                    "spec": {"selector": labels},
                }
        namespace = dice.choice(("default", "other"))
        made = placed_config_map(f"{namespace}-{dice.randint(1, 5)}", namespace, dice.choice(("p1", "p2", "p3", "default/p1")))
        return {**made, "data": {"a": dice.choice("12")}}

    def make_placement(self) -> Body:
        dice = self.dice
        spec: dict[str, Any] = {}
        if dice.random() < 0.5:
            spec["predicates"] = [label_predicate(**{dice.choice(("env", "tier")): dice.choice("ab")})]
        if dice.random() < 0.3:
            spec["clusterSets"] = [dice.choice(("global", "one"))]
        if dice.random() < 0.3:
            spec["tolerations"] = [
                {"key": "full", "operator": "Exists", **({"tolerationSeconds": 120} if dice.random() < 0.5 else {})}
            ]
        if dice.random() < 0.2:
            spec["spreadPolicy"] = {
                "spreadConstraints": [
                    {"topologyKey": "env", "topologyKeyType": "Label", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
                ]
            }
        if dice.random() < 0.2:
            spec["decisionStrategy"] = {"groupStrategy": {"clustersPerDecisionGroup": 1}}
        scores = [built_in("Steady", 2), built_in("Balance"), add_on("cpu")]
        prioritizers = dice.choice((None, dice.sample(scores, dice.randint(1, 3))))
        return placement(
            dice.choice(("p1", "p2", "p3")), dice.choice(("default", "other")), dice.choice((None, 1, 2)), prioritizers, **spec
        )

    KINDS = {
        "ManagedCluster": 6,
        "AddOnPlacementScore": 3,
        "ManagedClusterSetBinding": 3,
        "Placement": 4,
        "ConfigMap": 9,
        "Service": 1,
    }

    def build(self) -> World:
        world = World()
        add(world, global_set())
        add(world, cluster_set("one"))
        for kind, count in self.KINDS.items():
            for _ in range(self.dice.randint(count // 2, count)):
                add(world, self.make(kind))
        return world

    def change(self, world: World) -> None:
        """Add, replace or remove one to three documents."""
        for _ in range(self.dice.choice((1, 1, 2, 3))):
            kind = self.dice.choice((*self.KINDS, "ManagedClusterSet"))
            known = [key for key in sorted(world) if key[0] == kind]
            if known and self.dice.random() < 0.3:
                del world[self.dice.choice(known)]
            else:
                add(world, self.make(kind))


def play(seed: int, steps: int) -> tuple[int, int]:
    builder = WorldBuilder(Random(seed))
    return run_history(builder.build(), Config(), builder.change, steps)


@settings(max_examples=count_examples(3))
@given(st.integers(0, 1 << 32))
def test_any_change(seed: int) -> None:
    play(seed, 4)
