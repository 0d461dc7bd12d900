"""Watch a local source, one that pushes, and a URL for minutes while commits arrive, and check memory, open files and the time until a
commit is published: `python -m tests.faults.soak --minutes 10`, or `--minutes 60 --pause 5 url` for an hour of little load."""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.scenarios.conftest import UNGUARDED, Fleet, cluster, deployment, execute, policy

_PEOPLE = {f"GIT_{role}_{what}": f"{what.lower()}@example.com" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
MODES = ("local", "push", "url")
_INTERVAL = 1
_MAX_LAG = 30.0
"""Seconds from a commit to the output commit. The median must be less than a third of it."""
_MAX_MORE_FILES = 4
_MAX_MORE_MEMORY = 0.25
"""Growth of the resident memory after the warm-up, as a part of it."""
_WARM_UP = 10
"""Commits until memory and open files are measured for comparison."""


class Sample(NamedTuple):
    """Seconds until a commit was published; open files and resident memory (kB) of the process then."""

    lag: float
    files: int
    memory: int


class Watched:
    """A fleet and the process that watches it."""

    def __init__(self, mode: str, root: Path) -> None:
        self.mode, self.root, self.samples = mode, root, list[Sample]()
        self.fleet = Fleet(root / "fleet", root / "cache")
        clusters = {f"clusters/{each}.yaml": cluster(each) for each in ("first", "second")}
        self.fleet.commit({**clusters, "policies/all.yaml": policy("first", "second"), "gitsched.yaml": UNGUARDED})
        self.fleet.git("clone", "-q", "--bare", ".", "../remote.git")
        self.fleet.git("remote", "add", "origin", str(root / "remote.git"))
        location = f"file://{root}/remote.git" if mode == "url" else str(self.fleet.path)
        options = ["-C", location, "--cache-dir", str(root / "cache"), "--interval", str(_INTERVAL)]
        with (root / "log").open("wb") as log:
            command = [sys.executable, "-m", "gitsched", "watch", *options, *(["--push", "origin"] if mode == "push" else [])]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    @property
    def target(self) -> Path:
        return self.fleet.path if self.mode == "local" else self.root / "remote.git"

    def step(self, number: int) -> None:
        """Commit, wait until the change is published, and take a sample."""
        self.fleet.commit({f"apps/{number % 20}.yaml": deployment(f"app-{number % 20}", 2 + number)}, hour=number / 60)
        if self.mode == "url":
            self.fleet.git("push", "-q", "origin", "main")
        source, start = self.fleet.git("rev-parse", "HEAD"), time.monotonic()
        while source not in self._read_trailer():
            if time.monotonic() - start > _MAX_LAG or self.process.poll() is not None:
                raise AssertionError(f"{self.mode}: commit {number} is not published after {time.monotonic() - start:.0f} s")
            time.sleep(0.05)
        lag = time.monotonic() - start
        files = sum(1 for _ in Path(f"/proc/{self.process.pid}/fd").iterdir())
        status = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        memory = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
        self.samples.append(Sample(lag, files, memory))

    def _read_trailer(self) -> str:
        log = ["git", "log", "-1", "--format=%(trailers:key=Gitsched-Source)", "placements"]
        return subprocess.run(log, cwd=self.target, capture_output=True, text=True).stdout

    def finish(self) -> list[str]:
        """End the process and return what is wrong."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        log = (self.root / "log").read_text("utf-8", "replace")
        problems = [] if code == 0 and "Traceback" not in log else [f"exit code {code}: {log[-2000:]}"]
        execute("fsck", "--strict", "--no-dangling", at=self.target)
        if len(self.samples) <= 2 * _WARM_UP:
            return [*problems, f"only {len(self.samples)} commits were published"]
        early, late = self.samples[_WARM_UP : 2 * _WARM_UP], self.samples[-_WARM_UP:]
        lags = [sample.lag for sample in self.samples]
        files = max(sample.files for sample in late) - max(sample.files for sample in early)
        memory = [statistics.median(sample.memory for sample in part) for part in (early, late)]
        print(
            f"{self.mode}: {len(self.samples)} commits; lag {statistics.median(lags):.2f} s (median), {max(lags):.2f} s (longest); "
            f"open files {early[0].files} to {late[-1].files}; memory {memory[0] / 1024:.0f} to {memory[1] / 1024:.0f} MB",
            flush=True,
        )
        if files > _MAX_MORE_FILES:
            problems.append(f"{files} more open files")
        if memory[1] > (1 + _MAX_MORE_MEMORY) * memory[0]:
            problems.append(f"memory grows from {memory[0]} to {memory[1]} kB")
        if statistics.median(lags) > _MAX_LAG / 3:
            problems.append(f"a commit is published after {statistics.median(lags):.1f} s")
        return problems


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak", description=__doc__)
    parser.add_argument("modes", nargs="*", choices=[*MODES, []], help="what is watched; all by default")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between two commits")
    options = parser.parse_args()
    os.environ.update(_PEOPLE, GIT_CONFIG_NOSYSTEM="1")
    failed = False
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        watched = []
        for mode in options.modes or MODES:
            (Path(name) / mode).mkdir()
            watched.append(Watched(mode, Path(name) / mode))
        end, number = time.monotonic() + 60 * options.minutes, 0
        try:
            while time.monotonic() < end:
                number += 1
                for each in watched:
                    each.step(number)
                time.sleep(options.pause)
        finally:
            for each in watched:
                problems = each.finish()
                failed = failed or bool(problems)
                for problem in problems:
                    print(f"{each.mode}: {problem}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
