"""Settings of a run, the values that its steps pass on, and its result."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

from gitsched.apis.gitsched.config import Config
from gitsched.apis.gitsched.guard_config import GuardLimit
from gitsched.apis.gitsched.operator_config import NO_OPERATOR_CONFIG, OperatorConfig
from gitsched.build.remote_base import RemotePolicy
from gitsched.decide.incremental_plan import IncrementalPlan
from gitsched.decide.plan_input import PlanInput, SourceTree
from gitsched.decide.plan_result import Plan
from gitsched.decide.plan_state import PreviousOutput
from gitsched.diff.plans import ReviewedPlan
from gitsched.git import FactsBranch, OutputRepository, Repository, SourceRepository, TreeEntry, open_source
from gitsched.model.allow_list import AllowList, HostRule, TokenRule
from gitsched.model.changes import RecordChange, SettingChange
from gitsched.model.commit import Commit
from gitsched.model.errors import Conflict
from gitsched.model.finding import Finding
from gitsched.model.observation import Observations
from gitsched.model.time import EPOCH
from gitsched.reconcile.cache.caches import Caches, ParseCache
from gitsched.reconcile.cache.plan_cache import PlanCache
from gitsched.render.run_metadata import NOTHING_BUILT, BuildRecord, RunMetadata
from gitsched.report.review import WORKLOAD_STATES, Review


class RunSettings(NamedTuple):
    """Options of a run. None means the value of gitsched.yaml, else the default.

    `location` is the path or URL of the source. `revision` and `worktree` (uncommitted files count) are for runs that write nothing.
    `output` is another repository for the output, `push` the name or URL of a remote. `signing` is (ssh or gpg, key).

    `allowed` are the digests of withheld changes that are allowed, `released_clusters` the clusters that held workloads may leave,
    `guard_limits` limits that take precedence over those of gitsched.yaml.

    `observations` is live or recorded. `hosts`, `status_hosts`, `remotes` and `tokens` are the allow-list, with an entry for each option:
    the only hosts of metrics providers and of forges that live observations may query, the only other repositories that may be fetched,
    and the only tokens that may be read. `trusted` says that documents of the source may choose which providers are queried.

    `operator` is the content of `operator_file`; `open_context` fills in what the other fields leave open. `output_path` is the directory
    in the output branch. `source_keys` are the public keys that must sign source commits, None for those of the trusted branch.

    `reviewed` is the reviewed plan, where the source commit has no trailer with it; with `require_reviewed` no other plan is written.
    `findings_only` says that the caller needs findings only, so that the location of the output does not matter.
    `all_statuses` observes the commit statuses of all clusters, also where nothing waits for them.

    `facts_repository` is the other repository that may have the facts branches. `facts_keys` are the public keys, by cluster, of which one
    must have signed the branch of the cluster; the name "*" is for the branch of all clusters. Empty: signatures are not required.
    """

    now: datetime
    cache: Path
    location: str = "."
    branch: str | None = None
    revision: str | None = None
    worktree: bool = False
    output: str | None = None
    output_branch: str | None = None
    output_path: str | None = None
    push: str | None = None
    paths: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    released_clusters: tuple[str, ...] = ()
    guard_limits: tuple[GuardLimit, ...] = ()
    author: tuple[str, str] | None = None
    signing: tuple[str, str] | None = None
    observations: str = "live"
    hosts: tuple[tuple[HostRule, ...], ...] = ()
    status_hosts: tuple[tuple[HostRule, ...], ...] = ()
    remotes: tuple[tuple[str, ...], ...] = ()
    tokens: tuple[tuple[TokenRule, ...], ...] = ()
    operator: OperatorConfig = NO_OPERATOR_CONFIG
    operator_file: Path | None = None
    source_keys: tuple[str, ...] | None = None
    trusted: bool = True
    reviewed: ReviewedPlan | None = None
    require_reviewed: bool = False
    findings_only: bool = False
    all_statuses: bool = False
    facts_repository: str | None = None
    facts_keys: Mapping[str, tuple[str, ...]] = {}

    @property
    def allow(self) -> AllowList:
        """What the operator allows to contact and to read."""
        return AllowList(*(tuple(chain(*lists)) for lists in (self.hosts, self.status_hosts, self.remotes, self.tokens)))

    def complete(self, operator: OperatorConfig) -> RunSettings:
        """Return the settings with those of the operator's file where options leave them open."""
        output, allow = operator.output, operator.allow
        given = {(limit.scope, limit.effect) for limit in self.guard_limits}
        return self._replace(
            operator=operator,
            output=self.output or output.repository or None,
            output_branch=self.output_branch or output.branch or None,
            output_path=output.path if self.output_path is None else self.output_path,
            push=self.push or output.push or None,
            author=self.author or output.author,
            signing=self.signing or output.signing,
            hosts=self.hosts or (allow.metrics,),
            status_hosts=self.status_hosts or (allow.statuses,),
            remotes=self.remotes or (allow.remotes,),
            tokens=self.tokens or (allow.tokens,),
            facts_repository=self.facts_repository or operator.facts_repository or None,
            facts_keys=self.facts_keys or {cluster: (key,) for cluster, key in operator.facts_keys.items()},
            source_keys=operator.source_keys if self.source_keys is None else self.source_keys,
            guard_limits=(
                *self.guard_limits,
                *(limit for limit in operator.guard_limits if (limit.scope, limit.effect) not in given),
            ),
        )


