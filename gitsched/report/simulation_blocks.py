"""Simulations as paragraphs and tables, for Markdown and HTML."""

from __future__ import annotations

from collections.abc import Sequence

from gitsched.model.simulation import Resilience, ResilienceChange, Simulation
from gitsched.report.blocks import Block, Grid, Paragraph
from gitsched.report.simulation import (
    EFFECT_HEAD,
    effect_cells,
    list_notes,
    list_serious,
    list_thinned,
    list_unknown,
    loss_cells,
    loss_head,
    tell_change,
    tell_crowd,
    tell_resilience,
    tell_shift,
    tell_simulation,
    tell_thinned,
)

ROWS = 200
"""Rows of one table; the others are counted, and JSON has all."""
CLUSTERS = 12
_EFFECTS = tuple(name.capitalize() for name in EFFECT_HEAD)


def list_event_blocks(value: Simulation) -> list[Block]:
    """One event."""
    effects, thinned = list_serious(value), list_thinned(value)
    bad = frozenset(number for number, effect in enumerate(effects) if effect.worse or effect.homeless)
    return [
        Paragraph(tell_simulation(value)),
        *_limit(Grid(_EFFECTS, [effect_cells(effect, CLUSTERS) for effect in effects[:ROWS]], bad), len(effects)),
        *([Paragraph(tell_thinned(thinned))] if thinned else ()),
        *(Paragraph(tell_crowd(crowd)) for crowd in value.crowds),
        *(Paragraph(note) for note in list_notes(value)),
    ]


def list_table_blocks(value: Resilience) -> list[Block]:
    """The table of every single loss, and below it whom each loss hits."""
    bad = frozenset(number for number, row in enumerate(value.rows) if row.harmed)
    head = [name.capitalize() for name in loss_head(value.by)]
    blocks: list[Block] = [
        Paragraph(tell_resilience(value)),
        *_limit(Grid(head, [loss_cells(row) for row in value.rows[:ROWS]], bad), len(value.rows)),
        *(Paragraph(note) for note in list_unknown(value)),
    ]
    for row in (row for row in value.rows[:ROWS] if row.harmed):
        harmed = row.harmed
        blocks.append(Paragraph(f"If {row.event}", heading=True))
        blocks += _limit(Grid(_EFFECTS, [effect_cells(effect, CLUSTERS) for effect in harmed[:ROWS]]), len(harmed))
        blocks += [Paragraph(tell_crowd(crowd)) for crowd in row.crowds]
    return blocks


def list_change_blocks(value: ResilienceChange) -> list[Block]:
    """Whom a change makes more vulnerable, and whom less."""
    shifts = value.shifts
    rows: Sequence[Sequence[str]] = [
        (str(shift.scope), str(shift.key), _number(shift.before), _number(shift.after), shift.cause) for shift in shifts[:ROWS]
    ]
    bad = frozenset(number for number, shift in enumerate(shifts) if shift.worse)
    return [
        Paragraph(tell_change(value)),
        *(Paragraph(tell_shift(shift)) for shift in shifts[:1]),
        *_limit(Grid(("If lost", "Workload", "Short before", "Short after", "Cause"), rows, bad), len(shifts)),
    ]


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _limit(grid: Grid, total: int) -> list[Block]:
    more = total - len(grid.rows)
    return [grid, Paragraph(f"and {more} more: -o json has all")] if more > 0 else [grid]
