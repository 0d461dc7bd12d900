"""A private bare clone of a URL in the cache directory: everything in it can be fetched again, so a damaged one is replaced."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from gitsched.git.clone_lock import CloneLock
from gitsched.git.process import CorruptRepository, run_git
from gitsched.git.refs import read_transport_config
from gitsched.git.repository import Repository
from gitsched.git.urls import check_url, redact
from gitsched.model.errors import GitschedError, Temporary

_CONFIG = """[core]
	repositoryformatversion = 0
	filemode = true
	bare = true
	hooksPath = /dev/null
	logAllRefUpdates = false
[gc]
	auto = 2000
	autoPackLimit = 16
"""
"""A process keeps packs open, so git combines them early."""
_HEAD = re.compile(rb"ref: refs/heads/[^\n]+\n")
_REF = re.compile(rb"[0-9a-f]{40}\n")
_SHALLOW = re.compile(rb"(?:[0-9a-f]{40}\n)*")
_PACKED_REFS = re.compile(rb"(?:#[^\n]*\n|[0-9a-f]{40} refs/[^\n]+\n|\^[0-9a-f]{40}\n)*")


class PrivateClone:
    """The private bare clone of one URL below the directory `cache`, created on first use.

    `repository` is replaced when the clone is recreated, so read it each time. Processes that share the cache take turns at writing refs
    and at fetching; what an interrupted one left behind is removed. Git authenticates as in the repository `settings`, if there is one.
    """

    def __init__(self, url: str, cache: Path, settings: Repository | None = None) -> None:
        self.url = check_url(url)
        self.path = cache.absolute() / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.git"  # git runs in another directory
        self._corruption_marker = self.path.with_suffix(".damaged")
        self._repository: Repository | None = None
        self._settings = settings
        self._lock = CloneLock(self.path)

    @property
    def repository(self) -> Repository:
        """The clone in its present state; it may be empty."""
        if self._repository is None or self._corruption_marker.exists() or not self.path.exists():
            with self._lock.hold():
                self._open_or_create()
        assert self._repository is not None
        return self._repository

    def refresh(self, work: Callable[[Repository], object]) -> None:
        """Call `work`, a fetch, on the clone while it is locked against other processes; when the clone is damaged, recreate it
        and call `work` again."""
        with self._lock.hold():
            repository = self._open_or_create()
            repository.close_files()
            try:
                work(repository)
            except GitschedError as error:
                if isinstance(error, CorruptRepository) or not _is_sound(self.path):
                    self._corruption_marker.touch()
                if not self._corruption_marker.exists():
                    raise
                work(self._open_or_create())

    def _open_or_create(self) -> Repository:
        if self._corruption_marker.exists():
            self._discard()
        if self._repository is not None and self.path.exists():
            return self._repository
        if self.path.exists():
            if _is_sound(self.path):
                with contextlib.suppress(GitschedError):
                    self._repository = self._open()
                    return self._repository
            self._discard()
        self._create()
        self._repository = self._open()
        return self._repository

    def _open(self) -> Repository:
        repository = Repository(self.path, on_damage=self._corruption_marker.touch, lock=self._lock)
        if self._settings is not None:
            repository.transport_config = read_transport_config(self._settings)
        return repository

    def _create(self) -> None:
        """Create the clone under a temporary name first, so that a crash leaves no incomplete clone under its final name."""
        new_path = self.path.with_suffix(".new")
        shutil.rmtree(new_path, ignore_errors=True)
        done = run_git(["init", "--quiet", "--bare", "--template=", "--end-of-options", str(new_path)], cwd="/")
        if done.exit_code != 0:
            raise Temporary(f"cannot create a private clone of {redact(self.url)} in {self.path.parent}: {done.stderr.strip()}")
        try:
            new_path.chmod(0o700)
            (new_path / "config").write_text(_CONFIG, encoding="utf-8")
            new_path.rename(self.path)
        except OSError as error:
            raise Temporary(f"cannot create a private clone of {redact(self.url)} in {self.path.parent}: {error}") from error

    def _discard(self) -> None:
        self._repository = None
        shutil.rmtree(self.path, ignore_errors=True)
        if self.path.exists():
            raise Temporary(f"the damaged private clone {self.path} cannot be deleted; delete it, or use another --cache-dir")
        self._corruption_marker.unlink(missing_ok=True)


def _is_sound(path: Path) -> bool:
    """Return whether the settings, HEAD, refs and shallow commits of a clone have the form that gitsched and git gave them.

    Objects are checked when they are read. A flipped bit in these small files would otherwise fail every later run.
    """
    try:
        return (
            (path / "config").read_text(encoding="utf-8") == _CONFIG
            and _matches(path / "HEAD", _HEAD)
            and _matches(path / "shallow", _SHALLOW, may_be_missing=True)
            and _matches(path / "packed-refs", _PACKED_REFS, may_be_missing=True)
            and all(_matches(Path(directory, name), _REF) for directory, _, names in os.walk(path / "refs") for name in names)
        )
    except (OSError, UnicodeDecodeError):
        return False


def _matches(path: Path, pattern: re.Pattern[bytes], *, may_be_missing: bool = False) -> bool:
    if not path.exists():
        return may_be_missing
    return pattern.fullmatch(path.read_bytes()) is not None
