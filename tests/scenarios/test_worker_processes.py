"""Files are parsed on all cores with the same result, and no process outlives the run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from gitsched.git import Repository
from gitsched.reconcile import worker_processes
from gitsched.reconcile.cache.caches import ParseCache
from gitsched.reconcile.source import source_reader
from gitsched.reconcile.source.source_reader import SourceReader, list_manifests
from gitsched.reconcile.worker_processes import count_processes, map_in_processes
from tests.scenarios.conftest import Fleet

linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has safe copies of a process")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes that a test has started. The process of the tests has others as well."""
    found: list[int] = []
    fork = os.fork

    def record() -> int:
        child = fork()
        if child:
            found.append(child)
        return child

    monkeypatch.setattr(os, "fork", record)
    return found


def exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@linux_only
@pytest.mark.parametrize("count", [0, 1, 2, 7, 1_700])
def test_results_are_in_the_order_of_the_items(count: int, started: list[int]) -> None:
    assert map_in_processes(lambda item: (item, os.getpid()), range(count), 1) == [(item, os.getpid()) for item in range(count)]
    assert map_in_processes(lambda item: item * 2, range(count), 3) == [item * 2 for item in range(count)]
    assert not any(map(exists, started))


@linux_only
def test_items_of_a_process_that_fails_have_no_results(started: list[int]) -> None:
    parent = os.getpid()

    def fail(item: int) -> int:
        if os.getpid() != parent and item == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        if os.getpid() != parent and item == 5:
            raise ValueError
        return item

    assert map_in_processes(fail, range(9), 3) == [0, None, None, 3, None, None, 6, None, None]
    assert len(started) == 2
    assert not any(map(exists, started))


@linux_only
def test_an_error_in_this_process_leaves_no_other_process(started: list[int]) -> None:
    parent = os.getpid()

    def hang(item: int) -> int:
        if os.getpid() == parent:
            raise KeyboardInterrupt
        time.sleep(60)
        return item

    with pytest.raises(KeyboardInterrupt):
        map_in_processes(hang, range(4), 2)
    assert len(started) == 1
    assert not any(map(exists, started))


@linux_only
def test_no_process_outlives_a_killed_one(tmp_path: Path) -> None:
    program = f"""
import os, time
from gitsched.reconcile.worker_processes import map_in_processes
parent = os.getpid()
def work(item):
    if os.getpid() != parent:
        open({str(tmp_path / "child")!r}, "w").write(str(os.getpid()))
    time.sleep(0.02)
map_in_processes(work, range(100_000), 2)
"""
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        deadline = time.monotonic() + 20
        while not ((tmp_path / "child").exists() and (tmp_path / "child").read_text()) and time.monotonic() < deadline:
            time.sleep(0.01)
        child = int((tmp_path / "child").read_text())
        process.kill()
    while Path(f"/proc/{child}/status").exists() and "State:\tZ" not in Path(f"/proc/{child}/status").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@linux_only
def test_a_signal_right_after_the_fork_runs_no_handler_in_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parent, ran, fork = os.getpid(), tmp_path / "ran", os.fork

    def fork_and_send() -> int:
        child = fork()
        if not child:
            os.kill(os.getpid(), signal.SIGTERM)
        return child

    monkeypatch.setattr(os, "fork", fork_and_send)
    before = signal.signal(signal.SIGTERM, lambda *_: ran.touch() if os.getpid() != parent else None)
    try:
        assert map_in_processes(str, range(4), 2) == ["0", None, "2", None]
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not ran.exists()
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_process_with_threads_makes_no_copies() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert count_processes() == 1
    finally:
        stop.set()
        thread.join()


@linux_only
@pytest.mark.parametrize(
    ("limit", "count"), [("max 100000", 4), ("100000 100000", 1), ("150000 100000", 2), ("5 100000", 1), ("", 4)]
)
def test_the_limit_of_a_container_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, count: int) -> None:
    (tmp_path / "cpu.max").write_text(limit)
    monkeypatch.setattr(worker_processes, "_CGROUP_LIMIT", tmp_path / "cpu.max")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    assert count_processes() == count


@linux_only
def test_files_are_the_same_however_many_processes_parse_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a%d}\ndata: {a: %s}\n"
    texts = [head % (number, "yes" if number % 7 == 0 else "b") if number % 11 else "kind: [\n" for number in range(60)]
    fleet = Fleet(tmp_path / "source", tmp_path / "cache")
    commit = fleet.commit({f"{number}.yaml": text for number, text in enumerate(texts)})
    repository = Repository(fleet.path)
    entries = list_manifests(repository.entries(repository.commit(commit).tree))
    monkeypatch.setattr(source_reader, "MANY_FILES", 10)
    monkeypatch.setattr(source_reader, "_PREPARING_FILES", 10)
    results = []
    for smallest, processes in ((1_000, 1), (20, 1), (20, 3)):
        monkeypatch.setattr(source_reader, "MIN_PARALLEL_FILES", smallest)
        monkeypatch.setattr(worker_processes, "count_processes", lambda processes=processes: processes)
        reader = SourceReader(repository, ParseCache(tmp_path / f"cache-{smallest}-{processes}"))
        reader.prefetch(entries)
        results.append([reader.read(entry.blob, entry.path) for entry in entries])
    assert results[0] == results[1] == results[2]
    assert {file.status for file in results[0]} == {"resources", "invalid"}
