"""The Python API: documents in, documents out. No Git, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from gitsched.apis.gitsched.config import parse_config
from gitsched.model.decision import Verdict
from gitsched.model.document import Body, Key, group_of, member
from gitsched.model.errors import Permanent
from gitsched.model.finding import Finding, rank
from gitsched.model.scope import is_namespaced
from gitsched.model.time import EPOCH, parse_time
from gitsched.plan.calm import undisturbed
from gitsched.plan.catalog import Loose, loosen
from gitsched.plan.checking import check, find, waive
from gitsched.plan.deciding import Decided, decide


class Schedule(NamedTuple):
    """`documents` are the resources as the upstream's API server would show them after scheduling. `next_wakeup` is the first moment at
    which time alone can change a decision, or None."""

    documents: list[Body]
    findings: list[Finding]
    next_wakeup: datetime | None
    decided: Decided

    def explain(self, kind: str, name: str, namespace: str = "") -> list[Verdict]:
        """How every candidate fares for a workload, or another document that an API decides about, in name order.

        KeyError when there is no such document.
        """
        for session in self.decided.sessions:
            known = session.verdicts(kind, name, namespace)
            if known is not None:
                return known
        for key, template in self.decided.templates.items():
            if (key.kind, key.name) == (kind, name) and namespace in (key.namespace, ""):
                return next((found for session in self.decided.sessions if (found := session.candidates(template))), [])
        raise KeyError(f"{kind} {namespace}/{name}")


@undisturbed()
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
    moment = now or _latest(bodies) or EPOCH
    try:
        settings = parse_config(config or {})
    except ValueError as error:
        raise Permanent(str(error)) from error
    waived = waive(settings)
    loose: list[Loose] = []
    findings: list[Finding] = []
    for body in bodies:
        verdict = check(body, waived)
        findings += find(body, waived) if verdict.issues else []
        loose.append(loosen(verdict.body, None, any(issue.severity == "error" for issue in verdict.issues)))
    decided = decide(loose, {_key(body): body for body in previous}, settings, at or moment, moment, None, observations, once=True)
    findings += decided.findings
    for outcome in decided.outcomes.values():
        findings += outcome.findings
    shown = [body for outcome in decided.outcomes.values() for _, body in outcome.documents]
    shown += [body for session in decided.sessions for _, body in session.documents()]
    return Schedule(shown, sorted(findings, key=rank), min(decided.wakeups, default=None), decided)


def validate(documents: Iterable[Body]) -> list[Finding]:
    """What schemas and rules say about plain documents; nothing is scheduled."""
    return [finding for body in documents for finding in find(body)]


def _key(body: Body) -> Key:
    group, kind = group_of(str(body.get("apiVersion") or body.get("api") or "")), str(body.get("kind") or "")
    namespace = str(member(body, "metadata", "namespace") or ("default" if is_namespaced(group, kind) else ""))
    return Key(
        group, kind, namespace if is_namespaced(group, kind) is not False else "", str(member(body, "metadata", "name") or "")
    )


def _latest(value: Any) -> datetime | None:
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
