"""Add a filter from outside of gitsched, and what is known of the filters of both profiles."""

from __future__ import annotations

from gitsched.schedule import fleet, selection


def register_filter(added: fleet.FilterPlugin) -> None:
    """Add a filter to the replica profile, after the others. A program registers it before anything is read: see
    docs/development/architecture.md.

    Raise ValueError if the profile has a filter of this name.
    """
    if added.name in (known.name for known in fleet.FILTERS):
        raise ValueError(f"the filter {added.name!r} is registered already")
    fleet.FILTERS = (*fleet.FILTERS, added)


def register_selection_filter(added: selection.SelectionFilter) -> None:
    """Add a filter to the best-N profile, as `register_filter` does to the other one."""
    if added.name in (known.name for known in selection.SELECTION_FILTERS):
        raise ValueError(f"the filter {added.name!r} is registered already")
    selection.SELECTION_FILTERS = (*selection.SELECTION_FILTERS, added)


def compare_candidates() -> bool:
    """Return whether a filter of the replica profile may compare candidates with each other: all do that do not say `per_candidate`."""
    return not all(getattr(known, "per_candidate", False) for known in fleet.FILTERS)
