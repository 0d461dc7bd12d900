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
"""Rows of both tables together; the fleet may take half of them, or what the decisions leave."""
MAX_CLUSTERS = 10
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


class ReadmeContent(NamedTuple):
    """`findings` counts by severity, `unclaimed` the objects that no policy selects; `repository` is the source's URL.

    `workloads` and `clusters` are how many decisions and clusters there are, where not all of them are given.
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
    """README.md: how to reproduce, findings by severity, then the fleet and the decisions in at most 200 rows, counts beyond."""
    workloads = max(summary.workloads, len(summary.decisions))
    clusters = max(summary.clusters, len(summary.fleet))
    fleet = summary.fleet[: max(MAX_ROWS // 2, MAX_ROWS - workloads)]
    decisions = summary.decisions[: MAX_ROWS - len(fleet)]
    text = _TEMPLATE.format(
        origin=_format_source(summary),
        commit=summary.source if _COMMIT.fullmatch(summary.source) else "COMMIT",
        findings="".join(f"- {line}\n" for line in _count_findings(summary)) or "None.\n",
        fleet=_format_table(_FLEET_HEADER, map(_format_fleet_row, fleet), clusters - len(fleet), "its directory under `clusters/`"),
        decisions=_format_table(
            _DECISIONS_HEADER, map(_format_decision_row, decisions), workloads - len(decisions), "its record under `status/`"
        ),
    )
    return NewBlob(text.encode())


_TEMPLATE = """\
# Placements

This branch is written by gitsched. Do not edit it: the next run replaces what it finds.

{origin}

To see the same decisions, in a clone of the source repository:

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
    place = f" of {format_code(url)}" if url else ""
    moment = format_time(summary.time)
    text = f"Decided from commit {format_code(summary.source)}{place} at {moment} by gitsched {format_code(summary.version)}."
    return text + (f" Time alone can change a decision next at {format_time(summary.next_wakeup)}." if summary.next_wakeup else "")


def _count_findings(summary: ReadmeContent) -> Iterator[str]:
    for severity in SEVERITIES:
        number = summary.findings.get(severity)
        if number:
            yield f"{number} {'note' if severity == 'info' else severity}{'s' if number > 1 else ''}"
    if summary.unclaimed:
        yield f"{summary.unclaimed} {'object is' if summary.unclaimed == 1 else 'objects are'} selected by no policy"


def _format_table(head: str, rows: Iterable[str], more: int, each: str) -> str:
    lines = "".join(rows)
    if not lines:
        return "None.\n"
    return head + lines + (f"\nand {more} more, each with {each}.\n" if more else "")


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
