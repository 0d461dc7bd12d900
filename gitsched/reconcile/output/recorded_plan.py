"""The last plan as the output branch records it, so that a run that has nothing to do reads neither the source nor the records.

The trailer PLAN_KEY of an output commit says that the next run has nothing to do, as long as the source has the same documents and nothing
is due. Its
value identifies the code and the options of the run that found this out, because other code or options may decide otherwise. Where
anything but the source tree and the time can change a decision, there is no such trailer, and each run plans everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from gitsched.apis.gitsched.config import Config
from gitsched.apis.registered import Registered
from gitsched.decide.guard.guard_settings import GuardRecord, read_guard_record
from gitsched.decide.incremental.plan_contents import can_continue, has_new_records
from gitsched.decide.incremental.plan_state import Overview, PlanTimes, Totals
from gitsched.decide.incremental.repeated_decisions import find_unstable, find_unstable_changes
from gitsched.decide.plan import compute_plan_times
from gitsched.decide.plan_result import Plan
from gitsched.git.remote_refs import find_remote_url
from gitsched.git.urls import identify_repository
from gitsched.model.tenants import TENANT_CHANGED
from gitsched.reconcile.cache.reading_rules import ReadingRules
from gitsched.reconcile.incremental.changed_files import has_same_documents
from gitsched.reconcile.package_digest import compute_package_digest
from gitsched.reconcile.review.allowances import list_allowed_changes, read_releases
from gitsched.reconcile.run import CompleteState, Facts, Fetched, Planned, RunContext, StateUpdate, Written
from gitsched.reconcile.source.config_file import read_config
from gitsched.reconcile.tenants.required_tenants import list_missing
from gitsched.render.output_files import CLUSTERS, STATUS, status_path
from gitsched.render.run_metadata import NOTHING_BUILT, VERSION_CODES, RunMetadata

if TYPE_CHECKING:
    from gitsched.git import Repository
    from gitsched.model.document import Key
    from gitsched.model.finding import Finding
    from gitsched.model.scheduling import Outcome

_HAS_PROGRAMS = Registered("gitsched.reconcile.builds.build_runs", "has_programs")

PLAN_KEY = "Gitsched-Plan-Key"
"""The trailer with the key of a plan that the next run need not make again."""
_DIRECTORY_MODE = 0o040000


def find_recorded_plan(
    context: RunContext, fetched: Fetched, now: datetime, plan_source: Callable[[RunContext, Fetched, datetime], Planned]
) -> Planned | None:
    """Return the plan of a run that has nothing to do; None if only a complete plan can tell, which `plan_source` makes.

    Its outcomes come from a complete plan as well, as soon as a report needs one.
    """
    record, head = fetched.record, fetched.output_head
    if record is None or head is None or fetched.is_edited or record.workloads is None:
        return None
    trailers = dict(fetched.output.repository.commit(head).trailers)
    if PLAN_KEY not in trailers or not _is_repeated(context, fetched, record, now):
        return None
    config = read_config(context.source.repository, fetched.source.tree, context.caches.files) or Config()
    guard = GuardRecord(config.guard)
    findings = tuple(finding for finding in record.findings if finding.code != TENANT_CHANGED)  # the run has reported the change
    if guard.has_changed(read_guard_record(record.guard) if record.guard else GuardRecord()):
        return None
    keys = [_compute_key(context, fetched, parts) for parts in ((), (fetched.source.tree,), _list_build_parts(context, fetched))]
    if trailers[PLAN_KEY] not in (keys if record.builds == NOTHING_BUILT else keys[-1:]):
        return None
    if record.builds != NOTHING_BUILT and not _HAS_PROGRAMS(record.builds, context.caches.open_builds()):
        return None
    times = compute_plan_times(fetched.time, record.time, now)
    plan = Plan(
        outcomes=PlannedOutcomes(sum(record.workloads.values()), lambda: plan_source(context, fetched, now).plan.outcomes),
        totals=_make_totals(record, findings, config, times, _count_clusters(fetched, fetched.output_tree)),
        findings=findings,
        moves=(),
        next_wakeup=record.next_wakeup,
        time=times.source_time,
        files={},
        guard=guard,
    )
    return Planned(plan, config, None, record.builds, tenants=record.tenants)


def find_plan_key(context: RunContext, fetched: Fetched, planned: Planned, written: Written) -> str:
    """Return the key for the commit of a plan; "" if the next run has to make a plan."""
    plan, totals = planned.plan, planned.plan.totals
    unrecorded = (  # the output branch does not say enough of these to repeat the plan
        *(planned.kept_files, planned.message, planned.builds.kept, planned.setting_changes),
        *(totals.config.source.kustomize.remotes, totals.held, totals.retained, totals.retiring, totals.source.with_variants),
        *(totals.source.hidden_codes, totals.engines.recorded, totals.engines.own),
        *(plan.releases, plan.rollouts, plan.rollout_records, plan.adopted, plan.observations.time, plan.freeze),
        *(plan.withheld.moves, plan.withheld.waiting, plan.guard.has_changed(GuardRecord(totals.config.guard))),
        *(written.refused, written.findings),
        *(one for one in plan.findings if (one.is_change and one.code != TENANT_CHANGED) or one.code in VERSION_CODES),
    )
    is_plain = fetched.source.oid and _has_plain_options(context, fetched, planned.tenants) and not any(unrecorded)
    if (
        not is_plain
        or totals.overview.cluster_count != _count_clusters(fetched, written.tree)
        or _loses_kind(fetched, planned, written)
    ):
        return ""
    if _has_broken_parts(planned) or not _is_settled(planned):
        return ""
    rules = _find_rules(planned)
    if rules is None:
        return _compute_key(context, fetched, _list_build_parts(context, fetched))
    return _compute_key(context, fetched, () if _reads_documents_alone(rules) else (fetched.source.tree,))


def _has_broken_parts(planned: Planned) -> bool:
    """Return whether files are broken, or builds fail."""
    state = planned.state
    if state is None:
        return False
    if isinstance(state, StateUpdate) and state.used_versions is None:
        return bool(state.cache.header.settled or state.failed_builds)
    return bool(state.used_versions or state.failed_builds)


def _is_settled(planned: Planned) -> bool:
    """Return whether the next plan of the same source makes the same decisions."""
    state, plan = planned.state, planned.plan
    if plan.totals.trusted_tenants is not None:
        return False  # what Tenants allow in addition counts from then on
    if isinstance(state, StateUpdate):
        return not state.incremental.totals.engines.has_new_records and find_unstable_changes(state.incremental) == frozenset()
    if not isinstance(state, CompleteState) or plan.details is None:
        return False
    decisions, rendered, *_ = plan.details
    if has_new_records(plan.totals, state.previous) or not can_continue(decisions, rendered, plan.totals, state.previous):
        return False
    return find_unstable(decisions) == frozenset()


def _find_rules(planned: Planned) -> ReadingRules | None:
    return planned.state.reading_rules if planned.state is not None else None


def _reads_documents_alone(rules: ReadingRules) -> bool:
    """Return whether nothing depends on files that can have no documents. Otherwise only the same source tree has the same plan."""
    return not (rules.links or rules.is_searched or rules.references or rules.charts)


def _has_plain_options(context: RunContext, fetched: Fetched, tenants: tuple[Mapping[str, Any], ...]) -> bool:
    """Return whether no option and nothing outside of the source has an effect on the plan with these Tenants, besides those of the key."""
    settings, required = context.settings, context.settings.operator.required_tenants
    if required and list_missing(required, [str(tenant.get("name")) for tenant in tenants]):
        return False
    chosen = (settings.choices.allowed, settings.choices.released_clusters, settings.choices.guard_limits)
    compared = settings.choices.reviewed is not None or settings.choices.require_reviewed or settings.findings_only
    return not (any(chosen) or compared or fetched.frozen or fetched.facts != Facts())


def _is_repeated(context: RunContext, fetched: Fetched, record: RunMetadata, now: datetime) -> bool:
    """Return whether a run has what the last one had, and nothing is due."""
    trusted, source, repository = fetched.trusted.commit, fetched.source, context.source.repository
    unrepeatable = (
        *(record.observations, record.observed_at, record.facts, record.retiring, record.retained),
        *(record.rollouts, record.adopted, record.kept_files, record.builds.kept),
    )
    # Some deadlines are counted from the time of the source, which another commit changes.
    is_same_time = compute_plan_times(fetched.time, record.time, now).source_time == record.time
    is_due = record.next_wakeup is not None and (record.next_wakeup <= now or not is_same_time)
    trees = (record.source_tree, *(() if trusted is None else (trusted.tree,)))
    return (
        bool(source.oid)
        and all(has_same_documents(repository, tree, source.tree) for tree in trees)
        and record.time <= now
        and not (is_due or any(unrepeatable))
        and _has_plain_options(context, fetched, record.tenants)
        and read_releases(context, fetched) is None
        and not list_allowed_changes(context, fetched)
    )


def _list_build_parts(context: RunContext, fetched: Fetched) -> tuple[str, ...]:
    """Return what built objects depend on besides the programs in the record: the tree of the source, and its URL, which tells the delivery
    tools that read this source from others."""
    url = find_remote_url(context.source.repository, "origin")
    return fetched.source.tree, identify_repository(url) if url else ""


def _compute_key(context: RunContext, fetched: Fetched, source: tuple[str, ...]) -> str:
    """Return the key of a plan, which counts for all sources with the same documents, or for one `source` alone."""
    settings = context.settings
    parts = (compute_package_digest(settings.cache), fetched.prefix, str(settings.strict), *settings.paths)
    return sha256("\0".join((*parts, "", *source)).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _count_clusters(fetched: Fetched, tree: str | None) -> int:
    """Return how many clusters have a directory in an output tree."""
    repository: Repository = fetched.output.repository
    found = repository.list_directory(tree, f"{fetched.prefix}{CLUSTERS}") if tree else {}
    return sum(mode == _DIRECTORY_MODE for _, mode in found.values())


def _loses_kind(fetched: Fetched, planned: Planned, written: Written) -> bool:
    """Return whether a plan removes records of a kind of which no workload has any now: some APIs are active only because of records."""
    repository, status = fetched.output.repository, f"{fetched.prefix}{STATUS}/"
    changed = repository.changed_paths(fetched.output_tree, written.tree) if fetched.output_tree else []
    removed = (path for path in changed if path.startswith(status) and repository.find_entry(written.tree, path) is None)
    kinds = {path.removeprefix(fetched.prefix).rsplit("/", 2)[0] for path in removed}
    others = {status_path(key).rsplit("/", 2)[0] for key, _ in planned.plan.totals.engines.records} if kinds else set()
    return any(kind in others or repository.find_entry(written.tree, f"{fetched.prefix}{kind}") is None for kind in kinds)


def _make_totals(
    record: RunMetadata, findings: tuple[Finding, ...], config: Config, times: PlanTimes, cluster_count: int
) -> Totals:
    counts = Counter(record.workloads or {})
    return Totals(
        config=config,
        source_time=times.source_time,
        now=times.now,
        overview=Overview(counts, record.unclaimed, cluster_count=cluster_count, workload_count=counts.total()),
        other_findings=findings,
    )


class PlannedOutcomes(Mapping["Key", "Outcome"]):
    """The outcomes of a complete plan, which is made once one of them is read. Their number is known before."""

    def __init__(self, count: int, plan: Callable[[], Mapping[Key, Outcome]]) -> None:
        self._count, self._plan = count, plan
        self._outcomes: Mapping[Key, Outcome] | None = None

    def _read(self) -> Mapping[Key, Outcome]:
        if self._outcomes is None:
            self._outcomes = self._plan()
        return self._outcomes

    def __getitem__(self, key: Key) -> Outcome:
        return self._read()[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._read())

    def __len__(self) -> int:
        return self._count
