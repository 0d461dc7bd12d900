"""What a plan changes, and what the guard withholds or reports of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.decide.decisions import DecisionSet
from gitsched.decide.guard.guard_settings import DEFAULT_GUARD, NO_GUARD_INPUT, GuardRecord
from gitsched.decide.incremental.plan_state import PreviousOutput
from gitsched.decide.plan_result import HadWorkloads, list_moves
from gitsched.model.changes import NOTHING_WITHHELD, Move, MoveRate, WithheldChanges
from gitsched.named_tuples import NamedTuple
from gitsched.render.output_files import escape_segment

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.decide.plan_input import PlanInput
    from gitsched.decide.removals import RemovedPlacement
    from gitsched.model.document import Key
    from gitsched.model.finding import Finding


class Changes(NamedTuple):
    """The decisions about a commit, the workloads that it removes, by key, and the moves of all workloads."""

    decisions: DecisionSet
    removed: Mapping[Key, RemovedPlacement]
    moves: tuple[Move, ...]

    def add_findings(self, findings: Iterable[Finding]) -> Changes:
        """Return the changes with more findings."""
        return self._replace(decisions=self.decisions._replace(findings=(*self.decisions.findings, *findings)))


def choose_config(source: PlanInput) -> Config:
    """Return the settings of the source, but workloads with data are held as long as the trusted settings hold them."""
    own, trusted = source.source.config, source.guard.trusted
    if own.guard.hold_stateful or trusted is None or not trusted.hold_stateful:
        return own
    return own._replace(guard=own.guard._replace(hold_stateful=True))


def drop_left_clusters(source: PlanInput, decisions: DecisionSet) -> DecisionSet:
    """Return the decisions without moves from clusters that a Tenant does not allow and that have nothing of a workload any more."""
    if decisions.tenancy is None:
        return decisions
    from gitsched.decide.tenants.left_clusters import drop_left_clusters  # few sources have tenants

    previous, documents = source.previous, decisions.catalog.api_documents
    outcomes = drop_left_clusters(
        decisions.outcomes, decisions.tenancy, documents, previous.records, previous.find_blob, previous.retained
    )
    return decisions._replace(outcomes=outcomes)


def find_changes(source: PlanInput, decisions: DecisionSet) -> Changes:
    """Compare the decisions with the previous output."""
    from gitsched.decide.removals import list_removed_placements  # a first run removes nothing

    removed = list_removed_placements(decisions, source.previous, source.source.config)
    return Changes(decisions, removed, _list_all_moves(source, decisions, removed))


def withhold_changes(source: PlanInput, changes: Changes) -> tuple[Changes, WithheldChanges]:
    """Return the changes without those over the limits of the guard, unless the plan only reports them; and what is withheld."""
    withheld, findings = _check_guard(source, changes)
    changes = changes.add_findings(findings) if findings else changes
    if source.guard.record.rate.waiting:
        changes = changes._replace(decisions=_delay_moves(changes, withheld, source.guard.record.rate))
    if not (withheld.moves or withheld.waiting):
        return changes, withheld
    from gitsched.decide.guard.withheld_changes import make_withheld_findings, withhold  # few changes exceed a limit

    changes = changes.add_findings(make_withheld_findings(withheld, choose_config(source).guard))
    if not source.withholds:
        return changes, withheld
    decisions = withhold(changes.decisions, withheld, changes.removed, source.previous.records, source.times.source_time)
    return find_changes(source, drop_left_clusters(source, decisions)), withheld


def _delay_moves(changes: Changes, withheld: WithheldChanges, recorded: MoveRate) -> DecisionSet:
    """Return the decisions with the start of the period as the time of the event of moves that waited for it."""
    start, decisions = withheld.rate.start, changes.decisions
    if start is None:
        return decisions
    passing = {move.key for move in changes.moves if str(move.key) in recorded.waiting}.difference(
        move.key for move in withheld.kept
    )
    outcomes = {key: one._replace(time=max(one.time, start)) if key in passing else one for key, one in decisions.outcomes.items()}
    return decisions._replace(outcomes=outcomes)


def report_changes(source: PlanInput, changes: Changes) -> Changes:
    """Add findings about objects that become parts, about workloads that leave data, and about releases without effect."""
    if any(entry.owner is not None for entry in changes.removed.values()):
        from gitsched.decide.removals import list_part_findings  # few commits make objects parts

        changes = changes.add_findings(list_part_findings(changes.removed.values()))
    releases = source.releases
    if releases is None and not any(move.before for move in changes.moves):
        return changes
    from gitsched.decide.stateful_workloads import add_move_findings, find_unused_releases  # most plans move nothing

    decisions = add_move_findings(changes.decisions, changes.moves, choose_config(source).guard)
    changes = changes._replace(decisions=decisions)
    if releases is None:
        return changes
    return changes.add_findings(find_unused_releases(releases, decisions.outcomes.values(), decisions.templates.values()))


def keep_adopted(source: PlanInput, changes: Changes) -> tuple[Changes, Mapping[str, str]]:
    """Return the changes with findings about adopted objects that keep their placement, and why these do."""
    from gitsched.decide.adopted_holds import (
        find_adopted_holds,
        list_hold_findings,
    )  # only after an adoption with partial information

    held = find_adopted_holds(source, changes.decisions, changes.moves)
    return changes.add_findings(list_hold_findings(held, changes.decisions)), held


def _list_all_moves(source: PlanInput, decisions: DecisionSet, removed: Mapping[Key, RemovedPlacement]) -> tuple[Move, ...]:
    """Return the moves of all workloads, those that are removed at the end."""
    moves = tuple(list_moves(decisions.outcomes.values(), find_active_clusters(source.previous)))
    if any(outcome.held is not None and outcome.held.lost for outcome in decisions.outcomes.values()):
        from gitsched.decide.stateful_workloads import drop_undelivered  # few clusters are lost

        moves = tuple(drop_undelivered(moves, decisions, source.previous))
    if not removed:
        return moves
    from gitsched.decide.removals import add_included_replicas, list_removal_moves  # most plans remove nothing

    gone = list_removal_moves(removed.values(), decisions.templates, decisions.kustomized)
    return (*add_included_replicas(moves, removed.values()), *gone)


def _check_guard(source: PlanInput, changes: Changes) -> tuple[WithheldChanges, list[Finding]]:
    """Return the changes that exceed a limit of the guard, unless exactly these are allowed; and findings about the guard."""
    guard, own, withheld = source.guard, source.source.config.guard, NOTHING_WITHHELD
    if any(move.before for move in changes.moves):
        from gitsched.decide.guard.exceeded_limits import find_exceeding_changes  # most plans move nothing

        withheld = find_exceeding_changes(source, *changes, find_active_clusters(source.previous))
    if guard is NO_GUARD_INPUT and own == DEFAULT_GUARD.settings and not (withheld.moves or withheld.waiting):
        return withheld, []
    allowed = source.list_allowed() if withheld.moves else ()
    findings = guard.list_findings(own, withheld.digest, allowed)
    return withheld.allow() if withheld.digest in allowed else withheld, findings


def record_guard(source: PlanInput, withheld: WithheldChanges, decisions: DecisionSet) -> GuardRecord:
    """Return what the output branch records about the guard."""
    own = source.source.config.guard
    if source.guard is NO_GUARD_INPUT and own == DEFAULT_GUARD.settings:
        return DEFAULT_GUARD._replace(rate=withheld.rate)
    holds = not own.hold_stateful and any(outcome.held is not None for outcome in decisions.outcomes.values())
    return source.guard.make_record(own, withheld, source.releases, holds=holds)


def find_active_clusters(previous: PreviousOutput) -> HadWorkloads:
    """Return what says whether a cluster received workloads in the previous output."""
    active = previous.clusters - previous.retiring.keys()
    return lambda cluster: escape_segment(cluster) in active
