"""Many losses as text and blocks: the worst ones, the workloads that miss replicas most often, their availability, and a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gitsched.model.finding import choose_form, format_count, format_names
from gitsched.model.losses import MANY_LOSSES, PAIRS
from gitsched.report.blocks import Block, HeatMap, Paragraph, TableBlock
from gitsched.report.lines import count_omitted, fits_width, format_columns, format_key, wrap

if TYPE_CHECKING:
    from gitsched.model.document import Key
    from gitsched.model.simulation import Availability, Resilience, Simulation, WorkloadEffect

WORST = 10
WORKLOADS_SHOWN = 20
"""The number of workloads that are listed; the others are counted, and JSON contains all."""
_MAP_ROWS, _MAP_COLUMNS = 20, 20
"""Cells of the map of all losses."""
_HEAT_ROWS, _HEAT_COLUMNS = 40, 30
_NAMES = 3
EMPTY_CELL = "-"
COUNT_HEADERS = ("AFFECTED", "STARTED", "UNPLACED", "FEWER REPLICAS", "MISSING", "NO CAPACITY")
_AFFECTED_HEADER = ("WORKLOAD", "LOSSES", "MOST MISSING", "UNPLACED")
_RESERVE_HEADER = ("WORKLOAD WITH A RESERVE", "LOSSES", "MOST MISSING")
_AVAILABILITY_HEADER = ("WORKLOAD", "AVAILABILITY", "95 % INTERVAL", "LOST REPLICA HOURS A YEAR")


def is_many(value: Resilience) -> bool:
    """Return whether a table is of losses of several clusters, of which it has the worst alone."""
    return value.domain_kind in MANY_LOSSES


def describe_many_losses(value: Resilience) -> str:
    """Return the effect of all losses in one sentence."""
    total = value.losses
    fleet = f"{format_count(value.clusters, 'cluster')} ({format_count(value.workloads, 'workload')})"
    if value.availability is not None:
        return _describe_availability(value.availability, fleet, total)
    if not total:
        return f"There are too few clusters to lose several of them: {fleet}."
    which = f"Losing any two of {fleet}" if value.domain_kind == PAIRS else f"Losing clusters at random, of {fleet}"
    return f"{which}, {format_count(total, 'loss', 'losses')}: {count_losses(value)}."


def count_losses(value: Resilience) -> str:
    """Return how many losses leave replicas missing or workloads unplaced, how many others leave workloads with fewer replicas, and how
    many do neither, as a clause."""
    degraded, reduced = value.degraded_losses, value.reduced_losses
    missing = "replicas missing or workloads unplaced" if any(row.unplaced for row in value.rows) else "replicas missing"
    counts = [(count, what) for count, what in ((degraded, missing), (reduced, "fewer replicas")) if count]
    if not counts:
        return "no loss leaves replicas missing"
    others = value.losses - degraded - reduced
    numbers = [format_count(counts[0][0], "loss", "losses"), f"{reduced:,}"]
    parts = [
        f"{number} {choose_form(count, 'leaves', 'leave')} {what}" for number, (count, what) in zip(numbers, counts, strict=False)
    ]
    return f"{', '.join(parts)}, {others:,} {choose_form(others, 'does', 'do')} {'neither' if len(counts) > 1 else 'not'}"


def count_effects(row: Simulation) -> list[str]:
    """Return the cells of COUNT_HEADERS: the numbers of affected workloads, started replicas, workloads that become unplaced, those that
    run on with fewer replicas, missing replicas, and those of them without capacity."""
    numbers = (row.moved, row.started_replicas, len(row.unplaced), row.reduced_workloads, row.missing, row.waiting)
    return [str(number) if number else EMPTY_CELL for number in numbers]


def _describe_availability(value: Availability, fleet: str, losses: int) -> str:
    share = f"{_format_percent(value.failed / value.samples)} of {value.samples:,} samples"
    hours = f"{_format_number(value.lost_hours)} ± {_format_number(value.margin)} replica hours are lost a year"
    return f"Failures of {fleet}: in {share}, replicas are missing; {hours}. The samples have {losses:,} different losses."


def write_many_losses(value: Resilience, width: int) -> list[list[str]]:
    """Return the worst losses and the workloads that miss replicas, wrapped at `width` characters."""
    worst, others = _list_worst(value), _describe_others(value)
    return [
        *([_write_table(worst, width)] if worst[1:] else []),
        _write_table(_list_workloads(value), width) if value.affected else [],
        count_omitted(len(value.affected) - WORKLOADS_SHOWN),
        wrap(others, width) if others else [],
    ]


def _describe_others(value: Resilience) -> str:
    """Return how available the workloads are that miss no replica in any sample."""
    others = value.workloads - len(value.affected)
    if value.availability is None or others <= 0:
        return ""
    low = _format_percent(value.availability.low)
    return f"{format_count(others, 'other workload')}: available in all samples, so at least {low} (95 % interval)."


def _write_table(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return a table if it fits into the width, else a few lines for each row."""
    table = format_columns([tuple(row) for row in rows])
    if fits_width(table, width):
        return table
    head, *others = rows
    return [
        line
        for row in others
        for line in (
            *wrap(row[0], width),
            *wrap(", ".join(f"{name.lower()} {cell}" for name, cell in zip(head[1:], row[1:], strict=True)), width, "  "),
        )
    ]


