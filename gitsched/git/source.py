"""The source repository: a local one, or a URL that is fetched into a private bare clone in the cache directory."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path

from gitsched.git.process import CorruptRepository, run_git
from gitsched.git.refs import check_ref, fetch, find_remote_url, read_default_branch, read_remote_ref
from gitsched.git.repository import Repository
from gitsched.git.urls import check_url, is_url, redact
from gitsched.model.errors import GitschedError, Permanent, Temporary

_LOCK_TIMEOUT = 600.0
_CLONE_CONFIG = (("core.hooksPath", "/dev/null"), ("core.logAllRefUpdates", "false"), ("gc.auto", "2000"))


class PrivateClone:
    """The private copy of one URL below the directory `cache`, opened and if need be made on first use.

    `repository` is replaced when the copy had to be made anew, so ask for it each time.
    """

    def __init__(self, url: str, cache: Path) -> None:
        self.url = check_url(url)
        self.path = cache / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.git"
        self._corruption_marker = self.path.with_suffix(".damaged")
        self._repository: Repository | None = None

    @property
    def repository(self) -> Repository:
        """The copy as it is, which may be empty."""
        if self._repository is None or self._corruption_marker.exists() or not self.path.exists():
            with self._lock():
                self._open_or_create()
        assert self._repository is not None
        return self._repository

    def refresh(self, work: Callable[[Repository], object]) -> None:
        """Do `work`, a fetch, on the copy, alone among processes; when the copy proves damaged, on a new one once more."""
        with self._lock():
            try:
                work(self._open_or_create())
            except Temporary as error:
                if isinstance(error, CorruptRepository):
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
            try:
                self._repository = Repository(self.path, on_damage=self._corruption_marker.touch)
            except GitschedError:
                self._discard()
        if not self.path.exists():
            self._create()
        self._repository = Repository(self.path, on_damage=self._corruption_marker.touch)
        if not self._repository.is_bare or Path(self._repository.path) != self.path:
            raise Permanent(f"{self.path} is not the private copy that it should be; delete it")
        return self._repository

    def _create(self) -> None:
        """Beside its place first, so that a crash leaves no half-made copy under its name."""
        fresh = self.path.with_suffix(".new")
        shutil.rmtree(fresh, ignore_errors=True)
        done = run_git(["init", "--quiet", "--bare", "--template=", "--end-of-options", str(fresh)], at="/")
        if done.exit_code != 0:
            raise Temporary(f"cannot make a private copy of {redact(self.url)} in {self.path.parent}: {done.stderr.strip()}")
        fresh.chmod(0o700)
        for name, value in _CLONE_CONFIG:
            run_git(["config", name, value], git_dir=str(fresh), at="/")
        fresh.rename(self.path)

    def _discard(self) -> None:
        self._repository = None
        shutil.rmtree(self.path, ignore_errors=True)
        self._corruption_marker.unlink(missing_ok=True)

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
            deadline = time.monotonic() + _LOCK_TIMEOUT
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


_BRANCH_PREFIX = "refs/heads/"
_FULL_DEPTH = 2**31 - 1
"""As a depth: the whole history."""


class SourceRepository(ABC):
    """A repository to read commits from. `asked` holds the branches that were asked for; none of them may become the output."""

    requested_branches: set[str]

    @property
    @abstractmethod
    def repository(self) -> Repository:
        """The objects; ask for it each time, a damaged copy is replaced."""

    @property
    @abstractmethod
    def url(self) -> str | None:
        """The URL; None for a repository on this machine."""

    @abstractmethod
    def fetch(self, branch: str | None) -> None:
        """Bring the branch (None: the remote's default) up to date; nothing to do for a repository on this machine."""

    @abstractmethod
    def branch_name(self, branch: str | None) -> str | None:
        """The branch meant: the given one, else the one HEAD is on; None where HEAD is detached."""

    @abstractmethod
    def resolve_branch(self, branch: str | None) -> str:
        """The commit (hex) that the branch, or HEAD, is at; Permanent when there is none."""

    @abstractmethod
    def fetch_commit(self, oid: str) -> bool:
        """Whether a commit is here, after an attempt to fetch it alone where history is cut off."""

    @abstractmethod
    def deepen(self, *oids: str) -> None:
        """Bring the history of commits here; nothing to do for a repository on this machine, whose depth is its owner's choice."""

    def has(self, oid: str) -> bool:
        """Whether an object is here."""
        return self.repository.has(oid)


def open_source(location: str, *, cache: Path) -> SourceRepository:
    """The source at a path (searched upwards) or URL; private copies are kept below `cache`."""
    return RemoteSource(location, cache) if is_url(location) else LocalSource(location)


class LocalSource(SourceRepository):
    """A worktree or bare repository on this machine."""

    def __init__(self, path: str) -> None:
        self._repository = Repository(path)
        self.requested_branches = set()

    @property
    def repository(self) -> Repository:
        return self._repository

    @property
    def url(self) -> str | None:
        return None

    def fetch(self, branch: str | None) -> None:
        """Nothing: the refs of a local repository are the truth."""

    def branch_name(self, branch: str | None) -> str | None:
        return parse_branch(branch) if branch is not None else self._repository.head_branch()

    def resolve_branch(self, branch: str | None) -> str:
        if branch is None:
            oid, name = self._repository.resolve("HEAD"), "HEAD"
        else:
            name = parse_branch(branch)
            # A CI checkout of another branch has this one only as the remote's.
            oid = self._repository.resolve(_BRANCH_PREFIX + name) or self._repository.resolve(f"refs/remotes/origin/{name}")
        self.requested_branches.update({self.branch_name(branch) or ""} - {""})
        if oid is None:
            unborn = name == "HEAD" and not self._repository.is_bare
            hint = ": commit something first; `gitsched plan --worktree` looks at files as they lie there" if unborn else ""
            raise Permanent(f"{self._repository.root} has no commit on {name}{hint}")
        return oid

    def fetch_commit(self, oid: str) -> bool:
        if self._repository.has(oid) or not self._repository.is_shallow:
            return self._repository.has(oid)
        url = find_remote_url(self._repository, "origin")
        return url is not None and _fetch_commit(self._repository, url, oid)

    def deepen(self, *oids: str) -> None:
        """Nothing: see `Source.deepen`."""


class RemoteSource(SourceRepository):
    """A URL. Only the newest commit of a branch is fetched; earlier ones one by one when they are asked for."""

    def __init__(self, url: str, cache: Path) -> None:
        self.clone = PrivateClone(url, cache)
        self.requested_branches = set()

    @property
    def repository(self) -> Repository:
        return self.clone.repository

    @property
    def url(self) -> str | None:
        return self.clone.url

    def fetch(self, branch: str | None) -> None:
        self.clone.refresh(lambda repository: self._fetch(repository, branch))

    def _fetch(self, repository: Repository, branch: str | None) -> None:
        name: str
        found: str | None
        if branch is None:
            default = read_default_branch(self.clone.url, repository=repository)
            if default is None:
                raise Permanent(f"{redact(self.clone.url)} has no default branch, or no commit on it")
            name, found = default
            repository.set_head(name)
        else:
            name = parse_branch(branch)
            found = read_remote_ref(self.clone.url, _BRANCH_PREFIX + name, repository=repository)
        fetch_branch(repository, self.clone.url, _BRANCH_PREFIX + name, _BRANCH_PREFIX + name, depth=1, found=found)
        if repository.resolve_ref(_BRANCH_PREFIX + name) is None:
            raise Permanent(f"{redact(self.clone.url)} has no branch {name}")

    def branch_name(self, branch: str | None) -> str | None:
        return parse_branch(branch) if branch is not None else self.repository.head_branch()

    def resolve_branch(self, branch: str | None) -> str:
        name = self.branch_name(branch)
        oid = self.repository.resolve_ref(_BRANCH_PREFIX + name) if name else None
        if oid is None:
            self.fetch(branch)
            name = self.branch_name(branch)
            oid = self.repository.resolve_ref(f"{_BRANCH_PREFIX}{name}")
        if name is None or oid is None:
            raise Permanent(f"{redact(self.clone.url)} has no commit on {branch or 'its default branch'}")
        self.requested_branches.add(name)
        return oid

    def fetch_commit(self, oid: str) -> bool:
        if not self.has(oid):
            self.clone.refresh(lambda repository: _fetch_commit(repository, self.clone.url, oid))
        return self.has(oid)

    def deepen(self, *oids: str) -> None:
        if self.repository.is_shallow:
            self.clone.refresh(lambda repository: fetch(repository, self.clone.url, oids, depth=_FULL_DEPTH))


def parse_branch(name: str) -> str:
    """A branch's short name, given either way; Permanent for a tag, a remote's branch or no name at all."""
    short = name.removeprefix(_BRANCH_PREFIX)
    if short.startswith(("refs/", "-")) or short in ("", "HEAD", "@"):
        raise Permanent(f"not a branch: {name[:100]!r}")
    check_ref(_BRANCH_PREFIX + short)
    return short


def fetch_branch(repository: Repository, url: str, ref: str, into: str, *, depth: int | None, found: str | None) -> None:
    """Make the ref `into` what the remote's `ref` was just `found` at, or delete it when the remote has none."""
    if found is None:
        repository.delete_ref(into)
    elif repository.resolve_ref(into) != found or not repository.is_intact(found):
        fetch(repository, url, [f"+{ref}:{into}"], depth=depth)


def _fetch_commit(repository: Repository, url: str, oid: str) -> bool:
    if len(oid) != 40 or not all(digit in "0123456789abcdef" for digit in oid):
        return False
    try:
        fetch(repository, url, [oid], depth=1)
    except Permanent:
        # A server may refuse single commits, or have forgotten this one: it is not to be had, which is an answer.
        return False
    return repository.has(oid)
