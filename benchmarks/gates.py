"""Measure the first and later runs of a fleet whose workloads share capacity, quotas and affinity groups, with all of that on and off.

Both repositories have the same files but for gitsched.yaml, and each kind of change is made in both, one after the other. Least processor
time of a whole process.
"""

from __future__ import annotations

import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

from benchmarks.commands import run_gitsched
from benchmarks.repository import create, git

PER_NAMESPACE, PER_GROUP, POOL = 50, 5, 5
"""Workloads of a namespace and of an anti-affinity group, clusters of a pool."""
ON = """\
    quotaEnforcement: true
    spread: strict
    failback: {AfterStabilization: 2h}
    featureGates: {WorkloadAffinity: true, MultiplePodTemplatesScheduling: true}
"""
OFF = "    overcommitProtection: false\n"
Change = Callable[[dict[str, str], int], dict[str, str]]


def make_settings(*, on: bool) -> str:
    """Return gitsched.yaml with everything on or off."""
    head = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec:\n  karmada:\n"
    return head + (ON if on else OFF)


def make_files(workloads: int, clusters: int) -> dict[str, str]:
    """Return the files of a fleet in which each cluster is used."""
    pools, namespaces = max(1, clusters // POOL), max(1, workloads // PER_NAMESPACE)
    files = {f"clusters/c{number:04}.yaml": _cluster(number, pools) for number in range(clusters)}
    files["classes.yaml"] = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: urgent}\nvalue: 100\n"
    for number in range(namespaces):
        files[f"policies/team-{number:03}.yaml"] = _policy(number, pools) + "---\n" + _quota(number)
    for number in range(workloads):
        files[f"apps/team-{number // PER_NAMESPACE % namespaces:03}/app-{number:05}.yaml"] = make_workload(number, namespaces)
    return files


def make_workload(number: int, namespaces: int, replicas: int = 3, image: str = "1.0") -> str:
    """Return a Deployment that belongs to a group, or now and then a RayCluster of several components."""
    name, group = f"app-{number:05}", f"group-{number // PER_GROUP:04}"
    metadata = f"{{name: {name}, namespace: team-{number // PER_NAMESPACE % namespaces:03}, labels: {{group: {group}}}}}"
    containers = f"[{{name: app, image: 'registry.example.com/app:{image}', resources: {{requests: {{cpu: 100m, memory: 64Mi}}}}}}]"
    if number % 40 == 39:
        template = f"{{spec: {{containers: {containers}}}}}"
        return dedent(f"""\
            apiVersion: ray.io/v1
            kind: RayCluster
            metadata: {metadata}
            spec:
              headGroupSpec: {{rayStartParams: {{}}, template: {template}}}
              workerGroupSpecs: [{{groupName: small, replicas: {replicas}, rayStartParams: {{}}, template: {template}}}]
            """)
    return dedent(f"""\
        apiVersion: apps/v1
        kind: Deployment
        metadata: {metadata}
        spec:
          replicas: {replicas}
          selector: {{matchLabels: {{app: {name}}}}}
          template: {{metadata: {{labels: {{app: {name}}}}}, spec: {{containers: {containers}}}}}
        """)


def _cluster(number: int, pools: int) -> str:
    return dedent(f"""\
        apiVersion: cluster.karmada.io/v1alpha1
        kind: Cluster
        metadata:
          name: c{number:04}
          labels: {{pool: pool-{number % pools:03}}}
          annotations: {{gitsched.io/observed-at: "2026-01-01T00:00:00Z"}}
        spec: {{syncMode: Pull}}
        status:
          resourceSummary:
            allocatable: {{cpu: "400", memory: 800Gi, pods: "2000"}}
            allocated: {{cpu: "10", memory: 20Gi, pods: "50"}}
        """)


def _policy(number: int, pools: int) -> str:
    priority = (
        "\n  schedulePriority: {priorityClassSource: KubePriorityClass, priorityClassName: urgent}" if number % 4 == 0 else ""
    )
    preference = "Aggregated" if number % 2 else "Weighted\n      weightPreference: {dynamicWeight: AvailableReplicas}"
    return f"""\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {{name: all, namespace: team-{number:03}}}
spec:
  resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment}}, {{apiVersion: ray.io/v1, kind: RayCluster}}]{priority}
  placement:
    clusterAffinity: {{labelSelector: {{matchLabels: {{pool: pool-{number % pools:03}}}}}}}
    spreadConstraints: [{{spreadByField: cluster, minGroups: 1, maxGroups: 1}}]
    workloadAffinity: {{antiAffinity: {{groupByLabelKey: group}}}}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: {preference}
"""


