"""From a commit to placements: observe, plan, write, and again when somebody else was faster.

commit -> documents, findings -> outcomes -> files -> tree -> commit -> ref
"""

from __future__ import annotations

import logging
import random
import time

from gitsched.model.document import Key
from gitsched.model.errors import Conflict, Permanent
from gitsched.model.explanation import Explanation
from gitsched.model.finding import Finding
from gitsched.plan.planning import Plan
from gitsched.reconcile.pointing import point
from gitsched.reconcile.session import Session
from gitsched.reconcile.settings import Run, Settings

__all__ = ["Plan", "Run", "Session", "Settings", "explain", "preview", "reconcile", "validate_source"]

TRIES = 5
MENTIONED = 5
"""Places named in one message."""
_log = logging.getLogger("gitsched.reconcile")


def reconcile(settings: Settings) -> Run:
    """Bring the output branch to what the source says. Raises Conflict after five lost races."""
    return run_until_won(Session(settings), settings)


def run_until_won(session: Session, settings: Settings) -> Run:
    """Run a session; a lost race is observed and planned anew, after a pause that lets rivals drift apart."""
    for attempt in range(1, TRIES + 1):
        try:
            return session.run(settings.now)
        except Conflict as conflict:
            if attempt == TRIES:
                raise
            _log.info("the output branch moved meanwhile (%s): planning again", conflict)
            time.sleep(random.uniform(0.05, 0.25) * attempt)  # noqa: S311 - jitter, not a secret
    raise AssertionError("unreachable")


def preview(settings: Settings) -> Run:
    """What `reconcile` would do. Objects may be written to the repository, no ref moves."""
    return Session(settings).run(settings.now, write=False)


def validate_source(settings: Settings) -> tuple[Finding, ...]:
    """Every finding about the source: of its files, its documents and how they fit together."""
    return preview(settings._replace(observations="recorded")).plan.findings


def explain(settings: Settings, kind: str, namespace: str, name: str) -> Explanation:
    """Why a workload is where it is. The kind's case does not matter, and KIND.GROUP says which of two groups is meant; Permanent
    when there is no such workload."""
    session = Session(settings._replace(observations="recorded"))
    planned = session.run(settings.now, write=False).plan
    decided = planned.decided
    catalog = decided.catalog
    own = {document.key: document for documents in catalog.settings.values() for document in documents}
    known = dict.fromkeys((*decided.templates, *own, *catalog.twins, *catalog.broken))
    named = [key for key in known if _is_called(key, kind, name)]
    key = next((key for key in named if key.namespace in (namespace, "")), None)
    if key is None:
        elsewhere = ", ".join(sorted({key.namespace for key in named})[:MENTIONED])
        hint = f"; there is one of that name in: {elsewhere}" if elsewhere else ""
        raise Permanent(f"there is no {kind} {namespace}/{name} in the source{hint}")
    template = decided.templates.get(key) or own.get(key)
    if template is not None:
        found = next((told for session in decided.sessions if (told := session.explain(template))), None)
        if found is None and key in own:
            raise Permanent(f"{key} is no workload, and nothing is decided about it")
        return point(found, session.source.repository) if found else Explanation(str(key), policy_reason="no policy selects it")
    findings = tuple(finding for finding in planned.findings if finding.resource == key.resource)
    if key in catalog.twins:
        origins = [document.origin for document in catalog.twins[key] if document.origin]
        places = ", ".join(f"{origin.path}:{origin.line}" for origin in origins[:MENTIONED])
        return Explanation(
            str(key), policy_reason=f"it stands in several places and none of them is used: {places}", findings=findings
        )
    return Explanation(str(key), policy_reason="its document is broken", findings=findings)


def _is_called(key: Key, kind: str, name: str) -> bool:
    """Whether KIND, KIND.GROUP or, as kubectl writes it, too, KIND.VERSION.GROUP and a name mean this object."""
    word, _, group = kind.lower().partition(".")
    return key.name == name and key.kind.lower() == word and (not group or key.group in (group, group.partition(".")[2]))
