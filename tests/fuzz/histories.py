"""Histories of a source as text, and what must hold after each commit: in runs, plans, comparisons and adoptions.

A line `# file: PATH` begins a file, `# remove: PATH` removes one, `# output: PATH` begins a file that somebody edits in the output branch,
`# branch: NAME` a file facts.yaml on a facts branch, `# dump` a dump to adopt from, and `# commit` ends a commit.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch
from zlib import crc32

import pygit2

from gitsched.git.repository import Repository
from gitsched.model.errors import GitschedError
from gitsched.model.finding import Finding
from gitsched.reconcile import Reconciler, RunResult, RunSettings, preview
from gitsched.reconcile.adoption.running_fleet import AdoptionInputs, adopt
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.render.output_files import METADATA_FILES

from .garbage import GARBAGE, NAME

START = datetime(2026, 1, 2, tzinfo=UTC)
MAX_COMMITS = 4
_MARKS = (b"# file: ", b"# remove: ", b"# output: ", b"# branch: ", b"# dump", b"# commit")
_OUTPUT = "refs/heads/placements"
_OTHER_FILES = (*METADATA_FILES, "kept/", "status/gitsched.io/decisionbasis/")


class Change(NamedTuple):
    """A part of a commit: what it is (a word of the format), of which path, and its text."""

    word: str
    path: str
    text: bytes


def split_history(data: bytes) -> list[list[Change]]:
    """Return the commits of a history; text without a mark is the file a.yaml."""
    commits: list[list[Change]] = [[]]
    word, path, lines = "file", "a.yaml", list[bytes]()

    def end() -> None:
        text = b"\n".join(lines)
        if text.strip() or word != "file":
            commits[-1].append(Change(word, path, text))
        lines.clear()

    for line in data.split(b"\n"):
        mark = next((mark for mark in _MARKS if line.startswith(mark)), None)
        if mark is None:
            lines.append(line)
            continue
        end()
        word, path = mark.decode().strip("# :"), line[len(mark) :].strip().decode("utf-8", "replace") or "a.yaml"
        if word == "commit":
            commits.append([])
            word, path = "file", "a.yaml"
    end()
    return [commit for commit in commits if commit][:MAX_COMMITS]


class SourceHistory:
    """A bare repository with a source branch, facts branches and the output branch."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "source.git"
        self.repository = pygit2.init_repository(self.path, bare=True, initial_head="main")
        self.cache = directory / "cache"
        self.dump = directory / "dump.yaml"
        self._files: dict[str, bytes] = {}

    def settings(self, now: datetime) -> RunSettings:
        return RunSettings(now=now, cache=self.cache, location=str(self.path), observations="recorded")

    def commit(self, changes: list[Change], now: datetime) -> None:
        for change in changes:
            if change.word == "file":
                self._files[change.path] = change.text
            elif change.word == "remove":
                self._files.pop(change.path, None)
            elif change.word == "branch":
                with contextlib.suppress(pygit2.GitError, ValueError, KeyError):
                    self.write(f"refs/heads/{change.path}", {"facts.yaml": change.text}, now)
            elif change.word == "output" and _OUTPUT in self.repository.references:
                self.write(_OUTPUT, {change.path: change.text}, now, keep=True)
            elif change.word == "dump":
                self.dump.write_bytes(change.text)
        self.write("refs/heads/main", self._files, now)

    def write(self, ref: str, files: dict[str, bytes], now: datetime, *, keep: bool = False) -> pygit2.Oid:
        """Commit files to a ref; with `keep`, beside those of its head."""
        tree = self.write_tree(files, self.repository.references[ref].peel(pygit2.Tree) if keep else None)
        parents = [self.repository.references[ref].target] if ref in self.repository.references else []
        return self.repository.create_commit(ref, *self._sign(now), "Change", tree, parents)

    def write_beside(self, path: str, data: bytes, now: datetime) -> str:
        """Write the commit that differs from the head of the source by one more file and no time; no ref moves."""
        tree, parents = self.write_tree({**self._files, path: data}), [self.repository.references["refs/heads/main"].target]
        head = self.repository[parents[0]]
        assert isinstance(head, pygit2.Commit)
        return str(self.repository.create_commit(None, head.author, head.committer, "Change", tree, head.parent_ids))

    def write_tree(self, files: dict[str, bytes], base: pygit2.Tree | None = None) -> pygit2.Oid:
        index = pygit2.Index()
        if base is not None:
            index.read_tree(base)
        for path, data in files.items():
            with contextlib.suppress(pygit2.GitError, ValueError, OSError):  # a path that Git does not have
                index.add(pygit2.IndexEntry(path, self.repository.create_blob(data), pygit2.enums.FileMode.BLOB))
        return index.write_tree(self.repository)

    def _sign(self, now: datetime) -> tuple[pygit2.Signature, pygit2.Signature]:
        signature = pygit2.Signature("Ada", "ada@example.com", int(now.timestamp()), 0)
        return signature, signature

    def list_files(self, tree: str) -> dict[str, str]:
        """Return the decided files of an output tree, with their blobs: all but what describes the run and its input."""
        index = pygit2.Index()
        if tree:
            index.read_tree(self.repository[tree].peel(pygit2.Tree))
        return {entry.path: str(entry.id) for entry in index if not entry.path.startswith(_OTHER_FILES)}

    def read(self, blob: str) -> bytes:
        """Return a file without the messages of Karmada's scheduler that count all clusters, also broken ones."""
        return _CLUSTER_COUNTS.sub(b"", self.repository[blob].peel(pygit2.Blob).data)


