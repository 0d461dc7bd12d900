"""Facts branches: branches of the source repository with documents that machines write. Fetch them, and append commits to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from gitsched.git.objects import Signer
from gitsched.git.refs import check_ref, check_ref_update, find_branch_head, find_replaced_head, update_ref
from gitsched.git.remote_refs import fetch, find_remote_url, list_remote_refs, push
from gitsched.git.repository import Repository
from gitsched.git.source import RemoteSource, SourceRepository
from gitsched.git.urls import check_url, is_url
from gitsched.model.commit import Commit
from gitsched.model.errors import Permanent
from gitsched.model.planned_files import WritableFile
from gitsched.named_tuples import NamedTuple

MAX_BRANCHES = 10_000
"""Facts branches that are read: the one of all clusters, and those of clusters in the order of their names."""
_FETCH_BATCH = 200
"""Refs of one `git fetch`, because a command line has a limited length."""
_HEADS = "refs/heads/"
_HISTORY_TRAILER = "Gitsched-Facts-Commits"
"""The number of commits of a facts branch: a shallow clone cannot count them."""


class FactsNames(NamedTuple):
    """Short names of branches: `shared` holds documents of all clusters, "" for none. `prefix` and `suffix` surround the name of a cluster
    in the name of its branch; both are "" if clusters have none. `reserved` are branches for other purposes, such as the output branch."""

    shared: str
    prefix: str = ""
    suffix: str = ""
    reserved: frozenset[str] = frozenset()

    def name_cluster_branch(self, cluster: str) -> str:
        """Return the branch of a cluster."""
        return f"{self.prefix}{cluster}{self.suffix}"

    def find_cluster(self, branch: str) -> str:
        """Return the cluster of a branch; "" if it is not the branch of a cluster."""
        if (
            branch in self.reserved
            or not (self.prefix or self.suffix)
            or not branch.startswith(self.prefix)
            or not branch.endswith(self.suffix)
        ):
            return ""
        name = branch[len(self.prefix) : len(branch) - len(self.suffix)]
        return name if "/" not in name and self.name_cluster_branch(name) == branch else ""


class FactsBranch(NamedTuple):
    """A facts branch; `cluster` is "" for the branch of all clusters."""

    name: str
    commit: Commit
    cluster: str = ""


class CommitAuthor(NamedTuple):
    """Author of commits, and their signer, None for unsigned commits."""

    name: str
    email: str
    signer: Signer | None = None


class FactsRepository:
    """The facts branches in the repository of the source. `remote` is the name or URL of the remote that has them, None for the repository
    itself; the branches of a source at a URL are there."""

    def __init__(self, source: SourceRepository, names: FactsNames, remote: str | None) -> None:
        self.names = names
        self.ignored = 0
        """Branches that the last fetch ignored, because there are too many."""
        self._source = source
        self._clone = source.clone if isinstance(source, RemoteSource) else None
        self._url = source.url if self._clone is not None else _find_remote(source.repository, remote)
        named = remote is not None and self._clone is None and not is_url(remote) and not remote.startswith("/")
        self._tracking = _HEADS if self._clone is not None else f"refs/remotes/{remote}/" if named else "refs/gitsched/heads/"

    @property
    def repository(self) -> Repository:
        """The repository with the objects. Read it each time: a damaged private clone is replaced."""
        return self._source.repository

    def fetch(self) -> tuple[FactsBranch, ...]:
        """Return the branches that exist, fetched from the remote if there is one: the shared one, then those of the clusters by name."""
        self.ignored = 0
        if self._clone is not None:
            self._clone.refresh(self._fetch_remote)
        elif self._url is not None:
            self._fetch_remote(self.repository)
        prefixes = [self._tracking] if self._url is not None else ["refs/remotes/origin/", _HEADS]
        found = {ref.removeprefix(prefix) for prefix in prefixes for ref, _ in self._list_refs(self.repository, prefix)}
        heads = ((name, self.find(name)) for name in self._limit_branches(found))
        return tuple(FactsBranch(name, head, self.names.find_cluster(name)) for name, head in heads if head is not None)

    def pin(self, name: str, cluster: str, commit: str) -> FactsBranch:
        """Return a branch with a commit that counts in place of its head. Raise Permanent if it is not available."""
        if not self._source.fetch_commit(commit):
            raise Permanent(f"commit {commit} of the facts branch {name} is not available in {self.repository.root}")
        return FactsBranch(name, self.repository.commit(commit), cluster)

    def _limit_branches(self, names: Iterable[str]) -> list[str]:
        """Return the branches that are read, the shared one first, and count the others."""
        ordered = sorted(names, key=lambda name: (self.names.find_cluster(name), name))
        self.ignored += len(ordered[MAX_BRANCHES:])
        return ordered[:MAX_BRANCHES]

    def find(self, branch: str) -> Commit | None:
        """Return the head of a branch as of the last fetch; None if it does not exist."""
        repository = self.repository
        oid = find_branch_head(repository, branch) if self._url is None else repository.resolve_ref(self._tracking + branch)
        return repository.commit(oid) if oid is not None else None

    def append(
        self,
        branch: str,
        files: Mapping[str, WritableFile | None],
        message: str,
        *,
        history: int,
        author: CommitAuthor,
        time: datetime,
    ) -> str | None:
        """Set files of a branch (None: remove) in a new commit and return its id; None if nothing changes.

        A branch with `history` commits starts a new history. Conflict when another process has moved the branch since the last fetch.
        """
        repository, ref, head = self.repository, check_ref(_HEADS + branch), self.find(branch)
        tree = repository.write_tree(files, base=head.tree if head else None, read=repository)
        if head is not None and tree == head.tree:
            return None
        self._check_writable(branch, head)
        count = _read_history(head) if head else 0
        parents, number = ((head.oid,), count + 1) if head is not None and count < history else ((), 1)
        text = f"{message}\n\n{_HISTORY_TRAILER}: {number}\n"
        commit = repository.commit_tree(tree, parents, text, name=author.name, email=author.email, time=time, sign=author.signer)
        expected = head.oid if head else None
        if self._url is not None:
            push(repository, self._url, ref, commit, expected, rewrite=not parents)
            repository.set_ref(self._tracking + branch, commit)
        else:
            update_ref(repository, ref, commit, find_replaced_head(repository, branch, expected))
        return commit

    def _check_writable(self, branch: str, head: Commit | None) -> None:
        source = self._source
        if branch in {*source.requested_branches, *self.names.reserved, source.branch_name(None)}:
            raise Permanent(
                f"the facts branch {branch!r} is the source branch or the output branch: set other names in source.facts"
            )
        own = self.repository.resolve("HEAD")
        if head is not None and own is not None and self.repository.find_merge_base(head.oid, own) is not None:
            raise Permanent(
                f"the branch {branch!r} has the history of the source, so it is no facts branch: set another name in source.facts, or "
                "delete the branch"
            )
        if self._url is None:
            check_ref_update(self.repository, _HEADS + branch)

    def _fetch_remote(self, repository: Repository) -> None:
        assert self._url is not None
        patterns = [*([self.names.shared] if self.names.shared else []), *self._list_patterns()]
        remote = list_remote_refs(self._url, [_HEADS + pattern for pattern in patterns], repository=repository)
        every = {name: oid for ref, oid in remote.items() if self._is_facts(name := ref.removeprefix(_HEADS))}
        found = {name: every[name] for name in self._limit_branches(every)}
        known = {ref.removeprefix(self._tracking): oid for ref, oid in self._list_refs(repository, self._tracking)}
        for name in known.keys() - found.keys():
            repository.delete_ref(self._tracking + name)
        changed = [name for name, oid in found.items() if known.get(name) != oid or not repository.is_intact(oid)]
        depth = 1 if self._clone is not None or repository.is_shallow else None
        for at in range(0, len(changed), _FETCH_BATCH):
            refspecs = [f"+{_HEADS}{name}:{self._tracking}{name}" for name in changed[at : at + _FETCH_BATCH]]
            fetch(repository, self._url, refspecs, depth=depth)

    def _list_patterns(self) -> Iterable[str]:
        return [self.names.name_cluster_branch("*")] if self.names.prefix or self.names.suffix else []

    def _list_refs(self, repository: Repository, prefix: str) -> Iterator[tuple[str, str]]:
        return ((ref, oid) for ref, oid in repository.list_refs(prefix) if self._is_facts(ref.removeprefix(prefix)))

    def _is_facts(self, branch: str) -> bool:
        return (branch == self.names.shared and bool(branch)) or bool(self.names.find_cluster(branch))


def _find_remote(repository: Repository, remote: str | None) -> str | None:
    if remote is None:
        return None
    url = remote if is_url(remote) or remote.startswith("/") else find_remote_url(repository, remote)
    if url is None:
        raise Permanent(f"{repository.root} has no remote {remote!r}")
    return check_url(url)


def _read_history(commit: Commit) -> int:
    """Return the number of commits up to this one since the history began; 1 for a commit of another program."""
    text = dict(commit.trailers).get(_HISTORY_TRAILER, "")
    return int(text) if text.isdecimal() and len(text) < 10 else 1
