"""Random histories of a fleet with all that can keep manifests as they are: Rollouts, suspensions, overrides that fail, Jobs, freezes, and
runs in shallow clones, with allowances of what is withheld."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from random import Random

from gitsched.reconcile import RunResult, preview, reconcile
from tests.scenarios.conftest import START, Fleet, allow_withheld, execute
from tests.scenarios.rollout_histories import CLUSTERS, NAMES, Action, RolloutHistory, select, workload
from tests.scenarios.test_lost_clusters import SETTINGS, policy, weights
from tests.scenarios.test_undelivered_replacements import FAILING
from tests.scenarios.test_waves import rollout

MORE = {"parts": "Deployment", "store": "StatefulSet", "crunch": "Job"}
DIVIDED = "replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: %s}"
DYNAMIC = "Weighted, weightPreference: {dynamicWeight: AvailableReplicas}"
JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: crunch, namespace: default}
spec:
  parallelism: %d
  completions: %d
  template:
    spec: {restartPolicy: Never, containers: [{name: crunch, image: "registry.example.net/shop/crunch:%d"}]}
"""
REBALANCER = """\
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata: {name: again-%d}
spec:
  workloads: [{apiVersion: %s, kind: %s, name: %s, namespace: default}]
"""
SELECTORS = "[{apiVersion: %s, kind: %s, name: %s}]"
SUSPENSIONS = ("dispatching: true", "dispatchingOnClusters: {clusterNames: [%s]}", "dispatchingOnClusters: {clusterNames: [%s]}")


def api_version(name: str) -> str:
    return "batch/v1" if MORE.get(name) == "Job" else "apps/v1"


