"""Workloads with data stay in their clusters until they are released; every move without data is a finding."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from gitsched.model.document import Key
from gitsched.model.finding import Finding
from gitsched.reconcile import RunResult
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.report.serialization import serialize_review
from tests import fork_server
from tests.builders.ocm import bound_global_set, managed_cluster, placement, to_yaml
from tests.search_depth import list_variants

from .conftest import Fleet, at_hour, cluster

STORIES = yaml.safe_load((Path(__file__).parent / "stateful.yaml").read_text())
NAMES = ("ash", "bay", "cod")
CLAIM_SPEC = {"accessModes": ["ReadWriteOnce"], "storageClassName": "slow", "resources": {"requests": {"storage": "5Gi"}}}


def workload(kind: str, name: str, **options: Any) -> dict[str, Any]:
    """Return a workload with the options of a story: replicas, image, labels, annotations, volumes and claim."""
    container: dict[str, Any] = {"name": name, "image": options.get("image", "nginx")}
    pod: dict[str, Any] = {"containers": [container]}
    spec: dict[str, Any] = {"replicas": int(options.get("replicas", 3 if kind == "StatefulSet" else 2))}
    if kind == "StatefulSet":
        container["envFrom"] = [{"configMapRef": {"name": name}}]
        claim = {**CLAIM_SPEC, "storageClassName": "fast", "resources": {"requests": {"storage": "10Gi"}}}
        spec |= {"serviceName": name}
        if options.get("volumes", "yes") == "yes":
            spec["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim}]
    if "claim" in options:
        pod["volumes"] = [{"name": "files", "persistentVolumeClaim": {"claimName": options["claim"]}}]
    spec |= {"selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": {"app": name}}, "spec": pod}}
    metadata = {"name": name, "namespace": "shop", **{each: options[each] for each in ("labels", "annotations") if each in options}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}


def core(kind: str, name: str, **members: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "shop"}, **members}


def policy(groups: list[str], *, kind: str = "", scheduling: str = "Divided") -> dict[str, Any]:
    kinds = [kind] if kind else ["StatefulSet", "Deployment", "PersistentVolumeClaim"]
    divided = {"replicaDivisionPreference": "Weighted"} if scheduling == "Divided" else {}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "shop", "namespace": "shop"},
        "spec": {
            "propagateDeps": True,
            "resourceSelectors": [
                {"apiVersion": "v1" if each == "PersistentVolumeClaim" else "apps/v1", "kind": each} for each in kinds
            ],
            "placement": {
                "clusterAffinities": [
                    {"affinityName": f"group-{number}", "clusterNames": names.split(",")} for number, names in enumerate(groups)
                ],
                "replicaScheduling": {"replicaSchedulingType": scheduling, **divided},
            },
        },
    }


def write(text: str | None) -> str | None:
    """Return the file that a story describes in a few words."""
    if text is None:
        return None
    what, *words = text.split(" ", 2 if "={" in text else -1)
    name, rest = words[0], words[1:]
    if len(rest) == 1 and "={" in rest[0]:
        key, _, value = rest[0].partition("=")
        options = {key: yaml.safe_load(value)}
    else:
        options = dict(word.split("=") for word in rest if "=" in word)
    names = [word for word in rest if "=" not in word]
    if what == "cluster":
        return cluster(name, *(f"{taint}:NoExecute" for taint in names))
    documents = {
        "statefulset": lambda: [workload("StatefulSet", name, **options), core("ConfigMap", name, data={"a": "b"})],
        "deployment": lambda: [workload("Deployment", name, **options)],
        "claimed": lambda: [
            workload("Deployment", name, claim=name, replicas=1, **options),
            core("PersistentVolumeClaim", name, spec=CLAIM_SPEC),
        ],
        "mounting": lambda: [workload("Deployment", name, claim=names[0], replicas=1)],
        "policy": lambda: [policy([name, *names], **options)],
        "duplicated": lambda: [policy([name], scheduling="Duplicated")],
        "rebalancer": lambda: [
            {
                "apiVersion": "apps.karmada.io/v1alpha1",
                "kind": "WorkloadRebalancer",
                "metadata": {"name": "again"},
                "spec": {"workloads": [{"apiVersion": "apps/v1", "kind": name, "namespace": "shop", "name": names[0]}]},
            }
        ],
    }
    return yaml.safe_dump_all(documents[what]())


def write_settings(text: str) -> str:
    section, _, value = text.removeprefix("settings ").partition("=")
    spec = {section: yaml.safe_load(value)}
    return yaml.safe_dump({"apiVersion": "gitsched.io/v1alpha1", "kind": "Config", "metadata": {"name": "gitsched"}, "spec": spec})


def make_files(files: dict[str, str | None]) -> dict[str, str | None]:
    return {path: write_settings(text) if text and text.startswith("settings ") else write(text) for path, text in files.items()}


def list_held(run: RunResult) -> list[str]:
    return sorted(key.title for key in run.plan.totals.held)


def show(finding: Finding) -> str:
    return f"{finding.location} {finding.message}"


@pytest.mark.parametrize("story", STORIES, ids=[story["name"] for story in STORIES])
def test_workloads_with_data_stay_until_they_are_released(fleet: Fleet, story: dict[str, Any]) -> None:
    files = {path: text for each in story["files"] for path, text in each.items()}
    fleet.commit(make_files({**{f"clusters/{name}.yaml": f"cluster {name}" for name in NAMES}, **files}))
    fleet.reconcile()
    for number, step in enumerate(story["steps"]):
        hour = step.get("hour", number)
        fleet.commit(make_files(step.get("write", {})), hour=hour, message=step.get("message", "Change"))
        options = {name: tuple(values) for name, values in step.get("run", {}).items()}
        run = fleet.reconcile(hour, **options)
        check(fleet, run, step)


def check(fleet: Fleet, run: RunResult, step: dict[str, Any]) -> None:
    assert {name: fleet.where(f"shop/{name}") for name in step.get("in", {})} == step.get("in", {})
    if "held" in step:
        assert list_held(run) == step["held"]
    if "retiring" in step:
        assert sorted(run.plan.retiring) == step["retiring"]
    for name, replicas in step.get("replicas", {}).items():
        found = {each: fleet.load(f"clusters/{each}/shop/{name}.yaml")["spec"]["replicas"] for each in replicas}
        assert found == replicas
    for path, text in step.get("contains", {}).items():
        assert text in fleet.read(path)
    for code, parts in step.get("says", {}).items():
        text = "\n".join(show(finding) for finding in run.plan.findings if finding.code == code)
        assert [part for part in parts if part not in text] == [], text
    assert {finding.code for finding in run.plan.findings}.isdisjoint(step.get("lacks", ()))
    trailers = fleet.trailers()
    assert {name: trailers.get(name) for name in step.get("trailers", {})} == step.get("trailers", {})
    errors = [str(finding) for finding in run.plan.findings if finding.severity == "error"]
    assert errors == []
    again = fleet.reconcile(step.get("hour", 0) + 0.01) if "hour" in step else None
    assert again is None or not again.plan.moves


@pytest.fixture
def held(fleet: Fleet) -> Fleet:
    """A StatefulSet that is held in the drained cluster `ash`. Committed and reconciled."""
    fleet.commit(make_files({**{f"clusters/{name}.yaml": f"cluster {name}" for name in NAMES}, "policy.yaml": "policy ash bay"}))
    fleet.commit(make_files({"db.yaml": "statefulset db", "web.yaml": "deployment web"}))
    fleet.reconcile()
    fleet.commit(make_files({"clusters/ash.yaml": "cluster ash drain"}), hour=1)
    fleet.reconcile(1)
    return fleet


def test_the_record_and_readme_say_that_a_workload_is_held(held: Fleet) -> None:
    binding = held.binding("db-statefulset", "shop")
    assert binding["metadata"]["annotations"]["gitsched.io/held"] == "true"
    assert binding["spec"]["clusters"] == [{"name": "ash", "replicas": 3}]
    assert "gracefulEvictionTasks" not in binding["spec"]
    readme = held.read("README.md")
    assert "## Held workloads" in readme
    assert (
        "| `StatefulSet shop/db` | `ash 3` | `a taint evicts it from ash` | `bay 3` | `add the trailer Gitsched-Release: shop/db"
        in readme
    )
    assert "-4" not in readme.partition("## Held workloads")[2]


def test_a_held_workload_makes_no_commit_while_nothing_changes(held: Fleet) -> None:
    head = held.head
    for hour in (2, 20, 50):
        held.commit({"notes.txt": str(hour)}, hour=hour)
        run = held.reconcile(hour)
        assert not run.plan.moves
    changed = held.git("diff", "--name-only", head or "", "placements").splitlines()
    assert [path for path in changed if path.startswith(("clusters/bay", "clusters/cod", "placements/shop/statefulset"))] == []
    assert run.plan.next_wakeup is None


def test_the_release_counts_once_also_on_a_branch_that_is_merged_later(held: Fleet) -> None:
    held.git("checkout", "-qb", "topic", "HEAD~1")
    held.commit({"old.txt": "1"}, hour=0.5, message="Old\n\nGitsched-Release: shop/db")
    held.git("checkout", "-q", "main")
    held.git("merge", "-q", "--no-ff", "-m", "Merge", "topic")
    held.reconcile(2)
    assert held.where("shop/statefulset-db") == ["bay"], "the commit is new on the branch"
    held.commit(make_files({"clusters/bay.yaml": "cluster bay drain", "clusters/ash.yaml": "cluster ash"}), hour=3)
    held.git("checkout", "-qb", "later", "HEAD~2")
    held.commit({"later.txt": "1"}, hour=3.5)
    held.git("checkout", "-q", "main")
    held.git("merge", "-q", "--no-ff", "-m", "Merge", "later")
    run = held.reconcile(4)
    assert held.where("shop/statefulset-db") == ["bay"], "the trailer was before the last run"
    assert list_held(run) == ["StatefulSet/shop/db"]


def test_the_guard_does_not_count_held_moves(held: Fleet) -> None:
    many = {f"apps/db-{number}.yaml": f"statefulset db-{number}" for number in range(12)}
    held.commit(make_files({**many, "clusters/ash.yaml": "cluster ash"}), hour=2)
    held.reconcile(2)
    held.commit(make_files({"policy.yaml": "policy cod"}), hour=3)
    run = held.reconcile(3)
    assert len(run.plan.totals.held) == 13
    assert not run.plan.withheld.moves
    assert held.where("shop/deployment-web") == ["cod"]


def test_a_held_workload_is_decided_again_when_the_annotation_of_its_user_or_its_claim_changes(fleet: Fleet) -> None:
    """Incremental plans see it, as complete plans do."""
    files = {"policy.yaml": "policy ash bay", "files.yaml": "claimed files"}
    fleet.commit(make_files({**{f"clusters/{name}.yaml": f"cluster {name}" for name in NAMES}, **files}))
    fleet.reconcile()
    fleet.commit(make_files({"clusters/ash.yaml": "cluster ash drain"}), hour=1)
    fleet.reconcile(1)
    text = (fleet.path / "files.yaml").read_text()
    fleet.commit({"files.yaml": text.replace("5Gi", "7Gi")}, hour=2)
    run = fleet.reconcile(2)
    said = [finding.message for finding in run.plan.findings if finding.code == "stateful-held"]
    assert len(said) == 2
    assert all("claim files (7Gi, storage class slow)" in message for message in said)
    fleet.commit(make_files({"files.yaml": "claimed files annotations={gitsched.io/release: ash}"}), hour=3)
    fleet.reconcile(3)
    assert fleet.where("shop/deployment-files") == fleet.where("shop/persistentvolumeclaim-files") == ["bay"]


def test_gitsched_schedule_holds_nothing_without_the_setting() -> None:
    import gitsched

    documents = [yaml.safe_load(cluster(name, *(["drain:NoExecute"] if name == "ash" else []))) for name in NAMES]
    documents += [policy(["ash", "bay"]), workload("StatefulSet", "db")]
    before = gitsched.schedule([{**documents[0], "spec": {"syncMode": "Push"}}, *documents[1:]])
    bindings = [body for body in before.documents if body["kind"] == "ResourceBinding"]
    assert bindings[0]["spec"]["clusters"] == [{"name": "ash", "replicas": 3}]

    def decide(config: dict[str, Any]) -> list[dict[str, Any]]:
        found = gitsched.schedule(documents, previous=before.documents, config={"karmada": {"taintEviction": True}, **config})
        (binding,) = (body for body in found.documents if body["kind"] == "ResourceBinding")
        clusters: list[dict[str, Any]] = binding["spec"]["clusters"]
        return clusters

    assert decide({}) == [{"name": "bay", "replicas": 3}]
    assert decide({"guard": {"holdStateful": True}}) == [{"name": "ash", "replicas": 3}]


EVENTS: tuple[tuple[str, ...], ...] = (
    ("clusters/ash.yaml", "cluster ash drain", "cluster ash"),
    ("clusters/bay.yaml", "cluster bay drain", "cluster bay", ""),
    ("clusters/cod.yaml", "", "cluster cod"),
    ("policy.yaml", "policy ash bay", "policy bay,cod ash", "policy cod", "duplicated ash,bay", "duplicated bay", ""),
    ("apps/db.yaml", *(f"statefulset db replicas={count}" for count in (0, 1, 4, 7))),
    ("apps/db.yaml", "statefulset db image=postgres:17"),
    ("gitsched.yaml", "settings karmada={failback: WhenUnschedulable}", "settings karmada={evictionPurgeMode: Directly}", ""),
    ("apps/web.yaml", "deployment web", "deployment web replicas=5"),
)
"""Files with the texts that they may have; "" is no file."""


def list_decided(fleet: Fleet, name: str) -> set[str]:
    """Return the clusters of a workload, without those where a copy only stays until an eviction ends."""
    path = f"placements/shop/{name}.yaml"
    return {each["clusterProfileRef"]["name"] for each in fleet.load(path)["decisions"]} if path in fleet.files() else set()


@pytest.mark.parametrize("seed", list_variants(range(4), {0}))
def test_a_workload_with_data_leaves_no_cluster_unless_it_is_released(fleet: Fleet, seed: int) -> None:
    dice = Random(seed)
    files = {f"clusters/{name}.yaml": f"cluster {name}" for name in NAMES} | {"policy.yaml": "policy ash,bay cod"}
    fleet.commit(make_files({**files, "apps/db.yaml": "statefulset db", "apps/files.yaml": "claimed files"}))
    fleet.reconcile()
    workloads = ("statefulset-db", "deployment-files", "persistentvolumeclaim-files")
    before = {name: list_decided(fleet, name) for name in workloads}
    moved = 0
    for hour in range(1, 18):
        for _ in range(dice.choice((1, 1, 2))):
            path, *texts = dice.choice(EVENTS)
            text = dice.choice(texts)
            if text or (fleet.path / path).exists():
                fleet.write(make_files({path: text or None}))
        released = dice.random() < 0.2
        message = "Change\n\nGitsched-Release: shop/db, shop/files" if released else "Change"
        fleet.commit({}, hour=hour, message=message)
        run = fleet.reconcile(hour)
        after = {name: list_decided(fleet, name) for name in workloads}
        assert all(after[name] <= set(fleet.delivered(f"shop/{name}")) for name in workloads)
        left = {name: before[name] - after[name] for name in workloads if before[name] - after[name]}
        assert not left or released, f"hour {hour}: {left}"
        reported = {finding.resource for finding in run.plan.findings if finding.code == "stateful-move"}
        assert len(reported) >= len(left), f"hour {hour}: every move is a finding"
        moved += len(left)
        assert after["deployment-files"] <= after["persistentvolumeclaim-files"], "a claim stays with its workload"
        before = after
    assert run.plan.totals.held or moved, "something would have moved"


OCM_CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop, annotations: {cluster.open-cluster-management.io/placement: here}}
spec: {resources: {requests: {storage: 1Gi}}}
"""
OCM_SET = """\
apiVersion: work.open-cluster-management.io/v1alpha1
kind: ManifestWorkReplicaSet
metadata: {name: db, namespace: shop}
spec:
  placementRefs: [{name: here, rolloutStrategy: {type: All}}]
  manifestWorkTemplate:
    workload:
      manifests:
      - {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: own, namespace: shop}, spec: {resources: {requests: {storage: 2Gi}}}}
      - {apiVersion: v1, kind: ConfigMap, metadata: {name: conf, namespace: shop}, data: {colour: %s}}
"""


