"""The service of `gitsched watch` over HTTP: probes, metrics, webhooks, scores that clusters push, and the pages."""

from __future__ import annotations

from functools import partial

from gitsched.cli import output
from gitsched.forge.credentials import Credential
from gitsched.reconcile import Reconciler
from gitsched.reconcile.facts.observation_times import read_run_observation_times
from gitsched.reconcile.facts.score_reception import ScoreReceiver
from gitsched.reconcile.output.output_history import open_run_history
from gitsched.reconcile.review.freezes import list_run_freezes
from gitsched.reconcile.review.withheld_changes import list_run_requests
from gitsched.watch.http_server import format_address, is_loopback, listen, reserve_files
from gitsched.watch.loop import read_clock
from gitsched.watch.score_endpoint import ClusterTokens
from gitsched.watch.service import PageSettings, ScoreSettings, WatchService


def serve(
    service: WatchService,
    address: str,
    reconciler: Reconciler,
    webhook_secret: Credential | None,
    score_tokens: Credential | None,
    *,
    pages: bool,
) -> None:
    """Listen at an address. Without tokens, no scores are taken; `pages` are also served to other machines."""
    scores = None
    if score_tokens is not None:
        tokens = ClusterTokens(score_tokens)
        tokens.read()
        scores = ScoreSettings(tokens, ScoreReceiver(reconciler.settings, read_clock))
    reserve_files()
    sockets = listen(address)
    local_only = not pages and all(map(is_loopback, sockets))
    shown = (
        PageSettings(
            lambda: reconciler.source.repository.path,
            partial(open_run_history, reconciler.settings),
            local_only,
            reconciler.source.find_url(),
            lambda run: tuple(list_run_freezes(reconciler.context, run)),
            lambda run: list_run_requests(reconciler.context, run),
            lambda run: read_run_observation_times(reconciler.context, run),
        )
        if pages or local_only
        else None
    )
    service.serve(sockets, webhook_secret, scores, shown)
    addresses = [format_address(opened) for opened in sockets]
    fields = {"event": "listen", "addresses": addresses, "hook": webhook_secret is not None, "scores": scores is not None}
    fields["pages"] = shown is not None
    suffix = "" if webhook_secret else ", without a webhook"
    suffix += f"; the fleet is at http://{addresses[0]}/" if shown is not None else ""
    output.LOGGER.info("listening on %s%s", ", ".join(addresses), suffix, extra={"fields": fields})
