"""Report policies that apply to nothing, because other policies apply to all that they select."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import NearSelecting
from gitsched.apis.continuation import changes_selection
from gitsched.decide.incremental.plan_contents import make_template_entry
from gitsched.model.changes import WithheldChanges
from gitsched.model.finding import WITHOUT_EFFECT, Finding
from gitsched.model.template_index import make_selectable

if TYPE_CHECKING:
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.decide.decisions import DecisionSet
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.model.document import Document, Key


def find_policies_without_effect(decisions: DecisionSet, withheld: WithheldChanges) -> Iterator[Finding]:
    """Yield the findings of a complete plan. It is open which policies apply to workloads with `withheld` changes."""
    outcomes, undecided = decisions.outcomes, _list_workloads(withheld)

    def list_workloads() -> Iterator[tuple[Document, str]]:
        for key, template in decisions.catalog.templates.items():
            yield template, outcomes[key].policy if key in outcomes and key not in undecided else ""

    return _find(decisions.engines, {outcome.policy for outcome in outcomes.values()}, list_workloads)


def update_policies_without_effect(
    findings: tuple[Finding, ...], changes: IncrementalChanges, withheld: WithheldChanges
) -> tuple[Finding, ...]:
    """Return the findings of the last plan, with those about policies that apply to nothing now."""
    index, undecided = changes.rows.template_index, _list_workloads(withheld)
    decided = {key: make_template_entry(document, changes.outcomes.get(key)) for key, document in changes.documents.items()}
    others = any((index[key].policy if key in index else "") != entry.policy for key, entry in decided.items())
    if not (others or changes.diff.api_documents or changes_selection(changes.templates) or withheld != changes.totals.withheld):
        return findings
    gone = {key for key, (_, after) in changes.templates.items() if after is None} | changes.restored
    entries = {key: entry for key, entry in {**index, **decided}.items() if key not in gone}

    def list_workloads() -> Iterator[tuple[Document, str]]:
        for key, entry in entries.items():
            yield make_selectable(key, entry), entry.policy if key not in undecided else ""

    found = _find(changes.continued.engines, {entry.policy for entry in entries.values()}, list_workloads)
    return (*(finding for finding in findings if finding.code != WITHOUT_EFFECT), *found)


def _list_workloads(withheld: WithheldChanges) -> frozenset[Key]:
    return frozenset(move.key for move in (*withheld.moves, *withheld.waiting))


def _find(
    engines: Iterable[PolicyEngine], applying: Collection[str], list_workloads: Callable[[], Iterable[tuple[Document, str]]]
) -> Iterator[Finding]:
    for engine in engines:
        if isinstance(engine, NearSelecting):
            yield from engine.find_policies_without_effect(applying, list_workloads)
