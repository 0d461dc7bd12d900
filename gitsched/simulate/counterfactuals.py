"""Find counterfactuals: apply the changes that a policy API proposes, schedule again, and see whether the workload reaches the
cluster."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from gitsched.apis.capabilities import ChangeProposing
from gitsched.decide.catalog import Catalog
from gitsched.model.document import Document, Key
from gitsched.model.explanation import Counterfactual, ProposedChange
from gitsched.model.time import add_duration
from gitsched.simulate.baseline import Baseline, decide_changed_catalog
from gitsched.simulate.scenario import edit_catalog

_MAX_CHANGES = 8
"""The maximum number of changes in one result."""
_AFTER_PLAN = timedelta(seconds=1)
"""The time between carrying out the plan and making the changes."""


def find_counterfactuals(baseline: Baseline, key: Key, clusters: Iterable[str]) -> tuple[Counterfactual, ...]:
    """Return the changes that would place a workload on each of the given clusters where it does not run."""
    template = baseline.decisions.templates[key]
    found = baseline.decisions.outcomes.get(key)
    shares = found.replicas_by_cluster if found is not None else {}
    return tuple(_find_counterfactual(baseline, template, cluster) for cluster in clusters if cluster not in shares)


def _find_counterfactual(baseline: Baseline, template: Document, cluster: str) -> Counterfactual:
    """Apply proposed changes one after the other, and schedule again after each, until the workload reaches the cluster."""
    later = baseline._replace(time=add_duration(baseline.time, _AFTER_PLAN))
    catalog, engines = baseline.decisions.catalog, baseline.decisions.engines
    changes: list[ProposedChange] = []
    edited: list[Key] = []
    while len(changes) < _MAX_CHANGES:
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
        changes.append(edit.change)
        if edit.document is None:
            break
        edited.append(edit.document.key)
        known = edit.document.key in catalog.api_documents_by_key
        catalog = edit_catalog(catalog, {edit.document.key: edit.document} if known else {}, () if known else (edit.document,))
        template = catalog.templates.get(template.key, template)
        after = decide_changed_catalog(later, catalog, {template.key})
        engines = after.engines
        shares = after.outcomes[template.key].replicas_by_cluster if template.key in after.outcomes else {}
        if cluster in shares:
            return Counterfactual(
                cluster, _restore_origins(changes, edited, baseline.decisions.catalog), sufficient=True, replicas=shares[cluster]
            )
    return Counterfactual(cluster, _restore_origins(changes, edited, baseline.decisions.catalog))


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
