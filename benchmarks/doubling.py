"""Double one dimension of the input at a time, and print how time and calls grow: an exponent of 1 is linear, 2 is quadratic.

`python -m benchmarks.doubling [NAME...]` measures processor time three times for each size, and fails above MAX_EXPONENT.
"""

from __future__ import annotations

import gc
import math
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import gitsched
from gitsched.apis.gitsched.config import Config
from gitsched.decide.catalog import make_raw_document
from gitsched.decide.incremental.plan_state import NO_OUTPUT, PlanTimes
from gitsched.decide.plan import make_plan
from gitsched.decide.plan_input import PlanInput, SourceTree
from gitsched.manifests.parser import parse_file
from gitsched.model.rollouts import RolloutInput

MAX_EXPONENT = 1.4
"""The largest exponent that counts as linear; times of a busy machine vary."""
NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


class Dimension(NamedTuple):
    """`prepare` returns the work for a size. `size` is the first of the sizes that the command measures."""

    prepare: Callable[[int], Callable[[], object]]
    size: int


def make_cluster(name: str, taints: int = 0) -> dict[str, Any]:
    entries = [{"key": f"k{number}", "effect": "NoExecute", "timeAdded": "2026-03-02T11:00:00Z"} for number in range(taints)]
    return _make(
        "cluster.karmada.io/v1alpha1", "Cluster", name, None, {"syncMode": "Push", **({"taints": entries} if taints else {})}
    )


def make_deployment(name: str) -> dict[str, Any]:
    return _make("apps/v1", "Deployment", name, "default", {"replicas": 2, "selector": {"matchLabels": {"app": name}}})


def make_policy(name: str, selected: str | None, tolerations: int = 0) -> dict[str, Any]:
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", **({"name": selected} if selected else {})}
    tolerated = [
        {"key": f"k{number}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3601 + number}
        for number in range(tolerations)
    ]
    placement = {"clusterTolerations": tolerated} if tolerations else {}
    spec = {"resourceSelectors": [selector], "placement": placement}
    return _make("policy.karmada.io/v1alpha1", "PropagationPolicy", name, "default", spec)


def make_placement(name: str) -> dict[str, Any]:
    return _make("cluster.open-cluster-management.io/v1beta1", "Placement", name, "default", {"numberOfClusters": 1})


def make_managed_cluster(name: str) -> dict[str, Any]:
    labels = {"cluster.open-cluster-management.io/clusterset": "all"}
    cluster = _make("cluster.open-cluster-management.io/v1", "ManagedCluster", name, None, {"hubAcceptsClient": True})
    return {**cluster, "metadata": {"name": name, "labels": labels}}


def _make(version: str, kind: str, name: str, namespace: str | None, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name} if namespace is None else {"name": name, "namespace": namespace}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def _place(*documents: dict[str, Any]) -> Callable[[], object]:
    return lambda: gitsched.schedule(list(documents), now=NOW)


def _plan(*documents: dict[str, Any]) -> Callable[[], object]:
    raw = tuple(make_raw_document(document, None, False) for document in documents)
    tree, rollouts = SourceTree(raw, {}, (), Config(), {}), RolloutInput((), str, tuple, str)
    return lambda: make_plan(PlanInput(tree, NO_OUTPUT, PlanTimes(NOW, NOW), rollouts=rollouts))


def _parse(text: str) -> Callable[[], object]:
    return lambda: parse_file(text.encode(), path="some/file.yaml", validate=None)


def prepare_documents(size: int) -> Callable[[], object]:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{}}}\ndata: {{text: '{{{{ x }}}}'}}\n---\n"
    return _parse("".join(text.format(number) for number in range(size)))


