"""What exceeds a limit in documents of the policy APIs is a finding, or is done by the next run; nothing is dropped in silence."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import gitsched
from benchmarks.doubling import make_cluster, make_deployment, make_policy
from gitsched.apis.export import ExportInput
from gitsched.apis.karmada.policy.near_selection import NearSelections
from gitsched.apis.karmada.policy.propagation_policy import parse_policy
from gitsched.apis.knative.live_patches import list_live_patches
from gitsched.apis.knative.scheduler import AdapterState, VpodSchedulingInput, VpodSchedulingResult, schedule_vpods
from gitsched.apis.knative.settings import AutoscalerConfig
from gitsched.apis.knative.vpods import AdapterPods
from gitsched.apis.ocm.export import make_export
from gitsched.decide.unmatched_selectors import list_unmatched
from gitsched.decide.validation import validate_document
from gitsched.manifests.parser import parse_file
from gitsched.model.document import Body, Document, Key
from gitsched.model.time import format_time
from gitsched.schedule.vreplicas.plugins import Profile
from gitsched.schedule.vreplicas.scheduler import SchedulingStrategy
from tests.builders import krake, ocm

LONG = "x" * 70
CASES: dict[str, tuple[str, int | None, str, str]] = {
    "resources of facts": (
        "gitsched.facts_document.MAX_RESOURCES", 1,
        "{apiVersion: gitsched.io/v1alpha1, kind: ClusterFacts, metadata: {name: a}, status: {observedAt: '2026-03-01T08:00:00Z', "
        "version: v1, capacity: {cpu: 1, memory: 1}}}",
        "error invalid-facts capacity has 2 resources: at most 1 can be",
    ),
    "vreplicas": (
        "knative.vpods.MAX_VREPLICAS", 7,
        "{apiVersion: sources.knative.dev/v1beta1, kind: KafkaSource, metadata: {name: a, namespace: b}, spec: {consumers: 8}}",
        "error knative-vreplicas spec.consumers must be an integer from 0 to 7",
    ),
    "ordinal of a pod": (
        "", None,
        "{apiVersion: sources.knative.dev/v1beta1, kind: KafkaSource, metadata: {name: a, namespace: b}, spec: {consumers: 1}, "
        "status: {placements: [{podName: adapter-100000, vreplicas: 1}]}}",
        "error knative-placements status.placements[0] has a podName without an ordinal from 0 to 99999: 'adapter-100000'",
    ),
    "annotations of a Cluster": (
        "karmada.validation.cluster._MAX_ANNOTATIONS_SIZE", 4,
        "{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: a, annotations: {abc: de}}, spec: {syncMode: Push}}",
        "error karmada-cluster-annotation annotations exceed the maximum of 4 bytes",
    ),
    "name of a Cluster": (
        "", None,
        f"{{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {{name: {LONG[:49]}}}, spec: {{syncMode: Push}}}}",
        "error karmada-cluster-name the name of a Cluster must be no more than 48 characters",
    ),
    "name of a Placement": (
        "", None,
        f"{{apiVersion: cluster.open-cluster-management.io/v1beta1, kind: Placement, metadata: {{name: {LONG[:64]}, "
        "namespace: a}, spec: {}}",
        "error ocm-placement-name the name must be no more than 63 characters",
    ),
    "seconds of a toleration": (
        "", None,
        "{apiVersion: cluster.open-cluster-management.io/v1beta1, kind: Placement, metadata: {name: a, namespace: a}, "
        "spec: {tolerations: [{key: a, operator: Exists, tolerationSeconds: 9223372037}]}}",
        "warning ocm-toleration-inert 9223372037 seconds never tolerate a taint",
    ),
    "constraint of Krake": (
        "", None,
        "{api: kubernetes, kind: Application, metadata: {name: a, namespace: a}, spec: {manifest: [{apiVersion: v1, kind: ConfigMap, "
        f"metadata: {{name: a}}}}], constraints: {{cluster: {{labels: [location is {LONG * 60}]}}}}}}}}",
        "is too long: a label constraint has at most 4096 characters",
    ),
    "plug-ins of a scheduler policy": (
        "knative.scheduler_policies.MAX_PLUGINS", 1,
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: config-scheduler, namespace: knative-eventing}, data: {predicates: "
        """'[{"Name": "PodFitsResources"}, {"Name": "PodFitsResources"}]', priorities: '[]'}}""",
        "error knative-policy lists more than 1 plug-ins",
    ),
    "weight of a priority": (
        "", None,
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: config-scheduler, namespace: knative-eventing}, data: {predicates: "
        """'[]', priorities: '[{"Name": "AvailabilityZonePriority", "Weight": 11}]'}}""",
        "error knative-policy [0].Weight must be an integer from 0 to 10",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", CASES)
def test_a_value_beyond_a_limit_is_a_finding(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    constant, limit, text, expected = CASES[what]
    if constant:
        assert list_issues(text) == [], "within the limit"
        monkeypatch.setattr(f"gitsched.apis.{constant}", limit)
    found = list_issues(text)
    assert any(expected in issue for issue in found), found


def list_issues(text: str) -> list[str]:
    file = parse_file(text.encode(), path="a.yaml", validate=validate_document)
    return [f"{issue.severity} {issue.code} {issue.message}" for issue in file.issues]


START = datetime(2026, 3, 2, 12, tzinfo=UTC)
KEYS = ("a", "b", "c")


def make_karmada() -> tuple[list[Body], Body]:
    """One workload on three clusters, which it must leave one, two and three minutes after the start."""
    tolerated = [{"key": key, "effect": "NoExecute", "tolerationSeconds": 60 * (n + 1)} for n, key in enumerate(KEYS)]
    policy = make_policy("all", None)
    policy["spec"]["placement"] = {"clusterTolerations": [{**entry, "operator": "Exists"} for entry in tolerated]}
    clusters = [make_cluster(key) for key in KEYS]
    for body in clusters:
        taint = {"key": body["metadata"]["name"], "effect": "NoExecute", "timeAdded": format_time(START)}
        body["spec"]["taints"] = [taint]
    return [*clusters, policy, make_deployment("web")], {"karmada": {"taintEviction": True, "gracefulEviction": False}}


def make_ocm() -> tuple[list[Body], Body]:
    """One Placement of three clusters, which it must leave one, two and three minutes after the start."""
    clusters = [ocm.managed_cluster(key, taints=[{**ocm.taint(key), "timeAdded": format_time(START)}]) for key in KEYS]
    tolerations = [{"key": key, "operator": "Exists", "tolerationSeconds": 60 * (n + 1)} for n, key in enumerate(KEYS)]
    return [*ocm.bound_global_set("shop"), *clusters, ocm.placement("all", "shop", tolerations=tolerations)], {}


def make_krake() -> tuple[list[Body], Body]:
    return [krake.application(backoff_limit=5), krake.cluster("one", "OFFLINE")], {}


def make_rollout() -> tuple[list[Body], Body]:
    """One ManifestWorkReplicaSet, which goes on to the next of three clusters a minute after the one before."""
    clusters = [ocm.managed_cluster(key) for key in KEYS]
    strategy = {"type": "Progressive", "progressive": {"maxConcurrency": 1, "progressDeadline": "1m", "maxFailures": "100%"}}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    workload = {
        "apiVersion": "work.open-cluster-management.io/v1alpha1",
        "kind": "ManifestWorkReplicaSet",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "placementRefs": [{"name": "all", "rolloutStrategy": strategy}],
            "manifestWorkTemplate": {"workload": {"manifests": [config_map]}},
        },
    }
    return [*ocm.bound_global_set("shop"), *clusters, ocm.placement("all", "shop"), workload], {}


@pytest.mark.parametrize(
    ("make", "constant"),
    [
        (make_karmada, "karmada.names.MAX_DEADLINES"),
        (make_ocm, "ocm.scheduling.MAX_DEADLINES"),
        (make_rollout, "ocm.workload_rollout.MAX_ROLLOUT_STEPS"),
        (make_krake, "krake.scheduler._MAX_DEADLINES"),
    ],
    ids=["karmada", "ocm", "rollout", "krake"],
)
def test_deadlines_beyond_the_limit_of_a_run_are_those_of_the_next_runs(
    monkeypatch: pytest.MonkeyPatch, make: Any, constant: str
) -> None:
    documents, config = make()

    def run(minutes: int, previous: list[Body]) -> gitsched.Schedule:
        return gitsched.schedule(documents, previous=previous, at=START, now=START + timedelta(minutes=minutes), config=config)

    first = run(0, [])
    expected = run(10, first.documents)
    assert expected.documents != first.documents, "deadlines change the decisions"
    monkeypatch.setattr(f"gitsched.apis.{constant}", 2)
    runs = [first]
    for _ in range(4):
        runs.append(run(10, runs[-1].documents))
    late = [found.next_wakeup is not None and found.next_wakeup <= START + timedelta(minutes=10) for found in runs[1:]]
    assert late[0], "the report names a time that has passed"
    assert not late[-1]
    assert runs[-1].documents == expected.documents


def test_an_adapter_processes_a_limited_number_of_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[datetime] = []

    def run(_input: object, state: AdapterState, _placements: object, time: datetime) -> VpodSchedulingResult:
        passes.append(time)
        return VpodSchedulingResult(state, {}, Any, Any, wakeup=time + timedelta(minutes=1))  # type: ignore[arg-type]

    monkeypatch.setattr("gitsched.apis.knative.scheduler._run_keep_mode", run)
    monkeypatch.setattr("gitsched.apis.knative.scheduler.MAX_DEADLINES", 3)
    given: Any = VpodSchedulingInput(
        AdapterPods({}, {}, frozenset(), {}, frozenset()), 1, SchedulingStrategy(Profile((), ()), None), AutoscalerConfig(), {}
    )
    found = schedule_vpods(given, AdapterState(1), {}, START, START + timedelta(hours=1))
    assert passes == [START + timedelta(minutes=minute) for minute in range(4)]
    assert found.wakeup == START + timedelta(minutes=4), "so that the next run follows at once"


def find(documents: list[Body], code: str) -> list[tuple[str, str]]:
    """Return severity and message of the findings of a run with a code."""
    found = gitsched.schedule(documents, now=START).findings
    return [(finding.severity, finding.message) for finding in found if finding.code == code]


def make_override(overriders: Body) -> list[Body]:
    containers = [{"name": name, "image": "web"} for name in KEYS]
    override = make_policy("override", None)
    override["kind"] = "OverridePolicy"
    override["spec"] = {"resourceSelectors": override["spec"]["resourceSelectors"], "overrideRules": [{"overriders": overriders}]}
    web = make_deployment("web")
    web["spec"]["template"] = {"spec": {"containers": containers}}
    return [make_cluster("one"), make_policy("all", None), web, override]


IMAGE = {"component": "Registry", "operator": "replace", "value": "r.example.com"}


@pytest.mark.parametrize(
    ("constant", "limit", "overriders", "expected"),
    [
        (
            "_MAX_ARGUMENTS", 2,
            {"argsOverrider": [{"containerName": "a", "operator": "add", "value": ["x", "y", "z"]}]},
            "argsOverrider[0]: the args of container 0 would have more than 2 entries",
        ),
        (
            "_MAX_IMAGE_LENGTH", 20,
            {"imageOverrider": [{**IMAGE, "value": "r" * 30}, IMAGE]},
            "imageOverrider[1]: the image name is invalid",
        ),
        (
            "_MAX_REPOSITORY_LENGTH", 2,
            {"imageOverrider": [IMAGE]},
            "imageOverrider[0]: the repository of the image has more than 2 characters",
        ),
        (
            "_MAX_VISITS",
            5,
            {"imageOverrider": [IMAGE, IMAGE]},
            "imageOverrider[1]: the overriders visit more than 5 containers",
        ),
    ],
)  # fmt: skip
def test_an_override_beyond_a_limit_fails_and_the_manifest_stays(
    monkeypatch: pytest.MonkeyPatch, constant: str, limit: int, overriders: Body, expected: str
) -> None:
    assert find(make_override(overriders), "override-failed") == []
    monkeypatch.setattr(f"gitsched.apis.karmada.overrides.overriders.{constant}", limit)
    ((severity, message),) = find(make_override(overriders), "override-failed")
    assert severity == "error"
    assert message.endswith(expected)


@pytest.mark.parametrize(
    ("limits", "expression", "reason"),
    [
        ({"standard_library.MAX_STRING_LENGTH": 5}, "managedCluster.metadata.name + 'abcdef' != ''", "the string is too long"),
        ({"strings.MAX_STRING_LENGTH": 5}, "managedCluster.metadata.name.replace('a', 'abcdef') != ''", "the string is too long"),
        ({}, "managedCluster.metadata.name.matches('a{1001}')", "invalid repeat count: {1001}"),
        ({"regex._MAX_HEIGHT": 3}, "managedCluster.metadata.name.matches('((((x))))')", "expression nests too deeply"),
        ({"regex._MAX_MEMORY": 3000}, "managedCluster.metadata.name.matches('[a-z0-9]{900}')", "pattern too large"),
        ({"regex._MAX_PATTERN_LENGTH": 5}, "managedCluster.metadata.name.matches('zzzzzz')", "longer than 5 characters"),
        ({"timestamps._MAX_DURATION_LENGTH": 5}, "duration(managedCluster.metadata.name + '1h1m1s') > duration('1s')", "duration"),
    ],
)
def test_an_expression_beyond_a_limit_matches_no_cluster_and_is_reported(
    monkeypatch: pytest.MonkeyPatch, limits: dict[str, int], expression: str, reason: str
) -> None:
    for constant, limit in limits.items():
        monkeypatch.setattr(f"gitsched.apis.ocm.cel.{constant}", limit)
    predicate = {"requiredClusterSelector": {"celSelector": {"celExpressions": [expression]}}}
    documents = [*ocm.bound_global_set("shop"), ocm.managed_cluster("a"), ocm.placement("all", "shop", predicates=[predicate])]
    ((severity, message),) = find(documents, "cel-failed")
    assert severity == "warning"
    assert "fails for every cluster and matches none" in message
    assert reason in message


def test_names_beyond_the_lookups_of_a_run_are_reported_without_a_suggestion(monkeypatch: pytest.MonkeyPatch) -> None:
    policies = [make_policy(f"p{number}", f"frontend{'x' * number}") for number in (1, 2, 3)]
    documents = [make_cluster("one"), make_deployment("frontend"), *policies]
    assert ["did you mean frontend?" in message for _, message in find(documents, "karmada-selects-nothing")] == [True] * 3
    monkeypatch.setattr("gitsched.apis.karmada.policy.unmatched_selectors._MAX_LOOKUPS", 1)
    assert ["did you mean frontend?" in message for _, message in find(documents, "karmada-selects-nothing")] == [
        True,
        False,
        False,
    ]


def test_values_beyond_the_lookups_of_a_run_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    one = make_cluster("one")
    one["metadata"]["labels"] = {"environment": "production"}
    bodies = [one, *(make_policy(f"p{number}", None) for number in range(3))]
    for body in bodies[1:]:
        requirement = {"key": "enviroment", "operator": "NotIn", "values": ["a"]}
        body["spec"]["placement"] = {"clusterAffinity": {"labelSelector": {"matchExpressions": [requirement]}}}
    documents: dict[tuple[str, str], list[Document]] = {}
    for body in bodies:
        group, kind = body["apiVersion"].partition("/")[0], body["kind"]
        key = Key(group, kind, body["metadata"].get("namespace", ""), body["metadata"]["name"])
        documents.setdefault((group, kind), []).append(Document(key, body["apiVersion"], body))
    monkeypatch.setattr("gitsched.decide.unmatched_selectors._MAX_LOOKUPS", 1)
    found = [(finding.severity, finding.message) for finding in list_unmatched(documents, (), (), ())]
    assert [severity for severity, _ in found] == ["warning", "info"]
    assert found[0][1].endswith("no cluster has the label enviroment; did you mean environment?")
    assert found[1][1].startswith("2 further values in selectors that no cluster has can be misspelt")


@pytest.mark.parametrize("constant", ["_MAX_LOOKUPS", "_MAX_RULES"])
def test_objects_that_no_policy_selects_may_lack_the_nearest_hint_beyond_a_limit(
    monkeypatch: pytest.MonkeyPatch, constant: str
) -> None:
    keys = [Key("policy.karmada.io", "PropagationPolicy", "default", name) for name in ("p1", "p2")]
    bodies = [make_policy(key.name, f"{name}x") for key, name in zip(keys, ("frontend", "backend"), strict=True)]
    policies = [parse_policy(Document(key, "policy.karmada.io/v1alpha1", body)) for key, body in zip(keys, bodies, strict=True)]
    templates = [
        Document(Key("apps", "Deployment", "default", name), "apps/v1", make_deployment(name)) for name in ("frontend", "backend")
    ]

    def count_nearest() -> int:
        near = NearSelections(policies).describe_all(templates)
        return sum(
            near[template.key].text.endswith(f"{template.key.name}x; this one is {template.key.name}") for template in templates
        )

    assert count_nearest() == 2
    monkeypatch.setattr(f"gitsched.apis.karmada.policy.near_selection.{constant}", 1)
    assert count_nearest() == 1


def test_a_manifest_work_that_a_hub_would_refuse_is_not_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitsched.apis.ocm.hub_objects.MAX_MANIFESTS", 9)
    documents, _ = make_rollout()
    decided = gitsched.schedule(documents, now=START).decisions
    options = {"for": "hub", "status": "", "placement": "", "secrets": "", "namespace": "argocd", "app-url": "", "app-path": "."}
    found = make_export(ExportInput([], decided.catalog.api_documents, decided.catalog.templates, decided.outcomes, options))
    assert [body["kind"] for body in found.document["items"] if body["kind"] == "ManifestWorkReplicaSet"] == []
    assert any("and the hub refuses more than 9: split it" in finding.message for finding in found.findings)


def test_replicas_beyond_the_limit_are_not_applied() -> None:
    body = {
        "apiVersion": "apps/v1",
        "metadata": {"annotations": {"gitsched.io/source-replicas": "1"}},
        "spec": {"replicas": 100_001},
    }
    patches = list_live_patches([(Key("apps", "StatefulSet", "knative-eventing", "adapter"), body)], "", frozenset())
    assert patches.replicas == ()
    assert [record.reason for record in patches.refused] == ["spec.replicas is not an integer from 0 to 100000"]


def test_a_kubeconfig_with_many_credentials_is_searched_completely() -> None:
    users = "".join(f"    - {{name: u{number}, user: {{}}}}\n" for number in range(200))
    text = f"api: kubernetes\nkind: Cluster\nmetadata: {{name: a, namespace: b}}\nspec:\n  kubeconfig:\n    users:\n{users}"
    assert not [issue for issue in list_issues(text) if "contains a secret" in issue]
    found = list_issues(text + "    - {name: last, user: {token: secret-of-the-last-user}}\n")
    assert any("contains a secret" in issue for issue in found), found


def test_scores_beyond_the_lookups_of_a_run_are_reported_without_a_suggestion(monkeypatch: pytest.MonkeyPatch) -> None:
    prioritizers = [ocm.add_on(f"speeed{number}") for number in range(3)]
    scores = ocm.addon_scores("a", {"speed": 1})
    documents = [*ocm.bound_global_set("shop"), ocm.managed_cluster("a"), ocm.placement("all", "shop", None, prioritizers), scores]
    assert ["did you mean speed?" in message for _, message in find(documents, "ocm-score-unknown")] == [True] * 3
    monkeypatch.setattr("gitsched.apis.ocm.score_findings._MAX_LOOKUPS", 1)
    assert ["did you mean speed?" in message for _, message in find(documents, "ocm-score-unknown")] == [True, False, False]
