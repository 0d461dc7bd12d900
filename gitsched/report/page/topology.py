"""Data of the topology on the HTML page: where the clusters are, how full they are, and what arrives and leaves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gitsched.model.changes import Move
from gitsched.model.finding import format_count
from gitsched.model.fleet_topology import ClusterSite, ResourceUse
from gitsched.model.scheduling import Outcome, total_replicas
from gitsched.named_tuples import NamedTuple
from gitsched.report.lines import escape_unprintable
from gitsched.report.summary import count_moves

PLACES_SHOWN = 200
"""The number of places in the table for browsers without JavaScript; the others are counted."""
REMOVED = "removed from the fleet"
"""Where clusters stand that have no document any more."""
_BINARY_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def build_site_fields(site: ClusterSite) -> dict[str, Any]:
    """Return the members of a cluster for the script; a resource is `[name, used percent or None, changed percent, text]`, with a 1 more
    where at least so much is used."""
    fields: dict[str, Any] = {}
    if site.zones:
        fields["zones"] = list(site.zones)
    if site.unavailable:
        fields["unavailable"] = site.unavailable
    if site.is_drained:
        fields["drained"] = 1
    if site.resources:
        fields["resources"] = [
            [
                use.resource,
                None if use.used is None else _compute_percent(use.used, use),
                _compute_percent(use.change, use),
                format_resource_use(use),
                *((1,) if use.reported is not None else ()),
            ]
            for use in site.resources
        ]
    return fields


def mark_withheld(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a workload whose change is withheld: it is placed as before, also where it would be unplaced or removed."""
    return {name: value for name, value in row.items() if name != "state" or not row.get("before")} | {"withheld": 1}


def _compute_percent(amount: int, use: ResourceUse) -> float:
    return round(100 * amount / use.allocatable, 1)


def format_resource_use(use: ResourceUse) -> str:
    """Return a resource of a cluster as text: "402 cores of 768 cores requested, 2 cores more in this plan". Where that is the least, it
    says what the cluster reports."""
    total = _format_amount(use.resource, use.allocatable)
    text = f"{total} allocatable" if use.used is None else f"{_format_amount(use.resource, use.used)} of {total} requested"
    change = use.change if use.reported is None else use.added
    if change:
        text += f", {_format_amount(use.resource, abs(change))} {'more' if change > 0 else 'less'} in this plan"
    if use.reported is None:
        return text
    reported = _format_amount(use.resource, use.reported)
    by_placed = f"by placed workloads; the cluster reports {reported}"
    return f"at least {text} ({by_placed if use.reported != use.used else 'as reported, at an unknown time'})"


def _format_amount(resource: str, amount: int) -> str:
    """Return an amount for people: cores with one digit after the point, bytes with a binary unit."""
    if resource == "cpu":
        return f"{round(amount / 1000, 1):g} cores"
    if resource != "memory":
        return f"{amount} {resource}"
    value, unit = float(amount), 0
    while value >= 1024 and unit < len(_BINARY_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{round(value, 1):g} {_BINARY_UNITS[unit]}"


class PlaceRow(NamedTuple):
    """All clusters of a provider in a region, with what they have after the plan, and what arrives and leaves with it."""

    provider: str
    region: str
    clusters: int
    unavailable: int
    workloads: int
    replicas: int
    arriving: str
    leaving: str


def build_place_rows(clusters: Iterable[Mapping[str, Any]], outcomes: Iterable[Outcome], moves: Iterable[Move]) -> list[PlaceRow]:
    """Return a row for each provider and region; `clusters` are those of the matrix."""
    workloads: dict[str, int] = {}
    replicas: dict[str, list[int | None]] = {}
    for outcome in outcomes:
        for name, count in outcome.replicas_by_cluster.items():
            workloads[name] = workloads.get(name, 0) + 1
            replicas.setdefault(name, []).append(count)
    deltas = count_moves(moves).clusters
    places: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for cluster in clusters:
        place = (REMOVED, "") if "removed" in cluster else (cluster["provider"], cluster["region"])
        places.setdefault(place, []).append(cluster)
    rows = []
    for (provider, region), members in sorted(places.items()):
        names = [str(cluster["name"]) for cluster in members]
        changed = [deltas[name] for name in names if name in deltas]
        rows.append(
            PlaceRow(
                escape_unprintable(provider) or "(no provider)",
                escape_unprintable(region) or "(no region)",
                len(members),
                sum("unavailable" in cluster for cluster in members),
                sum(workloads.get(name, 0) for name in names),
                total_replicas(count for name in names for count in replicas.get(name, ())),
                _format_delta("+", sum(d.gained for d in changed), sum(d.replicas_gained for d in changed)),
                _format_delta("−", sum(d.lost for d in changed), sum(d.replicas_lost for d in changed)),  # a minus sign
            )
        )
    return rows


def _format_delta(sign: str, workloads: int, replicas: int) -> str:
    amounts = (
        f"{sign}{format_count(workloads, 'workload')}" if workloads else "",
        f"{sign}{format_count(replicas, 'replica')}" if replicas else "",
    )
    return ", ".join(filter(None, amounts))