class TrustedConfig(NamedTuple):
    """The settings that the commit under review cannot change: where decisions go, hosts, tokens, tenants, guard and verification.

    `config` is gitsched.yaml of `commit`: the base of a comparison (`is_base`), else the last source commit that a run has planned for this
    output. Without either, as in a first run, `commit` is None and `config` is that of the planned commit. What the operator has set is
    in the RunSettings and takes precedence.
    """

    config: Config
    commit: Commit | None = None
    is_base: bool = False


class RunContext(NamedTuple):
    """What every step of a run has: the settings, the source repository, and the caches of this process."""

    settings: RunSettings
    source: SourceRepository
    caches: Caches


def open_context(settings: RunSettings) -> RunContext:
    """Open the source repository and the caches that the settings name."""
    source = open_source(settings.location, cache=settings.cache)
    if settings.operator_file is not None:
        from gitsched.reconcile.operator_settings import check_operator_file, read_operator_config  # many runs have no such file

        check_operator_file(settings.operator_file, source)
        settings = settings.complete(read_operator_config(settings.operator_file))
    return RunContext(settings, source, Caches(settings.cache, ParseCache(settings.cache)))


class BuildContext(NamedTuple):
    """What builds need: the repository, the caches, the metadata of the last run, a function that makes a commit available and returns
    whether it is, the id of the commit that is planned ("" for a worktree), what may be read of other repositories, and a function that
    returns the repositories that the settings of another tree of the source allow. `list_earlier` returns at most so many commits
    since the last run, the newest first, without the planned one. `may_read` says of a path whether builds may read it."""

    repository: Repository
    caches: Caches
    record: RunMetadata | None = None
    fetch_commit: Callable[[str], bool] = lambda _: False
    commit: str = ""
    remotes: RemotePolicy = RemotePolicy()
    list_allowed: Callable[[str], tuple[str, ...]] = lambda _: ()
    list_earlier: Callable[[int], Iterable[Commit]] = lambda _: ()
    may_read: Callable[[str], bool] | None = None

    def list_entries(self, tree: str) -> list[TreeEntry]:
        """Return the entries of another tree of the source that builds may read."""
        entries = self.repository.entries(tree)
        return entries if self.may_read is None else [entry for entry in entries if self.may_read(entry.path)]


class Facts(NamedTuple):
    """The facts branches. `missing` is the configured branch that does not exist, or ""; `ignored` counts branches that are too many.

    `repository` has them, None for that of the source. `findings` are about branches that do not count, such as unsigned ones.
    """

    branches: tuple[FactsBranch, ...] = ()
    missing: str = ""
    ignored: int = 0
    repository: Repository | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def time(self) -> datetime:
        """The time of the newest commit; 1970 without facts."""
        return max((branch.commit.time for branch in self.branches), default=EPOCH)

    @property
    def commits(self) -> dict[str, str]:
        """The commits by branch."""
        return {branch.name: branch.commit.oid for branch in self.branches}

    @property
    def digest(self) -> str:
        """A digest of the content of all branches; "" without facts."""
        rows = [f"{branch.name} {branch.commit.tree}" for branch in self.branches]
        return sha256("\n".join(rows).encode()).hexdigest() if rows else ""


