"""The state of the last plan beside the output branch: a machine without a cache continues from it, unless anything about it is wrong."""

from __future__ import annotations

import json
import logging
import os
import pickle
import shutil
import sqlite3
import subprocess
import zlib
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from gitsched.cli.commands.reconciliation import group_options
from gitsched.git import state_refs
from gitsched.git.output import list_state_refs
from gitsched.git.state_refs import StateRefs
from gitsched.model.document import Key
from gitsched.model.errors import Temporary
from gitsched.reconcile import Reconciler, RunResult, source_plan
from gitsched.reconcile.cache import plan_tree
from gitsched.reconcile.cache.plan_file import PlanFile
from gitsched.reconcile.cache.row_format import CorruptCacheError, deserialize
from gitsched.reconcile.run_settings import RunSettings
from tests.scenarios.conftest import LOCAL_SERVERS, Fleet, at_hour, cluster, deployment, policy

PLAN, ROWS = list_state_refs("placements", "")
APPS = [f"app{number}" for number in range(6)]


def files(replicas: int = 1) -> dict[str, str]:
    first = {"apps/app0.yaml": deployment("app0", replicas=replicas)}
    apps = {f"apps/{name}.yaml": deployment(name) for name in APPS}
    return {**apps, **first, "policies/all.yaml": policy("first"), "clusters/first.yaml": cluster("first")}


def git(at: Path, *arguments: str, data: bytes | None = None, check: bool = True) -> str:
    done = subprocess.run(["git", *arguments], cwd=at, input=data, capture_output=True, check=check)
    return done.stdout.decode().strip()


