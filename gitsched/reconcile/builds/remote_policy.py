"""Decide which other repositories a run may read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.build.remote_base import RemotePolicy

if TYPE_CHECKING:
    from gitsched.reconcile.run import Fetched, RunContext


def decide_remotes(context: RunContext, fetched: Fetched) -> RemotePolicy:
    """Return what this run may read of other repositories: the only place that decides about it.

    A run that may query metrics providers may fetch from the repositories that the operator allows. The settings of a commit under review
    count only as far as trusted ones agree: those of the base of the comparison, else those of the last source commit that a run planned.
    """
    settings = context.settings
    connect, fetchable = settings.observations == "live", settings.allow.remotes
    if settings.trusted:
        return RemotePolicy(connect, None, fetchable=fetchable)
    trusted = fetched.trusted
    known = trusted.commit is not None and (trusted.is_base or fetched.output_trusted)
    return RemotePolicy(connect, trusted.config.source.kustomize.remotes if known else (), fetchable=fetchable)
