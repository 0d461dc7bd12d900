"""The source repository: a local one, or a URL that is fetched into a private clone in the cache directory."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from pathlib import Path

from gitsched.git.private_clone import PrivateClone
from gitsched.git.promised_objects import promise_objects
from gitsched.git.refs import check_ref
from gitsched.git.remote_refs import fetch, find_remote_url, read_default_branch, read_remote_ref
from gitsched.git.repository import Repository
from gitsched.git.urls import is_url, redact
from gitsched.model.errors import Permanent
from gitsched.named_tuples import NamedTuple

_OBJECT_ID = re.compile(r"[0-9a-f]{40}")
_BRANCH_PREFIX = "refs/heads/"
_FULL_DEPTH = 2**31 - 1
"""The depth that fetches the complete history."""


class BranchHead(NamedTuple):
    """The commit (hex) at the head of a branch, and the short name of the branch; None for a detached HEAD."""

    oid: str
    name: str | None


class SourceRepository(ABC):
    """A repository to read commits from. None of the `requested_branches` may be the output branch."""

    requested_branches: set[str]

    @property
    @abstractmethod
    def repository(self) -> Repository:
        """The repository with the objects. Read it each time: a damaged clone is replaced."""

    @property
    @abstractmethod
    def url(self) -> str | None:
        """The URL; None for a local repository."""

    def find_url(self) -> str | None:
        """Return the URL; for a local repository that of its remote `origin`, None if it has none."""
        return self.url or find_remote_url(self.repository, "origin")

    @abstractmethod
    def fetch(self, branch: str | None) -> None:
        """Update the branch (None: the remote's default branch) from the remote; no effect for a local repository."""

    def branch_name(self, branch: str | None) -> str | None:
        """Return the short name of the given branch, or of HEAD's branch; None when HEAD is detached."""
        return parse_branch(branch) if branch is not None else self.repository.head_branch()

    @abstractmethod
    def find_head(self, branch: str | None) -> BranchHead:
        """Return the head of the branch, or HEAD; Permanent when there is none."""

    def resolve_branch(self, branch: str | None) -> str:
        """Return the commit (hex) of the branch, or of HEAD; Permanent when there is none."""
        return self.find_head(branch).oid

    @abstractmethod
    def fetch_commit(self, oid: str) -> bool:
        """Return whether a commit is available, after an attempt to fetch it alone if the history is shallow."""

    @abstractmethod
    def deepen(self, *oids: str) -> None:
        """Fetch the history of commits; no effect for a local repository, whose depth gitsched does not change."""

    @abstractmethod
    def fetch_history(self, oid: str, depth: int) -> None:
        """Fetch at most `depth` commits of the history of a commit; no effect for a local repository."""

    def has(self, oid: str) -> bool:
        """Return whether an object is available."""
        return self.repository.has(oid)


def open_source(location: str, *, cache: Path) -> SourceRepository:
    """Open the source at a path (or in a parent directory) or URL; private clones are stored below `cache`."""
    may_be_url = ":" in location  # every URL has a colon
    return RemoteSource(location, cache) if may_be_url and is_url(location) else LocalSource(location, cache)


class LocalSource(SourceRepository):
    """A local worktree or bare repository."""

    __slots__ = ("repository",)  # in place of the abstract property
    repository: Repository
    url: str | None = None

    def __init__(self, path: str, cache: Path) -> None:
        self.repository, self._cache = Repository(path), cache
        self._clone: PrivateClone | None = None
        if self.repository.is_partial:
            promise_objects(self.repository, cache)
        self.requested_branches = set()

    def fetch(self, branch: str | None) -> None:
        """Do nothing: the refs of a local repository are current."""

    def find_head(self, branch: str | None) -> BranchHead:
        name = self.branch_name(branch)
        if branch is None:
            oid = self.repository.resolve("HEAD")
        else:
            # A CI checkout of another branch has this branch only as a remote-tracking branch.
            oid = self.repository.resolve(f"{_BRANCH_PREFIX}{name}") or self.repository.resolve(f"refs/remotes/origin/{name}")
        self.requested_branches.update({name or ""} - {""})
        if oid is None:
            self._report_damage("HEAD" if branch is None else f"{_BRANCH_PREFIX}{name}", name)
            unborn = branch is None and not self.repository.is_bare
            hint = ": create a commit first; `gitsched plan --worktree` reads files that are not committed" if unborn else ""
            raise Permanent(f"{self.repository.root} has no commit on {'HEAD' if branch is None else name}{hint}")
        return BranchHead(oid, name)

    def _report_damage(self, ref: str, name: str | None) -> None:
        """Raise Permanent if a ref names a commit that cannot be read, or its file nothing."""
        file, root = Path(self.repository.common_dir, f"{_BRANCH_PREFIX}{name}"), self.repository.root
        target = self.repository.resolve_ref(ref)
        cure = f"`git -C {root} fsck` says what is damaged; clone the repository again, or copy what is missing from another clone"
        if target is not None:
            raise Permanent(
                f"commit {target} of {ref} in {root} cannot be read: it is damaged or missing, as are all objects if a repository in "
                f"objects/info/alternates is gone; {cure}"
            )
        if name and file.is_file():
            raise Permanent(f"{file} holds no commit id, perhaps since the machine stopped while git wrote it; {cure}")

    def fetch_commit(self, oid: str) -> bool:
        if self.repository.has(oid) or not self.repository.is_shallow:
            return self.repository.has_commit(oid)
        url = find_remote_url(self.repository, "origin")
        if url is None or not _OBJECT_ID.fullmatch(oid):
            return False
        if self._clone is None:
            self._clone = PrivateClone(url, self._cache, settings=self.repository)
        # The repository of the caller stays as it is.
        if not self._clone.repository.has_commit(oid):
            self._clone.refresh(lambda clone: _fetch_commit(clone, url, oid))
        self.repository.read_also(self._clone.repository)
        return self.repository.has_commit(oid)

    def deepen(self, *oids: str) -> None:
        """Do nothing; see `SourceRepository.deepen`."""

    def fetch_history(self, oid: str, depth: int) -> None:
        """Do nothing; see `SourceRepository.deepen`."""


class RemoteSource(SourceRepository):
    """A URL. Only the newest commit of a branch is fetched; earlier commits are fetched one by one on request."""

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

    def find_head(self, branch: str | None) -> BranchHead:
        name = self.branch_name(branch)
        oid = self.repository.resolve_ref(_BRANCH_PREFIX + name) if name else None
        if oid is None:
            self.fetch(branch)
            name = self.branch_name(branch)
            oid = self.repository.resolve_ref(f"{_BRANCH_PREFIX}{name}")
        if name is None or oid is None:
            raise Permanent(f"{redact(self.clone.url)} has no commit on {branch or 'its default branch'}")
        self.requested_branches.add(name)
        return BranchHead(oid, name)

    def fetch_commit(self, oid: str) -> bool:
        if not self.has(oid):
            self.clone.refresh(lambda repository: _fetch_commit(repository, self.clone.url, oid))
        return self.repository.has_commit(oid)

    def deepen(self, *oids: str) -> None:
        if self.repository.is_shallow:
            self.clone.refresh(lambda repository: fetch(repository, self.clone.url, oids, depth=_FULL_DEPTH))

    def fetch_history(self, oid: str, depth: int) -> None:
        if self.repository.is_shallow:
            self.clone.refresh(lambda repository: fetch(repository, self.clone.url, [oid], depth=depth))


def parse_branch(name: str) -> str:
    """Return the short name of a branch, given in either form; Permanent for a tag, a remote-tracking branch or an invalid name."""
    short = name.removeprefix(_BRANCH_PREFIX)
    if short.startswith(("refs/", "-")) or short in ("", "HEAD", "@"):
        raise Permanent(f"not a branch: {name[:100]!r}")
    check_ref(_BRANCH_PREFIX + short)
    return short


def fetch_branch(repository: Repository, url: str, ref: str, into: str, *, depth: int | None, found: str | None) -> None:
    """Set the ref `into` to the commit `found` that the remote's `ref` has, or delete it when the remote has no such ref."""
    if found is None:
        repository.delete_ref(into)
    elif repository.resolve_ref(into) != found or not repository.is_intact(found):
        fetch(repository, url, [f"+{ref}:{into}"], depth=depth)


def _fetch_commit(repository: Repository, url: str, oid: str) -> bool:
    if not _OBJECT_ID.fullmatch(oid):
        return False
    try:
        fetch(repository, url, [oid], depth=1)
    except Permanent:
        # A server may refuse to serve single commits, or may have pruned this one: the commit is not available.
        return False
    return repository.has(oid)
