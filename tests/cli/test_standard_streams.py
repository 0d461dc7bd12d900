"""Standard streams that are closed, full or gone: a command does what it does with open ones, and fails only if its result is lost."""

from __future__ import annotations

import os
import pty
import resource
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import pytest

from gitsched.cli import COMMANDS
from gitsched.cli.commands.init import write_new_file
from gitsched.cli.reports import write_file
from gitsched.model.errors import Temporary
from tests import fork_server
from tests.cli.conftest import PATIENCE, Run
from tests.cli.test_processes import WORDS

START = "import sys; from gitsched.__main__ import main; sys.exit(main())"
CLOSED = """\
import os, sys
for number, name in enumerate(("stdin", "stdout", "stderr")):
    if name in os.environ["CLOSED"].split():
        os.close(number)
        setattr(sys, name, None)
from gitsched.__main__ import main
code = main()
for number, name in enumerate(("stdin", "stdout", "stderr")):
    if name in os.environ["CLOSED"].split():
        assert os.path.samestat(os.fstat(number), os.stat(os.devnull)), name
        assert os.get_inheritable(number), name
sys.exit(code)
"""
"""A program that starts as one does whose standard streams are closed, and checks what has got their numbers in the end."""
COMMAND_LINES: dict[str, Sequence[str]] = {
    **WORDS,
    "reconcile": ("reconcile",),
    "watch": ("watch", "--once"),
    "init": ("init", "--commit"),
    "the help": ("--help",),
    "the help of a command": ("plan", "--help"),
    "the version": ("--version",),
    "a wrong command": ("pln",),
    "a wrong option": ("plan", "--wrong"),
    "an error": ("plan", "nowhere"),
}
WRITERS = ("validate", "plan", "schemas", "scores", "rebalance", "the help", "the version", "a wrong command")
"""Those of them that differ in how they write, or write nothing to standard output."""
LOST = "gitsched: standard output: No space left on device\n"
NAMES = "größe/dürre–x.yaml"
BROKEN = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: größe\n"
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: shop\n  annotations: {size: größe – 日本}\n"


class Ended(NamedTuple):
    """The exit code of a command, and what it wrote."""

    code: int
    out: str = ""
    err: str = ""


@pytest.fixture
def execute(fleet: Path, environment: dict[str, str]) -> Callable[..., Ended]:
    """Run a command in a fork whose output is another file, or with closed streams."""

    def run(words: Sequence[str], *, out: IO[bytes] | None = None, err: IO[bytes] | None = None, closed: str = "") -> Ended:
        program = CLOSED if closed else START
        with Path(os.devnull).open("rb") as null, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            files = [null, out or output, err or errors]
            code = fork_server.start(words, fleet, environment | {"CLOSED": closed}, files, program=program).wait(PATIENCE)
            return Ended(code, _read(output), _read(errors))

    return run


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def test_closed_streams_behave_as_dev_null(execute: Callable[..., Ended], fleet: Path) -> None:
    assert COMMAND_LINES.keys() >= COMMANDS.keys()
    closed = {name: execute(words, closed="stdin stdout stderr") for name, words in COMMAND_LINES.items()}
    assert {name: ended.code for name, ended in closed.items() if ended != (execute(COMMAND_LINES[name]).code, "", "")} == {}
    assert not (fleet / "missing.yaml").exists()


@pytest.mark.parametrize(("closed", "has_output", "has_errors"), [("stdin stdout", False, True), ("stderr", True, False)])
def test_a_closed_stream_leaves_the_others_as_they_are(
    execute: Callable[..., Ended], closed: str, has_output: bool, has_errors: bool
) -> None:
    words = ("watch", "--once") if has_errors else ("plan",)
    wanted, found = execute(words), execute(words, closed=closed)
    assert (found.code, bool(found.out), bool(found.err)) == (wanted.code, has_output, has_errors)
    assert found.out == wanted.out or has_errors


def test_a_new_process_without_streams_writes_a_sound_repository(
    fleet: Path, environment: dict[str, str], git: Callable[..., str]
) -> None:
    command = f"exec {shlex.join([sys.executable, '-m', 'gitsched', 'reconcile'])} <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], cwd=fleet, env=environment, check=False).returncode == 0
    git("fsck", "--strict", at=fleet)
    assert git("ls-tree", "-r", "--name-only", "placements", at=fleet).splitlines().count("gitsched.json") == 1


