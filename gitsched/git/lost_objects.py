"""Find the branch that has lost objects, and its newest complete commit, to move it back there or to say how to repair it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

from gitsched.git.process import run_git
from gitsched.git.refs import update_ref
from gitsched.git.repository import LostObject, Repository
from gitsched.model.errors import Permanent

_MAX_BRANCHES = 50
_MAX_COMMITS = 20
_TIMEOUT = 60.0
_HEADS = "refs/heads/"


def describe_loss(error: LostObject) -> Permanent:
    """Return the error with the command that moves the incomplete branch back to its newest complete commit."""
    repository = Repository(error.path)
    for ref in _list_branches(repository):
        if not _is_complete(repository, ref):
            return Permanent(f"{error}; {_describe_cure(repository, ref)}")
    return Permanent(str(error))


def restore_branch(error: LostObject, branch: str, is_own: Callable[[Repository, str], bool]) -> tuple[str, str] | None:
    """Move a branch that has lost objects back to its newest complete commit, by compare-and-swap, and return both commits.

    None if the branch is complete, has no complete commit, or the one that it has is not `is_own`. Raise Conflict if another process
    moves the branch.
    """
    repository, ref = Repository(error.path), f"{_HEADS}{branch}"
    head = repository.resolve_ref(ref)
    if head is None or _is_complete(repository, ref):
        return None
    complete = _find_complete(repository, ref)
    if complete is None or not is_own(repository, complete):
        return None
    update_ref(repository, ref, complete, head)
    return head, complete


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
    log = Path(repository.common_dir, "logs", ref)
    lines = log.read_text("utf-8", "replace").splitlines()[-_MAX_COMMITS:] if log.is_file() else []
    yield from (line.partition(" ")[0] for line in reversed(lines) if line.strip("0"))


def _is_complete(repository: Repository, revision: str) -> bool:
    arguments = ["rev-list", "--objects", "--quiet", revision, "--"]
    return run_git(arguments, repository=repository, timeout=_TIMEOUT).exit_code == 0
