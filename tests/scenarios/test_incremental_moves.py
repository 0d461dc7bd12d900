"""Runs with renamed workloads, with health reports while copies stay, and with changes that are within the limits of the guard again are
planned from the last state."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from gitsched.reconcile.output import output_commit
from tests.search_depth import DEEP, count_examples

from .conftest import Fleet, cluster, deployment, policy
from .test_guard import labelled, select
from .test_incremental_plan import ThreeVariants
from .test_overlap import report

pytestmark = pytest.mark.usefixtures("bugs_are_raised")

NAMES = ("web", "shop", "store", "cart", "till", "desk")
OTHERS = ("hall", "lift", "door", "gate", "yard", "roof")
CLUSTERS = ("ash", "bru", "cph")
LIMITS = (
    "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec:\n"
    "  guard: {fleet: {%s}, namespace: {moved: 100, removed: 100}, cluster: {removed: 100}%s}\n"
)
FREEZES = ("", "", ", freeze: audit")
POLICIES = ("ash", "bru", "ash,bru", "nowhere")


def rename(former: str, name: str, replicas: int = 2) -> str:
    """Return a Deployment that continues another one."""
    annotated = f"  namespace: default\n  annotations: {{gitsched.io/renamed-from: default/{former}}}\n"
    return deployment(name, replicas).replace("  namespace: default\n", annotated)


def start(fleet: Fleet, *others: str) -> None:
    files = {f"{name}.yaml": deployment(name) for name in (*NAMES, *others)} | {f"{name}.yaml": cluster(name) for name in CLUSTERS}
    fleet.commit({**files, "policy.yaml": policy("ash")})


STEPS: tuple[dict[str, str | None], ...] = (
    {"web.yaml": rename("web", "page")},
    {"web.yaml": rename("page", "site"), "policy.yaml": policy("bru")},
    {"shop.yaml": rename("shop", "market"), "store.yaml": rename("shop", "mall")},
    {"cart.yaml": None, "till.yaml": rename("nothing", "counter")},
    {"desk.yaml": None},
    {"web.yaml": deployment("site", 3)},
)


def test_runs_with_renamed_workloads_are_incremental(fleet: Fleet, tmp_path: Path) -> None:
    start(fleet)
    variants = ThreeVariants(fleet, tmp_path)
    variants.run(0, "first")
    variants.run(0.5, "second")
    found = set()
    for step, changes in enumerate(STEPS):
        fleet.commit(changes, hour=1 + step)
        for hour in (1 + step, 1.3 + step):  # the overlap of ten minutes ends between them
            runs = variants.run(hour, f"step {step}")
            assert not any(run.plan.complete for run in runs), f"step {step}"
            found |= {finding.code for finding in runs[0].plan.findings}
    assert found >= {"renamed-from-unknown", "renamed-from-claimed"}


def test_runs_are_incremental_while_a_copy_waits_for_the_health_of_its_replacement(fleet: Fleet, tmp_path: Path) -> None:
    start(fleet)
    fleet.commit({"health.yaml": report(ash="Healthy")})
    variants, ends = ThreeVariants(fleet, tmp_path), []
    variants.run(0, "first")
    variants.run(0.5, "second")
    steps: tuple[dict[str, str | None], ...] = (
        {"policy.yaml": policy("bru")},
        {"web.yaml": deployment("web", 3)},
        {"health.yaml": report(ash="Healthy", bru="Unhealthy")},
        {"health.yaml": report(ash="Healthy", bru="Healthy")},
        {"notes.md": "nothing"},
        {"more.md": "nothing"},
    )
    for step, changes in enumerate(steps):
        fleet.commit(changes, hour=1 + step / 10)
        runs = variants.run(1 + step / 10, f"step {step}")
        assert not any(run.plan.complete for run in runs), f"step {step}"
        ends.append({copy.workload.name: copy.counted_from for copy in runs[0].plan.retained})
    assert ends[1]["web"] is None, "nothing is reported of bru"
    assert "web" not in ends[-1]


def test_withheld_changes_that_are_within_the_limits_again_are_planned_from_the_last_state(fleet: Fleet, tmp_path: Path) -> None:
    files: dict[str, str | None] = {f"moving/{n}.yaml": labelled(f"moving-{n}", "moving") for n in range(6)}
    files |= {f"leaving/{n}.yaml": labelled(f"leaving-{n}", "staying") for n in range(8)}
    files |= {"moving.yaml": select("moving", "ash"), "staying.yaml": select("staying", "bru")}
    fleet.commit({**files, "gitsched.yaml": LIMITS % ("moved: 30", ""), "ash.yaml": cluster("ash"), "bru.yaml": cluster("bru")})
    variants = ThreeVariants(fleet, tmp_path)
    variants.run(0, "first")
    variants.run(0.5, "second")
    steps: tuple[tuple[dict[str, str | None], int, int], ...] = (
        ({"gitsched.yaml": LIMITS % ("moved: 30", ", freeze: audit")}, 0, 0),
        ({"moving.yaml": select("moving", "bru"), **{f"leaving/{n}.yaml": None for n in range(4)}}, 0, 10),
        ({"gitsched.yaml": LIMITS % ("moved: 100", "")}, 6, 4),
        ({"gitsched.yaml": LIMITS % ("removed: 100", "")}, 4, 0),
    )
    for step, (changes, moved, withheld) in enumerate(steps, 1):
        fleet.commit(changes, hour=step)
        runs = variants.run(step, f"step {step}")
        assert not any(run.plan.complete for run in runs), f"step {step}"
        assert (len(runs[0].plan.moves), len(runs[0].plan.withheld.moves)) == (moved, withheld), f"step {step}"


@pytest.mark.search
@pytest.mark.parametrize("seed", range(count_examples(1)))
def test_histories_with_renamed_and_withheld_workloads_equal_complete_plans(
    fleet: Fleet, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_commit, "MAX_UNSTABLE", 0)  # as in a large source
    dice, hour, incremental = Random(seed), 0.0, 0
    start(fleet, *OTHERS)
    variants = ThreeVariants(fleet, tmp_path)
    variants.run(0, "first")
    names = {name: name for name in NAMES}
    for step in range(10):
        changes: dict[str, str | None] = {}
        for file in dice.sample(NAMES, dice.choice((1, 1, 2, 5))):
            former = names.get(file) or dice.choice(NAMES)
            names[file] = dice.choice((former, f"{former[:20]}-{step}", ""))
            kind = dice.choice((former, former, former, dice.choice(NAMES), "nothing"))
            replicas = dice.choice((1, 2, 2, 9))
            text = rename(kind, names[file], replicas) if seed % 2 else deployment(names[file], replicas)
            text = text if names[file] else None
            if text or (fleet.path / f"{file}.yaml").exists():
                changes[f"{file}.yaml"] = text
        for path, chance, text in (
            ("policy.yaml", 0.3, policy(dice.choice(POLICIES), scheduling=dice.choice(("Divided", "Duplicated")))),
            ("ash.yaml", 0.1, cluster("ash", dice.choice(("power:NoExecute", "")))),
            ("gitsched.yaml", 0.3, LIMITS % (dice.choice(("removed: 20", "moved: 30", "moved: 100")), dice.choice(FREEZES))),
            ("health.yaml", 0.2, report(ash="Healthy", bru=dice.choice(("Healthy", "Unhealthy")))),
        ):
            changes |= {path: text} if dice.random() < chance else {}
        hour += dice.choice((0.1, 0.3, 1))
        fleet.commit(changes, hour=hour)
        runs = variants.run(hour, f"step {step}")
        incremental += sum(not run.plan.complete for run in runs)
    assert incremental or DEEP, "a history with few findings has incremental plans"
