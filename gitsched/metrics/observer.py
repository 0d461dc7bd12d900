"""Observe metrics: send all queries in parallel, under one deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from gitsched.metrics.providers import PROTOCOLS, find_token, parse_number
from gitsched.metrics.queries import InvalidMetricValue, MetricQuery, ProviderUnreachable, list_metric_queries
from gitsched.model.document import Body
from gitsched.model.observation import MetricFailure, ObservationKey, Observations

if TYPE_CHECKING:
    from gitsched.metrics.http_client import HttpClient

DEFAULT_TIMEOUT = 20.0
_MAX_WORKERS = 16
_UNREACHABLE, _INVALID = "UNREACHABLE_METRICS_PROVIDER", "INVALID_METRIC"


def observe(documents: Iterable[Body], timeout: float = DEFAULT_TIMEOUT, hosts: Collection[str] | None = None) -> Observations:
    """What the metrics of documents are now: a finite number, or a Failure, by (kind, namespace, name of the provider, metric there).

    `timeout` in seconds is for everything together; who has not answered by then failed. `hosts` are the only ones that may be asked,
    as names or `*.domain`; None allows all but link-local addresses. Whether a number is in its metric's range is judged where it is
    used.
    """
    return observe_queries(list_metric_queries(documents), timeout, hosts)


def observe_queries(
    questions: Sequence[MetricQuery], timeout: float = DEFAULT_TIMEOUT, hosts: Collection[str] | None = None
) -> Observations:
    """The same, of questions that were chosen already."""
    found = Observations(time=datetime.now(UTC).replace(microsecond=0))
    remote = [question for question in questions if question.type != "static"]
    answers = _run_queries(remote, timeout, hosts) if remote else {}
    for question in questions:
        found[question.key] = _read_static(question) if question.type == "static" else answers[question.key]
    return found


def _read_static(question: MetricQuery) -> float | MetricFailure:
    values = question.spec.get("metrics")
    if not isinstance(values, dict) or question.metric not in values:
        return MetricFailure(_INVALID, f"Metric '{question.metric}' not defined")
    try:
        return parse_number(values[question.metric], question.metric)
    except InvalidMetricValue as error:
        return MetricFailure(_INVALID, str(error))


def _run_queries(
    questions: Sequence[MetricQuery], timeout: float, hosts: Collection[str] | None
) -> dict[ObservationKey, float | MetricFailure]:
    """Every question by a few threads. They are daemons: a name that takes minutes to look up holds up nobody."""
    from gitsched.metrics.http_client import HttpClient  # most runs have nothing to ask, and httpx takes its time to load

    deadline = time.monotonic() + timeout
    waiting: SimpleQueue[MetricQuery] = SimpleQueue()
    answered: SimpleQueue[tuple[ObservationKey, float | MetricFailure | Exception]] = SimpleQueue()
    for question in questions:
        waiting.put(question)

    secure = any(str(question.spec.get("url")).lower().startswith("https:") for question in questions)
    with HttpClient(hosts, secure=secure) as client:

        def work() -> None:
            while time.monotonic() < deadline:
                try:
                    question = waiting.get_nowait()
                except Empty:
                    return
                answered.put((question.key, _run_query(client, question, deadline)))

        for _ in range(min(_MAX_WORKERS, len(questions))):
            threading.Thread(target=work, daemon=True).start()
        return _collect_values(questions, answered, deadline)


def _collect_values(
    questions: Sequence[MetricQuery],
    answered: SimpleQueue[tuple[ObservationKey, float | MetricFailure | Exception]],
    deadline: float,
) -> dict[ObservationKey, float | MetricFailure]:
    late = {question.key: _make_unreachable_failure(question, "it did not answer in time") for question in questions}
    found: dict[ObservationKey, float | MetricFailure] = {}
    while len(found) < len(questions):
        try:
            key, answer = answered.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            break
        if isinstance(answer, Exception):
            raise answer
        found[key] = answer
    return {**late, **found}


def _run_query(client: HttpClient, question: MetricQuery, deadline: float) -> float | MetricFailure | Exception:
    """The answer, or why there is none; anything unforeseen is handed to whoever waits."""
    dialect = PROTOCOLS.get(question.type)
    if dialect is None:
        return _make_unreachable_failure(question, "its type is unknown")
    try:
        request = dialect.make_request(question.spec, question.metric, find_token(question.spec))
        return dialect.parse_response(client.send(request, deadline), question.metric)
    except ProviderUnreachable as error:
        return _make_unreachable_failure(question, str(error))
    except InvalidMetricValue as error:
        return MetricFailure(_INVALID, str(error))
    except Exception as error:  # noqa: BLE001 - raised by who waits: a thread that dies in silence would look like a slow provider
        return error


def _make_unreachable_failure(question: MetricQuery, why: str) -> MetricFailure:
    title = PROTOCOLS[question.type].title if question.type in PROTOCOLS else question.type
    return MetricFailure(_UNREACHABLE, f"Failed to query {title} with provider '{question.provider}': {why}")
