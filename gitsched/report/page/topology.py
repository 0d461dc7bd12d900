"""Data of the topology on the HTML page: where the clusters are, how full they are, and what arrives and leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gitsched.model.changes import Move
from gitsched.model.finding import format_count
from gitsched.model.fleet_topology import ClusterSite, ResourceUse, round_share
from gitsched.model.scheduling import Outcome, total_replicas
from gitsched.named_tuples import NamedTuple
from gitsched.report.lines import escape_unprintable
from gitsched.report.summary import ClusterDelta, count_moves

PLACE_ROWS, CLUSTER_ROWS = 200, 200
"""The numbers of places and of clusters in the tables for browsers without JavaScript; the others are counted."""
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


class PlaceFlow(NamedTuple):
    """How many workloads and replicas are somewhere after the plan, and what arrives and leaves with it."""

    workloads: int
    replicas: int
    arriving: str
    leaving: str


class PlaceRow(NamedTuple):
    """All clusters of a provider in a region."""

    provider: str
    region: str
    clusters: int
    unavailable: int
    flow: PlaceFlow


class ListedCluster(NamedTuple):
    """A cluster, where it is, how full it is after the plan, and what is wrong with it, "" where that is not known."""

    name: str
    place: str
    full: str
    state: str
    flow: PlaceFlow


def build_place_rows(clusters: Iterable[Mapping[str, Any]], outcomes: Iterable[Outcome], moves: Iterable[Move]) -> list[PlaceRow]:
    """Return a row for each provider and region; `clusters` are those of the matrix. What moves inside neither arrives nor leaves."""
    places: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for cluster in clusters:
        place = (REMOVED, "") if "removed" in cluster else (cluster["provider"], cluster["region"])
        places.setdefault(place, []).append(cluster)
    ordered = sorted(places.items())
    numbers = {one["name"]: str(number) for number, (_, members) in enumerate(ordered) for one in members}
    find_flow = _count_flows(numbers, outcomes, moves)
    return [
        PlaceRow(
            escape_unprintable(provider) or "(no provider)",
            escape_unprintable(region) or "(no region)",
            len(members),
            sum("unavailable" in cluster for cluster in members),
            find_flow(str(number)),
        )
        for number, ((provider, region), members) in enumerate(ordered)
    ]


def build_cluster_rows(
    clusters: Iterable[Mapping[str, Any]], outcomes: Iterable[Outcome], moves: Iterable[Move]
) -> list[ListedCluster]:
    """Return a row for each of some clusters of the matrix."""
    shown = {str(cluster["name"]): cluster for cluster in clusters}
    find_flow = _count_flows({name: name for name in shown}, outcomes, moves)
    return [
        ListedCluster(
            escape_unprintable(name),
            escape_unprintable(" · ".join(filter(None, (cluster["provider"], cluster["region"])))),
            _describe_fullest(cluster),
            _describe_state(cluster),
            find_flow(name),
        )
        for name, cluster in shown.items()
    ]


def _describe_state(cluster: Mapping[str, Any]) -> str:
    if "unavailable" not in cluster:
        return ""
    return "removed" if "removed" in cluster else "drained" if "drained" in cluster else "not available"


def _describe_fullest(cluster: Mapping[str, Any]) -> str:
    """Return the largest share of a resource after the plan; "" if none is known."""
    shares = [(use[1] + use[2], use[0]) for use in cluster.get("resources", ()) if use[1] is not None]
    return f"{max(shares)[1]} {round_share(max(shares)[0])} %" if shares else ""


def _count_flows(places: Mapping[str, str], outcomes: Iterable[Outcome], moves: Iterable[Move]) -> Callable[[str], PlaceFlow]:
    """Count workloads and replicas by place; `places` says where each cluster is. Return a function that returns what a place has."""

    def add_up(replicas: Mapping[str, int | None]) -> dict[str, int | None]:
        found: dict[str, list[int | None]] = {}
        for name, count in replicas.items():
            if name in places:
                found.setdefault(places[name], []).append(count)
        return {place: total_replicas(counts) if any(counts) else counts[0] for place, counts in found.items()}

    placed: dict[str, list[int | None]] = {}
    for outcome in outcomes:
        for place, count in add_up(outcome.replicas_by_cluster).items():
            placed.setdefault(place, []).append(count)
    joined = (
        move._replace(
            before=add_up(move.before),
            after=add_up(move.after),
            included={place: count or 0 for place, count in add_up(move.included).items()},
        )
        for move in moves
    )
    deltas = count_moves(joined).clusters

    def find_flow(place: str) -> PlaceFlow:
        counts, delta = placed.get(place, []), deltas.get(place, ClusterDelta())
        arriving = _format_delta("+", delta.gained, delta.replicas_gained)
        return PlaceFlow(
            len(counts), total_replicas(counts), arriving, _format_delta("−", delta.lost, delta.replicas_lost)
        )  # a minus sign

    return find_flow


def _format_delta(sign: str, workloads: int, replicas: int) -> str:
    amounts = (
        f"{sign}{format_count(workloads, 'workload')}" if workloads else "",
        f"{sign}{format_count(replicas, 'replica')}" if replicas else "",
    )
    return ", ".join(filter(None, amounts))