def _quota(number: int) -> str:
    metadata = f"{{name: all, namespace: team-{number:03}}}"
    return f"apiVersion: policy.karmada.io/v1alpha1\nkind: FederatedResourceQuota\nmetadata: {metadata}\nspec: {{overall: {{cpu: '40'}}}}\n"


def _change_image(files: Mapping[str, str], round_: int) -> dict[str, str]:
    path = _choose(files, round_)
    return {path: files[path].replace("app:1.0", f"app:2.{round_}")}


def _add_replica(files: Mapping[str, str], round_: int) -> dict[str, str]:
    path = _choose(files, round_ + 50)
    return {path: files[path].replace("replicas: 3", "replicas: 4")}


def _add_workload(_files: Mapping[str, str], round_: int) -> dict[str, str]:
    number = 90_000 + round_
    return {f"apps/team-000/app-{number}.yaml": make_workload(number, 1)}


def _label_cluster(files: Mapping[str, str], round_: int) -> dict[str, str]:
    path = f"clusters/c{round_ * 7 % sum(path.startswith('clusters/') for path in files):04}.yaml"
    return {path: files[path].replace("labels: {", f"labels: {{round: r{round_}, ")}


def _change_policy(files: Mapping[str, str], round_: int) -> dict[str, str]:
    path = f"policies/team-{round_ * 3 % sum(path.startswith('policies/') for path in files):03}.yaml"
    return {path: files[path].replace("maxGroups: 1", "maxGroups: 2")}


def _choose(files: Mapping[str, str], round_: int) -> str:
    paths = sorted(path for path in files if path.startswith("apps/") and "kind: Deployment" in files[path] and "9000" not in path)
    return paths[round_ * 7919 % len(paths)]


CHANGES: Mapping[str, Change] = {
    "the image of a manifest": _change_image,
    "one more replica": _add_replica,
    "a new workload": _add_workload,
    "a label of a cluster": _label_cluster,
    "a policy": _change_policy,
}


class Repository:
    """A repository with its cache, in which the same changes are made as in another one."""

    def __init__(self, directory: Path, files: Mapping[str, str], *, on: bool) -> None:
        self.path, self.cache = directory / "fleet", directory / "cache"
        self.files = {**files, "gitsched.yaml": make_settings(on=on)}
        create(self.path, {path: text.encode() for path, text in self.files.items()})
        self.first = run_gitsched(self.path, self.cache, "reconcile").processor
        self.second = run_gitsched(self.path, self.cache, "reconcile").processor
        self._round = 0

    def run(self, change: Change, round_: int) -> float:
        """Commit a change, and return the processor time of the run after it."""
        self._round += 1
        for path, text in change(self.files, round_).items():
            self.files[path] = text
            (self.path / path).write_text(text)
        git(self.path, "add", "-A")
        git(self.path, "commit", "--quiet", "-m", "Change", round_=self._round)
        return run_gitsched(self.path, self.cache, "reconcile").processor


def measure(workloads: int, clusters: int, rounds: int) -> list[tuple[str, float, float]]:
    """Return the least processor time of each kind of run, without and with everything."""
    files = make_files(workloads, clusters)
    with tempfile.TemporaryDirectory() as directory:
        without, everything = (Repository(Path(directory) / name, files, on=name == "on") for name in ("off", "on"))
        rows = [("the first run", without.first, everything.first), ("the same once more", without.second, everything.second)]
        for name, change in CHANGES.items():
            pairs = [(without.run(change, number), everything.run(change, number)) for number in range(rounds)]
            rows.append((name, min(one for one, _ in pairs), min(other for _, other in pairs)))
    return rows


def main(arguments: list[str]) -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=3_000)
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    found = measure(options.workloads, options.clusters, options.rounds)
    print("| run after | off | on | ratio |\n|---|---|---|---|")
    for name, off, on in found:
        print(f"| {name} | {off:.2f} s | {on:.2f} s | {on / off:.2f} |")


if __name__ == "__main__":
    main(sys.argv[1:])
