"""A damaged or forged output branch, and odd texts in commits: no run stops, and nothing is lost or delivered that nobody wrote."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import pytest

from gitsched.apis.gitsched.guard_config import GuardConfig
from gitsched.decide.guard.guard_settings import read_guard_record
from gitsched.model.errors import Permanent

from .conftest import Fleet, cluster, deployment, execute, policy

WEB = "default/deployment-web"
MINUTE = 1 / 60
RETIRE = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {output: {retireAfter: 20000000000h}}\n"


def fill(fleet: Fleet) -> None:
    """Move `web` from `ash` to `bru`, so that its copy stays in `ash` for the overlap."""
    fleet.commit({"web.yaml": deployment("web"), "policy.yaml": policy("ash"), **{f"{n}.yaml": cluster(n) for n in ("ash", "bru")}})
    fleet.reconcile()
    fleet.commit({"policy.yaml": policy("bru")}, hour=1)
    fleet.reconcile(1)


def replace(fleet: Fleet, path: str, mode: str, content: str) -> None:
    """Commit an entry of the output branch; for a submodule, `content` is the commit."""
    environment = {"GIT_INDEX_FILE": os.fspath(fleet.path.parent / "index")}
    fleet.git("read-tree", "placements", environment=environment)
    if path in fleet.files():
        fleet.git("update-index", "--force-remove", path, environment=environment)
    blob = content if mode == "160000" else fleet.git("hash-object", "-w", "--stdin", data=content.encode())
    fleet.git("update-index", "--add", "--cacheinfo", f"{mode},{blob},{path}", environment=environment)
    tree = fleet.git("write-tree", environment=environment)
    commit = execute("commit-tree", tree, "-p", "placements", "-m", "Change by hand", at=fleet.path)
    fleet.git("update-ref", "refs/heads/placements", commit)


@pytest.mark.parametrize(
    "path",
    [
        *(
            "clusters/ash",
            "clusters",
            "clusters/ash/default",
            "clusters/ash/kustomization.yaml",
            "../x.yaml",
            "/x.yaml",
            "README.md",
        ),
        *(
            "clusters/ash/../bru/default/x.yaml",
            "clusters/bru/default/deployment-web.yaml",
            "clusters/ash/.git/x.yaml",
            "",
            7,
            None,
        ),
    ],
)
def test_a_recorded_copy_with_another_path_keeps_nothing(fleet: Fleet, path: Any) -> None:
    fill(fleet)
    record = fleet.load("gitsched.json")
    record["retainedCopies"][0]["paths"] = [path]
    replace(fleet, "gitsched.json", "100644", json.dumps(record))
    before = fleet.files()
    fleet.commit({"more.yaml": deployment("more")}, hour=1 + MINUTE)
    fleet.reconcile(1 + MINUTE)
    after = fleet.files()
    assert fleet.delivered(WEB) == ["bru"]
    added = {"clusters/bru/default/deployment-more.yaml", "placements/default/deployment-more.yaml"}
    assert after.keys() - before.keys() == {*added, "status/work.karmada.io/resourcebinding/default/more-deployment.yaml"}


@pytest.mark.parametrize(("mode", "content"), [("120000", "/etc/passwd"), ("160000", "a" * 40)], ids=["link", "submodule"])
def test_only_a_regular_file_is_kept_as_a_copy(fleet: Fleet, mode: str, content: str) -> None:
    fill(fleet)
    replace(fleet, f"clusters/ash/{WEB}.yaml", mode, content)
    fleet.commit({"more.yaml": deployment("more")}, hour=1 + MINUTE)
    fleet.reconcile(1 + MINUTE)
    assert fleet.delivered(WEB) == ["bru"]
    assert "commit" not in fleet.git("ls-tree", "-r", "--format=%(objecttype)", "placements")
    fleet.git("fsck", "--strict", "--no-dangling", "refs/heads/placements")


@pytest.mark.parametrize(
    ("path", "mode", "content"),
    [("FREEZE", "120000", "/etc/passwd"), ("FREEZE", "160000", "a" * 40), ("FREEZE/reason.txt", "100644", "stop\n")],
    ids=["link", "submodule", "directory"],
)
def test_whatever_is_named_freeze_freezes_placements_until_it_is_lifted(fleet: Fleet, path: str, mode: str, content: str) -> None:
    fill(fleet)
    replace(fleet, path, mode, content)
    for hour in (2, 3):
        fleet.commit({"policy.yaml": policy("ash"), f"new-{hour}.yaml": cluster(f"new-{hour}")}, hour=hour)
        run = fleet.reconcile(hour)
        assert "placements-frozen" in {finding.code for finding in run.plan.findings}
        assert [(str(move.key), dict(move.after)) for move in run.plan.withheld.moves] == [
            ("Deployment.apps/default/web", {"ash": 2})
        ]
        assert fleet.delivered(WEB) == ["ash", "bru"], "the copy stays to which the withheld move goes back"
    assert "FREEZE" in fleet.files()


def test_a_name_in_a_trailer_is_shown_shortened(fleet: Fleet) -> None:
    fleet.commit({"web.yaml": deployment("web"), "policy.yaml": policy("ash"), "ash.yaml": cluster("ash")})
    fleet.reconcile()
    fleet.commit({"x.yaml": deployment("x")}, hour=1, message=f"Change\n\nGitsched-Release: {'x' * 100_000}\n")
    unused = [finding.message for finding in fleet.reconcile(1).plan.findings if finding.code == "release-unused"]
    assert len(unused) == 1
    assert len(unused[0]) < 300


def test_a_cluster_may_retire_after_the_end_of_the_calendar(fleet: Fleet) -> None:
    fill(fleet)
    fleet.commit({"gitsched.yaml": RETIRE, "ash.yaml": None}, hour=2)
    fleet.reconcile(2)
    assert "clusters/ash/kustomization.yaml" in fleet.files()


@pytest.mark.parametrize("percent", [float("nan"), float("inf"), -5, 10**400, "100", True, [100]])
def test_a_recorded_limit_that_is_no_percentage_counts_as_the_default(percent: Any) -> None:
    assert read_guard_record({"limits": {"fleet": {"removed": percent}}}).settings == GuardConfig()


@pytest.mark.parametrize("name", ["../evil", "My_Cluster", "", ".git"])
def test_a_recorded_name_that_is_no_cluster_does_not_retire(fleet: Fleet, name: str) -> None:
    fill(fleet)
    record = fleet.load("gitsched.json")
    record["retiring"] = {name: record["time"]}
    replace(fleet, "gitsched.json", "100644", json.dumps(record))
    for minute in (1, 2):
        fleet.commit({"more.yaml": deployment(f"more-{minute}")}, hour=1 + minute * MINUTE)
        fleet.reconcile(1 + minute * MINUTE)
        assert fleet.load("gitsched.json")["retiring"] == {}
    assert {path.split("/")[1] for path in fleet.files() if path.startswith("clusters/")} == {"ash", "bru"}


OCM = """\
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: ash, labels: {cluster.open-cluster-management.io/clusterset: default}}
spec: {hubAcceptsClient: true}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {name: default}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: default, namespace: shop}
spec: {clusterSet: default}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: web, namespace: shop}
spec: {clusterSets: [default]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: shop, annotations: {cluster.open-cluster-management.io/placement: web}}
data: {a: b}
"""


@pytest.mark.parametrize("content", ["", "kind: [", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"])
def test_a_damaged_placement_decision_is_decided_again(fleet: Fleet, content: str) -> None:
    fleet.commit({"ocm.yaml": OCM})
    fleet.reconcile()
    before = fleet.files()
    (path,) = (path for path in before if "/placementdecision/" in path)
    replace(fleet, path, "100644", content)
    fleet.reconcile(1)
    fleet.reconcile(72)
    after = fleet.files()
    assert {path: blob for path, blob in after.items() if path.startswith(("clusters/", "status/"))} == {
        path: blob for path, blob in before.items() if path.startswith(("clusters/", "status/"))
    }


@pytest.mark.parametrize("member", ["fromCluster", "creationTimestamp"])
@pytest.mark.parametrize("value", [{"a": [{}]}, [[]], 7, None, "x"])
def test_an_edited_eviction_task_is_read_without_what_cannot_be(fleet: Fleet, member: str, value: Any) -> None:
    fleet.commit(
        {"web.yaml": deployment("web"), "one.yaml": cluster("one"), "two.yaml": cluster("two"), "all.yaml": policy("one", "two")}
    )
    fleet.reconcile()
    path = "status/work.karmada.io/resourcebinding/default/web-deployment.yaml"
    record = fleet.load(path)
    record["spec"]["gracefulEvictionTasks"] = [{"fromCluster": "two", "creationTimestamp": "2026-03-02T08:00:00Z", member: value}]
    replace(fleet, path, "100644", json.dumps(record))
    assert [finding for finding in fleet.reconcile(0.1).plan.findings if finding.code == "internal-error"] == []
    assert fleet.where("default/deployment-web")[:1] == ["one"]


FOREIGN_NOTES: dict[str, tuple[str, str, str]] = {
    "directory": ("040000 tree TREE", "HEAD", ""),
    "submodule": ("160000 commit COMMIT", "HEAD", ""),
    "lost": ("100644 blob " + "1" * 40, "HEAD", ""),
    "a file in place of a directory of notes": ("100644 blob BLOB", "", ""),
    "a lost directory of notes": ("040000 tree " + "2" * 40, "", ""),
    "names that are no ids": ("100644 blob BLOB", "--help", ""),
    "too deep": ("100644 blob BLOB", "HEAD", "[" * 100_000),
    "too large": ("100644 blob BLOB", "HEAD", '{"drySha": "COMMIT", "x": "' + "x" * (1 << 20) + '"}'),
    "texts that are no Unicode": ("100644 blob BLOB", "HEAD", '{"drySha": "\\ud800", "operatorOutputs": ["\\ud800"]}'),
    "last runs that are none": ("100644 blob BLOB", "HEAD", '{"drySha": "COMMIT", "reconciled": [1]}'),
    "last runs without texts": ("100644 blob BLOB", "HEAD", '{"reconciled": {"placements": {"source": 1, "branch": null}}}'),
    "options of git in a last run": (
        "100644 blob BLOB",
        "HEAD",
        '{"reconciled": {"placements": {"source": "--x", "branch": "-x"}}}',
    ),
    "no branch in a last run": ("100644 blob BLOB", "HEAD", '{"reconciled": {"placements": {"branch": "../\\ud800"}}}'),
    "a last run of no commit": (
        "100644 blob BLOB",
        "HEAD",
        '{"reconciled": {"placements": {"source": "' + "a" * 40 + '", "branch": "\\u0000*"}}}',
    ),
    "an option of git": ("100644 blob BLOB", "HEAD", '{"drySha": "--upload-pack=false"}'),
}


@pytest.mark.parametrize("case", [*FOREIGN_NOTES, "no commit"])
def test_whatever_somebody_pushed_as_notes_a_run_continues(pair: Fleet, case: str) -> None:
    """Forges protect branches, not notes: whoever may push can write them."""
    pair.reconcile()
    notes, head = "refs/notes/hydrator.metadata", pair.head or ""
    blob = pair.git("hash-object", "-w", "--stdin", data=FOREIGN_NOTES.get(case, ("", "", ""))[2].encode())
    if case == "no commit":
        pair.git("update-ref", notes, blob)
    else:
        kind, name, _ = FOREIGN_NOTES[case]
        kind = (
            kind.replace("TREE", pair.git("mktree", data=b""))
            .replace("COMMIT", pair.git("rev-parse", "main"))
            .replace("BLOB", blob)
        )
        tree = pair.git("mktree", "--missing", data=f"{kind}\t{name.replace('HEAD', head) or head[:2]}\n".encode())
        pair.git("update-ref", notes, pair.git("commit-tree", "-m", "Notes", tree))
    pair.commit({"apps/web.yaml": deployment("web", 3)}, hour=1)
    run = pair.reconcile(1)
    assert (run.after == pair.head, run.before, pair.where(WEB)) == (True, head, ["first"])
    note = json.loads(pair.git("notes", "--ref=hydrator.metadata", "show", run.after or ""))
    assert note["drySha"] == pair.git("rev-parse", "main")


@pytest.mark.parametrize("text", ["{", "{}", None], ids=["not JSON", "no version", "removed"])
def test_the_commit_that_damaged_the_record_of_the_run_is_named(text: str | None, fleet: Fleet) -> None:
    fleet.commit({"one.yaml": cluster("one"), "web.yaml": deployment("web"), "all.yaml": policy("one")})
    fleet.reconcile(0)
    fleet.git("checkout", "-q", "placements")
    damaging = fleet.commit({"gitsched.json": text}, hour=1, message="Oops")
    fleet.commit({"notes.txt": "x"}, hour=1)
    fleet.git("checkout", "-q", "main")
    author = fleet.git("log", "-1", "--format=%an")
    with pytest.raises(Permanent, match=re.escape(f": git revert {damaging[:10]} on that branch (Oops, by {author})")):
        fleet.reconcile(2)
