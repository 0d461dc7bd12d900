"""The options by which `gitsched watch` is a service, and the service that they ask for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from gitsched.cli import exit_codes, options, output

if TYPE_CHECKING:
    from datetime import datetime

    from gitsched.forge.address import Kind
    from gitsched.forge.secret import Secret
    from gitsched.reconcile import Session
    from gitsched.report.review import Review
    from gitsched.watch import Bell
    from gitsched.watch.service import Service

_FILE = click.Path(dir_okay=False, path_type=Path)
HOOK_SECRET, FORGE_TOKEN = "GITSCHED_WEBHOOK_SECRET", "GITSCHED_FORGE_TOKEN"
"""What must not be on a command line, where every process can read it."""

SERVE = options.combine(
    click.option(
        "--listen",
        metavar="ADDRESS",
        help="Serve /healthz, /readyz, /metrics and /hook at HOST:PORT, [IPv6]:PORT or :PORT.",
    ),
    click.option(
        "--webhook-secret-file",
        type=_FILE,
        help=f"What webhooks are signed with, one secret a line; or ${HOOK_SECRET}. Without a secret there is no /hook.",
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
    click.option("--forge-token-file", type=_FILE, help=f"The token for statuses; or ${FORGE_TOKEN}."),
)


class Serving(NamedTuple):
    """What these options said."""

    listen: str | None
    webhook_secret_file: Path | None
    status: Kind | None
    forge_api: str | None
    forge_project: str | None
    forge_token_file: Path | None


class _Facts(NamedTuple):
    session: Session
    status: Kind | None
    fail_on: exit_codes.FailOn

    def date(self, commit: str) -> datetime:
        return self.session.source.repository.commit(commit).time

    def head(self) -> str:
        from gitsched.model.errors import GitschedError

        try:
            return self.session.source.head(self.session.settings.branch)
        except GitschedError:
            return ""

    def judge(self, review: Review) -> bool:
        from gitsched.cli.reviewing import judge

        return judge(review, self.fail_on) == exit_codes.DONE

    def link(self, review: Review, commit: str) -> str:
        from gitsched.forge.address import link_commit

        return link_commit(self.status, review.place, commit) if self.status else ""


def open_service(asked: Serving, session: Session, bell: Bell, fail_on: exit_codes.FailOn) -> Service:
    """The service, listening already. Raises what says in one line what is wrong with the options."""
    from gitsched.watch.service import Service

    hook = _take_secret("webhook secret", HOOK_SECRET, asked.webhook_secret_file, session)
    token = _take_secret("token of the forge", FORGE_TOKEN, asked.forge_token_file, session)
    if hook is not None and asked.listen is None:
        raise click.UsageError("a webhook secret is of use only with --listen")
    if asked.status is None and (asked.forge_api or asked.forge_project or asked.forge_token_file):
        raise click.UsageError("--forge-api, --forge-project and --forge-token-file are of use only with --status")
    if asked.status is not None and token is None:
        raise click.UsageError(f"--status needs a token: --forge-token-file, or the variable {FORGE_TOKEN}")

    service = Service(_Facts(session, asked.status, fail_on), session.settings.output_branch or "placements", bell)
    if asked.listen is not None:
        _listen(asked.listen, service, hook)
    if asked.status is not None and token is not None:
        from gitsched.forge.address import open_forge
        from gitsched.forge.reporter import Reporter

        forge = open_forge(asked.status, _find_repository(session), api=asked.forge_api, project=asked.forge_project)
        service.report_by(Reporter(forge, token, service.count_status))
    return service


def _listen(address: str, service: Service, hook: Secret | None) -> None:
    from gitsched.watch.address import listen, name_socket

    sockets = listen(address)
    service.serve(sockets, hook)
    places = [name_socket(opened) for opened in sockets]
    fields = {"event": "listen", "addresses": places, "hook": hook is not None}
    output.LOGGER.info("listening on %s%s", ", ".join(places), "" if hook else ", without a webhook", extra={"fields": fields})


def _take_secret(name: str, variable: str, path: Path | None, session: Session) -> Secret | None:
    """A secret that can be read now, or None. The variable is taken away: no child of this process needs it."""
    from gitsched.forge.secret import Secret

    value = os.environ.pop(variable, "")
    if path is None and not value:
        return None
    secret = Secret(name, value=value if path is None else "", path=path)
    if session.source.url is None:
        secret.keep_out_of(Path(session.source.repository.place))
    secret.read()
    return secret


def _find_repository(session: Session) -> str | None:
    """The address of the source on its forge: its own, or that of the remote that is pushed to."""
    from gitsched.git import is_url
    from gitsched.git.wire import remote_url

    source, push = session.source, session.settings.push or "origin"
    if source.url is not None:
        return source.url
    return push if is_url(push) else remote_url(source.repository, push)
