"""Generate the files of clusters and workloads from a seed: the same size and seed give the same bytes on any machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple, TypeVar

from benchmarks.manifests import Workload, config_map, deployment, service
from benchmarks.policies import Fleet, cluster_policy, namespaced_policy

T = TypeVar("T")

REGIONS = {"eu-central": "onprem", "eu-west": "onprem", "us-east": "onprem", "us-west": "aws", "ap-south": "aws", "ap-east": "gcp"}
"""Provider by region. Private data centres first, as in examples/repo."""
PER_NAMESPACE = 50
TAINTED = 50
"""One in this many clusters is in maintenance."""
KINDS = ((0.6, deployment), (0.85, config_map), (1.0, service))
"""Cumulative shares of the kinds of manifests."""


BIG_SHARE = 10, 3
"""In a wide fleet, of so many manifests so many are in the first namespace."""


class Size(NamedTuple):
    """Numbers of objects. `places` is the approximate number of clusters of a workload. In a `wide` fleet, policies take all pools of
    clusters in turn, so that enough of them use every cluster, and the first namespace is much larger than the others."""

    manifests: int = 10_000
    clusters: int = 1_000
    policies: int = 40
    places: int = 3
    wide: bool = False


class Dice:
    """Random choices that use `random()` only, because Python guarantees its sequence."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def below(self, limit: int) -> int:
        """Return an integer from 0 up to the limit, exclusive."""
        return int(self._random.random() * limit)

    def pick(self, values: Sequence[T]) -> T:
        """Return one of the values."""
        return values[self.below(len(values))]

    def share(self) -> float:
        """Return a number from 0 up to 1, exclusive."""
        return self._random.random()


def generate(size: Size, seed: int) -> dict[str, bytes]:
    """Return the content of every file by path: clusters/, policies/ and apps/<namespace>/, one manifest per file."""
    dice = Dice(seed)
    pools = max(1, size.clusters // size.places)
    names = [f"{list(REGIONS)[i % len(REGIONS)]}-{i:04}" for i in range(size.clusters)]
    files = {f"clusters/{name}.yaml": _cluster(i, name, i % pools, dice) for i, name in enumerate(names)}
    fleet = Fleet(names, pools, 1 if size.wide else 37)
    namespaces = [f"team-{i:03}" for i in range(max(1, size.manifests // PER_NAMESPACE))]
    files.update(_policies(size, fleet, namespaces))
    files.update(_workloads(size, namespaces, dice))
    return {path: text.encode() for path, text in files.items()}


def change(files: Mapping[str, bytes], round_: int) -> tuple[str, bytes]:
    """Return a path and its new content: a Deployment with another image and one more replica. Each round changes another file."""
    paths = sorted(path for path in files if "/deployment-" in path)
    path = paths[round_ * 7919 % len(paths)]  # a prime, so that the rounds use different namespaces
    before, mark, after = files[path].decode().partition("\n  replicas: ")
    count, _, rest = after.partition("\n")
    return path, f"{before}{mark}{int(count) + 1}\n{rest.replace('/app:1.', f'/app:2.{round_}.')}".encode()


def _cluster(index: int, name: str, pool: int, dice: Dice) -> str:
    region = list(REGIONS)[index % len(REGIONS)]
    cores = 32 * (1 + dice.below(16))
    taints = (
        "  taints:\n    - {key: maintenance.example.com/window, effect: NoSchedule}\n" if index % TAINTED == TAINTED - 1 else ""
    )
    return f"""\
# {name}: {cores} cores in {region}.
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata:
  name: {name}
  labels:
    environment: {dice.pick(("production", "production", "staging"))}
    pool: pool-{pool:04}
    storage: {dice.pick(("ssd", "nvme"))}
spec:
  syncMode: {dice.pick(("Push", "Pull"))}
  apiEndpoint: https://{name}.fleet.example.com:6443
  secretRef:
    namespace: fleet-credentials
    name: {name}
  provider: {REGIONS[region]}
  region: {region}
  zones: [{region}-{"abc"[dice.below(3)]}]
{taints}status:
  kubernetesVersion: v1.34.{dice.below(6)}
  apiEnablements:
    - groupVersion: v1
      resources:
        - {{kind: ConfigMap, name: configmaps}}
        - {{kind: Namespace, name: namespaces}}
        - {{kind: Secret, name: secrets}}
        - {{kind: Service, name: services}}
    - groupVersion: apps/v1
      resources:
        - {{kind: DaemonSet, name: daemonsets}}
        - {{kind: Deployment, name: deployments}}
        - {{kind: StatefulSet, name: statefulsets}}
    - groupVersion: batch/v1
      resources:
        - {{kind: CronJob, name: cronjobs}}
        - {{kind: Job, name: jobs}}
  conditions:
    - type: Ready
      status: "True"
      reason: ClusterReady
      message: cluster is healthy and ready to accept workloads
      lastTransitionTime: "2026-01-12T07:{dice.below(60):02}:00Z"
  resourceSummary:
    allocatable:
      cpu: "{cores}"
      memory: {cores * 4}Gi
      pods: "{cores * 4}"
    allocated:
      cpu: {dice.below(cores * 500)}m
      memory: {dice.below(cores * 2048)}Mi
      pods: "{dice.below(cores * 2)}"
"""


def _policies(size: Size, fleet: Fleet, namespaces: list[str]) -> Iterator[tuple[str, str]]:
    """Return the policies. Three in four are cluster-wide and select by label; the others select everything in their namespace."""
    for number in range(size.policies):
        if number % 4 == 3:
            namespace = namespaces[number * 11 % len(namespaces)]
            yield f"policies/{namespace}/policy-{number:02}.yaml", namespaced_policy(number, namespace, fleet)
        else:
            yield f"policies/fleet/policy-{number:02}.yaml", cluster_policy(number, fleet)


def _workloads(size: Size, namespaces: list[str], dice: Dice) -> Iterator[tuple[str, str]]:
    lanes = [number for number in range(size.policies) if number % 4 != 3]
    for number in range(size.manifests):
        is_big = size.wide and number // len(namespaces) % BIG_SHARE[0] < BIG_SHARE[1]
        namespace = namespaces[0 if is_big else number % len(namespaces)]
        draw = dice.share()
        make = next(make for limit, make in KINDS if draw < limit)
        workload = Workload(f"{dice.pick(NAMES)}-{number:05}", namespace, dice.pick(lanes), 2 + dice.below(7), dice.below(1000))
        yield f"apps/{namespace}/{make.__name__.replace('_', '')}-{workload.name}.yaml", make(workload)


NAMES = ("billing", "cart", "catalog", "checkout", "gateway", "ledger", "mailer", "orders", "profile", "ranking", "search", "stock")
