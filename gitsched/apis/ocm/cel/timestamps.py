"""CEL timestamps and durations; time zones are offsets such as +02:00."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from typing import Any

from gitsched.apis.ocm.cel.overloads import cel_function
from gitsched.apis.ocm.cel.types import MAX_INT, MIN_INT, EvaluationError
from gitsched.model.time import EPOCH, format_time, parse_time

_DURATION_PART = re.compile(r"([0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(ns|us|µs|μs|ms|s|m|h)")
_MAX_DURATION_LENGTH = 1_000
"""Characters of a duration at most; what is longer names none."""
_NANOSECONDS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 6 * 10**10, "h": 36 * 10**11}
_ZONE_OFFSET = re.compile(r"([+-]?)([0-9]{2}):([0-9]{2})")


def parse_timestamp(value: Any) -> datetime:
    """A timestamp from a text, or from seconds since 1970."""
    if isinstance(value, datetime):
        return value
    moment = parse_time(value)
    if moment is None and isinstance(value, int):
        try:
            moment = EPOCH + timedelta(seconds=value)
        except OverflowError:
            moment = None
    if moment is None:
        raise EvaluationError("no timestamp")
    return moment


def parse_go_duration(value: Any) -> timedelta:
    """A duration as Go writes it: -1h30m, 0.5s."""
    if isinstance(value, timedelta):
        return value
    if len(value) > _MAX_DURATION_LENGTH:
        raise EvaluationError("no duration")
    sign, text = (-1, value[1:]) if value.startswith("-") else (1, value.removeprefix("+"))
    parts = list(_DURATION_PART.finditer(text))
    if text != "0" and (not parts or "".join(part[0] for part in parts) != text):
        raise EvaluationError("no duration")
    nanoseconds = sign * sum(Fraction(part[1]) * _NANOSECONDS[part[2]] for part in parts)
    if not MIN_INT <= nanoseconds <= MAX_INT:
        raise EvaluationError("no duration")
    return timedelta(microseconds=float(nanoseconds / 1000))


def limit_duration(value: Any) -> Any:
    """The same value; EvaluationError if it is a duration of more nanoseconds than 64 bits hold, 292 years."""
    if isinstance(value, timedelta) and not MIN_INT // 1000 <= value // timedelta(microseconds=1) <= MAX_INT // 1000:
        raise EvaluationError("integer overflow")
    return value


def format_timestamp(moment: datetime) -> str:
    return format_time(moment)


def format_duration(duration: timedelta) -> str:
    """In seconds, as the language writes it."""
    seconds = duration / timedelta(seconds=1)
    return f"{seconds:.6f}".rstrip("0").rstrip(".") + "s"


def _in_time_zone(moment: datetime, zone: str) -> datetime:
    if zone in ("", "UTC"):
        return moment.astimezone(UTC)
    match = _ZONE_OFFSET.fullmatch(zone)
    if match is None:
        raise EvaluationError(f"the time zone {zone!r} is not known: only offsets such as +02:00 are")
    offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
    if offset >= timedelta(hours=24):
        raise EvaluationError("no time zone")
    return moment.astimezone(timezone(-offset if match[1] == "-" else offset))


@cel_function("timestamp.getFullYear(): int", "timestamp.getFullYear(string): int")
def get_full_year(moment: datetime, zone: str = "") -> int:
    return _in_time_zone(moment, zone).year


@cel_function("timestamp.getMonth(): int", "timestamp.getMonth(string): int")
def get_month(moment: datetime, zone: str = "") -> int:
    return _in_time_zone(moment, zone).month - 1


@cel_function("timestamp.getDate(): int", "timestamp.getDate(string): int")
def get_date(moment: datetime, zone: str = "") -> int:
    return _in_time_zone(moment, zone).day


@cel_function("timestamp.getDayOfMonth(): int", "timestamp.getDayOfMonth(string): int")
def get_day_of_month(moment: datetime, zone: str = "") -> int:
    return _in_time_zone(moment, zone).day - 1


@cel_function("timestamp.getDayOfWeek(): int", "timestamp.getDayOfWeek(string): int")
def get_day_of_week(moment: datetime, zone: str = "") -> int:
    return _in_time_zone(moment, zone).isoweekday() % 7


@cel_function("timestamp.getDayOfYear(): int", "timestamp.getDayOfYear(string): int")
def get_day_of_year(moment: datetime, zone: str = "") -> int:
    return _in_time_zone(moment, zone).timetuple().tm_yday - 1


@cel_function("timestamp.getHours(): int", "timestamp.getHours(string): int")
def get_hours(moment: datetime, zone: str = "") -> int:
    return _in_time_zone(moment, zone).hour


@cel_function("timestamp.getMinutes(): int", "timestamp.getMinutes(string): int")
def get_minutes(moment: datetime, zone: str = "") -> int:
    return _in_time_zone(moment, zone).minute


@cel_function("timestamp.getSeconds(): int", "timestamp.getSeconds(string): int")
def get_seconds(moment: datetime, zone: str = "") -> int:
    return _in_time_zone(moment, zone).second


@cel_function("timestamp.getMilliseconds(): int", "timestamp.getMilliseconds(string): int")
def get_milliseconds(moment: datetime, zone: str = "") -> int:
    return _in_time_zone(moment, zone).microsecond // 1000


@cel_function("duration.getHours(): int")
def duration_hours(duration: timedelta) -> int:
    return _count_units(duration, timedelta(hours=1))


@cel_function("duration.getMinutes(): int")
def duration_minutes(duration: timedelta) -> int:
    return _count_units(duration, timedelta(minutes=1))


@cel_function("duration.getSeconds(): int")
def duration_seconds(duration: timedelta) -> int:
    return _count_units(duration, timedelta(seconds=1))


@cel_function("duration.getMilliseconds(): int")
def duration_milliseconds(duration: timedelta) -> int:
    return _count_units(duration, timedelta(milliseconds=1)) % 1000


def _count_units(duration: timedelta, unit: timedelta) -> int:
    return int(duration / unit)
