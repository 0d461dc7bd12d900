"""The annotation gitsched.io/preferred-clusters: the named clusters come first among those that the policy of a workload allows."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import gitsched
from tests.apis.ocm.chosen_clusters import NOW, list_chosen
from tests.builders import knative, krake
from tests.builders.ocm import bound_global_set, built_in, managed_cluster, placement
from tests.tables import each_row

Body = dict[str, Any]
ANNOTATION = "gitsched.io/preferred-clusters"

# Four clusters in two regions; their free capacity is what they have room for, in replicas.
ROOM = {"a": ("north", 4), "b": ("north", 20), "c": ("south", 30), "d": ("south", 10)}
DIVIDED = "replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: "
DYNAMIC = f"{DIVIDED}Weighted, weightPreference: {{dynamicWeight: AvailableReplicas}}}}"
AGGREGATED, STATIC = f"{DIVIDED}Aggregated}}", f"{DIVIDED}Weighted}}"
ONE = "spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]"
TWO = "spreadConstraints: [{spreadByField: cluster, minGroups: 2, maxGroups: 2}]"
REGION = (
    "spreadConstraints: [{spreadByField: region, minGroups: 1, maxGroups: 1}, {spreadByField: cluster, minGroups: 1, maxGroups: 2}]"
)
NOT_A = "clusterAffinity: {clusterNames: [b, c, d]}"
GROUPS = "clusterAffinities: [{affinityName: own, clusterNames: [c, d]}, {affinityName: other, clusterNames: [a, b]}]"
REBALANCER = """\
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata: {name: again, creationTimestamp: "2030-01-01T00:00:00Z"}
spec: {workloads: [{apiVersion: apps/v1, kind: Deployment, namespace: default, name: web}]}
"""


def member(name: str, region: str, room: int) -> Body:
    return yaml.safe_load(f"""\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {{name: {name}}}
spec: {{syncMode: Push, region: {region}}}
status: {{resourceSummary: {{allocatable: {{cpu: "{room}", memory: 100Gi, pods: "100"}}}}}}
""")


FLEET = [member(name, *facts) for name, facts in ROOM.items()]


def workload(preferred: str | None = None, replicas: int = 6) -> Body:
    body = yaml.safe_load(f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: default}}
spec:
  replicas: {replicas}
  template: {{spec: {{containers: [{{name: c, image: i, resources: {{requests: {{cpu: 1}}}}}}]}}}}
""")
    if preferred is not None:
        body["metadata"]["annotations"] = {ANNOTATION: preferred}
    return body


def policy(*placement_fields: str) -> Body:
    text = ", ".join(placement_fields)
    return yaml.safe_load(f"""\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {{name: p, namespace: default}}
spec: {{resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment}}], placement: {{{text}}}}}
""")


def place(*documents: Body, previous: Any = ()) -> tuple[dict[str, int], gitsched.Schedule]:
    """Return the replicas of the workload by cluster."""
    schedule = gitsched.schedule([*FLEET, *documents], previous=previous, now=NOW)
    binding = next(body for body in schedule.documents if body["kind"] == "ResourceBinding")
    return {entry["name"]: entry["replicas"] for entry in binding["spec"].get("clusters") or ()}, schedule


def list_preference_findings(schedule: gitsched.Schedule) -> list[tuple[str, str]]:
    found = (finding for finding in schedule.findings if finding.code.startswith("preferred-clusters"))
    return [(finding.code.removeprefix("preferred-clusters-"), finding.message) for finding in found]


