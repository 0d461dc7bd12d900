"""Whatever people, writers, clocks and garbage collection do to a shared repository, in any order: nothing is lost, and runs converge.

The assertions, after each step: the head of the output is old or new and complete; each output commit has one parent, the head that its
writer observed; no commit of a person is lost; the same inputs give the same files; a run without changes makes no commit; a failed run
moves nothing; workloads get the replicas that they demand; no lock, temporary file or open file stays; time, memory and the size of the
output are bounded. At the end all writers converge.
"""

from __future__ import annotations

import gc
import logging
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from gitsched.model.errors import GitschedError
from gitsched.reconcile import RunResult
from tests.builders.ocm import bound_global_set, managed_cluster, placed_config_map, placement, to_yaml
from tests.search_depth import DEEP, count_examples

from .conftest import START, UNGUARDED, cluster, deployment, policy
from .shared_repository import OUTPUT, SOURCE, Killed, SharedRepository, check_output, check_replicas, count_open_files

SITE = """\
api: kubernetes
kind: Cluster
metadata: {name: %s, namespace: default}
spec: {kubeconfig: {contexts: [{name: c}], clusters: [{name: c}], users: [{name: u}]}}
status: {state: ONLINE}
"""
APPLICATION = """\
api: kubernetes
kind: Application
metadata: {name: echo, namespace: default}
spec: {manifest: %s}
"""
CONFIG = "[{apiVersion: v1, kind: ConfigMap, metadata: {name: echo, namespace: default}}]"
FLEET = to_yaml(managed_cluster("ash"), managed_cluster("bru"), *bound_global_set("default"))
TOLERANT = "    clusterTolerations: [{key: power, effect: NoExecute, operator: Exists, tolerationSeconds: 1800}]\n"
BROKEN = "kind: [\n"
VERSIONS: dict[str, tuple[str | None, ...]] = {
    "apps/web.yaml": (deployment("web"), deployment("web", 5), deployment("web", "${REPLICAS}"), BROKEN, None),
    "apps/db.yaml": (deployment("db"), deployment("db", 3), "5\n", None),
    "policies/all.yaml": (
        policy("first", "second", more=TOLERANT),
        policy("", scheduling="Divided"),
        policy("second,third"),
        policy("first").replace("clusterAffinities", "clusterAffinitys"),
        None,
    ),
    "clusters/first.yaml": (cluster("first"), cluster("first", "power:NoExecute"), BROKEN, None),
    "clusters/second.yaml": (cluster("second"), cluster("second", "disk:NoSchedule"), None),
    "clusters/third.yaml": (cluster("third"), None),
    "ocm/fleet.yaml": (FLEET, FLEET + to_yaml(managed_cluster("cph")), None),
    "ocm/placement.yaml": (
        to_yaml(placement("web", "default", 1), placed_config_map("map", "default", "web")),
        to_yaml(placement("web", "default", 2), placed_config_map("map", "default", "web")),
        to_yaml({**placement("web", "default", 1), "spec": 5}),
        None,
    ),
    "krake/sites.yaml": (f"{SITE % 'near'}---\n{SITE % 'far'}", SITE % "far", None),
    "krake/echo.yaml": (APPLICATION % CONFIG, APPLICATION % "5", APPLICATION % "[{metadata: [1]}]", None),
    "gitsched.yaml": (UNGUARDED, UNGUARDED + "  output: {retireAfter: 10m}\n", BROKEN),
}
"""The content that each source file can have; None: no such file."""
FIRST = {path: text for path, (text, *_) in VERSIONS.items() if text is not None}
WRITERS = st.sampled_from(["ann", "bob", "resident"])
MAX_SECONDS, MAX_OUTPUT, MAX_KIB = 10.0, 200_000, 300_000
"""Seconds of the processor for one run, bytes of an output, and growth of the memory of this process over all examples in KiB."""
CLONES = st.sampled_from(["ann", "bob"])
EDITS = st.sampled_from([(path, number) for path, texts in VERSIONS.items() for number in range(len(texts))])


