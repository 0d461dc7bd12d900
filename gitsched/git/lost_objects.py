"""Find the branch that has lost objects, and its newest complete commit, to move it back there or to say how to repair it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from gitsched.git.notes import list_noted_commits
from gitsched.git.objects import LostObject
from gitsched.git.process import run_git
from gitsched.git.ref_locks import describe_locks
from gitsched.git.refs import update_ref
from gitsched.git.repository import Repository
from gitsched.git.torn_files import is_torn_ref, list_torn_objects, move_torn_objects, replace_torn_ref
from gitsched.model.errors import Permanent, Temporary
from gitsched.named_tuples import NamedTuple

_MAX_BRANCHES = 50
_MAX_COMMITS = 20
_TIMEOUT = 60.0
_HEADS = "refs/heads/"
_OID = re.compile(r"[0-9a-f]{40}")


def describe_loss(error: LostObject) -> Permanent:
    """Return the error with the command that moves the incomplete branch back to its newest complete commit."""
    if not error.oid:
        return Permanent(str(error))
    repository = Repository(error.path)
    if error.oid in list_torn_objects(repository):
        return Permanent(
            f"{error}; if only the output branch needs it, `gitsched reconcile` writes it again; else get it from another clone: move "
            f"the file of the object away, and run `git -C {shlex.quote(repository.root)} fetch --refetch`"
        )
    for ref in _list_branches(repository):
        if not _is_complete(repository, ref):
            return Permanent(f"{error}; {_describe_cure(repository, ref)}")
    return Permanent(str(error))


class Restored(NamedTuple):
    """A branch that had the commit `lost` ("" for a damaged file of the ref) and continues from the commit `complete` ("": it begins anew).
    `torn` objects were moved out of the way."""

    lost: str
    complete: str
    torn: int


def restore_branch(
    error: LostObject, branch: str, others: Collection[str], is_own: Callable[[Repository, str], bool]
) -> Restored | None:
    """Move a branch that has lost objects back to its newest complete commit, by compare-and-swap. Damaged objects of it and of the
    `others` (refs) are moved out of the way first, so that they are written again.

    None if the branch is complete, has no complete commit, the one that it has is not `is_own`, or other refs need a damaged object. Raise
    Conflict if another process moves the branch.
    """
    repository, ref = Repository(error.path), f"{_HEADS}{branch}"
    if not error.oid:
        return _restore_ref(repository, ref, is_own) if is_torn_ref(repository, ref) else None
    torn = 0 if _is_missing(repository, error.oid) else move_torn_objects(repository, {ref, *others}, error.oid)
    repository, head = Repository(error.path), repository.resolve_ref(ref)
    if not torn and not _is_missing(repository, error.oid):
        return None
    if head is None or _is_complete(repository, ref):
        return Restored(head or "", head or "", torn) if torn else None
    complete = _find_complete(repository, ref)
    if complete is None or not is_own(repository, complete):
        return None
    update_ref(repository, ref, complete, head)
    return Restored(head, complete, torn)


def _restore_ref(repository: Repository, ref: str, is_own: Callable[[Repository, str], bool]) -> Restored:
    """Let a branch whose file is damaged continue from its newest complete commit, or begin anew where none is known."""
    complete = next((commit for commit in _list_known(repository, ref) if _is_complete(repository, commit)), None)
    if complete is not None and not is_own(repository, complete):
        complete = None
    try:
        replace_torn_ref(repository, ref, complete)
    except FileExistsError as error:
        raise Temporary(describe_locks(ref, [Path(error.filename)])) from error
    return Restored("", complete or "", 0)


def _list_known(repository: Repository, ref: str) -> list[str]:
    """Return the commits that a branch is known to have had, the newest first: by its log, else by the notes on them."""
    logged = list(_read_log(repository, ref))
    noted = [repository.commit(oid) for oid in list_noted_commits(repository) if repository.has_commit(oid)]
    return [*logged, *(commit.oid for commit in sorted(noted, key=lambda commit: commit.time, reverse=True)[:_MAX_COMMITS])]


def _is_missing(repository: Repository, oid: str) -> bool:
    try:
        return not repository.has(oid)
    except Permanent:
        return False


def _find_complete(repository: Repository, ref: str) -> str | None:
    return next((commit for commit in _list_earlier(repository, ref) if _is_complete(repository, commit)), None)


def _describe_cure(repository: Repository, ref: str) -> str:
    git = f"git -C {shlex.quote(repository.root)} update-ref"
    complete = _find_complete(repository, ref)
    if complete is None:
        return (
            f"{ref} is not complete: fetch it again, or delete it with `{git} -d {ref}`; the next run writes an output branch anew"
        )
    return (
        f"{ref} is not complete: fetch it again, or run `{git} {ref} {complete}`, which moves it back to its newest complete commit; "
        "the next run writes what an output branch lacks anew"
    )


def _list_branches(repository: Repository) -> list[str]:
    done = run_git(["for-each-ref", f"--count={_MAX_BRANCHES}", "--format=%(refname)", _HEADS], repository=repository)
    found = done.stdout.split()
    if done.exit_code == 0:
        return found
    # git lists no branches where the commit of one is missing.
    loose = Path(repository.common_dir, _HEADS)
    return sorted(f"{_HEADS}{path.relative_to(loose).as_posix()}" for path in loose.rglob("*") if path.is_file())[:_MAX_BRANCHES]


def _list_earlier(repository: Repository, ref: str) -> Iterator[str]:
    """Yield the earlier commits of a branch, the newest first: its history, or where that is not available, its reflog."""
    done = run_git(["rev-list", "--first-parent", "--skip=1", f"-n{_MAX_COMMITS}", ref, "--"], repository=repository)
    if done.exit_code == 0:
        yield from done.stdout.split()
        return
    yield from _read_log(repository, ref)


def _read_log(repository: Repository, ref: str) -> Iterator[str]:
    """Yield the commits to which a branch has moved, the newest first, and those from which it has."""
    log = Path(repository.common_dir, "logs", ref)
    lines = log.read_text("utf-8", "replace").splitlines()[-_MAX_COMMITS:] if log.is_file() else []
    oids = (oid for line in reversed(lines) for oid in reversed(line.split(" ", 2)[:2]))
    yield from dict.fromkeys(oid for oid in oids if _OID.fullmatch(oid) and oid.strip("0"))


def _is_complete(repository: Repository, revision: str) -> bool:
    arguments = ["rev-list", "--objects", "--quiet", revision, "--"]
    return run_git(arguments, repository=repository, timeout=_TIMEOUT).exit_code == 0