class SourceWithFacts(NamedTuple):
    """A source with the facts in the documents of its clusters. `stale_since` is the last time at which stale facts changed how a cluster
    is treated, 1970 if none did; `wakeup` is the next one; `timed` says that there are facts, so that a plan depends on the time."""

    source: SourceTree
    stale_since: datetime = EPOCH
    wakeup: datetime | None = None
    timed: bool = False


class OutputLocation(NamedTuple):
    """An opened output branch: its head and tree, the directory ("" or "path/"), the metadata of the last run, and whether the repository
    has notes, which every run writes."""

    output: OutputRepository
    head: str | None
    tree: str | None
    prefix: str
    record: RunMetadata | None
    has_notes: bool = False


class Fetched(NamedTuple):
    """The source commit and the head of the output branch. `prefix` is where the output is inside its branch: "" or "path/".

    `record` is the metadata of the last run. `output_trusted` says that the location of the output does not come from the commit that is
    planned, whose author need not be trusted. `cache_key` is the key of the plan cache. `trusted` are the settings that the planned
    commit cannot change. `source_commits` are the commits of variants in the plan of the base of a comparison, by path and digest.
    `frozen` says why the output branch freezes placements, or is "". `base_tenants` are the Tenants of the base of a comparison, as
    gitsched.json records them; None for those that the last run recorded. `chosen_by_operator`: in the first run the operator chose another
    branch or directory of the output than gitsched.yaml; the note on the output commit says so.
    """

    source: Commit
    output: OutputRepository
    output_head: str | None
    output_tree: str | None
    prefix: str
    record: RunMetadata | None
    output_trusted: bool
    cache_key: str
    trusted: TrustedConfig
    facts: Facts = Facts()
    source_commits: Mapping[tuple[str, str], str] = {}
    frozen: str = ""
    base_tenants: tuple[Mapping[str, Any], ...] | None = None
    chosen_by_operator: bool = False

    @property
    def time(self) -> datetime:
        """The time of the newest commit that the plan is made from."""
        return max(self.source.time, self.facts.time)

    def may_be_reviewed(self, settings: RunSettings) -> bool:
        """Return whether a reviewed plan is given or required, or the source commit or another one since the last run may name one."""
        several = self.record is not None and self.record.source not in (self.source.oid, *self.source.parents)
        return settings.require_reviewed or settings.reviewed is not None or bool(self.source.trailers) or several


class SettingReport(NamedTuple):
    """The changes of gitsched.yaml against its trusted version, and findings about settings."""

    changes: tuple[SettingChange, ...] = ()
    findings: tuple[Finding, ...] = ()


NO_SETTING_REPORT = SettingReport()


