"""Write generated files as a Git repository: one pack, fixed identity and dates, so that commit ids are the same on any machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

from benchmarks.generator import change

START = 1_768_208_400
"""2026-01-12T09:00:00Z, the time of the first commit; each further one is a minute later."""
_FOREIGN = ("GIT_", "GITSCHED_", "PYTHONDONTWRITEBYTECODE")
NAME, ADDRESS = "Pat Platform", "pat@example.com"


def environment(round_: int = 0) -> dict[str, str]:
    """Return the environment for git and gitsched: no user configuration, and the identity and date of the commit of a round.

    Python keeps its bytecode, as for an installed gitsched; otherwise each process would compile every module.
    """
    when = datetime.fromtimestamp(START + 60 * round_, UTC).isoformat()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    fixed = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": NAME,
        "GIT_AUTHOR_EMAIL": ADDRESS,
        "GIT_AUTHOR_DATE": when,
        "GIT_COMMITTER_NAME": NAME,
        "GIT_COMMITTER_EMAIL": ADDRESS,
        "GIT_COMMITTER_DATE": when,
    }
    return kept | fixed


def git(directory: Path, *words: str, round_: int = 0, data: bytes = b"") -> str:
    """Return the output of a git command. Raise CalledProcessError when it fails."""
    command = ["git", "-C", str(directory), *words]
    done = subprocess.run(command, input=data, env=environment(round_), stdout=subprocess.PIPE, check=True)
    return done.stdout.decode().strip()


def create(directory: Path, files: Mapping[str, bytes]) -> str:
    """Create a repository with a worktree whose branch main has one commit with the files. Return the id of the commit.

    Objects are in one pack, as after a clone, and git never collects garbage in the background of a measurement.
    """
    directory.mkdir(parents=True)
    git(directory, "init", "--quiet", "--template=")
    git(directory, "symbolic-ref", "HEAD", "refs/heads/main")
    git(directory, "config", "gc.auto", "0")
    git(directory, "config", "maintenance.auto", "false")
    git(directory, "fast-import", "--quiet", data=b"".join(_stream(files)))
    git(directory, "reset", "--quiet", "--hard", "main")
    return git(directory, "rev-parse", "main")


def _stream(files: Mapping[str, bytes]) -> Iterable[bytes]:
    """Return the input of git fast-import for one commit."""
    message = b"The fleet\n"
    signature = f"{NAME} <{ADDRESS}> {START} +0000"
    yield f"commit refs/heads/main\nauthor {signature}\ncommitter {signature}\ndata {len(message)}\n".encode() + message
    for path in sorted(files):
        yield f"M 100644 inline {path}\ndata {len(files[path])}\n".encode() + files[path] + b"\n"


def read_files(directory: Path) -> dict[str, bytes]:
    """Return the content of every file of the worktree by path."""
    found = sorted(path for path in directory.rglob("*.yaml") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in found}


def commit_change(directory: Path, files: Mapping[str, bytes], round_: int) -> float:
    """Change the manifest of a round and commit it. Return the seconds of `git add` and `git commit`."""
    path, data = change(files, round_)
    git(directory, "update-index", "-q", "--refresh")  # as any earlier git command would have done
    (directory / path).write_bytes(data)
    start = perf_counter()
    git(directory, "add", "--", path, round_=round_)
    git(directory, "commit", "--quiet", "-m", f"Round {round_}", round_=round_)
    return perf_counter() - start
