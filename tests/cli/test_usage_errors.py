"""Common mistakes of new users get a message that says what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Run

CONFIG = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec:\n"


@pytest.mark.parametrize("verb", ["plan", "validate", "reconcile", "explain deploy/web"])
def test_a_directory_outside_of_a_repository_is_reported(gitsched: Run, tmp_path: Path, verb: str) -> None:
    place = tmp_path / "elsewhere"
    place.mkdir()
    done = gitsched(*verb.split(), at=place)
    assert (done.returncode, done.stderr) == (
        1,
        f"gitsched: {place} is not in a Git repository; change to one, or select it with -C\n",
    )


@pytest.mark.parametrize("arguments", [("-C", "one"), ("-C", "one/within"), ("-C", ".", "--cache-dir", "one/cache")], ids=str)
@pytest.mark.parametrize("verb", ["plan", "validate", "reconcile"])
def test_symlinks_that_form_a_loop_are_reported(gitsched: Run, fleet: Path, verb: str, arguments: tuple[str, ...]) -> None:
    (fleet / "one").symlink_to("two")
    (fleet / "two").symlink_to("one")
    done = gitsched(verb, *arguments)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "one" in done.stderr


def test_a_repository_without_a_commit_is_reported(gitsched: Run, tmp_path: Path, git: Callable[..., str]) -> None:
    place = tmp_path / "young"
    place.mkdir()
    git("init", "-q", ".", at=place)
    done = gitsched("plan", at=place)
    assert (done.returncode, "create a commit first; `gitsched plan --worktree` reads" in done.stderr) == (1, True)
    assert gitsched("plan", "--worktree", at=place).returncode == 0


@pytest.mark.parametrize("damage", ["commit", "alternates", "ref"])
def test_a_damaged_source_is_not_taken_for_one_without_commits(
    gitsched: Run, fleet: Path, git: Callable[..., str], tmp_path: Path, damage: str
) -> None:
    place, oid = fleet, git("rev-parse", "HEAD", at=fleet)
    if damage == "commit":
        file = fleet / ".git" / "objects" / oid[:2] / oid[2:]
        file.chmod(0o600)
        file.write_bytes(b"")
    elif damage == "alternates":
        place = tmp_path / "shared"
        git("clone", "-q", "--shared", str(fleet), str(place), at=tmp_path)
        (place / ".git" / "objects" / "info" / "alternates").write_text("/nowhere/objects\n")
    else:
        (fleet / ".git" / "refs" / "heads" / "main").write_text("")
    done = gitsched("plan", at=place)
    message = done.stderr.splitlines()[-1]
    assert done.returncode == 1
    assert (f"commit {oid}" if damage != "ref" else "refs/heads/main holds no commit id") in message
    assert f"git -C {place} {'fetch --refetch' if damage == 'commit' else 'fsck'}" in message


def test_a_checked_out_output_branch_is_reported(gitsched: Run, fleet: Path, git: Callable[..., str]) -> None:
    gitsched("reconcile")
    git("checkout", "-q", "placements", at=fleet)
    done = gitsched("plan")
    assert (done.returncode, "or check out the source branch if the output branch is checked out by mistake" in done.stderr) == (
        1,
        True,
    )


def test_an_unknown_remote_is_not_reported_as_pushed(gitsched: Run) -> None:
    assert gitsched("plan", "--fetch", "upstream").stderr.endswith("has no remote 'upstream'\n")


def test_a_missing_file_or_revision_is_reported(gitsched: Run) -> None:
    done = gitsched("validate", "policies/web.yaml")
    assert (done.returncode, "there is no file policies/web.yaml" in done.stderr) == (2, True)
    assert "has no branch, tag or commit 'feature'\n" in gitsched("plan", "feature").stderr
    assert "has no branch, tag or commit 'mian'; did you mean main?\n" in gitsched("plan", "mian").stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CONFIG + "\toutput: {}\n", "gitsched.yaml:5:1: error: the YAML cannot be read: no value begins like this: indent with"),
        (CONFIG + "  karmada: {missingFacts: maybe}\n", "gitsched.yaml:5:27: error: 'missingFacts' must be"),
        ("spec: {}\n", "no valid document with apiVersion: gitsched.io/v1alpha1, kind: Config, metadata: {name: gitsched} and"),
        (CONFIG.replace("metadata", "#"), "metadata: {name: gitsched} and settings under spec; to use the defaults, remove"),
        ("# no settings\n", "metadata: {name: gitsched} and settings under spec; to use the defaults, remove"),
    ],
    ids=["tab", "value", "no type", "no name", "empty"],
)
def test_validate_reports_broken_settings_with_other_findings(
    gitsched: Run, commit: Callable[..., None], fleet: Path, text: str, message: str
) -> None:
    commit(fleet, gitsched=text, other="apiVersion: cluster.karmada.io/v1\nkind: Cluster\nmetadata: {name: a}\n")
    done = gitsched("validate", COLUMNS="200")
    assert done.returncode == 1
    assert message in done.stdout
    assert "other.yaml:1:13: error: Cluster is read as cluster.karmada.io/v1alpha1" in done.stdout


def test_an_unsupported_api_version_is_a_finding(gitsched: Run, commit: Callable[..., None], fleet: Path) -> None:
    """A document of an unsupported version is not validated, so it must not affect decisions."""
    text = "apiVersion: policy.karmada.io/v1\nkind: PropagationPolicy\nmetadata: {name: b, namespace: shop}\nspec: {}\n"
    commit(fleet, other=text.replace("spec: {}", "spec: {resourceSelectors: 3, placement: []}"))
    done = gitsched("plan", "-o", "json")
    assert (done.returncode, '"unknown-version"' in done.stdout) == (1, True), done.stderr


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("pln", "did you mean plan?"),
        ("undrain", "did you mean uncordon?"),
        ("thaw", "did you mean freeze --lift?"),
        ("unexport", "there is no command 'unexport'\n"),
        ("frobnicate", "there is no command 'frobnicate'\n"),
    ],
)
def test_a_misspelt_command_gets_a_suggestion(gitsched: Run, word: str, message: str) -> None:
    done = gitsched(word)
    assert (done.returncode, message in done.stderr) == (2, True)


def test_a_source_without_clusters_is_reported(gitsched: Run, commit: Callable[..., None], fleet: Path) -> None:
    message = (
        "No Cluster found in the source, so nothing can be scheduled. Add one: `gitsched init` writes clusters and a policy.\n"
    )
    assert message not in gitsched("plan").stdout
    commit(fleet, one=None, two=None)
    assert message in gitsched("plan").stdout
    assert message in gitsched("reconcile").stdout


def test_a_shell_can_complete_commands_and_options(gitsched: Run) -> None:
    def complete(words: str, at: int) -> list[str]:
        return gitsched(_GITSCHED_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(at)).stdout.splitlines()

    assert complete("gitsched sim", 1) == ["plain,simulate"]
    assert "plain,--output-branch" in complete("gitsched plan --out", 2)
    assert "_gitsched_completion" in gitsched(_GITSCHED_COMPLETE="bash_source").stdout


@pytest.mark.parametrize(
    ("arguments", "meant"), [("plan --html", "-o html"), ("status --json", "-o json"), ("plan --htm", "--out")]
)
def test_the_name_of_a_form_leads_to_the_option_of_forms(gitsched: Run, fleet: Path, arguments: str, meant: str) -> None:
    done = gitsched(*arguments.split())
    assert (done.returncode, f"Did you mean '{meant}'?" in done.stderr) == (2, True)
