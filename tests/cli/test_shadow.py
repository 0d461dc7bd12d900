"""gitsched shadow: decisions of a running hub are compared with those of gitsched, and each difference has its cause."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitsched.model.hub_comparison import ComparedDecision, HubComparisonResult
from gitsched.reconcile.shadow import hub_dumps
from gitsched.reconcile.shadow.shadow_run import shadow_hub
from tests.builders.hub_dumps import write_dump
from tests.builders.hub_objects import CANARY, LATER, PLACEMENT, START, Body, Hub, make_hub
from tests.cli.conftest import Run
from tests.tables import each_row

Change = Callable[[Hub], object]


def shadow(tmp_path: Path, first: list[Body], second: list[Body], form: str = "json", **settings: Any) -> HubComparisonResult:
    paths = [write_dump(tmp_path / f"{name}.{form}", objects, form) for name, objects in (("first", first), ("second", second))]
    return shadow_hub(*paths, settings)


def compare_change(tmp_path: Path, change: Change, hub: Hub | None = None) -> ComparedDecision:
    """Return the decision about the Deployment `web` after a change of the hub."""
    hub = hub or make_hub("web", "other")
    first = hub.dump()
    change(hub)
    result = shadow(tmp_path, first, hub.dump())
    assert [one.verdict for one in result.decisions if one.subject.name == "other"] in (["equal"], [])
    return next(one for one in result.decisions if one.subject.name == "web")


def scale(hub: Hub, clusters: dict[str, int], **spec: Any) -> None:
    """Scale `web` to the sum of these replicas, and let the hub place it there."""
    hub.change("Deployment", "web", replicas=sum(clusters.values()))
    hub.bind("web", clusters, LATER, **spec)


def leave_binding(hub: Hub, **spec: Any) -> Body:
    """Change the binding without its scheduler."""
    return hub.change("ResourceBinding", "web-deployment", **spec)


PENDING: list[tuple[Change, str]] = [
    (
        lambda hub: leave_binding(hub, replicas=4) and hub.change("Deployment", "web", replicas=4),
        "has seen generation 1 of the binding",
    ),
    (lambda hub: hub.change("Deployment", "web", replicas=4), "its binding is of version"),
    (
        lambda hub: hub.change("PropagationPolicy", "web", placement={"clusterAffinity": {"clusterNames": ["m2"]}}),
        "has an earlier placement of PropagationPolicy/shop/web",
    ),
    (
        lambda hub: (
            hub.bind("web", {"m1": 1, "m2": 1}, START, rescheduleTriggeredAt=LATER)
            and hub.change("PropagationPolicy", "web", placement={**PLACEMENT, "clusterAffinity": {"clusterNames": ["m2"]}})
        ),
        "",
    ),
    (
        lambda hub: (
            hub.objects["ResourceBinding", "web-deployment"]["metadata"].update(deletionTimestamp=LATER)
            or leave_binding(hub, clusters=[])
        ),
        "deleting",
    ),
]


@each_row(("change", "text"), PENDING)
def test_what_the_hub_has_not_finished_is_no_difference(change: Change, text: str, tmp_path: Path) -> None:
    found = compare_change(tmp_path, change)
    assert found.verdict == "in-progress"
    assert text in found.causes[0].text


def test_a_workload_that_is_new_may_have_no_binding_yet(tmp_path: Path) -> None:
    def add(hub: Hub) -> None:
        hub.add_deployment("web", 2)
        hub.add_policy("web")

    found = compare_change(tmp_path, add, make_hub("other"))
    assert (found.verdict, found.causes[0].kind) == ("in-progress", "hub")


def test_a_graceful_eviction_that_has_ended_on_the_hub_is_no_difference(tmp_path: Path) -> None:
    """The hub has found the new copies healthy, which no dump says."""
    hub = make_hub("other")
    hub.add_deployment("web", 2)
    hub.add_policy("web", {"clusterAffinity": {"clusterNames": ["m2"]}})
    task = {"fromCluster": "m1", "creationTimestamp": START, "reason": "TaintUntolerated", "producer": "TaintManager"}
    hub.bind("web", {"m2": 2}, gracefulEvictionTasks=[task])
    found = compare_change(tmp_path, lambda hub: hub.bind("web", {"m2": 2}), hub)
    assert (found.verdict, found.aspects) == ("in-progress", ("evictions",))
    assert found.causes[0].text == "a graceful eviction from m1 is in progress"


def test_a_rebalance_that_the_hub_has_not_carried_out_is_no_difference(tmp_path: Path) -> None:
    hub = make_hub("web", "other")
    hub.bind("web", {"m1": 2})
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"}

    def request(hub: Hub) -> None:
        body = hub.add("apps.karmada.io/v1alpha1", "WorkloadRebalancer", "again", "", spec={"workloads": [workload]})
        body["metadata"]["creationTimestamp"] = LATER

    found = compare_change(tmp_path, request, hub)
    assert found.verdict == "in-progress"
    assert "WorkloadRebalancer/again is in progress" in found.causes[0].text


def evict(hub: Hub) -> None:
    """Taint m1, and let the hub evict `web` from it."""
    cluster = hub.change("Cluster", "m1", taints=[{"key": "lost", "effect": "NoExecute", "timeAdded": START}])
    assert cluster["spec"]["taints"]
    task = {
        "fromCluster": "m1",
        "creationTimestamp": LATER,
        "reason": "TaintUntolerated",
        "producer": "TaintManager",
        "replicas": 1,
    }
    hub.bind("web", {"m2": 2}, LATER, gracefulEvictionTasks=[task])


CAUSES: list[tuple[Change, str, str]] = [
    (lambda hub: scale(hub, {"m1": 4}), "rule", "m2: it fits"),
    (lambda hub: hub.bind("web", {"m2": 2}, LATER), "history", f"has scheduled it again at {LATER}"),
    (evict, "setting", "karmada.taintEviction: true"),
    (
        lambda hub: (hub.change("PropagationPolicy", "web", schedulerName="mine"), hub.bind("web", {"m2": 2}, START)),
        "field",
        "scheduler mine decides on the hub",
    ),
    (
        lambda hub: (
            (scale(hub, {"m1": 2, "m2": 2}), hub.change("Cluster", "m2", taints=[{"key": "full", "effect": "NoSchedule"}]))
            and hub.bind("web", {"m1": 4}, LATER)
        ),
        "rule",
        "",
    ),
]


FIELDS: list[tuple[Body, str]] = [
    (
        {"failover": {"cluster": {"purgeMode": "Directly"}}},
        "spec.failover.cluster gitsched handles it otherwise: clusters are left",
    ),
    ({"conflictResolution": "Overwrite"}, "spec.conflictResolution gitsched decides nothing by it: whether an object"),
    ({"conflictResolution": "Abort", "preemption": "Never"}, ""),
]
"""Fields of a policy, and what is said of them where the hub has decided otherwise."""


@each_row(("spec", "text"), FIELDS)
def test_rows_of_the_tables_of_fields_are_causes(spec: Body, text: str, tmp_path: Path) -> None:
    hub = make_hub("web")
    hub.change("PropagationPolicy", "web", **spec)
    found = compare_change(tmp_path, lambda hub: scale(hub, {"m1": 4}), hub)
    fields = [f"{cause.name} {cause.text}" for cause in found.causes if cause.kind == "field"]
    assert [each.startswith(text) for each in fields] == ([True] if text else [])


DEFINITIONS: list[Any] = [
    {},
    {"versions": 3},
    {
        "group": "a.example.com",
        "names": {"kind": "A"},
        "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "nope"}}}],
    },
    {"group": "a.example.com", "names": {"kind": "A"}, "versions": [{"name": "v1", "schema": {"openAPIV3Schema": [CANARY]}}]},
    {
        "group": "apps",
        "scope": "Namespaced",
        "names": {"kind": "Deployment", "plural": "deployments"},
        "versions": [{"name": "v1", "served": True, "schema": {"openAPIV3Schema": {"$ref": "#/nowhere", "pattern": "("}}}],
    },
]


@each_row("spec", DEFINITIONS)
def test_a_damaged_definition_changes_no_decision(spec: Any, tmp_path: Path) -> None:
    hub = make_hub("web")
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "as.a.example.com"},
    }
    first = [*hub.dump(), {**definition, "spec": spec}]
    scale(hub, {"m1": 2, "m2": 2})
    result = shadow(tmp_path, first, [*hub.dump(), {**definition, "spec": spec}])
    assert dict(result.counts) == {"equal": 1, "different": 0, "in-progress": 0, "not-compared": 0}
    assert CANARY not in str(result.findings)


@each_row(("change", "kind", "text"), CAUSES)
def test_a_difference_has_its_cause(change: Change, kind: str, text: str, tmp_path: Path) -> None:
    found = compare_change(tmp_path, change)
    assert found.verdict == "different"
    assert any(cause.kind == kind and text in f"{cause.name} {cause.text}" for cause in found.causes), found.causes


def test_a_cause_is_the_fact_that_has_changed_since_the_hub_decided(tmp_path: Path) -> None:
    """The hub has scheduled a new workload, and then one of its clusters lost a label that the policy selects."""
    hub = make_hub("other")
    hub.objects["Cluster", "m1"]["metadata"]["labels"] = {"tier": "gold"}
    hub.add_deployment("web", 2)

    def decide(hub: Hub) -> None:
        hub.add_policy("web", {"clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "gold"}}}})
        hub.bind("web", {"m1": 2}, LATER)
        del hub.change("Cluster", "m1")["metadata"]["labels"]

    found = compare_change(tmp_path, decide, hub)
    assert found.verdict == "different"
    assert (found.causes[0].kind, found.causes[0].proved) == ("fact", True)
    assert "m1 (metadata.labels)" in found.causes[0].text


def test_free_capacity_that_only_the_estimators_knew_is_named(tmp_path: Path) -> None:
    dynamic = {**PLACEMENT["replicaScheduling"], "weightPreference": {"dynamicWeight": "AvailableReplicas"}}
    hub = make_hub("other")
    hub.add_deployment("web", 4)

    def decide(hub: Hub) -> None:
        hub.add_policy("web", {**PLACEMENT, "replicaScheduling": dynamic})
        hub.bind("web", {"m1": 3, "m2": 1}, LATER)

    found = compare_change(tmp_path, decide, hub)
    assert (found.verdict, found.aspects) == ("different", ("replicas",))
    assert any(cause.name == "free capacity" and LATER in cause.text for cause in found.causes)


MISSING: list[tuple[str, str, str]] = [
    ("Deployment", "web", "the second dump does not have Deployment/shop/web"),
    ("PropagationPolicy", "web", "the second dump does not have PropagationPolicy/shop/web, which the hub follows"),
]


@each_row(("kind", "name", "text"), MISSING)
def test_what_a_dump_lacks_is_not_compared(kind: str, name: str, text: str, tmp_path: Path) -> None:
    hub = make_hub("web", "other")
    first = hub.dump()
    del hub.objects[kind, name]
    result = shadow(tmp_path, first, hub.dump())
    found = next(one for one in result.decisions if one.subject.name == "web")
    assert (found.verdict, found.causes[0].kind, found.causes[0].text) == ("not-compared", "input", text)
    assert [(one.severity, one.code) for one in result.findings if one.code == "shadow-incomplete"] == [
        ("warning", "shadow-incomplete")
    ]


def test_objects_that_only_come_along_need_not_be_dumped(tmp_path: Path) -> None:
    """A hub in which nobody may read Secrets: their bindings are compared all the same."""
    hub = make_hub()
    deployment = hub.add_deployment("web", 2)
    deployment["spec"]["template"]["spec"]["containers"][0]["envFrom"] = [{"secretRef": {"name": "db"}}]
    hub.add_policy("web", propagateDeps=True)
    hub.bind("web", {"m1": 1, "m2": 1}, propagateDeps=True)
    required = [
        {"namespace": "shop", "name": "web-deployment", "clusters": [{"name": "m1", "replicas": 1}, {"name": "m2", "replicas": 1}]}
    ]
    resource = {"apiVersion": "v1", "kind": "Secret", "namespace": "shop", "name": "db"}
    hub.add("work.karmada.io/v1alpha2", "ResourceBinding", "db-secret", spec={"requiredBy": required, "resource": resource})
    result = shadow(tmp_path, hub.dump(), [*hub.dump(), *Hub().dump()])
    assert {one.subject.name: one.verdict for one in result.decisions} == {"web": "equal", "db": "equal"}


def list_codes(result: HubComparisonResult) -> list[tuple[str, str]]:
    return [(one.severity, one.code) for one in result.findings if one.code.startswith("shadow-")]


def drop(objects: list[Body], *kinds: str) -> list[Body]:
    return [one for one in objects if one["kind"] not in kinds]


def other_hub(objects: list[Body]) -> list[Body]:
    return [{**one, "metadata": {**one["metadata"], "uid": "other"}} for one in objects]


DUMPS: list[tuple[Callable[[list[Body], list[Body]], tuple[list[Body], list[Body]]], tuple[str, str]]] = [
    (lambda first, second: (second, first), ("error", "shadow-order")),
    (lambda first, second: (first, first), ("warning", "shadow-same")),
    (lambda first, second: (first, other_hub(second)), ("error", "shadow-other-hub")),
    (
        lambda first, second: (first, [one for one in make_hub("x").dump() if one["metadata"]["name"] not in ("m1", "m2")]),
        ("error", "shadow-other-hub"),
    ),
    (lambda first, second: (drop(first, "ResourceBinding"), second), ("warning", "shadow-no-records")),
    (lambda first, second: (first, drop(second, "ResourceBinding")), ("error", "shadow-no-records")),
    (lambda first, second: (first, drop(second, "Cluster")), ("error", "shadow-no-clusters")),
    (lambda first, second: (first, drop(second, "Deployment")), ("error", "shadow-incomplete")),
    (lambda first, second: (first, second), ("info", "shadow-namespace")),
]


@each_row(("change", "expected"), DUMPS)
def test_dumps_that_cannot_be_compared_are_a_finding(
    change: Callable[[list[Body], list[Body]], tuple[list[Body], list[Body]]], expected: tuple[str, str], tmp_path: Path
) -> None:
    hub = make_hub("web")
    first = hub.dump()
    scale(hub, {"m1": 2, "m2": 2})
    result = shadow(tmp_path, *change(first, hub.dump()))
    assert expected in list_codes(result)
    for finding in result.findings:
        assert finding.location is None or (finding.location.line > 0 and finding.location.column > 0)


def test_a_dump_of_one_namespace_beside_one_of_all_is_a_finding(tmp_path: Path) -> None:
    hub = make_hub("web")
    other = hub.bind("web", {"m1": 1, "m2": 1})
    hub.objects["ResourceBinding", "web-deployment-2"] = {**other, "metadata": {**other["metadata"], "namespace": "bank"}}
    result = shadow(tmp_path, hub.dump(), [one for one in hub.dump() if one["metadata"].get("namespace") != "bank"])
    found = next(one for one in result.findings if one.code == "shadow-namespace")
    assert (found.severity, found.message) == (
        "warning",
        "the second dump has records of namespace shop only, the other one of 2 namespaces; dump with -A, or the others are not compared",
    )


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_a_dump_that_is_cut_is_an_error_where_it_ends(form: str, tmp_path: Path) -> None:
    objects = make_hub("web").dump()
    whole = write_dump(tmp_path / f"first.{form}", objects, form)
    text = whole.read_text()
    cut = tmp_path / f"second.{form}"
    cut.write_text(text[: text.rindex("kind") - 40])
    result = shadow_hub(whole, cut, {})
    found = next(one for one in result.findings if one.code == "shadow-cut")
    assert found.severity == "error"
    assert found.location is not None
    assert found.location.line == cut.read_text().count("\n") + 1
    assert found.location.column == len(cut.read_text().splitlines()[-1]) + 1


DAMAGES = [
    "",
    "\0" * 9,
    "{",
    "[]",
    "a: [\n",
    "kind: Secret\ndata: *x\n",
    "\x1f\x8b\x08",
    "{" * 5000,
    "- " * 5000,
    "items:\n- 3\nkind: List\n",
    '{"items": [{}',
]


@each_row("text", DAMAGES)
def test_no_damaged_dump_raises_an_error(text: str, tmp_path: Path) -> None:
    good = write_dump(tmp_path / "good.json", make_hub("web").dump())
    bad = tmp_path / "bad.yaml"
    bad.write_text(text)
    for first, second in ((good, bad), (bad, good), (bad, bad)):
        result = shadow_hub(first, second, {})
        assert any(one.severity == "error" and one.code in ("shadow-unread", "shadow-cut") for one in result.findings)


def test_a_directory_of_files_in_both_formats_is_one_dump(tmp_path: Path) -> None:
    hub = make_hub("web", "shop")
    first, second = tmp_path / "first", tmp_path / "second"
    for path in (first, second):
        path.mkdir()
        objects = hub.dump()
        write_dump(path / "a.yaml", objects[:5], "yaml")
        write_dump(path / "b.json", objects[4:])
        (path / "README.md").write_text("no dump")
        scale(hub, {"m1": 2, "m2": 2})
    result = shadow_hub(first, second, {})
    assert dict(result.counts) == {"equal": 2, "different": 0, "in-progress": 0, "not-compared": 0}
    assert [one for one in result.findings if one.severity == "error"] == []


def test_a_dump_has_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = make_hub("web")
    good = write_dump(tmp_path / "good.json", hub.dump())
    many = tmp_path / "many"
    many.mkdir()
    for index, body in enumerate(hub.dump()):
        write_dump(many / f"{index}.json", [body])
    monkeypatch.setattr(hub_dumps, "MAX_FILES", 2)
    assert "more than 2 files" in " ".join(one.message for one in shadow_hub(good, many, {}).findings)
    monkeypatch.setattr(hub_dumps, "MAX_OBJECTS", 2)
    assert "more than 2 objects" in " ".join(one.message for one in shadow_hub(good, good, {}).findings)
    (tmp_path / "bad.json").write_text('{"kind": "List", "items": [' + "{}, " * 30 + "{}]}")
    assert (
        sum(one.code == "shadow-unread" for one in shadow_hub(good, tmp_path / "bad.json", {}).findings)
        == hub_dumps.MAX_FINDINGS + 2
    )


@pytest.mark.parametrize("form", ["yaml", "json"])
@pytest.mark.parametrize("output", ["text", "json", "yaml", "html"])
def test_no_value_of_a_secret_is_shown(form: str, output: str, gitsched: Run, tmp_path: Path) -> None:
    hub = make_hub("web")
    hub.add_secret("db")
    work = {"workload": {"manifests": [hub.objects["Secret", "db"]]}}
    hub.add("work.karmada.io/v1alpha1", "Work", "db", "karmada-es-m1", spec=work)
    first = write_dump(tmp_path / f"first.{form}", hub.dump(), form)
    scale(hub, {"m1": 4})
    second = write_dump(tmp_path / f"second.{form}", hub.dump(), form)
    broken = f"---\napiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\nstringData:\n  a: {CANARY}\n b: {CANARY}\n"
    (second.parent / "other").mkdir()
    (second.parent / "other" / "broken.yaml").write_text(broken)
    (second.parent / "other" / second.name).write_text(second.read_text())
    done = gitsched("shadow", str(first), str(second.parent / "other"), "-o", output)
    assert done.returncode in (1, 2)
    assert CANARY not in done.stdout + done.stderr
    assert "web" in done.stdout


@pytest.fixture
def dumps(tmp_path: Path) -> tuple[str, str]:
    hub = make_hub("web", "shop")
    first = write_dump(tmp_path / "first.yaml", hub.dump(), "yaml")
    scale(hub, {"m1": 4})
    return str(first), str(write_dump(tmp_path / "second.yaml", hub.dump(), "yaml"))


def test_the_exit_code_says_whether_decisions_are_equal(gitsched: Run, dumps: tuple[str, str], tmp_path: Path) -> None:
    first, second = dumps
    equal = write_dump(tmp_path / "equal.json", make_hub("web", "shop").dump())
    assert gitsched("shadow", first, str(equal)).returncode == 0
    assert gitsched("shadow", first, second).returncode == 1
    assert gitsched("shadow", second, first).returncode == 2
    assert gitsched("shadow", first, "nowhere.yaml").returncode == 2
    assert gitsched("shadow", first).returncode == 2


def test_the_text_names_both_decisions_and_the_cause(gitsched: Run, dumps: tuple[str, str]) -> None:
    text = gitsched("shadow", *dumps).stdout
    assert "gitsched makes 1 of 2 decisions as the hub, between 2026-03-01T08:00:00Z and 2026-03-02T08:00:00Z (50 %)." in text
    assert re.search(r"Deployment shop/web: hub m1 4; gitsched m1 2, m2 2 \(.*second.yaml:\d+:3\)", text)
    assert "scheduling trigger: Scheduled because the replicas changed." in text


def test_json_has_all_decisions_with_their_causes(gitsched: Run, dumps: tuple[str, str]) -> None:
    value = json.loads(gitsched("shadow", *dumps, "-o", "json").stdout)
    assert (value["kind"], value["counts"]) == (
        "HubComparison",
        {"unexplained": 0, "different": 1, "not-compared": 0, "in-progress": 0, "equal": 1},
    )
    different, equal = value["decisions"]
    assert different["hub"]["clusters"] == [{"cluster": "m1", "replicas": 4}]
    assert different["differs"] == ["clusters"]
    assert {cause["kind"] for cause in different["causes"]} == {"rule"}
    assert (equal["verdict"], equal["causes"]) == ("equal", [])


def test_html_shows_both_sides_and_escapes_text(gitsched: Run, dumps: tuple[str, str]) -> None:
    page = gitsched("shadow", *dumps, "-o", "html").stdout
    assert '<span class="place turn">m1 4</span>' in page
    assert '<span class="place new">m2 2</span>' in page
    assert "<script" not in page
    assert "Content-Security-Policy" in page


SETTINGS = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata:
  name: gitsched
spec:
  karmada:
    taintEviction: {value}
"""


