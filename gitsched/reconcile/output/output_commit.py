"""Write the output tree of a plan, check it against the review, and publish it as a commit on the output branch."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, cast

from gitsched import __version__
from gitsched.decide.commit_metadata import (
    make_commit_message,
    make_plain_commit_message,
    make_rewrite_message,
    render_metadata_files,
)
from gitsched.decide.guard.guard_settings import has_guard_changed, read_guard_record
from gitsched.decide.incremental.plan_contents import PASSING_CODES, can_continue, has_new_records, make_plan_contents
from gitsched.decide.recorded_decisions import compare_recorded, describe_previous
from gitsched.decide.registry import policy_apis
from gitsched.git import Repository, make_signer
from gitsched.git.notes import read_note
from gitsched.model.fault import describe_fault, make_fault_finding
from gitsched.model.finding import Finding
from gitsched.model.planned_files import ExistingBlob, NewBlob, PatchedBlob, PlannedFile, WritableFile
from gitsched.model.system_errors import is_bug
from gitsched.model.time import EPOCH
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.cache.caches import Caches, LastWritten
from gitsched.reconcile.cache.plan_cache import PlanCache, PlanCacheHeader
from gitsched.reconcile.cache.plan_file import PlanFile, RowStore
from gitsched.reconcile.output.output_records import open_records
from gitsched.reconcile.output.patched_manifests import write_patches
from gitsched.reconcile.run import (
    RECONCILED,
    CompleteState,
    Fetched,
    Planned,
    Published,
    ReconciledSource,
    RunContext,
    StateUpdate,
    Written,
)
from gitsched.reconcile.source.settled_files import list_settled
from gitsched.reconcile.source.unread_entries import REGULAR_FILE_MODES
from gitsched.render.output_files import FREEZE, GITATTRIBUTES_FILE, HYDRATOR_METADATA, README, RUN_METADATA
from gitsched.render.run_metadata import GITATTRIBUTES, RunMetadata

if TYPE_CHECKING:
    from gitsched.decide.decisions import DecisionSet
    from gitsched.decide.incremental.plan_state import Totals
    from gitsched.decide.plan_result import Plan
    from gitsched.model.changes import RecordChange

_log = logging.getLogger("gitsched.reconcile")
MAX_UNSTABLE = 100
"""Workloads with changed records that the next run decides again. Of more, this one finds out which may change again, because a run that
decides many workloads reads their records and documents first."""
MIN_KEYED_ROWS = 500
"""Workloads and clusters from which on a commit says whether the next run has nothing to do. To find that out takes a part of the time of a
plan; a plan of fewer takes half a second."""


def write(context: RunContext, fetched: Fetched, planned: Planned) -> Written:
    """Write the output tree of a plan."""
    repository = fetched.output.repository
    plan, tree = planned.plan, _write_output_tree(context, fetched, planned.plan, repository)
    changed = tree != fetched.output_tree or _has_record_changed(fetched, planned)
    records: tuple[RecordChange, ...] = ()
    if isinstance(planned.state, StateUpdate):
        records = compare_recorded(planned.state.cache.header.totals.engines.recorded, plan.totals.engines.recorded)
    if changed and plan.details is not None and (fetched.output_tree or plan.totals.engines.recorded):
        previous = open_records(context, fetched) if fetched.output_tree else {}
        try:
            records = compare_recorded(describe_previous(previous), plan.totals.engines.recorded)
        except Exception as error:
            if not is_bug(error):
                raise
            what = "recorded decisions were compared with the last ones: the commit does not name what changed"
            return Written(tree, changed, (), findings=(make_fault_finding(error, what),))
    findings: list[Finding] = []
    if tree != fetched.output_tree and fetched.output_tree:
        from gitsched.reconcile.output.immutable_changes import find_immutable_changes  # only for a changed output

        findings = find_immutable_changes(context, fetched, planned, tree)
    if changed and fetched.is_edited and plan.details is not None:
        from gitsched.reconcile.output.output_edits import find_undone_edits  # only after commits of people

        edits = find_undone_edits(fetched, tree)
        return Written(tree, changed, records, findings=(*findings, *edits.findings), edits=tuple(edits.deciding))
    return Written(tree, changed, records, findings=tuple(findings))


def _has_record_changed(fetched: Fetched, planned: Planned) -> bool:
    """Return whether gitsched.json has to record something besides the tree: for the guard, of a rollout, or the Tenants, which the next
    run trusts."""
    plan, record = planned.plan, fetched.record
    rollouts = record.rollouts if record is not None else ()
    return (
        has_guard_changed(record.guard if record is not None else None, plan.guard, plan.releases)
        or [rollout.steps for rollout in rollouts] != [rollout.steps for rollout in plan.rollout_records]
        or planned.tenants != (record.tenants if record is not None else ())
    )


class NewCommit(NamedTuple):
    """A commit that is written but not published, and its tree. `findings` are about a bug that showed in its message. With a `plan_key`,
    no decision changes in the next run of the same source. `rewrite` is the commit that rewrites the output of an earlier version: the
    parent, or this commit itself if the plan changes nothing."""

    oid: str
    tree: str
    findings: tuple[Finding, ...] = ()
    plan_key: str = ""
    rewrite: str | None = None


def publish(context: RunContext, fetched: Fetched, planned: Planned, written: Written, commit: NewCommit | None) -> Published:
    """Move the output branch to the new commit, None if nothing has changed; and keep the plan for the next run.

    Raise Conflict if another process has moved the branch.
    """
    published = _publish(context, fetched, planned, commit)
    _update_caches(context.caches, fetched, planned, written, published, is_settled=commit is not None and bool(commit.plan_key))
    return published


def _publish(context: RunContext, fetched: Fetched, planned: Planned, commit: NewCommit | None) -> Published:
    output, plan, record = fetched.output, planned.plan, fetched.record
    # The record says since when clusters retire and copies are retained, and it is only written with the commit of a plan.
    is_recorded = record is not None and (record.retiring, record.retained) == (plan.retiring, plan.retained)
    if commit is None:
        head = fetched.output_head
        if head and output.remote is not None:
            output.push_local_branch()
            output.update_local_branch(head)
        note = _make_note(context, fetched, head) if head else ""
        if head and fetched.source.oid and read_note(output.repository, head) != note:
            output.publish(head, head, note)
        return Published(None, False, fetched.output_tree if is_recorded else None)
    between = commit.rewrite if commit.rewrite != commit.oid else None
    moved = output.publish(commit.oid, fetched.output_head, _make_note(context, fetched, commit.oid), between)
    has_plan = commit.rewrite != commit.oid or is_recorded
    # Otherwise another process has published the same commit before.
    return Published(commit.oid, True, commit.tree if has_plan else None, "" if moved else "same")


def prepare_commit(context: RunContext, fetched: Fetched, planned: Planned, written: Written) -> NewCommit | None:
    """Commit the output tree with its metadata, after the commit that rewrites the output of an earlier version; None if nothing has
    changed. No ref moves."""
    rewrite = None if fetched.rewritten is None else _commit_rewrite(context, fetched, fetched.rewritten)
    if not written.changed:
        return None if rewrite is None else NewCommit(rewrite, fetched.output_tree or "", rewrite=rewrite)
    plan, repository = planned.plan, fetched.output.repository
    before, after = (_list_root_entries(repository, fetched.prefix, tree) for tree in (fetched.output_tree, written.tree))
    changed_entries = {name for name, _ in before ^ after}
    tree = write_metadata(context, fetched, repository, planned, written)
    plan_key, trailers = _find_plan_key(context, fetched, planned, written)
    message, findings = (
        (planned.message, ()) if planned.message else _make_message(fetched, plan, written, changed_entries, trailers)
    )
    commit = commit_output(context, fetched, repository, tree, message, plan.time, rewrite)
    return NewCommit(commit, tree, findings, plan_key, rewrite)


def write_metadata(context: RunContext, fetched: Fetched, repository: Repository, planned: Planned, written: Written) -> str:
    """Return the written tree with the README.md and metadata of its plan."""
    metadata = render_metadata_files(
        fetched.source,
        planned.plan,
        context.source.url,
        __version__,
        fetched.facts.commits,
        planned.builds,
        planned.kept_files,
        planned.tenants,
    )
    return _write_files(context, fetched.prefix, repository, metadata, written.tree)


def _commit_rewrite(context: RunContext, fetched: Fetched, rewritten: RunMetadata) -> str:
    """Commit the output of an earlier version as this one writes it. It has the date of the commit before, since no event causes it."""

    subject, source = fetched.trusted.config.output.commit_subject, (fetched.record or rewritten).source
    message = make_rewrite_message(rewritten, source, __version__, subject)
    return commit_output(context, fetched, fetched.output.repository, fetched.output_tree or "", message, EPOCH)


def _find_plan_key(context: RunContext, fetched: Fetched, planned: Planned, written: Written) -> tuple[str, dict[str, str]]:
    """Return the key of a plan that the next run need not make again, and the trailer with it; "" and no trailer for any other plan.

    What the commit delivers does not depend on it: after a bug, there is no trailer.
    """
    totals = planned.plan.totals
    if totals.overview.workload_count + totals.overview.cluster_count < MIN_KEYED_ROWS:
        return "", {}
    from gitsched.reconcile.output.recorded_plan import PLAN_KEY, find_plan_key  # not for a small fleet

    try:
        key = find_plan_key(context, fetched, planned, written)
    except Exception as error:
        if not is_bug(error):
            raise
        _warn_about_bug(error, "the decisions were made once more; the next run plans everything")
        return "", {}
    return key, {PLAN_KEY: key} if key else {}


def _warn_about_bug(error: Exception, what: str) -> None:
    _log.warning("%s while %s; report this bug", describe_fault(error), what)


def _update_caches(
    caches: Caches, fetched: Fetched, planned: Planned, written: Written, published: Published, *, is_settled: bool
) -> None:
    """Keep the published plan, so that the next run can start from it. If a bug shows in that, the next plan is a complete one."""
    try:
        caches.plan = make_plan_cache(caches, fetched, planned, published.tree, is_settled=is_settled) if published.tree else None
    except Exception as error:
        if not is_bug(error):
            raise
        caches.plan = None
        _warn_about_bug(error, "the plan was stored for the next run, which plans everything again")
    if written.changed and published.tree:
        caches.last_written = LastWritten(published.tree, planned.plan) if planned.plan.details is not None else None


def make_plan_cache(caches: Caches, fetched: Fetched, planned: Planned, output_tree: str, *, is_settled: bool) -> PlanCache | None:
    """Return the plan cache of a plan that led to an output tree; None if the next plan has to be complete. No decision of one that
    `is_settled` changes in the next run."""
    state = planned.state
    if state is None or planned.plan.releases is not None:  # the findings about releases are those of this run alone
        return None
    if not isinstance(state, CompleteState):
        from gitsched.reconcile.incremental.updated_state import update_state  # only for a plan that started from a state

        return update_state(fetched, planned, state, output_tree)
    return make_complete_state(
        fetched, planned, output_tree, lambda: PlanFile(caches.get_plan_path(fetched.cache_key)), is_settled=is_settled
    )


def _list_settled(fetched: Fetched, output_tree: str, state: CompleteState) -> Mapping[str, str | None] | None:
    """Return the broken files that the next plan need not read again; None if it has to be complete."""
    if not state.used_versions:
        return {}
    return list_settled(fetched, output_tree, state.used_versions)


def _list_unstable(totals: Totals, decisions: DecisionSet, *, is_settled: bool) -> Totals | None:
    """Return the totals with the workloads that the next plan has to decide again; None if it has to be complete."""
    from gitsched.decide.incremental.repeated_decisions import find_limited, find_unstable  # few commits change many records

    unstable = frozenset() if is_settled else find_unstable(decisions)
    if unstable is None:
        return None
    capacity = totals.capacity._replace(limited=find_limited(decisions, unstable))
    return totals._replace(unstable=unstable, capacity=capacity)


def make_complete_state(
    fetched: Fetched, planned: Planned, output_tree: str, open_store: Callable[[], RowStore], *, is_settled: bool = False
) -> PlanCache | None:
    """Return the state of a complete plan that led to an output tree; None if the next plan has to be complete."""
    plan, state = planned.plan, planned.state
    if not isinstance(state, CompleteState) or plan.details is None or plan.releases is not None:
        return None
    if not can_continue(plan.details.decisions, plan.details.rendered, plan.totals, state.previous):
        return None
    decisions = plan.details.decisions
    if decisions.input is not None and decisions.input.adopted != plan.adopted:
        return None  # what is no longer held may be decided otherwise
    if plan.withheld.waiting or (plan.withheld.moves and not decisions.withheld):
        return None  # the next plan decides which moves pass; or the plan only reports what is withheld
    is_unread = has_new_records(plan.totals, state.previous)
    others = tuple(finding for finding in plan.totals.other_findings if finding.code not in PASSING_CODES)
    totals = plan.totals._replace(
        retained=(),
        engines=plan.totals.engines._replace(has_new_records=is_unread, observations=dict(plan.observations)),
        other_findings=others,
        unstable=plan.totals.unstable - decisions.withheld_settled,
        withheld=plan.withheld,
        withheld_wakeups=decisions.withheld_wakeups,
    )
    api_documents = decisions.catalog.api_documents
    if is_settled or len(totals.unstable) > MAX_UNSTABLE:
        known = _list_unstable(totals, decisions, is_settled=is_settled)
        if known is None:
            return None
        totals = known
    settled = _list_settled(fetched, output_tree, state)
    if settled is None:
        return None
    header = PlanCacheHeader(
        fetched.cache_key,
        fetched.source.tree,
        output_tree,
        tuple(api_documents),
        totals,
        planned.facts,
        state.reading_rules,
        settled=settled,
        builds=planned.builds,
        failed_builds=state.failed_builds,
    )
    serializable = {api.name for api in policy_apis.values() if api.serializable}
    persistent = all(engine.name in serializable for engine in decisions.engines)
    contents = make_plan_contents(*plan.details, state.source_paths)
    return PlanCache.create(header, open_store() if persistent else None, contents)


def _write_output_tree(context: RunContext, fetched: Fetched, plan: Plan, repository: Repository) -> str:
    """Write the output tree with the README.md and metadata of the last commit, so that it equals the last tree where nothing changed."""
    if plan.details is None:
        return _write_files(context, fetched.prefix, repository, plan.files, fetched.output_tree)
    metadata, base = dict[str, PlannedFile | None](), None
    if fetched.output_tree:
        entries = repository.list_directory(fetched.output_tree, fetched.prefix.rstrip("/"))
        metadata = {
            name: ExistingBlob(entries[name][0])
            for name in (README, RUN_METADATA, HYDRATOR_METADATA, FREEZE)
            if name in entries and entries[name][1] in REGULAR_FILE_MODES
        }
        if FREEZE in entries:  # what is no file freezes placements, too, and no commit of a run lifts that
            metadata.setdefault(FREEZE, NewBlob(f"{fetched.frozen}\n".encode()))
        if fetched.prefix:
            root = {fetched.prefix.rstrip("/"): None}
            base = repository.make_tree(root, base=fetched.output_tree, read=context.source.repository)
    return _write_files(context, fetched.prefix, repository, {**plan.files, GITATTRIBUTES_FILE: GITATTRIBUTES, **metadata}, base)


def _write_files(
    context: RunContext, prefix: str, repository: Repository, files: Mapping[str, PlannedFile | None], base: str | None
) -> str:
    written = _write_patches(context, files)
    placed = {f"{prefix}{path}": file for path, file in written.items()} if prefix else written
    return repository.make_tree(placed, base=base, read=context.source.repository)


def _write_patches(context: RunContext, files: Mapping[str, PlannedFile | None]) -> Mapping[str, WritableFile | None]:
    if any(isinstance(file, PatchedBlob) for file in files.values()):
        return write_patches(context, files)
    return cast("Mapping[str, WritableFile | None]", files)


def _list_root_entries(repository: Repository, prefix: str, tree: str | None) -> set[tuple[str, tuple[str, int]]]:
    """Return the entries at the root of an output tree."""
    return set(repository.list_directory(tree, prefix.rstrip("/")).items()) if tree else set()


def _make_message(
    fetched: Fetched, plan: Plan, written: Written, changed_entries: set[str], trailers: Mapping[str, str]
) -> tuple[str, tuple[Finding, ...]]:
    """Return the commit message, and an error if a bug showed in describing what changed: what the commit delivers does not depend on it.

    `changed_entries` are the names at the root of the output that differ from the last commit.
    """
    source, facts = fetched.source, fetched.facts
    facts_time, branches = (facts.time, facts.commits) if facts.branches else (EPOCH, {})
    try:
        message = make_commit_message(
            source,
            plan,
            written.record_changes,
            changed_entries,
            __version__,
            facts_time,
            branches,
            trailers,
            follows_edits=bool(written.edits),
            withheld_before=read_guard_record(fetched.record.guard).digest if fetched.record is not None else "",
        )
    except Exception as error:
        if not is_bug(error):
            raise
        what = "the commit message was written: the commit does not name what changed, and what it delivers is complete"
        plain = make_plain_commit_message(source, plan, __version__, facts_time, branches)
        return plain, (make_fault_finding(error, what),)
    return message, ()


def commit_output(
    context: RunContext,
    fetched: Fetched,
    repository: Repository,
    tree: str,
    message: str,
    time: datetime,
    parent: str | None = None,
) -> str:
    """Commit a tree on the head of the output branch, or on another `parent`, with the author and the key that settings name. It is
    not older than the head. No ref moves."""
    head = fetched.output_head
    name, email = context.settings.author or fetched.trusted.config.output.author
    signing = context.settings.signing  # gitsched.yaml cannot choose a key of the operator
    signer = make_signer(repository, format=signing[0], key=signing[1]) if signing else None
    time = max(time, repository.commit(head).time) if head else time
    return repository.commit_tree(tree, (parent or head,) if head else (), message, name=name, email=email, time=time, sign=signer)


def _make_note(context: RunContext, fetched: Fetched, commit: str) -> str:
    """Return the note for an output commit: it names the newest source commit that a run has planned, and describes the outputs that have
    this commit."""
    source = fetched.source.oid
    if not (fetched.output_head or fetched.prefix or fetched.chosen_by_operator or context.settings.output_branch):
        members: dict[str, object] = {RECONCILED: {fetched.output.branch: ReconciledSource(source, fetched.branch)._asdict()}}
    else:
        from gitsched.reconcile.output.recorded_output import describe_outputs  # only after an earlier run, or with a chosen output

        members = describe_outputs(context, fetched, commit)
    return json.dumps({"drySha": source, **members}, separators=(",", ":")) + "\n"
