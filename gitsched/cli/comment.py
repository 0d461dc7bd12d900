"""gitsched comment: write a plan as a comment of a pull or merge request."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gitsched.cli import options, output
from gitsched.cli.service_options import FORGE_TOKEN_VARIABLE

if TYPE_CHECKING:
    from gitsched.forge.credentials import Credential
    from gitsched.forge.project import ForgeKind

_MAX_BYTES = 1 << 20
"""Characters of a text that is read at all; forges take less."""


@click.command("comment")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--forge", "kind", type=click.Choice(["github", "gitlab"]), required=True, help="Whose API it is.")
@click.option("--request", type=click.IntRange(min=1), metavar="NUMBER", required=True, help="The pull or merge request.")
@click.option("--forge-api", "api", metavar="URL", help="The forge's API, where the repository's address does not say it.")
@click.option(
    "--forge-project", "project", metavar="OWNER/NAME", help="The project, where the repository's address does not say it."
)
@click.option(
    "--forge-token-file",
    "token_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help=f"The token; or ${FORGE_TOKEN_VARIABLE}.",
)
@options.LOCATION
def command(
    file: Path, kind: ForgeKind, request: int, api: str | None, project: str | None, token_file: Path | None, location: str
) -> None:
    """Write FILE (`-` for stdin) as a comment of a pull or merge request, or renew the one that is there.

    FILE is what `gitsched plan -o markdown` printed. Its first line, which does not show, tells which comment it is.
    """
    from gitsched.forge.comments import MergeRequestComments, PullRequestComments, write_comment
    from gitsched.forge.project import find_project

    text = _read_text(file)
    token = _take_token(token_file)
    where = find_project(kind, _find_repository_url(location) if api is None or project is None else None, api=api, project=project)
    conversation = PullRequestComments(*where, request) if kind == "github" else MergeRequestComments(*where, request)
    done = write_comment(conversation, token.read()[0], text)
    output.show(f"{done.capitalize()}: the comment in {'#' if kind == 'github' else '!'}{request} of {where.project}\n")


def _read_text(file: Path) -> str:
    try:
        data = sys.stdin.buffer.read(_MAX_BYTES) if str(file) == "-" else file.read_bytes()[:_MAX_BYTES]
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"cannot read {file}: {getattr(error, 'strerror', None) or 'it is no text'}") from error


def _take_token(path: Path | None) -> Credential:
    from gitsched.forge.credentials import Credential

    value = os.environ.pop(FORGE_TOKEN_VARIABLE, "")
    if path is None and not value:
        raise click.UsageError(f"a comment needs a token: --forge-token-file, or the variable {FORGE_TOKEN_VARIABLE}")
    return Credential("token of the forge", value=value if path is None else "", path=path)


def _find_repository_url(location: str) -> str | None:
    """The address of a repository on its forge: its own, or that of its `origin`."""
    from gitsched.git import is_url, open_repository
    from gitsched.git.refs import find_remote_url

    return location if is_url(location) else find_remote_url(open_repository(location), "origin")
