"""People edit the output branch, other versions of gitsched wrote it, and names in the source differ only by case or Unicode form."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import pytest

from gitsched.model.finding import Finding
from gitsched.reconcile import RunResult

from .conftest import UNGUARDED, Fleet, deployment, execute
from .test_damaged_state import replace

WEB = "clusters/first/default/deployment-web.yaml"
RULES = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: Admin}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: admin}
---
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: roles}
spec:
  resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole}]
  placement: {clusterAffinity: {clusterNames: [first]}}
"""


def list_edits(run: RunResult) -> list[Finding]:
    return [finding for finding in run.plan.findings if finding.code == "output-edited"]


@pytest.mark.parametrize("has_new_commit", [False, True], ids=["same source", "new commit"])
def test_an_edit_of_the_output_branch_is_undone_by_a_commit_on_top(pair: Fleet, has_new_commit: bool) -> None:
    pair.reconcile()
    expected = pair.files()
    replace(pair, WEB, "100644", "kind: Changed\n")
    replace(pair, "clusters/first/default/added.yaml", "100644", "kind: Added\n")
    edited = pair.head
    if has_new_commit:
        pair.commit({"notes.txt": "more"}, hour=1)
    found = list_edits(pair.preview(1))
    run = pair.reconcile(1)
    assert run.after is not None
    assert list_edits(run) == found
    assert len(found) == 2
    for finding, path in zip(found, ("clusters/first/default/added.yaml", WEB), strict=True):
        assert finding.severity == "warning"
        assert path in finding.message
        assert "@example.com>" in finding.message
    assert edited is not None
    assert edited[:10] in found[0].message
    assert pair.git("rev-parse", "placements^") == edited, "the edits stay in the history"
    metadata = {"README.md", "gitsched.json", "hydrator.metadata"}
    assert dict(expected.items() ^ pair.files().items()).keys() <= metadata
    assert pair.reconcile(1).after is None


@pytest.mark.parametrize(
    ("reader", "edits"),
    [
        *(("URL", 2), ("shallow checkout", 1), ("another repository", 2), ("without a remote", 1)),
        *(
            pytest.param(*more, marks=pytest.mark.long)
            for more in (("URL", 1), ("shallow checkout", 2), ("another repository", 1), ("without a remote", 2))
        ),
    ],
)
def test_edits_are_reported_where_the_output_was_fetched_without_its_history(
    pair: Fleet, tmp_path: Path, reader: str, edits: int
) -> None:
    bare = tmp_path / "remote.git"
    execute("init", "-q", "--bare", "-b", "main", str(bare), at=tmp_path)
    pair.git("remote", "add", "origin", bare.as_uri())
    pair.git("push", "-q", "origin", "main")
    pair.reconcile(push="origin")
    expected = pair.files()[WEB]
    for number in range(edits):
        replace(pair, WEB, "100644", f"kind: Changed{number}\n")
    pair.git("push", "-q", "origin", "placements")

    execute("clone", "-q", "--depth=1", "--no-single-branch", bare.as_uri(), str(tmp_path / "clone"), at=tmp_path)
    clone = Fleet(tmp_path / "clone", tmp_path / "clone-cache")
    if reader == "without a remote":
        clone.git("branch", "placements", "origin/placements")
        clone.git("remote", "remove", "origin")
    more: dict[str, Any] = {
        "URL": {"location": bare.as_uri()},
        "shallow checkout": {"push": "origin"},
        "another repository": {"output": bare.as_uri()},
    }.get(reader, {})
    found = list_edits(clone.reconcile(1, **more))
    if reader == "without a remote":
        assert [" changed files that cannot be named without its parents" in finding.message for finding in found] == [True]
        assert clone.files()[WEB] == expected
        return
    assert [f" changed {WEB} on the output branch" in finding.message for finding in found] == [True]
    pair.git("fetch", "-q", "origin", "+placements:placements")
    assert pair.files()[WEB] == expected


@pytest.mark.parametrize("has_new_commit", [False, True], ids=["same source", "new commit"])
def test_an_amended_commit_of_a_run_is_an_edit(pair: Fleet, has_new_commit: bool) -> None:
    pair.reconcile()
    expected = pair.files()
    pair.git("worktree", "add", "-q", "--detach", "../edited", "placements")
    (pair.path.parent / "edited" / WEB).write_text("kind: Changed\n")
    pair.git("-C", "../edited", "commit", "-q", "-a", "--amend", "--no-edit")
    pair.git("update-ref", "refs/heads/placements", pair.git("-C", "../edited", "rev-parse", "HEAD"))
    if has_new_commit:
        pair.commit({"apps/other.yaml": deployment("other")}, hour=1)
    (finding,) = list_edits(pair.reconcile(1))
    assert f" changed {WEB} on the output branch" in finding.message
    assert pair.git("log", "-1", "--format=%cn <%ce>", "placements^") in finding.message
    assert pair.files()[WEB] == expected[WEB]


def test_a_commit_of_a_run_that_a_forge_has_rebased_is_no_edit(pair: Fleet) -> None:
    pair.reconcile()
    pair.git("worktree", "add", "-q", "--detach", "../edited", "placements")
    pair.git("-C", "../edited", "commit", "-q", "--amend", "--no-edit")
    pair.git("update-ref", "refs/heads/placements", pair.git("-C", "../edited", "rev-parse", "HEAD"))
    pair.commit({"apps/other.yaml": deployment("other")}, hour=1)
    run = pair.reconcile(1)
    assert run.after is not None
    assert list_edits(run) == []


def test_a_deleted_file_of_the_output_branch_is_written_again(pair: Fleet) -> None:
    pair.reconcile()
    expected = pair.files()
    pair.git("worktree", "add", "-q", "--detach", "../edited", "placements")
    for command in (["rm", "-q", "-r", "clusters"], ["commit", "-q", "-m", "Delete"]):
        pair.git("-C", "../edited", *command)
    pair.git("update-ref", "refs/heads/placements", pair.git("-C", "../edited", "rev-parse", "HEAD"))
    assert pair.reconcile(1).after is not None
    assert pair.files()[WEB] == expected[WEB]


def test_source_files_whose_names_differ_by_case_or_unicode_form_are_all_read(pair: Fleet) -> None:
    """They are read from Git, not from a file system that takes them for one file."""
    names = ["Café", unicodedata.normalize("NFD", "Café"), "café", "CAFÉ"]
    pair.commit({f"apps/{name}.yaml": deployment(f"app-{number}") for number, name in enumerate(names)} | {"g.yaml": UNGUARDED})
    pair.reconcile()
    assert {f"clusters/first/default/deployment-app-{number}.yaml" for number in range(len(names))} <= pair.files().keys()
    found = [finding for finding in pair.preview().plan.findings if finding.code == "file-name-collision"]
    assert [(finding.severity, finding.location.path) for finding in found if finding.location] == [("warning", "apps/CAFÉ.yaml")]
    assert "apps/café.yaml" in found[0].message


def test_no_two_paths_of_the_output_differ_only_by_case_or_unicode_form(pair: Fleet) -> None:
    pair.commit({"roles.yaml": RULES})
    pair.reconcile()
    paths = [path for path in pair.files() if "clusterrole" in path and path.startswith("clusters/")]
    assert len(paths) == 2
    assert len({unicodedata.normalize("NFC", path).casefold() for path in paths}) == 2
