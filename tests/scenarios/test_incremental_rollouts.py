"""Changed Rollouts, and changed documents that a Rollout selects, are planned from the state of the last run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

import pytest

from gitsched.reconcile.run import RunResult
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
CHANGES: dict[str, Mapping[str, str | None]] = {
    "a policy that the Rollout selects": {"policy.yaml": policy("two,three")},
    "the strategy of the Rollout": {"waves.yaml": WAVES.replace("maxConcurrency: 1", "maxConcurrency: 2")},
    "the policy goes": {"policy.yaml": None},
}
WAITING = {"a policy that the Rollout selects"}
"""Changes that wait for a wave: copies elsewhere may have to stay, which only a complete plan can tell."""


def show(run: RunResult) -> tuple[object, ...]:
    return run.tree, run.plan.rollouts, run.plan.rollout_records, run.plan.findings


def test_policies_of_a_rollout_and_its_strategy_change(fleet: Fleet, tmp_path: Path) -> None:
    clusters = {f"{name}.yaml": cluster(name) for name in ("one", "two", "three")}
    fleet.commit({**clusters, "policy.yaml": policy("one,two"), "web.yaml": deployment("web"), "waves.yaml": WAVES})
    fleet.reconcile()
    for hour, (change, files) in enumerate(CHANGES.items(), 1):
        fleet.commit(files, hour=hour)
        whole, found = fleet.preview(hour, cache=tmp_path / "none"), fleet.reconcile(hour)
        assert (whole.plan.complete, found.plan.complete) == (True, change in WAITING), change
        assert show(whole) == show(found), change
        assert bool(found.plan.rollouts) == ("policy.yaml" not in files or bool(files["policy.yaml"])), change


SELECTIONS: dict[str, tuple[Mapping[str, str | None], list[str]]] = {
    "the Rollout selects others": ({"waves.yaml": OTHER}, ["rollout-selects-nothing"]),
    "a second one selects everything": (
        {"waves.yaml": WAVES, "more.yaml": WAVES.replace("name: waves", "name: more")},
        ["rollout-overlap", "rollout-selects-nothing", "rollout-without-reports"],
    ),
    "the first one goes": ({"waves.yaml": None}, ["rollout-without-reports"]),
    "none is left": ({"more.yaml": None}, []),
}


def test_rollouts_that_come_go_and_select_others(fleet: Fleet, tmp_path: Path) -> None:
    fleet.commit({"one.yaml": cluster("one"), "policy.yaml": policy(""), "web.yaml": deployment("web"), "waves.yaml": WAVES})
    fleet.reconcile()
    for hour, (change, (files, codes)) in enumerate(SELECTIONS.items(), 1):
        fleet.commit(files, hour=hour)
        whole, found = fleet.preview(hour, cache=tmp_path / "none"), fleet.reconcile(hour)
        assert (whole.plan.complete, found.plan.complete) == (True, False), change
        assert show(whole) == show(found), change
        assert sorted(one.code for one in found.plan.findings if one.code.startswith("rollout-")) == codes, change


OVERLAPPING = {
    "a": "{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {tier: front}}}",
    "b": "{apiVersion: apps/v1, kind: Deployment, namespace: default, name: api}",
    "c": "{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchExpressions: [{key: tier, operator: In, values: [back, front]}]}}",
    "d": "{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchExpressions: [{key: tier, operator: NotIn, values: [back]}]}}",
    "e": "{apiVersion: batch/v1, kind: Job}",
}
OVERLAPS = (
    ({"api": "back", "docs": "none", "web": "front"}, ["a and c: web", "a and d: web", "b and c: api"]),
    ({"api": "front"}, ["a and b: api", "a and c: api, web", "a and d: api, web"]),
    ({"web": "back"}, ["a and b: api", "a and c: api", "a and d: api"]),
    ({"api": "none", "web": "none"}, ["b and d: api"]),
)


def test_rollouts_that_select_the_same_workloads_by_names_labels_and_expressions(fleet: Fleet, tmp_path: Path) -> None:
    selects = "resourceSelectors: [{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, name: all}]"
    rollouts = (WAVES.replace("waves", name).replace(selects, f"resourceSelectors: [{one}]") for name, one in OVERLAPPING.items())
    fleet.commit({"one.yaml": cluster("one"), "policy.yaml": policy(""), "rollouts.yaml": "---\n".join(rollouts)})
    fleet.reconcile()
    for hour, (tiers, overlaps) in enumerate(OVERLAPS, 1):
        labelled = {
            name: deployment(name).replace("spec:", f"  labels: {{tier: {tier}}}\nspec:", 1) for name, tier in tiers.items()
        }
        fleet.commit({f"{name}.yaml": text for name, text in labelled.items()}, hour=hour)
        whole, found = fleet.preview(hour, cache=tmp_path / "none"), fleet.reconcile(hour)
        assert (whole.plan.complete, found.plan.complete) == (True, False), hour
        assert show(whole) == show(found), hour
        shared = [one.message.partition(": ")[0] for one in found.plan.findings if one.code == "rollout-overlap"]
        shared = [one.removeprefix("the Rollouts ").replace("Deployment.apps/default/", "") for one in shared]
        assert sorted(one.replace(" both select ", ": ") for one in shared) == overlaps, hour


def test_the_first_rollout_is_a_complete_plan(fleet: Fleet) -> None:
    """What Rollouts read of workloads is in the state of a plan only where there are any."""
    fleet.commit({"one.yaml": cluster("one"), "policy.yaml": policy(""), "web.yaml": deployment("web")})
    fleet.reconcile()
    fleet.commit({"waves.yaml": WAVES}, hour=1)
    steps: list[str] = []
    assert fleet.reconcile(1, progress=lambda step, _done, _total: steps.append(step)).plan.complete
    assert "planning everything, because the first Rollout comes" in steps


NAMES = ("api", "job", "web")
SELECTORS = (
    "[{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, labelSelector: {matchLabels: {tier: front}}}]",
    "[{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchExpressions: [{key: tier, operator: NotIn, values: [back]}]}}]",
    "[{apiVersion: v1, kind: ConfigMap}]",
    *(f"[{{apiVersion: apps/v1, kind: Deployment, name: {name}}}]" for name in NAMES),
    *(f"[{{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, name: {name}}}]" for name in NAMES),
)


class SelectionHistory:
    """Commits that change what Rollouts select: directly, by a policy, and as a ConfigMap that a workload brings along."""

    def __init__(self, fleet: Fleet, dice: Random) -> None:
        self.fleet, self.dice = fleet, dice
        files = {f"clusters/{name}.yaml": cluster(name) for name in ("one", "two", "three")}
        files |= {f"apps/{name}.yaml": self._write_workload(name) for name in NAMES}
        files |= {f"policies/{name}.yaml": self._write_policy(name) for name in NAMES}
        files |= {f"config/{name}.yaml": self._write_config(name) for name in NAMES}
        fleet.commit({**files, **{f"rollouts/{name}.yaml": self._write_rollout(name) for name in ("first", "second")}})

    def change(self, hour: float) -> None:
        actions: list[Callable[[], dict[str, str | None]]] = [
            lambda: {f"apps/{(name := self.dice.choice(NAMES))}.yaml": self._write_workload(name)},
            lambda: {f"policies/{(name := self.dice.choice(NAMES))}.yaml": self._write_policy(name)},
            lambda: {f"config/{(name := self.dice.choice(NAMES))}.yaml": self._write_config(name)},
            lambda: {f"rollouts/{(name := self.dice.choice(('first', 'second', 'third')))}.yaml": self._write_rollout(name)},
            lambda: self._remove(f"rollouts/{self.dice.choice(('second', 'third'))}.yaml"),
            lambda: self._remove(f"apps/{self.dice.choice(NAMES)}.yaml"),
        ]
        parts = [action() for action in self.dice.sample(actions, self.dice.choice((1, 1, 2)))]
        self.fleet.commit({path: text for part in parts for path, text in part.items()}, hour=hour)

    def _remove(self, path: str) -> dict[str, str | None]:
        return {path: None} if (self.fleet.path / path).exists() else {}

    def _write_labels(self) -> str:
        return self.dice.choice(("", "  labels: {tier: front}\n", "  labels: {tier: back}\n"))

    def _write_workload(self, name: str) -> str:
        used = self.dice.choice(NAMES)
        pods = f"containers: [{{name: a, image: 'a:{self.dice.randint(1, 3)}', envFrom: [{{configMapRef: {{name: {used}}}}}]}}]"
        text = deployment(name).replace("spec:\n", f"{self._write_labels()}spec:\n", 1)
        return f"{text}  template: {{metadata: {{labels: {{app: {name}}}}}, spec: {{{pods}}}}}\n"

    def _write_policy(self, name: str) -> str:
        groups = ",".join(self.dice.sample(("one", "two", "three"), 2))
        text = policy(groups, name=name, more="  propagateDeps: true\n")
        text = text.replace("kind: Deployment}", f"kind: Deployment, name: {name}}}")
        return text.replace("spec:\n", f"{self._write_labels()}spec:\n", 1)

    def _write_config(self, name: str) -> str:
        value = self.dice.randint(1, 3)
        return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: default}}\ndata: {{a: '{value}'}}\n"

    def _write_rollout(self, name: str) -> str:
        strategy = self.dice.choice(("type: All", "type: Progressive, progressive: {maxConcurrency: 2}"))
        kind = f"apiVersion: gitsched.io/v1alpha1\nkind: Rollout\nmetadata: {{name: {name}}}\n"
        selectors = self.dice.choice((f"resourceSelectors: {self.dice.choice(SELECTORS)}, ",) * 9 + ("",))
        return f"{kind}spec: {{{selectors}rolloutStrategy: {{{strategy}}}}}\n"


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 13))])
def test_what_rollouts_select_is_that_of_a_complete_plan(fleet: Fleet, tmp_path: Path, seed: int) -> None:
    history, incremental = SelectionHistory(fleet, Random(seed)), 0
    fleet.reconcile()
    for hour in range(1, 11):
        history.change(hour)
        whole, found = fleet.preview(hour, cache=tmp_path / "none"), fleet.reconcile(hour)
        assert show(whole) == show(found), hour
        incremental += not found.plan.complete
    assert incremental > 3
