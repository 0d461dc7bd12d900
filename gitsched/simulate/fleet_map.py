"""The clusters of a fleet before and after a simulated event, for a map: where they are, how full they are, and what they have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.decide.capacity.cluster_use import list_simulated_use
from gitsched.model.changes import Move
from gitsched.model.fleet_topology import SimulatedSite
from gitsched.model.scheduling import count_by_cluster
from gitsched.simulate.fleet_topology import count_requests, make_sites

if TYPE_CHECKING:
    from gitsched.model.fleet_topology import ClusterSite
    from gitsched.model.simulation import Simulation
    from gitsched.simulate.baseline import Baseline
    from gitsched.simulate.simulation import DecidedEvent


def map_fleet(baseline: Baseline, event: DecidedEvent, found: Simulation) -> tuple[SimulatedSite, ...]:
    """Return all clusters with what an event changes there. `baseline` has the decisions about all workloads."""
    decided, (changed, after, _) = baseline.decisions, event
    moves = [Move(effect.key, effect.before, effect.after, "") for effect in found.effects]
    outcomes = {**decided.outcomes, **after.outcomes}
    # Those of a plan from a state can be read one by one only: iteration yields no more than engines need.
    found_templates = {move.key: decided.templates.get(move.key) or changed.catalog.templates.get(move.key) for move in moves}
    templates = {key: template for key, template in found_templates.items() if template is not None}
    sites: dict[str, ClusterSite] = {}
    for engines, catalog in ((decided.engines, decided.catalog), *([(after.engines, changed.catalog)] if found.added else ())):
        used = list_simulated_use(engines, decided, baseline.find_use(), moves, templates)
        changes = count_requests(engines, moves, outcomes, templates) if not used else {}
        sites = make_sites(catalog, engines, used, changes) | sites
    moved = {move.key for move in moves}
    same = [outcome.replicas_by_cluster for key, outcome in decided.outcomes.items() if key not in moved]
    before, later = (
        count_by_cluster([*same, *(move.before for move in moves)]),
        count_by_cluster([*same, *(move.after for move in moves)]),
    )
    return tuple(
        SimulatedSite(site, *((before.get(name, (0, 0))[unit], later.get(name, (0, 0))[unit]) for unit in (0, 1)))
        for name, site in sorted(sites.items())
    )
