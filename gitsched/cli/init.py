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
"""Relative path of a clone of gitsched next to the repository; an absolute path would be wrong on other machines."""
_CONFIG = f"""\
# yaml-language-server: $schema={SCHEMA_DIRECTORY}/gitsched.io/v1alpha1/Config.json
# Settings of gitsched. All settings have defaults, so this file may be empty or missing.
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
    return {api.name: api.load_starter for api in policy_apis.values() if api.load_starter is not None}


NEXT_STEPS = """
Next:
{git}  describe the fleet        {describe}
  gitsched validate         list all mistakes with file, line and column
  gitsched plan --worktree  show the planned placements without writing anything
  git add . && git commit   gitsched schedules from commits
  gitsched reconcile        commit the decisions to the branch `placements`

See {page} of gitsched. For policies of {others}, use --api.
"""


@click.command("init")
@click.option(
    "--api",
    type=click.Choice(list(list_starters())),
    default=next(iter(list_starters())),
    show_default=True,
    help="The policy API of the example; gitsched reads the policies of all APIs.",
)
@click.argument("directory", type=click.Path(file_okay=False, exists=True, path_type=Path), default=".")
def command(api: str, directory: Path) -> int:
    """Write gitsched.yaml and an example policy into DIRECTORY. Existing files are not changed."""
    starter = list_starters()[api]()
    files = {"gitsched.yaml": _CONFIG + starter.settings, **starter.files}
    lines = [f"{'wrote' if write_new_file(directory / name, content) else 'kept '} {name}" for name, content in files.items()]
    git = "" if find_worktree_root(str(directory)) else "  git init                  gitsched reads the commits of a repository\n"
    *others, last = (name for name in list_starters() if name != api)
    text = NEXT_STEPS.format(git=git, describe=starter.fleet_hint, page=starter.docs_page, others=f"{', '.join(others)} and {last}")
    output.show("\n".join(lines) + "\n" + text)
    return exit_codes.DONE


def write_new_file(path: Path, text: str) -> bool:
    """Write a file and return whether it was written; an existing file, even a dangling link, is not changed."""
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
