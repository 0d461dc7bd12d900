"""Where manifests come from: a repository on this machine, or a URL through a private copy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from gitsched.git import wire
from gitsched.git.cache import Clone
from gitsched.git.objects import Repository
from gitsched.git.refs import check_ref
from gitsched.git.urls import is_url, redact
from gitsched.model.errors import Permanent

_HEADS = "refs/heads/"
_ALL = 2**31 - 1
"""As a depth: the whole history."""


class Source(ABC):
    """A repository to read commits from. `asked` holds the branches that were asked for; none of them may become the output."""

    asked: set[str]

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
    def head(self, branch: str | None) -> str:
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


def open_source(location: str, *, cache: Path) -> Source:
    """The source at a path (searched upwards) or URL; private copies are kept below `cache`."""
    return Remote(location, cache) if is_url(location) else Local(location)


class Local(Source):
    """A worktree or bare repository on this machine."""

    def __init__(self, path: str) -> None:
        self._repository = Repository(path)
        self.asked = set()

    @property
    def repository(self) -> Repository:
        return self._repository

    @property
    def url(self) -> str | None:
        return None

    def fetch(self, branch: str | None) -> None:
        """Nothing: the refs of a local repository are the truth."""

    def branch_name(self, branch: str | None) -> str | None:
        return branch_of(branch) if branch is not None else self._repository.head_branch()

    def head(self, branch: str | None) -> str:
        if branch is None:
            oid, name = self._repository.resolve("HEAD"), "HEAD"
        else:
            name = branch_of(branch)
            # A CI checkout of another branch has this one only as the remote's.
            oid = self._repository.resolve(_HEADS + name) or self._repository.resolve(f"refs/remotes/origin/{name}")
        self.asked.update({self.branch_name(branch) or ""} - {""})
        if oid is None:
            unborn = name == "HEAD" and not self._repository.is_bare
            hint = ": commit something first; `gitsched plan --worktree` looks at files as they lie there" if unborn else ""
            raise Permanent(f"{self._repository.place} has no commit on {name}{hint}")
        return oid

    def fetch_commit(self, oid: str) -> bool:
        if self._repository.has(oid) or not self._repository.is_shallow:
            return self._repository.has(oid)
        url = wire.remote_url(self._repository, "origin")
        return url is not None and _fetch_one(self._repository, url, oid)

    def deepen(self, *oids: str) -> None:
        """Nothing: see `Source.deepen`."""


class Remote(Source):
    """A URL. Only the newest commit of a branch is fetched; earlier ones one by one when they are asked for."""

    def __init__(self, url: str, cache: Path) -> None:
        self.clone = Clone(url, cache)
        self.asked = set()

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
            default = wire.default_branch(self.clone.url, repository=repository)
            if default is None:
                raise Permanent(f"{redact(self.clone.url)} has no default branch, or no commit on it")
            name, found = default
            repository.point_head(name)
        else:
            name = branch_of(branch)
            found = wire.observe(self.clone.url, _HEADS + name, repository=repository)
        fetch_branch(repository, self.clone.url, _HEADS + name, _HEADS + name, depth=1, found=found)
        if repository.target(_HEADS + name) is None:
            raise Permanent(f"{redact(self.clone.url)} has no branch {name}")

    def branch_name(self, branch: str | None) -> str | None:
        return branch_of(branch) if branch is not None else self.repository.head_branch()

    def head(self, branch: str | None) -> str:
        name = self.branch_name(branch)
        oid = self.repository.target(_HEADS + name) if name else None
        if oid is None:
            self.fetch(branch)
            name = self.branch_name(branch)
            oid = self.repository.target(f"{_HEADS}{name}")
        if name is None or oid is None:
            raise Permanent(f"{redact(self.clone.url)} has no commit on {branch or 'its default branch'}")
        self.asked.add(name)
        return oid

    def fetch_commit(self, oid: str) -> bool:
        if not self.has(oid):
            self.clone.refresh(lambda repository: _fetch_one(repository, self.clone.url, oid))
        return self.has(oid)

    def deepen(self, *oids: str) -> None:
        if self.repository.is_shallow:
            self.clone.refresh(lambda repository: wire.fetch(repository, self.clone.url, oids, depth=_ALL))


def branch_of(name: str) -> str:
    """A branch's short name, given either way; Permanent for a tag, a remote's branch or no name at all."""
    short = name.removeprefix(_HEADS)
    if short.startswith(("refs/", "-")) or short in ("", "HEAD", "@"):
        raise Permanent(f"not a branch: {name[:100]!r}")
    check_ref(_HEADS + short)
    return short


def fetch_branch(repository: Repository, url: str, ref: str, into: str, *, depth: int | None, found: str | None) -> None:
    """Make the ref `into` what the remote's `ref` was just `found` at, or delete it when the remote has none."""
    if found is None:
        repository.forget(into)
    elif repository.target(into) != found or not repository.intact(found):
        wire.fetch(repository, url, [f"+{ref}:{into}"], depth=depth)


def _fetch_one(repository: Repository, url: str, oid: str) -> bool:
    if len(oid) != 40 or not all(digit in "0123456789abcdef" for digit in oid):
        return False
    try:
        wire.fetch(repository, url, [oid], depth=1)
    except Permanent:
        # A server may refuse single commits, or have forgotten this one: it is not to be had, which is an answer.
        return False
    return repository.has(oid)
