"""Read, update, fetch and push refs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gitsched.git import Repository, refs
from gitsched.git.notes import Signature, read_note, write_note
from gitsched.git.refs import check_ref, update_ref
from gitsched.model.errors import Conflict, Permanent, Temporary
from gitsched.model.planned_files import NewBlob
from tests.local import PATIENCE

AT = datetime(2024, 5, 1, tzinfo=UTC)
ADA = {"name": "Ada", "email": "ada@example.org", "time": AT}
OUT = "refs/heads/placements"


def make(repository: Repository, text: str, *parents: str) -> str:
    tree = repository.write_tree({"f": NewBlob(text.encode())}, base=None, read=repository)
    return repository.commit_tree(tree, parents, text, **ADA)


def test_a_ref_is_updated_by_compare_and_swap(bare: Path, git):
    repository = Repository(bare)
    a = make(repository, "a")
    b = make(repository, "b", a)
    update_ref(repository, OUT, a, None)
    with pytest.raises(Conflict, match="no longer absent"):
        update_ref(repository, OUT, b, None)
    with pytest.raises(Conflict, match=f"no longer at {b}"):
        update_ref(repository, OUT, a, b)
    git("pack-refs", "--all", at=bare)
    with pytest.raises(Conflict):
        update_ref(repository, OUT, a, b)
    update_ref(repository, OUT, b, a)
    assert repository.resolve("placements") == repository.resolve_ref(OUT) == b
    git("update-ref", "-d", OUT, at=bare)
    with pytest.raises(Conflict):
        update_ref(repository, OUT, a, b)


@pytest.mark.parametrize("where", ["main worktree", "linked worktree"])
def test_a_worktree_of_a_branch_that_moves_keeps_its_files_and_a_warning_names_it(
    work: Path, git, tmp_path: Path, caplog: pytest.LogCaptureFixture, where: str
):
    repository = Repository(work)
    head = repository.resolve("main")
    directory = tmp_path / "linked tree" if where == "linked worktree" else work
    command = (
        ("worktree", "add", "-q", "-b", "placements", str(directory))
        if directory != work
        else ("checkout", "-q", "-b", "placements")
    )
    git(*command, at=work)
    files = {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}
    new = make(repository, "new", head)
    update_ref(Repository(directory), OUT, new, head)
    assert repository.resolve_ref(OUT) == new
    assert {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()} == files
    (warning,) = caplog.messages
    cure = re.search(r"`git (-C .* reset --hard)`", warning)
    assert cure
    assert head[:12] in warning
    git(*shlex.split(cure[1]), at=tmp_path)
    assert git("status", "--porcelain", at=directory) == ""


def test_a_detached_worktree_of_a_branch_that_moves_needs_no_warning(
    work: Path, git, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    repository = Repository(work)
    head = repository.resolve("main")
    git("branch", "placements", at=work)
    git("worktree", "add", "-q", "--detach", str(tmp_path / "linked"), "placements", at=work)
    assert Repository(tmp_path / "linked").common_dir == str(work / ".git")
    update_ref(repository, OUT, make(repository, "new", head), head)
    assert caplog.messages == []


def test_a_linked_worktree_shares_objects_with_the_main_one(work: Path, git, tmp_path: Path):
    git("worktree", "add", "-q", "--detach", str(tmp_path / "linked"), at=work)
    repository = Repository(tmp_path / "linked")
    tree = repository.write_tree({f"{i}": NewBlob(b"%d" % i) for i in range(200)}, base=None, read=repository)
    update_ref(repository, OUT, repository.commit_tree(tree, [], "m", **ADA), None)
    assert len(Repository(work).entries(Repository(work).commit(Repository(work).resolve(OUT)).tree)) == 200


def test_the_head_of_a_bare_repository_is_no_worktree(bare: Path):
    repository = Repository(bare)
    update_ref(repository, "refs/heads/main", make(repository, "a"), None)


def test_a_symbolic_ref_is_refused(bare: Path, git):
    repository = Repository(bare)
    git("symbolic-ref", OUT, "refs/heads/main", at=bare)
    with pytest.raises(Permanent, match="symbolic ref to refs/heads/main"):
        update_ref(repository, OUT, make(repository, "a"), None)
    assert repository.resolve("main") is None


def test_a_conflicting_branch_name_is_reported(bare: Path):
    repository = Repository(bare)
    a = make(repository, "a")
    update_ref(repository, OUT, a, None)
    for existing, ref in ((OUT, f"{OUT}/x"), (OUT, f"{OUT}/x/y"), ("refs/heads/b/c", "refs/heads/b")):
        if repository.resolve_ref(existing) is None:
            update_ref(repository, existing, a, None)
        with pytest.raises(Permanent, match=f"'{existing}' exists in .*, so that '{ref}' cannot be created"):
            update_ref(repository, ref, a, None)


def test_a_missing_commit_is_rejected(bare: Path):
    """The error is temporary: `git gc` may have deleted the commit, and the next run writes it again."""
    with pytest.raises(Temporary, match="1111"):
        update_ref(Repository(bare), OUT, "1" * 40, None)


@pytest.mark.parametrize("script", ["kill -9 $$", "echo 'fatal: unable to write: No space left on device' >&2; exit 128"])
def test_an_update_that_the_system_prevents_is_temporary_and_has_a_reason(bare: Path, tmp_path: Path, monkeypatch, script: str):
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\ncase "$*" in *update-ref*) {script};; esac\nexec {shutil.which("git")} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    with pytest.raises(Temporary, match=r"signal 9 ended git update-ref|No space left on device"):
        update_ref(Repository(bare), OUT, "1" * 40, None)


def test_a_stale_lock_file_is_reported(bare: Path, monkeypatch):
    repository = Repository(bare)
    monkeypatch.setattr(refs, "_REF_LOCK_TIMEOUT", 0.1)
    lock = bare / f"{OUT}.lock"
    lock.touch()
    with pytest.raises(Temporary, match=str(lock)):
        update_ref(repository, OUT, make(repository, "a"), None)
    lock.unlink()
    update_ref(repository, OUT, make(repository, "a"), None)


def test_a_lock_on_the_head_is_reported(work: Path, monkeypatch):
    """git locks HEAD, too, when it moves the branch that is checked out."""
    repository = Repository(work)
    monkeypatch.setattr(refs, "_REF_LOCK_TIMEOUT", 0.1)
    head = repository.resolve("HEAD")
    (work / ".git/HEAD.lock").touch()
    with pytest.raises(Temporary, match=f"is locked by {work}/.git/HEAD.lock"):
        update_ref(repository, "refs/heads/main", make(repository, "a", head), head)


def test_a_damaged_ref_is_reported_with_its_file(bare: Path):
    repository = Repository(bare)
    (bare / OUT).write_text("no object id\n")
    with pytest.raises(Permanent, match=f"the file {bare / OUT} is damaged"):
        update_ref(repository, OUT, make(repository, "a"), None)


NO_REFS = [
    "",
    "main",
    "-x",
    "--all",
    "refs/",
    "refs//a",
    "refs/heads/../../config",
    "refs/heads/a..b",
    "refs/heads/a b",
    "refs/heads/a\n",
]
NO_BRANCHES = [".a", "a.lock", "a.lock/b", "a/", "a.", "a@{1}", "a~", "a^", "*", "a?", "a:b", "a\\b", "[a", "a\x7f", "a" * 600]


@pytest.mark.parametrize("ref", [*NO_REFS, *(f"refs/heads/{name}" for name in NO_BRANCHES)])
def test_invalid_ref_names_are_rejected_like_git_does(ref: str, bare: Path):
    checked = subprocess.run(["git", "check-ref-format", "--", ref], capture_output=True, check=False)
    assert checked.returncode != 0 or len(ref) > 500
    with pytest.raises(Permanent, match="not a name"):
        check_ref(ref)
    with pytest.raises(Permanent):
        update_ref(Repository(bare), ref, "1" * 40, None)


@pytest.mark.parametrize(
    "ref", ["refs/heads/main", "refs/heads/feature/x-1", "refs/heads/ü", "refs/notes/hydrator.metadata", "refs/heads/@"]
)
def test_valid_ref_names_are_accepted(ref: str):
    assert subprocess.run(["git", "check-ref-format", ref], check=False).returncode == 0
    assert check_ref(ref) == ref


RACE = """
import sys
from datetime import UTC, datetime
from gitsched.git import Repository
from gitsched.git.refs import update_ref
from gitsched.model.errors import Conflict, Temporary
from gitsched.model.planned_files import NewBlob
repository = Repository(sys.argv[1])
won = 0
while won < 15:
    head = repository.resolve("refs/heads/placements")
    base = repository.commit(head).tree if head else None
    tree = repository.write_tree({f"{sys.argv[2]}-{won}": NewBlob(b"")}, base=base, read=repository)
    new = repository.commit_tree(tree, [head] if head else [], "m", name="A", email="a", time=datetime(2024, 5, 1, tzinfo=UTC))
    try:
        update_ref(repository, "refs/heads/placements", new, head)
        won += 1
    except Conflict:
        pass
