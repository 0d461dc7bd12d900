"""What a schema cannot say about a ClusterReport."""

from __future__ import annotations

from collections.abc import Iterator

from gitsched.model.document import Body, get_field
from gitsched.model.finding import Issue
from gitsched.model.time import parse_time


def validate_cluster_report(body: Body) -> Iterator[Issue]:
    """Yield an error for a time that is no time: such a report would not count."""
    since = get_field(body, "spec", "since")
    if parse_time(since) is None:
        message = f"{str(since)[:60]!r} is not an RFC 3339 time such as 2026-03-01T08:00:00Z"
        yield Issue("error", "invalid-field", message, ("spec", "since"))