def _list_worst(value: Resilience) -> list[tuple[str, ...]]:
    worst = [row for row in value.rows if row.is_degraded or row.reduced_workloads][:WORST]
    head = ("LOST CLUSTERS", *COUNT_HEADERS, "MOST AFFECTED")
    return [head, *(_format_row(row) for row in worst)]


def _format_row(row: Simulation) -> tuple[str, ...]:
    return format_names(row.lost, _NAMES), *count_effects(row), _describe_worst(row.degraded)


def _describe_worst(degraded: Sequence[WorkloadEffect]) -> str:
    if not degraded:
        return EMPTY_CELL
    worst = degraded[0]
    more = f", and {len(degraded) - 1} more" if len(degraded) > 1 else ""
    what = "unplaced" if worst.becomes_unplaced else f"{worst.lost_replicas} missing"
    return f"{format_key(worst.key)}: {what}{more}"


def _list_workloads(value: Resilience) -> list[tuple[str, ...]]:
    if value.availability is not None:
        rows = value.availability.workloads[:WORKLOADS_SHOWN]
        return [
            _AVAILABILITY_HEADER,
            *(
                (
                    format_key(row.key),
                    _format_percent(row.available),
                    f"{_format_percent(row.low)} to {_format_percent(row.high)}",
                    f"{_format_number(row.lost_hours)} ± {_format_number(row.margin)}",
                )
                for row in rows
            ),
        ]
    numbers = ((row.key, row.losses, row.most, row.unplaced) for row in value.affected[:WORKLOADS_SHOWN])
    return [_AFFECTED_HEADER, *((format_key(key), *map(str, counts)) for key, *counts in numbers)]


def list_many_loss_blocks(value: Resilience) -> list[Block]:
    """Return the worst losses and the workloads that miss replicas."""
    worst, workloads, others = _list_worst(value), _list_workloads(value), _describe_others(value)
    reserved = [(format_key(row.key), str(row.losses), str(row.most)) for row in value.affected if row.reserved]
    table = [_RESERVE_HEADER, *reserved[:WORKLOADS_SHOWN]]
    return [
        *(_make_section("What a reserve lacks", table, len(reserved)) if reserved else ()),
        *(_make_section("The worst losses", worst, value.degraded_losses + value.reduced_losses) if worst[1:] else ()),
        *(_make_section("The most affected workloads", workloads, len(value.affected)) if value.affected else ()),
        *((Paragraph(others),) if others else ()),
    ]


def _make_section(title: str, rows: Sequence[Sequence[str]], total: int) -> tuple[Block, Block]:
    """Return the first of a `total` of rows as a table with a heading."""
    head, *others = rows
    shown = f", {len(others)} of {total:,}" if total > len(others) else ""
    return Paragraph(f"{title}{shown}", heading=True), TableBlock([name.capitalize() for name in head], others)


