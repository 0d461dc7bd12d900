"""`gitsched simulate --dask`: shards on a real scheduler and workers as processes, and what these cannot do to the operator."""

from __future__ import annotations

import json
import os
import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import gitsched
from gitsched.cli import dask_worker
from gitsched.model.record_json import read_record, write_record
from gitsched.reconcile.review import dask_losses, dask_tasks
from gitsched.reconcile.review.dask_losses import LossWorker, ShardTask
from gitsched.reconcile.review.refused_pickles import PickleRefused, pickles_refused
from tests.scenarios.conftest import Fleet
from tests.simulate.conftest import Simulate
from tests.simulate.dask_cluster import run_cluster

SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: token, namespace: default}\nstringData: {token: hunter2-hunter2}\n"


def fake_cluster(monkeypatch: pytest.MonkeyPatch, answer: Callable[[bytes], bytes], threads: int = 7) -> list[bytes]:
    """Replace the cluster by a function, with the last task first. Return the tasks that it gets."""
    tasks: list[bytes] = []

    def run(address: str, compute: object, make_tasks: Any, receive: Any) -> None:
        tasks.extend(make_tasks(threads))
        for number in reversed(range(len(tasks))):
            receive(number, answer(tasks[number]))

    monkeypatch.setattr(dask_losses, "_RUN_TASKS", run)
    return tasks


