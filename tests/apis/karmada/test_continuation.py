"""An engine that continues with changed documents decides as a new one, and decides only what a change can affect."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitsched.apis.gitsched.config import parse_config
from gitsched.decide.validation import validate_document
from tests.apis.continuation import World, check_changes, check_step, run_history, settle
from tests.apis.karmada.conftest import API_VERSIONS
from tests.search_depth import count_examples

CLUSTERS = ("c1", "c2", "c3", "c4", "c5", "c6")
LABELS = ("env", "tier", "unread")
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"preemption": True},
    {"failback": "WhenUnschedulable"},
    {"failback": {"AfterStabilization": "3m"}},
    {"failover": "cluster"},
    {"missingFacts": "strict"},
    {"enableEmptyWorkloadPropagation": True},
    {"autoscalerLimits": "divide"},
)


def document(kind: str, name: str, namespace: str = "", **more: Any) -> tuple[tuple[str, str, str], Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **more.pop("metadata", {})}
    version = {"HorizontalPodAutoscaler": "autoscaling/v2", "Service": "v1"}.get(kind) or API_VERSIONS[kind]
    return (kind, namespace, name), {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def make_valid(make: Callable[[], Any]) -> Any:
    """Return the first of the documents that a function makes which is valid."""
    while True:
        key, body = make()
        if not any(issue.severity == "error" for issue in validate_document(body).issues):
            return key, body


class WorldBuilder:
    """Makes and changes random worlds."""

    def __init__(self, dice: Random) -> None:
        self.dice, self.world = dice, World()
        self.makers = {
            "Cluster": (self.make_cluster, 6),
            "PropagationPolicy": (self.make_policy, 3),
            "ClusterPropagationPolicy": (self.make_cluster_policy, 3),
            "OverridePolicy": (self.make_override, 2),
            "ClusterOverridePolicy": (self.make_cluster_override, 2),
            "ClusterTaintPolicy": (self.make_taint_policy, 1),
            "ResourceBinding": (self.make_binding, 1),
            "WorkloadRebalancer": (self.make_rebalancer, 1),
            "Deployment": (self.make_deployment, 9),
            "ConfigMap": (self.make_config_map, 2),
            "HorizontalPodAutoscaler": (self.make_autoscaler, 1),
            "Service": (self.make_service, 1),
            "PriorityClass": (self.make_priority_class, 1),
        }

    def chance(self, share: float) -> bool:
        return self.dice.random() < share

    def build(self) -> World:
        for make, count in self.makers.values():
            for _ in range(self.dice.randint(count // 2, count)):
                self.world.update([make_valid(make)])
        return self.world

    def change(self, world: World) -> None:
        """Add, replace, edit or remove one to three documents."""
        for _ in range(self.dice.choice((1, 1, 1, 2, 3))):
            kind = self.dice.choice(("Cluster", "Cluster", *self.makers))
            known = [key for key in sorted(world) if key[0] == kind]
            if known and self.chance(0.2) and not (kind == "Cluster" and len(known) == 1):
                del world[self.dice.choice(known)]
            elif known and kind == "Cluster" and self.chance(0.7):
                self.edit_cluster(world, self.dice.choice(known))
            else:
                world.update([make_valid(self.makers[kind][0])])

    def change_one(self, world: World) -> None:
        """Edit a Cluster in one place, or add, replace or remove another document."""
        known = [key for key in sorted(world) if key[0] == "Cluster"]
        if self.chance(0.6):
            self.edit_cluster(world, self.dice.choice(known))
        else:
            kind = self.dice.choice([kind for kind in self.makers if kind != "Cluster"])
            others = [key for key in sorted(world) if key[0] == kind]
            if others and self.chance(0.3):
                del world[self.dice.choice(others)]
            else:
                world.update([make_valid(self.makers[kind][0])])

    def edit_cluster(self, world: World, key: tuple[str, str, str]) -> None:
        """Change one property of a Cluster."""
        name, body = make_valid(lambda: self.make_cluster(key[2]))
        status = (("status", field) for field in ("apiEnablements", "resourceSummary", "conditions"))
        part, field = self.dice.choice((("metadata", "labels"), ("spec", "region"), ("spec", "taints"), *status))
        before = world[name]
        changed = {**(before.get(part) or {}), field: (body.get(part) or {}).get(field)}
        if field == "labels":
            label = self.dice.choice(LABELS)
            changed[field] = {**(before["metadata"].get("labels") or {}), label: self.dice.choice("ab")}
        world[name] = {**before, part: {name: value for name, value in changed.items() if value is not None}}

    def make_cluster(self, name: str = "") -> Any:
        dice = self.dice
        taints = [
            {"key": dice.choice(("maintenance", "full")), "effect": dice.choice(("NoSchedule", "NoSchedule", "NoExecute"))}
            for _ in range(dice.choice((0, 0, 0, 1, 2)))
        ]
        status: dict[str, Any] = {}
        if self.chance(0.5):
            kinds = dice.choice((["Deployment"], ["Deployment", "DaemonSet"], ["DaemonSet"]))
            status["apiEnablements"] = [
                {"groupVersion": "apps/v1", "resources": [{"kind": kind} for kind in kinds]},
                {"groupVersion": "v1", "resources": [{"kind": "ConfigMap"}, {"kind": "Service"}]},
            ]
        if self.chance(0.5):
            status["resourceSummary"] = {
                "allocatable": {"cpu": dice.choice(("2", "8")), "pods": dice.choice(("3", "20"))},
                "allocated": {"cpu": dice.choice(("0", "1", "9"))},
            }
        if self.chance(0.4):
            status["conditions"] = [
                {"type": "Ready", "status": dice.choice(("True", "True", "False", "Unknown"))},
                {"type": "Disk", "status": dice.choice(("True", "False"))},
            ]
        spec: dict[str, Any] = {"syncMode": "Push", "region": dice.choice(("r1", "r2", "")), "provider": dice.choice(("p1", ""))}
        if len({(taint["key"], taint["effect"]) for taint in taints}) == len(taints):
            spec["taints"] = taints
        labels = {label: dice.choice("ab") for label in LABELS if self.chance(0.7)}
        return document("Cluster", name or dice.choice(CLUSTERS), spec=spec, status=status, metadata={"labels": labels})

    def make_affinity(self) -> dict[str, Any]:
        dice = self.dice
        found: dict[str, Any] = {}
        if self.chance(0.3):
            found["clusterNames"] = sorted(dice.sample(CLUSTERS, 3))
        if self.chance(0.2):
            found["exclude"] = [dice.choice(CLUSTERS)]
        if self.chance(0.6):
            found["labelSelector"] = dice.choice(
                (
                    {"matchLabels": {dice.choice(("env", "tier")): dice.choice("ab")}},
                    {"matchExpressions": [{"key": "env", "operator": dice.choice(("Exists", "DoesNotExist"))}]},
                )
            )
        if self.chance(0.1):
            found["fieldSelector"] = {"matchExpressions": [{"key": "region", "operator": "In", "values": ["r1"]}]}
        return found

    def make_placement(self) -> dict[str, Any]:
        dice = self.dice
        found: dict[str, Any] = {}
        if self.chance(0.4):
            found["clusterAffinities"] = [
                {
                    "affinityName": name,
                    **self.make_affinity(),
                    **(
                        {"overflowAffinities": [{"affinityName": f"{name}-more", **self.make_affinity()}]}
                        if self.chance(0.2)
                        else {}
                    ),
                }
                for name in ("g1", "g2", "g3")[: dice.randint(1, 3)]
            ]
        elif self.chance(0.7):
            found["clusterAffinity"] = self.make_affinity()
        if self.chance(0.4):
            found["clusterTolerations"] = [
                {
                    "key": "maintenance",
                    "operator": "Exists",
                    **({"effect": "NoExecute", "tolerationSeconds": dice.choice((60, 600))} if self.chance(0.4) else {}),
                }
            ]
        scheduling = dice.choice(
            (
                None,
                {"replicaSchedulingType": "Duplicated"},
                {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
                {
                    "replicaSchedulingType": "Divided",
                    "replicaDivisionPreference": "Weighted",
                    "weightPreference": {"dynamicWeight": "AvailableReplicas"},
                },
                {
                    "replicaSchedulingType": "Divided",
                    "replicaDivisionPreference": "Weighted",
                    "weightPreference": {
                        "staticWeightList": [
                            {"targetCluster": {"labelSelector": {"matchLabels": {"tier": "a"}}}, "weight": 2},
                            {"targetCluster": {"labelSelector": {"matchLabels": {"tier": "b"}}}, "weight": 1},
                        ]
                    },
                },
            )
        )
        if scheduling:
            found["replicaScheduling"] = scheduling
        if self.chance(0.25):
            spreads = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": dice.randint(1, 3)}]
            if self.chance(0.5):
                spreads.append({"spreadByField": "region", "minGroups": 1, "maxGroups": 2})
            found["spreadConstraints"] = spreads
        return found

    def make_selector(self, kinds: tuple[str, ...]) -> dict[str, Any]:
        kind = self.dice.choice(kinds)
        selector: dict[str, Any] = {"apiVersion": "apps/v1" if kind == "Deployment" else "v1", "kind": kind}
        if self.chance(0.3):
            selector["name"] = f"{'web' if kind == 'Deployment' else 'data'}{self.dice.randint(1, 5)}"
        elif self.chance(0.5):
            selector["labelSelector"] = {"matchLabels": {"app": self.dice.choice("xy")}}
        return selector

    def make_policy_spec(self) -> dict[str, Any]:
        dice = self.dice
        spec: dict[str, Any] = {
            "resourceSelectors": [self.make_selector(("Deployment", "Deployment", "ConfigMap")) for _ in range(dice.randint(1, 2))],
            "placement": self.make_placement(),
        }
        if self.chance(0.3):
            spec["priority"] = dice.randint(0, 3)
        if self.chance(0.2):
            spec["preemption"] = "Always"
        if self.chance(self.lazy_share):
            spec["activationPreference"] = "Lazy"
        if self.chance(self.propagating_share):
            spec["propagateDeps"] = True
        if self.chance(0.1):
            spec["dependentOverrides"] = ["o1"]
        if self.chance(0.1):
            spec["suspension"] = dice.choice(({"dispatching": True}, {"dispatchingOnClusters": {"clusterNames": ["c1"]}}))
        if self.chance(0.1):
            spec["failover"] = {"cluster": {"purgeMode": dice.choice(("Directly", "Gracefully"))}}
        return spec

    lazy_share = propagating_share = 0.0

    def make_policy(self) -> Any:
        return document("PropagationPolicy", self.dice.choice(("p1", "p2", "p3")), "default", spec=self.make_policy_spec())

    def make_cluster_policy(self) -> Any:
        return document("ClusterPropagationPolicy", self.dice.choice(("cp1", "cp2", "cp3")), spec=self.make_policy_spec())

    def make_override_spec(self) -> dict[str, Any]:
        path = self.dice.choice(("/metadata/annotations", "/metadata/annotations", "/spec/absent/field"))
        plaintext = [{"path": path, "operator": "add", "value": {"o": self.dice.choice("12")}}]
        rule: dict[str, Any] = {"overriders": {"plaintext": plaintext}}
        if self.chance(0.7):
            rule["targetCluster"] = self.make_affinity()
        spec: dict[str, Any] = {"overrideRules": [rule]}
        if self.chance(0.7):
            spec["resourceSelectors"] = [self.make_selector(("Deployment", "ConfigMap"))]
        return spec

    def make_override(self) -> Any:
        return document("OverridePolicy", self.dice.choice(("o1", "o2")), "default", spec=self.make_override_spec())

    def make_cluster_override(self) -> Any:
        return document("ClusterOverridePolicy", self.dice.choice(("o1", "o2")), spec=self.make_override_spec())

    def make_taint_policy(self) -> Any:
        spec: dict[str, Any] = {
            "addOnConditions": [{"conditionType": "Disk", "operator": "In", "statusValues": ["False"]}],
            "removeOnConditions": [{"conditionType": "Disk", "operator": "In", "statusValues": ["True"]}],
            "taints": [{"key": self.dice.choice(("disk", "maintenance")), "effect": "NoSchedule"}],
        }
        if self.chance(0.5):
            spec["targetClusters"] = self.make_affinity()
        return document("ClusterTaintPolicy", self.dice.choice(("t1", "t2")), spec=spec)

    def make_binding(self) -> Any:
        status = [
            {"clusterName": name, "health": self.dice.choice(("Healthy", "Unhealthy"))} for name in self.dice.sample(CLUSTERS, 2)
        ]
        name = f"web{self.dice.randint(1, 5)}"
        resource = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": name}
        return document(
            "ResourceBinding", f"{name}-deployment", "default", spec={"resource": resource}, status={"aggregatedStatus": status}
        )

    def make_rebalancer(self) -> Any:
        kind, version = self.dice.choice((("Deployment", "apps/v1"), ("Deployment", "apps/v1"), ("ConfigMap", "v1")))
        names = [
            f"{'web' if kind == 'Deployment' else 'data'}{self.dice.randint(1, 5)}" for _ in range(self.dice.choice((1, 1, 2)))
        ]
        named = [{"apiVersion": version, "kind": kind, "namespace": "default", "name": name} for name in names]
        spec = {"workloads": named, **self.dice.choice(({}, {}, {}, {"ttlSecondsAfterFinished": 60}))}
        return document("WorkloadRebalancer", self.dice.choice(("again", "more")), spec=spec)

    def make_deployment(self) -> Any:
        dice = self.dice
        container: dict[str, Any] = {"name": "main", "image": f"web:{dice.randint(1, 3)}"}
        if self.chance(0.5):
            container["resources"] = {"requests": {"cpu": dice.choice(("1", "3"))}}
        if self.chance(0.3):
            container["envFrom"] = [{"configMapRef": {"name": f"data{dice.randint(1, 3)}"}}]
        labels = {"app": dice.choice("xy")}
        spec = {
            "replicas": dice.choice((0, 1, 3, 5)),
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        }
        return document(
            "Deployment",
            f"web{dice.randint(1, 5)}",
            dice.choice(("default", "default", "other")),
            spec=spec,
            metadata={"labels": labels},
        )

    def make_config_map(self) -> Any:
        labels = {"app": self.dice.choice("xy")}
        return document(
            "ConfigMap",
            f"data{self.dice.randint(1, 3)}",
            "default",
            data={"a": self.dice.choice("12")},
            metadata={"labels": labels},
        )

    def make_autoscaler(self) -> Any:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"web{self.dice.randint(1, 5)}"}
        spec = {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": self.dice.randint(3, 9)}
        return document("HorizontalPodAutoscaler", "hpa", "default", spec=spec)

    def make_service(self) -> Any:
        return document("Service", "front", "default", spec={"selector": {"app": self.dice.choice("xy")}, "ports": [{"port": 80}]})

    def make_priority_class(self) -> Any:
        return document("PriorityClass", "high", value=self.dice.randint(1, 9))


def make_builder(dice: Random) -> WorldBuilder:
    builder = WorldBuilder(dice)
    if dice.random() < 0.3:
        builder.lazy_share, builder.propagating_share = dice.choice(((0.0, 0.3), (0.2, 0.2), (0.2, 0.0)))
    return builder


def play(seed: int, steps: int) -> tuple[int, int]:
    dice = Random(seed)
    builder, config = make_builder(dice), parse_config({"karmada": dice.choice(SETTINGS)})
    return run_history(builder.build(), config, builder.change, steps)


def play_single(seed: int, count: int) -> tuple[int, int]:
    dice = Random(seed)
    builder, config = make_builder(dice), parse_config({"karmada": dice.choice(SETTINGS)})
    return check_changes(builder.build(), config, builder.change_one, count)


@settings(max_examples=count_examples(3))
@given(st.integers(0, 1 << 32))
def test_a_history_of_changes(seed: int) -> None:
    play(seed, 4)


@settings(max_examples=count_examples(3))
@given(st.integers(0, 1 << 32))
def test_single_changes(seed: int) -> None:
    play_single(seed, 8)


def make_world() -> World:
    """Return two clusters of each environment, and a policy for the workloads of each team."""
    policies = {
        "dev": {"clusterAffinity": {"labelSelector": {"matchLabels": {"env": "dev"}}}},
        "prod": {
            "clusterAffinity": {"labelSelector": {"matchLabels": {"env": "prod"}}},
            "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"},
        },
    }
    made = [
        document(
            "Cluster", f"{env}{number}", metadata={"labels": {"env": env}}, spec={"syncMode": "Push", "region": "r1"}, status=STATUS
        )
        for env in policies
        for number in (1, 2)
    ]
    for env, placement in policies.items():
        selector = {"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"app": env}}}
        made.append(document("PropagationPolicy", env, "default", spec={"resourceSelectors": [selector], "placement": placement}))
        labels = {"app": env}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "web"}]}}
        spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
        made += [document("Deployment", f"{env}-{name}", "default", metadata={"labels": labels}, spec=spec) for name in "ab"]
    return dict(made)


STATUS: dict[str, Any] = {
    "apiEnablements": [{"groupVersion": "apps/v1", "resources": [{"kind": "Deployment"}]}],
    "resourceSummary": {"allocatable": {"pods": "9"}, "allocated": {"pods": "1"}},
}
CHANGES: tuple[tuple[str, str, dict[str, Any], list[str]], ...] = (
    ("a label that no selector reads", "Cluster/dev1", {"metadata": {"labels": {"env": "dev", "rack": "7"}}}, []),
    ("a label that one policy reads", "Cluster/dev1", {"metadata": {"labels": {"env": "none"}}}, ["dev-a", "dev-b"]),
    ("a label that one policy reads, of divided replicas", "Cluster/prod1", {"metadata": {"labels": {"env": "none"}}}, []),
    ("a taint where workloads are", "Cluster/dev1", {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}, []),
    ("a taint that evicts", "Cluster/dev1", {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}, ["dev-a", "dev-b"]),
    ("a field that no policy spreads over", "Cluster/dev2", {"spec": {"region": "r2"}}, []),
    (
        "free capacity",
        "Cluster/dev1",
        {"status": {**STATUS, "resourceSummary": {"allocatable": {"pods": "9"}, "allocated": {}}}},
        [],
    ),
    ("a policy", "PropagationPolicy/dev", {"spec": {"priority": 3}}, ["dev-a", "dev-b"]),
    (
        "an override policy for one cluster",
        "OverridePolicy/o",
        {"spec": {"targetCluster": {"clusterNames": ["prod2"]}}},
        ["prod-a", "prod-b"],
    ),
    (
        "a rebalancer of one workload",
        "WorkloadRebalancer/r",
        {"spec": {"workloads": [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "dev-a"}]}},
        ["dev-a"],
    ),
)


@pytest.mark.parametrize(("what", "target", "change", "affected"), CHANGES, ids=[change[0] for change in CHANGES])
def test_only_affected_workloads_are_decided_again(what: str, target: str, change: dict[str, Any], affected: list[str]) -> None:
    world, config = make_world(), parse_config({})
    kind, _, name = target.partition("/")
    if kind == "OverridePolicy":
        rule = {**change["spec"], "overriders": {"labelsOverrider": [{"operator": "add", "value": {"o": "1"}}]}}
        other = {**world, **dict([document(kind, name, "default", spec={"overrideRules": [rule]})])}
    elif kind == "WorkloadRebalancer":
        other = {**world, **dict([document(kind, name, **change)])}
    else:
        key = next(key for key in world if (key[0], key[2]) == (kind, name))
        parts = {part: {**world[key].get(part, {}), **values} for part, values in change.items()}
        other = {**world, key: {**world[key], **parts}}
    _, decided = check_step(settle(world, config), other, config, 10, stored=True)
    assert decided is not None, what
    assert sorted(key.name for key in decided) == affected
