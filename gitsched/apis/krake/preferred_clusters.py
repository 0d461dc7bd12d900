"""Report where the preferred clusters of an application have no effect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gitsched.apis.preferences import describe_unused, make_unknown_finding, make_unused_finding, read_names
from gitsched.model.finding import Finding
from gitsched.model.time import format_time

if TYPE_CHECKING:
    from gitsched.apis.krake.scheduler import ApplicationDecision


def find_preference_findings(decision: ApplicationDecision) -> Iterator[Finding]:
    """Yield the findings about the annotation of an application."""
    app, clusters, attempt = decision.app, decision.context.clusters, decision.attempts[-1]
    document = app.document
    names = yield from read_names(document)
    if not names:
        return
    indices = {name: clusters.find_named(name, app.key.namespace) for name in names}
    unknown = [name for name, index in indices.items() if index is None]
    if unknown:
        yield make_unknown_finding(document, unknown, clusters.fleet.names, "Cluster")
    matching = clusters.match_constraints(app.constraints)
    excluded: dict[str, str] = {}
    for name, index in indices.items():
        if index is None:
            continue
        if matching >> index & 1:
            if clusters.candidates[index].ref != attempt.status.target and attempt.status.target is not None:
                reason = describe_unused(document, excluded, [name], [attempt.status.target.name], _describe_end(decision))
                yield make_unused_finding(document, reason)
                return
            break  # it comes before the rest
        excluded[name] = f"not allowed: {clusters.describe_rejection(index, app.constraints) or 'it does not match'}"
    if excluded:
        yield make_unused_finding(document, describe_unused(document, excluded, (), ()))


def _describe_end(decision: ApplicationDecision) -> str:
    """Return until when an application stays on its cluster."""
    attempt = decision.attempts[-1]
    if attempt.next_change is not None:
        return f"at {format_time(attempt.next_change)}, because {attempt.reason}"
    return attempt.reason or "its cluster is kept"
