"""Let system calls of a run and of the git processes that it starts fail, with strace: `python -m tests.faults.syscalls`. Exit with 1 if a
trial fails, and with 0 where there is no strace."""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

from tests.faults.__main__ import PEOPLE
from tests.faults.scenes import SCENES, Scene
from tests.faults.trials import examine, prepare

CALLS = (
    "openat",
    "read",
    "pread64",
    "write",
    "pwrite64",
    "fsync",
    "fdatasync",
    "ftruncate",
    "rename",
    "link",
    "unlink",
    "mkdir",
    "getdents64",
)
"""Not getdents64: git takes an error there for the end of a directory, and so a server loses what it received."""
ERRORS = ("ENOSPC", "EIO", "EINTR", "EACCES")
ITSELF = "gitsched"
PROGRAMS = (ITSELF, "push", "fetch", "update-ref")
"""The process itself, and the git commands whose system calls fail."""
_LINE = re.compile(r"(?:(?P<pid>\d+) +)?(?P<name>\w+)\(")
_STRACE = shutil.which("strace")
_GIT = shutil.which("git")
_TIMEOUT = 120
_WRAPPER = """\
#!/bin/sh
case " $* " in *" {verb} "*) exec {command} {git} "$@";; esac
exec {git} "$@"
"""


class SystemCall(NamedTuple):
    """The n-th system call of a name, in each process of the program."""

    program: str
    name: str
    number: int


def run_traced(scene: Scene, program: str, options: list[str]) -> subprocess.CompletedProcess[str]:
    """Run gitsched, itself or one of its git commands under strace."""
    command = [sys.executable, "-m", "gitsched", *scene.list_arguments()]
    environment = {**scene.environment, "PYTHONPATH": str(Path(__file__).parents[2])}
    tracing = [str(_STRACE), "-qq", *options]
    if program == ITSELF:
        command = [*tracing, *command]
    else:
        wrapper = scene.root / "bin" / "git"
        wrapper.parent.mkdir(exist_ok=True)
        wrapper.write_text(_WRAPPER.format(verb=program, command=" ".join([*tracing, "-f"]), git=_GIT))
        wrapper.chmod(0o755)
        environment["PATH"] = f"{wrapper.parent}:{environment['PATH']}"
    return subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT)


def list_calls(scene: Scene, program: str) -> list[SystemCall]:
    """Return the system calls of a program that touch files of the scene."""
    scene.restore()
    log = scene.root / "strace.log"
    log.unlink(missing_ok=True)
    done = run_traced(scene, program, ["-y", "-o", str(log), "-e", f"trace={','.join(CALLS)}"])
    assert done.returncode == 0, done.stderr
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    found: set[SystemCall] = set()
    for line in log.read_text("utf-8", "replace").splitlines() if log.exists() else ():
        match = _LINE.match(line)
        if match is not None:
            counts[match["pid"] or ""][match["name"]] += 1
            if f"{scene.work}/" in line:
                found.add(SystemCall(program, match["name"], counts[match["pid"] or ""][match["name"]]))
    return sorted(found)


def check(scene: Scene, call: SystemCall, fault: str) -> list[str]:
    effect = "signal=KILL" if fault == "kill" else f"error={fault}"
    options = ["-o", "/dev/null", "-e", f"trace={call.name}", "-e", f"inject={call.name}:{effect}:when={call.number}"]

    def run() -> subprocess.CompletedProcess[str]:
        done = run_traced(scene, call.program, options)
        # strace ends as its program did, by a signal or with 128 and its number.
        return subprocess.CompletedProcess(done.args, -9 if done.returncode == 137 else done.returncode, done.stdout, done.stderr)

    return examine(scene, run, may_die=fault == "kill")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.syscalls", description=__doc__)
    parser.add_argument("scenes", nargs="*", help=f"of {', '.join(SCENES)}; local, push and url by default")
    parser.add_argument("--per-call", type=int, default=0, metavar="N", help="calls of each name; 0 (default): all")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if _STRACE is None:
        print("there is no strace: nothing was tried")
        return 0
    os.environ.update(PEOPLE, GIT_CONFIG_NOSYSTEM="1")
    generator, failed = random.Random(options.seed), 0
    for name in options.scenes or ("local", "push", "url"):
        with tempfile.TemporaryDirectory(prefix="syscalls-") as directory:
            scene, counts = prepare(name, Path(directory)), Counter[str]()
            for program in PROGRAMS:
                groups: defaultdict[str, list[SystemCall]] = defaultdict(list)
                for call in list_calls(scene, program):
                    groups[call.name].append(call)
                for calls in groups.values():
                    for call in generator.sample(calls, min(options.per_call or len(calls), len(calls))):
                        for fault in (*ERRORS, "kill"):
                            counts[program] += 1
                            if problems := check(scene, call, fault):
                                failed += 1
                                print(f"{name}, {program}, {call.name} {call.number}: {fault}", *problems, sep="\n    ", flush=True)
            total = ", ".join(f"{count} in {program}" for program, count in counts.items())
            print(f"{name}: {counts.total()} trials ({total}); {failed} failed so far", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