def test_settings_stand_for_the_flags_of_the_hub(gitsched: Run, tmp_path: Path) -> None:
    hub = make_hub("web")
    first = write_dump(tmp_path / "first.json", hub.dump())
    evict(hub)
    second = write_dump(tmp_path / "second.json", hub.dump())
    settings = tmp_path / "gitsched.yaml"
    settings.write_text(SETTINGS.format(value="true"))
    assert gitsched("shadow", str(first), str(second)).returncode == 1
    done = gitsched("shadow", str(first), str(second), "--settings", str(settings))
    assert done.returncode == 0, done.stdout
    settings.write_text(SETTINGS.format(value="seldom"))
    done = gitsched("shadow", str(first), str(second), "--settings", str(settings))
    assert done.returncode == 2
    assert "gitsched.yaml" in done.stderr


OCM = "cluster.open-cluster-management.io"


def make_ocm_hub(decided: dict[str, list[str]]) -> Hub:
    """Return a hub of Open Cluster Management with four clusters and these Placements of two clusters each."""
    hub = Hub()
    hub.add(f"{OCM}/v1beta2", "ManagedClusterSet", "all", "")
    hub.add(f"{OCM}/v1beta2", "ManagedClusterSetBinding", "all", spec={"clusterSet": "all"})
    for index in range(4):
        cluster = hub.add(f"{OCM}/v1", "ManagedCluster", f"c{index}", "", spec={"hubAcceptsClient": True})
        cluster["metadata"]["labels"] = {f"{OCM}/clusterset": "all", "tier": "gold"}
    for name, clusters in decided.items():
        place(hub, name, clusters)
    return hub


