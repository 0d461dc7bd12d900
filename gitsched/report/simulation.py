"""Simulations as a person reads them: the verdict first, then whom it hits, then what is full and what is not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gitsched.model.simulation import Crowd, Effect, Resilience, ResilienceChange, Shift, Simulation
from gitsched.report.table import columns, count, fits, wrap
from gitsched.report.verdict import label

EFFECTS_SHOWN = 50
SHIFTS_SHOWN = 20
"""Rows that are printed; the others are counted, and JSON has all."""
NAMED = 5
NOBODY = "-"
EFFECT_HEAD = ("WORKLOAD", "LEAVES", "GOES TO", "SHORT", "WHY")


def write_simulation(value: Simulation, width: int) -> str:
    """One event; lines of at most `width` characters where words allow."""
    effects, thinned = list_serious(value), list_thinned(value)
    return _join(
        wrap(tell_simulation(value), width),
        _effects(effects[:EFFECTS_SHOWN], width),
        wrap(tell_thinned(thinned), width) if thinned else [],
        [f"and {len(effects) - EFFECTS_SHOWN} more: -o json has all"] if len(effects) > EFFECTS_SHOWN else [],
        [line for crowd in value.crowds for line in wrap(tell_crowd(crowd), width)],
        [line for note in list_notes(value) for line in wrap(note, width)],
    )


def write_resilience(value: Resilience, width: int) -> str:
    """The table of every single loss."""
    return _join(
        wrap(tell_resilience(value), width),
        _rows([loss_head(value.by), *(loss_cells(row) for row in value.rows)], width),
        [line for note in list_unknown(value) for line in wrap(note, width)],
    )


def write_resilience_change(value: ResilienceChange, width: int) -> str:
    """Whom a change makes more vulnerable to losses, and whom less."""
    lines = [line for shift in value.shifts[:SHIFTS_SHOWN] for line in wrap(tell_shift(shift), width)]
    more = len(value.shifts) - SHIFTS_SHOWN
    return _join(wrap(tell_change(value), width), lines, [f"and {more} more: -o json has all"] if more > 0 else [])


def tell_losses(value: Resilience | ResilienceChange) -> tuple[str, list[str]]:
    """What losses would do, for a review: one sentence, and a line for each workload that a change makes more or less vulnerable, or for
    each loss that cannot be made up for."""
    if isinstance(value, ResilienceChange):
        return tell_change(value), [tell_shift(shift) for shift in value.shifts]
    harmful = [row for row in value.rows if row.harmed]
    return tell_resilience(value), [f"Losing {row.scope or row.event}: {tell_worst(row)}." for row in harmful]


def list_serious(value: Simulation) -> list[Effect]:
    """The workloads that have to start somewhere, or cannot; worst first."""
    return sorted((effect for effect in value.effects if not effect.thinned), key=_rank)


def _rank(effect: Effect) -> tuple[bool, int, bool, str, str]:
    return (not effect.homeless, -effect.worse, not effect.moves, effect.key.namespace, effect.key.name)


def tell_simulation(value: Simulation) -> str:
    """One sentence: what happens, and what that does."""
    parts = [
        f"{count(value.moved, 'workload')} of {value.workloads} {'changes' if value.moved == 1 else 'change'} place or size"
        if value.moved
        else "",
        f"{count(value.moving, 'replica')} {'starts' if value.moving == 1 else 'start'} anew" if value.moving else "",
        f"{count(len(value.homeless), 'workload')} {'loses its' if len(value.homeless) == 1 else 'lose their'} last place"
        if value.homeless
        else "",
        f"{count(value.short, 'replica')} {'has' if value.short == 1 else 'have'} no place" if value.short else "",
        f"{count(value.waiting, 'replica')} {'has' if value.waiting == 1 else 'have'} a place without room"
        if value.waiting
        else "",
    ]
    told = ", ".join(filter(None, parts)) or f"nothing changes for any of {count(value.workloads, 'workload')}"
    return f"If {value.event}: {told}."


def tell_crowd(crowd: Crowd) -> str:
    """A cluster that is sent too much."""
    return f"{crowd.cluster} is sent {count(crowd.sent, 'replica')} more, and has no room for {crowd.waiting} of them: {crowd.resource}."


def list_notes(value: Simulation) -> list[str]:
    """What has to be known to read a simulation."""
    notes = [
        f"Not lost, because they stand in other zones, too: {_some(value.partial)}." if value.partial else "",
        f"Taken to have room, because they do not say: {_some(value.assumed)}." if value.assumed else "",
    ]
    return list(filter(None, notes))


def tell_resilience(value: Resilience) -> str:
    """One sentence about all losses together."""
    if not value.rows:
        return f"No cluster says in which {value.by} it stands, so there is nothing to lose."
    bad = [row for row in value.rows if row.harmed]
    losses = f"Losing any one of {count(len(value.rows), value.by)}, for {count(value.workloads, 'workload')}"
    if not bad:
        return f"{losses}: every loss can be made up for."
    return f"{losses}: {count(len(bad), 'loss', 'losses')} cannot be made up for in full, {len(value.rows) - len(bad)} can."


def loss_head(by: str) -> tuple[str, ...]:
    return (f"LOST {by.upper()}", "DOWN", "HIT", "STARTING", "HOMELESS", "SHORT", "NO ROOM", "WORST HIT")


def loss_cells(row: Simulation) -> tuple[str, ...]:
    """One loss: its name; counts of clusters, workloads that are hit, replicas that start, workloads that lose their last place, replicas
    without a place and replicas without room; and whom it hits most."""
    numbers = (len(row.lost), row.moved, row.moving, len(row.homeless), row.short, row.waiting)
    return (row.scope.name if row.scope else row.event, *(str(number) if number else NOBODY for number in numbers), tell_worst(row))


def tell_worst(row: Simulation) -> str:
    """The workload that a loss hits most, and how many more are hit."""
    harmed = row.harmed
    if not harmed:
        return NOBODY
    first = harmed[0]
    what = "no place left" if first.homeless else f"{first.worse} short"
    return f"{label(first.key)}: {what}" + (f", and {len(harmed) - 1} more" if len(harmed) > 1 else "")


def list_unknown(value: Resilience) -> list[str]:
    """What has to be known to read the table."""
    partial = sorted({name for row in value.rows for name in row.partial})
    notes = [
        f"Taken to have room, because they do not say: {_some(value.unknown)}." if value.unknown and value.rows else "",
        f"Never lost, because they stand in several zones: {_some(partial)}." if partial else "",
    ]
    return list(filter(None, notes))


def tell_change(value: ResilienceChange) -> str:
    """One sentence about what a change does to resilience."""
    worse, better = (len({shift.key for shift in value.shifts if shift.worse is bad}) for bad in (True, False))
    if not value.shifts:
        return f"Resilience: losing any {value.head.by} has the same effect as before."
    parts = [
        f"{count(worse, 'workload')} worse off" if worse else "",
        f"{count(better, 'workload')} better off" if better else "",
    ]
    return f"Resilience, if any one {value.head.by} is lost: {', '.join(filter(None, parts))} than before."


def tell_shift(shift: Shift) -> str:
    """One workload in one loss, before and after."""
    now = _tell_state(shift.after, homeless=shift.homeless)
    cause = f"; cause {shift.cause}" if shift.cause else ""
    before = "not there" if shift.before is None else str(shift.before)
    return f"After this change, losing {shift.scope} {now.format(label(shift.key))} (before: {before}){cause}."


def _tell_state(number: int | None, *, homeless: bool) -> str:
    if number is None:
        return "cannot hit {} any more"
    if homeless:
        return "leaves {} without any place" + (f", {number} replicas short" if number else "")
    return f"leaves {{}} {count(number, 'replica')} short"


def _effects(effects: Sequence[Effect], width: int) -> list[str]:
    """A table where it fits, else a few lines for each workload; those that only lose one of several copies in one paragraph."""
    if not effects:
        return []
    for shown in (6, 3, 2):
        rows = [EFFECT_HEAD, *(effect_cells(effect, shown) for effect in effects)]
        if fits(table := columns(rows), width):
            return table
        if fits(slim := columns([row[:-1] for row in rows]), width):
            return [line for row, told in zip(rows, slim, strict=True) for line in (told, *_remark(row[-1], width))]
    lines: list[str] = []
    for name, leaves, goes, short, why in (effect_cells(effect, 6) for effect in effects):
        parts = [f"leaves {leaves}" if leaves else "", f"goes to {goes}" if goes else "", f"{short} short" if short else ""]
        lines += [*wrap(name, width), *wrap("; ".join(filter(None, parts)), width, "  ")]
        lines += wrap(why, width, "  ") if why else []
    return lines


def _remark(why: str, width: int) -> list[str]:
    return wrap(why, width, "  ") if why not in ("", NOBODY, EFFECT_HEAD[-1]) else []


def list_thinned(value: Simulation) -> list[Effect]:
    """Workloads that run on fewer clusters than before, and are otherwise what they were."""
    return [effect for effect in value.effects if effect.thinned]


def tell_thinned(effects: Sequence[Effect]) -> str:
    """One sentence about workloads that lose a copy."""
    named = ", ".join(label(effect.key) for effect in effects[:NAMED])
    more = f" and {len(effects) - NAMED} more" if len(effects) > NAMED else ""
    if len(effects) == 1:
        return f"1 workload loses a copy and has others: {named}."
    return f"{len(effects)} workloads lose a copy and have others: {named}{more}."


def effect_cells(effect: Effect, shown: int) -> tuple[str, str, str, str, str]:
    """One workload: its name, what it has to leave, where it starts or grows, how many replicas more than before do not run, and why."""
    late = f"{effect.waiting} without room" if effect.waiting else ""
    leaves = {name: count for name, count in effect.before.items() if name not in effect.after}
    shrinks = {name: -less for name, less in effect.growth.items() if less < 0 and name not in leaves}
    goes = {
        name: None if effect.after[name] is None else more
        for name, more in effect.growth.items()
        if name in effect.after and more >= 0
    }
    return (
        label(effect.key),
        write_some(leaves | shrinks, shown, ""),
        write_some(goes, shown, "+"),
        str(effect.worse) if effect.worse else "",
        "; ".join(filter(None, [late, effect.why])),
    )


def write_some(places: Mapping[str, int | None], shown: int, sign: str) -> str:
    """Clusters with how many replicas: "dub-prod-1 +2"."""
    told = [name if places[name] is None else f"{name} {sign}{places[name]}" for name in sorted(places)]
    return ", ".join(told[:shown]) + (f" and {len(told) - shown} more" if len(told) > shown else "")


def _rows(rows: Sequence[tuple[str, ...]], width: int) -> list[str]:
    """A table where it fits; else a few lines for each loss."""
    head, *losses = rows
    if not losses:
        return []
    table = columns(rows)
    if fits(table, width):
        return table
    slim = columns([row[:-1] for row in rows])
    if fits(slim, width):
        return [slim[0], *(line for row, told in zip(losses, slim[1:], strict=True) for line in (told, *_remark(row[-1], width)))]
    lines = []
    for row in losses:
        told = ", ".join(f"{name.lower()} {cell}" for name, cell in zip(head[1:], row[1:], strict=True) if cell != NOBODY)
        lines += [*wrap(row[0], width), *wrap(told or "hits nobody", width, "  ")]
    return lines


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _join(*blocks: list[str]) -> str:
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"
