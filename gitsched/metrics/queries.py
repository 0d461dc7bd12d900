"""Metric queries: which metrics of which providers the documents use, and the errors of a query, whose messages never contain an
address, a token or a response."""

from __future__ import annotations

from collections.abc import Iterable

from gitsched.decide.registry import policy_apis
from gitsched.model.document import Body
from gitsched.model.observation import MetricQuery


class ProviderUnreachable(Exception):
    """The provider cannot be queried, or its response is malformed."""


class InvalidMetricValue(Exception):
    """The provider's response has no valid number for this metric."""


def list_metric_queries(documents: Iterable[Body]) -> list[MetricQuery]:
    """Return one query for each metric of a known provider, in key order, for the documents of all policy APIs."""
    bodies = list(documents)
    queries = (query for api in policy_apis.values() if api.metrics is not None for query in api.metrics.list_queries(bodies))
    return sorted(queries, key=lambda query: query.key)
