"""Local refs and notes: update a ref by compare-and-swap under git's own lock, read and write commit notes."""

from __future__ import annotations

import re
import time as clock
from datetime import datetime
from pathlib import Path

from gitsched.git.process import run_git
from gitsched.git.repository import Repository
from gitsched.model.errors import Conflict, Permanent, Temporary
from gitsched.model.planned_files import NewBlob

NOTES_REF = "refs/notes/hydrator.metadata"
_LOCK_ERROR = re.compile(r"Unable to create '(.+?\.lock)': File exists")
_CONFLICT_ERROR = re.compile(r"but expected [0-9a-f]+|reference already exists|unable to resolve reference|reference is missing")
_REF_FORMAT = re.compile(r"refs/(?!.*(?://|\.\.|@\{|[\x00-\x20\x7f~^:?*\[\\]|/\.|\.lock(?:/|$)|/$|\.$))[^/].*", re.DOTALL)
_ZERO_OID = "0" * 40
_REF_LOCK_TIMEOUT = 2.0
_NOTE_ATTEMPTS = 5


def check_ref(ref: str) -> str:
    """The ref itself; Permanent unless it is a full name by the rules of git-check-ref-format."""
    if len(ref) > 500 or not _REF_FORMAT.fullmatch(ref):
        raise Permanent(f"not a name for a ref: {ref[:100]!r}")
    return ref


def update_ref(repository: Repository, ref: str, new: str, old: str | None) -> None:
    """Move `ref` from `old` (None: it must not exist) to `new`.

    Conflict when it is elsewhere, Temporary when another process holds its lock, Permanent for a symbolic ref, for a branch that is
    checked out in a worktree (its files would silently go stale) and for a name that another branch's name stands in the way of.
    """
    check_ref_update(repository, check_ref(ref))
    deadline = clock.monotonic() + _REF_LOCK_TIMEOUT
    while True:
        done = run_git(
            ["update-ref", "--no-deref", "-m", "gitsched", "--end-of-options", ref, new, old or _ZERO_OID], git_dir=repository.path
        )
        if done.exit_code == 0:
            return
        lock = _LOCK_ERROR.search(done.stderr)
        if lock is None or clock.monotonic() > deadline:
            break
        clock.sleep(0.05)
    if lock is not None:
        raise Temporary(f"{ref} is locked by {lock[1]}; remove that file if no other Git process is running")
    if _CONFLICT_ERROR.search(done.stderr):
        raise Conflict(f"{ref} is no longer {f'at {old}' if old else 'absent'}")
    raise Permanent(f"{ref} cannot be moved to {new}: {done.stderr.strip()}")


def check_ref_update(repository: Repository, ref: str) -> None:
    """Permanent when the ref is symbolic or a branch that some worktree has checked out."""
    target = repository.read_symbolic_ref(ref)
    if target is not None:
        raise Permanent(f"{ref} is a symbolic ref to {target}; gitsched moves only plain branches")
    place = find_worktree(repository, ref)
    if place is not None:
        raise Permanent(
            f"{ref} is checked out in {place}; moving it would leave that worktree's files behind: check out another branch there"
        )


def find_worktree(repository: Repository, ref: str) -> str | None:
    """The worktree that has the branch checked out, or None. The HEAD of a bare repository is no worktree."""
    common = Path(repository.common_dir)
    heads = [(common / "HEAD", str(common.parent))] if repository.read_config("core.bare") != "true" else []
    for linked in sorted((common / "worktrees").glob("*")):
        pointer = linked / "gitdir"
        if pointer.exists() and Path(pointer.read_text().strip()).exists():
            heads.append((linked / "HEAD", str(Path(pointer.read_text().strip()).parent)))
    return next((place for head, place in heads if head.exists() and head.read_text().strip() == f"ref: {ref}"), None)


def write_note(
    repository: Repository, commit: str, text: str, ref: str = NOTES_REF, *, time: datetime, name: str, email: str
) -> None:
    """Set the note of a commit; Conflict when five attempts all lost against other writers."""
    for attempt in range(_NOTE_ATTEMPTS):
        head = repository.resolve_ref(ref)
        base = repository.commit(head).tree if head else None
        flat, fanned = commit, f"{commit[:2]}/{commit[2:]}"
        path = fanned if base is not None and _has_fanout(repository, base) else flat
        other = flat if path == fanned else fanned
        data = NewBlob(text.rstrip("\n").encode() + b"\n")
        tree = repository.write_tree({path: data, other: None}, base=base, read=repository)
        if tree == base:
            return
        made = repository.commit_tree(tree, [head] if head else [], "Notes added by gitsched", name=name, email=email, time=time)
        try:
            update_ref(repository, ref, made, head)
        except Conflict:
            if attempt == _NOTE_ATTEMPTS - 1:
                raise
        else:
            return


def read_note(repository: Repository, commit: str, ref: str = NOTES_REF) -> str | None:
    """The note of a commit, or None."""
    head = repository.resolve_ref(ref)
    if head is None:
        return None
    tree = repository.commit(head).tree
    for path in (commit, f"{commit[:2]}/{commit[2:]}"):
        found = repository.find_entry(tree, path)
        if found is not None:
            return repository.blob(found[0]).decode("utf-8", "replace")
    return None


def _has_fanout(repository: Repository, tree: str) -> bool:
    """Whether git has split the notes into directories of two hex digits, as it does once they are many."""
    return any(len(name) == 2 and mode == 0o040000 for name, (_, mode) in repository.list_directory(tree, "").items())
