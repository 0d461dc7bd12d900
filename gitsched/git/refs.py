"""Refs of a local repository: update them by compare-and-swap with the git executable, and find the worktrees of branches."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shlex
import time as clock
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gitsched.git.client_hooks import explain_refusal
from gitsched.git.failures import is_aborted_by_hook, recognize_damage, summarize_output
from gitsched.git.process import GitResult, run_git
from gitsched.git.ref_locks import describe_locks
from gitsched.model.errors import Conflict, GitschedError, Permanent, Temporary
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.git.repository import Repository

_log = logging.getLogger("gitsched.git")

REF_FORMAT = re.compile(r"refs/(?!.*(?://|\.\.|@\{|[\x00-\x20\x7f~^:?*\[\\]|/\.|\.lock(?:/|$)|/$|\.$))[^/].*", re.DOTALL)
_ZERO_OID = "0" * 40
_REF_LOCK_TIMEOUT = 2.0


def check_ref(ref: str) -> str:
    """Return the ref; Permanent unless it is a full name by the rules of git-check-ref-format."""
    if len(ref) > 500 or not REF_FORMAT.fullmatch(ref):
        raise Permanent(f"not a name for a ref: {ref[:100]!r}")
    return ref


class RefMove(NamedTuple):
    """A ref that is to move from the commit `old` (None: it must not exist) to `new`."""

    ref: str
    new: str
    old: str | None


def update_ref(repository: Repository, ref: str, new: str, old: str | None) -> None:
    """Move one ref as `update_refs` does."""
    update_refs(repository, [RefMove(ref, new, old)])


def update_refs(repository: Repository, moves: Sequence[RefMove]) -> None:
    """Move all refs by compare-and-swap, or none of them.

    Conflict when a ref has another value, Temporary when another process holds a lock, Permanent for a symbolic ref and for a
    name that conflicts with another branch. The files of a worktree in which a branch is checked out are not updated; a warning
    says so.
    """
    for move in moves:
        check_ref_update(repository, check_ref(move.ref))
    branches = [move for move in moves if move.new != move.old and move.ref.startswith("refs/heads/")]
    worktrees = [(move, find_worktree(repository, move.ref)) for move in branches]
    deadline, failures = clock.monotonic() + _REF_LOCK_TIMEOUT, 0
    while (done := _run_update_refs(repository, moves)).exit_code != 0:
        failure = _explain_failure(repository, moves, done.stderr)
        failures += 1
        # Where there is no other reason, a lock may have been removed since git found it.
        repeats = isinstance(failure, _Locked) or (failures == 1 and isinstance(failure, Temporary))
        if not repeats or clock.monotonic() > deadline:
            raise recognize_damage(failure, repository)
        clock.sleep(0.05)
    for (ref, new, old), worktree in worktrees:
        if worktree is not None:
            _log.warning(
                "%s moved to %s, but %s has it checked out and still has the files of %s: run `git -C %s reset --hard` before you "
                "work there; `git worktree add --detach` avoids this",
                ref, new[:12], worktree, old[:12] if old else "no commit", shlex.quote(worktree),
            )  # fmt: skip


def _run_update_refs(repository: Repository, moves: Sequence[RefMove]) -> GitResult:
    arguments = ["update-ref", "-m", "gitsched", "--stdin"]
    data = "".join(f"option no-deref\nupdate {move.ref} {move.new} {move.old or _ZERO_OID}\n" for move in moves)
    with repository.private.hold() if repository.private is not None else contextlib.nullcontext():
        return run_git(arguments, repository=repository, data=data)


class _Locked(Temporary):
    """Another process holds the lock of a ref, or has left it behind."""


def _find_obstacle(repository: Repository, refs: Sequence[str]) -> str:
    """Return why one of some refs that do not exist cannot be created: another ref or a damaged file; "" if nothing is in the way."""
    existing = [name for name, _ in repository.list_refs("refs/")]
    for ref in refs:
        blocking = find_blocking_ref(ref, existing)
        if blocking is not None:
            return describe_blocking_ref(blocking, ref, repository.root)
        file = Path(repository.common_dir, ref)
        if file.is_file():
            return f"the file {file} is damaged: it names no commit; remove it"
    return ""


def _explain_failure(repository: Repository, moves: Sequence[RefMove], output: str) -> GitschedError:
    """Return why git did not move refs: because of what the refs are now, of a lock, of a directory, or else for git's own reason."""
    refs = " and ".join(move.ref for move in moves)
    if any(repository.resolve_ref(move.ref) != move.old for move in moves):
        return Conflict(" or ".join(f"{ref} is no longer {f'at {old}' if old else 'absent'}" for ref, _, old in moves))
    common = Path(repository.common_dir)
    locks = [*(Path(common, f"{move.ref}.lock") for move in moves), Path(repository.path, "HEAD.lock")]
    if held := [path for path in locks if path.exists()]:
        return _Locked(describe_locks(refs, held))
    obstacle = _find_obstacle(repository, [move.ref for move in moves if move.old is None])
    if obstacle:
        return Permanent(obstacle)
    action = f"cannot move {' and '.join(f'{move.ref} to {move.new}' for move in moves)}"
    if is_aborted_by_hook(output) and (refusal := explain_refusal(repository, "reference-transaction", action, output, ref=refs)):
        return refusal
    directory = next(path for path in Path(common, moves[0].ref).parents if path.exists())
    reason = f"{action}: {summarize_output(output)}"
    return Temporary(reason) if os.access(directory, os.W_OK) else Permanent(reason)


