"""A cluster as a person reads it: what it is, what runs there, what room is left, and why not more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gitsched.model.standing import Absence, Candidacy, Resident, Standing
from gitsched.report.blocks import Block, Grid, Items, Paragraph
from gitsched.report.data import API_VERSION
from gitsched.report.table import columns, count, fits, wrap
from gitsched.report.verdict import label

SHOWN = 50
TAKERS_SHOWN = 10
"""Workloads that are listed; the others are counted, and JSON has all."""


def write_standing(value: Standing, width: int) -> str:
    """Lines of at most `width` characters where words allow."""
    lines = wrap(_title(value), width)
    for line in _facts(value):
        lines += wrap(line, width, "  ")
    rows = [
        ("  WORKLOAD", "REPLICAS", "POLICY", ""),
        *(("  " + name, *more) for name, *more in map(_cells, value.residents[:SHOWN])),
    ]
    lines += ["", _tell_residents(value)]
    if value.residents:
        table = columns(rows)
        if fits(table, width):
            lines += table
        else:
            lines += [part for resident in value.residents[:SHOWN] for part in wrap(_tell_resident(resident), width, "  ")]
    lines += [f"  {line}" for line in _rest(value)]
    stocks = [("  RESOURCE", "FREE", "LEFT"), *((f"  {s.resource}", s.free, s.left) for s in value.stocks or ())]
    lines += ["", "Room", *(columns(stocks) if value.stocks else wrap(_tell_room(value), width, "  "))]
    takers = [_tell_taker(entry) for entry in value.candidacies if _could_take(entry)]
    if takers:
        shown = [part for text in takers[:TAKERS_SHOWN] for part in wrap(text, width, "  ")]
        more = [f"  and {len(takers) - TAKERS_SHOWN} more: -o json has all"] if len(takers) > TAKERS_SHOWN else []
        lines += ["", "Could take, each as if it were alone", *shown, *more]
    if value.absences:
        lines += ["", "Why not more", *(part for absence in value.absences for part in wrap(_tell_absence(absence), width, "  "))]
    return "\n".join(lines) + "\n"


def list_standing_blocks(value: Standing) -> list[Block]:
    """The same for Markdown."""
    return [
        Paragraph(_title(value), heading=True),
        *(Paragraph(line) for line in _facts(value)),
        Paragraph(_tell_residents(value)),
        Grid(("Workload", "Replicas", "Policy", "Remark"), [_cells(resident) for resident in value.residents[:SHOWN]]),
        *(Paragraph(line) for line in _rest(value)),
        *([] if value.stocks else [Paragraph(_tell_room(value))]),
        Grid(("Resource", "Free", "Left"), [(s.resource, s.free, s.left) for s in value.stocks or ()]),
        Items("Could take, each as if it were alone", [_tell_taker(e) for e in value.candidacies if _could_take(e)][:TAKERS_SHOWN]),
        Items("Why not more", list(map(_tell_absence, value.absences))),
    ]


def describe_standing(value: Standing) -> dict[str, Any]:
    """`kind: ClusterExplanation` of docs/cli.md."""
    return {
        "apiVersion": API_VERSION,
        "kind": "ClusterExplanation",
        "cluster": value.name,
        "location": value.location,
        "region": value.region,
        "provider": value.provider,
        "zones": list(value.zones),
        "labels": dict(value.labels),
        "remarks": list(value.remarks),
        "residents": [
            {
                "workload": entry.key._asdict(),
                "replicas": entry.replicas,
                "policy": entry.policy,
                "new": entry.new,
                "leaving": entry.leaving,
            }
            for entry in value.residents
        ],
        "room": None if value.stocks is None else [stock._asdict() for stock in value.stocks],
        "couldTake": [{"workload": e.key._asdict(), "here": e.here, "replicas": e.more} for e in value.candidacies],
        "absences": [
            {"reason": absence.reason, "count": absence.workloads, "examples": [key._asdict() for key in absence.examples]}
            for absence in value.absences
        ],
    }


def _title(value: Standing) -> str:
    return f"Cluster {value.name}" + (f"  ({value.location})" if value.location else "")


def _facts(value: Standing) -> list[str]:
    where = [
        f"region {value.region}" if value.region else "",
        f"provider {value.provider}" if value.provider else "",
        f"zone {', '.join(value.zones)}" if value.zones else "",
    ]
    labels = ", ".join(f"{name}={text}" for name, text in sorted(value.labels.items()))
    return list(filter(None, ["; ".join(filter(None, where)), f"labels {labels}" if labels else "", *value.remarks]))


def _tell_residents(value: Standing) -> str:
    replicas = sum(resident.replicas or 0 for resident in value.residents if not resident.leaving)
    there = sum(not resident.leaving for resident in value.residents)
    return f"Runs there: {count(there, 'workload')}, {count(replicas, 'replica')}"


def _rest(value: Standing) -> list[str]:
    more = len(value.residents) - SHOWN
    return [f"and {more} more: -o json has all"] if more > 0 else []


def _tell_room(value: Standing) -> str:
    return "It does not say what is free: it is taken to have enough." if value.stocks is None else "Nothing is free."


def _cells(resident: Resident) -> Sequence[str]:
    remark = "leaving" if resident.leaving else "new" if resident.new else ""
    return (label(resident.key), "" if resident.replicas is None else str(resident.replicas), resident.policy, remark)


def _tell_resident(resident: Resident) -> str:
    name, replicas, policy, remark = _cells(resident)
    parts = [f"{replicas} replicas" if replicas else "", f"by {policy}" if policy else "", remark]
    return ": ".join(filter(None, (name, ", ".join(filter(None, parts)))))


def _could_take(entry: Candidacy) -> bool:
    """Whether it is worth a line: what runs there and cannot grow is not."""
    return bool(entry.more) or not entry.here


def _tell_taker(entry: Candidacy) -> str:
    what = (
        f"room for {count(entry.more, 'more replica' if entry.here else 'replica')}" if entry.more is not None else "room unknown"
    )
    return f"{label(entry.key)}: {what}"


def _tell_absence(absence: Absence) -> str:
    named = ", ".join(map(label, absence.examples))
    more = f", and {absence.workloads - len(absence.examples)} more" if absence.workloads > len(absence.examples) else ""
    return f"{count(absence.workloads, 'workload')}: {absence.reason} ({named}{more})"
