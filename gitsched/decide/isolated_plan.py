"""Make the plan of a commit on whose complete plan one document or previous record fails unexpectedly."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gitsched.decide.catalog import RawDocument
from gitsched.decide.fault_isolation import isolate_faults
from gitsched.decide.plan import make_plan
from gitsched.decide.plan_input import PlanInput
from gitsched.decide.plan_result import Plan
from gitsched.model.document import Key
from gitsched.model.finding import Finding


def make_isolated_plan(source: PlanInput) -> Plan:
    """Make the plan with these documents as broken ones, and with an error finding about each. Raise the error of another bug."""

    def attempt(documents: Sequence[RawDocument], dropped: Collection[Key], findings: Sequence[Finding]) -> Plan:
        tree = source.source
        tree = tree._replace(documents=tuple(documents), other_findings=(*tree.other_findings, *findings))
        return make_plan(source._replace(source=tree, previous=source.previous.without_records(dropped)))

    return isolate_faults(source.source.documents, source.previous.records, attempt)