class DeliveryHistory(RolloutHistory):
    """Adds workloads of other kinds and divisions, and what keeps manifests as they are."""

    def __init__(self, fleet: Fleet, dice: Random) -> None:
        self.suspended: dict[str, str] = {}
        super().__init__(fleet, dice)
        self.frozen, self.clones = False, 0
        self.version |= dict.fromkeys(MORE, 1)
        self.chosen |= {name: list(CLUSTERS) for name in MORE}
        self.amounts = dict.fromkeys(MORE, 6)
        files: dict[str, str | None] = {f"apps/{name}.yaml": self._write_more(name) for name in MORE}
        files |= {f"policies/{name}.yaml": self._write_policy(name) for name in MORE}
        self.commit(files)
        fleet.reconcile()
        chosen = [name for name in MORE if dice.random() < 0.7]
        texts = (
            rollout(self.strategy, SELECTORS % (api_version(name), MORE[name], name)).replace("name: waves", f"name: {name}")
            for name in chosen
        )
        self.commit({"rollouts-more.yaml": "---\n".join(texts)})

    def settle(self) -> None:
        self.suspended.clear()
        self.frozen = False
        super().settle()
        self.chosen |= {name: list(CLUSTERS) for name in MORE}
        self.commit(
            {"gitsched.yaml": SETTINGS, "fails.yaml": None, **{f"policies/{name}.yaml": self._write_policy(name) for name in MORE}}
        )

    def run(self, scratch: Path) -> RunResult:
        """Make a run as a resident process, a new one, or one in a new shallow clone does, and allow some of what is withheld."""
        how = self.dice.choice(("resident", "resident", "new", "clone"))
        if how == "clone":
            self.clones += 1
            path = scratch / f"clone-{self.clones}"
            execute("clone", "-q", "--depth=1", f"file://{self.fleet.path}", str(path), at=self.fleet.path)
            clone = Fleet(path, path / ".git" / "cache")
            clone.git("fetch", "-q", "--depth=1", "origin", "placements:placements")
            settings = clone.settings(self.hour, push="origin")
        else:
            settings = self.fleet.settings(self.hour, **({"cache": scratch / "none"} if how == "new" else {}))
        settings = allow_withheld(settings) if self.dice.random() < 0.5 else settings
        whole = preview(settings._replace(cache=scratch / "none")) if how == "resident" and self.step % 3 == 1 else None
        run = reconcile(settings)
        if whole is not None and not run.plan.withheld.moves:  # a preview shows what is withheld
            plans = [(one.tree, one.plan.rollouts, one.plan.rollout_records, one.plan.findings) for one in (whole, run)]
            assert plans[0] == plans[1], f"step {self.step}: an incremental plan differs from a complete one"
        return run

    def wait_until(self, time: datetime) -> None:
        """Let time pass until shortly after a time."""
        self.hour = max(self.hour, (time - START) / timedelta(hours=1) + self.dice.choice((0.0003, 0.05)))

    def _list_actions(self) -> list[Action]:
        actions = super()._list_actions()
        more: list[Action] = [self._release_more, self._scale_more]
        if self.step % 4:
            more += [self._suspend, self._suspend, self._resume, self._fail, self._freeze, self._rebalance, self._edit_more]
        return [*actions, *more]

    def _release_more(self) -> dict[str, str | None]:
        name = self.dice.choice(list(MORE))
        self.version[name] = max(self.version.values()) + 1
        return {f"apps/{name}.yaml": self._write_more(name)}

    def _scale_more(self) -> dict[str, str | None]:
        name = self.dice.choice(list(MORE))
        self.amounts[name] = self.dice.choice((3, 6, 12))
        return {f"apps/{name}.yaml": self._write_more(name)}

    def _edit_more(self) -> dict[str, str | None]:
        name = self.dice.choice(list(MORE))
        self.chosen[name] = sorted(self.dice.sample(CLUSTERS, self.dice.choice((1, 2, 3, 5))))
        return {f"policies/{name}.yaml": self._write_policy(name)}

    def _suspend(self) -> dict[str, str | None]:
        name, text = self.dice.choice((*NAMES, *MORE)), self.dice.choice(SUSPENSIONS)
        self.suspended[name] = text % ", ".join(self.dice.sample(CLUSTERS, 2)) if "%" in text else text
        if self.dice.random() < 0.6:  # most of what can go wrong comes with a move
            self.chosen[name] = sorted(self.dice.sample(CLUSTERS, self.dice.choice((2, 3, 4))))
        return {f"policies/{name}.yaml": self._write_policy(name)}

    def _resume(self) -> dict[str, str | None]:
        names = list(self.suspended)
        self.suspended.clear()
        return {f"policies/{name}.yaml": self._write_policy(name) for name in names}

    def _fail(self) -> dict[str, str | None]:
        """Have an override fail, or correct it."""
        return {"fails.yaml": self.dice.choice((None, FAILING.replace("bru", self.dice.choice(CLUSTERS))))}

    def _freeze(self) -> dict[str, str | None]:
        self.frozen = not self.frozen
        return {"gitsched.yaml": SETTINGS.replace("  guard:\n", "  guard:\n    freeze: audit\n") if self.frozen else SETTINGS}

    def _rebalance(self) -> dict[str, str | None]:
        name = self.dice.choice((*NAMES, *MORE))
        return {"again.yaml": REBALANCER % (self.step, api_version(name), MORE.get(name, "Deployment"), name)}

    def _write_policy(self, name: str) -> str:
        if name in MORE:
            chosen = self.chosen[name]
            divisions = (DIVIDED % "Aggregated", DIVIDED % DYNAMIC, weights(**{one: self.dice.choice((1, 1, 3)) for one in chosen}))
            text = select(policy(*chosen, placement=self.dice.choice((*divisions, "") if name == "crunch" else divisions)), name)
            text = text.replace("apiVersion: apps/v1, kind: Deployment", f"apiVersion: {api_version(name)}, kind: {MORE[name]}")
        else:
            text = super()._write_policy(name)
        return text + (f"  suspension: {{{self.suspended[name]}}}\n" if name in self.suspended else "")

    def _write_more(self, name: str) -> str:
        amount, version = self.amounts[name], self.version[name]
        if name == "crunch":
            return JOB % (amount, amount * 2, version)
        text = workload(name, version, amount).replace("kind: Deployment", f"kind: {MORE[name]}")
        return text.replace("spec:\n", "spec:\n  serviceName: store\n", 1) if name == "store" else text
