"""Dependencies and suspended dispatching on a real output branch."""

from __future__ import annotations

from pathlib import Path

from gitsched.reconcile import Reconciler

from .conftest import Fleet, at_hour, cluster, execute, policy

DEPS = "  propagateDeps: true\n"
SUSPENDED = "  suspension: {dispatchingOnClusters: {clusterNames: [second]}}\n"
CONF, KEY = "default/configmap-conf", "default/secret-key"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: key, namespace: default}\nstringData: {password: canary-7261}\n"


def config(name: str = "conf", value: str = "one") -> str:
    return f"# Mine\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: default}}\ndata: {{value: {value}}}\n"


def workload(name: str, *needs: str, replicas: int = 2) -> str:
    """Return a Deployment whose pods read the given objects, named as kind/name ("secret/key")."""
    kinds = {"configmap": "configMapRef", "secret": "secretRef"}
    pairs = [need.split("/") for need in needs]
    sources = ", ".join(f"{{{kinds[kind]}: {{name: {object_name}}}}}" for kind, object_name in pairs)
    return (
        f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, namespace: default, labels: {{app: {name}}}}}\nspec:\n"
        f"  replicas: {replicas}\n  template:\n    spec:\n      containers:\n      - {{name: main, envFrom: [{sources}]}}\n"
    )


def choose(name: str, groups: str = "", more: str = DEPS) -> str:
    """Return a policy for the Deployment of the same name."""
    text = policy(*([groups] if groups else []), name=name, more=more)
    return text.replace("kind: Deployment}", f"kind: Deployment, name: {name}}}")


def fill(fleet: Fleet, **files: str) -> None:
    clusters: dict[str, str | bytes | None] = {f"clusters/{name}.yaml": cluster(name) for name in ("first", "second", "third")}
    fleet.commit({**clusters, **{f"{name}.yaml": text for name, text in files.items()}})
    fleet.reconcile()


def test_a_dependency_moves_with_its_workload_and_keeps_its_bytes(fleet: Fleet) -> None:
    fill(fleet, web=workload("web", "configmap/conf"), conf=config(), policy=choose("web", "first"))
    assert fleet.where(CONF) == ["first"]
    assert fleet.files()[f"clusters/first/{CONF}.yaml"] == fleet.git("rev-parse", "main:conf.yaml")
    fleet.commit({"policy.yaml": choose("web", "second")}, hour=1)
    run = fleet.reconcile(1)
    assert fleet.where(CONF) == ["second"]
    assert {str(move.key): sorted(move.after) for move in run.plan.moves} == {
        "ConfigMap/default/conf": ["second"],
        "Deployment.apps/default/web": ["second"],
    }
    assert fleet.delivered(CONF) == ["first", "second"]
    fleet.reconcile(2)
    assert fleet.delivered(CONF) == ["second"]
    assert fleet.reconcile(3).after is None


def test_a_dependency_is_removed_with_its_last_dependent(fleet: Fleet) -> None:
    pair = {"web": workload("web", "configmap/conf"), "api": workload("api", "configmap/conf"), "conf": config()}
    fill(fleet, **pair, p=choose("web", "first"), q=choose("api", "second"))
    assert fleet.where(CONF) == ["first", "second"]
    fleet.commit({"web.yaml": None}, hour=1)
    fleet.reconcile(1)
    assert fleet.where(CONF) == ["second"]
    fleet.commit({"api.yaml": None}, hour=2)
    run = fleet.reconcile(2)
    assert fleet.where(CONF) == []
    assert "status/work.karmada.io/resourcebinding/default/conf-configmap.yaml" not in fleet.files()
    gone = {str(move.key): (dict(move.before), move.reason) for move in run.plan.moves}
    assert gone["ConfigMap/default/conf"] == ({"second": None}, "no longer attached to a workload")


def test_a_secret_is_on_the_output_branch_only_while_a_workload_depends_on_it(fleet: Fleet) -> None:
    fill(fleet, web=workload("web"), key=SECRET, policy=choose("web", "first"))
    assert "canary-7261" not in "".join(fleet.read(path) for path in fleet.files())
    fleet.commit({"web.yaml": workload("web", "secret/key")}, hour=1)
    fleet.reconcile(1)
    assert fleet.where(KEY) == ["first"]
    assert "canary-7261" in fleet.read(f"clusters/first/{KEY}.yaml")
    fleet.commit({"web.yaml": workload("web")}, hour=2)
    fleet.reconcile(2)
    assert "canary-7261" not in "".join(fleet.read(path) for path in fleet.files())


def test_a_failing_cluster_keeps_a_dependency_as_long_as_the_workload(fleet: Fleet) -> None:
    fill(fleet, web=workload("web", "configmap/conf"), conf=config(), policy=choose("web", "first, second"))
    fleet.commit({"clusters/first.yaml": cluster("first", "power:NoExecute")}, hour=1)
    fleet.reconcile(1)
    assert fleet.delivered("default/deployment-web") == fleet.delivered(CONF) == ["first", "second"]
    fleet.reconcile(1.5)
    assert fleet.delivered("default/deployment-web") == fleet.delivered(CONF) == ["second"]


