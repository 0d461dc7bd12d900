"""`gitsched watch`: runs after commits, retries after errors, and stops on signals."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from gitsched.model.errors import Conflict, Permanent, Temporary
from gitsched.model.progress import PUBLISHING
from gitsched.watch import (
    MAX_BACKOFF,
    ReconcileAttempt,
    RunAborted,
    Wakeup,
    compute_backoff,
    handle_signals,
    read_file_states,
    wait_for_change,
    watch,
)
from tests.cli.conftest import PATIENCE, TAINT, Process

Commit = Callable[..., None]
Git = Callable[..., str]


def placed(git: Git, at: Path, cluster: str) -> Callable[[], bool]:
    def look() -> bool:
        try:
            return f"clusters/{cluster}/shop/deployment-web.yaml" in git("ls-tree", "-r", "--name-only", "placements", at=at).split(
                "\n"
            )
        except subprocess.CalledProcessError:
            return False  # there is no branch yet

    return look


def test_watch_reconciles_new_commits_and_continues_after_broken_ones(
    fleet: Path, git: Git, commit: Commit, watcher: Callable[..., Process]
) -> None:
    # The interval is longer than the timeout of the test, so only the changed ref can start a run.
    resident = watcher(fleet, "--interval", "3600", fork=False)
    resident.wait_for(placed(git, fleet, "one"))
    one = (fleet / "one.yaml").read_text()
    commit(fleet, one=one + "  zones: [", web="kind: Deployment\nmetadata: [")
    resident.wait_for(lambda: any(line.get("code") == "yaml-syntax" for line in resident.lines()))
    assert placed(git, fleet, "one")()
    commit(fleet, one=one + TAINT, web=(fleet / "web.yaml").read_text())
    resident.wait_for(placed(git, fleet, "two"))
    resident.process.send_signal(signal.SIGTERM)
    assert resident.process.wait(PATIENCE) == 0
    assert "Traceback" not in resident.log.read_text()


def test_watch_polls_a_remote_and_pushes_the_output(
    fleet: Path, tmp_path: Path, git: Git, commit: Commit, watcher: Callable[..., Process]
) -> None:
    bare = tmp_path / "fleet.git"
    git("clone", "-q", "--bare", str(fleet), str(bare), at=tmp_path)
    resident = watcher(tmp_path, "-C", bare.as_uri(), "--interval", "0.2", fork=False)
    resident.wait_for(placed(git, bare, "one"))
    commit(fleet, one=(fleet / "one.yaml").read_text() + TAINT)
    git("push", "-q", str(bare), "main", at=fleet)
    resident.wait_for(placed(git, bare, "two"))
    resident.process.send_signal(signal.SIGINT)
    assert resident.process.wait(PATIENCE) == 130


def test_options_that_no_change_makes_valid_end_the_service_at_the_start(fleet: Path, gitsched: Callable[..., Any]) -> None:
    for options in (("-C", fleet.as_uri()), ("--output-repository", fleet.as_uri())):
        done = gitsched("watch", "--push", *options)
        assert (done.returncode, "--push is only for a local repository" in done.stderr) == (1, True)


class FailingReconciler:
    """A reconciler that raises the given errors in order and requests a stop at the last one."""

    def __init__(self, wakeup: Wakeup, *errors: Exception) -> None:
        self.errors, self.wakeup, self.runs, self.dropped = list(errors), wakeup, 0, 0

    def watch_paths(self) -> list[Path]:
        return []

    def close_files(self) -> None:
        pass

    def drop_caches(self) -> None:
        self.dropped += 1

    def run(self, now: datetime) -> NoReturn:
        self.runs += 1
        if len(self.errors) == 1:
            self.wakeup.stop()
        raise self.errors.pop(0)


class Attempts:
    def __init__(self) -> None:
        self.seen: list[ReconcileAttempt] = []

    def begin(self) -> None:
        pass

    def end(self, attempt: ReconcileAttempt) -> None:
        self.seen.append(attempt)


def watch_quickly(reconciler: FailingReconciler, attempts: Attempts, wakeup: Wakeup) -> None:
    """Watch with the shortest interval until the reconciler requests a stop."""
    watch(
        reconciler,
        interval=timedelta(milliseconds=1),
        listener=attempts,
        wakeup=wakeup,
        now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
    )


def test_watch_continues_after_errors() -> None:
    wakeup, attempts = Wakeup(), Attempts()
    reconciler = FailingReconciler(wakeup, Conflict("race"), Permanent("no such branch"), Conflict("race"), Permanent("still none"))
    watch_quickly(reconciler, attempts, wakeup)
    assert reconciler.runs == 4
    assert [type(attempt.error) for attempt in attempts.seen] == [Conflict, Permanent, Conflict, Permanent]
    assert [attempt.cause for attempt in attempts.seen] == ["start", "retry", "time", "retry"]


def test_watch_continues_after_a_bug_and_drops_its_caches(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FailingListener(Attempts):
        def end(self, attempt: ReconcileAttempt) -> None:
            super().end(attempt)
            raise KeyError("of the report")

    monkeypatch.setattr("gitsched.watch.loop.MIN_BACKOFF", timedelta(milliseconds=1))
    wakeup, attempts = Wakeup(), FailingListener()
    reconciler = FailingReconciler(wakeup, RuntimeError("secret"), ValueError("secret"), OSError("disk"), Permanent("no branch"))
    watch_quickly(reconciler, attempts, wakeup)
    assert (reconciler.runs, reconciler.dropped) == (4, 2)
    assert [attempt.cause for attempt in attempts.seen] == ["start", "retry", "retry", "retry"]
    bugs = [record for record in caplog.records if record.levelname == "ERROR" and "internal error" in record.getMessage()]
    assert len(bugs) == 2 + 4, "two runs, and the report of each run"
    assert "secret" not in caplog.text


def test_a_permanent_error_that_repeats_is_tried_and_logged_ever_less(caplog: pytest.LogCaptureFixture) -> None:
    wakeup, attempts = Wakeup(), Attempts()
    reconciler = FailingReconciler(wakeup, *(Permanent("there is no remote 'origin'") for _ in range(7)))
    watch_quickly(reconciler, attempts, wakeup)
    delays = [attempt.delay for attempt in attempts.seen]
    assert all(later > 1.5 * earlier for earlier, later in pairwise(delays))
    assert len(caplog.records) == 3, "the first, the second and the fourth"


class DeadlineReconciler(FailingReconciler):
    """A reconciler whose runs take a time, and whose next decision is always due at once; it requests a stop at the last run."""

    def __init__(self, wakeup: Wakeup, runs: int, seconds: float) -> None:
        super().__init__(wakeup)
        self.left, self.seconds = runs, seconds

    def run(self, now: datetime) -> Any:
        self.left -= 1
        if not self.left:
            self.wakeup.stop()
        time.sleep(self.seconds)
        return SimpleNamespace(plan=SimpleNamespace(next_wakeup=now))


@pytest.mark.parametrize(("seconds", "debounce", "least"), [(0.02, 0.0, 0.02), (0.0, 0.03, 0.03)])
def test_deadlines_that_are_close_together_share_a_run(seconds: float, debounce: float, least: float) -> None:
    """The pause between two runs for deadlines is at least the duration of the first one."""
    wakeup, attempts = Wakeup(), Attempts()
    watch(
        DeadlineReconciler(wakeup, 3, seconds),
        interval=timedelta(hours=1),
        listener=attempts,
        wakeup=wakeup,
        debounce=timedelta(seconds=debounce),
        now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
    )
    assert [attempt.cause for attempt in attempts.seen] == ["start", "time", "time"]
    assert all(timedelta(seconds=max(least, attempt.seconds)) <= attempt.delay < timedelta(minutes=1) for attempt in attempts.seen)


def test_pauses_double_up_to_a_limit_and_respect_retry_after() -> None:
    pauses = [compute_backoff(failures, Temporary("down")) for failures in range(1, 40)]
    assert pauses == sorted(pauses)
    assert pauses[1] == 2 * pauses[0]
    assert pauses[-1] == MAX_BACKOFF
    assert compute_backoff(1, Temporary("busy", retry_after=900)) == timedelta(seconds=900)
    assert compute_backoff(1, Conflict("race")) < pauses[0]


def test_a_change_before_the_wait_ends_it_immediately(tmp_path: Path) -> None:
    seen = read_file_states([tmp_path])
    (tmp_path / "main").write_text("1")
    assert wait_for_change([tmp_path], seen, timedelta(hours=1), Wakeup()) == "ref"


def test_lock_files_are_not_changes(tmp_path: Path) -> None:
    seen = read_file_states([tmp_path])
    (tmp_path / "main.lock").write_text("1")
    assert read_file_states([tmp_path]) == seen


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("stage", "completed"), [("deciding workloads", False), (PUBLISHING, True)])
def test_a_signal_ends_a_run_that_does_not_publish_yet(stage: str, completed: bool) -> None:
    with handle_signals(Wakeup(), timedelta(hours=1)) as shutdown:

        def run() -> None:
            shutdown.follow_run("fetching", 0, 0)
            shutdown.follow_run(stage, 0, 0)
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)

        assert shutdown.complete(run) is completed


def test_a_signal_between_two_runs_aborts_nothing() -> None:
    with handle_signals(Wakeup(), timedelta(hours=1)) as shutdown:

        def run() -> None:
            shutdown.follow_run("fetching", 0, 0)
            shutdown.end_run()
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)

        assert shutdown.complete(run)
        assert shutdown.wakeup.stopped


def test_an_abort_by_a_second_signal_is_repeated() -> None:
    """A destructor or a callback may lose the exception of a signal handler."""
    with handle_signals(Wakeup(), timedelta(hours=1)) as shutdown:
        shutdown.handle_signal(signal.SIGINT, None)
        with pytest.raises(RunAborted):
            shutdown.handle_signal(signal.SIGINT, None)
        assert all(0 < seconds < 60 for seconds in signal.getitimer(signal.ITIMER_REAL))


def test_signals_abort_runs_but_not_the_shutdown_after_them() -> None:
    wakeup = Wakeup()
    with handle_signals(wakeup, timedelta()) as handler:
        assert handler.complete(lambda: None)
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)  # longer than the grace period
    assert wakeup.stopped
    with handle_signals(Wakeup(), timedelta()) as handler:
        assert not handler.complete(interrupt), "watchfiles replaces what a handler raises while it waits"
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)
