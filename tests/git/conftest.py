"""Real repositories, made with the git executable in an environment that knows nothing of the machine's configuration."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Git = Callable[..., str]


@pytest.fixture(autouse=True)
def clean_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "ada@example.org")
        monkeypatch.setenv(f"GIT_{role}_DATE", "2024-05-01T12:00:00 +0200")


@pytest.fixture
def git(tmp_path: Path) -> Git:
    def run(*arguments: str, at: Path | str = tmp_path, data: bytes | str | None = None, check: bool = True) -> str:
        text = data.encode() if isinstance(data, str) else data
        done = subprocess.run(["git", *arguments], cwd=at, input=text, capture_output=True, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"git {' '.join(arguments)}: {done.stderr.decode()}")
        return done.stdout.decode("utf-8", "surrogateescape").strip()

    return run


@pytest.fixture
def work(tmp_path: Path, git: Git) -> Path:
    """A worktree on `main` with one commit."""
    path = tmp_path / "work"
    git("init", "-q", "-b", "main", str(path))
    (path / "apps").mkdir()
    (path / "apps/web.yaml").write_text("kind: Deployment\n")
    (path / "readme").write_text("hello\n")
    git("add", ".", at=path)
    git("commit", "-qm", "Start\n\nBecause.\n\nReviewed-by: Bob", at=path)
    return path


@pytest.fixture
def bare(tmp_path: Path, git: Git) -> Path:
    path = tmp_path / "bare.git"
    git("init", "-q", "--bare", "-b", "main", str(path))
    return path
