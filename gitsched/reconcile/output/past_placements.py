"""Read where workloads were placed after an earlier run: the output commit that a revision means, and its records."""

from __future__ import annotations

from gitsched.decide.commit_metadata import SOURCE_TRAILER
from gitsched.git import Repository
from gitsched.model.commit import Commit
from gitsched.model.document import Key
from gitsched.model.errors import Permanent
from gitsched.model.history import HistoryFilter
from gitsched.model.scheduling import RecordedDecision
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.fetch import fetch_output_history, read_run_record
from gitsched.reconcile.output.history_records import CommitRecords, HistoryBranch
from gitsched.reconcile.run import Fetched, RunContext
from gitsched.render.format_versions import FORMAT_VERSION
from gitsched.render.output_files import PLACEMENTS, placement_path
from gitsched.render.placement_records import PlacementRecord
from gitsched.report.lines import abbreviate_oid

MAX_COMMITS = 20_000
"""Output commits among which that of a revision is searched, from the newest on."""


class PastPlacements(NamedTuple):
    """The placements of one output commit. `source` is the source commit that it was planned from, None if it is not available. `recorded`
    are the decisions that only records show."""

    commit: Commit
    source: Commit | None
    recorded: tuple[RecordedDecision, ...]
    paths: frozenset[str]
    records: CommitRecords

    def find(self, workload: Key) -> PlacementRecord | None:
        """Return where a workload was; None if it was not placed."""
        path = placement_path(workload).removeprefix(f"{PLACEMENTS}/")
        return self.records.read_placement(self.commit, path) if path in self.paths else None


def read_past_placements(context: RunContext, fetched: Fetched, revision: str) -> PastPlacements:
    """Return the placements after the run that a revision means: a commit of the output branch, or one of the source.

    A source commit means the newest output commit that was planned from it, or from the nearest earlier source commit that changed
    anything. Raise Permanent if there is none.
    """
    head = fetched.output_head
    if head is None:
        raise Permanent(f"nothing is known to be placed at {revision}: {fetched.output.describe_missing()}")
    fetch_output_history(fetched, MAX_COMMITS)
    context.source.deepen(fetched.source.oid)
    output, source = fetched.output.repository, context.source.repository
    commit = _find_commit(source, output, head, fetched.output.branch, revision)
    branch = HistoryBranch(fetched.output.branch, output, commit.oid, fetched.prefix)
    record = read_run_record(output, commit.tree, fetched.prefix)
    records = CommitRecords(branch, HistoryFilter(), lambda _: record.format_version if record is not None else FORMAT_VERSION)
    planned = dict(commit.trailers).get(SOURCE_TRAILER, "")
    return PastPlacements(
        commit,
        source.commit(planned) if planned and source.has_commit(planned) else None,
        records.read_recorded(commit),
        frozenset(records.list_placements(commit)),
        records,
    )


def _find_commit(source: Repository, output: Repository, head: str, branch: str, revision: str) -> Commit:
    named = source.resolve(revision) or source.resolve(f"refs/remotes/origin/{revision}")
    own = output.resolve(revision)
    if named is None and own is None:
        raise Permanent(f"neither the source nor the output branch {branch} has a commit {revision!r}")
    nearest: Commit | None = None
    searched = 0
    for commit in output.list_first_parents(head, MAX_COMMITS):
        searched += 1
        if commit.oid in (named, own):
            return commit
        planned = dict(commit.trailers).get(SOURCE_TRAILER, "")
        if nearest is None and named and planned and source.has_ancestor(named, planned):
            nearest = commit
    if nearest is None:
        is_own = output.is_shallow and output.private is None
        reason = " (the clone is shallow: `git fetch --unshallow` fetches the rest)" if is_own else ""
        if searched == MAX_COMMITS:
            reason = f" (the newest {MAX_COMMITS:,} commits of the output branch are searched)"
        raise Permanent(
            f"no commit of the output branch {branch} was planned from {abbreviate_oid(named or own or revision)} or from a commit before "
            f"it{reason}; `gitsched history` lists the commits of the output branch"
        )
    return nearest
