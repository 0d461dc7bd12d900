"""Refs beside an output branch that keep the state of the last plan: written by compare-and-swap, fetched and pushed by object id.

They are no branches and no tags, so that no clone and no delivery tool downloads them. Their commits have no parents: the state has no
history. Objects of a remote are kept in the private clone of its URL, never in the repository that the user works in.
"""

from __future__ import annotations

import contextlib
import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING

from gitsched.git.failures import make_failure, recognize_damage
from gitsched.git.object_transfer import NO_COLLECTION, fetch_objects, separate_objects
from gitsched.git.output import list_state_refs
from gitsched.git.process import run_git
from gitsched.git.refs import check_ref, update_ref
from gitsched.git.remote_refs import find_remote_url, push_together
from gitsched.git.transport import TRANSFER_TIMEOUT
from gitsched.model.errors import Conflict, GitschedError, Temporary
from gitsched.temporary_directory import TemporaryDirectory

if TYPE_CHECKING:
    from gitsched.git.output import OutputRepository
    from gitsched.git.repository import Repository
    from gitsched.git.source import SourceRepository

_log = logging.getLogger("gitsched.git")
_MAX_LOOSE_OBJECTS, _MAX_PACKS = 2000, 16
"""A private clone with more of either is packed again."""
_OBJECT_ID = re.compile(r"[0-9a-f]{40}")


class StateRefs:
    """The refs of one output. `plan` names the ref whose small tree says what the state is, `rows` the one with the rest."""

    def __init__(self, output: OutputRepository, prefix: str) -> None:
        self._output = output
        self.plan, self.rows = map(check_ref, list_state_refs(output.branch, prefix))

    @property
    def repository(self) -> Repository:
        """The repository with the objects of the state."""
        return self._output.state_repository

    def list_plans(self) -> list[str]:
        """Return the commits that the ref of the plan has here and on the remote, as of the last fetch."""
        local, remote = self.repository.resolve_ref(self.plan), self._output.found_refs.get(self.plan)
        return list(dict.fromkeys(oid for oid in (local, remote) if oid is not None))

    def fetch(self, commit: str) -> bool:
        """Return whether a commit is available, after an attempt to fetch it. No ref leads to it before `keep`."""
        if not self.repository.has_commit(commit) and self._output.remote is not None:
            fetch_objects(self.repository, self._output.repository, self._output.remote, [commit])
        return self.repository.has_commit(commit)

    def keep(self, ref: str, commit: str) -> None:
        """Set a ref of the private clone to a commit of the remote that counts, so that `git gc` does not remove it."""
        if self._output.remote is not None and self.repository.resolve_ref(ref) != commit:
            self.repository.set_ref(ref, commit)

    def publish(self, plan: str, rows: str, expected: str | None) -> None:
        """Set both refs, here and on the remote.

        `expected` is the commit that the ref of the plan has here. Raise Conflict if another process has moved a ref, or another
        GitschedError if the remote refuses.
        """
        repository = self.repository
        with repository.written.keep():
            if self._output.remote is None:
                if repository.resolve_ref(self.plan) != expected:
                    raise Conflict(f"{self.plan} has moved")
                repository.set_ref(self.rows, rows)
                update_ref(repository, self.plan, plan, expected)
                return
            if repository.has_commit(rows):  # rows that no run here has needed are on the remote only
                repository.set_ref(self.rows, rows)
            repository.set_ref(self.plan, plan)
        self._push({self.rows: rows, self.plan: plan}, self._output.remote)
        _collect_garbage(repository)

    def _push(self, commits: dict[str, str], url: str) -> None:
        """Push the refs together, with only the objects that the remote does not have."""
        found = self._output.found_refs
        new = {ref: commit for ref, commit in commits.items() if found.get(ref) != commit}
        if not new:
            return
        with TemporaryDirectory("state") as directory:
            # To git, these commits end a shallow history, so it compares the trees of commits that have no common history.
            known = [oid for ref in new if (oid := found.get(ref)) is not None and self.repository.has_commit(oid)]
            shallow = directory / "shallow"
            shallow.write_text("".join(f"{oid}\n" for oid in known), "ascii")
            environment = separate_objects(self.repository, self._output.repository) | {"GIT_SHALLOW_FILE": str(shallow)}
            try:
                push_together(self._output.repository, url, new, found, environment, NO_COLLECTION)
            except Temporary as error:
                raise recognize_damage(error, self.repository) from error
        found.update(new)


def _collect_garbage(repository: Repository) -> None:
    """Remove old objects of a private clone once it has many; no git command does so that runs with the refs of another repository.

    The state is published already, so a failure is logged.
    """
    objects = Path(repository.common_dir, "objects")
    loose, packs = (len(list(objects.glob(pattern))) for pattern in ("17/*", "pack/*.pack"))
    if (loose <= _MAX_LOOSE_OBJECTS // 256 and packs <= _MAX_PACKS) or repository.private is None:
        return
    try:
        with repository.hold_lock():
            repository.close_files()
            done = run_git(["gc", "--quiet", "--prune=1.hour.ago"], repository=repository, timeout=TRANSFER_TIMEOUT)
    except GitschedError as error:
        _log.warning("old objects of the private clone %s were not removed: %s", repository.path, error)
        return
    if done.exit_code != 0:
        failure = recognize_damage(make_failure("git gc failed", done.stderr), repository)
        _log.warning("old objects of the private clone %s were not removed: %s", repository.path, failure)


def fetch_source_tree(source: SourceRepository, tree: str, store: Repository) -> bool:
    """Return whether a tree of the source is available, after an attempt to fetch what a shallow repository has not of it.

    What is fetched is kept in `store`, and this process reads it from there.
    """
    repository = source.repository
    return _fetch_tree(
        repository, source.url or (find_remote_url(repository, "origin") if repository.is_shallow else None), tree, store
    )


def fetch_output_tree(output: OutputRepository, tree: str) -> bool:
    """Return whether an earlier tree of the output is available, after an attempt to fetch what differs from the head of its remote.

    What is fetched is kept beside the state, and this process reads it from there.
    """
    repository = output.repository
    return repository.has(tree) or _fetch_tree(repository, output.remote, tree, output.state_repository)


def _fetch_tree(repository: Repository, url: str | None, tree: str, store: Repository) -> bool:
    if repository.has(tree):
        return True
    if url is None or not _OBJECT_ID.fullmatch(tree):
        return False
    with contextlib.suppress(GitschedError):
        if not store.has(tree):
            fetch_objects(store, repository, url, [tree])
        repository.read_also(store)
    return repository.has(tree)
