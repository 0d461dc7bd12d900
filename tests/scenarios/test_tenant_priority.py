"""A tenant does not get capacity before others by a PriorityClass that its Tenant does not allow."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from gitsched.reconcile import RunResult

from .conftest import Fleet
from .test_incremental_plan import ThreeVariants

pytestmark = pytest.mark.usefixtures("bugs_are_raised")

CLUSTER = """\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: eu}
spec: {syncMode: Pull}
status: {resourceSummary: {allocatable: {cpu: "10", pods: "110"}}}
"""
URGENT = """\
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
"""
PRIORITY = "  schedulePriority: {priorityClassSource: KubePriorityClass, priorityClassName: %s}\n"


def tenant(name: str, classes: str = "") -> str:
    return dedent(f"""\
        apiVersion: gitsched.io/v1alpha1
        kind: Tenant
        metadata: {{name: {name}}}
        spec:
          paths: [{name}]
          namespaces: [{name}]
          policies: Cluster
        """) + (f"  priorityClasses: {classes}\n" if classes else "")


def policy(name: str, more: str = "", kind: str = "PropagationPolicy") -> str:
    namespace = f", namespace: {name}" if kind == "PropagationPolicy" else ""
    return (
        f"apiVersion: policy.karmada.io/v1alpha1\nkind: {kind}\nmetadata: {{name: own{namespace}}}\n"
        "spec:\n  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]\n"
        f"{more}  placement: {{replicaScheduling: {{replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}}}}\n"
    )


def app(name: str, replicas: int) -> str:
    return dedent(f"""\
        apiVersion: apps/v1
        kind: Deployment
        metadata: {{name: app, namespace: {name}}}
        spec:
          replicas: {replicas}
          selector: {{matchLabels: {{app: app}}}}
          template:
            metadata: {{labels: {{app: app}}}}
            spec: {{containers: [{{name: app, image: "app:1", resources: {{requests: {{cpu: "1"}}}}}}]}}
        """)


def make_source(classes: str = "", of_policy: str = "urgent", kind: str = "PropagationPolicy") -> dict[str, str]:
    """Two tenants with eight replicas each for a cluster of ten; the second one asks for a priority."""
    return {
        "fleet/eu.yaml": CLUSTER,
        "platform/urgent.yaml": URGENT,
        "tenants/first.yaml": tenant("first"),
        "tenants/second.yaml": tenant("second", classes),
        "first/policy.yaml": policy("first"),
        "first/app.yaml": app("first", 8),
        "second/policy.yaml": policy("second", PRIORITY % of_policy if of_policy else "", kind),
        "second/app.yaml": app("second", 8),
    }


def list_places(fleet: Fleet) -> list[str]:
    return [name for name in ("first", "second") if fleet.where(f"{name}/deployment-app")]


def list_refusals(run: RunResult) -> list[str]:
    return [str(finding) for finding in run.plan.findings if finding.code == "tenant-priority"]


@pytest.mark.parametrize(
    ("source", "placed"),
    [
        pytest.param(make_source(of_policy=""), ["first"], id="no class"),
        pytest.param(make_source(), ["first"], id="none is allowed by default"),
        pytest.param(make_source("[]"), ["first"], id="none is allowed"),
        pytest.param(make_source("[batch, standard-*]"), ["first"], id="others are allowed"),
        pytest.param(make_source(kind="ClusterPropagationPolicy"), ["first"], id="a cluster-scoped policy"),
        pytest.param(make_source("[urgent]", "system-node-critical"), ["first"], id="a class of every API server"),
        pytest.param(make_source("[batch, urgent]"), ["second"], id="the class is allowed"),
        pytest.param(make_source("[system-*]", "system-node-critical"), ["second"], id="a pattern allows the class"),
        pytest.param(
            {**make_source(of_policy=""), "platform/policy.yaml": policy("second", PRIORITY % "urgent"), "second/policy.yaml": ""},
            ["second"],
            id="a policy of the platform",
        ),
    ],
)
def test_only_an_allowed_class_gives_capacity_before_other_tenants(fleet: Fleet, source: dict[str, str], placed: list[str]) -> None:
    fleet.commit(source)
    run = fleet.reconcile()
    assert list_places(fleet) == placed
    is_refused = "schedulePriority" in source["second/policy.yaml"] and placed == ["first"]
    assert len(list_refusals(run)) == is_refused


def test_the_finding_names_the_line_the_rule_and_the_cure(fleet: Fleet) -> None:
    fleet.commit(make_source("[batch]"))
    [message] = list_refusals(fleet.reconcile())
    assert message.startswith(
        "second/policy.yaml:6:81: error: Tenant second (tenants/second.yaml:8:3) does not allow PriorityClass urgent "
    )
    assert "its PriorityClasses are batch; workloads of this policy stay where they are, and new ones wait" in message
    assert "name another class or none, or add it to spec.priorityClasses" in message


def test_workloads_stay_where_they_are_until_the_class_is_allowed(fleet: Fleet, tmp_path: Path) -> None:
    variants = ThreeVariants(fleet, tmp_path)
    steps: list[tuple[dict[str, str], int, int]] = [
        ({**make_source(of_policy=""), "first/app.yaml": app("first", 1)}, 0, 8),
        ({"second/policy.yaml": policy("second", PRIORITY % "urgent"), "second/app.yaml": app("second", 9)}, 1, 8),
        ({"second/map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map, namespace: second}\n"}, 1, 8),
        ({"tenants/second.yaml": tenant("second", "[urgent]")}, 1, 8),  # a commit does not widen its own rules
        ({"second/note.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note, namespace: second}\n"}, 0, 9),
        ({"tenants/second.yaml": tenant("second"), "second/app.yaml": app("second", 5)}, 1, 9),
        ({"second/policy.yaml": policy("second")}, 0, 5),
    ]
    for hour, (files, refused, replicas) in enumerate(steps):
        fleet.commit(files, hour=hour)
        for run in variants.run(hour, f"step {hour}"):
            assert len(list_refusals(run)) == refused, hour
        binding = fleet.binding("app-deployment", "second", at="resident")
        assert binding["spec"]["clusters"] == [{"name": "eu", "replicas": replicas}], hour
