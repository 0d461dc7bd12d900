"""Open a source repository, local or by URL."""

from __future__ import annotations

import os
import random
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gitsched.git import Repository, open_source
from gitsched.git.private_clone import PrivateClone
from gitsched.model.errors import Permanent, Temporary


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def origin(work: Path, bare: Path, git) -> Path:
    """The bare repository with work's branch `main` and one more, `dev`."""
    git("push", "-q", str(bare), "main", "main:dev", at=work)
    return bare


def move(git, work: Path, bare: Path, text: str, branch: str = "main") -> str:
    (work / "readme").write_text(text)
    git("commit", "-qam", text, at=work)
    git("push", "-q", "-f", str(bare), f"HEAD:{branch}", at=work)
    return git("rev-parse", "HEAD", at=work)


def test_a_worktree(work: Path, git, cache: Path):
    git("branch", "dev", at=work)
    dev = git("rev-parse", "dev", at=work)
    git("commit", "-q", "--allow-empty", "-m", "more", at=work)
    source = open_source(str(work / "apps"), cache=cache)
    source.fetch(None)
    assert source.resolve_branch(None) == git("rev-parse", "main", at=work)
    assert source.resolve_branch("dev") == source.resolve_branch("refs/heads/dev") == dev
    assert (source.branch_name(None), source.branch_name("refs/heads/dev")) == ("main", "dev")
    assert source.find_head("refs/heads/dev") == (dev, "dev")
    assert source.has(dev)
    assert source.fetch_commit(dev)
    assert not source.fetch_commit("1" * 40)
    assert source.url is None
    with pytest.raises(Permanent, match="no commit on absent"):
        source.resolve_branch("absent")
    for name in ("refs/tags/x", "", "HEAD", "-x", "a..b", "refs/remotes/origin/x"):
        with pytest.raises(Permanent):
            source.resolve_branch(name)
    assert not cache.exists()


def test_a_repository_without_a_commit(bare: Path, cache: Path):
    with pytest.raises(Permanent, match="no commit on HEAD"):
        open_source(str(bare), cache=cache).resolve_branch(None)


def test_a_ci_checkout_is_detached_and_shallow(origin: Path, work: Path, git, tmp_path: Path, cache: Path):
    first = git("rev-parse", "HEAD", at=work)
    tip = move(git, work, origin, "two")
    git("clone", "-q", "--depth=1", "--no-single-branch", f"file://{origin}", "ci")
    git("checkout", "-q", "--detach", at=tmp_path / "ci")
    git("branch", "-D", "main", at=tmp_path / "ci")
    source = open_source(str(tmp_path / "ci"), cache=cache)
    assert source.find_head(None) == (tip, None)
    assert source.branch_name(None) is None
    assert source.resolve_branch("dev") == first, "known as origin/dev"
    deep = move(git, work, origin, "three", "other")
    assert not source.has(deep)
    assert source.fetch_commit(deep)
    assert not source.fetch_commit("1" * 40)
    assert not source.fetch_commit("not an id")


@pytest.mark.parametrize("kind", ["file", "http"])
def test_a_url_is_read_through_a_private_clone(origin: Path, work: Path, git, cache: Path, kind: str, request):
    url = f"file://{origin}" if kind == "file" else request.getfixturevalue("server").url("open")
    first = git("rev-parse", "HEAD", at=work)
    source = open_source(url, cache=cache)
    source.fetch(None)
    assert source.resolve_branch(None) == source.resolve_branch("dev") == first
    assert source.branch_name(None) == "main"
    second = move(git, work, origin, "two")
    assert source.resolve_branch(None) == first, "until it is fetched"
    source.fetch(None)
    assert source.resolve_branch(None) == second
    tree = source.repository.commit(second).tree
    assert source.repository.blob(source.repository.find_entry(tree, "readme")[0]) == b"two"
    third = move(git, work, origin, "three")
    fourth = move(git, work, origin, "four")
    fresh = open_source(url, cache=cache)
    fresh.fetch("main")
    assert fresh.resolve_branch("main") == fourth
    assert not fresh.has(third)
    assert fresh.fetch_commit(third)
    assert not fresh.fetch_commit("1" * 40)
    with pytest.raises(Permanent, match="no branch absent"):
        fresh.fetch("absent")
    assert [path.stat().st_mode & 0o777 for path in (cache, *cache.glob("*.git"))] == [0o700, 0o700]


def test_a_rewritten_branch_and_a_new_default_are_followed(origin: Path, work: Path, git, cache: Path):
    source = open_source(f"file://{origin}", cache=cache)
    source.fetch(None)
    git("commit", "-q", "--amend", "-m", "other", at=work)
    rewritten = move(git, work, origin, "x")
    source.fetch(None)
    assert source.resolve_branch(None) == rewritten
    git("symbolic-ref", "HEAD", "refs/heads/dev", at=origin)
    source.fetch(None)
    assert source.branch_name(None) == "dev"