def test_workloads_of_open_cluster_management_are_held_and_rolled_out_where_they_are(fleet: Fleet) -> None:
    def make(tiers: dict[str, str], colour: str) -> dict[str, str]:
        rule = {"requiredClusterSelector": {"labelSelector": {"matchLabels": {"tier": "first"}}}}
        files = {f"clusters/{name}.yaml": to_yaml(managed_cluster(name, {"tier": tier})) for name, tier in tiers.items()}
        place = {
            "sets.yaml": to_yaml(*bound_global_set("shop")),
            "place.yaml": to_yaml(placement("here", "shop", predicates=[rule])),
        }
        return {**files, **place, "claim.yaml": OCM_CLAIM, "set.yaml": OCM_SET % colour}

    names = ("persistentvolumeclaim-data", "persistentvolumeclaim-own", "configmap-conf")
    fleet.commit(make({"ash": "first", "bay": "second"}, "red"))
    fleet.reconcile()
    fleet.commit(make({"ash": "second", "bay": "first"}, "blue"), hour=1)
    run = fleet.reconcile(1)
    assert list_held(run) == ["ManifestWorkReplicaSet/shop/db", "PersistentVolumeClaim/shop/data"]
    assert [fleet.where(f"shop/{name}") for name in names] == [["ash"]] * 3
    assert "colour: blue" in fleet.read("clusters/ash/shop/configmap-conf.yaml"), "changes of the workload are delivered"
    fleet.commit({"clusters/ash.yaml": None}, hour=2)
    fleet.reconcile(2)
    assert [fleet.where(f"shop/{name}") for name in names] == [["ash"]] * 3
    fleet.commit({}, hour=3, message="Lost\n\nGitsched-Release-Cluster: ash")
    run = fleet.reconcile(3)
    assert not run.plan.totals.held
    fleet.reconcile(4)
    assert [fleet.delivered(f"shop/{name}") for name in names] == [["bay"]] * 3


