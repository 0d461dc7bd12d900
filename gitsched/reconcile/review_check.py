"""Check that a run does what was reviewed: compare manifests of two output trees and the digest of the plan."""

from __future__ import annotations

from gitsched.diff.plans import (
    FileChange,
    PathLookup,
    compare_manifests,
    compare_with_review,
    find_reviewed_digest,
    list_manifest_changes,
)
from gitsched.git import Repository
from gitsched.git.refs import read_note
from gitsched.model.changes import Move, SelectionChange
from gitsched.reconcile.fetch import Fetched
from gitsched.reconcile.run import RunResult, RunSettings
from gitsched.render.layout import CLUSTERS, object_path
from gitsched.report.review import DeliveryChanges, compute_digest
from gitsched.report.summary import REVIEWED_TRAILER


def find_manifest_changes(repository: Repository, prefix: str, before: str | None, after: str) -> tuple[FileChange, ...]:
    """The manifests that differ between two trees of the output branch; `prefix` is where the output lies inside them."""
    changed = (path.removeprefix(prefix) for path in repository.changed_paths(before, after) if path.startswith(prefix))
    return list_manifest_changes(
        changed, _make_blob_lookup(repository, prefix, before), _make_blob_lookup(repository, prefix, after)
    )


def describe_manifest_changes(
    repository: Repository, prefix: str, before: str | None, differences: tuple[FileChange, ...]
) -> DeliveryChanges:
    """The same with their text, against the tree that was there before."""

    def former() -> list[str]:
        entries = repository.entries(before, f"{prefix}{CLUSTERS}") if before else []
        return [entry.path.removeprefix(prefix) for entry in entries]

    return compare_manifests(differences, former, _make_blob_lookup(repository, prefix, before), repository.blob)


def compute_plan_digest(
    moves: tuple[Move, ...], differences: tuple[FileChange, ...], choices: tuple[SelectionChange, ...] = ()
) -> str:
    """The digest of a plan: see `report.digest`.

    A copy in a cluster that a workload leaves may stay for a while or be gone at once, which is a matter of the moment.
    """
    leaving = {object_path(cluster, move.key) for move in moves for cluster in move.before if cluster not in move.after}
    return compute_digest(moves, {entry.path: entry.after for entry in differences if entry.path not in leaving}, choices)


def _make_blob_lookup(repository: Repository, prefix: str, tree: str | None) -> PathLookup:
    def look(path: str) -> str | None:
        entry = repository.find_entry(tree, f"{prefix}{path}") if tree else None
        return entry[0] if entry else None

    return look


def check_reviewed_plan(settings: RunSettings, observed: Fetched, run: RunResult) -> RunResult:
    """The run, with how it compares to what was reviewed, refused where settings ask for what it is not.

    A review is of a commit: what time or metrics change after a run has seen the commit needs none.
    """
    source = observed.source
    reviewed = settings.reviewed or find_reviewed_digest(source)
    if not run.changed or (settings.reviewed is None and _has_seen_source(observed)):
        return run
    if reviewed is None:
        missing = f"commit {source.oid} names no reviewed plan: it has no trailer {REVIEWED_TRAILER}, and --reviewed is not given"
        return run._replace(refused=missing) if settings.require_reviewed else run
    moves = run.plan.moves
    differences = find_manifest_changes(observed.output.repository, observed.prefix, observed.output_tree, run.tree)
    found = compare_with_review(reviewed, compute_plan_digest(moves, differences, run.choices), observed.output_head, moves)
    refused = "" if found.same or not settings.require_reviewed else "this is not what was reviewed"
    return run._replace(reviewed=found.lines, refused=refused)


def make_source_note(oid: str) -> str:
    """What a git note on the output's head says: the newest source commit that a run has seen."""
    return f'{{"drySha":"{oid}"}}\n'


def _has_seen_source(observed: Fetched) -> bool:
    """Whether an earlier run has seen this source commit, be it that nothing came of it."""
    oid, head = observed.source.oid, observed.output_head
    if observed.record is not None and observed.record.source == oid:
        return True
    return head is not None and read_note(observed.output.repository, head) == make_source_note(oid)