def prepare_members(size: int) -> Callable[[], object]:
    members = "".join(f"  k{number}: v\n" for number in range(size))
    return _parse(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\ndata:\n{members}")


def prepare_aliases(size: int) -> Callable[[], object]:
    documents = "".join(
        f"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: &n c{n}}}\ndata: {{x: *n}}\n" for n in range(size)
    )
    return _parse(documents)


def prepare_kustomization(size: int) -> Callable[[], object]:
    """A kustomization of many resources after as many other fields."""
    text = "".join(f"k{number}: v\n" for number in range(size)) + "resources:\n" + "".join(f"- r{n}.yaml\n" for n in range(size))
    return lambda: parse_file(text.encode(), path="kustomization.yaml", validate=None)


def prepare_problems(size: int) -> Callable[[], object]:
    return _parse("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: A_b}\n" * size)


def prepare_workloads(size: int) -> Callable[[], object]:
    workloads = [make_deployment(f"d{number}") for number in range(size)]
    return _place(make_cluster("one"), make_cluster("two"), make_policy("all", None), *workloads)


def prepare_policies(size: int) -> Callable[[], object]:
    policies = [make_policy(f"p{number}", f"d{number}") for number in range(size)]
    return _place(make_cluster("one"), make_deployment("d0"), *policies)


def prepare_pairs(size: int) -> Callable[[], object]:
    pairs = [made for n in range(size) for made in (make_deployment(f"d{n}"), make_policy(f"p{n}", f"d{n}", 1))]
    return _place(make_cluster("one", 1), make_cluster("two"), *pairs)


def prepare_clusters(size: int) -> Callable[[], object]:
    return _place(make_deployment("d0"), make_policy("all", None), *(make_cluster(f"c{number}") for number in range(size)))


def prepare_tolerations(size: int) -> Callable[[], object]:
    """One policy with many tolerations that end a second apart, for a cluster with one taint."""
    return _place(make_cluster("one", 1), make_cluster("two"), make_deployment("d0"), make_policy("all", None, size))


def prepare_taints(size: int) -> Callable[[], object]:
    """One cluster with many taints, and one policy that tolerates all of them."""
    return _place(make_cluster("one", size), make_cluster("two"), make_deployment("d0"), make_policy("all", None, size))


def prepare_overrides(size: int) -> Callable[[], object]:
    """Many workloads, and as many OverridePolicies that select others by their labels."""
    return _override(size, [{"matchLabels": {"app": f"x{number}"}} for number in range(size)])


def prepare_matching_overrides(size: int) -> Callable[[], object]:
    """Many workloads, and as many OverridePolicies that select all of them."""
    absent = ({"key": f"x{number}", "operator": "NotIn", "values": ["x"]} for number in range(size))
    return _override(size, [{"matchExpressions": [expression]} for expression in absent])


def prepare_matching_policies(size: int) -> Callable[[], object]:
    """Many workloads, and as many PropagationPolicies that select all of them."""
    return _place(
        make_cluster("one"),
        *(make_policy(f"p{number}", None) for number in range(size)),
        *(make_deployment(f"d{number}") for number in range(size)),
    )


def _override(size: int, labels: list[dict[str, Any]]) -> Callable[[], object]:
    selectors = ({"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": one} for one in labels)
    rules = [{"overriders": {"labelsOverrider": [{"operator": "add", "value": {"a": "b"}}]}}]
    overrides = [
        _make(
            "policy.karmada.io/v1alpha1",
            "OverridePolicy",
            f"o{number}",
            "default",
            {"resourceSelectors": [one], "overrideRules": rules},
        )
        for number, one in enumerate(selectors)
    ]
    return _place(
        make_cluster("one"), make_policy("all", None), *(make_deployment(f"d{number}") for number in range(size)), *overrides
    )


def prepare_rebalanced(size: int) -> Callable[[], object]:
    """One WorkloadRebalancer that names many workloads which do not exist."""
    names = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": f"x{number}"} for number in range(size)
    ]
    rebalancer = _make("apps.karmada.io/v1alpha1", "WorkloadRebalancer", "all", None, {"workloads": names})
    return _place(make_cluster("one"), make_deployment("d0"), make_policy("all", None), rebalancer)


def prepare_placements(size: int) -> Callable[[], object]:
    binding = _make(
        "cluster.open-cluster-management.io/v1beta2", "ManagedClusterSetBinding", "all", "default", {"clusterSet": "all"}
    )
    cluster_set = _make("cluster.open-cluster-management.io/v1beta2", "ManagedClusterSet", "all", None, {})
    return _place(cluster_set, binding, make_managed_cluster("one"), *(make_placement(f"p{number}") for number in range(size)))


