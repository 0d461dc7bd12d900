"""Random histories in which policies preserve their workloads: nothing that a cluster had is deleted there by a tool that prunes, and what
the state of the last run gives is what a complete plan gives."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.scenarios import plain_histories
from tests.scenarios.conftest import Fleet
from tests.scenarios.plain_histories import CLUSTERS, PlainHistory
from tests.scenarios.test_incremental_plan import ThreeVariants
from tests.scenarios.test_preserved_moves import report
from tests.scenarios.test_preserved_workloads import PRESERVE, PruningTool
from tests.search_depth import DEEP, count_examples

pytestmark = pytest.mark.usefixtures("bugs_are_raised")

SETTINGS = (
    "  karmada: {preserveOnMove: true}\n",
    "  karmada: {taintEviction: true}\n",
    "  karmada: {preserveOnMove: true}\n  followTargets: true\n",
    "  karmada: {preserveOnMove: false}\n",
)
STEPS = 18 if DEEP else 7
HEAD = "refs/heads/resident"


@pytest.mark.search
@pytest.mark.parametrize("seed", range(count_examples(1)))
def test_nothing_that_is_preserved_is_deleted(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(plain_histories, "POLICY", plain_histories.POLICY.replace("spec:\n", f"spec:\n{PRESERVE}"))
    dice, more = Random(seed), SETTINGS[seed % len(SETTINGS)]
    history = PlainHistory(dice, lenient=True, overlap=dice.choice(("0s", "10m", "1h")), more=more)
    variants, tools, hour = ThreeVariants(fleet, tmp_path), {name: PruningTool("flux") for name in CLUSTERS}, 0.0
    fleet.commit(history.files)
    for step in range(STEPS):
        variants.run(hour, f"step {step}")
        directories = {path.split("/")[1] for path in fleet.files(HEAD) if path.startswith("clusters/")}
        for name, tool in tools.items():
            before = tool.objects.keys()
            if name in directories:
                tool.follow(fleet, name, HEAD)
            lost = {key for key in before - tool.objects.keys() if key[0] != "Namespace"}
            assert not lost or "preserveOnMove: true" not in more, f"step {step}: {name}"
        hour += dice.choice((0.1, 0.5, 3, 20))
        changes = dict(history.go_on())
        if seed % 2 and dice.random() < 0.3:
            commit = fleet.git("rev-parse", HEAD)
            changes["reports.yaml"] = "---\n".join(report(name, commit, hour) for name in CLUSTERS[:2])
        fleet.commit(changes, hour=hour)
