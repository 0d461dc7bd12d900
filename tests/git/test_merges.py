"""Merges of commits give the trees and the conflicts of `git merge-tree`."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pygit2
import pytest

from gitsched.git import Repository, ancestry
from gitsched.git.process import GitResult
from gitsched.git.tree_merge import NotDisjointError, TreeMerge
from tests.search_depth import count_examples
from tests.simulate.conftest import divide

PATHS = ("a", "b", "dir/a", "dir/b", "dir/deep/a", "dir/deep/b", "other/a", "other/b", "deep", "dir.d")
NOBODY = pygit2.Signature("A", "a@example.com", 0, 0)
Files = Mapping[str, bytes]


def edit(dice: Random, files: Files) -> dict[str, bytes]:
    """Return files of which a few are changed, removed, added or have another name or mode of content."""
    changed = dict(files)
    if dice.random() < 0.2:
        changed["same"] = b"new\n"
    for _ in range(dice.randrange(1, 4)):
        path = dice.choice(PATHS)
        content = changed.pop(path, None)
        match dice.choice(("edit", "edit", "remove", "rename")):
            case "edit":
                changed[path] = b"".join(b"line %d\n" % (n + dice.randrange(50) * (n == 3)) for n in range(9))
            case "rename" if content is not None:
                changed[dice.choice(PATHS)] = content
    return {path: data for path, data in changed.items() if not any(other.startswith(f"{path}/") for other in changed)}


def write(repository: pygit2.Repository, files: Files, parents: list[pygit2.Oid], name: str) -> pygit2.Oid:
    index = pygit2.Index()
    for path, data in files.items():
        index.add(pygit2.IndexEntry(path, repository.create_blob(data), pygit2.enums.FileMode.BLOB))
    return repository.create_commit(f"refs/heads/{name}", NOBODY, NOBODY, name, index.write_tree(repository), parents)


def test_merges_are_those_of_git(tmp_path: Path) -> None:
    read = 0
    for seed in range(count_examples(40)):
        at, dice = tmp_path / str(seed), Random(seed)
        repository = pygit2.init_repository(str(at), bare=True)
        files = {path: b"".join(b"line %d\n" % (n * len(path)) for n in range(9)) for path in dice.sample(PATHS[:8], 6)}
        base = write(repository, files, [], "base")
        ours, theirs = (write(repository, edit(dice, files), [base], name) for name in ("ours", "theirs"))
        opened = Repository(at)
        trees = [opened.commit(str(oid)).tree for oid in (base, ours, theirs)]
        with contextlib.suppress(NotDisjointError):
            TreeMerge(opened._trees.read_tree).merge(trees[0], trees[1], trees[2])
            read += 1
        options = ("-c", "merge.directoryRenames=false", "merge-tree", "--write-tree", "ours", "theirs")
        done = subprocess.run(["git", "-C", str(at), *options], capture_output=True, text=True, check=False)
        found = opened.merge(str(ours), str(theirs))
        assert found is not None
        assert found.tree == (done.stdout.split()[0] if done.returncode == 0 else None), f"seed {seed}"
    assert read > 10


@pytest.mark.parametrize("exit_code", [None, 129])
def test_a_file_like_a_removed_one_is_no_new_name_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exit_code: int | None
) -> None:
    """One side removes a file and adds one of which less than half is the same, and the other side changes the removed one. libgit2, which
    merges where git is too old, takes the new file for the old one."""
    repository = pygit2.init_repository(str(tmp_path), bare=True)
    old = divide("pay", "labelSelector: {}", "{replicaSchedulingType: Duplicated}").encode()
    new = divide("all", "clusterNames: [b]").replace(", name: all}\n", "}\n").encode()
    base = write(repository, {"pay": old}, [], "base")
    ours = write(repository, {"all": new}, [base], "ours")
    theirs = write(repository, {"pay": old.replace(b"spec:\n", b"spec:\n  priority: 3\n")}, [base], "theirs")
    if exit_code is not None:
        monkeypatch.setattr(ancestry, "run_git", lambda *_, **__: GitResult(exit_code, "", "usage"))
    found = Repository(tmp_path).merge(str(ours), str(theirs))
    assert found is not None
    assert (found.conflicts == ("pay",)) == (exit_code is None)


def test_a_branch_that_has_merged_others_is_merged_with_all_common_ancestors(tmp_path: Path) -> None:
    """Both sides have two best common ancestors. From one of them alone, a file seems to be changed by one side that both have changed."""
    repository = pygit2.init_repository(str(tmp_path / "criss-cross"), bare=True)
    files = {"a": b"1\n", "b": b"1\n"}
    base = write(repository, files, [], "base")
    one, other = (
        write(repository, {**files, "a": b"2\n"}, [base], "one"),
        write(repository, {**files, "b": b"2\n"}, [base], "other"),
    )
    both = {"a": b"2\n", "b": b"2\n"}
    ours = write(repository, {**both, "a": b"1\n"}, [one, other], "ours")
    theirs = write(repository, both, [other, one], "theirs")
    opened = Repository(tmp_path / "criss-cross")
    found = opened.merge(str(ours), str(theirs))
    done = subprocess.run(
        ["git", "-C", repository.path, "merge-tree", "--write-tree", "ours", "theirs"], capture_output=True, text=True, check=True
    )
    assert found is not None
    assert found.tree == done.stdout.split()[0]


def test_a_file_and_a_directory_of_the_same_name_are_a_conflict(tmp_path: Path) -> None:
    repository = pygit2.init_repository(str(tmp_path), bare=True)
    base = write(repository, {"a": b"1\n"}, [], "base")
    ours = write(repository, {"a": b"1\n", "b": b"2\n"}, [base], "ours")
    theirs = write(repository, {"a": b"1\n", "b/c": b"3\n"}, [base], "theirs")
    assert Repository(tmp_path).merge(str(ours), str(theirs)) == (None, ("b",))


def test_a_long_branch_is_merged_by_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = pygit2.init_repository(str(tmp_path / "long"), bare=True)
    base = write(repository, {"a": b"1\n", "b": b"1\n"}, [], "base")
    ours = write(repository, {"a": b"2\n", "b": b"1\n"}, [base], "ours")
    theirs = write(repository, {"a": b"1\n", "b": b"2\n"}, [base], "theirs")
    usual = Repository(tmp_path / "long").merge(str(ours), str(theirs))
    monkeypatch.setattr(ancestry, "MAX_COMPARED", 1)
    monkeypatch.delattr(TreeMerge, "merge")
    assert Repository(tmp_path / "long").merge(str(ours), str(theirs)) == usual


def test_a_large_file_that_both_sides_changed_is_a_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first lines differ in one side, and the last ones in the other."""
    repository = pygit2.init_repository(str(tmp_path), bare=True)
    lines = [b"line %d\n" % number for number in range(99)]
    text, small = b"".join(lines), b"a\n"
    base = write(repository, {"large": text, "other": text, "small": small}, [], "base")
    ours = write(repository, {"large": b"".join([b"a\n", *lines]), "other": text + b"b\n", "small": small}, [base], "ours")
    theirs = write(repository, {"large": text + b"b\n", "other": text, "small": b"b\n"}, [base], "theirs")
    opened = Repository(tmp_path)
    merged = opened.merge(str(ours), str(theirs))
    assert merged is not None
    (blob,) = [entry.blob for entry in opened.entries(merged.tree or "") if entry.path == "large"]
    assert opened.blob(blob) == b"".join([b"a\n", *lines, b"b\n"])
    monkeypatch.setattr(ancestry, "MAX_MERGED_SIZE", 100)
    assert opened.merge(str(ours), str(theirs)) == (None, ("large",))
    monkeypatch.setattr(ancestry, "MAX_MERGED_SIZE", len(text) + 10)
    assert opened.merge(str(ours), str(theirs)) == merged
