"""Git notes: read, list, write by compare-and-swap, and push."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from gitsched.git.refs import RefMove, check_ref, update_refs
from gitsched.git.remote_refs import explain_push, run_push
from gitsched.git.torn_files import is_torn_ref, replace_torn_ref
from gitsched.model.errors import Conflict, GitschedError, Permanent, Temporary
from gitsched.model.planned_files import NewBlob
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.git.repository import Repository

_log = logging.getLogger("gitsched.git")

NOTES_REF = "refs/notes/hydrator.metadata"
MAX_NOTE_SIZE = 1 << 20
"""Bytes of a note; gitsched writes far fewer."""
_ATTEMPTS = 5


class Signature(NamedTuple):
    """Who writes a note, and when."""

    time: datetime
    name: str
    email: str


def write_note(repository: Repository, commit: str, text: str, signature: Signature, ref: str = NOTES_REF) -> None:
    """Set the note of a commit; Conflict when five attempts fail because of concurrent writers. Notes that cannot be read begin anew."""
    for attempt in range(_ATTEMPTS):
        move = make_note(repository, commit, text, signature, ref)
        if move is None:
            return
        try:
            update_refs(repository, [move])
        except Conflict:
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            return


def make_note(repository: Repository, commit: str, text: str, signature: Signature, ref: str = NOTES_REF) -> RefMove | None:
    """Write the objects of a note, and return how its ref has to move; None if the commit has this note already."""
    head = repository.resolve_ref(ref)
    if head is None and Path(repository.common_dir, ref).is_file() and is_torn_ref(repository, ref):
        _warn_once(f"the file of {ref} is damaged: the notes are written again from the start")
        replace_torn_ref(repository, ref, None)
    base = _read_notes(repository, ref, head)
    data = NewBlob(text.rstrip("\n").encode() + b"\n")
    try:
        tree = _write_note_tree(repository, commit, data, base)
    except Permanent as error:
        _warn_once(f"{ref} cannot be read and is written again from the start: {error}")
        base, tree = None, _write_note_tree(repository, commit, data, None)
    if tree == base:
        return None
    parents = [head] if head and base else []
    time, name, email = signature
    return RefMove(ref, repository.commit_tree(tree, parents, "Notes added by gitsched", name=name, email=email, time=time), head)


def _write_note_tree(repository: Repository, commit: str, data: NewBlob, base: str | None) -> str:
    flat, fanned = commit, f"{commit[:2]}/{commit[2:]}"
    path = fanned if base is not None and _has_fanout(repository, base) else flat
    return repository.write_tree({path: data, flat if path == fanned else fanned: None}, base=base, read=repository)


def read_note(repository: Repository, commit: str, ref: str = NOTES_REF) -> str | None:
    """Return the note of a commit; None if there is none, or if it is too large or cannot be read: whoever can push may have edited it."""
    tree = _read_notes(repository, ref, repository.resolve_ref(ref))
    if tree is None:
        return None
    try:
        for path in (commit, f"{commit[:2]}/{commit[2:]}"):
            found = repository.find_entry(tree, path)
            if found is not None and found[1] & 0o170000 == 0o100000:
                data = repository.read_small_blob(found[0], MAX_NOTE_SIZE)
                if data is not None:
                    return data.decode("utf-8", "replace")
    except Permanent as error:
        _warn_once(f"the note of commit {commit} in {ref} is not read: {error}")
    return None


def list_noted_commits(repository: Repository, ref: str = NOTES_REF) -> Iterator[str]:
    """Yield the ids of the objects that have a note."""
    tree = _read_notes(repository, ref, repository.resolve_ref(ref))
    if tree is None:
        return
    for name in repository.list_directory(tree, ""):
        if len(name) == 2:  # see _has_fanout
            with suppress(Permanent):  # a directory that cannot be read names no commit
                yield from (name + rest for rest in repository.list_directory(tree, name))
        else:
            yield name


def _read_notes(repository: Repository, ref: str, head: str | None) -> str | None:
    """Return the tree of the notes; None if there are none, or if they cannot be read, as after a failure of a disk."""
    if head is None:
        return None
    try:
        tree = repository.commit(head).tree
        repository.list_directory(tree, "")
    except Permanent as error:
        _warn_once(f"{ref} cannot be read and is written again from the start: {error}")
        return None
    return tree


@lru_cache(maxsize=16)
def _warn_once(text: str) -> None:
    """Log a warning: a run reads the notes of many commits."""
    _log.warning("%s", text)


def _has_fanout(repository: Repository, tree: str) -> bool:
    """Return whether git has split the notes into directories of two hex digits, as it does for many notes."""
    return any(len(name) == 2 and mode == 0o040000 for name, (_, mode) in repository.list_directory(tree, "").items())


def push_notes(repository: Repository, url: str, ref: str) -> GitschedError | None:
    """Push a notes ref without force and return the error, or None. Conflict: another process pushes it, too."""
    try:
        done = run_push(repository, url, [], [f"{check_ref(ref)}:{ref}"])
    except Temporary as error:
        return error
    if done.succeeded:
        return None
    failure = explain_push(repository, url, ref, done)
    # The server gives no reason that lasts, so that another process holds its lock.
    refused = done.flags.get(ref) == "!" and isinstance(failure, Temporary)
    return Conflict(str(failure)) if refused or ref in done.rejected_here else failure