def check_history(data: bytes) -> int:
    """Reconcile each commit of a history; return the number of files."""
    commits, count = split_history(data), 0
    with (
        tempfile.TemporaryDirectory(prefix="gitsched-fuzz-", dir=_find_directory()) as name,
        patch.object(Repository, "make_tree", Repository.write_tree),  # the trees of previews are read here
    ):
        history = SourceHistory(Path(name))
        resident: Reconciler | None = None
        for number, changes in enumerate(commits):
            now = START + timedelta(minutes=40 * number)
            history.commit(changes, now)
            count += len(changes)
            with contextlib.suppress(GitschedError):
                resident = resident or Reconciler(history.settings(now))
                _check_commit(history, resident, now, crc32(data) + number)
    return max(1, count)


_CLUSTER_COUNTS = re.compile(rb"\d+/\d+ clusters are available: .*")


def _find_directory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _check_commit(history: SourceHistory, resident: Reconciler, now: datetime, number: int) -> None:
    fresh = preview(history.settings(now)._replace(cache=history.cache / "fresh"))
    if number % 3 == 0:
        _check_garbage(history, fresh, now, GARBAGE[number // 3 % len(GARBAGE)])
    if number % 3 == 1:
        compare_plans(history.settings(now))
        parents = history.repository.revparse_single("main").parents  # type: ignore[union-attr]
        if parents:
            compare_plans(history.settings(now)._replace(revision="main"), str(parents[0].id))
    if history.dump.exists():
        _check_adoption(history, now, GARBAGE[number % len(GARBAGE)])
    before = history.repository.references[_OUTPUT].target if _OUTPUT in history.repository.references else None
    run = resident.run(now)
    _check_findings(run)
    if fresh.plan.withheld.digest == run.plan.withheld.digest == "":
        assert history.list_files(run.tree) == history.list_files(fresh.tree), "a resident run decides otherwise than a fresh one"
    if run.after is not None:
        written = history.repository[run.after]
        assert isinstance(written, pygit2.Commit)
        assert list(written.parent_ids) == ([before] if before else []), "one parent: the head that was read"
    resident.run(now)  # Tenants and looser settings count from the run after the one that reads them
    again = resident.run(now)
    assert again.after is None, f"a third run commits again: {[str(move) for move in again.plan.moves]}"
    assert not again.changed


def _check_garbage(history: SourceHistory, expected: RunResult, now: datetime, garbage: bytes) -> None:
    """Plan with one more file that nobody can use: all else stays."""
    revision = history.write_beside(f"zz/{NAME}.yaml", garbage, now)
    found = preview(history.settings(now)._replace(cache=history.cache / "fresh", revision=revision))
    _check_findings(found)
    if any(finding.code == "rollout-broken" for finding in found.plan.findings):
        return  # a Rollout that was never valid holds what it may name
    files = {path: blob for path, blob in history.list_files(found.tree).items() if NAME not in path}
    before = history.list_files(expected.tree)
    selected = [found.plan.outcomes[key] for key in found.plan.outcomes.keys() - expected.plan.outcomes.keys()]
    if selected:  # the first document of an API activates it, also a broken one: then a workload waits for the policy that it names
        assert all(outcome.state == "pending" and not outcome.targets for outcome in selected), (
            f"other decisions beside {garbage!r}"
        )
        files, before = _select_cluster_files(files), _select_cluster_files(before)
    differing = {path for path in {*files, *before} if files.get(path) != before.get(path)}
    assert files.keys() == before.keys(), f"other decisions beside {garbage!r}"
    assert [path for path in differing if history.read(files[path]) != history.read(before[path])] == [], f"beside {garbage!r}"


def _select_cluster_files(files: dict[str, str]) -> dict[str, str]:
    return {path: blob for path, blob in files.items() if "clusters" in path.split("/")}


def _check_adoption(history: SourceHistory, now: datetime, garbage: bytes) -> None:
    """Adopt from the dump, and once more with a dump that nobody can use."""
    other = history.dump.with_name(f"{NAME}.yaml")
    other.write_bytes(garbage)
    results = []
    for dumps in ((str(history.dump),), (str(history.dump), str(other))):
        try:
            found = adopt(history.settings(now), AdoptionInputs(dumps), dry_run=True)
            results.append(
                (found.adoption.in_place, [one.key for one in found.adoption.moving], [one.key for one in found.adoption.new])
            )
        except GitschedError:
            results.append((-1, [], []))
    assert results[0] == results[1] or results[0][0] == -1, f"another adoption beside {garbage!r}"


def _check_findings(run: RunResult) -> None:
    for finding in _list_findings(run):
        assert finding.code != "internal-error", finding


def _list_findings(run: RunResult) -> Iterator[Finding]:
    yield from run.plan.findings
    for outcome in run.plan.outcomes.values():
        yield from outcome.findings