APPLICATION = """\
api: kubernetes
kind: Application
metadata: {name: db, namespace: tenant}
spec:
  constraints: {cluster: {labels: [zone is %s]}}
  manifest:
  - {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop}, spec: {resources: {requests: {storage: 1Gi}}}}
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: conf, namespace: shop}, data: {zone: %s}}
"""
SITE = """\
api: kubernetes
kind: Cluster
metadata: {name: %s, namespace: tenant, labels: {zone: %s}}
spec: {kubeconfig: {contexts: [{name: c}], clusters: [{name: c}], users: [{name: u}]}}
status: {state: ONLINE}
"""


def test_applications_of_krake_are_held_until_they_are_released(fleet: Fleet) -> None:
    fleet.commit({"a.yaml": SITE % ("ash", "a"), "b.yaml": SITE % ("bay", "b"), "db.yaml": APPLICATION % ("a", "a")})
    fleet.reconcile()
    (first,) = fleet.where("shop/persistentvolumeclaim-data")
    fleet.commit({"db.yaml": APPLICATION % ("b", "b")}, hour=1)
    run = fleet.reconcile(1)
    assert list_held(run) == ["Application/tenant/db"]
    assert fleet.where("shop/persistentvolumeclaim-data") == [first]
    assert "zone: b" in fleet.read(f"clusters/{first}/shop/configmap-conf.yaml")
    fleet.commit({"a.yaml": None}, hour=2)
    assert list_held(fleet.reconcile(2)) == ["Application/tenant/db"]
    assert fleet.where("shop/persistentvolumeclaim-data") == [first]
    fleet.commit({}, hour=3, message="Go\n\nGitsched-Release: tenant/db")
    fleet.reconcile(3)
    fleet.reconcile(4)
    (second,) = fleet.delivered("shop/persistentvolumeclaim-data")
    assert second != first


