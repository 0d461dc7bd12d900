"""Invalid settings, files and environments are refused with a message that says what to do."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

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


def test_a_repository_with_sha256_ids_is_refused_by_path_and_by_url(
    gitsched: Run, environment: dict[str, str], tmp_path: Path, git: Callable[..., str]
) -> None:
    place = tmp_path / "long"
    place.mkdir()
    git("init", "-q", "-b", "main", "--object-format=sha256", ".", at=place)
    (place / "web.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    git("add", "web.yaml", at=place)
    git("commit", "-qm", "Change", at=place)
    for location in (str(place), place.as_uri()):
        done = gitsched("plan", "-C", location)
        assert (done.returncode, "works with SHA-1 repositories only" in done.stderr) == (1, True), done.stderr


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("", "the git executable is not on the PATH; gitsched needs git 2.31 or newer"),
        ("#!/bin/sh\necho git version 2.20.1\n", "git 2.20 is too old: gitsched needs git 2.31 or newer"),
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
    done = gitsched("reconcile", PATH=str(programs))
    assert (done.returncode, words in done.stderr) == (1, True), done.stderr


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
    broken = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, name: b}\n"
    commit(fleet, **{f"bad{number}": broken for number in range(60)})
    for verb in ("validate", "plan", "reconcile"):
        lines = gitsched(verb).stdout.splitlines()
        assert len([line for line in lines if ": error: " in line]) == 50
        assert any(line.startswith("and ") and line.endswith("); use -o json for all") for line in lines)
    assert gitsched("validate", "-o", "json").stdout.count('"duplicate-key"') == 60


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
