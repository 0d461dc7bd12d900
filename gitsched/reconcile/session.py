"""One source and one output over any number of runs, with what earlier runs can spare the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from gitsched import __version__
from gitsched.apis.gitsched.config import FILE, Config
from gitsched.apis.world import World
from gitsched.git import Commit, Output, Repository, Source, is_url, make_signer, open_source
from gitsched.model.document import Body, Document, Key
from gitsched.model.errors import Permanent
from gitsched.model.files import Keep, PlannedFile
from gitsched.model.finding import Location, rank
from gitsched.model.observation import Observations
from gitsched.model.time import EPOCH
from gitsched.plan.amending import Ledger, amend
from gitsched.plan.calm import undisturbed
from gitsched.plan.catalog import build_catalog
from gitsched.plan.choosing import compare_choices, list_choices, read_choices
from gitsched.plan.ledger import list_rows, sum_up
from gitsched.plan.planning import Before, Input, Plan, Workspace, plan
from gitsched.plan.registry import APIS, RESERVED
from gitsched.reconcile.checking import check_review, note_of
from gitsched.reconcile.edition import Recalled, Templates, find_document, read_edition
from gitsched.reconcile.front import front_files, message
from gitsched.reconcile.memo import Memo
from gitsched.reconcile.observations import Gathered, Manner, gather, gather_statuses
from gitsched.reconcile.observing import Observed, find, observe
from gitsched.reconcile.packing import Damaged
from gitsched.reconcile.pointing import locate_findings, point_findings
from gitsched.reconcile.previous import Records, look_up, read_before
from gitsched.reconcile.reporting import list_recent, list_reporters
from gitsched.reconcile.settings import Run, Settings
from gitsched.reconcile.shelf import Head, Shelf, stamp
from gitsched.reconcile.snapshot import REGULAR, Book, Reader, Snapshot, read_config, read_tree
from gitsched.render.layout import ATTRIBUTES, METADATA, README, RECORD, kept_path
from gitsched.render.record import GITATTRIBUTES, Record

ALLOW_REMOVALS = "Gitsched-Allow-Removals"
"""The trailer of a source commit that lets the guard pass."""
FORGOTTEN_AFTER = 1_000
"""Versions of files that are remembered beyond twice those of the last whole plan."""


class Step(NamedTuple):
    """A plan, with the settings that it was made with; `shelve` makes its ledger, given the output tree that it led to."""

    plan: Plan
    config: Config
    shelve: Callable[[str], Shelf | None]


class Session:
    """A resident reconcile. Everything it remembers is found again from Git when it is lost."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._source = open_source(settings.location, cache=settings.cache)
        self._memo = Memo(settings.cache)
        self._bodies: dict[str, Body] = {}
        self._size = 0
        self._workspace = Workspace()
        self._shelf: Shelf | None = None
        self._written: tuple[str, Plan] | None = None
        self._book: Book | None = None
        self._heard = Observations()  # plans that are compared have to be made with the same values

    @property
    def source(self) -> Source:
        return self._source

    def watch_paths(self) -> list[Path]:
        """The directories and files in which a moving ref shows; none for a remote, which has to be asked."""
        if is_url(self.settings.location):
            return []
        common = Path(self._source.repository.common)
        return [path for path in (common / "refs" / "heads", common / "packed-refs", common / "HEAD") if path.exists()]

    def run(self, now: datetime, *, write: bool = True, whole: bool = False) -> Run:
        """Observe, plan and, unless only looking, commit. Raises Conflict when somebody else moved the output branch meanwhile.

        `whole` asks for a plan of everything, with what `explain` needs of it.
        """
        with undisturbed():
            observed = self.observe()
            step = (None if whole else self.amend(observed, now)) or self.plan(observed, now)
            run = self.write(observed, step, publish=write)
            self.save()
        return run

    def save(self) -> None:
        """Keep what was read, and what the next plan can go on from, for the next process."""
        self._memo.save()
        if self._shelf is not None:
            self._shelf.save()
        if len(self._memo) > 2 * self._size + FORGOTTEN_AFTER:
            # Former versions of files: a process that stays for months must not keep them all.
            self._memo.forget()
            self._bodies.clear()

    def observe(self, settled: Commit | None = None) -> Observed:
        """See `gitsched.reconcile.observing.observe`."""
        return observe(self.settings, self._source, self._memo, settled)

    def find(self, revision: str) -> Commit:
        """The commit that a branch, tag or id names; what is not here is looked for at the remote."""
        return find(self.settings, self._source, revision)

    def read_commit(self, commit: Commit) -> Snapshot:
        """The source as another commit has it, whatever the output branch keeps of broken files."""
        return read_tree(self._source.repository, commit.tree, self._memo, lambda _: (), self.settings.paths).snapshot

    def _check_output(self, commit: Commit, snapshot: Snapshot, output: Output, record: Record | None) -> None:
        """A gitsched.yaml that is broken must not send the decisions somewhere else than the last valid one did."""
        asked = self.settings.output_branch or snapshot.config.output.branch
        broken = read_config(self._source.repository, commit.tree, self._memo) is None
        if (
            broken
            and not self.settings.checking
            and self.settings.output_branch is None
            and (record is None or asked != output.branch)
        ):
            said = (*snapshot.beside, *snapshot.findings.get(FILE, ()))
            found = [f for f in said if f.severity == "error" and f.location is not None and f.location.path == FILE]
            # The one at the top says that the file holds no valid settings; any other says why.
            first = min(found, key=lambda f: (f.location == Location(FILE, 1, 1), f.location), default=None)
            place = f" ({first})" if first else ""
            raise Permanent(f"{FILE} is broken{place}, so nobody knows where the output is; mend it, or give --output-branch")

    def amend(self, observed: Observed, now: datetime) -> Step | None:
        """The plan as an amendment of the last one; None where that cannot be."""
        shelf, repository = self._open_shelf(observed), self._source.repository
        # It goes on while it is amended; whoever gives up on the way must not meet it half-way.
        self._shelf = None
        at, moment = self._moments(observed, now)
        if shelf is None or shelf.head.output != observed.tree or moment < shelf.head.sums.now:
            return None
        try:
            config = shelf.head.sums.config
            reader = Reader(repository, self._memo, config)
            edition = read_edition(repository, observed.source.tree, shelf, reader, moment)
            if edition is None:
                return None
            lookup = partial(look_up, observed.output.repository, observed.tree, observed.prefix)
            find = partial(find_document, repository, observed.source.tree, shelf, reader)
            templates = Templates(edition.documents, find, lambda: self._read_templates(observed))
            world = World(shelf.documents, templates, frozenset(), self.records(observed), config, at, moment)
            ledger = Ledger(shelf.head.sums, shelf, shelf.sessions)
            made = amend(ledger, edition, world, lookup, self._workspace.canvas)
        except Damaged:
            return None
        if made is None:
            return None

        def shelve(tree: str) -> Shelf:
            head = shelf.head._replace(source=observed.source.tree, output=tree, sums=made.sums)
            shelf.amend(made.traces, made.places, head)
            return shelf

        outcomes = Recalled(made.plan.outcomes, lambda: self.plan(observed, now).plan.outcomes)
        return Step(self._point(made.plan._replace(outcomes=outcomes)), config, shelve)

    def _point(self, planned: Plan) -> Plan:
        """The plan with the lines of what its findings are about."""
        if not any(finding.rule for finding in planned.findings):
            return planned
        return planned._replace(findings=tuple(sorted(point_findings(planned.findings, self._source.repository), key=rank)))

    def plan(self, observed: Observed, now: datetime) -> Step:
        """The whole plan, anew."""
        snapshot, (at, moment) = self.read(observed), self._moments(observed, now)
        self._check_output(observed.source, snapshot, observed.output, observed.record)
        before, config = self._before(observed), snapshot.config
        gathered = self._gather(observed, snapshot, now)
        beside = (*snapshot.beside, *gathered.findings)
        source = Input(
            snapshot.documents, snapshot.findings, beside, before, config, at, moment, snapshot.kept, gathered.observations
        )
        planned = self._point(plan(source, self._workspace))
        self._size = len(self._memo)

        def shelve(tree: str) -> Shelf | None:
            details, book = planned.details, self._book
            if details is None or book is None or not book.whole or book.tree != observed.source.tree:
                return None
            if gathered != Gathered(Observations()) or gathered.observations.time is not None:
                return None  # what others say is asked for anew each time, and may change anything
            decided, picture = details
            sums = sum_up(decided, picture, source, snapshot.findings, planned.retiring)
            if sums is None:
                return None
            head = Head(self._stamp(observed), book.tree, tree, tuple(decided.catalog.settings), sums)
            resumes = {api.name for api in APIS if api.resumes}
            shelf = Shelf(self._shelf_path(observed), head, lasting=all(session.name in resumes for session in decided.sessions))
            shelf.fill(book.pages, *list_rows(decided, picture), decided.catalog.settings, decided.sessions)
            return shelf

        return Step(planned, config, shelve)

    def _gather(self, observed: Observed, snapshot: Snapshot, now: datetime) -> Gathered:
        """What metrics say: once for each run."""
        settings = self.settings
        manner = Manner(
            live=settings.observations == "live",
            hosts=settings.hosts,
            timeout=snapshot.config.observations.timeout,
            trusted=None if settings.trusted else lambda: self._followed(observed),
            vouched=observed.vouched,
        )
        core = [loose for loose in snapshot.documents if loose.group == "core" and not loose.broken]
        heard = Observations() if settings.trusted else self._heard
        gathered = gather((loose.body for loose in core), observed.record, manner, now, heard)
        gathered = gathered._replace(findings=locate_findings(gathered.findings, core))
        forge = snapshot.config.observations.statuses
        clusters = list_reporters(snapshot) if forge is not None else set[str]()
        recent = list_recent(observed.output.repository, observed.head)
        return gather_statuses(gathered, forge, recent, clusters, observed.record, manner, now)

    def _followed(self, observed: Observed) -> list[Body]:
        """The documents of the commit that the output branch was made from: somebody who may has let them in."""
        record, repository = observed.record, self._source.repository
        if record is None or not record.source or not self._source.fetch_commit(record.source):
            return []
        tree = repository.commit(record.source).tree
        return [loose.body for loose in read_tree(repository, tree, self._memo, lambda _: ()).snapshot.documents]

    def write(self, observed: Observed, step: Step, *, publish: bool) -> Run:
        """The output tree of a plan, and its commit when it differs."""
        output, source, planned = observed.output, observed.source, step.plan
        repository, tree = output.repository, self._write_tree(observed, planned)
        changed = tree != observed.tree
        allowed = self.settings.allow_removals or any(name == ALLOW_REMOVALS and text == "true" for name, text in source.trailers)
        run = Run(source.oid, observed.head, None, planned, output.branch, output.remote or repository.place, changed, tree=tree)
        # A plan that amends the last one keeps all records that belong to no workload.
        if changed and planned.whole:
            choices = compare_choices(read_choices(self.records(observed)), list_choices(planned.decided))
            run = run._replace(choices=choices)
        if planned.refusal and not allowed:
            return run._replace(refused=planned.refusal)
        run = check_review(self.settings, observed, run)
        if run.refused:
            return run
        if not publish:
            return run
        note = note_of(source.oid)
        if not changed:
            if observed.head and repository.noted(observed.head) != note and source.oid:
                output.publish(observed.head, observed.head, note)
            # Since when a cluster retires is told by the record, which is only written with a commit.
            same = observed.record is not None and observed.record.retiring == planned.retiring
            self._shelf = step.shelve(observed.tree) if observed.tree and same else None
            return run
        parts = {name for name, _ in self._parts(observed, observed.tree) ^ self._parts(observed, tree)}
        tree = self._plant(observed, front_files(source, planned, self._source.url, __version__), tree)
        commit = self._commit_output(observed, step, tree, parts)
        mine = output.publish(commit, observed.head, note)
        self._shelf = step.shelve(tree)
        self._written = (tree, planned) if planned.whole else None
        # Another process has decided the same and was faster: the output is as it should be, and that was not our doing.
        return run._replace(after=commit) if mine else run._replace(changed=False)

    def read(self, observed: Observed) -> Snapshot:
        """The whole source."""
        self._book = read_tree(
            self._source.repository,
            observed.source.tree,
            self._memo,
            lambda path: self._last_valid(path, observed),
            self.settings.paths,
            self._book,
        )
        return self._book.snapshot

    def _moments(self, observed: Observed, now: datetime) -> tuple[datetime, datetime]:
        """The moment of the source, and the one that deadlines are compared with."""
        # A run over a commit that an earlier run has seen goes on from the last event, else deadlines long past would be met once more.
        reached = min(observed.record.time, now) if observed.record else EPOCH
        # A clock that runs ahead must not start timers, or end them, before their time: a commit from the future counts as made now.
        at = max(min(observed.source.time, now), reached)
        return at, max(now, at)

    def records(self, observed: Observed) -> Records:
        """What was decided before, as the output branch has it."""
        return Records(observed.output.repository, observed.tree, observed.prefix, self._memo, self._bodies)

    def _before(self, observed: Observed) -> Before:
        records = self.records(observed)
        if self._written is not None and self._written[0] == observed.tree:
            # What this process wrote itself need not be read.
            records.learn(document for outcome in self._written[1].outcomes.values() for document in outcome.documents)
        self._written = None
        records.prefetch()
        return read_before(observed.output.repository, observed.tree, observed.prefix, records, observed.record)

    def _open_shelf(self, observed: Observed) -> Shelf | None:
        known = self._shelf is not None and self._shelf.head.stamp == self._stamp(observed)
        return self._shelf if known else Shelf.open(self._shelf_path(observed), self._stamp(observed))

    def _stamp(self, observed: Observed) -> str:
        return stamp(self._source.repository.common, observed.output, observed.prefix, self.settings.paths)

    def _shelf_path(self, observed: Observed) -> Path:
        return self.settings.cache / f"plan-{self._stamp(observed)[:32]}.sqlite3"

    def _write_tree(self, observed: Observed, planned: Plan) -> str:
        """The output tree of a plan, as yet with the front page of the last commit: nothing else has changed where it is the last tree."""
        if not planned.whole:
            return self._plant(observed, planned.files, observed.tree)
        front: dict[str, PlannedFile | None] = {}
        base = None
        if observed.tree:
            repository = observed.output.repository
            held = repository.listing(observed.tree, observed.prefix.rstrip("/"))
            front = {name: Keep(held[name][0]) for name in (README, RECORD, METADATA) if name in held and held[name][1] in REGULAR}
            if observed.prefix:
                root = {observed.prefix.rstrip("/"): None}
                base = repository.write(root, base=observed.tree, read=self._source.repository)
        return self._plant(observed, {**planned.files, ATTRIBUTES: GITATTRIBUTES, **front}, base)

    def _plant(self, observed: Observed, files: Mapping[str, PlannedFile | None], base: str | None) -> str:
        prefix = observed.prefix
        planted = {f"{prefix}{path}": file for path, file in files.items()} if prefix else files
        return observed.output.repository.write(planted, base=base, read=self._source.repository)

    def _parts(self, observed: Observed, tree: str | None) -> set[tuple[str, tuple[str, int]]]:
        """What stands at the root of an output tree."""
        return set(observed.output.repository.listing(tree, observed.prefix.rstrip("/")).items()) if tree else set()

    def _read_templates(self, observed: Observed) -> Mapping[Key, Document]:
        snapshot = self.read(observed)
        return build_catalog(snapshot.documents, snapshot.config.kinds, RESERVED).templates

    def _commit_output(self, observed: Observed, step: Step, tree: str, parts: set[str]) -> str:
        config, settings, planned = step.config.output, self.settings, step.plan
        name, email = settings.author or (config.author.name, config.author.email)
        signing = settings.signing or ((config.signing.format, config.signing.key) if config.signing else None)
        repository = observed.output.repository
        signer = make_signer(repository, format=signing[0], key=signing[1]) if signing else None
        parents = (observed.head,) if observed.head else ()
        text = message(observed.source, planned, parts, __version__)
        time = max(planned.time, repository.commit(observed.head).time) if observed.head else planned.time
        return repository.commit_tree(tree, parents, text, name=name, email=email, time=time, sign=signer)

    def _last_valid(self, path: str, observed: Observed) -> Iterator[tuple[Repository, str]]:
        """Earlier bytes of a source file: as the last reconcile saw it, then as the output branch keeps it."""
        repository, kept_in, record = self._source.repository, observed.output.repository, observed.record
        if record is not None and record.source and self._source.fetch_commit(record.source):
            entry = repository.entry(repository.commit(record.source).tree, path)
            if entry is not None:
                yield repository, entry[0]
        kept = kept_in.entry(observed.tree, f"{observed.prefix}{kept_path(path)}") if observed.tree else None
        if kept is not None:
            yield kept_in, kept[0]
