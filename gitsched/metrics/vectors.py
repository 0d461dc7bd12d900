"""One question, a number for each cluster: an instant query of Prometheus, or of what speaks its language (Thanos, Mimir)."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import quote

from gitsched.metrics.failures import Invalid, Unreachable
from gitsched.metrics.numbers import read_number
from gitsched.metrics.protocols import Answer, Request, bear, join
from gitsched.metrics.tokens import find_token


def ask_vector(spec: Mapping[str, Any], timeout: float, hosts: Collection[str] | None) -> dict[str, float]:
    """The value of each series by its label: `spec` has url, query and label, and tokenFrom where a token is wanted.

    Raises Unreachable or Invalid, whose text has neither the address nor the answer.
    """
    from gitsched.metrics.client import Client  # httpx takes its time to load

    query = f"query={quote(str(spec['query']), safe='')}"
    request = Request(join(spec["url"], "api/v1/query", query), None, bear(find_token(spec)))
    with Client(hosts, secure=request.url.lower().startswith("https:")) as client:
        answer = client.send(request, time.monotonic() + timeout)
    return read_vector(answer, str(spec.get("label") or "cluster"))


def read_vector(answer: Answer, label: str) -> dict[str, float]:
    """The series of an answer by a label. Raises Invalid for two series of one cluster, and for anything but a vector of finite numbers."""
    try:
        body = json.loads(answer.data)
    except (ValueError, RecursionError) as error:
        raise Unreachable("its answer is no JSON") from error
    data = body.get("data") if isinstance(body, dict) else None
    if not isinstance(data, dict) or data.get("resultType") != "vector" or not isinstance(data.get("result"), list):
        raise Invalid("the query gives no instant vector")
    found: dict[str, float] = {}
    for series in data["result"]:
        labels, value = (series.get("metric"), series.get("value")) if isinstance(series, dict) else (None, None)
        cluster = labels.get(label) if isinstance(labels, dict) else None
        if not isinstance(cluster, str) or not isinstance(value, list) or len(value) != 2:
            raise Invalid(f"a series has no label {label!r}; aggregate by it, or name another one")
        if cluster in found:
            raise Invalid(f"there are several series for {cluster!r}; aggregate by the label {label!r}")
        found[cluster] = read_number(value[1], label)
    return found
