"""Read which withheld changes are allowed and which held workloads are released: by options of the run, and by trailers of the source
commits since the last run. With tenants, only those of commits that change a file of the platform count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gitsched.apis.gitsched.tenancy import PLATFORM, TenantPaths
from gitsched.decide.guard.guard_settings import read_guard_record
from gitsched.model.changes import ALLOW_TRAILER
from gitsched.model.commit import RELEASE_CLUSTER_TRAILER, RELEASE_TRAILER, Commit
from gitsched.model.holds import make_releases
from gitsched.reconcile.source.source_notes import find_earlier_source

if TYPE_CHECKING:
    from gitsched.git import Repository
    from gitsched.model.holds import Releases
    from gitsched.reconcile.run import Fetched, RunContext

MAX_COMMITS = 1000
"""Commits since the last run whose trailers count."""


def list_allowed_changes(context: RunContext, fetched: Fetched) -> frozenset[str]:
    """Return the digests that the options and the source commits since the last run allow.

    In a shallow clone the commits that it has count. Where the commit of the last run is missing for another reason, only commits after
    its time count.
    """
    (allowed,) = _list_trailers(context, fetched, ALLOW_TRAILER)
    return frozenset((*context.settings.choices.allowed, *allowed))


def read_releases(context: RunContext, fetched: Fetched) -> Releases | None:
    """Return what the options and the source commits since the last run release, and earlier ones of which the moves are withheld; None if
    it is nothing."""
    workloads, written = _list_trailers(context, fetched, RELEASE_TRAILER, RELEASE_CLUSTER_TRAILER)
    clusters = [*context.settings.choices.released_clusters, *written]
    if fetched.record is not None and fetched.record.guard:
        workloads = [*workloads, *read_guard_record(fetched.record.guard).released]
    if not (workloads or clusters):
        return None
    return make_releases(workloads, clusters)


def _list_trailers(context: RunContext, fetched: Fetched, *wanted: str) -> list[list[str]]:
    """Return the values of each wanted trailer."""
    last = fetched.record.source if fetched.record is not None else ""
    repository, since = context.source.repository, None
    if fetched.record is not None and not repository.has_commit(last) and not repository.is_shallow:
        last, since = find_earlier_source(context.source, fetched), fetched.record.time
    commits: Iterable[Commit] = _list_commits(repository, fetched.source, last)
    if since is not None:  # what an earlier run has seen must not count again
        commits = [commit for commit in commits if commit.time > since]
    if fetched.record is not None and fetched.record.tenants:
        commits = _select_of_platform(commits, fetched.source, last, repository, fetched.record.tenants)
    trailers = [(name.lower(), text.strip()) for commit in commits for name, text in commit.trailers]
    return [[text for name, text in trailers if name == trailer.lower()] for trailer in wanted]


def _select_of_platform(
    commits: Iterable[Commit], head: Commit, last: str, repository: Repository, tenants: tuple[Mapping[str, Any], ...]
) -> list[Commit]:
    """Return the commits that change a file of the platform. Anyone may write a message, and a tenant must not speak for others with it.

    A branch of a tenant can have commits that change such a file although its merge does not: those that a later commit reverts, that
    repeat changes of the trusted branch, or that merge it. So what counts is what the commits of the trusted branch change, which are the
    first parents, and only what the source has still.
    """
    from gitsched.reconcile.tenants.source_tenants import make_trusted_paths  # few sources have tenants

    known = {commit.oid: commit for commit in commits}
    if not any(commit.trailers for commit in known.values()):
        return []
    paths = make_trusted_paths(tenants)
    before = repository.commit(last).tree if last and repository.has_commit(last) else None
    lasting = frozenset(_list_platform_paths(before, head.tree, repository, paths)) if before is not None else None
    found: dict[str, Commit] = {}
    pending = dict(known)
    commit: Commit | None = head if head.oid in known else None
    while commit is not None:
        changed = _list_changes(commit, repository, paths)
        if changed and (lasting is None or not lasting.isdisjoint(changed)):
            merged = (
                repository.list_ancestors(commit.parents[1:], commit.parents[0], MAX_COMMITS) if len(commit.parents) > 1 else []
            )
            found[commit.oid] = commit
            found |= {other.oid: other for other in merged if other.trailers and _list_changes(other, repository, paths)}
        parent = commit.parents[0] if commit.parents else ""
        commit = pending.pop(parent, None)  # a merge that is not made yet has the name of the commit that it merges
    return [found[oid] for oid in known if oid in found]


def _list_changes(commit: Commit, repository: Repository, paths: TenantPaths) -> list[str]:
    """Return the files of the platform that a commit changes; none if its parent is not available."""
    parent = commit.parents[0] if commit.parents else ""
    if parent and not repository.has_commit(parent):
        return []
    return _list_platform_paths(repository.commit(parent).tree if parent else None, commit.tree, repository, paths)


def _list_platform_paths(before: str | None, after: str, repository: Repository, paths: TenantPaths) -> list[str]:
    return [path for path in repository.changed_paths(before, after) if paths.find_owner(path) == PLATFORM]


def _list_commits(repository: Repository, head: Commit, last: str) -> list[Commit]:
    """Return a commit and its ancestors, the newest first, without the commit of the last run and its ancestors."""
    if head.oid == last:
        return []
    others = tuple(parent for parent in head.parents if parent != last)
    return [head, *repository.list_ancestors(others, last, MAX_COMMITS - 1)] if others else [head]