def prepare_rollouts(size: int) -> Callable[[], object]:
    """Many workloads, and as many Rollouts that select one each."""
    return _roll_out(size, [{"labelSelector": {"matchLabels": {"app": f"d{number}"}}} for number in range(size)])


def prepare_matching_rollouts(size: int) -> Callable[[], object]:
    """Many workloads, and as many Rollouts that select all of them."""
    return _roll_out(size, [{} for _ in range(size)])


def _roll_out(size: int, selectors: list[dict[str, Any]]) -> Callable[[], object]:
    kind = {"apiVersion": "apps/v1", "kind": "Deployment"}
    specs = [{"resourceSelectors": [kind | one], "rolloutStrategy": {"type": "All"}} for one in selectors]
    rollouts = [_make("gitsched.io/v1alpha1", "Rollout", f"r{number}", None, spec) for number, spec in enumerate(specs)]
    workloads = [make_deployment(f"d{number}") for number in range(size)]
    for workload in workloads:
        workload["metadata"]["labels"] = {"app": workload["metadata"]["name"]}
    return _plan(make_cluster("one"), make_policy("all", None), *workloads, *rollouts)


DIMENSIONS: Mapping[str, Dimension] = {
    "documents of a file": Dimension(prepare_documents, 1_000),
    "members of a mapping": Dimension(prepare_members, 10_000),
    "documents with aliases": Dimension(prepare_aliases, 1_000),
    "fields and resources of a kustomization": Dimension(prepare_kustomization, 4_000),
    "documents with an error": Dimension(prepare_problems, 1_000),
    "workloads of a policy": Dimension(prepare_workloads, 500),
    "policies": Dimension(prepare_policies, 1_000),
    "workloads with a policy and a toleration each": Dimension(prepare_pairs, 300),
    "clusters": Dimension(prepare_clusters, 500),
    "tolerations of a policy": Dimension(prepare_tolerations, 500),
    "taints, and tolerations for them": Dimension(prepare_taints, 200),
    "workloads, and OverridePolicies with labels": Dimension(prepare_overrides, 200),
    "workloads, and OverridePolicies for all": Dimension(prepare_matching_overrides, 500),
    "workloads, and PropagationPolicies for all": Dimension(prepare_matching_policies, 500),
    "missing targets of a WorkloadRebalancer": Dimension(prepare_rebalanced, 500),
    "workloads, and Rollouts with labels": Dimension(prepare_rollouts, 300),
    "workloads, and Rollouts for all": Dimension(prepare_matching_rollouts, 300),
    "Placements": Dimension(prepare_placements, 500),
}


def count_calls(work: Callable[[], object]) -> int:
    """Return the number of calls of Python functions that some work needs."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def measure_seconds(work: Callable[[], object]) -> float:
    """Return the least processor time of three repetitions."""
    durations = []
    for _ in range(3):
        gc.collect()
        start = time.process_time()
        work()
        durations.append(time.process_time() - start)
    return min(durations)


def compute_exponent(smaller: float, larger: float) -> float:
    """Return the exponent of growth from one size to the double size."""
    return math.log2(larger / smaller)


def main() -> int:
    names = sys.argv[1:] or list(DIMENSIONS)
    exponents = []
    print(f"{'input':46} {'size':>7} {'seconds at 1, 2 and 4 times the size':>38} exponent")
    for name in names:
        prepare, size = DIMENSIONS[name]
        prepare(8)()  # imports and caches
        seconds = [measure_seconds(prepare(size * factor)) for factor in (1, 2, 4)]
        exponents.append(compute_exponent(seconds[1], seconds[2]))
        print(f"{name:46} {size:>7} {'  '.join(f'{one:10.3f}' for one in seconds):>38} {exponents[-1]:8.2f}", flush=True)
    return int(max(exponents) > MAX_EXPONENT)


if __name__ == "__main__":
    sys.exit(main())
