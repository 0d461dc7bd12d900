"""Metric values for one run: asked for once, or taken from the record of the last run.

Who asks, sends what a document says to where it says, and may add a token. So providers are asked only as a trusted branch describes
them; of what is merely looked at, such as a pull request, everything else comes from the record.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from typing import NamedTuple

from gitsched.apis.gitsched.config import Forge
from gitsched.metrics.failures import Unreachable
from gitsched.metrics.questions import Question, list_questions
from gitsched.model.document import Body
from gitsched.model.finding import Finding
from gitsched.model.observation import STATUS, Failure, Observations, read_observations
from gitsched.render.record import Record

_UNKNOWN = "UNREACHABLE_METRICS_PROVIDER"
_SHOWN = 60
_UNVOUCHED = (
    "no provider of metrics is asked, and recorded values are used: gitsched.yaml of the very commit that is planned says where the output "
    "is, and with it which providers may be trusted. Compare with a branch that you trust (plan BASE), or say yourself where the output is "
    "(--output-branch, --output-repository; output.path can only be trusted of a BASE)"
)


class Gathered(NamedTuple):
    """`findings` say which providers were not asked though they should have been."""

    observations: Observations
    findings: tuple[Finding, ...] = ()


class Manner(NamedTuple):
    """How values are come by. `live` says whether providers are asked at all, `hosts` which ones may be (None: all), `timeout` how long
    all of them together may take. `trusted` gives the documents that may be followed, None for the very documents of the run; it is not
    asked unless `vouched` says that not the run's own commit has chosen them."""

    live: bool
    hosts: Collection[str] | None
    timeout: float
    trusted: Callable[[], Iterable[Body]] | None = None
    vouched: bool = True


def gather(bodies: Iterable[Body], record: Record | None, manner: Manner, now: datetime, heard: Observations) -> Gathered:
    """The values of all metrics that come from a server. Static ones stand in the documents.

    `heard` are answers that need not be asked for once more; those of this time are added.
    """
    questions = [question for question in list_questions(bodies) if question.type != "static"]
    if not questions:
        return Gathered(Observations())
    recorded = read_observations(record.observations, record.observed_at) if record else Observations()
    if manner.live and manner.trusted is not None and not manner.vouched:
        return Gathered(recall(questions, recorded), (Finding("warning", "krake-not-asked", _UNVOUCHED),))
    asked, left = _divide(questions, manner, record)
    told = _tell(left, recorded)
    if not manner.live or not asked:
        return Gathered(recall(questions, recorded), told)
    fresh = [question for question in asked if question.key not in heard]
    if fresh:
        from gitsched.metrics.observing import observe_questions  # most runs ask nobody

        heard.update(observe_questions(fresh, manner.timeout, manner.hosts))
    found = recall(left, recorded)
    found.update((question.key, heard[question.key]) for question in asked)
    found.time = now
    return Gathered(found, told)


def gather_statuses(
    gathered: Gathered,
    forge: Forge | None,
    commits: Iterable[tuple[str, datetime]],
    clusters: Collection[str],
    record: Record | None,
    manner: Manner,
    now: datetime,
) -> Gathered:
    """The same with what clusters report at the forge, of the output's latest commits; of what nobody may follow, what was recorded."""
    if forge is None or not clusters:
        return gathered
    recorded = read_observations(record.observations, record.observed_at) if record else Observations()
    found, findings = gathered
    if manner.live and manner.trusted is None:
        from gitsched.metrics.statuses import ask_statuses  # most runs ask nobody

        try:
            found.update(ask_statuses(forge, commits, clusters, manner.timeout, manner.hosts))
            found.time = now
            return Gathered(found, findings)
        except Unreachable as error:
            message = f"commit statuses are not known, and what was recorded last counts: {error}"
            findings = (*findings, Finding("warning", "ocm-statuses-unknown", message))
    found.update((key, value) for key, value in recorded.items() if key[0] == STATUS)
    found.time = found.time or recorded.time
    return Gathered(found, findings)


def recall(questions: Iterable[Question], recorded: Observations) -> Observations:
    """What the record says about questions; of what it does not say, nobody knows anything."""
    missing = "was not observed yet: a reconcile does that"
    entries = (
        (
            question.key,
            recorded.get(question.key, Failure(_UNKNOWN, f"The metric '{question.metric}' of '{question.provider}' {missing}")),
        )
        for question in questions
    )
    return Observations(entries, recorded.time)


def _divide(questions: list[Question], manner: Manner, record: Record | None) -> tuple[list[Question], list[Question]]:
    """Those that may be asked, and those that are other ones than the output branch was made with."""
    if manner.trusted is None or (record is None and not manner.live):
        return questions, []
    known = {question.key: question for question in list_questions(manner.trusted())}
    asked = [question for question in questions if known.get(question.key) == question]
    return asked, [question for question in questions if known.get(question.key) != question]


def _tell(left: Iterable[Question], recorded: Observations) -> tuple[Finding, ...]:
    """One finding for each provider that is not asked, or not everything."""
    metrics: dict[tuple[str, str, str], list[Question]] = {}
    for question in left:
        metrics.setdefault(question.key[:3], []).append(question)
    findings = []
    for (kind, namespace, name), wanted in sorted(metrics.items()):
        known = any(question.key in recorded for question in wanted)
        end = "recorded values are used" if known else "nobody knows the values before a reconcile does"
        few = ", ".join(question.metric[:_SHOWN] for question in wanted[:3]) + (", ..." if len(wanted) > 3 else "")
        message = (
            f"{kind} {name} or what it is asked for ({few}) is {'not what' if known else 'new since'} the output branch was made"
            f"{' with' if known else ''}: it is not asked, and {end}"
        )
        findings.append(Finding("warning", "krake-provider-changed", message, None, (kind, namespace, name)))
    return tuple(findings)
