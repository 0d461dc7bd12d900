"""Refs of a private clone that mirror another repository: they are set without checking their previous value."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

from gitsched.git.loaded_pygit2 import pygit2
from gitsched.git.ref_locks import describe_locks
from gitsched.model.errors import Temporary


class CloneControl(Protocol):
    """What a repository needs of the private clone that it is. `settings` is the Git directory whose configuration says how to contact the
    remote, None for the clone's own."""

    settings: str | None

    @property
    def handles(self) -> tuple[int, ...]:
        """The open lock file while the lock is held: git processes inherit it, so that the lock ends with the last of them."""

    def hold(self) -> AbstractContextManager[None]:
        """Hold the exclusive lock of the clone, also if this thread holds it already."""

    def report_damage(self) -> None:
        """Let the clone be made anew, because an object in it cannot be read."""

    def find_damage(self) -> bool:
        """Return whether something in the clone is damaged, and then let it be made anew."""


class MirroredRefs:
    """What a repository can do with such refs. Those of a `private` clone are written under its lock."""

    _repo: pygit2.Repository
    path: str
    common_dir: str
    private: CloneControl | None

    def hold_lock(self) -> AbstractContextManager[None]:
        """Hold the lock of a private clone; other repositories have locks of git only."""
        return self.private.hold() if self.private is not None else nullcontext()

    def set_head(self, branch: str) -> None:
        """Set HEAD of a private clone to a branch; there is no worktree to update."""
        try:
            with self.hold_lock():
                self._repo.set_head(f"refs/heads/{branch}")
        except (OSError, ValueError, pygit2.GitError) as error:
            raise Temporary(f"cannot set HEAD of {self.path}: {error}") from error

    def set_ref(self, ref: str, oid: str) -> None:
        """Set a ref that mirrors another repository, without checking its previous value."""
        try:
            with self.hold_lock():
                self._repo.references.create(ref, oid, force=True)
        except (OSError, ValueError, pygit2.GitError) as error:
            raise self._explain(f"cannot set {ref} in {self.path}: {error}", ref) from error

    def delete_ref(self, ref: str) -> None:
        """Delete a ref that mirrors another repository."""
        try:
            with self.hold_lock():
                self._repo.lookup_reference(ref).delete()
        except (KeyError, ValueError):
            return
        except (OSError, pygit2.GitError) as error:
            raise self._explain(f"cannot delete {ref} in {self.path}: {error}", ref) from error

    def _explain(self, reason: str, ref: str) -> Temporary:
        """Return the error for a ref that was not written: the lock that is in the way, else the given reason."""
        lock = Path(self.common_dir, f"{ref}.lock")
        return Temporary(describe_locks(ref, [lock]) if lock.exists() else reason)
