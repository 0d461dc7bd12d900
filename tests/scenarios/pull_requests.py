"""Random pull requests that change workloads of all APIs, overrides, autoscalers, Bundles and rollouts in waves."""

from __future__ import annotations

import json
import re
from random import Random

import yaml

from gitsched.model.time import format_time
from tests.builders.knative import ADAPTER, adapter, node, pods, source
from tests.builders.krake import cluster_yaml
from tests.scenarios.conftest import UNGUARDED, at_hour, cluster, deployment, policy

CLUSTERS = ("ash", "bru", "cph")
OPEN = f"{UNGUARDED}    workload: {{replicasLost: 100}}\n"
NO_OVERLAP = OPEN.replace("spec:\n", "spec:\n  output: {overlap: 0s}\n")
OVERRIDE = """\
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: replicas, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  overrideRules:
  - targetCluster: {clusterNames: [%s]}
    overriders: {plaintext: [{path: /spec/replicas, operator: %s, value: %d}]}
"""
SCALER = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: scaler, namespace: default}
spec:
  %smaxReplicas: 9
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: api}
"""
RELEASE = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: chart, namespace: default}\n"
BUNDLE = "apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {name: pair, namespace: default}\nspec: {path: bundles/pair}\n"
WORK = """\
apiVersion: work.open-cluster-management.io/v1alpha1
kind: ManifestWorkReplicaSet
metadata: {name: %s, namespace: default}
spec:
  placementRefs: [{name: %s}]
  manifestWorkTemplate: {workload: {manifests: [%s]}}
"""
OCM = """\
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: all, namespace: default}
spec: {clusterSets: [global], numberOfClusters: %d}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: some, namespace: default}
spec: {clusterSets: [global], numberOfClusters: %d}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {name: global}
spec: {clusterSelector: {selectorType: LabelSelector, labelSelector: {}}}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: global, namespace: default}
spec: {clusterSet: global}
"""
MANAGED = """\
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: %s}
spec: {hubAcceptsClient: true}
status: {conditions: [{type: ManagedClusterConditionAvailable, status: "True"}]}
"""
APPLICATION = """\
api: kubernetes
kind: Application
metadata: {name: echo, namespace: tenant-a}
spec:
  manifest: [%s]
"""
KNATIVE = "  knative: {capacity: 4, cluster: ash}\n"
ROLLOUT = """\
apiVersion: gitsched.io/v1alpha1
kind: Rollout
metadata: {name: waves}
spec:
  rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1%s}}
