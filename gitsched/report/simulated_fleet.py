"""Maps of simulations: a tile for each cluster before and after an event, and one for each loss, with what happens there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from gitsched.model.finding import format_count
from gitsched.model.fleet_topology import SimulatedSite
from gitsched.model.simulation import Resilience, Simulation
from gitsched.named_tuples import NamedTuple
from gitsched.report.blocks import Tile, TileMap, TileMark

_SHARES = "the share of a resource that is requested, of the one with the largest share"
_BAD = "lost, not available, or more is requested than it has"
_NO_REGION = "(no region)"


class _Scale(NamedTuple):
    """What is 100 percent: a resource of the cluster where any is known of the fleet, else the `most` replicas of one cluster."""

    is_measured: bool
    most: int

    def find_level(self, one: SimulatedSite, side: int) -> int | None:
        """Return how full a cluster is in percent before an event (0) or after it (1); None if that is not known."""
        if not self.is_measured:
            return round(100 * one.replicas[side] / self.most) if self.most else 0
        shares = [100 * (use.used + use.change * side) / use.allocatable for use in one.site.resources if use.used is not None]
        return round(max(*shares, 0)) if shares else None


def make_fleet_map(value: Simulation) -> TileMap:
    """Return the clusters before and after an event."""
    fleet = value.fleet
    is_measured = any(use.used is not None for one in fleet for use in one.site.resources)
    scale = _Scale(is_measured, max((max(one.replicas) for one in fleet), default=0))
    note = _SHARES if is_measured else f"replicas, of the {scale.most:,} of the largest cluster"
    before = [one for one in fleet if one.site.name not in value.added]
    hit = {_name_place(one) for one in fleet if one.site.name in {*value.lost, *value.drained, *value.added}}
    sides = (
        ("Before", _group(before, [_make_earlier_tile(one, scale, value) for one in before], hit)),
        ("After", _group(fleet, [_make_later_tile(one, scale, value) for one in fleet], hit)),
    )
    return TileMap("Map of the fleet", f"How full a tile is: {note}.", _BAD, sides)


def make_loss_map(value: Resilience) -> TileMap:
    """Return a tile for each loss, with what is missing after it."""
    most = max((row.missing for row in value.rows), default=0)
    tiles = [_make_loss_tile(row, most) for row in value.rows if row.domain is not None]
    note = f"How full a tile is: the replicas that are missing after the loss, of {most:,} after the worst one."
    return TileMap(
        "Map of the losses", note, "replicas are missing or workloads unplaced", (("", [(f"each {value.domain_kind}", tiles)]),)
    )


def _make_loss_tile(row: Simulation, most: int) -> Tile:
    level = round(100 * row.missing / most) if most else 0
    label = f"{row.missing:,} missing" if row.missing else f"{len(row.unplaced):,} unplaced" if row.unplaced else "0"
    name = row.domain.name if row.domain is not None else row.event
    counts = ((row.missing, "missing replica"), (len(row.unplaced), "unplaced workload"), (row.moved, "affected workload"))
    text = _join(*(format_count(number, noun) for number, noun in counts if number))
    return Tile(name, level, label, text or "no effect", ("bad",) if row.is_degraded else ())


def _group(fleet: Iterable[SimulatedSite], tiles: Iterable[Tile], hit: Collection[str]) -> list[tuple[str, list[Tile]]]:
    """Return tiles by place, those of places that are `hit` first."""
    places: dict[str, list[Tile]] = {}
    for one, tile in zip(fleet, tiles, strict=True):
        places.setdefault(_name_place(one), []).append(tile)
    return sorted(places.items(), key=lambda item: (item[0] not in hit, item[0]))


def _name_place(one: SimulatedSite) -> str:
    return " · ".join(filter(None, (one.site.provider, one.site.region))) or _NO_REGION


def _make_earlier_tile(one: SimulatedSite, scale: _Scale, value: Simulation) -> Tile:
    level, name = scale.find_level(one, 0), one.site.name
    goes = "lost after the event" if name in value.lost else "drained after the event" if name in value.drained else ""
    return Tile(
        name, level, _format_level(level), _join(_describe_level(level), _describe_state(one), goes), _list_marks(one, level, scale)
    )


def _make_later_tile(one: SimulatedSite, scale: _Scale, value: Simulation) -> Tile:
    name, earlier, later = one.site.name, scale.find_level(one, 0), scale.find_level(one, 1)
    was = f"before {earlier:,} %" if earlier is not None and name not in value.added else ""
    if name in value.lost:
        had = f"had {format_count(one.workloads[0], 'workload')}, {format_count(one.replicas[0], 'replica')}"
        return Tile(name, 0, "lost", _join("lost", was, had), ("bad",))
    is_drained = name in value.drained
    state = "drained" if is_drained else "added" if name in value.added else _describe_state(one)
    text = _join(_describe_level(later), was if earlier != later else "", state, *_list_changes(one))
    arrived = one.replicas[1] - one.replicas[0] or one.workloads[1] - one.workloads[0]
    flow: TileMark = "gains" if arrived > 0 else "loses" if arrived else ""
    return Tile(name, later, _format_level(later), text, (*_list_marks(one, later, scale, is_drained=is_drained), flow))


def _join(*texts: str) -> str:
    return ", ".join(filter(None, texts))


def _format_level(level: int | None) -> str:
    return "?" if level is None else f"{level:,} %"


def _describe_level(level: int | None) -> str:
    return "load not known" if level is None else _format_level(level)


def _describe_state(one: SimulatedSite) -> str:
    return "" if not one.site.unavailable else "drained" if one.site.is_drained else "not available"


def _list_changes(one: SimulatedSite) -> Sequence[str]:
    """Return how many workloads and replicas more or less a cluster has after an event."""
    counts = ((pair[1] - pair[0], noun) for pair, noun in ((one.workloads, "workload"), (one.replicas, "replica")))
    return [f"{'+' if number > 0 else '−'}{format_count(abs(number), noun)}" for number, noun in counts if number]  # a minus sign


def _list_marks(one: SimulatedSite, level: int | None, scale: _Scale, *, is_drained: bool = False) -> tuple[TileMark, ...]:
    is_full = scale.is_measured and level is not None and level > 100
    if is_full or (one.site.unavailable and not one.site.is_drained):
        return ("bad",)
    return ("drained",) if is_drained or one.site.is_drained else ()