def test_the_command_line_releases_a_lost_cluster(held: Fleet, tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
        return fork_server.run([*arguments, "--now", at_hour(2).strftime("%Y-%m-%dT%H:%M:%SZ")], held.path, environment)

    held.commit({"clusters/ash.yaml": None}, hour=2)
    planned = run("plan")
    assert planned.returncode == 0, planned.stderr
    assert "StatefulSet shop/db is held on ash 3: ash has no Cluster document" in planned.stdout
    released = run("plan", "--release-cluster", "ash").stdout
    assert "moves from ash 3 to bay 3 without its data" in " ".join(released.split())
    assert "is held" not in released
    done = run("reconcile", "--release-cluster", "ash")
    assert done.returncode == 0, done.stderr
    assert held.trailers()["Gitsched-Release-Cluster"] == "ash"
    assert held.where("shop/statefulset-db") == ["bay"]
    assert "is held" not in run("plan").stdout


def test_a_removed_cluster_counts_as_removed_where_a_held_workload_stays(held: Fleet) -> None:
    def list_removed(base: str | None) -> list[Sequence[str]]:
        review = compare_plans(held.settings(3, revision="HEAD" if base else None), base).review
        assert list(review.held) == [Key("apps", "StatefulSet", "shop", "db")]
        return [review.comparison.removed_clusters, serialize_review(review)["summary"]["gone"]]

    base = held.git("rev-parse", "HEAD")
    held.commit({"clusters/ash.yaml": None}, hour=2)
    assert list_removed(base) == list_removed(None) == [["ash"], ["ash"]]
    held.reconcile(3)
    assert list_removed(base) == [["ash"], ["ash"]]
    assert list_removed(None) == [[], []], "the last run knew of it"


def test_a_simulation_and_an_explanation_say_that_a_workload_is_held(held: Fleet) -> None:
    from gitsched.model.explanation import Explanation
    from gitsched.reconcile.review.explanation import explain_resource

    found = explain_resource(held.settings(2), "StatefulSet", "shop", "db")
    assert isinstance(found, Explanation)
    assert [share.cluster for share in found.result] == ["ash"]
    assert "it is held in ash 3" in found.trigger
    (bay,) = (entry for entry in found.counterfactuals if entry.cluster == "bay")
    assert bay.sufficient
    assert "Gitsched-Release: shop/db" in bay.changes[0].text


def test_json_lists_held_workloads(held: Fleet) -> None:
    from gitsched.reconcile.run import make_review
    from gitsched.report.serialization import serialize_review

    (entry,) = json.loads(json.dumps(serialize_review(make_review(held.preview(2)))))["held"]
    assert entry["workload"] == {"group": "apps", "kind": "StatefulSet", "namespace": "shop", "name": "db"}
    assert (entry["clusters"], entry["wanted"]) == ([{"cluster": "ash", "replicas": 3}], [{"cluster": "bay", "replicas": 3}])
    assert (entry["leaving"], entry["lost"], entry["evicted"]) == (["ash"], [], True)
    assert entry["data"] == ["claim template data (10Gi, storage class fast)"]
