"""Random histories of a fleet with Rollouts whose clusters are lost, removed and come back, and what must hold in every output commit.

The check reads consecutive commits of the output branch, and from the source only which clusters there are, what the policies select and
what clusters have reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pygit2
import yaml

from tests.scenarios.conftest import Fleet
from tests.scenarios.test_lost_clusters import MANDATORY, NOT_READY, SETTINGS, STRATEGIES, TAINT, cluster, policy, web, weights
from tests.scenarios.test_waves import report, rollout

CLUSTERS = ("ash", "bru", "cph", "dub", "eve")
NAMES = ("web", "split", "alone")
WAITING = f"{{type: Progressive, progressive: {{{MANDATORY}, maxConcurrency: 1, minSuccessTime: 20m}}}}"
Action = Callable[[], dict[str, str | None]]
MIRROR = """\
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: mirror, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  overrideRules:
  - targetCluster: {clusterNames: [dub]}
    overriders: {imageOverrider: [{component: Registry, operator: replace, value: mirror.example.net}]}
"""


def workload(name: str, version: int, replicas: int) -> str:
    text = web(str(version), replicas).replace("shop/web", "registry.example.net/shop/web")
    return text.replace("name: web, namespace", f"name: {name}, namespace")


def select(text: str, name: str) -> str:
    """Return a policy that selects one workload."""
    text = text.replace("name: all, namespace", f"name: {name}, namespace")
    return text.replace("kind: Deployment}", f"kind: Deployment, name: {name}}}")


class RolloutHistory:
    """Commits to a fleet; what gitsched makes of them is not known here."""

    def __init__(self, fleet: Fleet, dice: Random) -> None:
        self.fleet, self.dice, self.hour = fleet, dice, 0.0
        self.canaries = dice.choice((("ash",), ("ash", "bru")))
        self.step, self.version = 0, dict.fromkeys(NAMES, 1)
        self.states = dict.fromkeys(CLUSTERS, "ready")
        self.chosen = {name: list(CLUSTERS) for name in NAMES}
        self.reports: dict[str, tuple[str, str, float]] = {}
        self.strategy = dice.choice((*STRATEGIES.values(), WAITING))
        files = {f"clusters/{name}.yaml": self._write_cluster(name) for name in CLUSTERS}
        files |= {f"apps/{name}.yaml": workload(name, 1, 6) for name in NAMES}
        files |= {f"policies/{name}.yaml": self._write_policy(name) for name in NAMES}
        fleet.commit({"gitsched.yaml": SETTINGS, "policies/mirror.yaml": MIRROR, **files})
        fleet.reconcile()
        selectors = "[{{apiVersion: apps/v1, kind: Deployment, name: {}}}]"
        texts = (rollout(self.strategy, selectors.format(name)).replace("name: waves", f"name: {name}") for name in NAMES)
        fleet.commit({"rollouts.yaml": "---\n".join(texts)})

    def go_on(self) -> None:
        """Make the next commit, or none, and let some time pass."""
        self.hour += self.dice.choice((0.02, 0.1, 0.1, 0.5, 2))
        actions = self._list_actions()
        self.step += 1
        if self.dice.random() < 0.9:
            parts = self.dice.sample(actions, self.dice.choice((1, 1, 2)))
            self.commit({path: text for part in parts for path, text in part().items()})

    def _list_actions(self) -> list[Action]:
        """Return what the next commit may do."""
        if self.step % 4 == 0:  # most of what can go wrong comes after a change
            return [self._release, self._release, self._release, self._scale, self._lose]
        actions = [self._report, self._report, self._lose, self._lose, self._return, self._release]
        return [*actions, self._remove, self._edit_policy, self._scale, self._revert]

    def commit(self, files: dict[str, str | None]) -> None:
        known = {path: text for path, text in files.items() if text is not None or (self.fleet.path / path).exists()}
        self.fleet.commit(known, hour=self.hour)

    def settle(self) -> None:
        """Bring all clusters back."""
        self.hour += 2
        self.states = dict.fromkeys(CLUSTERS, "ready")
        self.chosen = {name: list(CLUSTERS) for name in NAMES}
        files: dict[str, str | None] = {f"clusters/{name}.yaml": self._write_cluster(name) for name in CLUSTERS}
        self.commit({**files, **{f"policies/{name}.yaml": self._write_policy(name) for name in NAMES}})

    def report_all(self) -> None:
        self.commit({path: text for name in CLUSTERS for path, text in self._report(name, "Healthy").items()})
        self.hour += 1

    def _release(self) -> dict[str, str | None]:
        names = self.dice.sample(NAMES, self.dice.choice((1, 2, 3)))
        newest = max(self.version.values()) + 1
        self.version |= dict.fromkeys(names, newest)
        return {f"apps/{name}.yaml": workload(name, newest, 6) for name in names}

    def _revert(self) -> dict[str, str | None]:
        name = self.dice.choice(NAMES)
        self.version[name] = max(1, self.version[name] - 1)
        return {f"apps/{name}.yaml": workload(name, self.version[name], 6)}

    def _scale(self) -> dict[str, str | None]:
        name = self.dice.choice(NAMES)
        return {f"apps/{name}.yaml": workload(name, self.version[name], self.dice.choice((4, 6, 9)))}

    def _report(self, name: str = "", health: str = "") -> dict[str, str | None]:
        name = name or self.dice.choice((*self.canaries, *CLUSTERS))
        health = health or self.dice.choice(("Healthy", "Healthy", "Healthy", "Degraded", "Progressing"))
        self.reports[name] = str(self.fleet.head), health, self.hour
        return {f"reports/{name}.yaml": report(name, self.fleet.head, health, self.hour)}

    def _lose(self) -> dict[str, str | None]:
        return self._set_state(self.dice.choice((*self.canaries * 3, *CLUSTERS)), self.dice.choice(("tainted", "unready")))

    def _return(self) -> dict[str, str | None]:
        away = [name for name in CLUSTERS if self.states[name] != "ready"]
        return self._set_state(self.dice.choice(away), "ready") if away else {}

    def _remove(self) -> dict[str, str | None]:
        return self._set_state(self.dice.choice(CLUSTERS), "removed") if self.dice.random() < 0.3 else {}

    def _set_state(self, name: str, state: str) -> dict[str, str | None]:
        self.states[name] = state
        return {f"clusters/{name}.yaml": None if state == "removed" else self._write_cluster(name)}

    def _edit_policy(self) -> dict[str, str | None]:
        name = self.dice.choice(NAMES)
        self.chosen[name] = sorted(self.dice.sample(CLUSTERS, self.dice.choice((3, 4, 5))))
        return {f"policies/{name}.yaml": self._write_policy(name)}

    def _write_cluster(self, name: str) -> str:
        state, stage = self.states[name], "canary" if name in self.canaries else "live"
        return cluster(name, TAINT if state == "tainted" else "", NOT_READY if state == "unready" else "", stage)

    def _write_policy(self, name: str) -> str:
        chosen = self.chosen[name]
        if name == "split":
            text = policy(*chosen, placement=weights(**{one: self.dice.choice((1, 1, 3)) for one in chosen}))
        elif name == "alone":
            terms = ", ".join(f"{{affinityName: {one}, clusterNames: [{one}]}}" for one in chosen)
            text = policy(placement=f"clusterAffinities: [{terms}]")
        else:
            text = policy(*chosen)
        return select(text, name)


class OutputCheck:
    """Reads each output commit of a history, and says what is wrong with it."""

    def __init__(self, history: RolloutHistory) -> None:
        self.history, self.fleet = history, history.fleet
        self.approved = {name: {"1"} for name in NAMES}
        self.had: dict[str, dict[str, set[str]]] = {name: {} for name in NAMES}
        self.healthy: dict[str, dict[str, set[str]]] = {name: {} for name in NAMES}
        self.contents: dict[str, dict[str, dict[str, tuple[str, int]]]] = {}
        self.last = self._read(str(self.fleet.head))
        self.targets = {name: self._list_targets(name) for name in NAMES}

    def check(self) -> Iterator[str]:
        """Yield what is wrong with the head of the output branch."""
        head, canaries = str(self.fleet.head), self.history.canaries
        found = self.contents[head] = self._read(head)
        self._read_reports()
        for name in NAMES:
            before, after, targets = self.last[name], found[name], self._list_targets(name)
            for cluster_name, (version, _) in after.items():
                if before.get(cluster_name, ("",))[0] != version:
                    if cluster_name not in canaries and version not in self.approved[name]:
                        yield from self._find_unreported(name, version, cluster_name, targets)
                    self.had[name].setdefault(version, set()).add(cluster_name)
            passed = {version for one, (version, _) in after.items() if one not in canaries}
            left = self.targets[name].keys() - targets.keys()
            for new in targets.keys() - self.targets[name].keys():
                if left and new not in after and any(version in self.approved[name] for version, _ in before.values()):
                    yield f"{name} leaves {sorted(left)} for {new}, which has nothing of it"
            if before and targets and not after:
                yield f"{name} is nowhere, and should be in {sorted(targets)}"
            for one, count in targets.items():
                if name == "split" and one in after and (count or 0) > after[one][1]:
                    yield f"{name} has {after[one][1]} replicas in {one} in place of {count}"
            reached = {after[one][0] if one in after else "" for one in targets}
            if len(reached) == 1 and targets.keys() <= self.healthy[name].get(min(reached), set()):
                passed |= reached  # all clusters may be canaries
            self.approved[name] |= passed
            self.targets[name] = targets
        self.last = found

    def _find_unreported(self, name: str, version: str, to: str, targets: dict[str, int | None]) -> Iterator[str]:
        """Yield the canaries without which a cluster must not have got a version."""
        states, chosen = self.history.states, self.history.chosen[name]
        canaries = [one for one in self.history.canaries if states[one] != "removed" and one in chosen]
        tried = [one for one in canaries if one in self.had[name].get(version, ())]
        missing = [one for one in tried if one not in self.healthy[name].get(version, ())]
        if not tried:
            missing = [one for one in canaries if one in targets or states[one] != "ready"]
        for one in missing:
            yield f"{name} {version} is in {to} without a healthy report of {one}"

    def _read_reports(self) -> None:
        """Note which canaries have reported that a version is healthy."""
        for cluster_name, (commit, health, _) in self.history.reports.items():
            for name in NAMES if health == "Healthy" else ():
                content = self.contents.get(commit, {}).get(name, {}).get(cluster_name)
                if content is not None:
                    self.healthy[name].setdefault(content[0], set()).add(cluster_name)

    def _read(self, commit: str) -> dict[str, dict[str, tuple[str, int]]]:
        """Return the version and the replicas of each workload by cluster."""
        found: dict[str, dict[str, tuple[str, int]]] = {name: {} for name in NAMES}
        root: Any = self.fleet.repository[commit]
        for directory in root.peel(pygit2.Tree)["clusters"]:
            for name in NAMES:
                path = f"default/deployment-{name}.yaml"
                if path in directory:
                    spec = yaml.safe_load(directory[path].data)["spec"]
                    image = spec["template"]["spec"]["containers"][0]["image"]
                    registry = "mirror.example.net" if directory.name == "dub" else "registry.example.net"
                    assert image.startswith(f"{registry}/shop/"), f"{image} in {directory.name}"
                    found[name][directory.name] = image.rpartition(":")[2], spec["replicas"]
        self.contents[commit] = found
        return found

    def _list_targets(self, name: str) -> dict[str, int | None]:
        """Return where a workload is decided to be, among the clusters that there are."""
        body: Any = self.fleet.binding(f"{name}-deployment")
        entries = body["spec"].get("clusters") or ()
        return {one["name"]: one.get("replicas") for one in entries if self.history.states[one["name"]] != "removed"}
