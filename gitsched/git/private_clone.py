"""A private bare clone of a URL in the cache directory: everything in it can be fetched again, so a damaged one is replaced."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gitsched.git.clone_lock import CloneLock
from gitsched.git.loaded_pygit2 import pygit2
from gitsched.git.process import run_git
from gitsched.git.repository import Repository
from gitsched.git.transport import TRANSFER_TIMEOUT, read_transport_config
from gitsched.git.urls import check_url, redact
from gitsched.model.errors import GitschedError, Temporary
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from gitsched.git.mirrored_refs import CloneControl

_DIRECTORIES = ("objects/info", "objects/pack", "refs/heads", "refs/tags")
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
_MISSING_OBJECT = 2
"""The bit in the exit code of `git fsck` for a missing object: states of plans refer to objects that are elsewhere."""
_LIST_OBJECTS = ["rev-list", "--objects", "--quiet", "--exclude=refs/gitsched/state/*", "--all"]
_HEAD = re.compile(rb"ref: refs/heads/[^\n]+\n")
_REF = re.compile(rb"[0-9a-f]{40}\n")
_SHALLOW = re.compile(rb"(?:[0-9a-f]{40}\n)*")
_PACKED_REFS = re.compile(rb"(?:#[^\n]*\n|[0-9a-f]{40} refs/[^\n]+\n|\^[0-9a-f]{40}\n)*")


class _Location(NamedTuple):
    """A clone in which git runs."""

    path: str
    private: CloneControl


class _Control:
    """The lock of a clone, and whether it is damaged: a marker beside it, so that other processes know it, too."""

    def __init__(self, path: Path, settings: str | None) -> None:
        self.settings = settings
        self._path = path
        self._marker, self._lock = path.with_suffix(".damaged"), CloneLock(path)

    @property
    def handles(self) -> tuple[int, ...]:
        return self._lock.handles

    def hold(self) -> AbstractContextManager[None]:
        return self._lock.hold()

    @property
    def is_damaged(self) -> bool:
        return self._marker.exists()

    def report_damage(self) -> None:
        self._marker.touch()

    def find_damage(self) -> bool:
        with self.hold():
            if not _is_sound(self._path) or not self._has_sound_objects():
                self.report_damage()
        return self.is_damaged

    def _has_sound_objects(self) -> bool:
        """Return whether git can read all objects, and finds what branches and notes need. If it takes too long, that is not known."""
        clone = _Location(str(self._path), self)
        try:
            config = read_transport_config(self.settings or str(self._path))
            # What a fetch may accept is no damage.
            accepted = [(name.removeprefix("fetch."), value) for name, value in config if name.startswith("fetch.fsck.")]
            check = run_git(["fsck", "--no-dangling", "--no-progress"], repository=clone, config=accepted, timeout=TRANSFER_TIMEOUT)
            listing = run_git(_LIST_OBJECTS, repository=clone, timeout=TRANSFER_TIMEOUT)
        except Temporary:
            return True
        return check.exit_code & ~_MISSING_OBJECT == 0 and listing.exit_code == 0

    def clear_damage(self) -> None:
        self._marker.unlink(missing_ok=True)


class PrivateClone:
    """The private bare clone of one URL below the directory `cache`, created on first use.

    `repository` is replaced when the clone is recreated, so read it each time. Processes that share the cache take turns at writing refs
    and at fetching; what an interrupted one left behind is removed. Git authenticates as in the repository `settings`, if there is one.
    """

    def __init__(self, url: str, cache: Path, settings: Repository | None = None) -> None:
        self.url = check_url(url)
        self.path = cache.absolute() / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.git"  # git runs in another directory
        self._repository: Repository | None = None
        self._control = _Control(self.path, settings.path if settings is not None else None)

    @property
    def repository(self) -> Repository:
        """The clone in its present state; it may be empty."""
        if self._repository is None or self._control.is_damaged or not self.path.exists():
            with self._control.hold():
                self._open_or_create()
        assert self._repository is not None
        return self._repository

    def refresh(self, work: Callable[[Repository], object]) -> None:
        """Call `work`, a fetch, on the clone while it is locked against other processes; when the clone is damaged, recreate it
        and call `work` again."""
        with self._control.hold():
            repository = self._open_or_create()
            repository.close_files()
            try:
                work(repository)
            except (GitschedError, pygit2.GitError) as error:
                if isinstance(error, pygit2.GitError) or not _is_sound(self.path):
                    self._control.report_damage()
                if not self._control.is_damaged:
                    raise
                work(self._open_or_create())

    def _open_or_create(self) -> Repository:
        if self._control.is_damaged:
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
        return Repository(self.path, private=self._control)

    def _create(self) -> None:
        """Create the clone under a temporary name first, so that a crash leaves no incomplete clone under its final name.

        `git init` would copy templates and choose formats by the configuration of the machine.
        """
        new_path = self.path.with_suffix(".new")
        shutil.rmtree(new_path, ignore_errors=True)
        try:
            for directory in _DIRECTORIES:
                (new_path / directory).mkdir(parents=True)
            new_path.chmod(0o700)
            (new_path / "HEAD").write_text("ref: refs/heads/main\n", encoding="ascii")
            (new_path / "config").write_text(_CONFIG, encoding="utf-8")
            new_path.rename(self.path)
        except OSError as error:
            raise Temporary(f"cannot create a private clone of {redact(self.url)} in {self.path.parent}: {error}") from error

    def _discard(self) -> None:
        self._repository = None
        shutil.rmtree(self.path, ignore_errors=True)
        if self.path.exists():
            raise Temporary(f"the damaged private clone {self.path} cannot be deleted; delete it, or use another --cache-dir")
        self._control.clear_damage()


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
