"""Bring workloads back to where an earlier run placed them: find what is elsewhere now, and write the annotations and the request."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path

from gitsched.apis.capabilities import Rescheduling, SharedDecisions
from gitsched.decide.decisions import DecisionSet
from gitsched.decide.plan_result import Plan
from gitsched.decide.registry import policy_apis
from gitsched.edits.manifest_edits import edit_document
from gitsched.edits.text_positions import NotEditable
from gitsched.git import Repository
from gitsched.manifests.parser import parse_file
from gitsched.model.document import Document, Key, read_labels
from gitsched.model.errors import Permanent
from gitsched.model.finding import format_count
from gitsched.model.preferred_clusters import PREFERRED_CLUSTERS
from gitsched.model.system_errors import make_write_error
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.fetch import fetch
from gitsched.reconcile.output.past_placements import PastPlacements, read_past_placements
from gitsched.reconcile.reschedule import HEADER, WorkloadSelection, choose_directory, make_baseline_without_requests
from gitsched.reconcile.review.resource_names import find_named
from gitsched.reconcile.run import Fetched, Planned, RunContext, open_context
from gitsched.reconcile.run_settings import RunSettings
from gitsched.reconcile.source_plan import use_plan
from gitsched.reconcile.worktree_file import replace_file, resolve_worktree_file
from gitsched.render.output_files import PLACEMENTS, placement_path
from gitsched.render.placement_records import read_placement_key
from gitsched.render.yaml import dump
from gitsched.simulate.reschedule_request import list_rescheduling_engines
from gitsched.simulate.restored_placements import (
    WORKLOAD,
    Goal,
    Restoration,
    add_annotation,
    is_elsewhere,
    list_preferred_names,
    plan_restoration,
)


class FileEdit(NamedTuple):
    """A file of the source with annotations, before and after; `before` is "" for a new file."""

    path: str
    before: str
    after: str


class _SourceFiles(NamedTuple):
    """The files of a commit, or of a worktree."""

    repository: Repository
    tree: str

    def read(self, document: Document) -> str:
        """Return the text of the file of a document. Raise NotEditable if it is not that of the document."""
        origin = document.origin
        if origin is None:
            raise NotEditable("it is in no file")
        if origin.root or origin.tool:
            raise NotEditable(f"it is built by {origin.tool or origin.root}")
        entry = self.repository.find_entry(self.tree, origin.path)
        if entry is None or entry[0] != origin.blob:
            raise NotEditable(f"{origin.path} has errors")  # the document is from its last valid version
        try:
            return self.repository.blob(origin.blob).decode("utf-8")
        except UnicodeDecodeError:
            raise NotEditable(f"{origin.path} is not UTF-8") from None


class RestorationFiles(NamedTuple):
    """What brings workloads back to the placements of an earlier run, as edits of the source.

    `removed` are workloads of that run that the source does not have any more. `skipped` are named workloads that are where they were, or
    that were not placed then, with the reason. `returning` are elsewhere, and go back with the next runs without a request.
    """

    past: PastPlacements
    restoration: Restoration
    requests: tuple[FileEdit, ...]
    edits: tuple[FileEdit, ...]
    removed: tuple[str, ...]
    skipped: tuple[tuple[Key, str], ...]
    returning: tuple[Key, ...] = ()


def make_restoration_files(
    settings: RunSettings, revision: str, selection: WorkloadSelection, ttl: timedelta | None, with_companions: bool = True
) -> RestorationFiles:
    """Return what brings the selected workloads, or all, back to the placements of the run that a revision means.

    Raise Permanent if there was no such run, or for a named workload that does not exist.
    """
    context = open_context(settings)
    fetched = fetch(context)
    past = read_past_placements(context, fetched, revision)
    make = partial(_make_files, context, fetched, past, selection, ttl, with_companions)
    return use_plan(context, fetched, settings.now, make)[1]


def _make_files(
    context: RunContext,
    fetched: Fetched,
    past: PastPlacements,
    selection: WorkloadSelection,
    ttl: timedelta | None,
    with_companions: bool,
    planned: Planned,
) -> RestorationFiles:
    baseline = make_baseline_without_requests(context, fetched, planned)
    decisions = baseline.decisions
    engines = list_rescheduling_engines(baseline)
    files = _SourceFiles(context.source.repository, fetched.source.tree)
    then_and_now = {goal.key: goal for goal in _list_goals(decisions, past, engines, files)}
    named = list(_find_named(decisions, then_and_now, selection.named))
    chosen = {key: goal for key, goal in then_and_now.items() if _is_selected(goal, selection, named)}
    if named and with_companions:
        companions = _list_companions(decisions, engines.values(), named)
        chosen |= {key: goal for key, goal in then_and_now.items() if key in companions}
    moving = [goal for goal in chosen.values() if is_elsewhere(goal.wanted, goal.before)]
    restoration = plan_restoration(baseline, moving, ttl, frozenset(named))
    directory = choose_directory(planned.config)
    requests = tuple(FileEdit(f"{directory}{one.key.name}.yaml", "", HEADER + dump(one.body)) for one in restoration.requests)
    returning = _list_returning([goal for goal in chosen.values() if goal not in moving], planned.plan)
    moved = {goal.key for goal in moving}.union(returning)
    return RestorationFiles(
        past,
        restoration,
        requests,
        tuple(_edit_files(files, [one.goal for one in restoration.restored if one.goal.preferred])),
        tuple(_list_removed(decisions, past)),
        (*_list_skipped(named, then_and_now, moved),),
        returning,
    )


def _list_skipped(named: Collection[Key], goals: Container[Key], moved: Container[Key]) -> Iterator[tuple[Key, str]]:
    """Yield the named workloads that are where they were, then those that were not placed then, with the reason."""
    yield from ((key, "it is where it was") for key in named if key in goals and key not in moved)
    yield from ((key, "it was not placed then") for key in named if key not in goals)


def _list_returning(goals: Iterable[Goal], plan: Plan) -> tuple[Key, ...]:
    """Return the workloads that are elsewhere, and for which a plan has decided what they had, also if that waits or is withheld."""
    present = {move.key: move.before for move in (*plan.moves, *plan.withheld.moves, *plan.withheld.waiting)}
    return tuple(goal.key for goal in goals if goal.key in present and is_elsewhere(goal.wanted, present[goal.key]))


def _list_goals(decisions: DecisionSet, past: PastPlacements, engines: Collection[str], files: _SourceFiles) -> Iterator[Goal]:
    """Yield every workload and recorded decision of the earlier run that an annotation or a request can bring back."""
    yield from _list_workload_goals(decisions, past, engines, files)
    yield from _list_recorded_goals(decisions, past, files)


def _list_companions(decisions: DecisionSet, engines: Iterable[Rescheduling], named: Iterable[Key]) -> set[Key]:
    """Return the objects that belong to named workloads alone."""
    own = [decisions.templates[key] for key in named if key in decisions.templates]
    return {template.key for engine in engines for template in engine.list_companions(own).own}


def _list_workload_goals(
    decisions: DecisionSet, past: PastPlacements, engines: Collection[str], files: _SourceFiles
) -> Iterator[Goal]:
    for key, outcome in decisions.outcomes.items():
        api, requests = policy_apis.get(outcome.api), outcome.api if outcome.api in engines else ""
        if api is None or api.preferred_targets != WORKLOAD or (requests and not outcome.policy):
            continue
        record, document = past.find(key), decisions.templates.get(key) or decisions.catalog.broken.get(key)
        if record is not None and record.clusters and document is not None:
            gone = tuple(name for name in record.clusters if name not in decisions.cluster_facts)
            goal = Goal(key, document, WORKLOAD, record.clusters, outcome.replicas_by_cluster, requests, gone)
            # What keeps its placement until it is valid is neither annotated nor requested.
            yield goal._replace(requests="") if outcome.state == "stale" else _prefer(goal, files)


def _list_recorded_goals(decisions: DecisionSet, past: PastPlacements, files: _SourceFiles) -> Iterator[Goal]:
    catalog, clusters = decisions.catalog, decisions.cluster_facts
    present = {(one.subject, one.target_kind): one for one in decisions.recorded}
    for earlier in past.recorded:
        api, now = policy_apis.get(earlier.api), present.get((earlier.subject, earlier.target_kind))
        if api is None or api.preferred_targets != earlier.target_kind or now is None:
            continue
        document = catalog.templates.get(earlier.subject) or catalog.api_documents_by_key.get(earlier.subject)
        if document is not None and earlier.targets:
            wanted, before = ({target.name: target.amount for target in each.targets} for each in (earlier, now))
            gone = tuple(name for name in wanted if earlier.target_kind == "cluster" and name not in clusters)
            yield _prefer(Goal(earlier.subject, document, earlier.target_kind, wanted, before, "", gone), files)


def _prefer(goal: Goal, files: _SourceFiles) -> Goal:
    """Return a goal with the names to annotate it with, or why its file cannot be edited."""
    named = goal._replace(preferred=list_preferred_names(goal.wanted, goal.gone))
    if not named.preferred or not is_elsewhere(goal.wanted, goal.before):
        return named
    try:
        _edit(files.read(goal.document), named)
    except NotEditable as error:
        return goal._replace(problem=f"{error}; write {PREFERRED_CLUSTERS}: {named.annotation} by hand")
    return named


def _edit(text: str, goal: Goal) -> str:
    """Return the text of a file with the annotation of a goal."""
    origin = goal.document.origin
    assert origin is not None, "the file has been read"
    found = parse_file(text.encode(), path=origin.path, validate=None).documents
    document = next((one for one in found if (one.index, one.item) == (origin.index, origin.item)), None)
    if document is None:
        raise NotEditable(f"{origin.path} has other documents")
    return edit_document(text, document.spans, document.item, document.body, add_annotation(document.body, goal.annotation))


def _edit_files(files: _SourceFiles, goals: Iterable[Goal]) -> Iterator[FileEdit]:
    """Yield the files of the goals with their annotations, by path."""
    by_path: dict[str, list[Goal]] = {}
    for goal in goals:
        if goal.document.origin is not None:
            by_path.setdefault(goal.document.origin.path, []).append(goal)
    for path, found in sorted(by_path.items()):
        before = after = files.read(found[0].document)
        for goal in found:
            after = _edit(after, goal)
        if after != before:
            yield FileEdit(path, before, after)


def _find_named(decisions: DecisionSet, goals: Mapping[Key, Goal], named: Iterable[tuple[str, str | None, str]]) -> Iterator[Key]:
    """Yield the named workloads; for one that follows the decisions of others, such as a Placement, these."""
    known = dict.fromkeys((*decisions.outcomes, *decisions.templates, *decisions.catalog.api_documents_by_key))
    for kind, namespace, name in named:
        key = find_named(known, kind, namespace, name)
        document = decisions.templates.get(key)
        shared = [
            subject
            for engine in decisions.engines
            if isinstance(engine, SharedDecisions) and document is not None
            for subject in engine.list_shared_records(document)
        ]
        yield from [key] if key in goals or not shared else shared


def _is_selected(goal: Goal, selection: WorkloadSelection, named: Collection[Key]) -> bool:
    if selection.named:
        return goal.key in named
    if selection.namespace not in ("", goal.key.namespace):
        return False
    return selection.labels is None or selection.labels.matches(read_labels(goal.document.body))


def _list_removed(decisions: DecisionSet, past: PastPlacements) -> Iterator[str]:
    """Yield the workloads of the earlier run that the source does not have any more."""
    present = {placement_path(key).removeprefix(f"{PLACEMENTS}/") for key in decisions.outcomes}
    for path in sorted(past.paths - present):
        key = read_placement_key(path)
        if key is not None:
            yield key.title


def describe_withheld(settings: RunSettings, requests: Iterable[Document]) -> str:
    """Return what of the written requests and annotations the guard withholds, and what allows it; "" if nothing is withheld.

    Raise Permanent if the source does not read a request, because its file is hidden.
    """
    context = open_context(settings)
    planned, read = use_plan(
        context, fetch(context), settings.now, lambda planned: planned.plan.decisions.catalog.api_documents_by_key.keys()
    )
    plan = planned.plan
    for key in (request.key for request in requests):
        if key not in read:
            raise Permanent(f"{key} is not read: .sourceignore or source.paths hides it; choose another file with --file")
    if not plan.withheld.moves:
        return ""
    return f"The guard withholds {format_count(len(plan.withheld.moves), 'change')}; to allow exactly these, {plan.withheld.allowance}."


def write_edits(root: Path, edits: Iterable[FileEdit]) -> None:
    """Write the edited files of a worktree. Raise Permanent for a file that has changed since it was read."""
    for edit in edits:
        try:
            replace_file(resolve_worktree_file(root, edit.path), edit.before.encode(), edit.after.encode())
        except OSError as error:
            raise make_write_error(edit.path, error) from error
