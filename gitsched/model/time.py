"""RFC 3339 timestamps and Go durations. The core has no clock: every timestamp is an input."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NEVER = datetime.max.replace(tzinfo=UTC)
_FIRST_TIME = datetime.min.replace(tzinfo=UTC)
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s)", re.ASCII)
_MAX_LENGTH = 100
_UNIT = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def parse_time(text: object) -> datetime | None:
    """Parse an RFC 3339 string into a UTC time with microseconds; None for anything else."""
    if text is None:
        return None
    if isinstance(text, datetime):
        return text.astimezone(UTC) if text.tzinfo else text.replace(tzinfo=UTC)
    if not isinstance(text, str):
        return None
    return _parse_known_text(text) if len(text) <= _MAX_LENGTH else _parse_text(text)


def _parse_text(text: str) -> datetime | None:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    day, clock, fraction, zone = match.groups()
    try:
        time = datetime.fromisoformat(f"{day}T{clock}{(fraction or '.0')[:7]}{'+00:00' if zone in 'Zz' else zone}")
        return time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


_parse_known_text = lru_cache(maxsize=1024)(_parse_text)  # thousands of records have the times of a few commits


@lru_cache(maxsize=1024)
def format_time(time: datetime) -> str:
    """Format as RFC 3339 in UTC: whole seconds like Kubernetes' metav1.Time, with a fraction only when there is one."""
    text = time.astimezone(UTC).isoformat()
    return text.replace("+00:00", "Z")


def add_duration(time: datetime, delay: timedelta | float) -> datetime:
    """Add a delay, or a number of seconds, to a time; NEVER beyond the end of the calendar, and its first time before its start."""
    try:
        return time + (delay if isinstance(delay, timedelta) else timedelta(seconds=delay))
    except OverflowError:
        seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
        return NEVER if seconds > 0 else _FIRST_TIME


_PUNCTUAL_PART = 10
"""A run counts as punctual if it is late by at most this part of the duration."""


def choose_start(event: datetime, now: datetime, duration: timedelta) -> datetime:
    """Return when a duration starts: at its event if the run is punctual, so that all punctual runs write the same, else now.

    A run's time has a fraction; the start has whole seconds.
    """
    return event if now - event <= duration / _PUNCTUAL_PART else now.replace(microsecond=0)


def format_duration(duration: timedelta) -> str:
    """Return a duration as `parse_duration` reads it, such as 1h30m; "0s" for none. Fractions of a second are left out."""
    seconds = int(duration.total_seconds())
    parts = ((seconds // 3600, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"


_AGES = ((365 * 24 * 3600, "y"), (24 * 3600, "d"), (3600, "h"), (60, "m"))


def format_age(time: datetime, now: datetime) -> str:
    """Return how long ago a time is in its largest unit, as kubectl does: 45s, 3m, 5h, 12d or 2y; 0s for a time to come."""
    seconds = max(int((now - time).total_seconds()), 0)
    return next((f"{seconds // size}{unit}" for size, unit in _AGES if seconds >= size), f"{seconds}s")


def parse_duration(text: object) -> timedelta | None:
    """Parse a Go duration such as 24h, 10m or 1h30m; None for anything else, and for more than 100 characters."""
    if not isinstance(text, str) or not 0 < len(text) <= _MAX_LENGTH:
        return None
    position, seconds = 0, 0.0
    for part in _DURATION_PART.finditer(text):
        if part.start() != position:
            return None
        seconds += float(part[1]) * _UNIT[part[2]]
        position = part.end()
    try:
        return timedelta(seconds=seconds) if position == len(text) else None
    except OverflowError:
        return None
