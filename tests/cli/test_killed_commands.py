"""A killed command leaves a directory at most until the next command that needs one."""

from __future__ import annotations

import os
import signal
import stat
import tempfile
from pathlib import Path

import pytest

from gitsched import temporary_directory
from gitsched.model.errors import Permanent
from gitsched.temporary_directory import TemporaryDirectory, remove_abandoned
from tests import fork_server

KILLS_AT_WRITE_TREE = """#!/bin/sh
case " $* " in *" write-tree "*) test ! -e {calm} && kill -9 $PPID;; esac
PATH=${{PATH#*:}} exec git "$@"
"""
IS_KILLED = """
import os, signal, sys
from gitsched.temporary_directory import TemporaryDirectory

directory = TemporaryDirectory("killed", sys.argv[1])
(directory.path / "a").mkdir()
(directory.path / "a/secret").touch(0o400)
os.kill(os.getpid(), signal.SIGKILL)
"""
HAS_A_COPY = """
import os, sys
from gitsched.temporary_directory import TemporaryDirectory

with TemporaryDirectory("used", sys.argv[1]) as used:
    child = os.fork()
    if child == 0:
        TemporaryDirectory("copy", sys.argv[1]).close()
        sys.exit()
    os.waitpid(child, 0)
    sys.exit(not used.is_dir())
"""


@pytest.fixture
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(temporary_directory, "_searched", set())
    made = tmp_path / "parent"
    made.mkdir()
    return str(made)


def leave_behind(parent: str) -> Path:
    """Let a process create a directory with files, and kill it."""
    before = set(Path(parent).iterdir())
    assert fork_server.run([parent], Path(parent), os.environ, program=IS_KILLED).returncode == -signal.SIGKILL
    (left,) = set(Path(parent).iterdir()) - before
    return left


@pytest.mark.parametrize("words", [("validate", "."), ("plan", "--worktree")])
def test_the_next_command_removes_what_a_killed_one_left_behind(
    fleet: Path, environment: dict[str, str], tmp_path: Path, words: tuple[str, ...]
) -> None:
    programs, directory, calm = tmp_path / "programs", tmp_path / "temporary", tmp_path / "calm"
    programs.mkdir()
    directory.mkdir()
    (programs / "git").write_text(KILLS_AT_WRITE_TREE.format(calm=calm))
    (programs / "git").chmod(0o755)
    (fleet / "new.yaml").write_text((fleet / "one.yaml").read_text().replace("one", "new"))
    variables = environment | {"PATH": f"{programs}:{environment['PATH']}", "TMPDIR": str(directory)}
    assert fork_server.run(words, fleet, variables, fork=False).returncode == -signal.SIGKILL
    assert sorted(path.name.partition("-")[0] for path in directory.iterdir()) == ["index", "objects"]
    calm.touch()
    assert fork_server.run(words, fleet, variables, fork=False).returncode == 0
    assert list(directory.iterdir()) == []


def test_what_a_process_still_uses_stays(parent: str) -> None:
    with TemporaryDirectory("used", parent) as used:
        abandoned = leave_behind(parent)
        assert used.is_dir()
        remove_abandoned(parent)
        assert not abandoned.exists()
        assert used.is_dir()
    assert list(Path(parent).iterdir()) == []


def test_a_process_looks_once_in_each_directory(parent: str) -> None:
    TemporaryDirectory("first", parent).close()
    left = leave_behind(parent)
    TemporaryDirectory("second", parent).close()
    assert left.exists()
    temporary_directory._searched.clear()
    TemporaryDirectory("third", parent).close()
    assert not left.exists()


def test_a_copy_of_the_process_does_not_remove_what_the_process_uses(parent: str) -> None:
    assert fork_server.run([parent], Path(parent), os.environ, program=HAS_A_COPY).returncode == 0
    assert list(Path(parent).iterdir()) == []


def test_directories_that_are_not_of_gitsched_stay(parent: str, tmp_path: Path) -> None:
    """Only the owner of a directory can give it the mode that marks it, so a name alone deletes nothing."""
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o700)
    (victim / "file").touch()
    left = leave_behind(parent)
    mode = left.stat().st_mode
    assert stat.S_IMODE(mode) == 0o1700
    assert remove_abandoned(parent) is None
    assert not left.exists()
    named = Path(parent, left.name)
    for place in (lambda: named.symlink_to(victim), lambda: victim.rename(named)):
        place()
        remove_abandoned(parent)
        assert (named / "file").exists()
        if named.is_symlink():
            named.unlink()
    other = Path(parent, "projects-of-me")
    named.rename(other)
    other.chmod(0o1700)
    remove_abandoned(parent)
    assert (other / "file").exists()


def test_the_current_directory_is_no_directory_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(Path.cwd()))  # what Python finds where /tmp cannot be written
    with pytest.raises(Permanent, match="mount one at /tmp"):
        TemporaryDirectory("objects")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    TemporaryDirectory("objects").close()
    monkeypatch.undo()
    monkeypatch.setattr(tempfile, "gettempdir", lambda: (tmp_path / "missing").stat())
    with pytest.raises(Permanent, match="mount one at /tmp"):
        TemporaryDirectory("objects")


def test_only_so_many_entries_of_a_directory_are_read(parent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    left = leave_behind(parent)
    monkeypatch.setattr(temporary_directory, "MAX_ENTRIES", 0)
    remove_abandoned(parent)
    assert left.exists()
    remove_abandoned(f"{parent}/missing")
