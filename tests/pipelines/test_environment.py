"""A machine that lacks what `make demo` and `make test` need is told so in one line, with what to install."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .runner import ROOT

PYTHON = "3.11 to 3.14, and name it as in: make PYTHON=python3.14 ..."
NEEDED = ("sed", "tail", "sh")


def make_machine(at: Path, **programs: str) -> Path:
    """Make a directory for the PATH with the tools of every machine and these shell scripts as programs."""
    at.mkdir()
    for name in NEEDED:
        (at / name).symlink_to(shutil.which(name) or "")
    for name, script in programs.items():
        (at / name).write_text(f"#!/bin/sh\n{script}\n")
        (at / name).chmod(0o755)
    return at


def make_environment(machine: Path, locks: str = "requirements") -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / ".ci" / "environment"), "python3", str(machine / "venv"), locks]
    return subprocess.run(command, cwd=ROOT, env={"PATH": str(machine)}, capture_output=True, text=True)


def report(version: str) -> str:
    """Return a script that behaves as a Python of this version where its version is asked for, and otherwise as the running one."""
    asked = f"import sys; sys.version_info = ({version.replace('.', ', ')}, 0, 'final', 0); exec(sys.argv[1])"
    return f'[ "$1" = -c ] || exit 9\nexec {sys.executable} -c "{asked}" "$2"'


GIT = "echo git version 2.39.5"


@pytest.mark.parametrize(
    ("programs", "message"),
    [
        ({"python3": report("3.11")}, "git is not installed: install git 2.32 or newer"),
        ({"git": "echo git version 2.30.9"}, "git 2.30 is too old: install git 2.32 or newer"),
        ({"git": "echo 'git version 1.99.1 (Apple Git-1)'"}, "git 1.99 is too old: install git 2.32 or newer"),
        ({"git": GIT}, f"python3 is not installed: install Python {PYTHON}"),
        ({"git": GIT, "python3": "echo no version; exit 127"}, f"python3 is not installed: install Python {PYTHON}"),
        ({"git": GIT, "python3": report("3.10")}, f"python3 is Python 3.10, which is too old: install Python {PYTHON}"),
        ({"git": GIT, "python3": report("2.7")}, f"python3 is Python 2.7, which is too old: install Python {PYTHON}"),
        (
            {"git": GIT, "python3": report("3.15")},
            f"python3 is Python 3.15, for which requirements/ has no packages: install Python {PYTHON}",
        ),
        (
            {"git": GIT, "python3": f'case "$2" in *ensurepip*) exit 1;; esac\n{report("3.13")}'},
            "python3 makes no virtual environments: install its modules venv and ensurepip, which Debian has in python3.13-venv",
        ),
    ],
)
def test_one_line_says_what_to_install(tmp_path: Path, programs: dict[str, str], message: str) -> None:
    done = make_environment(make_machine(tmp_path / "bin", **programs))
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message + "\n")


def test_other_locks_may_be_for_a_newer_python(tmp_path: Path) -> None:
    """`make newest` tries a Python for which the lock files have no packages yet."""
    done = make_environment(make_machine(tmp_path / "bin", git=GIT, python3=report("3.15")), "build/newest")
    assert done.returncode == 9, done.stderr
