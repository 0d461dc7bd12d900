"""What clusters report about a workload is in the status of its binding."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

WEB = """
kind: Deployment
metadata: {name: web}
spec: {replicas: 2}
---
kind: PropagationPolicy
metadata: {name: p}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement: {clusterAffinity: {clusterNames: [m1, m2]}}
---
{kind: Cluster, metadata: {name: m1}}
---
kind: Cluster
metadata: {name: m2}
"""
REPORT = """
---
kind: ResourceBinding
metadata: {name: web-deployment, namespace: default}
spec: {resource: {apiVersion: apps/v1, kind: Deployment, namespace: default, name: web}}
status: {aggregatedStatus: [%s]}
"""
NEXT_DAY = "2026-01-02T00:00:00Z"
LATER = "2026-01-03T00:00:00Z"

REPORTS = """
# what each cluster reports; the clusters in aggregatedStatus, and the condition FullyApplied
no entry:                      {reports: {}, clusters: [], applied: null}
all applied, in another order: {reports: {m2: {applied: true}, m1: {applied: true}}, clusters: [m1, m2], applied: "True"}
one is not applied:            {reports: {m1: {applied: true}, m2: {applied: false}}, clusters: [m1, m2], applied: "False"}
an error, as Karmada dumps it: {reports: {m1: {applied: true}, m2: {appliedMessage: refused}}, clusters: [m1, m2], applied: "False"}
one has not reported:          {reports: {m1: {applied: true}}, clusters: [m1], applied: "False"}
only health:                   {reports: {m1: {health: Healthy}}, clusters: [m1], applied: null}
a cluster without a copy:      {reports: {m9: {applied: true}}, clusters: [], applied: null}
"""


def read_status(result: Any) -> tuple[list[str], str | None]:
    """Return the clusters in aggregatedStatus and the status of FullyApplied."""
    status = result.binding("web")["status"]
    applied = {condition["type"]: condition["status"] for condition in status["conditions"]}
    return [entry["clusterName"] for entry in status.get("aggregatedStatus", [])], applied.get("FullyApplied")


@pytest.mark.parametrize("case", (reports := yaml.safe_load(REPORTS)).values(), ids=reports)
def test_the_reports_of_the_clusters_of_a_workload_are_in_its_binding(run: Any, case: dict[str, Any]) -> None:
    entries = [yaml.safe_dump({"clusterName": name, **entry}, default_flow_style=True) for name, entry in case["reports"].items()]
    result = run(WEB + REPORT % ", ".join(entries))
    assert read_status(result) == (case["clusters"], case["applied"])
    assert "aggregatedStatus" not in run(WEB, result).binding("web")["status"], "a report that was removed is not repeated"


def test_an_entry_is_written_as_it_is_reported(run: Any) -> None:
    entry = "{applied: true, clusterName: m1, health: Healthy, status: {readyReplicas: 2, observedGeneration: 7}}"
    (written,) = run(WEB + REPORT % entry).binding("web")["status"]["aggregatedStatus"]
    assert written == yaml.safe_load(entry)


def test_the_time_of_the_condition_is_that_of_its_last_change(run: Any) -> None:
    waiting, applied = (
        WEB + REPORT % f"{{clusterName: m1, applied: true}}, {{clusterName: m2, applied: {done}}}" for done in ("false", "true")
    )
    first = run(waiting)
    second = run(applied, first, NEXT_DAY)
    third = run(applied, second, LATER)
    conditions = [result.binding("web")["status"]["conditions"] for result in (first, second, third)]
    assert [[condition["type"] for condition in entry] for entry in conditions] == [["Scheduled", "FullyApplied"]] * 3
    assert [entry[1]["lastTransitionTime"] for entry in conditions] == ["2026-01-01T00:00:00Z", NEXT_DAY, NEXT_DAY]
    assert conditions[1][1] == {
        "type": "FullyApplied",
        "status": "True",
        "reason": "FullyAppliedSuccess",
        "message": "All works have been successfully applied",
        "lastTransitionTime": NEXT_DAY,
    }
    assert third.binding("web") == second.binding("web")


def test_a_dependency_has_its_reports_as_well(run: Any) -> None:
    template = "spec: {replicas: 2, template: {spec: {containers: [{name: c, envFrom: [{configMapRef: {name: env}}]}]}}}"
    files = WEB.replace("spec: {replicas: 2}", template).replace("spec:\n  resource", "spec:\n  propagateDeps: true\n  resource")
    report = REPORT.replace("web-deployment", "env-configmap").replace("apps/v1, kind: Deployment", "v1, kind: ConfigMap")
    report = report.replace("name: web}}", "name: env}}") % "{clusterName: m1, applied: true}, {clusterName: m2, applied: true}"
    status = run(files + "---\n{kind: ConfigMap, metadata: {name: env}}\n" + report).binding("env")["status"]
    assert [entry["clusterName"] for entry in status["aggregatedStatus"]] == ["m1", "m2"]
    assert [condition["reason"] for condition in status["conditions"]] == ["FullyAppliedSuccess"]