@each_row(
    ("fields", "preferred", "expected"),
    [
        # Duplicated: the spread constraints choose, and the named clusters come first.
        ((ONE,), None, {"c": 6}),
        ((ONE,), "b", {"b": 6}),
        ((ONE,), "d, b", {"d": 6}),
        ((TWO,), "d", {"d": 6, "c": 6}),
        ((TWO,), "b,d", {"b": 6, "d": 6}),
        ((REGION,), "d", {"d": 6, "c": 6}),
        ((REGION,), "b", {"b": 6, "a": 6}),
        # Dynamic weights: what fits goes to the named clusters, in proportion to their capacity.
        ((DYNAMIC,), None, {"b": 2, "c": 3, "d": 1}),
        ((DYNAMIC,), "d", {"d": 6}),
        ((DYNAMIC,), "a", {"a": 4, "b": 1, "c": 1}),
        ((DYNAMIC,), "a,d", {"a": 2, "d": 4}),
        ((DYNAMIC, TWO), "a,d", {"a": 2, "d": 4}),
        ((DYNAMIC, REGION), "a", {"a": 4, "b": 2}),
        # Two clusters are wanted and only one is named: the replicas are divided as the policy says.
        ((DYNAMIC, TWO), "d", {"c": 4, "d": 2}),
        # Aggregated: as few as are sufficient, in the order of the names.
        ((AGGREGATED,), None, {"c": 6}),
        ((AGGREGATED,), "d,b", {"d": 6}),
        ((AGGREGATED,), "a,d", {"a": 4, "d": 2}),
        ((AGGREGATED,), "a", {"a": 4, "c": 2}),
        # What the policy does not allow stays out, and the order of its groups stays.
        ((ONE, NOT_A), "a,b", {"b": 6}),
        ((AGGREGATED, NOT_A), "a", {"c": 6}),
        ((AGGREGATED, GROUPS), "b,d", {"d": 6}),
        # No room for the workload: a preference does not leave pods pending.
        ((ONE,), "a", {"c": 6}),
    ],
)
def test_named_clusters_come_first_among_those_that_the_policy_allows(
    fields: tuple[str, ...], preferred: str | None, expected: dict[str, int]
) -> None:
    assert place(workload(preferred), policy(*fields))[0] == expected


@pytest.mark.parametrize(
    ("fields", "before", "more", "fewer", "after"),
    [
        ((ONE,), {"c": 6}, {"c": 8}, {"c": 4}, {"b": 6}),
        ((DYNAMIC,), {"b": 2, "c": 3, "d": 1}, {"b": 4, "c": 3, "d": 1}, {"b": 1, "c": 2, "d": 1}, {"b": 6}),
        ((AGGREGATED,), {"c": 6}, {"c": 8}, {"c": 4}, {"b": 6}),
    ],
    ids=["duplicated", "dynamic", "aggregated"],
)
def test_a_running_workload_moves_only_on_request_and_stays_then(
    fields: tuple[str, ...], before: dict[str, int], more: dict[str, int], fewer: dict[str, int], after: dict[str, int]
) -> None:
    rules = policy(*fields)
    placed, first = place(workload(), rules)
    assert placed == before
    named, second = place(workload("b"), rules, previous=first.documents)
    assert named == before, "the annotation alone moves nothing"
    assert place(workload("b", 8), rules, previous=second.documents)[0] == more
    assert place(workload("b", 4), rules, previous=second.documents)[0] == fewer
    moved, third = place(workload("b"), rules, yaml.safe_load(REBALANCER), previous=second.documents)
    assert moved == after
    assert place(workload("b"), rules, previous=third.documents)[0] == after
    assert place(workload(), rules, previous=third.documents)[0] == after, "without the annotation it stays as well"


