"""README.md of the output branch: a summary of limited length, with untrusted text escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from gitsched.model.finding import SEVERITIES
from gitsched.model.markdown import format_code, format_code_cells, format_text
from gitsched.model.planned_files import NewBlob
from gitsched.model.time import format_time
from gitsched.model.urls import strip_credentials

if TYPE_CHECKING:
    from gitsched.render.readme_content import DecisionRow, FleetRow, HeldRow, ReadmeContent, RecordedRow

MAX_ROWS = 200
"""The number of rows of all tables; clusters get at most half of them, or as many as decisions do not need."""
MAX_CLUSTERS = 10
"""The number of clusters listed for one decision; the others are counted."""
_COMMIT_ID = re.compile(r"[0-9a-f]{4,64}")


def write_readme(summary: ReadmeContent) -> NewBlob:
    """Return README.md: how to reproduce the decisions, the findings by severity, and at most 200 rows of clusters and decisions.

    The sections of held workloads, of recorded decisions and of `copies` that stay for an overlap are left out if there are none.
    """
    workloads = max(summary.workloads, len(summary.decisions))
    clusters = max(summary.clusters, len(summary.fleet))
    fleet = summary.fleet[: max(MAX_ROWS // 2, MAX_ROWS - workloads - len(summary.recorded))]
    remaining = MAX_ROWS - len(fleet)
    recorded = summary.recorded[: max(remaining // 2, remaining - workloads)]
    decisions = summary.decisions[: remaining - len(recorded)]
    text = _TEMPLATE.format(
        origin=_format_source(summary),
        commit=summary.source if _COMMIT_ID.fullmatch(summary.source) else "COMMIT",
        findings="".join(f"- {line}\n" for line in _count_findings(summary)) or "None.\n",
        fleet=_format_table(_FLEET_HEADER, map(_format_fleet_row, fleet), clusters - len(fleet), "`clusters/`"),
        decisions=_format_table(_DECISIONS_HEADER, map(_format_decision_row, decisions), workloads - len(decisions), "`status/`"),
    )
    if summary.held:
        rows, more = map(_format_held_row, summary.held[:MAX_HELD]), max(0, len(summary.held) - MAX_HELD)
        text += f"\n## Held workloads\n\n{_HELD_TEXT}{_format_table(_HELD_HEADER, rows, more, '`gitsched plan`')}"
    if recorded:
        more = len(summary.recorded) - len(recorded)
        text += (
            f"\n## Recorded decisions\n\n{_format_table(_RECORDED_HEADER, map(_format_recorded_row, recorded), more, '`status/`')}"
        )
    if summary.copies:
        text += "\n## Copies that stay for an overlap\n\n" + "".join(f"- {format_code(line)}\n" for line in summary.copies)
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
MAX_HELD = 50
"""The number of held workloads that README.md lists."""
_HELD_TEXT = "These workloads have data in their clusters, or were adopted there. They stay until they are released.\n\n"
_HELD_HEADER = "| workload | held in | why | when released | to release it |\n|---|---|---|---|---|\n"
_RECORDED_HEADER = "| object | chosen | result |\n|---|---|---|\n"


def _format_source(summary: ReadmeContent) -> str:
    url = strip_credentials(summary.repository) if summary.repository else None
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
    if summary.freeze:
        yield f"placements are frozen: {format_text(summary.freeze)}"
    if summary.withheld:
        plural = "changes are" if summary.withheld > 1 else "change is"
        yield f"{summary.withheld} {plural} withheld by the guard; the digest {format_code(summary.allowance)} allows exactly these"


def _format_table(head: str, rows: Iterable[str], more: int, location: str) -> str:
    lines = "".join(rows)
    if not lines:
        return "None.\n"
    return head + lines + (f"\nand {more} more, see {location}.\n" if more else "")


def _format_fleet_row(row: FleetRow) -> str:
    return f"{format_code_cells(row.name, row.region, row.note)} {row.workloads} | {row.replicas} |\n"


def _format_decision_row(row: DecisionRow) -> str:
    return f"{format_code_cells(row.workload, row.policy)} {_format_placement(row.placement, row.variants)} |\n"


def _format_held_row(row: HeldRow) -> str:
    clusters, wanted = _format_names(row.clusters), _format_names(row.wanted) or "nowhere"
    return f"| {format_code(row.workload)} | {clusters} | {format_code(row.reason)} | {wanted} | {format_code(row.release)} |\n"


def _format_recorded_row(row: RecordedRow) -> str:
    return f"{format_code_cells(row.subject, row.target_kind)} {_format_names(row.targets) or 'none'} |\n"


def _format_placement(placement: Sequence[tuple[str, int | None]], variants: Mapping[str, str]) -> str:
    if variants:
        return _format_variants(placement, variants) or "nowhere"
    return _format_names([name if count is None else f"{name} {count}" for name, count in placement]) or "nowhere"


def _format_variants(placement: Sequence[tuple[str, int | None]], variants: Mapping[str, str]) -> str:
    """Return the clusters of each variant, followed by its directory."""
    by_path: dict[str, list[str]] = {}
    for name, count in placement:
        by_path.setdefault(variants.get(name, ""), []).append(name if count is None else f"{name} {count}")
    groups = (f"{_format_names(names)} ({format_code(path) if path else 'unchanged'})" for path, names in sorted(by_path.items()))
    return "; ".join(groups)


def _format_names(names: Sequence[str]) -> str:
    shown, more = ", ".join(map(format_code, names[:MAX_CLUSTERS])), len(names) - MAX_CLUSTERS
    return f"{shown} and {more} more" if more > 0 else shown