def test_a_missing_or_empty_remote_is_reported(bare: Path, cache: Path, tmp_path: Path):
    with pytest.raises(Permanent, match="has no default branch, or no commit"):
        open_source(f"file://{bare}", cache=cache).resolve_branch(None)
    with pytest.raises(Permanent, match="does not appear"):
        open_source(f"file://{tmp_path}/absent", cache=cache).resolve_branch(None)


def test_hooks_and_templates_of_the_machine_do_not_affect_a_private_clone(origin: Path, cache: Path, tmp_path: Path, monkeypatch):
    template, canary = tmp_path / "template", tmp_path / "canary"
    (template / "hooks").mkdir(parents=True)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for path in (template / "hooks/reference-transaction", hooks / "reference-transaction"):
        path.write_text(f"#!/bin/sh\ntouch {canary}\n")
        path.chmod(0o755)
    config = tmp_path / "gitconfig"
    config.write_text(f"[init]\n\ttemplateDir = {template}\n[core]\n\thooksPath = {hooks}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    source = open_source(f"file://{origin}", cache=cache)
    source.fetch(None)
    assert source.resolve_branch(None)
    assert not canary.exists()


def damage_objects(copy: Path) -> None:
    for path in copy.glob("objects/*/*"):
        if path.suffix != ".idx":
            path.chmod(0o644)
            path.write_bytes(b"\0" * path.stat().st_size)


def lose_objects(copy: Path) -> None:
    for path in copy.glob("objects/*/*"):
        path.unlink()


def damage_config(copy: Path) -> None:
    (copy / "config").write_text("[core\n")


def empty(copy: Path) -> None:
    for path in sorted(copy.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


def damage_single_objects(copy: Path) -> None:
    """As those that a run writes before it pushes them."""
    for pack in list(copy.glob("objects/pack/*.pack")):
        moved = pack.rename(copy / pack.name)
        with moved.open("rb") as file:
            subprocess.run(["git", f"--git-dir={copy}", "unpack-objects", "-q"], stdin=file, check=True)
        moved.unlink()
    damage_objects(copy)


@pytest.mark.parametrize("damage", [damage_objects, damage_single_objects, lose_objects, damage_config, empty])
@pytest.mark.parametrize("moved", [False, True])
def test_a_damaged_private_clone_is_recreated(origin: Path, work: Path, git, cache: Path, damage, moved: bool):
    url = f"file://{origin}"
    open_source(url, cache=cache).fetch(None)
    (copy,) = cache.glob("*.git")
    damage(copy)
    tip = move(git, work, origin, "two") if moved else git("rev-parse", "HEAD", at=work)
    source = open_source(url, cache=cache)
    source.fetch(None)
    assert source.resolve_branch(None) == tip
    repository = source.repository
    assert {repository.blob(entry.blob) for entry in repository.entries(repository.commit(tip).tree)}


def test_damage_found_while_reading_is_temporary_until_the_next_fetch(origin: Path, cache: Path):
    source = open_source(f"file://{origin}", cache=cache)
    source.fetch(None)
    repository = source.repository
    entries = repository.entries(repository.commit(source.resolve_branch(None)).tree)
    (copy,) = cache.glob("*.git")
    lose_objects(copy)
    reopened = open_source(f"file://{origin}", cache=cache)
    with pytest.raises(Temporary, match="fetched again"):
        reopened.repository.blob(entries[0].blob)
    reopened.fetch(None)
    assert reopened.repository.blob(entries[0].blob)
    assert reopened.has(reopened.resolve_branch(None))


def test_a_private_clone_of_another_user_is_rejected(origin: Path, cache: Path, monkeypatch):
    source = open_source(f"file://{origin}", cache=cache)
    source.fetch(None)
    monkeypatch.setattr("os.geteuid", lambda: 12345)
    with pytest.raises(Permanent, match="belongs to another user"):
        open_source(f"file://{origin}", cache=cache).fetch(None)


def test_processes_lock_a_private_clone(origin: Path, cache: Path, monkeypatch):
    url = f"file://{origin}"
    script = (
        f"from pathlib import Path\nfrom gitsched.git import open_source\ns = open_source({url!r}, cache=Path({str(cache)!r}))\n"
    )
    script += "s.fetch(None); s.fetch('dev'); print(s.resolve_branch(None))"
    processes = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) for _ in range(4)]
    assert len({process.communicate()[0] for process in processes}) == 1
    assert [process.returncode for process in processes] == [0] * 4
    clone = PrivateClone(url, cache)
    monkeypatch.setattr("gitsched.git.clone_lock._LOCK_TIMEOUT", 0.1)
    with clone._control.hold(), pytest.raises(Temporary, match="holds the lock"):
        PrivateClone(url, cache).refresh(lambda repository: None)


