"""Prometheus instant query (also Thanos and Mimir) that gives one number per cluster."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import quote

from gitsched.metrics.providers import ProviderRequest, ProviderResponse, find_token, join_url, make_bearer_header, parse_number
from gitsched.metrics.queries import InvalidMetricValue, ProviderUnreachable


def query_vector(spec: Mapping[str, Any], timeout: float, hosts: Collection[str] | None) -> dict[str, float]:
    """The value of each series by its label: `spec` has url, query and label, and tokenFrom where a token is wanted.

    Raises Unreachable or Invalid, whose text has neither the address nor the answer.
    """
    from gitsched.metrics.http_client import HttpClient  # httpx takes its time to load

    query = f"query={quote(str(spec['query']), safe='')}"
    request = ProviderRequest(join_url(spec["url"], "api/v1/query", query), None, make_bearer_header(find_token(spec)))
    with HttpClient(hosts, secure=request.url.lower().startswith("https:")) as client:
        answer = client.send(request, time.monotonic() + timeout)
    return parse_vector(answer, str(spec.get("label") or "cluster"))


def parse_vector(answer: ProviderResponse, label: str) -> dict[str, float]:
    """The series of an answer by a label. Raises Invalid for two series of one cluster, and for anything but a vector of finite numbers."""
    try:
        body = json.loads(answer.data)
    except (ValueError, RecursionError) as error:
        raise ProviderUnreachable("its answer is no JSON") from error
    data = body.get("data") if isinstance(body, dict) else None
    if not isinstance(data, dict) or data.get("resultType") != "vector" or not isinstance(data.get("result"), list):
        raise InvalidMetricValue("the query gives no instant vector")
    found: dict[str, float] = {}
    for series in data["result"]:
        labels, value = (series.get("metric"), series.get("value")) if isinstance(series, dict) else (None, None)
        cluster = labels.get(label) if isinstance(labels, dict) else None
        if not isinstance(cluster, str) or not isinstance(value, list) or len(value) != 2:
            raise InvalidMetricValue(f"a series has no label {label!r}; aggregate by it, or name another one")
        if cluster in found:
            raise InvalidMetricValue(f"there are several series for {cluster!r}; aggregate by the label {label!r}")
        found[cluster] = parse_number(value[1], label)
    return found
