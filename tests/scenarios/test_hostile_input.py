"""Malicious files in a repository become findings, do not cause a crash, and do not affect a valid workload."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitsched.manifests.parsed_file import DEFAULT_LIMITS
from gitsched.reconcile import RunResult

from .conftest import Fleet, cluster, deployment, execute, policy

ALIASES = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
BOMB = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: bomb, namespace: default}}\n{ALIASES}"
HEAD = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n"
TRAPS: dict[str, str | bytes] = {
    "traps/bomb.yaml": BOMB,
    "traps/brackets.yaml": "[" * 100_000,
    "traps/braces.yaml": "{a: " * 100_000,
    "traps/big.yaml": b"# " + b"x" * DEFAULT_LIMITS.size + b"\n",
    "traps/twice.yaml": f"{HEAD}  name: twice\n  name: thrice\n",
    "traps/latin.yaml": b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: caf\xe9}\n",
    "traps/name.yaml": f"{HEAD}  name: ../../x\n  namespace: default\nspec: {{replicas: 1}}\n",
    "traps/namespace.yaml": f"{HEAD}  name: inside\n  namespace: ../../../outside\nspec: {{replicas: 1}}\n",
    "traps/cluster.yaml": cluster("../../y"),
    "traps/nul.yaml": b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'a\x00b'}\n",
}
EVERYTHING = """\
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: everything}
spec:
  resourceSelectors:
  - {apiVersion: apps/v1, kind: Deployment}
  - {apiVersion: v1, kind: ConfigMap}
  - {apiVersion: apps/v1, kind: ../../Deployment}
  - {apiVersion: ../../../v1, kind: Deployment}
  placement: {clusterAffinity: {clusterNames: [first, ../../y]}}
