"""Simulations of what is in Git: the plan is made as a reconcile would make it, and then something happens to it. No ref moves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from gitsched.git import Repository
from gitsched.model.simulation import Resilience, ResilienceChange, Shift, Simulation
from gitsched.plan.comparing import compare
from gitsched.plan.ground import Ground, make_ground
from gitsched.plan.scenario import Scenario
from gitsched.plan.simulating import simulate, sweep
from gitsched.reconcile.comparing import Compared, Planned
from gitsched.reconcile.pointing import point_rule
from gitsched.reconcile.session import Session
from gitsched.reconcile.settings import Settings

T = TypeVar("T")


def simulate_source(settings: Settings, scenario: Scenario) -> Simulation:
    """What a scenario does to what the source asks for. Permanent where it names what is not there."""
    return _on(settings, lambda ground, _: simulate(ground, scenario))


def sweep_source(settings: Settings, by: str, silent: bool = False) -> Resilience:
    """Every single loss of a `cluster`, `node`, `zone`, `region` or `provider`; `silent` ones only do not answer."""
    return _on(settings, lambda ground, _: sweep(ground, by, silent))


def compare_sources(base: Settings, head: Settings, by: str, silent: bool = False) -> ResilienceChange:
    """Every single loss at two revisions, and whom the change between them makes more, or less, vulnerable."""
    return _on(base, lambda old, _: _on(head, lambda new, repository: _point(compare(old, new, by, silent), repository)))


def assess(compared: Compared, by: str) -> Resilience | ResilienceChange:
    """What losses would do after what is reviewed: in comparison with the plan of the base, where that is a commit."""
    session = compared.session
    head = _stand(compared.later, session.settings)
    if compared.earlier is None:
        return sweep(head, by)
    return _point(compare(_stand(compared.earlier, session.settings), head, by), session.source.repository)


def _stand(planned: Planned, settings: Settings) -> Ground:
    plan = planned.run.plan
    return make_ground(planned.decided, planned.config, max(settings.now, plan.time), plan.observations)


def _on(settings: Settings, answer: Callable[[Ground, Repository], T]) -> T:
    session = Session(settings._replace(observations="recorded"))
    observed = session.observe()
    step = session.plan(observed, settings.now)
    plan = step.plan
    ground = make_ground(plan.decided, step.config, max(settings.now, plan.time), plan.observations)
    return answer(ground, session.source.repository)


def _point(change: ResilienceChange, repository: Repository) -> ResilienceChange:
    """With the line of each cause."""
    return change._replace(shifts=tuple(_locate(change.shifts, repository)))


def _locate(shifts: Iterable[Shift], repository: Repository) -> Iterable[Shift]:
    for shift in shifts:
        place = point_rule(shift.rule, repository) if shift.rule is not None else None
        yield shift._replace(cause=f"{place.path}:{place.line}", rule=None) if place else shift._replace(rule=None)
