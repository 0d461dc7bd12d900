"""The output branch: fetch it, and publish a commit by compare-and-swap, on the remote first."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from gitsched.git.notes import NOTES_REF, Signature, make_note, push_notes, write_note
from gitsched.git.private_clone import PrivateClone
from gitsched.git.promised_objects import promise_objects
from gitsched.git.refs import RefMove, check_ref_update, find_branch_head, find_replaced_head, update_refs
from gitsched.git.remote_refs import fetch, find_remote_url, read_remote_refs
from gitsched.git.remote_refs import push as push_commit
from gitsched.git.repository import Repository
from gitsched.git.source import RemoteSource, SourceRepository, fetch_branch, parse_branch
from gitsched.git.torn_files import check_ref_file
from gitsched.git.urls import check_url, identify_repository, is_url, redact
from gitsched.model.commit import Commit
from gitsched.model.errors import Conflict, GitschedError, Permanent
from gitsched.model.finding import OUTPUT_NOT_FETCHED, Finding, format_names

_log = logging.getLogger("gitsched.git")


def list_state_refs(branch: str, prefix: str) -> tuple[str, str]:
    """Return the refs of the plan and of the rows of an output: `prefix` is its directory in the branch, with a slash, or ""."""
    directory = f"/path-{hashlib.sha256(prefix.encode()).hexdigest()[:12]}" if prefix else ""
    return f"refs/gitsched/state/{branch}{directory}/plan", f"refs/gitsched/state/{branch}{directory}/rows"


def open_output(
    source: SourceRepository, *, branch: str, location: str | None, push: str | None, cache: Path, publishes: bool = True
) -> OutputRepository:
    """Open the output branch in the source's repository or in the repository at another path or URL (`location`).

    `push` names a remote of that repository, or a URL, to which the branch is also pushed. A location that is a URL is always
    pushed to. Permanent when the branch is a source branch, a tag or a symbolic ref.

    A remote of a partial clone is read and written through a private clone. So is one of a shallow clone for a caller that never
    `publishes`: what it fetches would otherwise stay in the shallow clone.
    """
    url = check_push(source, location, push)
    if location is None or (url is not None and url == source.url):
        repository, clone = source.repository, source.clone if isinstance(source, RemoteSource) else None
    elif is_url(location):
        clone = PrivateClone(location, cache)
        repository = clone.repository
    else:
        repository, clone = Repository(location), None
        if repository.is_partial:
            promise_objects(repository, cache)
    remote = clone.url if clone is not None else _find_remote(repository, push)
    if clone is None and remote is not None and (repository.is_partial or (repository.is_shallow and not publishes)):
        clone = PrivateClone(remote, cache, settings=repository)
    name = parse_branch(branch)
    remote_name, slash, rest = name.partition("/")
    if slash and repository.read_config(f"remote.{remote_name}.url") is not None:
        raise Permanent(f"{name!r} begins with the name of the remote {remote_name}; give the branch without it: {rest}")
    reads_source = not publishes and clone is not None and location is None
    output = OutputRepository(source, name, repository, clone, remote, push, cache, reads_source=reads_source)
    output.check_writable()
    return output


def check_push(source: SourceRepository, location: str | None, push: str | None) -> str | None:
    """Return where the output is, None for the repository of a local source. Raise Permanent if `push` is given for a URL."""
    url = location if location is not None else source.url
    if push is not None and url is not None and is_url(url):
        raise Permanent(f"the output is already pushed to {redact(url)}; --push is only for a local repository")
    return url


def _find_remote(repository: Repository, push: str | None) -> str | None:
    if push is None:
        return None
    url = find_remote_url(repository, push) if not is_url(push) and not push.startswith("/") else push
    if url is None:
        raise Permanent(f"{repository.root} has no remote {push!r}")
    return check_url(url)


class OutputRepository:
    """The output branch. `branch` is its short name; `remote` is the URL it is pushed to, or None. `found_refs` are the refs that the
    remote had at the last fetch, of those that were asked for, and `unfetched` says whether a clone may lack the branch of its origin."""

    def __init__(
        self,
        source: SourceRepository,
        branch: str,
        repository: Repository,
        clone: PrivateClone | None,
        remote: str | None,
        push: str | None,
        cache: Path,
        *,
        reads_source: bool = False,
    ) -> None:
        self.branch = branch
        self.remote = remote
        self.found_refs: dict[str, str] = {}
        self.unfetched: tuple[Finding, ...] = ()
        self._cache = cache
        self._reads_source = reads_source
        self._state_clone: PrivateClone | None = None
        self._source = source
        self._opened = repository
        self.location = repository.common_dir
        """The directory of the repository that the caller has opened, which may be read through a private clone."""
        self._clone = clone
        self._ref = f"refs/heads/{branch}"
        self._push = push
        self._unpushed: str | None = None
        named = push is not None and push != remote
        # A ref keeps the remote's commit, so that garbage collection does not remove it before the next run.
        self._tracking_ref = (
            self._ref if clone is not None else f"refs/remotes/{push}/{branch}" if named else f"refs/gitsched/{self._ref[5:]}"
        )

    @property
    def repository(self) -> Repository:
        """The repository that receives new output commits. Read it each time: a damaged private clone is replaced."""
        return self._clone.repository if self._clone is not None else self._opened

    @property
    def state_repository(self) -> Repository:
        """The repository for the state of plans: that of the output, and for a remote its private clone."""
        if self.remote is None or self._clone is not None:
            return self.repository
        return self._open_state_clone().repository

    def _open_state_clone(self) -> PrivateClone:
        if self._state_clone is None:
            assert self.remote is not None
            self._state_clone = PrivateClone(self.remote, self._cache)
        return self._state_clone

    def has_state(self, prefix: str) -> bool:
        """Return whether the state of a plan of the output in a directory exists, on the remote or here."""
        ref, _ = list_state_refs(self.branch, prefix)
        if self.remote is None or self._clone is not None:
            return ref in self.found_refs or self.repository.resolve_ref(ref) is not None
        return ref in self.found_refs or (
            self._open_state_clone().path.exists() and self.state_repository.resolve_ref(ref) is not None
        )

    def fetch(self, others: Sequence[str] = ()) -> str | None:
        """Return the commit (hex) of the output branch, fetched with its notes when there is a remote; None when there is no such
        branch. The remote is asked for the `others` in the same request.

        A clone without such a branch, or with an older one, continues from the branch of its origin, as of the last fetch. A remote
        without such a branch continues from the local one, if there is one: a run pushes its commits.
        """
        self._opened.forget_written_objects()
        if self.remote is None:
            head = find_branch_head(self.repository, self.branch)
            self.unfetched = self._find_unfetched() if head is None else ()
            if head is None and Path(self.location, self._ref).is_file():
                check_ref_file(self.repository, self._ref)
            return head
        if self._clone is None:
            self._fetch_remote(self._opened, others)
        else:
            self._refresh(lambda repository: self._fetch_remote(repository, others))
        return self.repository.resolve_ref(self._tracking_ref) or self._unpushed

    def describe_missing(self) -> str:
        """Return that there is no branch, and what to do."""
        if self.unfetched:
            return f"there is no output branch {self.branch} here: {self.unfetched[0].message}"
        return f"there is no output branch {self.branch} yet: run gitsched reconcile first"

    def _find_unfetched(self) -> tuple[Finding, ...]:
        """Return the warning that the repository may lack the branch of a remote: of one that has it, or of that which was cloned."""
        remotes = self._opened.list_remotes()
        having = [name for name in remotes if self._opened.resolve_ref(f"refs/remotes/{name}/{self.branch}") is not None]
        name = next(iter(having), "origin" if "origin" in remotes else next(iter(remotes), ""))
        if having:
            fact = f"the remote {name} has the output branch {self.branch}, and only that of origin counts by itself"
        elif name and (how := self._describe_clone(name, remotes[name])):
            fact = f"this clone of {name} {how}, so that it is not known whether {name} has the output branch {self.branch}"
        else:
            return ()
        cure = f"pass --fetch {name}, or for gitsched reconcile --push {name}, or run git fetch {name} {self.branch}:{self.branch}"
        return (Finding("warning", OUTPUT_NOT_FETCHED, f"{fact}: {cure}"),)

    def _describe_clone(self, name: str, refspecs: Sequence[str]) -> str:
        """Return what makes a clone of a remote lack some of its branches; "" if nothing does."""
        wanted = [spec.lstrip("+").partition(":")[0] for spec in refspecs if not spec.startswith("^")]
        excluded = [spec[1:] for spec in refspecs if spec.startswith("^")]
        if not any("*" in pattern and fnmatchcase(self._ref, pattern) for pattern in wanted):
            branches = [pattern.removeprefix("refs/heads/") for pattern in wanted]
            return f"fetches only {format_names(branches)}" if branches else "fetches no branches by itself"
        if any(fnmatchcase(self._ref, pattern) for pattern in excluded):
            return f"does not fetch {self.branch}"
        if self._opened.is_shallow:
            return "is shallow"
        is_checkout = self._opened.head_branch() is None and self._opened.read_symbolic_ref(f"refs/remotes/{name}/HEAD") is None
        return f"has a detached HEAD and no {name}/HEAD, as in CI" if is_checkout else ""

    def fetch_history(self, commit: str, depth: int) -> Repository:
        """Fetch at most `depth` commits of the history of a commit of the branch, if they are only on the remote, and return the
        repository. A failure is logged: they stay missing."""
        remote = self.remote
        if remote is not None and self.repository.is_shallow:
            try:
                if self._clone is None:
                    fetch(self.repository, remote, [commit], depth=depth)
                else:
                    self._refresh(lambda clone: fetch(clone, remote, [commit], depth=depth))
            except GitschedError as error:
                _log.warning("the history of %s is not available: %s", self._ref, error)
        return self.repository

    def publish(self, commit: str, expected: str | None, note: str | None, between: str | None = None) -> bool:
        """Move the branch from `expected` (None: it must not exist) to a commit whose only parent is `expected`, or the commit `between`
        that follows it; or raise Conflict.

        Return False when another process had already published the same commit; that process also writes the note, and if it did
        not, the next run finds the note missing. The remote moves first, then the local ref. A commit equal to `expected` moves
        nothing. The note gets the name and time of the commit's committer. A server that rejects the note is logged, not raised.
        """
        self._check_is_no_source()
        if self.remote is not None:  # `update_ref` checks a local branch
            self._check_is_no_symbolic_ref()
        repository = self.repository
        published = True
        self.push_local_branch()
        with repository.written.keep():
            written = repository.commit(commit)
            parents = repository.commit(between).parents if between and written.parents == (between,) else written.parents
            if commit != expected and parents != ((expected,) if expected else ()):
                raise ValueError(f"commit {commit} has the parents {parents}, expected was {expected}")
            if self.remote is not None and commit != expected:
                published = push_commit(repository, self.remote, self._ref, commit, expected, rewrite=between is not None)
                self._update_local_refs(repository, commit)
            elif commit != expected:
                move = RefMove(self._ref, commit, find_replaced_head(repository, self.branch, expected))
                if note is not None and self._move_with_note(repository, move, written, note):
                    return True
                update_refs(repository, [move])
            if note is not None and published:
                self._write_note(repository, written, note)
        return published

    def push_local_branch(self) -> None:
        """Push the local branch, so that the remote continues its history. No effect where the remote has the branch already."""
        local, self._unpushed = self._unpushed, None
        if local is None:
            return
        assert self.remote is not None
        push_commit(self._opened, self.remote, self._ref, local, None, rewrite=True)
        self._opened.set_ref(self._tracking_ref, local)
        _log.info("pushed the commits of the local branch %s to %s, which had no such branch", self.branch, redact(self.remote))
        failure = push_notes(self._opened, self.remote, NOTES_REF) if self._opened.resolve_ref(NOTES_REF) else None
        if failure is not None:
            _log.warning("the notes on %s were not pushed: %s", self._ref, failure)

    def update_local_branch(self, commit: str) -> None:
        """Move the local branch forward to the remote's commit, as a run does that was interrupted after its push. No effect for a
        local branch that does not exist or has other commits."""
        local = self._opened.resolve_ref(self._ref) if self._clone is None and self.remote is not None else None
        if local not in (None, commit) and self._opened.has_ancestor(commit, local):
            self._update_local_refs(self._opened, commit)

    def check_writable(self) -> None:
        """Raise Permanent when the branch must not be written: it is a source branch or a symbolic ref."""
        self._check_is_no_source()
        self._check_is_no_symbolic_ref()

    def _check_is_no_source(self) -> None:
        if self._shares_repository() and self.branch in {*self._source.requested_branches, self._source.branch_name(None)}:
            raise Permanent(
                f"the output branch {self.branch!r} is the source branch: give the output branch another name (spec.output.branch in "
                "gitsched.yaml, or --output-branch), or check out the source branch if the output branch is checked out by mistake"
            )

    def _check_is_no_symbolic_ref(self) -> None:
        if self._clone is None:
            check_ref_update(self.repository, self._ref)

    def _shares_repository(self) -> bool:
        """Return whether output and source are the same repository, even if one is a clone of the other or uses another protocol."""
        if self._opened is self._source.repository:
            return True
        if self._source.url is not None:
            source_ids = {identify_repository(self._source.url)}
        else:
            origin = find_remote_url(self._source.repository, "origin")
            source_ids = {
                identify_repository(self._source.repository.common_dir),
                *({identify_repository(origin)} if origin else ()),
            }
        return identify_repository(self._clone.url if self._clone is not None else self._opened.common_dir) in source_ids

    def _refresh(self, work: Callable[[Repository], None]) -> None:
        assert self._clone is not None
        self._clone.refresh(work)
        if self._reads_source:
            self.repository.read_also(self._opened, copies=False)

    def _fetch_remote(self, repository: Repository, others: Sequence[str]) -> None:
        assert self.remote is not None
        depth = 1 if self._clone is not None or repository.is_shallow else None
        found = self.found_refs = read_remote_refs(
            self.remote, [self._ref, NOTES_REF, *others], repository=repository, others=others
        )
        self._unpushed = self._opened.resolve_ref(self._ref) if self._push is not None and self._ref not in found else None
        if self._unpushed is not None and self._clone is not None and not self._reads_source:
            raise Permanent(
                f"{redact(self.remote)} has no branch {self.branch}, but {self._opened.root} has one, and it is a partial or shallow "
                f"clone: run git push {redact(self._push or '')} {self.branch} there first"
            )
        fetch_branch(repository, self.remote, self._ref, self._tracking_ref, depth=depth, found=found.get(self._ref))
        if self._unpushed is None or NOTES_REF in found:  # otherwise the local notes are those of the local branch
            fetch_branch(repository, self.remote, NOTES_REF, NOTES_REF, depth=depth, found=found.get(NOTES_REF))

    def _update_local_refs(self, repository: Repository, commit: str) -> None:
        """Update the ref that mirrors the remote, and the local branch unless it has commits that the remote never had."""
        repository.set_ref(self._tracking_ref, commit)
        local = repository.resolve_ref(self._ref)
        if local == commit:
            return
        if local is not None and not repository.has_ancestor(commit, local):
            _log.warning("%s in %s has commits that are not on the remote and is not updated", self._ref, repository.root)
            return
        try:
            update_refs(repository, [RefMove(self._ref, commit, local)])
        except Conflict as error:
            # The remote decides. The process that moved the local branch meanwhile sees the remote's commit in its next run.
            _log.warning("%s", error)

    def _move_with_note(self, repository: Repository, move: RefMove, commit: Commit, note: str) -> bool:
        """Move the local branch and the ref of the notes together; False if that fails, and then neither moves."""
        try:
            noted = make_note(repository, commit.oid, note, _sign_note(commit))
            update_refs(repository, [move] if noted is None else [move, noted])
        except GitschedError as error:
            _log.debug("the branch moves before its note: %s", error)
            return False
        return True

    def _write_note(self, repository: Repository, commit: Commit, note: str) -> None:
        failure: GitschedError | None
        try:
            write_note(repository, commit.oid, note, _sign_note(commit))
            failure = push_notes(repository, self.remote, NOTES_REF) if self.remote is not None else None
        except GitschedError as error:
            failure = error
        if failure is not None:
            # Another process with the same decision writes the same note, and the next run checks it.
            level = logging.INFO if isinstance(failure, Conflict) else logging.WARNING
            _log.log(level, "the note on %s was not written: %s", commit.oid[:12], failure)


def _sign_note(commit: Commit) -> Signature:
    return Signature(commit.time, commit.name, commit.email)
