"""README.md of the output branch: the fleet and the decisions as a person reads them on the forge, bounded and harmless."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from gitsched.model.files import Bytes
from gitsched.model.finding import SEVERITIES
from gitsched.model.markdown import code
from gitsched.model.time import format_time
from gitsched.render.record import public_url

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


def readme(summary: Summary) -> Bytes:
    """README.md: how to reproduce, findings by severity, then the fleet and the decisions in at most 200 rows, counts beyond."""
    workloads = max(summary.workloads, len(summary.decisions))
    clusters = max(summary.clusters, len(summary.fleet))
    fleet = summary.fleet[: max(ROWS // 2, ROWS - workloads)]
    decisions = summary.decisions[: ROWS - len(fleet)]
    text = _PAGE.format(
        origin=_origin(summary),
        commit=summary.source if _COMMIT.fullmatch(summary.source) else "COMMIT",
        findings="".join(f"- {line}\n" for line in _count_findings(summary)) or "None.\n",
        fleet=_table(_FLEET, map(_fleet_row, fleet), clusters - len(fleet), "its directory under `clusters/`"),
        decisions=_table(_DECISIONS, map(_decision_row, decisions), workloads - len(decisions), "its record under `status/`"),
    )
    return Bytes(text.encode())


_PAGE = """\
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
_FLEET = "| cluster | region | state | workloads | replicas |\n|---|---|---|--:|--:|\n"
_DECISIONS = "| workload | policy | placement |\n|---|---|---|\n"


def _origin(summary: Summary) -> str:
    url = public_url(summary.repository)
    place = f" of {code(url)}" if url else ""
    moment = format_time(summary.time)
    text = f"Decided from commit {code(summary.source)}{place} at {moment} by gitsched {code(summary.version)}."
    return text + (f" Time alone can change a decision next at {format_time(summary.next_wakeup)}." if summary.next_wakeup else "")


def _count_findings(summary: Summary) -> Iterator[str]:
    for severity in SEVERITIES:
        number = summary.findings.get(severity)
        if number:
            yield f"{number} {'note' if severity == 'info' else severity}{'s' if number > 1 else ''}"
    if summary.unclaimed:
        yield f"{summary.unclaimed} {'object is' if summary.unclaimed == 1 else 'objects are'} selected by no policy"


def _table(head: str, rows: Iterable[str], more: int, each: str) -> str:
    lines = "".join(rows)
    if not lines:
        return "None.\n"
    return head + lines + (f"\nand {more} more, each with {each}.\n" if more else "")


def _fleet_row(row: FleetRow) -> str:
    return f"| {code(row.name)} | {code(row.region)} | {code(row.note)} | {row.workloads} | {row.replicas} |\n"


def _decision_row(row: DecisionRow) -> str:
    return f"| {code(row.workload)} | {code(row.policy)} | {_placement(row.placement)} |\n"


def _placement(placement: Sequence[tuple[str, int | None]]) -> str:
    if not placement:
        return "nowhere"
    shown = ", ".join(code(name if count is None else f"{name}:{count}") for name, count in placement[:CLUSTERS_SHOWN])
    more = len(placement) - CLUSTERS_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
