"""Drain, cordon and uncordon clusters: edit the taints in their documents in the worktree, and simulate what that leads to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING

from gitsched.apis.topology import DRAIN_TAINT, MaintenanceTaints, Topology
from gitsched.decide.cluster_conditions import list_cluster_taints
from gitsched.decide.engines import collect_unavailable_clusters
from gitsched.decide.garbage_collection import gc_paused
from gitsched.decide.guard.large_changes import is_failover
from gitsched.edits.manifest_edits import edit_document, read_manifest
from gitsched.edits.text_positions import NotEditable
from gitsched.model.changes import Move
from gitsched.model.document import Body, Document, Key, as_object, list_objects, read_labels
from gitsched.model.errors import Permanent
from gitsched.model.maintenance import Action, ClusterEdit, EditedFile, Maintenance
from gitsched.model.similar_names import suggest_names
from gitsched.model.simulation import FailureDomain
from gitsched.model.taints import ClusterTaint, parse_taint
from gitsched.model.time import EPOCH
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.fetch import fetch
from gitsched.reconcile.incremental.planned_workloads import PlannedWorkloads
from gitsched.reconcile.incremental.state_plan import plan_from_state, try_with_state
from gitsched.reconcile.output.removed_documents import describe_removed_cluster
from gitsched.reconcile.plan_baseline import make_plan_baseline
from gitsched.reconcile.review.freezes import list_freezes
from gitsched.reconcile.review.run_causes import find_drain
from gitsched.reconcile.run import Fetched, Planned, RunContext, open_context
from gitsched.reconcile.source.source_locations import RuleLocations, locate_taints, make_blob_finder
from gitsched.reconcile.source.source_reader import SourceReader
from gitsched.reconcile.source_plan import use_plan
from gitsched.reconcile.worktree_file import replace_file, resolve_worktree_file
from gitsched.simulate.baseline import Baseline
from gitsched.simulate.continued_plan import NeedsNewEngines
from gitsched.simulate.failure_domains import ClusterIndex, index_clusters
from gitsched.simulate.scenario import Scenario
from gitsched.simulate.simulation import simulate

if TYPE_CHECKING:
    from gitsched.decide.plan_result import Plan
    from gitsched.model.history import SourceChange
    from gitsched.model.labels import Selector
    from gitsched.model.simulation import Simulation
    from gitsched.reconcile.run_settings import RunSettings


class _WantedDocument(NamedTuple):
    """The document of a cluster, and what its taints are to be."""

    cluster: str
    document: Document
    effects: MaintenanceTaints


def plan_maintenance(settings: RunSettings, action: Action, names: Sequence[str], labels: Selector | None) -> Maintenance:
    """Return the edits for the clusters with these names, or with these labels, in the worktree, and what they lead to. Nothing is written.

    Raise Permanent if there is no such cluster, or if its API has no taints.
    """
    context = open_context(settings._replace(worktree=True, observations="recorded"))

    def answer(planned: Planned) -> Maintenance:
        baseline = make_plan_baseline(settings, planned.plan, planned.config)
        return _plan(context, fetched, planned.plan, baseline, action, names, labels)

    with gc_paused():
        fetched = fetch(context)
        known = try_with_state(lambda: _plan_from_state(context, fetched, action, names, labels))
        return known or use_plan(context, fetched, settings.now, answer, written=False)[1]


def write_edits(root: Path, files: Iterable[EditedFile]) -> None:
    """Write the edited files to the worktree. Raise Permanent for one that has changed since it was read."""
    for file in files:
        replace_file(resolve_worktree_file(root, file.path), file.before, file.after)


def _plan_from_state(
    context: RunContext, fetched: Fetched, action: Action, names: Sequence[str], labels: Selector | None
) -> Maintenance | None:
    known = plan_from_state(context, fetched)
    workloads = PlannedWorkloads(context, fetched, known.planned.plan, known.update)
    try:
        return _plan(context, fetched, known.planned.plan, workloads.make_fleet_baseline(), action, names, labels)
    except NeedsNewEngines:
        return None


def _plan(
    context: RunContext,
    fetched: Fetched,
    plan: Plan,
    baseline: Baseline,
    action: Action,
    names: Sequence[str],
    labels: Selector | None,
) -> Maintenance:
    clusters = index_clusters(baseline.decisions.catalog)
    unknown = next((name for name in names if name not in clusters), None)
    if unknown is not None:
        gone = describe_removed_cluster(context, fetched, unknown)
        raise Permanent(gone or f"there is no cluster {unknown!r}{suggest_names(unknown, clusters)}")
    chosen = _choose_clusters(clusters, names, labels)
    wanted = [one for name in chosen for one in _list_wanted(name, clusters, action)]
    edits, files = _edit_files(context, fetched, action, wanted)
    drained = tuple(FailureDomain("cluster", name) for name in chosen if action == "drain")
    is_edited = any(edit.taints for edit in edits)
    counts, present = dict.fromkeys(chosen, 0), set[Key]()
    waiting = {move.key: move.before for move in plan.withheld.moves}
    for outcome in baseline.decisions.outcomes.values():
        for name in waiting.get(outcome.key, outcome.replicas_by_cluster).keys() & counts.keys():
            counts[name] += 1
            present.add(outcome.key)
    simulation = simulate(baseline, Scenario(drain=drained)) if drained and is_edited else None
    frozen = dict(_list_frozen(plan, baseline, simulation, counts.keys())) if drained and plan.freeze else {}
    return Maintenance(
        action,
        tuple(chosen),
        tuple(edits),
        tuple(files),
        counts,
        simulation,
        dict(_list_left(context, fetched, chosen, clusters)) if action == "uncordon" else {},
        _count_staying(present, counts.keys(), simulation, frozen) if simulation is not None else 0,
        tuple(list_freezes(context, fetched, plan)) if drained else (),
        frozen,
        len(present),
        _find_first_drain(context, action, edits),
    )


def _find_first_drain(context: RunContext, action: Action, edits: Iterable[ClusterEdit]) -> SourceChange | None:
    """Return the first of the commits of the source that added the drains which an uncordon removes; None if one is not known."""
    if action != "uncordon":
        return None
    source, cache = context.source.repository, context.caches.files
    head = source.resolve("HEAD")
    removed = [(edit.cluster, taint) for edit in edits for taint in edit.taints if taint.startswith(DRAIN_TAINT)]
    found = [find_drain(source, cache, head, *one) for one in removed] if head else []
    known = [one for one in found if one is not None]
    return min(known, key=lambda one: one.time or EPOCH) if known and len(known) == len(removed) else None


def _list_frozen(
    plan: Plan, baseline: Baseline, simulation: Simulation | None, drained: Set[str]
) -> Iterator[tuple[Key, tuple[str, ...]]]:
    """Yield the workloads that a freeze keeps on drained clusters, with these: more of them changes than that they leave such clusters, as
    where another change waits, or no other cluster fits."""
    unavailable = collect_unavailable_clusters(baseline.decisions.engines).keys() | drained
    moves = {move.key: move for move in plan.withheld.moves}
    for effect in simulation.effects if simulation is not None else ():
        before = moves[effect.key].before if effect.key in moves else effect.before
        moves[effect.key] = Move(effect.key, before, effect.after, "")
    for key, move in sorted(moves.items()):
        left = move.before.keys() & drained - move.after.keys()
        if left and not is_failover(move, unavailable):
            yield key, tuple(sorted(left))


def _count_staying(present: Set[Key], drained: Set[str], simulation: Simulation, frozen: Mapping[Key, Collection[str]]) -> int:
    """Return how many of the workloads that are present in drained clusters stay there although they are not held."""
    moving = (effect for effect in simulation.effects if effect.key not in frozen)
    leaving = {effect.key for effect in moving if effect.before.keys() & drained and not effect.after.keys() & drained}
    return len(present - leaving - simulation.held.keys())


def _choose_clusters(clusters: ClusterIndex, names: Sequence[str], labels: Selector | None) -> list[str]:
    if labels is None:
        return sorted(set(names))
    found = [
        name for name, entries in clusters.items() if any(labels.matches(read_labels(document.body)) for _, document, _ in entries)
    ]
    if not found:
        raise Permanent("no cluster has these labels")
    return found


def _list_wanted(name: str, clusters: ClusterIndex, action: Action) -> Iterator[_WantedDocument]:
    for topology, document, _ in clusters[name]:
        if topology.taints is None:
            raise Permanent(
                f"{document.key} has no taints: its API has no state in which a cluster {_describe_lacking(action)}. Give the cluster a "
                "label, and the workloads a constraint that excludes it, or remove its document; `gitsched simulate --lose "
                f"{name}` shows what moves if it is removed"
            )
        yield _WantedDocument(name, document, topology.taints)


def _describe_lacking(action: Action) -> str:
    return "keeps its workloads and gets no new ones" if action == "cordon" else "is emptied"


def _edit_files(
    context: RunContext, fetched: Fetched, action: Action, wanted: Sequence[_WantedDocument]
) -> tuple[list[ClusterEdit], list[EditedFile]]:
    """Return the edits in the order of the clusters, and the edited files by path."""
    edits: dict[int, ClusterEdit] = {}
    by_path: dict[str, list[int]] = {}
    for index, one in enumerate(wanted):
        origin = one.document.origin
        if origin is None or origin.root:
            where = (origin.path, origin.line) if origin is not None else ("", 0)
            edits[index] = ClusterEdit(
                one.cluster, *where, (), f"kustomize builds it from {origin.root}" if origin else "no file has it"
            )
        else:
            by_path.setdefault(origin.path, []).append(index)
    files = []
    for path, indexes in sorted(by_path.items()):
        found, file = _edit_file(context, fetched, action, path, {index: wanted[index] for index in indexes})
        edits |= found
        files += [file] if file is not None else []
    return [edits[index] for index in range(len(wanted))], files


def _edit_file(
    context: RunContext, fetched: Fetched, action: Action, path: str, wanted: Mapping[int, _WantedDocument]
) -> tuple[dict[int, ClusterEdit], EditedFile | None]:
    repository, blob = context.source.repository, make_blob_finder(context.source.repository, fetched.source.tree)(path)
    before = repository.blob(blob)
    parsed = {(one.index, one.item): one for one in SourceReader(repository, context.caches.files).read(blob, path).documents}
    text, edits = before.decode(), dict[int, ClusterEdit]()
    positions = {index: one.document.origin for index, one in wanted.items()}
    # From the end, so that the positions of the others stay.
    for index, origin in sorted(
        positions.items(), key=lambda entry: (entry[1].index, entry[1].item) if entry[1] else (0, 0), reverse=True
    ):
        assert origin is not None, "only documents of files are edited"
        one, own = wanted[index], parsed.get((origin.index, origin.item))
        problem, taints = "", tuple[str, ...]()
        # The value of the text itself: what is read of a dump lacks what a server owns.
        body = read_manifest(text[own.spans.start : own.spans.end]) if own is not None and own.item < 0 else None
        if own is None or body is None:
            problem = "it is an item of a List, or its text cannot be read alone"
        else:
            after, taints = change_taints(body, one.effects, action)
            try:
                text = edit_document(text, own.spans, own.item, body, after) if taints else text
            except NotEditable as error:
                problem, taints = f"the file cannot be edited: {error}", ()
        edits[index] = ClusterEdit(one.cluster, path, origin.line, taints, problem)
    return edits, EditedFile(path, before, text.encode()) if text.encode() != before else None


def change_taints(body: Body, effects: MaintenanceTaints, action: Action) -> tuple[Body, tuple[str, ...]]:
    """Return the document of a cluster with the taint of an action, or without those of a drain and a cordon, and the changed taints."""
    spec = as_object(body.get("spec"))
    entries = list_objects(spec.get("taints"))
    if action == "uncordon":
        return effects.remove(body, effects.own_keys), tuple(
            str(parse_taint(entry)) for entry in entries if entry.get("key") in effects.own_keys
        )
    key, effect = (DRAIN_TAINT, effects.drain) if action == "drain" else (effects.cordon_key, effects.cordon)
    if any((entry.get("key"), entry.get("effect")) == (key, effect) for entry in entries):
        return body, ()
    return {**body, "spec": {**spec, "taints": [*entries, {"key": key, "effect": effect}]}}, (f"{key}:{effect}",)


def _list_left(
    context: RunContext, fetched: Fetched, names: Iterable[str], clusters: ClusterIndex
) -> Iterator[tuple[str, tuple[ClusterTaint, ...]]]:
    """Yield the taints of people that an uncordon does not remove, with their lines."""
    repository = context.source.repository
    locations, find_blob = RuleLocations(repository), make_blob_finder(repository, fetched.source.tree)
    for name in names:
        entries: Iterable[tuple[Topology, Document]] = ((topology, document) for topology, document, _ in clusters[name])
        taints = [
            taint
            for topology, document in entries
            for taint in list_cluster_taints(topology, document)
            if topology.taints is not None and taint.taint.key not in topology.taints.own_keys
        ]
        if taints:
            yield name, locate_taints(taints, locations, find_blob)
