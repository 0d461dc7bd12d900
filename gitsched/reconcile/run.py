"""The values that the steps of a run pass on, and its result."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal

from gitsched import __version__
from gitsched.apis.registered import Registered
from gitsched.decide.plan_result import mark_awaited
from gitsched.git import FactsBranch, OutputRepository, Repository, SourceRepository, open_source
from gitsched.git.output import check_push
from gitsched.model.cluster_facts import NO_FACTS, AppliedFacts
from gitsched.model.errors import Conflict
from gitsched.model.mistakes import CLUSTER_UNKNOWN
from gitsched.model.observation import Observations
from gitsched.model.time import EPOCH
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.cache.caches import Caches, ParseCache
from gitsched.render.format_versions import describe_upgrade
from gitsched.render.run_metadata import NOTHING_BUILT, BuildRecord, RunMetadata
from gitsched.report.review import WORKLOAD_STATES, OutputComparison, Review

if TYPE_CHECKING:
    from pathlib import Path

    from gitsched.apis.gitsched.config import Config
    from gitsched.decide.incremental.incremental_plan import IncrementalPlan
    from gitsched.decide.incremental.plan_state import PreviousOutput
    from gitsched.decide.plan_input import PlanInput
    from gitsched.decide.plan_result import Plan
    from gitsched.model.changes import RecordChange, SettingChange, UnplacedObject
    from gitsched.model.commit import Commit
    from gitsched.model.finding import Finding
    from gitsched.reconcile.cache.caches import TreeCache
    from gitsched.reconcile.cache.failed_builds import FailedBuilds
    from gitsched.reconcile.cache.plan_cache import PlanCache
    from gitsched.reconcile.cache.reading_rules import ReadingRules
    from gitsched.reconcile.run_settings import RunSettings
    from gitsched.reconcile.source.file_version import FileVersion


_NAME_FORMER_CLUSTERS = Registered("gitsched.reconcile.output.removed_documents", "name_former_clusters")


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

    def report_step(self, step: str) -> None:
        """Report to the caller which step of a run begins."""
        if self.settings.progress is not None:
            self.settings.progress(step, 0, 0)


def open_context(settings: RunSettings) -> RunContext:
    """Open the source repository and the caches that the settings name."""
    source = open_source(settings.location, cache=settings.cache)
    if settings.push is not None:
        check_push(source, settings.output, settings.push)
    if settings.operator_file is not None:
        from gitsched.reconcile.operator_settings import complete_settings  # many runs have no such file

        settings = complete_settings(settings, source)
    return RunContext(settings, source, Caches(settings.cache, ParseCache(settings.cache)))


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
        """A digest of the content and the times of all branches, and of what is missing or ignored; "" without facts."""
        if self == Facts():
            return ""
        rows = [f"{branch.name} {branch.commit.tree} {branch.commit.time}" for branch in self.branches]
        rows.append(repr((self.missing, self.ignored, self.findings)))
        return sha256("\n".join(rows).encode()).hexdigest()


RECONCILED: Final = "reconciled"
"""The member of a note on an output commit that has the ReconciledSource of each output with this head, by the name of the output."""


class ReconciledSource(NamedTuple):
    """The newest source commit that a run has planned for an output, and the reconciled source branch; "" for what is not known."""

    source: str = ""
    branch: str = ""


class OutputLocation(NamedTuple):
    """An opened output branch: its head and tree, the directory ("" or "path/"), the metadata of the last run, whether the repository
    has notes, which every run writes, and whether another one than a run made the head."""

    output: OutputRepository
    head: str | None
    tree: str | None
    prefix: str
    record: RunMetadata | None
    has_notes: bool = False
    is_edited: bool = False


class Fetched(NamedTuple):
    """The source commit and the head of the output branch. `prefix` is where the output is inside its branch: "" or "path/".

    `record` is the metadata of the last run. `output_trusted` says that the location of the output does not come from the commit that is
    planned, whose author need not be trusted. `cache_key` is the key of the plan cache. `trusted` are the settings that the planned
    commit cannot change. `source_commits` are the commits of variants in the plan of the base of a comparison, by path and digest.
    `frozen` says why the output branch freezes placements, or is "". `base_tenants` are the Tenants of the base of a comparison, as
    gitsched.json records them; None for those that the last run recorded. `chosen_by_operator`: in the first run the operator chose another
    branch or directory of the output than gitsched.yaml; the note on the output commit says so. `is_edited`: no run made the head of the
    output, or someone amended it. `rewritten` is the record of the head where an earlier version wrote it and the run rewrites it first:
    `output_tree` and `record` are those of the rewrite then, and `output_head` is still the head of the branch. `reconciled` says what
    was planned before, and `branch` is that of the source commit, "" if it is not known.
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
    is_edited: bool = False
    rewritten: RunMetadata | None = None
    reconciled: ReconciledSource = ReconciledSource()
    branch: str = ""

    @property
    def other_branch(self) -> str:
        """The branch that is reconciled, if the source commit is known to be of another one; else ""."""
        return self.reconciled.branch if self.branch and self.branch != self.reconciled.branch else ""

    @property
    def time(self) -> datetime:
        """The time of the newest commit that the plan is made from."""
        return max(self.source.time, self.facts.time)

    def may_be_reviewed(self, settings: RunSettings, *, changed: bool) -> bool:
        """Return whether a reviewed plan is given or required, or the source commit or another one since the last run may name one.

        A run that changes nothing is only compared with a saved plan.
        """
        if not changed:
            return settings.choices.reviewed is not None and settings.choices.reviewed.saved
        several = self.record is not None and self.record.source not in (self.source.oid, *self.source.parents)
        return settings.choices.require_reviewed or settings.choices.reviewed is not None or bool(self.source.trailers) or several


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
    """A complete plan that the next plan may start from: the output that it read, and the paths of its source files, which may come and go
    as the `reading_rules` allow. `used_versions` are those of broken files, and `failed_builds` the builds that fail, as in `TreeCache`."""

    previous: PreviousOutput
    source_paths: Collection[str]
    reading_rules: ReadingRules | None = None
    used_versions: Mapping[str, FileVersion | None] = {}
    failed_builds: FailedBuilds = {}


