"""Reconcile one source with one output any number of times, with caches between the runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from gitsched import __version__
from gitsched.apis.engine import Snapshot
from gitsched.apis.gitsched.config import FILE, Config
from gitsched.decide.catalog import build_catalog
from gitsched.decide.commit_metadata import make_commit_message, render_metadata_files
from gitsched.decide.gc_pause import gc_paused
from gitsched.decide.incremental_plan import PlanState, make_incremental_plan
from gitsched.decide.plan import InMemoryCaches, Plan, PlanInput, PreviousOutput, make_plan
from gitsched.decide.plan_state import compute_totals, make_plan_rows
from gitsched.decide.registry import policy_apis, reserved_groups
from gitsched.diff.plans import compare_choices, list_choices, read_choices
from gitsched.git import OutputRepository, Repository, SourceRepository, is_url, make_signer, open_source
from gitsched.git.refs import read_note
from gitsched.model.commit import Commit
from gitsched.model.document import Body, Document, Key
from gitsched.model.errors import Permanent
from gitsched.model.finding import Location, finding_sort_key
from gitsched.model.observation import Observations
from gitsched.model.planned_files import ExistingBlob, PlannedFile
from gitsched.model.time import EPOCH
from gitsched.reconcile.cache.parse_cache import ParseCache
from gitsched.reconcile.cache.plan_cache import PlanCache, PlanCacheHeader, make_cache_key
from gitsched.reconcile.cache.serialization import CorruptCacheError
from gitsched.reconcile.fetch import Fetched, fetch, find_commit
from gitsched.reconcile.observations import (
    ObservationOptions,
    ObservationResult,
    list_recent_commits,
    list_reporting_clusters,
    observe_metrics,
    observe_statuses,
)
from gitsched.reconcile.previous_output import OutputRecords, find_output_blob, read_previous_output
from gitsched.reconcile.review_check import check_reviewed_plan, make_source_note
from gitsched.reconcile.run import RunResult, RunSettings
from gitsched.reconcile.source_diff import LazyTemplates, RecoverableOutcomes, find_template, read_source_diff
from gitsched.reconcile.source_locations import locate_finding_resources, locate_finding_rules
from gitsched.reconcile.source_tree import REGULAR_FILE_MODES, SourceReader, SourceTree, TreeCache, read_config, read_source_tree
from gitsched.render.layout import GITATTRIBUTES_FILE, HYDRATOR_METADATA, README, RUN_METADATA, kept_path
from gitsched.render.run_metadata import GITATTRIBUTES, RunMetadata

ALLOW_REMOVALS_TRAILER = "Gitsched-Allow-Removals"
"""The trailer of a source commit that lets the guard pass."""
MAX_OLD_VERSIONS = 1_000
"""Versions of files that are remembered beyond twice those of the last whole plan."""


class Planned(NamedTuple):
    """A plan, with the settings that it was made with; `shelve` makes its ledger, given the output tree that it led to."""

    plan: Plan
    config: Config
    make_plan_cache: Callable[[str], PlanCache | None]


class Reconciler:
    """A resident reconcile. Everything it remembers is found again from Git when it is lost."""

    def __init__(self, settings: RunSettings) -> None:
        self.settings = settings
        self._source = open_source(settings.location, cache=settings.cache)
        self._parse_cache = ParseCache(settings.cache)
        self._record_bodies: dict[str, Body] = {}
        self._parse_cache_size = 0
        self._memory_caches = InMemoryCaches()
        self._plan_cache: PlanCache | None = None
        self._last_written: tuple[str, Plan] | None = None
        self._tree_cache: TreeCache | None = None
        self._metric_values = Observations()  # plans that are compared have to be made with the same values

    @property
    def source(self) -> SourceRepository:
        return self._source

    def watch_paths(self) -> list[Path]:
        """The directories and files in which a moving ref shows; none for a remote, which has to be asked."""
        if is_url(self.settings.location):
            return []
        common = Path(self._source.repository.common_dir)
        return [path for path in (common / "refs" / "heads", common / "packed-refs", common / "HEAD") if path.exists()]

    def run(self, now: datetime, *, write: bool = True, whole: bool = False) -> RunResult:
        """Observe, plan and, unless only looking, commit. Raises Conflict when somebody else moved the output branch meanwhile.

        `whole` asks for a plan of everything, with what `explain` needs of it.
        """
        with gc_paused():
            observed = self.fetch()
            step = (None if whole else self.plan_incrementally(observed, now)) or self.plan(observed, now)
            run = self.write(observed, step, publish=write)
            self.save_caches()
        return run

    def save_caches(self) -> None:
        """Keep what was read, and what the next plan can go on from, for the next process."""
        self._parse_cache.save()
        if self._plan_cache is not None:
            self._plan_cache.save()
        if len(self._parse_cache) > 2 * self._parse_cache_size + MAX_OLD_VERSIONS:
            # Former versions of files: a process that stays for months must not keep them all.
            self._parse_cache.clear()
            self._record_bodies.clear()

    def fetch(self, settled: Commit | None = None) -> Fetched:
        """See `gitsched.reconcile.fetch.fetch`."""
        return fetch(self.settings, self._source, self._parse_cache, settled)

    def find_commit(self, revision: str) -> Commit:
        """The commit that a branch, tag or id names; what is not here is looked for at the remote."""
        return find_commit(self.settings, self._source, revision)

    def read_source_at(self, commit: Commit) -> SourceTree:
        """The source as another commit has it, whatever the output branch keeps of broken files."""
        return read_source_tree(
            self._source.repository, commit.tree, self._parse_cache, lambda _: (), self.settings.paths
        ).source_tree

    def _check_output_config(
        self, commit: Commit, snapshot: SourceTree, output: OutputRepository, record: RunMetadata | None
    ) -> None:
        """A gitsched.yaml that is broken must not send the decisions somewhere else than the last valid one did."""
        asked = self.settings.output_branch or snapshot.config.output.branch
        broken = read_config(self._source.repository, commit.tree, self._parse_cache) is None
        if (
            broken
            and not self.settings.findings_only
            and self.settings.output_branch is None
            and (record is None or asked != output.branch)
        ):
            said = (*snapshot.other_findings, *snapshot.file_findings.get(FILE, ()))
            found = [f for f in said if f.severity == "error" and f.location is not None and f.location.path == FILE]
            # The one at the top says that the file holds no valid settings; any other says why.
            first = min(found, key=lambda f: (f.location == Location(FILE, 1, 1), f.location), default=None)
            place = f" ({first})" if first else ""
            raise Permanent(f"{FILE} is broken{place}, so nobody knows where the output is; mend it, or give --output-branch")

    def plan_incrementally(self, observed: Fetched, now: datetime) -> Planned | None:
        """The plan as an amendment of the last one; None where that cannot be."""
        shelf, repository = self._open_plan_cache(observed), self._source.repository
        # It goes on while it is amended; whoever gives up on the way must not meet it half-way.
        self._plan_cache = None
        at, moment = self._compute_plan_times(observed, now)
        if shelf is None or shelf.header.output_tree != observed.output_tree or moment < shelf.header.totals.now:
            return None
        try:
            config = shelf.header.totals.config
            reader = SourceReader(repository, self._parse_cache, config)
            edition = read_source_diff(repository, observed.source.tree, shelf, reader, moment)
            if edition is None:
                return None
            lookup = partial(find_output_blob, observed.output.repository, observed.output_tree, observed.prefix)
            find = partial(find_template, repository, observed.source.tree, shelf, reader)
            templates = LazyTemplates(edition.documents, find, lambda: self._read_templates(observed))
            world = Snapshot(shelf.api_documents, templates, frozenset(), self.open_records(observed), config, at, moment)
            ledger = PlanState(shelf.header.totals, shelf, shelf.engines)
            made = make_incremental_plan(ledger, edition, world, lookup, self._memory_caches.rendered)
        except CorruptCacheError:
            return None
        if made is None:
            return None

        def shelve(tree: str) -> PlanCache:
            head = shelf.header._replace(source_tree=observed.source.tree, output_tree=tree, totals=made.totals)
            shelf.update(made.workloads, made.clusters, head)
            return shelf

        outcomes = RecoverableOutcomes(made.plan.outcomes, lambda: self.plan(observed, now).plan.outcomes)
        return Planned(self._locate_findings(made.plan._replace(outcomes=outcomes)), config, shelve)

    def _locate_findings(self, planned: Plan) -> Plan:
        """The plan with the lines of what its findings are about."""
        if not any(finding.field for finding in planned.findings):
            return planned
        return planned._replace(
            findings=tuple(sorted(locate_finding_rules(planned.findings, self._source.repository), key=finding_sort_key))
        )

    def plan(self, observed: Fetched, now: datetime) -> Planned:
        """The whole plan, anew."""
        snapshot, (at, moment) = self.read_source(observed), self._compute_plan_times(observed, now)
        self._check_output_config(observed.source, snapshot, observed.output, observed.record)
        before, config = self._read_previous_output(observed), snapshot.config
        gathered = self._observe(observed, snapshot, now)
        beside = (*snapshot.other_findings, *gathered.findings)
        source = PlanInput(
            snapshot.documents,
            snapshot.file_findings,
            beside,
            before,
            config,
            at,
            moment,
            snapshot.last_valid,
            gathered.observations,
        )
        planned = self._locate_findings(make_plan(source, self._memory_caches))
        self._parse_cache_size = len(self._parse_cache)

        def shelve(tree: str) -> PlanCache | None:
            details, book = planned.details, self._tree_cache
            if details is None or book is None or not book.valid or book.tree != observed.source.tree:
                return None
            if gathered != ObservationResult(Observations()) or gathered.observations.time is not None:
                return None  # what others say is asked for anew each time, and may change anything
            decided, picture = details
            sums = compute_totals(decided, picture, source, snapshot.file_findings, planned.retiring)
            if sums is None:
                return None
            head = PlanCacheHeader(self._make_cache_key(observed), book.tree, tree, tuple(decided.catalog.api_documents), sums)
            resumes = {api.name for api in policy_apis() if api.serializable}
            shelf = PlanCache(
                self._get_plan_cache_path(observed), head, lasting=all(session.name in resumes for session in decided.engines)
            )
            shelf.fill(book.files, *make_plan_rows(decided, picture), decided.catalog.api_documents, decided.engines)
            return shelf

        return Planned(planned, config, shelve)

    def _observe(self, observed: Fetched, snapshot: SourceTree, now: datetime) -> ObservationResult:
        """What metrics say: once for each run."""
        settings = self.settings
        manner = ObservationOptions(
            live=settings.observations == "live",
            hosts=settings.hosts,
            timeout=snapshot.config.observations.timeout,
            list_trusted_documents=None if settings.trusted else lambda: self._list_trusted_documents(observed),
            output_trusted=observed.output_trusted,
        )
        core = [loose for loose in snapshot.documents if loose.group == "core" and not loose.broken]
        heard = Observations() if settings.trusted else self._metric_values
        gathered = observe_metrics((loose.body for loose in core), observed.record, manner, now, heard)
        gathered = gathered._replace(findings=locate_finding_resources(gathered.findings, core))
        forge = snapshot.config.observations.statuses
        clusters = list_reporting_clusters(snapshot) if forge is not None else set[str]()
        recent = list_recent_commits(observed.output.repository, observed.output_head)
        return observe_statuses(gathered, forge, recent, clusters, observed.record, manner, now)

    def _list_trusted_documents(self, observed: Fetched) -> list[Body]:
        """The documents of the commit that the output branch was made from: somebody who may has let them in."""
        record, repository = observed.record, self._source.repository
        if record is None or not record.source or not self._source.fetch_commit(record.source):
            return []
        tree = repository.commit(record.source).tree
        return [loose.body for loose in read_source_tree(repository, tree, self._parse_cache, lambda _: ()).source_tree.documents]

    def write(self, observed: Fetched, step: Planned, *, publish: bool) -> RunResult:
        """The output tree of a plan, and its commit when it differs."""
        output, source, planned = observed.output, observed.source, step.plan
        repository, tree = output.repository, self._write_tree(observed, planned)
        changed = tree != observed.output_tree
        allowed = self.settings.allow_removals or any(
            name == ALLOW_REMOVALS_TRAILER and text == "true" for name, text in source.trailers
        )
        run = RunResult(
            source.oid, observed.output_head, None, planned, output.branch, output.remote or repository.root, changed, tree=tree
        )
        # A plan that amends the last one keeps all records that belong to no workload.
        if changed and planned.complete:
            choices = compare_choices(read_choices(self.open_records(observed)), list_choices(planned.decisions))
            run = run._replace(choices=choices)
        if planned.refusal and not allowed:
            return run._replace(refused=planned.refusal)
        run = check_reviewed_plan(self.settings, observed, run)
        if run.refused:
            return run
        if not publish:
            return run
        note = make_source_note(source.oid)
        if not changed:
            if observed.output_head and read_note(repository, observed.output_head) != note and source.oid:
                output.publish(observed.output_head, observed.output_head, note)
            # Since when a cluster retires is told by the record, which is only written with a commit.
            same = observed.record is not None and observed.record.retiring == planned.retiring
            self._plan_cache = step.make_plan_cache(observed.output_tree) if observed.output_tree and same else None
            return run
        parts = {
            name for name, _ in self._list_root_entries(observed, observed.output_tree) ^ self._list_root_entries(observed, tree)
        }
        tree = self._write_files(observed, render_metadata_files(source, planned, self._source.url, __version__), tree)
        commit = self._commit_output(observed, step, tree, parts)
        mine = output.publish(commit, observed.output_head, note)
        self._plan_cache = step.make_plan_cache(tree)
        self._last_written = (tree, planned) if planned.complete else None
        # Another process has decided the same and was faster: the output is as it should be, and that was not our doing.
        return run._replace(after=commit) if mine else run._replace(changed=False)

    def read_source(self, observed: Fetched) -> SourceTree:
        """The whole source."""
        self._tree_cache = read_source_tree(
            self._source.repository,
            observed.source.tree,
            self._parse_cache,
            lambda path: self._find_last_valid(path, observed),
            self.settings.paths,
            self._tree_cache,
        )
        return self._tree_cache.source_tree

    def _compute_plan_times(self, observed: Fetched, now: datetime) -> tuple[datetime, datetime]:
        """The moment of the source, and the one that deadlines are compared with."""
        # A run over a commit that an earlier run has seen goes on from the last event, else deadlines long past would be met once more.
        reached = min(observed.record.time, now) if observed.record else EPOCH
        # A clock that runs ahead must not start timers, or end them, before their time: a commit from the future counts as made now.
        at = max(min(observed.source.time, now), reached)
        return at, max(now, at)

    def open_records(self, observed: Fetched) -> OutputRecords:
        """What was decided before, as the output branch has it."""
        return OutputRecords(
            observed.output.repository, observed.output_tree, observed.prefix, self._parse_cache, self._record_bodies
        )

    def _read_previous_output(self, observed: Fetched) -> PreviousOutput:
        records = self.open_records(observed)
        if self._last_written is not None and self._last_written[0] == observed.output_tree:
            # What this process wrote itself need not be read.
            records.add_written(document for outcome in self._last_written[1].outcomes.values() for document in outcome.records)
        self._last_written = None
        records.prefetch()
        return read_previous_output(observed.output.repository, observed.output_tree, observed.prefix, records, observed.record)

    def _open_plan_cache(self, observed: Fetched) -> PlanCache | None:
        known = self._plan_cache is not None and self._plan_cache.header.cache_key == self._make_cache_key(observed)
        return self._plan_cache if known else PlanCache.open(self._get_plan_cache_path(observed), self._make_cache_key(observed))

    def _make_cache_key(self, observed: Fetched) -> str:
        return make_cache_key(self._source.repository.common_dir, observed.output, observed.prefix, self.settings.paths)

    def _get_plan_cache_path(self, observed: Fetched) -> Path:
        return self.settings.cache / f"plan-{self._make_cache_key(observed)[:32]}.sqlite3"

    def _write_tree(self, observed: Fetched, planned: Plan) -> str:
        """The output tree of a plan, as yet with the front page of the last commit: nothing else has changed where it is the last tree."""
        if not planned.complete:
            return self._write_files(observed, planned.files, observed.output_tree)
        front: dict[str, PlannedFile | None] = {}
        base = None
        if observed.output_tree:
            repository = observed.output.repository
            held = repository.list_directory(observed.output_tree, observed.prefix.rstrip("/"))
            front = {
                name: ExistingBlob(held[name][0])
                for name in (README, RUN_METADATA, HYDRATOR_METADATA)
                if name in held and held[name][1] in REGULAR_FILE_MODES
            }
            if observed.prefix:
                root = {observed.prefix.rstrip("/"): None}
                base = repository.write_tree(root, base=observed.output_tree, read=self._source.repository)
        return self._write_files(observed, {**planned.files, GITATTRIBUTES_FILE: GITATTRIBUTES, **front}, base)

    def _write_files(self, observed: Fetched, files: Mapping[str, PlannedFile | None], base: str | None) -> str:
        prefix = observed.prefix
        planted = {f"{prefix}{path}": file for path, file in files.items()} if prefix else files
        return observed.output.repository.write_tree(planted, base=base, read=self._source.repository)

    def _list_root_entries(self, observed: Fetched, tree: str | None) -> set[tuple[str, tuple[str, int]]]:
        """What stands at the root of an output tree."""
        return set(observed.output.repository.list_directory(tree, observed.prefix.rstrip("/")).items()) if tree else set()

    def _read_templates(self, observed: Fetched) -> Mapping[Key, Document]:
        snapshot = self.read_source(observed)
        return build_catalog(snapshot.documents, snapshot.config.kinds, reserved_groups()).templates

    def _commit_output(self, observed: Fetched, step: Planned, tree: str, parts: set[str]) -> str:
        config, settings, planned = step.config.output, self.settings, step.plan
        name, email = settings.author or (config.author.name, config.author.email)
        signing = settings.signing or ((config.signing.format, config.signing.key) if config.signing else None)
        repository = observed.output.repository
        signer = make_signer(repository, format=signing[0], key=signing[1]) if signing else None
        parents = (observed.output_head,) if observed.output_head else ()
        text = make_commit_message(observed.source, planned, parts, __version__)
        time = max(planned.time, repository.commit(observed.output_head).time) if observed.output_head else planned.time
        return repository.commit_tree(tree, parents, text, name=name, email=email, time=time, sign=signer)

    def _find_last_valid(self, path: str, observed: Fetched) -> Iterator[tuple[Repository, str]]:
        """Earlier bytes of a source file: as the last reconcile saw it, then as the output branch keeps it."""
        repository, kept_in, record = self._source.repository, observed.output.repository, observed.record
        if record is not None and record.source and self._source.fetch_commit(record.source):
            entry = repository.find_entry(repository.commit(record.source).tree, path)
            if entry is not None:
                yield repository, entry[0]
        kept = kept_in.find_entry(observed.output_tree, f"{observed.prefix}{kept_path(path)}") if observed.output_tree else None
        if kept is not None:
            yield kept_in, kept[0]