@pytest.mark.parametrize(
    "path",
    ["shallow.lock", "HEAD.lock", "config.lock", "packed-refs.lock", "refs/heads/main.lock", "gc.pid", "objects/info/x.lock"],
)
def test_lock_files_of_a_killed_process_are_removed(origin: Path, work: Path, git, cache: Path, path: str):
    source = open_source(f"file://{origin}", cache=cache)
    source.fetch(None)
    lock = Path(source.repository.path) / path
    lock.touch()
    commit = move(git, work, origin, "next")
    source.fetch(None)
    assert source.resolve_branch(None) == commit
    assert not lock.exists()


def test_only_old_temporary_objects_are_removed(origin: Path, cache: Path):
    source = open_source(f"file://{origin}", cache=cache)
    source.fetch(None)
    objects = Path(source.repository.path) / "objects"
    (objects / "ab").mkdir(exist_ok=True)
    files = [objects / "pack" / "tmp_pack_1", objects / "ab" / "tmp_obj_1", objects / "tmp_objdir-incoming-1"]
    for file in files:
        file.touch()
    source.fetch(None)
    assert all(file.exists() for file in files), "another process may be writing them"
    for file in files:
        os.utime(file, (0, 0))
    source.fetch(None)
    assert not any(file.exists() for file in files)


@pytest.mark.parametrize("name", ["config", "HEAD", "refs/heads/main", "shallow"])
@pytest.mark.parametrize("seed", range(2))
def test_a_flipped_bit_in_a_small_file_of_a_private_clone_heals(origin: Path, work: Path, git, cache: Path, name: str, seed: int):
    url = f"file://{origin}"
    source = open_source(url, cache=cache)
    source.fetch(None)
    dice, file = random.Random(seed), Path(source.repository.path) / name
    data = bytearray(file.read_bytes())
    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    file.write_bytes(data)
    commit = move(git, work, origin, "next") if seed % 2 else git("rev-parse", "main", at=work)
    for opened in (source, open_source(url, cache=cache)):
        opened.fetch(None)
        assert opened.resolve_branch(None) == commit


def test_a_relative_cache_directory_is_below_the_working_directory(origin: Path, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = open_source(f"file://{origin}", cache=Path("here"))
    source.fetch(None)
    assert Path(source.repository.path).parent == tmp_path / "here"


@pytest.mark.needs("pgrep")
def test_a_lock_lasts_until_the_git_processes_of_its_holder_have_ended(origin: Path, cache: Path, tmp_path: Path, monkeypatch):
    """Otherwise the next process would remove the lock files of a fetch that continues after its parent was killed."""
    url = f"file://{origin}"
    clone = PrivateClone(url, cache)
    clone.refresh(lambda repository: None)
    script = (
        "import os, signal\nfrom pathlib import Path\nfrom gitsched.git.private_clone import PrivateClone\n"
        "from gitsched.git.process import run_git\n"
        f"clone = PrivateClone({url!r}, Path({str(cache)!r}))\n"
        f"clone.refresh(lambda r: run_git(['-c', 'alias.hang=!touch started; sleep 60', 'hang'], repository=r, cwd={str(tmp_path)!r}))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script])
    while not (tmp_path / "started").exists():
        assert process.poll() is None
        time.sleep(0.02)
    orphans = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True).stdout.split()
    process.kill()
    process.wait()
    monkeypatch.setattr("gitsched.git.clone_lock._LOCK_TIMEOUT", 0.1)
    with pytest.raises(Temporary, match="holds the lock"):
        clone.refresh(lambda repository: None)
    for orphan in orphans:
        os.killpg(int(orphan), signal.SIGKILL)
    monkeypatch.setattr("gitsched.git.clone_lock._LOCK_TIMEOUT", 30)
    clone.refresh(lambda repository: None)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="this system does not list the open files of a process")
def test_packs_that_git_has_combined_are_closed(origin: Path, work: Path, git, cache: Path):
    source = open_source(f"file://{origin}", cache=cache)
    source.fetch(None)
    opened = []
    for number in range(6):
        move(git, work, origin, f"content {number}")
        git("--git-dir", source.repository.path, "repack", "-adq", at=work)
        source.fetch(None)
        source.repository.commit(source.resolve_branch(None))
        links = [str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
        opened.append(sum(link.startswith(source.repository.path) for link in links))
    assert opened[-1] <= opened[0] + 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to another user")
@pytest.mark.parametrize("place", [".", "sub", "../linked"])
def test_the_advice_for_a_repository_of_another_user_gives_access(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    home, work = tmp_path / "own", tmp_path / "a place"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    (work / "sub").mkdir(parents=True)
    commit = ["-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "--allow-empty", "-m", "x"]
    for command in (["init", "-q", "-b", "main"], commit, ["worktree", "add", "-q", "../linked"]):
        subprocess.run(["git", *command], cwd=work, check=True)
    for path in (work, *work.rglob("*"), tmp_path / "linked", *(tmp_path / "linked").rglob("*")):
        os.chown(path, 1000, 1000, follow_symlinks=False)
    monkeypatch.chdir(work / place)
    with pytest.raises(Permanent, match="belongs to another user") as caught:
        Repository(Path())
    subprocess.run(shlex.split(str(caught.value).split("`")[1]), check=True)
    assert Repository(Path())
