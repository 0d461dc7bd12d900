"""The examples at the end of each help, and -C before a command."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from gitsched.cli import COMMANDS, cli
from tests.cli.conftest import Run


def list_commands(group: click.Group = cli, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from list_commands(command, (*words, name))
        else:
            yield (*words, name), command


@pytest.mark.parametrize(("words", "command"), [entry for entry in list_commands() if entry[0] != ("version",)])
def test_a_help_has_examples_whose_options_exist(
    words: tuple[str, ...], command: click.Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("my-fleet", "plan.md"):
        (tmp_path / name).mkdir() if "." not in name else (tmp_path / name).write_text("")
    text = command.get_help(click.Context(command))
    found = re.findall(r"^ +# (.+)\n +gitsched (.+)$", text.partition("Examples:\n")[2], re.MULTILINE)
    assert 2 <= len(found) <= 3
    for title, line in found:
        assert title[0].isupper()
        arguments = shlex.split(line)
        assert tuple(arguments[: len(words)]) == words
        command.make_context("gitsched", arguments[len(words) :])


_RUN = (
    *("validate", "plan", "reconcile", "explain", "simulate", "status", "tree", "history", "tidy"),
    *("drain", "cordon", "uncordon", "freeze", "rebalance", "export", "schemas", "help-code"),
)
"""The commands whose examples are run; those of others need clusters, a forge, a remote or files."""
REFUSED = {
    "plan main feature": "has no branch, tag or commit 'feature'",
    "reconcile --push": "has no remote 'origin'",
    "export tenants shop --for argocd --url https://git.example.com/fleet.git": "unknown tenant: 'shop'",
    "reconcile --push --sign ssh:/keys/gitsched": "has no remote 'origin'",
}
"""Examples that need what these fleets do not have, with what they say."""
_NAMES = {"web": "cart", "cloud-1": "nimbus-eu-west-1", "cloud-2": "nimbus-eu-west-2"}
"""Names in examples/repo for those that `gitsched init` writes."""
REPOSITORY = Path(__file__).parents[2] / "examples" / "repo"


@pytest.mark.long
@pytest.mark.parametrize("fleet_of", ["init", "examples/repo"])
def test_the_examples_of_a_help_work(gitsched: Run, git: Callable[..., str], tmp_path: Path, fleet_of: str) -> None:
    place, names = tmp_path / "place", _NAMES if fleet_of != "init" else {}
    shutil.copytree(REPOSITORY, place) if names else place.mkdir()
    git("init", "-q", "-b", "main", at=place)
    if names:
        git("add", ".", at=place)
        git("commit", "-qm", "Describe the fleet", at=place)
    else:
        assert gitsched("init", "--commit", at=place).returncode == 0
    assert gitsched("reconcile", at=place).returncode == 0
    helps = [command.get_help(click.Context(command)) for words, command in list_commands() if words[0] in _RUN]
    lines = [line for text in helps for line in re.findall(r"^ +# .+\n +gitsched (.+)$", text, re.MULTILINE)]
    assert len(lines) > 2 * len(_RUN)
    for line in lines:
        own = re.sub(r"\b(?:web|cloud-[12])\b", lambda name: names.get(name[0], name[0]), line)
        done, refusal = gitsched(*shlex.split(own), at=place), REFUSED.get(line, "")
        git("checkout", "-q", ".", at=place)
        git("clean", "-fdq", at=place)
        assert (done.returncode != 0, refusal in done.stderr) == (bool(refusal), True), (own, done.stdout, done.stderr)


def read_location(*arguments: str) -> object:
    """Return the repository of a command line."""
    general = cli.make_context("gitsched", list(arguments))
    _, command, rest = cli.resolve_command(general, [*general._protected_args, *general.args])
    assert command is not None
    return command.make_context("plan", rest, parent=general).params["location"]


def test_a_repository_before_the_command_is_that_of_the_command(
    gitsched: Run, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITSCHED_REPO", "variable")  # of `watch` alone
    assert [
        read_location("plan"),
        read_location("-C", "a", "plan"),
        read_location("-C", "a", "plan", "-C", "b"),
        read_location("-C", "a", "watch"),
        read_location("watch"),
    ] == [".", "a", "b", "a", "variable"]
    done = gitsched("-C", str(fleet), "schemas")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        "Error: -C is for commands that read a repository, and `schemas` reads none",
    )


def test_every_command_is_in_the_table() -> None:
    assert {words[0] for words, _ in list_commands()} == set(COMMANDS)
