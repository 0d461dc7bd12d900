"""The service of `gitsched watch`, built from its options: HTTP, webhooks and commit statuses."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import click

from gitsched.cli import exit_codes
from gitsched.cli.service_options import FORGE_TOKEN_VARIABLE, SCORE_TOKENS_VARIABLE, WEBHOOK_SECRET_VARIABLE, ServiceOptions
from gitsched.forge.credentials import Credential
from gitsched.forge.project import ForgeKind, link_commit, open_status_api
from gitsched.git import is_url
from gitsched.git.remote_refs import find_remote_url
from gitsched.model.errors import GitschedError
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile import Reconciler
from gitsched.report.review import Review
from gitsched.watch import Wakeup
from gitsched.watch.service import WatchService

_MAX_SCORE_TOKENS = 10_000


class _ReconcilerContext(NamedTuple):
    reconciler: Reconciler
    status: ForgeKind | None
    fail_on: exit_codes.FailOn

    def commit_time(self, commit: str) -> datetime:
        return self.reconciler.source.repository.commit(commit).time

    def head_commit(self) -> str:
        try:
            return self.reconciler.source.resolve_branch(self.reconciler.settings.branch)
        except GitschedError:
            return ""

    def is_success(self, review: Review) -> bool:
        return exit_codes.get_review_code(review, self.fail_on) == exit_codes.DONE

    def link_commit(self, review: Review, commit: str) -> str:
        return link_commit(self.status, review.output_repository, commit) if self.status else ""


def open_service(chosen: ServiceOptions, reconciler: Reconciler, wakeup: Wakeup, fail_on: exit_codes.FailOn) -> WatchService:
    """Return the service, which is already listening. Raises a usage error for invalid combinations of options."""
    webhook_secret = _take_credential("webhook secret", WEBHOOK_SECRET_VARIABLE, chosen.webhook_secret_file, reconciler)
    token = _take_credential("token of the forge", FORGE_TOKEN_VARIABLE, chosen.forge_token_file, reconciler)
    limits = {"max_lines": _MAX_SCORE_TOKENS, "max_bytes": 1 << 20}
    score_tokens = _take_credential("tokens for scores", SCORE_TOKENS_VARIABLE, chosen.score_tokens_file, reconciler, **limits)
    if webhook_secret is not None and chosen.listen is None:
        raise click.UsageError("a webhook secret requires --listen")
    if score_tokens is not None and chosen.listen is None:
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
        from gitsched.cli.http_service import serve  # many processes do not listen

        serve(service, chosen.listen, reconciler, webhook_secret, score_tokens, pages=chosen.pages)
    if chosen.status is not None and token is not None:
        from gitsched.forge.status_reporter import StatusReporter  # needs httpx

        forge = open_status_api(chosen.status, _find_repository_url(reconciler), api=chosen.forge_api, project=chosen.forge_project)
        service.set_status_reporter(StatusReporter(forge, token, service.count_status))
    return service


def _take_credential(name: str, variable: str, path: Path | None, reconciler: Reconciler, **limits: int) -> Credential | None:
    """Return a readable secret, or None. The variable is removed from the environment, so that child processes do not inherit it."""
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
    source, push = reconciler.source, reconciler.settings.push or "origin"
    if source.url is not None:
        return source.url
    return push if is_url(push) else find_remote_url(source.repository, push)
