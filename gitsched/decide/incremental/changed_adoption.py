"""Objects that keep the placement with which they were adopted, in an incremental plan."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gitsched.apis.stateful_holds import Holds
from gitsched.decide.adopted_holds import HELD_CODE, list_findings
from gitsched.model.errors import NeedsCompletePlan

if TYPE_CHECKING:
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.model.changes import Move
    from gitsched.model.document import Document
    from gitsched.model.finding import Finding
    from gitsched.model.scheduling import Outcome

_CLAIM = "PersistentVolumeClaim/"


def update_adopted_holds(changes: IncrementalChanges, moves: Iterable[Move], findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the findings of an incremental plan that belong to no workload, with those about held objects as they are now. Raise
    NeedsCompletePlan if an object is no longer held."""
    totals, snapshot = changes.totals, changes.snapshot
    moved = (str(move.key) for move in moves if move.before.keys() != move.after.keys())
    if any(name in totals.adopted for name in moved):
        raise NeedsCompletePlan("an adopted object moves")
    documents = {**{key: after for key, (_, after) in changes.diff.stored_documents.items()}, **dict(changes.documents)}
    documents |= {key: after for key, (_, after) in changes.templates.items()}
    touched = {key: document for key, document in documents.items() if str(key) in totals.adopted}
    if changes.documents and any(name.startswith(_CLAIM) for name in totals.adopted):
        raise NeedsCompletePlan("workloads that mount an adopted claim release it")
    if not touched:
        return findings
    holds = Holds(snapshot.templates, adopted=totals.adopted)
    if any(document is None or not holds.find_adopted(document) for document in touched.values()):
        raise NeedsCompletePlan("an adopted object is no longer held")
    reported = {str(key) for key in totals.held if key not in changes.outcomes}
    reported |= {str(key) for key, outcome in changes.outcomes.items() if outcome.held is not None}
    reported -= {str(key) for key in changes.removed}
    unreported = {name: reason for name, reason in totals.adopted.items() if name not in reported}
    own = {str(document.key): document for listed in snapshot.documents.values() for document in listed}
    keys = {name: key for key in (*changes.rows.template_index, *changes.templates) if (name := str(key)) in unreported}

    def find(name: str) -> tuple[Document, Outcome | None]:
        document = own[name] if name not in keys else snapshot.templates[keys[name]]
        return document, changes.find_outcome(document.key)

    return (*(finding for finding in findings if finding.code != HELD_CODE), *list_findings(unreported, find))
