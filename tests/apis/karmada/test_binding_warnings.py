"""Warnings about replicas that are assigned without regard to capacity."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

WEB = """
kind: Deployment
metadata: {name: web}
spec: {replicas: %s, template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}}}
"""
DUPLICATED = "replicaSchedulingType: Duplicated"
STATIC = "replicaSchedulingType: Divided, replicaDivisionPreference: Weighted"
AGGREGATED = "replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated"
DYNAMIC = f"{STATIC}, weightPreference: {{dynamicWeight: AvailableReplicas}}"


def policy(scheduling: str, groups: str = "ab") -> str:
    terms = ", ".join(f"{{affinityName: {name}, clusterNames: [{name}]}}" for name in groups)
    return f"""
kind: PropagationPolicy
metadata: {{name: p}}
spec:
  resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment}}]
  placement: {{clusterAffinities: [{terms}], replicaScheduling: {{{scheduling}}}}}
"""


def cluster(name: str, summary: str) -> str:
    status = f", status: {{resourceSummary: {summary}}}" if summary else ""
    return f"{{kind: Cluster, metadata: {{name: {name}}}{status}}}"


def repository(summary: str, replicas: int = 2, scheduling: str = DUPLICATED, groups: str = "ab") -> str:
    """The workload, its policy, a cluster a with a summary and a cluster b with unlimited capacity."""
    return "\n---\n".join((WEB % replicas, policy(scheduling, groups), cluster("a", summary), cluster("b", "")))


def exceeded(result: Any) -> list[str]:
    return [f.message for f in result.outcome("web").findings if f.code == "capacity-exceeded"]


CAPACITIES = """
it fits:              {summary: "{allocatable: {cpu: '2', pods: '10'}}"}
nothing is known:     {summary: ""}
one replica fits:     {summary: "{allocatable: {cpu: '1', pods: '10'}}", says: "2 replicas added, capacity for 1"}
nothing fits:         {summary: "{allocatable: {cpu: '2', pods: '10'}, allocated: {cpu: '2'}}", says: "2 replicas added, capacity for 0"}
no such resource:     {summary: "{allocatable: {pods: '10'}}", says: "2 replicas added, capacity for 0"}
too few pods:         {summary: "{allocatable: {cpu: '9', pods: '1'}}", says: "2 replicas added, capacity for 1"}
pods are not listed:  {summary: "{allocatable: {cpu: '2'}}"}
"""


@pytest.mark.parametrize("scheduling", [DUPLICATED, STATIC], ids=["Duplicated", "static weight"])
@pytest.mark.parametrize("case", (capacities := yaml.safe_load(CAPACITIES)).values(), ids=capacities)
def test_replicas_that_exceed_the_capacity_of_their_cluster_are_reported(run: Any, scheduling: str, case: dict[str, str]) -> None:
    result = run(repository(case["summary"], scheduling=scheduling))
    assert result.clusters("web") == {"a": 2}, "as in Karmada, capacity is ignored"
    messages = exceeded(result)
    assert len(messages) == ("says" in case)
    for message in messages:
        assert f"exceeds the capacity of cluster a: {case['says']}; " in message
        assert "so it does not go to group b; divide replicas by capacity" in message


@pytest.mark.parametrize("scheduling", [AGGREGATED, DYNAMIC], ids=["Aggregated", "dynamicWeight"])
def test_what_the_message_advises_uses_the_next_group(run: Any, scheduling: str) -> None:
    result = run(repository("{allocatable: {cpu: '1', pods: '10'}}", scheduling=scheduling))
    assert (result.clusters("web"), result.codes("web")) == ({"b": 2}, [])


def test_without_a_later_group_no_group_is_named(run: Any) -> None:
    (message,) = exceeded(run(repository("{allocatable: {cpu: '1', pods: '10'}}", groups="a")))
    assert "so no other cluster gets its replicas" in message


def test_replicas_that_a_cluster_had_before_are_not_counted_again(run: Any) -> None:
    placed = run(repository("{allocatable: {cpu: '4', pods: '10'}}"))
    full = "{allocatable: {cpu: '4', pods: '10'}, allocated: {cpu: '4'}}"
    assert exceeded(run(repository(full), placed, "2026-01-02T00:00:00Z")) == []
    (message,) = exceeded(run(repository(full, replicas=3), placed, "2026-01-02T00:00:00Z"))
    assert "1 replica added, capacity for 0" in message


def test_pods_that_wait_for_capacity_are_reported_while_they_wait(run: Any) -> None:
    placed = run(repository("{allocatable: {cpu: '4', pods: '10'}}"))
    waiting = "{allocatable: {cpu: '4', pods: '10'}, allocated: {cpu: '4'}, allocating: {cpu: '1'}}"
    (message,) = exceeded(run(repository(waiting), placed, "2026-01-02T00:00:00Z"))
    assert "stays in cluster a, which is full: more cpu is requested there than allocatable, so pods wait" in message


DAYS = """
# the days after the first, on which 2 replicas are placed in a cluster with capacity for one: what changes, and what is said
nothing:                     {says: ["2 replicas added, capacity for 1"]}
one replica more:            {replicas: 3, says: ["3 replicas added, capacity for 1"]}
one replica less:            {replicas: 1, says: []}
a larger cluster:            {allocatable: 5, says: []}
the running pod is counted:  {allocated: 4, says: []}
the waiting one too:         {allocated: 4, allocating: 1, says: ["which is full: more cpu is requested there than allocatable"]}
a smaller cluster:           {allocatable: 1, allocated: 1, says: ["2 replicas, and 1 would fit if it were empty"]}
"""


@pytest.mark.parametrize("case", (days := yaml.safe_load(DAYS)).values(), ids=days)
def test_the_finding_stays_until_the_replicas_fit_or_the_cluster_reports_again(run: Any, case: dict[str, Any]) -> None:
    def summarize(allocatable: int = 4, allocated: int = 3, allocating: int = 0) -> str:
        return f"{{allocatable: {{cpu: {allocatable}}}, allocated: {{cpu: {allocated}}}, allocating: {{cpu: {allocating}}}}}"

    result = run(repository(summarize()))
    assert "2 replicas added, capacity for 1" in exceeded(result)[0]
    amounts = {name: case[name] for name in ("allocatable", "allocated", "allocating") if name in case}
    for day in (2, 3, 4):
        result = run(repository(summarize(**amounts), case.get("replicas", 2)), result, f"2026-01-0{day}T00:00:00Z")
        messages = exceeded(result)
        assert len(messages) == len(case["says"])
        assert all(words in message for words, message in zip(case["says"], messages, strict=True))
        assert ("gitsched.io/capacity-exceeded" in result.binding("web")["metadata"]["annotations"]) == any(
            "added" in message for message in messages
        )


@pytest.mark.parametrize(
    "text", ["", "7", "[]", "{", '{"a": 1}', '{"a": {"replicas": -1, "capacity": "x"}}', '{"a": {"replicas": 2}}']
)
def test_a_modified_record_of_exceeded_capacity_is_ignored(run: Any, text: str) -> None:
    full = "{allocatable: {cpu: '4', pods: '10'}, allocated: {cpu: '4'}}"
    placed = run(repository("{allocatable: {cpu: '4', pods: '10'}}"))
    placed.binding("web")["metadata"]["annotations"]["gitsched.io/capacity-exceeded"] = text
    assert exceeded(run(repository(full), placed, "2026-01-02T00:00:00Z")) == []
