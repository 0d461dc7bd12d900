"""gitsched init: write gitsched.yaml and an example policy for the chosen policy API."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import click

from gitsched.apis.policy_api import StarterFiles
from gitsched.cli import exit_codes, output
from gitsched.cli.validate import find_worktree_root
from gitsched.decide.registry import policy_apis

SCHEMA_DIRECTORY = "../gitsched/schemas"
"""A clone of gitsched beside the repository: a path of this machine would be wrong on every other."""
_CONFIG = f"""\
# yaml-language-server: $schema={SCHEMA_DIRECTORY}/gitsched.io/v1alpha1/Config.json
# Settings of gitsched. Everything has a default; this file could be empty, or missing.
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata:
  name: gitsched
spec:
  output:
    branch: placements # where decisions are committed; never the source branch
"""


def list_starters() -> dict[str, Callable[[], StarterFiles]]:
    """Return the policy APIs that have starter files, by name."""
    return {api.name: api.load_starter for api in policy_apis() if api.load_starter is not None}


NEXT_STEPS = """
Next:
{git}  describe the fleet        {describe}
  gitsched validate         every mistake with file, line and column
  gitsched plan --worktree  what would be placed where; writes nothing
  git add . && git commit   decisions are made from commits
  gitsched reconcile        commits the decisions to the branch `placements`

{page} of gitsched says more. Policies of {others} have starts of their own: --api.
"""


@click.command("init")
@click.option(
    "--api",
    type=click.Choice(list(list_starters())),
    default=next(iter(list_starters())),
    show_default=True,
    help="Whose policies to begin with; all of them are read, whichever it is.",
)
@click.argument("directory", type=click.Path(file_okay=False, exists=True, path_type=Path), default=".")
def command(api: str, directory: Path) -> int:
    """Write gitsched.yaml and an example of a policy into DIRECTORY; files that exist stay as they are."""
    starter = list_starters()[api]()
    files = {"gitsched.yaml": _CONFIG + starter.settings, **starter.files}
    lines = [f"{'wrote' if write_new_file(directory / name, text) else 'kept '} {name}" for name, text in files.items()]
    git = (
        ""
        if find_worktree_root(str(directory))
        else "  git init                  decisions are made from the commits of a repository\n"
    )
    *others, last = (name for name in list_starters() if name != api)
    told = NEXT_STEPS.format(git=git, describe=starter.fleet_hint, page=starter.docs_page, others=f"{', '.join(others)} and {last}")
    output.show("\n".join(lines) + "\n" + told)
    return exit_codes.DONE


def write_new_file(path: Path, text: str) -> bool:
    """Whether the file was written: one that exists, even as a dangling link, is never touched."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        return False
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}") from error
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    return True