class SharedRepositoryMachine(RuleBasedStateMachine):
    """`kept` are the output commits that every later head must contain; `time` is the clock of everybody."""

    @initialize()
    def start(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="shared-", dir=ROOT[0]))
        self.time: datetime = START
        self.files: dict[str, str] = dict(FIRST)
        self.shared = SharedRepository(self.root, self.files, self.time)
        self.kept: set[str] = set()

    def teardown(self) -> None:
        if hasattr(self, "shared"):
            self.converge()
            shutil.rmtree(self.root)

    # People and the source

    @rule(edits=st.lists(EDITS, min_size=1, max_size=3))
    def commit(self, edits: list[tuple[str, int]]) -> None:
        self.edit(edits)
        self.shared.commit(self.files, self.time)

    @rule(edits=st.lists(EDITS, max_size=2), depth=st.integers(0, 3))
    def rewrite_source(self, edits: list[tuple[str, int]], depth: int) -> None:
        """Force-push a commit that replaces the last ones; all of them: an unrelated history."""
        head = self.shared.head(SOURCE)
        self.edit(edits)
        ancestors = self.shared.list_ancestors(head)[depth:] if head else []
        self.shared.commit(self.files, self.time, parents=ancestors[:1])

    @precondition(lambda self: self.shared.head(SOURCE) is not None)
    @rule(depth=st.integers(1, 3))
    def rewind_source(self, depth: int) -> None:
        ancestors = self.shared.list_ancestors(str(self.shared.head(SOURCE)))
        target = ancestors[min(depth, len(ancestors) - 1)]
        self.shared.repository.references.create(SOURCE, target, force=True)
        self.files = self.shared.read(target)

    @rule()
    def delete_source(self) -> None:
        if self.shared.head(SOURCE) is not None:
            self.shared.repository.references.delete(SOURCE)

    def edit(self, edits: list[tuple[str, int]]) -> None:
        for path, number in edits:
            text = VERSIONS[path][number]
            if text is None:
                self.files.pop(path, None)
            else:
                self.files[path] = text

    @rule(minutes=st.sampled_from([1, 20, 40, 180, -30, -600]))
    def move_clock(self, minutes: int) -> None:
        self.time += timedelta(minutes=minutes)

    # People and the output

    @precondition(lambda self: self.shared.head() is not None)
    @rule(number=st.integers(0, 99), text=st.sampled_from(["", "nonsense: [", "# mine\n"]))
    def edit_output(self, number: int, text: str) -> None:
        """Change, damage or remove a file of the output, or add one."""
        files = self.shared.read(str(self.shared.head()))
        path = [*sorted(files.keys() - {"gitsched.json"}), "notes/mine.txt"][
            number % len(files)
        ]  # a damaged gitsched.json stops all runs
        files |= {path: text}
        if not text:
            del files[path]
        self.kept.add(self.shared.commit(files, self.time, ref=OUTPUT))

    @precondition(lambda self: self.shared.head() is not None)
    @rule(depth=st.integers(1, 3))
    def rewind_output(self, depth: int) -> None:
        ancestors = self.shared.list_ancestors(str(self.shared.head()))
        target = ancestors[min(depth, len(ancestors) - 1)]
        self.shared.repository.references.create(OUTPUT, target, force=True)
        self.kept = self.kept.intersection(self.shared.list_ancestors(target)) | {target}

    @precondition(lambda self: self.shared.head() is not None)
    @rule()
    def delete_output(self) -> None:
        self.shared.repository.references.delete(OUTPUT)
        self.kept = set()

    # Machines

    @rule(name=st.sampled_from(["remote", "ann", "bob", "resident"]))
    def collect_garbage(self, name: str) -> None:
        self.shared.collect_garbage(name)

    @rule(name=WRITERS)
    def drop_cache(self, name: str) -> None:
        self.shared.drop_cache(name)

    @rule(name=CLONES)
    def fetch_source(self, name: str) -> None:
        self.shared.fetch_source(name)

    # Writers

    @rule(name=WRITERS)
    def run(self, name: str) -> None:
        self.check_run(name)

    @rule(name=WRITERS)
    def preview(self, name: str) -> None:
        before = self.shared.refs()
        self.attempt(lambda: self.shared.preview(name, self.time))
        assert self.shared.refs() == before, "a preview moves no ref"

    @rule(name=WRITERS, other=WRITERS)
    def race(self, name: str, other: str) -> None:
        """Another writer publishes while this one is about to."""
        with self.shared.overtaken(lambda: self.check_run(other)):
            run = self.attempt(lambda: self.shared.run(name, self.time))
        self.check_head()
        assert run is None or run.after in (None, self.shared.head())

    @rule(name=WRITERS, edits=st.lists(EDITS, min_size=1, max_size=1), text=st.sampled_from(["", "# mine\n"]))
    def race_with_person(self, name: str, edits: list[tuple[str, int]], text: str) -> None:
        """A person pushes to both branches while this writer is about to publish."""

        def interfere() -> None:
            self.commit(edits)
            if self.shared.head() is not None:
                self.edit_output(5, text)

        with self.shared.overtaken(interfere):
            self.attempt(lambda: self.shared.run(name, self.time))
        self.check_head()

    @rule(name=WRITERS, step=st.sampled_from(["publish", "_update_local_refs", "_write_note"]))
    def kill(self, name: str, step: str) -> None:
        """The process of a writer dies; the next run goes on."""
        before = self.shared.refs()
        with self.shared.interrupted(step):
            try:
                self.attempt(lambda: self.shared.run(name, self.time))
            except Killed:
                assert step != "publish" or self.shared.refs() == before
        self.check_head()

    # Assertions

    def attempt(self, action: Callable[[], RunResult]) -> RunResult | None:
        """Return the result, None for an error that a command reports."""
        start = time.process_time()
        try:
            return action()
        except GitschedError:
            return None
        finally:
            assert time.process_time() - start < MAX_SECONDS, "a run of this size takes milliseconds"

    def check_run(self, name: str) -> None:
        shared, before, refs = self.shared, self.shared.head(), self.shared.refs()
        fresh = self.attempt(lambda: shared.preview(name, self.time))
        decided = self.list_decided(fresh, name)
        assert shared.refs() == refs, "a preview moves no ref"
        run = self.attempt(lambda: shared.run(name, self.time))
        assert (run is None) == (fresh is None)
        if run is None or run.after is None:
            assert shared.refs() == refs, "a run without a commit moves no ref"
        else:
            assert shared.head() == run.after
            assert [str(oid) for oid in shared.repository[run.after].parent_ids] == ([before] if before else [])  # type: ignore[union-attr]
        if run is not None:
            check_replicas(run)
            assert all(finding.code != "internal-error" for finding in run.plan.findings)
            if fresh is not None and "history-incomplete" not in {finding.code for finding in fresh.plan.findings}:
                assert shared.list_decided(str(shared.head())) == decided, "a process without caches decides the same"
            shared.run(name, self.time)  # looser settings count from the run after the one that reads them
            again = shared.run(name, self.time)
            assert again.after is None, "nothing changed, so there is no commit"
        self.check_head()

    def list_decided(self, run: RunResult | None, name: str) -> dict[str, str] | None:
        if run is None:
            return None
        places = [self.root / name] if name != "resident" else [path.parent for path in self.root.glob("fresh.cache/**/HEAD")]
        found = [self.shared.list_decided(run.tree, path) for path in places]
        shutil.rmtree(self.root / "fresh.cache", ignore_errors=True)
        return found[0]

    def check_head(self) -> None:
        """The head of the output is complete, has what people committed, and nothing is left over."""
        head = self.shared.head()
        if head is not None:
            lost = self.kept.difference(self.shared.list_ancestors(head))
            assert not lost, f"commits of people that {head} does not contain: {lost}"
            commit = self.shared.repository[head]
            if head not in self.kept:
                files = self.shared.read(str(commit.id))
                check_output(files)
                assert sum(map(len, files.values())) < MAX_OUTPUT, "the output of this source is small"
        else:
            assert not self.kept
        assert not self.shared.list_left_over()

    def converge(self) -> None:
        """After the faults, each writer runs once; then all agree, and nothing is left to do."""
        self.files = dict(FIRST)
        self.time = max(self.time, START) + timedelta(days=2)
        self.shared.commit(self.files, self.time)
        for _ in range(2):
            for name in ("ann", "bob", "resident"):
                if name != "resident":
                    self.shared.fetch_source(name)
                self.shared.run(name, self.time)
        head = self.shared.head()
        for name in ("resident", "bob", "ann"):
            run = self.shared.run(name, self.time + timedelta(days=1))
            self.shared.run(name, self.time + timedelta(days=1))
            assert run.plan.totals.overview.state_counts.get("placed") == 4, run.plan.totals.overview.state_counts
        head = self.shared.head()
        assert self.shared.run("ann", self.time + timedelta(days=1)).after is None
        assert self.shared.head() == head
        self.check_head()
        self.shared.check_objects()


ROOT: list[Path] = []


@pytest.mark.search
def test_writers_people_and_faults_in_any_order(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    ROOT[:] = [tmp_path]
    gc.collect()
    before, memory = count_open_files(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        SharedRepositoryMachine,
        settings=settings(max_examples=count_examples(2), stateful_step_count=30 if DEEP else 6),
    )
    gc.collect()  # engines and the cache that they read from refer to each other
    assert count_open_files() <= before + 16, "runs close what they open"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < MAX_KIB, "runs keep nothing of earlier ones"
