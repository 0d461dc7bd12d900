"""gitsched init: the two files to start from."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gitsched.cli import exit_codes, output
from gitsched.cli.starters import STARTERS
from gitsched.cli.validate import find_root

NEXT = """
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
    type=click.Choice(list(STARTERS)),
    default="karmada",
    show_default=True,
    help="Whose policies to begin with; all of them are read, whichever it is.",
)
@click.argument("directory", type=click.Path(file_okay=False, exists=True, path_type=Path), default=".")
def command(api: str, directory: Path) -> int:
    """Write gitsched.yaml and an example of a policy into DIRECTORY; files that exist stay as they are."""
    starter = STARTERS[api]
    lines = [f"{'wrote' if write(directory / name, text) else 'kept '} {name}" for name, text in starter.files.items()]
    git = "" if find_root(str(directory)) else "  git init                  decisions are made from the commits of a repository\n"
    *others, last = (name for name in STARTERS if name != api)
    told = NEXT.format(git=git, describe=starter.describe, page=starter.page, others=f"{', '.join(others)} and {last}")
    output.show("\n".join(lines) + "\n" + told)
    return exit_codes.DONE


def write(path: Path, text: str) -> bool:
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
