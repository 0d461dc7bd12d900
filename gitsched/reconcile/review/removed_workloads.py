"""Find a workload that the source does not have any more, or that no policy selects any more, in the earlier commits of the output
branch."""

from __future__ import annotations

from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final

from gitsched.decide.commit_metadata import SOURCE_TRAILER
from gitsched.model.history import HistoryFilter
from gitsched.model.time import format_age, format_time
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.output.history_records import CommitRecords, HistoryBranch, identify_recorded
from gitsched.reconcile.output.history_taints import ComparedTrees, contains, read_documents
from gitsched.reconcile.output.removed_documents import describe_cure, find_removed_document, find_removed_workload
from gitsched.reconcile.review.resource_names import matches_name
from gitsched.reconcile.source.source_commits import find_change, find_source_commit
from gitsched.render.format_versions import FORMAT_VERSION
from gitsched.render.output_files import PLACEMENTS, placement_path
from gitsched.render.placement_records import PlacementRecord, read_placement_key
from gitsched.report.history import describe_source
from gitsched.report.lines import abbreviate_oid, format_clusters, format_words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitsched.git import Repository
    from gitsched.model.commit import Commit
    from gitsched.model.document import Key
    from gitsched.model.fleet_status import UnclaimedObject
    from gitsched.model.recent_runs import RecentRun
    from gitsched.reconcile.run import Fetched, RunContext

MAX_COMMITS: Final = 200
"""Commits of the output branch that are searched."""
MAX_FILES: Final = 200
"""Changed files of a commit of the source that are searched."""
MAX_RENAMED: Final = 20
"""Removed workloads that are searched under another namespace."""


def describe_removed(context: RunContext, fetched: Fetched, kind: str, namespace: str | None, name: str) -> str:
    """Return that the workload that was typed was removed, or what its namespace is now, and where its history is; "" if no recent commit
    of the output had it. As for other names, the kind may be "", or a namespace."""
    repository = fetched.output.repository
    commits = list(repository.list_first_parents(fetched.output_head, MAX_COMMITS + 1))
    trees = [_find_placements(repository, commit, fetched.prefix) for commit in commits]
    for entry in repository.entries(trees[0]) if trees and trees[0] is not None else ():
        key = read_placement_key(entry.path)
        if key is not None and _is_meant(key, kind, namespace, name):
            return ""  # the next run removes it, or its document counts as broken
    for (commit, after), (_, before) in pairwise(zip(commits, trees, strict=True)):
        for path in repository.changed_paths(before, after) if before != after else ():
            key = read_placement_key(path)
            if key is not None and _is_meant(key, kind, namespace, name):
                removed = f"output commit {abbreviate_oid(commit.oid)} removed it ({format_time(commit.time)})"
                shows = f"`gitsched history {format_words(key)}` shows why"
                new = _find_new_namespace(context, fetched, key)
                if new is not None:
                    now = f"{format_words(new)} now: `gitsched explain {format_words(new)}` says where that is"
                    return f"{format_words(key)} is {now}; {removed}; {shows}"
                return f"{format_words(key)} is gone: {removed}; {shows}"
    return ""


def find_unselected_names(
    context: RunContext, fetched: Fetched, runs: Iterable[RecentRun], unclaimed: Iterable[UnclaimedObject]
) -> dict[Key, UnclaimedObject]:
    """Return the workloads that runs removed because their namespace was changed, with what they are now, which no policy selects."""
    known = {identify_recorded(one.key): one for one in unclaimed}
    names = {key._replace(namespace="") for key in known}
    removed = (loss.move.key for run in runs for loss in run.losses if loss.kind == "removed")
    found: dict[Key, UnclaimedObject] = {}
    for key in islice((key for key in removed if identify_recorded(key)._replace(namespace="") in names), MAX_RENAMED):
        new = _find_new_namespace(context, fetched, key)
        if new is not None and identify_recorded(new) in known:
            found[key] = known[identify_recorded(new)]
    return found


def _find_new_namespace(context: RunContext, fetched: Fetched, key: Key) -> Key | None:
    """Return what a workload is since the commit of the source that removed it, if this added one with the same kind and name in another
    namespace; None if not."""
    source, cache = context.source.repository, context.caches.files
    removal = find_removed_workload(context, fetched, key)
    change = find_change(source, removal.source.commit) if removal is not None else None
    if change is None:
        return None
    old, mark = identify_recorded(key), key.name.encode()
    trees = ComparedTrees(source, change.before, change.after, change.paths[:MAX_FILES])
    had, has = (
        {one.key for path in trees.paths if contains(trees, tree, path, mark) for one in read_documents(cache, trees, tree, path)}
        for tree in (trees.before, trees.after)
    )
    added = (one for one in sorted(has - had) if identify_recorded(one)._replace(namespace=old.namespace) == old)
    return next(added, None)


class LastPlacement(NamedTuple):
    """Where a workload was last, why, and the output commit since which it is nowhere."""

    record: PlacementRecord
    commit: Commit


def find_last_placement(fetched: Fetched, key: Key) -> LastPlacement | None:
    """Return where a workload was that has no placement any more; None if it has one, or had none in the recent commits of the output."""
    branch = HistoryBranch.of_fetched(fetched)
    records = CommitRecords(branch, HistoryFilter(), lambda _: FORMAT_VERSION)
    path = placement_path(key).removeprefix(f"{PLACEMENTS}/")
    after: Commit | None = None
    for commit in fetched.output.repository.list_first_parents(fetched.output_head, MAX_COMMITS + 1):
        record = records.read_placement(commit, path)
        if record is not None:
            return LastPlacement(record, after) if after is not None and record.clusters else None
        after = commit
    return None


def describe_last_placement(context: RunContext, fetched: Fetched, key: Key) -> tuple[str, bool]:
    """Return where a workload was that no policy selects any more, until when, which commit of the source removed its policy, and how to
    get it back, "" if it was nowhere; and whether the policy was removed."""
    last = find_last_placement(fetched, key)
    if last is None:
        return "", False
    policy = last.record.reason.partition(" ")[0].rstrip(",;:")
    until = f"Until {format_age(last.commit.time, context.settings.now)} ago it was on {format_clusters(last.record.clusters)}"
    is_policy = policy.count("/") in (1, 2)
    removal = find_removed_document(context, fetched, policy) if is_policy else None
    by = f" by {policy}" if is_policy else ""
    if removal is not None:
        cure = describe_cure(context, fetched, removal.source, {removal.path})
        return f"{until}{by}, which {describe_source(removal.source)} removed; to get it back: {cure}.", True
    oid = dict(last.commit.trailers).get(SOURCE_TRAILER, "")
    with_source = f" with {describe_source(find_source_commit(context.source.repository, oid))}" if oid else ""
    return f"{until}{by}; that ended{with_source}: gitsched history {format_words(key)}", False


def _is_meant(key: Key, kind: str, namespace: str | None, name: str) -> bool:
    if not kind or (namespace is None and key.namespace == kind):
        return key.name == name and namespace in (None, key.namespace)
    return matches_name(key, kind, name) and namespace in (None, key.namespace)


def _find_placements(repository: Repository, commit: Commit, prefix: str) -> str | None:
    entry = repository.find_entry(commit.tree, f"{prefix}{PLACEMENTS}")
    return entry[0] if entry is not None else None
