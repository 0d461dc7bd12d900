"""Reconcile in two processes while `git gc --prune=now` runs in the same repository, and check that the output branch stays complete:
`python -m tests.faults.gc_races`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests import fork_server
from tests.scenarios.conftest import UNGUARDED, Fleet, at_hour, cluster, deployment, policy

_PEOPLE = {f"GIT_{role}_{what}": f"{what.lower()}@example.com" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def make_fleet(directory: Path, workloads: int) -> Fleet:
    fleet = Fleet(directory / "fleet", directory / "cache")
    clusters = {f"clusters/{each}.yaml": cluster(each) for each in ("first", "second")}
    fleet.commit({**clusters, "policies/all.yaml": policy("first", "second"), "gitsched.yaml": UNGUARDED})
    change(fleet, workloads, 0)
    fleet.reconcile()
    return fleet


def change(fleet: Fleet, workloads: int, hour: int) -> None:
    """Commit new content of every workload."""
    fleet.commit({f"apps/{number}.yaml": deployment(f"app-{number}", 2 + hour) for number in range(workloads)}, hour=hour)


@contextmanager
def collecting_garbage(fleet: Fleet) -> Iterator[None]:
    """Run `git gc --prune=now` again and again."""
    ended = threading.Event()

    def work() -> None:
        while not ended.is_set():
            subprocess.run(["git", "gc", "-q", "--prune=now"], cwd=fleet.path, capture_output=True)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def race(fleet: Fleet, directory: Path, hour: int) -> list[str]:
    """Reconcile in two processes and return what is wrong afterwards."""
    files: list[tuple[IO[bytes], ...]] = [tuple(tempfile.TemporaryFile() for _ in range(3)) for _ in range(2)]  # noqa: SIM115 - until the writers end
    writers = [
        fork_server.start(
            ["reconcile", "-C", str(fleet.path), "--cache-dir", str(directory / f"cache-{n}"), "--now", at_hour(hour).isoformat()],
            directory, os.environ, files[n],
        )
        for n in range(2)
    ]  # fmt: skip
    problems = []
    for writer, opened in zip(writers, files, strict=True):
        code = writer.wait(120)
        opened[2].seek(0)
        said = opened[2].read().decode()
        if code not in (0, 4) or "Traceback" in said:
            problems.append(f"exit code {code}: {said}")
    done = subprocess.run(["git", "rev-list", "--objects", "--quiet", "placements"], cwd=fleet.path, capture_output=True, text=True)
    return [*problems, *([f"the output branch is not complete: {done.stderr}"] if done.returncode else [])]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.gc_races", description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--workloads", type=int, default=10)
    options = parser.parse_args()
    os.environ.update(_PEOPLE, GIT_CONFIG_NOSYSTEM="1")
    broken = 0
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        fleet = make_fleet(Path(name), options.workloads)
        for hour in range(1, options.rounds + 1):
            change(fleet, options.workloads, hour)
            with collecting_garbage(fleet):
                problems = race(fleet, Path(name), hour)
            if problems:
                print(f"round {hour}", *problems, sep="\n    ", flush=True)
                broken += 1
    print(f"{hour} rounds, {broken} broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
