"""`gitsched rebalance --to COMMIT` brings workloads back to where they were, as far as their policies allow."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitsched.cli import main
from gitsched.reconcile.output import past_placements
from tests.builders.knative import ADAPTER, adapter, node, pods, settings, source
from tests.builders.ocm import bound_global_set, managed_cluster, placement, taint, to_yaml

from .conftest import Fleet, cluster, deployment, policy
from .histories import APPLICATION, SITE

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples"))
from demo import tainted  # noqa: E402 - a script, not a package

ANNOTATION = "gitsched.io/preferred-clusters"
ONE = "    spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]\n"
CHOOSE_ONE = policy("").replace("  placement:\n", f"  placement:\n{ONE}")
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def gitsched(fleet: Fleet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in the worktree at an hour, in this process."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(fleet.path.parent / "cache"))

    def run(*arguments: str, hour: float = 0, code: int = 0) -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(fleet.path)
        capsys.readouterr()
        found = main([*arguments, "--now", f"{fleet.settings(hour).now:%Y-%m-%dT%H:%M:%SZ}"])
        out, err = capsys.readouterr()
        assert found == code, err
        return subprocess.CompletedProcess(arguments, found, out, err)

    return run


def list_placements(fleet: Fleet, at: str = "placements") -> dict[str, Any]:
    """Return the clusters and replicas of every workload."""
    found = {}
    for path, text in fleet.files(at).items():
        if path.startswith("placements/"):
            body = fleet.load(path, at)
            names = sorted(entry["clusterProfileRef"]["name"] for entry in body["decisions"])
            found[path] = names, body["metadata"]["annotations"].get("gitsched.io/replicas"), bool(text)
    return found


def test_the_demo_comes_back_completely(fleet: Fleet, gitsched: Run) -> None:
    shutil.copytree(ROOT / "examples" / "repo", fleet.path, dirs_exist_ok=True)
    begin = fleet.commit(hour=0)
    fleet.reconcile(0)
    first = list_placements(fleet)
    for path in sorted((fleet.path / "clusters").glob("fra-*.yaml")):
        path.write_text(tainted(path.read_text()))
    fleet.commit(hour=1, message="Frankfurt: no power")
    fleet.reconcile(1.5)
    lost = list_placements(fleet)
    moved = {path for path in first if first[path] != lost[path]}
    assert len(moved) == 13
    fleet.git("revert", "--no-commit", "HEAD")
    fleet.commit(hour=2, message="Revert")
    fleet.reconcile(2)
    reverted = list_placements(fleet)
    assert len({path for path in moved if reverted[path] == first[path]}) == 3
    shown = gitsched("rebalance", "--to", begin, "--write", hour=3).stdout
    assert "10 workloads go back:" in shown
    allowance = shown.partition("Gitsched-Allow: ")[2].partition(" ")[0]
    fleet.commit(hour=3, message=f"Back to Frankfurt\n\nGitsched-Allow: {allowance}")
    fleet.reconcile(3)
    assert list_placements(fleet) == first
    assert "No workload is elsewhere" in gitsched("rebalance", "--to", begin, hour=4).stderr
    after = fleet.reconcile(30)
    assert not after.plan.moves, "they stay there"


def start(fleet: Fleet, files: dict[str, str | bytes | None]) -> tuple[str, str]:
    """Reconcile a first commit, and return its id and that of its output commit."""
    commit = fleet.commit({name: text for name, text in files.items() if text is not None})
    fleet.reconcile(0)
    return commit, str(fleet.head)


def test_a_workload_of_karmada_goes_back_where_the_request_alone_would_not_bring_it(fleet: Fleet, gitsched: Run) -> None:
    files: dict[str, str | bytes | None] = {f"clusters/{name}.yaml": cluster(name) for name in ("b", "c")}
    commit, _ = start(fleet, {**files, "apps/web.yaml": deployment("web"), "policies/all.yaml": CHOOSE_ONE})
    assert fleet.where("default/deployment-web") == ["b"]
    fleet.commit({"clusters/b.yaml": cluster("b", "power:NoExecute"), "clusters/a.yaml": cluster("a")}, hour=1)
    fleet.reconcile(1)
    assert fleet.where("default/deployment-web") == ["a"]
    fleet.commit({"clusters/b.yaml": cluster("b")}, hour=2)
    fleet.reconcile(2)
    assert fleet.where("default/deployment-web") == ["a"], "a revert leaves it where it is"
    shown = gitsched("rebalance", "--to", commit, "--write", hour=3).stdout
    assert "annotated apps/web.yaml" in shown
    assert "Deployment/default/web: a 2 -> b 2" in shown
    text = (fleet.path / "apps/web.yaml").read_text()
    assert f"    {ANNOTATION}: b\n" in text
    assert "# as many as it takes" in text
    fleet.commit(hour=3)
    assert "Preferred clusters come first: b" in gitsched("explain", "deploy/web", hour=3).stdout
    fleet.reconcile(3)
    assert fleet.where("default/deployment-web") == ["b"]
    fleet.reconcile(4)
    assert fleet.where("default/deployment-web") == ["b"]


def test_the_patch_on_stdout_is_what_write_writes(fleet: Fleet, gitsched: Run) -> None:
    files: dict[str, str | bytes | None] = {f"clusters/{name}.yaml": cluster(name) for name in ("a", "b")}
    both = deployment("web") + "---\n" + deployment("api").rstrip("\n")
    commit, output = start(fleet, {**files, "apps/all.yaml": both, "policies/all.yaml": CHOOSE_ONE})
    fleet.commit({"clusters/a.yaml": cluster("a", "power:NoExecute")}, hour=1)
    fleet.reconcile(1)
    fleet.commit({"clusters/a.yaml": cluster("a")}, hour=2)
    fleet.reconcile(2)
    patch = gitsched("rebalance", "--to", output, hour=3).stdout
    assert patch == gitsched("rebalance", "--to", commit, hour=3).stdout, "either commit names the run"
    data = json.loads(gitsched("rebalance", "--to", commit, "-o", "json", hour=3).stdout)
    assert (data["kind"], data["commit"], data["source"]) == ("Restoration", output, commit)
    assert [row["after"] for row in data["workloads"]] == [{"a": 2}, {"a": 2}]
    gitsched("rebalance", "--to", commit, "--write", hour=3)
    written = {path: (fleet.path / path).read_bytes() for path in data["files"]}
    for path in data["files"]:
        if path.startswith("rebalance/"):
            (fleet.path / path).unlink()
    fleet.git("checkout", "--", ".")
    fleet.git("apply", "-", data=patch.encode())
    assert {path: (fleet.path / path).read_bytes() for path in data["files"]} == written


def test_a_placement_goes_back(fleet: Fleet, gitsched: Run) -> None:
    clusters = [managed_cluster(name) for name in ("a", "b")]
    rules = [*bound_global_set("shop"), placement("one", "shop", 1)]
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: shop, annotations: {%s: one}}\n"
    follower = config % "cluster.open-cluster-management.io/placement"
    commit, _ = start(fleet, {"clusters.yaml": to_yaml(*clusters), "rules.yaml": to_yaml(*rules), "app.yaml": follower})
    assert fleet.where("shop/configmap-c") == ["a"]
    fleet.commit({"clusters.yaml": to_yaml(managed_cluster("a", taints=[taint("power")]), clusters[1])}, hour=1)
    fleet.reconcile(1)
    fleet.commit({"clusters.yaml": to_yaml(*clusters)}, hour=2)
    fleet.reconcile(2)
    assert fleet.where("shop/configmap-c") == ["b"], "the prioritizer Steady keeps it"
    shown = gitsched("rebalance", "--to", commit, "--write", "configmap/shop/c", hour=3).stdout
    assert "Placement/shop/one: b -> a" in shown
    assert "Move with them:\n  ConfigMap/shop/c: b -> a" in shown
    fleet.commit(hour=3)
    fleet.reconcile(3)
    assert fleet.where("shop/configmap-c") == ["a"]


def list_application(fleet: Fleet) -> list[str]:
    return list_placements(fleet)["placements/tenant/application.kubernetes-echo.yaml"][0]


def test_an_application_goes_back(fleet: Fleet, gitsched: Run) -> None:
    commit, _ = start(fleet, {"krake/echo.yaml": APPLICATION % 1, "krake/near.yaml": SITE % "near"})
    fleet.commit({"krake/near.yaml": (SITE % "near").replace("ONLINE", "OFFLINE"), "krake/far.yaml": SITE % "far"}, hour=1)
    fleet.reconcile(1)
    assert list_application(fleet) == ["tenant.far"]
    fleet.commit({"krake/near.yaml": SITE % "near"}, hour=2)
    fleet.reconcile(2)
    assert list_application(fleet) == ["tenant.far"], "stickiness keeps it"
    shown = gitsched("rebalance", "--to", commit, "--write", hour=3).stdout
    assert "Application/tenant/echo: tenant.far 1 -> tenant.near 1" in shown
    fleet.commit(hour=3)
    fleet.reconcile(3)
    fleet.reconcile(4)
    assert list_application(fleet) == ["tenant.near"]


def test_the_vreplicas_of_a_source_go_back(fleet: Fleet, gitsched: Run) -> None:
    nodes = {"n0.yaml": node("n0", "east"), "n1.yaml": node("n1", "west"), "n2.yaml": node("n2", "north")}
    commit, _ = start(
        fleet,
        {
            **nodes,
            "gitsched.yaml": settings(4, cluster="events"),
            "adapter.yaml": adapter(3) + "---\n" + pods({0: "n0", 1: "n1", 2: "n2"}),
            "orders.yaml": source("orders", 2),
        },
    )
    path = "status/sources.knative.dev/kafkasource/shop/orders.yaml"
    first = fleet.load(path)["status"]["placements"]
    taken = int(first[0]["podName"].removeprefix(f"{ADAPTER}-"))
    fleet.commit({f"n{taken}.yaml": node(f"n{taken}", "east", cordoned=True)}, hour=1)
    fleet.commit(
        {"adapter.yaml": adapter(3) + "---\n" + pods({0: "n0", 1: "n1", 2: "n2"}, {taken})},
        hour=1.1,
    )
    fleet.reconcile(1.1)
    moved = fleet.load(path)["status"]["placements"]
    assert moved != first
    fleet.commit(
        {f"n{taken}.yaml": nodes[f"n{taken}.yaml"], "adapter.yaml": adapter(3) + "---\n" + pods({0: "n0", 1: "n1", 2: "n2"})},
        hour=2,
    )
    fleet.reconcile(2)
    assert fleet.load(path)["status"]["placements"] == moved, "placed vreplicas stay"
    shown = gitsched("rebalance", "--to", commit, "--write", hour=3).stdout
    assert "KafkaSource/shop/orders: " in shown
    fleet.commit(hour=3)
    fleet.reconcile(3)
    assert fleet.load(path)["status"]["placements"] == first


CLAIM = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: default}\nspec: {accessModes: [ReadWriteOnce]}\n"


def test_what_cannot_go_back_is_reported_with_the_reason(fleet: Fleet, gitsched: Run) -> None:
    files: dict[str, str | bytes | None] = {f"clusters/{name}.yaml": cluster(name) for name in ("a", "b")}
    names = ("web", "old", "api")
    commit, _ = start(fleet, {**files, **{f"apps/{n}.yaml": deployment(n) for n in names}, "policies/all.yaml": CHOOSE_ONE})
    fleet.commit(
        {"clusters/c.yaml": cluster("c"), "clusters/a.yaml": None, "apps/old.yaml": None, "apps/new.yaml": deployment("new")},
        hour=1,
    )
    fleet.reconcile(1)
    shown = gitsched("rebalance", "--to", commit, hour=2).stderr
    assert "Stay:\n  Deployment/default/api: b 2, then a 2: a is not in the source any more" in shown
    assert "Not in the source any more:\n  deployment/default/old" in shown
    assert "goes back" not in shown
    fleet.commit({"clusters/a.yaml": cluster("a", "power:NoSchedule")}, hour=2)
    fleet.reconcile(2)
    shown = gitsched("rebalance", "--to", commit, hour=3).stderr
    assert "Deployment/default/web: b 2, then a 2: a is not allowed" in shown
    assert "had untolerated taint {power:NoSchedule}" in shown
    shown = gitsched("rebalance", "--to", commit, "deploy/new", "deploy/web", hour=3).stderr
    assert "Not included:\n  Deployment/default/new: it was not placed then" in shown
    assert "Deployment/default/api" not in shown
    fleet.commit(
        {"clusters/a.yaml": cluster("a"), "apps/api.yaml": deployment("api").replace("replicas: 2", "replicas: [2]")}, hour=4
    )
    fleet.reconcile(4)
    shown = gitsched("rebalance", "--to", commit, "--write", hour=5).stdout
    assert "Deployment/default/web: b 2 -> a 2" in shown
    assert "Stay:\n  Deployment/default/api: b 2, then a 2: it is not annotated, because apps/api.yaml has errors" in shown
    assert "annotated apps/api.yaml" not in shown


def test_an_eviction_that_has_not_ended_is_the_reason_why_a_workload_stays(fleet: Fleet, gitsched: Run) -> None:
    files = {"one.yaml": cluster("one"), "two.yaml": cluster("two"), "web.yaml": deployment("web")}
    fleet.commit({**files, "policy.yaml": policy("one", "two")})
    fleet.reconcile()
    before = fleet.git("rev-parse", "placements")
    fleet.commit({"one.yaml": cluster("one", "power:NoExecute")}, hour=1)
    fleet.reconcile(1)
    fleet.commit({"one.yaml": cluster("one")}, hour=1.05)
    fleet.reconcile(1.05)
    stays = gitsched("rebalance", "--to", before, hour=1.1).stderr
    assert (
        "  Deployment/default/web: two 2, then one 2: it is evicted from one until 2026-03-02T09:10:00Z: try again then\n" in stays
    )
    assert "1 workload goes back" in gitsched("rebalance", "--to", before, hour=2).stderr


def test_a_workload_with_data_goes_back_only_by_name(fleet: Fleet, gitsched: Run) -> None:
    files: dict[str, str | bytes | None] = {f"clusters/{name}.yaml": cluster(name) for name in ("a", "b")}
    store = deployment("store").replace(
        "  namespace: default\n", "  namespace: default\n  labels: {gitsched.io/stateful: 'true'}\n"
    )
    moved = store.replace("labels: {", "annotations: {gitsched.io/release: a}\n  labels: {")
    commit, _ = start(fleet, {**files, "apps/store.yaml": store, "policies/all.yaml": CHOOSE_ONE})
    fleet.commit({"clusters/a.yaml": cluster("a", "power:NoExecute"), "apps/store.yaml": moved}, hour=1)
    fleet.reconcile(1)
    assert fleet.where("default/deployment-store") == ["b"]
    fleet.commit({"clusters/a.yaml": cluster("a"), "apps/store.yaml": store}, hour=2)
    fleet.reconcile(2)
    shown = gitsched("rebalance", "--to", commit, hour=3)
    assert not shown.stdout
    assert "Held, and not included:" in shown.stderr
    assert f"To move it all the same: gitsched rebalance --to {commit} -n default Deployment/store" in shown.stderr
    shown = gitsched("rebalance", "--to", commit, "--write", "-n", "default", "Deployment/store", hour=3)
    fleet.commit(hour=3)
    fleet.reconcile(3)
    assert fleet.where("default/deployment-store") == ["a"]


def test_unknown_commits_and_other_selections_are_refused(fleet: Fleet, gitsched: Run) -> None:
    files: dict[str, str | bytes | None] = {"clusters/a.yaml": cluster("a"), "apps/web.yaml": deployment("web")}
    fleet.commit({"README.md": "nothing yet\n"})
    early = fleet.git("rev-parse", "HEAD").strip()
    assert "there is no output branch" in gitsched("rebalance", "--to", early, code=1).stderr
    fleet.commit({**files, "policies/all.yaml": policy("")}, hour=1)
    fleet.reconcile(1)
    assert (
        "neither the source nor the output branch placements has a commit"
        in gitsched("rebalance", "--to", "nowhere", code=1).stderr
    )
    assert "no commit of the output branch placements was planned from" in gitsched("rebalance", "--to", early, code=1).stderr
    assert "--to is for" in gitsched("rebalance", "--to", "HEAD", "--all-displaced", code=2).stderr
    assert "No workload is elsewhere" in gitsched("rebalance", "--to", "HEAD", hour=1).stderr


def test_the_search_for_an_earlier_run_is_bounded(fleet: Fleet, gitsched: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    files: dict[str, str | bytes | None] = {"clusters/a.yaml": cluster("a"), "policies/all.yaml": policy("")}
    commit, _ = start(fleet, {**files, "apps/web.yaml": deployment("web")})
    fleet.commit({"apps/web.yaml": deployment("web", 3)}, hour=1)
    fleet.reconcile(1)
    monkeypatch.setattr(past_placements, "MAX_COMMITS", 1)
    assert "(the newest 1 commits of the output branch are searched)" in gitsched("rebalance", "--to", commit, code=1).stderr


ITEM = """\
apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web, namespace: default}
  spec: {replicas: 2}
"""


def test_a_file_that_cannot_be_edited_is_reported_with_the_annotation(fleet: Fleet, gitsched: Run) -> None:
    files: dict[str, str | bytes | None] = {f"clusters/{name}.yaml": cluster(name) for name in ("a", "b")}
    commit, _ = start(fleet, {**files, "apps/web.yaml": ITEM, "policies/all.yaml": CHOOSE_ONE})
    fleet.commit({"clusters/a.yaml": cluster("a", "power:NoExecute")}, hour=1)
    fleet.reconcile(1)
    fleet.commit({"clusters/a.yaml": cluster("a")}, hour=2)
    fleet.reconcile(2)
    shown = gitsched("rebalance", "--to", commit, "--write", hour=3).stdout
    assert f"because the object is an item of a List; write {ANNOTATION}: a by hand" in shown
    assert (fleet.path / "apps/web.yaml").read_text() == ITEM
