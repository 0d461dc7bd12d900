"""Files of a repository that a crash has torn: loose objects that nobody can read, and the file of a ref that names no commit.

Those of an output branch can be written again. Nothing is deleted: what is torn is moved to `gitsched/torn` in the Git directory.
"""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from collections.abc import Collection
from itertools import islice
from pathlib import Path

from gitsched.git.objects import LostObject
from gitsched.git.process import run_git
from gitsched.git.repository import Repository

MAX_OBJECTS = 100_000
"""Loose objects of a repository that are checked."""
TORN = "gitsched/torn"
_TIMEOUT = 60.0
_CHUNK = 1 << 20
_DIRECTORY, _REST, _OID = re.compile(r"[0-9a-f]{2}"), re.compile(r"[0-9a-f]{38}"), re.compile(r"[0-9a-f]{40}")


def move_torn_objects(repository: Repository, refs: Collection[str], oid: str) -> int:
    """Move torn loose objects out of the way, unless anything but these refs needs them, and return how many. The object `oid` must be one
    of them; else nothing is moved."""
    torn = list_torn_objects(repository)
    if oid not in torn:
        return 0
    needed = _list_needed(repository, refs)
    moved = {name: path for name, path in torn.items() if needed is not None and name not in needed}
    if oid not in moved:
        return 0
    place = Path(repository.common_dir, TORN)
    place.mkdir(parents=True, exist_ok=True)
    for name, path in moved.items():
        path.rename(place / name)
    return len(moved)


def list_torn_objects(repository: Repository) -> dict[str, Path]:
    """Return the loose objects, with their files, whose content is not the one that their names promise."""
    objects = Path(repository.common_dir, "objects")
    files = (
        path
        for directory in sorted(objects.iterdir())
        if _DIRECTORY.fullmatch(directory.name)
        for path in directory.iterdir()
        if _REST.fullmatch(path.name)
    )
    names = ((path.parent.name + path.name, path) for path in islice(files, MAX_OBJECTS))
    return {name: path for name, path in names if _is_torn(path, name)}


def _is_torn(path: Path, oid: str) -> bool:
    """Return whether a loose object is damaged; False for one that cannot be opened or read, because nothing is known of it then."""
    stream, digest = zlib.decompressobj(), hashlib.sha1(usedforsecurity=False)
    try:
        with path.open("rb") as file:
            while piece := file.read(_CHUNK):
                digest.update(stream.decompress(piece))
            digest.update(stream.flush())
    except zlib.error:
        return True
    except OSError:
        return False
    return digest.hexdigest() != oid


def _list_needed(repository: Repository, refs: Collection[str]) -> set[str] | None:
    """Return the objects that other refs, a detached HEAD or the index of a worktree need; None if git cannot list them all."""
    files = [Path(repository.common_dir, "HEAD"), *Path(repository.common_dir, "worktrees").glob("*/HEAD")]
    heads = [text for file in files if _OID.fullmatch(text := file.read_text("ascii", "replace").strip())]
    others = [*(oid for name, oid in repository.list_refs("refs/") if name not in refs), *heads]
    arguments = ["rev-list", "--objects", "--no-object-names", "--indexed-objects", "--stdin"]
    done = run_git(arguments, repository=repository, data="".join(f"{oid}\n" for oid in others), timeout=_TIMEOUT)
    return set(done.stdout.split()) if done.exit_code == 0 else None


def is_torn_ref(repository: Repository, ref: str) -> bool:
    """Return whether the file of a ref has neither the name of a commit nor that of another ref."""
    try:
        content = Path(repository.common_dir, ref).read_bytes()
    except OSError:
        return False
    return not re.fullmatch(rb"(?:ref: [^\0]+|[0-9a-f]{40})\s*", content)


def check_ref_file(repository: Repository, ref: str) -> None:
    """Raise LostObject if the file of a ref is damaged, for example empty after a crash: to libgit2, the ref does not exist."""
    if is_torn_ref(repository, ref):
        raise LostObject(
            f"the file {Path(repository.common_dir, ref)} is damaged and names no commit: `gitsched reconcile` lets the output branch "
            "continue from the newest commit in its log",
            repository.path,
        )


def replace_torn_ref(repository: Repository, ref: str, commit: str | None) -> None:
    """Let a torn ref point to a commit, or not exist, under the lock that git takes. No effect if the ref is not torn any more.

    Raise OSError if another process holds the lock.
    """
    path = Path(repository.common_dir, ref)
    lock = path.with_name(f"{path.name}.lock")
    with lock.open("x", encoding="ascii") as file:
        replaced = False
        try:
            if is_torn_ref(repository, ref):
                place = Path(repository.common_dir, TORN)
                place.mkdir(parents=True, exist_ok=True)
                path.rename(place / ref.replace("/", "-"))
                if commit is not None:
                    file.write(f"{commit}\n")
                    file.flush()
                    os.fsync(file.fileno())
                    lock.rename(path)
                    replaced = True
        finally:
            if not replaced:  # else the name is that of another process's lock
                lock.unlink()
