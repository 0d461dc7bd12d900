"""Findings about workloads with data: those that move without it or get a copy with other data, and releases that release nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gitsched.apis.gitsched.guard_config import GuardConfig
from gitsched.apis.stateful_holds import Holds, make_copy_finding, make_move_finding
from gitsched.decide.decisions import DecisionSet
from gitsched.decide.incremental.plan_state import PreviousOutput
from gitsched.model.changes import Move
from gitsched.model.commit import RELEASE_CLUSTER_TRAILER, RELEASE_TRAILER
from gitsched.model.document import Document, read_annotations
from gitsched.model.finding import Finding, format_names
from gitsched.model.holds import HELD_ANNOTATION, Releases, list_release_names
from gitsched.model.scheduling import Outcome
from gitsched.render.output_files import cluster_path, relative_path

_MAX_NAME_LENGTH = 100
"""Characters of a name in a trailer or an option that a finding shows."""


def add_move_findings(decisions: DecisionSet, moves: Iterable[Move], config: GuardConfig) -> DecisionSet:
    """Return the decisions with a warning about each workload that moves without its data, or gets a copy with empty volumes."""
    holds = Holds(decisions.templates, decisions.variants)
    outcomes, others = dict(decisions.outcomes), list(decisions.findings)
    for move in moves:
        document, outcome = decisions.templates.get(move.key), outcomes.get(move.key)
        finding = find_left_data(move, document, holds, config) if document is not None else None
        if finding is not None and outcome is not None:
            outcomes[move.key] = outcome._replace(findings=(*outcome.findings, finding))
        elif finding is not None:
            others.append(finding)
    return decisions._replace(outcomes=outcomes, findings=tuple(others))


def drop_undelivered(moves: Iterable[Move], decisions: DecisionSet, previous: PreviousOutput) -> Iterator[Move]:
    """Yield the moves without clusters that have no document, where the previous output does not deliver the workload, or only retains it.

    Such a cluster keeps its directory only for workloads that are held there; others may be bound to it for longer.
    """
    lost = {name for outcome in decisions.outcomes.values() if outcome.held is not None for name in outcome.held.lost}
    retained = {(copy.workload, copy.cluster) for copy in previous.retained}
    for move in moves:
        gone = {
            name
            for name in move.before.keys() & lost - move.after.keys()
            if (move.key, name) in retained
            or (move.key not in decisions.own_workloads and previous.find_blob(cluster_path(name, relative_path(move.key))) is None)
        }
        before = {name: count for name, count in move.before.items() if name not in gone}
        if before != move.after:
            yield move._replace(before=before)


def were_held(held: Iterable[Outcome], previous: PreviousOutput) -> bool:
    """Return whether the previous output says of all these workloads that they are held."""
    records = ([previous.records.get(key) for key, _ in outcome.records] for outcome in held)
    return all(any(record is not None and HELD_ANNOTATION in read_annotations(record) for record in each) for each in records)


def find_left_data(move: Move, document: Document, holds: Holds, config: GuardConfig) -> Finding | None:
    """Return the warning about a workload that leaves data behind, in a cluster that it leaves or with replicas that go elsewhere, or that
    gets a copy in a further cluster, which starts without the data."""
    leaves, joined = leaves_data(move.before, move.after), move.after.keys() - move.before.keys()
    data = holds.list_data(document) if move.before and (leaves or joined) else ()
    if not data:
        return None
    if leaves:
        return make_move_finding(document, move.before, move.after, data, holds=config.hold_stateful)
    return make_copy_finding(document, move.before, {name: move.after[name] for name in joined}, data)


def leaves_data(before: Mapping[str, int | None], after: Mapping[str, int | None]) -> bool:
    if before.keys() - after.keys():
        return True
    fewer = any((after.get(name) or 0) < (count or 0) for name, count in before.items())
    return fewer and any((count or 0) > (before.get(name) or 0) for name, count in after.items())


def find_unused_releases(releases: Releases, outcomes: Iterable[Outcome], templates: Iterable[Document]) -> Iterator[Finding]:
    """Yield a warning for each release that names no workload of the source, or a cluster where no workload was."""
    if releases.workloads:
        known = {name for template in templates for name in list_release_names(template.key)}
        if unknown := sorted(releases.workloads - known):
            message = (
                f"{RELEASE_TRAILER} names {_shorten(unknown)}, which is no workload of the source: write [kind/]namespace/name"
            )
            yield Finding("warning", "release-unused", message)
    if releases.clusters:
        used = {target.cluster for outcome in outcomes for target in outcome.previous_targets}
        if unknown := sorted(releases.clusters - used):
            message = (
                f"{RELEASE_CLUSTER_TRAILER} or --release-cluster names {_shorten(unknown)}, where no workload was placed: "
                "use the name of a directory below clusters/"
            )
            yield Finding("warning", "release-unused", message)


def _shorten(names: Iterable[str]) -> str:
    return format_names([name[:_MAX_NAME_LENGTH] for name in names])
