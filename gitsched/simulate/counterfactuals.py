"""Find counterfactuals: apply the changes that a policy API proposes, schedule again, and see whether the workload reaches the
cluster."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta

from gitsched.apis.capabilities import ChangeProposal, ChangeProposing
from gitsched.apis.topology import list_cluster_kinds
from gitsched.decide.catalog import Catalog
from gitsched.model.document import Document, Key
from gitsched.model.explanation import Counterfactual, ProposedChange
from gitsched.model.finding import Pointer
from gitsched.model.scheduling import Outcome
from gitsched.model.time import add_duration
from gitsched.simulate.baseline import Baseline, decide_changed_catalog
from gitsched.simulate.scenario import edit_catalog

_NUMBER = re.compile("[0-9]")
_MAX_CHANGES = 8
"""The maximum number of changes in one result."""
_AFTER_PLAN = timedelta(seconds=1)
"""The time between carrying out the plan and making the changes."""


def find_counterfactuals(baseline: Baseline, key: Key, clusters: Iterable[str]) -> tuple[Counterfactual, ...]:
    """Return the changes that would place a workload on each of the given clusters where it does not run."""
    template, outcomes = baseline.decisions.templates[key], baseline.decisions.outcomes
    shares = _find_shares(outcomes, key)
    wanted = [cluster for cluster in clusters if cluster not in shares]
    waiting = {one for one, outcome in outcomes.items() if outcome.unassigned or not outcome.targets} if wanted else set()
    return tuple(_find_counterfactual(baseline, template, cluster, waiting) for cluster in wanted)


def _find_shares(outcomes: Mapping[Key, Outcome], key: Key) -> Mapping[str, int | None]:
    """Return the replicas of a workload by cluster; nothing if it has no outcome."""
    found = outcomes.get(key)
    return found.replicas_by_cluster if found is not None else {}


def _find_counterfactual(baseline: Baseline, template: Document, cluster: str, waiting: Collection[Key]) -> Counterfactual:
    """Apply proposed changes one after the other, and schedule again after each, until the workload reaches the cluster."""
    later = baseline._replace(time=add_duration(baseline.time, _AFTER_PLAN))
    catalog, engines = baseline.decisions.catalog, baseline.decisions.engines
    changes: list[ProposedChange] = []
    edited: list[Key] = []
    for _ in range(_MAX_CHANGES):
        edit = next(
            (
                edit
                for engine in engines
                if isinstance(engine, ChangeProposing) and (edit := engine.propose(template, cluster)) is not None
            ),
            None,
        )
        if edit is None or edit.change in changes:
            break
        if edit.document is not None and edit.document.key in edited:
            _drop_earlier(changes, edited, edit)  # others took some of the capacity that it added
        changes.append(edit.change)
        if edit.document is None:
            break
        edited.append(edit.document.key)
        known = edit.document.key in catalog.api_documents_by_key
        catalog = edit_catalog(catalog, {edit.document.key: edit.document} if known else {}, () if known else (edit.document,))
        template = catalog.templates.get(template.key, template)
        # What has no cluster yet takes the capacity of a changed cluster as well, perhaps before this workload.
        is_cluster = edit.document.key[:2] in list_cluster_kinds()
        after = decide_changed_catalog(later, catalog, {template.key, *waiting} if is_cluster else {template.key})
        engines = after.engines
        shares = _find_shares(after.outcomes, template.key)
        if cluster in shares:
            found = Counterfactual(cluster, tuple(changes), sufficient=True, replicas=shares[cluster])
            found = _try_without_added(later, catalog, template.key, edited, found, waiting) if len(edited) > 1 else found
            return found._replace(changes=_restore_origins([*found.changes], edited, baseline.decisions.catalog))
    # A document that is added, as a request to schedule again, is no obstacle, and did not suffice.
    before = baseline.decisions.catalog
    obstacles = [change for number, change in enumerate(changes) if number >= len(edited) or _has_document(before, edited[number])]
    return Counterfactual(cluster, _restore_origins(obstacles, edited, before))


def _drop_earlier(changes: list[ProposedChange], edited: list[Key], edit: ChangeProposal) -> None:
    """Remove an earlier change of the same field of the same document that says the same with other numbers."""
    assert edit.document is not None, "only changes of documents are repeated"
    for index, (change, key) in enumerate(zip(changes, edited, strict=True)):
        if key == edit.document.key and _identify_change(change) == _identify_change(edit.change):
            del changes[index], edited[index]
            return


def _identify_change(change: ProposedChange) -> tuple[Pointer | None, str]:
    """Return the path of the field that changes, and the text up to its first number. Edited documents have other origins."""
    return change.field.pointer if change.field is not None else None, _NUMBER.split(change.text, 1)[0]


def _try_without_added(
    baseline: Baseline, catalog: Catalog, key: Key, edited: Sequence[Key], found: Counterfactual, waiting: Collection[Key]
) -> Counterfactual:
    """Return the changes without the document that they add, if the others suffice: a request to schedule again is needed only where
    nothing else does that."""
    added = next((index for index, one in enumerate(edited) if not _has_document(baseline.decisions.catalog, one)), None)
    if added is None:
        return found
    after = decide_changed_catalog(baseline, edit_catalog(catalog, {edited[added]: None}), {key, *waiting})
    shares = _find_shares(after.outcomes, key)
    if found.cluster not in shares:
        return found
    return found._replace(
        changes=(*found.changes[:added], *found.changes[added + 1 :]),
        replicas=shares[found.cluster],
    )


def _has_document(catalog: Catalog, key: Key) -> bool:
    return key in catalog.api_documents_by_key or key in catalog.templates


def _restore_origins(changes: list[ProposedChange], edited: list[Key], catalog: Catalog) -> tuple[ProposedChange, ...]:
    """Replace origins of changed copies of the edited documents by those of the source documents, whose lines are reported."""
    if all(change.field is None or change.field.origin.blob for change in changes):
        return tuple(changes)
    own = catalog.api_documents_by_key
    documents = (own.get(key) or catalog.templates.get(key) for key in edited)
    known = {found.origin._replace(blob=""): found.origin for found in documents if found is not None and found.origin is not None}
    fields = ((change, change.field) for change in changes)
    return tuple(
        change if field is None else change._replace(field=field._replace(origin=known.get(field.origin, field.origin)))
        for change, field in fields
    )