def test_a_real_cluster_gives_the_same_bytes(
    shop: Fleet, simulate: Simulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with run_cluster(tmp_path / "dask") as address:
        for sweep in ("clusters", "pairs"):
            assert simulate("--sweep", sweep, "--dask", address, "-o", "json") == simulate("--sweep", sweep, "-o", "json")
        monkeypatch.setattr(dask_tasks, "_MAX_RESULT", 10)
        assert "something else than the bytes of a result" in simulate("--sweep", "zones", "--dask", address, code=1)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_any_number_of_shards_gives_the_same_bytes(
    shop: Fleet, simulate: Simulate, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, count: int
) -> None:
    """The tasks have everything that a worker needs, and nothing of the content of the repository."""
    shop.commit({"apps/token.yaml": SECRET}, hour=1)
    worker = LossWorker()
    monkeypatch.setattr(dask_losses, "_choose_count", lambda *_: count)
    tasks = fake_cluster(monkeypatch, lambda task: worker.compute(task, tmp_path / "cache", None))
    for sweep in ("clusters", "pairs", "zones"):
        tasks.clear()
        alone = simulate("--sweep", sweep, "-o", "json")
        assert simulate("--sweep", sweep, "--dask", "localhost:8786", "-o", "json") == alone
        assert len(tasks) == count
        for task in tasks:
            assert b"hunter2" not in task
            assert b"kind" not in task
            assert len(task) < 1000


def test_commits_of_branches_that_move_meanwhile_still_count(
    shop: Fleet, simulate: Simulate, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    worker, alone = LossWorker(), simulate("--sweep", "clusters", "-o", "json")

    def move_first(task: bytes) -> bytes:
        shop.commit({"apps/token.yaml": SECRET, "apps/pay.yaml": None}, hour=1)
        shop.reconcile(hour=2)
        return worker.compute(task, tmp_path / "cache", None)

    monkeypatch.setattr(dask_losses, "_choose_count", lambda *_: 1)
    fake_cluster(monkeypatch, move_first)
    assert simulate("--sweep", "clusters", "--dask", "localhost:8786", "-o", "json") == alone


def test_a_worker_says_why_it_has_no_result(
    shop: Fleet, simulate: Simulate, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    worker = LossWorker()

    def change(edit: Callable[[ShardTask], ShardTask]) -> None:
        fake_cluster(monkeypatch, lambda task: worker.compute(write_record(edit(read_record(ShardTask, task))), tmp_path, None))

    here = gitsched.__version__
    for edit, message in (
        (lambda task: task._replace(version="9.9"), f"it has gitsched {here}, and not 9.9"),
        (
            lambda task: task._replace(source=task.source._replace(location="/no/where")),
            "there is no /no/where: where workers have",
        ),
        (lambda task: task._replace(source=task.source._replace(commit="f" * 40)), "has no branch, tag or commit"),
        (lambda task: task._replace(plan="another"), "its plan of these commits is another one"),
        (lambda task: task._replace(source=task.source._replace(now="noon")), "noon"),
    ):
        change(edit)
        assert message in simulate("--sweep", "clusters", "--dask", "localhost:8786", code=1)
    assert b"problem" in worker.compute(b"no task", tmp_path, None)
    assert json.loads(dask_worker.compute_shard(b"[]"))["problem"]


def test_shards_are_neither_too_short_nor_too_long() -> None:
    for groups, cost, threads, expected in (
        (1000, 1.0, 10, 100),  # ten seconds each
        (1000, 0.1, 10, 40),  # four for each thread
        (1000, 0.001, 10, 2),  # half a second each
        (1000, 0.00001, 10, 1),
        (3, 100.0, 10, 3),
        (0, 0.0, 10, 1),
    ):
        assert dask_losses._choose_count(groups, cost, threads) == expected


REFUSED = (
    (("--dask", "10.0.0.1:8786"), 1, "without TLS everybody on the way"),
    (("--dask", "tcp://dask.example.com:8786"), 1, "without TLS everybody on the way"),
    (("--dask", "tcp://127.0.0.1.example.com:8786"), 1, "without TLS everybody on the way"),
    (("--dask", "ws://localhost:8786"), 1, "is no address of a Dask scheduler"),
    (("--dask", "localhost"), 1, "is no address of a Dask scheduler"),
    (("--dask", "tls://:8786"), 1, "is no address of a Dask scheduler"),
    (("--dask", "localhost:8786", "--jobs", "2"), 2, "--jobs and --dask exclude each other"),
    (("--dask", "localhost:8786", "--shard", "1/2", "--out", "x"), 2, "--shard and --dask exclude each other"),
    (("--dask", "localhost:8786", "--against", "main"), 2, "--against and --dask exclude each other"),
    (("--dask", "localhost:8786", "--worktree"), 2, "--worktree and --dask exclude each other"),
    (("--dask", "tls://localhost:8786"), 1, "TLS needs certificates"),
)


def test_addresses_and_options_without_meaning_are_refused(shop: Fleet, simulate: Simulate) -> None:
    for options, code, message in REFUSED:
        assert message in " ".join(simulate("--sweep", "clusters", *options, code=code).split())
    assert "--dask requires --sweep" in simulate("--lose", "w1", "--dask", "localhost:8786", code=2)


def test_urls_with_credentials_are_not_sent(shop: Fleet, simulate: Simulate) -> None:
    url = f"http://user:hunter2@127.0.0.1:9{shop.path}"
    told = simulate("--sweep", "clusters", "--dask", "localhost:8786", "--facts-repository", url, code=1)
    assert "has credentials, which are not sent to workers" in told
    assert "hunter2" not in told


@pytest.fixture(params=["nothing", "silence", "text", "zeros"])
def no_scheduler(request: pytest.FixtureRequest) -> Iterator[str]:
    """A port at which nothing, or something else than a scheduler, answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{server.getsockname()[1]}"
        if request.param == "nothing":
            yield address
            return
        server.listen()
        answer = {"silence": b"", "text": b"HTTP/1.1 400 Bad Request\r\n\r\n", "zeros": bytes(64)}[request.param]
        connections: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    connections.append(server.accept()[0])
                    connections[-1].sendall(answer)
                except OSError:
                    return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield address
        server.shutdown(socket.SHUT_RDWR)
        thread.join(5)
        for connection in connections:
            connection.close()


def test_no_scheduler_at_the_address_is_reported_in_time(
    shop: Fleet, simulate: Simulate, no_scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_tasks, "CONNECT_SECONDS", 0.5)
    told = simulate("--sweep", "clusters", "--dask", no_scheduler, code=4)
    assert f"Dask scheduler at {no_scheduler}" in told
    assert "Traceback" not in told


def test_a_pickle_that_refers_to_a_function_is_refused() -> None:
    class Payload:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, ("/never",)

    data = [
        pickle.dumps(value, protocol)
        for value in (Payload(), datetime(2026, 1, 1, tzinfo=UTC), ValueError("no"))
        for protocol in range(6)
    ]
    plain = [pickle.dumps(value) for value in (b"bytes", {"a": [1, None, "text"]}, bytes)]
    with pickles_refused() as refused:
        for one in data:
            with pytest.raises(PickleRefused):
                pickle.loads(one)
            with pytest.raises(PickleRefused):
                pickle._loads(one)  # type: ignore[attr-defined]
        assert len(refused) == 2 * len(data)
        assert [pickle.loads(one) for one in plain] == [b"bytes", {"a": [1, None, "text"]}, bytes]
    assert isinstance(pickle.loads(data[-1]), ValueError)


HOSTILE = {
    "result": "It was not loaded",
    "inner result": "It was not loaded",
    "exception": "It was not loaded",
    "text": "something else than",
    "garbage": "is not shard 1 of 1: not JSON",
    "problem": "failed on a worker: red \\x1b[31m text",
    "other plan": "its losses are other ones",
    "more results": "it has 5 of 4 results",
}
PLAIN_CLIENT = """\
import sys
from distributed import Client
from gitsched.cli import dask_worker
with Client(sys.argv[1]) as client:
    try:
        client.submit(dask_worker.compute_shard, b"", pure=False).result()
    except Exception:
        pass
    import os
    print(os.getpid())
"""


@pytest.mark.long
def test_a_hostile_worker_runs_nothing_here(
    shop: Fleet, simulate: Simulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "dask"
    expected = simulate("--sweep", "clusters", "-o", "json")
    with run_cluster(directory, hostile=True) as address:
        for mode in ("result", "exception"):  # Dask's own client runs the code: this test can fail
            (directory / "MODE").write_text(mode)
            process = subprocess.run([sys.executable, "-c", PLAIN_CLIENT, address], capture_output=True, text=True, check=True)
            assert (directory / process.stdout.strip()).exists(), process.stderr
        for mode, message in HOSTILE.items():
            (directory / "MODE").write_text(mode)
            told = simulate("--sweep", "clusters", "--dask", address, code=1)
            assert message in told, mode
            assert "Traceback" not in told
            assert not (directory / str(os.getpid())).exists(), mode
        (directory / "MODE").write_text("print")
        assert simulate("--sweep", "clusters", "--dask", address, "-o", "json") == expected


@pytest.mark.long
def test_shards_of_a_worker_that_is_killed_are_computed_by_others(shop: Fleet, simulate: Simulate, tmp_path: Path) -> None:
    directory = tmp_path / "dask"
    expected = simulate("--sweep", "pairs", "-o", "json")
    with run_cluster(directory, workers=2, hostile=True) as address:
        (directory / "MODE").write_text("die once")
        assert simulate("--sweep", "pairs", "--dask", address, "-o", "json") == expected
        assert (directory / "died").exists()
        (directory / "MODE").write_text("die")
        assert "KilledWorker" in simulate("--sweep", "pairs", "--dask", address, code=1)


@pytest.mark.long
def test_a_cluster_without_workers_is_reported_in_time(
    shop: Fleet, simulate: Simulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_tasks, "WORKER_SECONDS", 2)
    with run_cluster(tmp_path / "dask", workers=0) as address:
        assert "has had no worker for 2 s" in simulate("--sweep", "clusters", "--dask", address, code=4)


@pytest.mark.long
def test_workers_with_another_version_are_refused(
    shop: Fleet, simulate: Simulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with run_cluster(tmp_path / "dask") as address:
        monkeypatch.setattr(gitsched, "__version__", "9.9")
        assert "workers have another version of gitsched than 9.9" in simulate("--sweep", "clusters", "--dask", address, code=1)


@pytest.mark.long
@pytest.mark.needs("openssl")
def test_tls_is_verified(shop: Fleet, simulate: Simulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address is tls://, and a scheduler of another authority is refused."""
    ours, theirs = (make_certificate(tmp_path / name) for name in ("ours", "theirs"))
    expected = simulate("--sweep", "clusters", "-o", "json")
    with run_cluster(tmp_path / "dask", tls=ours) as address:
        assert address.startswith("tls://")
        for files, code in ((ours, 0), (theirs, 4)):
            command = [sys.executable, "-m", "gitsched", "simulate", "-C", str(shop.path), "--now", "2026-03-02T10:00:00Z"]
            variables = {f"DASK_DISTRIBUTED__COMM__TLS__{name}": files[of] for name, of in VARIABLES.items()}
            done = subprocess.run(
                [*command, "--sweep", "clusters", "--dask", address, "-o", "json"],
                env={**os.environ, **variables},
                capture_output=True,
                text=True,
            )
            assert done.returncode == code, done.stderr
            if code == 0:
                assert json.loads(done.stdout) == expected
            else:
                assert "there is no Dask scheduler at" in done.stderr
                assert "TLS certificate does not match" in done.stderr


VARIABLES = {"CA_FILE": "ca", "CLIENT__CERT": "cert", "CLIENT__KEY": "key"}


def make_certificate(directory: Path) -> dict[str, str]:
    """Return a self-signed certificate, which is its own authority."""
    directory.mkdir()
    cert, key = str(directory / "cert.pem"), str(directory / "key.pem")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    subprocess.run([*command, "-subj", "/CN=dask", "-out", cert, "-keyout", key], check=True, capture_output=True)
    return {"ca": cert, "cert": cert, "key": key}
