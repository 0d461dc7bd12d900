"""Simulations and resilience tables as blocks, for Markdown and HTML."""

from __future__ import annotations

from collections.abc import Sequence

from gitsched.model.finding import count_shown
from gitsched.model.simulation import Resilience, ResilienceChange, Simulation, WorkloadEffect
from gitsched.report.blocks import Block, ListBlock, Paragraph, TableBlock
from gitsched.report.effect_rows import EffectRows, format_effect_row
from gitsched.report.lines import count_omitted, describe_remaining, format_key
from gitsched.report.many_losses import describe_many_losses, is_many, list_heat_maps, list_many_loss_blocks, list_overview
from gitsched.report.simulated_fleet import make_fleet_map, make_loss_map
from gitsched.report.simulation import (
    EFFECT_HEADER,
    RECORD_HEADER,
    describe_lost_copies,
    describe_overcommitment,
    describe_reduced,
    describe_resilience,
    describe_resilience_change,
    describe_shift,
    describe_simulation,
    format_loss_row,
    list_disruptive_effects,
    list_loss_headers,
    list_lost_copies,
    list_notes,
    list_reserve_rows,
    list_resilience_notes,
)
from gitsched.report.summary import format_record_change

MAX_ROWS = 200
"""The number of rows of one table; the others are counted, and JSON contains all."""
MAX_CLUSTERS, WORST_NAMED, STOPPED_NAMED = 12, 6, 20
_LOSSES_IN_TABLE = 20
"""Losses of which the table stands above the map; the map of more of them shows the worst at a glance."""
_EFFECT_HEADER = tuple(name.capitalize() for name in EFFECT_HEADER)
_REDUCED_HEADER = (*_EFFECT_HEADER[:2], "What remains")


def list_simulation_blocks(value: Simulation) -> list[Block]:
    """Return the result of one scenario."""
    effects, lost_copies = EffectRows(list_disruptive_effects(value), MAX_ROWS), list_lost_copies(value)
    return [
        Paragraph(describe_simulation(value, names_condition=True)),
        *(Paragraph(note) for note in list_notes(value)),
        *_list_map_blocks(value),
        *_limit_rows(
            TableBlock(_EFFECT_HEADER, effects.list_rows(MAX_ROWS, MAX_CLUSTERS), effects.find_degraded()),
            effects.count_hidden(MAX_ROWS),
        ),
        *_list_reduced_blocks(value),
        *([Paragraph(describe_lost_copies(lost_copies, MAX_ROWS))] if lost_copies else ()),
        *_list_record_blocks(value),
        *(Paragraph(describe_overcommitment(cluster)) for cluster in value.overloaded),
    ]


def _list_map_blocks(value: Simulation) -> list[Block]:
    """Return the map of the fleet, and above it the workloads that lack most, first those that stop; nothing without the
    clusters."""
    if not value.fleet:
        return []
    worst = value.worst
    stopped = sum(one.becomes_unplaced or one.stops for one in worst)
    lines = list(map(_describe_worst, worst[: count_shown(len(worst), max(WORST_NAMED, min(stopped, STOPPED_NAMED)))]))
    more = len(worst) - len(lines)
    lines += [f"and {more:,} more in the tables below"] if more else []
    return [*([ListBlock("What lacks most", lines)] if lines else []), make_fleet_map(value)]


def _describe_worst(effect: WorkloadEffect) -> str:
    """Return what a workload lacks after an event, and why."""
    what = f"{format_key(effect.key)} becomes unplaced" if effect.becomes_unplaced else describe_reduced(effect)
    return f"{what}: {effect.reason}" if effect.reason else what


def _list_reduced_blocks(value: Simulation) -> list[Block]:
    """Return the workloads that run on with fewer replicas, the largest share lost first."""
    shown = count_shown(len(value.reduced), MAX_ROWS)
    rows = [
        (*format_effect_row(effect, MAX_CLUSTERS)[:2], describe_remaining(effect.running, effect.expected))
        for effect in value.reduced[:shown]
    ]
    return _limit_rows(TableBlock(_REDUCED_HEADER, rows), len(value.reduced) - shown) if rows else []