class RunInput(NamedTuple):
    """What a plan is made from, whether the next plan may start from this one, the changes of the settings, and the facts of clusters."""

    plan_input: PlanInput
    can_continue: bool
    setting_changes: tuple[SettingChange, ...] = ()
    facts: AppliedFacts = NO_FACTS


class StateUpdate(NamedTuple):
    """An incremental plan, and the plan cache that it started from. The cache is updated once the plan is published.

    `reading_rules` say how the files of the planned tree were chosen. `trees` are the last tree and the planned one, where they had to be
    read completely.
    """

    cache: PlanCache
    incremental: IncrementalPlan
    reading_rules: ReadingRules | None
    trees: tuple[TreeCache, ...] = ()

    @property
    def used_versions(self) -> Mapping[str, FileVersion | None] | None:
        """The versions that are used of broken files; None if they are those of the last plan."""
        return (self.trees[-1].used_versions or {}) if self.trees else None

    @property
    def failed_builds(self) -> FailedBuilds:
        """The builds that fail."""
        return (self.trees[-1].failed_builds or {}) if self.trees else self.cache.header.failed_builds


class Planned(NamedTuple):
    """A plan and the settings that it was made with. `state` is for the plan cache; None if the next plan must be complete. `builds` says
    how kustomize roots were built. `kept_files` are the source commits whose versions of broken files are used, by path. `setting_changes`
    are the differences of gitsched.yaml from its trusted version. `message` is the message of the commit, if it is not
    that of a run. `tenants` are the Tenants that the next run trusts, as gitsched.json has them. `facts` are those of the clusters."""

    plan: Plan
    config: Config
    state: CompleteState | StateUpdate | None
    builds: BuildRecord = NOTHING_BUILT
    kept_files: Mapping[str, str] = {}
    setting_changes: tuple[SettingChange, ...] = ()
    message: str = ""
    tenants: tuple[Mapping[str, Any], ...] = ()
    facts: AppliedFacts = NO_FACTS