class Machines:
    """A server, and jobs that have nothing but a shallow clone of it."""

    def __init__(self, fleet: Fleet, where: Path) -> None:
        self.fleet, self.where, self.server, self.count = fleet, where, where / "server.git", 0
        if not self.server.exists():
            git(where, "clone", "-q", "--bare", str(fleet.path), str(self.server))

    def commit(self, replicas: int, hour: float) -> None:
        self.fleet.commit(files(replicas), hour=hour)
        git(self.fleet.path, "push", "-q", str(self.server), "HEAD:main")

    def settings(self, hour: float, clone_options: tuple[str, ...] = ("--depth=1",), **more: Any) -> RunSettings:
        self.count += 1
        clone = self.where / f"job{self.count}"
        git(self.where, "clone", "-q", *clone_options, f"file://{self.server}", str(clone))
        cache = self.where / f"cache{self.count}"
        settings = RunSettings(now=at_hour(hour), cache=cache, location=str(clone), push="origin", state="on", **LOCAL_SERVERS)
        return settings._replace(**group_options(more))

    def run(self, hour: float, *, preview: bool = False, **more: Any) -> RunResult:
        settings = self.settings(hour, **more)
        return Reconciler(settings).run(settings.now, preview=preview)

    def refs(self) -> dict[str, str]:
        rows = git(self.server, "for-each-ref", "--format=%(refname) %(objectname)", "refs/gitsched").splitlines()
        return dict(row.split() for row in rows)

    def replace(self, ref: str, path: str, data: bytes) -> None:
        """Set a ref of the server to a commit in which one file differs."""
        index = {**os.environ, "GIT_INDEX_FILE": str(self.where / "index")}

        def run(*arguments: str, given: bytes | None = None) -> str:
            done = subprocess.run(["git", *arguments], cwd=self.server, input=given, capture_output=True, check=True, env=index)
            return done.stdout.decode().strip()

        run("read-tree", self.refs()[ref])
        blob = run("hash-object", "-w", "--stdin", given=data)
        run("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
        run("update-ref", ref, run("commit-tree", run("write-tree"), "-m", "Forged"))

    def read(self, ref: str, path: str) -> bytes:
        return subprocess.run(["git", "show", f"{ref}:{path}"], cwd=self.server, capture_output=True, check=True).stdout


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a fleet and its server after two runs: the second one reads the records of the first."""
    where = tmp_path_factory.mktemp("prepared")
    fleet = Fleet(where / "fleet", where / "cache")
    fleet.commit(files())
    machines = Machines(fleet, where)
    machines.run(0)
    machines.run(0)
    return where


@pytest.fixture
def machines(prepared: Path, tmp_path: Path) -> Machines:
    where = tmp_path / "machines"
    shutil.copytree(prepared, where, ignore=shutil.ignore_patterns("job*", "cache*"))
    return Machines(Fleet(where / "fleet", where / "cache"), where)


def test_a_job_without_a_cache_plans_only_the_change(machines: Machines) -> None:
    before = machines.refs()
    idle = machines.run(0)
    assert not idle.plan.complete
    assert machines.refs() == before, "nothing has changed, so nothing is written"
    machines.commit(3, 1)
    changed = machines.run(1)
    assert not changed.plan.complete
    assert changed.after
    assert not machines.run(1).plan.complete
    whole = machines.run(1, state="off")
    assert whole.plan.complete
    assert whole.after is None, "the complete plan has the same bytes"
    job = machines.where / f"job{machines.count - 2}"
    assert git(job, "for-each-ref", "refs/gitsched/state") == "", "the state is kept in the private cache"


def test_what_only_looks_starts_from_the_state_of_a_run_that_pushed(machines: Machines) -> None:
    settings = machines.settings(0, state="off")
    Reconciler(settings).run(settings.now)
    looking = Reconciler(settings._replace(push=None)).run(settings.now, preview=True)
    assert not looking.plan.complete
    assert looking.before == git(machines.server, "rev-parse", "placements")


def test_the_state_has_no_history_and_no_clone_fetches_it(machines: Machines) -> None:
    machines.commit(3, 1)
    machines.run(1)
    for ref in (PLAN, ROWS):
        assert git(machines.server, "rev-list", "--count", ref) == "1"
    job = machines.where / f"job{machines.count}"
    assert "gitsched" not in git(job, "ls-remote", "--heads", "--tags", "origin")


DAMAGES: dict[str, tuple[str, dict[str, Any] | bytes]] = {
    "no JSON": ("state.json", b"{"),
    "nested": ("state.json", b"[" * 50_000),
    "another format": ("state.json", {"format": 99}),
    "another build": ("state.json", {"key": "0" * 64}),
    "another source": ("state.json", {"source": "1" * 40}),
    "an option in place of rows": ("state.json", {"rows": "--upload-pack=false"}),
    "an abbreviated id": ("state.json", {"rows": "1" * 12}),
    "rows outside": ("state.json", {"kinds": {"../etc": [0, 1, 1]}}),
    "too many parts": ("state.json", {"kinds": {"workload": [64, 1, 1]}}),
    "no kinds": ("state.json", {"kinds": {}}),
    "a damaged header": ("header", b"x" * 100),
    "no header": ("header", b""),
}


def test_a_state_that_is_damaged_or_foreign_is_ignored_with_one_note_and_replaced(
    machines: Machines, caplog: pytest.LogCaptureFixture
) -> None:
    sound, index = machines.refs()[PLAN], json.loads(machines.read(PLAN, "state.json"))
    job = machines.settings(0)
    for title, (path, change) in DAMAGES.items():
        git(machines.server, "update-ref", PLAN, sound)
        machines.replace(PLAN, path, change if isinstance(change, bytes) else json.dumps({**index, **change}).encode())
        caplog.clear()
        run = Reconciler(job._replace(cache=machines.where / title.replace(" ", "-"))).run(job.now, preview=True)
        notes = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
        assert run.plan.complete, title
        assert [note for note in notes if "everything is planned again" in note] == notes, title
        assert len(notes) == 1, title
    machines.run(0)
    assert not machines.run(0).plan.complete, "the run before has made it anew"


def test_a_damaged_part_is_found_when_it_is_read(machines: Machines, caplog: pytest.LogCaptureFixture) -> None:
    paths = git(machines.server, "ls-tree", "-r", "--name-only", ROWS).splitlines()
    index = json.loads(machines.read(PLAN, "state.json"))
    for number, path in enumerate(paths):
        data = machines.read(ROWS, path)
        machines.replace(ROWS, path, data[:-1] + bytes([data[-1] ^ 1]) if number % 2 else data[: len(data) // 2])
    machines.replace(PLAN, "state.json", json.dumps({**index, "rows": machines.refs()[ROWS]}).encode())
    machines.commit(4, 1)
    run = machines.run(1)
    assert run.plan.complete
    assert run.after
    assert sum("everything is planned again" in record.message for record in caplog.records) == 1


def test_a_part_does_not_expand_without_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_tree, "MAX_BLOB_SIZE", 1_000)
    with pytest.raises(CorruptCacheError, match="too large"):
        plan_tree._decode(zlib.compress(b"[]\n" + bytes(100_000)))


@pytest.mark.parametrize("options", [("--mirror",), ("--bare", "--depth=1")])
def test_any_clone_reads_the_state_and_stays_as_it_is(machines: Machines, options: tuple[str, ...]) -> None:
    settings = machines.settings(0, options)
    clone = Path(settings.location)

    def list_state() -> str:
        return git(clone, "for-each-ref", "refs/gitsched/state") + git(
            clone, "cat-file", "--batch-check", data="\n".join(machines.refs().values()).encode()
        )

    before = list_state()
    assert not Reconciler(settings).run(settings.now, preview=True).plan.complete
    assert list_state() == before, "the state is kept in the private cache"


def test_the_next_run_after_two_runs_at_once_continues_from_a_sound_state(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slower one commits first and stores its state last; another job has replaced both meanwhile."""
    machines.commit(3, 1)
    slow, store, others = machines.settings(1), StateRefs._push, list[RunResult]()
    late: list[bool] = []

    def store_late(refs: StateRefs, commits: dict[str, str], url: str) -> None:
        if not late:
            late.append(True)
            machines.commit(4, 2)
            others.append(machines.run(2))
        store(refs, commits, url)

    monkeypatch.setattr(StateRefs, "_push", store_late)
    assert Reconciler(slow).run(slow.now).after
    assert others[0].after
    following = machines.run(2)
    assert not following.plan.complete
    assert following.after is None
    assert machines.run(2, state="off").after is None, "the complete plan has the same bytes"


def test_any_thread_may_close_a_cache_file(tmp_path: Path) -> None:
    """Python may collect it as garbage in a thread of a server."""
    file = PlanFile(tmp_path / "plan.sqlite3")
    tmp_path.chmod(0o700)
    file.create([("header", "", 0, b"x")])
    opened = PlanFile.open(tmp_path / "plan.sqlite3")
    assert opened is not None
    with ThreadPoolExecutor(1) as pool:
        pool.submit(opened.close).result()
    assert opened.read("header", "") is None


def test_a_row_whose_name_is_damaged_is_not_taken_for_one_that_never_was(tmp_path: Path) -> None:
    path = tmp_path / "plan.sqlite3"
    tmp_path.chmod(0o700)
    PlanFile(path).create([("header", "", 0, b"x"), ("cluster", "second", 0, b"2"), ("cluster", "third", 0, b"3")])
    file = PlanFile.open(path)
    assert file is not None
    assert file.update([("cluster", "second", 0, None), ("cluster", "fourth", 0, b"4"), ("cluster", "third", 0, b"33")], bool)
    assert file.read("cluster", "second") is None
    assert [name for name, _ in file.read_all("cluster")] == ["fourth", "third"]
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE rows SET name = 'thirt' WHERE name = 'third'")
    for read in (lambda opened: opened.read("cluster", "third"), lambda opened: opened.read_all("cluster"), PlanFile.list_rows):
        shutil.copy(path, copy := tmp_path / "copy.sqlite3")
        opened = PlanFile.open(copy)
        with pytest.raises(CorruptCacheError, match="another name than was written"):
            read(opened)
        assert not copy.exists()


class Hostile:
    def __reduce__(self) -> Any:
        return (os.system, ("false",))


@pytest.mark.parametrize("value", [Hostile(), os.system, Path("/etc")])
def test_a_row_creates_no_object_of_another_type(value: Any) -> None:
    data = pickle.dumps(value)
    with pytest.raises(CorruptCacheError):
        deserialize(blake2b(data, digest_size=16).digest() + data)


@pytest.mark.parametrize(
    "module_and_name", ["gitsched.model.document\nKey", "collections\nCounter", "gitsched.model.finding\nFinding"]
)
def test_a_row_changes_no_type(module_and_name: str) -> None:
    # The type, then a state of (None, {"count": 1}), which pickle sets as attributes.
    data = b"c" + module_and_name.encode() + b"\n(N}X\x05\x00\x00\x00countK\x01stb."
    with pytest.raises(CorruptCacheError):
        deserialize(blake2b(data, digest_size=16).digest() + data)
    assert Key.count is tuple.count


def test_a_lost_ref_or_a_state_of_another_commit_is_replaced(machines: Machines) -> None:
    old = machines.refs()
    machines.commit(3, 1)
    machines.run(1)
    git(machines.server, "update-ref", PLAN, old[PLAN])  # as after a run that was killed before it wrote the state
    assert machines.run(1).plan.complete
    assert not machines.run(1).plan.complete
    git(machines.server, "update-ref", "-d", PLAN)
    git(machines.server, "update-ref", "-d", ROWS)
    assert machines.run(1).plan.complete
    assert not machines.run(1).plan.complete


def test_a_machine_with_a_cache_stores_the_state_that_others_do_not_have(machines: Machines) -> None:
    machines.commit(3, 1)
    settings = machines.settings(1, state="off")
    assert Reconciler(settings).run(settings.now).after
    stale = machines.refs()
    assert not Reconciler(settings._replace(state="on")).run(settings.now).plan.complete
    assert machines.refs() != stale
    assert not machines.run(1).plan.complete, "another machine continues from it"
    assert not Reconciler(settings._replace(state="on")).run(settings.now).plan.complete, "so does this one"


def test_old_objects_are_removed_after_the_push_and_a_failure_fails_no_run(
    machines: Machines, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(state_refs, "_MAX_LOOSE_OBJECTS", -256)
    pushed = machines.refs()

    def fail(*_: Any, **__: Any) -> Any:
        assert machines.refs() != pushed
        raise Temporary("git gc does not answer")

    monkeypatch.setattr(state_refs, "run_git", fail)
    machines.commit(3, 1)
    assert machines.run(1).after
    assert "git gc does not answer" in caplog.text


def test_a_server_that_refuses_the_state_fails_no_run(machines: Machines, caplog: pytest.LogCaptureFixture) -> None:
    hook = machines.server / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\ncase "$1" in refs/gitsched/*) exit 1;; esac\n')
    hook.chmod(0o755)
    machines.commit(3, 1)
    run = machines.run(1)
    assert run.after
    assert [record.message for record in caplog.records if "is not on the remote" in record.message]


def test_outputs_of_one_repository_have_states_of_their_own(machines: Machines) -> None:
    machines.run(0, output_branch="second")
    machines.run(0, output_branch="third", output_path="deep/er")
    assert len(machines.refs()) == 6
    assert not machines.run(0).plan.complete


def test_a_state_without_signature_counts_only_where_the_operator_says_so(
    machines: Machines, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Everybody who can push a branch for a pull request can push this ref as well."""
    monkeypatch.setattr(source_plan, "MIN_SHARED_ROWS", 0)
    before = machines.refs()
    machines.commit(3, 1)
    assert machines.run(1, state="auto", preview=True).plan.complete
    assert machines.run(1, state="off").plan.complete
    assert machines.refs() == before
    assert not caplog.records


@pytest.mark.needs("ssh-keygen")
def test_listed_keys_must_have_signed_the_state(machines: Machines, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    keys = {}
    for name in ("ours", "other"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True)
        keys[name] = (tmp_path / f"{name}.pub").read_text().strip()
    trusted = {"state_keys": (keys["ours"],), "signing": ("ssh", str(tmp_path / "ours"))}
    unsigned, job = machines.refs()[PLAN], machines.settings(0, **trusted)
    assert Reconciler(job).run(job.now, preview=True).plan.complete, "the state has no signature"
    assert "must be signed" in caplog.text
    clones = [clone for clone in job.cache.glob("*.git") if unsigned in git(clone, "rev-parse", PLAN, check=False)]
    assert not clones, "no ref leads to it"
    assert machines.run(0, **trusted).plan.complete
    assert not machines.run(0, **trusted).plan.complete
    assert machines.run(0, state_keys=(keys["other"],)).plan.complete


def test_small_changes_write_few_parts(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_tree, "_PART_SIZE", 10)
    git(machines.server, "update-ref", "-d", PLAN)
    machines.run(0)
    before = set(git(machines.server, "ls-tree", "-r", ROWS).splitlines())
    machines.commit(3, 1)
    assert not machines.run(1).plan.complete
    after = set(git(machines.server, "ls-tree", "-r", ROWS).splitlines())
    assert len(before) > 10
    assert 0 < len(after - before) < 6
