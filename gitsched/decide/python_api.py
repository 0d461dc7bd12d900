"""The Python API: schedule and validate plain documents, without Git and without a clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from gitsched.apis.gitsched.config import parse_config
from gitsched.decide.catalog import RawDocument, make_raw_document
from gitsched.decide.decisions import DecisionSet, decide
from gitsched.decide.gc_pause import gc_paused
from gitsched.decide.validation import list_document_findings, list_ignored_codes, validate_document
from gitsched.model.document import Body, Key, get_field, is_namespaced, parse_api_group
from gitsched.model.errors import Permanent
from gitsched.model.finding import Finding, finding_sort_key
from gitsched.model.scheduling import CandidateResult
from gitsched.model.time import EPOCH, parse_time


class Schedule(NamedTuple):
    """`documents` are the resources as the upstream's API server would show them after scheduling. `next_wakeup` is the first moment at
    which time alone can change a decision, or None."""

    documents: list[Body]
    findings: list[Finding]
    next_wakeup: datetime | None
    decisions: DecisionSet

    def explain(self, kind: str, name: str, namespace: str = "") -> list[CandidateResult]:
        """How every candidate fares for a workload, or another document that an API decides about, in name order.

        KeyError when there is no such document.
        """
        for session in self.decisions.engines:
            known = session.evaluate_own(kind, name, namespace)
            if known is not None:
                return known
        for key, template in self.decisions.templates.items():
            if (key.kind, key.name) == (kind, name) and namespace in (key.namespace, ""):
                return next((found for session in self.decisions.engines if (found := session.evaluate_candidates(template))), [])
        raise KeyError(f"{kind} {namespace}/{name}")


@gc_paused()
def schedule(
    documents: Iterable[Body],
    *,
    previous: Iterable[Body] = (),
    now: datetime | None = None,
    at: datetime | None = None,
    config: Mapping[str, Any] | None = None,
    observations: Mapping[Any, Any] | None = None,
) -> Schedule:
    """Schedule plain documents, each workload in one cycle of its scheduler.

    `previous` are the documents of the last run. `now` is what deadlines are compared with (default: the latest timestamp in the
    documents, else 1970-01-01), `at` the moment of the documents (default: `now`); both in UTC. `config` is the spec of a gitsched.yaml.
    `observations` are metric values by name. Mistakes in documents are findings; a mistake in `config` raises Permanent.
    """
    bodies = list(documents)
    moment = now or _find_latest_time(bodies) or EPOCH
    try:
        settings = parse_config(config or {})
    except ValueError as error:
        raise Permanent(str(error)) from error
    waived = list_ignored_codes(settings)
    loose: list[RawDocument] = []
    findings: list[Finding] = []
    for body in bodies:
        verdict = validate_document(body, waived)
        findings += list_document_findings(body, waived) if verdict.issues else []
        loose.append(make_raw_document(verdict.body, None, any(issue.severity == "error" for issue in verdict.issues)))
    decided = decide(
        loose, {_make_key(body): body for body in previous}, settings, at or moment, moment, None, observations, once=True
    )
    findings += decided.findings
    for outcome in decided.outcomes.values():
        findings += outcome.findings
    shown = [body for outcome in decided.outcomes.values() for _, body in outcome.records]
    shown += [body for session in decided.engines for _, body in session.records()]
    return Schedule(shown, sorted(findings, key=finding_sort_key), min(decided.wakeups, default=None), decided)


def validate(documents: Iterable[Body]) -> list[Finding]:
    """What schemas and rules say about plain documents; nothing is scheduled."""
    return [finding for body in documents for finding in list_document_findings(body)]


def _make_key(body: Body) -> Key:
    group, kind = parse_api_group(str(body.get("apiVersion") or body.get("api") or "")), str(body.get("kind") or "")
    namespace = str(get_field(body, "metadata", "namespace") or ("default" if is_namespaced(group, kind) else ""))
    return Key(
        group, kind, namespace if is_namespaced(group, kind) is not False else "", str(get_field(body, "metadata", "name") or "")
    )


def _find_latest_time(value: Any) -> datetime | None:
    """The latest timestamp anywhere in the documents."""
    latest: datetime | None = None
    stack = [value]
    while stack:
        entry = stack.pop()
        if isinstance(entry, dict):
            stack.extend(entry.values())
        elif isinstance(entry, list):
            stack.extend(entry)
        elif isinstance(entry, str) and (moment := parse_time(entry)) is not None:
            latest = max(latest or moment, moment)
    return latest
