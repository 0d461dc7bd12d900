"""gitsched comment: create or update the comment of a plan on a pull or merge request."""

from __future__ import annotations

from pathlib import Path

import click

from gitsched.cli import LazyCommand, options
from gitsched.cli.service_options import FORGE_TOKEN_VARIABLE


@click.command(
    "comment",
    cls=LazyCommand,
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
@click.option("--only-update", is_flag=True, help="Write no new comment: only update one of an earlier run.")
@options.LOCATION
def command() -> None:
    """Create or update a comment of a pull or merge request with the content of FILE (`-` for stdin).

    FILE is the output of `gitsched plan -o markdown`. Its hidden first line identifies the comment to update.
    """
