"""All questions at once, under one deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from gitsched.metrics.failures import Invalid, Unreachable
from gitsched.metrics.numbers import read_number
from gitsched.metrics.protocols import PROTOCOLS
from gitsched.metrics.questions import Question, list_questions
from gitsched.metrics.tokens import find_token
from gitsched.model.document import Body
from gitsched.model.observation import Failure, ObservationKey, Observations

if TYPE_CHECKING:
    from gitsched.metrics.client import Client

TIMEOUT = 20.0
_WORKERS = 16
_UNREACHABLE, _INVALID = "UNREACHABLE_METRICS_PROVIDER", "INVALID_METRIC"


def observe(documents: Iterable[Body], timeout: float = TIMEOUT, hosts: Collection[str] | None = None) -> Observations:
    """What the metrics of documents are now: a finite number, or a Failure, by (kind, namespace, name of the provider, metric there).

    `timeout` in seconds is for everything together; who has not answered by then failed. `hosts` are the only ones that may be asked,
    as names or `*.domain`; None allows all but link-local addresses. Whether a number is in its metric's range is judged where it is
    used.
    """
    return observe_questions(list_questions(documents), timeout, hosts)


def observe_questions(
    questions: Sequence[Question], timeout: float = TIMEOUT, hosts: Collection[str] | None = None
) -> Observations:
    """The same, of questions that were chosen already."""
    found = Observations(time=datetime.now(UTC).replace(microsecond=0))
    remote = [question for question in questions if question.type != "static"]
    answers = _ask_all(remote, timeout, hosts) if remote else {}
    for question in questions:
        found[question.key] = _read_static(question) if question.type == "static" else answers[question.key]
    return found


def _read_static(question: Question) -> float | Failure:
    values = question.spec.get("metrics")
    if not isinstance(values, dict) or question.metric not in values:
        return Failure(_INVALID, f"Metric '{question.metric}' not defined")
    try:
        return read_number(values[question.metric], question.metric)
    except Invalid as error:
        return Failure(_INVALID, str(error))


def _ask_all(questions: Sequence[Question], timeout: float, hosts: Collection[str] | None) -> dict[ObservationKey, float | Failure]:
    """Every question by a few threads. They are daemons: a name that takes minutes to look up holds up nobody."""
    from gitsched.metrics.client import Client  # most runs have nothing to ask, and httpx takes its time to load

    deadline = time.monotonic() + timeout
    waiting: SimpleQueue[Question] = SimpleQueue()
    answered: SimpleQueue[tuple[ObservationKey, float | Failure | Exception]] = SimpleQueue()
    for question in questions:
        waiting.put(question)

    secure = any(str(question.spec.get("url")).lower().startswith("https:") for question in questions)
    with Client(hosts, secure=secure) as client:

        def work() -> None:
            while time.monotonic() < deadline:
                try:
                    question = waiting.get_nowait()
                except Empty:
                    return
                answered.put((question.key, _ask(client, question, deadline)))

        for _ in range(min(_WORKERS, len(questions))):
            threading.Thread(target=work, daemon=True).start()
        return _collect(questions, answered, deadline)


def _collect(
    questions: Sequence[Question], answered: SimpleQueue[tuple[ObservationKey, float | Failure | Exception]], deadline: float
) -> dict[ObservationKey, float | Failure]:
    late = {question.key: _unreachable(question, "it did not answer in time") for question in questions}
    found: dict[ObservationKey, float | Failure] = {}
    while len(found) < len(questions):
        try:
            key, answer = answered.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            break
        if isinstance(answer, Exception):
            raise answer
        found[key] = answer
    return {**late, **found}


def _ask(client: Client, question: Question, deadline: float) -> float | Failure | Exception:
    """The answer, or why there is none; anything unforeseen is handed to whoever waits."""
    dialect = PROTOCOLS.get(question.type)
    if dialect is None:
        return _unreachable(question, "its type is unknown")
    try:
        request = dialect.ask(question.spec, question.metric, find_token(question.spec))
        return dialect.read(client.send(request, deadline), question.metric)
    except Unreachable as error:
        return _unreachable(question, str(error))
    except Invalid as error:
        return Failure(_INVALID, str(error))
    except Exception as error:  # noqa: BLE001 - raised by who waits: a thread that dies in silence would look like a slow provider
        return error


def _unreachable(question: Question, why: str) -> Failure:
    title = PROTOCOLS[question.type].title if question.type in PROTOCOLS else question.type
    return Failure(_UNREACHABLE, f"Failed to query {title} with provider '{question.provider}': {why}")
