"""Options of `gitsched watch` for HTTP, webhooks and commit statuses, and the service built from them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gitsched.cli import options
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.forge.project import ForgeKind

_FILE = click.Path(dir_okay=False, path_type=Path)
WEBHOOK_SECRET_VARIABLE, FORGE_TOKEN_VARIABLE = "GITSCHED_WEBHOOK_SECRET", "GITSCHED_FORGE_TOKEN"
SCORE_TOKENS_VARIABLE = "GITSCHED_SCORE_TOKENS"
"""Environment variables for secrets, because all processes can read the command line."""

SERVICE = options.combine(
    click.option(
        "--listen",
        metavar="ADDRESS",
        help="Serve /healthz, /readyz, /metrics, /hook, /scores and the pages at HOST:PORT, [IPv6]:PORT or :PORT.",
    ),
    click.option(
        "--pages",
        is_flag=True,
        help="Serve the pages of the fleet and its history to other machines, too: everybody who can connect can read them. At a loopback "
        "address such as 127.0.0.1:8080 they are always served.",
    ),
    click.option(
        "--webhook-secret-file",
        type=_FILE,
        help=f"File with webhook secrets, one per line; by default ${WEBHOOK_SECRET_VARIABLE}. Without a secret, /hook is disabled.",
    ),
    click.option(
        "--score-tokens-file",
        type=_FILE,
        help=f"File with the tokens with which clusters push scores, a cluster and its token per line; by default "
        f"${SCORE_TOKENS_VARIABLE}. Without tokens, /scores is disabled.",
    ),
    click.option(
        "--debounce",
        type=click.FloatRange(min=0),
        default=1.0,
        show_default=True,
        metavar="SECONDS",
        help="Minimum time between two runs that webhooks or deadlines trigger.",
    ),
    click.option("--status", type=click.Choice(["github", "gitlab"]), help="Set the status of each source commit on this forge."),
    click.option("--forge-api", metavar="URL", help="URL of the forge's API, if it cannot be derived from the URL of the source."),
    click.option("--forge-project", metavar="OWNER/NAME", help="The project, if it cannot be derived from the URL of the source."),
    click.option("--forge-token-file", type=_FILE, help=f"File with the token for statuses; by default ${FORGE_TOKEN_VARIABLE}."),
)


class ServiceOptions(NamedTuple):
    """The values of the service options."""

    listen: str | None
    pages: bool
    webhook_secret_file: Path | None
    score_tokens_file: Path | None
    status: ForgeKind | None
    forge_api: str | None
    forge_project: str | None
    forge_token_file: Path | None
