"""Compare what workloads with a reserve lack after losses before and after a change, and search what ends larger shortages."""

from __future__ import annotations

from gitsched.model.progress import Progress, follow
from gitsched.model.reserve import ANY_TWO, NO_SHORTAGE, ReserveCheck, ReserveShortage
from gitsched.simulate.baseline import Baseline
from gitsched.simulate.reserve import MAX_LOSSES, LossSimulator, ReserveRules
from gitsched.simulate.reserve_remedies import RemedySearch


def check_reserves(
    base: Baseline | None,
    head: Baseline,
    rules: ReserveRules,
    progress: Progress | None = None,
    limit: int = MAX_LOSSES,
    *,
    searches: bool = True,
) -> ReserveCheck:
    """Simulate the losses that workloads have to survive, and compare with the plan before the change if there is one."""
    after, before = LossSimulator(head, rules), LossSimulator(base, rules) if base is not None else None
    listed = after.list_losses()
    simulated, skipped = 0, listed.unlisted
    shortages: list[ReserveShortage] = []
    for loss in listed.losses if progress is None else follow(listed.losses, "simulating the losses of reserves", progress):
        found = after.select(loss, limit)
        if found is None:
            skipped += 1
            continue
        simulated += 1
        known = before.measure_before(loss, after) if before is not None and found else {}
        shortages += (
            ReserveShortage(loss, key, shortage, known.get(key, NO_SHORTAGE), after.find_owner(key))
            for key, shortage in found.items()
        )
    shortages.sort(key=_make_sort_key)
    check = ReserveCheck(
        tuple(shortages),
        simulated,
        skipped,
        unavailable=tuple(
            (kind, number) for kind in after.kinds if (number := after.count_domains(kind)) <= (2 if kind == ANY_TWO else 1)
        ),
        is_compared=base is not None,
    )
    if before is None or not (searches and check.larger):
        return check
    search = RemedySearch(head, rules, before, check.larger, limit)
    return check._replace(remedy=search.find(), attempts=search.attempts, is_partial=search.is_partial)


def _make_sort_key(shortage: ReserveShortage) -> tuple[object, ...]:
    key, after = shortage.key, shortage.after
    return (not shortage.is_larger, not after.unplaced, -after.missing, key.namespace, key.name, key, shortage.loss)