"""


def test_racing_processes_lose_nothing(bare: Path, git):
    racers = [subprocess.Popen([sys.executable, "-c", RACE, str(bare), name]) for name in ("a", "b")]
    assert [racer.wait(PATIENCE) for racer in racers] == [0, 0]
    repository = Repository(bare)
    paths = {entry.path for entry in repository.entries(repository.commit(repository.resolve(OUT)).tree)}
    assert paths == {f"{name}-{i}" for name in "ab" for i in range(15)}
    assert git("rev-list", "--count", OUT, at=bare) == "30"


def test_a_note_is_readable_by_git(work: Path, git):
    repository = Repository(work)
    commit = repository.resolve("HEAD")
    assert read_note(repository, commit) is None
    write_note(repository, commit, '{"drySha": "1"}', Signature(**ADA))
    write_note(repository, commit, '{"drySha": "2"}', Signature(**ADA))
    ref = "refs/notes/hydrator.metadata"
    assert git("notes", f"--ref={ref}", "show", commit, at=work) == '{"drySha": "2"}'
    assert read_note(repository, commit) == '{"drySha": "2"}\n'
    head = repository.resolve_ref(ref)
    write_note(repository, commit, '{"drySha": "2"}', Signature(**ADA))
    assert repository.resolve_ref(ref) == head, "the same note is no new commit"


def test_a_note_is_added_to_a_fanned_out_notes_tree(work: Path, git):
    repository = Repository(work)
    commit = repository.resolve("HEAD")
    blob = git("hash-object", "-w", "--stdin", at=work, data="other")
    files = {f"{i:02x}/{'0' * 38}": blob for i in range(256)}
    index = "".join(f"100644 {oid}\t{path}\n" for path, oid in files.items())
    env = dict(os.environ, GIT_INDEX_FILE=str(work / "index2"))
    subprocess.run(["git", "update-index", "--index-info"], cwd=work, input=index.encode(), env=env, check=True)
    tree = subprocess.run(["git", "write-tree"], cwd=work, env=env, capture_output=True, check=True).stdout.decode().strip()
    git("update-ref", "refs/notes/x", git("commit-tree", "-m", "n", tree, at=work), at=work)
    write_note(repository, commit, "mine", Signature(**ADA), "refs/notes/x")
    write_note(repository, commit, "mine again", Signature(**ADA), "refs/notes/x")
    assert git("notes", "--ref=x", "show", commit, at=work) == "mine again"
    assert read_note(repository, commit, "refs/notes/x") == "mine again\n"


@pytest.mark.parametrize("lost", ["refs/notes/hydrator.metadata", "refs/notes/hydrator.metadata^{tree}"])
def test_notes_that_have_lost_objects_begin_again(work: Path, git, caplog, lost: str):
    repository, commit = Repository(work), git("rev-parse", "HEAD", at=work)
    write_note(repository, commit, "first", Signature(**ADA))
    oid = git("rev-parse", lost, at=work)
    (work / ".git" / "objects" / oid[:2] / oid[2:]).unlink()
    assert read_note(Repository(work), commit) is None
    write_note(Repository(work), commit, "second", Signature(**ADA))
    assert read_note(Repository(work), commit) == "second\n"
    assert "cannot be read and is written again from the start" in caplog.text
