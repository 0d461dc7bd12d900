"""Compare the resilience of two plans: workloads that become more or less vulnerable to a loss, and the changes that cause it."""

from __future__ import annotations

from collections.abc import Iterator

from gitsched.diff.cause_search import Subject
from gitsched.diff.impact_causes import Impact, add_causes, measure_impact
from gitsched.model.document import Key
from gitsched.model.progress import Progress
from gitsched.model.simulation import FailureDomain, ImpactChange, Resilience, ResilienceChange, Simulation
from gitsched.simulate.baseline import Baseline
from gitsched.simulate.loss_simulation import simulate_all_losses


def compare_resilience(
    base: Baseline, head: Baseline, by: str, unreachable: bool = False, progress: Progress | None = None
) -> ResilienceChange:
    """Simulate every loss of one kind of failure domain in both plans and return the differences, the worst first."""
    before, after = (simulate_all_losses(baseline, by, unreachable, progress) for baseline in (base, head))
    expected: dict[Subject, Impact] = {}
    changes = list(_list_impact_changes(base, head, before, after, expected))
    if changes:
        changes = add_causes(base, head, changes, expected, unreachable=unreachable)
    changes.sort(key=lambda c: (not c.is_worse, not c.becomes_unplaced, (c.before or 0) - (c.after or 0), c.key, c.domain))
    return ResilienceChange(before, after, tuple(changes))


def _list_impact_changes(
    base: Baseline, head: Baseline, before: Resilience, after: Resilience, expected: dict[Subject, Impact]
) -> Iterator[ImpactChange]:
    """Yield the differences of two tables of losses, and add the impact on the base of each to `expected`."""
    old, new = _index_rows(before), _index_rows(after)
    for domain in sorted(old.keys() | new.keys()):
        for key in sorted(_list_degraded(old.get(domain)) | _list_degraded(new.get(domain))):
            earlier, later = measure_impact(base, old.get(domain), key), measure_impact(head, new.get(domain), key)
            if (earlier[0] or 0, earlier[1]) != (later[0] or 0, later[1]):
                expected[Subject(key, str(domain))] = earlier
                yield ImpactChange(domain, key, earlier[0], later[0], was_unplaced=earlier[1], is_unplaced=later[1])


def _index_rows(table: Resilience) -> dict[FailureDomain, Simulation]:
    return {row.domain: row for row in table.rows if row.domain is not None}


def _list_degraded(row: Simulation | None) -> set[Key]:
    """Return the workloads that miss replicas, or their last cluster, because of a loss."""
    effects = row.effects if row is not None else ()
    return {effect.key for effect in effects if effect.is_degraded}
