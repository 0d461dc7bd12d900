"""Workloads that divide scarce capacity get the same from every run while the guard withholds it, whatever else changes meanwhile."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from gitsched.reconcile.output import output_commit
from gitsched.reconcile.run import RunResult
from tests.search_depth import DEEP

from .conftest import Fleet
from .scarce_histories import APPS, ScarceHistory
from .test_incremental_plan import ThreeVariants
from .test_shared_capacity import AGGREGATED, BY_CAPACITY, cluster, deployment, policy

pytestmark = pytest.mark.usefixtures("bugs_are_raised")


@pytest.mark.parametrize("way", [AGGREGATED, BY_CAPACITY], ids=["Aggregated", "dynamicWeight"])
def test_what_is_withheld_is_divided_alike_until_it_is_allowed(fleet: Fleet, tmp_path: Path, way: str) -> None:
    history = ScarceHistory(Random(0))
    history.files |= {f"scarce/{name}.yaml": cluster(name, cpu=cpu) for name, cpu in (("ams", 90), ("bru", 110), ("cph", 70))}
    history.files |= {f"{space}/policy.yaml": policy(way).replace("shop", space) for space in ("shop", "other")}
    fleet.commit({path: text for path, text in history.files.items() if text})
    variants = ThreeVariants(fleet, tmp_path)
    variants.run(0, "first")
    variants.run(0.5, "second")
    changes = (
        history.scale("shop", 60),
        {"other/0.yaml": str(history.files["other/0.yaml"]).replace("image: ", "image: new/")},
        {},
        {"other/1.yaml": str(history.files["other/1.yaml"]).replace("image: ", "image: new/")},
        {"README.md": "nothing"},
    )
    runs = []
    for step, files in enumerate(changes, 1):
        if files:
            fleet.commit(files, hour=step)
        runs.append(variants.run(step, f"step {step}")[0])
    digests = [run.plan.withheld.digest for run in runs]
    waiting = len(runs[0].plan.withheld.moves)
    assert waiting > APPS / 2
    assert len(set(digests)) == 1
    assert not any(run.plan.complete for run in runs)
    assert [run.after is not None for run in runs] == [True, True, False, True, False]
    fleet.commit({"README.md": "approved"}, hour=9, message=f"Approve\n\nGitsched-Allow: {digests[0]}")
    approved = variants.run(9, "approved")[0].plan
    assert len(approved.moves) == waiting
    assert not approved.withheld.moves


@pytest.mark.parametrize("together", [False, True], ids=["later", "with the removal"])
def test_workloads_whose_removal_is_withheld_take_capacity(fleet: Fleet, tmp_path: Path, together: bool) -> None:
    """Six workloads that request 9 of 10 cpu in ams leave the source; then 8 replicas divide what is free."""
    old = {f"old/{number}.yaml": deployment(f"old-{number}", 1, "cpu: 1500m") for number in range(6)}
    new = {"new.yaml": deployment("new", 8).replace("shop", "other")}
    everywhere = {"clusters.yaml": cluster("ams", cpu=10) + cluster("bru", cpu=10), "policy.yaml": policy(BY_CAPACITY)}
    everywhere["other.yaml"] = policy(BY_CAPACITY).replace("shop", "other")
    fleet.commit({**everywhere, "clusters.yaml": cluster("ams", cpu=10), **old})
    variants = ThreeVariants(fleet, tmp_path)
    variants.run(0, "ams alone")
    fleet.commit(everywhere, hour=1)
    variants.run(1, "both clusters")
    removal: dict[str, str | None] = dict.fromkeys(old)
    fleet.commit({**removal, **new} if together else removal, hour=2)
    runs = variants.run(2, "removal")
    if not together:
        fleet.commit(new, hour=3)
        runs = variants.run(3, "addition")
    fleet.commit({"README.md": "nothing"}, hour=4)
    for run in (*runs, *variants.run(4, "nothing")):
        plan = run.plan
        assert len(plan.withheld.moves) == len(old)
        (placed,) = (outcome.replicas_by_cluster for key, outcome in plan.outcomes.items() if key.name == "new")
        assert placed == {"ams": 1, "bru": 7}
        assert list_cpu(run) == {"ams": 10_000, "bru": 7_000}
    fleet.commit({"README.md": "approved"}, hour=5, message=f"Approve\n\nGitsched-Allow: {runs[0].plan.withheld.digest}")
    for run in variants.run(5, "approved"):
        assert list_cpu(run) == {"ams": 1_000, "bru": 7_000}


def list_cpu(run: RunResult) -> dict[str, int]:
    """Return what workloads request of each cluster, in thousandths of a cpu."""
    return {name: amounts["cpu"] for name, amounts in run.plan.totals.capacity.requested.items()}


@pytest.mark.search
@pytest.mark.parametrize("seed", range(300) if DEEP else (7,))
def test_random_histories_of_scarce_capacity(fleet: Fleet, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_commit, "MAX_UNSTABLE", 0)  # as in a large source
    dice, hour, withheld, message = Random(f"runs {seed}"), 0.0, [""], "Change"
    history = ScarceHistory(Random(seed))
    fleet.commit({path: text for path, text in history.files.items() if text})
    variants = ThreeVariants(fleet, tmp_path)
    variants.run(0, "first")
    for step in range(12 if DEEP else 8):
        hour += dice.choice((0.1, 0.6, 2))
        if dice.random() < 0.15 and withheld[-1]:
            message = f"Approve\n\nGitsched-Allow: {withheld[-1]}"
        changes = history.go_on() if dice.random() < 0.9 else {}
        fleet.commit(changes, hour=hour, message=message)
        runs = variants.run(hour, f"step {step}")
        withheld.append(runs[0].plan.withheld.digest)
        variants.run(hour, f"step {step} again")  # decides again what others have left no capacity for
        message = "Change"
    assert any(withheld) or DEEP
