"""Random histories of a nearly full fleet in which everything counts for everything: capacity, quotas, groups of workloads, whole sets,
priorities, ordered groups of clusters, Tenants, Rollouts and overlaps. And what must hold after every commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from random import Random
from typing import Any

import yaml

from tests.scenarios.conftest import Fleet
from tests.scenarios.test_shared_capacity import (
    AGGREGATED,
    BY_CAPACITY,
    DUPLICATED,
    GROUPS,
    ONE_CLUSTER,
    cluster,
    deployment,
    make_tenant,
    policy,
)

SETTINGS = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: gitsched}
spec:
  output: {overlap: %s}
  karmada:
    quotaEnforcement: true
    spread: strict
    failback: {AfterStabilization: 2h}
    featureGates: {WorkloadAffinity: true, MultiplePodTemplatesScheduling: true}
"""
CLASSES = """\
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 100
"""
ROLLOUT = """\
apiVersion: gitsched.io/v1alpha1
kind: Rollout
metadata: {name: waves}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, namespace: first}]
  groupStrategy: {decisionGroups: [{groupName: canary, groupClusterSelector: {labelSelector: {matchLabels: {stage: canary}}}}]}
  rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1, minSuccessTime: 10m}}
"""
RAY = """\
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: %s, namespace: %s, labels: {team: %s, way: sets}}
spec:
  headGroupSpec: {rayStartParams: {}, template: {spec: {containers: [{name: ray, image: ray, resources: {requests: {cpu: 1}}}]}}}
  workerGroupSpecs:
    - groupName: small
      replicas: %d
      rayStartParams: {}
      template: {spec: {containers: [{name: ray, image: ray, resources: {requests: {cpu: 1}}}]}}
"""
APART, TOGETHER = (f"workloadAffinity: {{{side}: {{groupByLabelKey: team}}}}\n" for side in ("antiAffinity", "affinity"))
WAYS = {
    "aggregated": AGGREGATED,
    "weighted": BY_CAPACITY + "spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 2}]\n",
    "single": AGGREGATED + ONE_CLUSTER,
    "ordered": AGGREGATED + GROUPS,
    "apart": AGGREGATED + APART,
    "together": BY_CAPACITY + TOGETHER,
    "both": AGGREGATED
    + ONE_CLUSTER
    + "workloadAffinity: {antiAffinity: {groupByLabelKey: team}, affinity: {groupByLabelKey: side}}\n",
    "sets": AGGREGATED + ONE_CLUSTER + APART,
    "copied": DUPLICATED + APART,
}
CLUSTERS = ("cloud", "more", "prem")
SPACES = ("first", "second")


class CoupledHistory:
    """Commits to a repository; what gitsched makes of them is not known here. Without `copies` all replicas follow capacity."""

    def __init__(self, fleet: Fleet, seed: int) -> None:
        self.fleet, self.random, self.hour = fleet, Random(seed), 0.0
        self.copies, self.tenants = self.random.random() < 0.5, self.random.random() < 0.5
        self.ways = [way for way in WAYS if way != "copied" or self.copies]
        self.files: dict[str, str | None] = {
            "gitsched.yaml": SETTINGS % self.random.choice(("0s", "1h")),
            "classes.yaml": CLASSES,
            "quota.yaml": self._write_quotas(),
        }
        if self.tenants:
            self.files["tenants.yaml"] = "".join(map(make_tenant, SPACES)).replace(
                "namespaces:", "priorityClasses: [urgent], namespaces:"
            )
        if self.random.random() < 0.3:
            self.files["rollout.yaml"] = ROLLOUT
        for space in SPACES:
            self.files[f"{space}/policies.yaml"] = self._write_policies(space)
        for number in range(7):
            self._add(number)
        self._resize()
        self.fleet.commit({path: text for path, text in self.files.items() if text is not None})

    def _write_quotas(self) -> str:
        """Return quotas of the platform: for one namespace two of them."""
        amounts = {
            f"{space}-{number}": self.random.randrange(4, 25) for space, number in (("first", 0), ("first", 1), ("second", 0))
        }
        return "---\n".join(
            f"apiVersion: policy.karmada.io/v1alpha1\nkind: FederatedResourceQuota\nmetadata: {{name: {name}, namespace: {name[:-2]}}}\n"
            f'spec: {{overall: {{cpu: "{amount}"}}}}\n'
            for name, amount in amounts.items()
        )

    def _write_policies(self, space: str) -> str:
        urgent = "{priorityClassSource: KubePriorityClass, priorityClassName: urgent}"
        selectors = "  resourceSelectors:\n"
        ray = f"{selectors}    - {{apiVersion: ray.io/v1, kind: RayCluster, labelSelector: {{matchLabels: {{way: sets}}}}}}\n"
        texts = (
            policy(WAYS[way], way, urgent if self.random.random() < 0.3 else "{}", f"{{matchLabels: {{way: {way}}}}}")
            for way in self.ways
        )
        return "".join(text.replace(selectors, ray) if "name: sets" in text else text for text in texts).replace(
            "namespace: shop", f"namespace: {space}"
        )

    def _add(self, number: int) -> None:
        space, way = self.random.choice(SPACES), self.random.choice(self.ways)
        team, side, count = self.random.choice("ab"), self.random.choice("pq"), self.random.randrange(1, 6)
        name, path = f"w{number}", f"{{}}/w{number}.yaml"
        for other in SPACES:
            if path.format(other) in self.files:
                self._remove(path.format(other))
        if way == "sets":
            text = RAY % (name, space, team, count)
        else:
            labels = f"{{way: {way}, team: {team}, side: {side}}}"
            text = deployment(name, count, f"cpu: {self.random.choice((1, 1, 2))}", labels=labels).replace("shop", space)
        self.files[path.format(space)] = text

    def _remove(self, path: str) -> None:
        self.files[path] = None

    def _resize(self) -> None:
        """Give the clusters other capacities, and at times a taint."""
        taint, observed = self.random.choice(("", "", "gone")), "2026-01-01T00:00:00Z" if self.random.random() < 0.5 else ""
        text = "".join(
            cluster(name, observed, taint if name == "prem" else "", cpu=self.random.randrange(3, 14)) for name in CLUSTERS
        )
        self.files["clusters.yaml"] = text.replace("{name: cloud, ", "{name: cloud, labels: {stage: canary}, ")

    def step(self) -> float:
        """Commit a change or several, and return the time."""
        before = dict(self.files)
        for _ in range(self.random.choice((1, 1, 1, 3))):
            known = sorted(path for path, text in self.files.items() if "/w" in path and text is not None)
            change = self.random.randrange(9)
            if change == 0:
                self._resize()
            elif change == 1 and known:
                self._remove(self.random.choice(known))
            elif change == 2:
                self.files["quota.yaml"] = self._write_quotas()
            elif change == 3:
                space = self.random.choice(SPACES)
                self.files[f"{space}/policies.yaml"] = self._write_policies(space)
            elif change == 4 and known:
                path = self.random.choice(known)
                self.files[path] = (self.files[path] or "").replace("image: ", "image: new/")
            elif change == 5 and known:
                path = self.random.choice(known)
                self.files[path] = (self.files[path] or "").replace("team: a", "team: c").replace("team: b", "team: a")
            else:
                self._add(self.random.choice((*(int(path.rpartition("w")[2].removesuffix(".yaml")) for path in known), 20)))
        self.hour += self.random.choice((0.02, 0.5, 1, 3))
        changed = {path: text for path, text in self.files.items() if before.get(path) != text}
        self.fleet.commit({path: text for path, text in changed.items() if text is not None or before.get(path)}, hour=self.hour)
        return self.hour


