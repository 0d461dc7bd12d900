"""README.md of the output branch: the fleet and the decisions as a person reads them on the forge, bounded and harmless."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from gitsched.model.files import Bytes
from gitsched.model.finding import SEVERITIES
from gitsched.model.time import format_time
from gitsched.render.markdown import code
from gitsched.render.record import public_url

if TYPE_CHECKING:
    from jinja2 import Template

ROWS = 200
"""Rows of both tables together; the fleet may take half of them, or what the decisions leave."""
CLUSTERS_SHOWN = 10
"""Clusters of one decision that are named; the others are counted."""
_COMMIT = re.compile(r"[0-9a-f]{4,64}")


class FleetRow(NamedTuple):
    """One cluster; `note` says what a reader should know of its state: "ready", taints, "retiring"."""

    name: str
    region: str
    note: str
    workloads: int
    replicas: int


class DecisionRow(NamedTuple):
    """One workload ("Deployment shop/web") under its policy, or what puts it there instead.

    `placement` are clusters and replicas (None: they mean nothing).
    """

    workload: str
    policy: str
    placement: Sequence[tuple[str, int | None]]


class Summary(NamedTuple):
    """`findings` counts by severity, `unclaimed` the objects that no policy selects; `repository` is the source's URL.

    `workloads` is how many decisions there are, where not all of them are given.
    """

    source: str
    version: str
    time: datetime
    fleet: Sequence[FleetRow] = ()
    decisions: Sequence[DecisionRow] = ()
    findings: Mapping[str, int] = {}
    unclaimed: int = 0
    repository: str | None = None
    next_wakeup: datetime | None = None
    workloads: int = 0


def readme(summary: Summary) -> Bytes:
    """README.md: how to reproduce, findings by severity, then the fleet and the decisions in at most 200 rows, counts beyond."""
    workloads = max(summary.workloads, len(summary.decisions))
    fleet = summary.fleet[: max(ROWS // 2, ROWS - workloads)]
    decisions = summary.decisions[: ROWS - len(fleet)]
    text = _template().render(
        code=code,
        placement=_placement,
        source=summary.source,
        commit=summary.source if _COMMIT.fullmatch(summary.source) else "COMMIT",
        repository=public_url(summary.repository),
        version=summary.version,
        time=format_time(summary.time),
        next_wakeup=format_time(summary.next_wakeup) if summary.next_wakeup else "",
        findings=[(severity, summary.findings[severity]) for severity in SEVERITIES if summary.findings.get(severity)],
        unclaimed=summary.unclaimed,
        fleet=fleet,
        more_fleet=len(summary.fleet) - len(fleet),
        decisions=decisions,
        more_decisions=workloads - len(decisions),
    )
    return Bytes(text.encode())


def _placement(placement: Sequence[tuple[str, int | None]]) -> str:
    if not placement:
        return "nowhere"
    shown = ", ".join(code(name if count is None else f"{name}:{count}") for name, count in placement[:CLUSTERS_SHOWN])
    more = len(placement) - CLUSTERS_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


@cache
def _template() -> Template:
    # Here, because importing jinja2 takes longer than most runs.
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    # Values are escaped for Markdown by `code`, one by one; HTML's autoescape would be the wrong language.
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
    source = files("gitsched.render").joinpath("templates/README.md.j2").read_text("utf-8")
    return environment.from_string(source)
