"""gitsched comment: create or update the comment of a plan on a pull or merge request."""

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
"""The maximum number of bytes of a comment; forges accept less."""


@click.command(
    "comment",
    epilog=options.show_examples(
        ("The plan of a pull request, as its comment", "comment plan.md --forge github --request 5"),
        ("From stdin", "comment - --forge gitlab --request 5"),
    ),
)
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--forge", "kind", type=click.Choice(["github", "gitlab"]), required=True, help="The kind of forge.")
@click.option(
    "--request", type=click.IntRange(min=1), metavar="NUMBER", required=True, help="The number of the pull or merge request."
)
@click.option(
    "--forge-api", "api", metavar="URL", help="URL of the forge's API, if it cannot be derived from the repository's URL."
)
@click.option(
    "--forge-project", "project", metavar="OWNER/NAME", help="The project, if it cannot be derived from the repository's URL."
)
@click.option(
    "--forge-token-file",
    "token_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help=f"File with the token; by default ${FORGE_TOKEN_VARIABLE} is used.",
)
@options.LOCATION
def command(
    file: Path, kind: ForgeKind, request: int, api: str | None, project: str | None, token_file: Path | None, location: str
) -> None:
    """Create or update a comment of a pull or merge request with the content of FILE (`-` for stdin).

    FILE is the output of `gitsched plan -o markdown`. Its hidden first line identifies the comment to update.
    """
    from gitsched.forge.comments import MergeRequestComments, PullRequestComments, write_comment
    from gitsched.forge.project import find_project

    text = _read_text(file)
    token = _take_token(token_file)
    url = _find_repository_url(location) if api is None or project is None else None
    target = find_project(kind, url, api=api, project=project)
    comments = PullRequestComments(*target, request) if kind == "github" else MergeRequestComments(*target, request)
    result = write_comment(comments, token.read()[0], text)
    output.show_text(f"{result.capitalize()}: the comment in {'#' if kind == 'github' else '!'}{request} of {target.project}\n")


def _read_text(file: Path) -> str:
    try:
        if str(file) == "-":
            data = sys.stdin.buffer.read(_MAX_BYTES + 1)
        else:
            with file.open("rb") as stream:
                data = stream.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise click.ClickException(f"{file} has more than {_MAX_BYTES} bytes, which no forge accepts as a comment; shorten it")
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"cannot read {file}: {getattr(error, 'strerror', None) or 'it is not UTF-8 text'}") from error


def _take_token(path: Path | None) -> Credential:
    from gitsched.forge.credentials import Credential

    value = os.environ.pop(FORGE_TOKEN_VARIABLE, "")
    if path is None and not value:
        raise click.UsageError(f"no token: use --forge-token-file or set {FORGE_TOKEN_VARIABLE}")
    return Credential("token of the forge", value=value if path is None else "", path=path)


def _find_repository_url(location: str) -> str | None:
    """Return the URL of a repository on its forge: the given URL, or that of the remote `origin`."""
    from gitsched.git import is_url, open_repository
    from gitsched.git.remote_refs import find_remote_url

    return location if is_url(location) else find_remote_url(open_repository(location), "origin")
