"""What a shell completes: names from a local repository, without errors and without a remote."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from gitsched.cli import cli, main
from tests.cli.conftest import Run


def complete(line: str) -> list[str]:
    """Return what completes the last word of a command line; it is "" after a space."""
    *words, last = line.split(" ")
    return [item.value for item in ShellComplete(cli, {}, "gitsched", "_GITSCHED_COMPLETE").get_completions(words, last)]


@pytest.fixture
def placed(fleet: Path, gitsched: Run, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    gitsched("reconcile")
    git("branch", "feature", at=fleet)
    git("tag", "v1", at=fleet)
    monkeypatch.chdir(fleet)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return fleet


COMPLETED = {
    "stat": ["status"],
    "explain -n ": ["shop"],
    "explain d": ["deployment/shop/web"],
    "explain deploy/": ["deploy/shop/web"],
    "explain -n shop deploy/": ["deploy/web"],
    "explain c": ["cluster/one", "cluster/two"],
    "explain x --why-not o": ["one"],
    "plan f": ["feature"],
    "plan ": ["feature", "main", "placements", "v1"],
    "plan --branch m": ["main"],
    "reconcile --output-branch ": ["placements"],
    "help-code [": [],
    "help-code invalid-doc": ["invalid-document"],
    "history w": ["web"],
    "history --cluster ": ["one", "two"],
    "simulate --lose r": ["region/"],
    "rebalance sts/": [],
    "validate o": ["one.yaml"],
    "tree o": ["one"],
    "pln --f": [],
}


def test_names_of_the_repository_and_of_the_documentation_are_completed(placed: Path) -> None:
    assert {line: complete(line) for line in COMPLETED} == COMPLETED


def test_another_repository_is_read_with_either_option(placed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert complete(f"-C {placed} history --cluster ") == complete(f"history -C {placed} --cluster ") == ["one", "two"]
    assert complete("history --cluster ") == []


def test_completion_contacts_no_remote_and_prints_no_error(
    placed: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a remote was contacted")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr("gitsched.git.process.run_git", refuse)
    (placed / "gitsched.yaml").write_text("{{{")
    assert complete("history -C https://git.example.com/fleet.git --cluster ") == []
    assert complete("history -C /dev/null --cluster ") == []
    assert complete("history --cluster ") == ["one", "two"]
    monkeypatch.setenv("_GITSCHED_COMPLETE", "bash_complete")
    for words, number in (("gitsched pln x ", "3"), ("gitsched plan --now never -", "4"), ("gitsched 'plan", "1"), ("", "x")):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", number)
        with contextlib.suppress(SystemExit):
            main([])
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("_GITSCHED_COMPLETE", f"{shell}_source")
    with pytest.raises(SystemExit):
        main([])
    assert f"_GITSCHED_COMPLETE={shell}_complete" in capfd.readouterr().out