def find_blocking_ref(ref: str, existing: Iterable[str]) -> str | None:
    """Return the ref that exists and has the name of a directory of another one, or below it, so that only one of them can exist."""
    return next((name for name in existing if ref.startswith(f"{name}/") or name.startswith(f"{ref}/")), None)


def describe_blocking_ref(existing: str, ref: str, location: str) -> str:
    """Return the reason that a ref cannot be created where another one exists, and what to do."""
    return f"{existing!r} exists in {location}, so that {ref!r} cannot be created: delete one of them, or give it another name"


def find_branch_head(repository: Repository, branch: str) -> str | None:
    """Return the commit (hex) of a local branch; None if neither it nor the branch of origin exists.

    The branch of origin, as of the last fetch, counts instead if there is no local one or if it has all commits of the local one.
    """
    local, origin = (repository.resolve_ref(f"{prefix}{branch}") for prefix in ("refs/heads/", "refs/remotes/origin/"))
    return origin if local is None or (origin is not None and repository.has_ancestor(origin, local)) else local


def find_replaced_head(repository: Repository, branch: str, parent: str | None) -> str | None:
    """Return the commit from which a local branch may move to a commit with this parent: what `find_branch_head` found, or the commit of
    the local branch if that is older; None if there is no local branch."""
    local = repository.resolve_ref(f"refs/heads/{branch}")
    return local if local is None or (parent is not None and repository.has_ancestor(parent, local)) else parent


def check_ref_update(repository: Repository, ref: str) -> None:
    """Raise Permanent when the ref is symbolic."""
    target = repository.read_symbolic_ref(ref)
    if target is not None:
        raise Permanent(f"{ref} is a symbolic ref to {target}; gitsched moves only plain branches")


def find_worktree(repository: Repository, ref: str) -> str | None:
    """Return the worktree in which the branch is checked out, or None. The HEAD of a bare repository is not a worktree."""
    common = Path(repository.common_dir)
    main = {str(common.parent): common / "HEAD"} if repository.read_config("core.bare") != "true" else {}
    heads = main | list_linked_worktrees(repository)
    return next((root for root, head in heads.items() if head.exists() and head.read_text().strip() == f"ref: {ref}"), None)


def list_linked_worktrees(repository: Repository) -> dict[str, Path]:
    """Return the root directory of every linked worktree that exists, with the file that holds its HEAD."""
    found: dict[str, Path] = {}
    for linked in sorted(Path(repository.common_dir, "worktrees").glob("*")):
        pointer = linked / "gitdir"
        if pointer.exists() and (link := Path(linked, pointer.read_text().strip())).exists():
            found[str(link.resolve().parent)] = linked / "HEAD"
    return found
