"""When a binding is scheduled again, and when it is not."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from gitsched.apis.karmada.binding.resource_binding import find_schedule_trigger, read_previous
from gitsched.apis.karmada.interpreter import ReplicaRequirements
from gitsched.apis.karmada.policy.propagation_policy import has_placement_changed, parse_policy, serialize_placement
from gitsched.model.document import Body, Document, Key
from tests.tables import each_row

CHANGES = """
the same:
  before: {clusterAffinity: {clusterNames: [m1]}}
  after: {clusterAffinity: {clusterNames: [m1]}}
  changed: false
members in another order:
  before: {clusterTolerations: [{key: a, operator: Exists}]}
  after: {clusterTolerations: [{operator: Exists, key: a}]}
  changed: false
what Go leaves out when empty:
  before: {clusterAffinity: {clusterNames: [m1]}}
  after: {clusterAffinity: {clusterNames: [m1], exclude: []}, clusterTolerations: [], spreadConstraints: null}
  changed: false
another cluster:
  before: {clusterAffinity: {clusterNames: [m1]}}
  after: {clusterAffinity: {clusterNames: [m2]}}
  changed: true
clusters in another order:
  before: {clusterAffinity: {clusterNames: [m1, m2]}}
  after: {clusterAffinity: {clusterNames: [m2, m1]}}
  changed: true
another toleration:
  before: {}
  after: {clusterTolerations: [{key: a, operator: Exists}]}
  changed: true
another weight:
  before: {replicaScheduling: {weightPreference: {staticWeightList: [{targetCluster: {}, weight: 1}]}}}
  after: {replicaScheduling: {weightPreference: {staticWeightList: [{targetCluster: {}, weight: 2}]}}}
  changed: true
workload affinity does not count:
  before: {}
  after: {workloadAffinity: {affinity: {groupByLabelKey: app}}}
  changed: false
an observed group that changed:
  before: {clusterAffinities: [{affinityName: a, clusterNames: [m1]}, {affinityName: b}]}
  after: {clusterAffinities: [{affinityName: a, clusterNames: [m2]}, {affinityName: b}]}
  observed: a
  changed: true
another group that changed:
  before: {clusterAffinities: [{affinityName: a, clusterNames: [m1]}, {affinityName: b}]}
  after: {clusterAffinities: [{affinityName: a, clusterNames: [m1]}, {affinityName: b, exclude: [m1]}]}
  observed: a
  changed: false
a group that came:
  before: {clusterAffinities: [{affinityName: a}]}
  after: {clusterAffinities: [{affinityName: new}, {affinityName: a}]}
  observed: a
  changed: false
a group that went:
  before: {clusterAffinities: [{affinityName: a}, {affinityName: b}]}
  after: {clusterAffinities: [{affinityName: b}]}
  observed: b
  changed: false
the observed group went:
  before: {clusterAffinities: [{affinityName: a}, {affinityName: b}]}
  after: {clusterAffinities: [{affinityName: b}]}
  observed: a
  changed: true
the observed group came back:
  before: {clusterAffinities: [{affinityName: b}]}
  after: {clusterAffinities: [{affinityName: a}, {affinityName: b}]}
  observed: a
  changed: true
any group while none was observed:
  before: {clusterAffinities: [{affinityName: a}]}
  after: {clusterAffinities: [{affinityName: a}, {affinityName: b}]}
  changed: true
from groups to one affinity:
  before: {clusterAffinities: [{affinityName: a, clusterNames: [m1]}]}
  after: {clusterAffinity: {clusterNames: [m1]}}
  observed: a
  changed: true
something beside the groups:
  before: {clusterAffinities: [{affinityName: a}, {affinityName: b}]}
  after: {clusterAffinities: [{affinityName: a}], clusterTolerations: [{key: a, operator: Exists}]}
  observed: a
  changed: true
