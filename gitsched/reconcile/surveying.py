"""A run with the reasons of all its decisions, for reports that answer questions nobody has asked yet."""

from __future__ import annotations

from typing import NamedTuple

from gitsched.model.document import Key
from gitsched.model.explanation import Explanation
from gitsched.reconcile.pointing import Places, point
from gitsched.reconcile.session import Session
from gitsched.reconcile.settings import Run, Settings


class Survey(NamedTuple):
    """A preview, and why each workload is where it is."""

    run: Run
    explanations: dict[Key, Explanation]


def survey(settings: Settings) -> Survey:
    """What `preview` does, and the explanation of every workload that some policy places."""
    session = Session(settings)
    run = session.run(settings.now, write=False, whole=True)
    return Survey(run, explain_all(session, run))


def explain_all(session: Session, run: Run) -> dict[Key, Explanation]:
    """Why each workload of a whole plan is where it is."""
    decided = run.plan.decided
    assert decided is not None, "a whole plan has it"
    found: dict[Key, Explanation] = {}
    places: Places = {}
    own = decided.catalog.settings_by_key
    for key in run.plan.outcomes:
        template = decided.templates.get(key) or own.get(key)
        told = decided.explain(template) if template else None
        if told:
            found[key] = point(told, session.source.repository, places)
    return found
