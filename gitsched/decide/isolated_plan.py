"""Make the plan of a commit on whose complete plan one document or previous record fails unexpectedly."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from gitsched.decide.catalog import RawDocument
from gitsched.decide.fault_isolation import Isolated, isolate_faults
from gitsched.decide.plan import make_plan
from gitsched.decide.plan_input import PlanInput
from gitsched.decide.plan_result import Plan
from gitsched.decide.registry import reserved_groups
from gitsched.decide.skipped_workloads import OwnedRecords, SkippedWorkload
from gitsched.kinds.companion_kinds import COMPANION_KINDS
from gitsched.model.changes import Move
from gitsched.model.document import Key
from gitsched.model.errors import GitschedError


def make_isolated_plan(source: PlanInput, use: Callable[[Plan], object]) -> Plan:
    """Make the plan with documents on which it or its `use` fails as broken ones, or without them, and with an error finding about each.

    Raise the error of another bug.
    """
    owned: list[OwnedRecords] = []

    def attempt(documents: Sequence[RawDocument], isolated: Isolated) -> Plan:
        tree = source.source
        tree = tree._replace(documents=tuple(documents), other_findings=(*tree.other_findings, *isolated.findings))
        made_from = source._replace(source=tree, previous=source.previous.without_records(isolated.records))
        if isolated.skipped:
            if not owned:
                owned.append(OwnedRecords(source.previous.records))
            plan = _plan_without(made_from, isolated.skipped, owned[0])
        else:
            plan = make_plan(made_from)
        with suppress(GitschedError):  # about documents that are left out on trial; the caller uses the plan again
            use(plan)
        return plan

    return isolate_faults(source.source.documents, source.previous.records, attempt, lambda plan: plan.decisions)


def _plan_without(source: PlanInput, skipped: Sequence[RawDocument], records: OwnedRecords) -> Plan:
    """Plan without documents, and keep the files of their workloads, and of workloads that would only move because they are absent."""
    workloads = records.list_skipped(skipped)
    plan = make_plan(_skip(source, workloads))
    # Without a policy or a cluster, any workload may move.
    whole = any(document.group in reserved_groups and not records.list_of([document]) for document in skipped)
    namespaces = {workload.key.namespace for workload in workloads}
    moved = {move.key for move in plan.moves if whole or _follows(move, namespaces)}
    if not moved:
        return plan
    return make_plan(_skip(_without_documents(source, moved), [*workloads, *records.list_moved(moved)]))


def _follows(move: Move, namespaces: Collection[str]) -> bool:
    """Return whether a workload leaves clusters that may be a companion of a skipped one."""
    lost = move.before.keys() - move.after.keys()
    return bool(lost) and move.key[:2] in COMPANION_KINDS and move.key.namespace in namespaces


def _skip(source: PlanInput, workloads: Sequence[SkippedWorkload]) -> PlanInput:
    records = {key for workload in workloads for key in workload.records}
    return source._replace(previous=source.previous.without_records(records), skipped=tuple(workloads))


def _without_documents(source: PlanInput, keys: Collection[Key]) -> PlanInput:
    named = {(key.group, key.kind, namespace, key.name) for key in keys for namespace in (key.namespace, "")}
    documents = (each for each in source.source.documents if (each.group, each.kind, each.namespace, each.name) not in named)
    return source._replace(source=source.source._replace(documents=tuple(documents)))
