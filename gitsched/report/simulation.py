"""Simulations and resilience tables as text: a summary, the affected workloads, clusters without capacity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gitsched.model.document import Key
from gitsched.model.finding import choose_form, count_shown, format_count, format_names
from gitsched.model.holds import HeldPlacement
from gitsched.model.reserve import ANY_TWO
from gitsched.model.simulation import ImpactChange, OverloadedCluster, Resilience, ResilienceChange, Simulation, WorkloadEffect
from gitsched.report.effect_rows import EffectRows
from gitsched.report.held import describe_held
from gitsched.report.lines import (
    RECORD_TITLES,
    TABLE_CLUSTERS,
    count_omitted,
    describe_remaining,
    fits_width,
    format_changes,
    format_columns,
    format_key,
    join_blocks,
    wrap,
    wrap_all,
)
from gitsched.report.many_losses import (
    COUNT_HEADERS,
    EMPTY_CELL,
    count_effects,
    count_losses,
    describe_many_losses,
    is_many,
    write_many_losses,
)
from gitsched.report.summary import describe_record_changes, make_record_row

EFFECTS_SHOWN = 50
SHIFTS_SHOWN = 20
"""The number of rows that are printed; the others are counted, and JSON contains all."""
REDUCED_SHOWN = 20
NAMES_SHOWN = 5
WORST_SHOWN = 1
"""The number of workloads that a row of a table of losses names; the others are counted."""
RECORD_HEADER = ("RECORDED DECISION", "BEFORE", "AFTER")
EFFECT_HEADER = ("WORKLOAD", "STOPS IN", "STARTS IN", "MISSING", "REASON")


def write_simulation(value: Simulation, width: int) -> str:
    """Return the result of one scenario, wrapped at `width` characters."""
    effects, lost_copies = list_disruptive_effects(value), list_lost_copies(value)
    reduced = count_shown(len(value.reduced), REDUCED_SHOWN)
    records = count_shown(len(value.record_changes), EFFECTS_SHOWN)
    return join_blocks(
        wrap_all((describe_simulation(value), *list_conditions(value)), width),
        _write_effects(effects, width),
        [line for effect in value.reduced[:reduced] for line in wrap(f"{describe_reduced(effect)}.", width)],
        count_omitted(len(value.reduced) - reduced),
        wrap(describe_lost_copies(lost_copies), width) if lost_copies else [],
        wrap_all(describe_held(list_held(value)), width),
        format_changes(
            RECORD_TITLES, [make_record_row(change) for change in value.record_changes[:records]], width, TABLE_CLUSTERS, None
        ),
        count_omitted(len(value.record_changes) - records),
        wrap_all(map(describe_overcommitment, value.overloaded), width),
        wrap_all(list_notes(value, conditions=False), width),
    )


def write_resilience(value: Resilience, width: int) -> str:
    """Return the table of all losses."""
    if is_many(value):
        notes = [line for note in list_resilience_notes(value) for line in wrap(note, width)]
        return join_blocks(wrap(describe_many_losses(value), width), *write_many_losses(value, width), notes)
    return join_blocks(
        wrap(describe_resilience(value), width),
        _write_loss_rows([list_loss_headers(value.domain_kind), *(format_loss_row(row) for row in value.rows)], width),
        [line for note in list_resilience_notes(value) for line in wrap(note, width)],
    )


def write_resilience_change(value: ResilienceChange, width: int) -> str:
    """Return which workloads a change makes more, or less, vulnerable to losses."""
    shown = count_shown(len(value.impact_changes), SHIFTS_SHOWN)
    lines = [line for change in value.impact_changes[:shown] for line in wrap(describe_shift(change), width)]
    return join_blocks(wrap(describe_resilience_change(value), width), lines, count_omitted(len(value.impact_changes) - shown))


def describe_losses(value: Resilience | ResilienceChange) -> tuple[str, list[str]]:
    """Return a summary for a review, and a line for each workload that becomes more or less vulnerable, or for each loss that leaves
    replicas missing."""
    if isinstance(value, ResilienceChange):
        return describe_resilience_change(value), [describe_shift(change) for change in value.impact_changes]
    degraded = [row for row in value.rows if row.degraded]
    return describe_resilience(value), [f"Losing {row.domain or row.event}: {describe_worst_effect(row)}." for row in degraded]


def list_disruptive_effects(value: Simulation) -> list[WorkloadEffect]:
    """Return the workloads that start replicas or lack replicas, the most affected first."""
    return sorted((effect for effect in value.effects if not effect.only_loses_clusters), key=_effect_sort_key)


def list_held(value: Simulation) -> dict[Key, HeldPlacement]:
    """Return the workloads that the event leaves where they are because they are held. Others that are held lack replicas."""
    affected = {effect.key for effect in value.effects}
    return {key: held for key, held in value.held.items() if key not in affected}


def _effect_sort_key(effect: WorkloadEffect) -> tuple[bool, int, bool, str, str]:
    return (not effect.becomes_unplaced, -effect.lost_replicas, not effect.moves, effect.key.namespace, effect.key.name)


def describe_simulation(value: Simulation, *, names_condition: bool = False) -> str:
    """Return the event and its effect in one sentence, which may name the condition of the effect that the notes explain."""
    parts = [
        f"{value.moved:,} of {format_count(value.workloads, 'workload')} {'changes' if value.moved == 1 else 'change'} clusters or replicas"
        if value.moved
        else "",
        f"{format_count(value.started_replicas, 'replica')} {'starts' if value.started_replicas == 1 else 'start'}"
        if value.started_replicas
        else "",
        f"{format_count(len(value.unplaced), 'workload')} {'becomes' if len(value.unplaced) == 1 else 'become'} unplaced"
        if value.unplaced
        else "",
        f"{format_count(value.shortfall, 'replica')} cannot be placed" if value.shortfall else "",
        f"{format_count(value.waiting, 'replica')} {'exceeds' if value.waiting == 1 else 'exceed'} the free capacity"
        if value.waiting
        else "",
        *_count_reduced(value),
        "no replica is missing" if value.moved and not (value.is_degraded or value.reduced_workloads) else "",
        describe_record_changes(value.record_changes),
    ]
    effect = ", ".join(filter(None, parts)) or f"no change for {format_count(value.workloads, 'workload')}"
    lost = choose_form(len(value.lost), "the lost cluster", "the lost clusters")
    evicted = f", and workloads are evicted from {lost} as in a drain" if names_condition and list_conditions(value) else ""
    return f"If {value.event}{evicted}: {effect}."


def _count_reduced(value: Simulation) -> Iterator[str]:
    """Yield how many workloads stop although they keep clusters, and how many run on with fewer replicas."""
    stopped = sum(effect.stops for effect in value.effects)
    if stopped:
        yield f"{format_count(stopped, 'workload')} {choose_form(stopped, 'stops', 'stop')}"
    if number := value.reduced_workloads - stopped:
        yield f"{format_count(number, 'workload')} {choose_form(number, 'runs', 'run')} on with fewer replicas"


def describe_reduced(effect: WorkloadEffect) -> str:
    """Return with how many of its replicas a workload runs on, as plan does, without a full stop."""
    return f"{format_key(effect.key)} {describe_remaining(effect.running, effect.expected)}"


def describe_overcommitment(overloaded: OverloadedCluster) -> str:
    """Return how many replicas a cluster receives beyond its free capacity, and the resource that is exhausted."""
    sent = format_count(overloaded.sent, "more replica")
    fitting = (
        f"capacity for {overloaded.sent - overloaded.waiting} of them" if overloaded.sent > overloaded.waiting else "no capacity"
    )
    return f"{overloaded.cluster} receives {sent} but has {fitting}: not enough {overloaded.resource}."


_MORE_TIMERS = "Not simulated: further timers, which start when the simulated ones end, one after the other."


def list_conditions(value: Simulation) -> list[str]:
    """Return what has to be so for the effect of a simulation to follow: that workloads are evicted from lost clusters."""
    return [_describe_eviction(value.lost)] if value.evicts and value.started_replicas else []


def list_notes(value: Simulation, *, conditions: bool = True) -> list[str]:
    """Return the assumptions of a simulation, with its conditions or without."""
    notes = [
        f"Not lost, because they also run in other zones: {_join_names(value.partly_lost)}." if value.partly_lost else "",
        _describe_unknown_capacity(value.unknown_capacity) if value.unknown_capacity else "",
        _MORE_TIMERS if value.has_more_timers else "",
        *(list_conditions(value) if conditions else ()),
        _describe_simulated_reserve(value) if value.reserve else "",
    ]
    return list(filter(None, notes))


def _describe_eviction(clusters: Sequence[str]) -> str:
    documents = choose_form(len(clusters), "its document is", "their documents are")
    return (
        f"Assumed: workloads are evicted from {_join_names(clusters)}, as gitsched drain does; if only {documents} removed, "
        "divided replicas do not start elsewhere."
    )


def _describe_unknown_capacity(clusters: Sequence[str]) -> str:
    return f"Free capacity unknown, assumed to be sufficient: {_join_names(clusters)}."


def describe_resilience(value: Resilience) -> str:
    """Return the effect of all losses in one sentence."""
    if not value.rows:
        return f"No {value.domain_kind} found in the cluster documents, so there is no loss to simulate."
    losses = f"Losing any one of {format_count(len(value.rows), value.domain_kind)} ({format_count(value.workloads, 'workload')})"
    return f"{losses}: {count_losses(value)}."


def list_loss_headers(by: str) -> tuple[str, ...]:
    """Return the column headers of the table of losses of one kind."""
    return (f"LOST {by.upper()}", "CLUSTERS", *COUNT_HEADERS, "MOST AFFECTED")


def format_loss_row(row: Simulation) -> tuple[str, ...]:
    """Return the cells of one loss: its name; the number of lost clusters; `count_effects`; the most affected workload."""
    return (
        row.domain.name if row.domain else row.event,
        str(len(row.lost)) if row.lost else EMPTY_CELL,
        *count_effects(row),
        describe_worst_effect(row),
    )


def describe_worst_effect(row: Simulation) -> str:
    """Return the workload that a loss affects most, and how many more lack replicas or run on with fewer."""
    worst = row.worst
    if not worst:
        return EMPTY_CELL
    shown = count_shown(len(worst), WORST_SHOWN)
    named = ", ".join(map(_describe_effect, worst[:shown]))
    more = len(worst) - shown
    return f"{named}, and {format_count(more, 'more workload')}" if more else named


def _describe_effect(effect: WorkloadEffect) -> str:
    if not effect.is_degraded:
        return describe_reduced(effect)
    return f"{format_key(effect.key)}: {'unplaced' if effect.becomes_unplaced else f'{effect.lost_replicas} missing'}"


def list_resilience_notes(value: Resilience) -> list[str]:
    """Return the assumptions of the table."""
    partial = sorted({name for row in value.rows for name in row.partly_lost})
    notes = [
        _describe_reserve(value) if value.has_reserve else "",
        _describe_unknown_capacity(value.unknown_capacity) if value.unknown_capacity and value.rows else "",
        f"Never lost, because they run in several zones: {_join_names(partial)}." if partial else "",
        _MORE_TIMERS if any(row.has_more_timers for row in value.rows) else "",
    ]
    return list(filter(None, notes))


def list_reserve_rows(value: Resilience) -> list[tuple[str, str, str, str]]:
    """Return what workloads lack after losses that a reserve is for: the loss, the workload, the missing replicas and the reason."""
    return [
        (
            row.domain.name if row.domain else row.event,
            format_key(effect.key),
            str(effect.lost_replicas) if effect.lost_replicas else "unplaced",
            effect.reason,
        )
        for row in value.rows
        for effect in row.degraded
        if effect.reserved
    ]


def _describe_reserve(value: Resilience) -> str:
    if is_many(value):
        short = [format_key(one.key) for one in value.affected if one.reserved]
        return _describe_reserve_for(ANY_TWO, len(short), short, f" after {format_count(value.short_of_reserve, 'loss', 'losses')}")
    rows = list_reserve_rows(value)
    number, losses = len({name for _, name, _, _ in rows}), len({lost for lost, _, _, _ in rows})
    shown = [f"{name} without {lost}" for lost, name, _, _ in rows]
    return _describe_reserve_for(f"a {value.domain_kind}", number, shown, f" after {format_count(losses, 'loss', 'losses')}")


def _describe_simulated_reserve(value: Simulation) -> str:
    short = [format_key(effect.key) for effect in value.degraded if effect.reserved]
    return _describe_reserve_for(value.reserve if value.reserve == ANY_TWO else f"a {value.reserve}", len(short), short)


def _describe_reserve_for(lost: str, number: int, shown: Sequence[str], after: str = "") -> str:
    """Return how many of the workloads that have a reserve lack replicas, and some of them."""
    what = f"Reserve for the loss of {lost}"
    if not number:
        return f"{what}: no workload that has one lacks replicas."
    subject = f"{format_count(number, 'workload')} that {choose_form(number, 'has one lacks', 'have one lack')} replicas"
    return f"{what}: {subject}{after}: {_join_names(shown)}."


def describe_resilience_change(value: ResilienceChange) -> str:
    """Return the effect of a change on resilience in one sentence."""
    worse, better = (len({change.key for change in value.impact_changes if change.is_worse is bad}) for bad in (True, False))
    if not value.impact_changes:
        return f"Resilience: losing any {value.head.domain_kind} has the same effect as before."
    parts = [
        f"{format_count(worse, 'workload')} more affected" if worse else "",
        f"{format_count(better, 'workload')} less affected" if better else "",
    ]
    return f"Resilience, if any one {value.head.domain_kind} is lost: {', '.join(filter(None, parts))} than before."


def describe_shift(change: ImpactChange) -> str:
    """Return the effect of one loss on one workload, before and after a change."""
    effect = _describe_shortfall(change.after, unplaced=change.is_unplaced)
    cause = f"; cause: {change.cause}" if change.cause else ""
    unplaced = change.was_unplaced and not change.before
    before = "did not exist" if change.before is None else "unplaced" if unplaced else str(change.before)
    return f"After this change, losing {change.domain} {effect.format(format_key(change.key))} (before: {before}){cause}."


def _describe_shortfall(number: int | None, *, unplaced: bool) -> str:
    if number is None:
        return "no longer affects {}"
    if unplaced:
        return "leaves {} unplaced" + (f", {format_count(number, 'replica')} missing" if number else "")
    return f"leaves {{}} {format_count(number, 'replica')} short" if number else "leaves no replica of {} missing"


def _write_effects(effects: Sequence[WorkloadEffect], width: int) -> list[str]:
    """Return a table if it fits into the width, else a few lines for each workload or group."""
    if not effects:
        return []
    found = EffectRows(effects)
    omitted = count_omitted(found.count_hidden(EFFECTS_SHOWN))
    for shown in (6, 3, 2):
        rows = [EFFECT_HEADER, *found.list_rows(EFFECTS_SHOWN, shown)]
        if fits_width(table := format_columns(rows), width):
            return [*table, *omitted]
        if fits_width(narrow := format_columns([row[:-1] for row in rows]), width):
            lines = [line for row, text in zip(rows, narrow, strict=True) for line in (text, *_write_reason(row[-1], width))]
            return [*lines, *omitted]
    lines = []
    for name, removed, added, missing, reason in found.list_rows(EFFECTS_SHOWN, 6):
        parts = [
            f"stops in {removed}" if removed else "",
            f"starts in {added}" if added else "",
            f"{missing} missing" if missing else "",
        ]
        lines += [*wrap(name, width), *wrap("; ".join(filter(None, parts)), width, "  ")]
        lines += wrap(reason, width, "  ") if reason else []
    return [*lines, *omitted]


def _write_reason(reason: str, width: int) -> list[str]:
    return wrap(reason, width, "  ") if reason not in ("", EMPTY_CELL, EFFECT_HEADER[-1]) else []


def list_lost_copies(value: Simulation) -> list[WorkloadEffect]:
    """Return the workloads that only lose copies whose replicas are not known, or that have none."""
    return [effect for effect in value.effects if effect.only_loses_clusters and not effect.is_reduced]


def describe_lost_copies(effects: Sequence[WorkloadEffect], names_shown: int = NAMES_SHOWN) -> str:
    """Return one sentence about workloads that lose some of several copies."""
    names = format_names([format_key(effect.key) for effect in effects], names_shown)
    number = "one" if all(len(effect.before) - len(effect.after) == 1 for effect in effects) else "some"
    subject = f"{format_count(len(effects), 'workload')} {choose_form(len(effects), 'loses', 'lose')}"
    return f"{subject} {number} of several copies: {names}."


def _write_loss_rows(rows: Sequence[tuple[str, ...]], width: int) -> list[str]:
    """Return a table if it fits into the width, else a few lines for each loss."""
    head, *losses = rows
    if not losses:
        return []
    table = format_columns(rows)
    if fits_width(table, width):
        return table
    narrow = format_columns([row[:-1] for row in rows])
    if fits_width(narrow, width):
        return [
            narrow[0],
            *(line for row, text in zip(losses, narrow[1:], strict=True) for line in (text, *_write_reason(row[-1], width))),
        ]
    lines = []
    for row in losses:
        cells = ", ".join(f"{name.lower()} {cell}" for name, cell in zip(head[1:], row[1:], strict=True) if cell != EMPTY_CELL)
        lines += [*wrap(row[0], width), *wrap(cells or "no workload affected", width, "  ")]
    return lines


def _join_names(names: Sequence[str]) -> str:
    return format_names(names, NAMES_SHOWN)
