"""Late runs give the result of punctual ones, and repeated runs change nothing, for any reported health."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gitsched.model.time import format_time, parse_time
from tests.search_depth import count_examples

NAMES = ("m1", "m2", "m3")
WEB = "kind: Deployment\nmetadata: {name: web}\nspec: {replicas: 6}"
POLICY = """
kind: PropagationPolicy
metadata: {name: p}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  propagateDeps: true
  placement:
    clusterTolerations: [{key: slow, operator: Exists, tolerationSeconds: 180}]
    replicaScheduling: {replicaSchedulingType: %s}
  failover: {application: {decisionConditions: {tolerationSeconds: %d}, purgeMode: %s}}
"""
TAINTS = """
kind: ClusterTaintPolicy
metadata: {name: slow}
spec:
  addOnConditions: [{conditionType: Fast, operator: In, statusValues: ["False"]}]
  removeOnConditions: [{conditionType: Fast, operator: In, statusValues: ["True"]}]
  taints: [{key: slow, effect: NoExecute}]
"""
HEALTH = st.sampled_from(["Healthy", "Unhealthy", "Unknown"])
FAST = st.sampled_from(["True", "False", "Unknown"])
EVENTS = st.lists(
    st.tuples(
        st.integers(1, 20),
        st.dictionaries(st.sampled_from(NAMES), HEALTH, max_size=3),
        st.dictionaries(st.sampled_from(NAMES), FAST, max_size=2),
    ),
    min_size=1,
    max_size=4,
)


def repository(policy: str, health: dict[str, str], fast: dict[str, str]) -> str:
    clusters = [
        {
            "kind": "Cluster",
            "metadata": {"name": n},
            "status": {"conditions": [{"type": "Fast", "status": fast[n]}] if n in fast else []},
        }
        for n in NAMES
    ]
    report = {
        "kind": "ResourceBinding",
        "metadata": {"name": "web-deployment", "namespace": "default"},
        "spec": {"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"}},
        "status": {"aggregatedStatus": [{"clusterName": name, "health": text} for name, text in sorted(health.items())]},
    }
    return "\n---\n".join([*map(yaml.safe_dump, clusters), yaml.safe_dump(report), WEB, policy, TAINTS])


@given(
    events=EVENTS,
    looks=st.lists(st.integers(0, 25), max_size=4),
    division=st.sampled_from(["Duplicated", "Divided"]),
    patience=st.sampled_from([0, 60, 300]),
    mode=st.sampled_from(["Gracefully", "Directly", "Never"]),
)
@settings(max_examples=count_examples(20), deadline=None)
def test_a_late_run_gives_the_result_of_punctual_ones(
    run: Any, events: list[Any], looks: list[int], division: str, patience: int, mode: str
) -> None:
    policy = POLICY % (division, patience, mode)
    start = parse_time("2026-01-01T12:00:00Z")
    assert start is not None
    first = run(repository(policy, {}, {}), at=format_time(start), karmada={"allowNoExecuteTaintPolicy": True})
    punctual = late = first
    for gap, health, fast in events:
        event, end = start, start + timedelta(minutes=gap)
        files = repository(policy, health, fast)
        for minute in sorted({0, *(look for look in looks if look < gap)}):
            punctual = look_at(run, files, punctual, event, event + timedelta(minutes=minute))
            check(punctual)
        punctual = look_at(run, files, punctual, event, end - timedelta(seconds=1))
        late = look_at(run, files, late, event, end - timedelta(seconds=1))
        assert late.binding("web") == punctual.binding("web")
        assert look_at(run, files, late, event, end - timedelta(seconds=1)).binding("web") == late.binding("web")
        start = end


def look_at(run: Any, files: str, before: Any, event: datetime, now: datetime) -> Any:
    """As reconcile does it: a run over a commit that was seen goes on from the last event."""
    at = max(event, min(before.outcome("web").time, now))
    return run(files, before, format_time(at), format_time(now), karmada={"allowNoExecuteTaintPolicy": True})


def check(done: Any) -> None:
    spec = done.binding("web")["spec"]
    held = {target["name"] for target in spec.get("clusters", [])}
    evicting = [task["fromCluster"] for task in spec.get("gracefulEvictionTasks", [])]
    assert held.isdisjoint(evicting)
    assert len(evicting) == len(set(evicting))
    if done.condition("web")["reason"] == "Success" and "Divided" in str(spec["placement"]):
        assert sum(target["replicas"] for target in spec["clusters"]) == 6
