"""Options of `gitsched watch` for HTTP, webhooks and commit statuses, and the service built from them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from gitsched.cli import exit_codes, options, output

if TYPE_CHECKING:
    from datetime import datetime

    from gitsched.forge.credentials import Credential
    from gitsched.forge.project import ForgeKind
    from gitsched.reconcile import Reconciler
    from gitsched.report.review import Review
    from gitsched.watch import Wakeup
    from gitsched.watch.service import WatchService

_FILE = click.Path(dir_okay=False, path_type=Path)
WEBHOOK_SECRET_VARIABLE, FORGE_TOKEN_VARIABLE = "GITSCHED_WEBHOOK_SECRET", "GITSCHED_FORGE_TOKEN"
"""What must not be on a command line, where every process can read it."""

SERVICE = options.combine(
    click.option(
        "--listen",
        metavar="ADDRESS",
        help="Serve /healthz, /readyz, /metrics and /hook at HOST:PORT, [IPv6]:PORT or :PORT.",
    ),
    click.option(
        "--webhook-secret-file",
        type=_FILE,
        help=f"What webhooks are signed with, one secret a line; or ${WEBHOOK_SECRET_VARIABLE}. Without a secret there is no /hook.",
    ),
    click.option(
        "--debounce",
        type=click.FloatRange(min=0),
        default=1.0,
        show_default=True,
        metavar="SECONDS",
        help="Looks that webhooks ask for are so far apart at least.",
    ),
    click.option("--status", type=click.Choice(["github", "gitlab"]), help="Tell this forge what became of each source commit."),
    click.option("--forge-api", metavar="URL", help="The forge's API, where the source's address does not say it."),
    click.option("--forge-project", metavar="OWNER/NAME", help="The project there, where the source's address does not say it."),
    click.option("--forge-token-file", type=_FILE, help=f"The token for statuses; or ${FORGE_TOKEN_VARIABLE}."),
)


class ServiceOptions(NamedTuple):
    """What these options said."""

    listen: str | None
    webhook_secret_file: Path | None
    status: ForgeKind | None
    forge_api: str | None
    forge_project: str | None
    forge_token_file: Path | None


class _SessionContext(NamedTuple):
    session: Reconciler
    status: ForgeKind | None
    fail_on: exit_codes.FailOn

    def commit_time(self, commit: str) -> datetime:
        return self.session.source.repository.commit(commit).time

    def head_commit(self) -> str:
        from gitsched.model.errors import GitschedError

        try:
            return self.session.source.resolve_branch(self.session.settings.branch)
        except GitschedError:
            return ""

    def is_success(self, review: Review) -> bool:
        from gitsched.cli.exit_codes import get_review_code

        return get_review_code(review, self.fail_on) == exit_codes.DONE

    def link_commit(self, review: Review, commit: str) -> str:
        from gitsched.forge.project import link_commit

        return link_commit(self.status, review.output_repository, commit) if self.status else ""


def open_service(asked: ServiceOptions, session: Reconciler, bell: Wakeup, fail_on: exit_codes.FailOn) -> WatchService:
    """The service, listening already. Raises what says in one line what is wrong with the options."""
    from gitsched.watch.service import WatchService

    hook = _take_credential("webhook secret", WEBHOOK_SECRET_VARIABLE, asked.webhook_secret_file, session)
    token = _take_credential("token of the forge", FORGE_TOKEN_VARIABLE, asked.forge_token_file, session)
    if hook is not None and asked.listen is None:
        raise click.UsageError("a webhook secret is of use only with --listen")
    if asked.status is None and (asked.forge_api or asked.forge_project or asked.forge_token_file):
        raise click.UsageError("--forge-api, --forge-project and --forge-token-file are of use only with --status")
    if asked.status is not None and token is None:
        raise click.UsageError(f"--status needs a token: --forge-token-file, or the variable {FORGE_TOKEN_VARIABLE}")

    service = WatchService(_SessionContext(session, asked.status, fail_on), session.settings.output_branch or "placements", bell)
    if asked.listen is not None:
        _listen(asked.listen, service, hook)
    if asked.status is not None and token is not None:
        from gitsched.forge.project import open_status_api
        from gitsched.forge.status_reporter import StatusReporter

        forge = open_status_api(asked.status, _find_repository_url(session), api=asked.forge_api, project=asked.forge_project)
        service.set_status_reporter(StatusReporter(forge, token, service.count_status))
    return service


def _listen(address: str, service: WatchService, hook: Credential | None) -> None:
    from gitsched.watch.http_server import format_address, listen

    sockets = listen(address)
    service.serve(sockets, hook)
    places = [format_address(opened) for opened in sockets]
    fields = {"event": "listen", "addresses": places, "hook": hook is not None}
    output.LOGGER.info("listening on %s%s", ", ".join(places), "" if hook else ", without a webhook", extra={"fields": fields})


def _take_credential(name: str, variable: str, path: Path | None, session: Reconciler) -> Credential | None:
    """A secret that can be read now, or None. The variable is taken away: no child of this process needs it."""
    from gitsched.forge.credentials import Credential

    value = os.environ.pop(variable, "")
    if path is None and not value:
        return None
    secret = Credential(name, value=value if path is None else "", path=path)
    if session.source.url is None:
        secret.check_outside(Path(session.source.repository.root))
    secret.read()
    return secret


def _find_repository_url(session: Reconciler) -> str | None:
    """The address of the source on its forge: its own, or that of the remote that is pushed to."""
    from gitsched.git import is_url
    from gitsched.git.refs import find_remote_url

    source, push = session.source, session.settings.push or "origin"
    if source.url is not None:
        return source.url
    return push if is_url(push) else find_remote_url(source.repository, push)
