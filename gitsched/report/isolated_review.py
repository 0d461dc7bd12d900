"""Render a review on one of whose entries rendering fails because of a bug: without that entry, and with a finding about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gitsched.model.bisection import bisect_failures
from gitsched.model.fault import describe_fault
from gitsched.model.finding import INTERNAL_ERROR, Finding
from gitsched.model.system_errors import is_bug
from gitsched.report.review import Review

_FIELDS = (
    *("findings", "outcomes", "moves", "recorded", "record_changes", "retained", "retained_copies", "ended_copies", "rollouts"),
    "setting_changes",
)
"""The members of a review with an entry for each object or setting."""
MAX_FAULTS = 20
"""Entries that are left out of one report one by one; with more, all entries of the same kind are."""


def isolate_review(review: Review, render: Callable[[Review], object]) -> Review:
    """Return the review without the entries on which `render` fails, and with an error finding about each.

    Raise the error if `render` fails without any entry.
    """
    findings: list[Finding] = []
    shown = review
    for field in _FIELDS:
        shown = _replace(shown, field, ())
    for field in _FIELDS:
        entries = list(getattr(review, field))
        while True:
            position, error = _find_failing(shown, field, entries, render)
            if error is None:
                break
            if position is None:
                raise error
            is_many = len(findings) >= MAX_FAULTS
            findings.append(_make_finding(entries.pop(position), error, is_many=is_many))
            if is_many:
                entries.clear()
        shown = _replace(shown, field, entries)
    return shown._replace(findings=(*shown.findings, *dict.fromkeys(findings)))


def _replace(review: Review, field: str, entries: Sequence[Any]) -> Review:
    members: dict[str, Any] = {field: tuple(entries)}
    return review._replace(**members)


def _find_failing(
    review: Review, field: str, entries: Sequence[Any], render: Callable[[Review], object]
) -> tuple[int | None, Exception | None]:
    """Return the position of the first entry on which rendering fails, None if it fails without any; and the error, None without one."""
    error = _try(review, field, entries, render)
    if error is None:
        return None, None
    if (failure := _try(review, field, (), render)) is not None:
        return None, failure
    position = bisect_failures(len(entries), lambda count: _try(review, field, entries[:count], render) is not None)
    return position, _try(review, field, entries[: position + 1], render) or error


def _try(review: Review, field: str, entries: Sequence[Any], render: Callable[[Review], object]) -> Exception | None:
    try:
        render(_replace(review, field, entries))
    except Exception as error:
        if not is_bug(error):
            raise
        return error
    return None


def _make_finding(entry: Any, error: Exception, *, is_many: bool) -> Finding:
    key = getattr(entry, "key", None)
    location = entry.location if isinstance(entry, Finding) else None
    resource = entry.resource if isinstance(entry, Finding) else getattr(key, "resource", None)
    name, omitted = f"{key}" if key is not None else "an entry", "it and all like it" if is_many else "it"
    message = (
        f"{describe_fault(error)} while a report about {name} was written: the report leaves out {omitted}, "
        "and what was committed is not affected; report this bug with the id"
    )
    return Finding("error", INTERNAL_ERROR, message, location, resource)
