"""A running fleet is adopted without a move: from complete and partial dumps, directories and clusters."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gitsched.cli import main
from gitsched.decide.adoption import AdoptionPlan, plan_adoption
from gitsched.kubectl.client import KubectlOptions
from gitsched.model.errors import Conflict, Permanent
from gitsched.reconcile.adoption.running_fleet import AdoptionInputs, AdoptionResult, adopt
from gitsched.reconcile.adoption.running_objects import ClusterInput
from tests.builders.api_server import ApiServer
from tests.builders.krake import application_yaml, cluster_yaml, global_metric_yaml, global_provider_yaml
from tests.builders.ocm import bound_global_set, managed_cluster, placement, to_yaml
from tests.builders.running_fleet import RunningFleet, format_dump, make_fleet, remove_status
from tests.scenarios.conftest import UNGUARDED, Fleet, cluster, deployment, policy

Body = dict[str, Any]
CANARY = "Y2FuYXJ5LW9mLWEtZHVtcA=="


@pytest.fixture(scope="module")
def running() -> RunningFleet:
    return make_fleet()


@pytest.fixture(scope="module")
def large(running: RunningFleet, tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """A source of 40 clusters and 317 objects, without an output branch."""
    root = tmp_path_factory.mktemp("large")
    fleet = Fleet(root / "source", root / "cache")
    fleet.commit(dict(running.source))
    return fleet


def write_json(path: Path, objects: Iterable[Body]) -> str:
    path.write_text(json.dumps({"apiVersion": "v1", "items": list(objects), "kind": "List"}))
    return str(path)


def take_over(fleet: Fleet, *dumps: str, hour: float = 0, dry_run: bool = False, **inputs: Any) -> AdoptionResult:
    return adopt(fleet.settings(hour, observations="recorded"), AdoptionInputs(dumps, **inputs), dry_run=dry_run)


def list_hub_objects(objects: Iterable[Body]) -> Iterator[tuple[str, Body]]:
    """Yield what the hubs apply: the cluster and the manifest."""
    for body in objects:
        if body["kind"] in ("Work", "ManifestWork"):
            yield body["metadata"]["namespace"].removeprefix("karmada-es-"), body["spec"]["workload"]["manifests"][0]


def list_delivered(fleet: Fleet) -> dict[tuple[str, str, str, str], str]:
    """Return the path of each delivered object by cluster, kind, namespace and name."""
    found = {}
    for path in fleet.files():
        parts = path.split("/")
        if parts[0] == "clusters" and len(parts) == 4 and parts[2] != "_":
            kind, _, name = parts[3].removesuffix(".yaml").partition("-")
            found[parts[1], kind.partition(".")[0], parts[2], name] = path
    return found


def identify(name: str, manifest: Body) -> tuple[str, str, str, str]:
    return name, manifest["kind"].lower(), manifest["metadata"]["namespace"], manifest["metadata"]["name"]


def test_every_object_of_a_hub_is_delivered_where_it_runs(large: Fleet, running: RunningFleet, tmp_path: Path) -> None:
    """After the first commit a delivery tool with pruning deletes nothing: the directories have what the hubs applied, and nothing else."""
    secrets = [json.loads(json.dumps(body)) for body in running.dump]
    for _, manifest in list_hub_objects(secrets):
        if manifest["kind"] == "Secret":
            manifest["data"] = {"key": CANARY}
            manifest["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": CANARY}
    result = take_over(large, write_json(tmp_path / "hub.json", secrets))
    adoption = result.adoption
    assert (adoption.in_place, adoption.moving, adoption.held, adoption.unknown, adoption.new) == (316, (), (), (), ())
    delivered = list_delivered(large)
    applied = {identify(name, manifest): manifest for name, manifest in list_hub_objects(running.dump)}
    assert delivered.keys() == applied.keys()
    for key, manifest in applied.items():
        if key[0] == "fra-7" and key[1] == "deployment":  # where the division differs from that of a first placement
            assert large.load(delivered[key])["spec"]["replicas"] == manifest["spec"]["replicas"]
    assert "image: fra.example.com/web-0:1" in large.read("clusters/fra-1/shop/deployment-web-0.yaml")
    assert CANARY not in large.git("log", "-p", "placements")
    following = large.preview(1)
    assert not following.changed
    assert not following.plan.moves
    large.git("branch", "-D", "placements")


@pytest.mark.parametrize(
    ("name", "in_place", "unknown"),
    [
        ("bindings", 32, 285),
        ("half", 145, 172),
        *(
            pytest.param(*more, marks=pytest.mark.long)
            for more in (("statuses", 316, 0), ("works", 316, 0), ("only bindings", 309, 8))
        ),
    ],
)
def test_a_partial_dump_moves_nothing(
    large: Fleet, running: RunningFleet, tmp_path: Path, name: str, in_place: int, unknown: int
) -> None:
    """Without statuses, cut in the bindings, cut in the last Works, without decisions and Works, with
    every other binding."""
    path = tmp_path / "hub.yaml"
    if name == "statuses":
        path = Path(write_json(path, remove_status(running.dump)))
    elif name == "only bindings":
        path = Path(write_json(path, (body for body in running.dump if body["kind"] == "ResourceBinding")))
    elif name == "half":
        bindings = (body for body in running.dump if body["kind"] == "ResourceBinding")
        path = Path(write_json(path, (body for at, body in enumerate(bindings) if at % 2)))
    elif name == "bindings":
        path.write_text(format_dump(running.dump[:60])[:60_000])
    else:
        write_json(path, running.dump)
        path.write_text(path.read_text()[:-3000])
    adoption = take_over(large, str(path)).adoption
    assert (adoption.in_place, len(adoption.unknown), adoption.moving, adoption.new) == (in_place, unknown, (), ())
    applied = {identify(*entry) for entry in list_hub_objects(running.dump)}
    assert list_delivered(large).keys() <= applied
    following = large.preview(1)
    assert not following.plan.moves
    assert not following.record_changes
    large.git("branch", "-D", "placements")


PLACED = "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: all, namespace: default}\nspec:\n"
PLACED += "  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]\n  placement:\n"
PLACED += "    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}\n"
PLACED += "    clusterAffinity: {clusterNames: [%s]}\n"


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """Three clusters and a Deployment with four replicas, whose policy chooses a and b."""
    found = Fleet(tmp_path / "source", tmp_path / "cache")
    clusters = {f"clusters/{name}.yaml": cluster(name) for name in "abc"}
    found.commit({**clusters, "policy.yaml": PLACED % "a, b", "web.yaml": deployment("web", 4), "gitsched.yaml": UNGUARDED})
    return found


def binding(*replicas: tuple[str, int], status: bool = True, placement: str = "a, b", name: str = "web") -> Body:
    applied = {
        "clusterAffinity": {"clusterNames": placement.split(", ")},
        "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"},
    }
    body: Body = {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {
            "name": f"{name}-deployment",
            "namespace": "default",
            "annotations": {"policy.karmada.io/applied-placement": json.dumps(applied), "other": CANARY},
        },
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": name},
            "replicas": sum(count for _, count in replicas),
            "clusters": [{"name": name, "replicas": count} for name, count in replicas],
        },
    }
    return {**body, "status": {"lastScheduledTime": "2026-01-01T00:00:00Z"}} if status else body


def replicas(fleet: Fleet) -> dict[str, int]:
    return {
        name: fleet.load(f"clusters/{name}/default/deployment-web.yaml")["spec"]["replicas"]
        for name in fleet.delivered("default/deployment-web")
    }


def test_what_policies_place_elsewhere_runs_on_and_moves_as_a_move(fleet: Fleet, tmp_path: Path) -> None:
    fleet.commit({"policy.yaml": PLACED % "c"})
    result = take_over(fleet, write_json(tmp_path / "hub.json", [binding(("a", 1), ("b", 3))]))
    (moving,) = result.adoption.moving
    assert (dict(moving.before), dict(moving.after)) == ({"a": 1, "b": 3}, {"c": 4})
    assert replicas(fleet) == {"a": 1, "b": 3}
    (move,) = fleet.reconcile(1).plan.moves
    assert (move.before, move.after) == ({"a": 1, "b": 3}, {"c": 4})
    assert replicas(fleet) == {"a": 1, "b": 3, "c": 4}, "the old copies stay for the overlap"
    assert CANARY not in fleet.git("log", "-p", "placements")


def test_incomplete_information_holds_until_it_is_released_or_adopted_again(fleet: Fleet, tmp_path: Path) -> None:
    fleet.commit({"policy.yaml": PLACED % "c"})
    partial = write_json(tmp_path / "partial.json", [binding(("a", 1), ("b", 3), status=False)])
    (held,) = take_over(fleet, partial).adoption.held
    assert (held.reason, dict(held.after)) == ("its binding has no status", {"c": 4})
    image = "  template: {spec: {containers: [{name: web, image: new}]}}\n"
    fleet.commit({"web.yaml": deployment("web", 4) + image}, hour=1)
    run = fleet.reconcile(1)
    assert not run.plan.moves
    assert "adopted-held" in {finding.code for finding in run.plan.findings}
    assert "image: new" in fleet.read("clusters/a/default/deployment-web.yaml"), "changes of its manifest are delivered"
    again = take_over(fleet, write_json(tmp_path / "complete.json", [binding(("a", 1), ("b", 3))]), hour=2, dry_run=True)
    assert [str(one.key) for one in again.adoption.moving] == ["Deployment.apps/default/web"]
    fleet.commit(hour=3, message="Release\n\nGitsched-Release: default/web")
    (move,) = fleet.reconcile(3).plan.moves
    assert move.after == {"c": 4}
    assert "adopted" not in fleet.load("gitsched.json")
    assert not fleet.reconcile(4).plan.moves


def test_failover_passes_what_incomplete_information_holds(fleet: Fleet, tmp_path: Path) -> None:
    fleet.commit({"policy.yaml": PLACED % "b, c"})
    take_over(fleet, write_json(tmp_path / "hub.json", [binding(("a", 4), status=False)]))
    fleet.commit({"clusters/a.yaml": cluster("a", "down:NoExecute")}, hour=1)
    assert set(fleet.reconcile(1).plan.moves[0].after) <= {"b", "c"}


def test_objects_without_a_policy_or_a_document_are_reported_and_left(fleet: Fleet, tmp_path: Path) -> None:
    def work(name: str, manifest: Body) -> Body:
        metadata = {"name": f"w-{manifest['metadata']['name']}", "namespace": f"karmada-es-{name}"}
        spec = {"workload": {"manifests": [manifest]}}
        return {"apiVersion": "work.karmada.io/v1alpha1", "kind": "Work", "metadata": metadata, "spec": spec}

    def config_map(name: str) -> Body:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}

    fleet.commit({"spare.yaml": yaml.safe_dump(config_map("spare"))})
    objects = [binding(("a", 1), ("b", 3)), work("a", config_map("spare")), work("gone", config_map("foreign"))]
    adoption = take_over(fleet, write_json(tmp_path / "hub.json", objects)).adoption
    assert [(one.key.name, *one.before) for one in adoption.unselected] == [("spare", "a")]
    assert [(one.key.name, *one.before) for one in adoption.foreign] == [("foreign", "gone")]
    assert not [path for path in fleet.files() if "spare" in path or "foreign" in path]


def test_a_cluster_without_a_document_keeps_what_it_runs(fleet: Fleet, tmp_path: Path) -> None:
    result = take_over(fleet, write_json(tmp_path / "hub.json", [binding(("a", 1), ("gone", 3))]))
    assert "adopt-cluster-missing" in {finding.code for finding in result.findings}
    assert replicas(fleet) == {"a": 1}, "nothing is added elsewhere for the replicas that run there"
    assert not fleet.preview(1).plan.moves


def write_manifest(directory: Path, count: int) -> None:
    directory.mkdir(parents=True)
    (directory / "web.yaml").write_text(deployment("web", count))


def test_directories_of_clusters_say_what_runs(fleet: Fleet, tmp_path: Path) -> None:
    write_manifest(tmp_path / "dirs/a", 3)
    write_manifest(tmp_path / "dirs/b", 1)
    (tmp_path / "dirs/c").mkdir()
    adoption = take_over(fleet, directories=(tmp_path / "dirs",)).adoption
    assert adoption.in_place == 1
    assert replicas(fleet) == {"a": 3, "b": 1}
    assert not fleet.preview(1).plan.moves


def test_what_stays_in_a_cluster_that_its_policy_excludes_is_named(fleet: Fleet, tmp_path: Path) -> None:
    fleet.commit({"policy.yaml": PLACED % "b, c"})
    write_manifest(tmp_path / "dirs/a", 4)
    for name in "bc":
        (tmp_path / "dirs" / name).mkdir()
    adoption = take_over(fleet, directories=(tmp_path / "dirs",)).adoption
    [excluded] = adoption.excluded
    assert (adoption.in_place, dict(excluded.before), dict(excluded.after)) == (1, {"a": 4}, {"b": 2, "c": 2})
    assert excluded.reason.startswith("a: cluster(s) did not match the placement cluster affinity constraint")
    assert not fleet.preview(1).plan.moves, "nothing schedules it again"


@pytest.mark.parametrize(
    ("place", "target"), [("b", "../outside"), ("b/web.yaml", "../../outside/web.yaml"), ("b/all", "../../outside")]
)
def test_a_link_in_a_directory_of_clusters_is_not_followed_and_not_nothing(
    fleet: Fleet, tmp_path: Path, place: str, target: str
) -> None:
    """A commit may have brought the link. What it leads to may run in the cluster, so nothing is decided as if it did not."""
    write_manifest(tmp_path / "outside", 1)
    write_manifest(tmp_path / "dirs/a", 3)
    link = tmp_path / "dirs" / place
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(target)
    result = take_over(fleet, directories=(tmp_path / "dirs",))
    (finding,) = (finding for finding in result.findings if finding.code == "adopt-unread")
    assert finding.location is not None
    assert finding.location.path == str(link)
    assert [one.reason for one in result.adoption.held] == ["its binding is not known"]
    assert replicas(fleet) == {"a": 3}
    assert not fleet.preview(1).plan.moves


def test_a_cluster_that_is_not_known_adds_no_replicas_elsewhere(fleet: Fleet, tmp_path: Path) -> None:
    write_manifest(tmp_path / "a", 3)
    result = take_over(fleet, clusters=(ClusterInput("a", tmp_path / "a"),))
    assert [one.reason for one in result.adoption.held] == ["its binding is not known"]
    assert replicas(fleet) == {"a": 3}
    assert not fleet.preview(1).plan.moves
    assert replicas(fleet) == {"a": 3}


def test_a_dump_that_the_source_has_is_refused(fleet: Fleet) -> None:
    fleet.commit({"hub.json": "{}"})
    with pytest.raises(Permanent, match="a file of the source"):
        take_over(fleet, str(fleet.path / "hub.json"))


@pytest.mark.needs("kubectl")
def test_clusters_are_read_through_kubectl(fleet: Fleet, tmp_path: Path) -> None:
    servers = {name: ApiServer() for name in "abc"}
    try:
        for name, count in (("a", 1), ("b", 3)):
            servers[name].add({"apiVersion": "apps/v1", "kind": "Deployment", **yaml.safe_load(deployment("web", count))})
        config: Body = {"apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": []}
        for name, server in servers.items():
            own = json.loads(server.write_kubeconfig(tmp_path / name).read_text())
            config["clusters"].append({**own["clusters"][0], "name": name})
            config["contexts"].append({"name": name, "context": {"cluster": name, "user": "u"}})
        config["users"].append({"name": "u", "user": {"token": "t"}})
        (tmp_path / "kubeconfig").write_text(json.dumps(config))
        inputs: Body = {
            "contexts": tuple((name, name) for name in "abc"),
            "kubectl": KubectlOptions("", str(tmp_path / "kubeconfig")),
        }
        assert take_over(fleet, dry_run=True, **inputs).adoption.in_place == 1
        servers["b"].denied.add("get deployments")
        result = take_over(fleet, **inputs)
        assert "adopt-unread" in {finding.code for finding in result.findings}
        assert [dict(one.before) for one in result.adoption.held] == [{"a": 1}]
        assert replicas(fleet) == {"a": 1}
        for server in servers.values():
            server.denied.add("get deployments")
        with pytest.raises(Permanent, match="nothing that runs"):
            take_over(fleet, hour=1, **inputs)
        assert not any(request.startswith("PATCH") for server in servers.values() for request in server.requests)
    finally:
        for server in servers.values():
            server.close()


class Member:
    """The objects of one cluster, and a delivery tool that applies a directory and prunes what it applied before."""

    def __init__(self, objects: Iterable[str]) -> None:
        self.objects, self.inventory = set(objects), set[str]()
        self.deleted: set[str] = set()

    def deliver(self, directory: Iterable[str], *, prune: bool) -> None:
        wanted = set(directory)
        gone = self.inventory - wanted if prune else set[str]()
        self.deleted |= gone
        self.objects = (self.objects | wanted) - gone
        self.inventory = wanted if prune else self.inventory | wanted


def test_a_cut_over_and_the_way_back_delete_nothing_that_is_needed(fleet: Fleet, tmp_path: Path) -> None:
    """The steps of docs/adopt.md: adopt, deliver without pruning, with pruning, move, and back to the hub with the bindings."""
    fleet.commit({"policy.yaml": PLACED % "c"})
    path = "default/deployment-web.yaml"
    members = {"a": Member([path, "other"]), "b": Member([path]), "c": Member([])}
    hub = [binding(("a", 1), ("b", 3))]

    def deliver(*, prune: bool) -> None:
        for name, member in members.items():
            prefix = f"clusters/{name}/"
            files = [file.removeprefix(prefix) for file in fleet.files() if file.startswith(prefix)]
            member.deliver((file for file in files if file.startswith("default/")), prune=prune)

    take_over(fleet, write_json(tmp_path / "hub.json", hub))
    take_over(fleet, write_json(tmp_path / "hub.json", hub), hour=1)
    for prune in (False, True):
        deliver(prune=prune)
        assert [sorted(member.objects) for member in members.values()] == [[path, "other"], [path], []]
    fleet.reconcile(2)
    deliver(prune=True)
    assert [member.deleted for member in members.values()] == [set(), set(), set()], "the new copy comes before the old ones go"
    fleet.reconcile(3)
    deliver(prune=True)
    assert [sorted(member.objects) for member in members.values()] == [["other"], [], [path]]
    back = fleet.binding("web-deployment")
    assert back["spec"]["clusters"] == [{"name": "c", "replicas": 4}]
    assert back["spec"]["resource"]["name"] == "web"


def test_adopting_twice_commits_once(fleet: Fleet, tmp_path: Path) -> None:
    dump = write_json(tmp_path / "hub.json", [binding(("a", 1), ("b", 3))])
    assert take_over(fleet, dump, dry_run=True).commit is None
    assert fleet.head is None
    assert take_over(fleet, dump).commit == fleet.head
    assert take_over(fleet, dump, hour=1).commit is None
    assert fleet.git("log", "-1", "--format=%s", "placements") == "place: adopted 1 object where it runs (Change)"


def test_a_run_that_is_faster_wins(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def plan_slowly(*arguments: Any) -> AdoptionPlan:
        made = plan_adoption(*arguments)
        fleet.reconcile()
        return made

    monkeypatch.setattr("gitsched.reconcile.adoption.running_fleet.plan_adoption", plan_slowly)
    with pytest.raises(Conflict):
        take_over(fleet, write_json(tmp_path / "hub.json", [binding(("a", 1), ("b", 3))]))
    assert fleet.git("rev-list", "--count", "placements") == "1"


def test_a_run_that_adopts_some_objects_leaves_those_that_runs_have_placed(fleet: Fleet, tmp_path: Path) -> None:
    """A fleet can move from its hub in steps."""
    fleet.reconcile()
    before = replicas(fleet)
    fleet.commit({"api.yaml": deployment("api", 2)}, hour=1)
    hub = [binding(("a", 0), ("b", 4)), binding(("b", 2), name="api")]
    take_over(fleet, write_json(tmp_path / "hub.json", hub), hour=1)
    assert replicas(fleet) == before
    assert fleet.delivered("default/deployment-api") == ["b"]


def test_the_command_prints_what_it_adopted(fleet: Fleet, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet.commit({"policy.yaml": PLACED % "c"})
    dump = write_json(tmp_path / "hub.json", [binding(("a", 1), ("b", 3))])
    options = ["-C", str(fleet.path), "--cache-dir", str(fleet.cache), "--now", "2026-03-02T08:00:00Z"]
    assert main(["adopt", dump, *options, "-o", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["kind"], printed["inPlace"], printed["commit"]) == ("Adoption", 0, fleet.head)
    (moving,) = printed["moving"]
    assert (moving["name"], moving["before"]) == ("web", [{"cluster": "a", "replicas": 1}, {"cluster": "b", "replicas": 3}])
    assert moving["after"] == [{"cluster": "c", "replicas": 4}]
    assert main(["adopt", *options]) == 2
    assert main(["adopt", str(tmp_path / "missing.yaml"), *options]) == 1
    assert main(["adopt", "--cluster", "a", *options]) == 2


def test_a_placement_without_known_decisions_keeps_the_clusters_of_its_works(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path / "source", tmp_path / "cache")
    follows = {"cluster.open-cluster-management.io/placement": "one"}
    metadata = {"name": "agent", "namespace": "ops", "annotations": follows}
    agent: Body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    documents = [*bound_global_set("ops"), *map(managed_cluster, "abc"), placement("one", "ops", 1), agent]
    fleet.commit({"ocm.yaml": to_yaml(*documents)})
    works = [
        {
            "apiVersion": "work.open-cluster-management.io/v1",
            "kind": "ManifestWork",
            "metadata": {"name": "agent", "namespace": name},
            "spec": {"workload": {"manifests": [agent]}},
        }
        for name in "bc"
    ]
    labels = {"cluster.open-cluster-management.io/placement": "one"}
    decision = {
        "apiVersion": "cluster.open-cluster-management.io/v1beta1",
        "kind": "PlacementDecision",
        "metadata": {"name": "one-decision-1", "namespace": "ops", "labels": labels},
    }
    nowhere = take_over(fleet, write_json(tmp_path / "decisions.json", [decision]), dry_run=True).adoption
    assert ([one.key.kind for one in nowhere.unknown], nowhere.held, nowhere.new) == (["ConfigMap", "Placement"], (), ())
    (held,) = take_over(fleet, write_json(tmp_path / "hub.json", [decision, *works])).adoption.held
    assert (held.key.kind, *held.before) == ("Placement", "b", "c")
    assert not fleet.preview(1).plan.moves
    assert fleet.delivered("ops/configmap-agent") == ["b", "c"]
    fleet.commit(hour=2, message="Release\n\nGitsched-Release: ops/one")
    run = fleet.reconcile(2)
    assert [len(change.after) for change in run.record_changes] == [1]
    assert "adopted" not in fleet.load("gitsched.json")


@pytest.mark.parametrize("form", ["yaml", "json", "clusters"])
def test_the_applications_of_krake_stay_where_they_run(tmp_path: Path, form: str) -> None:
    """Three Applications of which the scheduler would put two elsewhere, as `rok kube app list -o yaml` prints them."""
    names, where = ("alpha", "bravo", "cello"), dict(zip(("alpha", "bravo", "cello"), ("one", "two", "one"), strict=True))
    fleet = Fleet(tmp_path / "source", tmp_path / "cache")
    metrics = f"{global_metric_yaml('a')}---\n{global_provider_yaml('static', '{metrics: {a: 0.9}}')}"
    clusters = {"one.yaml": cluster_yaml("one"), "two.yaml": cluster_yaml("two", "a"), "metrics.yaml": metrics}
    fleet.commit({**clusters, **{f"{name}.yaml": application_yaml(name) for name in names}})
    items = [yaml.safe_load(application_yaml(name)) for name in names]
    for item in items:
        reference = {"api": "kubernetes", "kind": "Cluster", "namespace": "tenant-a", "name": where[item["metadata"]["name"]]}
        times = {"created": "2026-01-01T00:00:00+00:00", "modified": "2026-01-01T00:00:00+00:00"}
        item["metadata"] |= times | {"uid": "x", "deleted": None}
        item["status"] = {"state": "RUNNING", "scheduled_to": reference, "running_on": reference, "token": CANARY}
        item["status"] |= {"scheduled": "2026-01-01T00:00:01+00:00", "kube_controller_triggered": "2026-01-01T00:00:02+00:00"}
    listed = {"api": "kubernetes", "kind": "ApplicationList", "metadata": {}, "items": items}
    dump = tmp_path / f"krake.{form}"
    if form == "clusters":
        for name in ("one", "two"):
            bodies = [body for item in items if where[item["metadata"]["name"]] == name for body in item["spec"]["manifest"][:1]]
            (tmp_path / name).write_text("---\n".join(map(yaml.safe_dump, bodies)))
        inputs = [ClusterInput(f"tenant-a.{name}", tmp_path / name) for name in ("one", "two")]
        result = take_over(fleet, clusters=tuple(inputs))
    else:
        dump.write_text(json.dumps(listed) if form == "json" else yaml.safe_dump(listed))
        result = take_over(fleet, str(dump))
    moving = {one.key.name for one in result.adoption.moving}
    assert result.adoption.in_place + len(moving) == 3
    assert not result.adoption.new
    assert not result.adoption.unknown
    delivered = {path.split("/")[1] + path.rsplit("-", 1)[1] for path in fleet.files() if "/deployment-" in path}
    assert delivered == {"tenant-a.onealpha.yaml", "tenant-a.twobravo.yaml", "tenant-a.onecello.yaml"}
    assert CANARY not in fleet.git("log", "-p", "placements")
    run = fleet.preview(1, observations="recorded")
    assert all(move.before for move in run.plan.moves), "moves are moves, never from nowhere"
    assert {move.key.name for move in run.plan.moves} == moving


def test_a_tenant_decides_nothing_about_the_adoption_of_others(tmp_path: Path) -> None:
    """Its policy selects the Deployments of everyone, with the highest priority: the records of others have their own policies."""
    fleet = Fleet(tmp_path / "source", tmp_path / "cache")
    tenants = [
        {
            "apiVersion": "gitsched.io/v1alpha1",
            "kind": "Tenant",
            "metadata": {"name": name},
            "spec": {"paths": [f"teams/{name}"], "namespaces": [name], "policies": "Cluster"},
        }
        for name in ("good", "harm")
    ]
    own = policy("a,b").replace("namespace: default", "namespace: good")
    greedy = policy("b", more="  priority: 99\n").replace("kind: PropagationPolicy", "kind: ClusterPropagationPolicy")
    fleet.commit(
        {
            "tenants.yaml": to_yaml(*tenants),
            "clusters.yaml": "---\n".join((cluster("a"), cluster("b"))),
            "teams/good/web.yaml": f"{deployment('web', namespace='good')}---\n{own}",
            "teams/harm/policy.yaml": greedy.replace("namespace: default", "").replace(", namespace: default", ""),
        }
    )
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(deployment("web", namespace="good"))
    result = take_over(fleet, clusters=tuple(ClusterInput(name, tmp_path / f"{name}.yaml") for name in ("a", "b")))
    assert (result.adoption.in_place, result.adoption.moving) == (1, ())
    labels = fleet.binding("web-deployment", "good")["metadata"].get("labels", {})
    assert "harm" not in json.dumps(labels)
    assert fleet.where("good/deployment-web") == ["a", "b"]
    run = fleet.reconcile(1)
    assert (run.plan.moves, run.changed) == ((), False)