@each_row(
    ("fields", "preferred", "code", "words"),
    [
        ((ONE,), "b", None, ""),
        ((), "b", "unused", "its policy chooses all clusters that it allows"),
        ((STATIC,), "b", "unused", "static weights divide the replicas"),
        ((ONE,), "e", "unknown", "names e, and there is no such Cluster"),
        ((ONE,), "a", "unused", "a is without capacity for it"),
        ((ONE, NOT_A), "a", "unused", "a is not allowed: cluster(s) did not match the placement cluster affinity constraint"),
        ((ONE,), "", "invalid", "a name is empty"),
        ((ONE,), "b,,c", "invalid", "a name is empty"),
        ((ONE,), "b,c,b", "invalid", "b is there twice"),
        ((ONE,), "b c", "invalid", "'b c' is not the name of a cluster"),
        ((ONE,), ",".join(f"c{number}" for number in range(1001)), "invalid", "more than 1000 names"),
    ],
)
def test_an_annotation_without_effect_is_reported(fields: tuple[str, ...], preferred: str, code: str | None, words: str) -> None:
    findings = list_preference_findings(place(workload(preferred), policy(*fields))[1])
    assert [found for found, _ in findings] == ([code] if code else [])
    assert all(words in message for _, message in findings)


def test_a_malformed_annotation_changes_nothing() -> None:
    for preferred in ("b,,c", "b,b"):
        assert place(workload(preferred), policy(ONE))[0] == place(workload(), policy(ONE))[0]


def test_a_running_workload_is_reported_with_the_command_that_moves_it() -> None:
    _, first = place(workload(), policy(ONE))
    _, second = place(workload("b"), policy(ONE), previous=first.documents)
    ((code, message),) = list_preference_findings(second)
    assert code == "unused"
    assert "it stays on c until it is rescheduled (`gitsched rebalance -n default Deployment/web` writes a request)" in message


def test_an_eviction_leads_to_the_named_clusters() -> None:
    _, first = place(workload("d,b"), policy(ONE))
    tainted = member("d", "south", 10)
    tainted["spec"]["taints"] = [{"key": "power", "effect": "NoExecute"}]
    documents = [tainted if body["metadata"]["name"] == "d" else body for body in FLEET]
    schedule = gitsched.schedule([*documents, workload("d,b"), policy(ONE)], previous=first.documents, now=NOW)
    binding = next(body for body in schedule.documents if body["kind"] == "ResourceBinding")
    assert [entry["name"] for entry in binding["spec"]["clusters"]] == ["b"]


@given(
    fields=st.sampled_from(
        [(), (ONE,), (TWO,), (REGION,), (DYNAMIC,), (DYNAMIC, TWO), (AGGREGATED,), (STATIC,), (AGGREGATED, GROUPS)]
    ),
    replicas=st.integers(1, 70),
    preferred=st.lists(st.sampled_from("abcde"), min_size=1, unique=True).map(",".join),
    first=st.sampled_from([None, "a", "b,d", "c"]),
)
def test_a_preference_places_all_replicas_on_allowed_clusters_or_as_few_as_without(
    fields: tuple[str, ...], replicas: int, preferred: str, first: str | None
) -> None:
    without = place(workload(first, replicas), policy(*fields))
    named = place(workload(preferred, replicas), policy(*fields))
    assert bool(named[0]) == bool(without[0])
    assert named[0].keys() <= ROOM.keys()
    if fields and "Divided" in fields[0] and named[0]:
        assert sum(named[0].values()) == replicas
        if fields[0] != STATIC:
            assert all(count <= ROOM[name][1] for name, count in named[0].items())
    again = place(workload(preferred, replicas), policy(*fields), previous=named[1].documents)
    assert again[0] == named[0], "the next run decides the same"
    moved = place(workload(preferred, replicas), policy(*fields), yaml.safe_load(REBALANCER), previous=without[1].documents)
    if fields in ((ONE,), (DYNAMIC,), (AGGREGATED,)) and replicas <= min(room for _, room in ROOM.values()) and preferred != "e":
        assert moved[0].keys() <= set(preferred.split(",")), "the named clusters have room for all"


def choose(number: int | None, preferred: str | None, **spec: Any) -> list[Body]:
    """Return a Placement that prefers the last clusters by a score, and four ManagedClusters."""
    annotations = {ANNOTATION: preferred} if preferred is not None else None
    taints = {"b": [{"key": "power", "effect": "NoSelect"}]}
    clusters = [managed_cluster(name, {"tier": name}, taints.get(name, ())) for name in "abcd"]
    prioritizers = [built_in("Steady", 10)]
    return [
        *bound_global_set("default"),
        *clusters,
        placement("p", "default", number, prioritizers, annotations=annotations, **spec),
    ]


