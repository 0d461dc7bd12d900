"""Where decisions go: a branch that moves by compare-and-swap, on the remote first where there is one."""

from __future__ import annotations

import logging
from pathlib import Path

from gitsched.git import wire
from gitsched.git.cache import Clone
from gitsched.git.objects import NOTES, Repository
from gitsched.git.refs import check_movable
from gitsched.git.source import Source, branch_of, fetch_branch
from gitsched.git.urls import check_url, identify, is_url, redact
from gitsched.model.errors import Conflict, GitschedError, Permanent

_log = logging.getLogger("gitsched.git")


def open_output(source: Source, *, branch: str, location: str | None, push: str | None, cache: Path) -> Output:
    """The output branch, in the source's repository or at another path or URL (`location`).

    `push` names a remote of that repository, or a URL, to which the branch is pushed as well; a location that is a URL is pushed to
    in any case. Permanent when the branch is one that the source is read from, a tag, or a symbolic ref.
    """
    where = location if location is not None else source.url
    if location is None or (where is not None and where == source.url):
        repository, clone = source.repository, getattr(source, "clone", None)
    elif is_url(location):
        clone = Clone(location, cache)
        repository = clone.repository
    else:
        repository, clone = Repository(location), None
    if clone is not None and push is not None:
        raise Permanent(f"the output is pushed to {redact(clone.url)} already; a remote to push to is for a local repository")
    remote = clone.url if clone is not None else _remote(repository, push)
    name = branch_of(branch)
    remote_name, slash, rest = name.partition("/")
    if slash and repository.setting(f"remote.{remote_name}.url") is not None:
        raise Permanent(f"{name!r} would be a branch beside the remote {remote_name}'s; name the branch alone: {rest}")
    output = Output(source, name, repository, clone, remote, push)
    output.check()
    return output


def _remote(repository: Repository, push: str | None) -> str | None:
    if push is None:
        return None
    url = wire.remote_url(repository, push) if not is_url(push) and not push.startswith("/") else push
    if url is None:
        raise Permanent(f"{repository.place} has no remote {push!r}")
    return check_url(url)


class Output:
    """The output branch. `branch` is its short name, `remote` the URL it is pushed to or None."""

    def __init__(
        self, source: Source, branch: str, repository: Repository, clone: Clone | None, remote: str | None, push: str | None
    ) -> None:
        self.branch = branch
        self.remote = remote
        self._source = source
        self._opened = repository
        self._clone = clone
        self._ref = f"refs/heads/{branch}"
        named = push is not None and push != remote
        # What the remote has is kept by a ref, so that no garbage collection takes it before the next run.
        self._mirror = (
            self._ref if clone is not None else f"refs/remotes/{push}/{branch}" if named else f"refs/gitsched/{self._ref[5:]}"
        )

    @property
    def repository(self) -> Repository:
        """Where objects of new output commits are written; ask for it each time, a damaged private copy is replaced."""
        return self._clone.repository if self._clone is not None else self._opened

    def observe(self) -> str | None:
        """The output branch's commit (hex), on the remote where there is one, brought here with its notes; None: no such branch.

        A clone that has no such branch yet goes on from what its origin had when it was fetched.
        """
        if self.remote is None:
            return self.repository.target(self._ref) or self.repository.target(f"refs/remotes/origin/{self.branch}")
        if self._clone is None:
            self._fetch(self._opened)
        else:
            self._clone.refresh(self._fetch)
        return self.repository.target(self._mirror)

    def publish(self, commit: str, expected: str | None, note: str | None) -> bool:
        """Move the branch from `expected` (None: it must not exist) to a commit whose one parent that is, or raise Conflict.

        False when that very commit was there already, by somebody else who cares for the note, too, as a rule; else the next run sees
        that there is none. The remote moves first, then the local ref. A commit equal to `expected` moves nothing. The note, set on
        the commit with its committer's name and time, is best effort: a server that declines it is logged, not raised.
        """
        self.check()
        repository = self.repository
        parents = repository.commit(commit).parents
        if commit != expected and parents != ((expected,) if expected else ()):
            raise ValueError(f"commit {commit} has the parents {parents}, expected was {expected}")
        mine = True
        if self.remote is not None and commit != expected:
            mine = wire.push(repository, self.remote, self._ref, commit, expected)
            self._follow(repository, commit)
        elif commit != expected:
            repository.swap(self._ref, commit, expected if repository.target(self._ref) is not None else None)
        if note is not None and mine:
            self._annotate(repository, commit, note)
        return mine

    def check(self) -> None:
        """Permanent when the branch must not be written: the source is read from it, it is symbolic, or it is checked out."""
        if self._same_repository() and self.branch in {*self._source.asked, self._source.branch_name(None)}:
            raise Permanent(
                f"the output branch {self.branch!r} is the source's own branch: give the output another name, or check out the "
                "source where that is checked out by mistake"
            )
        if self._clone is None:
            check_movable(self.repository, self._ref)

    def _same_repository(self) -> bool:
        """Whether output and source are one repository, also when one is the other's clone or named by another protocol."""
        if self._source.url is not None:
            theirs = {identify(self._source.url)}
        else:
            origin = wire.remote_url(self._source.repository, "origin")
            theirs = {identify(self._source.repository.common), *({identify(origin)} if origin else ())}
        return identify(self._clone.url if self._clone is not None else self._opened.common) in theirs

    def _fetch(self, repository: Repository) -> None:
        assert self.remote is not None
        depth = 1 if self._clone is not None or repository.is_shallow else None
        found = wire.observe_all(self.remote, [self._ref, NOTES], repository=repository)
        for ref, into in ((self._ref, self._mirror), (NOTES, NOTES)):
            fetch_branch(repository, self.remote, ref, into, depth=depth, found=found.get(ref))

    def _follow(self, repository: Repository, commit: str) -> None:
        """After the remote: the ref that mirrors it, and the local branch unless it has commits that the remote never had."""
        repository.point(self._mirror, commit)
        local = repository.target(self._ref)
        if local == commit:
            return
        if local is not None and not repository.descends(commit, local):
            _log.warning("%s in %s has commits of its own and stays where it is", self._ref, repository.place)
            return
        try:
            repository.swap(self._ref, commit, local)
        except Conflict as error:
            # The remote has moved, and it is the truth; whoever moved the local branch meanwhile will see that.
            _log.warning("%s", error)

    def _annotate(self, repository: Repository, commit: str, note: str) -> None:
        made = repository.commit(commit)
        complaint: GitschedError | None
        try:
            repository.note(commit, note, time=made.time, name=made.name, email=made.email)
            complaint = wire.push_aside(repository, self.remote, NOTES) if self.remote is not None else None
        except GitschedError as error:
            complaint = error
        if complaint is not None:
            # Whoever decides the same writes the same note, and the next run sees whether it is there.
            level = logging.INFO if isinstance(complaint, Conflict) else logging.WARNING
            _log.log(level, "the note on %s was not kept: %s", commit[:12], complaint)
