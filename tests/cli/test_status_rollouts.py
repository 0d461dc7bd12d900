"""`gitsched status`: rollouts that have stopped, or that wait for too long, come before the table, with how to go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import POLICY, WORKLOAD, Run
from tests.cli.test_status import READY, read

ROLLOUT = """\
apiVersion: gitsched.io/v1alpha1
kind: Rollout
metadata: {{name: shop}}
spec:
  resourceSelectors: [{{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, name: web}}]
  groupStrategy:
    decisionGroups:
    - groupName: canary
      groupClusterSelector: {{labelSelector: {{matchLabels: {{stage: canary}}}}}}
  rolloutStrategy: {{type: Progressive, progressive: {{mandatoryDecisionGroups: [{{groupName: canary}}]{deadline}}}}}
"""
CLUSTER = """\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {{name: {name}, labels: {{stage: {stage}}}}}
spec: {{syncMode: Push}}
"""
EVERYWHERE = f"{POLICY.partition('    clusterAffinities')[0]}    replicaScheduling: {{replicaSchedulingType: Duplicated}}\n"
REPORT = """\
apiVersion: gitsched.io/v1alpha1
kind: ClusterReport
metadata: {{name: {name}}}
spec: {{appliedCommit: "{head}", health: {health}, since: "2026-03-02T09:01:30Z"}}
"""
ACCEPT = 'with the annotation gitsched.io/accept-failures: "two@2026-03-02T09:00:30Z" on the Rollout; to go back, git revert '


@pytest.mark.parametrize(
    ("deadline", "problem", "message", "remedy"),
    [
        (
            "",
            "Rollout shop has waited 1h for reports of two",
            "awaited by Rollout shop: no report about the change",
            "to go on, find out why two does not report to be healthy (gitsched collect --self, Flux or Argo CD), or accept that",
        ),
        (
            ", progressDeadline: 30m",
            "Rollout shop has stopped because two failed",
            "failed in Rollout shop: no report about the change before 2026-03-02T09:30:30Z",
            "to go on, push a fix, or accept the failure",
        ),
        (", progressDeadline: 6h", "", "", ""),
    ],
)
def test_a_rollout_that_does_not_go_on_needs_attention(
    fleet: Path,
    commit: Callable[..., None],
    git: Callable[..., str],
    gitsched: Run,
    deadline: str,
    problem: str,
    message: str,
    remedy: str,
) -> None:
    clusters = {name: CLUSTER.format(name=name, stage=stage) + READY for name, stage in (("one", "live"), ("two", "canary"))}
    commit(fleet, policy=EVERYWHERE, rollout=ROLLOUT.format(deadline=deadline), **clusters)
    gitsched("reconcile", "--now", "2026-03-02T09:00:40Z")
    commit(fleet, web=WORKLOAD.replace("replicas: 2", "replicas: 3"))
    gitsched("reconcile", "--now", "2026-03-02T09:01:00Z")
    assert read(fleet, "2026-03-02T09:59:00+00:00")[0].startswith("No errors, but 1 warning") == ("30m" not in deadline)
    lines = read(fleet, "2026-03-02T10:05:00+00:00")
    table = next(index for index, line in enumerate(lines) if line.startswith("CLUSTER"))
    rollout = next(index for index, line in enumerate(lines) if line.startswith("Rollout shop (Progressive)"))
    assert lines[0] == (f"Needs attention: {problem}." if problem else "No errors, but 1 warning: 2 clusters, 1 workload.")
    assert rollout < table, "what is not complete is on the first screen"
    assert lines[table + 1].startswith("two " if problem else "one ")
    if problem:
        assert lines[table + 1].endswith(message)
        remedy = f"{remedy} {ACCEPT}{git('rev-parse', 'HEAD', at=fleet)[:10]}"
        assert next(line for line in lines if line.startswith("Rollout shop: ")).endswith(remedy)
        explained = gitsched("explain", "web", "--now", "2026-03-02T10:05:00Z").stdout
        assert remedy in " ".join(explained.split())


@pytest.mark.parametrize(
    ("stages", "problem", "waits", "workload"),
    [
        (
            {"one": "canary", "two": "canary", "three": "live"},
            "Rollout shop will stop because one failed",
            ", and stops then, because one failed",
            "new content in one, two; nothing of it yet in three",
        ),
        ({"one": "canary", "two": "canary"}, "Rollout shop has failures: one failed", "", ""),
    ],
)
def test_a_mandatory_cluster_that_failed_needs_attention_before_the_others_have_reported(
    fleet: Path,
    commit: Callable[..., None],
    git: Callable[..., str],
    gitsched: Run,
    stages: dict[str, str],
    problem: str,
    waits: str,
    workload: str,
) -> None:
    clusters = {name: CLUSTER.format(name=name, stage=stage) + READY for name, stage in stages.items()}
    commit(fleet, policy=EVERYWHERE, rollout=ROLLOUT.format(deadline=""), web=WORKLOAD, **clusters)
    gitsched("reconcile", "--now", "2026-03-02T09:00:40Z")
    commit(fleet, web=WORKLOAD.replace("replicas: 2", "replicas: 3"))
    gitsched("reconcile", "--now", "2026-03-02T09:01:00Z")
    commit(fleet, report=REPORT.format(name="one", head=git("rev-parse", "placements", at=fleet), health="Degraded"))
    gitsched("reconcile", "--now", "2026-03-02T09:02:00Z")
    lines = read(fleet, "2026-03-02T09:05:00+00:00")
    first = lines[: next(index for index, line in enumerate(lines) if line.startswith("CLUSTER"))]
    assert problem in first[0]
    assert f"Rollout shop (Progressive) is progressing, waits for reports of two{waits}" in first
    assert "  wave 1 (canary): one failed (reported a failure)" in first
    assert (f"  Deployment shop/web: {workload}" in first) == bool(workload)
    assert any("(1 with nothing yet in some of the clusters): Deployment shop/web" in line for line in lines) == bool(workload)
    assert any(line.startswith("Rollout shop began ") and " Change (" in line for line in first)
    assert any(line.startswith("Rollout shop: to go on, push a fix, or accept the failure") for line in first)
