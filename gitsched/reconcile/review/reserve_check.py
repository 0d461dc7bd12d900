"""Check the reserves of a plan under review: what workloads lack after losses, as findings of the review."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.config import FILE
from gitsched.diff.reserve import check_reserves
from gitsched.model.finding import Finding, Location, Severity, format_count, locate_document
from gitsched.reconcile.review.compared_plans import CompleteComparer
from gitsched.reconcile.review.setting_findings import find_field
from gitsched.reconcile.source.source_locations import RuleLocations, locate_finding_rules
from gitsched.report.lines import format_key
from gitsched.report.reserve import describe_known, describe_remedy, describe_shortages, describe_unavailable
from gitsched.simulate.baseline import Baseline, make_baseline
from gitsched.simulate.reserve import MAX_LOSSES, ReserveRules

if TYPE_CHECKING:
    from gitsched.model.document import Key
    from gitsched.model.reserve import ReserveCheck, ReserveShortage
    from gitsched.reconcile.review.compared_plans import PlannedCommit
    from gitsched.reconcile.run import RunContext

MAX_FINDINGS = 100
"""The maximum number of workloads with a finding; one more counts the others."""


def check_plan(
    context: RunContext, earlier: PlannedCommit | None, later: PlannedCommit, searches: bool = True
) -> tuple[ReserveCheck | None, tuple[Finding, ...]]:
    """Check the reserves that any side of a comparison of complete plans has; return what was found, None without any, and findings.

    Without the plan of a base, the earlier one is that of the commit that the last run has planned. With `searches`, what ends larger
    shortages is searched.
    """
    earlier = earlier or _plan_recorded(context, later)
    sides = [side for side in (earlier, later) if side is not None]
    configs = [later.fetched.trusted.config.reserve, *(side.config.reserve for side in sides)]
    rules = ReserveRules(configs, [side.decisions.tenancy for side in sides])
    if not rules:
        return None, ()
    base = None if earlier is None else _make_baseline(earlier, context)
    head = _make_baseline(later, context)
    check = check_reserves(base, head, rules, context.settings.progress, MAX_LOSSES, searches=searches)
    return check, locate_finding_rules(_list_findings(context, later, check), RuleLocations(context.source.repository))


def _plan_recorded(context: RunContext, later: PlannedCommit) -> PlannedCommit | None:
    """Return the plan of the commit that the last run has planned, with the output as it is now; None if it is not available."""
    fetched, record = later.fetched, later.fetched.record
    if record is None or not record.source:
        return None
    if record.source == fetched.source.oid:
        return later
    if not context.source.fetch_commit(record.source):
        return None
    commit = context.source.repository.commit(record.source)
    return CompleteComparer().plan(context, fetched._replace(source=commit, cache_key=""))


def _make_baseline(planned: PlannedCommit, context: RunContext) -> Baseline:
    """Return the baseline of losses. Copies that stay for an overlap, after this plan or an earlier one, end by themselves: they are left
    out, or every move would break a reserve for some minutes."""
    plan = planned.run.plan
    now = max(context.settings.now, plan.time)
    return make_baseline(planned.decisions, planned.config, now, plan.observations, retained=(), completed=plan.completed)


def _list_findings(context: RunContext, later: PlannedCommit, check: ReserveCheck) -> Iterator[Finding]:
    place = Location(FILE, 1, 1), None, find_field(context, later.fetched, "reserve")
    larger = check.larger if check.is_compared else ()
    groups = _group_by_workload(larger)
    for key, shortages in groups[:MAX_FINDINGS]:
        template = later.decisions.templates.get(key)
        end = describe_remedy(check) if key == groups[0][0] else f"The error about {format_key(groups[0][0])} says what ends this"
        message = f"{describe_shortages(shortages)}{f'. {end}' if check.attempts else ''}"
        location = locate_document(template) if template is not None else None
        yield Finding("error", "reserve-short", message, location, key.resource, is_change=True)
    if len(groups) > MAX_FINDINGS:
        more = format_count(len(groups) - MAX_FINDINGS, "more workload")
        message = f"{more} with larger shortages after losses that a reserve is for: JSON lists them"
        yield Finding("error", "reserve-short", message, *place, is_change=True)
    known = [shortage for shortage in check.shortages if not (check.is_compared and shortage.is_larger)]
    if known:
        since = "as without this change" if check.is_compared else "and there is no earlier plan to compare with"
        severity: Severity = "info" if check.is_compared else "warning"
        yield Finding(severity, "reserve-short-before", f"{describe_known(known)}, {since}", *place)
    for kind, number in check.unavailable:
        yield Finding("warning", "reserve-unavailable", describe_unavailable(kind, number), *place)
    if check.skipped:
        total = check.losses + check.skipped
        message = (
            f"{check.skipped:,} of {total:,} losses that reserves are for were not simulated, because there are too many: those "
            "of clusters with the fewest replicas; use another loss, such as zone, or a reserve for fewer namespaces"
        )
        yield Finding("warning", "reserve-unchecked", message, *place)


def _group_by_workload(shortages: Iterable[ReserveShortage]) -> list[tuple[Key, list[ReserveShortage]]]:
    """Return the shortages of each workload, in their order."""
    groups: dict[Key, list[ReserveShortage]] = {}
    for shortage in shortages:
        groups.setdefault(shortage.key, []).append(shortage)
    return list(groups.items())
