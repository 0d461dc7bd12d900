"""Changed Rollouts, and changed policies that a Rollout selects, are planned from the state of the last run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.conftest import Fleet, cluster, deployment, policy

pytestmark = pytest.mark.usefixtures("bugs_are_raised")

WAVES = """\
apiVersion: gitsched.io/v1alpha1
kind: Rollout
metadata: {name: waves}
spec:
  resourceSelectors: [{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, name: all}]
  rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1}}
"""
OTHER = WAVES.replace("name: all", "name: other")
CHANGES = {
    "a policy that the Rollout selects": {"policy.yaml": policy("two,three")},
    "the strategy of the Rollout": {"waves.yaml": WAVES.replace("maxConcurrency: 1", "maxConcurrency: 2")},
    "the policy goes": {"policy.yaml": None},
}


WAITING = {"a policy that the Rollout selects"}
"""Changes that wait for a wave: copies elsewhere may have to stay, which only a complete plan can tell."""


def test_policies_of_a_rollout_and_its_strategy_change(fleet: Fleet, tmp_path: Path) -> None:
    clusters = {f"{name}.yaml": cluster(name) for name in ("one", "two", "three")}
    fleet.commit({**clusters, "policy.yaml": policy("one,two"), "web.yaml": deployment("web"), "waves.yaml": WAVES})
    fleet.reconcile()
    for hour, (change, files) in enumerate(CHANGES.items(), 1):
        fleet.commit(files, hour=hour)
        whole, found = fleet.preview(hour, cache=tmp_path / "none"), fleet.reconcile(hour)
        assert (whole.plan.complete, found.plan.complete) == (True, change in WAITING), change
        plans = [(one.tree, one.plan.rollouts, one.plan.rollout_records, one.plan.findings) for one in (whole, found)]
        assert plans[0] == plans[1], change
        assert bool(found.plan.rollouts) == ("policy.yaml" not in files or bool(files["policy.yaml"])), change


def test_a_rollout_that_selects_others_is_a_complete_plan(fleet: Fleet) -> None:
    fleet.commit({"one.yaml": cluster("one"), "policy.yaml": policy(""), "web.yaml": deployment("web"), "waves.yaml": WAVES})
    fleet.reconcile()
    fleet.commit({"waves.yaml": OTHER}, hour=1)
    assert fleet.reconcile(1).plan.complete