def test_a_full_disk_is_an_error_for_the_result_but_not_for_the_log(execute: Callable[..., Ended]) -> None:
    with Path("/dev/full").open("wb") as full:
        for name in WRITERS:
            words = COMMAND_LINES[name]
            wanted = execute(words)
            found = execute(words, out=full)
            assert (found.code, found.err[-len(LOST) :]) == (4, LOST) if wanted.out else found.code == wanted.code, name
            assert (execute(words, err=full).code, execute(words, out=full, err=full).code) == (wanted.code, found.code), name


def test_a_reader_that_has_gone_does_not_change_the_exit_code(execute: Callable[..., Ended]) -> None:
    for words in (
        ("plan",),
        ("plan", "-o", "yaml"),
        ("validate",),
        ("--help",),
        ("--version",),
        ("plan", "--report", "json=/dev/stdout"),
    ):
        wanted = execute(words)
        for stream in (_open_closed_pipe(), _open_closed_terminal()):
            with stream as gone:
                assert execute(words, out=gone) == (wanted.code, "", wanted.err), words
                assert execute(words, out=gone, err=gone).code == wanted.code, words


@contextmanager
def _open_closed_pipe() -> Iterator[IO[bytes]]:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb", buffering=0) as opened:
        yield opened


@contextmanager
def _open_closed_terminal() -> Iterator[IO[bytes]]:
    terminal, opened = pty.openpty()
    os.close(terminal)
    with os.fdopen(opened, "wb", buffering=0) as gone:
        yield gone


def test_an_output_that_does_not_block_gets_everything(fleet: Path, environment: dict[str, str]) -> None:
    program = "from gitsched.standard_streams import open_standard_streams; open_standard_streams(); print('x' * 1_000_000)"
    read, write = os.pipe()
    os.set_blocking(write, False)
    with os.fdopen(read, "rb") as result, Path(os.devnull).open("r+b") as null:
        with os.fdopen(write, "wb") as pipe:
            process = fork_server.start([], fleet, environment, [null, pipe, null], program=program)
        assert len(result.read()) == 1_000_001
        assert process.wait(PATIENCE) == 0


def test_a_report_to_standard_output_follows_the_result(execute: Callable[..., Ended]) -> None:
    text = execute(("plan",)).out
    assert execute(("plan", "--report", "env=/dev/stdout")).out.startswith(text + "changed=true\n")
    assert execute(("plan", "--report", "env=/dev/fd/2")).err.startswith("changed=true\n")


def test_a_file_that_does_not_fit_is_not_left_in_part(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(Temporary, match=r"^cannot write .*/a/new\.yaml: File too large$"):
            write_new_file(tmp_path, "a/new.yaml", "x" * 200)
        with pytest.raises(Temporary, match=r"^cannot write .*/report: File too large$"):
            write_file(tmp_path / "report", "x" * 200)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list((tmp_path / "a").iterdir()) == []


@pytest.mark.parametrize(
    "variables",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
    ],
    ids=str,
)
def test_names_are_found_and_shown_in_every_locale(fleet: Path, environment: dict[str, str], variables: dict[str, str]) -> None:
    (fleet / NAMES).parent.mkdir()
    (fleet / NAMES).write_text(BROKEN)
    command = [sys.executable, "-m", "gitsched"]
    done = subprocess.run([*command, "validate", "größe"], cwd=fleet, env=environment | variables, capture_output=True, check=False)
    encoding = variables.get("PYTHONIOENCODING", "ascii" if "PYTHONUTF8" in variables else "utf-8")
    assert done.stdout.startswith(NAMES.encode(encoding, "backslashreplace") + b":"), done.stdout
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1), done.stderr


def test_what_programs_read_is_utf8_in_every_locale(gitsched: Run, fleet: Path, environment: dict[str, str]) -> None:
    (fleet / "map.yaml").write_text(MAP)
    files = [word for name in ("one", "two", "web", "policy", "map") for word in ("-f", f"{name}.yaml")]
    words = ["schedule", *files]
    wanted = gitsched(*words).stdout
    command = [sys.executable, "-m", "gitsched", *words]
    found = subprocess.run(command, cwd=fleet, env=environment | {"PYTHONIOENCODING": "ascii"}, capture_output=True, check=True)
    assert found.stdout.decode() == wanted
