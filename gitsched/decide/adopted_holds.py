"""Objects that gitsched took over with incomplete information, and that keep their placement until they are released."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from gitsched.apis.stateful_holds import Holds
from gitsched.model.commit import RELEASE_TRAILER
from gitsched.model.finding import Finding, format_count, locate_document

if TYPE_CHECKING:
    from gitsched.decide.decisions import DecisionSet
    from gitsched.decide.plan_input import PlanInput
    from gitsched.model.changes import Move
    from gitsched.model.document import Document
    from gitsched.model.scheduling import Outcome

HELD_CODE = "adopted-held"
MAX_FINDINGS = 50
"""The number of objects that have a finding each; one more counts the others."""


def find_adopted_holds(source: PlanInput, decisions: DecisionSet, moves: Iterable[Move]) -> dict[str, str]:
    """Return why objects keep their placement from now on. One that was released, moves all the same or is gone is no longer held."""
    moved = {str(move.key) for move in moves if move.before.keys() != move.after.keys()} if not source.fixed else set[str]()
    documents = _list_documents(decisions)
    holds = Holds(decisions.templates, releases=source.releases, adopted=source.adopted)
    return {
        name: reason
        for name, reason in sorted(source.adopted.items())
        if name in documents and name not in moved and holds.find_adopted(documents[name])
    }


def list_hold_findings(held: Mapping[str, str], decisions: DecisionSet) -> Iterator[Finding]:
    """Yield a finding about each held object that has none yet."""
    documents = _list_documents(decisions)
    reported = {str(outcome.key) for outcome in decisions.outcomes.values() if outcome.held is not None}
    unreported = {name: reason for name, reason in held.items() if name not in reported}
    yield from list_findings(unreported, lambda name: (documents[name], decisions.outcomes.get(documents[name].key)))


def list_findings(held: Mapping[str, str], find: Callable[[str], tuple[Document, Outcome | None]]) -> Iterator[Finding]:
    """Yield a finding about each of some held objects; `find` returns the document and the outcome of one."""
    for name, reason in islice(held.items(), MAX_FINDINGS):
        document, outcome = find(name)
        key = document.key
        state = (
            "is placed nowhere" if outcome is not None and not outcome.targets else "keeps the placement with which it was adopted"
        )
        release = f"{key.namespace}/{key.name}" if key.namespace else f"{key.kind}/{key.name}"
        cure = f"adopt it with complete information, or add the trailer {RELEASE_TRAILER}: {release} to a commit"
        message = f"{key} {state}: {reason}; {cure}"
        yield Finding("warning", HELD_CODE, message, locate_document(document), key.resource)
    if len(held) > MAX_FINDINGS:
        others = format_count(len(held) - MAX_FINDINGS, "more object")
        yield Finding("warning", HELD_CODE, f"{others} with the placement of the adoption")


def _list_documents(decisions: DecisionSet) -> dict[str, Document]:
    """Return the objects that decisions are about, by key as text: workloads, and documents of policy APIs."""
    own = (document for documents in decisions.catalog.api_documents.values() for document in documents)
    return {str(document.key): document for document in (*own, *decisions.templates.values())}
