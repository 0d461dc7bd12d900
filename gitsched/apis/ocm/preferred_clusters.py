"""Report where the preferred clusters of a Placement have no effect on its decisions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from gitsched.apis.preferences import describe_unused, make_unknown_finding, make_unused_finding, read_names
from gitsched.model.document import Document, Key
from gitsched.model.finding import Finding
from gitsched.model.preferred_clusters import read_preferred_clusters
from gitsched.schedule.selection import explain_selection

if TYPE_CHECKING:
    from gitsched.apis.ocm.scheduling import PlacementResult
    from gitsched.schedule.fleet import Fleet


def find_preference_findings(result: PlacementResult, fleet: Fleet) -> Iterator[Finding]:
    """Yield the findings about the annotation of a scheduled Placement."""
    document, request, choice = result.placement.document, result.request, result.choice
    names = yield from read_names(document)
    if not names:
        return
    unknown = [name for name in names if name not in fleet.index]
    if unknown:
        yield make_unknown_finding(document, unknown, fleet.names, "ManagedCluster")
    known = [fleet.index[name] for name in names if name in fleet.index]
    if request is None or choice is None or not known:
        return
    if request.limit is None or request.limit >= len(choice.members):
        yield make_unused_finding(document, "it chooses all clusters that it allows; limit their number with numberOfClusters")
        return
    results = explain_selection(request, choice, fleet, "it is in none of the cluster sets of the Placement")
    excluded = {fleet.names[i]: f"not allowed: {results[i].reason}" for i in known if not results[i].eligible}
    others = set(choice.selected).difference(known)
    if others:
        left = (i for i in known if results[i].eligible and i not in choice.selected)
        excluded |= {fleet.names[i]: "left out by the spread constraints" for i in left}
    reason = describe_unused(document, excluded, (), ())
    if reason:
        yield make_unused_finding(document, reason)


def report_workload(document: Document, placements: Iterable[Key]) -> Finding | None:
    """Return the finding that a workload has the annotation, which only its Placements read; None without the annotation."""
    read = read_preferred_clusters(document.body)
    if read is None:
        return None
    names = ", ".join(key.title for key in placements) or "its Placement"
    return make_unused_finding(document, f"it has no effect, because {names} chooses the clusters: annotate that")
