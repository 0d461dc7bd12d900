"""A Git repository opened with libgit2: resolve refs, read objects, write trees and commits. Needs no worktree."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import weakref
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gitsched.git.ancestry import CommitAncestry
from gitsched.git.kept_blobs import KeptBlobs
from gitsched.git.libgit2 import open_libgit2
from gitsched.git.loaded_pygit2 import pygit2
from gitsched.git.mirrored_refs import CloneControl, MirroredRefs
from gitsched.git.objects import (
    Signer,
    WrittenObjects,
    format_commit,
    make_read_error,
    make_write_error,
    parse_commit,
)
from gitsched.git.scratch_objects import ScratchObjects
from gitsched.git.tree_comparison import list_changed_paths
from gitsched.git.trees import BLOB, COMMIT, MAX_ENTRIES, TREE, RawObject, TreeEntry, TreeReader, hash_object, is_tree
from gitsched.model.errors import Permanent, Temporary
from gitsched.model.planned_files import EditedBlob, ExistingBlob

if TYPE_CHECKING:
    from gitsched.model.commit import Commit
    from gitsched.model.planned_files import WritableFile

_PACK_THRESHOLD = 100
"""From this number of new objects on, a packfile costs less than loose objects."""
_SAMPLE_SIZE = 64
_OID = re.compile(r"[0-9a-f]{40}")
_OBJECT_TYPES = {COMMIT: "commit", TREE: "tree", BLOB: "blob"}
_KINDS = {name.encode(): kind for kind, name in _OBJECT_TYPES.items()}


class Repository(CommitAncestry, MirroredRefs):
    """An open repository with cached listings. `path` is its Git directory, `common_dir` the directory it shares with other
    worktrees.

    A `private` clone is told of unreadable objects, so that it is fetched again. Its refs are written under its lock; git itself has a
    lock for each ref.
    """

    def __init__(self, path: str | Path, *, private: CloneControl | None = None) -> None:
        self._repo = open_libgit2(Path(path))
        self.path = str(Path(self._repo.path))
        self.common_dir = _find_common_dir(Path(self.path))
        self.private = private
        self.is_partial = bool(self.read_config("extensions.partialclone") or self.read_config("remote.origin.promisor") == "true")
        """Whether objects may be missing that a remote sends on request, as after `git clone --filter=blob:none`."""
        self.promised: Callable[[Sequence[str]], None] | None = None
        """For a partial clone: makes blobs available that it lacks."""
        own = weakref.proxy(self)  # without a cycle, which only the garbage collector would free
        self._trees = TreeReader(lambda oid: own._read_object(oid, TREE))
        self._kept_blobs: KeptBlobs | None = None
        self.written = WrittenObjects(Path(self.common_dir), self.path)
        self._pending: dict[str, RawObject] = {}
        self._scratch: ScratchObjects | None = None
        self._others: list[Path] = []
        self._copies = False

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

        This ends a run: listings that the last runs did not need are removed from the cache, and so are the oldest blobs of `keep_blob`
        beyond the limit.
        """
        self._repo.free()
        self._trees.end_run()
        if self._kept_blobs is not None:
            self._kept_blobs.end_run()

    def read_config(self, name: str) -> str | None:
        """Return a value of Git's configuration for this repository; None when it is not set."""
        config = self._repo.config
        return str(config[name]) if name in config else None

    def list_remotes(self) -> dict[str, tuple[str, ...]]:
        """Return the refspecs that each remote fetches, by its name."""
        remotes: dict[str, tuple[str, ...]] = {}
        for entry in self._repo.config:
            name, dot, setting = (entry.name or "").removeprefix("remote.").rpartition(".")
            if (entry.name or "").startswith("remote.") and dot and setting in ("url", "fetch"):
                remotes[name] = remotes.get(name, ()) + ((entry.value or "",) if setting == "fetch" else ())
        return remotes

    # Names

    def resolve(self, revision: str) -> str | None:
        """Return the commit (hex) of a branch, tag, HEAD, object id or abbreviated id; None when there is none."""
        named = self.resolve_ref(revision)
        try:
            if named is not None:
                self._read_stored(named)
            return str(self._repo.revparse_single(revision).peel(pygit2.Commit).id)
        except (KeyError, ValueError, zlib.error, pygit2.GitError) as error:
            if "ambiguous" in str(error):
                raise Permanent(f"{revision!r} names more than one object") from error
            if named is not None and isinstance(error, zlib.error):
                raise self._make_read_error(named, "commit", error) from error
            return None

    def resolve_ref(self, ref: str) -> str | None:
        """Return the object id (hex) of a full ref name, following symbolic refs; None when the ref does not exist."""
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
        except (KeyError, ValueError, pygit2.GitError):
            return None
        return found if isinstance(found, str) else None

    def head_branch(self) -> str | None:
        """Return the branch of HEAD, even without a commit; None when HEAD is detached."""
        target = self.read_symbolic_ref("HEAD")
        return target.removeprefix("refs/heads/") if target is not None and target.startswith("refs/heads/") else None

    # Reading

    def has(self, oid: str) -> bool:
        """Return whether the object is available."""
        try:
            return oid in self._pending or (bool(_OID.fullmatch(oid)) and oid in self._repo.odb)
        except pygit2.GitError as error:
            raise self._make_read_error(oid, "object", error) from error

    def has_commit(self, oid: str) -> bool:
        """Return whether the object is available, and a commit."""
        try:
            return bool(_OID.fullmatch(oid)) and bool(self._read_stored(oid)[0] == COMMIT)
        except (KeyError, ValueError, zlib.error, pygit2.GitError):
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
        kept = self._find_kept(oid)
        return kept if kept is not None else self._read_object(oid, BLOB)

    def keep_blob(self, data: bytes, oid: str = "") -> str:
        """Keep a blob in memory only, for `blob` and `blob_size`, and return its id, which callers may know.

        Raise Permanent if those of one run exceed the limit.
        """
        oid = oid or hash_object(BLOB, data).hex()
        if self._kept_blobs is None:
            self._kept_blobs = KeptBlobs()
        self._kept_blobs.add(oid, data)
        return oid

    def _find_kept(self, oid: str) -> bytes | None:
        return self._kept_blobs.find(oid) if self._kept_blobs is not None else None

    def blob_size(self, oid: str) -> int:
        """Return the size of a blob in bytes, read from its header only."""
        kept = self._find_kept(oid)
        if kept is not None:
            return len(kept)
        if oid in self._pending:
            return len(self._pending[oid][2])
        self.prefetch([oid])
        try:
            return int(self._repo.odb.read_header(oid)[1])
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise self._make_read_error(oid, "blob", error) from error

    def read_small_blob(self, oid: str, limit: int) -> bytes | None:
        """Return the content of a blob; None if it has more bytes than the limit."""
        return self.blob(oid) if self.blob_size(oid) <= limit else None

    def prefetch(self, blobs: Iterable[str]) -> None:
        """Make blobs available that a partial clone lacks, in one request. No effect for any other repository."""
        if self.promised is not None:
            missing = [oid for oid in blobs if self._find_kept(oid) is None and not self.has(oid)]
            if missing:
                self.promised(missing)

    def entries(self, tree: str, under: str = "", limit: int = MAX_ENTRIES) -> list[TreeEntry]:
        """Return every file, symlink and submodule of a tree (or of its directory `under`) by path, in Git's order. Raise Permanent
        if there are more entries than the limit."""
        return self._trees.entries(tree, under, limit)

    def changed_paths(self, old_tree: str | None, new_tree: str | None) -> list[str]:
        """Return the sorted paths that differ between two trees (None: the empty tree); renames are not detected."""
        return list_changed_paths(self._trees.read_tree, old_tree, new_tree)

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
            self._scratch = ScratchObjects(self._repo, Path(self.common_dir) / "objects")
            for path in self._others:
                self._scratch.read_also(path)
        return self._scratch

    def read_also(self, other: Repository, *, copies: bool = True) -> None:
        """Read objects from another repository, too, if they are missing here. Those that a new tree refers to are copied, unless the
        caller writes no tree and does not want copies."""
        path = Path(other.common_dir, "objects")
        if other is not self and path not in self._others:
            self._others.append(path)
            self._copies = self._copies or copies
            self._repo.odb.add_disk_alternate(str(path))
            if self._scratch is not None:
                self._scratch.read_also(path)

    def write_tree(self, changes: Mapping[str, WritableFile | None], *, base: str | None, read: Repository) -> str:
        """Write the tree that results from setting paths in `base` (None: the empty tree), or removing them where the value is
        None; return its id.

        Removing a directory's path removes all its files; empty directories disappear. Existing and edited blobs are read from
        the repository `read`. ValueError (a bug of the caller) for an unsafe path, or for a path that is both file and directory.
        """
        tree, objects = self._build_tree(changes, base, read)
        self._write_objects(objects)
        return tree

    def make_tree(self, changes: Mapping[str, WritableFile | None], *, base: str | None, read: Repository) -> str:
        """As `write_tree`, in memory until `commit_tree` writes a commit: a preview, which makes no commit, writes nothing."""
        tree, objects = self._build_tree(changes, base, read)
        self._pending.update((entry[0].hex(), entry) for entry in objects)
        return tree

    def _build_tree(
        self, changes: Mapping[str, WritableFile | None], base: str | None, read: Repository
    ) -> tuple[str, list[RawObject]]:
        known = set[str]()
        if read.promised is not None:
            existing = {
                file.blob for file in changes.values() if isinstance(file, ExistingBlob) and read._find_kept(file.blob) is None
            }
            known = existing if read is self else known  # the remote has what a partial clone lacks
            read.prefetch({file.blob for file in changes.values() if isinstance(file, ExistingBlob | EditedBlob)} - known)
        own = self._open_own_objects()

        def has(oid: str) -> bool:
            return oid in known or oid in self._pending or (self.has(oid) if own is None else oid in own)

        return self._trees.build_tree(changes, base, read.blob, has)

    def _open_own_objects(self) -> pygit2.Odb | None:
        """Return the objects without those of other repositories, which may lose them; None where there are no others to copy from."""
        return pygit2.Odb(str(Path(self.common_dir, "objects"))) if self._copies else None

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
        self.written.add([(bytes.fromhex(oid), COMMIT, data)])
        return oid

    def forget_written_objects(self) -> None:
        """Forget the objects that were written, and those that no commit needed."""
        self.written.clear()
        self._pending.clear()

    def _write_objects(self, objects: Sequence[RawObject]) -> None:
        self.written.add(objects)
        own = self._open_own_objects()
        if own is not None:  # libgit2 writes no object that another repository has
            missing = [entry for entry in objects if entry[0].hex() not in own]
            if missing:
                self.written.write_pack(missing)
            return
        if len(objects) >= _PACK_THRESHOLD:
            # A new process plans files that already exist. Checking for them costs less than packing them.
            sample = objects[:: len(objects) // _SAMPLE_SIZE]
            if 2 * sum(self.has(oid.hex()) for oid, _, _ in sample) > len(sample):
                objects = [entry for entry in objects if not self.has(entry[0].hex())]
        if len(objects) < _PACK_THRESHOLD:
            for _, kind, data in objects:
                self._write_object(kind, data)
            return
        self.written.write_pack(objects)

    def _write_object(self, kind: int, data: bytes) -> str:
        try:
            return str(self._repo.write(kind, data))
        except (OSError, pygit2.GitError) as error:
            text = str(error)
            raise make_write_error(self.path, text, permanent="ermission denied" in text or "Read-only" in text) from error

    def _read_object(self, oid: str, kind: int) -> bytes:
        if kind == BLOB:
            self.prefetch([oid])
        try:
            _, found, data = self._pending[oid] if oid in self._pending else (b"", *self._read_stored(oid))
        except (KeyError, ValueError, zlib.error, pygit2.GitError) as error:
            raise self._make_read_error(oid, _OBJECT_TYPES[kind], error) from error
        if found != kind:
            raise Permanent(f"object {oid} in {self.path} is not a {_OBJECT_TYPES[kind]}")
        return data

    def _read_stored(self, oid: str) -> tuple[int, bytes]:
        """Read an object. libgit2 would never return from a loose one that was cut off, and let no signal end the process."""
        path, found = f"{self.common_dir}/objects/{oid[:2]}/{oid[2:]}", None
        if os.access(path, os.R_OK):  # else it is in a pack, or missing: opening it would take ten times as long
            with contextlib.suppress(OSError), open(path, "rb") as file:  # noqa: PTH123 - dozens in each run
                found = _parse_object_file(oid, file.read())
        return found or self._repo.read(oid)

    def _make_read_error(self, oid: str, kind: str, error: Exception) -> Permanent | Temporary:
        return make_read_error(f"{kind} {oid}", oid, self.path, error, self.private, self.written, is_partial=self.is_partial)


def _parse_object_file(oid: str, compressed: bytes) -> tuple[int, bytes] | None:
    """Return type and content of an object from the content of its file; None unless it is an object with this id.

    zlib.error for a file that was cut off.
    """
    content = zlib.decompress(compressed)
    if hashlib.sha1(content, usedforsecurity=False).hexdigest() != oid:
        return None
    header, _, data = content.partition(b"\0")
    kind = _KINDS.get(header.partition(b" ")[0])
    return None if kind is None else (kind, data)


def _find_common_dir(path: Path) -> str:
    pointer = path / "commondir"
    return str((path / pointer.read_text().strip()).resolve()) if pointer.exists() else str(path)
