"""One source and one output over any number of runs, with what earlier runs can spare the next one."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from gitsched import __version__
from gitsched.apis.gitsched.config import FILE, Config
from gitsched.apis.ocm.names import CLUSTER as MANAGED_CLUSTER
from gitsched.apis.ocm.names import GROUP as OCM_GROUP
from gitsched.apis.ocm.names import REPLICA_SET
from gitsched.apis.ocm.rollout import follows_reports
from gitsched.git import Commit, Output, Repository, Source, is_url, make_signer, open_output, open_source
from gitsched.git.process import run_git
from gitsched.model.document import Body
from gitsched.model.errors import Permanent
from gitsched.model.files import PlannedFile
from gitsched.model.finding import Location, rank
from gitsched.model.time import EPOCH
from gitsched.plan.planning import Input, Plan, Workspace, plan
from gitsched.plan.rendering import Files
from gitsched.reconcile.front import front_files, message
from gitsched.reconcile.memo import Memo
from gitsched.reconcile.observations import Gathered, Manner, gather, gather_statuses
from gitsched.reconcile.pointing import point_findings
from gitsched.reconcile.previous import Records, read_before, read_record
from gitsched.reconcile.settings import Run, Settings
from gitsched.reconcile.snapshot import Book, Snapshot, read_config, read_tree
from gitsched.render.layout import ATTRIBUTES, METADATA, README, RECORD, kept_path
from gitsched.render.record import GITATTRIBUTES, Record

ALLOW_REMOVALS = "Gitsched-Allow-Removals"
"""The trailer of a source commit that lets the guard pass."""


LOOKED_BACK = 5
"""Output commits that are asked for what clusters reported of them."""


class Observed(NamedTuple):
    """What a run starts from. `prefix` is where the output lies inside its branch: "" or "path/"."""

    source: Commit
    snapshot: Snapshot
    output: Output
    head: str | None
    tree: str | None
    prefix: str
    record: Record | None


class Written(NamedTuple):
    """The groups of files that an output tree was written from."""

    tree: str
    groups: Mapping[str, Files]


class Session:
    """A resident reconcile. Everything it remembers is found again from Git when it is lost."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._source = open_source(settings.location, cache=settings.cache)
        self._memo = Memo(settings.cache)
        self._bodies: dict[str, Body] = {}
        self._workspace = Workspace()
        self._written: Written | None = None
        self._book: Book | None = None
        self._familiar: set[str | None] = set()

    @property
    def source(self) -> Source:
        return self._source

    def watch_paths(self) -> list[Path]:
        """The directories and files in which a moving ref shows; none for a remote, which has to be asked."""
        if is_url(self.settings.location):
            return []
        common = Path(self._source.repository.common)
        return [path for path in (common / "refs" / "heads", common / "packed-refs", common / "HEAD") if path.exists()]

    def run(self, now: datetime, *, write: bool = True) -> Run:
        """Observe, plan and, unless only looking, commit. Raises Conflict when somebody else moved the output branch meanwhile."""
        # Documents are millions of small objects without cycles; looking through them for cycles takes longer than planning.
        collecting = gc.isenabled()
        gc.disable()
        try:
            observed = self.observe()
            planned = self.plan(observed, now)
            run = self.write(observed, planned, publish=write)
            self._memo.save()
        finally:
            gc.freeze()
            if collecting:
                gc.enable()
        return run

    def observe(self) -> Observed:
        """Fetch both ends and read the source."""
        settings, source = self.settings, self._source
        branch = settings.branch or self._configured_branch()
        source.fetch(branch)
        commit = self._commit(branch)
        record, output, head, tree, prefix = self._observe_output(commit)
        repository = source.repository
        self._book = read_tree(
            repository,
            commit.tree,
            self._memo,
            lambda path: self._last_valid(path, output, tree, prefix, record),
            settings.paths,
            self._book,
        )
        self._check_output(commit, self._book.snapshot, output, record)
        return Observed(commit, self._book.snapshot, output, head, tree, prefix, record)

    def _check_output(self, commit: Commit, snapshot: Snapshot, output: Output, record: Record | None) -> None:
        """A gitsched.yaml that is broken must not send the decisions somewhere else than the last valid one did."""
        asked = self.settings.output_branch or snapshot.config.output.branch
        broken = read_config(self._source.repository, commit.tree, self._memo) is None
        if broken and self.settings.output_branch is None and (record is None or asked != output.branch):
            found = [f for f in snapshot.findings if f.severity == "error" and f.location is not None and f.location.path == FILE]
            # The one at the top says that the file holds no valid settings; any other says why.
            first = min(found, key=lambda f: (f.location == Location(FILE, 1, 1), f.location), default=None)
            place = f" ({first})" if first else ""
            raise Permanent(f"{FILE} is broken{place}, so nobody knows where the output is; mend it, or name the output branch")

    def plan(self, observed: Observed, now: datetime) -> Plan:
        """The pure part, and the lines of what its findings are about."""
        repository = observed.output.repository
        records = Records(repository, observed.tree, observed.prefix, self._memo, self._bodies)
        before = read_before(repository, observed.tree, observed.prefix, records, observed.record)
        snapshot = observed.snapshot
        # A run over a commit that an earlier run has seen goes on from the last event, else deadlines long past would be met once more.
        reached = min(observed.record.time, now) if observed.record else EPOCH
        # A clock that runs ahead must not start timers, or end them, before their time: a commit from the future counts as made now.
        at = max(min(observed.source.time, now), reached)
        continues = observed.tree in self._familiar
        gathered = self._gather(observed, now)
        source = Input(
            documents=snapshot.documents,
            findings=(*snapshot.findings, *gathered.findings),
            before=before,
            config=snapshot.config,
            at=at,
            now=max(now, at),
            kept=snapshot.kept,
            continues=continues,
            observations=gathered.observations,
        )
        self._familiar = {observed.tree}
        planned = plan(source, self._workspace)
        if not any(finding.rule for finding in planned.findings):
            return planned
        return planned._replace(findings=tuple(sorted(point_findings(planned.findings, self._source.repository), key=rank)))

    def _gather(self, observed: Observed, now: datetime) -> Gathered:
        """What metrics say: once for each run."""
        settings, snapshot = self.settings, observed.snapshot
        manner = Manner(
            live=settings.observations == "live",
            hosts=settings.hosts,
            timeout=snapshot.config.observations.timeout,
            trusted=None if settings.trusted else lambda: self._followed(observed),
        )
        bodies = (loose.body for loose in snapshot.documents if loose.group == "core" and not loose.broken)
        gathered = gather(bodies, observed.record, manner, now)
        forge, clusters = snapshot.config.observations.statuses, set[str]()
        if forge is not None and any(follows_reports(loose.body) for loose in snapshot.documents if loose.kind == REPLICA_SET):
            clusters = {loose.name for loose in snapshot.documents if (loose.group, loose.kind) == (OCM_GROUP, MANAGED_CLUSTER)}
        return gather_statuses(gathered, forge, self._recent(observed), clusters, observed.record, manner, now)

    def _recent(self, observed: Observed) -> Iterator[tuple[str, datetime]]:
        """The latest commits of the output, the newest first: clusters that are slow still speak of the one before."""
        head, repository = observed.head, observed.output.repository
        for _ in range(LOOKED_BACK):
            if not head or not repository.has(head):
                break
            commit = repository.commit(head)
            yield head, commit.time
            head = commit.parents[0] if commit.parents else None

    def _followed(self, observed: Observed) -> list[Body]:
        """The documents of the commit that the output branch was made from: somebody who may has let them in."""
        record, repository = observed.record, self._source.repository
        if record is None or not record.source or not self._source.fetch_commit(record.source):
            return []
        tree = repository.commit(record.source).tree
        return [loose.body for loose in read_tree(repository, tree, self._memo, lambda _: ()).snapshot.documents]

    def write(self, observed: Observed, planned: Plan, *, publish: bool) -> Run:
        """The output tree of a plan, and its commit when it differs."""
        output, source = observed.output, observed.source
        repository, front = output.repository, (README, RECORD, METADATA)
        groups = {**planned.groups, "attributes": {ATTRIBUTES: GITATTRIBUTES}}
        bare = self._plant(repository, dict.fromkeys(front), observed.tree, observed.prefix) if observed.tree else None
        tree = self._write_groups(repository, groups, observed, bare)
        changed = tree != bare
        allowed = self.settings.allow_removals or any(name == ALLOW_REMOVALS and text == "true" for name, text in source.trailers)
        run = Run(source.oid, observed.head, None, planned, output.branch, output.remote or repository.place, changed)
        if planned.refusal and not allowed:
            return run._replace(refused=planned.refusal)
        if not publish:
            return run
        note = f'{{"drySha":"{source.oid}"}}\n'
        if not changed:
            if observed.head and repository.noted(observed.head) != note and source.oid:
                output.publish(observed.head, observed.head, note)
            self._written = Written(observed.tree, groups) if observed.tree else None
            return run
        planted = tree
        files = front_files(observed.source, planned, self._source.url, __version__)
        tree = self._plant(repository, files, tree, observed.prefix)
        before = set(repository.listing(bare, observed.prefix.rstrip("/")).items()) if bare else set()
        changed_parts = {name for name, _ in before ^ set(repository.listing(planted, observed.prefix.rstrip("/")).items())}
        commit = self._commit_output(observed, planned, tree, changed_parts)
        mine = output.publish(commit, observed.head, note)
        self._written = Written(tree, groups)
        self._familiar.add(tree)
        records = Records(repository, tree, observed.prefix, self._memo, self._bodies)
        anew = planned.decided.dirty & planned.outcomes.keys()
        records.learn(document for key in anew for document in planned.outcomes[key].documents)
        # Another process has decided the same and was faster: the output is as it should be, and that was not our doing.
        return run._replace(after=commit) if mine else run._replace(changed=False)

    def _write_groups(self, repository: Repository, groups: Mapping[str, Files], observed: Observed, bare: str | None) -> str:
        """The tree without the front page: only what differs from the last tree when that is the one we wrote."""
        written = self._written
        if written is not None and bare is not None and written.tree == observed.tree:
            return self._plant(repository, _difference(written.groups, groups), bare, observed.prefix)
        everything = {path: file for files in groups.values() for path, file in files.items()}
        base = None
        if observed.prefix and observed.tree:
            base = repository.write({observed.prefix.rstrip("/"): None}, base=observed.tree, read=self._source.repository)
        return self._plant(repository, everything, base, observed.prefix)

    def _plant(self, repository: Repository, files: Mapping[str, PlannedFile | None], base: str | None, prefix: str) -> str:
        planted = {f"{prefix}{path}": file for path, file in files.items()} if prefix else files
        return repository.write(planted, base=base, read=self._source.repository)

    def _commit_output(self, observed: Observed, planned: Plan, tree: str, parts: set[str]) -> str:
        config, settings = observed.snapshot.config.output, self.settings
        name, email = settings.author or (config.author.name, config.author.email)
        signing = settings.signing or ((config.signing.format, config.signing.key) if config.signing else None)
        repository = observed.output.repository
        signer = make_signer(repository, format=signing[0], key=signing[1]) if signing else None
        parents = (observed.head,) if observed.head else ()
        text = message(observed.source, planned, parts, __version__)
        time = max(planned.time, repository.commit(observed.head).time) if observed.head else planned.time
        return repository.commit_tree(tree, parents, text, name=name, email=email, time=time, sign=signer)

    def _configured_branch(self) -> str | None:
        """The branch that gitsched.yaml on HEAD asks for; HEAD's own without one."""
        if is_url(self.settings.location):
            return None
        repository = self._source.repository
        head = repository.resolve("HEAD")
        if head is None:
            return None
        return (read_config(repository, repository.commit(head).tree, self._memo) or Config()).source.branch or None

    def _commit(self, branch: str | None) -> Commit:
        repository, settings = self._source.repository, self.settings
        if settings.worktree and repository.resolve("HEAD") is None:
            return Commit("", _worktree(repository), (), settings.now, "files not committed yet", "", ())
        oid = self._source.head(branch)
        if settings.revision is not None:
            found = repository.resolve(settings.revision)
            if found is None:
                raise Permanent(f"there is no revision {settings.revision!r} in {repository.place}")
            oid = found
        commit = repository.commit(oid)
        if settings.worktree:
            return commit._replace(oid="", tree=_worktree(repository))
        return commit

    def _observe_output(self, commit: Commit) -> tuple[Record | None, Output, str | None, str | None, str]:
        config = (read_config(self._source.repository, commit.tree, self._memo) or Config()).output
        settings = self.settings
        push = settings.push or ("origin" if config.push and not is_url(settings.location) and not config.repository else None)
        output = open_output(
            self._source,
            branch=settings.output_branch or config.branch,
            location=settings.output or config.repository or None,
            push=push,
            cache=settings.cache,
        )
        head = output.observe()
        tree = output.repository.commit(head).tree if head else None
        prefix = f"{config.path}/" if config.path else ""
        return read_record(output.repository, tree, prefix), output, head, tree, prefix

    def _last_valid(
        self, path: str, output: Output, tree: str | None, prefix: str, record: Record | None
    ) -> Iterator[tuple[Repository, str]]:
        """Earlier bytes of a source file: as the last reconcile saw it, then as the output branch keeps it."""
        repository = self._source.repository
        if record is not None and record.source and self._source.fetch_commit(record.source):
            entry = repository.entry(repository.commit(record.source).tree, path)
            if entry is not None:
                yield repository, entry[0]
        kept = output.repository.entry(tree, f"{prefix}{kept_path(path)}") if tree else None
        if kept is not None:
            yield output.repository, kept[0]


def _difference(before: Mapping[str, Files], after: Mapping[str, Files]) -> dict[str, PlannedFile | None]:
    """What to write so that the one becomes the other; groups that are the same object are not looked into."""
    changes: dict[str, PlannedFile | None] = {}
    for name, files in before.items():
        if after.get(name) is not files:
            changes.update(dict.fromkeys(files))
    for name, files in after.items():
        known = before.get(name)
        if known is files:
            continue
        for path, file in files.items():
            if known is not None and known.get(path) == file:
                changes.pop(path, None)
            else:
                changes[path] = file
    return changes


def _worktree(repository: Repository) -> str:
    """The tree of the files as they lie in the work tree, ignored ones left out; the index is not touched."""
    with tempfile.TemporaryDirectory() as directory:
        index = {"GIT_INDEX_FILE": str(Path(directory) / "index")}
        for arguments in (["add", "--all", "--", "."], ["write-tree"]):
            done = run_git(arguments, at=repository.place, more=index)
            if done.code != 0:
                raise Permanent(f"the files of {repository.place} cannot be read: {done.err.strip()}")
        return done.out.strip()