def place(hub: Hub, name: str, clusters: list[str], number: int = 2) -> None:
    satisfied = {"type": "PlacementSatisfied", "status": "True", "reason": "AllDecisionsScheduled", "lastTransitionTime": START}
    predicate = {"requiredClusterSelector": {"labelSelector": {"matchLabels": {"tier": "gold"}}}}
    spec = {"numberOfClusters": number, "predicates": [predicate]}
    status = {"numberOfSelectedClusters": len(clusters), "conditions": [satisfied]}
    hub.add(f"{OCM}/v1beta1", "Placement", name, spec=spec, status=status)
    decisions = [{"clusterName": cluster, "reason": ""} for cluster in clusters]
    decision = hub.add(f"{OCM}/v1beta1", "PlacementDecision", f"{name}-decision-1", status={"decisions": decisions})
    decision["metadata"]["labels"] = {
        f"{OCM}/placement": name,
        f"{OCM}/decision-group-index": "0",
        f"{OCM}/decision-group-name": "",
    }


def drop_label(hub: Hub) -> None:
    del hub.change("ManagedCluster", "c1")["metadata"]["labels"]["tier"]


def lose_status(hub: Hub) -> None:
    place(hub, "web", ["c0", "c1", "c2"], 3)
    hub.objects["PlacementDecision", "web-decision-1"]["status"]["decisions"].pop()