class ObservationResult(NamedTuple):
    """Observed values, and findings about providers that were not queried."""

    observations: Observations
    findings: tuple[Finding, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there was nothing to observe."""
        return not (self.observations or self.findings) and self.observations.time is None


NOTHING_OBSERVED = ObservationResult(Observations())


class CompleteState(NamedTuple):
    """A complete plan that the next plan may start from: the output that it read, and the paths of its source files."""

    previous: PreviousOutput
    source_paths: Collection[str]


class RunInput(NamedTuple):
    """What a plan is made from, whether the next plan may start from this one, and the changes of the settings."""

    plan_input: PlanInput
    can_continue: bool
    setting_changes: tuple[SettingChange, ...] = ()


class StateUpdate(NamedTuple):
    """An incremental plan, and the plan cache that it started from. The cache is updated once the plan is published."""

    cache: PlanCache
    incremental: IncrementalPlan


class Planned(NamedTuple):
    """A plan and the settings that it was made with. `state` is for the plan cache; None if the next plan must be complete. `builds` says
    how kustomize roots were built. `kept_files` are the source commits whose versions of broken files are used, by path. `setting_changes`
    are the differences of gitsched.yaml from its trusted version. `message` is the message of the commit, if it is not
    that of a run. `tenants` are the Tenants that the next run trusts, as gitsched.json has them."""

    plan: Plan
    config: Config
    state: CompleteState | StateUpdate | None
    builds: BuildRecord = NOTHING_BUILT
    kept_files: Mapping[str, str] = {}
    setting_changes: tuple[SettingChange, ...] = ()
    message: str = ""
    tenants: tuple[Mapping[str, Any], ...] = ()


class Written(NamedTuple):
    """The output tree of a plan, with the README.md and metadata of the last commit, and whether it differs from the output's head.

    `record_changes` are the recorded decisions that differ from the output's head. `refused` says why the tree may not be published,
    or is "". `reviewed` compares the plan with the reviewed one.
    """

    tree: str
    changed: bool
    record_changes: tuple[RecordChange, ...]
    refused: str = ""
    reviewed: tuple[str, ...] = ()


Race = Literal["", "same", "different"]
"""Whether another run moved the output branch first: "" if not; else whether its commit has the content that this run planned first."""


class Published(NamedTuple):
    """The new commit, None if there is none; and whether the output branch changed.

    `tree` is the output tree that the plan describes; None if the plan cannot be the start of the next one. With `race`, another run
    published the commit.
    """

    commit: str | None
    changed: bool
    tree: str | None
    race: Race = ""


class RunResult(NamedTuple):
    """`source` is the id of the source commit ("" for a worktree), `before` the output's head at the start, `after` the new commit or None.

    `changed` says that the output differs, or would. With `race`, another run made the new commit. `refused` is why nothing may be written,
    or "". `repository` is where the output branch is. `tree` is the planned output tree, with the README.md and metadata of the last
    commit. `reviewed` compares the plan with the reviewed one, `record_changes` are the recorded decisions that differ from the output's
    head.
    """

    source: str
    before: str | None
    after: str | None
    plan: Plan
    branch: str
    repository: str
    changed: bool
    refused: str = ""
    tree: str = ""
    reviewed: tuple[str, ...] = ()
    record_changes: tuple[RecordChange, ...] = ()
    race: Race = ""
    setting_changes: tuple[SettingChange, ...] = ()


class OutputMoved(Conflict):
    """Another process moved the output branch before this run could publish its plan: `attempt` is what it would have published."""

    def __init__(self, message: str, fetched: Fetched, attempt: RunResult) -> None:
        super().__init__(message)
        self.fetched, self.attempt = fetched, attempt


def make_result(fetched: Fetched, planned: Planned, written: Written, published: Published | None) -> RunResult:
    """Combine the results of the steps. `published` is None if the run publishes nothing."""
    output = fetched.output
    return RunResult(
        source=fetched.source.oid,
        before=fetched.output_head,
        after=published.commit if published else None,
        plan=planned.plan,
        branch=output.branch,
        repository=output.remote or output.repository.root,
        changed=published.changed if published else written.changed,
        refused=written.refused,
        tree=written.tree,
        reviewed=written.reviewed,
        record_changes=written.record_changes,
        race=published.race if published else "",
        setting_changes=planned.setting_changes,
    )


def make_review(run: RunResult) -> Review:
    """Return the part of a review that comes from the run alone."""
    plan, totals = run.plan, run.plan.totals
    return Review(
        source=run.source,
        branch=run.branch,
        output_repository=run.repository,
        before=run.before,
        after=run.after,
        changed=run.changed,
        refused=run.refused,
        outcomes=plan.outcomes.values(),
        states={state: totals.state_counts.get(state, 0) for state in WORKLOAD_STATES},
        cluster_count=totals.cluster_count,
        moves=plan.moves,
        findings=plan.findings,
        unclaimed=totals.unclaimed,
        next_wakeup=plan.next_wakeup,
        time=plan.time,
        review_messages=run.reviewed,
        recorded=plan.recorded,
        record_changes=run.record_changes,
        withheld=plan.withheld,
        retained_copies=totals.retained,
        ended_copies=plan.ended,
        rollouts=plan.rollouts,
        race=run.race,
        held=totals.held,
        setting_changes=run.setting_changes,
    )
