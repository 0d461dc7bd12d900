"""A Git repository opened with libgit2: resolve refs, read objects, write trees and commits. Needs no worktree."""

from __future__ import annotations

import errno
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from gitsched.git.ancestry import CommitAncestry
from gitsched.git.libgit2 import load_pygit2
from gitsched.git.mirrored_refs import MirroredRefs, RepositoryLock
from gitsched.git.objects import Signer, format_commit, parse_commit, write_pack
from gitsched.git.process import run_git
from gitsched.git.trees import BLOB, COMMIT, MAX_ENTRIES, TREE, RawObject, TreeEntry, TreeReader, hash_object, is_tree
from gitsched.model.errors import Permanent, Temporary

if TYPE_CHECKING:
    import pygit2

    from gitsched.git.scratch_objects import ScratchObjects
    from gitsched.model.commit import Commit
    from gitsched.model.planned_files import WritableFile


_PACK_THRESHOLD = 100
"""From this number of new objects on, a packfile costs less than loose objects."""
_SAMPLE_SIZE = 64
_MAX_KEPT_SIZE = 1 << 30
"""Bytes of blobs that are kept in memory only."""
_OID = re.compile(r"[0-9a-f]{40}")
_OBJECT_TYPES = {COMMIT: "commit", TREE: "tree", BLOB: "blob"}
_PERMANENT_ERRNOS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_owner_validation_lock = threading.Lock()
_pack_counter = count()
_MAX_COLLECTION_TIME = 12 * 3600.0


def open_repository(path: str | Path) -> Repository:
    """Open the repository at a path or in a parent directory, bare or with a worktree; Permanent when there is none or access is
    not allowed."""
    return Repository(path)


class LostObject(Permanent):
    """An object is missing in a repository that is no private clone; `path` is its Git directory."""

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message)
        self.path = path