PLACEMENTS: list[tuple[Change, str, str]] = [
    (lambda _: None, "equal", ""),
    (drop_label, "different", "changed since then: c1 (metadata.labels)"),
    (lambda hub: place(hub, "web", ["c2", "c3"]), "different", "which have changed between the dumps"),
    (lose_status, "in-progress", "its status has 3 clusters, its PlacementDecisions 2"),
    (lambda hub: hub.objects["Placement", "web"].pop("status"), "equal", ""),
    (lambda hub: hub.objects.pop(("Placement", "web")), "not-compared", "the second dump does not have Placement/shop/web"),
]


@each_row(("change", "verdict", "text"), PLACEMENTS)
def test_placements_of_a_hub_of_open_cluster_management_are_compared(
    change: Change, verdict: str, text: str, tmp_path: Path
) -> None:
    hub = make_ocm_hub({"web": ["c0", "c1"]})
    first = hub.dump()
    change(hub)
    (found,) = shadow(tmp_path, first, hub.dump()).decisions
    assert (found.verdict, any(text in cause.text for cause in found.causes)) == (verdict, bool(text)), found.causes


def test_a_placement_that_the_hub_has_not_evaluated_again_has_that_as_its_cause(tmp_path: Path) -> None:
    """Other Placements have come to its clusters since, so that it would be balanced away from them."""
    hub = make_ocm_hub({name: ["c0", "c1"] for name in "abcd"})
    found = next(one for one in shadow(tmp_path, hub.dump(), hub.dump()).decisions if one.subject.name == "a")
    assert found.verdict == "different"
    assert found.causes[0].kind == "history"
    assert "the hub has kept the decisions of the first dump" in found.causes[0].text
