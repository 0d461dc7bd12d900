"""README.md of the output branch: a bounded summary of clusters, decisions and findings, with untrusted text escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from gitsched.model.finding import SEVERITIES
from gitsched.model.markdown import format_code
from gitsched.model.planned_files import NewBlob
from gitsched.model.time import format_time
from gitsched.render.run_metadata import strip_credentials

MAX_ROWS = 200
"""The number of rows of both tables; clusters get at most half of them, or as many as decisions do not need."""
MAX_CLUSTERS = 10
"""The number of clusters listed for one decision; the others are counted."""
_COMMIT = re.compile(r"[0-9a-f]{4,64}")


class FleetRow(NamedTuple):
    """One cluster; `note` is its state, such as "retiring"."""

    name: str
    region: str
    note: str
    workloads: int
    replicas: int


class DecisionRow(NamedTuple):
    """One workload ("Deployment shop/web") with its policy, or the reason for its placement.

    `placement` are clusters and replicas (None for a kind without replicas).
    """

    workload: str
    policy: str
    placement: Sequence[tuple[str, int | None]]


class ReadmeContent(NamedTuple):
    """The content of README.md.

    `findings` counts findings by severity, `unclaimed` the objects that no policy selects; `repository` is the URL of the source.
    `workloads` and `clusters` are the total numbers if `decisions` and `fleet` are not complete.
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
    clusters: int = 0


def write_readme(summary: ReadmeContent) -> NewBlob:
    """Return README.md: how to reproduce the decisions, the findings by severity, and at most 200 rows of clusters and decisions."""
    workloads = max(summary.workloads, len(summary.decisions))
    clusters = max(summary.clusters, len(summary.fleet))
    fleet = summary.fleet[: max(MAX_ROWS // 2, MAX_ROWS - workloads)]
    decisions = summary.decisions[: MAX_ROWS - len(fleet)]
    text = _TEMPLATE.format(
        origin=_format_source(summary),
        commit=summary.source if _COMMIT.fullmatch(summary.source) else "COMMIT",
        findings="".join(f"- {line}\n" for line in _count_findings(summary)) or "None.\n",
        fleet=_format_table(_FLEET_HEADER, map(_format_fleet_row, fleet), clusters - len(fleet), "`clusters/`"),
        decisions=_format_table(_DECISIONS_HEADER, map(_format_decision_row, decisions), workloads - len(decisions), "`status/`"),
    )
    return NewBlob(text.encode())


_TEMPLATE = """\
# Placements

gitsched writes this branch. Do not edit it: the next run overwrites manual changes.

{origin}

To reproduce these decisions, run in a clone of the source repository:

```sh
git checkout {commit}
gitsched plan --observations recorded
```

## Findings

{findings}
## Clusters

{fleet}
## Decisions

{decisions}"""
_FLEET_HEADER = "| cluster | region | state | workloads | replicas |\n|---|---|---|--:|--:|\n"
_DECISIONS_HEADER = "| workload | policy | placement |\n|---|---|---|\n"


def _format_source(summary: ReadmeContent) -> str:
    url = strip_credentials(summary.repository)
    repository = f" of {format_code(url)}" if url else ""
    time, version = format_time(summary.time), format_code(summary.version)
    text = f"Scheduled from commit {format_code(summary.source)}{repository} at {time} by gitsched {version}."
    return text + (f" Next change without a commit: {format_time(summary.next_wakeup)}." if summary.next_wakeup else "")


def _count_findings(summary: ReadmeContent) -> Iterator[str]:
    for severity in SEVERITIES:
        number = summary.findings.get(severity)
        if number:
            yield f"{number} {'note' if severity == 'info' else severity}{'s' if number > 1 else ''}"
    if summary.unclaimed:
        yield f"{summary.unclaimed} {'object is' if summary.unclaimed == 1 else 'objects are'} not selected by any policy"


def _format_table(head: str, rows: Iterable[str], more: int, location: str) -> str:
    lines = "".join(rows)
    if not lines:
        return "None.\n"
    return head + lines + (f"\nand {more} more, see {location}.\n" if more else "")


def _format_fleet_row(row: FleetRow) -> str:
    return f"| {format_code(row.name)} | {format_code(row.region)} | {format_code(row.note)} | {row.workloads} | {row.replicas} |\n"


def _format_decision_row(row: DecisionRow) -> str:
    return f"| {format_code(row.workload)} | {format_code(row.policy)} | {_format_placement(row.placement)} |\n"


def _format_placement(placement: Sequence[tuple[str, int | None]]) -> str:
    if not placement:
        return "nowhere"
    shown = ", ".join(format_code(name if count is None else f"{name}:{count}") for name, count in placement[:MAX_CLUSTERS])
    more = len(placement) - MAX_CLUSTERS
    return f"{shown} and {more} more" if more > 0 else shown