class Repository(CommitAncestry, MirroredRefs):
    """An open repository with cached listings. `path` is its Git directory, `common_dir` the directory it shares with other
    worktrees.

    `on_damage` is called when an object is unreadable; a private clone uses it to be fetched again. Refs are written under
    `lock`, if there is one; git itself has a lock for each ref.
    """

    def __init__(
        self, path: str | Path, *, on_damage: Callable[[], None] | None = None, lock: RepositoryLock | None = None
    ) -> None:
        self._repo = _open_libgit2(Path(path))
        self.path = str(Path(self._repo.path))
        self.common_dir = _find_common_dir(Path(self.path))
        self.on_damage = on_damage
        self.lock = lock
        self._trees = TreeReader(lambda oid: self._read_object(oid, TREE))
        self._kept_blobs: dict[str, bytes] = {}
        self._kept_size = 0
        self._written: dict[bytes, RawObject] = {}
        self._pending: dict[str, RawObject] = {}
        self._scratch: ScratchObjects | None = None

    @property
    def is_bare(self) -> bool:
        """Whether the repository has no worktree."""
        return bool(self._repo.is_bare)

    @property
    def root(self) -> str:
        """The root of the worktree; for a bare repository its own directory."""
        return str(Path(self._repo.workdir)) if self._repo.workdir else self.path

    @property
    def is_shallow(self) -> bool:
        """Whether the history is truncated, as in most CI checkouts."""
        return (Path(self.common_dir) / "shallow").exists()

    def close_files(self) -> None:
        """Close packs and indexes, which libgit2 keeps open although git has replaced them; they are opened again when needed.

        Listings that the last runs did not need are removed from the cache.
        """
        self._repo.free()
        self._trees.end_run()

    def read_config(self, name: str) -> str | None:
        """Return a value of Git's configuration for this repository; None when it is not set."""
        config = self._repo.config
        return str(config[name]) if name in config else None

    # Names

    def resolve(self, revision: str) -> str | None:
        """Return the commit (hex) of a branch, tag, HEAD, object id or abbreviated id; None when there is none."""
        import pygit2

        try:
            return str(self._repo.revparse_single(revision).peel(pygit2.Commit).id)
        except (KeyError, ValueError, pygit2.GitError) as error:
            if "ambiguous" in str(error):
                raise Permanent(f"{revision!r} names more than one object") from error
            return None

    def resolve_ref(self, ref: str) -> str | None:
        """Return the object id (hex) of a full ref name, following symbolic refs; None when the ref does not exist."""
        import pygit2

        try:
            return str(self._repo.lookup_reference(ref).resolve().target)
        except (KeyError, ValueError, pygit2.GitError):
            return None

    def list_refs(self, prefix: str) -> list[tuple[str, str]]:
        """Return the refs whose full names begin with a prefix, with the commits (hex) they lead to, sorted by name."""
        names = sorted(name for name in self._repo.listall_references() if name.startswith(prefix))
        return [(name, oid) for name in names if (oid := self.resolve_ref(name)) is not None]

    def read_symbolic_ref(self, ref: str) -> str | None:
        """Return the target of a symbolic ref, even if it does not exist; None for any other ref."""
        try:
            found = self._repo.lookup_reference(ref).target
        except (KeyError, ValueError):
            return None
        return found if isinstance(found, str) else None

    def head_branch(self) -> str | None:
        """Return the branch of HEAD, even without a commit; None when HEAD is detached."""
        target = self.read_symbolic_ref("HEAD")
        return target.removeprefix("refs/heads/") if target is not None and target.startswith("refs/heads/") else None

    # Reading

    def has(self, oid: str) -> bool:
        """Return whether the object is available."""
        return oid in self._pending or (bool(_OID.fullmatch(oid)) and oid in self._repo)

    def has_commit(self, oid: str) -> bool:
        """Return whether the object is available, and a commit."""
        import pygit2

        try:
            return bool(_OID.fullmatch(oid)) and oid in self._repo and bool(self._repo.read(oid)[0] == COMMIT)
        except (KeyError, ValueError, pygit2.GitError):
            return False

    def is_intact(self, oid: str) -> bool:
        """Return whether a commit is available; Permanent or, in a private clone, Temporary when it or its root tree cannot be
        read."""
        if not self.has(oid):
            return False
        self._trees.read_tree(self.commit(oid).tree)
        return True

    def commit(self, oid: str) -> Commit:
        """Return the commit with this id."""
        try:
            return parse_commit(oid, self._read_object(oid, COMMIT))
        except ValueError as error:
            raise Permanent(f"commit {oid}: {error}") from error

    def read_commit(self, oid: str) -> bytes:
        """Return the text of a commit object, with its headers."""
        return self._read_object(oid, COMMIT)

    def blob(self, oid: str) -> bytes:
        """Return the content of a blob."""
        return self._kept_blobs.get(oid) or self._read_object(oid, BLOB)

    def keep_blob(self, data: bytes, oid: str = "") -> str:
        """Keep a blob in memory only, for `blob` and `blob_size`, and return its id, which callers may know. Beyond a limit, the oldest are
        removed."""
        oid = oid or hash_object(BLOB, data).hex()
        if self._kept_blobs.pop(oid, None) is None:
            self._kept_size += len(data)
        self._kept_blobs[oid] = data
        while self._kept_size > _MAX_KEPT_SIZE and len(self._kept_blobs) > 1:
            self._kept_size -= len(self._kept_blobs.pop(next(iter(self._kept_blobs))))
        return oid

    def blob_size(self, oid: str) -> int:
        """Return the size of a blob in bytes, read from its header only."""
        import pygit2

        if oid in self._kept_blobs:
            return len(self._kept_blobs[oid])
        if oid in self._pending:
            return len(self._pending[oid][2])
        try:
            return int(self._repo.odb.read_header(oid)[1])
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise self._make_read_error(oid, BLOB, error) from error

    def entries(self, tree: str, under: str = "", limit: int = MAX_ENTRIES) -> list[TreeEntry]:
        """Return every file, symlink and submodule of a tree (or of its directory `under`) by path, in Git's order. Raise Permanent
        if there are more entries than the limit."""
        return self._trees.entries(tree, under, limit)

    def changed_paths(self, old_tree: str | None, new_tree: str | None) -> list[str]:
        """Return the sorted paths that differ between two trees (None: the empty tree); renames are not detected."""
        return self._trees.changed_paths(old_tree, new_tree)

    def find_entry(self, tree: str, path: str) -> tuple[str, int] | None:
        """Return object id and mode at a path; None when there is nothing."""
        row = self._trees.find_entry(tree, path)
        return (row[2].hex(), int(row[0], 8)) if row else None

    def list_directory(self, tree: str, directory: str) -> dict[str, tuple[str, int]]:
        """Return name → (object id, mode) of one directory ("": the root), not recursive; {} when it is missing."""
        if directory.strip("/"):
            row = self._trees.find_entry(tree, directory.strip("/"))
            if row is None or not is_tree(row):
                return {}
            tree = row[2].hex()
        return {
            name.decode("utf-8", "backslashreplace"): (oid.hex(), int(mode, 8)) for mode, name, oid in self._trees.read_tree(tree)
        }

    # Writing

    @property
    def scratch(self) -> ScratchObjects:
        """A directory for objects that only this process reads, such as those of a merge that is planned."""
        if self._scratch is None:
            from gitsched.git.scratch_objects import ScratchObjects  # few runs merge or read a worktree

            self._scratch = ScratchObjects(self._repo, Path(self.common_dir) / "objects")
        return self._scratch

    def read_also(self, other: Repository) -> None:
        """Read objects from another repository, too, if they are missing here."""
        if other is not self:
            self._repo.odb.add_disk_alternate(str(Path(other.common_dir, "objects")))

    def write_tree(self, changes: Mapping[str, WritableFile | None], *, base: str | None, read: Repository) -> str:
        """Write the tree that results from setting paths in `base` (None: the empty tree), or removing them where the value is
        None; return its id.

        Removing a directory's path removes all its files; empty directories disappear. Existing and edited blobs are read from
        the repository `read`. ValueError (a bug of the caller) for an unsafe path, or for a path that is both file and directory.
        """
        tree, objects = self._trees.build_tree(changes, base, read.blob, self.has)
        self._write_objects(objects)
        return tree

    def make_tree(self, changes: Mapping[str, WritableFile | None], *, base: str | None, read: Repository) -> str:
        """As `write_tree`, in memory until `commit_tree` writes a commit: a preview, which makes no commit, writes nothing."""
        tree, objects = self._trees.build_tree(changes, base, read.blob, self.has)
        self._pending.update((entry[0].hex(), entry) for entry in objects)
        return tree

    def commit_tree(
        self, tree: str, parents: Sequence[str], message: str, *, name: str, email: str, time: datetime, sign: Signer | None = None
    ) -> str:
        """Write a commit, with the objects of `make_tree`, and return its id; without a signature the same arguments give the same id in
        any repository."""
        made, self._pending = self._pending, {}
        if made:
            self._write_objects(list(made.values()))
        data = format_commit(tree, parents, message, name=name, email=email, time=time)
        if sign is not None:
            data = format_commit(tree, parents, message, name=name, email=email, time=time, signature=sign.sign(data))
        oid = self._write_object(COMMIT, data)
        self._written[bytes.fromhex(oid)] = (bytes.fromhex(oid), COMMIT, data)
        return oid

    def forget_written_objects(self) -> None:
        """Forget the objects that `keep_written_objects` keeps, and those that no commit needed."""
        self._written.clear()
        self._pending.clear()

    @contextmanager
    def keep_written_objects(self) -> Iterator[None]:
        """Move refs to what this process has written while `git gc` may run, which removes objects to which no ref led when it started.

        They are written again before, because git moves no ref to a missing commit, and after it, when no later `git gc` removes them.
        """
        self._write_removed_objects()
        yield
        self._write_removed_objects()
        self._written.clear()

    def _write_removed_objects(self) -> None:
        """Write the objects again that `git gc` has removed, or may be about to remove."""
        is_collecting = self.is_collecting_garbage
        if self._written and (is_collecting or not self._has_on_disk(self._written)):
            # `git gc` also removes the packs that it has found when it started. A pack is named by its content, which
            # is the same in a process with the same decision, so this one gets an object of its own.
            name = f"pack {next(_pack_counter)} of process {os.getpid()} at {time.time_ns()}\n".encode()
            self._write_pack([*self._written.values(), (hash_object(BLOB, name), BLOB, name)])

    @property
    def is_collecting_garbage(self) -> bool:
        """Whether `git gc` runs in the repository. Like git, ignore the file of one that was killed half a day ago."""
        try:
            return time.time() - (Path(self.common_dir) / "gc.pid").stat().st_mtime < _MAX_COLLECTION_TIME
        except FileNotFoundError:
            return False

    def _has_on_disk(self, oids: Iterable[bytes]) -> bool:
        import pygit2

        # Open the objects anew: libgit2 counts those that it has read before as available.
        objects = pygit2.Odb(str(Path(self.common_dir) / "objects"))
        return all(oid.hex() in objects for oid in oids)

    def _write_objects(self, objects: Sequence[RawObject]) -> None:
        self._written.update((entry[0], entry) for entry in objects)
        if len(objects) >= _PACK_THRESHOLD:
            # A new process plans files that already exist. Checking for them costs less than packing them, except in a new
            # repository.
            sample = objects[:: len(objects) // _SAMPLE_SIZE]
            if 2 * sum(self.has(oid.hex()) for oid, _, _ in sample) > len(sample):
                objects = [entry for entry in objects if not self.has(entry[0].hex())]
        if len(objects) < _PACK_THRESHOLD:
            for _, kind, data in objects:
                self._write_object(kind, data)
            return
        self._write_pack(objects)

    def _write_pack(self, objects: Sequence[RawObject]) -> None:
        try:
            write_pack(Path(self.common_dir) / "objects" / "pack", objects)
        except OSError as error:
            raise _make_write_error(self.path, str(error), permanent=error.errno in _PERMANENT_ERRNOS) from error

    def _write_object(self, kind: int, data: bytes) -> str:
        import pygit2

        try:
            return str(self._repo.write(kind, data))
        except (OSError, pygit2.GitError) as error:
            text = str(error)
            raise _make_write_error(self.path, text, permanent="ermission denied" in text or "Read-only" in text) from error

    def _read_object(self, oid: str, kind: int) -> bytes:
        import pygit2

        try:
            _, found, data = self._pending[oid] if oid in self._pending else (b"", *self._repo.read(oid))
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise self._make_read_error(oid, kind, error) from error
        if found != kind:
            raise Permanent(f"object {oid} in {self.path} is not a {_OBJECT_TYPES[kind]}")
        return data

    def _make_read_error(self, oid: str, kind: int, error: Exception) -> Permanent | Temporary:
        reason = "it is missing" if isinstance(error, KeyError) else str(error)
        if self.read_config("remote.origin.promisor") == "true":
            reason += " (the repository is a partial clone; `git fetch --refetch --no-filter` completes it)"
        message = f"{_OBJECT_TYPES[kind]} {oid} cannot be read from {self.path}: {reason}"
        if self.on_damage is None:
            # While git removes garbage, another process may be about to write what it removed by mistake.
            if self.is_collecting_garbage:
                return Temporary(message)
            return LostObject(message, self.path) if isinstance(error, KeyError) else Permanent(message)
        self.on_damage()
        return Temporary(f"{message}; the private clone will be fetched again")


def _make_write_error(path: str, reason: str, *, permanent: bool) -> Permanent | Temporary:
    return (Permanent if permanent else Temporary)(f"cannot write objects to {path}: {reason}")


def _open_libgit2(path: Path) -> pygit2.Repository:
    load_pygit2()
    import pygit2

    if not path.exists():
        raise Permanent(f"there is no file or directory {path}")
    found = pygit2.discover_repository(str(path))
    if found is None:
        raise Permanent(f"{path.resolve()} is not in a Git repository; change to one, or select it with -C")
    reject_embedded_repository(Path(found))
    try:
        return pygit2.Repository(found)
    except pygit2.GitError as error:
        if "object format" in str(error):
            raise Permanent(
                f"the repository at {path} has SHA-256 object ids; gitsched works with SHA-1 repositories only"
            ) from error
        if "not owned by" not in str(error):
            raise Permanent(f"cannot open the repository at {path}: {error}") from error
        if run_git(["-C", str(path if path.is_dir() else path.parent), "rev-parse", "--git-dir"]).exit_code != 0:
            raise Permanent(
                f"the repository at {path} belongs to another user; `git config --global --add safe.directory {path}` allows access"
            ) from error
    # libgit2 reads safe.directory from fewer files than git (not from GIT_CONFIG_GLOBAL, for example), so git's answer decides.
    with _owner_validation_lock:
        pygit2.settings.owner_validation = False
        try:
            return pygit2.Repository(found)
        finally:
            pygit2.settings.owner_validation = True


def _find_common_dir(path: Path) -> str:
    pointer = path / "commondir"
    return str((path / pointer.read_text().strip()).resolve()) if pointer.exists() else str(path)


def reject_embedded_repository(path: Path) -> None:
    """Raise Permanent for a bare repository that is committed in the repository around it: its configuration could execute
    programs."""
    root = next((parent for parent in path.parents if (parent / ".git").exists()), None)
    if ".git" in path.parts or root is None or path.name == ".git":
        return
    import pygit2

    try:
        outer = pygit2.Repository(str(root))
        committed = _has_path(outer, (path.relative_to(root) / "HEAD").as_posix())
    except pygit2.GitError:
        return  # not a repository, or another user's, which git would not trust either
    if committed:
        raise Permanent(
            f"{path} is a bare repository committed in the repository at {root}; its configuration could execute programs: "
            "select a repository with -C"
        )


def _has_path(repository: pygit2.Repository, path: str) -> bool:
    import pygit2

    try:
        return path in repository.revparse_single("HEAD").peel(pygit2.Tree)
    except KeyError:
        return False
