"""Simulations from the state of the last run start from what its plan places, and from the objects that it knows."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from gitsched.apis.topology import CLUSTER
from gitsched.model.simulation import FailureDomain, Simulation
from gitsched.reconcile import source_plan
from gitsched.simulate.scenario import Scaling, Scenario
from tests.builders.krake import application_yaml, cluster_yaml
from tests.scenarios.conftest import Fleet
from tests.scenarios.test_krake import ZONE
from tests.scenarios.test_planned_workloads import simulate

pytestmark = pytest.mark.usefixtures("bugs_are_raised")

CLUSTER_YAML = """\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: NAME, labels: {stage: NAME}}
spec: {syncMode: Pull}
"""
ROLLOUT = """\
apiVersion: gitsched.io/v1alpha1
kind: Rollout
metadata: {name: waves}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  groupStrategy: {decisionGroups: [{groupName: first, groupClusterSelector: {labelSelector: {matchLabels: {stage: first}}}}]}
  rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1, minSuccessTime: 10m}}
"""
POLICY = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: all, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement:
    replicaScheduling: {replicaSchedulingType: Duplicated}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: main, image: registry.example.com/NAME}]}
"""
SCALING = Scaling("new=2", "2", Fraction(2), name="new")
CLUSTERS = {f"{name}.yaml": CLUSTER_YAML.replace("NAME", name) for name in ("first", "second")}


def deployment(name: str) -> str:
    return DEPLOYMENT.replace("NAME", name)


def simulate_from_state(fleet: Fleet, where: Path, scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> Simulation:
    """Return what happens one hour after the first run, from its state, once a complete plan says the same."""
    settings = fleet.settings(1, trusted=False)
    whole = simulate(settings._replace(cache=where / "none"), scenario)
    with monkeypatch.context() as patched:
        patched.setattr(source_plan, "_plan_source", None)  # makes a complete plan
        found = simulate(settings, scenario)
    assert found == whole
    assert isinstance(found, tuple)
    return found[0]


def test_every_wave_has_had_its_turn_when_an_event_happens(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for a wave is no effect of the event: not of one that changes the workload, and not of one that leaves it where it is."""
    fleet.commit({**CLUSTERS, "rollout.yaml": ROLLOUT, "policy.yaml": POLICY, "old.yaml": deployment("old")})
    fleet.reconcile()
    fleet.commit({"new.yaml": deployment("new")}, hour=1)
    found = simulate_from_state(fleet, tmp_path, Scenario(scale=(SCALING,)), monkeypatch)
    effects = {effect.key.name: (effect.before, effect.after) for effect in found.effects}
    assert effects == {"new": ({"first": 2, "second": 2}, {"first": 4, "second": 4})}
    lost = Scenario(lose=(FailureDomain(CLUSTER, "first"),), unreachable=True)
    after = {effect.key.name: effect.after for effect in simulate_from_state(fleet, tmp_path, lost, monkeypatch).effects}
    assert after == {"new": {"second": 2}, "old": {"second": 2}}


def test_an_application_that_changed_is_no_template_of_the_state(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"policy.yaml": POLICY, "old.yaml": deployment("old"), "site.yaml": cluster_yaml("site")}
    fleet.commit({**CLUSTERS, **files, "app.yaml": application_yaml()})
    fleet.reconcile()
    fleet.commit({"other.yaml": application_yaml("other", ZONE)}, hour=1)
    assert not fleet.reconcile(hour=1).plan.complete
    found = simulate_from_state(fleet, tmp_path, Scenario(lose=(FailureDomain(CLUSTER, "first"),)), monkeypatch)
    assert [effect.key.name for effect in found.effects] == ["old"]