class Written(NamedTuple):
    """The output tree of a plan, with the README.md and metadata of the last commit, and whether it differs from the output's head.

    `record_changes` are the recorded decisions that differ from the output's head. `refused` says why the tree may not be published,
    or is "". `reviewed` compares the plan with the reviewed one. `findings` are about bugs that showed in
    writing it, and about changes of people to the output that it takes back. `edits` are the commits of people that changed records from
    which it decides.
    """

    tree: str
    changed: bool
    record_changes: tuple[RecordChange, ...]
    refused: str = ""
    reviewed: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    edits: tuple[str, ...] = ()


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
    head. `git_directory` is the local repository with the output commits, `prefix` where the output is inside its branch: "" or "path/".
    `state_file` is the plan cache from which the next run does the same; None if more than commits, options and the time may change that.
    `update` is an incremental plan with the plan cache that it continues; None for a complete plan. `rewrite` says in one line how the run
    rewrites the output branch of an earlier version; "" otherwise. `edits` are those of Written, `facts` the commits of facts branches.
    `unselected` are the objects that came since the last run and that no policy selects; none of a run that publishes nothing.
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
    git_directory: str = ""
    prefix: str = ""
    state_file: Path | None = None
    update: StateUpdate | None = None
    rewrite: str = ""
    edits: tuple[str, ...] = ()
    unselected: tuple[UnplacedObject, ...] = ()
    facts: Mapping[str, str] = {}


class OutputMoved(Conflict):
    """Another process moved the output branch before this run could publish its plan: `attempt` is what it would have published."""

    def __init__(self, message: str, fetched: Fetched, attempt: RunResult) -> None:
        super().__init__(message)
        self.fetched, self.attempt = fetched, attempt


def make_result(fetched: Fetched, planned: Planned, written: Written, published: Published | None) -> RunResult:
    """Combine the results of the steps. `published` is None if the run publishes nothing."""
    output, plan = fetched.output, planned.plan
    repository = output.repository
    if written.findings:
        plan = plan._replace(findings=(*written.findings, *plan.findings))
    if any(finding.code == CLUSTER_UNKNOWN for finding in plan.findings):
        plan = plan._replace(findings=_NAME_FORMER_CLUSTERS(fetched, plan.findings))
    return RunResult(
        source=fetched.source.oid,
        before=fetched.output_head,
        after=published.commit if published else None,
        plan=plan,
        branch=output.branch,
        repository=output.remote or repository.root,
        changed=published.changed if published else written.changed,
        refused=written.refused,
        tree=written.tree,
        reviewed=written.reviewed,
        record_changes=written.record_changes,
        race=published.race if published else "",
        setting_changes=planned.setting_changes,
        git_directory=str(repository.path),
        prefix=fetched.prefix,
        update=planned.state if isinstance(planned.state, StateUpdate) else None,
        rewrite=describe_rewrite(fetched),
        edits=written.edits,
        facts=fetched.facts.commits,
    )


def describe_rewrite(fetched: Fetched) -> str:
    """Return in one line how a run rewrites the output branch of an earlier version; "" where it does not."""
    if fetched.rewritten is None:
        return ""
    change = describe_upgrade(fetched.rewritten.format_version, fetched.rewritten.version, __version__)
    return f"The output is rewritten for {change}, in a commit of its own, with which no workload moves."


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
        states={state: totals.overview.state_counts.get(state, 0) for state in WORKLOAD_STATES},
        cluster_count=totals.overview.cluster_count,
        moves=plan.moves,
        findings=plan.findings,
        unclaimed=totals.overview.unclaimed,
        next_wakeup=plan.next_wakeup,
        time=plan.time,
        review_messages=run.reviewed,
        recorded=plan.totals.engines.recorded,
        record_changes=run.record_changes,
        withheld=plan.withheld,
        retained_copies=mark_awaited(totals.retained, plan.findings) if totals.retained else (),
        ended_copies=plan.ended,
        rollouts=plan.rollouts,
        race=run.race,
        held=totals.held,
        setting_changes=run.setting_changes,
        comparison=OutputComparison(notes=(run.rewrite,) if run.rewrite else (), unplaced=run.unselected, edits=run.edits),
    )


def find_newer_source(context: RunContext, fetched: Fetched) -> str:
    """Return the commit of the source that the last run planned, if the one here is an ancestor of it; "" if not."""
    planned = fetched.record.source if fetched.record is not None else ""
    repository, own = context.source.repository, fetched.source.oid
    is_newer = planned not in ("", own) and repository.has_commit(planned) and repository.has_ancestor(planned, own)
    return planned if is_newer else ""