"""
REPORT = """\
apiVersion: gitsched.io/v1alpha1
kind: ClusterReport
metadata: {name: %s}
spec: {appliedCommit: "%s", health: Healthy, since: "%s"}
"""
MORE = "-more"
"""The end of the name of a second Deployment of a ManifestWorkReplicaSet, which counts with the first one."""
NUMBERS = (None, 0, 1, 5, 20)


class PullRequests:
    """Random changes of a source with workloads of all APIs that run pods, overrides, an autoscaler, a Bundle and a HelmRelease."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.files: dict[str, str | None] = {f"clusters/{name}.yaml": cluster(name) for name in CLUSTERS}
        self.files |= {f"managed/{name}.yaml": MANAGED % name for name in CLUSTERS[:2]}
        self.files |= {
            "gitsched.yaml": dice.choice((OPEN, NO_OVERLAP)) + KNATIVE,
            "adapter.yaml": adapter(2),
            "pods.yaml": pods({0: "n0", 1: "n1"}),
            "nodes.yaml": "---\n".join((node("n0", "east"), node("n1", "west"))),
            "krake/one.yaml": cluster_yaml("one"),
            "bundle.yaml": BUNDLE,
            "release.yaml": RELEASE,
            "policies/releases.yaml": policy("ash", name="releases", kind="HelmRelease").replace(
                "apps/v1", "helm.toolkit.fluxcd.io/v2"
            ),
            "bundles/pair/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: pair, namespace: default}\n",
        }
        for part in self._parts:
            self.files |= {path: text for path, text in part(self).items() if text is not None}

    def go_on(self) -> dict[str, str | None]:
        """Return the changed files of a pull request."""
        changed: dict[str, str | None] = {}
        for part in self.dice.sample(self._parts, self.dice.choice((1, 1, 2))):
            changed |= part(self)
        changed = {path: text for path, text in changed.items() if text is not None or self.files.get(path) is not None}
        self.files |= changed
        return changed

    def _deployment(self, name: str) -> str:
        text, number = deployment(name), self.dice.choice(NUMBERS)
        return re.sub(r"\n +replicas: \d+[^\n]*", "" if number is None else f"\n  replicas: {number}", text)

    def _write(self, name: str) -> str:
        return json.dumps(yaml.safe_load(self._deployment(name)))

    def change_deployments(self) -> dict[str, str | None]:
        return {f"apps/{name}.yaml": self._deployment(name) for name in self.dice.sample(("web", "api", "job"), 2)}

    def change_policy(self) -> dict[str, str | None]:
        group = ",".join(self.dice.sample(CLUSTERS, self.dice.choice((1, 2, 3))))
        return {"policies/all.yaml": policy(group, scheduling=self.dice.choice(("Duplicated", "Divided")))}

    def change_override(self) -> dict[str, str | None]:
        operator = self.dice.choice(("add", "replace"))
        text = OVERRIDE % (self.dice.choice(CLUSTERS), operator, self.dice.choice((0, 2, 30)))
        return {"policies/override.yaml": self.dice.choice((text, None))}

    def change_autoscaler(self) -> dict[str, str | None]:
        minimum = self.dice.choice(("", "minReplicas: 2\n  ", "minReplicas: 4\n  "))
        group = ",".join(self.dice.sample(CLUSTERS, 2))
        scalers = policy(group, name="scalers", kind="HorizontalPodAutoscaler").replace("apps/v1", "autoscaling/v2")
        return {"apps/scaler.yaml": self.dice.choice((SCALER % minimum, SCALER % minimum, None)), "policies/scalers.yaml": scalers}

    def change_bundle(self) -> dict[str, str | None]:
        scaler = (SCALER % "minReplicas: 3\n  ").replace("name: api", "name: pair").replace("name: scaler", "name: pair")
        text = policy(",".join(self.dice.sample(CLUSTERS, 2)), name="bundles", kind="Bundle")
        return {
            "bundles/pair/pair.yaml": self._deployment("pair"),
            "bundles/pair/scaler.yaml": self.dice.choice((scaler, None, None)),
            "policies/bundles.yaml": text.replace("apps/v1", "gitsched.io/v1alpha1"),
        }

    def change_work(self) -> dict[str, str | None]:
        scaler = (SCALER % "minReplicas: 6\n  ").replace("name: api", "name: work").replace("name: scaler", "name: work")
        manifests = json.dumps(yaml.safe_load(scaler))
        names = self.dice.choice((["work"], ["work", f"work{MORE}"]))
        return {
            "work.yaml": WORK % ("work", "all", ", ".join(self._write(name) for name in names)),
            "work-scaler.yaml": self.dice.choice((None, WORK % ("work-scaler", "some", manifests))),
            "ocm.yaml": OCM % (self.dice.choice((1, 2)), self.dice.choice((1, 2))),
        }

    def change_application(self) -> dict[str, str | None]:
        return {"echo.yaml": APPLICATION % self._write("echo")}

    def change_events(self) -> dict[str, str | None]:
        return {"events.yaml": source("orders", self.dice.choice((1, 6, 14)))}

    def change_rollout(self) -> dict[str, str | None]:
        waits = self.dice.choice(("", ", minSuccessTime: 30m", ", progressDeadline: 2h"))
        return {"rollout.yaml": self.dice.choice((ROLLOUT % waits, ROLLOUT % waits, None))}

    def report(self, head: str, hour: float) -> dict[str, str | None]:
        """Return reports of some clusters that have applied an output commit."""
        time = format_time(at_hour(hour))
        return {f"reports/{name}.yaml": REPORT % (name, head, time) for name in self.dice.sample(CLUSTERS, 2)}

    _parts = (
        change_deployments,
        change_policy,
        change_override,
        change_autoscaler,
        change_bundle,
        change_work,
        change_application,
        change_events,
        change_rollout,
    )


WORKLOADS = ("web", "api", "job", "pair", "work", "echo", "chart", ADAPTER)