@each_row(
    ("number", "preferred", "expected", "code", "words"),
    [
        (1, None, ["a"], None, ""),
        (1, "d", ["d"], None, ""),
        (1, "d,c", ["d"], None, ""),
        (2, "d,c", ["c", "d"], None, ""),
        (2, "d", ["a", "d"], None, ""),
        (1, "b", ["a"], "unused", "b is not allowed: its taint power:NoSelect is not tolerated"),
        (1, "e", ["a"], "unknown", "names e, and there is no such ManagedCluster"),
        (None, "d", ["a", "c", "d"], "unused", "it chooses all clusters that it allows"),
        (1, "d,", ["a"], "invalid", "a name is empty"),
    ],
)
def test_a_placement_chooses_named_clusters_before_all_scores(
    number: int | None, preferred: str | None, expected: list[str], code: str | None, words: str
) -> None:
    documents = choose(number, preferred)
    assert list_chosen(documents) == expected
    schedule = gitsched.schedule(choose(number, None), now=NOW)
    assert list_chosen(documents, list(schedule.documents)) == expected, "a Placement is scheduled again when it changes"
    findings = list_preference_findings(gitsched.schedule(documents, now=NOW))
    assert [found for found, _ in findings] == ([code] if code else [])
    assert all(words in message for _, message in findings)


def test_the_annotation_of_a_workload_that_follows_a_placement_is_reported() -> None:
    annotations = {ANNOTATION: "d", "cluster.open-cluster-management.io/placement": "p"}
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "default", "annotations": annotations},
    }
    ((code, message),) = list_preference_findings(gitsched.schedule([*choose(1, None), config], now=NOW))
    assert (code, "Placement/default/p chooses the clusters: annotate that" in message) == ("unused", True)


def prefer(preferred: str, **spec: Any) -> Body:
    body = krake.application(**spec)
    body["metadata"]["annotations"] = {ANNOTATION: preferred}
    return body


LOADED = [krake.cluster(name, metrics=krake.weigh(m=weight)) for name, weight in (("c1", 1.0), ("c2", 1.0))]
LOADED += [krake.cluster("c3", labels={"gpu": "yes"}), *krake.measure(m=0.5)]


@each_row(
    ("app", "expected", "code", "words"),
    [
        (prefer("c3"), "c3", None, ""),
        (prefer("c2,c3"), "c2", None, ""),
        (prefer("tenant-a.c2"), "c2", None, ""),
        (prefer("c2", constraints={"labels": ["gpu is yes"]}), "c3", "unused", "c2 is not allowed: "),
        (prefer("c9", constraints={"labels": ["gpu is yes"]}), "c3", "unknown", "names c9, and there is no such Cluster"),
        (prefer(",", constraints={"labels": ["gpu is yes"]}), "c3", "invalid", "a name is empty"),
    ],
)
def test_an_application_runs_on_the_first_named_cluster_that_its_constraints_allow(
    app: Body, expected: str, code: str | None, words: str
) -> None:
    runs = krake.ScheduleRuns(app, *LOADED)
    schedule = runs.run()
    assert runs.target() == expected
    findings = list_preference_findings(schedule)
    assert [found for found, _ in findings] == ([code] if code else [])
    assert all(words in message for _, message in findings)
    runs.run(3600)
    assert runs.target() == expected


