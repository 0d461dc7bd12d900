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
    from gitsched.watch.service import ScoreSettings, WatchService

_FILE = click.Path(dir_okay=False, path_type=Path)
WEBHOOK_SECRET_VARIABLE, FORGE_TOKEN_VARIABLE = "GITSCHED_WEBHOOK_SECRET", "GITSCHED_FORGE_TOKEN"
SCORE_TOKENS_VARIABLE = "GITSCHED_SCORE_TOKENS"
"""Environment variables for secrets, because all processes can read the command line."""

_MAX_SCORE_TOKENS = 10_000

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


class _ReconcilerContext(NamedTuple):
    reconciler: Reconciler
    status: ForgeKind | None
    fail_on: exit_codes.FailOn

    def commit_time(self, commit: str) -> datetime:
        return self.reconciler.source.repository.commit(commit).time

    def head_commit(self) -> str:
        from gitsched.model.errors import GitschedError

        try:
            return self.reconciler.source.resolve_branch(self.reconciler.settings.branch)
        except GitschedError:
            return ""

    def is_success(self, review: Review) -> bool:
        return exit_codes.get_review_code(review, self.fail_on) == exit_codes.DONE

    def link_commit(self, review: Review, commit: str) -> str:
        from gitsched.forge.project import link_commit

        return link_commit(self.status, review.output_repository, commit) if self.status else ""


def open_service(chosen: ServiceOptions, reconciler: Reconciler, wakeup: Wakeup, fail_on: exit_codes.FailOn) -> WatchService:
    """Return the service, which is already listening. Raises a usage error for invalid combinations of options."""
    from gitsched.watch.service import WatchService

    webhook_secret = _take_credential("webhook secret", WEBHOOK_SECRET_VARIABLE, chosen.webhook_secret_file, reconciler)
    token = _take_credential("token of the forge", FORGE_TOKEN_VARIABLE, chosen.forge_token_file, reconciler)
    scores = _take_score_settings(chosen.score_tokens_file, reconciler)
    if webhook_secret is not None and chosen.listen is None:
        raise click.UsageError("a webhook secret requires --listen")
    if scores is not None and chosen.listen is None:
        raise click.UsageError("tokens for scores require --listen")
    if chosen.pages and chosen.listen is None:
        raise click.UsageError("--pages requires --listen")
    if chosen.status is None and (chosen.forge_api or chosen.forge_project or chosen.forge_token_file):
        raise click.UsageError("--forge-api, --forge-project and --forge-token-file require --status")
    if chosen.status is not None and token is None:
        raise click.UsageError(f"--status requires a token: use --forge-token-file or set {FORGE_TOKEN_VARIABLE}")

    context = _ReconcilerContext(reconciler, chosen.status, fail_on)
    service = WatchService(context, reconciler.settings.output_branch or "placements", wakeup)
    if chosen.listen is not None:
        _listen(chosen, chosen.listen, service, webhook_secret, scores, reconciler)
    if chosen.status is not None and token is not None:
        from gitsched.forge.project import open_status_api
        from gitsched.forge.status_reporter import StatusReporter

        forge = open_status_api(chosen.status, _find_repository_url(reconciler), api=chosen.forge_api, project=chosen.forge_project)
        service.set_status_reporter(StatusReporter(forge, token, service.count_status))
    return service


def _take_score_settings(path: Path | None, reconciler: Reconciler) -> ScoreSettings | None:
    """Return the tokens of the clusters and what commits their scores; None without tokens."""
    limits = {"max_lines": _MAX_SCORE_TOKENS, "max_bytes": 1 << 20}
    credential = _take_credential("tokens for scores", SCORE_TOKENS_VARIABLE, path, reconciler, **limits)
    if credential is None:
        return None
    from gitsched.reconcile.facts.score_reception import ScoreReceiver
    from gitsched.watch.loop import read_clock
    from gitsched.watch.score_endpoint import ClusterTokens
    from gitsched.watch.service import ScoreSettings

    tokens = ClusterTokens(credential)
    tokens.read()
    return ScoreSettings(tokens, ScoreReceiver(reconciler.settings, read_clock))


def _listen(
    chosen: ServiceOptions,
    address: str,
    service: WatchService,
    webhook_secret: Credential | None,
    scores: ScoreSettings | None,
    reconciler: Reconciler,
) -> None:
    from gitsched.watch.http_server import format_address, is_loopback, listen, reserve_files
    from gitsched.watch.service import PageSettings

    reserve_files()
    sockets = listen(address)
    local_only = not chosen.pages and all(map(is_loopback, sockets))
    pages = PageSettings(lambda: reconciler.source.repository.path, local_only) if chosen.pages or local_only else None
    service.serve(sockets, webhook_secret, scores, pages)
    addresses = [format_address(opened) for opened in sockets]
    fields = {"event": "listen", "addresses": addresses, "hook": webhook_secret is not None, "scores": scores is not None}
    fields["pages"] = pages is not None
    suffix = "" if webhook_secret else ", without a webhook"
    suffix += f"; the fleet is at http://{addresses[0]}/" if pages is not None else ""
    output.LOGGER.info("listening on %s%s", ", ".join(addresses), suffix, extra={"fields": fields})


def _take_credential(name: str, variable: str, path: Path | None, reconciler: Reconciler, **limits: int) -> Credential | None:
    """Return a readable secret, or None. The variable is removed from the environment, so that child processes do not inherit it."""
    from gitsched.forge.credentials import Credential

    value = os.environ.pop(variable, "")
    if path is None and not value:
        return None
    secret = Credential(name, value=value if path is None else "", path=path, **limits)
    if reconciler.source.url is None:
        secret.check_outside(Path(reconciler.source.repository.root))
    secret.read()
    return secret


def _find_repository_url(reconciler: Reconciler) -> str | None:
    """Return the URL of the source on its forge: its own URL, or that of the remote that is pushed to."""
    from gitsched.git import is_url
    from gitsched.git.remote_refs import find_remote_url

    source, push = reconciler.source, reconciler.settings.push or "origin"
    if source.url is not None:
        return source.url
    return push if is_url(push) else find_remote_url(source.repository, push)
