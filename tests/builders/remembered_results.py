"""Remember what programs print for the same files: kustomize, which takes a tenth of a second, builds many files in more than one test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

from gitsched.build.process import BuildLimits, ProcessResult

Run = Callable[[Path, Sequence[str], Path, BuildLimits], ProcessResult]


def remember_builds(run: Run) -> Run:
    """Return a function as `run_isolated` that runs a program once for the same arguments, limits and files.

    Failures are not remembered, because they name the directory, nor runs that write files.
    """
    results: dict[bytes, ProcessResult] = {}

    def run_once(executable: Path, arguments: Sequence[str], directory: Path, limits: BuildLimits) -> ProcessResult:
        if limits.written:
            return run(executable, arguments, directory, limits)
        program = executable.stat()
        parts = [executable, program.st_size, program.st_mtime_ns, *arguments, limits]
        for path in sorted(directory.rglob("*")):
            content = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
            parts += [path.relative_to(directory), content]
        key = sha256(repr(parts).encode()).digest()
        if key in results:
            return results[key]
        done = run(executable, arguments, directory, limits)
        if done.exit_code == 0 and not done.exceeded:
            results[key] = done
        return done

    return run_once
