"""Invalid settings, files and environments are refused with a message that says what to do."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from gitsched.cli import cli
from tests.cli.conftest import Run

CONFIG = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec:\n  output:\n    branch: %s\n"


@pytest.mark.parametrize("name", ["", "origin/main", "a..b", "-x", "refs/tags/v1", "HEAD"])
@pytest.mark.parametrize("verb", ["plan", "reconcile"])
def test_an_invalid_output_branch_name_is_wrong_usage(
    gitsched: Run, fleet: Path, git: Callable[..., str], verb: str, name: str
) -> None:
    before = git("for-each-ref", at=fleet)
    done = gitsched(verb, f"--output-branch={name}")
    assert (done.returncode, "--output-branch" in done.stderr) == (2, True), done.stderr
    assert git("for-each-ref", at=fleet) == before


def test_a_branch_named_after_a_remote_is_refused(gitsched: Run, fleet: Path, git: Callable[..., str]) -> None:
    git("remote", "add", "upstream", "https://git.example.com/fleet.git", at=fleet)
    done = gitsched("plan", "--output-branch", "upstream/placements")
    assert done.returncode == 1
    assert "give the branch without it: placements" in done.stderr
    assert gitsched("plan", "--output-branch", "elsewhere/placements").returncode == 0


@pytest.mark.parametrize("name", ["origin/main", "a..b", "''"])
def test_an_invalid_output_branch_in_the_settings_is_reported_with_its_location(
    gitsched: Run, fleet: Path, commit: Callable[..., None], git: Callable[..., str], name: str
) -> None:
    commit(fleet, gitsched=CONFIG % name)
    done = gitsched("reconcile")
    assert done.returncode == 1
    assert "gitsched.yaml:6:13: error:" in done.stderr
    assert "branch" in done.stderr
    assert git("for-each-ref", "--format=%(refname)", at=fleet) == "refs/heads/main"
    assert "gitsched.yaml:6:13" in gitsched("validate", "--output-branch", "placements").stderr + done.stderr


COMMANDS = """\
adopt --directories .
apply knative
collect --context one
cordon one
drain one
explain deploy/web
export flux
fits main
freeze because
history
init .
plan
plan --worktree
plan main main
rebalance deploy/web
reconcile
scores
simulate --lose one
status
tidy
tree one
uncordon one
validate
validate .
watch --once
"""
"""A command line of each command that reads a repository."""
OTHER_COMMANDS = {"comment", "help-code", "schedule", "schemas", "shadow", "version"}
SHA256 = "has SHA-256 object ids, and gitsched works with SHA-1 repositories only: make one with `git init --object-format=sha1`"
REFTABLE = "keeps its refs in a reftable, which gitsched does not read: `git -C "
FORMATS = {"objectFormat": ("sha256", SHA256), "refStorage": ("reftable", REFTABLE)}
"""Formats of repositories that libgit2 does not read: the setting in the repository, its value, and the error."""


@pytest.fixture(params=FORMATS)
def unreadable(request: pytest.FixtureRequest, tmp_path: Path, git: Callable[..., str]) -> tuple[Path, str]:
    """A repository in a format that only git reads, and the error."""
    place, (value, error) = tmp_path / "other", FORMATS[request.param]
    place.mkdir()
    version = tuple(map(int, re.findall(r"\d+", git("version", at=place))[:2]))
    known = request.param == "objectFormat" or version >= (2, 45)
    option = {"objectFormat": "--object-format", "refStorage": "--ref-format"}[request.param]
    git("init", "-q", "-b", "main", *((f"{option}={value}",) if known else ()), ".", at=place)
    (place / "web.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    git("add", "web.yaml", at=place)
    git("commit", "-qm", "Change", at=place)
    if not known:
        git("config", "core.repositoryFormatVersion", "1", at=place)
        git("config", f"extensions.{request.param}", value, at=place)
    return place, error


def test_each_command_refuses_a_repository_in_a_format_that_only_git_reads(gitsched: Run, unreadable: tuple[Path, str]) -> None:
    """In one line, with what to do."""
    place, error = unreadable
    failed = []
    for line in COMMANDS.splitlines():
        done = gitsched(*line.split(), at=place)
        (last,) = done.stderr.splitlines() or [""]
        if done.returncode not in (1, 2) or error not in last or done.stdout:
            failed.append((line, done.returncode, done.stdout, done.stderr))
    assert failed == []
    assert {line.split()[0] for line in COMMANDS.splitlines()} == {*cli.list_commands(click.Context(cli))} - OTHER_COMMANDS


def test_an_output_repository_in_a_format_that_only_git_reads_is_refused(gitsched: Run, unreadable: tuple[Path, str]) -> None:
    place, error = unreadable
    for command in ("plan", "reconcile", "status"):
        done = gitsched(command, "--output-repository", str(place))
        (line,) = done.stderr.splitlines()
        assert (done.returncode, error in line) == (1, True), done.stderr


def test_a_remote_with_sha256_ids_is_refused_in_one_line(
    gitsched: Run, fleet: Path, git: Callable[..., str], tmp_path: Path
) -> None:
    git("init", "-q", "--bare", "-b", "main", "--object-format=sha256", str(tmp_path / "other.git"), at=tmp_path)
    url = (tmp_path / "other.git").as_uri()
    for arguments in (("reconcile", "--push", url), ("reconcile", "--output-repository", url)):
        done = gitsched(*arguments)
        (line,) = done.stderr.splitlines()
        assert (done.returncode, SHA256 in line) == (1, True), done.stderr


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("", "the git executable is not on the PATH; gitsched needs git 2.32 or newer"),
        ("#!/bin/sh\necho git version 2.20.1\n", "git 2.20 is too old: gitsched needs git 2.32 or newer"),
        ("#!/bin/sh\necho something else\n", "cannot read the version of git"),
    ],
    ids=["absent", "old", "something else"],
)
def test_a_missing_or_outdated_git_is_reported(gitsched: Run, fleet: Path, tmp_path: Path, program: str, words: str) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    if program:
        (programs / "git").write_text(program)
        (programs / "git").chmod(0o755)
    for command in (("reconcile",), ("plan", "-C", fleet.as_uri()), ("plan", "--worktree"), ("validate",), ("watch", "--once")):
        done = gitsched(*command, PATH=str(programs))
        (line,) = done.stderr.splitlines()
        assert (done.returncode, words in line) == (1, True), done.stderr


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("just: {some: text\n", 1, "error"),
        ("- a\n- list\n", 1, "error"),
        ("replicas: 3\n", 1, "error"),
        ("# nothing yet\n", 0, "the file is empty"),
    ],
    ids=["no YAML", "a list", "no object", "empty"],
)
def test_schedule_rejects_a_file_without_documents(gitsched: Run, tmp_path: Path, text: str, code: int, words: str) -> None:
    path = tmp_path / "documents.yaml"
    path.write_text(text)
    done: subprocess.CompletedProcess[str] = gitsched("schedule", "-f", str(path))
    assert done.returncode == code
    assert f"{path}:1:1: " in done.stderr
    assert words in done.stderr
    assert "[no-documents]" in done.stderr


def test_a_log_line_contains_its_level_once(gitsched: Run, fleet: Path, commit: Callable[..., None]) -> None:
    commit(fleet, bad="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, name: b}\n")
    done = gitsched("watch", "--once")
    (line,) = [line for line in done.stderr.splitlines() if "bad.yaml" in line]
    assert line.count("error") == 1
    assert line.endswith("[duplicate-key]")


def test_long_lists_of_findings_are_truncated_with_a_count(gitsched: Run, fleet: Path, commit: Callable[..., None]) -> None:
    broken = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, labels: {{k{0}: a, k{0}: b}}}}\n"
    commit(fleet, **{f"bad{number}": broken.format(number) for number in range(70)})
    for verb in ("validate", "plan", "reconcile"):
        lines = gitsched(verb).stdout.splitlines()
        below_headline = 0 if verb == "validate" else 10
        assert len({line for line in lines if ": error: " in line}) == 50 + below_headline
        assert any(line.startswith("and ") and line.endswith("); use -o json for all") for line in lines)
    assert gitsched("validate", "-o", "json").stdout.count('"duplicate-key"') == 70


def test_a_duplicate_is_reported_with_three_locations_and_a_fix(gitsched: Run, fleet: Path, commit: Callable[..., None]) -> None:
    web = (fleet / "web.yaml").read_text()
    commit(
        fleet,
        **{f"overlay{number}": web.replace("metadata:\n", f"metadata:\n  labels: {{copy: c{number}}}\n", 1) for number in range(6)},
    )
    (line,) = [
        line for line in gitsched("validate").stdout.replace("\n[", " [").splitlines() if "is defined more than once" in line
    ]
    assert "also overlay1.yaml:1:1, overlay2.yaml:1:1, overlay3.yaml:1:1 and 3 more" in line
    assert ".sourceignore" in gitsched("validate").stdout


def test_a_report_is_not_written_through_a_symbolic_link(gitsched: Run, fleet: Path, tmp_path: Path) -> None:
    """The target of a link in a checkout is chosen by its author. Device files are allowed."""
    outside = tmp_path / "outside"
    outside.write_text("untouched")
    (fleet / "plan.md").symlink_to(outside)
    done = gitsched("plan", "--report", "markdown=plan.md")
    assert (done.returncode, outside.read_text()) == (1, "untouched")
    assert "plan.md: it is a symbolic link; remove it, or use the path of its target" in done.stderr
    (fleet / "reports").symlink_to(tmp_path)
    done = gitsched("plan", "--report", "markdown=reports/new.md")
    assert (done.returncode, (tmp_path / "new.md").exists()) == (1, False)
    assert "reports is a symbolic link in a worktree" in done.stderr
    assert "<!-- gitsched:plan" in gitsched("plan", "--report", "markdown=/dev/stdout").stdout


def test_no_command_writes_through_a_link_of_the_worktree(gitsched: Run, fleet: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("links", ".gitsched", "apps"):
        (fleet / name).symlink_to(outside)
    (fleet / "schema.json").symlink_to(outside / "schema.json")
    done = [
        gitsched("init"),
        gitsched("schemas", "--write", ".gitsched/schema.json"),
        gitsched("schemas", "--write", "schema.json"),
        gitsched("export", "flux", "--url", "https://git.example.com/fleet", "--directory", "links/flux"),
    ]
    assert [(one.returncode, one.stdout) for one in done] == [(1, "")] * 4
    assert list(outside.iterdir()) == []