"""
DIVIDED = "{replicaScheduling: {replicaSchedulingType: Divided}}"
DUPLICATED = "{replicaScheduling: {replicaSchedulingType: Duplicated}}"
TRIGGERS = f"""
divided and in order:     {{placement: {DIVIDED}, replicas: 3, clusters: {{m1: 1, m2: 2}}, why: null}}
divided and short:        {{placement: {DIVIDED}, replicas: 4, clusters: {{m1: 1, m2: 2}}, why: the replicas changed}}
divided and in excess:    {{placement: {DIVIDED}, replicas: 2, clusters: {{m1: 1, m2: 2}}, why: the replicas changed}}
divided and nowhere:      {{placement: {DIVIDED}, replicas: 2, clusters: {{}},             why: the replicas changed}}
divided without replicas:   {{placement: {DIVIDED}, replicas: 0, clusters: {{m1: 0}},        why: it is evaluated on every run}}
duplicated and in order:  {{placement: {DUPLICATED}, replicas: 3, clusters: {{m1: 3, m2: 3}}, why: it is evaluated on every run}}
duplicated and one differs: {{placement: {DUPLICATED}, replicas: 3, clusters: {{m1: 3, m2: 2}}, why: the replicas changed}}
nothing said of replicas:   {{placement: {{}},         replicas: 3, clusters: {{m1: 2}},        why: it is evaluated on every run}}
no workload:              {{placement: {DIVIDED}, replicas: null, clusters: {{m1: 0}},     why: it is evaluated on every run}}
a deletion elsewhere:     {{placement: {DIVIDED}, replicas: 3, clusters: {{m1: 3}}, leaving: [m2], why: null}}
a deletion here:          {{placement: {DIVIDED}, replicas: 3, clusters: {{m1: 3}}, leaving: [m1], why: a cluster is being deleted}}
a rebalance later:        {{placement: {DIVIDED}, replicas: 3, clusters: {{m1: 3}}, asked: 13, done: 12, why: a rebalance was requested}}
a rebalance before:       {{placement: {DIVIDED}, replicas: 3, clusters: {{m1: 3}}, asked: 11, done: 12, why: null}}
a rebalance just then:    {{placement: {DIVIDED}, replicas: 3, clusters: {{m1: 3}}, asked: 12, done: 12, why: null}}
a rebalance before success: {{placement: {DIVIDED}, replicas: 3, clusters: {{m1: 3}}, asked: 12, why: null}}
replicas before rebalance:  {{placement: {DIVIDED}, replicas: 4, clusters: {{m1: 3}}, asked: 13, done: 12, why: the replicas changed}}
another placement first:  {{placement: {DIVIDED}, replicas: 4, clusters: {{m1: 3}}, applied: '{{}}', why: the placement changed}}
never placed:             {{placement: {DIVIDED}, replicas: 3, clusters: {{m1: 3}}, applied: null, why: the placement changed}}
an unreadable annotation:   {{placement: {DIVIDED}, replicas: 3, clusters: {{m1: 3}}, applied: '{{', why: null}}
"""


@each_row("case", (changes := yaml.safe_load(CHANGES)).values())
def test_placement_changes_that_reschedule(case: dict[str, Any]) -> None:
    observed = case.get("observed", "")
    assert has_placement_changed(case["after"], json.dumps(case["before"]), observed) is case["changed"]
    assert has_placement_changed(case["before"], serialize_placement(case["after"]), observed) is case["changed"], (
        "also the other way round"
    )


@pytest.mark.parametrize(
    ("applied", "changed"), [(None, True), ("", False), ("{", False), ("[]", False), ("null", False), ("7", False)]
)
def test_an_unreadable_annotation(applied: str | None, changed: bool) -> None:
    assert has_placement_changed({"clusterAffinity": {"clusterNames": ["m1"]}}, applied, "") is changed


@each_row("case", (triggers := yaml.safe_load(TRIGGERS)).values())
def test_schedule_triggers(case: dict[str, Any]) -> None:
    body = {"kind": "PropagationPolicy", "apiVersion": "policy.karmada.io/v1alpha1", "metadata": {"name": "p"}}
    spec = {"resourceSelectors": [], "placement": case["placement"]}
    key = Key("policy.karmada.io", "PropagationPolicy", "default", "p")
    policy = parse_policy(Document(key, "policy.karmada.io/v1alpha1", {**body, "spec": spec}))
    applied = case.get("applied", policy.applied_placement)
    hours = {name: f"2026-01-01T{case[name]}:00:00Z" for name in ("asked", "done") if name in case}
    binding: Body = {
        "metadata": {"annotations": {} if applied is None else {"policy.karmada.io/applied-placement": applied}},
        "spec": {
            "clusters": [{"name": name, "replicas": count} for name, count in case["clusters"].items()],
            "rescheduleTriggeredAt": hours.get("asked"),
        },
        "status": {"lastScheduledTime": hours.get("done")},
    }
    memory = read_previous(binding)
    demand = ReplicaRequirements(case["replicas"], None, "spec.replicas")
    assert find_schedule_trigger(policy, demand, memory, memory.clusters, case.get("leaving", [])) == case["why"]


def test_a_new_binding_is_scheduled() -> None:
    assert read_previous(None).applied_placement is None
    assert has_placement_changed({}, read_previous(None).applied_placement, "") is True


def test_the_annotation_has_the_members_in_the_order_of_karmada_s_types() -> None:
    placement = {
        "replicaScheduling": {"weightPreference": {"staticWeightList": [{"weight": 1, "targetCluster": {"clusterNames": ["m1"]}}]}},
        "clusterTolerations": [{"operator": "Exists", "key": "ü"}],
        "clusterAffinity": {"clusterNames": ["m1"], "labelSelector": {"matchLabels": {"b": "1", "a": "2"}}},
    }
    assert serialize_placement(placement) == (
        '{"clusterAffinity":{"labelSelector":{"matchLabels":{"a":"2","b":"1"}},"clusterNames":["m1"]},'
        '"clusterTolerations":[{"key":"ü","operator":"Exists"}],'
        '"replicaScheduling":{"weightPreference":{"staticWeightList":[{"targetCluster":{"clusterNames":["m1"]},"weight":1}]}}}'
    )
