"""What would have to be otherwise: changes that an API proposes, made to documents, and everything decided once more."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from gitsched.apis.world import Advising
from gitsched.model.document import Document, Key
from gitsched.model.explanation import Change, Counterfactual
from gitsched.plan.catalog import Catalog
from gitsched.plan.ground import Ground, decide_after
from gitsched.plan.scenario import amend

_MOST = 8
"""Changes that one answer may have."""
_LATER = timedelta(seconds=1)
"""Somebody makes the changes after what is decided."""


def advise(ground: Ground, key: Key, clusters: Iterable[str]) -> tuple[Counterfactual, ...]:
    """What would bring a workload to each of some clusters where it does not run."""
    template = ground.decided.templates[key]
    found = ground.decided.outcomes.get(key)
    shares = found.shares if found is not None else {}
    return tuple(_advise(ground, template, cluster) for cluster in clusters if cluster not in shares)


def _advise(ground: Ground, template: Document, cluster: str) -> Counterfactual:
    """One change after another, each looked for in the world that the earlier ones made."""
    later = ground._replace(moment=ground.moment + _LATER)
    catalog, sessions = ground.decided.catalog, ground.decided.sessions
    changes: list[Change] = []
    while len(changes) < _MOST:
        edit = next((e for s in sessions if isinstance(s, Advising) and (e := s.propose(template, cluster)) is not None), None)
        if edit is None or edit.change in changes:
            break
        changes.append(edit.change)
        if edit.document is None:
            break
        known = edit.document.key in catalog.settings_by_key
        catalog = amend(catalog, {edit.document.key: edit.document} if known else {}, () if known else (edit.document,))
        template = catalog.templates.get(template.key, template)
        after = decide_after(later, catalog, {template.key})
        sessions = after.sessions
        shares = after.outcomes[template.key].shares if template.key in after.outcomes else {}
        if cluster in shares:
            return Counterfactual(cluster, _rebind(changes, ground.decided.catalog), enough=True, gets=shares[cluster])
    return Counterfactual(cluster, _rebind(changes, ground.decided.catalog))


def _rebind(changes: list[Change], catalog: Catalog) -> tuple[Change, ...]:
    """The second change of a document was found in a copy of it: its place is in the file all the same."""
    if all(change.rule is None or change.rule.origin.blob for change in changes):
        return tuple(changes)
    documents = (*catalog.templates.values(), *catalog.settings_by_key.values())
    known = {document.origin._replace(blob=""): document.origin for document in documents if document.origin is not None}
    bound = ((change, change.rule) for change in changes)
    return tuple(
        change if rule is None else change._replace(rule=rule._replace(origin=known.get(rule.origin, rule.origin)))
        for change, rule in bound
    )
