"""gitsched comment: create or update the comment of a plan on a pull or merge request."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gitsched.cli import formats
from gitsched.cli.service_options import FORGE_TOKEN_VARIABLE
from gitsched.forge.comments import MergeRequestComments, PullRequestComments, write_comment
from gitsched.forge.credentials import Credential
from gitsched.forge.project import find_project
from gitsched.git import Repository, is_url
from gitsched.git.remote_refs import find_remote_url

if TYPE_CHECKING:
    from gitsched.forge.project import ForgeKind


_MAX_BYTES = 1 << 20
"""The maximum number of bytes of a comment; forges accept less."""


def run(
    file: Path,
    kind: ForgeKind,
    request: int,
    api: str | None,
    project: str | None,
    token_file: Path | None,
    only_update: bool,
    location: str,
) -> None:
    """Carry out the command."""
    text = _read_text(file)
    token = _take_token(token_file)
    url = _find_repository_url(location) if api is None or project is None else None
    target = find_project(kind, url, api=api, project=project)
    comments = PullRequestComments(*target, request) if kind == "github" else MergeRequestComments(*target, request)
    result = write_comment(comments, token.read()[0], text, only_update=only_update)
    formats.show_text(f"{result.capitalize()}: the comment in {'#' if kind == 'github' else '!'}{request} of {target.project}\n")


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
    value = os.environ.pop(FORGE_TOKEN_VARIABLE, "")
    if path is None and not value:
        raise click.UsageError(f"no token: use --forge-token-file or set {FORGE_TOKEN_VARIABLE}")
    return Credential("token of the forge", value=value if path is None else "", path=path)


def _find_repository_url(location: str) -> str | None:
    """Return the URL of a repository on its forge: the given URL, or that of the remote `origin`."""
    return location if is_url(location) else find_remote_url(Repository(location), "origin")
