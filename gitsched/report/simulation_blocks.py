"""Simulations and resilience tables as blocks, for Markdown and HTML."""

from __future__ import annotations

from collections.abc import Sequence

from gitsched.model.simulation import Resilience, ResilienceChange, Simulation
from gitsched.report.blocks import Block, Paragraph, TableBlock
from gitsched.report.simulation import (
    EFFECT_HEADER,
    describe_lost_copies,
    describe_overcommitment,
    describe_resilience,
    describe_resilience_change,
    describe_shift,
    describe_simulation,
    format_effect_row,
    format_loss_row,
    list_disruptive_effects,
    list_loss_headers,
    list_lost_copies,
    list_notes,
    list_resilience_notes,
)

MAX_ROWS = 200
"""Rows of one table; the others are counted, and JSON has all."""
MAX_CLUSTERS = 12
_EFFECT_HEADER = tuple(name.capitalize() for name in EFFECT_HEADER)


def list_simulation_blocks(value: Simulation) -> list[Block]:
    """One event."""
    effects, thinned = list_disruptive_effects(value), list_lost_copies(value)
    bad = frozenset(number for number, effect in enumerate(effects) if effect.lost_replicas or effect.becomes_unplaced)
    return [
        Paragraph(describe_simulation(value)),
        *_limit_rows(
            TableBlock(_EFFECT_HEADER, [format_effect_row(effect, MAX_CLUSTERS) for effect in effects[:MAX_ROWS]], bad),
            len(effects),
        ),
        *([Paragraph(describe_lost_copies(thinned))] if thinned else ()),
        *(Paragraph(describe_overcommitment(crowd)) for crowd in value.overloaded),
        *(Paragraph(note) for note in list_notes(value)),
    ]


def list_resilience_blocks(value: Resilience) -> list[Block]:
    """The table of every single loss, and below it whom each loss hits."""
    bad = frozenset(number for number, row in enumerate(value.rows) if row.degraded)
    head = [name.capitalize() for name in list_loss_headers(value.domain_kind)]
    blocks: list[Block] = [
        Paragraph(describe_resilience(value)),
        *_limit_rows(TableBlock(head, [format_loss_row(row) for row in value.rows[:MAX_ROWS]], bad), len(value.rows)),
        *(Paragraph(note) for note in list_resilience_notes(value)),
    ]
    for row in (row for row in value.rows[:MAX_ROWS] if row.degraded):
        harmed = row.degraded
        blocks.append(Paragraph(f"If {row.event}", heading=True))
        blocks += _limit_rows(
            TableBlock(_EFFECT_HEADER, [format_effect_row(effect, MAX_CLUSTERS) for effect in harmed[:MAX_ROWS]]), len(harmed)
        )
        blocks += [Paragraph(describe_overcommitment(crowd)) for crowd in row.overloaded]
    return blocks


def list_resilience_change_blocks(value: ResilienceChange) -> list[Block]:
    """Whom a change makes more vulnerable, and whom less."""
    shifts = value.impact_changes
    rows: Sequence[Sequence[str]] = [
        (str(shift.domain), str(shift.key), _format_number(shift.before), _format_number(shift.after), shift.cause)
        for shift in shifts[:MAX_ROWS]
    ]
    bad = frozenset(number for number, shift in enumerate(shifts) if shift.is_worse)
    return [
        Paragraph(describe_resilience_change(value)),
        *(Paragraph(describe_shift(shift)) for shift in shifts[:1]),
        *_limit_rows(TableBlock(("If lost", "Workload", "Short before", "Short after", "Cause"), rows, bad), len(shifts)),
    ]


def _format_number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _limit_rows(grid: TableBlock, total: int) -> list[Block]:
    more = total - len(grid.rows)
    return [grid, Paragraph(f"and {more} more: -o json has all")] if more > 0 else [grid]
