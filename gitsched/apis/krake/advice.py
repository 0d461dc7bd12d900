"""What would bring an application to a cluster: one change after another, as far as documents decide."""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.apis.edits import change, edit, label
from gitsched.apis.krake import names
from gitsched.apis.krake.constraint_sets import RESOURCES
from gitsched.apis.krake.decisions import Decided
from gitsched.apis.krake.rivals import find_turns
from gitsched.apis.world import Edit
from gitsched.model.document import Document, member

Documents = Mapping[tuple[str, str], tuple[Document, ...]]


def propose(decided: Decided, documents: Documents, cluster: str) -> Edit | None:
    """The next change that would bring an application nearer to a cluster; None where nobody knows one."""
    app, step, arena = decided.app, decided.step, decided.around.clusters
    known = (d for d in documents.get(names.CLUSTER, ()) if names.directory_of(d.key.namespace, d.key.name) == cluster)
    document = next(known, None)
    if document is None:
        return None
    at = next((i for i, site in enumerate(arena.sites) if (site.ref.namespace, site.ref.name) == document.key[2:]), None)
    if at is None:
        return Edit(change(f"it were in the namespace {app.key.namespace}", document))
    site = arena.sites[at]
    asked = app.constraints.affinity.labels.requirements if app.constraints.affinity.labels else ()
    lacking = label(document, site.labels, asked)
    if lacking is not None:
        return lacking
    missing = next((name for name in app.constraints.resources if name not in site.resources), None)
    if missing is not None:
        has = [*(member(document.body, "spec", RESOURCES) or ()), missing]
        return edit(f"it had the custom resource {missing}", document, ("spec", RESOURCES), has)
    if not site.open:
        return Edit(change(f"this were not so: {site.why}", document))
    if not step.mask >> at & 1:
        return Edit(change("its metrics satisfied the constraints", document, ("spec", "metrics")))
    if not app.migration:
        return edit("migration were allowed", app.document, ("spec", "constraints", "migration"), True)
    if not step.compared:
        return Edit(change(f"this were not so: {step.why}", app.document)) if step.why else None
    best = arena.ranking.total(step.held, step.mask, step.held) if step.held is not None else None
    total = arena.ranking.total(at, step.mask, step.held)
    if best is None or total is None:
        return None
    turns = find_turns(arena, at, step.held) if step.held is not None else ()
    way = next((f", as with {turn}" for turn in turns), "")
    return Edit(change(f"its score were more than {best:.6g} instead of {total:.6g}{way}", document, ("spec", "metrics")))