def test_an_application_moves_to_a_named_cluster_when_krake_schedules_it_again() -> None:
    runs = krake.ScheduleRuns(krake.application(), *LOADED)
    runs.run()
    before = runs.target()
    assert before in ("c1", "c2")
    schedule = runs.run(10, prefer("c3"))
    assert runs.target() == before, "it was scheduled recently"
    ((code, message),) = list_preference_findings(schedule)
    assert (code, f"it stays on {before} until it is rescheduled (at " in message) == ("unused", True)
    assert not list_preference_findings(runs.run(3600, at=10))
    assert runs.target() == "c3"


def test_an_application_without_migration_stays() -> None:
    runs = krake.ScheduleRuns(krake.application(migration=False), *LOADED)
    runs.run()
    before = runs.target()
    ((_, message),) = list_preference_findings(runs.run(3600, prefer("c3", migration=False)))
    assert runs.target() == before
    assert "its migration is disabled" in message


def prefer_pods(text: str, *ordinals: int, more: str = "") -> str:
    named = ",".join(f"{knative.ADAPTER}-{ordinal}" for ordinal in ordinals) + more
    return text.replace("namespace: shop}", f"namespace: shop, annotations: {{{ANNOTATION}: '{named}'}}}}")


STATEFUL_SET = (
    knative.adapter(4),
    knative.pods({0: "n0", 1: "n1", 2: "n0", 3: "n1"}),
    knative.node("n0", "east"),
    knative.node("n1", "west"),
)


@each_row(
    ("consumers", "ordinals", "expected"),
    [
        (4, (2, 3), {2: 2, 3: 2}),
        (4, (3,), {3: 4}),
        (6, (2, 3), {2: 3, 3: 3}),
        (6, (3,), {3: 4, 0: 2}),
        (2, (3, 2), {3: 1, 2: 1}),
    ],
)
def test_vreplicas_go_to_named_pods_and_are_spread_there(
    consumers: int, ordinals: tuple[int, ...], expected: dict[int, int]
) -> None:
    named = prefer_pods(knative.source("orders", consumers), *ordinals)
    schedule = knative.schedule(*STATEFUL_SET, named)
    assert knative.placements(schedule.documents, "orders") == expected
    assert not list_preference_findings(schedule) or consumers > 4 * len(ordinals)
    plain = knative.schedule(*STATEFUL_SET, knative.source("orders", consumers))
    assert knative.placements(plain.documents, "orders") != expected
    moved = knative.schedule(*STATEFUL_SET, named, previous=plain.documents)
    assert knative.placements(moved.documents, "orders").keys() == expected.keys(), "vreplicas on other pods move there"
    again = knative.schedule(*STATEFUL_SET, named, previous=moved.documents)
    assert knative.placements(again.documents, "orders") == knative.placements(moved.documents, "orders")


@pytest.mark.parametrize("settings", [{"scaleUp": "replace"}, {"policy": "MAXFILLUP"}])
def test_other_modes_prefer_named_pods_too(settings: Body) -> None:
    plain = knative.schedule(*STATEFUL_SET, knative.source("orders", 4), **settings)
    named = prefer_pods(knative.source("orders", 4), 3)
    for previous in ((), plain.documents):
        moved = knative.schedule(*STATEFUL_SET, named, previous=previous, **settings)
        assert knative.placements(moved.documents, "orders") == {3: 4}


@each_row(
    ("named", "code", "words"),
    [
        (prefer_pods(knative.source("orders", 4), 9), "unknown", "adapter-9, and there is no such Pod of StatefulSet"),
        (prefer_pods(knative.source("orders", 4), more="events"), "unused", "events has no effect, because the StatefulSet"),
        (prefer_pods(knative.source("orders", 6), 3), "unused", "kafkasource-mt-adapter-3 is full"),
        (prefer_pods(knative.source("orders", 4), 3, more=","), "invalid", "a name is empty"),
    ],
)
def test_names_that_are_no_usable_pods_are_reported(named: str, code: str, words: str) -> None:
    findings = list_preference_findings(knative.schedule(*STATEFUL_SET, named, cluster="events"))
    assert [found for found, _ in findings] == [code]
    assert words in findings[0][1]
