"""Simulations and resilience tables as text: a summary, the affected workloads, clusters without capacity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gitsched.model.simulation import ImpactChange, OverloadedCluster, Resilience, ResilienceChange, Simulation, WorkloadEffect
from gitsched.report.summary import format_key
from gitsched.report.terminal import fits_width, format_columns, format_count, wrap

EFFECTS_SHOWN = 50
SHIFTS_SHOWN = 20
"""Rows that are printed; the others are counted, and JSON has all."""
NAMES_SHOWN = 5
EMPTY_CELL = "-"
EFFECT_HEADER = ("WORKLOAD", "LEAVES", "GOES TO", "SHORT", "WHY")


def write_simulation(value: Simulation, width: int) -> str:
    """One event; lines of at most `width` characters where words allow."""
    effects, thinned = list_disruptive_effects(value), list_lost_copies(value)
    return _join_blocks(
        wrap(describe_simulation(value), width),
        _write_effects(effects[:EFFECTS_SHOWN], width),
        wrap(describe_lost_copies(thinned), width) if thinned else [],
        [f"and {len(effects) - EFFECTS_SHOWN} more: -o json has all"] if len(effects) > EFFECTS_SHOWN else [],
        [line for crowd in value.overloaded for line in wrap(describe_overcommitment(crowd), width)],
        [line for note in list_notes(value) for line in wrap(note, width)],
    )


def write_resilience(value: Resilience, width: int) -> str:
    """The table of every single loss."""
    return _join_blocks(
        wrap(describe_resilience(value), width),
        _write_loss_rows([list_loss_headers(value.domain_kind), *(format_loss_row(row) for row in value.rows)], width),
        [line for note in list_resilience_notes(value) for line in wrap(note, width)],
    )


def write_resilience_change(value: ResilienceChange, width: int) -> str:
    """Whom a change makes more vulnerable to losses, and whom less."""
    lines = [line for shift in value.impact_changes[:SHIFTS_SHOWN] for line in wrap(describe_shift(shift), width)]
    more = len(value.impact_changes) - SHIFTS_SHOWN
    return _join_blocks(
        wrap(describe_resilience_change(value), width), lines, [f"and {more} more: -o json has all"] if more > 0 else []
    )


def describe_losses(value: Resilience | ResilienceChange) -> tuple[str, list[str]]:
    """What losses would do, for a review: one sentence, and a line for each workload that a change makes more or less vulnerable, or for
    each loss that cannot be made up for."""
    if isinstance(value, ResilienceChange):
        return describe_resilience_change(value), [describe_shift(shift) for shift in value.impact_changes]
    harmful = [row for row in value.rows if row.degraded]
    return describe_resilience(value), [f"Losing {row.domain or row.event}: {describe_worst_effect(row)}." for row in harmful]


def list_disruptive_effects(value: Simulation) -> list[WorkloadEffect]:
    """The workloads that have to start somewhere, or cannot; worst first."""
    return sorted((effect for effect in value.effects if not effect.only_loses_clusters), key=_effect_sort_key)


def _effect_sort_key(effect: WorkloadEffect) -> tuple[bool, int, bool, str, str]:
    return (not effect.becomes_unplaced, -effect.lost_replicas, not effect.moves, effect.key.namespace, effect.key.name)


def describe_simulation(value: Simulation) -> str:
    """One sentence: what happens, and what that does."""
    parts = [
        f"{format_count(value.moved, 'workload')} of {value.workloads} {'changes' if value.moved == 1 else 'change'} place or size"
        if value.moved
        else "",
        f"{format_count(value.started_replicas, 'replica')} {'starts' if value.started_replicas == 1 else 'start'} anew"
        if value.started_replicas
        else "",
        f"{format_count(len(value.unplaced), 'workload')} {'loses its' if len(value.unplaced) == 1 else 'lose their'} last place"
        if value.unplaced
        else "",
        f"{format_count(value.shortfall, 'replica')} {'has' if value.shortfall == 1 else 'have'} no place"
        if value.shortfall
        else "",
        f"{format_count(value.waiting, 'replica')} {'has' if value.waiting == 1 else 'have'} a place without room"
        if value.waiting
        else "",
    ]
    told = ", ".join(filter(None, parts)) or f"nothing changes for any of {format_count(value.workloads, 'workload')}"
    return f"If {value.event}: {told}."


def describe_overcommitment(crowd: OverloadedCluster) -> str:
    """A cluster that is sent too much."""
    sent = format_count(crowd.sent, "replica")
    return f"{crowd.cluster} is sent {sent} more, and has no room for {crowd.waiting} of them: {crowd.resource}."


def list_notes(value: Simulation) -> list[str]:
    """What has to be known to read a simulation."""
    notes = [
        f"Not lost, because they stand in other zones, too: {_join_names(value.partly_lost)}." if value.partly_lost else "",
        f"Taken to have room, because they do not say: {_join_names(value.unknown_capacity)}." if value.unknown_capacity else "",
    ]
    return list(filter(None, notes))


def describe_resilience(value: Resilience) -> str:
    """One sentence about all losses together."""
    if not value.rows:
        return f"No cluster says in which {value.domain_kind} it stands, so there is nothing to lose."
    bad = [row for row in value.rows if row.degraded]
    losses = (
        f"Losing any one of {format_count(len(value.rows), value.domain_kind)}, for {format_count(value.workloads, 'workload')}"
    )
    if not bad:
        return f"{losses}: every loss can be made up for."
    return f"{losses}: {format_count(len(bad), 'loss', 'losses')} cannot be made up for in full, {len(value.rows) - len(bad)} can."


def list_loss_headers(by: str) -> tuple[str, ...]:
    return (f"LOST {by.upper()}", "DOWN", "HIT", "STARTING", "HOMELESS", "SHORT", "NO ROOM", "WORST HIT")


def format_loss_row(row: Simulation) -> tuple[str, ...]:
    """One loss: its name; counts of clusters, workloads that are hit, replicas that start, workloads that lose their last place, replicas
    without a place and replicas without room; and whom it hits most."""
    numbers = (len(row.lost), row.moved, row.started_replicas, len(row.unplaced), row.shortfall, row.waiting)
    return (
        row.domain.name if row.domain else row.event,
        *(str(number) if number else EMPTY_CELL for number in numbers),
        describe_worst_effect(row),
    )


def describe_worst_effect(row: Simulation) -> str:
    """The workload that a loss hits most, and how many more are hit."""
    harmed = row.degraded
    if not harmed:
        return EMPTY_CELL
    first = harmed[0]
    what = "no place left" if first.becomes_unplaced else f"{first.lost_replicas} short"
    return f"{format_key(first.key)}: {what}" + (f", and {len(harmed) - 1} more" if len(harmed) > 1 else "")


def list_resilience_notes(value: Resilience) -> list[str]:
    """What has to be known to read the table."""
    partial = sorted({name for row in value.rows for name in row.partly_lost})
    notes = [
        f"Taken to have room, because they do not say: {_join_names(value.unknown_capacity)}."
        if value.unknown_capacity and value.rows
        else "",
        f"Never lost, because they stand in several zones: {_join_names(partial)}." if partial else "",
    ]
    return list(filter(None, notes))


def describe_resilience_change(value: ResilienceChange) -> str:
    """One sentence about what a change does to resilience."""
    worse, better = (len({shift.key for shift in value.impact_changes if shift.is_worse is bad}) for bad in (True, False))
    if not value.impact_changes:
        return f"Resilience: losing any {value.head.domain_kind} has the same effect as before."
    parts = [
        f"{format_count(worse, 'workload')} worse off" if worse else "",
        f"{format_count(better, 'workload')} better off" if better else "",
    ]
    return f"Resilience, if any one {value.head.domain_kind} is lost: {', '.join(filter(None, parts))} than before."


def describe_shift(shift: ImpactChange) -> str:
    """One workload in one loss, before and after."""
    now = _describe_shortfall(shift.after, homeless=shift.becomes_unplaced)
    cause = f"; cause {shift.cause}" if shift.cause else ""
    before = "not there" if shift.before is None else str(shift.before)
    return f"After this change, losing {shift.domain} {now.format(format_key(shift.key))} (before: {before}){cause}."


def _describe_shortfall(number: int | None, *, homeless: bool) -> str:
    if number is None:
        return "cannot hit {} any more"
    if homeless:
        return "leaves {} without any place" + (f", {number} replicas short" if number else "")
    return f"leaves {{}} {format_count(number, 'replica')} short"


def _write_effects(effects: Sequence[WorkloadEffect], width: int) -> list[str]:
    """A table where it fits, else a few lines for each workload; those that only lose one of several copies in one paragraph."""
    if not effects:
        return []
    for shown in (6, 3, 2):
        rows = [EFFECT_HEADER, *(format_effect_row(effect, shown) for effect in effects)]
        if fits_width(table := format_columns(rows), width):
            return table
        if fits_width(slim := format_columns([row[:-1] for row in rows]), width):
            return [line for row, told in zip(rows, slim, strict=True) for line in (told, *_write_remark(row[-1], width))]
    lines: list[str] = []
    for name, leaves, goes, short, why in (format_effect_row(effect, 6) for effect in effects):
        parts = [f"leaves {leaves}" if leaves else "", f"goes to {goes}" if goes else "", f"{short} short" if short else ""]
        lines += [*wrap(name, width), *wrap("; ".join(filter(None, parts)), width, "  ")]
        lines += wrap(why, width, "  ") if why else []
    return lines


def _write_remark(why: str, width: int) -> list[str]:
    return wrap(why, width, "  ") if why not in ("", EMPTY_CELL, EFFECT_HEADER[-1]) else []


def list_lost_copies(value: Simulation) -> list[WorkloadEffect]:
    """Workloads that run on fewer clusters than before, and are otherwise what they were."""
    return [effect for effect in value.effects if effect.only_loses_clusters]


def describe_lost_copies(effects: Sequence[WorkloadEffect]) -> str:
    """One sentence about workloads that lose a copy."""
    named = ", ".join(format_key(effect.key) for effect in effects[:NAMES_SHOWN])
    more = f" and {len(effects) - NAMES_SHOWN} more" if len(effects) > NAMES_SHOWN else ""
    if len(effects) == 1:
        return f"1 workload loses a copy and has others: {named}."
    return f"{len(effects)} workloads lose a copy and have others: {named}{more}."


def format_effect_row(effect: WorkloadEffect, shown: int) -> tuple[str, str, str, str, str]:
    """One workload: its name, what it has to leave, where it starts or grows, how many replicas more than before do not run, and why."""
    late = f"{effect.waiting} without room" if effect.waiting else ""
    leaves = {name: count for name, count in effect.before.items() if name not in effect.after}
    shrinks = {name: -less for name, less in effect.replica_changes.items() if less < 0 and name not in leaves}
    goes = {
        name: None if effect.after[name] is None else more
        for name, more in effect.replica_changes.items()
        if name in effect.after and more >= 0
    }
    return (
        format_key(effect.key),
        format_cluster_changes(leaves | shrinks, shown, ""),
        format_cluster_changes(goes, shown, "+"),
        str(effect.lost_replicas) if effect.lost_replicas else "",
        "; ".join(filter(None, [late, effect.reason])),
    )


def format_cluster_changes(places: Mapping[str, int | None], shown: int, sign: str) -> str:
    """Clusters with how many replicas: "dub-prod-1 +2"."""
    told = [name if places[name] is None else f"{name} {sign}{places[name]}" for name in sorted(places)]
    return ", ".join(told[:shown]) + (f" and {len(told) - shown} more" if len(told) > shown else "")


def _write_loss_rows(rows: Sequence[tuple[str, ...]], width: int) -> list[str]:
    """A table where it fits; else a few lines for each loss."""
    head, *losses = rows
    if not losses:
        return []
    table = format_columns(rows)
    if fits_width(table, width):
        return table
    slim = format_columns([row[:-1] for row in rows])
    if fits_width(slim, width):
        return [
            slim[0],
            *(line for row, told in zip(losses, slim[1:], strict=True) for line in (told, *_write_remark(row[-1], width))),
        ]
    lines = []
    for row in losses:
        told = ", ".join(f"{name.lower()} {cell}" for name, cell in zip(head[1:], row[1:], strict=True) if cell != EMPTY_CELL)
        lines += [*wrap(row[0], width), *wrap(told or "hits nobody", width, "  ")]
    return lines


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more


def _join_blocks(*blocks: list[str]) -> str:
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"
