"""The output branch: fetch it, and publish a commit by compare-and-swap, on the remote first."""

from __future__ import annotations

import logging
from pathlib import Path

from gitsched.git.refs import NOTES_REF, check_ref_update, find_remote_url, push_notes, read_remote_refs, update_ref, write_note
from gitsched.git.refs import push as push_commit
from gitsched.git.repository import Repository
from gitsched.git.source import PrivateClone, RemoteSource, SourceRepository, fetch_branch, parse_branch
from gitsched.git.urls import check_url, identify_repository, is_url, redact
from gitsched.model.errors import Conflict, GitschedError, Permanent

_log = logging.getLogger("gitsched.git")


def open_output(source: SourceRepository, *, branch: str, location: str | None, push: str | None, cache: Path) -> OutputRepository:
    """The output branch, in the source's repository or at another path or URL (`location`).

    `push` names a remote of that repository, or a URL, to which the branch is pushed as well; a location that is a URL is pushed to
    in any case. Permanent when the branch is one that the source is read from, a tag, or a symbolic ref.
    """
    where = location if location is not None else source.url
    if location is None or (where is not None and where == source.url):
        repository, clone = source.repository, source.clone if isinstance(source, RemoteSource) else None
    elif is_url(location):
        clone = PrivateClone(location, cache)
        repository = clone.repository
    else:
        repository, clone = Repository(location), None
    if clone is not None and push is not None:
        raise Permanent(f"the output is pushed to {redact(clone.url)} already; a remote to push to is for a local repository")
    remote = clone.url if clone is not None else _find_remote(repository, push)
    name = parse_branch(branch)
    remote_name, slash, rest = name.partition("/")
    if slash and repository.read_config(f"remote.{remote_name}.url") is not None:
        raise Permanent(f"{name!r} would be a branch beside the remote {remote_name}'s; name the branch alone: {rest}")
    output = OutputRepository(source, name, repository, clone, remote, push)
    output.check_writable()
    return output


def _find_remote(repository: Repository, push: str | None) -> str | None:
    if push is None:
        return None
    url = find_remote_url(repository, push) if not is_url(push) and not push.startswith("/") else push
    if url is None:
        raise Permanent(f"{repository.root} has no remote {push!r}")
    return check_url(url)


class OutputRepository:
    """The output branch. `branch` is its short name, `remote` the URL it is pushed to or None."""

    def __init__(
        self,
        source: SourceRepository,
        branch: str,
        repository: Repository,
        clone: PrivateClone | None,
        remote: str | None,
        push: str | None,
    ) -> None:
        self.branch = branch
        self.remote = remote
        self._source = source
        self._opened = repository
        self._clone = clone
        self._ref = f"refs/heads/{branch}"
        named = push is not None and push != remote
        # What the remote has is kept by a ref, so that no garbage collection takes it before the next run.
        self._tracking_ref = (
            self._ref if clone is not None else f"refs/remotes/{push}/{branch}" if named else f"refs/gitsched/{self._ref[5:]}"
        )

    @property
    def repository(self) -> Repository:
        """Where objects of new output commits are written; ask for it each time, a damaged private copy is replaced."""
        return self._clone.repository if self._clone is not None else self._opened

    def fetch(self) -> str | None:
        """The output branch's commit (hex), on the remote where there is one, brought here with its notes; None: no such branch.

        A clone that has no such branch yet goes on from what its origin had when it was fetched.
        """
        if self.remote is None:
            return self.repository.resolve_ref(self._ref) or self.repository.resolve_ref(f"refs/remotes/origin/{self.branch}")
        if self._clone is None:
            self._fetch_remote(self._opened)
        else:
            self._clone.refresh(self._fetch_remote)
        return self.repository.resolve_ref(self._tracking_ref)

    def publish(self, commit: str, expected: str | None, note: str | None) -> bool:
        """Move the branch from `expected` (None: it must not exist) to a commit whose one parent that is, or raise Conflict.

        False when that very commit was there already, by somebody else who cares for the note, too, as a rule; else the next run sees
        that there is none. The remote moves first, then the local ref. A commit equal to `expected` moves nothing. The note, set on
        the commit with its committer's name and time, is best effort: a server that declines it is logged, not raised.
        """
        self.check_writable()
        repository = self.repository
        parents = repository.commit(commit).parents
        if commit != expected and parents != ((expected,) if expected else ()):
            raise ValueError(f"commit {commit} has the parents {parents}, expected was {expected}")
        mine = True
        if self.remote is not None and commit != expected:
            mine = push_commit(repository, self.remote, self._ref, commit, expected)
            self._update_local_refs(repository, commit)
        elif commit != expected:
            update_ref(repository, self._ref, commit, expected if repository.resolve_ref(self._ref) is not None else None)
        if note is not None and mine:
            self._write_note(repository, commit, note)
        return mine

    def check_writable(self) -> None:
        """Permanent when the branch must not be written: the source is read from it, it is symbolic, or it is checked out."""
        if self._shares_repository() and self.branch in {*self._source.requested_branches, self._source.branch_name(None)}:
            raise Permanent(
                f"the output branch {self.branch!r} is the source's own branch: give the output another name, or check out the "
                "source where that is checked out by mistake"
            )
        if self._clone is None:
            check_ref_update(self.repository, self._ref)

    def _shares_repository(self) -> bool:
        """Whether output and source are one repository, also when one is the other's clone or named by another protocol."""
        if self._source.url is not None:
            theirs = {identify_repository(self._source.url)}
        else:
            origin = find_remote_url(self._source.repository, "origin")
            theirs = {identify_repository(self._source.repository.common_dir), *({identify_repository(origin)} if origin else ())}
        return identify_repository(self._clone.url if self._clone is not None else self._opened.common_dir) in theirs

    def _fetch_remote(self, repository: Repository) -> None:
        assert self.remote is not None
        depth = 1 if self._clone is not None or repository.is_shallow else None
        found = read_remote_refs(self.remote, [self._ref, NOTES_REF], repository=repository)
        for ref, into in ((self._ref, self._tracking_ref), (NOTES_REF, NOTES_REF)):
            fetch_branch(repository, self.remote, ref, into, depth=depth, found=found.get(ref))

    def _update_local_refs(self, repository: Repository, commit: str) -> None:
        """After the remote: the ref that mirrors it, and the local branch unless it has commits that the remote never had."""
        repository.set_ref(self._tracking_ref, commit)
        local = repository.resolve_ref(self._ref)
        if local == commit:
            return
        if local is not None and not repository.has_ancestor(commit, local):
            _log.warning("%s in %s has commits of its own and stays where it is", self._ref, repository.root)
            return
        try:
            update_ref(repository, self._ref, commit, local)
        except Conflict as error:
            # The remote has moved, and it is the truth; whoever moved the local branch meanwhile will see that.
            _log.warning("%s", error)

    def _write_note(self, repository: Repository, commit: str, note: str) -> None:
        made = repository.commit(commit)
        complaint: GitschedError | None
        try:
            write_note(repository, commit, note, time=made.time, name=made.name, email=made.email)
            complaint = push_notes(repository, self.remote, NOTES_REF) if self.remote is not None else None
        except GitschedError as error:
            complaint = error
        if complaint is not None:
            # Whoever decides the same writes the same note, and the next run sees whether it is there.
            level = logging.INFO if isinstance(complaint, Conflict) else logging.WARNING
            _log.log(level, "the note on %s was not kept: %s", commit[:12], complaint)
