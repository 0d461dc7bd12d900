"""Findings about companions that do not go where their targets go, after runs that plan only what changed."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from gitsched.decide.relations import companion_findings
from gitsched.reconcile.output import output_commit
from tests.scenarios.conftest import Fleet
from tests.scenarios.test_incremental_plan import ThreeVariants
from tests.search_depth import count_examples

pytestmark = pytest.mark.usefixtures("bugs_are_raised")

CLUSTERS = ("ams", "bru", "cph", "dub")
APPS = ("api", "cart", "mail", "shop", "web")
CLUSTER = """\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: %s}
spec: {syncMode: Pull, taints: [%s]}
"""
POLICY = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: %(name)s, namespace: default, annotations: {%(notes)s}}
spec:
  resourceSelectors: [{apiVersion: %(version)s, kind: %(kind)s}]
  placement:
    clusterAffinity: {clusterNames: [%(clusters)s]}
    replicaScheduling: {replicaSchedulingType: %(type)s, replicaDivisionPreference: Weighted}
"""
KINDS = {
    "Deployment": "apps/v1",
    "Service": "v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "PodDisruptionBudget": "policy/v1",
    "Ingress": "networking.k8s.io/v1",
}
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: %(name)s, namespace: default}
spec:
  replicas: %(replicas)d
  selector: {matchLabels: {app: %(label)s}}
  template: {metadata: {labels: {app: %(label)s}}, spec: {containers: [{name: c, image: i}]}}
"""
COMPANIONS = {
    "Service": "spec: {selector: {app: %(label)s}, ports: [{port: 80}]}\n",
    "HorizontalPodAutoscaler": "spec: {maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: %(label)s}}\n",
    "PodDisruptionBudget": "spec: {minAvailable: 1, selector: {matchLabels: {app: %(label)s}}}\n",
    "Ingress": "spec: {defaultBackend: {service: {name: %(label)s, port: {number: 80}}}}\n",
}
EXPORT = "{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceExport, metadata: {name: %s, namespace: default}}\n"
STEPS = 8


class CompanionHistory:
    """Random commits to a fleet in which each kind has a policy of its own."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.files = {f"clusters/{name}.yaml": CLUSTER % (name, "") for name in CLUSTERS}
        for kind in KINDS:
            self.files |= self.write_policy(kind)
        for name in APPS:
            self.files |= self.write_app(name)
            for kind in COMPANIONS:
                self.files |= self.write_companion(kind, name)

    def write_policy(self, kind: str) -> dict[str, str]:
        clusters = self.random.sample(CLUSTERS, self.random.randint(1, len(CLUSTERS)))
        fields = {
            "name": kind.lower(),
            "version": KINDS[kind],
            "kind": kind,
            "clusters": ", ".join(clusters),
            "type": self.random.choice(("Duplicated", "Divided")),
            "notes": self.random.choice(("", "", "", "gitsched.io/follow-targets: 'maybe'")),
        }
        return {f"policies/{kind.lower()}.yaml": POLICY % fields}

    def write_app(self, name: str) -> dict[str, str]:
        label = name if self.random.random() < 0.8 else self.random.choice(APPS)
        return {f"apps/{name}.yaml": DEPLOYMENT % {"name": name, "replicas": self.random.randint(1, 5), "label": label}}

    def write_companion(self, kind: str, name: str) -> dict[str, str]:
        label = name if self.random.random() < 0.8 else self.random.choice(APPS)
        value = self.random.choice(("", "", "", "", "", "true", "false", "never"))
        notes = f", annotations: {{gitsched.io/follow-targets: '{value}'}}" if value else ""
        head = f"apiVersion: {KINDS[kind]}\nkind: {kind}\nmetadata: {{name: {name}, namespace: default{notes}}}\n"
        return {f"apps/{name}-{kind.lower()}.yaml": "# \n" * self.random.randint(0, 2) + head + COMPANIONS[kind] % {"label": label}}

    def go_on(self) -> tuple[str, dict[str, str | None]]:
        """Return the kind of the next commit, and its changes: None for a removed file."""
        kind = self.random.choice(("app", "app", "companion", "companion", "policy", "taint", "remove", "add", "export"))
        changes: dict[str, str | None] = {}
        name = self.random.choice(APPS)
        if kind == "app":
            changes |= self.write_app(name)
        elif kind == "companion":
            changes |= self.write_companion(self.random.choice(list(COMPANIONS)), name)
        elif kind == "policy":
            changes |= self.write_policy(self.random.choice(list(KINDS)))
        elif kind == "taint":
            cluster = self.random.choice(CLUSTERS)
            taint = self.random.choice(("", "{key: down, effect: NoExecute}"))
            changes[f"clusters/{cluster}.yaml"] = CLUSTER % (cluster, taint)
        elif kind == "export":
            path = f"apps/{name}-export.yaml"
            changes[path] = None if path in self.files else EXPORT % name
        elif kind == "remove":
            changes[self.random.choice([path for path in sorted(self.files) if path.startswith("apps/")])] = None
        else:
            changes |= self.write_app(f"new-{name}")
            changes |= self.write_companion("Service", f"new-{name}")
        for path, text in changes.items():
            if text is None:
                self.files.pop(path, None)
            else:
                self.files[path] = text
        return kind, changes


def play(fleet: Fleet, where: Path, seed: int, steps: int = STEPS) -> int:
    """Follow a random history with caches and without; return how many of its runs were incremental."""
    history, variants, amended = CompanionHistory(Random(seed)), ThreeVariants(fleet, where), 0
    fleet.commit(history.files)
    for step in range(steps):
        kind = "first"
        if step > 1:
            kind, changes = history.go_on()
            fleet.commit(changes, hour=step)
        amended += sum(not run.plan.complete for run in variants.run(step, f"seed {seed}, step {step}: {kind}"))
    return amended


@pytest.mark.search
@pytest.mark.parametrize("seed", range(count_examples(1)))
def test_findings_about_separated_companions_are_those_of_a_complete_plan(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(output_commit, "MIN_KEYED_ROWS", 0)  # as in a large source
    monkeypatch.setattr(companion_findings, "MAX_FINDINGS", 4)
    assert play(fleet, tmp_path, seed) > STEPS // 2


def test_the_first_companion_that_follows_is_brought_along(fleet: Fleet, tmp_path: Path) -> None:
    """It goes where it was, but its binding says now which workload brings it."""
    files = {f"{name}.yaml": CLUSTER % (name, "") for name in CLUSTERS}
    for kind in ("Deployment", "Service"):
        fields = {
            "name": kind.lower(),
            "version": KINDS[kind],
            "kind": kind,
            "clusters": "ams, bru",
            "type": "Duplicated",
            "notes": "",
        }
        files |= {f"{kind}.yaml": POLICY % fields}
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default%s}\n" + COMPANIONS["Service"] % {
        "label": "web"
    }
    app = {"web.yaml": DEPLOYMENT % {"name": "web", "replicas": 2, "label": "web"}, "service.yaml": service % ""}
    variants = ThreeVariants(fleet, tmp_path)
    fleet.commit(files | app)
    variants.run(0, "first")
    fleet.commit({"service.yaml": service % ", annotations: {gitsched.io/follow-targets: 'true'}"})
    variants.run(1, "follows")
    assert "requiredBy" in fleet.git("show", "resident:status/work.karmada.io/resourcebinding/default/web-service.yaml")
