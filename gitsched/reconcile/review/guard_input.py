"""Read what the guard needs besides the planned commit: the settings of the trusted side, the record of the last run, and options."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING

from gitsched import __version__
from gitsched.decide.guard.guard_settings import GuardInput, GuardRecord, read_guard_record
from gitsched.reconcile.source.config_file import read_config

if TYPE_CHECKING:
    from gitsched.apis.gitsched.guard_config import GuardConfig
    from gitsched.model.source_edits import SourceEdits
    from gitsched.reconcile.run import Fetched, RunContext
    from gitsched.render.run_metadata import RunMetadata


def make_guard_input(context: RunContext, fetched: Fetched, *, has_tenants: bool) -> GuardInput:
    """Return the input of the guard. The trusted side is the base of a comparison, else what the last run recorded."""
    settings, record = context.settings, fetched.record
    trusted: GuardConfig | None = None
    if fetched.trusted.is_base:
        trusted = fetched.trusted.config.guard
    elif record is not None:
        trusted = _find_recorded_settings(context, record)
    recorded = read_guard_record(record.guard if record is not None else {})
    find_base = cache(partial(_find_base, fetched, recorded))
    find_former = None
    if has_tenants and record is not None:
        from gitsched.reconcile.tenants.former_owners import make_owner_finder  # few sources have tenants

        find_former = make_owner_finder(context, fetched)
    return GuardInput(
        trusted,
        recorded,
        fetched.frozen,
        settings.choices.guard_limits,
        settings.choices.allowed,
        find_former_owner=find_former,
        find_base=find_base,
        list_edits=cache(partial(_list_edits, context, fetched, find_base)),
    )


def _find_base(fetched: Fetched, recorded: GuardRecord) -> str:
    """Return the source commit with which edits are compared: the base of a comparison; while changes are withheld, the one before these;
    else the newest that a run has planned. Return "" if it is not known."""
    if fetched.trusted.is_base:
        return fetched.trusted.commit.oid if fetched.trusted.commit is not None else ""
    if recorded.digest:
        return recorded.base
    return fetched.reconciled.source


def _list_edits(context: RunContext, fetched: Fetched, find_base: Callable[[], str]) -> SourceEdits | None:
    """Return what people changed since a source commit; None if that is not known."""
    base = find_base()
    if not (base and context.source.fetch_commit(base)):
        return None
    from gitsched.reconcile.review.source_edits import find_edits  # most plans move nothing

    return find_edits(context, context.source.repository.commit(base).tree, fetched.source.tree)


def _find_recorded_settings(context: RunContext, record: RunMetadata) -> GuardConfig | None:
    """Return the settings that the last run recorded. For a run of an earlier gitsched they are those of its source commit; None if this
    commit is not available."""
    if record.guard or record.version == __version__:
        return read_guard_record(record.guard).settings
    if not record.source or not context.source.fetch_commit(record.source):
        return None
    repository = context.source.repository
    config = read_config(repository, repository.commit(record.source).tree, context.caches.files)
    return config.guard if config is not None else None