Bindings = Mapping[str, Mapping[str, Any]]


def read_bindings(fleet: Fleet) -> dict[str, dict[str, Any]]:
    """Return the bindings of the output branch by namespace and name."""
    prefix = "status/work.karmada.io/resourcebinding/"
    return {path.removeprefix(prefix): fleet.load(path)["spec"] for path in fleet.files() if path.startswith(prefix)}


def list_clusters(spec: Mapping[str, Any]) -> dict[str, int]:
    """Return the replicas of a binding by cluster; of whole sets, the pods of one."""
    pods = sum(one["replicas"] for one in spec.get("components", ()))
    return {one["name"]: one.get("replicas", pods) for one in spec.get("clusters", ())}


def _read_cpu(spec: Mapping[str, Any]) -> int:
    """Return what one pod of a binding requests, in whole cpus."""
    own = spec.get("replicaRequirements") or next((one["replicaRequirements"] for one in spec.get("components", ())), {})
    return int(own.get("resourceRequest", {}).get("cpu", 0))


def sum_cpu(bindings: Bindings, space: str = "", cluster_name: str = "") -> int:
    """Return the cpus that bindings request in a namespace and a cluster, "" for all."""
    return sum(
        _read_cpu(spec) * count
        for path, spec in bindings.items()
        for name, count in list_clusters(spec).items()
        if path.startswith(space) and cluster_name in ("", name)
    )


def list_broken_promises(fleet: Fleet, before: Bindings, after: Bindings, *, copies: bool) -> Iterator[str]:
    """Yield what a run placed beyond what quotas allow and what clusters have, and the workloads of a group that came together."""
    for path in (one for one in fleet.files() if "/federatedresourcequota/" in one):
        quota, space = fleet.load(path), path.split("/")[-2] + "/"
        limit, used = int(quota["status"]["overall"]["cpu"]), int(quota["status"].get("overallUsed", {}).get("cpu", 0))
        if used != sum_cpu(after, space):
            yield f"{path} says {used} of {sum_cpu(after, space)}"
        if used > max(limit, sum_cpu(before, space)):
            yield f"{path} allows {limit}, and {used} are used"
    bodies = (one for one in yaml.safe_load_all(fleet.path.joinpath("clusters.yaml").read_text()) if one)
    for body in bodies if not copies else ():
        name, total = body["metadata"]["name"], int(body["status"]["resourceSummary"]["allocatable"]["cpu"])
        more = [path for path, spec in after.items() if _starts(before.get(path, {}), spec, name)]
        if more and sum_cpu(after, "", name) > total:
            yield f"{name} has {total} cpu, {sum_cpu(after, '', name)} are requested, and {more} have more replicas than before"
    for (one, first), (other, second) in combinations(sorted(after.items()), 2):
        groups = [spec.get("workloadAffinityGroups", {}).get("antiAffinityGroup") for spec in (first, second)]
        if groups[0] is None or groups[0] != groups[1] or one.split("/")[0] != other.split("/")[0]:
            continue
        shared = list_clusters(first).keys() & list_clusters(second).keys()
        formerly = list_clusters(before.get(one, {})).keys() & list_clusters(before.get(other, {})).keys()
        if shared - formerly:
            yield f"{one} and {other} share {shared - formerly}"


def _starts(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> bool:
    """Return whether a binding starts replicas in a cluster. A whole set that grows stays where it is, as in Karmada."""
    had, has = (list_clusters(spec).get(name, 0) for spec in (before, after))
    return has > had and not (had and after.get("components"))