def test_a_long_running_process_writes_the_same_as_new_ones(fleet: Fleet, tmp_path: Path) -> None:
    files = {"web": workload("web", "configmap/conf"), "api": workload("api"), "conf": config(), "key": SECRET}
    fill(fleet, **files, p=choose("web", "first"), q=choose("api", "second"))
    execute("clone", "-q", "--no-hardlinks", str(fleet.path), str(tmp_path / "twin"), at=tmp_path)
    twin = Fleet(tmp_path / "twin", tmp_path / "cache-twin")
    twin.git("branch", "-q", "placements", "origin/placements")
    session = Reconciler(fleet.settings())
    changes: list[dict[str, str | bytes | None]] = [
        {},
        {"api.yaml": workload("api", "configmap/conf", "secret/key")},
        {"conf.yaml": config(value="two")},
        {"api.yaml": workload("api", "secret/key", replicas=5)},
        {"p.yaml": choose("web", "third"), "clusters/second.yaml": cluster("second", "power:NoExecute")},
        {"web.yaml": workload("web", "secret/key") + "  x: ["},
        {"web.yaml": workload("web", "secret/key"), "clusters/second.yaml": cluster("second")},
        {"q.yaml": choose("api", "second", DEPS + SUSPENDED)},
        {"api.yaml": workload("api", "secret/key", replicas=8)},
        {"api.yaml": workload("api", "secret/key", "configmap/conf", replicas=9), "q.yaml": choose("api", "second")},
        {"web.yaml": None},
    ]
    for hour, edits in enumerate(changes, start=1):
        for repository in (fleet, twin):
            repository.commit(edits, hour=hour)
        session.run(at_hour(hour + 0.5))
        twin.reconcile(hour + 0.5)
        assert fleet.head == twin.head, f"after change {hour}"
    assert fleet.where(KEY) == ["second"]


def test_a_suspended_cluster_keeps_its_manifests_and_gets_no_new_ones(fleet: Fleet) -> None:
    web = "default/deployment-web"
    fill(fleet, web=workload("web", "configmap/conf"), conf=config(), policy=choose("web", "first, second"))
    old = fleet.read(f"clusters/second/{web}.yaml")
    fleet.commit({"policy.yaml": choose("web", more=DEPS + SUSPENDED), "web.yaml": workload("web", replicas=7)}, hour=1)
    fleet.reconcile(1)
    assert fleet.read(f"clusters/second/{web}.yaml") == old
    assert "replicas: 7" in fleet.read(f"clusters/first/{web}.yaml")
    assert fleet.where(web) == ["first", "second", "third"]
    assert [entry["name"] for entry in fleet.binding("web-deployment")["spec"]["clusters"]] == ["first", "second", "third"]
    assert fleet.reconcile(2).after is None
    fleet.commit({"policy.yaml": choose("web", more=DEPS)}, hour=3)
    fleet.reconcile(3)
    assert "replicas: 7" in fleet.read(f"clusters/second/{web}.yaml")


def test_a_new_suspended_workload_is_scheduled_without_manifests(fleet: Fleet) -> None:
    fill(fleet, web=workload("web"), policy=choose("web", "first", "  suspension: {dispatching: true}\n"))
    assert fleet.where("default/deployment-web") == []
    assert [entry["name"] for entry in fleet.binding("web-deployment")["spec"]["clusters"]] == ["first"]
    fleet.commit({"policy.yaml": choose("web", "first")}, hour=1)
    fleet.reconcile(1)
    assert fleet.where("default/deployment-web") == ["first"]


def test_a_workload_that_moves_is_removed_from_a_suspended_cluster(fleet: Fleet) -> None:
    fill(fleet, web=workload("web"), policy=choose("web", "second", SUSPENDED))
    fleet.commit({"policy.yaml": choose("web", "second")}, hour=1)
    fleet.reconcile(1)
    assert fleet.where("default/deployment-web") == ["second"]
    fleet.commit({"policy.yaml": choose("web", "first", SUSPENDED)}, hour=2)
    fleet.reconcile(2)
    assert fleet.where("default/deployment-web") == ["first"]


def test_a_lazy_policy_waits_for_the_manifest_over_many_runs(fleet: Fleet) -> None:
    lazy = "  activationPreference: Lazy\n"
    fill(fleet, web=workload("web"), policy=choose("web", "first", lazy))
    fleet.commit({"policy.yaml": choose("web", "second", lazy)}, hour=1)
    for hour in (1, 2):
        fleet.reconcile(hour)
        assert fleet.where("default/deployment-web") == ["first"]
    fleet.commit({"web.yaml": "# A comment is no edit\n" + workload("web")}, hour=3)
    fleet.reconcile(3)
    assert fleet.where("default/deployment-web") == ["first"]
    fleet.commit({"web.yaml": workload("web", replicas=3)}, hour=4)
    fleet.reconcile(4)
    assert fleet.where("default/deployment-web") == ["second"]


def test_preemption_moves_a_claimed_workload_if_it_is_enabled(fleet: Fleet) -> None:
    fill(fleet, web=workload("web"), old=policy("first", name="old").replace("kind: Deployment}", "kind: Deployment, name: web}"))
    urgent = choose("web", "second", "  preemption: Always\n  priority: 5\n")
    fleet.commit({"urgent.yaml": urgent}, hour=1)
    fleet.reconcile(1)
    assert fleet.where("default/deployment-web") == ["first"]
    gate = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {karmada: {preemption: true}}\n"
    fleet.commit({"gitsched.yaml": gate}, hour=2)
    fleet.reconcile(2)
    assert fleet.where("default/deployment-web") == ["second"]


def test_the_readme_names_the_dependents_of_an_attached_object(fleet: Fleet) -> None:
    fill(fleet, web=workload("web", "configmap/conf"), conf=config(), policy=choose("web", "first"))
    (row,) = (line for line in fleet.read("README.md").splitlines() if "ConfigMap default/conf" in line)
    assert "attached to Deployment default/web" in row