def list_heat_maps(value: Resilience) -> list[HeatMap]:
    """Return how many replicas of the most affected workloads are missing after the worst losses."""
    rows = [row for row in value.rows if row.degraded][:_HEAT_ROWS]
    lost = [{effect.key: max(effect.lost_replicas, 1) for effect in row.degraded} for row in rows]
    missing: dict[Key, int] = {}
    for key, count in (entry for found in lost for entry in found.items()):
        missing[key] = missing.get(key, 0) + count
    keys = sorted(missing, key=lambda key: (-missing[key], key))[:_HEAT_COLUMNS]
    if not keys:
        return []
    cells = [
        (
            row.domain.name if row.domain is not None else format_names(row.lost, _NAMES),
            tuple(found.get(key, 0) for key in keys),
        )
        for row, found in zip(rows, lost, strict=True)
    ]
    parts = (
        f"the {_HEAT_ROWS} worst losses" if value.degraded_losses > len(rows) else "",
        f"the {_HEAT_COLUMNS} most affected workloads" if len(missing) > len(keys) else "",
    )
    shown = f" ({', '.join(filter(None, parts))})" if any(parts) else ""
    return [
        HeatMap(f"Missing replicas by loss and workload{shown}", [format_key(key) for key in keys], cells, _describe_counted(rows))
    ]


def _describe_counted(rows: Sequence[Simulation]) -> str:
    """Return how workloads without replicas count, where a loss leaves one unplaced; "" if none does."""
    has_any = any(effect.becomes_unplaced and not effect.lost_replicas for row in rows for effect in row.degraded)
    return "An unplaced workload without replicas counts as 1." if has_any else ""


def list_overview(value: Resilience) -> list[HeatMap]:
    """Return how many replicas are missing after the loss of each cluster, zone or region, in the order of their names; those of one row
    are named. Where there are more than a map can show, a cell has the worst of several neighbours."""
    counts = ((row.domain, sum(max(effect.lost_replicas, 1) for effect in row.degraded)) for row in value.rows)
    missing = sorted((domain.name, count) for domain, count in counts if domain is not None)
    if len(missing) < 2 or not any(number for _, number in missing):
        return []
    each = -(-len(missing) // (_MAP_ROWS * _MAP_COLUMNS))
    cells = [missing[start : start + each] for start in range(0, len(missing), each)]
    rows = [cells[start : start + _MAP_COLUMNS] for start in range(0, len(cells), _MAP_COLUMNS)]
    named = [(_name_range(row[0][0][0], row[-1][-1][0]), tuple(max(number for _, number in cell) for cell in row)) for row in rows]
    columns = [str(number) for number in range(1, len(rows[0]) + 1)]
    if len(rows) == 1 and each == 1:
        columns, named = [name for name, _ in missing], [("missing", tuple(number for _, number in missing))]
    several = f", each number the worst of {each}" if each > 1 else ""
    caption = f"Missing replicas after the loss of each of {len(missing):,} {value.domain_kind}s{several}"
    lines = [(name, (*numbers, *(0,) * (len(columns) - len(numbers)))) for name, numbers in named]
    return [HeatMap(caption, columns, lines, _describe_counted(value.rows))]


def _name_range(first: str, last: str) -> str:
    return first if first == last else f"{first} to {last}"


def serialize_many_losses(value: Resilience) -> dict[str, Any]:
    """Return what JSON has of many losses besides the worst."""
    found = value.availability
    return {
        "simulated": value.losses,
        "degraded": value.degraded_losses,
        "reduced": value.reduced_losses,
        "affected": [
            {
                "workload": row.key._asdict(),
                "losses": row.losses,
                "mostMissing": row.most,
                "homeless": row.unplaced,
                "reserve": row.reserved,
            }
            for row in value.affected
        ],
        "availability": None
        if found is None
        else {
            "samples": found.samples,
            "degradedSamples": found.failed,
            "lostReplicaHours": found.lost_hours,
            "margin": found.margin,
            "othersAtLeast": found.low,
            "workloads": [
                {
                    "workload": row.key._asdict(),
                    "available": row.available,
                    "atLeast": row.low,
                    "atMost": row.high,
                    "lostReplicaHours": row.lost_hours,
                    "margin": row.margin,
                }
                for row in found.workloads
            ],
        },
    }


def _format_percent(share: float) -> str:
    return f"{100 * share:.3f} %"


def _format_number(number: float) -> str:
    return f"{number:,.1f}"
