"""What the retained copies of a plan depend on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from gitsched.decide.overlap.delivered_copies import DeliveredCopies
from gitsched.decide.renames import list_rename_requests
from gitsched.model.cluster_report import CLUSTER_REPORT, read_cluster_report
from gitsched.named_tuples import NamedTuple
from gitsched.render.output_files import escape_segment

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.decide.decisions import DecisionSet
    from gitsched.decide.incremental.plan_state import PlanTimes, PreviousOutput
    from gitsched.decide.removals import RemovedPlacement
    from gitsched.decide.renames import RenameRequests
    from gitsched.model.changes import Move, RetainedCopy
    from gitsched.model.document import Document, Key
    from gitsched.model.scheduling import Outcome


class AppliedCopy(NamedTuple):
    """Whether a cluster has applied the files of a copy, as its report of the time `since` says."""

    applied: bool
    since: datetime


class RetentionInput(NamedTuple):
    """What the retained copies of a plan depend on.

    `find_outcome` returns the outcome of a workload, None if there is none; `templates` may be read on demand. `moves` are those of placed
    workloads, `removed` the workloads that no API places any more, `undelivered` those of which a cluster may have another manifest than
    was decided, `retained` the copies of the previous output, of which `delivered` finds others. `is_cluster` says whether a cluster has
    a document. `list_renames` returns what annotations say about removed ones. `list_companions` returns the templates that say which of
    some workloads some moved companions belong to. `waiting` are the replicas of workloads in clusters that have fewer than were decided
    until their turn in a rollout. `leaving` are placed workloads that are not in all clusters any more that the previous output has.
    `find_application` says whether a cluster has reported that it has applied the files of a copy, and when; None if it has not reported.
    `requested` are the clusters that workloads would have with the moves that are withheld.
    """

    find_outcome: Callable[[Key], Outcome | None]
    templates: Mapping[Key, Document]
    engines: tuple[PolicyEngine, ...]
    quarantined: Collection[Key]
    moves: Iterable[Move]
    removed: Mapping[Key, RemovedPlacement]
    undelivered: Collection[Key]
    retained: tuple[RetainedCopy, ...]
    delivered: DeliveredCopies
    is_cluster: Callable[[str], bool]
    list_renames: Callable[[], RenameRequests]
    list_companions: Callable[[Collection[Key], Collection[Key]], Mapping[Key, Document]]
    times: PlanTimes
    config: Config
    waiting: Mapping[tuple[Key, str], int] = {}
    leaving: Sequence[Outcome] = ()
    find_application: Callable[[RetainedCopy], AppliedCopy | None] = lambda _: None
    requested: Mapping[Key, Collection[str]] = {}


def make_retention_input(
    decisions: DecisionSet,
    moves: Iterable[Move],
    removed: Mapping[Key, RemovedPlacement],
    undelivered: Collection[Key],
    previous: PreviousOutput,
    times: PlanTimes,
    config: Config,
    waiting: Mapping[tuple[Key, str], int],
    leaving: Sequence[Outcome],
    requested: Mapping[Key, Collection[str]],
) -> RetentionInput:
    """Return the input of a complete plan, given its decisions, the `moves` of placed workloads and the `removed` workloads."""
    return RetentionInput(
        decisions.outcomes.get,
        decisions.templates,
        decisions.engines,
        decisions.quarantined,
        moves,
        removed,
        undelivered,
        previous.retained,
        DeliveredCopies(
            previous.records,
            previous.find_blob,
            lambda cluster: escape_segment(cluster) in previous.clusters,
            previous.read_manifest,
        ),
        decisions.cluster_facts.__contains__,
        partial(list_rename_requests, decisions),
        lambda _companions, _workloads: decisions.catalog.templates,
        times,
        config,
        waiting,
        leaving,
        _read_reports(decisions, previous),
        requested,
    )


def _read_reports(decisions: DecisionSet, previous: PreviousOutput) -> Callable[[RetainedCopy], AppliedCopy | None]:
    """Return what finds the reports of clusters about copies."""
    documents = decisions.catalog.api_documents.get(CLUSTER_REPORT, ())
    read = (read_cluster_report(document.body) for document in documents)
    reports = {report.cluster: report for report in read if report is not None}

    def find(copy: RetainedCopy) -> AppliedCopy | None:
        report = reports.get(copy.cluster)
        applied = previous.has_files(report.commit, copy.paths) if report is not None else None
        return AppliedCopy(applied, report.since) if report is not None and applied is not None else None

    return find


def list_leaving(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return the workloads that leave a cluster in this run, also by the end of an eviction."""
    return [one for one in outcomes if any(target.cluster not in one.clusters for target in one.previous_targets)]
