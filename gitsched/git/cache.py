"""Private bare copies of remote repositories. Any of them may be deleted at any moment; one that is damaged deletes itself."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from gitsched.git.failures import Damaged
from gitsched.git.objects import Repository
from gitsched.git.process import run_git
from gitsched.git.urls import check_url, redact
from gitsched.model.errors import GitschedError, Permanent, Temporary

_WAIT = 600.0
_SETTINGS = (("core.hooksPath", "/dev/null"), ("core.logAllRefUpdates", "false"), ("gc.auto", "2000"))


class Clone:
    """The private copy of one URL below the directory `cache`, opened and if need be made on first use.

    `repository` is replaced when the copy had to be made anew, so ask for it each time.
    """

    def __init__(self, url: str, cache: Path) -> None:
        self.url = check_url(url)
        self.path = cache / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.git"
        self._mark = self.path.with_suffix(".damaged")
        self._repository: Repository | None = None

    @property
    def repository(self) -> Repository:
        """The copy as it is, which may be empty."""
        if self._repository is None or self._mark.exists() or not self.path.exists():
            with self._lock():
                self._ready()
        assert self._repository is not None
        return self._repository

    def refresh(self, work: Callable[[Repository], object]) -> None:
        """Do `work`, a fetch, on the copy, alone among processes; when the copy proves damaged, on a new one once more."""
        with self._lock():
            try:
                work(self._ready())
            except Temporary as error:
                if isinstance(error, Damaged):
                    self._mark.touch()
                if not self._mark.exists():
                    raise
                work(self._ready())

    def _ready(self) -> Repository:
        if self._mark.exists():
            self._discard()
        if self._repository is not None and self.path.exists():
            return self._repository
        if self.path.exists():
            try:
                self._repository = Repository(self.path, on_damage=self._mark.touch)
            except GitschedError:
                self._discard()
        if not self.path.exists():
            self._make()
        self._repository = Repository(self.path, on_damage=self._mark.touch)
        if not self._repository.is_bare or Path(self._repository.path) != self.path:
            raise Permanent(f"{self.path} is not the private copy that it should be; delete it")
        return self._repository

    def _make(self) -> None:
        """Beside its place first, so that a crash leaves no half-made copy under its name."""
        fresh = self.path.with_suffix(".new")
        shutil.rmtree(fresh, ignore_errors=True)
        done = run_git(["init", "--quiet", "--bare", "--template=", "--end-of-options", str(fresh)], at="/")
        if done.code != 0:
            raise Temporary(f"cannot make a private copy of {redact(self.url)} in {self.path.parent}: {done.err.strip()}")
        fresh.chmod(0o700)
        for name, value in _SETTINGS:
            run_git(["config", name, value], git_dir=str(fresh), at="/")
        fresh.rename(self.path)

    def _discard(self) -> None:
        self._repository = None
        shutil.rmtree(self.path, ignore_errors=True)
        self._mark.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """Hold the lock of this copy, which dies with the process; Temporary when another keeps it for ten minutes."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._check_owner()
            handle = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Permanent(f"cannot keep private copies in {self.path.parent}: {error}") from error
        try:
            deadline = time.monotonic() + _WAIT
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError as error:
                    if time.monotonic() > deadline:
                        raise Temporary(f"another process keeps {self.path} locked") from error
                    time.sleep(0.05)
            yield
        finally:
            os.close(handle)

    def _check_owner(self) -> None:
        """What others can write to could hold hooks and settings of theirs."""
        for path in (self.path.parent, self.path):
            if path.exists() and path.stat().st_uid != os.geteuid():
                raise Permanent(f"{path} belongs to another user; give gitsched a cache directory of its own")
