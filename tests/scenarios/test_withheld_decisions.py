"""While the guard withholds what a Placement decided, its records stay as they were, and other commits are planned from the last state."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.builders.ocm import (
    PLACEMENT_ANNOTATION,
    add_on,
    addon_scores,
    bound_global_set,
    label_predicate,
    managed_cluster,
    placement,
    to_yaml,
)
from tests.search_depth import DEEP, list_variants

from .conftest import Fleet
from .tenant_histories import TENANT
from .test_incremental_plan import ThreeVariants

pytestmark = pytest.mark.usefixtures("bugs_are_raised")
SPACES, CLUSTERS = ("blue", "red"), ("ams", "bru", "cph", "del", "ein")
APPS, STEPS = 8, 12


def follower(name: str, space: str, release: int, chosen: str = "one") -> str:
    metadata = {"name": name, "namespace": space, "annotations": {PLACEMENT_ANNOTATION: chosen}}
    return to_yaml({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"release": str(release)}})


class PlacementHistory:
    """Commits to a repository in which two namespaces have Placements that many objects follow, of tenants if there are any."""

    def __init__(self, dice: Random, *, tenants: bool) -> None:
        self._dice, self._release = dice, 0
        sets = [document for space in SPACES for document in bound_global_set(space)]
        self.files: dict[str, str | None] = {"sets.yaml": to_yaml(*{str(one): one for one in sets}.values())}
        self.files |= {f"clusters/{name}.yaml": self._write_cluster(name) for name in CLUSTERS}
        for space in SPACES:
            self.files |= {f"{space}/one.yaml": self.place(space, "one", "a"), f"{space}/two.yaml": self.place(space, "two", "b")}
            self.files |= {f"{space}/{number}.yaml": follower(f"app-{number}", space, 0) for number in range(APPS)}
            if tenants:
                self.files[f"tenants/{space}.yaml"] = TENANT % (space, space, space, space, space, space, "")

    def _write_cluster(self, name: str) -> str:
        zone = "ab"[CLUSTERS.index(name) % 2] if self._dice.random() < 0.8 else self._dice.choice("ab")
        return to_yaml(managed_cluster(name, {"zone": zone}), addon_scores(name, {"cpu": self._dice.randrange(100)}))

    def place(self, space: str, name: str, zone: str = "") -> str:
        number = self._dice.choice((1, 1, 2, None))
        return to_yaml(
            placement(name, space, number, [add_on("cpu")], predicates=[label_predicate(zone=zone or self._dice.choice("ab"))])
        )

    def go_on(self) -> dict[str, str | None]:
        """Return the changes of the next commit."""
        dice, files = self._dice, dict[str, str | None]()
        space, number, chance = dice.choice(SPACES), dice.randrange(APPS), dice.random()
        self._release += 1
        if chance < 0.3:
            files = {f"{space}/one.yaml": self.place(space, "one")}
        elif chance < 0.55:
            files = {f"{space}/{number}.yaml": follower(f"app-{number}", space, self._release, dice.choice(("one", "one", "two")))}
        elif chance < 0.7:
            files = {f"{space}/{one}.yaml": None for one in dice.sample(range(APPS), dice.choice((1, 1, 6)))}
        elif chance < 0.85:
            name = dice.choice(CLUSTERS)
            files = {f"clusters/{name}.yaml": self._write_cluster(name)}
        elif chance < 0.9:
            files = {f"{space}/two.yaml": self.place(space, "two")}
        elif chance < 0.95:
            files = {f"{space}/one.yaml": None}
        changed = {path: text for path, text in files.items() if text != self.files.get(path)}
        self.files |= changed
        return changed


@pytest.mark.search
@pytest.mark.parametrize("seed", range(400) if DEEP else list_variants((8, 13), (13,)))
def test_commits_beside_withheld_decisions_are_planned_from_the_state(fleet: Fleet, tmp_path: Path, seed: int) -> None:
    dice, beside = Random(f"runs {seed}"), 0
    history = PlacementHistory(Random(seed), tenants=seed % 2 == 1)
    fleet.commit(history.files)
    variants = ThreeVariants(fleet, tmp_path)
    runs = variants.run(0, "first")
    for step in range(1, STEPS + 1):
        digest, files = runs[0].plan.withheld.digest, history.go_on()
        message = f"Change\n\nGitsched-Allow: {digest}" if digest and dice.random() < 0.25 else "Change"
        fleet.commit({**files, "README.md": str(step)}, hour=step, message=message)
        runs = variants.run(step, f"step {step}: {sorted(files)}")
        beside += all(run.plan.withheld.moves and not run.plan.complete for run in runs)
    assert beside or DEEP