def _list_record_blocks(value: Simulation) -> list[Block]:
    shown = count_shown(len(value.record_changes), MAX_ROWS)
    rows = [format_record_change(change, MAX_CLUSTERS) for change in value.record_changes[:shown]]
    header = tuple(name.capitalize() for name in RECORD_HEADER)
    return _limit_rows(TableBlock(header, rows), len(value.record_changes) - shown) if rows else []


def list_resilience_blocks(value: Resilience) -> list[Block]:
    """Return the table of all losses, then the affected workloads of each loss; of many losses the worst."""
    if is_many(value):
        notes = (Paragraph(note) for note in list_resilience_notes(value))
        return [Paragraph(describe_many_losses(value)), *notes, *list_many_loss_blocks(value), *list_heat_maps(value)]
    highlighted = frozenset(index for index, row in enumerate(value.rows) if row.degraded)
    head = [name.capitalize() for name in list_loss_headers(value.domain_kind)]
    losses = value.rows[: count_shown(len(value.rows), MAX_ROWS)]
    table = _limit_rows(TableBlock(head, [format_loss_row(row) for row in losses], highlighted), len(value.rows) - len(losses))
    shown = [make_loss_map(value)] if value.rows else []
    blocks: list[Block] = [
        Paragraph(describe_resilience(value)),
        *((*table, *shown) if len(value.rows) <= _LOSSES_IN_TABLE else (*shown, *table)),
        *(Paragraph(note) for note in list_resilience_notes(value)),
        *_list_reserve_blocks(value),
        *list_overview(value),
        *list_heat_maps(value),
    ]
    for row in (row for row in losses if row.degraded):
        degraded = EffectRows(row.degraded)
        blocks.append(Paragraph(f"If {row.event}", heading=True))
        blocks += _limit_rows(
            TableBlock(_EFFECT_HEADER, degraded.list_rows(MAX_ROWS, MAX_CLUSTERS)), degraded.count_hidden(MAX_ROWS)
        )
        blocks += [Paragraph(describe_overcommitment(cluster)) for cluster in row.overloaded]
    return blocks


def _list_reserve_blocks(value: Resilience) -> list[Block]:
    rows = list_reserve_rows(value)
    shown = rows[: count_shown(len(rows), MAX_ROWS)]
    head = (f"Lost {value.domain_kind}", "Workload with a reserve", "Missing", "Reason")
    return (
        [Paragraph("What a reserve lacks", heading=True), *_limit_rows(TableBlock(head, shown), len(rows) - len(shown))]
        if rows
        else []
    )


def list_resilience_change_blocks(value: ResilienceChange) -> list[Block]:
    """Return which workloads a change makes more, or less, vulnerable to losses."""
    changes = value.impact_changes
    shown = count_shown(len(changes), MAX_ROWS)
    rows: Sequence[Sequence[str]] = [
        (
            str(change.domain),
            format_key(change.key),
            *map(_format_number, (change.before, change.after)),
            *("yes" if unplaced else "no" for unplaced in (change.was_unplaced, change.is_unplaced)),
            change.cause,
        )
        for change in changes[:shown]
    ]
    highlighted = frozenset(index for index, change in enumerate(changes) if change.is_worse)
    head = ("If lost", "Workload", "Missing before", "Missing after", "Unplaced before", "Unplaced after", "Cause")
    return [
        Paragraph(describe_resilience_change(value)),
        *(Paragraph(describe_shift(change)) for change in changes[:1]),
        *_limit_rows(TableBlock(head, rows, highlighted), len(changes) - shown),
    ]


def _format_number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _limit_rows(table: TableBlock, more: int) -> list[Block]:
    return [table, *map(Paragraph, count_omitted(more))]
