"""Find the expired documents of a worktree, and the files without them."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path, PurePosixPath

from gitsched.apis.capabilities import ExpiredDocument, ExpiryReporting
from gitsched.apis.policy_api import PolicyEngine
from gitsched.manifests.document_removal import NotRemovable, remove_documents
from gitsched.manifests.kustomization import list_kustomize_resources
from gitsched.manifests.kustomize import KUSTOMIZATION_NAMES
from gitsched.manifests.parsed_file import Identity
from gitsched.model.document import Key
from gitsched.model.errors import Permanent
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile import preview
from gitsched.reconcile.fetch import fetch
from gitsched.reconcile.incremental.planned_workloads import PlannedWorkloads
from gitsched.reconcile.incremental.state_plan import plan_from_state, try_with_state
from gitsched.reconcile.run import Fetched, RunContext, open_context
from gitsched.reconcile.run_settings import RunSettings
from gitsched.reconcile.worktree_file import replace_file, resolve_worktree_file


class ExpiredEntry(NamedTuple):
    """An expired document, and since when it is expired. `problem` says why it cannot be removed, or is ""."""

    key: Key
    path: str
    line: int
    since: datetime
    problem: str = ""


class TidiedFile(NamedTuple):
    """A file of the worktree with its expired documents.

    `data` is the file without those that can be removed, None to delete it; `original` is the file as it was read.
    """

    path: str
    entries: tuple[ExpiredEntry, ...]
    data: bytes | None
    original: bytes = b""

    @property
    def removable(self) -> bool:
        return any(not entry.problem for entry in self.entries)


def find_expired_documents(settings: RunSettings, root: Path) -> list[TidiedFile]:
    """Return the files of a worktree that have expired documents, by path. A request that no run has handled yet is not expired."""
    settings = settings._replace(worktree=True, observations="recorded")
    by_path: dict[str, list[ExpiredDocument]] = {}
    for entry in list_expired_documents(settings):
        if entry.document.origin is not None:
            by_path.setdefault(entry.document.origin.path, []).append(entry)
    return [_tidy_file(root, path, by_path[path]) for path in sorted(by_path)]


def list_expired_documents(settings: RunSettings) -> list[ExpiredDocument]:
    """Return the expired documents of the source."""
    context = open_context(settings)
    engines = try_with_state(lambda: _continue_engines(context, fetch(context)))
    if engines is None:
        engines = preview(settings, complete=True).plan.decisions.engines
    return [document for engine in engines if isinstance(engine, ExpiryReporting) for document in engine.expired_documents()]


def _continue_engines(context: RunContext, fetched: Fetched) -> tuple[PolicyEngine, ...]:
    """Return the engines of the last run, continued with the fetched commit."""
    planned, update = plan_from_state(context, fetched)
    return PlannedWorkloads(context, fetched, planned.plan, update).engines


def write_tidied_file(root: Path, file: TidiedFile) -> TidiedFile:
    """Write a file without its expired documents, or delete it. Return it with the problem of each document that could not be removed,
    also because the file has changed since it was read."""
    try:
        replace_file(resolve_worktree_file(root, file.path), file.original, file.data)
    except (OSError, Permanent) as error:
        entries = (entry if entry.problem else entry._replace(problem=_describe_error(error)) for entry in file.entries)
        return file._replace(entries=tuple(entries), data=file.original)
    return file


def _describe_error(error: Exception) -> str:
    return str(error.strerror if isinstance(error, OSError) and error.strerror else error)


def _tidy_file(root: Path, path: str, expired: Iterable[ExpiredDocument]) -> TidiedFile:
    try:
        original = resolve_worktree_file(root, path).read_bytes()
    except (OSError, Permanent) as error:
        return TidiedFile(path, tuple(_make_entry(entry, path, _describe_error(error)) for entry in expired), None)
    data: bytes | None = original
    entries = []
    for entry in expired:
        problem = ""
        try:
            left = remove_documents(data or b"", path, {_make_identity(entry)})
            users = _list_kustomizations(root, path) if left is None else []
            if users:
                raise NotRemovable(f"{users[0]} refers to the file: remove both")
            data = left
        except NotRemovable as error:
            problem = str(error)
        entries.append(_make_entry(entry, path, problem))
    return TidiedFile(path, tuple(entries), original if all(entry.problem for entry in entries) else data, original)


def _make_entry(entry: ExpiredDocument, path: str, problem: str) -> ExpiredEntry:
    origin = entry.document.origin
    return ExpiredEntry(entry.document.key, path, origin.line if origin else 1, entry.since, problem)


def _make_identity(entry: ExpiredDocument) -> Identity:
    key, metadata = entry.document.key, entry.document.body["metadata"]
    return key.group, key.kind, metadata.get("namespace") or "", key.name


def _list_kustomizations(root: Path, path: str) -> list[str]:
    """Return the kustomizations in the directories above a file that list it, so that they do not build without it."""
    found = []
    for directory in PurePosixPath(path).parents:
        for name in sorted(KUSTOMIZATION_NAMES):
            file = root / directory / name  # kustomize follows symlinks, too
            if file.is_file() and path in (_normalize(directory, entry) for entry in list_kustomize_resources(file.read_bytes())):
                found.append(str(directory / name))
    return found


def _normalize(directory: PurePosixPath, entry: str) -> str:
    return posixpath.normpath(posixpath.join(str(directory), entry))
