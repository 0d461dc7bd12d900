"""Runs in which workloads continue others under a new name, and in which clusters report their health, are planned from the last state."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from gitsched.reconcile.output import output_commit
from tests.search_depth import count_examples

from .conftest import Fleet, cluster, deployment, policy
from .test_incremental_plan import ThreeVariants
from .test_overlap import report

pytestmark = pytest.mark.usefixtures("bugs_are_raised")

NAMES = ("web", "shop", "store", "cart", "till", "desk")
CLUSTERS = ("ash", "bru", "cph")
GUARD = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {guard: {fleet: {removed: %d}}}\n"
POLICIES = ("ash", "bru", "ash,bru", "nowhere")


def rename(former: str, name: str, replicas: int = 2) -> str:
    """Return a Deployment that continues another one."""
    annotated = f"  namespace: default\n  annotations: {{gitsched.io/renamed-from: default/{former}}}\n"
    return deployment(name, replicas).replace("  namespace: default\n", annotated)


def start(fleet: Fleet) -> None:
    files = {f"{name}.yaml": deployment(name) for name in NAMES} | {f"{name}.yaml": cluster(name) for name in CLUSTERS}
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


@pytest.mark.search
@pytest.mark.parametrize("seed", range(count_examples(1)))
def test_histories_with_renamed_workloads_equal_complete_plans(
    fleet: Fleet, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_commit, "MAX_UNSTABLE", 0)  # as in a large source
    dice, hour, incremental = Random(seed), 0.0, 0
    start(fleet)
    variants = ThreeVariants(fleet, tmp_path)
    variants.run(0, "first")
    names = {name: name for name in NAMES}
    for step in range(10):
        changes: dict[str, str | None] = {}
        for file in dice.sample(NAMES, dice.choice((1, 1, 2, 5))):
            former = names.get(file) or dice.choice(NAMES)
            names[file] = dice.choice((former, f"{former[:20]}-{step}", ""))
            kind = dice.choice((former, former, former, dice.choice(NAMES), "nothing"))
            text = rename(kind, names[file], dice.choice((1, 2, 2, 9))) if names[file] else None
            if text is not None or (fleet.path / f"{file}.yaml").exists():
                changes[f"{file}.yaml"] = text
        for path, chance, text in (
            ("policy.yaml", 0.3, policy(dice.choice(POLICIES), scheduling=dice.choice(("Divided", "Duplicated")))),
            ("ash.yaml", 0.1, cluster("ash", dice.choice(("power:NoExecute", "")))),
            ("gitsched.yaml", 0.1, GUARD % dice.choice((20, 100))),
            ("health.yaml", 0.2, report(ash="Healthy", bru=dice.choice(("Healthy", "Unhealthy")))),
        ):
            changes |= {path: text} if dice.random() < chance else {}
        hour += dice.choice((0.1, 0.3, 1))
        fleet.commit(changes, hour=hour)
        runs = variants.run(hour, f"step {step}")
        incremental += sum(not run.plan.complete for run in runs)
    assert incremental
