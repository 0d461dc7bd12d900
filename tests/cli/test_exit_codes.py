"""Exit codes of runs and errors."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import click
import pygit2
import pytest

import gitsched.cli
from gitsched.cli.exit_codes import FailOn, get_error_code, get_run_code
from gitsched.model.errors import Conflict, Permanent, Temporary
from gitsched.model.finding import Finding
from tests.tables import each_row

ERROR, WARNING = Finding("error", "x", "x"), Finding("warning", "x", "x")


@pytest.mark.parametrize(
    ("error", "code"),
    [(Permanent("x"), 1), (Temporary("x"), 4), (Conflict("x"), 4), (KeyError("x"), 3), (KeyboardInterrupt(), 130)],
    ids=lambda value: type(value).__name__,
)
def test_every_exception_has_an_exit_code(error: BaseException, code: int) -> None:
    assert get_error_code(error) == code


@each_row(
    ("findings", "fail_on", "pending", "refused", "changes", "code"),
    [
        ([], "error", 0, False, False, 0),
        ([WARNING], "error", 3, False, False, 0),
        ([ERROR], "error", 0, False, False, 1),
        ([ERROR], "unschedulable", 0, False, False, 1),
        ([ERROR], "none", 3, False, False, 0),
        ([], "unschedulable", 1, False, False, 1),
        ([], "none", 0, True, False, 1),
        ([], "error", 0, False, True, 2),
        ([ERROR], "error", 0, False, True, 1),
        ([ERROR], "none", 0, False, True, 2),
    ],
)
def test_exit_code_of_a_run(
    findings: list[Finding], fail_on: FailOn, pending: int, refused: bool, changes: bool, code: int
) -> None:
    assert get_run_code(findings, fail_on, pending=pending, refused=refused, changes=changes) == code


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    @click.command("broken")
    def command() -> None:
        raise error

    monkeypatch.setitem(gitsched.cli.COMMANDS, "broken", "Fail.")
    monkeypatch.setattr(gitsched.cli.LazyGroup, "get_command", lambda self, ctx, name: command)


def test_an_internal_error_is_one_line_with_a_request_to_report_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raising(monkeypatch, ZeroDivisionError("0 of 0"))
    monkeypatch.delenv("GITSCHED_DEBUG", raising=False)
    assert gitsched.cli.main(["broken"]) == 3
    output = capsys.readouterr().err
    assert "ZeroDivisionError: 0 of 0" in output
    assert "report it" in output
    assert "Traceback" not in output
    monkeypatch.setenv("GITSCHED_DEBUG", "1")
    assert gitsched.cli.main(["broken"]) == 3
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    raising(monkeypatch, KeyboardInterrupt())
    assert gitsched.cli.main(["broken"]) == 130


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/cache/x"), 4, "gitsched: /cache/x: No space left on device"),
        (OSError(errno.EMFILE, "Too many open files"), 4, "gitsched: Too many open files"),
        (PermissionError(errno.EACCES, "Permission denied", "/cache"), 1, "gitsched: /cache: Permission denied"),
        (pygit2.GitError("object not found"), 4, "gitsched: the repository cannot be read or written: object not found"),
    ],
    ids=["full disk", "too many files", "permission", "libgit2"],
)
def test_errors_of_the_system_are_no_bugs(
    error: Exception, code: int, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(gitsched.cli.cli, "main", fail)
    assert gitsched.cli.main(["validate"]) == code
    assert capsys.readouterr().err.strip() == message


@pytest.mark.parametrize(("end", "code"), [("raise KeyboardInterrupt", 130), ("os.kill(os.getpid(), signal.SIGTERM)", 143)])
def test_an_interrupt_during_the_start_shows_no_traceback(end: str, code: int) -> None:
    script = (
        "import os, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == 'gitsched.cli': {end}\n"
        "sys.meta_path.insert(0, Finder())\n"
        "from gitsched.__main__ import main\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=Path.cwd())
    assert (done.returncode, done.stderr) == (code, "")
