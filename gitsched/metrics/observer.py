"""Observe metrics: send all queries in parallel under one deadline; query one number per cluster from Prometheus."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from gitsched.metrics.providers import (
    PROTOCOLS,
    ProviderRequest,
    ProviderResponse,
    find_token,
    join_url,
    make_bearer_header,
    parse_number,
)
from gitsched.metrics.queries import InvalidMetricValue, ProviderUnreachable, list_metric_queries
from gitsched.model.allow_list import METRICS, NOTHING_ALLOWED, AllowList
from gitsched.model.document import Body
from gitsched.model.observation import MetricFailure, MetricQuery, ObservationKey, Observations
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.metrics.http_client import HttpClient

DEFAULT_TIMEOUT = 20.0
_MAX_WORKERS = 16
_UNREACHABLE, _INVALID = "UNREACHABLE_METRICS_PROVIDER", "INVALID_METRIC"


def observe(documents: Iterable[Body], timeout: float = DEFAULT_TIMEOUT, allow: AllowList = NOTHING_ALLOWED) -> Observations:
    """Return the current value of each metric in the documents, or a MetricFailure, by (provider kind, namespace, provider, metric).

    `timeout` in seconds is the limit for all queries together. Only hosts and tokens that `allow` lists are used. The scheduler checks
    later whether a value is in its metric's range.
    """
    return observe_queries(list_metric_queries(documents), timeout, allow)


def observe_queries(
    queries: Sequence[MetricQuery], timeout: float = DEFAULT_TIMEOUT, allow: AllowList = NOTHING_ALLOWED
) -> Observations:
    """Return the results of queries; see `observe`."""
    observations = Observations(time=datetime.now(UTC).replace(microsecond=0))
    remote = [query for query in queries if query.type != "static"]
    values = _run_queries(remote, timeout, allow) if remote else {}
    for query in queries:
        observations[query.key] = _read_static(query) if query.type == "static" else values[query.key]
    return observations


def _read_static(query: MetricQuery) -> float | MetricFailure:
    values = query.spec.get("metrics")
    if not isinstance(values, dict) or query.metric not in values:
        return MetricFailure(_INVALID, f"Metric '{query.metric}' not defined")
    try:
        return parse_number(values[query.metric], query.metric)
    except InvalidMetricValue as error:
        return MetricFailure(_INVALID, str(error))


def _run_queries(queries: Sequence[MetricQuery], timeout: float, allow: AllowList) -> dict[ObservationKey, float | MetricFailure]:
    """Run queries in worker threads. These are daemons, so that slow name resolution does not delay the exit of the process."""
    from gitsched.metrics.http_client import HttpClient  # imported lazily: httpx is slow to load

    deadline = time.monotonic() + timeout
    pending: SimpleQueue[MetricQuery] = SimpleQueue()
    results: SimpleQueue[tuple[ObservationKey, float | MetricFailure | Exception]] = SimpleQueue()
    for query in queries:
        pending.put(query)

    secure = any(str(query.spec.get("url")).lower().startswith("https:") for query in queries)
    with HttpClient(allow, METRICS, secure=secure) as client:

        def run_queries() -> None:
            while time.monotonic() < deadline:
                try:
                    query = pending.get_nowait()
                except Empty:
                    return
                results.put((query.key, _run_query(client, query, allow, deadline)))

        for _ in range(min(_MAX_WORKERS, len(queries))):
            threading.Thread(target=run_queries, daemon=True).start()
        return _collect_values(queries, results, deadline)


def _collect_values(
    queries: Sequence[MetricQuery],
    results: SimpleQueue[tuple[ObservationKey, float | MetricFailure | Exception]],
    deadline: float,
) -> dict[ObservationKey, float | MetricFailure]:
    timeouts = {query.key: _make_unreachable_failure(query, "it did not answer in time") for query in queries}
    observations: dict[ObservationKey, float | MetricFailure] = {}
    while len(observations) < len(queries):
        try:
            key, result = results.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            break
        if isinstance(result, Exception):
            raise result
        observations[key] = result
    return {**timeouts, **observations}


def _run_query(client: HttpClient, query: MetricQuery, allow: AllowList, deadline: float) -> float | MetricFailure | Exception:
    """Return the value, the failure, or an unexpected exception for the waiting thread to raise."""
    protocol = PROTOCOLS.get(query.type)
    if protocol is None:
        return _make_unreachable_failure(query, "its type is unknown")
    try:
        token = find_token(query.spec, query.spec.get("url"), allow, METRICS)
        request = protocol.make_request(query.spec, query.metric, token)
        return protocol.parse_response(client.send(request, deadline), query.metric)
    except ProviderUnreachable as error:
        return _make_unreachable_failure(query, str(error))
    except InvalidMetricValue as error:
        return MetricFailure(_INVALID, str(error))
    except Exception as error:  # noqa: BLE001 - raised in the waiting thread
        return error


def _make_unreachable_failure(query: MetricQuery, reason: str) -> MetricFailure:
    title = PROTOCOLS[query.type].title if query.type in PROTOCOLS else query.type
    return MetricFailure(_UNREACHABLE, f"Failed to query {title} with provider '{query.provider}': {reason}")


class ClusterValues(NamedTuple):
    """The values of an instant vector by cluster. `invalid` says why a cluster has no value, and `unlabelled` counts the series without the
    label of the cluster."""

    values: dict[str, float]
    invalid: dict[str, str]
    unlabelled: int


def query_vector(spec: Mapping[str, Any], timeout: float, allow: AllowList) -> ClusterValues:
    """Run an instant query of Prometheus, Thanos or Mimir and return the value of each series by its cluster label.

    `spec` has url, query, label and optionally tokenFrom. Raises ProviderUnreachable or InvalidMetricValue, whose messages contain neither
    the address nor the response.
    """
    from gitsched.metrics.http_client import HttpClient  # imported lazily: httpx is slow to load

    query = f"query={quote(str(spec['query']), safe='')}"
    token = find_token(spec, spec["url"], allow, METRICS)
    request = ProviderRequest(join_url(spec["url"], "api/v1/query", query), None, make_bearer_header(token))
    with HttpClient(allow, METRICS, secure=request.url.lower().startswith("https:")) as client:
        response = client.send(request, time.monotonic() + timeout)
    return parse_vector(response, str(spec.get("label") or "cluster"))


def parse_vector(response: ProviderResponse, label: str) -> ClusterValues:
    """Return the values of an instant vector by label. An invalid series affects its own cluster only.

    Raises InvalidMetricValue for other result types, and for a result in which no series has the label.
    """
    try:
        body = json.loads(response.data)
    except (ValueError, RecursionError) as error:
        raise ProviderUnreachable("its response is not valid JSON") from error
    data = body.get("data") if isinstance(body, dict) else None
    if not isinstance(data, dict) or data.get("resultType") != "vector" or not isinstance(data.get("result"), list):
        raise InvalidMetricValue("the query does not return an instant vector")
    found = ClusterValues({}, {}, 0)
    for series in data["result"]:
        labels, value = (series.get("metric"), series.get("value")) if isinstance(series, dict) else (None, None)
        cluster = labels.get(label) if isinstance(labels, dict) else None
        if not isinstance(cluster, str) or not cluster:
            found = found._replace(unlabelled=found.unlabelled + 1)
        elif cluster in found.values or cluster in found.invalid:
            found.values.pop(cluster, None)
            found.invalid[cluster] = f"there are several series; aggregate by the label {label!r}"
        else:
            _read_sample(value, cluster, found)
    if found.unlabelled and not (found.values or found.invalid):
        raise InvalidMetricValue(f"no series has the label {label!r}; aggregate by that label, or set another one")
    return found


def _read_sample(value: object, cluster: str, found: ClusterValues) -> None:
    """Add the value of a sample, a list of time and number, or the reason why it is invalid."""
    number = value[1] if isinstance(value, list) and len(value) == 2 else None
    if isinstance(number, str) and number.strip().lower().lstrip("+-") in ("nan", "inf"):
        found.invalid[cluster] = f"the value is {number.strip()}"
        return
    try:
        found.values[cluster] = parse_number(number, cluster)
    except InvalidMetricValue:
        found.invalid[cluster] = "the value is not a finite number"