"""


def grow(fleet: Fleet, entries: list[tuple[str, str, str]]) -> str:
    """Commit a tree with entries that an index does not allow, as (mode, type and id, name), in addition to those of HEAD."""
    listed = fleet.git("ls-tree", "HEAD").splitlines()
    lines = [*listed, *(f"{mode} {what}\t{name}" for mode, what, name in entries)]
    return fleet.git("mktree", data=("\n".join(lines) + "\n").encode())


def blob(fleet: Fleet, text: str) -> str:
    return fleet.git("hash-object", "-w", "--stdin", data=text.encode())


def commit_tree(fleet: Fleet, tree: str) -> None:
    commit = fleet.git("commit-tree", tree, "-p", "HEAD", "-m", "Traps", environment={"GIT_COMMITTER_DATE": "1772441000 +0000"})
    fleet.git("update-ref", "refs/heads/main", commit)


def raw_tree(fleet: Fleet, entries: list[tuple[str, str, str]]) -> str:
    """Write a tree object of (mode, name, id) with any names; git refuses to write some of them."""
    data = b"".join(f"{mode} {name}".encode() + b"\0" + bytes.fromhex(oid) for mode, name, oid in entries)
    return fleet.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", data=data)


@pytest.fixture
def trapped(fleet: Fleet) -> RunResult:
    files = {"web.yaml": deployment("web"), "policy.yaml": EVERYTHING, "cluster.yaml": cluster("first")}
    fleet.commit({**files, **TRAPS})
    return fleet.reconcile(1)


def test_every_malicious_file_is_a_finding_and_the_valid_workload_is_placed(trapped: RunResult, fleet: Fleet) -> None:
    found = {finding.location.path for finding in trapped.plan.findings if finding.location and finding.severity != "info"}
    assert set(TRAPS) - found == set()
    assert fleet.where("default/deployment-web") == ["first"]


def test_a_finding_about_a_malicious_file_is_an_error_with_a_location_and_a_short_message(trapped: RunResult) -> None:
    findings = [f for f in trapped.plan.findings if f.location and f.location.path.startswith("traps/") and f.severity == "error"]
    assert {f.location.path for f in findings if f.location} == set(TRAPS)
    for finding in findings:
        assert finding.location is not None
        assert finding.location.line >= 1
        assert len(finding.message) < 1000
        assert finding.message.isprintable()


def test_nothing_is_written_outside_of_the_output_paths(trapped: RunResult, fleet: Fleet) -> None:
    allowed = {"README.md", "gitsched.json", "hydrator.metadata", ".gitattributes", "clusters", "status", "placements"}
    for path in fleet.files():
        segments = path.split("/")
        assert segments[0] in allowed
        assert not {"", ".", "..", ".git"} & set(segments)
    fleet.git("fsck", "--strict", "--no-dangling")


def test_a_kind_or_group_that_looks_like_a_path_is_an_ordinary_file_name(fleet: Fleet) -> None:
    fleet.commit({"web.yaml": deployment("web"), "policy.yaml": EVERYTHING, "cluster.yaml": cluster("first")})
    fleet.commit(
        {
            "kind.yaml": "apiVersion: apps/v1\nkind: ../../Deployment\nmetadata: {name: x, namespace: default}\n",
            "group.yaml": "apiVersion: ../../../v1\nkind: Deployment\nmetadata: {name: x, namespace: default}\n",
        }
    )
    fleet.reconcile()
    assert fleet.where("default/deployment-web") == ["first"]
    assert [path for path in fleet.files() if {"", ".", ".."} & set(path.split("/"))] == []
    assert {len(path.split("/")) for path in fleet.files() if path.startswith("clusters/")} == {3, 4}


def test_reading_malicious_files_does_not_change_the_worktree(trapped: RunResult, fleet: Fleet, tmp_path: Path) -> None:
    assert fleet.git("status", "--porcelain") == ""
    assert {path.name for path in tmp_path.iterdir()} <= {"fleet", "cache"}
    assert not (tmp_path.parent / "x").exists()


def test_symbolic_links_are_reported_and_not_followed(fleet: Fleet, tmp_path: Path) -> None:
    (tmp_path / "outside.yaml").write_text(deployment("outside"))
    fleet.commit({"web.yaml": deployment("web"), "policy.yaml": EVERYTHING, "cluster.yaml": cluster("first")})
    (fleet.path / "apps").mkdir()
    for name, target in {
        "out.yaml": tmp_path / "outside.yaml",
        "in.yaml": "../web.yaml",
        "self.yaml": "self.yaml",
        "nowhere": "../none",
        "up": "..",
        "README.md": "../web.yaml",
    }.items():
        (fleet.path / "apps" / name).symlink_to(target)
    fleet.commit()
    run = fleet.reconcile()
    reported = {finding.location.path for finding in run.plan.findings if finding.code == "symlink" and finding.location}
    assert reported == {"apps/out.yaml", "apps/in.yaml", "apps/self.yaml", "apps/nowhere"}
    assert fleet.where("default/deployment-web") == ["first"]
    assert fleet.where("default/deployment-outside") == []


def test_a_submodule_is_reported_and_not_read(fleet: Fleet) -> None:
    fleet.commit({"web.yaml": deployment("web"), "policy.yaml": EVERYTHING, "cluster.yaml": cluster("first")})
    commit_tree(fleet, grow(fleet, [("160000", f"commit {'1' * 40}", "vendor")]))
    run = fleet.reconcile()
    assert [finding.location for finding in run.plan.findings if finding.code == "submodule"] != []
    assert fleet.where("default/deployment-web") == ["first"]


@pytest.mark.parametrize("name", ["..", ".git", ".GIT", "."])
def test_a_path_outside_of_the_tree_is_reported_and_not_read(fleet: Fleet, name: str) -> None:
    fleet.commit({"web.yaml": deployment("web"), "policy.yaml": EVERYTHING, "cluster.yaml": cluster("first")})
    inner = raw_tree(fleet, [("100644", "evil.yaml", blob(fleet, deployment("evil")))])
    known = [line.split() for line in fleet.git("ls-tree", "HEAD").splitlines()]
    entries = sorted([*((mode, path, oid) for mode, _, oid, path in known), ("40000", name, inner)], key=lambda entry: entry[1])
    commit_tree(fleet, raw_tree(fleet, entries))
    run = fleet.reconcile()
    odd = [finding.location.path for finding in run.plan.findings if finding.code == "odd-path" and finding.location]
    assert len(odd) >= 1
    assert all(path.startswith(name) for path in odd)
    assert fleet.where("default/deployment-web") == ["first"]
    assert fleet.where("default/deployment-evil") == []
    assert [path for path in fleet.files() if ".." in path.split("/")] == []


def test_a_broken_file_with_special_characters_in_its_name_is_kept_under_an_escaped_name(fleet: Fleet) -> None:
    path = "apps/Wéb: 1*?.yaml"
    fleet.commit({path: deployment("web"), "policy.yaml": policy("first"), "cluster.yaml": cluster("first")})
    fleet.reconcile()
    fleet.commit({path: deployment("web") + "  x: ["}, hour=1)
    fleet.reconcile(1)
    (kept,) = [path for path in fleet.files() if path.startswith("kept/")]
    assert kept.isascii()
    assert fleet.files()[kept] == execute("rev-parse", f"main~1:{path}", at=fleet.path)
